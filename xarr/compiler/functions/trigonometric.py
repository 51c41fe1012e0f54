"""sin, cos and tan over the whole range.

x = n pi/2 + r with |r| <= pi/4: by Cody and Waite's reduction with fma up to a bound, and for the rare larger
x by Payne and Hanek's, which takes the bits of 2/pi that matter.
"""

from __future__ import annotations

import math
from typing import Final

from xarr.compiler.functions.argument_reduction import exactly_reduced
from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    Pair,
    bits_of,
    format_of,
    quick_two_sum,
    two_product,
    with_sign_flipped,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: (sin(r)/r - 1) / r² over r², and (cos(r) - 1 + r²/2) / r⁴ over r², for |r| <= 1.01 pi/4.
_SIN: Final = {
    SINGLE: (2.7243782e-06, -0.00019840039, 0.008333332, -0.16666667),
    DOUBLE: (
        *(1.5915309183057952e-10, -2.5051092308431318e-08, 2.7557315910939e-06, -0.00019841269836385435),
        *(0.0083333333333307, -0.16666666666666666),
    ),
}
_COS: Final = {
    SINGLE: (2.4542871e-05, -0.0013888279, 0.041666664),
    DOUBLE: (
        *(-1.1380868171449914e-11, 2.0876121534608454e-09, -2.7557317151858866e-07),
        *(2.480158729853226e-05, -0.0013888888888887241, 0.041666666666666664),
    ),
}
#: pi/2 in parts.
_HALF_PI: Final = {
    SINGLE: (1.5707963705062866, -4.371138828673793e-08, -1.7151245100059022e-15),
    DOUBLE: (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33),
}
_TWO_OVER_PI: Final = 0.6366197723675814
#: Up to here the parts are enough, and |r| exceeds pi/4 by less than 1 %.
_BOUND: Final = {SINGLE: 2.0**17, DOUBLE: 2.0**30}


def sin(x: Value) -> Value:
    return x.eq(0.0).select(x, _on_quadrants(x, 0))


def cos(x: Value) -> Value:
    return _on_quadrants(x, 1)


def tan(x: Value) -> Value:
    far = _tangent(*exactly_reduced(x.convert(DOUBLE))).convert(x.dtype)
    return x.eq(0.0).select(x, _is_large(x).rarely(far, _tangent(*_reduce_angle(x))))


def _on_quadrants(x: Value, shift: int) -> Value:
    far = _sine(*exactly_reduced(x.convert(DOUBLE)), shift=shift).convert(x.dtype)
    return _is_large(x).rarely(far, _sine(*_reduce_angle(x), shift=shift))


def _is_large(x: Value) -> Value:
    magnitude = x.abs()
    return magnitude.gt(_BOUND[x.dtype]) & magnitude.lt(math.inf)


def _reduce_angle(x: Value) -> tuple[Value, Value, Value | None]:
    """An integer that ends in the bits of n, and r in one or two parts; r is NaN for infinite x."""
    first, second, third = _HALF_PI[x.dtype]
    magic = format_of(x).magic
    shifted = x.fma(_TWO_OVER_PI, magic)
    n = shifted - magic
    rough = n.fma(-first, x)
    if x.dtype == SINGLE:
        return bits_of(shifted), n.fma(-third, n.fma(-second, rough)), None
    # Next to a multiple of pi/2 both terms cancel, and the digits that each has lost are those of r.
    product, lost = two_product(n, n.constant(second))
    r, low = quick_two_sum(rough, -product)
    return bits_of(shifted), r, n.fma(-third, low - lost)


def _kernels(r: Value, low: Value | None) -> Pair:
    """sin and cos of r + low."""
    z = r * r
    sine_series, cosine_series = z.polynomial(_SIN[r.dtype]), z.polynomial(_COS[r.dtype])
    if low is None:
        return (r * z).fma(sine_series, r), z.fma(z.fma(cosine_series, -0.5), 1.0)
    half = z * 0.5
    cosine = 1.0 - half
    lost = low.fma(-r, (1.0 - cosine) - half)
    sine_rest = low.fma(cosine, r * z * sine_series)
    return r + sine_rest, cosine + (z * z).fma(cosine_series, lost)


def _sine(n: Value, r: Value, low: Value | None, shift: int) -> Value:
    """sin((n + shift) pi/2 + r + low)."""
    sine, cosine = _kernels(r, low)
    quadrant = n + shift if shift else n
    value = (quadrant & 1).eq(0).select(sine, cosine)
    return with_sign_flipped(value, quadrant << (format_of(r).sign_bit.bit_length() - 2))


def _tangent(n: Value, r: Value, low: Value | None) -> Value:
    sine, cosine = _kernels(r, low)
    even = (n & 1).eq(0)
    return even.select(sine, -cosine) / even.select(cosine, sine)


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Cosine: cos,
    ops.Sine: sin,
    ops.Tan: tan,
}
