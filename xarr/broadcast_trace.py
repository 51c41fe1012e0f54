"""`trace_broadcasts`: every implicit broadcast of a block of a program, with its line, shapes, count and bytes."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod
from typing import Any, Final, TypeAlias

from xarr.calls.operands import Event, ImplicitBroadcast, watching
from xarr.errors import InputError, pluralize
from xarr.explanation.broadcast import BroadcastExplanation, explain_shapes
from xarr.explanation.broadcast_code import human_bytes, warnings
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.text import warning_lines
from xarr.ir.source import Source, operation_at

#: Kinds of broadcasts that are likely not meant, the worse one first.
KINDS: Final = ("OUTER", "AMBIGUOUS")
#: What may be asked for: those of a kind, those of it and of worse ones, and any.
LEVELS: Final = ("outer", "ambiguous", "any")

#: What a record is of: the function, shapes, dtypes, and the line.
_Key: TypeAlias = tuple[str, tuple[tuple[int, ...], ...], tuple[str, ...], Source | None]


@dataclass(frozen=True)
class TracedBroadcast:
    """One line of a program that broadcasts implicitly, and how often it did.

    * `explanation` - how the operands align: their shapes, names and dtypes, and the same said explicitly,
    * `source` - the line; None for code without one,
    * `count` - how often it ran with these shapes and dtypes.
    """

    explanation: BroadcastExplanation
    source: Source | None
    count: int

    @property
    def kinds(self) -> tuple[str, ...]:
        """OUTER for a result larger than every operand, AMBIGUOUS where another alignment fits, both or none."""
        return tuple(warning.kind for warning in warnings(self.explanation))

    @property
    def result_shape(self) -> tuple[int, ...]:
        """The shape that the operands are broadcast to."""
        alignment = self.explanation.alignment
        assert alignment is not None, "only what aligns is traced"
        return alignment.result

    @property
    def nbytes(self) -> int:
        """Bytes that the operands which are repeated would take in full, each time."""
        return sum(
            Operand(each.name, self.result_shape, each.dtype).bytes or 0
            for each in self.explanation.operands
            if each.shape and each.shape != self.result_shape
        )

    @property
    def location(self) -> str:
        """`file.py:12`."""
        return f"{self.source.filename}:{self.source.line}" if self.source else "<unknown>"

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, numbers and text, for JSON."""
        return {
            "file": self.source.filename if self.source else None,
            "line": self.source.line if self.source else None,
            "op": self.explanation.op.partition(":")[0],  # of an index there is the text behind it
            "operands": list(self.explanation.names),
            "shapes": [list(shape) for shape in self.explanation.shapes],
            "dtypes": [each.dtype for each in self.explanation.operands],
            "result": list(self.result_shape),
            "count": self.count,
            "bytes": self.nbytes,
            "kinds": list(self.kinds),
        }

    def text(self) -> str:
        """The line, its shapes, count and bytes, and what may have been meant."""
        shapes = ", ".join(
            f"{each.name}: {each.dtype or ''}{list(each.shape)}" for each in self.explanation.operands
        )
        kinds = f"{' '.join(self.kinds)}  " if self.kinds else ""
        lines = [
            f"{kinds}{self.source.text() if self.source else self.location}",
            f"  {shapes} -> {list(self.result_shape)}; {pluralize(self.count, 'time')}, "
            f"{human_bytes(self.nbytes)} each",
            *warning_lines(self.explanation),
        ]
        return "\n".join(lines)


class BroadcastTrace:
    """The implicit broadcasts of a block, `with xarr.trace_broadcasts() as trace:`, during it and after it.

    `str(trace)`, `trace.text()`, `trace.to_dict()`, `trace.json()`; `trace.broadcasts` has one record for each
    line, op, shapes and dtypes.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._counts: dict[_Key, int] = {}

    @property
    def broadcasts(self) -> tuple[TracedBroadcast, ...]:
        """OUTER ones first, then AMBIGUOUS ones, then all others; within each those of most bytes in all first."""
        with self._lock:
            counted = list(self._counts.items())
        traced = [_record(key, count) for key, count in counted]
        return tuple(sorted(traced, key=_rank))

    @property
    def count(self) -> int:
        """The number of implicit broadcasts, each time that a line ran."""
        with self._lock:
            return sum(self._counts.values())

    def at_least(self, level: str) -> tuple[TracedBroadcast, ...]:
        """Those of a level: "outer", "ambiguous", which are both of these kinds, or "any"."""
        if level not in LEVELS:
            raise InputError(f"at_least: wanted one of {', '.join(map(repr, LEVELS))}, got {level!r}")
        wanted = set(KINDS[: LEVELS.index(level) + 1])
        return tuple(each for each in self.broadcasts if level == "any" or wanted & set(each.kinds))

    def text(self) -> str:
        """Plain text: a summary, and one part for each line."""
        broadcasts = self.broadcasts
        if not broadcasts:
            return "no implicit broadcast"
        kinds = [f"{sum(kind in each.kinds for each in broadcasts)} {kind}" for kind in KINDS]
        head = f"{pluralize(len(broadcasts), 'implicit broadcast')}, {', '.join(kinds)}; {self.count} in all"
        return "\n\n".join([head, *(each.text() for each in broadcasts)])

    def to_dict(self) -> dict[str, Any]:
        """All of it as lists, numbers and text: `broadcasts` in the order of `text`, and counts."""
        broadcasts = self.broadcasts
        kinds = {kind.lower(): sum(kind in each.kinds for each in broadcasts) for kind in KINDS}
        return {"count": self.count, **kinds, "broadcasts": [each.to_dict() for each in broadcasts]}

    def json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), indent=2)

    __str__ = __repr__ = text

    def _note(self, event: Event) -> None:
        if not isinstance(event, ImplicitBroadcast):
            return
        shapes = event.alignment.operands
        if all(not shape or shape == event.alignment.result for shape in shapes):
            return  # scalars, which broadcast freely at every level
        key = (event.op, shapes, event.dtypes, event.source)
        with self._lock:
            self._counts[key] = self._counts.get(key, 0) + 1


@contextmanager
def trace_broadcasts() -> Iterator[BroadcastTrace]:
    """Trace every implicit broadcast that the block makes, in all threads; gives the trace.

    Programs run as without it and give the same values, but more slowly: jitted functions run operation by operation,
    so that each call counts.  Scalars are not listed: they broadcast freely at every level.
    """
    trace = BroadcastTrace()
    with watching(trace._note, all_threads=True):
        yield trace


def _record(key: _Key, count: int) -> TracedBroadcast:
    op, shapes, dtypes, source = key
    written, names = operation_at(source, op, len(shapes))
    return TracedBroadcast(explain_shapes(*shapes, op=written, names=names, dtypes=dtypes), source, count)


def _rank(traced: TracedBroadcast) -> tuple[Any, ...]:
    kinds = traced.kinds
    worst = min((KINDS.index(kind) for kind in kinds), default=len(KINDS))
    return worst, -traced.nbytes * traced.count, traced.location, prod(traced.result_shape)
