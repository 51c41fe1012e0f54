"""Special functions: CHLO's ops, each defined by the rational approximations that XLA computes them with.

Every backend that has nothing better evaluates the same formulas, so that results agree.  float16 and
bfloat16 are computed in float32 and rounded once.  Coefficients: Cephes (ndtr.c, ndtrf.c) for erf and erfc,
M. Giles (Approximating the erfinv function, 2010) for erf_inv, Lanczos' approximation with g = 7 and n = 9
for lgamma and digamma.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from xarr.dtypes import FLOAT
from xarr.ir.op import operation
from xarr.ir.ops.elementwise import Unary
from xarr.ir.ops.formula import (
    Term,
    cos,
    exp,
    floor,
    is_finite,
    log,
    log1p,
    maximum,
    minimum,
    polynomial,
    sin,
    sqrt,
    where,
    xla_log1p,
)

if TYPE_CHECKING:
    from xarr.ir.graph import Node

F32: Final = np.dtype(np.float32)
F64: Final = np.dtype(np.float64)
#: The IEEE types and bfloat16.
ACCEPTED: Final = frozenset(dtype for dtype in FLOAT if dtype.itemsize >= 2)


class SpecialFunction(Unary):
    """A function of one real, computed in float32 or float64 by a formula."""

    accepts = ACCEPTED

    def decompose(self, *operands: Node) -> Node:
        x = Term(operands[0])
        return self.formula(x.convert(F32) if x.dtype.itemsize == 2 else x).convert(x.dtype).node

    @staticmethod
    def formula(x: Term) -> Term:
        """f(x) in float32 or float64."""
        raise NotImplementedError


# --- the error function ------------------------------------------------------------------------------

_ERF_P32: Final = (
    *(0.00022905065861350646, 0.0034082910107109506, 0.050955695062380861),
    *(0.18520832239976145, 1.128379143519084),
)
_ERF_Q32: Final = (
    *(-1.1791602954361697e-7, 0.000023547966471313185, 0.0010179625278914885),
    *(0.014070470171167667, 0.11098505178285362, 0.49746925110067538, 1.0),
)
_ERF_T: Final = (
    *(9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3),
    *(7.00332514112805075473e3, 5.55923013010394962768e4),
)
_ERF_U: Final = (
    *(1.0, 3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3),
    *(2.26290000613890934246e4, 4.92673942608635921086e4),
)
_ERFC_P: Final = (
    *(2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0),
    *(4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2),
    *(9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
)
_ERFC_Q: Final = (
    *(1.0, 1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2),
    *(9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3),
    *(1.65666309194161350182e3, 5.57535340817727675546e2),
)
_ERFC_R: Final = (
    *(5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0),
    *(6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0),
)
_ERFC_S: Final = (
    *(1.0, 2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1),
    *(1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0),
)
_ERFC_P32: Final = (
    *(2.326819970068386e-2, -1.387039388740657e-1, 3.687424674597105e-1, -5.824733027278666e-1),
    *(6.210004621745983e-1, -4.944515323274145e-1, 3.404879937665872e-1, -2.741127028184656e-1),
    5.638259427386472e-1,
)
_ERFC_R32: Final = (
    *(-1.047766399936249e1, 1.297719955372516e1, -7.495518717768503e0, 2.921019019210786e0),
    *(-1.015265279202700e0, 4.218463358204948e-1, -2.820767439740514e-1, 5.641895067754075e-1),
)
#: Beyond it erf is 1 in float32.
_ERF_END32: Final = 3.832506856900711
#: Beyond it exp(x) is 0 or infinity.
_MAXLOG: Final = {F32: 88.72283905206835, F64: 7.09782712893383996843e2}


def _erf_small(x: Term) -> Term:
    """erf(x) for |x| < 1, or for all x in float32."""
    if x.dtype == F64:
        z = x * x
        return x * polynomial(z, _ERF_T) / polynomial(z, _ERF_U)
    x = maximum(minimum(x, _ERF_END32), -_ERF_END32)
    z = x * x
    value = x * polynomial(z, _ERF_P32) / polynomial(z, _ERF_Q32)
    return maximum(minimum(value, 1.0), -1.0)  # rounding can lead beyond


def _erfc_large(x: Term) -> Term:
    """erfc(x) for |x| >= 1."""
    magnitude = abs(x)
    power = -(x * x)
    if x.dtype == F64:
        near = polynomial(magnitude, _ERFC_P) / polynomial(magnitude, _ERFC_Q)
        far = polynomial(magnitude, _ERFC_R) / polynomial(magnitude, _ERFC_S)
        value = exp(power) * where(magnitude < 8.0, near, far)
    else:
        inverse = 1.0 / magnitude
        square = inverse * inverse
        series = where(magnitude < 2.0, polynomial(square, _ERFC_P32), polynomial(square, _ERFC_R32))
        value = exp(power) * inverse * series
    value = where(power < -_MAXLOG[x.dtype], 0.0, value)
    return where(x < 0.0, 2.0 - value, value)


@operation
class Erf(SpecialFunction):
    """The error function 2/sqrt(pi) times the integral of exp(-t²) from 0 to x."""

    name = "chlo.erf"
    has_formula = True

    @staticmethod
    def formula(x: Term) -> Term:
        small = _erf_small(x)
        return small if x.dtype == F32 else where(abs(x) < 1.0, small, 1.0 - _erfc_large(x))


@operation
class Erfc(SpecialFunction):
    """1 - erf(x), accurate where that is close to 0."""

    name = "chlo.erfc"
    has_formula = True

    @staticmethod
    def formula(x: Term) -> Term:
        return where(abs(x) < 1.0, 1.0 - _erf_small(x), _erfc_large(x))


# --- its inverse -------------------------------------------------------------------------------------

_INVERSE32: Final = (
    (
        5.0,
        2.5,
        (
            *(2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087),
            *(-0.00125372503, -0.00417768164, 0.246640727, 1.50140941),
        ),
    ),
    (
        math.inf,
        3.0,
        (
            *(-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773),
            *(-0.0076224613, 0.00943887047, 1.00167406, 2.83297682),
        ),
    ),
)
_INVERSE64: Final = (
    (
        6.25,
        3.125,
        (
            *(-3.6444120640178196996e-21, -1.685059138182016589e-19, 1.2858480715256400167e-18),
            *(1.115787767802518096e-17, -1.333171662854620906e-16, 2.0972767875968561637e-17),
            *(6.6376381343583238325e-15, -4.0545662729752068639e-14, -8.1519341976054721522e-14),
            *(2.6335093153082322977e-12, -1.2975133253453532498e-11, -5.4154120542946279317e-11),
            *(1.051212273321532285e-09, -4.1126339803469836976e-09, -2.9070369957882005086e-08),
            *(4.2347877827932403518e-07, -1.3654692000834678645e-06, -1.3882523362786468719e-05),
            *(0.0001867342080340571352, -0.00074070253416626697512, -0.0060336708714301490533),
            *(0.24015818242558961693, 1.6536545626831027356),
        ),
    ),
    (
        16.0,
        3.25,
        (
            *(2.2137376921775787049e-09, 9.0756561938885390979e-08, -2.7517406297064545428e-07),
            *(1.8239629214389227755e-08, 1.5027403968909827627e-06, -4.013867526981545969e-06),
            *(2.9234449089955446044e-06, 1.2475304481671778723e-05, -4.7318229009055733981e-05),
            *(6.8284851459573175448e-05, 2.4031110387097893999e-05, -0.0003550375203628474796),
            *(0.00095328937973738049703, -0.0016882755560235047313, 0.0024914420961078508066),
            *(-0.0037512085075692412107, 0.005370914553590063617, 1.0052589676941592334),
            3.0838856104922207635,
        ),
    ),
    (
        math.inf,
        5.0,
        (
            *(-2.7109920616438573243e-11, -2.5556418169965252055e-10, 1.5076572693500548083e-09),
            *(-3.7894654401267369937e-09, 7.6157012080783393804e-09, -1.4960026627149240478e-08),
            *(2.9147953450901080826e-08, -6.7711997758452339498e-08, 2.2900482228026654717e-07),
            *(-9.9298272942317002539e-07, 4.5260625972231537039e-06, -1.9681778105531670567e-05),
            *(7.5995277030017761139e-05, -0.00021503011930044477347, -0.00013871931833623122026),
            *(1.0103004648645343977, 4.8499064014085844221),
        ),
    ),
)


@operation
class ErfInv(SpecialFunction):
    """The x whose erf is the operand: infinite at -1 and 1, NaN outside."""

    name = "chlo.erf_inv"

    @staticmethod
    def formula(x: Term) -> Term:
        if x.dtype == F32:
            return xla_erf_inv(x)
        # 1 - x is exact where it is small, so that no digit of log(1 - x²) is lost near 1.
        return _erf_inv(x, -log((1.0 - x) * (1.0 + x)))


def xla_erf_inv(x: Term) -> Term:
    """erf_inv as XLA computes it, which rounds x² and so errs by up to 5e5 ULP near 1 in float64.

    What follows from random bits must err as XLA does to be equal to it.
    """
    return _erf_inv(x, -xla_log1p(x * -x))


def _erf_inv(x: Term, w: Term) -> Term:
    """erf_inv(x), given w = -log(1 - x²)."""
    pieces = _INVERSE32 if x.dtype == F32 else _INVERSE64
    # The first piece is a polynomial in w, the others in its root.
    root = sqrt(w)
    value = polynomial(root - pieces[-1][1], pieces[-1][2])
    for number in reversed(range(len(pieces) - 1)):
        end, middle, coefficients = pieces[number]
        value = where(w < end, polynomial((root if number else w) - middle, coefficients), value)
    return where(abs(x).eq(1.0), x * math.inf, value * x)


# --- the gamma function ------------------------------------------------------------------------------

_LANCZOS_G: Final = 7.0
_LANCZOS_BASE: Final = 0.99999999999980993227684700473478
_LANCZOS: Final = (
    *(676.520368121885098567009190444019, -1259.13921672240287047156078755283),
    *(771.3234287776530788486528258894, -176.61502916214059906584551354),
    *(12.507343278686904814458936853, -0.13857109526572011689554707),
    *(9.984369578019570859563e-6, 1.50563273514931155834e-7),
)


def _log_of_t(z: Term) -> Term:
    """log(z + g + 1/2), accurate for z close to 0."""
    return math.log(_LANCZOS_G + 0.5) + log1p(z / (_LANCZOS_G + 0.5))


@operation
class Lgamma(SpecialFunction):
    """log |gamma(x)|: infinite at 0, -1, -2 …"""

    name = "chlo.lgamma"

    @staticmethod
    def formula(x: Term) -> Term:
        reflected = x < 0.5
        z = where(reflected, -x, x - 1.0)
        series = x.constant(_LANCZOS_BASE)
        for index, coefficient in enumerate(_LANCZOS):
            series = series + coefficient / (z + float(index + 1))
        t, log_t = z + (_LANCZOS_G + 0.5), _log_of_t(z)
        value = 0.5 * math.log(2 * math.pi) + (z + 0.5 - t / log_t) * log_t + log(series)
        # gamma(x) gamma(1 - x) = pi / sin(pi x), and sin has period 2: the fraction of x is enough.
        fraction = abs(x) - floor(abs(x))
        denominator = log(sin(math.pi * where(fraction > 0.5, 1.0 - fraction, fraction)))
        mirrored = where(is_finite(denominator), math.log(math.pi) - denominator - value, -denominator)
        return where(abs(x).eq(math.inf), math.inf, where(reflected, mirrored, value))


@operation
class Digamma(SpecialFunction):
    """The derivative of log gamma(x): NaN at 0, -1, -2 …"""

    name = "chlo.digamma"

    @staticmethod
    def formula(x: Term) -> Term:
        reflected = x < 0.5
        z = where(reflected, -x, x - 1.0)
        numerator, denominator = x.constant(0.0), x.constant(_LANCZOS_BASE)
        for index, coefficient in enumerate(_LANCZOS):
            part = z + float(index + 1)
            numerator = numerator - coefficient / (part * part)
            denominator = denominator + coefficient / part
        t = z + (_LANCZOS_G + 0.5)
        value = _log_of_t(z) + numerator / denominator - _LANCZOS_G / t
        # digamma(1 - x) - digamma(x) = pi cot(pi x); the distance to the nearest integer is accurate.
        angle = math.pi * (x + abs(floor(x + 0.5)))
        mirrored = value - math.pi * cos(angle) / sin(angle)
        result = where(reflected, mirrored, value)
        return where((x <= 0.0) & x.eq(floor(x)), math.nan, result)


# --- Bessel functions --------------------------------------------------------------------------------

# Chebyshev coefficients, computed with 40 digits: of exp(-x) I0(x) and exp(-x) I1(x) / x in x / 4 - 1 for
# x in [0, 8], and of sqrt(x) times both functions in 16 / x - 1 beyond.
_I0_NEAR: Final = (
    *(0.6767952744094761, -0.3046826723431984, 0.17162090152220877, -0.09490109704804764),
    *(0.04930528423967071, -0.02373741480589947, 0.010546460394594998, -0.004324309995050576),
    *(0.0016394756169413357, -0.0005763755745385824, 0.00018850288509584165, -5.754195010082104e-05),
    *(1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06, -2.670793853940612e-07),
    *(6.046995022541919e-08, -1.300025009986248e-08, 2.6598237246823866e-09, -5.189795601635263e-10),
    *(9.675809035373237e-11, -1.726826291441556e-11, 2.95505266312964e-12, -4.856446783111929e-13),
    *(7.676185498604936e-14, -1.1685332877993451e-14, 1.715391285555133e-15, -2.431279846547955e-16),
    *(3.3307945188222384e-17, -4.4153416464793395e-18),
)
_I0_FAR: Final = (
    *(0.8044904110141088, 0.0033691164782556943, 6.889758346916825e-05, 2.8913705208347567e-06),
    *(2.0489185894690638e-07, 2.266668990498178e-08, 3.3962320257083865e-09, 4.94060238822497e-10),
    *(1.1889147107846439e-11, -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12),
    *(7.180124451383666e-13, 3.8527783827421426e-13, 1.54008621752141e-14, -4.150569347287222e-14),
    *(-9.554846698828307e-15, 3.8116806693526224e-15, 1.7725601330565263e-15, -3.425485619677219e-16),
    *(-2.8276239805165836e-16, 3.461222867697461e-17, 4.46562142029676e-17, -4.830504485944178e-18),
    *(-7.23318048787476e-18, 9.921475412173676e-19, 1.1936508908460063e-18),
)
_I1_NEAR: Final = (
    *(0.25258718644363365, -0.17641651835783406, 0.1026436586898471, -0.05294598120809499),
    *(0.024726449030626516, -0.010564084894626197, 0.004156422944312888, -0.0015135724506312532),
    *(0.0005122859561685758, -0.00016176081582589674, 4.781565107550054e-05, -1.3273163656039436e-05),
    *(3.4702513081376785e-06, -8.568720264695455e-07, 2.0032947535521353e-07, -4.445059128796328e-08),
    *(9.381537386495773e-09, -1.8872497517228294e-09, 3.625590281552117e-10, -6.663489723502027e-11),
    *(1.1736186298890901e-11, -1.9839743977649436e-12, 3.223793365945575e-13, -5.042185504727912e-14),
    *(7.600684294735408e-15, -1.1055969477353862e-15, 1.5536319577362005e-16, -2.111421214358166e-17),
    *(2.7779141127610464e-18, -3.541581772542136e-19),
)
_I1_FAR: Final = (
    *(0.7785762350182801, -0.009761097491361469, -0.00011058893876262371, -3.882564808877691e-06),
    *(-2.512236237870209e-07, -2.6314688468895196e-08, -3.835380385964237e-09, -5.589743462196584e-10),
    *(-1.8974958123505413e-11, 3.2526035830154884e-11, 1.4125807436613782e-11, 2.0356285441470896e-12),
    *(-7.198551776245908e-13, -4.0835511110921974e-13, -2.1015418427726643e-14, 4.272440016711951e-14),
    *(1.0420276984128802e-14, -3.8144030724370075e-15, -1.8803547755107825e-15, 3.3082023109209285e-16),
    *(2.96262899764595e-16, -3.209525921993424e-17, -4.650305368489358e-17, 4.414348323071704e-18),
    *(7.517296310842111e-18, -9.314178867326863e-19, -1.2421932751949152e-18),
)


def _chebyshev(x: Term, coefficients: Sequence[float]) -> Term:
    """c[0] / 2 + c[1] T1(x / 2) + c[2] T2(x / 2) + … by Clenshaw's rule."""
    least = 1e-9 if x.dtype == F32 else 0.0
    last, before, result = x.constant(0.0), x.constant(0.0), x.constant(0.0)
    for coefficient in reversed([each for each in coefficients if abs(each) > least]):
        last, before = before, result
        result = x * before - last + coefficient
    return 0.5 * (result - last)


def bessel_i0e(x: Term) -> Term:
    """exp(-|x|) I0(x), the modified Bessel function of order 0."""
    magnitude = abs(x)
    near = _chebyshev(0.5 * magnitude - 2.0, _I0_NEAR)
    far = _chebyshev(32.0 / magnitude - 2.0, _I0_FAR) / sqrt(magnitude)
    return where(magnitude <= 8.0, near, far)


@operation
class BesselI1e(SpecialFunction):
    """exp(-|x|) I1(x), the modified Bessel function of order 1."""

    name = "chlo.bessel_i1e"

    @staticmethod
    def formula(x: Term) -> Term:
        magnitude = abs(x)
        near = _chebyshev(0.5 * magnitude - 2.0, _I1_NEAR) * x
        far = _chebyshev(32.0 / magnitude - 2.0, _I1_FAR) / sqrt(magnitude)
        return where(magnitude <= 8.0, near, where(x < 0.0, -far, far))
