"""Element-wise operations: result[i] depends on operand[i] alone, and all shapes are equal.

Accepted element types are those of the StableHLO specification; `chlo.*` operations are the ones JAX
emits for functions which StableHLO lacks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from xarr.dtypes import (
    ANY,
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    PREDICATE,
    SIGNED,
    UNSIGNED,
    complex_of,
    real_part_of,
)
from xarr.errors import ValueRangeError
from xarr.ir.op import Op, operation
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

Accepted = frozenset[np.dtype[Any]]


def _kinds(accepted: Accepted) -> str:
    parts = (("bool", BOOL), ("integer", INTEGER), ("float", FLOAT), ("complex", COMPLEX))
    names = [name for name, members in parts if members <= accepted]
    if SIGNED <= accepted and not accepted >= INTEGER:
        names.insert(0, "signed integer")
    return " or ".join(names) or ", ".join(sorted(map(str, accepted)))


class Elementwise(Op):
    """Base of the regular families.

    * C1: every operand has an element type that the operation accepts.
    * C2: all operands have the same element type.
    * C3: all operands have the same shape.
    """

    accepts: ClassVar[Accepted]
    arity: ClassVar[int]

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """The result's element type for operands of element type `dtype`."""
        return dtype

    def infer(self, *operands: Type) -> Type:
        first = operands[0]
        if len(operands) != self.arity or not isinstance(first, TensorType):
            self.tensors(operands, self.arity)
            raise AssertionError("unreachable: tensors() refuses tuples")
        for operand in operands:
            if operand is not first:
                self._refuse_mixture(self.tensors(operands, self.arity))
        if first.dtype not in self.accepts:
            self.fail_dtype("C1", f"wanted {_kinds(self.accepts)} elements, got {first.short()}")
        dtype = self.result_dtype(first.dtype)
        return first if dtype is first.dtype else first.with_dtype(dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)

    def _refuse_mixture(self, operands: tuple[TensorType, ...]) -> None:
        shown = ", ".join(operand.short() for operand in operands)
        if len({operand.dtype for operand in operands}) > 1:
            self.fail_dtype("C2", f"wanted operands of one element type, got {shown}; convert_element_type one")
        self.fail("C3", f"wanted operands of one shape, got {shown}; broadcast_in_dim makes them equal")


class Unary(Elementwise):
    """x -> f(x)."""

    arity = 1


class Binary(Elementwise):
    """(x, y) -> f(x, y)."""

    arity = 2


# --- unary ---------------------------------------------------------------------------------------


@operation
class Abs(Unary):
    """|x|; the magnitude, a real, for complex x.  The least integer of a signed type stays itself."""

    name = "stablehlo.abs"
    lax_name = "abs"
    accepts = SIGNED | FLOAT | COMPLEX

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class Cbrt(Unary):
    """Real cube root, of negative x too."""

    name = "stablehlo.cbrt"
    lax_name = "cbrt"
    accepts = FLOAT


@operation
class Ceil(Unary):
    """The least integer not below x."""

    name = "stablehlo.ceil"
    lax_name = "ceil"
    accepts = FLOAT


@operation
class CountLeadingZeros(Unary):
    """Number of zero bits above the highest set bit; the width of the type for 0."""

    name = "stablehlo.count_leading_zeros"
    lax_name = "clz"
    accepts = INTEGER


@operation
class Cosine(Unary):
    """cos x, x in radians."""

    name = "stablehlo.cosine"
    lax_name = "cos"
    accepts = FLOAT | COMPLEX


@operation
class Exponential(Unary):
    """e to the power x."""

    name = "stablehlo.exponential"
    lax_name = "exp"
    accepts = FLOAT | COMPLEX


@operation
class ExponentialMinusOne(Unary):
    """exp(x) - 1, accurate near 0."""

    name = "stablehlo.exponential_minus_one"
    lax_name = "expm1"
    accepts = FLOAT | COMPLEX


@operation
class Floor(Unary):
    """The greatest integer not above x."""

    name = "stablehlo.floor"
    lax_name = "floor"
    accepts = FLOAT


@operation
class Imag(Unary):
    """Imaginary part; 0 for a real x."""

    name = "stablehlo.imag"
    lax_name = "imag"
    accepts = FLOAT | COMPLEX

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class IsFinite(Unary):
    """Whether x is neither infinite nor NaN."""

    name = "stablehlo.is_finite"
    lax_name = "is_finite"
    accepts = FLOAT

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return PREDICATE


@operation
class Log(Unary):
    """Natural logarithm; -inf at 0, NaN below for reals."""

    name = "stablehlo.log"
    lax_name = "log"
    accepts = FLOAT | COMPLEX


@operation
class LogPlusOne(Unary):
    """log(1 + x), accurate near 0."""

    name = "stablehlo.log_plus_one"
    lax_name = "log1p"
    accepts = FLOAT | COMPLEX


@operation
class Logistic(Unary):
    """1 / (1 + exp(-x))."""

    name = "stablehlo.logistic"
    lax_name = "logistic"
    accepts = FLOAT | COMPLEX


@operation
class Negate(Unary):
    """-x; wraps for integers, unsigned included."""

    name = "stablehlo.negate"
    lax_name = "neg"
    accepts = NUMBER


@operation
class Not(Unary):
    """Logical not of bools, bitwise complement of integers."""

    name = "stablehlo.not"
    lax_name = "bitwise_not"
    accepts = BOOL | INTEGER


@operation
class Popcnt(Unary):
    """Number of set bits."""

    name = "stablehlo.popcnt"
    lax_name = "population_count"
    accepts = INTEGER


@operation
class Real(Unary):
    """Real part; x itself for a real x."""

    name = "stablehlo.real"
    lax_name = "real"
    accepts = FLOAT | COMPLEX

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class RoundNearestAfz(Unary):
    """The nearest integer, ties away from zero."""

    name = "stablehlo.round_nearest_afz"
    lax_name = "round"
    accepts = FLOAT


@operation
class RoundNearestEven(Unary):
    """The nearest integer, ties to even."""

    name = "stablehlo.round_nearest_even"
    lax_name = "round"
    accepts = FLOAT


@operation
class Rsqrt(Unary):
    """1 / sqrt(x)."""

    name = "stablehlo.rsqrt"
    lax_name = "rsqrt"
    accepts = FLOAT | COMPLEX


@operation
class Sign(Unary):
    """-1, -0.0, +0.0, 1 or NaN; x / |x| for complex x, 0 at 0."""

    name = "stablehlo.sign"
    lax_name = "sign"
    accepts = SIGNED | FLOAT | COMPLEX


@operation
class Sine(Unary):
    """sin x, x in radians."""

    name = "stablehlo.sine"
    lax_name = "sin"
    accepts = FLOAT | COMPLEX


@operation
class Sqrt(Unary):
    """Square root; NaN below 0 for reals, the principal root for complex x."""

    name = "stablehlo.sqrt"
    lax_name = "sqrt"
    accepts = FLOAT | COMPLEX


@operation
class Tan(Unary):
    """tan x, x in radians."""

    name = "stablehlo.tan"
    lax_name = "tan"
    accepts = FLOAT | COMPLEX


@operation
class Tanh(Unary):
    """Hyperbolic tangent."""

    name = "stablehlo.tanh"
    lax_name = "tanh"
    accepts = FLOAT | COMPLEX


# --- unary, CHLO -----------------------------------------------------------------------------------


@operation
class Acos(Unary):
    """Inverse cosine, in radians."""

    name = "chlo.acos"
    lax_name = "acos"
    accepts = FLOAT | COMPLEX


@operation
class Acosh(Unary):
    """Inverse hyperbolic cosine."""

    name = "chlo.acosh"
    lax_name = "acosh"
    accepts = FLOAT | COMPLEX


@operation
class Asin(Unary):
    """Inverse sine, in radians."""

    name = "chlo.asin"
    lax_name = "asin"
    accepts = FLOAT | COMPLEX


@operation
class Asinh(Unary):
    """Inverse hyperbolic sine."""

    name = "chlo.asinh"
    lax_name = "asinh"
    accepts = FLOAT | COMPLEX


@operation
class Atan(Unary):
    """Inverse tangent, in radians."""

    name = "chlo.atan"
    lax_name = "atan"
    accepts = FLOAT | COMPLEX


@operation
class Atanh(Unary):
    """Inverse hyperbolic tangent."""

    name = "chlo.atanh"
    lax_name = "atanh"
    accepts = FLOAT | COMPLEX


@operation
class Cosh(Unary):
    """Hyperbolic cosine."""

    name = "chlo.cosh"
    lax_name = "cosh"
    accepts = FLOAT | COMPLEX


@operation
class Sinh(Unary):
    """Hyperbolic sine."""

    name = "chlo.sinh"
    lax_name = "sinh"
    accepts = FLOAT | COMPLEX


# --- binary ----------------------------------------------------------------------------------------


@operation
class Add(Binary):
    """x + y; logical or of bools; integers wrap."""

    name = "stablehlo.add"
    lax_name = "add"
    accepts = ANY


@operation
class And(Binary):
    """Logical and of bools, bitwise and of integers."""

    name = "stablehlo.and"
    lax_name = "bitwise_and"
    accepts = BOOL | INTEGER


@operation
class Atan2(Binary):
    """The angle of the point (y, x) = (lhs, rhs), in radians, in [-pi, pi]."""

    name = "stablehlo.atan2"
    lax_name = "atan2"
    accepts = FLOAT


@operation
class Complex(Binary):
    """lhs + i rhs, from two float32 or two float64 arrays."""

    name = "stablehlo.complex"
    lax_name = "complex"
    accepts = frozenset({np.dtype(np.float32), np.dtype(np.float64)})

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return complex_of(dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
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


@operation
class Minimum(Binary):
    """The smaller; NaN if either is NaN; logical and of bools; complex numbers in lexicographic order."""

    name = "stablehlo.minimum"
    lax_name = "min"
    accepts = ANY


@operation
class Multiply(Binary):
    """x * y; logical and of bools; integers wrap."""

    name = "stablehlo.multiply"
    lax_name = "mul"
    accepts = ANY


@operation
class NextAfter(Binary):
    """The float next to lhs in the direction of rhs."""

    name = "chlo.next_after"
    lax_name = "nextafter"
    accepts = FLOAT


@operation
class Or(Binary):
    """Logical or of bools, bitwise or of integers."""

    name = "stablehlo.or"
    lax_name = "bitwise_or"
    accepts = BOOL | INTEGER


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
    lax_name = "shift_left"
    accepts = INTEGER


@operation
class ShiftRightArithmetic(Binary):
    """x >> y filling with the sign bit; all sign where y is negative or not less than the width."""

    name = "stablehlo.shift_right_arithmetic"
    lax_name = "shift_right_arithmetic"
    accepts = INTEGER


@operation
class ShiftRightLogical(Binary):
    """x >> y filling with zeros; 0 where y is negative or not less than the width."""

    name = "stablehlo.shift_right_logical"
    lax_name = "shift_right_logical"
    accepts = INTEGER


@operation
class Subtract(Binary):
    """x - y; integers wrap."""

    name = "stablehlo.subtract"
    lax_name = "sub"
    accepts = NUMBER


@operation
class Xor(Binary):
    """Logical exclusive or of bools, bitwise of integers."""

    name = "stablehlo.xor"
    lax_name = "bitwise_xor"
    accepts = BOOL | INTEGER


# --- the irregular ones ------------------------------------------------------------------------------

DIRECTIONS: Final = ("EQ", "NE", "GE", "GT", "LE", "LT")


@operation
class Compare(Binary):
    """x direction y, by IEEE 754 or, with `total_order`, by -NaN < -inf < … < -0 < +0 < … < inf < NaN.

    * C4: complex numbers compare by EQ and NE only.
    * C5: the total order is one of floats.
    """

    direction: str
    total_order: bool = False
    name = "stablehlo.compare"
    accepts = ANY

    def __post_init__(self) -> None:
        if self.direction not in DIRECTIONS:
            raise ValueRangeError(f"compare: wanted a direction of {', '.join(DIRECTIONS)}, got {self.direction!r}")

    @property
    def lax_name(self) -> str:  # type: ignore[override]
        return self.direction.lower() + ("_to" if self.total_order else "")

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        if dtype in COMPLEX and self.direction not in ("EQ", "NE"):
            self.fail_dtype("C4", f"complex numbers have no order, got {dtype}; compare abs, real or imag")
        if self.total_order and dtype not in FLOAT:
            self.fail_dtype("C5", f"the total order is one of floats, got {dtype}; use {self.direction.lower()}")
        return PREDICATE

    def assembly(self, node: Node, printer: Printer) -> str:
        compared = self._compare_type(node.operands[0].dtype)
        operands = f"{self.direction}, {printer.names(node.operands)}, {compared}"
        return f"{self.name} {operands} : {printer.signature(node)}"

    def _compare_type(self, dtype: np.dtype[Any]) -> str:
        if self.total_order:
            return "TOTALORDER"
        if dtype in SIGNED:
            return "SIGNED"
        return "UNSIGNED" if dtype in UNSIGNED | BOOL else "FLOAT"


@operation
class Select(Op):
    """on_true where pred holds, else on_false.

    * C1: pred has bool elements.
    * C2: on_true and on_false have one type.
    * C3: pred has their shape.
    """

    name = "stablehlo.select"
    lax_name = "select"

    def infer(self, *operands: Type) -> Type:
        pred, on_true, on_false = self.tensors(operands, 3)
        if pred.dtype != PREDICATE:
            self.fail_dtype("C1", f"wanted a bool predicate, got {pred.short()}; compare it with 0, e.g. ne(p, 0)")
        if on_true is not on_false:
            self.fail("C2", f"wanted two branches of one type, got {on_true.short()} and {on_false.short()}")
        if pred.shape != on_true.shape:
            self.fail("C3", f"wanted pred of shape {on_true.shape}, got {pred.short()}")
        return on_true

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"{self.name} {printer.names(node.operands)} : {node.operands[0].type}, {node.type}"


@operation
class Clamp(Op):
    """min(max(operand, low), high): operands are low, operand, high.

    * C1: all three have one type.
    * C2: the element type has an order (no complex).
    """

    name = "stablehlo.clamp"
    lax_name = "clamp"

    def infer(self, *operands: Type) -> Type:
        low, operand, high = self.tensors(operands, 3)
        if not low is operand is high:
            self.fail("C1", f"wanted one type, got {low.short()}, {operand.short()}, {high.short()}")
        if operand.dtype in COMPLEX:
            self.fail_dtype("C2", f"complex numbers have no order, got {operand.short()}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)


@operation
class Convert(Op):
    """Convert elements to `dtype`.

    Floats become integers by dropping the fraction, with NaN -> 0 and values out of range going to the
    nearest end of the type (XLA's rule on the CPU); anything but zero is True; complex numbers lose
    their imaginary part on the way to a real type; integers wrap.
    """

    dtype: np.dtype[Any]
    name = "stablehlo.convert"
    lax_name = "convert_element_type"

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        return operand.with_dtype(self.dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node)


@operation
class BitcastConvert(Op):
    """Read the same bits as `dtype`.

    A narrower type appends a dimension of the ratio of the widths, a wider one eats the last dimension;
    the first of the narrow elements holds the lowest bits.

    * C1: bool and complex take part in no change of width; complex and real never mix.
    * C2: for a wider type, the last dimension equals the ratio of the widths.
    """

    dtype: np.dtype[Any]
    name = "stablehlo.bitcast_convert"
    lax_name = "bitcast_convert_type"

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        old, new = operand.dtype.itemsize, self.dtype.itemsize
        rigid = BOOL | COMPLEX
        if old != new and (operand.dtype in rigid or self.dtype in rigid):
            self.fail_dtype("C1", f"no bitcast of another width from {operand.short()} to {self.dtype}")
        if (operand.dtype in COMPLEX) != (self.dtype in COMPLEX):
            self.fail_dtype("C1", f"no bitcast between complex and real, got {operand.short()} to {self.dtype}")
        if old == new:
            return operand.with_dtype(self.dtype)
        if old > new:
            return TensorType((*operand.shape, old // new), self.dtype)
        if not operand.shape or operand.shape[-1] != new // old:
            self.fail("C2", f"wanted a last dimension of {new // old} to form {self.dtype}, got {operand.short()}")
        return TensorType(operand.shape[:-1], self.dtype)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)


@operation
class ReducePrecision(Op):
    """Round to a float format with the given exponent and mantissa bits, and back.

    * C1: the operand has float elements.
    * C2: exponent_bits >= 1.
    * C3: mantissa_bits >= 0.
    """

    exponent_bits: int
    mantissa_bits: int
    name = "stablehlo.reduce_precision"
    lax_name = "reduce_precision"

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        if operand.dtype not in FLOAT:
            self.fail_dtype("C1", f"wanted float elements, got {operand.short()}")
        if self.exponent_bits < 1:
            self.fail("C2", f"wanted exponent_bits >= 1, got {self.exponent_bits}")
        if self.mantissa_bits < 0:
            self.fail("C3", f"wanted mantissa_bits >= 0, got {self.mantissa_bits}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node, f"format = e{self.exponent_bits}m{self.mantissa_bits}")
