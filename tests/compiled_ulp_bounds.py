"""How far the functions of compiled loops may lie from the exact results: the one table of their tests.

Errors in units in the last place of the exact result, measured on every 67th float32 (64 million values)
against float64, and on some 10**6 float64 against numbers of 64 bits or mpmath; subnormal results in units of
the smallest number.  `tested` leaves room for values that were not tried.  No instruction depends on the
machine, so the errors do not either.
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
    Bound("chlo.acos", 1.12, 1.12),
    Bound("chlo.acosh", 2.41, 2.49, 3.0, 3.0),
    Bound("chlo.asin", 2.34, 2.15, 3.0, 3.0),
    Bound("chlo.asinh", 1.67, 1.72),
    Bound("chlo.atan", 1.61, 1.34),
    Bound("chlo.atanh", 1.95, 1.96, 2.5, 2.5),
    Bound("chlo.cosh", 1.45, 1.42),
    Bound("chlo.erf", 1.56, 1.21),
    Bound("chlo.erfc", 3.68, 2.94, 4.0, 4.0),
    Bound("chlo.sinh", 1.60, 1.58),
    Bound("stablehlo.atan2", 1.61, 1.43),
    Bound("stablehlo.cbrt", 0.501, 0.501, 0.6, 0.6),
    Bound("stablehlo.cosine", 1.44, 0.88),
    Bound("stablehlo.exponential", 0.98, 0.96),
    Bound("stablehlo.exponential_minus_one", 1.40, 1.83),
    Bound("stablehlo.log", 0.82, 0.78),
    Bound("stablehlo.log_plus_one", 0.83, 0.79),
    Bound("stablehlo.logistic", 1.48, 1.46),
    Bound("stablehlo.power", 0.51, 0.80),
    Bound("stablehlo.rsqrt", 1.49, 1.49),
    Bound("stablehlo.sine", 1.48, 0.84),
    Bound("stablehlo.sqrt", 0.5, 0.5, 0.5, 0.5),
    Bound("stablehlo.tan", 3.01, 2.33, 4.0, 3.0),
    Bound("stablehlo.tanh", 1.61, 1.95),
)
