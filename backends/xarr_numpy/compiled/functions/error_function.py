"""erf and erfc.

erfc(a) = exp(-a²) F((a - c)/(a + c)) / (1 + 2a) with a polynomial F for all a >= 0: M. Shepherd and
J. Laframboise, Chebyshev approximation of (1 + 2x) exp(x²) erfc(x), Math. Comp. 36 (1981).
"""

from __future__ import annotations

from typing import Final

from xarr.compiler.scalars import Value
from xarr_numpy.compiled.functions.exponential import exp, reduced
from xarr_numpy.compiled.functions.formats import (
    DOUBLE,
    SINGLE,
    at_most,
    power_of_two,
    quotient,
    two_product,
    two_sum,
)

#: erf(x)/x - 1 over x², for |x| <= 1.
_SMALL: Final = {
    SINGLE: (7.875875e-05, -0.00080168643, 0.0051890872, -0.026854211, 0.11283594, -0.37612626, 0.12837917),
    DOUBLE: (
        *(5.957176147748911e-11, -1.1372848856791674e-09, 1.4659775274047436e-08, -1.6350312701054695e-07),
        *(1.6461000484121368e-06, -1.4925595266831182e-05, 0.0001205533111164271, -0.000854832698083379),
        *(0.0052239776248180145, -0.026866170645076792, 0.11283791670954879, -0.3761263890318375),
        0.1283791670955126,
    ),
}
#: log(erfc(t)) for 1 <= t <= 4 in float32, by least squares with weights erfc(t) that approach the best
#: largest error (Lawson's method).
_LOG_ERFC: Final = (
    *(0.00018557422, -0.0029396093, 0.021805327, -0.10303739, -0.6382257, -1.12704, -0.0003537161),
)
#: (1 + 2a) exp(a²) erfc(a) over (a - c)/(a + c), for 0 <= a <= 10.1 and c = 2, 0 <= a <= 27.3 and c = 4.
_SCALED: Final = {
    SINGLE: (
        *(2.2931375e-05, -0.0003704151, -0.0012509732, 0.0012802785, 0.008638554, -0.008047403),
        *(-0.054205433, 0.16405359, -0.16603132, -0.092763916, 1.2769784),
    ),
    DOUBLE: (
        *(1.2536727658145104e-09, 1.8365592590468105e-09, -1.4096548230144803e-08, -1.79197149510146e-08),
        *(1.1011968670555476e-07, 7.463953515578836e-08, -8.255617605150939e-07, 2.938178146676247e-07),
        *(5.709854006589377e-06, -1.122205421113342e-05, -2.4399275055200904e-05, 0.0001506216960395033),
        *(-0.00019925667581183356, -0.0007577732964680665, 0.005031969974281509, -0.0161977340561945),
        *(0.037167515537923856, -0.06633036581238848, 0.09373283499832133, -0.10103906603629562),
        *(0.06809705425469348, 0.015379652102619577, -0.13962111684056253, 1.2329951186255526),
    ),
}
_CENTRE: Final = {SINGLE: 2.0, DOUBLE: 4.0}
#: Beyond these erf is 1 and erfc is 0.
_ENDS: Final = {SINGLE: (4.0, 10.1), DOUBLE: (6.0, 27.3)}


def erf(x: Value) -> Value:
    magnitude = x.abs()
    square = x * x
    small = x.fma(square.polynomial(_SMALL[x.dtype]), x)
    within = at_most(magnitude, _ENDS[x.dtype][0])
    if x.dtype == SINGLE:
        n, tail = reduced(within.polynomial(_LOG_ERFC))
        complement = (tail + 1.0) * power_of_two(n)
    else:
        complement = _complement(within)
    return magnitude.lt(1.0).select(small, 1.0 - complement).copysign(x)


def erfc(x: Value) -> Value:
    complement = _complement(at_most(x.abs(), _ENDS[x.dtype][1]))
    far = x.lt(0.0).select(2.0 - complement, complement)
    small = (x * x).polynomial(_SMALL[x.dtype])
    return x.abs().lt(0.25).select(1.0 - x.fma(small, x), far)


def _complement(a: Value) -> Value:
    """erfc(a) for a >= 0.  exp(-a²) needs what the square loses, and the ratio what its parts lose."""
    centre = _CENTRE[a.dtype]
    square, lost = two_product(a, a)
    power = exp(-square)
    inverse = 1.0 / (a + centre)
    rough = (a - centre) * inverse
    missing = a.fma(-rough, (rough + 1.0).fma(-centre, a))
    ratio = missing.fma(inverse, rough)
    factor = quotient(ratio.polynomial(_SCALED[a.dtype]), two_sum(a + a, a.constant(1.0)))
    return power * lost.fma(-factor, factor)
