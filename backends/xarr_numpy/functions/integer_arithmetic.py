"""Functions of integers: division as XLA defines it, powers, shifts and counts of bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr_numpy.functions.conversion import SIGNED, unsigned_bits

Array = np.ndarray[Any, Any]


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
    kind = SIGNED[x.dtype.itemsize]
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
    function.__name__: function
    for function in (
        integer_divide,
        integer_remainder,
        integer_power,
        shift_left,
        shift_right_logical,
        shift_right_arithmetic,
        popcnt,
        count_leading_zeros,
    )
}
