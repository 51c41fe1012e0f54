"""What repeats a kernel, as LLVM IR: step after step, or rows of it through several steps.

    void steps(ptr ab, ptr ba, i64 count)               all phases, `count` times, with alternating tables
    void ranges(ptr arguments, i64 begin, i64 end)          these ranges of rows, without what is next to boundaries
    void boundaries(ptr arguments, i64 begin, i64 end)      what is next to the boundaries between ranges

`arguments` holds as int64: two tables of buffers, rows, ranges, steps, radius, rows at a time.
"""

from __future__ import annotations

from typing import Final

from xarr.compiler.loop_ir.loops import Kernel

#: The numbers that functions get, by position; the first two are tables of buffers.
_ARGUMENTS: Final = ("", "", "rows", "ranges", "steps", "radius", "block")
FIELDS: Final = len(_ARGUMENTS)
#: What the driver calls of LLVM's.
DECLARATIONS: Final = frozenset(f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("smax", "smin"))


def driver(kernel: Kernel, names: list[str]) -> str:
    """The functions for a kernel whose phases have these names."""
    return "\n".join([_steps(kernel, names), _front(names[-1]), _ranges(), _boundaries()])


def _steps(kernel: Kernel, names: list[str]) -> str:
    extents = [phase.extent for phase in kernel.phases]
    calls = "\n".join(
        f"  call void @{name}(ptr %table, i64 0, i64 {extent})"
        for name, extent in zip(names, extents, strict=True)
    )
    return f"""\
define void @steps(ptr %ab, ptr %ba, i64 %count) nounwind {{
entry:
  br label %head
head:
  %t = phi i64 [ 0, %entry ], [ %t1, %body ]
  %more = icmp slt i64 %t, %count
  br i1 %more, label %body, label %done
body:
  %odd = trunc i64 %t to i1
  %table = select i1 %odd, ptr %ba, ptr %ab
{calls}
  %t1 = add i64 %t, 1
  br label %head
done:
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
  %at4 = getelementptr i64, ptr %arguments, i64 4
  %steps = load i64, ptr %at4, align 8
  %at5 = getelementptr i64, ptr %arguments, i64 5
  %radius = load i64, ptr %at5, align 8
  %behind = mul i64 %radius, %steps
  %last = add i64 %high, %behind
  br label %blocks
blocks:
  %first = phi i64 [ %low, %entry ], [ %next, %moved ]
  %going = icmp slt i64 %first, %last
  br i1 %going, label %steps.next, label %done
steps.next:
  %t = phi i64 [ 0, %blocks ], [ %t1, %stepped ]
  %more = icmp slt i64 %t, %steps
  br i1 %more, label %step, label %moved
step:
  %left = mul i64 %t, %grow
  %least = add i64 %low, %left
  %right = mul i64 %t, %shrink
  %most = sub i64 %high, %right
  %lag = mul i64 %t, %radius
  %from = sub i64 %first, %lag
  %to = add i64 %from, %block
  %begin = call i64 @llvm.smax.i64(i64 %least, i64 %from)
  %end = call i64 @llvm.smin.i64(i64 %most, i64 %to)
  %some = icmp slt i64 %begin, %end
  br i1 %some, label %run, label %stepped
run:
  %odd = trunc i64 %t to i1
  %table = select i1 %odd, ptr %ba, ptr %ab
  call void @{name}(ptr %table, i64 %begin, i64 %end)
  br label %stepped
stepped:
  %t1 = add i64 %t, 1
  br label %steps.next
moved:
  %next = add i64 %first, %block
  br label %blocks
done:
  ret void
}}
"""


def _each(name: str, before: list[str], body: list[str]) -> str:
    """A function that reads the numbers given, runs `before`, and `body` for k = begin, begin + 1 … end - 1."""
    fields = [
        line
        for number, field in enumerate(_ARGUMENTS)
        if field
        for line in (
            f"  %at{number} = getelementptr i64, ptr %arguments, i64 {number}",
            f"  %{field} = load i64, ptr %at{number}, align 8",
        )
    ]
    return "\n".join(
        [
            f"define void @{name}(ptr %arguments, i64 %begin, i64 %end) nounwind {{",
            "entry:",
            *fields,
            *before,
            "  br label %head",
            "head:",
            "  %k = phi i64 [ %begin, %entry ], [ %k1, %body ]",
            "  %more = icmp slt i64 %k, %end",
            "  br i1 %more, label %body, label %done",
            "body:",
            "  %k1 = add i64 %k, 1",
            *body,
            "  br label %head",
            "done:",
            "  ret void",
            "}",
            "",
        ]
    )


def _ranges() -> str:
    return _each(
        "ranges",
        [],
        [
            "  %lows = mul i64 %k, %rows",
            "  %low = sdiv i64 %lows, %ranges",
            "  %highs = mul i64 %k1, %rows",
            "  %high = sdiv i64 %highs, %ranges",
            "  %is.first = icmp eq i64 %k, 0",
            "  %is.last = icmp eq i64 %k1, %ranges",
            "  %grow = select i1 %is.first, i64 0, i64 %radius",
            "  %shrink = select i1 %is.last, i64 0, i64 %radius",
            "  call void @front(ptr %arguments, i64 %low, i64 %high, i64 %grow, i64 %shrink, i64 %block)",
        ],
    )


def _boundaries() -> str:
    return _each(
        "boundaries",
        [
            "  %reach = mul i64 %steps, %radius",
            "  %twice = mul i64 %reach, 4",
            "  %around = add i64 %twice, 1",
            "  %back = sub i64 0, %radius",
        ],
        [
            "  %rows.before = mul i64 %k1, %rows",
            "  %boundary = sdiv i64 %rows.before, %ranges",
            "  call void @front(ptr %arguments, i64 %boundary, i64 %boundary, i64 %back, i64 %back, i64 %around)",
        ],
    )
