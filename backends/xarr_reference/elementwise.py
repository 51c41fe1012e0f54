"""Element-wise operations: result[i] = f(operand[i], …), one function of single elements for each op.

Arithmetic of floats is that of IEEE 754 in the element type.  Functions whose exact value is seldom a
float are computed in a wider type and rounded once.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf
from typing import Any, Final

import numpy as np

from xarr.dtypes import BOOL, COMPLEX, INTEGER, SUB_BYTE_INTEGER, complex_of, info, real_part_of
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.elementwise import numpy_functions
from xarr_reference.scalars import (
    DType,
    Scalar,
    apply_sign,
    bit_order,
    bits_of,
    exact,
    exponent,
    from_bits,
    is_bool,
    is_complex,
    is_integer,
    is_nan,
    on_grid,
    pair,
    parts,
    round_to,
    wide,
    width,
    wrap_integer,
)
from xarr_reference.values import Array, Rule, empty, indices


def pointwise(function: Any) -> Rule:
    """The rule result[i] = function(operand[i], …, **attributes of the op)."""

    def rule(node: Node, *operands: Array) -> Array:
        """result[i] = f(operand[i], …)"""
        attributes, result = node.op.attributes(), empty(node.type)
        for index in indices(result.shape):
            result[index] = function(*[operand[index] for operand in operands], **attributes)
        return result

    rule.__wrapped__ = function  # type: ignore[attr-defined]
    return rule


def in_wide_type(name: str) -> Rule:
    """The rule of an elementary function: NumPy's of this name, in the widest type, rounded once."""
    compute = getattr(np, name)

    def function(*operands: Scalar) -> Scalar:
        return round_to(compute(*map(wide, operands)), operands[0].dtype)

    return pointwise(function)


# --- arithmetic -------------------------------------------------------------------------------------


def negate(x: Scalar) -> Scalar:
    """-x; modulo 2**width for integers"""
    return wrap_integer(-int(x), x.dtype) if is_integer(x) else -x


def add(x: Scalar, y: Scalar) -> Scalar:
    """x + y; modulo 2**width for integers; x or y for bools"""
    if is_bool(x):
        return x | y
    return wrap_integer(int(x) + int(y), x.dtype) if is_integer(x) else x + y


def subtract(x: Scalar, y: Scalar) -> Scalar:
    """x - y; modulo 2**width for integers"""
    return wrap_integer(int(x) - int(y), x.dtype) if is_integer(x) else x - y


def multiply(x: Scalar, y: Scalar) -> Scalar:
    """x y; modulo 2**width for integers; x and y for bools; (a c - b d) + (a d + b c) i if complex"""
    if is_bool(x):
        return x & y
    if is_integer(x):
        return wrap_integer(int(x) * int(y), x.dtype)
    if is_complex(x):
        (a, b), (c, d) = parts(x), parts(y)
        return pair(a * c - b * d, a * d + b * c, x.dtype)
    return x * y


def divide(x: Scalar, y: Scalar) -> Scalar:
    """x / y; for integers rounded towards zero, all bits set for y = 0, modulo 2**width"""
    if is_integer(x):
        return wrap_integer(quotient(int(x), int(y)) if y != 0 else -1, x.dtype)
    return divide_complex(x, y) if is_complex(x) else x / y


def quotient(x: int, y: int) -> int:
    """x / y with the fraction dropped, for y other than 0"""
    magnitude = abs(x) // abs(y)
    return magnitude if (x < 0) == (y < 0) else -magnitude


def divide_complex(x: Scalar, y: Scalar) -> Scalar:
    """x / y, each part rounded once"""
    return pair(*quotient_of_complex(parts(x), parts(y)), x.dtype)


def quotient_of_complex(x: tuple[Any, Any], y: tuple[Any, Any]) -> tuple[Any, Any]:
    """(a + b i) / (c + d i) = ((a c + b d) + (b c - a d) i) / (c² + d²)

    Where y is 0, or one of them is infinite, as C99, Annex G.5.1: a / c + (b / c) i for y = 0, 0 for finite
    x and infinite y, and infinite for infinite x and finite y where the formula gives NaN + NaN i.
    """
    (a, b), (c, d) = x, y
    if c == d == 0:
        return np.copysign(inf, c) * a, np.copysign(inf, c) * b
    if np.isfinite(x).all() and np.isinf(y).any():
        c, d = box(c), box(d)
        return 0 * (a * c + b * d), 0 * (b * c - a * d)
    norm = c * c + d * d
    real, imaginary = (a * c + b * d) / norm, (b * c - a * d) / norm
    if np.isnan(real) and np.isnan(imaginary) and np.isinf(x).any() and np.isfinite(y).all():
        a, b = box(a), box(b)
        return inf * (a * c + b * d), inf * (b * c - a * d)
    return real, imaginary


def box(part: Any) -> Any:
    """±1 for an infinite part, ±0 for a finite one"""
    return np.copysign(float(np.isinf(part)), part)


def remainder(x: Scalar, y: Scalar) -> Scalar:
    """x - y q, q being x / y with the fraction dropped: it has the sign of x; x for integers and y = 0"""
    if is_integer(x):
        return wrap_integer(int(x) - int(y) * quotient(int(x), int(y)), x.dtype) if y != 0 else x
    return round_to(np.fmod(exact(x), exact(y)), x.dtype)


def power(x: Scalar, y: Scalar) -> Scalar:
    """x to the power y; modulo 2**width for integers"""
    if is_integer(x):
        return integer_power(int(x), int(y), x.dtype)
    if is_complex(x):
        return round_to(np.power(wide(x), wide(y)), x.dtype)
    if np.isinf(x) and np.abs(wide(y)) >= 2.0**62:  # glibc's powl gives inf for (-inf) ** -2**63
        return round_to(np.power(np.abs(wide(x)), wide(y)), x.dtype)
    # Never in float64: there NumPy takes the square root for y = 0.5, which is wrong for -0 and -infinity.
    return round_to(np.power(np.longdouble(x), np.longdouble(y)), x.dtype)


def integer_power(x: int, y: int, dtype: DType) -> Scalar:
    """x**y; for y < 0 that is 1 / x**-y with the fraction dropped, and 0 for x = 0"""
    if y >= 0:
        return wrap_integer(pow(x, y, 2 ** width(dtype)), dtype)
    return wrap_integer((1 if y % 2 == 0 else x) if abs(x) == 1 else 0, dtype)


def absolute(x: Scalar) -> Scalar:
    """|x|; modulo 2**width for integers; √(a² + b²) for complex numbers"""
    if is_complex(x):
        return round_to(np.hypot(*parts(x)), real_part_of(x.dtype))
    return wrap_integer(abs(int(x)), x.dtype) if is_integer(x) else abs(x)


def sign(x: Scalar) -> Scalar:
    """-1 for x < 0, 1 for x > 0; ±0 and NaN stay themselves; x / |x| for complex numbers, 0 for 0"""
    if is_complex(x):
        (a, b), magnitude = parts(x), np.hypot(*parts(x))
        return x.dtype.type(0) if x == 0 else pair(a / magnitude, b / magnitude, x.dtype)
    if is_nan(x) or x == 0:
        return x
    return x.dtype.type(-1 if x < 0 else 1)


def maximum(x: Scalar, y: Scalar) -> Scalar:
    """The larger, -0 being less than +0; NaN if either is NaN; (real, imaginary) compared as pairs"""
    if is_nan(x) or is_nan(y):
        return x if is_nan(x) else y
    return y if rank(x) < rank(y) else x


def minimum(x: Scalar, y: Scalar) -> Scalar:
    """The smaller, -0 being less than +0; NaN if either is NaN; (real, imaginary) compared as pairs"""
    if is_nan(x) or is_nan(y):
        return x if is_nan(x) else y
    return y if rank(y) < rank(x) else x


def rank(x: Scalar) -> Any:
    """Something that is ordered as maximum and minimum order elements"""
    if is_complex(x):
        return x.real, x.imag
    return int(x) if is_bool(x) or is_integer(x) else bit_order(x)


def clamp(low: Scalar, x: Scalar, high: Scalar) -> Scalar:
    """min(max(x, low), high)"""
    return minimum(maximum(x, low), high)


def next_after(x: Scalar, y: Scalar) -> Scalar:
    """The float next to x in the direction of y: its bits count one more away from 0, one less towards it"""
    if is_nan(x) or is_nan(y):
        return x + y
    if x == y:
        return y
    if x == 0:
        least = from_bits(1, x.dtype)
        return least if y > 0 else -least
    neighbour = from_bits(bits_of(x) + (1 if (x < y) == (not x < 0) else -1), x.dtype)
    # The formats without -0 have NaN instead.
    return x.dtype.type(0) if is_nan(neighbour) else neighbour


# --- rounding to integers ---------------------------------------------------------------------------


def floor(x: Scalar) -> Scalar:
    """The greatest integer not above x"""
    return round_to(np.floor(exact(x)), x.dtype)


def ceil(x: Scalar) -> Scalar:
    """The least integer not below x"""
    return round_to(np.ceil(exact(x)), x.dtype)


def round_nearest_even(x: Scalar) -> Scalar:
    """The nearest integer, the even one of two"""
    return round_to(np.rint(exact(x)), x.dtype)


def round_nearest_afz(x: Scalar) -> Scalar:
    """The nearest integer, of two the one farther from zero"""
    whole = np.trunc(exact(x))
    away = np.copysign(1.0, exact(x)) if abs(exact(x) - whole) >= 0.5 else 0.0
    return round_to(whole + away if away else whole, x.dtype)


# --- functions of real and complex numbers ------------------------------------------------------------


def sqrt(x: Scalar) -> Scalar:
    """√x, correctly rounded for floats; for complex x the root whose real part is not negative"""
    return round_to(np.sqrt(wide(x) if is_complex(x) else exact(x)), x.dtype)


def rsqrt(x: Scalar) -> Scalar:
    """1 / √x; for complex x its parts have the signs of those of √x, conjugated"""
    if is_complex(x):
        root = np.sqrt(wide(x))
        real, imaginary = quotient_of_complex((1.0, 0.0), (root.real, root.imag))
        return pair(np.copysign(real, root.real), np.copysign(imaginary, -root.imag), x.dtype)
    return round_to(1 / np.sqrt(wide(x)), x.dtype)


def exponential_minus_one(x: Scalar) -> Scalar:
    """(e to the power x) - 1; real on the real axis"""
    value = wide(x)
    if not is_complex(x):
        return round_to(np.expm1(value), x.dtype)
    # NumPy's expm1 overflows early.
    result = np.exp(value) - 1 if value.real > 30 and np.isfinite(value) else np.expm1(value)
    return pair(result.real, value.imag if value.imag == 0 else result.imag, x.dtype)


def log_plus_one(x: Scalar) -> Scalar:
    """log(1 + x); near 0 for complex x = a + b i that is ½ log(1 + (2 a + a² + b²)) + atan2(b, 1 + a) i"""
    if is_complex(x):
        a, b = parts(x)
        is_near = max(abs(a), abs(b)) < 0.5
        real = np.log1p(a * (2 + a) + b * b) / 2 if is_near else np.log(np.hypot(1 + a, b))
        return pair(real, np.arctan2(b, 1 + a), x.dtype)
    return round_to(np.log1p(wide(x)), x.dtype)


def logistic(x: Scalar) -> Scalar:
    """1 / (1 + e**-x), which is e**x far to the left of 0"""
    if is_complex(x):
        if x.real < -600 and np.isfinite(x):
            return round_to(np.exp(wide(x)), x.dtype)
        divisor = 1 + np.exp(-wide(x))
        return pair(*quotient_of_complex((1.0, 0.0), (divisor.real, divisor.imag)), x.dtype)
    return round_to(1 / (1 + np.exp(-wide(x))), x.dtype)


def real(x: Scalar) -> Scalar:
    """a of a + b i"""
    return x.real if is_complex(x) else x


def imag(x: Scalar) -> Scalar:
    """b of a + b i, +0 for real numbers"""
    return x.imag if is_complex(x) else x.dtype.type(0)


def make_complex(x: Scalar, y: Scalar) -> Scalar:
    """x + y i"""
    return pair(x, y, complex_of(x.dtype))


def is_finite(x: Scalar) -> Scalar:
    """Whether x is neither NaN nor infinite"""
    return np.isfinite(exact(x))


# --- bits -------------------------------------------------------------------------------------------


def not_(x: Scalar) -> Scalar:
    """Each bit inverted; not x for bools"""
    return ~x


def and_(x: Scalar, y: Scalar) -> Scalar:
    """Bits that are set in both; x and y for bools"""
    return x & y


def or_(x: Scalar, y: Scalar) -> Scalar:
    """Bits that are set in either; x or y for bools"""
    return x | y


def xor(x: Scalar, y: Scalar) -> Scalar:
    """Bits that are set in one only; x differs from y for bools"""
    return x ^ y


def popcnt(x: Scalar) -> Scalar:
    """Number of set bits"""
    return wrap_integer(bits_of(x).bit_count(), x.dtype)


def count_leading_zeros(x: Scalar) -> Scalar:
    """Number of zero bits above the highest set one"""
    return wrap_integer(width(x.dtype) - bits_of(x).bit_length(), x.dtype)


def shift_left(x: Scalar, y: Scalar) -> Scalar:
    """x 2**y modulo 2**width for 0 <= y < width, else 0"""
    return wrap_integer(int(x) << int(y) if 0 <= y < width(x.dtype) else 0, x.dtype)


def shift_right_logical(x: Scalar, y: Scalar) -> Scalar:
    """The bits of x, read as unsigned, over 2**y with the fraction dropped; 0 unless 0 <= y < width"""
    return wrap_integer(bits_of(x) >> int(y) if 0 <= y < width(x.dtype) else 0, x.dtype)


def shift_right_arithmetic(x: Scalar, y: Scalar) -> Scalar:
    """The bits of x, read as signed, over 2**y rounded down; all of them shifted out unless 0 <= y < width"""
    value = bits_of(x) - (bits_of(x) >> (width(x.dtype) - 1) << width(x.dtype))
    return wrap_integer(value >> (int(y) if 0 <= y < width(x.dtype) else width(x.dtype)), x.dtype)


# --- choosing, comparing, converting ------------------------------------------------------------------


def select(pred: Scalar, on_true: Scalar, on_false: Scalar) -> Scalar:
    """on_true if pred holds, else on_false"""
    return on_true if pred else on_false


def compare(x: Scalar, y: Scalar, direction: str, total_order: bool) -> Scalar:
    """x direction y; by the order of the bits if `total_order`"""
    a, b = (bit_order(x), bit_order(y)) if total_order else (x, y)
    relations = {
        "EQ": lambda: a == b,
        "NE": lambda: a != b,
        "GE": lambda: a >= b,
        "GT": lambda: a > b,
        "LE": lambda: a <= b,
        "LT": lambda: a < b,
    }
    return np.bool_(relations[direction]())


def convert(x: Scalar, dtype: DType) -> Scalar:
    """x as an element of type `dtype`

    to bool: whether x is other than 0; complex to real: the real part; to an integer type: modulo 2**width;
    to a float: the nearest.
    """
    if dtype in BOOL:
        return np.bool_(x != 0)
    if is_complex(x) and dtype not in COMPLEX:
        return convert(x.real, dtype)
    if dtype in INTEGER or dtype in SUB_BYTE_INTEGER:
        return wrap_integer(int(x), dtype) if is_bool(x) or is_integer(x) else saturate(exact(x), dtype)
    if is_bool(x) or is_integer(x):
        return round_to(int(x), dtype)
    return round_to(x if is_complex(x) else exact(x), dtype)


def saturate(x: np.float64, dtype: DType) -> Scalar:
    """x with the fraction dropped, or the nearest end of the integer type; 0 for NaN"""
    if np.isnan(x):
        return dtype.type(0)
    limits = info(dtype)
    if np.isinf(x):
        return dtype.type(limits.max if x > 0 else limits.min)
    return dtype.type(min(max(int(x), int(limits.min)), int(limits.max)))


def reduce_precision(x: Scalar, exponent_bits: int, mantissa_bits: int) -> Scalar:
    """x rounded to `mantissa_bits` binary digits after the first, ties to even, within narrower exponents

    What lies beyond the largest exponent becomes infinite (NaN in a type without infinity), what lies
    below the least one becomes 0: the narrower format has no subnormal numbers.  Without any digit all
    numbers are powers of two, of which those with an odd exponent count as even: their bits are.  A float8
    is rounded as the equal float16.  Source: XLA's ReducePrecision.
    """
    if x.dtype.itemsize == 1:
        return convert(reduce_precision(np.float16(x), exponent_bits, mantissa_bits), x.dtype)
    if not is_finite(x) or x == 0:
        return x
    limits, value = info(x.dtype), Fraction(float(x))
    digits = min(mantissa_bits, int(limits.nmant))
    magnitude: Fraction | float = abs(on_grid(value, digits, int(limits.minexp)))
    tie_of_normals = magnitude / abs(value) == Fraction(4, 3) and exponent(value) >= int(limits.minexp)
    if mantissa_bits == 0 and tie_of_normals and exponent(value) % 2:
        magnitude /= 2
    if exponent_bits < int(limits.nexp):
        largest = 2 ** (exponent_bits - 1) - 1
        if magnitude >= Fraction(2) ** (largest + 1):
            magnitude = inf
        elif magnitude < Fraction(2) ** (1 - largest):
            magnitude = 0.0
    return apply_sign(magnitude, value < 0, x.dtype)


def bitcast_convert(node: Node, operand: Array) -> Array:
    """The bits of result[i] are those of operand[i]

    narrower: those of result[i, 0], result[i, 1] … are those of operand[i] from the lowest up;
    wider: those of result[i] are those of operand[i, 0], operand[i, 1] … from the lowest up.
    """
    result = empty(node.type)
    old, new = width(operand.dtype), width(result.dtype)
    for index in indices(operand.shape if old >= new else result.shape):
        if old == new:
            result[index] = from_bits(bits_of(operand[index]), result.dtype)
        elif old > new:
            bits = bits_of(operand[index])
            for k in range(old // new):
                result[(*index, k)] = from_bits(bits >> (k * new) & (2**new - 1), result.dtype)
        else:
            bits = sum(bits_of(operand[(*index, k)]) << (k * old) for k in range(new // old))
            result[index] = from_bits(bits, result.dtype)
    return result


TABLE: Final[dict[type[Op], Rule]] = {
    **{op: in_wide_type(name) for op, name in numpy_functions().items()},
    ops.Abs: pointwise(absolute),
    ops.Add: pointwise(add),
    ops.And: pointwise(and_),
    ops.BitcastConvert: bitcast_convert,
    ops.Ceil: pointwise(ceil),
    ops.Clamp: pointwise(clamp),
    ops.Compare: pointwise(compare),
    ops.Complex: pointwise(make_complex),
    ops.Convert: pointwise(convert),
    ops.CountLeadingZeros: pointwise(count_leading_zeros),
    ops.Divide: pointwise(divide),
    ops.ExponentialMinusOne: pointwise(exponential_minus_one),
    ops.Floor: pointwise(floor),
    ops.Imag: pointwise(imag),
    ops.IsFinite: pointwise(is_finite),
    ops.LogPlusOne: pointwise(log_plus_one),
    ops.Logistic: pointwise(logistic),
    ops.Maximum: pointwise(maximum),
    ops.Minimum: pointwise(minimum),
    ops.Multiply: pointwise(multiply),
    ops.Negate: pointwise(negate),
    ops.NextAfter: pointwise(next_after),
    ops.Not: pointwise(not_),
    ops.Or: pointwise(or_),
    ops.Popcnt: pointwise(popcnt),
    ops.Power: pointwise(power),
    ops.Real: pointwise(real),
    ops.ReducePrecision: pointwise(reduce_precision),
    ops.Remainder: pointwise(remainder),
    ops.RoundNearestAfz: pointwise(round_nearest_afz),
    ops.RoundNearestEven: pointwise(round_nearest_even),
    ops.Rsqrt: pointwise(rsqrt),
    ops.Select: pointwise(select),
    ops.ShiftLeft: pointwise(shift_left),
    ops.ShiftRightArithmetic: pointwise(shift_right_arithmetic),
    ops.ShiftRightLogical: pointwise(shift_right_logical),
    ops.Sign: pointwise(sign),
    ops.Sqrt: pointwise(sqrt),
    ops.Subtract: pointwise(subtract),
    ops.Xor: pointwise(xor),
}
