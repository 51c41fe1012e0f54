"""Bits: how many are set, eight of them in a byte."""

from __future__ import annotations

from functools import cache
from typing import Any, Final, Literal, cast

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, truth
from xarr.calls.call_plans import integer_type
from xarr.calls.operands import as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import BOOL, INTEGER, SIGNED
from xarr.errors import DTypeError, ValueRangeError
from xarr.lax.core import ArrayLike, integer
from xarr.shapes import normalize_axis

__all__ = ["bitwise_count", "packbits", "unpackbits"]

_BYTE: Final = np.dtype(np.uint8)
_WORD: Final = np.dtype(np.uint64)
#: By bit order the factor that moves the bits of a word, one in each byte, next to each other in the highest byte.
_FACTORS: Final = {"big": 0x8040201008040201, "little": 0x0102040810204080}


@ufunc
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the set bits of |x|, as uint8.

    Raises DTypeError for other than integers and bools.  Source: NumPy, `bitwise_count`.
    """
    array = as_array(x)
    array = convert(array, integer_type("bitwise_count", array.dtype))
    if array.dtype in SIGNED:
        array = lax.bitcast_convert_type(lax.abs(array), np.dtype(f"u{array.dtype.itemsize}"))
    return convert(lax.population_count(array), _BYTE)


@remembers_calls
def packbits(a: ArrayLike, /, axis: int | None = None, bitorder: str = "big") -> Array:
    """The truths of eight elements along `axis`, or in the flattened array, as a byte; the last filled with zeros.

    bitorder: "big", the first is the highest bit, or "little".  Raises DTypeError for other than integers and bools,
    ValueRangeError, AxisError.  Source: NumPy, `packbits`.
    """
    array = as_array(a)
    if array.dtype not in INTEGER | BOOL:
        raise DTypeError(f"packbits: wanted integers or bools, got {array.dtype}; x != 0 makes bools")
    array, dim = _select_axis(array, axis)
    factor = _FACTORS[_check_bitorder("packbits", bitorder)]
    if not array.shape[dim]:
        return convert(array, _BYTE)
    bits = _swap_last(convert(truth(array), _BYTE), dim)
    if missing := -bits.shape[-1] % 8:
        bits = lax.pad(bits, np.uint8(0), [(0, 0, 0)] * (bits.ndim - 1) + [(0, missing, 0)])
    words = lax.bitcast_convert_type(lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8)), _WORD)
    return _swap_last(convert(lax.shift_right_logical(lax.mul(words, factor), 56), _BYTE), dim)


@remembers_calls
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
    array, dim = _select_axis(array, axis)
    words = lax.take(as_array(_words(_check_bitorder("unpackbits", bitorder))), _swap_last(array, dim), 0)
    size = 8 * array.shape[dim]
    bits = lax.bitcast_convert_type(words, _BYTE)
    result = _swap_last(lax.reshape(bits, (*words.shape[:-1], size)), dim)
    if count is None:
        return result
    wanted = integer("unpackbits", "count", count)
    if wanted < -size:
        raise ValueRangeError(f"unpackbits: cannot leave out {-wanted} of {size} bits along axis {dim}")
    more = (wanted if wanted >= 0 else size + wanted) - size
    return lax.pad(result, np.uint8(0), [(0, more if k == dim else 0, 0) for k in range(result.ndim)])


def _select_axis(array: Array, axis: int | None) -> tuple[Array, int]:
    if axis is None or not array.shape:
        return lax.reshape(array, (array.size,)), 0 if axis is None else normalize_axis(axis, 1)
    return array, normalize_axis(integer("packbits", "axis", axis), array.ndim)


def _check_bitorder(name: str, bitorder: str) -> str:
    if bitorder not in _FACTORS:
        raise ValueRangeError(f"{name}: wanted a bitorder of 'big' or 'little', got {bitorder!r}")
    return bitorder


def _swap_last(array: Array, dim: int) -> Array:
    """The dimension exchanged with the last one."""
    order = list(range(array.ndim))
    order[dim], order[-1] = order[-1], order[dim]
    return lax.transpose(array, order)


@cache
def _words(bitorder: str) -> np.ndarray[Any, Any]:
    """For each byte the word whose bytes are its bits, the first the lowest."""
    order = cast(Literal["big", "little"], bitorder)
    bits = np.unpackbits(np.arange(256, dtype=np.uint8), bitorder=order).reshape(256, 8)
    return bits.astype(np.uint64) @ (np.uint64(1) << np.arange(0, 64, 8, dtype=np.uint64))
