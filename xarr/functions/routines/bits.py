"""Bits: how many are set, eight of them in a byte, and numbers as digits."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr import lax
from xarr.dtypes import BOOL, INTEGER, SIGNED
from xarr.errors import DTypeError, InputError, ValueRangeError
from xarr.functions._arguments import converted, truth
from xarr.functions._core import as_array
from xarr.functions._rows import integer_type
from xarr.lax.core import ArrayLike, integer
from xarr.shapes import normalize_axis

if TYPE_CHECKING:
    from xarr.array import Array

__all__ = ["base_repr", "binary_repr", "bitwise_count", "packbits", "unpackbits"]

_BYTE: Final = np.dtype(np.uint8)


def bitwise_count(x: ArrayLike, /) -> Array:
    """How many bits of |x| are set, as uint8.

    Raises DTypeError for other than integers and bools.  Source: NumPy, `bitwise_count`.
    """
    array = as_array(x)
    array = converted(array, integer_type("bitwise_count", array.dtype))
    if array.dtype in SIGNED:
        array = lax.bitcast_convert_type(lax.abs(array), np.dtype(f"u{array.dtype.itemsize}"))
    return converted(lax.population_count(array), _BYTE)


def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """The truths of eight elements along `axis`, or in the flattened array, as a byte; the last filled with zeros.

    bitorder: "big", the first is the highest bit, or "little".  Raises DTypeError for other than integers and bools,
    ValueRangeError, AxisError.  Source: NumPy, `packbits`.
    """
    array = as_array(a)
    if array.dtype not in INTEGER | BOOL:
        raise DTypeError(f"packbits: wanted integers or bools, got {array.dtype}; x != 0 has bools")
    bits, dim = _along(converted(truth(array), _BYTE), axis)
    shifts = _shifts("packbits", bitorder)
    if not bits.shape[dim]:
        return bits
    missing = -bits.shape[dim] % 8
    if missing:
        padding = [(0, missing if place == dim else 0, 0) for place in range(bits.ndim)]
        bits = lax.pad(bits, np.uint8(0), padding)
    parts = [
        lax.shift_left(part, lax.full_like(part, shift))
        for shift, part in (
            (shift, lax.slice_in_dim(bits, place, None, 8, dim)) for place, shift in enumerate(shifts)
        )
    ]
    found = parts[0]
    for part in parts[1:]:
        found = lax.bitwise_or(found, part)
    return found


def unpackbits(
    a: ArrayLike, /, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> Array:
    """The bits of bytes along `axis`, or of the flattened array, as uint8 of 0 and 1.

    count: how many there are to be, with zeros behind if there are fewer; a negative one leaves out so many.
    bitorder: as in `packbits`.  Raises DTypeError for other than uint8, ValueRangeError, AxisError.
    Source: NumPy, `unpackbits`.
    """
    array = as_array(a)
    if array.dtype != _BYTE:
        raise DTypeError(f"unpackbits: wanted uint8, got {array.dtype}; convert it with astype")
    array, dim = _along(array, axis)
    shifts = _shifts("unpackbits", bitorder)
    size = 8 * array.shape[dim]
    inner = (*array.shape[: dim + 1], 8, *array.shape[dim + 1 :])
    spread = lax.broadcast_in_dim(array, inner, [place for place in range(len(inner)) if place != dim + 1])
    places = lax.broadcast_in_dim(as_array(np.array(shifts, np.uint8)), inner, (dim + 1,))
    bits = lax.bitwise_and(lax.shift_right_logical(spread, places), lax.full_like(spread, 1))
    found = lax.reshape(bits, (*array.shape[:dim], size, *array.shape[dim + 1 :]))
    if count is None:
        return found
    wanted = integer("unpackbits", "count", count)
    if wanted < -size:
        raise ValueRangeError(f"unpackbits: cannot leave out {-wanted} of {size} bits along axis {dim}")
    more = (wanted if wanted >= 0 else size + wanted) - size
    return lax.pad(found, np.uint8(0), [(0, more if place == dim else 0, 0) for place in range(found.ndim)])


def _along(array: Array, axis: int | None) -> tuple[Array, int]:
    if axis is None or not array.shape:
        return lax.reshape(array, (array.size,)), 0 if axis is None else normalize_axis(axis, 1)
    return array, normalize_axis(integer("packbits", "axis", axis), array.ndim)


def _shifts(name: str, bitorder: str) -> list[int]:
    if bitorder not in ("big", "little"):
        raise ValueRangeError(f"{name}: wanted a bitorder of 'big' or 'little', got {bitorder!r}")
    return [*range(7, -1, -1)] if bitorder == "big" else [*range(8)]


def base_repr(number: Any, base: int = 2, padding: int = 0) -> str:
    """An integer as digits to a base of 2 to 36, after `padding` zeros.  Source: NumPy, `base_repr`."""
    digits = integer("base_repr", "base", base)
    if not 2 <= digits <= 36:
        raise ValueRangeError(f"base_repr: wanted a base of 2 to 36, got {digits}")
    return np.base_repr(int(number), digits, padding)


def binary_repr(num: Any, width: int | None = None) -> str:
    """An integer as bits: a negative one with a sign, or in two's complement of `width` bits.

    Raises ValueRangeError for too few of them, InputError for no integer.  Source: NumPy, `binary_repr`.
    """
    try:
        number = operator.index(num)
    except TypeError:
        raise InputError(f"binary_repr: wanted an int, got {num!r}") from None
    try:
        return np.binary_repr(number, width)
    except ValueError as error:
        raise ValueRangeError(f"binary_repr: {error}; give more of it") from error
