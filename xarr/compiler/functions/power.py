"""Powers and roots."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from xarr.compiler.functions.arithmetic import power as integer_power
from xarr.compiler.functions.constant_powers import constant_power, exponent_of, whole_power
from xarr.compiler.functions.exponential import TAIL, VANISHING
from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    Pair,
    add_pairs,
    at_least,
    at_most,
    format_of,
    mantissa_and_exponent,
    multiply_pairs,
    power_of_two,
    quick_two_sum,
    scale_by_power,
    two_product,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops


def power(x: Value, y: Value) -> Value:
    """x**y with the special values of C99, F.10.4.4; (-0)**0.5 is 0 and (-inf)**0.5 is inf as there."""
    magnitude = x.abs()
    result = _single_power(magnitude, y) if x.dtype == SINGLE else _double_power(magnitude, y)
    half = y * 0.5
    whole = y.floor().eq(y)
    odd = whole & half.floor().ne(half)
    result = odd.select(result.copysign(x), result)
    undefined = x.lt(0.0) & x.gt(-math.inf) & ~whole
    result = (undefined | x.isnan() | y.isnan()).select(math.nan, result)
    return (x.eq(1.0) | y.eq(0.0)).select(1.0, result)


# --- float32, by way of float64 ----------------------------------------------------------------------

#: log2((1 + s)/(1 - s)) / s over s², for |s| <= 0.1716.
_LOG2: Final = (
    *(0.2431378046690069, 0.26142622173862223, 0.32061693320147355, 0.41219839452951484),
    *(0.5770780172926201, 0.961796693924232, 2.885390081777927),
)
#: (2**r - 1) / r for |r| <= 1/2.
_EXP2: Final = (
    *(1.5297323760701075e-05, 0.0001546144469856913, 0.001333350238616277, 0.009618056678524637),
    *(0.055504108839096185, 0.24022650922288757, 0.6931471805599453),
)


def _single_power(x: Value, y: Value) -> Value:
    """x**y for x >= 0: the errors in float64 vanish in the one rounding to float32."""
    wide = x.convert(DOUBLE)
    m, k = mantissa_and_exponent(wide, subnormals=False)
    s = (m - 1.0) / (m + 1.0)
    logarithm = s.fma((s * s).polynomial(_LOG2), k)
    logarithm = x.eq(0.0).select(-math.inf, x.eq(math.inf).select(math.inf, logarithm))
    # 1**inf is 1.
    exponent = logarithm.eq(0.0).select(0.0, y.convert(DOUBLE) * logarithm)
    # The power of -1023 is zero: no result of -160 and less is to underflow.
    exponent = at_most(exponent.lt(-160.0).select(-1023.0, exponent), 160.0)
    magic = format_of(wide).magic
    n = (exponent + magic) - magic
    r = exponent - n
    return (r.fma(r.polynomial(_EXP2), 1.0) * power_of_two(n)).convert(np.float32)


# --- float64 -----------------------------------------------------------------------------------------

#: (2 atanh(s)/s - 2)/s² - 2/3, over s², divided by s², for |s| <= 0.1716.
_ATANH: Final = (
    *(0.11896558568412165, 0.11686508917312045, 0.13335711085008436, 0.15384573450028968),
    *(0.18181818615177278, 0.22222222219710297, 0.2857142857143586, 0.3999999999999999),
)
_TWO_THIRDS: Final = (0.6666666666666666, 3.700743415417188e-17)
#: ln 2 in two parts, of which the first has zeros at its end so that a product with k is exact.
LN2_WITH_ZEROS: Final = (0.693147180559663, 2.8235290563031577e-13)
#: Powers beyond these are those of infinity: only 1 would have another one.
_LARGEST_EXPONENT: Final = 2.0**66


def logarithm_as_pair(x: Value) -> Pair:
    """log(x) for finite x > 0 to some 65 bits."""
    m, k = mantissa_and_exponent(x)
    f, d = m - 1.0, quick_two_sum(m.constant(1.0), m)
    inverse = 1.0 / d[0]
    s = f * inverse
    s_low = d[1].fma(-s, d[0].fma(-s, f)) * inverse
    pair = quick_two_sum(s, s_low)
    square = multiply_pairs(pair, pair)
    series = square[0] * square[0].polynomial(_ATANH)
    two_thirds = (m.constant(_TWO_THIRDS[0]), m.constant(_TWO_THIRDS[1]))
    factor = add_pairs(two_thirds, (series, m.constant(0.0)))
    cubic = multiply_pairs(multiply_pairs(square, pair), factor)
    near_one = add_pairs((pair[0] + pair[0], pair[1] + pair[1]), cubic)
    high, low = k * LN2_WITH_ZEROS[0], k * LN2_WITH_ZEROS[1]
    return add_pairs((high, low), near_one)


def _double_power(x: Value, y: Value) -> Value:
    """x**y for x >= 0: the logarithm as a pair of floats, so that y may be large."""
    high, low = logarithm_as_pair(x)
    ends = x.eq(0.0) | x.eq(math.inf)
    high = ends.select(x.eq(0.0).select(x.constant(-math.inf), math.inf), high)
    y = at_most(at_least(y, -_LARGEST_EXPONENT), _LARGEST_EXPONENT)
    product, lost = two_product(y, high)
    lost = low.fma(y, lost)
    clamped = at_most(product.lt(-760.0).select(VANISHING[x.dtype], product), 720.0)
    lost = clamped.eq(product).select(lost, 0.0)
    return _exp_of_pair(clamped, lost)


def _exp_of_pair(x: Value, low: Value) -> Value:
    """exp(x + low)."""
    magic = format_of(x).magic
    n = x.fma(1 / math.log(2), magic) - magic
    rough = n.fma(-math.log(2), x)
    r = n.fma(-2.3190468138462996e-17, rough)
    r_low = n.fma(-2.3190468138462996e-17, rough - r) + low
    bend = r * r * r.polynomial(TAIL[x.dtype])
    tail = r + (bend + r_low.fma(r + bend, r_low))
    return scale_by_power(tail + 1.0, n)


# --- cube root ---------------------------------------------------------------------------------------

#: m**(-1/3) for 0.35 <= m <= 2.83, to seven bits.
_INVERSE_ROOT: Final = (-0.027546793, 0.26801082, -1.033397, 2.0261002, -2.2149463, 1.9790736)


def cbrt(x: Value) -> Value:
    """The cube root of m 2**(3q) by Newton's method for m**(-1/3), which divides by nothing."""
    m, k = mantissa_and_exponent(x.abs())
    magic = format_of(x).magic
    q = k.fma(1 / 3, magic) - magic
    m = m * power_of_two(q.fma(-3.0, k))
    inverse = m.polynomial(_INVERSE_ROOT)
    for _ in range(1 if x.dtype == SINGLE else 2):
        error = (inverse * inverse * inverse).fma(-m, 1.0)
        inverse = (inverse * error).fma(error.polynomial((14 / 81, 2 / 9, 1 / 3)), inverse)
    square = inverse * inverse
    root = m * square
    # The last step with a residual that is hardly rounded.
    power, lost = two_product(root, root)
    residual = lost.fma(-root, power.fma(-root, m))
    root = (residual * square).fma(1 / 3, root)
    return (x.eq(0.0) | ~x.abs().lt(math.inf)).select(x, (root * power_of_two(q)).copysign(x))


def any_power(x: Value, y: Value) -> Value:
    """x to the power y, of floats or of integers."""
    general = (power if x.dtype.kind == "f" else integer_power)(x, y)
    exponent = exponent_of(y)
    if exponent is None:
        return general
    if x.dtype.kind == "f":
        return constant_power(x, exponent, general)
    return whole_power(x, int(exponent)) if exponent > 0 else general


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Cbrt: cbrt,
    ops.Power: any_power,
}
