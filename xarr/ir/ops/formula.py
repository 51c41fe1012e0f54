"""Arithmetic on nodes as it is written on paper, for ops that are defined in terms of others."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.binary import (
    Add,
    And,
    Divide,
    Maximum,
    Minimum,
    Multiply,
    Or,
    ShiftLeft,
    ShiftRightLogical,
    Subtract,
    Xor,
)
from xarr.ir.ops.creation import Constant
from xarr.ir.ops.elementwise import BitcastConvert, Compare, Convert, Select
from xarr.ir.ops.movement import BroadcastInDim
from xarr.ir.ops.unary import (
    Abs,
    Cosine,
    Exponential,
    Floor,
    IsFinite,
    Log,
    LogPlusOne,
    Negate,
    Not,
    Sine,
    Sqrt,
)

#: A term, or a number that takes the other operand's element type.
Operand: TypeAlias = Any


def _unary(op: Op) -> Callable[[Term], Term]:
    return lambda x: Term(Node(op, (x.node,)))


def _binary(op: Op) -> Callable[[Term, Operand], Term]:
    return lambda x, y: Term(Node(op, (x.node, x.constant(y).node)))


def _reflect(op: Op) -> Callable[[Term, Operand], Term]:
    return lambda x, y: Term(Node(op, (x.constant(y).node, x.node)))


@record(eq=False)
class Term:
    """A node with operators.  The other operand is a term of the same type, or a number."""

    node: Node

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.node.tensor_type.dtype

    def constant(self, value: Operand) -> Term:
        """`value` in this term's type: a number everywhere."""
        if isinstance(value, Term):
            return value
        return fill(value, self.node.tensor_type.shape, self.dtype)

    __add__, __radd__ = _binary(Add()), _reflect(Add())
    __sub__, __rsub__ = _binary(Subtract()), _reflect(Subtract())
    __mul__, __rmul__ = _binary(Multiply()), _reflect(Multiply())
    __truediv__, __rtruediv__ = _binary(Divide()), _reflect(Divide())
    __and__ = _binary(And())
    __or__ = _binary(Or())
    __xor__ = _binary(Xor())
    __lshift__ = _binary(ShiftLeft())
    __rshift__ = _binary(ShiftRightLogical())  # the logical shift
    __lt__ = _binary(Compare("LT"))
    __le__ = _binary(Compare("LE"))
    __gt__ = _binary(Compare("GT"))
    __ge__ = _binary(Compare("GE"))
    eq = _binary(Compare("EQ"))
    __neg__ = _unary(Negate())
    __invert__ = _unary(Not())
    __abs__ = _unary(Abs())

    def convert(self, dtype: np.dtype[Any]) -> Term:
        """Converted; the term itself if it has the element type."""
        return self if self.dtype == dtype else Term(Node(Convert(dtype), (self.node,)))

    def bitcast(self, dtype: np.dtype[Any]) -> Term:
        """Reinterpret the bits as another element type."""
        return Term(Node(BitcastConvert(dtype), (self.node,)))


def fill(value: complex, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Term:
    """The number everywhere in an array of this type."""
    scalar = Node(Constant.of(np.array(value, dtype)))
    return Term(Node(BroadcastInDim(shape, ()), (scalar,)) if shape else scalar)


def spread(scalar: Term, shape: tuple[int, ...]) -> Term:
    """A term of rank 0 everywhere in an array of this shape."""
    return Term(Node(BroadcastInDim(shape, ()), (scalar.node,))) if shape else scalar


cos = _unary(Cosine())
exp = _unary(Exponential())
floor = _unary(Floor())
is_finite = _unary(IsFinite())
log = _unary(Log())
log1p = _unary(LogPlusOne())
sin = _unary(Sine())
sqrt = _unary(Sqrt())
maximum = _binary(Maximum())
minimum = _binary(Minimum())


def where(condition: Term, x: Operand, y: Operand) -> Term:
    """x where the condition holds, else y; one of them is a term."""
    like = x if isinstance(x, Term) else y
    return Term(Node(Select(), (condition.node, like.constant(x).node, like.constant(y).node)))


def polynomial(x: Term, coefficients: Sequence[float]) -> Term:
    """c[0] x**n + c[1] x**(n-1) + … + c[n] by Horner's rule."""
    result = x.constant(coefficients[0])
    for coefficient in coefficients[1:]:
        result = result * x + coefficient
    return result


#: Cephes' log1p: numerator and denominator of (log(1 + x) - x + x²/2) / x³.
_LOG1P_P: Final = (
    *(4.5270000862445199635215e-5, 4.9854102823193375972212e-1, 6.5787325942061044846969e0),
    *(2.9911919328553073277375e1, 6.0949667980987787057556e1, 5.7112963590585538103336e1),
    2.0039553499201281259648e1,
)
_LOG1P_Q: Final = (
    *(1.0, 1.5062909083469192043167e1, 8.3047565967967209469434e1, 2.2176239823732856465394e2),
    *(3.0909872225312059774938e2, 2.1642788614495947685003e2, 6.0118660497603843919306e1),
)


def xla_log1p(x: Term) -> Term:
    """log(1 + x) as XLA's CPU computes it in float64, up to 120 ULP from the exact value near x = -0.41.

    What follows from random bits must err as XLA does to be equal to it.
    """
    if x.dtype.itemsize < 8:
        return log1p(x)
    square = x * x
    near = x * (square * (polynomial(x, _LOG1P_P) / polynomial(x, _LOG1P_Q))) + square * -0.5 + x
    return where(abs(x) < math.sqrt(2) - 1, near, log(x + 1.0))
