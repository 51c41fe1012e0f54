"""The notation of an element-wise op: with a symbol, as a call, and in `xarr.lax`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final

#: How a value is written into an array: the first operand is the value.
ASSIGNMENT: Final = "{1} = {0}"


@dataclass(frozen=True, slots=True)
class Operator:
    """`lax` is the function of `xarr.lax` that computes the same for every dtype; None if there is none.

    Division, remainder, power and right shift have a NumPy meaning that no single XLA op shares.
    `template` is how the op is written where that is no symbol and no call: `x[{}, :, {}]`, `{1} = {0}`.
    """

    name: str
    symbol: str | None = None
    lax: str | None = None
    is_comparison: bool = False
    keeps_dtype: bool = False
    template: str | None = None

    def apply(self, arguments: Sequence[str]) -> str:
        """`a - b` if the op has a symbol, `a - b - c` for more operands, else `name(a, b, …)`."""
        if self.template is not None:
            return self.template.format(*arguments)
        if self.symbol is not None and (len(arguments) == 2 or (self.chains and len(arguments) > 2)):
            return f" {self.symbol} ".join(arguments)
        return f"{self.name}({', '.join(arguments)})"

    def applied_explicitly(self, arguments: Sequence[str], same_dtype: bool) -> str:
        """The call in `xarr.lax`, which promotes nothing, or the implicit form where that would not do."""
        if self.lax is None or not same_dtype:
            return self.apply(arguments)
        if len(arguments) == self.arity:
            return f"lax.{self.lax}({', '.join(arguments)})"
        if self.chains and len(arguments) > 2:
            return reduce(lambda left, right: f"lax.{self.lax}({left}, {right})", arguments)
        return self.apply(arguments)

    @property
    def is_statement(self) -> bool:
        """Whether it assigns its result itself."""
        return self.template == ASSIGNMENT

    @property
    def arity(self) -> int:
        """The number of operands of the function of `xarr.lax`."""
        return 3 if self.name in ("where", "clamp") else 2

    @property
    def chains(self) -> bool:
        """Whether more than two operands are taken from left to right, two by two."""
        return self.keeps_dtype and self.arity == 2 and self.symbol != "**"


def _arithmetic(name: str, symbol: str | None, lax: str | None = None) -> Operator:
    return Operator(name, symbol, lax, keeps_dtype=True)


def _comparison(name: str, symbol: str | None, lax: str) -> Operator:
    return Operator(name, symbol, lax, is_comparison=True)


_OPERATORS = (
    _arithmetic("add", "+", "add"),
    _arithmetic("subtract", "-", "sub"),
    _arithmetic("multiply", "*", "mul"),
    Operator("divide", "/"),
    _arithmetic("floor_divide", "//"),
    _arithmetic("remainder", "%"),
    _arithmetic("power", "**"),
    _arithmetic("bitwise_and", "&", "bitwise_and"),
    _arithmetic("bitwise_or", "|", "bitwise_or"),
    _arithmetic("bitwise_xor", "^", "bitwise_xor"),
    _arithmetic("left_shift", "<<", "shift_left"),
    _arithmetic("right_shift", ">>"),
    _comparison("less", "<", "lt"),
    _comparison("less_equal", "<=", "le"),
    _comparison("equal", "==", "eq"),
    _comparison("not_equal", "!=", "ne"),
    _comparison("greater", ">", "gt"),
    _comparison("greater_equal", ">=", "ge"),
    _arithmetic("maximum", None, "max"),
    _arithmetic("minimum", None, "min"),
    Operator("where", None, "select"),
    _arithmetic("clamp", None, "clamp"),
    _arithmetic("div", None, "div"),
    _arithmetic("rem", None, "rem"),
    _arithmetic("pow", None, "pow"),
    _arithmetic("atan2", None, "atan2"),
    _arithmetic("nextafter", None, "nextafter"),
    _arithmetic("shift_right_logical", None, "shift_right_logical"),
    _arithmetic("shift_right_arithmetic", None, "shift_right_arithmetic"),
    Operator("complex", None, "complex"),
    *(_comparison(f"{name}_to", None, f"{name}_to") for name in ("eq", "ge", "gt", "le", "lt", "ne")),
)

_BY_NAME = {operator.name: operator for operator in _OPERATORS}
_BY_NAME |= {operator.lax: operator for operator in _OPERATORS if operator.lax is not None}
_BY_NAME |= {"true_divide": _BY_NAME["divide"], "mod": _BY_NAME["remainder"]}
BY_SYMBOL = {operator.symbol: operator for operator in _OPERATORS if operator.symbol is not None}


def operator_named(op: str) -> Operator:
    """The operator for a symbol, a NumPy name, an `xarr.lax` name, or `setitem:` or `getitem:` and a template.

    Any other name is written as a call.
    """
    name, _, template = op.partition(":")
    if template and name in ("setitem", "getitem"):
        return Operator(name, template=template)
    return BY_SYMBOL.get(op) or _BY_NAME.get(op) or Operator(op)


def term(name: str) -> str:
    """An operand's name as part of an expression: in parentheses unless it is a plain reference."""
    return name if _REFERENCE.fullmatch(name) else f"({name})"


_REFERENCE = re.compile(r"[\w.]+(\[[^\[\]]*\]|\([^()]*\))*")

_ELEMENT_TYPE = re.compile(
    r"pred|bool|(?:bf|bfloat)16|(?:f|float)(?:16|32|64)|(?:s|i|int|u|uint)(?:1|2|4|8|16|32|64)"
    r"|(?:c|complex)(?:64|128)|(?:f|float)[468]_?e\d+m\d+[a-z]*"
)


def element_bytes(dtype: str) -> int | None:
    """Bytes per element of a dtype named as XLA (`f32`, `pred`) or NumPy (`float32`) names it.

    None if the name is not known.  Types below 8 bits take a byte each, as in ml_dtypes.
    """
    if _ELEMENT_TYPE.fullmatch(dtype) is None:
        return None
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits[0]) // 8) if bits else 1
