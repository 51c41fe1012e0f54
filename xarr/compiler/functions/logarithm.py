"""log and log1p: x = 2**k m with m in [sqrt(1/2), sqrt(2)), and a series in f = m - 1."""

from __future__ import annotations

import math
from typing import Final

from xarr.compiler.functions.floating_point import DOUBLE, SINGLE, Formulas, mantissa_and_exponent, two_sum
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: (log(1 + f) - f + f²/2) / f³ for sqrt(1/2) - 1 <= f <= sqrt(2) - 1.
_CUBIC: Final = (
    *(0.06971612, -0.11479734, 0.1168542, -0.12425687, 0.14249058, -0.16667803, 0.20000716, -0.24999997),
    0.3333333,
)
#: (log((1 + s)/(1 - s)) / s - 2) / s² over s², for |s| <= 0.1716.
_ODD: Final = (
    *(0.1310072138350349, 0.13267418596474884, 0.15386290534658992, 0.181817947008978),
    *(0.2222222240054776, 0.2857142857076445, 0.4000000000000094, 0.6666666666666666),
)
#: ln 2 in two parts, of which the first has zeros at its end so that a product with k is exact.
_LN2: Final = {
    SINGLE: (0.693145751953125, 1.4286068203094173e-06),
    DOUBLE: (0.6931471803691238, 1.9082149292705877e-10),
}


def positive_log(x: Value, lost: Value | None = None) -> Value:
    """log(x + lost) for finite x > 0, `lost` being less than the last bit of x."""
    m, k = mantissa_and_exponent(x)
    f = m - 1.0
    high, low = _LN2[x.dtype]
    # What is small: lost/x is its derivative times `lost`.
    small = k * low if lost is None else k.fma(low, lost / x)
    half_square = f * f * 0.5
    if x.dtype == SINGLE:
        rest = (f * f * f).fma(f.polynomial(_CUBIC), small)
        return k.fma(high, f + (rest - half_square))
    s = f / (f + 2.0)
    z = s * s
    series = z * z.polynomial(_ODD)
    return k.fma(high, f - (half_square - s.fma(half_square + series, small)))


def log(x: Value, lost: Value | None = None) -> Value:
    """log(x + lost), `lost` being less than the last bit of x."""
    return _with_ends(x, positive_log(x, lost))


def _with_ends(x: Value, inner: Value) -> Value:
    """`inner` for positive finite x; -inf for 0, NaN below it, infinity and NaN for themselves."""
    outside = x.eq(0.0).select(x.constant(-math.inf), math.nan)
    return x.gt(0.0).select(x.eq(math.inf).select(x, inner), outside)


def log1p(x: Value) -> Value:
    """log(u) with u = 1 + x, corrected by what the sum has lost."""
    u, lost = two_sum(x.constant(1.0), x)
    tiny = 2.0**-25 if x.dtype == SINGLE else 2.0**-54
    return x.abs().lt(tiny).select(x, _with_ends(u, positive_log(u, lost)))


#: Beyond it 1 + x² is x², and log(x) is log(1 + x).
_LARGE: Final = {SINGLE: 2.0**30, DOUBLE: 2.0**60}


def asinh(x: Value) -> Value:
    """log1p(a + a² / (1 + sqrt(1 + a²))) for a = |x|."""
    a = x.abs()
    large = a.gt(_LARGE[x.dtype])
    square = a * a
    argument = a + square / ((square + 1.0).sqrt() + 1.0)
    magnitude = log1p(large.select(a, argument)) + large.select(x.constant(math.log(2)), 0.0)
    return magnitude.copysign(x)


def acosh(x: Value) -> Value:
    """log1p(t + sqrt(2t + t²)) for t = x - 1; NaN below 1."""
    large = x.gt(_LARGE[x.dtype])
    t = x - 1.0
    argument = t + (t * (t + 2.0)).sqrt()
    result = log1p(large.select(x, argument)) + large.select(x.constant(math.log(2)), 0.0)
    return x.lt(1.0).select(math.nan, result)


def atanh(x: Value) -> Value:
    """log1p(2a / (1 - a)) / 2 for a = |x|; NaN beyond 1."""
    a = x.abs()
    return (log1p((a + a) / (1.0 - a)) * 0.5).copysign(x)


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Acosh: acosh,
    ops.Asinh: asinh,
    ops.Atanh: atanh,
    ops.Log: log,
    ops.LogPlusOne: log1p,
}
