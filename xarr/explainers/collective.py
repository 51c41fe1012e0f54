"""`explain_collective`: who sends how much to whom, in which rounds, and how long that takes on a link."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from operator import index
from typing import Any, Final

import numpy as np

from xarr.base.canvas import Canvas
from xarr.communication import algorithms
from xarr.communication.communicator import Array, Communicator
from xarr.distributed.costs import LINKS, Link
from xarr.dtypes import xla_name
from xarr.errors import InputError, ShapeError, ValueRangeError, pluralize
from xarr.explainers.operands import choose
from xarr.explanation.grids import COLOURS
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.steps import MOST_STEPS, PictureStep
from xarr.explanation.svg import MARGIN
from xarr.ir.types import TensorType
from xarr.transforms.lowering import argument_type

#: (source, target) of messages.
Pairs = Sequence[tuple[int, int]]
#: Replicas above which nothing is simulated, and replicas, and boxes and arrows together, that a picture has.
_MOST: Final = 64
_DRAWN, _PARTS = 16, 160
#: Replicas that a table has, where it has not all.
_LISTED: Final = 8
_ROW, _ACROSS, _BETWEEN = 30.0, 120.0, 56.0


@dataclass(frozen=True)
class Message:
    """An array that goes from one replica to another in a round."""

    round: int
    source: int
    target: int
    nbytes: int


@dataclass(frozen=True, repr=False)
class CollectiveExplanation(Sheet):
    """The messages of one collective: one object, several views; `messages` are those between different replicas."""

    name: str
    operand: TensorType
    n: int
    link: Link
    messages: tuple[Message, ...]

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

    @property
    def headline(self) -> str:
        shown = pluralize(self.operand.nbytes, "byte")
        return f"{self.name} of {self.operand.short()} at {pluralize(self.n, 'replica')}, {shown} each"

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        """A row for each replica that sends in each round, of as many replicas as are drawn."""
        if not self.messages:
            return ()
        rows = [row for number in range(1, self.rounds + 1) for row in self._rows(number)]
        head = ("round", "replica", "sends to", "bytes a message")
        return tuple(tuple(map(Cell, row)) for row in (head, *rows))

    def codes(self) -> tuple[Listing, ...]:
        return ()

    def steps(self) -> tuple[PictureStep, ...]:
        """The rounds, where there are several and few."""
        return tuple(map(self._step, range(1, self.rounds + 1))) if 1 < self.rounds <= MOST_STEPS else ()

    def _step(self, number: int) -> PictureStep:
        own = [each for each in self.messages if each.round == number]
        senders = len({each.source for each in own})
        return PictureStep(
            f"round {number}",
            f"{pluralize(len(own), 'message')} of {_sizes(own)} bytes, sent by {pluralize(senders, 'replica')}; "
            f"{_time(self._round_seconds(number))}",
            shows=(str(number),),
        )

    def notes(self) -> tuple[tuple[str, str], ...]:
        if not self.messages:
            return (("messages", "nothing is sent"),)
        moved = sum(each.nbytes for each in self.messages)
        return (
            (
                "messages",
                f"{len(self.messages)} in {pluralize(self.rounds, 'round')}, {moved:,} bytes in all; "
                f"the busiest link carries {self.link_bytes():,}",
            ),
            (
                "time",
                f"{_time(self.seconds())} on {self.link.name}: {_time(self.link.latency)} of latency, "
                f"{self.link.bandwidth / 1e9:.3g} GB/s a replica, {_time(self.link.overhead)} to post a message",
            ),
        )

    def draw(self, canvas: Canvas, top: float) -> float:
        """Replicas as boxes, for each round an arrow for each message."""
        shown, begin = self._count_drawn(), top + (40 if self.messages else 4)
        for number in range(self.rounds + 1):
            x, phase = MARGIN + number * (_ACROSS + _BETWEEN), canvas.marks.get(str(number), "")
            for rank in range(shown):
                style = f"c o{rank % COLOURS}{phase}"
                canvas.box(x, begin + rank * _ROW, _BETWEEN, _ROW - 8, style, str(rank))
            if number:
                self._draw_round(canvas, number, x, begin, shown)
        below = begin + shown * _ROW
        if shown < self.n:
            canvas.text(MARGIN, below + 8, f"replicas from {shown} on are not drawn", "d")
            below += 18
        return below

    def _count_drawn(self) -> int:
        """The replicas that are drawn: the first ones, so many that the picture is not crowded by their messages."""
        ends = [max(each.source, each.target) for each in self.messages]
        for shown in range(min(self.n, _DRAWN), 1, -1):
            if (self.rounds + 1) * shown + sum(end < shown for end in ends) <= _PARTS:
                return shown
        return min(self.n, 2)

    def facts(self) -> dict[str, Any]:
        return {
            "op": self.name,
            "operand": {"shape": list(self.operand.shape), "dtype": xla_name(self.operand.dtype)},
            "replicas": self.n,
            "rounds": self.rounds,
            "messages": [asdict(each) for each in self.messages],
            "link": asdict(self.link),
            "link_bytes": self.link_bytes(),
            "seconds": self.seconds(),
        }

    def _round_seconds(self, number: int) -> float:
        own = [each for each in self.messages if each.round == number]
        busiest = 0.0
        for rank in range(self.n):
            sent = [each.nbytes for each in own if each.source == rank]
            received = sum(each.nbytes for each in own if each.target == rank)
            moved = max(sum(sent), received) / self.link.bandwidth
            busiest = max(busiest, moved + len(sent) * self.link.overhead)
        return self.link.latency + busiest

    def _rows(self, number: int) -> Iterator[tuple[str, str, str, str]]:
        for rank in range(self.n if self.n <= _DRAWN else _LISTED):
            own = [each for each in self.messages if (each.round, each.source) == (number, rank)]
            if own:
                yield str(number), str(rank), _list([each.target for each in own]), _sizes(own)
        if self.n > _DRAWN:
            yield str(number), "\N{HORIZONTAL ELLIPSIS}", "", ""

    def _draw_round(self, canvas: Canvas, number: int, x: float, top: float, shown: int) -> None:
        own = [each for each in self.messages if each.round == number]
        phase = canvas.marks.get(str(number), "")
        canvas.text(x - _ACROSS, top - 28, f"round {number}", f"t{phase}")
        canvas.text(x - _ACROSS, top - 12, f"{_sizes(own)} bytes", f"d{phase}")
        for each in own:
            if max(each.source, each.target) < shown:
                start = top + each.source * _ROW + _ROW / 2 - 4
                canvas.line(x - _ACROSS, start, _ACROSS, (each.target - each.source) * _ROW, f"s{phase}")


def explain_collective(
    name: str,
    operand: Any,
    n: int,
    *,
    pairs: Pairs | None = None,
    link: Link = LINKS[0],
) -> CollectiveExplanation:
    """Explain the messages of a collective at n replicas, by running what each of them does.

    Example: `print(explain_collective("all_reduce", "f32[1024]", 4))`.

    name: `all_reduce`, `all_gather`, `reduce_scatter`, `all_to_all`, `collective_broadcast` or `collective_permute`;
        `send` or `recv` for a pair of these.
    operand: an array, or its type such as "f32[2,3]"; for `reduce_scatter` and `all_to_all` its first dimension is
        split.  pairs: (source, target) of `collective_permute`, `send` and `recv`; each to the next without.
    link: of which latency and bandwidth are known, `xarr.distributed.Link`; what messages within one machine take
        without.

    Raises InputError for another name, ValueRangeError for more than 64 replicas and for pairs that are not of them,
    ShapeError for a dimension that cannot be split.  Source: the algorithms that run, `xarr.communication.algorithms`.
    """
    name = choose("explain_collective", "name", name, tuple(COLLECTIVES))
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
    if not isinstance(link, Link):
        raise InputError(f"explain_collective: wanted a Link of xarr.distributed for link, got {link!r}")
    ring = [(rank, (rank + 1) % n) for rank in range(n)]
    messages = _messages(name, type_, n, _check_pairs(pairs, n) or ring)
    ordered = sorted(messages, key=lambda each: (each.round, each.source, each.target))
    return CollectiveExplanation(name, type_, n, link, tuple(ordered))


def _check_pairs(pairs: Pairs | None, n: int) -> Pairs:
    """The pairs as they are; ValueRangeError for replicas that there are not, or for one that is named twice."""
    try:
        listed = [(index(source), index(target)) for source, target in pairs or ()]
    except (TypeError, ValueError):
        raise InputError(
            f"explain_collective: wanted pairs of ints (source, target) for pairs, such as [(0, 1)], got {pairs!r}"
        ) from None
    for replicas in zip(*listed, strict=True):
        if len(set(replicas)) < len(replicas) or not set(replicas) <= set(range(n)):
            raise ValueRangeError(
                f"explain_collective: wanted pairs (source, target) of replicas from 0 to {n - 1}, each at most once "
                f"as a source and once as a target, got {listed}"
            )
    return listed


def _messages(name: str, type_: TensorType, n: int, pairs: Pairs) -> list[Message]:
    """The messages of all replicas, each run by itself: nothing is moved, so that no memory is touched."""
    members, messages = tuple(range(n)), list[Message]()
    try:
        operand = np.empty(tuple(type_.shape), type_.dtype)
        for rank in members:
            COLLECTIVES[name](_Recorder(rank, n, messages), members, operand, pairs)
    except MemoryError:
        raise ValueRangeError(
            f"explain_collective: wanted an operand of which {n} fit into memory, got {type_.short()}"
        ) from None
    return messages


class _Recorder(Communicator):
    """One replica that exchanges, as between machines: it writes down what it sends, and sends nothing."""

    name = "recorder"

    def __init__(self, rank: int, size: int, messages: list[Message]) -> None:
        self._rank, self._size, self._messages, self._exchanges = rank, size, messages, 0

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        self._exchanges += 1
        self._messages += [
            Message(self._exchanges, self._rank, target, array.nbytes)
            for target, array in sends.items()
            if target != self._rank and array.nbytes
        ]

    def send_all(self, array: Array, pairs: Pairs) -> None:
        """Send an array to the target of each pair of which this replica is the source."""
        self.exchange({target: array for source, target in pairs if source == self._rank}, {})


#: The fold of replicas that hold no values.
_NOTHING: Final = algorithms.Fold(lambda rows, out: None)


def _rows_of(operand: Array, members: Sequence[int]) -> Array:
    return operand.reshape(len(members), -1)


#: What can be explained, by its name.
COLLECTIVES: Final[dict[str, Callable[[_Recorder, tuple[int, ...], Array, Pairs], Any]]] = {
    "all_reduce": lambda own, members, x, _: algorithms.all_reduce(own, members, [x], [_NOTHING]),
    "all_gather": lambda own, members, x, _: algorithms.all_gather(own, members, x),
    "reduce_scatter": lambda own, members, x, _: algorithms.reduce_scatter(
        own, members, _rows_of(x, members), _NOTHING
    ),
    "all_to_all": lambda own, members, x, _: algorithms.all_to_all(own, members, _rows_of(x, members)),
    "collective_broadcast": lambda own, members, x, _: algorithms.broadcast(own, members, x),
    "collective_permute": lambda own, _, x, pairs: algorithms.permute(own, x, pairs),
    "send": lambda own, _, x, pairs: own.send_all(x, pairs),
    "recv": lambda own, _, x, pairs: own.send_all(x, pairs),
}


def _sizes(messages: Sequence[Message]) -> str:
    """The bytes of messages: one number, or the least and the most."""
    least, most = (pick(each.nbytes for each in messages) for pick in (min, max))
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def _list(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:8]))
    return shown if len(numbers) <= 8 else f"{shown}, … {numbers[-1]}"


def _time(seconds: float) -> str:
    unit, factor = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{seconds * factor:.3g} {unit}"
