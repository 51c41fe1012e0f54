"""The inverse trigonometric functions."""

from __future__ import annotations

import math
from typing import Final

from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    Pair,
    bits_of,
    format_of,
    quick_two_sum,
    two_sum,
    with_sign_flipped,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: (atan(t)/t - 1) / t² over t², for |t| <= 1.
_ATAN: Final = {
    SINGLE: (
        *(-0.0023869972, 0.013507771, -0.03587154, 0.06250169, -0.0865688, 0.110337645, -0.14278568),
        *(0.1999974, -0.3333333),
    ),
    DOUBLE: (
        *(-1.1832505417555692e-05, 0.0001368724853148122, -0.0007518472526973822, 0.002622977891906089),
        *(-0.006575683344151699, 0.012756172907694298, -0.020238706986393514, 0.027567942297344678),
        *(-0.033750132001619734, 0.03872640214042632, -0.04308119655330471, 0.04752086773576656),
        *(-0.05261265735709454, 0.05882074956371294, -0.06666636435777692, 0.07692305354678655),
        *(-0.09090908969557403, 0.11111111107234799, -0.14285714285648404, 0.19999999999999554),
        -0.3333333333333333,
    ),
}
#: (asin(t)/t - 1) / t² over t², for |t| <= 1/2.
_ASIN: Final = {
    SINGLE: (0.033690847, 0.017149238, 0.031100662, 0.044599403, 0.07500094, 0.16666666),
    DOUBLE: (
        *(0.02961201126495512, -0.01924167174674304, 0.019554513336123378, 0.0030448799094556773),
        *(0.009319560794767446, 0.009621842970100282, 0.011566459612121669, 0.01396378001220357),
        *(0.017352816540325496, 0.02237215744350722, 0.03038194447553234, 0.044642857142551895),
        *(0.07500000000000118, 0.16666666666666666),
    ),
}
#: What pi/2 lacks in each format.
_HALF_PI_LOW: Final = {SINGLE: -4.371138828673793e-08, DOUBLE: 6.123233995736766e-17}


def _arctangent(t: Value) -> Value:
    """atan(t) for |t| <= 1."""
    z = t * t
    return (t * z).fma(z.polynomial(_ATAN[t.dtype]), t)


def _from_half_pi(x: Value) -> Value:
    """pi/2 - x."""
    return (_HALF_PI_LOW[x.dtype] - x) + math.pi / 2


def atan(x: Value) -> Value:
    """atan(1/x) = pi/2 - atan(x) leads to |x| <= 1."""
    magnitude = x.abs()
    large = magnitude.gt(1.0)
    angle = _arctangent(large.select(1.0 / magnitude, magnitude))
    return large.select(_from_half_pi(angle), angle).copysign(x)


def atan2(y: Value, x: Value) -> Value:
    """The angle of the point (x, y), with the special values of C99, F.10.1.4."""
    rise, run = y.abs(), x.abs()
    steep = rise.gt(run)
    smaller, larger = steep.select(run, rise), steep.select(rise, run)
    # 0/0 and inf/inf: the angles of the axes and of the diagonals.
    ratio = larger.eq(0.0).select(0.0, smaller / larger)
    ratio = smaller.eq(math.inf).select(1.0, ratio)
    angle = _arctangent(ratio)
    angle = steep.select(_from_half_pi(angle), angle)
    low = 2 * _HALF_PI_LOW[x.dtype]
    leftwards = bits_of(x).ge(format_of(x).sign_bit)
    angle = leftwards.select((low - angle) + math.pi, angle)
    # The comparisons above lose a NaN of one operand.
    return x.isnan().select(x, y.isnan().select(y, angle.copysign(y)))


def angle_as_pair(y: Value, x: Value) -> Pair:
    """atan2 of float64, where x and y are not both 0, with most of what its roundings lose."""
    rise, run = y.abs(), x.abs()
    steep = rise.gt(run)
    smaller, larger = steep.select(run, rise), steep.select(rise, run)
    ratio = smaller.eq(math.inf).select(1.0, smaller / larger)
    z = ratio * ratio
    rest = (-ratio).fma(larger, smaller) / (larger * (z + 1.0))
    high, low = quick_two_sum(ratio, ratio * z * z.polynomial(_ATAN[x.dtype]))
    low = low + rest.abs().lt(1.0).select(rest, 0.0)
    for is_beyond, halves in ((steep, 1.0), (bits_of(x).ge(format_of(x).sign_bit), 2.0)):
        whole, lost = two_sum(x.constant(math.pi / 2 * halves), -high)
        high = is_beyond.select(whole, high)
        low = is_beyond.select(lost + (_HALF_PI_LOW[x.dtype] * halves - low), low)
    angle = x.isnan().select(x, y.isnan().select(y, high.copysign(y)))
    return angle, with_sign_flipped(low, bits_of(y))


def _arcsine(t: Value) -> Value:
    """asin(t) for |t| <= 1/2."""
    z = t * t
    return (t * z).fma(z.polynomial(_ASIN[t.dtype]), t)


def _half_angle(magnitude: Value) -> Value:
    """sqrt((1 - |x|) / 2), the sine of half of acos |x|."""
    return magnitude.fma(-0.5, 0.5).sqrt()


def asin(x: Value) -> Value:
    """pi/2 - 2 asin(sqrt((1 - x)/2)) for |x| > 1/2."""
    magnitude = x.abs()
    large = magnitude.gt(0.5)
    part = _arcsine(large.select(_half_angle(magnitude), magnitude))
    return large.select(_from_half_pi(part + part), part).copysign(x)


def acos(x: Value) -> Value:
    """2 asin(sqrt((1 - x)/2)) for x > 1/2, pi minus that of -x for x < -1/2, pi/2 - asin(x) between."""
    magnitude = x.abs()
    large = magnitude.gt(0.5)
    part = _arcsine(large.select(_half_angle(magnitude), x))
    double = part + part
    left = (2 * _HALF_PI_LOW[x.dtype] - double) + math.pi
    return large.select(x.lt(0.0).select(left, double), _from_half_pi(part))


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Acos: acos,
    ops.Asin: asin,
    ops.Atan: atan,
    ops.Atan2: atan2,
}
