"""Functions of floats: orders with signed zeros, rounding, and what NumPy has no call for."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, WITHOUT_MINUS_ZERO, float8_e8m0fnu, info
from xarr_numpy.functions.complex_functions import complex_divide
from xarr_numpy.functions.conversion import SIGNED, UNSIGNED, unsigned_bits

Array = np.ndarray[Any, Any]

#: Floats that NumPy computes with by way of float32; what takes several of its calls rounds to them once, at last.
NARROW: Final = EXTENDED_FLOAT | {np.dtype(np.float16)}


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


#: Elements that are looked at for zeros sooner than it is asked whether that matters.
_FEW: Final = 2**10


def _decides(x: Array) -> bool:
    """Whether an operand is one number that is not zero, so that no two zeros are compared."""
    return x.size == 1 and np.count_nonzero(x) == 1


def maximum(x: Array, y: Array) -> Array:
    """The larger float, 0.0 being larger than -0.0, as IEEE 754-2019 orders them."""
    return _choose_zeros(x, y, np.maximum(x, y), is_negative=False)


def minimum(x: Array, y: Array) -> Array:
    """The smaller float, -0.0 being smaller than 0.0, as IEEE 754-2019 orders them."""
    return _choose_zeros(x, y, np.minimum(x, y), is_negative=True)


def _choose_zeros(x: Array, y: Array, extreme: Array, is_negative: bool) -> Array:
    """`extreme`, NumPy's of x and y, with the zero of this sign where they are zeros of both signs."""
    if extreme.size <= _FEW and np.count_nonzero(extreme) == extreme.size:
        return extreme
    x, y = np.asarray(x), np.asarray(y)  # of which one may be a Python number
    if _decides(x) or _decides(y):
        return extreme
    zero = extreme == 0
    if not np.count_nonzero(zero):
        return extreme
    wrong = zero & (np.signbit(extreme) != is_negative)
    if not np.count_nonzero(wrong):
        return extreme
    wrong = wrong & (np.signbit(x) != np.signbit(y))
    return np.where(wrong, extreme.dtype.type(-0.0 if is_negative else 0.0), extreme)


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
    bits = np.asarray(x).view(SIGNED[x.dtype.itemsize])
    turned = bits >> bits.dtype.type(8 * bits.itemsize - 1)
    turned &= np.iinfo(bits.dtype).max
    turned ^= bits
    result: Array = turned
    return result


def comparison_order(x: Array) -> Array:
    """Integers that compare as the total order of floats has it; a NaN that has the bits of -0 comes last."""
    order = total_order(x)
    return np.where(np.isnan(x), np.int16(128), order) if x.dtype in WITHOUT_MINUS_ZERO else order


def reduce_precision(x: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round to nearest even in a format with these exponent and mantissa bits; overflow to infinity,
    underflow to zero (no subnormals), NaN kept.  Source: XLA's ReducePrecision."""
    if x.dtype.itemsize == 1:
        return reduce_precision(x.astype(np.float16), exponent_bits, mantissa_bits).astype(x.dtype)
    width = x.dtype.itemsize * 8
    mantissa = int(info(x.dtype).nmant)
    exponent = width - 1 - mantissa
    kind: Any = UNSIGNED[x.dtype.itemsize]
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


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        logistic,
        rsqrt,
        sign,
        maximum,
        minimum,
        clamp,
        next_after,
        power,
        round_away,
        comparison_order,
        reduce_precision,
    )
}
