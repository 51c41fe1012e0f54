"""Division of integers and with a whole quotient: Python's, and that of C; common divisors and multiples."""

from __future__ import annotations

import math

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, widen_narrow
from xarr.calls.call_plans import real_number
from xarr.calls.operands import DType, common_dtype, prepare_operands
from xarr.calls.ufuncs import pair_ufunc, ufunc
from xarr.dtypes import FLOAT, INTEGER, UNSIGNED
from xarr.errors import DTypeError
from xarr.lax.core import ArrayLike
from xarr.numpy_api.mathematics.elementwise import copysign

__all__ = ["divmod", "floor_divide", "fmod", "gcd", "lcm", "mod", "remainder"]


@ufunc
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Python's modulo: the sign of the divisor; 0 for an integer zero divisor.  Source: NumPy remainder."""
    dtype = real_number("remainder", common_dtype(x1, x2))
    x, y = prepare_operands("remainder", x1, x2, dtype=dtype)
    return _divmod(x, y)[1]


mod = remainder


@ufunc
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Remainder with the sign of the dividend; 0 for an integer zero divisor.  Source: NumPy fmod."""
    dtype = real_number("fmod", common_dtype(x1, x2))
    x, y = prepare_operands("fmod", x1, x2, dtype=dtype)
    rest = lax.rem(x, y)
    return rest if dtype in FLOAT else lax.select(lax.eq(y, 0), lax.full_like(x, 0), rest)


@ufunc
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The floor of the quotient; 0 for an integer zero divisor.  Source: NumPy floor_divide."""
    dtype = real_number("floor_divide", common_dtype(x1, x2))
    x, y = prepare_operands("floor_divide", x1, x2, dtype=dtype)
    return _divmod(x, y)[0]


@pair_ufunc
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide, remainder).  Source: NumPy, `divmod`."""
    return floor_divide(x1, x2), remainder(x1, x2)


def _divmod(x: Array, y: Array) -> tuple[Array, Array]:
    if x.dtype not in FLOAT:
        return _integer_divmod(x, y)
    quotient, rest = _float_divmod(widen_narrow(x), widen_narrow(y))
    return convert(quotient, x.dtype), convert(rest, x.dtype)


def _integer_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    quotient, rest = lax.div(x, y), lax.rem(x, y)
    zero = lax.eq(y, 0)
    if x.dtype not in UNSIGNED:
        wrong = lax.bitwise_and(lax.ne(rest, 0), lax.ne(lax.lt(rest, 0), lax.lt(y, 0)))
        quotient = lax.sub(quotient, lax.convert_element_type(wrong, x.dtype))
        rest = lax.select(wrong, lax.add(rest, y), rest)
    nothing = lax.full_like(x, 0)
    return lax.select(zero, nothing, quotient), lax.select(zero, nothing, rest)


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """CPython's float divmod, as NumPy has it: exact remainder, quotient snapped to an integer."""
    rest = lax.rem(x, y)
    quotient = lax.div(lax.sub(x, rest), y)
    wrong = lax.bitwise_and(lax.ne(rest, 0), lax.ne(lax.lt(y, 0), lax.lt(rest, 0)))
    quotient = lax.select(wrong, lax.sub(quotient, 1), quotient)
    rest = lax.select(wrong, lax.add(rest, y), rest)
    rest = lax.select(lax.eq(rest, 0), copysign(lax.full_like(y, 0), y), rest)
    floored = lax.floor(quotient)
    snapped = lax.select(lax.gt(lax.sub(quotient, floored), 0.5), lax.add(floored, 1), floored)
    ratio = lax.div(x, y)
    whole = lax.select(lax.eq(quotient, 0), copysign(lax.full_like(ratio, 0), ratio), snapped)
    by_zero = lax.eq(y, 0)
    return lax.select(by_zero, ratio, whole), lax.select(by_zero, lax.full_like(x, math.nan), rest)


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
        raise DTypeError(
            f"{name}: wanted integers, got operands that promote to {dtype}; convert them with astype"
        )
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
