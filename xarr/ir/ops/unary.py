"""Element-wise operations of one operand: x -> f(x), of floats and complex numbers but where another is said."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, NUMBER, PREDICATE, SIGNED, real_part_of
from xarr.ir.op import INSTRUCTION, operation
from xarr.ir.ops.elementwise import Unary

__all__ = [
    "Abs",
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "Cbrt",
    "Ceil",
    "Cosh",
    "Cosine",
    "CountLeadingZeros",
    "Exponential",
    "ExponentialMinusOne",
    "Floor",
    "Imag",
    "IsFinite",
    "Log",
    "LogPlusOne",
    "Negate",
    "Not",
    "Popcnt",
    "Real",
    "RoundNearestAfz",
    "RoundNearestEven",
    "Sine",
    "Sinh",
    "Sqrt",
    "Tan",
    "Tanh",
]


@operation
class Abs(Unary):
    """|x|; the magnitude, a real, for complex x.  The least integer of a signed type stays itself."""

    name = "stablehlo.abs"
    accepts = SIGNED | FLOAT | COMPLEX
    numpy_name = "abs"
    cost = INSTRUCTION

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class Cbrt(Unary):
    """Real cube root, of negative x too."""

    name = "stablehlo.cbrt"
    accepts = FLOAT
    numpy_name = "cbrt"


@operation
class Ceil(Unary):
    """The least integer not below x."""

    name = "stablehlo.ceil"
    accepts = FLOAT
    numpy_name = "ceil"
    cost = INSTRUCTION


@operation
class CountLeadingZeros(Unary):
    """Number of zero bits above the highest set bit; the width of the type for 0."""

    name = "stablehlo.count_leading_zeros"
    lax_name = "clz"
    accepts = INTEGER
    counts_bits = True


@operation
class Cosine(Unary):
    """cos x, x in radians."""

    name = "stablehlo.cosine"
    lax_name = "cos"
    numpy_name = "cos"


@operation
class Exponential(Unary):
    """e to the power x."""

    name = "stablehlo.exponential"
    lax_name = "exp"
    numpy_name = "exp"


@operation
class ExponentialMinusOne(Unary):
    """exp(x) - 1, accurate near 0."""

    name = "stablehlo.exponential_minus_one"
    lax_name = "expm1"
    numpy_name = "expm1"


@operation
class Floor(Unary):
    """The greatest integer not above x."""

    name = "stablehlo.floor"
    accepts = FLOAT
    numpy_name = "floor"
    cost = INSTRUCTION


@operation
class Imag(Unary):
    """Imaginary part; 0 for a real x."""

    name = "stablehlo.imag"

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class IsFinite(Unary):
    """Whether x is neither infinite nor NaN."""

    name = "stablehlo.is_finite"
    accepts = FLOAT
    numpy_name = "isfinite"
    cost = INSTRUCTION

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return PREDICATE


@operation
class Log(Unary):
    """Natural logarithm; -inf at 0, NaN below for reals."""

    name = "stablehlo.log"
    numpy_name = "log"


@operation
class LogPlusOne(Unary):
    """log(1 + x), accurate near 0."""

    name = "stablehlo.log_plus_one"
    lax_name = "log1p"
    numpy_name = "log1p"


@operation
class Negate(Unary):
    """-x; wraps for integers, unsigned included."""

    name = "stablehlo.negate"
    lax_name = "neg"
    accepts = NUMBER
    numpy_name = "negative"
    cost = INSTRUCTION


@operation
class Not(Unary):
    """Logical not of bools, bitwise complement of integers."""

    name = "stablehlo.not"
    lax_name = "bitwise_not"
    accepts = BOOL | INTEGER
    numpy_name = "invert"
    cost = INSTRUCTION


@operation
class Popcnt(Unary):
    """Number of set bits."""

    name = "stablehlo.popcnt"
    lax_name = "population_count"
    accepts = INTEGER
    counts_bits = True


@operation
class Real(Unary):
    """Real part; x itself for a real x."""

    name = "stablehlo.real"
    numpy_name = "real"

    def result_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        return real_part_of(dtype)


@operation
class RoundNearestAfz(Unary):
    """The nearest integer, ties away from zero."""

    name = "stablehlo.round_nearest_afz"
    lax_name = "round"
    accepts = FLOAT


@operation
class RoundNearestEven(Unary):
    """The nearest integer, ties to even."""

    name = "stablehlo.round_nearest_even"
    lax_name = "round"
    accepts = FLOAT
    numpy_name = "rint"
    cost = INSTRUCTION


@operation
class Sine(Unary):
    """sin x, x in radians."""

    name = "stablehlo.sine"
    lax_name = "sin"
    numpy_name = "sin"


@operation
class Sqrt(Unary):
    """Square root; NaN below 0 for reals, the principal root for complex x."""

    name = "stablehlo.sqrt"
    numpy_name = "sqrt"


@operation
class Tan(Unary):
    """tan x, x in radians."""

    name = "stablehlo.tan"
    numpy_name = "tan"


@operation
class Tanh(Unary):
    """Hyperbolic tangent."""

    name = "stablehlo.tanh"
    numpy_name = "tanh"


# --- CHLO: what JAX emits for functions that StableHLO lacks ----------------------------------------


@operation
class Acos(Unary):
    """Inverse cosine, in radians."""

    name = "chlo.acos"
    numpy_name = "arccos"


@operation
class Acosh(Unary):
    """Inverse hyperbolic cosine."""

    name = "chlo.acosh"
    numpy_name = "arccosh"


@operation
class Asin(Unary):
    """Inverse sine, in radians."""

    name = "chlo.asin"
    numpy_name = "arcsin"


@operation
class Asinh(Unary):
    """Inverse hyperbolic sine."""

    name = "chlo.asinh"
    numpy_name = "arcsinh"


@operation
class Atan(Unary):
    """Inverse tangent, in radians."""

    name = "chlo.atan"
    numpy_name = "arctan"


@operation
class Atanh(Unary):
    """Inverse hyperbolic tangent."""

    name = "chlo.atanh"
    numpy_name = "arctanh"


@operation
class Cosh(Unary):
    """Hyperbolic cosine."""

    name = "chlo.cosh"
    numpy_name = "cosh"


@operation
class Sinh(Unary):
    """Hyperbolic sine."""

    name = "chlo.sinh"
    numpy_name = "sinh"
