"""How far the functions of compiled loops may lie from the exact results: the one table of their tests.

Errors in units in the last place of the exact result, measured on some 10**6 values against float64 for
float32, and against numbers of 64 bits or mpmath for float64; subnormal results in units of the smallest
number.  `tested` leaves room for values that were not tried.  No instruction depends on the machine, so the
errors do not either.
"""

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Bound:
    """The largest measured errors and the bounds that the tests hold them to."""

    function: str
    float32: float
    float64: float
    tested32: float = 2.0
    tested64: float = 2.0


BOUNDS: Final = (
    Bound("chlo.acos", 1.12, 1.11),
    Bound("chlo.acosh", 2.41, 2.49, 3.0, 3.0),
    Bound("chlo.asin", 2.31, 2.13, 3.0, 3.0),
    Bound("chlo.asinh", 1.63, 1.60),
    Bound("chlo.atan", 1.61, 1.29),
    Bound("chlo.atanh", 1.86, 1.75, 2.5, 2.5),
    Bound("chlo.cosh", 1.45, 1.42),
    Bound("chlo.erf", 1.04, 0.89),
    Bound("chlo.erfc", 3.34, 2.94, 4.0, 4.0),
    Bound("chlo.sinh", 1.55, 1.58),
    Bound("stablehlo.atan2", 1.61, 1.43),
    Bound("stablehlo.cbrt", 0.501, 0.501, 0.6, 0.6),
    Bound("stablehlo.cosine", 1.41, 0.87),
    Bound("stablehlo.exponential", 0.96, 0.96),
    Bound("stablehlo.exponential_minus_one", 1.29, 1.81),
    Bound("stablehlo.log", 0.78, 0.78),
    Bound("stablehlo.log_plus_one", 0.78, 0.77),
    Bound("stablehlo.logistic", 1.44, 1.46),
    Bound("stablehlo.power", 0.51, 0.80),
    Bound("stablehlo.rsqrt", 1.49, 1.49),
    Bound("stablehlo.sine", 1.42, 0.83),
    Bound("stablehlo.sqrt", 0.5, 0.5, 0.5, 0.5),
    Bound("stablehlo.tan", 2.96, 2.15, 4.0, 3.0),
    Bound("stablehlo.tanh", 1.61, 1.90),
)
