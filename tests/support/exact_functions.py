"""The functions that compiled loops compute, in a longer type or by mpmath."""

from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import scipy.special

Array = np.ndarray[Any, Any]

EXACT: dict[str, Callable[..., Array]] = {
    "chlo.acos": np.arccos,
    "chlo.acosh": np.arccosh,
    "chlo.asin": np.arcsin,
    "chlo.asinh": np.arcsinh,
    "chlo.atan": np.arctan,
    "chlo.atanh": np.arctanh,
    "chlo.cosh": np.cosh,
    "chlo.erf": scipy.special.erf,
    "chlo.erfc": scipy.special.erfc,
    "chlo.sinh": np.sinh,
    "stablehlo.atan2": np.arctan2,
    "stablehlo.cbrt": np.cbrt,
    "stablehlo.cosine": np.cos,
    "stablehlo.exponential": np.exp,
    "stablehlo.exponential_minus_one": np.expm1,
    "stablehlo.log": np.log,
    "stablehlo.log_plus_one": np.log1p,
    "stablehlo.logistic": lambda x: 1 / (1 + np.exp(-x)),
    "stablehlo.power": np.power,
    "stablehlo.rsqrt": lambda x: 1 / np.sqrt(x),
    "stablehlo.sine": np.sin,
    "stablehlo.sqrt": np.sqrt,
    "stablehlo.tan": np.tan,
    "stablehlo.tanh": np.tanh,
}


def _by_mpmath(function: Callable[[Any], Any]) -> Callable[[Array], Array]:
    """In 80 bits, as two float64 added."""

    def one(x: float) -> np.longdouble:
        with mpmath.workprec(80):
            exact = function(mpmath.mpf(x))
            high = float(exact)
            return np.longdouble(high) + (np.longdouble(float(exact - high)) if np.isfinite(high) else 0)

    return lambda x: np.array([one(float(number)) for number in x], np.longdouble)


EXACT_BY_MPMATH = {"chlo.erf": _by_mpmath(mpmath.erf), "chlo.erfc": _by_mpmath(mpmath.erfc)}
