"""How far apart xarr and XLA may lie, and why; the numbers stand in `tests/elementwise_ops.py`.

What is not listed must agree to the bit: integers, bools, comparisons, conversions, data movement, and the
float operations that IEEE 754 defines exactly (add, sub, mul, div, rem, sqrt, floor, ceil, round, …).

Errors were measured once against a more exact computation (every value of 16-bit types; 80,000 of float32
and float64 against the next longer type; complex numbers against mpmath with 60 digits), in units in the
last place of the exact result, results near or below the smallest normal number left aside. They are those
of NumPy 2.4 with AVX2 and of jaxlib 0.10.2, both on glibc 2.36; other processors and C libraries differ a
little, so the bounds leave room. Errors of complex results are measured against the larger of their two
parts. The special functions were measured against mpmath with 33 digits in all types; errors of digamma and
lgamma, whose terms cancel near their zeros, against the larger of the result and 1.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from tests.elementwise_ops import RECORDS
from tests.lax_values import COMPLEXES, FLOATS
from xarr.base.configuration import current as config

HostArray = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Bound:
    """The largest measured errors of both sides, and how many ULP apart the tests let them be."""

    function: str
    dtype: str
    xarr: float
    xla: float
    tested: int


@dataclass(frozen=True)
class Difference:
    """Where XLA is not followed: `where` marks the elements, given the operands."""

    functions: tuple[str, ...]
    dtypes: tuple[str, ...]
    condition: str
    xarr: str
    xla: str
    reason: str
    where: Callable[..., HostArray]
    result: str | None = None


BOUNDS: Final = tuple(
    Bound(function, dtype, *errors)
    for function, record in RECORDS.items()
    for dtype, errors in record.beside_xla.items()
)

#: Why a bound is large, by function and element type.
REASONS: Final = {
    (function, dtype): reason
    for function, record in RECORDS.items()
    for dtype, reason in record.reasons.items()
}

#: The functions whose errors are measured in units in the last place of the larger of the result and 1.
AGAINST_ONE: Final = tuple(function for function, record in RECORDS.items() if record.against_one)

#: The functions whose special values C99 lists in Annex G.
ANNEX_G: Final = tuple(function for function, record in RECORDS.items() if record.in_annex_g)


def _edge(x: HostArray) -> HostArray:
    return ~np.isfinite(x) | (x.real == 0) | (x.imag == 0)


def _nan_in_either(x: HostArray, y: HostArray) -> HostArray:
    return np.asarray(np.isnan(x) | np.isnan(y))


DIFFERENCES: Final = (
    Difference(
        ("logistic",),
        ("float16",),
        "x < -11.08",
        "the small number exp(x)",
        "0",
        "XLA computes 1 / (1 + exp(-x)), where exp(-x) overflows",
        lambda x: (x < -11) & np.isfinite(x),
    ),
    Difference(
        ("erf_inv",),
        ("float64",),
        "0.99 < \\|x\\| < 1",
        "exact to 4 ULP",
        "up to 5e5 ULP away",
        "XLA rounds x² in log(1 - x²); what `xarr.random` draws errs as XLA does, to equal it",
        lambda x: (np.abs(x) > 0.99) & (np.abs(x) < 1),
    ),
    Difference(
        ("pow",),
        FLOATS,
        "signalling NaN to the power 0",
        "NaN or 1",
        "1",
        "IEEE 754 leaves it to the C library",
        lambda x, y: np.isnan(x) & (y == 0),
    ),
    Difference(
        ANNEX_G,
        COMPLEXES,
        "a part is infinite, NaN or ±0",
        "as C99, Annex G, wants it",
        "often NaN or another sign of zero",
        "C99 defines these values, and XLA's formulas run into 0 · inf and inf - inf",
        _edge,
    ),
    Difference(
        ("convert_element_type",),
        COMPLEXES,
        "to bool, real part 0, imaginary part not",
        "True",
        "False",
        "C99 and NumPy compare the number with 0; XLA drops the imaginary part first",
        lambda x, *_: (x.real == 0) & (x.imag != 0),
        "bool",
    ),
    Difference(
        ("abs",),
        COMPLEXES,
        "one part infinite, the other NaN",
        "inf",
        "NaN",
        "hypot(inf, NaN) is inf in C99",
        lambda x: np.isinf(x) & np.isnan(x),
    ),
    Difference(
        ("expm1",),
        COMPLEXES,
        "imaginary part ±0",
        "keeps its sign",
        "0",
        "expm1 of a real number is real, conjugate numbers have conjugate results",
        lambda x: x.imag == 0,
    ),
    Difference(
        ("log1p",),
        COMPLEXES,
        "one part infinite, the other NaN",
        "inf + NaN i",
        "NaN + NaN i",
        "as log of C99, Annex G.6.3.2",
        lambda x: np.isinf(x) & np.isnan(x),
    ),
    Difference(
        ("rsqrt",),
        COMPLEXES,
        "on the negative real axis, and real part -inf",
        "real part 0",
        "-0, or 1e-17 beside 1",
        "the root has a real part of +0 there, and so has its inverse",
        lambda x: ((x.imag == 0) & (x.real < 0)) | (x.real == -np.inf),
    ),
    Difference(
        ("logistic",),
        COMPLEXES,
        "real part infinite, imaginary part not finite",
        "1 or 0",
        "NaN + NaN i",
        "exp(-x) is then infinite or 0 whatever the angle",
        lambda x: np.isinf(x.real) & ~np.isfinite(x.imag),
    ),
    Difference(
        ("max", "min"),
        COMPLEXES,
        "a part of either is NaN",
        "the operand with the NaN",
        "often the other operand",
        "NaN propagates through max and min of floats, so also here",
        _nan_in_either,
    ),
    Difference(
        ("pow",),
        COMPLEXES,
        "zero base, a part of either not finite, or a real operand",
        "as NumPy",
        "often NaN, or a tiny imaginary part",
        "C99 defines no special values of cpow",
        lambda x, y: ~np.isfinite(x) | ~np.isfinite(y) | (x.imag == 0) | (y.imag == 0),
    ),
)


def _overflow_of_exp(part: HostArray) -> HostArray:
    """Where exp of a part is close to overflow, or beyond."""
    return np.abs(part) > np.log(np.finfo(part.dtype).max) - 1


def _below_eps(part: HostArray) -> HostArray:
    return np.abs(part) < np.finfo(part.dtype).eps


def _overflow_of_abs(x: HostArray) -> HostArray:
    return np.isfinite(x) & np.isinf(np.abs(x))


def _near_pole_of_tan(part: HostArray, other: HostArray) -> HostArray:
    return (np.abs(np.abs(part) - np.pi / 2) < 1e-6) & (np.abs(other) < 1e-6)


#: Where XLA loses the result of a complex function of huge, tiny or nearly singular operands.
EXTREMES: Final = (
    Difference(
        ("cos", "sin"),
        COMPLEXES,
        "exp(\\|imaginary part\\|) close to overflow",
        "exact to 8 ULP",
        "infinite, half a unit of the exponent too early",
        "cosh y is exp(y) / 2, which is finite a little longer than exp(y)",
        lambda x: _overflow_of_exp(x.imag),
    ),
    Difference(
        ("cosh", "sinh"),
        COMPLEXES,
        "exp(\\|real part\\|) close to overflow",
        "exact to 8 ULP",
        "3,000 ULP away",
        "XLA takes exp(x + log ½), which rounds its argument",
        lambda x: _overflow_of_exp(x.real),
    ),
    Difference(
        ("cosh", "sinh"),
        COMPLEXES,
        "\\|real part\\| below the spacing at 1",
        "the product with sinh x = x",
        "0 instead",
        "exp(x) - exp(-x) is 0 there",
        lambda x: _below_eps(x.real),
    ),
    Difference(
        ("expm1",),
        COMPLEXES,
        "exp(real part) close to overflow, or beyond",
        "infinite where the part is",
        "infinite too early, or NaN beside π/2",
        "exp(x) (cos y + i sin y) is finite in a part a little longer than exp(x)",
        lambda x: _overflow_of_exp(x.real),
    ),
    Difference(
        ("atan", "atanh"),
        COMPLEXES,
        "closer to a pole than the spacing at 1",
        "exact to 8 ULP",
        "infinite",
        "XLA squares the distance, which underflows",
        lambda x: (_below_eps(x.real) & (np.abs(x.imag) == 1)) | (_below_eps(x.imag) & (np.abs(x.real) == 1)),
    ),
    Difference(
        ("log1p",),
        COMPLEXES,
        "-1 + y i with small y",
        "log \\|y\\|",
        "-inf",
        "XLA squares y, which underflows",
        lambda x: (x.real == -1) & _below_eps(x.imag),
    ),
    Difference(
        ("sign",),
        COMPLEXES,
        "\\|x\\| overflows",
        "x / \\|x\\|",
        "0",
        "XLA divides by infinity",
        _overflow_of_abs,
    ),
    Difference(
        ("tan", "tanh"),
        COMPLEXES,
        "within 1e-6 of a pole",
        "exact to 8 ULP",
        "up to 20 % away",
        "XLA's denominator cancels",
        lambda x: _near_pole_of_tan(x.real, x.imag) | _near_pole_of_tan(x.imag, x.real),
    ),
)


def bound_of(function: str, dtype: str) -> int:
    """The distance in ULP that xarr and XLA may have; 0 means the same bits."""
    if config.fusion == "compiled" and (function, dtype) in OWN_FORMULA:
        return OWN_FORMULA[function, dtype]
    return _TESTED.get((function, dtype), 0)


def differences(function: str, dtype: str, result: str) -> list[Difference]:
    """The stated differences of a function from one element type to another, extremes aside."""
    rows = [one for one in DIFFERENCES if function in one.functions and dtype in one.dtypes]
    return [one for one in rows if one.result in (None, result)]


#: Where NumPy follows XLA's inexact formula, and compiled loops a better one: XLA's whole error counts.
OWN_FORMULA: Final = {("erfc", "float32"): 66, ("erfc", "float64"): 489}

_TESTED: Final = {(row.function, row.dtype): row.tested for row in BOUNDS}


@dataclass(frozen=True)
class Apart:
    """The distance that numbers of `xarr.random` and `jax.random` may have, in ULP of the larger of a number and 1.

    largest: the largest distance among 120 to 15,000 numbers of float32 and as many of float64.
    """

    function: str
    largest: float
    tested: int
    reason: str


_GAMMA = "the cube of 1 and a multiple of a normal number, times d"
#: Distributions whose numbers differ by more than 2 ULP, or may; `tests/random/test_distributions.py` holds them.
APART = [
    Apart("gamma", 7, 8, _GAMMA),
    Apart("loggamma", 6, 8, "as `gamma`"),
    Apart("beta", 2, 4, "a quotient of two of `loggamma`"),
    Apart("dirichlet", 1, 4, "quotients of `loggamma`"),
    Apart("chisquare", 9, 16, "twice a number of `gamma`"),
    Apart("f", 7, 16, "a quotient of two of `chisquare`"),
    Apart("t", 4, 8, "a normal number by the root of one of `gamma`"),
    Apart("generalized_normal", 2, 4, "a power of a number of `gamma`"),
    Apart(
        "ball",
        19,
        32,
        "in float64: a sum of powers of `generalized_normal` to a power; not looked into further",
    ),
    Apart("multivariate_normal", 2, 16, "a Cholesky factor and a product, whose sums have another order"),
    Apart("maxwell", 3, 4, "the root of a sum of squares"),
    Apart("double_sided_maxwell", 3, 8, "as `maxwell`, times a scale"),
]
