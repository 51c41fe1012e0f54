"""Parts of floating-point numbers: fraction and exponent, fraction and whole, the distance to the next."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, stretch
from xarr.calls.call_plans import to_real_float
from xarr.calls.operands import DType, as_array, broadcast_operands, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.ufuncs import pair_ufunc, ufunc
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, info
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.mathematics import elementwise, rounding

__all__ = ["frexp", "ldexp", "modf", "nan_to_num", "spacing"]

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)
#: Of the types that are taken apart: bits of the fraction, the exponent that stands for 2**0, and an exponent by
#: which all normal numbers below 1 can be scaled without being rounded.
_FORMATS: Final[dict[DType, tuple[int, int, int]]] = {
    np.dtype(np.float32): (23, 127, 100),
    np.dtype(np.float64): (52, 1023, 1000),
}


def _real(name: str, x: ArrayLike) -> Array:
    array = as_array(x)
    return convert(array, to_real_float(name, array.dtype))


def _wide(x: Array) -> Array:
    return x if x.dtype in _FORMATS else convert(x, np.dtype(np.float32))


@pair_ufunc
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """(fraction, int32 exponent) with x = fraction * 2**exponent and 1/2 <= |fraction| < 1.

    The exponent is 0 for 0, infinities and NaN, which are their own fraction.  Raises DTypeError for complex numbers.
    Source: NumPy, `frexp`; C, `frexp`.
    """
    array = _real("frexp", x)
    fraction, exponent = _split(_wide(array))
    return convert(fraction, array.dtype), convert(exponent, _INT32)


def _split(x: Array) -> tuple[Array, Array]:
    """Fractions and int64 exponents."""
    bits, bias, _ = _FORMATS[x.dtype]
    tiny = lax.lt(lax.abs(x), float(np.finfo(x.dtype).tiny))
    normal = lax.select(tiny, lax.mul(x, 2.0 ** (bits + 1)), x)
    unsigned = np.dtype(f"u{x.dtype.itemsize}")
    pattern = lax.bitcast_convert_type(normal, unsigned)
    mask = (2 * bias + 1) << bits
    field = convert(lax.shift_right_logical(lax.bitwise_and(pattern, mask), bits), _INT64)
    rest = lax.bitwise_or(
        lax.bitwise_and(pattern, (1 << 8 * unsigned.itemsize) - 1 - mask), (bias - 1) << bits
    )
    exponent = lax.sub(field, bias - 1)
    exponent = lax.select(tiny, lax.sub(exponent, bits + 1), exponent)
    itself = lax.bitwise_or(lax.eq(x, 0), lax.bitwise_not(lax.is_finite(x)))
    fraction = lax.select(itself, x, lax.bitcast_convert_type(rest, x.dtype))
    return fraction, lax.select(itself, lax.full_like(exponent, 0), exponent)


@ufunc
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 * 2**x2, rounded once, for integers x2.

    The type is that of x1, a float for integers.  Raises DTypeError for other than integers that int64 holds as x2,
    and for complex x1.  Source: NumPy, `ldexp`; C, `ldexp`.
    """
    powers = as_array(x2)
    if powers.dtype not in INTEGER | BOOL or powers.dtype == np.uint64:
        raise DTypeError(
            f"ldexp: wanted integers that int64 holds for x2, got {powers.dtype}; convert with astype"
        )
    array, powers = broadcast_operands("ldexp", _real("ldexp", x1), convert(powers, _INT64))
    wide = _wide(array)
    fraction, exponent = _split(wide)
    step = _FORMATS[wide.dtype][2]
    # Far powers are cut before the sum, which might wrap, and after it, where results are 0 or infinite anyway.
    exponent = _clamp(lax.add(_clamp(powers, 8 * step), exponent), 2 * step)
    first = _clamp(exponent, step)
    product = lax.mul(fraction, _power_of_two(first, wide.dtype))
    product = lax.mul(product, _power_of_two(lax.sub(exponent, first), wide.dtype))
    return convert(product, array.dtype)


def _clamp(x: Array, limit: int) -> Array:
    return lax.min(lax.max(x, lax.full_like(x, -limit)), lax.full_like(x, limit))


def _power_of_two(exponent: Array, dtype: DType) -> Array:
    """2**exponent of a normal number, from its bits."""
    bits, bias, _ = _FORMATS[dtype]
    field = convert(lax.add(exponent, bias), np.dtype(f"u{dtype.itemsize}"))
    return lax.bitcast_convert_type(lax.shift_left(field, lax.full_like(field, bits)), dtype)


@pair_ufunc
def modf(x: ArrayLike, /) -> tuple[Array, Array]:
    """(fraction, whole), both with the sign of x, whose sum is x; 0 and infinity for infinities.

    Raises DTypeError for complex numbers.  Source: NumPy, `modf`; C, `modf`.
    """
    array = _real("modf", x)
    whole = rounding.trunc(array)
    rest = lax.select(lax.eq(lax.abs(array), math.inf), lax.full_like(array, 0), lax.sub(array, whole))
    fraction = elementwise.copysign(rest, array)
    return lax.select(lax.ne(array, array), array, fraction), whole


@ufunc
def spacing(x: ArrayLike, /) -> Array:
    """The distance to the next number away from 0, with the sign of x; NaN for infinities.

    Of float16, as in NumPy, to the next larger number.  Raises DTypeError for complex numbers.
    Source: NumPy, `spacing`.
    """
    array = _real("spacing", x)
    upwards = array.dtype == np.float16
    start = array if upwards else lax.abs(array)
    distance = lax.sub(lax.nextafter(start, lax.full_like(start, math.inf)), start)
    if upwards:
        return lax.select(lax.is_finite(array), distance, lax.full_like(array, math.nan))
    return lax.select(lax.lt(array, 0), lax.neg(distance), distance)


@remembers_calls
def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """x with `nan` for NaN, and `posinf` and `neginf`, by default the largest and the least number, for infinities.

    Of complex numbers each part by itself.  Raises InputError for copy=False.  Source: NumPy, `nan_to_num`.
    """
    if not flag("nan_to_num", "copy", copy):
        raise InputError(
            "nan_to_num: copy=False is not possible, as xarr's arrays are values that are never written to; write "
            "x = xarr.nan_to_num(x)"
        )
    array = as_array(x)
    if array.dtype in COMPLEX:
        real, imag = (nan_to_num(part(array), True, nan, posinf, neginf) for part in (lax.real, lax.imag))
        return lax.complex(real, imag)
    if array.dtype not in FLOAT:
        return fresh(array)
    limits = info(array.dtype)
    most = float(limits.max) if posinf is None else posinf
    least = float(limits.min) if neginf is None else neginf
    result = lax.select(lax.ne(array, array), _filling(nan, array), array)
    result = lax.select(lax.eq(array, math.inf), _filling(most, array), result)
    return lax.select(lax.eq(array, -math.inf), _filling(least, array), result)


def _filling(value: ArrayLike, like: Array) -> Array:
    replacement: Any = convert(as_array(value), like.dtype)
    if not replacement.shape:
        return stretch(replacement, like.shape)
    spread, _ = broadcast_operands("nan_to_num", replacement, like)
    if spread.shape != like.shape:
        raise ShapeError(f"nan_to_num: wanted values that fit shape {like.shape}, got {replacement.shape}")
    return spread
