"""Element-wise functions with NumPy's promotion and broadcasting.

Sections and names are the Array API standard's, with NumPy's other names beside them.  All take Arrays,
NumPy arrays, Python numbers or nested sequences of numbers, broadcast by NumPy's rule and promote by
NumPy 2's, and return Arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, Protocol

import numpy as np

from xarr import lax
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    NUMBER,
    PREDICATE,
    UNSIGNED,
    default_float,
    default_of,
    info,
    promote,
)
from xarr.errors import DTypeError, ValueRangeError
from xarr.functions._core import (
    DType,
    as_array,
    broadcasted,
    broadcasted_nodes,
    common_dtype,
    is_weak,
    nodes_of,
    promoted,
)
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.lax.core import ArrayLike
from xarr.lazy import wrap

if TYPE_CHECKING:
    from xarr.array import Array

Rule = Callable[[str, DType], DType]
UnaryFunction = Callable[[ArrayLike], "Array"]


class BinaryFunction(Protocol):
    """(x1, x2) -> Array"""

    __name__: str

    def __call__(self, x1: ArrayLike, x2: ArrayLike, /) -> Array: ...


# --- which element type a function computes in ------------------------------------------------------


def _same(name: str, dtype: DType) -> DType:
    return dtype


def to_float(name: str, dtype: DType) -> DType:
    """Floats and complexes stay; integers go to the float NumPy picks: 8 bits float16, 16 bits float32."""
    if dtype in FLOAT or dtype in COMPLEX:
        return dtype
    if default_float() == np.float32:
        return default_float()
    return np.dtype(np.float16 if dtype.itemsize == 1 else np.float32 if dtype.itemsize == 2 else np.float64)


def to_real_float(name: str, dtype: DType) -> DType:
    if dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got {dtype}; complex numbers have no such function")
    return to_float(name, dtype)


def _quotient(name: str, dtype: DType) -> DType:
    return dtype if dtype in FLOAT or dtype in COMPLEX else default_float()


def _number(name: str, dtype: DType) -> DType:
    if dtype in BOOL:
        raise DTypeError(f"{name}: not defined for bools; use logical_xor, ^ or logical_not, or convert to ints")
    return dtype


def _real(name: str, dtype: DType) -> DType:
    if dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got {dtype}; take real, imag or abs first")
    return dtype


def _real_number(name: str, dtype: DType) -> DType:
    dtype = _real(name, dtype)
    return np.dtype(np.int8) if dtype in BOOL else dtype


def _bits(name: str, dtype: DType) -> DType:
    if dtype not in BOOL and dtype not in INTEGER:
        raise DTypeError(f"{name}: wanted integers or bools, got {dtype}; convert with astype first")
    return dtype


def _integer(name: str, dtype: DType) -> DType:
    dtype = _bits(name, dtype)
    return np.dtype(np.int8) if dtype in BOOL else dtype


def _power_type(name: str, dtype: DType) -> DType:
    return np.dtype(np.int8) if dtype in BOOL else dtype


# --- factories -----------------------------------------------------------------------------------


def _unary(name: str, op: Op, rule: Rule, summary: str) -> UnaryFunction:
    def function(x: ArrayLike, /) -> Array:
        array = as_array(x)
        dtype = rule(name, array.dtype)
        node = array._node if dtype == array.dtype else Node(ops.Convert(dtype), (array._node,))
        return wrap(Node(op, (node,)), array._backend)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{summary}\n\nSource: NumPy and the Array API standard, {name}; lax.{op.lax_name}."
    return function


def _binary(name: str, op: Op, rule: Rule, direct: frozenset[DType], summary: str) -> BinaryFunction:
    """`direct` holds the element types for which the rule changes nothing: the fast path."""

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        first = getattr(x1, "_node", None)
        second = getattr(x2, "_node", None)
        if (
            first is not None
            and second is not None
            and first.type is second.type
            and x1._backend is x2._backend
            and first.type.dtype in direct
        ):
            return wrap(Node(op, (first, second)), x1._backend)
        dtype = rule(name, common_dtype(x1, x2))
        nodes, backend = nodes_of((x1, x2), dtype)
        return wrap(Node(op, broadcasted_nodes(name, nodes)), backend)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"{summary}\n\nSource: NumPy and the Array API standard, {name}; lax.{op.lax_name}."
    return function


def _comparison(name: str, direction: str, summary: str) -> BinaryFunction:
    direct = BOOL | NUMBER if direction in ("EQ", "NE") else BOOL | INTEGER | FLOAT
    rule = _same if direction in ("EQ", "NE") else _real
    compare = _binary(name, ops.Compare(direction), rule, direct, summary)

    def function(x1: ArrayLike, x2: ArrayLike, /) -> Array:
        outcome = _outside(x1, x2, direction)
        if outcome is not None:
            return lax.full_like(as_array(x2 if is_weak(x1) else x1), outcome, PREDICATE)
        if _signs_differ(x1, x2):
            return _compare_signs(*broadcasted(name, as_array(x1), as_array(x2)), direction)
        return compare(x1, x2)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = compare.__doc__
    return function


def _outside(x1: ArrayLike, x2: ArrayLike, direction: str) -> bool | None:
    """The outcome of comparing an integer array with a Python int that its type cannot hold."""
    if isinstance(x1, int) and not is_weak(x2) and is_weak(x1):
        swapped = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE"}.get(direction, direction)
        return _outside(x2, x1, swapped)
    if not (isinstance(x2, int) and is_weak(x2)) or is_weak(x1):
        return None
    dtype = as_array(x1).dtype
    if dtype not in INTEGER or info(dtype).min <= x2 <= info(dtype).max:
        return None
    return {"EQ": False, "NE": True}.get(direction, (x2 > 0) == (direction in ("LT", "LE")))


_MIXED: Final = ({np.dtype(np.int64), np.dtype(np.uint64)},)


def _signs_differ(x1: ArrayLike, x2: ArrayLike) -> bool:
    first, second = getattr(x1, "dtype", None), getattr(x2, "dtype", None)
    return first is not second and {first, second} in _MIXED


def _compare_signs(x1: Array, x2: Array, direction: str) -> Array:
    """int64 with uint64, exactly: no common type holds both, so negative values are told apart first."""
    signed, swap = (x1, False) if x1.dtype == np.int64 else (x2, True)
    other = x2 if signed is x1 else x1
    negative = lax.lt(signed, 0)
    as_unsigned = lax.convert_element_type(signed, np.uint64)
    pair = (other, as_unsigned) if swap else (as_unsigned, other)
    compared = wrap(Node(ops.Compare(direction), (pair[0]._node, pair[1]._node)), pair[0]._backend)
    below = direction == "NE" or direction in (("GT", "GE") if swap else ("LT", "LE"))
    return lax.select(negative, lax.full_like(compared, below), compared)


# --- the regular rows ------------------------------------------------------------------------------

_EXACT: Final = FLOAT | COMPLEX

acos = arccos = _unary("acos", ops.Acos(), to_float, "Inverse cosine, in radians.")
acosh = arccosh = _unary("acosh", ops.Acosh(), to_float, "Inverse hyperbolic cosine.")
asin = arcsin = _unary("asin", ops.Asin(), to_float, "Inverse sine, in radians.")
asinh = arcsinh = _unary("asinh", ops.Asinh(), to_float, "Inverse hyperbolic sine.")
atan = arctan = _unary("atan", ops.Atan(), to_float, "Inverse tangent, in radians.")
atanh = arctanh = _unary("atanh", ops.Atanh(), to_float, "Inverse hyperbolic tangent.")
bitwise_invert = invert = bitwise_not = _unary("bitwise_invert", ops.Not(), _bits, "Bitwise complement; not of bools.")
cbrt = _unary("cbrt", ops.Cbrt(), to_real_float, "Cube root.")
cos = _unary("cos", ops.Cosine(), to_float, "Cosine of an angle in radians.")
cosh = _unary("cosh", ops.Cosh(), to_float, "Hyperbolic cosine.")
exp = _unary("exp", ops.Exponential(), to_float, "e to the power x.")
expm1 = _unary("expm1", ops.ExponentialMinusOne(), to_float, "exp(x) - 1, accurate near 0.")
log = _unary("log", ops.Log(), to_float, "Natural logarithm.")
log1p = _unary("log1p", ops.LogPlusOne(), to_float, "log(1 + x), accurate near 0.")
negative = _unary("negative", ops.Negate(), _number, "-x; integers wrap.")
rint = _unary("rint", ops.RoundNearestEven(), to_real_float, "The nearest integer as a float, ties to even.")
sin = _unary("sin", ops.Sine(), to_float, "Sine of an angle in radians.")
sinh = _unary("sinh", ops.Sinh(), to_float, "Hyperbolic sine.")
sqrt = _unary("sqrt", ops.Sqrt(), to_float, "Square root.")
tan = _unary("tan", ops.Tan(), to_float, "Tangent of an angle in radians.")
tanh = _unary("tanh", ops.Tanh(), to_float, "Hyperbolic tangent.")

add = _binary("add", ops.Add(), _same, BOOL | NUMBER, "x1 + x2; logical or of bools.")
atan2 = arctan2 = _binary("atan2", ops.Atan2(), to_real_float, FLOAT, "The angle of the point (x2, x1), in radians.")
bitwise_and = _binary("bitwise_and", ops.And(), _bits, BOOL | INTEGER, "Bitwise and; logical and of bools.")
bitwise_or = _binary("bitwise_or", ops.Or(), _bits, BOOL | INTEGER, "Bitwise or; logical or of bools.")
bitwise_xor = _binary("bitwise_xor", ops.Xor(), _bits, BOOL | INTEGER, "Bitwise exclusive or.")
divide = true_divide = _binary("divide", ops.Divide(), _quotient, _EXACT, "x1 / x2, a float for integers.")
fmod = _binary("fmod", ops.Remainder(), _real_number, FLOAT | INTEGER, "Remainder with the sign of the dividend.")
maximum = _binary("maximum", ops.Maximum(), _same, BOOL | NUMBER, "The larger; NaN if either is NaN.")
minimum = _binary("minimum", ops.Minimum(), _same, BOOL | NUMBER, "The smaller; NaN if either is NaN.")
multiply = _binary("multiply", ops.Multiply(), _same, BOOL | NUMBER, "x1 * x2; logical and of bools.")
nextafter = _binary("nextafter", ops.NextAfter(), to_real_float, FLOAT, "The float after x1 towards x2.")
bitwise_left_shift = left_shift = _binary(
    "bitwise_left_shift", ops.ShiftLeft(), _integer, INTEGER, "x1 << x2; 0 where x2 is not below the width."
)
subtract = _binary("subtract", ops.Subtract(), _number, NUMBER, "x1 - x2; not defined for bools.")

equal = _comparison("equal", "EQ", "x1 == x2; NaN equals nothing.")
greater = _comparison("greater", "GT", "x1 > x2.")
greater_equal = _comparison("greater_equal", "GE", "x1 >= x2.")
less = _comparison("less", "LT", "x1 < x2.")
less_equal = _comparison("less_equal", "LE", "x1 <= x2.")
not_equal = _comparison("not_equal", "NE", "x1 != x2; NaN differs from everything.")


def bitwise_right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 >> x2: fills with the sign for signed types, with zeros for unsigned ones."""
    dtype = _integer("bitwise_right_shift", common_dtype(x1, x2))
    x, y = broadcasted("bitwise_right_shift", *promoted("bitwise_right_shift", x1, x2, dtype=dtype))
    return lax.shift_right_logical(x, y) if dtype in UNSIGNED else lax.shift_right_arithmetic(x, y)


right_shift = bitwise_right_shift


def power(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1 ** x2.

    Integers to a negative Python int raise ValueRangeError as in NumPy; a negative integer in an array
    gives 0, or ±1 where |x1| is 1 (XLA's rule), since values are not looked at when the op is recorded.
    """
    dtype = _power_type("pow", common_dtype(x1, x2))
    if is_weak(x2) and isinstance(x2, int) and x2 < 0 and dtype in INTEGER:
        raise ValueRangeError(f"pow: an integer to the negative power {x2} is no integer; convert x1 to float")
    return _power(x1, x2)


_power = _binary("pow", ops.Power(), _power_type, NUMBER, "x1 ** x2.")
pow = power


# --- compositions ------------------------------------------------------------------------------------


def abs(x: ArrayLike, /) -> Array:
    """Magnitude; a real for complex x.  Source: NumPy absolute, Array API abs."""
    array = as_array(x)
    return positive(array) if array.dtype in UNSIGNED | BOOL else lax.abs(array)


absolute = abs


def positive(x: ArrayLike, /) -> Array:
    """x itself, as a new handle."""
    array = as_array(x)
    return wrap(array._node, array._backend)


def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; x / |x| for complex x.  Refuses bools, as NumPy does."""
    array = as_array(x)
    if _number("sign", array.dtype) in UNSIGNED:
        return lax.min(array, 1)
    return lax.sign(array)


def square(x: ArrayLike, /) -> Array:
    """x * x."""
    array = as_array(x)
    return multiply(array, array)


def reciprocal(x: ArrayLike, /) -> Array:
    """1 / x; integer division for integers."""
    array = as_array(x)
    return lax.div(1, array) if array.dtype in INTEGER else divide(1, array)


def _whole(name: str, function: Callable[[Any], Array]) -> UnaryFunction:
    def rounding(x: ArrayLike, /) -> Array:
        array = as_array(x)
        dtype = _real(name, array.dtype)
        return function(array) if dtype in FLOAT else positive(array)

    rounding.__name__ = rounding.__qualname__ = name
    rounding.__doc__ = f"{name} of each element; integers stay as they are.  Source: NumPy 2, {name}."
    return rounding


def _truncated(x: Array) -> Array:
    return lax.select(lax.lt(x, 0), lax.ceil(x), lax.floor(x))


ceil = _whole("ceil", lax.ceil)
floor = _whole("floor", lax.floor)
trunc = fix = _whole("trunc", _truncated)


def round(x: ArrayLike, /, decimals: int = 0) -> Array:
    """Rounded to `decimals` places, ties to even.  Source: NumPy round."""
    array = as_array(x)
    if array.dtype in COMPLEX:
        return lax.complex(round(lax.real(array), decimals), round(lax.imag(array), decimals))
    if array.dtype not in FLOAT:
        if decimals >= 0:
            return positive(array)
        return round(array.astype(np.float64), decimals).astype(array.dtype)
    nearest = lax.RoundingMethod.TO_NEAREST_EVEN
    if decimals == 0:
        return lax.round(array, nearest)
    factor = 10.0 ** math.fabs(decimals)
    if decimals > 0:
        return lax.div(lax.round(lax.mul(array, factor), nearest), factor)
    return lax.mul(lax.round(lax.div(array, factor), nearest), factor)


around = round


def real(x: ArrayLike, /) -> Array:
    """Real part; x itself for a real type."""
    array = as_array(x)
    return lax.real(array) if array.dtype in COMPLEX else positive(array)


def imag(x: ArrayLike, /) -> Array:
    """Imaginary part; zeros for a real type."""
    array = as_array(x)
    return lax.imag(array) if array.dtype in COMPLEX else lax.full_like(array, 0)


def conj(x: ArrayLike, /) -> Array:
    """Complex conjugate; x itself for a real type."""
    array = as_array(x)
    return lax.conj(array) if array.dtype in COMPLEX else positive(array)


conjugate = conj


def isfinite(x: ArrayLike, /) -> Array:
    """Neither infinite nor NaN, in both parts of a complex number."""
    array = as_array(x)
    if array.dtype in COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(array)), lax.is_finite(lax.imag(array)))
    return lax.is_finite(array) if array.dtype in FLOAT else lax.full_like(array, True, PREDICATE)


def isnan(x: ArrayLike, /) -> Array:
    """Not a number, in either part of a complex number."""
    array = as_array(x)
    return lax.ne(array, array) if array.dtype in FLOAT | COMPLEX else lax.full_like(array, False, PREDICATE)


def isinf(x: ArrayLike, /) -> Array:
    """Infinite of either sign, in either part of a complex number."""
    array = as_array(x)
    if array.dtype in COMPLEX:
        return lax.bitwise_or(isinf(lax.real(array)), isinf(lax.imag(array)))
    return lax.eq(lax.abs(array), math.inf) if array.dtype in FLOAT else lax.full_like(array, False, PREDICATE)


def _bit_patterns(name: str, *arrays: Array) -> tuple[DType, tuple[Array, ...]]:
    """The unsigned type as wide as the arrays' floats, and their bits in it."""
    if arrays[0].dtype not in FLOAT:
        raise DTypeError(f"{name}: wanted real floats, got {arrays[0].dtype}")
    unsigned = np.dtype(f"u{arrays[0].dtype.itemsize}")
    return unsigned, tuple(lax.bitcast_convert_type(array, unsigned) for array in arrays)


def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set, of -0.0 and of negative NaN too."""
    array = as_array(x)
    if array.dtype in BOOL | INTEGER:
        return less(array, 0) if array.dtype in INTEGER else lax.full_like(array, False)
    unsigned, (bits,) = _bit_patterns("signbit", array)
    return lax.ge(bits, 1 << (unsigned.itemsize * 8 - 1))


def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The magnitude of x1 with the sign of x2, bit by bit."""
    dtype = to_real_float("copysign", common_dtype(x1, x2))
    x, y = broadcasted("copysign", *promoted("copysign", x1, x2, dtype=dtype))
    unsigned, (magnitude, sign_of) = _bit_patterns("copysign", x, y)
    top = 1 << (unsigned.itemsize * 8 - 1)
    bits = lax.bitwise_or(lax.bitwise_and(magnitude, top - 1), lax.bitwise_and(sign_of, top))
    return lax.bitcast_convert_type(bits, dtype)


def _logical(name: str, function: Callable[..., Array]) -> Callable[..., Array]:
    def logical(*values: ArrayLike) -> Array:
        arrays = broadcasted(name, *(_truth(value) for value in values))
        return function(*arrays)

    logical.__name__ = logical.__qualname__ = name
    logical.__doc__ = f"{name} of the truth of each element (anything but 0 is true).  Source: NumPy {name}."
    return logical


def _truth(value: ArrayLike) -> Array:
    array = as_array(value)
    return array if array.dtype in BOOL else lax.convert_element_type(array, PREDICATE)


logical_and = _logical("logical_and", lax.bitwise_and)
logical_or = _logical("logical_or", lax.bitwise_or)
logical_xor = _logical("logical_xor", lax.bitwise_xor)
logical_not = _logical("logical_not", lax.bitwise_not)


def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Python's modulo: the sign of the divisor; 0 for an integer zero divisor.  Source: NumPy remainder."""
    dtype = _real_number("remainder", common_dtype(x1, x2))
    x, y = broadcasted("remainder", *promoted("remainder", x1, x2, dtype=dtype))
    return _divmod(x, y)[1]


mod = remainder


def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The floor of the quotient; 0 for an integer zero divisor.  Source: NumPy floor_divide."""
    dtype = _real_number("floor_divide", common_dtype(x1, x2))
    x, y = broadcasted("floor_divide", *promoted("floor_divide", x1, x2, dtype=dtype))
    return _divmod(x, y)[0]


def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """(floor_divide, remainder)."""
    return floor_divide(x1, x2), remainder(x1, x2)


def _divmod(x: Array, y: Array) -> tuple[Array, Array]:
    return _float_divmod(x, y) if x.dtype in FLOAT else _integer_divmod(x, y)


def _integer_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    quotient, rest = lax.div(x, y), lax.rem(x, y)
    zero = lax.eq(y, 0)
    if x.dtype not in UNSIGNED:
        wrong = lax.bitwise_and(lax.ne(rest, 0), lax.ne(lax.lt(rest, 0), lax.lt(y, 0)))
        quotient = lax.sub(quotient, lax.convert_element_type(wrong, x.dtype))
        rest = lax.select(wrong, lax.add(rest, y), rest)
    nothing = lax.full_like(x, 0)
    return lax.select(zero, nothing, quotient), lax.select(zero, nothing, rest)


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """CPython's float divmod, as NumPy has it: exact remainder, quotient snapped to an integer."""
    rest = lax.rem(x, y)
    quotient = lax.div(lax.sub(x, rest), y)
    wrong = lax.bitwise_and(lax.ne(rest, 0), lax.ne(lax.lt(y, 0), lax.lt(rest, 0)))
    quotient = lax.select(wrong, lax.sub(quotient, 1), quotient)
    rest = lax.select(wrong, lax.add(rest, y), rest)
    rest = lax.select(lax.eq(rest, 0), copysign(lax.full_like(y, 0), y), rest)
    floored = lax.floor(quotient)
    snapped = lax.select(lax.gt(lax.sub(quotient, floored), 0.5), lax.add(floored, 1), floored)
    ratio = lax.div(x, y)
    whole = lax.select(lax.eq(quotient, 0), copysign(lax.full_like(ratio, 0), ratio), snapped)
    by_zero = lax.eq(y, 0)
    return lax.select(by_zero, ratio, whole), lax.select(by_zero, lax.full_like(x, math.nan), rest)


def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """sqrt(x1**2 + x2**2) without overflow in between."""
    dtype = to_real_float("hypot", common_dtype(x1, x2))
    x, y = (lax.abs(a) for a in broadcasted("hypot", *promoted("hypot", x1, x2, dtype=dtype)))
    large, small = lax.max(x, y), lax.min(x, y)
    ratio = lax.div(small, lax.select(lax.eq(large, 0), lax.full_like(large, 1), large))
    result = lax.mul(large, lax.sqrt(lax.add(lax.mul(ratio, ratio), 1)))
    infinite = lax.bitwise_or(lax.eq(x, math.inf), lax.eq(y, math.inf))
    return lax.select(infinite, lax.full_like(result, math.inf), result)


def _log_base(name: str, base: float) -> UnaryFunction:
    def function(x: ArrayLike, /) -> Array:
        natural = log(x)
        return lax.div(natural, math.log(base) if natural.dtype in FLOAT else complex(math.log(base)))

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Logarithm to base {base:g}: log(x) / log({base:g}), within 2 ULP.  Source: NumPy {name}."
    return function


log2 = _log_base("log2", 2)
log10 = _log_base("log10", 10)


def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x."""
    array = as_array(x)
    return pow(2.0, array.astype(to_float("exp2", array.dtype)))


def logaddexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """log(exp(x1) + exp(x2)) without overflow."""
    dtype = to_real_float("logaddexp", common_dtype(x1, x2))
    x, y = broadcasted("logaddexp", *promoted("logaddexp", x1, x2, dtype=dtype))
    top, gap = lax.max(x, y), lax.sub(x, y)
    rest = lax.add(top, lax.log1p(lax.exp(lax.neg(lax.abs(gap)))))
    # For two equal infinities the gap is NaN, and for a NaN operand so is everything.
    return lax.select(lax.ne(gap, gap), lax.add(x, y), rest)


def fmax(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The larger, ignoring a NaN beside a number."""
    return _ignoring_nan("fmax", lax.max, x1, x2)


def fmin(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The smaller, ignoring a NaN beside a number."""
    return _ignoring_nan("fmin", lax.min, x1, x2)


def _ignoring_nan(name: str, function: Callable[..., Array], x1: ArrayLike, x2: ArrayLike) -> Array:
    x, y = broadcasted(name, *promoted(name, x1, x2))
    return lax.select(isnan(x), y, lax.select(isnan(y), x, function(x, y)))


def clip(x: ArrayLike, /, min: ArrayLike | None = None, max: ArrayLike | None = None) -> Array:
    """x, but not below `min` nor above `max`; either may be None.  `max` wins where min > max.

    The bounds broadcast with x and take part in promotion, as in NumPy.
    """
    array = as_array(x)
    if min is not None:
        array = maximum(array, min)
    return positive(array) if max is None else minimum(array, max)


def degrees(x: ArrayLike, /) -> Array:
    """Radians to degrees."""
    return multiply(as_array(x), 180.0 / math.pi)


def radians(x: ArrayLike, /) -> Array:
    """Degrees to radians."""
    return multiply(as_array(x), math.pi / 180.0)


rad2deg, deg2rad = degrees, radians


def fabs(x: ArrayLike, /) -> Array:
    """|x| as a float."""
    array = as_array(x)
    return lax.abs(lax.convert_element_type(array, to_real_float("fabs", array.dtype)))


def result_float(x: Array) -> DType:
    """The float type that statistics of x have: its own, or the default float for integers."""
    return x.dtype if x.dtype in FLOAT | COMPLEX else promote(x.dtype, default_of(float))
