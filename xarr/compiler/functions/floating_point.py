"""float32 and float64 as the expansions see them: bits, extremes, and sums that keep what they round off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np

from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.ir.op import Op

#: How element-wise ops are computed: operands -> result.
Formulas: TypeAlias = dict[type[Op], Callable[..., Value]]


@dataclass(frozen=True)
class Format:
    """An IEEE 754 format.

    Adding `magic` to a float leaves its nearest integer in the low bits of the sum; `biased` adds the bias
    of the exponent too, so that a shift by `mantissa` makes a power of two.
    """

    signed: DType
    unsigned: DType
    mantissa: int
    bias: int

    @property
    def magic(self) -> float:
        return float(3 << (self.mantissa - 1))

    @property
    def biased(self) -> float:
        return self.magic + self.bias

    @property
    def smallest_normal(self) -> float:
        return float(2.0 ** (1 - self.bias))

    @property
    def sign_bit(self) -> int:
        return 1 << (self.mantissa + (8 if self.mantissa == 23 else 11))


_FORMATS: Final = {
    np.dtype(np.float32): Format(np.dtype(np.int32), np.dtype(np.uint32), 23, 127),
    np.dtype(np.float64): Format(np.dtype(np.int64), np.dtype(np.uint64), 52, 1023),
}

SINGLE: Final = np.dtype(np.float32)
DOUBLE: Final = np.dtype(np.float64)


def format_of(x: Value) -> Format:
    """The format of a float32 or float64."""
    return _FORMATS[x.dtype]


def bits_of(x: Value) -> Value:
    """The bits as an unsigned integer."""
    return x.bitcast(format_of(x).unsigned)


def at_most(x: Value, limit: float) -> Value:
    """The smaller of both; a NaN stays."""
    return x.gt(limit).select(limit, x)


def at_least(x: Value, limit: float) -> Value:
    """The larger of both; a NaN stays."""
    return x.lt(limit).select(limit, x)


def power_of_two(n: Value, shift: int = 0) -> Value:
    """2**(n + shift) for an integral float n, where that is a normal number."""
    form = format_of(n)
    bits = bits_of(n + (form.biased + shift)) << form.mantissa
    return bits.bitcast(n.dtype)


def scale_by_power(x: Value, n: Value) -> Value:
    """x * 2**n for an integral float n within twice the range of exponents, rounded once.

    Where n is twice the exponent of subnormal numbers, both factors are zeros.
    """
    form = format_of(x)
    half = n.fma(0.5, form.biased)
    rest = n - (half - form.biased)
    first = (bits_of(half) << form.mantissa).bitcast(x.dtype)
    return x * first * power_of_two(rest)


def with_sign_flipped(x: Value, flip: Value) -> Value:
    """x, negated where the sign bit of the unsigned integer `flip` is set."""
    return (bits_of(x) ^ (flip & format_of(x).sign_bit)).bitcast(x.dtype)


def mantissa_and_exponent(x: Value, subnormals: bool = True) -> tuple[Value, Value]:
    """m in [sqrt(1/2), sqrt(2)) and an integral float k with x = m * 2**k, for finite x > 0."""
    form = format_of(x)
    root = int(np.sqrt(x.dtype.type(0.5)).view(form.unsigned))
    one = form.bias << form.mantissa
    # The bits of 2**mantissa end in zeros, so that an exponent fits in them: an integer becomes a float.
    units = float(2**form.mantissa)
    offset = x.constant(units + form.bias)
    if subnormals:
        subnormal = x.lt(form.smallest_normal)
        x = subnormal.select(x * units, x)
        offset = subnormal.select(units + form.bias + form.mantissa, offset)
    shifted = bits_of(x) + (one - root)
    m = ((shifted & ((1 << form.mantissa) - 1)) + root).bitcast(x.dtype)
    number = (shifted >> form.mantissa) | int(x.dtype.type(units).view(form.unsigned))
    return m, number.bitcast(x.dtype) - offset


# --- pairs: an unevaluated sum of two floats, the second much smaller --------------------------------

Pair = tuple[Value, Value]


def two_sum(x: Value, y: Value) -> Pair:
    """x + y and what its rounding lost.  Source: Knuth, TAOCP 2, 4.2.2."""
    total = x + y
    part = total - x
    return total, (x - (total - part)) + (y - part)


def quick_two_sum(x: Value, y: Value) -> Pair:
    """x + y and what its rounding lost, where |x| >= |y|.  Source: Dekker (1971)."""
    total = x + y
    return total, y - (total - x)


def two_product(x: Value, y: Value) -> Pair:
    """x * y and what its rounding lost."""
    product = x * y
    return product, x.fma(y, -product)


def add_pairs(x: Pair, y: Pair) -> Pair:
    """The sum where the first pair is not the smaller one."""
    total, lost = quick_two_sum(x[0], y[0])
    return quick_two_sum(total, lost + (x[1] + y[1]))


def multiply_pairs(x: Pair, y: Pair) -> Pair:
    product, lost = two_product(x[0], y[0])
    return quick_two_sum(product, x[0].fma(y[1], x[1].fma(y[0], lost)))


def quotient(x: Value, y: Pair) -> Value:
    """x / y where x and y are of moderate size, hardly worse than rounded once."""
    inverse = 1.0 / y[0]
    estimate = x * inverse
    remainder = y[1].fma(-estimate, y[0].fma(-estimate, x))
    return remainder.fma(inverse, estimate)
