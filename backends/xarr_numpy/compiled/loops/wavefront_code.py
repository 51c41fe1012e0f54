"""What repeats a kernel, as LLVM IR: step after step, or rows of it through several steps.

    void steps(ptr ab, ptr ba, i64 count)               all phases, `count` times, with alternating tables
    void ranges(ptr arguments, i64 begin, i64 end)          these ranges of rows, without what is next to boundaries
    void boundaries(ptr arguments, i64 begin, i64 end)      what is next to the boundaries between ranges

`arguments` holds as int64: two tables of buffers, rows, ranges, steps, radius, rows at a time.
"""

from __future__ import annotations

from typing import Final

from xarr.compiler.loop_ir.loops import Kernel
from xarr_numpy.compiled.codegen.shorthand import expand

#: The numbers that functions get, by position; the first two are tables of buffers.
_ARGUMENTS: Final = ("", "", "rows", "ranges", "steps", "radius", "block")
FIELDS: Final = len(_ARGUMENTS)
#: What the driver calls of LLVM's.
DECLARATIONS: Final = frozenset(f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smax", "smin"))


def driver(kernel: Kernel, names: list[str]) -> str:
    """The functions for a kernel whose phases have these names."""
    return expand("\n".join([_steps(kernel, names), _front(names[-1]), _ranges(), _boundaries()]))


def _steps(kernel: Kernel, names: list[str]) -> str:
    extents = [phase.extent for phase in kernel.phases]
    calls = "\n".join(
        f"  call void @{name}(ptr %table, i64 0, i64 {extent})"
        for name, extent in zip(names, extents, strict=True)
    )
    return f"""\
define void @steps(ptr %ab, ptr %ba, i64 %count) nounwind {{
entry:
  for %t from 0 below %count
  %odd = trunc i64 %t to i1
  %table = select i1 %odd, ptr %ba, ptr %ab
{calls}
  end %t
  ret void
}}
"""


def _front(name: str) -> str:
    """Rows from `low` to `high` through all steps, each of which leaves out some more at both ends."""
    return f"""\
define internal void @front(ptr %arguments, i64 %low, i64 %high, i64 %grow, i64 %shrink, i64 %block) nounwind {{
entry:
  %ab = load ptr, ptr %arguments, align 8
  %at1 = getelementptr i64, ptr %arguments, i64 1
  %ba = load ptr, ptr %at1, align 8
{_reads("steps", "radius")}
  %behind = mul i64 %radius, %steps
  %last = add i64 %high, %behind
  %rows = sub i64 %last, %low
  %most = add i64 %rows, %block
  %rounded = sub i64 %most, 1
  %blocks = sdiv i64 %rounded, %block
  for %b from 0 below %blocks, %first from %low then %next
  for %t from 0 below %steps
  %left = mul i64 %t, %grow
  %lowest = add i64 %low, %left
  %right = mul i64 %t, %shrink
  %highest = sub i64 %high, %right
  %lag = mul i64 %t, %radius
  %from = sub i64 %first, %lag
  %to = add i64 %from, %block
  %begin = call i64 @llvm.smax.i64(i64 %lowest, i64 %from)
  %end = call i64 @llvm.smin.i64(i64 %highest, i64 %to)
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %run, label %t.last
run:
  %odd = trunc i64 %t to i1
  %table = select i1 %odd, ptr %ba, ptr %ab
  call void @{name}(ptr %table, i64 %begin, i64 %end)
  end %t
  %next = add i64 %first, %block
  end %b
  ret void
}}
"""


def _reads(*names: str) -> str:
    """Lines that read these numbers."""
    return "\n".join(
        f"  %at{number} = getelementptr i64, ptr %arguments, i64 {number}\n"
        f"  %{name} = load i64, ptr %at{number}, align 8"
        for name, number in zip(names, map(_ARGUMENTS.index, names), strict=True)
    )


def _ranges() -> str:
    return f"""\
define void @ranges(ptr %arguments, i64 %begin, i64 %end) nounwind {{
entry:
{_reads("rows", "ranges", "radius", "block")}
  for %k from %begin below %end
  %k1 = add i64 %k, 1
  %lows = mul i64 %k, %rows
  %low = sdiv i64 %lows, %ranges
  %highs = mul i64 %k1, %rows
  %high = sdiv i64 %highs, %ranges
  %is.first = icmp eq i64 %k, 0
  %is.last = icmp eq i64 %k1, %ranges
  %grow = select i1 %is.first, i64 0, i64 %radius
  %shrink = select i1 %is.last, i64 0, i64 %radius
  call void @front(ptr %arguments, i64 %low, i64 %high, i64 %grow, i64 %shrink, i64 %block)
  end %k
  ret void
}}
"""


def _boundaries() -> str:
    return f"""\
define void @boundaries(ptr %arguments, i64 %begin, i64 %end) nounwind {{
entry:
{_reads("rows", "ranges", "steps", "radius")}
  %reach = mul i64 %steps, %radius
  %twice = mul i64 %reach, 4
  %around = add i64 %twice, 1
  %back = sub i64 0, %radius
  for %k from %begin below %end
  %k1 = add i64 %k, 1
  %rows.before = mul i64 %k1, %rows
  %boundary = sdiv i64 %rows.before, %ranges
  call void @front(ptr %arguments, i64 %boundary, i64 %boundary, i64 %back, i64 %back, i64 %around)
  end %k
  ret void
}}
"""
