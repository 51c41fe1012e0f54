"""erf and erfc.

`xarr.ir.ops.special` defines both by XLA's formulas, for backends that have nothing better, and because numbers drawn
as JAX draws them need XLA's bits of erf.  These formulas need fma, and are off by 1.6 and 3.7 ULP where those are by
4.9 and 480.

erfc(a) = exp(-a²) F((a - c)/(a + c)) / (1 + 2a) with a polynomial F for all a >= 0: M. Shepherd and
J. Laframboise, Chebyshev approximation of (1 + 2x) exp(x²) erfc(x), Math. Comp. 36 (1981).
"""

from __future__ import annotations

from typing import Final

from xarr.compiler.functions.exponential import exp
from xarr.compiler.functions.floating_point import (
    DOUBLE,
    SINGLE,
    Formulas,
    at_most,
    quotient,
    two_product,
    two_sum,
)
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir import ops

#: erf(x)/x - 1 over x², for |x| <= 1.2.
_SMALL: Final = {
    SINGLE: (6.561942e-05, -0.0007577328, 0.0051337685, -0.026822075, 0.11282752, -0.37612545, 0.12837915),
    DOUBLE: (
        *(-3.462656602525265e-12, 8.126446222408266e-11, -1.1967313291447323e-09, 1.475316888620586e-08),
        *(-1.6359566950686266e-07, 1.6461598881372106e-06, -1.4925620411595559e-05, 0.00012055331765936018),
        *(-0.0008548326989877069, 0.00522397762484068, -0.02686617064506662, 0.11283791670954763),
        *(-0.3761263890318374, 0.1283791670955126),
    ),
}
#: erfc(t)**(-1/8) for 1.2 <= t <= 3.94 and 1.2 <= t <= 5.95, by Remez' exchange with the weight of erf's error.
_EIGHTH_ROOT: Final = {
    SINGLE: (
        *(0.0007087677, -0.006085414, 0.028834308, -0.06527746, 0.12917478, -0.0069375187, 0.19059289),
        0.98909676,
    ),
    DOUBLE: (
        *(3.1144370379864024e-11, -1.0295077089549926e-09, 1.654208248835213e-08, -1.674222374481177e-07),
        *(1.1917897107397009e-06, -6.279783566177472e-06, 2.536158350252937e-05, -7.915286034843592e-05),
        *(0.00019471001539209223, -0.0003587683079704157, 0.0005686137729648013, -0.00040940440175543847),
        *(0.0020123878410788945, 0.0028378252706291918, 0.02484747177382253, 0.08940565220043066),
        *(0.1410758168778382, 0.9999968304924864),
    ),
}
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
_ENDS: Final = {SINGLE: (3.94, 10.1), DOUBLE: (5.95, 27.3)}


def erf(x: Value) -> Value:
    """A polynomial up to 1.2; beyond, 1 minus the eighth power of the inverse of another."""
    magnitude = x.abs()
    small = x.fma((x * x).polynomial(_SMALL[x.dtype]), x)
    root = at_most(magnitude, _ENDS[x.dtype][0]).polynomial(_EIGHTH_ROOT[x.dtype])
    square = root * root
    fourth = square * square
    large = 1.0 - 1.0 / (fourth * fourth)
    return magnitude.lt(1.2).select(small, large).copysign(x)


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


#: By the op, in float32 and float64.
FORMULAS: Final[Formulas] = {
    ops.Erf: erf,
    ops.Erfc: erfc,
}
