"""Element-wise operations that are defined in terms of others; a backend may have something better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from xarr.dtypes import COMPLEX, FLOAT, SIGNED
from xarr.ir.op import INSTRUCTION, Op, operation
from xarr.ir.ops.elementwise import Unary
from xarr.ir.ops.formula import Term, exp, maximum, minimum, sqrt, where
from xarr.ir.types import Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

#: What narrower floats are computed in.
_WORKING: Final = np.dtype(np.float32)

__all__ = ["Clamp", "Logistic", "Rsqrt", "Sign"]


def _widen(x: Term) -> Term:
    return x.convert(_WORKING) if x.dtype in FLOAT and x.dtype.itemsize < _WORKING.itemsize else x


@operation
class Clamp(Op):
    """min(max(operand, low), high): operands are low, operand, high.

    * C1: all three have one type.
    * C2: the element type has an order (no complex).
    """

    name = "stablehlo.clamp"
    is_elementwise = True
    cost = INSTRUCTION

    def infer(self, *operands: Type) -> Type:
        low, operand, high = self.tensors(operands, 3)
        if not low is operand is high:
            self.fail("C1", f"wanted one type, got {low.short()}, {operand.short()}, {high.short()}")
        if operand.dtype in COMPLEX:
            self.fail_dtype("C2", f"complex numbers have no order, got {operand.short()}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)

    def decompose(self, *operands: Node) -> Node:
        low, operand, high = map(Term, operands)
        return minimum(maximum(operand, low), high).node


@operation
class Logistic(Unary):
    """1 / (1 + exp(-x))."""

    name = "stablehlo.logistic"
    has_formula = True

    def decompose(self, *operands: Node) -> Node:
        (operand,) = map(Term, operands)
        if operand.dtype in COMPLEX:
            return (1 / (1 + exp(-operand))).node
        # Below 0 as exp(x) / (1 + exp(x)), since exp(-x) might overflow.
        x = _widen(operand)
        small = exp(-abs(x))
        return (where(x < 0, small, 1) / (1 + small)).convert(operand.dtype).node


@operation
class Rsqrt(Unary):
    """1 / sqrt(x)."""

    name = "stablehlo.rsqrt"

    def decompose(self, *operands: Node) -> Node | None:
        (operand,) = map(Term, operands)
        if operand.dtype in COMPLEX:
            return None
        return (1 / sqrt(_widen(operand))).convert(operand.dtype).node


@operation
class Sign(Unary):
    """-1, -0.0, +0.0, 1 or NaN; x / |x| for complex x, 0 at 0."""

    name = "stablehlo.sign"
    accepts = SIGNED | FLOAT | COMPLEX

    def decompose(self, *operands: Node) -> Node | None:
        (operand,) = map(Term, operands)
        if operand.dtype in COMPLEX:
            return None
        x = _widen(operand)  # A float8 may have no zero to compare with.
        return where(x > 0, 1, where(x < 0, -1, x)).convert(operand.dtype).node
