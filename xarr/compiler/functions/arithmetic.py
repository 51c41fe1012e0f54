"""What XLA defines beyond the primitives: divisions by 0, long shifts, the order of zeros and NaNs."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from xarr.compiler.functions.floating_point import Formulas
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value, constant_of
from xarr.ir import ops


def unsigned_dtype(dtype: DType) -> DType:
    """The unsigned integers of the same width."""
    return np.dtype(f"u{dtype.itemsize}")


def bits_of(x: Value) -> Value:
    return x.bitcast(unsigned_dtype(x.dtype))


def _logical(x: Value) -> bool:
    return x.dtype == BOOL


def add(x: Value, y: Value) -> Value:
    return x | y if _logical(x) else x + y


def multiply(x: Value, y: Value) -> Value:
    return x & y if _logical(x) else x * y


def divide(x: Value, y: Value) -> Value:
    """Integers truncate; x / 0 has all bits set, the least integer divided by -1 stays itself."""
    if x.dtype.kind == "f":
        return x / y
    if _is_ordinary(y):
        return x / y
    zero = y.eq(0)
    if x.dtype.kind == "u":
        return zero.select(x.constant(np.iinfo(x.dtype).max), x / zero.select(1, y))
    negating = y.eq(-1)
    quotient = x / (zero | negating).select(1, y)
    return zero.select(-1, negating.select(-x, quotient))


def remainder(x: Value, y: Value) -> Value:
    """The remainder of that division; x for y = 0."""
    if x.dtype.kind == "f":
        return x.rem(y)
    if _is_ordinary(y):
        return x.rem(y)
    zero = y.eq(0)
    trivial = zero | y.eq(-1) if x.dtype.kind == "i" else zero
    return zero.select(x, x.rem(trivial.select(1, y)))


def _is_ordinary(divisor: Value) -> bool:
    """Whether an integer is a number known to be neither 0 nor -1: then LLVM multiplies instead of dividing."""
    return divisor.op == "constant" and int(constant_of(divisor)) not in (0, -1)


def _is_in_width(count: Value) -> bool:
    """Whether an integer is a number known to be less than its width in bits, and not negative."""
    return count.op == "constant" and 0 <= int(constant_of(count)) < count.dtype.itemsize * 8


def absolute(x: Value) -> Value:
    return x.abs() if x.dtype.kind == "f" else x.lt(0).select(-x, x)


def maximum(x: Value, y: Value) -> Value:
    """The larger; a NaN if either is one; 0.0 is larger than -0.0, as IEEE 754-2019 orders them."""
    if _logical(x):
        return x | y
    return x.maximum(y) if x.dtype.kind == "f" else x.gt(y).select(x, y)


def minimum(x: Value, y: Value) -> Value:
    """The smaller, likewise."""
    if _logical(x):
        return x & y
    return x.minimum(y) if x.dtype.kind == "f" else x.lt(y).select(x, y)


def negate(x: Value) -> Value:
    return -x


def is_finite(x: Value) -> Value:
    return x.abs().lt(math.inf)


def round_away(x: Value) -> Value:
    """The nearest integer, ties away from zero."""
    whole = x.trunc()
    half = (x - whole).abs().ge(0.5)
    return half.select(whole + x.constant(1.0).copysign(x), whole).copysign(x)


def next_after(x: Value, y: Value) -> Value:
    """The float next to x towards y; y itself where they are equal (C99)."""
    bits = bits_of(x)
    upwards = x.lt(y).eq(x.gt(0.0))
    moved = upwards.select(bits + 1, bits - 1).bitcast(x.dtype)
    smallest = bits.constant(1).bitcast(x.dtype).copysign(y)
    neighbour = x.eq(y).select(y, x.eq(0.0).select(smallest, moved))
    return x.isnan().select(x, y.isnan().select(y, neighbour))


def power(x: Value, y: Value) -> Value:
    """x**y of integers by repeated squaring, wrapping; for y < 0, 0 unless |x| is 1."""
    width = x.dtype.itemsize * 8 - (x.dtype.kind == "i")
    one = x.constant(1)
    result, square = one, x
    for bit in range(width):
        wanted = (y & (1 << bit)).ne(0)
        result = wanted.select(result * square, result)
        square = square * square
    if x.dtype.kind == "u":
        return result
    inverse = x.eq(1).select(one, x.eq(-1).select((y & 1).ne(0).select(-one, one), 0))
    return y.lt(0).select(inverse, result)


# --- shifts ------------------------------------------------------------------------------------------


def _in_width(x: Value, count: Value) -> tuple[Value, Value]:
    """Whether a count is within the width, and the count, or else 0."""
    inside = bits_of(count).lt(x.dtype.itemsize * 8)
    return inside, inside.select(count, 0)


def shift_left(x: Value, count: Value) -> Value:
    if _is_in_width(count):
        return x << count
    inside, safe = _in_width(x, count)
    return inside.select(x << safe, 0)


def shift_right_logical(x: Value, count: Value) -> Value:
    if _is_in_width(count):
        return (bits_of(x) >> bits_of(count)).bitcast(x.dtype)
    inside, safe = _in_width(x, count)
    return inside.select((bits_of(x) >> bits_of(safe)).bitcast(x.dtype), 0)


def shift_right_arithmetic(x: Value, count: Value) -> Value:
    signed = np.dtype(f"i{x.dtype.itemsize}")
    inside = bits_of(count).lt(x.dtype.itemsize * 8)
    safe = inside.select(count, x.dtype.itemsize * 8 - 1)
    return (x.bitcast(signed) >> safe.bitcast(signed)).bitcast(x.dtype)


# --- orders and formats ------------------------------------------------------------------------------


def total_order(x: Value) -> Value:
    """Signed integers in the order -NaN < -inf < … < -0 < +0 < … < inf < NaN."""
    bits = x.bitcast(np.dtype(f"i{x.dtype.itemsize}"))
    return bits.lt(0).select(bits ^ np.iinfo(bits.dtype).max, bits)


def reduce_precision(x: Value, exponent_bits: int, mantissa_bits: int) -> Value:
    """Round to nearest even in a format with these widths; overflow to infinity, underflow to zero.

    Source: XLA's ReducePrecision.
    """
    info: Any = np.finfo(x.dtype)
    bits = round_bits(bits_of(x), int(info.nmant), exponent_bits, mantissa_bits)
    return x.isnan().select(x, bits.bitcast(x.dtype))


def round_bits(bits: Value, mantissa: int, exponent_bits: int, mantissa_bits: int) -> Value:
    """The bits of a float with so many of a mantissa, which is not NaN, as `reduce_precision` rounds it."""
    width = bits.dtype.itemsize * 8
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        odd = (bits >> dropped) & 1
        kept = ((1 << width) - 1) ^ ((1 << dropped) - 1)
        bits = (bits + (odd + ((1 << (dropped - 1)) - 1))) & kept
    if exponent_bits < width - 1 - mantissa:
        bits = _narrow_exponent(bits, width, mantissa, exponent_bits)
    return bits


def _narrow_exponent(bits: Value, width: int, mantissa: int, wanted: int) -> Value:
    exponent = width - 1 - mantissa
    field = ((1 << exponent) - 1) << mantissa
    bias, new_bias = (1 << (exponent - 1)) - 1, (1 << (wanted - 1)) - 1
    sign_bit, exponent_bits = bits & (1 << (width - 1)), bits & field
    underflow = exponent_bits.le((bias - new_bias) << mantissa).select(sign_bit, bits)
    return exponent_bits.gt((bias + new_bias) << mantissa).select(sign_bit | field, underflow)


#: By the op, for each type of register that it accepts.
FORMULAS: Final[Formulas] = {
    ops.Abs: absolute,
    ops.Add: add,
    ops.And: lambda x, y: x & y,
    ops.Ceil: Value.ceil,
    ops.CountLeadingZeros: Value.count_leading_zeros,
    ops.Divide: divide,
    ops.Floor: Value.floor,
    ops.Imag: lambda x: x.constant(0.0),
    ops.IsFinite: is_finite,
    ops.Maximum: maximum,
    ops.Minimum: minimum,
    ops.Multiply: multiply,
    ops.Negate: negate,
    ops.NextAfter: next_after,
    ops.Not: lambda x: ~x,
    ops.Or: lambda x, y: x | y,
    ops.Popcnt: Value.popcount,
    ops.Real: lambda x: x,
    ops.Remainder: remainder,
    ops.RoundNearestAfz: round_away,
    ops.RoundNearestEven: Value.rint,
    ops.Select: Value.select,
    ops.ShiftLeft: shift_left,
    ops.ShiftRightArithmetic: shift_right_arithmetic,
    ops.ShiftRightLogical: shift_right_logical,
    ops.Sqrt: Value.sqrt,
    ops.Subtract: lambda x, y: x - y,
    ops.Xor: lambda x, y: x ^ y,
}
