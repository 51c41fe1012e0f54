"""`explain_collective`: who sends how much to whom, in which rounds, and how long that takes on a link."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from xarr.communication import algorithms
from xarr.communication.communicator import (
    Array,
    CollectiveCall,
    Communicator,
    current_communicator,
    use_communicator,
)
from xarr.distributed.costs import LINKS, Link
from xarr.distributed.simulation import simulate
from xarr.distributed.threads import ThreadCommunicator
from xarr.errors import InputError, ShapeError, ValueRangeError, pluralize
from xarr.explanation.canvas import Canvas
from xarr.explanation.svg import MARGIN, STYLE
from xarr.ir.types import TensorType
from xarr.transforms.lowering import argument_type

#: Replicas above which nothing is simulated, and rounds and replicas that a picture has.
_MOST: Final = 64
_DRAWN: Final = 16
_ROW, _ACROSS, _BETWEEN = 30.0, 120.0, 56.0


@dataclass(frozen=True)
class Message:
    """An array that goes from one replica to another in a round."""

    round: int
    source: int
    target: int
    nbytes: int


@dataclass(frozen=True)
class CollectiveExplanation:
    """The messages of one collective: one object, several views.

    `str(e)` or `e.text()`, `e.svg()`, which notebooks show; `messages` are those between different replicas.
    """

    name: str
    operand: TensorType
    n: int
    link: Link
    messages: tuple[Message, ...] = field(repr=False)

    @property
    def rounds(self) -> int:
        """The number of rounds: in each one, all messages are under way at once."""
        return max((each.round for each in self.messages), default=0)

    def seconds(self) -> float:
        """The time on the link: of each round that of the replica which sends or receives most."""
        return sum(self._round_seconds(number) for number in range(1, self.rounds + 1))

    def link_bytes(self) -> int:
        """The most bytes that go from one replica to another, in all rounds together."""
        totals: dict[tuple[int, int], int] = {}
        for each in self.messages:
            pair = each.source, each.target
            totals[pair] = totals.get(pair, 0) + each.nbytes
        return max(totals.values(), default=0)

    def text(self) -> str:
        """A row for each replica that sends in each round, and what that takes."""
        shown = pluralize(self.operand.nbytes, "byte")
        head = f"{self.name} of {self.operand.short()} at {pluralize(self.n, 'replica')}, {shown} each"
        if not self.messages:
            return f"{head}\n\n  nothing is sent"
        lines = [head, "", f"  {'round':<7}{'replica':<9}{'sends to':<34}bytes a message"]
        for number in range(1, self.rounds + 1):
            lines += self._rows(number)
        moved = sum(each.nbytes for each in self.messages)
        lines += [
            "",
            f"  {pluralize(len(self.messages), 'message')} in {pluralize(self.rounds, 'round')}, "
            f"{moved:,} bytes in all; the busiest link carries {self.link_bytes():,}",
            f"  {_time(self.seconds())} on {self.link.name}: {_time(self.link.latency)} of latency, "
            f"{self.link.bandwidth / 1e9:.3g} GB/s a replica, {_time(self.link.overhead)} to post a message",
        ]
        return "\n".join(lines)

    __str__ = text

    def svg(self) -> str:
        """A self-contained SVG document: replicas as boxes, for each round an arrow for each message."""
        canvas = Canvas()
        canvas.text(MARGIN, MARGIN + 12, f"{self.name} of {self.operand.short()}, {self.n} replicas", "t", 13)
        top, shown = MARGIN + 56, min(self.n, _DRAWN)
        for number in range(self.rounds + 1):
            x = MARGIN + number * (_ACROSS + _BETWEEN)
            for rank in range(shown):
                canvas.box(x, top + rank * _ROW, _BETWEEN, _ROW - 8, f"o{rank % 5}", str(rank))
            if number:
                self._draw_round(canvas, number, x, top, shown)
        below = top + shown * _ROW + 16
        hidden = f"; replicas from {shown} on are not drawn" if shown < self.n else ""
        canvas.text(MARGIN, below, f"{_time(self.seconds())} on {self.link.name}{hidden}", "d")
        return canvas.svg(f"{self.name} at {self.n} replicas, {self.rounds} rounds", STYLE)

    def _repr_html_(self) -> str:
        return self.svg()

    def _round_seconds(self, number: int) -> float:
        own = [each for each in self.messages if each.round == number]
        busiest = 0.0
        for rank in range(self.n):
            sent = [each.nbytes for each in own if each.source == rank]
            received = sum(each.nbytes for each in own if each.target == rank)
            moved = max(sum(sent), received) / self.link.bandwidth
            busiest = max(busiest, moved + len(sent) * self.link.overhead)
        return self.link.latency + busiest

    def _rows(self, number: int) -> Iterator[str]:
        for rank in range(self.n):
            own = [each for each in self.messages if (each.round, each.source) == (number, rank)]
            if own:
                targets, sizes = _list([each.target for each in own]), sorted({each.nbytes for each in own})
                nbytes = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
                yield f"  {number:<7}{rank:<9}{targets:<34}{nbytes}"

    def _draw_round(self, canvas: Canvas, number: int, x: float, top: float, shown: int) -> None:
        own = [each for each in self.messages if each.round == number]
        sizes = sorted({each.nbytes for each in own})
        words = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
        canvas.text(x - _ACROSS, top - 28, f"round {number}", "t")
        canvas.text(x - _ACROSS, top - 12, f"{words} bytes", "d")
        for each in own:
            if max(each.source, each.target) < shown:
                start = top + each.source * _ROW + _ROW / 2 - 4
                canvas.line(x - _ACROSS, start, _ACROSS, (each.target - each.source) * _ROW, "s")


def explain_collective(
    name: str,
    operand: Any,
    n: int,
    *,
    pairs: Sequence[tuple[int, int]] | None = None,
    link: Link = LINKS[0],
) -> CollectiveExplanation:
    """Explain the messages of a collective at n replicas, by running it: `print(explain_collective("all_reduce",
    "f32[1024]", 4))`.

    name: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `collective_broadcast` or `collective_permute`.
    operand: an array, or its type such as "f32[2,3]"; for `reduce_scatter` and `all_to_all` its first dimension is
        split.  pairs: (source, target) of `collective_permute`; each to the next without.
    link: of which latency and bandwidth are known, `xarr.distributed.Link`; what messages within one machine take
        without.

    Raises InputError for another name, ValueRangeError for more than 64 replicas, ShapeError for a dimension that
    cannot be split.  Source: the algorithms that run, `xarr.communication.algorithms`.
    """
    if name not in _COLLECTIVES:
        raise InputError(f"explain_collective: wanted one of {', '.join(_COLLECTIVES)}, got {name!r}")
    if type(n) is not int or not 0 < n <= _MOST:
        raise ValueRangeError(f"explain_collective: wanted 1 to {_MOST} replicas, got {n!r}")
    type_ = argument_type(operand)
    if not isinstance(type_, TensorType):
        raise InputError(f"explain_collective: wanted an array, got {type_.short()}")
    shape = tuple(type_.shape)
    if name in ("reduce_scatter", "all_to_all") and (not shape or shape[0] % n):
        raise ShapeError(
            f"explain_collective: wanted a first dimension that {n} divides, got {type_.short()}"
        )
    call = CollectiveCall(name, "()", tuple(range(n)))
    ring = [(rank, (rank + 1) % n) for rank in range(n)]
    messages: list[Message] = []
    lock = threading.Lock()

    def run() -> None:
        own = current_communicator()
        assert isinstance(own, ThreadCommunicator)
        with use_communicator(_Recorder(own, messages, lock)) as recorder, recorder.collective(call):
            _COLLECTIVES[name](recorder, call.members, np.zeros(shape, type_.dtype), pairs or ring)

    simulate(n, run)
    ordered = sorted(messages, key=lambda each: (each.round, each.source, each.target))
    return CollectiveExplanation(name, type_, n, link, tuple(ordered))


class _Recorder(ThreadCommunicator):
    """A communicator that exchanges, as between machines, and writes down what it sends."""

    def __init__(self, other: ThreadCommunicator, messages: list[Message], lock: threading.Lock) -> None:
        super().__init__(other._world, other.rank)
        self._messages, self._writing, self._exchanges = messages, lock, 0

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        self._exchanges += 1
        with self._writing:
            self._messages += [
                Message(self._exchanges, self.rank, target, array.nbytes)
                for target, array in sends.items()
                if target != self.rank and array.nbytes
            ]
        super().exchange(sends, recvs)

    def all_gather(self, members: Sequence[int], operand: Array, out: Array) -> bool:
        return False

    @contextmanager
    def share(self, members: Sequence[int], arrays: tuple[Array, ...]) -> Iterator[None]:
        yield None


Pairs = Sequence[tuple[int, int]]


def _keep_first(rows: Sequence[Array], out: Array) -> None:
    out[...] = rows[0]


def _rows_of(operand: Array, members: Sequence[int]) -> Array:
    return operand.reshape(len(members), -1)


_COLLECTIVES: Final[dict[str, Callable[[Communicator, tuple[int, ...], Array, Pairs], Any]]] = {
    "all_reduce": lambda own, members, x, _: algorithms.all_reduce(own, members, [x], [_keep_first]),
    "all_gather": lambda own, members, x, _: algorithms.all_gather(own, members, x),
    "reduce_scatter": lambda own, members, x, _: algorithms.reduce_scatter(
        own, members, _rows_of(x, members), _keep_first
    ),
    "all_to_all": lambda own, members, x, _: algorithms.all_to_all(own, members, _rows_of(x, members)),
    "collective_broadcast": lambda own, members, x, _: algorithms.broadcast(own, members, x),
    "collective_permute": lambda own, _, x, pairs: algorithms.permute(own, x, pairs),
}


def _list(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return shown if len(numbers) <= 8 else f"{shown}, … {numbers[-1]}"


def _time(seconds: float) -> str:
    unit, factor = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{seconds * factor:.3g} {unit}"
