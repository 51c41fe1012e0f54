"""Element-wise operations of two operands: (x, y) -> f(x, y)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import (
    ANY,
    BOOL,
    FLOAT,
    INTEGER,
    NUMBER,
    complex_of,
    element_type,
    float8_e8m0fnu,
    highest,
    lowest,
)
from xarr.ir.op import INSTRUCTION, operation
from xarr.ir.ops.elementwise import Binary

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

__all__ = [
    "Add",
    "And",
    "Atan2",
    "Complex",
    "Divide",
    "Maximum",
    "Minimum",
    "Multiply",
    "NextAfter",
    "Or",
    "Power",
    "Remainder",
    "ShiftLeft",
    "ShiftRightArithmetic",
    "ShiftRightLogical",
    "Subtract",
    "Xor",
]

#: What changes no number that it is added to, zeros of either sign included, by kind of type.
_ZEROS: Final = {"bool": False, "float": -0.0, "complex": complex(-0.0, -0.0)}


@operation
class Add(Binary):
    """x + y; logical or of bools; integers wrap."""

    name = "stablehlo.add"
    accepts = ANY
    numpy_name = "add"
    cost = INSTRUCTION
    associative = commutative = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        if dtype == float8_e8m0fnu:  # has no zero
            return None
        return dtype.type(_ZEROS.get(element_type(dtype).kind, 0))


@operation
class And(Binary):
    """Logical and of bools, bitwise and of integers."""

    name = "stablehlo.and"
    lax_name = "bitwise_and"
    accepts = BOOL | INTEGER
    numpy_name = "bitwise_and"
    cost = INSTRUCTION
    associative = commutative = idempotent = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(-1 if element_type(dtype).kind == "signed" else highest(dtype))


@operation
class Atan2(Binary):
    """The angle of the point (y, x), in radians, in [-pi, pi]."""

    name = "stablehlo.atan2"
    accepts = FLOAT
    numpy_name = "arctan2"


@operation
class Complex(Binary):
    """x + i y, from two float32 or two float64 arrays."""

    name = "stablehlo.complex"
    accepts = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return complex_of(dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        lhs, rhs = (operand.type for operand in node.operands)
        if lhs is not rhs:  # one has dynamic dimensions that the other has not
            return printer.functional(node)
        return f"{self.name} {printer.names(node.operands)} : {node.type}"


@operation
class Divide(Binary):
    """x / y.  Integers round towards zero; x / 0 is -1 (all bits set), MIN / -1 is MIN."""

    name = "stablehlo.divide"
    lax_name = "div"
    accepts = NUMBER


@operation
class Maximum(Binary):
    """The larger; NaN if either is NaN; logical or of bools; complex numbers in lexicographic order."""

    name = "stablehlo.maximum"
    lax_name = "max"
    accepts = ANY
    numpy_name = "maximum"
    cost = INSTRUCTION
    associative = commutative = idempotent = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(lowest(dtype))


@operation
class Minimum(Binary):
    """The smaller; NaN if either is NaN; logical and of bools; complex numbers in lexicographic order."""

    name = "stablehlo.minimum"
    lax_name = "min"
    accepts = ANY
    numpy_name = "minimum"
    cost = INSTRUCTION
    associative = commutative = idempotent = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(highest(dtype))


@operation
class Multiply(Binary):
    """x * y; logical and of bools; integers wrap."""

    name = "stablehlo.multiply"
    lax_name = "mul"
    accepts = ANY
    numpy_name = "multiply"
    cost = INSTRUCTION
    associative = commutative = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(1)


@operation
class NextAfter(Binary):
    """The float next to x in the direction of y."""

    name = "chlo.next_after"
    lax_name = "nextafter"
    accepts = FLOAT
    idempotent = True


@operation
class Or(Binary):
    """Logical or of bools, bitwise or of integers."""

    name = "stablehlo.or"
    lax_name = "bitwise_or"
    accepts = BOOL | INTEGER
    numpy_name = "bitwise_or"
    cost = INSTRUCTION
    associative = commutative = idempotent = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(0)


@operation
class Power(Binary):
    """x to the power y.  Integers wrap; a negative integer exponent gives 0, but 1 and -1 keep their size."""

    name = "stablehlo.power"
    lax_name = "pow"
    accepts = NUMBER


@operation
class Remainder(Binary):
    """Remainder of the division that rounds towards zero: the sign of the dividend.  x rem 0 is x for integers."""

    name = "stablehlo.remainder"
    lax_name = "rem"
    accepts = INTEGER | FLOAT


@operation
class ShiftLeft(Binary):
    """x << y; 0 where y is negative or not less than the width."""

    name = "stablehlo.shift_left"
    accepts = INTEGER
    cost = INSTRUCTION


@operation
class ShiftRightArithmetic(Binary):
    """x >> y filling with the sign bit; all sign where y is negative or not less than the width."""

    name = "stablehlo.shift_right_arithmetic"
    accepts = INTEGER
    cost = INSTRUCTION
    counts_bits = True


@operation
class ShiftRightLogical(Binary):
    """x >> y filling with zeros; 0 where y is negative or not less than the width."""

    name = "stablehlo.shift_right_logical"
    accepts = INTEGER
    cost = INSTRUCTION
    counts_bits = True


@operation
class Subtract(Binary):
    """x - y; integers wrap."""

    name = "stablehlo.subtract"
    lax_name = "sub"
    accepts = NUMBER
    numpy_name = "subtract"
    cost = INSTRUCTION


@operation
class Xor(Binary):
    """Logical exclusive or of bools, bitwise of integers."""

    name = "stablehlo.xor"
    lax_name = "bitwise_xor"
    accepts = BOOL | INTEGER
    numpy_name = "bitwise_xor"
    cost = INSTRUCTION
    associative = commutative = True

    @classmethod
    def identity(cls, dtype: np.dtype[Any]) -> Any:
        return dtype.type(0)
