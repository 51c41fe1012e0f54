"""Conversions between element types, among them those that no register holds: bfloat16, float8, less than a byte.

Registers hold their bits as unsigned integers; of less than a byte the lower ones of a byte, whose others are 0.
Results are those of ml_dtypes: to nearest even, and beyond the largest number to infinity, to NaN in the formats that
have no infinity, or to the largest number in those that have neither.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from xarr import dtypes
from xarr.compiler.functions.arithmetic import reduce_precision, round_bits, total_order
from xarr.compiler.functions.rounding import float32_to_odd
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value


@dataclass(frozen=True)
class _Narrow:
    """A float format of at most 16 bits; the codes are those of the magnitude.

    `largest` is the code of the largest number, `beyond` that of what larger numbers become, `nan` the whole
    code of NaN, or of what it becomes; `infinite` says whether there are infinities, `has_nan` whether there is NaN.
    Without `signed_zero`, -0 is 0.
    """

    mantissa: int
    bias: int
    largest: int
    beyond: int
    nan: int
    infinite: bool
    signed_zero: bool = True
    has_nan: bool = True
    bits: int = 8


def _ieee(exponent: int, mantissa: int) -> _Narrow:
    infinity = ((1 << exponent) - 1) << mantissa
    bias = (1 << (exponent - 1)) - 1
    nan = infinity | 1 << (mantissa - 1)
    return _Narrow(mantissa, bias, infinity - 1, infinity, nan, True, bits=1 + exponent + mantissa)


def _fnuz(mantissa: int, bias: int) -> _Narrow:
    return _Narrow(mantissa, bias, 0x7F, 0x80, 0x80, False, signed_zero=False)


def _finite(exponent: int, mantissa: int) -> _Narrow:
    """A format of numbers alone: larger ones become the largest, NaN becomes -0."""
    bits = 1 + exponent + mantissa
    sign = 1 << (bits - 1)
    bias = (1 << (exponent - 1)) - 1
    return _Narrow(mantissa, bias, sign - 1, sign - 1, sign, False, has_nan=False, bits=bits)


_NARROW: Final = {
    np.dtype(dtypes.bfloat16): _ieee(8, 7),
    np.dtype(dtypes.float8_e3m4): _ieee(3, 4),
    np.dtype(dtypes.float8_e4m3): _ieee(4, 3),
    np.dtype(dtypes.float8_e5m2): _ieee(5, 2),
    np.dtype(dtypes.float8_e4m3fn): _Narrow(3, 7, 0x7E, 0x7F, 0x7F, False),
    np.dtype(dtypes.float8_e4m3b11fnuz): _fnuz(3, 11),
    np.dtype(dtypes.float8_e4m3fnuz): _fnuz(3, 8),
    np.dtype(dtypes.float8_e5m2fnuz): _fnuz(2, 16),
    np.dtype(dtypes.float4_e2m1fn): _finite(2, 1),
    np.dtype(dtypes.float6_e2m3fn): _finite(2, 3),
    np.dtype(dtypes.float6_e3m2fn): _finite(3, 2),
}
_SCALE: Final = np.dtype(dtypes.float8_e8m0fnu)
_HALF: Final = np.dtype(np.float16)
_SINGLE: Final = np.dtype(np.float32)
_SHORT: Final = np.dtype(np.int16)


def register_dtype(dtype: DType) -> DType:
    """The type of a register for an element type: itself, or that of its bits."""
    holds_bits = dtype in dtypes.EXTENDED_FLOAT or dtype in dtypes.SUB_BYTE
    return np.dtype(f"u{dtype.itemsize}") if holds_bits else dtype


def order_of_bits(x: Value, dtype: DType) -> Value:
    """Integers that compare as the total order of bfloat16 or float8; a NaN that has the bits of -0 comes last."""
    if dtype == _SCALE:
        return x
    order = total_order(x)
    return x.eq(0x80).select(0x80, order.convert(_SHORT)) if dtype in dtypes.WITHOUT_MINUS_ZERO else order


def next_after(x: Value, y: Value, dtype: DType) -> Value:
    """The bfloat16 or float8 next to x towards y; y itself where they are equal (C99)."""
    first, second = widen(x, dtype), widen(y, dtype)
    moved = first.lt(second).eq(first.gt(0.0)).select(x + 1, x - 1)
    if dtype in dtypes.WITHOUT_MINUS_ZERO:
        # Between the least numbers of both signs there is one zero, and NaN has the bits of the other.
        moved = moved.eq(0x80).select(0, moved)
    if dtype != _SCALE:
        sign = 1 << (_NARROW[dtype].bits - 1)
        smallest = second.lt(0.0).select(x.constant(sign | 1), 1)
        moved = first.eq(0.0).select(smallest, moved)
    neighbour = first.eq(second).select(y, moved)
    return first.isnan().select(x, second.isnan().select(y, neighbour))


def reduce_narrow_precision(x: Value, dtype: DType, exponent_bits: int, mantissa_bits: int) -> Value:
    """A bfloat16 as `reduce_precision` rounds it, a float8 as the equal float16.  Source: XLA's ReducePrecision."""
    wide = widen(x, dtype)
    if dtype.itemsize == 1:
        rounded = reduce_precision(wide.convert(_HALF), exponent_bits, mantissa_bits)
        return narrow(rounded.convert(_SINGLE), dtype)
    return wide.isnan().select(x, round_bits(x, _NARROW[dtype].mantissa, exponent_bits, mantissa_bits))


def convert(x: Value, old: DType, new: DType) -> Value:
    """An element of type `old` as one of type `new`, both as registers hold them."""
    if old == new:
        return x
    if old in dtypes.SUB_BYTE_INTEGER:
        return convert(_widen_integer(x, old), dtypes.SUB_BYTE[old], new)
    if new in dtypes.SUB_BYTE_INTEGER:
        return _narrow_integer(x, old, new)
    if old in _NARROW or old == _SCALE:
        return convert(widen(x, old), _SINGLE, new)
    return narrow(_odd_float32(x), new) if new in _NARROW or new == _SCALE else x.convert(new)


def _widen_integer(bits: Value, dtype: DType) -> Value:
    """Integers of less than a byte as those of a byte."""
    width = dtypes.element_type(dtype).bits
    if dtypes.SUB_BYTE[dtype].kind == "u":
        return bits & ((1 << width) - 1)
    return (bits << (8 - width)).bitcast(np.int8) >> (8 - width)


def _narrow_integer(x: Value, old: DType, new: DType) -> Value:
    """An element of type `old` as an integer of less than a byte: floats saturate, the bits of others are cut."""
    wide = dtypes.SUB_BYTE[new]
    result = convert(x, old, wide)
    if old in dtypes.FLOAT or old in dtypes.SUB_BYTE:
        limits = dtypes.info(new)
        result = result.lt(int(limits.min)).select(result.constant(int(limits.min)), result)
        result = result.gt(int(limits.max)).select(result.constant(int(limits.max)), result)
    return result.bitcast(np.uint8) & ((1 << dtypes.element_type(new).bits) - 1)


def _odd_float32(x: Value) -> Value:
    """Any number as float32, an inexact one so that another rounding is as if it were the only one."""
    if x.dtype == BOOL or x.dtype in (np.float16, np.float32):
        return x.convert(np.float32)
    if x.dtype.kind in "iu" and x.dtype.itemsize == 8:
        # float64 has no bits for the last 11 bits; one bit tells whether any of the last 12 is set.
        large = x.gt(2**53) if x.dtype.kind == "u" else x.gt(2**53) | x.lt(-(2**53))
        last = x & 0xFFF
        x = large.select((x ^ last) | last.ne(0).select(x.constant(0x800), 0), x)
    return float32_to_odd(x.convert(np.float64))


def widen(bits: Value, dtype: DType) -> Value:
    """bfloat16 or float8 as float32, which holds all their numbers."""
    wide = bits.convert(np.uint32)
    if dtype == dtypes.bfloat16:
        return (wide << 16).bitcast(np.float32)
    if dtype == _SCALE:
        return wide.eq(0xFF).select(0x7FC00000, wide.eq(0).select(0x00400000, wide << 23)).bitcast(np.float32)
    form = _NARROW[dtype]
    magnitude = wide & ((1 << (form.bits - 1)) - 1)
    sign = (wide >> (form.bits - 1)) << 31
    # Subnormal numbers become normal by a product that is exact.
    shifted = (magnitude << (23 - form.mantissa)).bitcast(np.float32)
    value = (shifted * float(2.0 ** (127 - form.bias))).bitcast(np.uint32) | sign
    if form.infinite:
        special = (magnitude << (23 - form.mantissa)) | sign | 0x7F800000
        return magnitude.gt(form.largest).select(special, value).bitcast(np.float32)
    if not form.has_nan:
        return value.bitcast(np.float32)
    nan = (wide if form.nan > 0x7F else magnitude).eq(form.nan)
    return nan.select(sign | 0x7FC00000, value).bitcast(np.float32)


def narrow(x: Value, dtype: DType) -> Value:
    """A float32 as the bits of bfloat16 or float8, rounded to nearest even."""
    if dtype == _SCALE:
        return _narrow_scale(x)
    form = _NARROW[dtype]
    unsigned = register_dtype(dtype)
    bits = x.bitcast(np.uint32)
    sign = (bits >> 31) << (form.bits - 1)
    magnitude = bits & 0x7FFFFFFF
    code = _round_to_code(magnitude, form)
    code = code.gt(form.largest).select(form.beyond, code)
    code = x.isnan().select(form.nan, code)
    if form.signed_zero:
        return (code | sign).convert(unsigned)
    return code.eq(0).select(code, code | sign).convert(unsigned)


def _round_to_code(magnitude: Value, form: _Narrow) -> Value:
    """The code of the nearest number, as if there were exponents enough."""
    dropped = 23 - form.mantissa
    odd = (magnitude >> dropped) & 1
    rounded = magnitude + (odd + ((1 << (dropped - 1)) - 1))
    if form.bias == 127:
        return rounded >> dropped
    normal = (rounded - ((127 - form.bias) << 23)) >> dropped
    # A subnormal number is an integer times the smallest: adding 2**23 rounds to an integer.
    smallest = 1 - form.bias - form.mantissa
    units = magnitude.bitcast(np.float32) * float(2.0**-smallest) + float(2**23)
    subnormal = units.bitcast(np.uint32) - 0x4B000000
    return magnitude.lt((128 - form.bias) << 23).select(subnormal, normal)


def _narrow_scale(x: Value) -> Value:
    """float8_e8m0fnu: powers of two, ties upwards; NaN for what is not positive or too large."""
    bits = x.bitcast(np.uint32)
    # 2**-127 is the one power of two among the subnormal numbers.
    code = (bits + bits.ne(0x400000).select(bits.constant(0x400000), 0)) >> 23
    return x.gt(0.0).select(code.gt(0xFF).select(0xFF, code), 0xFF).convert(np.uint8)
