"""Element-wise functions with NumPy's promotion and broadcasting.

Sections and names are the Array API standard's, with NumPy's other names beside them.  All take Arrays,
NumPy arrays, Python numbers or nested sequences of numbers, broadcast by NumPy's rule and promote by
NumPy 2's, and return Arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import check_common_casting, convert, widen_narrow
from xarr.calls.call_plans import (
    common_real_float,
    integer_type,
    number,
    power_type,
    quotient_type,
    to_float,
    to_real_float,
)
from xarr.calls.factories import BinaryFunction, UnaryFunction, binary, comparison, unary
from xarr.calls.operands import (
    DType,
    as_array,
    as_numbers,
    broadcast_operands,
    common_dtype,
    fresh,
    is_weak,
    prepare_operands,
)
from xarr.calls.outputs import takes_out
from xarr.calls.ufuncs import ufunc
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    PREDICATE,
    UNSIGNED,
    default_complex,
    default_float,
)
from xarr.errors import DTypeError, InputError, ValueRangeError
from xarr.ir import ops
from xarr.lax.core import ArrayLike

__all__ = [
    "abs",
    "absolute",
    "acos",
    "acosh",
    "add",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "cbrt",
    "clip",
    "copysign",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "divide",
    "equal",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "float_power",
    "fmax",
    "fmin",
    "greater",
    "greater_equal",
    "hypot",
    "invert",
    "isfinite",
    "isinf",
    "isnan",
    "left_shift",
    "less",
    "less_equal",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logaddexp2",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nextafter",
    "not_equal",
    "positive",
    "pow",
    "power",
    "rad2deg",
    "radians",
    "reciprocal",
    "right_shift",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "subtract",
    "tan",
    "tanh",
    "true_divide",
]

# --- the regular rows ------------------------------------------------------------------------------

_EXACT: Final = FLOAT | COMPLEX
_NOT_NEGATIVE: Final = UNSIGNED | BOOL
_WHOLE: Final = BOOL | INTEGER
_REALS: Final = (int, float)

acos = arccos = unary("acos", ops.Acos())
acosh = arccosh = unary("acosh", ops.Acosh())
asin = arcsin = unary("asin", ops.Asin())
asinh = arcsinh = unary("asinh", ops.Asinh())
atan = arctan = unary("atan", ops.Atan())
atanh = arctanh = unary("atanh", ops.Atanh())
bitwise_invert = invert = bitwise_not = unary("bitwise_invert", ops.Not())
cbrt = unary("cbrt", ops.Cbrt())
cos = unary("cos", ops.Cosine())
cosh = unary("cosh", ops.Cosh())
exp = unary("exp", ops.Exponential())
_expm1 = unary("expm1", ops.ExponentialMinusOne())
log = unary("log", ops.Log())
log1p = unary("log1p", ops.LogPlusOne())
negative = unary("negative", ops.Negate())
sin = unary("sin", ops.Sine())
sinh = unary("sinh", ops.Sinh())
sqrt = unary("sqrt", ops.Sqrt())
tan = unary("tan", ops.Tan())
tanh = unary("tanh", ops.Tanh())

add = binary("add", ops.Add())
atan2 = arctan2 = binary("atan2", ops.Atan2())
bitwise_and = binary("bitwise_and", ops.And())
bitwise_or = binary("bitwise_or", ops.Or())
bitwise_xor = binary("bitwise_xor", ops.Xor())
divide = true_divide = binary("divide", ops.Divide(), quotient_type, "x1 / x2, a float for integers.")
maximum = binary("maximum", ops.Maximum())
minimum = binary("minimum", ops.Minimum())
multiply = binary("multiply", ops.Multiply())
nextafter = binary("nextafter", ops.NextAfter())
bitwise_left_shift = left_shift = binary("bitwise_left_shift", ops.ShiftLeft())
subtract = binary("subtract", ops.Subtract())

equal = comparison("equal", "EQ", "x1 == x2; NaN equals nothing.")
greater = comparison("greater", "GT", "x1 > x2.")
greater_equal = comparison("greater_equal", "GE", "x1 >= x2.")
less = comparison("less", "LT", "x1 < x2.")
less_equal = comparison("less_equal", "LE", "x1 <= x2.")
not_equal = comparison("not_equal", "NE", "x1 != x2; NaN differs from everything.")


@ufunc
def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2: fills with the sign for signed types, with zeros for unsigned ones.

    Source: NumPy and Array API, `bitwise_right_shift`.
    """
    dtype = integer_type("bitwise_right_shift", common_dtype(x1, x2))
    x, y = prepare_operands("bitwise_right_shift", x1, x2, dtype=dtype)
    return lax.shift_right_logical(x, y) if dtype in UNSIGNED else lax.shift_right_arithmetic(x, y)


right_shift = bitwise_right_shift


@ufunc
def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2.

    Integers to a negative Python int raise ValueRangeError as in NumPy; a negative integer in an array
    gives 0, or ±1 where |x1| is 1 (XLA's rule), since values are not looked at when the op is recorded.
    Source: NumPy, `power`; Array API, `pow`.
    """
    dtype = power_type("pow", common_dtype(x1, x2))
    if is_weak(x2) and isinstance(x2, int) and x2 < 0 and dtype in INTEGER:
        raise ValueRangeError(f"pow: an integer to the power {x2} is not an integer; convert x1 to float")
    if is_weak(x2) and x2 == 2 and not is_weak(x1):
        base = as_array(x1)
        if base.dtype == dtype and dtype not in COMPLEX:
            return square(base)  # the same bits, as NumPy too does it, and many times faster
    return _power(x1, x2)


_power = binary("pow", ops.Power(), power_type, "x1 ** x2.")
pow = power


@ufunc
def expm1(x: ArrayLike, /) -> Array:
    """exp(x) - 1, accurate near 0.

    Of complex numbers with an infinite real part and an infinite or undefined imaginary part the modulus is known,
    if not the angle: -1 + 0j for -inf, inf + nan j for inf.  Source: NumPy; for complex numbers the Array API.
    """
    result = _expm1(x)
    if result.dtype not in COMPLEX:
        return result
    return _complex_expm1(result, lax.convert_element_type(as_array(x), result.dtype))


# --- compositions ------------------------------------------------------------------------------------


@ufunc
def abs(x: ArrayLike, /) -> Array:
    """Magnitude; a real for complex x.  Source: NumPy absolute, Array API abs."""
    array = as_array(x)
    return fresh(array) if array.dtype in _NOT_NEGATIVE else lax.abs(array)


absolute = abs


@ufunc
def positive(x: ArrayLike, /) -> Array:
    """x itself, as a new handle.  Refuses bools, as NumPy does.  Source: NumPy and Array API, `positive`."""
    array = as_array(x)
    number("positive", array.dtype)
    return fresh(array)


@ufunc
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1, 0 without a sign; x / |x| for complex x.  Refuses bools, as NumPy does.

    Where one part of a complex x is infinite, that part decides alone.  Source: NumPy and Array API, `sign`.
    """
    array = as_array(x)
    if number("sign", array.dtype) in UNSIGNED:
        return lax.min(array, 1)
    result = _complex_sign(array) if array.dtype in COMPLEX else lax.sign(array)
    if array.dtype not in _EXACT:
        return result
    # Not result + 0: XLA's simplifier would drop the sum, and with it the 0 without a sign.
    return lax.select(lax.eq(result, 0), lax.full_like(result, 0), result)


@ufunc
def square(x: ArrayLike, /) -> Array:
    """x * x; int8 for bools.  Source: NumPy and Array API, `square`."""
    array = as_numbers(x)
    return multiply(array, array)


@ufunc
def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x; for integers the whole part of it, and -1 (all bits set) for 0.

    Of complex numbers the bits are NumPy's: of 0 both parts are NaN, of infinities 0.
    Source: NumPy and Array API, `reciprocal`.
    """
    array = as_numbers(x)
    if array.dtype in COMPLEX:
        return _complex_reciprocal(array)
    return lax.div(1, array) if array.dtype in INTEGER else divide(1, array)


def _complex_reciprocal(x: Array) -> Array:
    """1 / x, without overflow where that fits.  Source: Smith, "Algorithm 116: Complex division", CACM 5:8 (1962)."""
    real, imag = lax.real(x), lax.imag(x)
    is_wide, one = lax.le(lax.abs(imag), lax.abs(real)), lax.full_like(real, 1)
    ratio = lax.select(is_wide, lax.div(imag, real), lax.div(real, imag))
    divisor = lax.select(is_wide, lax.add(real, lax.mul(imag, ratio)), lax.add(lax.mul(real, ratio), imag))
    top, bottom = lax.select(is_wide, one, ratio), lax.select(is_wide, lax.neg(ratio), lax.neg(one))
    return lax.complex(lax.div(top, divisor), lax.div(bottom, divisor))


@ufunc
def isfinite(x: ArrayLike, /) -> Array:
    """Neither infinite nor NaN, in both parts of a complex number.

    Source: NumPy and Array API, `isfinite`.
    """
    array = as_array(x)
    if array.dtype in COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(array)), lax.is_finite(lax.imag(array)))
    return lax.is_finite(array) if array.dtype in FLOAT else lax.full_like(array, True, PREDICATE)


@ufunc
def isnan(x: ArrayLike, /) -> Array:
    """Not a number, in either part of a complex number.  Source: NumPy and Array API, `isnan`."""
    array = as_array(x)
    return lax.ne(array, array) if array.dtype in _EXACT else lax.full_like(array, False, PREDICATE)


@ufunc
def isinf(x: ArrayLike, /) -> Array:
    """Infinite of either sign, in either part of a complex number.  Source: NumPy and Array API, `isinf`."""
    array = as_array(x)
    if array.dtype in COMPLEX:
        return lax.bitwise_or(isinf(lax.real(array)), isinf(lax.imag(array)))
    if array.dtype in FLOAT:
        return lax.eq(lax.abs(array), math.inf)
    return lax.full_like(array, False, PREDICATE)


def _bit_patterns(name: str, *arrays: Array) -> tuple[DType, tuple[Array, ...]]:
    """The unsigned type as wide as the arrays' floats, and their bits in it."""
    if arrays[0].dtype not in FLOAT:
        raise DTypeError(f"{name}: wanted real floats, got {arrays[0].dtype}")
    unsigned = np.dtype(f"u{arrays[0].dtype.itemsize}")
    return unsigned, tuple(lax.bitcast_convert_type(array, unsigned) for array in arrays)


@ufunc
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, of -0.0 and of negative NaN too.

    Source: NumPy and Array API, `signbit`.
    """
    array = as_array(x)
    if array.dtype in _WHOLE:
        return less(array, 0) if array.dtype in INTEGER else lax.full_like(array, False)
    unsigned, (bits,) = _bit_patterns("signbit", array)
    return lax.ge(bits, 1 << (unsigned.itemsize * 8 - 1))


@ufunc
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign of x2, bit by bit.  Source: NumPy and Array API, `copysign`."""
    dtype = common_real_float("copysign", x1, x2)
    x, y = prepare_operands("copysign", x1, x2, dtype=dtype)
    unsigned, (magnitude, sign_of) = _bit_patterns("copysign", x, y)
    top = 1 << (unsigned.itemsize * 8 - 1)
    bits = lax.bitwise_or(lax.bitwise_and(magnitude, top - 1), lax.bitwise_and(sign_of, top))
    return lax.bitcast_convert_type(bits, dtype)


def _logical(name: str, function: Callable[..., Array]) -> BinaryFunction:
    def logical(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        return function(*broadcast_operands(name, _truth(x1), _truth(x2)))

    logical.__name__ = name
    logical.__doc__ = f"{name} of the truth of each element (anything but 0 is true).  Source: NumPy {name}."
    return ufunc(logical)


def _truth(value: ArrayLike) -> Array:
    array = as_array(value)
    return array if array.dtype in BOOL else lax.convert_element_type(array, PREDICATE)


logical_and = _logical("logical_and", lax.bitwise_and)
logical_or = _logical("logical_or", lax.bitwise_or)
logical_xor = _logical("logical_xor", lax.bitwise_xor)


@ufunc
def logical_not(x: ArrayLike, /) -> Array:
    """Whether each element is 0.  Source: NumPy logical_not."""
    return lax.bitwise_not(_truth(x))


@ufunc
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1**2 + x2**2) without overflow in between.  Source: NumPy and Array API, `hypot`."""
    dtype = common_real_float("hypot", x1, x2)
    x, y = (lax.abs(widen_narrow(a)) for a in prepare_operands("hypot", x1, x2, dtype=dtype))
    large, small = lax.max(x, y), lax.min(x, y)
    ratio = lax.div(small, lax.select(lax.eq(large, 0), lax.full_like(large, 1), large))
    result = lax.mul(large, lax.sqrt(lax.add(lax.mul(ratio, ratio), 1)))
    infinite = lax.bitwise_or(lax.eq(x, math.inf), lax.eq(y, math.inf))
    return convert(lax.select(infinite, lax.full_like(result, math.inf), result), dtype)


def _log_base(name: str, base: float) -> UnaryFunction:
    def function(x: ArrayLike, /) -> Array:
        array = as_array(x)
        dtype = to_float(name, array.dtype)
        natural = log(widen_narrow(array.astype(dtype)))
        if dtype in FLOAT:
            return convert(lax.div(natural, math.log(base)), dtype)
        return _scale(natural, 1 / math.log(base))

    function.__name__ = name
    function.__doc__ = f"Logarithm to base {base:g}: log(x) / log({base:g}), in 2 ULP.  Source: NumPy {name}."
    return ufunc(function)


log2 = _log_base("log2", 2)
log10 = _log_base("log10", 10)


def _scale(z: Array, factor: float) -> Array:
    """Both parts of a complex z times a real factor, so that infinities and NaN stay in their part."""
    return lax.complex(lax.mul(lax.real(z), factor), lax.mul(lax.imag(z), factor))


@ufunc
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x.  Source: NumPy, `exp2`."""
    array = as_array(x)
    exponent = array.astype(to_float("exp2", array.dtype))
    return exp(_scale(exponent, math.log(2))) if exponent.dtype in COMPLEX else pow(2.0, exponent)


@ufunc
def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow.  Source: NumPy and Array API, `logaddexp`."""
    return _add_powers("logaddexp", x1, x2, lambda gap: lax.log1p(lax.exp(gap)))


def _add_powers(name: str, x1: ArrayLike, x2: ArrayLike, rest: Callable[[Array], Array]) -> Array:
    """The logarithm of a sum of powers: the larger exponent, and `rest` of that of the quotient of both."""
    dtype = common_real_float(name, x1, x2)
    x, y = map(widen_narrow, prepare_operands(name, x1, x2, dtype=dtype))
    gap = lax.sub(x, y)
    total = lax.add(lax.max(x, y), rest(lax.neg(lax.abs(gap))))
    # For two equal infinities the gap is NaN, and for a NaN operand so is everything.
    return convert(lax.select(lax.ne(gap, gap), lax.add(x, y), total), dtype)


@ufunc
def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The larger, ignoring a NaN beside a number.  Source: NumPy, `fmax`."""
    return _ignoring_nan("fmax", lax.max, x1, x2)


@ufunc
def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller, ignoring a NaN beside a number.  Source: NumPy, `fmin`."""
    return _ignoring_nan("fmin", lax.min, x1, x2)


def _ignoring_nan(name: str, function: Callable[..., Array], x1: ArrayLike, x2: ArrayLike) -> Array:
    x, y = prepare_operands(name, x1, x2)
    return lax.select(isnan(x), y, lax.select(isnan(y), x, function(x, y)))


@takes_out("same_kind", broadcasts=True)
def clip(
    a: ArrayLike,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
    out: Array | None = None,
    *,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    casting: str = "same_kind",
) -> Array:
    """a, but not below `min` nor above `max`; either may be None.  `max` wins where min > max.

    The bounds broadcast with a and take part in promotion, as in NumPy, as far as `casting` lets them; a Python int
    beyond the range of an integer a bounds nothing.  `a_min` and `a_max` are NumPy's other names.  Raises
    ValueRangeError for a bound that would leave no value, InputError for one given under both names, DTypeError.
    Source: NumPy, Array API, `clip`.
    """
    array = as_array(a)
    low, high = _one_of("min", min, a_min), _one_of("max", max, a_max)
    check_common_casting("clip", casting, array, low, high)
    if array.dtype in INTEGER:
        limits = np.iinfo(array.dtype)
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if array.dtype in FLOAT and type(low) in _REALS and type(high) in _REALS:
        return lax.clamp(low, array, high)
    if low is not None:
        # In one type from the start: pairs might promote to a wider one than all three.
        wide = array.dtype if high is None else common_dtype(array, low, high)
        array = maximum(array.astype(wide), low)
    return fresh(array) if high is None else minimum(array, high)


def _one_of(name: str, bound: ArrayLike | None, other: ArrayLike | None) -> ArrayLike | None:
    if bound is not None and other is not None:
        raise InputError(f"clip: wanted the bound as {name}= or a_{name}=, got both")
    return other if bound is None else bound


@ufunc
def degrees(x: ArrayLike, /) -> Array:
    """Radians to degrees.  Source: NumPy, `degrees`."""
    array = as_array(x)
    dtype = to_real_float("degrees", array.dtype)
    return convert(lax.mul(widen_narrow(array.astype(dtype)), 180.0 / math.pi), dtype)


@ufunc
def radians(x: ArrayLike, /) -> Array:
    """Degrees to radians.  Source: NumPy, `radians`."""
    array = as_array(x)
    dtype = to_real_float("radians", array.dtype)
    return convert(lax.mul(widen_narrow(array.astype(dtype)), math.pi / 180.0), dtype)


rad2deg, deg2rad = degrees, radians


@ufunc
def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float.  Source: NumPy, `fabs`."""
    array = as_array(x)
    return lax.abs(lax.convert_element_type(array, to_real_float("fabs", array.dtype)))


_LOG2_E: Final = 1 / math.log(2)


@ufunc
def logaddexp2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log2(2**x1 + 2**x2) without overflow.  Source: NumPy, `logaddexp2`."""
    return _add_powers("logaddexp2", x1, x2, lambda gap: lax.mul(lax.log1p(lax.exp2(gap)), _LOG2_E))


@ufunc
def float_power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2 in the default float or complex type, so that negative powers of integers are no integers.

    Source: NumPy, `float_power`.
    """
    dtype = default_complex() if common_dtype(x1, x2) in COMPLEX else default_float()
    x, y = prepare_operands("float_power", x1, x2, dtype=dtype)
    return lax.pow(x, y)


def _complex_expm1(result: Array, x: Array) -> Array:
    """Mend `result`, expm1(x), where the modulus is known, if not the angle: -1 at -inf, infinite at inf."""
    part, angle = lax.real(x), lax.imag(x)
    is_rotating = lax.bitwise_not(lax.is_finite(angle))
    least = lax.complex(lax.full_like(part, -1), lax.full_like(part, 0))
    most = lax.complex(lax.full_like(part, math.inf), lax.full_like(part, math.nan))
    result = lax.select(lax.bitwise_and(is_rotating, lax.eq(part, -math.inf)), least, result)
    result = lax.select(lax.bitwise_and(is_rotating, lax.eq(part, math.inf)), most, result)
    # The sum of the real part's two terms is +0 of any zero.
    return lax.select(lax.eq(x, 0), lax.complex(lax.full_like(part, 0), angle), result)


def _complex_sign(x: Array) -> Array:
    """x / |x|, by the infinite part alone where one is."""
    parts = lax.real(x), lax.imag(x)
    a, b = (lax.select(lax.eq(lax.abs(p), math.inf), lax.sign(p), lax.full_like(p, 0)) for p in parts)
    return lax.select(lax.ne(lax.abs(a), lax.abs(b)), lax.complex(a, b), lax.sign(x))
