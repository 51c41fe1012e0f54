"""Tables of native loops of which each element is written before the loop ends, and none is read before.

What such a table holds when the loop begins need not be there: the stack that a scan fills row by row.  The start of
a row is an expression of the counter, with the clamps of `dynamic_update_slice`; for a counter of which it is known
that it is in the table these fold away.
"""

from __future__ import annotations

from dataclasses import dataclass

from xarr.compiler.loop_ir.scalars import INT64, Value, constant_of
from xarr.compiler.while_loops.native_loops import NativeLoop, Write


@dataclass(frozen=True)
class Counted:
    """Rows that are written one in each step: which carried scalar counts the steps, and which is their number."""

    rows: int
    counter: int
    limit: int

    def holds(self, counter: int, limit: int) -> bool:
        """Whether the loop writes every row if its counter begins with this, and goes on to that limit."""
        return counter == 0 and limit >= self.rows


def fully_written_tables(loop: NativeLoop) -> dict[int, Counted]:
    """By carried value the tables of which no element is kept, if `Counted.holds`."""
    going = loop.going
    if loop.alive is not None or loop.done or going is None or going.op != "lt":
        return {}
    number_of = {argument: number for number, argument in enumerate(loop.arguments) if argument is not None}
    if any(value not in number_of for value in going.operands):
        return {}
    counter, limit = (number_of[value] for value in going.operands)
    if not loop.carried[limit].is_fixed or not _is_next(loop.following[counter], going.operands[0]):
        return {}
    read = loop.loaded_values()
    tables = {}
    for write in loop.writes:
        rows = _rows(loop, write, going.operands[0])
        if rows is not None and write.number not in read:
            tables[write.number] = Counted(rows, counter, limit)
    return tables


def _is_next(following: Value | None, counter: Value) -> bool:
    if following is None or following.op != "add" or following.operands[0] is not counter:
        return False
    step = following.operands[1]
    return step.op == "constant" and step.dtype == INT64 and constant_of(step) == 1


def _rows(loop: NativeLoop, write: Write, counter: Value) -> int | None:
    """The number of rows of a table, if each value of the counter that is less writes another of them."""
    width = loop.count if write.wide else 1
    rows = loop.carried[write.number].size // width
    start = _Folded(counter, rows).affine(write.start)
    return rows if start in ((width, 0), (-width, width * (rows - 1))) else None


class _Folded:
    """Integers and conditions of a counter that is at least 0 and less than `rows`."""

    def __init__(self, counter: Value, rows: int) -> None:
        self.counter = counter
        self.last = rows - 1

    def affine(self, value: Value) -> tuple[int, int] | None:
        """The factor of the counter and what is added to it; None if it is not of this form."""
        if value is self.counter:
            return 1, 0
        if value.dtype != INT64:
            return None
        if value.op == "constant":
            return 0, int(constant_of(value))
        if value.op == "select":
            chosen = self.truth(value.operands[0])
            return None if chosen is None else self.affine(value.operands[1 if chosen else 2])
        if value.op not in ("add", "sub", "mul"):
            return None
        left, right = (self.affine(operand) for operand in value.operands)
        return None if left is None or right is None else _combine(value.op, left, right)

    def truth(self, condition: Value) -> bool | None:
        """Whether a comparison holds for every counter, or for none; else None."""
        if condition.op not in ("lt", "gt"):
            return None
        left, right = (self.affine(operand) for operand in condition.operands)
        if left is None or right is None:
            return None
        factor, constant = left[0] - right[0], left[1] - right[1]
        ends = {_compare(condition.op, constant), _compare(condition.op, constant + factor * self.last)}
        return ends.pop() if len(ends) == 1 else None


def _compare(op: str, difference: int) -> bool:
    return difference < 0 if op == "lt" else difference > 0


def _combine(op: str, left: tuple[int, int], right: tuple[int, int]) -> tuple[int, int] | None:
    if op == "add":
        return left[0] + right[0], left[1] + right[1]
    if op == "sub":
        return left[0] - right[0], left[1] - right[1]
    if left[0] and right[0]:
        return None
    return left[0] * right[1] + left[1] * right[0], left[1] * right[1]
