"""What tests know of each element-wise function: its errors, its exact values, its special ones.

A function of `xarr.lax` has one record here, by its name.  Its element types come from its op; bounds, draws, lists
of functions to try and rows of `docs/accuracy.md` are derived from both.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import mpmath
import numpy as np
import scipy.special

from tests.lax_values import COMPLEXES, FLOATS, dtype_of
from tests.support.op_record import InLoops, Record
from tests.support.operations import own_operations
from xarr.ir import ops
from xarr.ir.ops.special import SpecialFunction

Array = np.ndarray[Any, Any]
INF, NAN = math.inf, math.nan


Errors = tuple[float, float, int]


def _of_types(*errors: Errors) -> dict[str, Errors]:
    """The errors for float16, bfloat16, float32 and float64, and for complex64 and complex128 if there are six."""
    return dict(zip(FLOATS + COMPLEXES, errors, strict=False))


def _by_mpmath(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """In 80 bits, as two float64 added."""

    def one(x: float) -> np.longdouble:
        with mpmath.workprec(80):
            exact = function(mpmath.mpf(x))
            high = float(exact)
            return np.longdouble(high) + (np.longdouble(float(exact - high)) if np.isfinite(high) else 0)

    return lambda x: np.array([one(float(number)) for number in x], np.longdouble)


#: By the function of `xarr.lax`.
RECORDS: Final[dict[str, Record]] = {
    "abs": Record(
        beside_xla={"complex64": (1.60, 1.60, 3), "complex128": (1.45, 1.45, 3)}, keeps_subnormals=True
    ),
    "acos": Record(
        beside_xla=_of_types(
            (0.50, 1.08, 2),
            (0.50, 1.14, 2),
            (0.86, 1.56, 3),
            (0.51, 1.28, 3),
            (1.93, 2.01, 5),
            (1.63, 1.84, 3),
        ),
        in_loops=InLoops(1.12, 1.12),
        exact=np.arccos,
        special=([1.0, 2.0], [0.0, NAN]),
        in_annex_g=True,
    ),
    "acosh": Record(
        beside_xla=_of_types(
            (0.50, 1.78, 3),
            (0.50, 1.59, 3),
            (1.47, 3.25, 6),
            (1.51, 3.29, 5),
            (1.93, 2.01, 5),
            (1.63, 1.84, 3),
        ),
        reasons={"float32": "XLA: log(x + sqrt(x² - 1)) loses digits near 1"},
        in_loops=InLoops(2.41, 2.49, 3.0, 3.0),
        exact=np.arccosh,
        special=([1.0, 0.5, INF, -INF], [0.0, NAN, INF, NAN]),
        in_annex_g=True,
    ),
    "add": Record(keeps_subnormals=True),
    "asin": Record(
        beside_xla=_of_types(
            (0.50, 1.33, 2),
            (0.50, 1.41, 2),
            (0.81, 2.03, 3),
            (0.51, 1.40, 3),
            (2.83, 2.45, 6),
            (2.30, 2.61, 5),
        ),
        in_loops=InLoops(2.34, 2.15, 3.0, 3.0),
        exact=np.arcsin,
        special=([2.0, -0.0], [NAN, -0.0]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "asinh": Record(
        beside_xla=_of_types(
            (0.50, 1.32, 2),
            (0.50, 1.11, 2),
            (1.64, 2.71, 3),
            (1.58, 2.45, 3),
            (2.20, 2.75, 5),
            (2.41, 2.36, 5),
        ),
        in_loops=InLoops(1.67, 1.72),
        exact=np.arcsinh,
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "atan": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (0.82, 5.29, 8),
            (0.51, 2.76, 5),
            (4.29, 2.71, 6),
            (4.04, 3.06, 6),
        ),
        reasons={"float32": "XLA: its own polynomial"},
        in_loops=InLoops(1.61, 1.34),
        exact=np.arctan,
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "atan2": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (1.29, 1.29, 3), (0.51, 0.51, 3)),
        in_loops=InLoops(1.61, 1.43),
        exact=np.arctan2,
        keeps_subnormals=True,
    ),
    "atanh": Record(
        beside_xla=_of_types(
            (0.50, 1.23, 2),
            (0.50, 1.08, 2),
            (1.44, 2.64, 5),
            (1.60, 128.00, 192),
            (3.85, 3.30, 8),
            (4.15, 2.62, 8),
        ),
        reasons={
            "float64": "XLA: by way of its log1p",
            "complex64": "both: by way of logarithms near 0",
            "complex128": "both: by way of logarithms near 0",
        },
        in_loops=InLoops(1.95, 1.96, 2.5, 2.5),
        exact=np.arctanh,
        special=([1.0, -1.0, 2.0, -0.0], [INF, -INF, NAN, -0.0]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "bessel_i0e": Record(
        beside_xla=_of_types((0.50, 0.50, 2), (0.50, 0.50, 1), (6.03, 4.36, 12), (4.57, 4.28, 12)),
        reasons={
            "float32": "both: sums of Chebyshev polynomials",
            "float64": "both: sums of Chebyshev polynomials",
        },
    ),
    "bessel_i1e": Record(
        beside_xla=_of_types((0.50, 0.50, 2), (0.50, 0.50, 1), (8.42, 8.89, 14), (6.95, 4.94, 14)),
        reasons={
            "float32": "both: sums of Chebyshev polynomials",
            "float64": "both: sums of Chebyshev polynomials",
        },
    ),
    "cbrt": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (0.91, 0.91, 3), (3.12, 3.12, 8)),
        reasons={"float64": "the cbrt of the C library on both sides"},
        in_loops=InLoops(0.501, 0.501, 0.6, 0.6),
        exact=np.cbrt,
        special=([INF, -INF, -0.0, -8.0, 27.0], [INF, -INF, -0.0, -2.0, 3.0]),
        keeps_subnormals=True,
    ),
    "ceil": Record(keeps_subnormals=True),
    "cos": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (1.41, 0.56, 3),
            (0.51, 0.51, 3),
            (1.97, 2.94, 6),
            (2.09, 2.09, 3),
        ),
        in_loops=InLoops(1.44, 0.88),
        exact=np.cos,
        special=([INF, -0.0, NAN], [NAN, 1.0, NAN]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "cosh": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 2),
            (0.50, 0.50, 1),
            (1.16, 24.42, 36),
            (1.00, 494.00, 741),
            (2.12, 20.53, 31),
            (2.41, 21.03, 32),
        ),
        reasons={
            "float32": "XLA: exp(x + log ½) rounds its argument",
            "float64": "XLA: exp(x + log ½) rounds its argument",
            "complex64": "XLA: cancellation near the zeros at odd multiples of πi/2",
            "complex128": "XLA: cancellation near the zeros at odd multiples of πi/2",
        },
        in_loops=InLoops(1.45, 1.42),
        exact=np.cosh,
        in_annex_g=True,
    ),
    "digamma": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (15.66, 14.33, 12), (16.50, 16.50, 6)),
        reasons={
            "float32": "both: the reflection -π cot(πx) near the poles",
            "float64": "both: the reflection -π cot(πx) near the poles",
        },
        against_one=True,
    ),
    "div": Record(
        beside_xla={"complex64": (2.04, 1.65, 5), "complex128": (2.02, 1.90, 5)}, keeps_subnormals=True
    ),
    "eq": Record(keeps_subnormals=True),
    "erf": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (4.88, 5.15, 9), (2.54, 1.05, 5)),
        reasons={"float32": "both: a rational function, near its end at 3.8"},
        in_loops=InLoops(1.56, 1.21),
        exact=scipy.special.erf,
        exact_of_float64=_by_mpmath(mpmath.erf),
        special=([INF, -INF, -0.0, NAN], [1.0, -1.0, -0.0, NAN]),
    ),
    "erf_inv": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (64.74, 64.74, 3), (3.69, 497456.00, 32)),
        reasons={
            "float32": "both: log(1 - x²) rounds x² near ±1",
            "float64": "XLA: log(1 - x²) rounds x² near ±1, and by way of its log1p",
        },
    ),
    "erfc": Record(
        beside_xla=_of_types((0.50, 0.50, 1), (0.50, 0.50, 1), (61.15, 62.04, 18), (481.70, 484.70, 18)),
        reasons={
            "float32": "both: exp(-x²) rounds x²; 1 - erf(x) cancels near 1",
            "float64": "both: exp(-x²) rounds x²; 1 - erf(x) cancels near 1",
        },
        in_loops=InLoops(3.68, 2.94, 4.0, 4.0),
        exact=scipy.special.erfc,
        exact_of_float64=_by_mpmath(mpmath.erfc),
        special=([INF, -INF, 0.0, NAN], [0.0, 2.0, 1.0, NAN]),
    ),
    "exp": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (2.31, 0.96, 5),
            (0.50, 1.56, 3),
            (1.60, 1.60, 3),
            (1.84, 1.73, 3),
        ),
        in_loops=InLoops(0.98, 0.96),
        exact=np.exp,
        special=([INF, -INF, NAN, -0.0], [INF, 0.0, NAN, 1.0]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "expm1": Record(
        beside_xla=_of_types(
            (0.50, 2.11, 3),
            (0.50, 0.50, 1),
            (0.75, 4.80, 8),
            (0.76, 3.57, 6),
            (2.03, 4.41, 6),
            (1.99, 3.43, 5),
        ),
        reasons={
            "float32": "XLA: its own polynomial near 0",
            "float64": "XLA: its own polynomial near 0",
            "complex64": "XLA: by way of its real expm1",
        },
        in_loops=InLoops(1.4, 1.83),
        exact=np.expm1,
        special=([INF, -INF, -0.0, 0.0], [INF, -1.0, -0.0, 0.0]),
        keeps_subnormals=True,
    ),
    "floor": Record(keeps_subnormals=True),
    "ge": Record(keeps_subnormals=True),
    "gt": Record(keeps_subnormals=True),
    "integer_pow": Record(
        beside_xla={"complex64": (5.14, 5.14, 8), "complex128": (4.74, 4.74, 8)},
        reasons={
            "complex64": "both: each of up to four products rounds",
            "complex128": "both: each of up to four products rounds",
        },
    ),
    "is_finite": Record(keeps_subnormals=True),
    "le": Record(keeps_subnormals=True),
    "lgamma": Record(
        beside_xla=_of_types((0.50, 0.50, 2), (0.50, 0.50, 1), (25.75, 27.46, 24), (23.60, 29.20, 24)),
        reasons={
            "float32": "both: the reflection cancels between the poles",
            "float64": "both: the reflection cancels between the poles",
        },
        against_one=True,
    ),
    "log": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (3.38, 1.08, 5),
            (0.51, 0.51, 3),
            (1.31, 1.69, 5),
            (1.93, 52.12, 80),
        ),
        reasons={"complex128": "XLA: by way of its log1p, near the unit circle"},
        in_loops=InLoops(0.82, 0.78),
        exact=np.log,
        special=([0.0, -0.0, -1.0, INF, -INF], [-INF, -INF, NAN, INF, NAN]),
        keeps_subnormals=True,
        positive=True,
        in_annex_g=True,
    ),
    "log1p": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (0.77, 2.32, 3),
            (0.77, 127.00, 191),
            (3.14, 2.01, 6),
            (2.61, 94.63, 143),
        ),
        reasons={
            "float64": "XLA: its polynomial loses digits near -0.4",
            "complex128": "XLA: by way of its real log1p",
        },
        in_loops=InLoops(0.83, 0.79),
        exact=np.log1p,
        special=([-1.0, -2.0, -0.0, INF], [-INF, NAN, -0.0, INF]),
        keeps_subnormals=True,
    ),
    "logistic": Record(
        beside_xla=_of_types(
            (0.50, 1.94, 4),
            (0.50, 2.04, 4),
            (2.80, 2.32, 5),
            (1.86, 1.99, 5),
            (16.54, 16.54, 3),
            (15.19, 15.19, 5),
        ),
        reasons={
            "complex64": "both: 1 + exp(-x) cancels near the poles at odd multiples of πi",
            "complex128": "both: 1 + exp(-x) cancels near the poles at odd multiples of πi",
        },
        in_loops=InLoops(1.48, 1.46),
        exact=lambda x: 1 / (1 + np.exp(-x)),
        special=([INF, -INF, 0.0, NAN], [1.0, 0.0, 0.5, NAN]),
    ),
    "lt": Record(keeps_subnormals=True),
    "max": Record(keeps_subnormals=True),
    "min": Record(keeps_subnormals=True),
    "mul": Record(
        beside_xla={"complex64": (1.40, 1.26, 3), "complex128": (1.25, 0.98, 3)}, keeps_subnormals=True
    ),
    "ne": Record(keeps_subnormals=True),
    "neg": Record(keeps_subnormals=True),
    "pow": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (0.50, 0.50, 3),
            (0.50, 0.50, 3),
            (7.38, 7.17, 14),
            (8.47, 8.47, 14),
        ),
        reasons={
            "complex64": "both: exp(y log x) multiplies the error of the logarithm by y",
            "complex128": "both: exp(y log x) multiplies the error of the logarithm by y",
        },
        in_loops=InLoops(0.51, 0.8),
        exact=np.power,
    ),
    "reciprocal": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (1.92, 1.42, 3),
            (1.96, 1.41, 5),
        )
    ),
    "round": Record(special=([0.5, -0.5, 1.5, -0.25, INF], [1.0, -1.0, 2.0, -0.0, INF])),
    "rsqrt": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (1.46, 1.51, 3),
            (1.46, 1.46, 3),
            (2.44, 2.89, 6),
            (2.54, 2.57, 6),
        ),
        in_loops=InLoops(1.49, 1.49),
        exact=lambda x: 1 / np.sqrt(x),
        special=([0.0, -0.0, INF, -1.0], [INF, -INF, 0.0, NAN]),
        keeps_subnormals=True,
        positive=True,
    ),
    "sign": Record(
        beside_xla={"complex64": (2.18, 2.18, 3), "complex128": (2.39, 2.39, 3)},
        special=([0.0, -0.0, 3.0, -INF, NAN], [0.0, -0.0, 1.0, -1.0, NAN]),
        keeps_subnormals=True,
    ),
    "sin": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (1.34, 0.56, 3),
            (0.51, 0.51, 3),
            (2.08, 4.43, 6),
            (2.29, 3.19, 5),
        ),
        reasons={"complex64": "XLA: by way of its real expm1"},
        in_loops=InLoops(1.48, 0.84),
        exact=np.sin,
        special=([INF, -INF, -0.0, NAN], [NAN, NAN, -0.0, NAN]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "sinh": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 2),
            (0.50, 0.50, 1),
            (1.75, 24.42, 36),
            (1.66, 494.00, 741),
            (2.21, 65.34, 99),
            (1.93, 130.00, 195),
        ),
        reasons={
            "float32": "XLA: exp(x + log ½) rounds its argument",
            "float64": "XLA: exp(x + log ½) rounds its argument",
            "complex64": "XLA: exp(x) - exp(-x) cancels near 0",
            "complex128": "XLA: exp(x) - exp(-x) cancels near 0",
        },
        in_loops=InLoops(1.6, 1.58),
        exact=np.sinh,
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "sqrt": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (0.50, 0.50, 0),
            (1.13, 1.33, 3),
            (1.11, 1.21, 3),
        ),
        in_loops=InLoops(0.5, 0.5, 0.5, 0.5),
        exact=np.sqrt,
        keeps_subnormals=True,
        positive=True,
        in_annex_g=True,
    ),
    "square": Record(
        beside_xla={"complex64": (1.25, 1.44, 3), "complex128": (1.35, 1.40, 3)}, keeps_subnormals=True
    ),
    "sub": Record(keeps_subnormals=True),
    "tan": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (0.79, 0.79, 3),
            (0.53, 0.53, 3),
            (4.00, 4.65, 6),
            (4.16, 3.57, 8),
        ),
        reasons={
            "complex128": "both: a quotient of sines and cosines",
            "complex64": "both: a quotient of sines and cosines",
        },
        in_loops=InLoops(3.01, 2.33, 4.0, 3.0),
        exact=np.tan,
        special=([INF, -0.0, NAN], [NAN, -0.0, NAN]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
    "tanh": Record(
        beside_xla=_of_types(
            (0.50, 0.50, 1),
            (0.50, 0.50, 1),
            (1.35, 4.12, 6),
            (1.16, 6.92, 11),
            (3.97, 4.39, 6),
            (3.67, 3.93, 6),
        ),
        reasons={
            "float32": "XLA: its own rational function",
            "float64": "XLA: its own rational function, near the ends where it is cut off",
            "complex64": "both: a quotient of hyperbolic functions",
        },
        in_loops=InLoops(1.61, 1.95),
        exact=np.tanh,
        special=([INF, -INF, -0.0, 0.0], [1.0, -1.0, -0.0, 0.0]),
        keeps_subnormals=True,
        in_annex_g=True,
    ),
}

#: The ops of one operand and of two, without comparisons and without those that are made of others.
REGULAR: Final = [
    op
    for op in own_operations(ops.Elementwise)
    if op is not ops.Compare and not issubclass(op, SpecialFunction)
]


def record_of(op: Any) -> Record:
    """The record of the op's function."""
    return RECORDS.get(op.lax_name, Record())


def has_formula(op: Any) -> bool:
    """Whether loops and libraries compute the op by formulas of their own, each with its own errors."""
    bounds = record_of(op).in_loops
    return bounds is not None and not bounds.is_exact


def types_of(op: Any, among: tuple[str, ...]) -> tuple[str, ...]:
    """Those `among` the names of element types that the op accepts."""
    return tuple(name for name in among if dtype_of(name) in op.accepts)
