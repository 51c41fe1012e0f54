"""Comparisons of the number of a lane with one number for all: `i + 2 < 513`, a border, or `i < k`, a mask by position.

As 64-bit integers the indices of the lanes fill several registers; as integers of as few bits as lanes allow they
fill one, and the other side is cut off at the first and the last lane.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from xarr.compiler.loop_ir.scalars import COMPARISONS, INT64, MIRRORED, Value, constant_of

#: Greatest distance from an index that is looked for: sums of indices and it are never near the ends of int64.
_MAX_OFFSET: Final = 2**48


class LaneTest(NamedTuple):
    """`lane + offset` compared with `bound`."""

    op: str
    lane: Value
    offset: int
    bound: Value


def lane_test(value: Value, lanes: Collection[Value]) -> LaneTest | None:
    """The comparison of an index among `lanes` that a value is; its bound may be anything.  None for others."""
    if value.op not in COMPARISONS or value.operands[0].dtype != INT64:
        return None
    for op, (x, y) in ((value.op, value.operands), (MIRRORED[value.op], value.operands[::-1])):
        index, offset = _index_and_offset(x)
        if index in lanes:
            return LaneTest(op, index, offset, y)
    return None


def _index_and_offset(value: Value) -> tuple[Value, int]:
    """A value without the constants that are added to it, and their sum, where that is small."""
    offset, inner = 0, value
    while inner.op == "add" and any(each.op == "constant" for each in inner.operands):
        x, y = inner.operands
        x, y = (y, x) if x.op == "constant" else (x, y)
        offset, inner = offset + int(constant_of(y)), x
    return (inner, offset) if abs(offset) < _MAX_OFFSET else (value, 0)


def integer_bits(width: int) -> int:
    """Bits of integers that count so many lanes, and one less than none, and fill no more than a register."""
    return 8 if width < 127 else 16
