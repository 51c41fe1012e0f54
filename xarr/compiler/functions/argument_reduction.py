"""Payne and Hanek's reduction of a float64 by pi/2, which is exact for the largest.

x = M 2**E with an integer M of 53 bits.  Of the bits of 2/pi, the early ones make multiples of 4 of the
quotient, and the late ones make nothing that matters: a window of 192 bits is left, which begins at E.
"""

from __future__ import annotations

import functools

import numpy as np

from xarr.compiler.functions.floating_point import (
    DOUBLE,
    Pair,
    power_of_two,
    quick_two_sum,
    with_sign_flipped,
)
from xarr.compiler.loop_ir.scalars import Value

_HALF_PI = (1.5707963267948966, 6.123233995736766e-17)
_WORD = 64
_LOW_HALF = 0xFFFFFFFF


@functools.cache
def _two_over_pi(words: int) -> tuple[int, ...]:
    """The bits of 2/pi after the point in words of 64, a word of zeros before them.

    From Machin's formula for pi, in integers.
    """
    bit_count = _WORD * (words + 1)

    def inverse_tangent(divisor: int) -> int:
        total, term, odd = 0, (1 << bit_count) // divisor, 1
        while term:
            total += term // odd if odd % 4 == 1 else -(term // odd)
            term //= divisor * divisor
            odd += 2
        return total

    pi = 4 * (4 * inverse_tangent(5) - inverse_tangent(239))
    bits = (2 << (2 * bit_count)) // pi >> _WORD
    return (0, *[(bits >> (_WORD * word)) & (2**_WORD - 1) for word in reversed(range(words))])


def exactly_reduced(x: Value) -> tuple[Value, Value, Value]:
    """The integer n modulo 4, and r in two parts, with x = n pi/2 + r; for finite |x| >= 2**12."""
    bits = x.abs().bitcast(np.uint64)
    mantissa = (bits & (2**52 - 1)) | 2**52
    # The window begins at bit E - 2 = exponent - 1077 of 2/pi, which the word of zeros precedes.
    top, middle, bottom = _window((bits >> 52) - (1077 - _WORD))
    product = _product(mantissa, top, middle, bottom)
    n, r, low = _angle(*product)
    negative = x.lt(0.0)
    sign = x.bitcast(np.uint64)
    return negative.select(-n, n), with_sign_flipped(r, sign), with_sign_flipped(low, sign)


def _window(start: Value) -> tuple[Value, Value, Value]:
    """Three words of 2/pi from bit `start`."""
    table = [start.constant(word) for word in _two_over_pi(20)]
    word_index, offset = start >> 6, start & 63
    # Moved by 16, 8, 4, 2 and 1 words, of which only those that can end in the first four are of interest.
    for step in (16, 8, 4, 2, 1):
        moved = (word_index & step).ne(0)
        needed = step - 1 + 4
        table = [
            moved.select(table[index + step], table[index]) if index + step < len(table) else table[index]
            for index in range(min(needed, len(table)))
        ]
    return (
        _word_at(table[0], table[1], offset),
        _word_at(table[1], table[2], offset),
        _word_at(table[2], table[3], offset),
    )


def _word_at(high: Value, low: Value, offset: Value) -> Value:
    """The word that begins `offset` bits after the start of two."""
    return (high << offset) | ((low >> 1) >> (63 - offset))


def _high_product(x: Value, y: Value) -> Value:
    """The upper 64 bits of a product of 128."""
    x_high, x_low, y_high, y_low = x >> 32, x & _LOW_HALF, y >> 32, y & _LOW_HALF
    middle = x_high * y_low + ((x_low * y_low) >> 32)
    other = x_low * y_high + (middle & _LOW_HALF)
    return x_high * y_high + (middle >> 32) + (other >> 32)


def _product(factor: Value, top: Value, middle: Value, bottom: Value) -> tuple[Value, Value, Value]:
    """factor * (top, middle, bottom) modulo 2**192."""
    low = factor * bottom
    carried = _high_product(factor, bottom)
    second = factor * middle + carried
    carry = second.lt(carried).convert(np.uint64)
    return factor * top + _high_product(factor, middle) + carry, second, low


def _angle(high: Value, middle: Value, low: Value) -> tuple[Value, Value, Value]:
    """Of a number whose point is after its second bit: the nearest integer, and the rest times pi/2."""
    fraction = (high << 2) | (middle >> 62)
    below = (middle << 2) | (low >> 62)
    upper_half = fraction >> 63
    n = (high >> 62) + upper_half
    flip = upper_half.ne(0).select(high.constant(2**64 - 1), 0)
    magnitude, rest = fraction ^ flip, below ^ flip
    zeros = magnitude.count_leading_zeros()
    leading = _word_at(magnitude, rest, zeros)
    r, rest_of_r = _times_half_pi(leading)
    scale = power_of_two(-zeros.convert(DOUBLE))
    return n, with_sign_flipped(r * scale, flip), with_sign_flipped(rest_of_r * scale, flip)


def _times_half_pi(fraction: Value) -> Pair:
    """fraction / 2**64 * pi/2."""
    first, second = _HALF_PI
    high = (fraction >> 11).convert(DOUBLE) * 2.0**-53
    low = (fraction & 0x7FF).convert(DOUBLE) * 2.0**-64
    product = high * first
    lost = high.fma(first, -product)
    return quick_two_sum(product, high.fma(second, low.fma(first, lost)))
