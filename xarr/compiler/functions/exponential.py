"""exp and what is made of it.

exp(x) = 2**n exp(r) with |r| <= ln(2)/2 (Cody and Waite's reduction), a polynomial for exp(r).  The
coefficients of this package, where no source is named, are those of the Chebyshev interpolation of the
function in the docstring beside them, computed with 50 digits by mpmath.chebyfit and rounded.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    Pair,
    at_least,
    at_most,
    format_of,
    power_of_two,
    quick_two_sum,
    quotient,
    scale_by_power,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: (exp(r) - 1 - r) / r² for |r| <= 0.35.
TAIL: Final = {
    SINGLE: (0.0001989198, 0.0013934541, 0.0083333105, 0.041666456, 0.16666667, 0.5),
    DOUBLE: (
        *(2.0915442297780116e-09, 2.5106274733573296e-08, 2.75572718102198e-07, 2.755725283351691e-06),
        *(2.4801587327007187e-05, 0.00019841269876864356, 0.0013888888888883327, 0.008333333333325544),
        *(0.04166666666666667, 0.1666666666666667, 0.5),
    ),
}
#: (exp(2r) - 1 - 2r) / (2r²): the same with other powers of two.
_DOUBLED_TAIL: Final = {
    dtype: [math.ldexp(c, len(row) - power) for power, c in enumerate(row)] for dtype, row in TAIL.items()
}
#: ln 2 in two parts.
_LN2: Final = {
    SINGLE: (float(np.float32(math.log(2))), -1.904654299957768e-09),
    DOUBLE: (0.6931471805599453, 2.3190468138462996e-17),
}
#: Below and above, exp is 0 and infinite; expm1 is -1 below the third.
_ENDS: Final = {SINGLE: (-104.0, 89.0, -18.0), DOUBLE: (-746.0, 710.0, -38.0)}
#: x where both powers of two of `scale_by_power` are zeros.  Products that underflow take a processor a hundred times
#: as long as others.
VANISHING: Final = {SINGLE: -176.0, DOUBLE: -1418.0}
#: Up to here expm1(x), tanh(x) and so on are x.
_TINY: Final = {SINGLE: 2.0**-26, DOUBLE: 2.0**-54}


def reduce_exponent(x: Value) -> Pair:
    """n and exp(r) - 1 where x = n ln(2) + r; x must be finite and n in the range of exponents."""
    magic = format_of(x).magic
    ln2, ln2_low = _LN2[x.dtype]
    n = x.fma(1 / math.log(2), magic) - magic
    r = n.fma(-ln2_low, n.fma(-ln2, x))
    return n, (r * r).fma(r.polynomial(TAIL[x.dtype]), r)


def exp(x: Value) -> Value:
    low, high, _ = _ENDS[x.dtype]
    n, tail = reduce_exponent(at_most(x.lt(low).select(VANISHING[x.dtype], x), high))
    return scale_by_power(tail + 1.0, n)


def expm1(x: Value) -> Value:
    """2 (2**(n-1) (exp(r) - 1) + (2**(n-1) - 1/2))."""
    _, high, low = _ENDS[x.dtype]
    n, tail = reduce_exponent(at_most(at_least(x, low), high))
    scale = power_of_two(n, -1)
    half = tail.fma(scale, scale - 0.5)
    return x.abs().lt(_TINY[x.dtype]).select(x, half + half)


def logistic(x: Value) -> Value:
    """1 / (1 + exp(-x)), as exp(x) / (1 + exp(x)) below 0, where exp(-x) might overflow."""
    small = exp(-x.abs())
    return quotient(x.lt(0.0).select(small, 1.0), quick_two_sum(x.constant(1.0), small))


def tanh(x: Value) -> Value:
    """t / (1 + t) for t = (exp(2|x|) - 1) / 2, with |x| reduced by multiples of ln(2)/2."""
    magnitude = at_most(x.abs(), 10.0 if x.dtype == SINGLE else 20.0)
    magic = format_of(x).magic
    ln2, ln2_low = _LN2[x.dtype]
    n = magnitude.fma(2 / math.log(2), magic) - magic
    r = n.fma(-ln2 / 2, magnitude)
    if x.dtype == DOUBLE:  # In float32 the rest is less than the last bit of the result.
        r = n.fma(-ln2_low / 2, r)
    tail = (r * r).fma(r.polynomial(_DOUBLED_TAIL[x.dtype]), r)
    scale = power_of_two(n)
    t = tail.fma(scale, scale.fma(0.5, -0.5))
    return quotient(t, quick_two_sum(x.constant(1.0), t)).copysign(x)


#: (sinh(r)/r - 1) / r² over r² for |r| <= 1.
_SINH: Final = {
    SINGLE: (2.8062802e-06, 0.00019838102, 0.008333339, 0.16666667),
    DOUBLE: (
        *(2.8445264169895285e-15, 7.646625361656657e-13, 1.6059048396350562e-10, 2.505210836405804e-08),
        *(2.755731922404034e-06, 0.00019841269841269773, 0.008333333333333333, 0.16666666666666666),
    ),
}


def _half_exp(x: Value) -> Value:
    """exp(|x|) / 2, which is finite where sinh and cosh are."""
    n, tail = reduce_exponent(at_most(x.abs(), _ENDS[x.dtype][1] + 1.0))
    return scale_by_power(tail + 1.0, n - 1.0)


def cosh(x: Value) -> Value:
    half = _half_exp(x)
    return half + 0.25 / half


def sinh(x: Value) -> Value:
    """A polynomial up to 1, (exp(x) - exp(-x)) / 2 beyond."""
    square = x * x
    near = (x * square).fma(square.polynomial(_SINH[x.dtype]), x)
    half = _half_exp(x)
    far = (half - 0.25 / half).copysign(x)
    return x.abs().lt(1.0).select(near, far)


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Cosh: cosh,
    ops.Exponential: exp,
    ops.ExponentialMinusOne: expm1,
    ops.Logistic: logistic,
    ops.Sinh: sinh,
    ops.Tanh: tanh,
}
