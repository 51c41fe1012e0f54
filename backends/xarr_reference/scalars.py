"""Single elements: their bits, exact values, wider types, and rounding done once.

An element is a NumPy scalar of its element type (`np.float32(1.5)`, `ml_dtypes.bfloat16(1.5)`).
"""

from __future__ import annotations

import sys
from fractions import Fraction
from math import inf
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.dtypes import (
    BOOL,
    COMPLEX,
    INTEGER,
    SUB_BYTE_INTEGER,
    element_type,
    float8_e8m0fnu,
    info,
    real_part_of,
)

Scalar: TypeAlias = Any
DType: TypeAlias = np.dtype[Any]

#: The one float format without sign and without zero: a power of two or NaN.
POWERS_OF_TWO: Final = np.dtype(float8_e8m0fnu)


def is_bool(x: Scalar) -> bool:
    return x.dtype in BOOL


def is_integer(x: Scalar) -> bool:
    return x.dtype in INTEGER or x.dtype in SUB_BYTE_INTEGER


def is_complex(x: Scalar) -> bool:
    return x.dtype in COMPLEX


def is_nan(x: Scalar) -> bool:
    """Whether x, or a part of a complex x, is NaN."""
    return bool(x != x)


# --- bits -------------------------------------------------------------------------------------------


def width(dtype: DType) -> int:
    """Number of bits of an element."""
    return element_type(dtype).bits


def bits_of(x: Scalar) -> int:
    """The bit pattern of x read as an unsigned number."""
    raw: bytes = x.tobytes()
    return int.from_bytes(raw, sys.byteorder)


def from_bits(bits: int, dtype: DType) -> Scalar:
    """The element with this bit pattern; a bool is True for every pattern but 0."""
    if dtype in BOOL:
        return np.bool_(bits != 0)
    return np.frombuffer(bits.to_bytes(dtype.itemsize, sys.byteorder), dtype)[0]


def wrap_integer(value: int, dtype: DType) -> Scalar:
    """`value` modulo 2**width, taken into the range of an integer type."""
    least = int(info(dtype).min)
    return dtype.type((value - least) % 2 ** width(dtype) + least)


def bit_order(x: Scalar) -> int:
    """A number ordered as floats are by IEEE 754: -NaN < -inf < … < -0 < +0 < … < inf < NaN.

    Floats without -0 have its bits for their only NaN, which comes last.
    """
    bits, sign_bit = bits_of(x), 1 << (width(x.dtype) - 1)
    if bits == sign_bit and is_nan(x):
        return bits
    if bits < sign_bit or x.dtype == POWERS_OF_TWO:
        return bits
    return sign_bit - 1 - bits


# --- exact and wider values -------------------------------------------------------------------------


def exact(x: Scalar) -> np.float64:
    """A real float of any element type as float64, which holds all of them exactly."""
    return np.float64(x)


def wide(x: Scalar) -> Any:
    """x in a type with more digits and a wider exponent, for functions that must be rounded.

    float64 for every narrower float, `longdouble` for float64; likewise for complex numbers.  Where the
    platform's `longdouble` is no wider than float64, functions of float64 are as good as its libm.
    """
    if is_complex(x):
        return np.complex128(x) if x.dtype.itemsize == 8 else np.clongdouble(x)
    return np.longdouble(x) if x.dtype == np.float64 else np.float64(x)


def parts(x: Scalar) -> tuple[Any, Any]:
    """Real and imaginary part of a complex x, in the wider type."""
    value = wide(x)
    return value.real, value.imag


# --- rounding ---------------------------------------------------------------------------------------


def exponent(value: Fraction) -> int:
    """The greatest e with 2**e <= |value|, for a value other than 0."""
    guess = abs(value.numerator).bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= abs(value) else guess - 1


def on_grid(value: Fraction, mantissa_bits: int, least_exponent: int) -> Fraction:
    """The multiple of 2**(e - mantissa_bits) nearest to a value other than 0, ties going to the even one.

    e is the value's exponent, but not less than `least_exponent`.
    """
    spacing = Fraction(2) ** (max(exponent(value), least_exponent) - mantissa_bits)
    return round(value / spacing) * spacing


def apply_sign(magnitude: Fraction | float, negative: bool, dtype: DType) -> Scalar:
    """±magnitude as a float; beyond the largest one infinity, or NaN in a type without."""
    absolute = inf if magnitude > Fraction(float(info(dtype).max)) else float(magnitude)
    return dtype.type(-absolute if negative else absolute)


def nearest(value: Fraction, dtype: DType) -> Scalar:
    """The float of type `dtype` nearest to an exact number other than 0, ties going to the even one."""
    limits = info(dtype)
    magnitude = abs(on_grid(value, int(limits.nmant), int(limits.minexp)))
    if dtype == POWERS_OF_TWO:
        magnitude = max(magnitude, Fraction(float(limits.smallest_normal)))
    return apply_sign(magnitude, value < 0, dtype)


def round_to(value: Any, dtype: DType) -> Scalar:
    """A number of any float or complex type as an element of type `dtype`, rounded once."""
    if dtype in COMPLEX:
        return pair(value.real, value.imag, dtype)
    if not np.isfinite(value) or value == 0:
        return dtype.type(float(value))
    return nearest(Fraction(*value.as_integer_ratio()), dtype)


def pair(real: Any, imaginary: Any, dtype: DType) -> Scalar:
    """real + imaginary i as an element of a complex type, each part rounded once."""
    part = real_part_of(dtype)
    return dtype.type(complex(float(round_to(real, part)), float(round_to(imaginary, part))))
