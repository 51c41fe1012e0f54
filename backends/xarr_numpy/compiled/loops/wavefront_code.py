"""What repeats a kernel, in machine code: step after step, or rows of it through several steps.

    void steps(ptr ab, ptr ba, i64 count)               all phases, `count` times, with alternating tables
    void ranges(ptr arguments, i64 begin, i64 end)          these ranges of rows, without what is next to boundaries
    void boundaries(ptr arguments, i64 begin, i64 end)      what is next to the boundaries between ranges

`arguments` holds as int64: two tables of buffers, rows, ranges, steps, radius, rows at a time.
"""

from __future__ import annotations

from string import Template
from typing import Final

from xarr.compiler.loop_ir.loops import Kernel
from xarr_numpy.compiled.codegen.typed_python import compile_functions

#: The numbers that functions get, by position; the first two are tables of buffers.
_ARGUMENTS: Final = ("ab", "ba", "rows", "ranges", "steps", "radius", "block")
FIELDS: Final = len(_ARGUMENTS)

_TEXT: Final = Template("""
@exported
def steps(ab: ptr, ba: ptr, count: i64):
    for t in range(count):
        table = ba if t & 1 else ab
$CALLS

# Rows from `low` to `high` through all steps, each of which leaves out some more at both ends.
def front(arguments: ptr, low: i64, high: i64, grow: i64, shrink: i64, block: i64):
    rows = high + arguments.RADIUS * arguments.STEPS - low
    first = low
    for b in range((rows + block - 1) / block):
        for t in range(arguments.STEPS):
            begin = low + t * grow
            end = high - t * shrink
            behind = first - t * arguments.RADIUS
            if begin < behind:
                begin = behind
            if end > behind + block:
                end = behind + block
            if begin < end:
                call(void, $PHASE, arguments.BA if t & 1 else arguments.AB, begin, end)
        first += block

@exported
def ranges(arguments: ptr, begin: i64, end: i64):
    count = arguments.RANGES
    for k in range(begin, end):
        low = k * arguments.ROWS / count
        high = (k + 1) * arguments.ROWS / count
        grow = 0 if k == 0 else arguments.RADIUS
        shrink = 0 if k + 1 == count else arguments.RADIUS
        front(arguments, low, high, grow, shrink, arguments.BLOCK)

@exported
def boundaries(arguments: ptr, begin: i64, end: i64):
    back = -arguments.RADIUS
    around = 4 * arguments.STEPS * arguments.RADIUS + 1
    for k in range(begin, end):
        boundary = (k + 1) * arguments.ROWS / arguments.RANGES
        front(arguments, boundary, boundary, back, back, around)
""")


def driver(kernel: Kernel, names: list[str]) -> str:
    """The functions for a kernel whose phases have these names, in LLVM IR."""
    fields = [
        f"{name.upper()}: {'i64' if number > 1 else 'ptr'} = {8 * number}\n"
        for number, name in enumerate(_ARGUMENTS)
    ]
    phases = zip(names, kernel.phases, strict=True)
    calls = "\n".join([f"        call(void, {name}, table, 0, {phase.extent})" for name, phase in phases])
    return compile_functions("".join(fields) + _TEXT.substitute(CALLS=calls, PHASE=names[-1]))
