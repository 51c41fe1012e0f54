"""How far apart xarr and XLA may lie, and why: the one table of the tests and of `docs/accuracy.md`.

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

from tests.lax_values import COMPLEXES, FLOATS
from xarr.config import current as config

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
    place: str
    xarr: str
    xla: str
    reason: str
    where: Callable[..., HostArray]
    result: str | None = None


BOUNDS: Final = (
    Bound("abs", "complex64", 1.60, 1.60, 3),
    Bound("abs", "complex128", 1.45, 1.45, 3),
    Bound("acos", "float16", 0.50, 1.08, 2),
    Bound("acos", "bfloat16", 0.50, 1.14, 2),
    Bound("acos", "float32", 0.86, 1.56, 3),
    Bound("acos", "float64", 0.51, 1.28, 3),
    Bound("acos", "complex64", 1.93, 2.01, 5),
    Bound("acos", "complex128", 1.63, 1.84, 3),
    Bound("acosh", "float16", 0.50, 1.78, 3),
    Bound("acosh", "bfloat16", 0.50, 1.59, 3),
    Bound("acosh", "float32", 1.47, 3.25, 6),
    Bound("acosh", "float64", 1.51, 3.29, 5),
    Bound("acosh", "complex64", 1.93, 2.01, 5),
    Bound("acosh", "complex128", 1.63, 1.84, 3),
    Bound("asin", "float16", 0.50, 1.33, 2),
    Bound("asin", "bfloat16", 0.50, 1.41, 2),
    Bound("asin", "float32", 0.81, 2.03, 3),
    Bound("asin", "float64", 0.51, 1.40, 3),
    Bound("asin", "complex64", 2.83, 2.45, 6),
    Bound("asin", "complex128", 2.30, 2.61, 5),
    Bound("asinh", "float16", 0.50, 1.32, 2),
    Bound("asinh", "bfloat16", 0.50, 1.11, 2),
    Bound("asinh", "float32", 1.64, 2.71, 3),
    Bound("asinh", "float64", 1.58, 2.45, 3),
    Bound("asinh", "complex64", 2.20, 2.75, 5),
    Bound("asinh", "complex128", 2.41, 2.36, 5),
    Bound("atan", "float16", 0.50, 0.50, 1),
    Bound("atan", "bfloat16", 0.50, 0.50, 1),
    Bound("atan", "float32", 0.82, 5.29, 8),
    Bound("atan", "float64", 0.51, 2.76, 5),
    Bound("atan", "complex64", 4.29, 2.71, 6),
    Bound("atan", "complex128", 4.04, 3.06, 6),
    Bound("atan2", "float16", 0.50, 0.50, 1),
    Bound("atan2", "bfloat16", 0.50, 0.50, 1),
    Bound("atan2", "float32", 1.29, 1.29, 3),
    Bound("atan2", "float64", 0.51, 0.51, 3),
    Bound("atanh", "float16", 0.50, 1.23, 2),
    Bound("atanh", "bfloat16", 0.50, 1.08, 2),
    Bound("atanh", "float32", 1.44, 2.64, 5),
    Bound("atanh", "float64", 1.60, 128.0, 192),
    Bound("atanh", "complex64", 3.85, 3.30, 8),
    Bound("atanh", "complex128", 4.15, 2.62, 8),
    Bound("bessel_i0e", "float16", 0.50, 0.50, 2),
    Bound("bessel_i0e", "bfloat16", 0.50, 0.50, 1),
    Bound("bessel_i0e", "float32", 6.03, 4.36, 12),
    Bound("bessel_i0e", "float64", 4.57, 4.28, 12),
    Bound("bessel_i1e", "float16", 0.50, 0.50, 2),
    Bound("bessel_i1e", "bfloat16", 0.50, 0.50, 1),
    Bound("bessel_i1e", "float32", 8.42, 8.89, 14),
    Bound("bessel_i1e", "float64", 6.95, 4.94, 14),
    Bound("cbrt", "float16", 0.50, 0.50, 1),
    Bound("cbrt", "bfloat16", 0.50, 0.50, 1),
    Bound("cbrt", "float32", 0.91, 0.91, 3),
    Bound("cbrt", "float64", 3.12, 3.12, 8),
    Bound("cos", "float16", 0.50, 0.50, 1),
    Bound("cos", "bfloat16", 0.50, 0.50, 1),
    Bound("cos", "float32", 1.41, 0.56, 3),
    Bound("cos", "float64", 0.51, 0.51, 3),
    Bound("cos", "complex64", 1.97, 2.94, 6),
    Bound("cos", "complex128", 2.09, 2.09, 3),
    Bound("cosh", "float16", 0.50, 0.50, 2),
    Bound("cosh", "bfloat16", 0.50, 0.50, 1),
    Bound("cosh", "float32", 1.16, 24.42, 36),
    Bound("cosh", "float64", 1.00, 494.0, 741),
    Bound("cosh", "complex64", 2.12, 20.53, 31),
    Bound("cosh", "complex128", 2.41, 21.03, 32),
    Bound("digamma", "float16", 0.50, 0.50, 1),
    Bound("digamma", "bfloat16", 0.50, 0.50, 1),
    Bound("digamma", "float32", 15.66, 14.33, 12),
    Bound("digamma", "float64", 16.50, 16.50, 6),
    Bound("div", "complex64", 2.04, 1.65, 5),
    Bound("div", "complex128", 2.02, 1.90, 5),
    Bound("erf", "float16", 0.50, 0.50, 1),
    Bound("erf", "bfloat16", 0.50, 0.50, 1),
    Bound("erf", "float32", 4.88, 5.15, 9),
    Bound("erf", "float64", 2.54, 1.05, 5),
    Bound("erf_inv", "float16", 0.50, 0.50, 1),
    Bound("erf_inv", "bfloat16", 0.50, 0.50, 1),
    Bound("erf_inv", "float32", 64.74, 64.74, 3),
    Bound("erf_inv", "float64", 3.69, 497456.0, 32),
    Bound("erfc", "float16", 0.50, 0.50, 1),
    Bound("erfc", "bfloat16", 0.50, 0.50, 1),
    Bound("erfc", "float32", 61.15, 62.04, 18),
    Bound("erfc", "float64", 481.7, 484.7, 18),
    Bound("exp", "float16", 0.50, 0.50, 1),
    Bound("exp", "bfloat16", 0.50, 0.50, 1),
    Bound("exp", "float32", 2.31, 0.96, 5),
    Bound("exp", "float64", 0.50, 1.56, 3),
    Bound("exp", "complex64", 1.60, 1.60, 3),
    Bound("exp", "complex128", 1.84, 1.73, 3),
    Bound("expm1", "float16", 0.50, 2.11, 3),
    Bound("expm1", "bfloat16", 0.50, 0.50, 1),
    Bound("expm1", "float32", 0.75, 4.80, 8),
    Bound("expm1", "float64", 0.76, 3.57, 6),
    Bound("expm1", "complex64", 2.03, 4.41, 6),
    Bound("expm1", "complex128", 1.99, 3.43, 5),
    Bound("integer_pow", "complex64", 5.14, 5.14, 8),
    Bound("integer_pow", "complex128", 4.74, 4.74, 8),
    Bound("lgamma", "float16", 0.50, 0.50, 2),
    Bound("lgamma", "bfloat16", 0.50, 0.50, 1),
    Bound("lgamma", "float32", 25.75, 27.46, 24),
    Bound("lgamma", "float64", 23.60, 29.20, 24),
    Bound("log", "float16", 0.50, 0.50, 1),
    Bound("log", "bfloat16", 0.50, 0.50, 1),
    Bound("log", "float32", 3.38, 1.08, 5),
    Bound("log", "float64", 0.51, 0.51, 3),
    Bound("log", "complex64", 1.31, 1.69, 5),
    Bound("log", "complex128", 1.93, 52.12, 80),
    Bound("log1p", "float16", 0.50, 0.50, 1),
    Bound("log1p", "bfloat16", 0.50, 0.50, 1),
    Bound("log1p", "float32", 0.77, 2.32, 3),
    Bound("log1p", "float64", 0.77, 127.0, 191),
    Bound("log1p", "complex64", 3.14, 2.01, 6),
    Bound("log1p", "complex128", 2.61, 94.63, 143),
    Bound("logistic", "float16", 0.50, 1.94, 4),
    Bound("logistic", "bfloat16", 0.50, 2.04, 4),
    Bound("logistic", "float32", 2.80, 2.32, 5),
    Bound("logistic", "float64", 1.86, 1.99, 5),
    Bound("logistic", "complex64", 16.54, 16.54, 3),
    Bound("logistic", "complex128", 15.19, 15.19, 5),
    Bound("mul", "complex64", 1.40, 1.26, 3),
    Bound("mul", "complex128", 1.25, 0.98, 3),
    Bound("pow", "float16", 0.50, 0.50, 1),
    Bound("pow", "bfloat16", 0.50, 0.50, 1),
    Bound("pow", "float32", 0.50, 0.50, 3),
    Bound("pow", "float64", 0.50, 0.50, 3),
    Bound("pow", "complex64", 7.38, 7.17, 14),
    Bound("pow", "complex128", 8.47, 8.47, 14),
    Bound("reciprocal", "float16", 0.50, 0.50, 0),
    Bound("reciprocal", "bfloat16", 0.50, 0.50, 0),
    Bound("reciprocal", "float32", 0.50, 0.50, 0),
    Bound("reciprocal", "float64", 0.50, 0.50, 0),
    Bound("reciprocal", "complex64", 1.92, 1.42, 3),
    Bound("reciprocal", "complex128", 1.96, 1.41, 5),
    Bound("rsqrt", "float16", 0.50, 0.50, 1),
    Bound("rsqrt", "bfloat16", 0.50, 0.50, 1),
    Bound("rsqrt", "float32", 1.46, 1.51, 3),
    Bound("rsqrt", "float64", 1.46, 1.46, 3),
    Bound("rsqrt", "complex64", 2.44, 2.89, 6),
    Bound("rsqrt", "complex128", 2.54, 2.57, 6),
    Bound("sign", "complex64", 2.18, 2.18, 3),
    Bound("sign", "complex128", 2.39, 2.39, 3),
    Bound("sin", "float16", 0.50, 0.50, 1),
    Bound("sin", "bfloat16", 0.50, 0.50, 1),
    Bound("sin", "float32", 1.34, 0.56, 3),
    Bound("sin", "float64", 0.51, 0.51, 3),
    Bound("sin", "complex64", 2.08, 4.43, 6),
    Bound("sin", "complex128", 2.29, 3.19, 5),
    Bound("sinh", "float16", 0.50, 0.50, 2),
    Bound("sinh", "bfloat16", 0.50, 0.50, 1),
    Bound("sinh", "float32", 1.75, 24.42, 36),
    Bound("sinh", "float64", 1.66, 494.0, 741),
    Bound("sinh", "complex64", 2.21, 65.34, 99),
    Bound("sinh", "complex128", 1.93, 130.0, 195),
    Bound("sqrt", "float16", 0.50, 0.50, 0),
    Bound("sqrt", "bfloat16", 0.50, 0.50, 0),
    Bound("sqrt", "float32", 0.50, 0.50, 0),
    Bound("sqrt", "float64", 0.50, 0.50, 0),
    Bound("sqrt", "complex64", 1.13, 1.33, 3),
    Bound("sqrt", "complex128", 1.11, 1.21, 3),
    Bound("square", "complex64", 1.25, 1.44, 3),
    Bound("square", "complex128", 1.35, 1.40, 3),
    Bound("tan", "float16", 0.50, 0.50, 1),
    Bound("tan", "bfloat16", 0.50, 0.50, 1),
    Bound("tan", "float32", 0.79, 0.79, 3),
    Bound("tan", "float64", 0.53, 0.53, 3),
    Bound("tan", "complex64", 4.00, 4.65, 6),
    Bound("tan", "complex128", 4.16, 3.57, 8),
    Bound("tanh", "float16", 0.50, 0.50, 1),
    Bound("tanh", "bfloat16", 0.50, 0.50, 1),
    Bound("tanh", "float32", 1.35, 4.12, 6),
    Bound("tanh", "float64", 1.16, 6.92, 11),
    Bound("tanh", "complex64", 3.97, 4.39, 6),
    Bound("tanh", "complex128", 3.67, 3.93, 6),
)

#: Why a bound is large, for all element types of a function or one of them.
REASONS: Final[dict[tuple[str, str], str]] = {
    ("acosh", "float32"): "XLA: log(x + sqrt(x² - 1)) loses digits near 1",
    ("atan", "float32"): "XLA: its own polynomial",
    ("atanh", "float64"): "XLA: by way of its log1p",
    ("atanh", "complex64"): "both: by way of logarithms near 0",
    ("atanh", "complex128"): "both: by way of logarithms near 0",
    ("tan", "complex128"): "both: a quotient of sines and cosines",
    ("bessel_i0e", "float32"): "both: sums of Chebyshev polynomials",
    ("bessel_i0e", "float64"): "both: sums of Chebyshev polynomials",
    ("bessel_i1e", "float32"): "both: sums of Chebyshev polynomials",
    ("bessel_i1e", "float64"): "both: sums of Chebyshev polynomials",
    ("cbrt", "float64"): "the cbrt of the C library on both sides",
    ("cosh", "float32"): "XLA: exp(x + log ½) rounds its argument",
    ("cosh", "float64"): "XLA: exp(x + log ½) rounds its argument",
    ("cosh", "complex64"): "XLA: cancellation near the zeros at odd multiples of πi/2",
    ("cosh", "complex128"): "XLA: cancellation near the zeros at odd multiples of πi/2",
    ("digamma", "float32"): "both: the reflection -π cot(πx) near the poles",
    ("digamma", "float64"): "both: the reflection -π cot(πx) near the poles",
    ("erf", "float32"): "both: a rational function, near its end at 3.8",
    ("erf_inv", "float32"): "both: log(1 - x²) rounds x² near ±1",
    ("erf_inv", "float64"): "XLA: log(1 - x²) rounds x² near ±1, and by way of its log1p",
    ("erfc", "float32"): "both: exp(-x²) rounds x²; 1 - erf(x) cancels near 1",
    ("erfc", "float64"): "both: exp(-x²) rounds x²; 1 - erf(x) cancels near 1",
    ("expm1", "float32"): "XLA: its own polynomial near 0",
    ("expm1", "float64"): "XLA: its own polynomial near 0",
    ("expm1", "complex64"): "XLA: by way of its real expm1",
    ("lgamma", "float32"): "both: the reflection cancels between the poles",
    ("lgamma", "float64"): "both: the reflection cancels between the poles",
    ("log", "complex128"): "XLA: by way of its log1p, near the unit circle",
    ("log1p", "float64"): "XLA: its polynomial loses digits near -0.4",
    ("log1p", "complex128"): "XLA: by way of its real log1p",
    ("logistic", "complex64"): "both: 1 + exp(-x) cancels near the poles at odd multiples of πi",
    ("logistic", "complex128"): "both: 1 + exp(-x) cancels near the poles at odd multiples of πi",
    ("pow", "complex64"): "both: exp(y log x) multiplies the error of the logarithm by y",
    ("pow", "complex128"): "both: exp(y log x) multiplies the error of the logarithm by y",
    ("sin", "complex64"): "XLA: by way of its real expm1",
    ("sinh", "float32"): "XLA: exp(x + log ½) rounds its argument",
    ("sinh", "float64"): "XLA: exp(x + log ½) rounds its argument",
    ("sinh", "complex64"): "XLA: exp(x) - exp(-x) cancels near 0",
    ("sinh", "complex128"): "XLA: exp(x) - exp(-x) cancels near 0",
    ("tan", "complex64"): "both: a quotient of sines and cosines",
    ("tanh", "float32"): "XLA: its own rational function",
    ("tanh", "float64"): "XLA: its own rational function, near the ends where it is cut off",
    ("tanh", "complex64"): "both: a quotient of hyperbolic functions",
    ("integer_pow", "complex64"): "both: each of up to four products rounds",
    ("integer_pow", "complex128"): "both: each of up to four products rounds",
}

#: The functions whose errors are measured in units in the last place of the larger of the result and 1.
AGAINST_ONE: Final = ("digamma", "lgamma")

#: The functions whose special values C99 lists in Annex G.
ANNEX_G: Final = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "log", "sin", "sinh", "sqrt"),
    *("tan", "tanh"),
)


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
        "0 in its place",
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
    """How many ULP apart xarr and XLA may be; 0 means the same bits."""
    if config.fusion == "compiled" and (function, dtype) in OWN_FORMULA:
        return OWN_FORMULA[function, dtype]
    return _TESTED.get((function, dtype), 0)


def differences(function: str, dtype: str, result: str) -> list[Difference]:
    """The stated differences of a function from one element type to another, extremes aside."""
    found = [one for one in DIFFERENCES if function in one.functions and dtype in one.dtypes]
    return [one for one in found if one.result in (None, result)]


#: Where NumPy follows XLA's inexact formula, and compiled loops a better one: XLA's whole error counts.
OWN_FORMULA: Final = {("erfc", "float32"): 66, ("erfc", "float64"): 489}

_TESTED: Final = {(row.function, row.dtype): row.tested for row in BOUNDS}


@dataclass(frozen=True)
class Apart:
    """How far numbers of `xarr.random` and `jax.random` may lie apart, in ULP of the larger of a number and 1.

    found: the largest distance among 120 to 15,000 numbers of float32 and as many of float64.
    """

    function: str
    found: float
    tested: int
    reason: str


_GAMMA = "the cube of 1 and a multiple of a normal number, times d"
#: Distributions whose numbers differ by more than 2 ULP, or may; `tests/test_random_distributions.py` holds them.
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
