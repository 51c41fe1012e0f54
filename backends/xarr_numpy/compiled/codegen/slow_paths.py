"""LLVM functions for `rarely`: a scalar one computes what few elements need, another visits those.

And the text of functions for formulas, which code that is made without optimisation calls.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

_FORMULA: Final = re.compile(r"@(formula\.\w+)")
#: What stands in the head of a function for a formula, and in that of one which is called.
COPIED: Final = 'alwaysinline "formula"'
_CALLED: Final = 'noinline "formula"'


def scalar(name: str, result: str, inputs: Sequence[str], lines: Sequence[str], last: str) -> str:
    """The costly computation for one element, out of the way of the loop."""
    parameters = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(inputs))
    body = "\n".join(f"  {line}" for line in (*lines, f"ret {result} {last}"))
    return f"define internal {result} @{name}({parameters}) noinline cold nounwind {{\n{body}\n}}"


def for_one(name: str, slow: str, result: str, inputs: Sequence[str]) -> str:
    """`slow` if the condition holds, else the usual value."""
    parameters = "".join(f", {kind} %a{index}" for index, kind in enumerate(inputs))
    arguments = ", ".join(f"{kind} %a{index}" for index, kind in enumerate(inputs))
    return f"""\
define internal {result} @{name}(i1 %condition, {result} %usual{parameters}) alwaysinline nounwind {{
entry:
  br i1 %condition, label %slow, label %done
slow:
  %value = call {result} @{slow}({arguments})
  br label %done
done:
  %result = phi {result} [ %usual, %entry ], [ %value, %slow ]
  ret {result} %result
}}"""


def for_lanes(name: str, slow: str, result: str, inputs: Sequence[str], width: int) -> str:
    """`slow` for the elements of a vector where the condition holds, nothing if it holds nowhere."""
    vector, mask = f"<{width} x {result}>", f"<{width} x i1>"
    parameters = "".join(f", <{width} x {kind}> %a{index}" for index, kind in enumerate(inputs))
    arguments = ", ".join(f"{kind} %e{index}" for index, kind in enumerate(inputs))
    extracts = "\n".join(
        f"  %e{index} = extractelement <{width} x {kind}> %a{index}, i64 %lane"
        for index, kind in enumerate(inputs)
    )
    return f"""\
define internal {vector} @{name}({mask} %condition, {vector} %usual{parameters}) alwaysinline nounwind {{
entry:
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({mask} %condition)
  br i1 %any, label %visit, label %done
visit:
  %lane = phi i64 [ 0, %entry ], [ %following, %next ]
  %merged = phi {vector} [ %usual, %entry ], [ %updated, %next ]
  %wanted = extractelement {mask} %condition, i64 %lane
  br i1 %wanted, label %slow, label %next
slow:
{extracts}
  %value = call {result} @{slow}({arguments})
  %inserted = insertelement {vector} %merged, {result} %value, i64 %lane
  br label %next
next:
  %updated = phi {vector} [ %merged, %visit ], [ %inserted, %slow ]
  %following = add i64 %lane, 1
  %more = icmp ult i64 %following, {width}
  br i1 %more, label %visit, label %done
done:
  %result = phi {vector} [ %usual, %entry ], [ %updated, %next ]
  ret {vector} %result
}}"""


def count_lines(ir: str) -> int:
    """The lines of a module once formulas are copied to where they are called."""
    calls = Counter(_FORMULA.findall(ir))
    lines = ir.count("\n")
    for piece in ir.split("define internal ")[1:] if calls else ():
        head, _, body = piece.partition(COPIED)
        if body and "\n" not in head:
            lines += body[: body.index("\n}")].count("\n") * (calls[_FORMULA.findall(head)[0]] - 2)
    return lines


def call_formulas(ir: str) -> str:
    """A module in which formulas are not copied to where they are called."""
    return ir.replace(COPIED, _CALLED)
