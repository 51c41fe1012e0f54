"""What NumPy has no single function for, each vectorised over whole arrays.

All of them take arrays or NumPy scalars, never write to an argument and keep the element type.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.backend import read_only
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    EXTENDED_FLOAT,
    FLOAT,
    INTEGER,
    SUB_BYTE,
    SUB_BYTE_INTEGER,
    complex_of,
    element_type,
    float8_e8m0fnu,
    info,
)
from xarr.ir.types import Ints

Array = np.ndarray[Any, Any]

_UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
_SIGNED: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}
#: Floats that NumPy computes with by way of float32; what takes several of its calls rounds to them once, at last.
NARROW: Final = EXTENDED_FLOAT | {np.dtype(np.float16)}


def finish(value: Any) -> Any:
    """A program's result as a compact array that nothing can write to; tuples of them."""
    if type(value) is np.ndarray and value.base is None:  # the common case: the array owns its memory
        value.flags.writeable = False
        return value
    if isinstance(value, tuple):
        return tuple([finish(element) for element in value])
    array = compact(value)
    if not array.flags.owndata:
        return read_only(array)
    array.flags.writeable = False
    return array


def seal(array: Array) -> Array:
    """A result whose memory is all its own, as an array that nothing can write to."""
    array.flags.writeable = False
    return array


def compact(value: Any) -> Any:
    """The result of a computation as an array that keeps no larger one alive; tuples of them."""
    if isinstance(value, tuple):
        return tuple([compact(element) for element in value])
    array = np.asarray(value)
    base = array.base
    wasteful = base is not None and getattr(base, "nbytes", 0) > 2 * array.nbytes
    return array.copy() if wasteful or (array.size > 1 and 0 in array.strides) else array


def unsigned_bits(x: Array) -> Array:
    """The bits of x as an unsigned integer of the same width."""
    return np.asarray(x).view(_UNSIGNED[x.dtype.itemsize])


# --- creation and movement -------------------------------------------------------------------------


def iota(shape: Ints, dimension: int, dtype: np.dtype[Any]) -> Array:
    """0, 1 … along `dimension`, with size 1 in every other one."""
    size = shape[dimension]
    if dtype in INTEGER and size - 1 <= np.iinfo(dtype).max:
        counts = np.arange(size, dtype=dtype)
    else:
        counts = convert(np.arange(size), dtype)
    return counts.reshape([-1 if axis == dimension else 1 for axis in range(len(shape))])


def pad(x: Array, value: Array, low: Ints, high: Ints, interior: Ints) -> Array:
    """XLA's pad: `interior` values between, `low` and `high` around; negative ones cut off."""
    shape = tuple(
        lo + size + max(size - 1, 0) * gap + hi
        for size, lo, hi, gap in zip(x.shape, low, high, interior, strict=True)
    )
    result = np.full(shape, value, x.dtype)
    target, source = [], []
    for size, lo, gap, total in zip(x.shape, low, interior, shape, strict=True):
        step = gap + 1
        first = max(0, -(lo // step)) if lo < 0 else 0
        last = min(size, -(-(total - lo) // step))
        source.append(slice(first, max(first, last)))
        target.append(
            slice(lo + first * step, max(0, lo + last * step), step) if last > first else slice(0, 0)
        )
    result[tuple(target)] = x[tuple(source)]
    return result


def bitcast(x: Array, dtype: np.dtype[Any]) -> Array:
    """Show the bits as another type; the last dimension appears or vanishes with a change of width."""
    x = np.ascontiguousarray(x).reshape(np.shape(x))
    old, new = element_type(x.dtype).bits, element_type(dtype).bits
    if old != new and min(old, new) < 8:
        return _bitcast_narrow(x, dtype, old, new)
    if x.dtype.itemsize == dtype.itemsize:
        return x.view(dtype)
    if x.dtype.itemsize > dtype.itemsize:
        return x.reshape((*x.shape, 1)).view(dtype)
    return x.view(dtype).reshape(x.shape[:-1])


def _bitcast_narrow(x: Array, dtype: np.dtype[Any], old: int, new: int) -> Array:
    """`bitcast` between widths in bits of which one is less than 8: the first element has the lowest bits."""
    if old > new:
        parts = x.reshape((*x.shape, 1)).view(np.uint8)[..., None] >> np.arange(
            0, min(old, 8), new, dtype=np.uint8
        )
        return (parts & np.uint8(2**new - 1)).reshape((*x.shape, old // new)).view(dtype)
    per_byte = 8 // old if new >= 8 else new // old
    shifts = np.arange(0, per_byte * old, old, dtype=np.uint8)
    codes = x.view(np.uint8).reshape((*x.shape[:-1], x.shape[-1] // per_byte, per_byte)) << shifts
    bits: Array = np.bitwise_or.reduce(codes, axis=-1)
    return bits.view(dtype).reshape(x.shape[:-1])


# --- conversion ------------------------------------------------------------------------------------


def convert(x: Array, dtype: np.dtype[Any]) -> Array:
    """XLA's ConvertElementType: floats to integers saturate, NaN becomes 0, complex loses its imaginary part."""
    x = np.asarray(x)
    if x.dtype in SUB_BYTE or dtype in SUB_BYTE:
        return _convert_narrow(x, dtype)
    if x.dtype in COMPLEX and dtype not in COMPLEX:
        if dtype in BOOL:
            truth: Array = np.not_equal(x, 0)
            return truth
        x = x.real
    if dtype in BOOL:
        truth = np.not_equal(x, 0)
        return truth
    if x.dtype in FLOAT and dtype in INTEGER:
        return _saturate(x, dtype)
    if x.dtype in EXTENDED_FLOAT and (dtype in COMPLEX or dtype in EXTENDED_FLOAT):
        return x.astype(np.float32).astype(dtype)
    if dtype in EXTENDED_FLOAT:
        return _odd_float32(x).astype(dtype)
    return x.astype(dtype)


def _convert_narrow(x: Array, dtype: np.dtype[Any]) -> Array:
    """`convert` from or to types of less than 8 bits, by way of the types that compute with them."""
    if x.dtype in SUB_BYTE:
        x = x.astype(SUB_BYTE[x.dtype])
    if dtype not in SUB_BYTE:
        return convert(x, dtype)
    x = x.real if x.dtype in COMPLEX else x
    if dtype not in SUB_BYTE_INTEGER:
        nearest: Array = _odd_float32(x).astype(dtype)
        return nearest
    if x.dtype in FLOAT:
        limits = info(dtype)
        x = np.clip(_saturate(x, SUB_BYTE[dtype]), limits.min, limits.max)
    narrow: Array = convert(x, SUB_BYTE[dtype]).astype(dtype)
    return narrow


def _odd_float32(x: Array) -> Array:
    """x as float32, an inexact one rounded to the neighbour whose last bit is set.

    ml_dtypes converts everything by way of float32, and two roundings to nearest are not one.  After this
    one they are.  Source: Boldo and Melquiond, Emulation of FMA and correctly rounded sums (2008).
    """
    if x.dtype in FLOAT | BOOL and x.dtype != np.float64:
        return x.astype(np.float32)
    if x.dtype in INTEGER and x.dtype.itemsize == 8:
        # float64 has no bits for the last 11; one bit tells whether any of the last 12 is set.
        last = x.dtype.type(0xFFF)
        large = (x > 2**53) if x.dtype.kind == "u" else (x > 2**53) | (x < -(2**53))
        x = np.where(large, (x & ~last) | (((x & last) != 0).astype(x.dtype) << x.dtype.type(11)), x)
    wide = x.astype(np.float64, copy=False)
    narrow = wide.astype(np.float32)
    rounded = narrow.astype(np.float64)
    # Up by one number, down or not at all; numbers of either sign are counted from 0.
    up, down = rounded < wide, rounded > wide
    step = (up.view(np.int8) - down.view(np.int8)) * (1 - 2 * np.less(wide, 0).view(np.int8))
    bits = narrow.view(np.int32)
    bits += step * (bits & 1 ^ 1)
    return narrow


def _saturate(x: Array, dtype: np.dtype[Any]) -> Array:
    if x.dtype in EXTENDED_FLOAT:
        x = x.astype(np.float32)
    limits = np.iinfo(dtype)
    if x.size and float(limits.min) < x.min() and x.max() < float(limits.max):
        return x.astype(dtype)
    # The largest float below 2**63 or 2**64 is well under the limit, so compare before converting.
    too_large, too_small = x >= float(limits.max), x <= float(limits.min)
    inside = np.where(too_large | too_small | np.isnan(x), x.dtype.type(0), x).astype(dtype)
    return np.where(too_large, dtype.type(limits.max), np.where(too_small, dtype.type(limits.min), inside))


def make_complex(real: Array, imaginary: Array) -> Array:
    """real + i imaginary, without the arithmetic that would spoil infinities and signed zeros."""
    shape = np.broadcast_shapes(np.shape(real), np.shape(imaginary))
    result = np.empty(shape, complex_of(real.dtype))
    result.real, result.imag = real, imaginary
    return result


def imag(x: Array) -> Array:
    """The imaginary part, 0 for reals."""
    return np.imag(x) if x.dtype in COMPLEX else np.zeros_like(x)


# --- floats ----------------------------------------------------------------------------------------


def logistic(x: Array) -> Array:
    """1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) below 0, where exp(-x) might overflow."""
    if x.dtype in NARROW:
        return logistic(x.astype(np.float32)).astype(x.dtype)
    one = x.dtype.type(1)
    if x.dtype in COMPLEX:
        ratio = complex_divide(one, np.add(one, np.exp(np.negative(x))))
        far = (x.real < -0.95 * np.log(np.finfo(x.dtype).max)) & np.isfinite(x)
        return np.where(far, np.exp(x), ratio) if far.any() else ratio
    small = np.exp(np.negative(np.abs(x)))
    result: Array = np.true_divide(np.where(x < 0, small, one), np.add(one, small))
    return result


def rsqrt(x: Array) -> Array:
    """1 / sqrt(x)."""
    if x.dtype in NARROW:
        return rsqrt(x.astype(np.float32)).astype(x.dtype)
    root: Array = np.reciprocal(np.sqrt(x))
    return root


def power(x: Array, y: Array) -> Array:
    """x ** y."""
    if np.size(y) == 1 and x.dtype in (np.float32, np.float64) and np.all(np.equal(y, 0.5)):
        # np.power takes the square root of all, but (-0)**0.5 is 0 and (-inf)**0.5 is inf.
        return np.where((x == 0) | (x == -np.inf), np.abs(x), np.sqrt(x))
    return np.power(x, y)


def sign(x: Array) -> Array:
    """-1, 0, 1 with the sign of zero kept."""
    if x.dtype in EXTENDED_FLOAT:
        return sign(x.astype(np.float32)).astype(x.dtype)
    result: Array = np.copysign(np.sign(x), x)
    return result


def _decides(x: Array) -> bool:
    """Whether an operand is one number that is not zero, so that no two zeros are compared."""
    return np.size(x) == 1 and bool(np.all(x != 0))


def maximum(x: Array, y: Array) -> Array:
    """The larger float, 0.0 being larger than -0.0, as IEEE 754-2019 orders them."""
    larger = np.maximum(x, y)
    if _decides(x) or _decides(y):
        return larger
    zero = larger == 0
    if not np.any(zero):
        return larger
    wrong = zero & (np.signbit(x) != np.signbit(y)) & np.signbit(larger)
    return np.where(wrong, x.dtype.type(0), larger)


def minimum(x: Array, y: Array) -> Array:
    """The smaller float, -0.0 being smaller than 0.0, as IEEE 754-2019 orders them."""
    smaller = np.minimum(x, y)
    if _decides(x) or _decides(y):
        return smaller
    zero = smaller == 0
    if not np.any(zero):
        return smaller
    wrong = zero & (np.signbit(x) != np.signbit(y)) & ~np.signbit(smaller)
    return np.where(wrong, -x.dtype.type(0), smaller)


def clamp(low: Array, x: Array, high: Array) -> Array:
    """min(max(x, low), high) of floats."""
    if x.dtype not in EXTENDED_FLOAT and _decides(low) and _decides(high):
        return np.clip(x, low, high)
    return minimum(maximum(x, low), high)


def next_after(x: Array, y: Array) -> Array:
    """The float next to x towards y; y itself, sign of zero included, where they are equal (C99)."""
    return np.where(x == y, y, np.nextafter(x, y))


def round_away(x: Array) -> Array:
    """The nearest integer, ties away from zero."""
    if x.dtype in EXTENDED_FLOAT:
        return round_away(x.astype(np.float32)).astype(x.dtype)
    whole = np.trunc(x)
    bump = (np.abs(np.subtract(x, whole)) >= x.dtype.type(0.5)).astype(x.dtype)
    return np.where(np.isfinite(x), np.copysign(np.add(np.abs(whole), bump), x), x)


def total_order(x: Array) -> Array:
    """Signed integers that are ordered as the floats are: -NaN < -inf < … < -0 < +0 < … < inf < NaN."""
    if x.dtype == float8_e8m0fnu:
        return unsigned_bits(x)
    bits = np.asarray(x).view(_SIGNED[x.dtype.itemsize])
    turned = bits >> bits.dtype.type(8 * bits.itemsize - 1)
    turned &= np.iinfo(bits.dtype).max
    turned ^= bits
    result: Array = turned
    return result


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to nearest even in a format with these exponent and mantissa bits; overflow to infinity,
    underflow to zero (no subnormals), NaN kept.  Source: XLA's ReducePrecision."""
    if x.dtype.itemsize == 1:
        return reduce_precision(x.astype(np.float16), exponent_bits, mantissa_bits).astype(x.dtype)
    width = x.dtype.itemsize * 8
    mantissa = int(info(x.dtype).nmant)
    exponent = width - 1 - mantissa
    kind: Any = _UNSIGNED[x.dtype.itemsize]
    bits = unsigned_bits(x)
    if mantissa_bits < mantissa:
        dropped = mantissa - mantissa_bits
        rounding = bits >> kind(dropped)
        rounding &= kind(1)
        rounding += kind((1 << (dropped - 1)) - 1)
        rounding += bits
        rounding &= ~kind((1 << dropped) - 1)
        bits = rounding
    if exponent_bits < exponent:
        bits = _narrow_exponent(bits, kind, width, mantissa, exponent, exponent_bits)
    rounded = bits.view(x.dtype)
    nan = np.isnan(x)
    return np.where(nan, x, rounded) if nan.any() else rounded


def _narrow_exponent(bits: Array, kind: Any, width: int, mantissa: int, exponent: int, wanted: int) -> Array:
    sign_bit = bits & kind(1 << (width - 1))
    field = kind(((1 << exponent) - 1) << mantissa)
    bias, new_bias = (1 << (exponent - 1)) - 1, (1 << (wanted - 1)) - 1
    exponents = bits & field
    overflow = exponents > kind((bias + new_bias) << mantissa)
    underflow = exponents <= kind((bias - new_bias) << mantissa)
    return np.where(overflow, sign_bit | field, np.where(underflow, sign_bit, bits))


# --- complex numbers -------------------------------------------------------------------------------


def complex_sign(x: Array) -> Array:
    """x / |x|, part by part; a zero stays itself."""
    # |x| may overflow, or be subnormal.
    scaled = x if _is_ordinary(x) else _multiply_parts(x, _moderating_factor(x))
    magnitude = np.abs(scaled)
    parts = (np.divide(part, magnitude) for part in (scaled.real, scaled.imag))
    return np.where(magnitude == 0, x, make_complex(*parts))


def _largest_part(x: Array) -> Array:
    """The magnitude of the larger part; NaN if a part is."""
    larger: Array = np.maximum(np.abs(x.real), np.abs(x.imag))
    return larger


def _is_ordinary(x: Array) -> bool:
    """Whether all numbers are finite and neither huge nor tiny, so that each has the moderating factor 1."""
    limits, larger = np.finfo(x.dtype), _largest_part(x)
    if not np.max(larger, initial=0) <= limits.max / 4:
        return False
    least = limits.tiny / limits.eps
    return bool(np.min(larger, initial=np.inf) >= least or not np.any((larger < least) & (larger != 0)))


def _moderating_factor(x: Array) -> Array:
    """A power of two for each number, by which a huge or tiny one becomes one of ordinary size; 1 for others."""
    limits, larger = np.finfo(x.dtype), _largest_part(x)
    down, up = _powers_of_two(limits)
    huge = (larger > limits.max / 4) & np.isfinite(larger)
    tiny = (larger < limits.tiny / limits.eps) & (larger != 0)
    factor: Array = np.where(huge, down, np.where(tiny, up, limits.dtype.type(1)))
    return factor


def _powers_of_two(limits: Any) -> tuple[Any, Any]:
    """Two inverse powers of two, that which makes huge numbers ordinary and that for tiny ones."""
    exponent = limits.maxexp * 5 // 8
    return limits.dtype.type(2.0**-exponent), limits.dtype.type(2.0**exponent)


def _multiply_parts(x: Array, factor: Array) -> Array:
    """Both parts times a real number, infinities and NaN of one part without effect on the other."""
    return make_complex(x.real * factor, x.imag * factor)


def complex_expm1(x: Array) -> Array:
    """exp(x) - 1.  NumPy's imaginary part is infinity times zero on the real axis, and parts overflow early."""
    result = np.expm1(x)
    if (large := (x.real > 30) & np.isfinite(x)).any():
        power = np.exp(x)
        shifted = make_complex(np.subtract(power.real, power.real.dtype.type(1)), power.imag)
        result = np.where(large, shifted, result)
    return make_complex(result.real, np.where(x.imag == 0, x.imag, result.imag))


def complex_log1p(x: Array) -> Array:
    """log(1 + x).  Near 0, where |1 + x| rounds to 1, the real part comes from |1 + x|² - 1."""
    a, b = x.real, x.imag
    two, half = a.dtype.type(2), a.dtype.type(0.5)
    result = np.log(make_complex(np.add(a, a.dtype.type(1)), b))
    near = (np.abs(a) < half) & (np.abs(b) < half)
    return make_complex(np.where(near, half * np.log1p(a * (two + a) + b * b), result.real), result.imag)


def complex_divide(x: Array, y: Array) -> Array:
    """x / y where infinities and zeros in either give the infinities and zeros of C99, Annex G.5.1."""
    quotient = _quotient(x, y)
    vanishing = np.isnan(quotient) & np.isinf(y) & np.isfinite(x)
    lost = (np.isnan(quotient.real) & np.isnan(quotient.imag)) | (y == 0) | vanishing
    return np.where(lost, _recover(x, y), quotient) if lost.any() else quotient


def _quotient(x: Array, y: Array) -> Array:
    """x / y, of extreme numbers by way of ordinary ones."""
    if _is_ordinary(x) and _is_ordinary(y):
        return np.true_divide(x, y)
    of_x, of_y = _moderating_factor(x), _moderating_factor(y)
    one = of_y.dtype.type(1)
    limits = np.finfo(x.dtype)
    down, up = _powers_of_two(limits)
    # Where both factors were up, a large dividend would overflow; where x alone is huge, its sums do.
    large = (_largest_part(x) > down * (limits.max / 4)) & (of_y == up)
    quarter = limits.dtype.type(0.25)
    of_x = np.where(large | ((of_x == down) & (of_y == one)), quarter, np.where(of_y == one, of_x, of_y))
    quotient = np.true_divide(_multiply_parts(x, of_x), _multiply_parts(y, of_y))
    # One of the two factors, or one is a quarter: the product is a power of two that there is.
    return _multiply_parts(quotient, of_y / of_x)


def complex_rsqrt(x: Array) -> Array:
    """1 / sqrt(x), with the signs of zero of an inverse: those of the root, conjugated."""
    root = np.sqrt(x)
    inverse = complex_divide(root.dtype.type(1), root)
    return make_complex(np.copysign(inverse.real, root.real), np.copysign(inverse.imag, -root.imag))


def _recover(x: Array, y: Array) -> Array:
    a, b, c, d = x.real, x.imag, y.real, y.imag
    one, zero = a.dtype.type(1), a.dtype.type(0)
    infinity, nan = a.dtype.type(np.inf), a.dtype.type(np.nan)
    by_zero, by_finite, of_finite = y == 0, np.isfinite(c) & np.isfinite(d), np.isfinite(a) & np.isfinite(b)
    infinite = (np.isinf(a) | np.isinf(b)) & by_finite
    vanishing = (np.isinf(c) | np.isinf(d)) & of_finite
    scale = np.where(infinite, infinity, np.where(vanishing, zero, nan))
    # A quarter, so that sums of large parts do not overflow before they meet the scale.
    quarter = a.dtype.type(0.25)
    a, b = (
        np.where(infinite, np.copysign(np.where(np.isinf(part), one, zero), part), part * quarter)
        for part in (a, b)
    )
    c, d = (
        np.where(vanishing, np.copysign(np.where(np.isinf(part), one, zero), part), part) for part in (c, d)
    )
    signed = np.copysign(infinity, y.real)
    return make_complex(
        np.where(by_zero, signed * x.real, scale * (a * c + b * d)),
        np.where(by_zero, signed * x.imag, scale * (b * c - a * d)),
    )


# --- integers --------------------------------------------------------------------------------------


def integer_divide(x: Array, y: Array) -> Array:
    """Division rounding towards zero; x / 0 has all bits set, MIN / -1 is MIN."""
    dtype = x.dtype
    safe = np.where(y == 0, dtype.type(1), y)
    if dtype.kind == "u":
        return np.where(y == 0, dtype.type(np.iinfo(dtype).max), np.floor_divide(x, safe))
    quotient = np.floor_divide(x, safe)
    inexact = (np.multiply(quotient, safe) != x) & ((x < 0) != (safe < 0))
    return np.where(
        y == 0, dtype.type(-1), np.where(y == -1, np.negative(x), quotient + inexact.astype(dtype))
    )


def integer_remainder(x: Array, y: Array) -> Array:
    """x - y * (x / y) with the division above; x itself for y = 0."""
    dtype = x.dtype
    trivial = (y == 0) | (y == -1) if dtype.kind == "i" else y == 0
    remainder = np.fmod(x, np.where(trivial, dtype.type(1), y))
    return np.where(y == 0, x, np.where(trivial, dtype.type(0), remainder))


def integer_power(x: Array, y: Array) -> Array:
    """x ** y, wrapping; for a negative y, 0 unless |x| is 1 (and x = 0 gives 0)."""
    if x.dtype.kind == "u":
        return np.power(x, y)
    one = x.dtype.type(1)
    power = np.power(x, np.where(y < 0, x.dtype.type(0), y))
    inverse = np.where(x == 1, one, np.where(x == -1, np.where(y & one == 1, -one, one), x.dtype.type(0)))
    return np.where(y < 0, inverse, power)


# NumPy shifts by counts that are negative or beyond the width as XLA does: no bits are left but copies of the sign.


def shift_left(x: Array, count: Array) -> Array:
    result: Array = np.left_shift(x, count)
    return result


def shift_right_logical(x: Array, count: Array) -> Array:
    result: Array = np.right_shift(unsigned_bits(x), unsigned_bits(count)).view(x.dtype)
    return result


def shift_right_arithmetic(x: Array, count: Array) -> Array:
    kind = _SIGNED[x.dtype.itemsize]
    result: Array = np.right_shift(np.asarray(x).view(kind), np.asarray(count).view(kind)).view(x.dtype)
    return result


def popcnt(x: Array) -> Array:
    """Number of set bits, in the type of x."""
    return np.bitwise_count(unsigned_bits(x)).astype(x.dtype)


def count_leading_zeros(x: Array) -> Array:
    """Number of zero bits above the highest set one, in the type of x."""
    bits = unsigned_bits(x)
    width = x.dtype.itemsize * 8
    step = 1
    while step < width:
        bits = bits | (bits >> bits.dtype.type(step))
        step *= 2
    result: Array = (width - np.bitwise_count(bits).astype(np.int64)).astype(x.dtype)
    return result


SCOPE: Final[dict[str, Any]] = {
    "np": np,
    **{
        function.__name__: function
        for function in (
            compact,
            finish,
            seal,
            iota,
            pad,
            bitcast,
            convert,
            make_complex,
            imag,
            logistic,
            rsqrt,
            sign,
            maximum,
            minimum,
            clamp,
            next_after,
            power,
            round_away,
            total_order,
            reduce_precision,
            complex_sign,
            complex_expm1,
            complex_log1p,
            complex_divide,
            complex_rsqrt,
            integer_divide,
            integer_remainder,
            integer_power,
            shift_left,
            shift_right_logical,
            shift_right_arithmetic,
            popcnt,
            count_leading_zeros,
        )
    },
}
