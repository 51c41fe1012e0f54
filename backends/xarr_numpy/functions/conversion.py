"""Conversions between element types: of values by XLA's rules, and of bits."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

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
    info,
)

Array = np.ndarray[Any, Any]

UNSIGNED: Final = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}
SIGNED: Final = {1: np.int8, 2: np.int16, 4: np.int32, 8: np.int64}


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


def unsigned_bits(x: Array) -> Array:
    """The bits of x as an unsigned integer of the same width."""
    return np.asarray(x).view(UNSIGNED[x.dtype.itemsize])


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


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        bitcast,
        convert,
        make_complex,
        imag,
    )
}
