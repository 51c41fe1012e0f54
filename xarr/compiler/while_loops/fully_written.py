"""Tables of native loops of which each element is written before the loop ends, and none is read before.

What such a table holds when the loop begins need not be there: the stack that a scan fills row by row.  The start of
a row is an expression of the counter, with the clamps of `dynamic_update_slice`; for a counter of which it is known
that it is in the table these fold away.
"""

from __future__ import annotations

from dataclasses import dataclass

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loop_bounds import linear, simplify
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
    number_of = loop.numbers()
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
    start = linear(simplify(write.start, Ranges({counter: (0, rows - 1)})), counter, rows)
    return rows if start in ((width, 0), (-width, width * (rows - 1))) else None
