"""Powers with a small exponent that is known: products and square roots instead of exp(y log x).

In float64 each product keeps what its rounding lost, so that the result is rounded once.  Where the range of exponents
does not allow that, the general formula gives the result.  In float32 the products are those of float64.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from xarr.compiler.functions.floating_point import DOUBLE, SINGLE, Pair, multiply_pairs, two_product
from xarr.compiler.loop_ir.scalars import Value, constant_of

#: Larger exponents gain less.
_LARGEST: Final = 16
#: Sizes of powers between which products lose nothing that counts, and inverses are normal numbers; and of arguments
#: from which on roots lose nothing.
_SMALLEST_PRODUCT: Final = 2.0**-900
_GREATEST_PRODUCT: Final = 2.0**960
_SMALLEST_ROOTED: Final = 2.0**-900


def exponent_of(y: Value) -> float | None:
    """The exponent, if it is a known multiple of 1/2, not 0, and small."""
    number = float(constant_of(y)) if y.op == "constant" else 0.0
    is_small = 0 < abs(number) <= _LARGEST and number * 2 == math.floor(number * 2)
    return number if is_small else None


def whole_power(x: Value, exponent: int) -> Value:
    """x to the power of an exponent of at least 0, by products that are rounded, or wrap."""
    result, square = x.constant(1), x
    while exponent:
        if exponent & 1:
            result = square if result.op == "constant" else result * square
        exponent >>= 1
        square = square * square if exponent else square
    return result


def constant_power(x: Value, exponent: float, general: Value) -> Value:
    """x to this power, and `general` where only that is right; not rounded twice."""
    if exponent in (1, -1):
        return x if exponent == 1 else 1.0 / x
    if exponent == 0.5:
        return x.eq(-math.inf).select(math.inf, (x + 0.0).sqrt())  # (-0)**0.5 is 0
    return _single(x, exponent) if x.dtype == SINGLE else _double(x, exponent, general)


def _single(x: Value, exponent: float) -> Value:
    """By way of float64, where powers that are neither 0 nor infinite in float32 are neither."""
    is_half = exponent % 1 == 0.5
    wide = x.convert(DOUBLE) + 0.0 if is_half else x.convert(DOUBLE)
    product = whole_power(wide, int(abs(exponent)))
    if is_half:
        product = product * wide.sqrt()
    result = (product if exponent > 0 else 1.0 / product).convert(np.float32)
    return x.eq(-math.inf).select(_of_infinity(exponent), result) if is_half else result


def _double(x: Value, exponent: float, general: Value) -> Value:
    is_half = exponent % 1 == 0.5
    whole = _power_as_pair(x, int(abs(exponent)))
    if is_half:
        product, result = (_times_root if exponent > 0 else _inverse_of_root)(whole, x)
    else:
        product = whole[0]
        result = product + whole[1] if exponent > 0 else _inverse(whole, 1.0 / product)
    size = product.abs()
    is_right = size.ge(_SMALLEST_PRODUCT) & size.le(_GREATEST_PRODUCT)
    # Zeros and NaN, unlike other ends of the range, may be frequent.
    is_zero = x.eq(0.0)
    is_frequent = is_zero | x.isnan()
    if is_half:
        is_right = is_right & x.ge(_SMALLEST_ROOTED)
        is_frequent = is_frequent | (x.lt(0.0) & x.gt(-math.inf))
    result = is_zero.select(_of_zero(x, exponent), result)
    return (~(is_right | is_frequent)).rarely(general, result)


def _power_as_pair(x: Value, exponent: int) -> Pair:
    """x to the power of an exponent of at least 0, with what is lost in it."""
    result: Pair | None = None
    square: Pair = x, x.constant(0.0)
    while exponent:
        if exponent & 1:
            result = square if result is None else _multiply(result, square)
        exponent >>= 1
        square = _multiply(square, square) if exponent else square
    return (x.constant(1.0), x.constant(0.0)) if result is None else result


def _multiply(x: Pair, y: Pair) -> Pair:
    """The product of pairs; of single floats without the terms that are none."""
    for one, other in ((x, y), (y, x)):
        if one[1].op == "constant":
            product, lost = two_product(one[0], other[0])
            return product, lost if other[1].op == "constant" else one[0].fma(other[1], lost)
    return multiply_pairs(x, y)


def _times_root(whole: Pair, x: Value) -> tuple[Value, Value]:
    """The product of a power and the root of x, rounded once."""
    root = x.sqrt()
    lost = root.fma(-root, x) / (root + root)
    high, low = _multiply(whole, (root, lost))
    return high, high + low


def _inverse_of_root(whole: Pair, x: Value) -> tuple[Value, Value]:
    """The product of a power and the root of x, and its inverse, rounded once."""
    root = x.sqrt()
    inverse = 1.0 / (whole[0] * root)
    # 1 / root is as good as inverse * whole.
    lost = root.fma(-root, x) * (inverse * whole[0]) * 0.5
    high, low = _multiply(whole, (root, lost))
    return high, _inverse((high, low), inverse)


def _inverse(pair: Pair, estimate: Value) -> Value:
    """1 / pair by an estimate that is hardly wrong."""
    return pair[1].fma(-estimate, pair[0].fma(-estimate, 1.0)).fma(estimate, estimate)


def _of_zero(x: Value, exponent: float) -> Value:
    """The power of zeros: odd ones keep the sign."""
    result = x.constant(0.0 if exponent > 0 else math.inf)
    return result.copysign(x) if exponent % 2 == 1 else result


def _of_infinity(exponent: float) -> float:
    """The power of -inf to an exponent that is no whole number."""
    return math.inf if exponent > 0 else 0.0
