"""The maximum and minimum of two scalars as LLVM functions, quick once the second operand is there.

A processor's instruction is a comparison that gives the second operand where it does not hold: where that is NaN, and
where both are zeros.  What is left to do depends on the first operand alone, and so is ready before: if it is NaN, it
is the result; if it is the zero that counts, +0 for a maximum, the sign of the result is that.
LLVM's own functions compare and exchange both operands, which takes twice as long.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

#: Type -> how many fill the smallest register, and the integer of their bits.
_REGISTERS: Final[Mapping[str, tuple[int, str]]] = {"double": (2, "i64"), "float": (4, "i32")}


def is_known(op: str, kind: str) -> bool:
    """Whether there is a function of an operation on scalars of a type."""
    return op in ("maximum", "minimum") and kind in _REGISTERS


def function(name: str, op: str, kind: str) -> str:
    """The text of a function of two operands, the second of which is there later."""
    count, integer = _REGISTERS[kind]
    vector, bits, mask = f"<{count} x {kind}>", f"<{count} x {integer}>", f"<{count} x i1>"
    least = 2 ** (int(integer[1:]) - 1)
    if op == "maximum":
        direction, join, zero = "ogt", "and", "zeroinitializer"
        wanted, unwanted = f"splat ({integer} {least - 1})", f"splat ({integer} -1)"
    else:
        direction, join, zero = "olt", "or", f"splat ({integer} {-least})"
        wanted, unwanted = zero, "zeroinitializer"
    return f"""\
define internal {kind} @{name}({kind} %a, {kind} %b) alwaysinline nounwind {{
  %wins = fcmp {direction} {kind} %a, %b
  %better = select i1 %wins, {kind} %a, {kind} %b
  %first = insertelement {vector} zeroinitializer, {kind} %a, i64 0
  %second = insertelement {vector} zeroinitializer, {kind} %better, i64 0
  %early = bitcast {vector} %first to {bits}
  %chosen = bitcast {vector} %second to {bits}
  %counts = icmp eq {bits} %early, {zero}
  %sign = select {mask} %counts, {bits} {wanted}, {bits} {unwanted}
  %signed = {join} {bits} %chosen, %sign
  %nan = fcmp uno {vector} %first, zeroinitializer
  %joined = select {mask} %nan, {bits} %early, {bits} %signed
  %result = bitcast {bits} %joined to {vector}
  %one = extractelement {vector} %result, i64 0
  ret {kind} %one
}}"""
