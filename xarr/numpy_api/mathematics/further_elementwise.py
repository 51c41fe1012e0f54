"""Element-wise functions of NumPy's that the Array API standard leaves out."""

from __future__ import annotations

import math
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, stretch, widen_narrow
from xarr.calls.concrete_values import look_at
from xarr.calls.factories import common_real_float
from xarr.calls.operands import DType, as_array, broadcast_operands, common_dtype, fresh, prepare_operands
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import COMPLEX, FLOAT, INTEGER, UNSIGNED, default_complex, default_float, info
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.mathematics import elementwise

__all__ = [
    "angle",
    "float_power",
    "gcd",
    "heaviside",
    "i0",
    "lcm",
    "logaddexp2",
    "nan_to_num",
    "real_if_close",
    "sinc",
]

_LOG2_E: Final = 1 / math.log(2)


def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind, of order 0; integers as the default float.

    Raises DTypeError for complex numbers.  Source: NumPy, `i0`; Cephes.
    """
    array = as_array(x)
    if array.dtype in COMPLEX:
        raise DTypeError(f"i0: wanted real numbers, got {array.dtype}; complex numbers have no such function")
    dtype = array.dtype if array.dtype in FLOAT else default_float()
    wide = lax.abs(widen_narrow(convert(array, dtype)))
    return convert(lax.mul(lax.exp(wide), lax.bessel_i0e(wide)), dtype)


def sinc(x: ArrayLike) -> Array:
    """sin(pi x) / (pi x), 1 for 0; integers as the default float.  Source: NumPy, `sinc`."""
    scaled = elementwise.multiply(math.pi, as_array(x))
    wide = widen_narrow(scaled)
    zero = lax.eq(wide, 0)
    one = lax.full_like(wide, 1)
    divisor = lax.select(zero, one, wide)
    return convert(lax.select(zero, one, lax.div(lax.sin(wide), divisor)), scaled.dtype)


@ufunc
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """0 for a negative x1, x2 for 0, 1 for a positive one, NaN for NaN.  Source: NumPy, `heaviside`."""
    dtype = common_real_float("heaviside", x1, x2)
    x, at_zero = prepare_operands("heaviside", x1, x2, dtype=dtype)
    zero, one = (lax.full_like(x, value) for value in (0, 1))
    result = lax.select(lax.eq(x, 0), at_zero, lax.select(lax.lt(x, 0), zero, one))
    return lax.select(lax.ne(x, x), x, result)


@ufunc
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.  Source: NumPy, `logaddexp2`."""
    dtype = common_real_float("logaddexp2", x1, x2)
    x, y = map(widen_narrow, prepare_operands("logaddexp2", x1, x2, dtype=dtype))
    top, gap = lax.max(x, y), lax.sub(x, y)
    small = lax.exp2(lax.neg(lax.abs(gap)))
    rest = lax.add(top, lax.mul(lax.log1p(small), _LOG2_E))
    # For two equal infinities the gap is NaN, and for a NaN operand so is everything.
    return convert(lax.select(lax.ne(gap, gap), lax.add(x, y), rest), dtype)


@ufunc
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2 in the default float or complex type, so that negative powers of integers are no integers.

    Source: NumPy, `float_power`.
    """
    dtype = default_complex() if common_dtype(x1, x2) in COMPLEX else default_float()
    x, y = prepare_operands("float_power", x1, x2, dtype=dtype)
    return lax.pow(x, y)


@ufunc
def gcd(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The greatest common divisor of |x1| and |x2|, 0 for two zeros.

    Raises DTypeError for other than integers.  Source: NumPy, `gcd`.
    """
    dtype = _integer("gcd", x1, x2)
    x, y = prepare_operands("gcd", x1, x2, dtype=dtype)
    return convert(_divisor(_magnitude(x), _magnitude(y)), dtype)


@ufunc
def lcm(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The least common multiple of |x1| and |x2|, 0 if either is 0; it wraps.  Errors as `gcd`.

    Source: NumPy, `lcm`.
    """
    dtype = _integer("lcm", x1, x2)
    x, y = map(_magnitude, prepare_operands("lcm", x1, x2, dtype=dtype))
    divisor = lax.max(_divisor(x, y), lax.full_like(x, 1))
    return convert(lax.mul(lax.div(x, divisor), y), dtype)


def _integer(name: str, x1: ArrayLike, x2: ArrayLike) -> DType:
    dtype = common_dtype(x1, x2)
    if dtype not in INTEGER:
        raise DTypeError(f"{name}: wanted integers, got what promotes to {dtype}; convert them with astype")
    return dtype


def _magnitude(x: Array) -> Array:
    """|x| as an unsigned integer, which holds that of the least one too."""
    if x.dtype in UNSIGNED:
        return x
    return lax.bitcast_convert_type(lax.abs(x), np.dtype(f"u{x.dtype.itemsize}"))


def _divisor(x: Array, y: Array) -> Array:
    """Euclid's algorithm, all elements at once until none has a rest."""

    def goes_on(pair: tuple[Array, Array]) -> Array:
        return lax.reduce_or(lax.ne(pair[1], 0), range(len(x.shape)))

    def step(pair: tuple[Array, Array]) -> tuple[Array, Array]:
        x, y = pair
        done = lax.eq(y, 0)
        rest = lax.rem(x, lax.max(y, lax.full_like(y, 1)))
        return lax.select(done, x, y), lax.select(done, y, rest)

    divisor: Array = lax.while_loop(goes_on, step, (x, y))[0]
    return divisor


# --- complex numbers and NaN ------------------------------------------------------------------------------


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The angle of a complex number, in radians or degrees: 0 or pi for real numbers.  Source: NumPy, `angle`."""
    array = as_array(z)
    parts = (lax.imag(array), lax.real(array)) if array.dtype in COMPLEX else (0, array)
    radians = elementwise.arctan2(*parts)
    return lax.mul(radians, 180 / math.pi) if flag("angle", "deg", deg) else radians


def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """The real parts if all imaginary parts are less than `tol` machine epsilons, or than `tol` itself up to 1.

    The values are looked at, for the type of the result depends on them: TracedValueError in a traced function.
    Source: NumPy, `real_if_close`.
    """
    array = as_array(a)
    if array.dtype not in COMPLEX:
        return fresh(array)
    limit = float(info(array.dtype).eps) * tol if tol > 1 else tol
    small = lax.lt(lax.abs(lax.imag(array)), float(limit))
    all_small = lax.reduce_and(small, range(len(array.shape)))
    is_real = look_at(
        "real_if_close", "the element type", all_small, "take xarr.real(x), or keep complex numbers"
    )
    return lax.real(array) if is_real else fresh(array)


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
            "nan_to_num: copy=False cannot be kept, as xarr's arrays are values that are never written to; write "
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
