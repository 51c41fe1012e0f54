"""Computations of scalars that run one after the other, in Python: operators on numbers instead of NumPy's functions.

    def loop(a0, s0):
        for a1 in s0:
            v1 = a0 * c0
            v2 = v1 + a1
            a0 = v2
        return (a0,)

A NumPy scalar's operator gives the bits of NumPy's function in a tenth of its time.  A computation of float64
alone runs on Python's floats, whose operators take a third of that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xarr.dtypes import BOOL, EXTENDED_FLOAT, FLOAT, INTEGER, float8_e8m0fnu
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType

DType = Any

_REAL: Final = (FLOAT - EXTENDED_FLOAT) | INTEGER
_SUMS: Final = (_REAL | EXTENDED_FLOAT) - {float8_e8m0fnu}
_BITS: Final = INTEGER | BOOL

#: Op -> for which element types of the first operand, and how it is written.
_TEMPLATES: Final[dict[type[Op], tuple[frozenset[DType], str]]] = {
    ops.Abs: (_REAL, "abs({0})"),
    ops.Add: (_SUMS, "{0} + {1}"),
    ops.And: (_BITS, "{0} & {1}"),
    ops.Multiply: (_SUMS, "{0} * {1}"),
    ops.Negate: (_SUMS, "-{0}"),
    ops.Or: (_BITS, "{0} | {1}"),
    ops.Select: (BOOL, "{1} if {0} else {2}"),
    ops.Subtract: (_SUMS, "{0} - {1}"),
    ops.Xor: (_BITS, "{0} ^ {1}"),
}
_COMPARISONS: Final = {"EQ": "==", "NE": "!=", "GE": ">=", "GT": ">", "LE": "<=", "LT": "<"}
#: Op -> by which relation the first of two is the result, and what decides between equal floats that are zero.
_EXTREMES: Final[dict[type[Op], tuple[str, str, str]]] = {
    ops.Maximum: (">", "<", "maximum"),
    ops.Minimum: ("<", ">", "minimum"),
}


def expression(node: Node, names: list[str]) -> str | None:
    """The value of a node by operators, or None where NumPy's function has to be called."""
    op, first = node.op, (node.operands[0] if node.operands else node)
    if not isinstance(first.type, TensorType):
        return None
    dtype = first.dtype
    if type(op) in _TEMPLATES:
        accepted, template = _TEMPLATES[type(op)]
        return template.format(*names) if dtype in accepted else None
    if isinstance(op, ops.Compare):
        holds = dtype in _REAL and not op.total_order
        return f"{names[0]} {_COMPARISONS[op.direction]} {names[1]}" if holds else None
    if type(op) in _EXTREMES and dtype in _REAL:
        return _extreme(op, dtype in FLOAT, *names)
    # Python's floats do not divide by 0.
    if isinstance(op, ops.Divide):
        if dtype in _REAL & FLOAT:
            return f"{names[0]} / {names[1]}"
        return f"quotient({names[0]}, {names[1]})" if dtype in INTEGER else None
    if isinstance(op, ops.Remainder) and dtype in INTEGER:
        return f"{names[0]} - {names[1]} * quotient({names[0]}, {names[1]}) if {names[1]} else {names[0]}"
    return None


def _extreme(op: Op, is_float: bool, x: str, y: str) -> str:
    before, after, function = _EXTREMES[type(op)]
    if not is_float:
        return f"{x} if {x} {before} {y} else {y}"
    # Zeros of either sign and NaN are left to the function.
    return f"{x} if {x} {before} {y} else {y} if {x} {after} {y} or {x} == {y} != 0 else {function}({x}, {y})[()]"


def quotient(x: Any, y: Any) -> Any:
    """x / y of integers of one type, towards zero; x / 0 has all bits set, the least one by -1 is itself."""
    kind = type(x)
    if y == 0:
        return ~kind(0)
    if kind(0) > y == ~kind(0):
        return -x
    found = x // y
    return found + kind(1) if found < 0 and found * y != x else found


#: What Python's floats do as NumPy's.
_NATIVE: Final = (
    *(ops.Abs, ops.Add, ops.Compare, ops.Constant, ops.BroadcastInDim, ops.Multiply, ops.Negate, ops.Reshape),
    *(ops.Select, ops.Subtract),
)


def runs_on_floats(graph: Graph) -> bool:
    """Whether a computation of scalars can be one of Python's floats and bools."""
    nodes = (*graph.parameters, *graph.nodes)
    of_float64 = all(node.dtype.name == "float64" or node.dtype in BOOL for node in nodes)
    known = all(isinstance(node.op, _NATIVE) for node in graph.nodes)
    return of_float64 and known and not any(node.dtype in BOOL for node in graph.parameters)


SCOPE: Final[dict[str, Callable[..., Any]]] = {"quotient": quotient}

#: Ops whose value on scalars is that of their operand.
RENAMES: Final = (ops.BroadcastInDim, ops.Reshape)
