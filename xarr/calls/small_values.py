"""Operators on small values, computed by Python and NumPy themselves, without a node of the graph.

An Array may hold its value alone (`Handle`).  While nothing stands against it (`xarr.base.at_once.obstacles`), an
operator on such Arrays and on Python numbers is one call of Python's operator on their values, where that gives the
element type and the bits that the op would give; `tests/calls/test_small_values.py` compares all of them.  What is
not sure gives None, and then the function of the NumPy level is called, which says what is wrong, or records.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from itertools import zip_longest
from math import prod
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy import ndarray

from xarr.base.at_once.complex_quotients import are_ordinary
from xarr.base.at_once.numpy_calls import EXACT, EXACT_SINGLE, GREATEST_SINGLE
from xarr.base.at_once.numpy_warnings import call_quietly, run_quietly
from xarr.base.at_once.obstacles import Obstacle
from xarr.base.typing import Array
from xarr.calls.concrete_values import (
    PYTHONS,
    device_beside,
    join,
    plain_operand,
    plain_value,
    small_value,
    wrap_constant,
    wrap_value,
)
from xarr.ir.source import location_of, user_files
from xarr.ir.types import MOST_COMBINED, MOST_PLAIN_BYTES, PLAIN, has_plain_elements
from xarr.runtime import handles
from xarr.runtime.handles import Handle, may_be_small
from xarr.runtime.view_tracking import is_put_back

Compute = Callable[[Any, Any], Any]

#: The greatest of int64.
_GREATEST: Final = 2**63 - 1
_BITS: Final = 64
_FLOAT64: Final = np.dtype(np.float64)
_OF_PYTHONS: Final = {own: kind for kind, own in PYTHONS.items()}
_WIDE: Final = frozenset("dD")
#: Element types beside which a complex number of Python's makes complex128.
_BESIDE_COMPLEX: Final = frozenset(map(np.dtype, (np.complex128, np.float64, np.int64)))
_SINGLE: Final = frozenset("fF")
_NUMBERS: Final = frozenset({int, float})
_OPERANDS: Final = frozenset({int, float, complex})
#: NumPy's numbers, which are of their own type beside any other.
_SCALARS: Final = frozenset([np.dtype(char).type for char in PLAIN])
#: Errors of Python and NumPy, which the functions of the NumPy level explain.
_REFUSALS: Final = (ArithmeticError, TypeError, ValueError)
_new: Final = object.__new__


def stand_against(ints: np.dtype[Any]) -> Obstacle | None:
    """An obstacle where NumPy's ints, those of `argmax` and of Python's numbers, are not int64, as in WebAssembly."""
    return None if ints == np.int64 else Obstacle()


#: Held as long as the library is there.
_OBSTACLE: Final = stand_against(np.dtype(np.intp))


# --- methods of one Array ---------------------------------------------------------------------------------


def show_small_value(array: Handle, result: Handle) -> bool:
    """Make `array` show what a new Array holds; False for another type, and where writing to a part needs a word."""
    old, new = array._value, result._value
    if type(old) is not type(new) or result._shown is not None:
        return False
    if type(old) is ndarray and (old.dtype is not new.dtype or old.shape != new.shape):
        return False
    if getattr(array, "_part", None) is not None and not is_put_back(array):
        return False
    array._device, array._location = result._device, result._location
    array._value, array._shown, array._share = new, None, None
    return True


def negate(array: Handle, frame: FrameType) -> Array | None:
    """-array of a float; None for other Arrays."""
    value = array._value
    if type(value) is not float or array._device is None:
        return None
    return wrap_value(-value, array._device, frame)


def raise_to_number(array: Handle, exponent: float, frame: FrameType) -> Array | None:
    """array ** exponent of float64, where that is a root, or no square; None for others."""
    value = array._value
    is_array = type(value) is ndarray and value.dtype is _FLOAT64
    if exponent == 0.5 and (is_array or (type(value) is float and value >= 0)):
        power = math.sqrt(value) if type(value) is float else call_quietly(np.sqrt, value)
    elif is_array and exponent not in _OWN_POWERS and -EXACT <= exponent <= EXACT:
        power = call_quietly(np.power, value, float(exponent))
    else:
        return None
    if array._device is None:
        return wrap_constant(power, operator.pow, (array, exponent), frame)
    return wrap_value(power, array._device, frame)


#: Exponents of which NumPy's operator, its function and the op have ways of their own.
_OWN_POWERS: Final = frozenset({-1.0, 0.0, 0.5, 1.0, 2.0})


#: From which float on, and below which, an integer type holds them without their fractions.
_LIMITS: Final = {
    dtype: (float(np.iinfo(dtype).min), float(np.iinfo(dtype).max + 1))
    for dtype in map(np.dtype, PLAIN)
    if dtype.kind in "iu"
}
#: By the kind of elements those that NumPy converts them to as xarr does: floats to integers if these hold them.
_CONVERTED: Final = {"b": "biufc", "i": "biufc", "u": "biufc", "f": "biufc", "c": "c"}


def convert_small(array: Handle, dtype: np.dtype[Any], frame: FrameType) -> Array | None:
    """array.astype(dtype) of another element type; None where that is not sure."""
    value = array._value
    if type(value) is not ndarray or array._device is None or not has_plain_elements(dtype):
        return None
    kind, device = value.dtype.kind, array._device
    if dtype.kind not in _CONVERTED.get(kind, ""):
        return None
    if kind == "f" and dtype.kind in "iu":
        least, most = _LIMITS[dtype]
        # Of NaN no comparison holds.
        low, high = np.minimum.reduce(value, None, initial=0), np.maximum.reduce(value, None, initial=0)
        if not (least <= low and high < most):
            return None
    if value.size * dtype.itemsize > MOST_PLAIN_BYTES or not value.ndim:
        return None
    return wrap_value(call_quietly(value.astype, dtype, "C"), device, frame)


def magnitude(array: Handle, frame: FrameType) -> Array | None:
    """abs(array) of a float; None for other Arrays."""
    value = array._value
    if type(value) is not float or array._device is None:
        return None
    return wrap_value(abs(value), array._device, frame)


# --- functions of each element ----------------------------------------------------------------------------

#: The codes of the element types of Python numbers.
_CHARS: Final = {float: "d", int: np.dtype(np.int64).char, bool: "?"}


def apply_ufunc(
    ufuncs: dict[str, Any], array: Handle | ndarray[Any, Any], frame: FrameType, record: Callable[..., Any]
) -> Array | None:
    """Apply the function in `ufuncs` for the code of its element type to an array; None if there is none.

    record: the function of the NumPy level.
    """
    if isinstance(array, ndarray):
        value = plain_operand(array) if array.ndim else None
        device = device_beside()
        if device is None:
            return None
    else:
        value = array._value
        if value is None:
            value = small_value(array)
        device = None if value is None else array._device
    if value is None:
        return None
    call = ufuncs.get(_CHARS.get(type(value)) or value.dtype.char)
    if call is None:
        return None
    try:
        result = run_quietly(call, value)
    except RuntimeError:  # in another thread just now
        result = call_quietly(call, value)
    result = result if type(result) is ndarray else plain_value(result)
    if device is None:
        return wrap_constant(result, record, (array,), frame)
    return wrap_value(result, device, frame)


def apply_ufunc_of_two(
    ufuncs: dict[str, Any], first: Any, second: Any, frame: FrameType, record: Callable[..., Any]
) -> Array | None:
    """As `apply_ufunc`, for two operands of one element type, of which one may be a Python number."""
    is_first, is_second = type(first) is handles._array_class, type(second) is handles._array_class
    left, right = first, second
    if is_first and (left := first._value) is None and (left := small_value(first)) is None:
        return None
    if is_second and (right := second._value) is None and (right := small_value(second)) is None:
        return None
    try:
        if is_first and is_second:
            device = first._device
            if device is not second._device:
                device = join(device, second._device)
                if device is None:
                    return None
            char = _CHARS.get(type(left)) or left.dtype.char
            if char != (_CHARS.get(type(right)) or right.dtype.char):
                return None
            if not _are_few(left, right):
                return None
        elif is_first and type(right) in _NUMBERS:
            device, char = first._device, _char_beside(right, left)
        elif is_second and type(left) in _NUMBERS:
            device, char = second._device, _char_beside(left, right)
        elif type(left) is ndarray and type(right) is ndarray:  # one of them NumPy's own
            own = first if is_first else second
            device = (own._device if is_first or is_second else None) or device_beside()
            if device is None:
                return None
            char = left.dtype.char if left.dtype is right.dtype and has_plain_elements(left.dtype) else ""
            if not (left.ndim and right.ndim and _are_few(left, right)):
                return None
        else:
            return None
        call = ufuncs.get(char)
        if call is None:
            return None
        result = call_quietly(call, left, right)
    except _REFUSALS:
        return None
    result = result if type(result) is ndarray else plain_value(result)
    if device is None:
        return wrap_constant(result, record, (first, second), frame)
    return wrap_value(result, device, frame)


def spread(*values: Any) -> int:
    """The elements of the shape that values broadcast to, if they do."""
    shapes = [value.shape[::-1] for value in values if type(value) is ndarray]
    return prod([max(sizes, key=_but_one) for sizes in zip_longest(*shapes, fillvalue=1)])


def _are_few(left: Any, right: Any) -> bool:
    """Whether no result of two values can be large."""
    if _size(left) * _size(right) <= MOST_COMBINED or _shape(left) == _shape(right):
        return True
    return spread(left, right) <= MOST_COMBINED


def _but_one(size: int) -> int:
    return -1 if size == 1 else size


def _size(value: Any) -> int:
    return value.size if type(value) is ndarray else 1


def _shape(value: Any) -> tuple[int, ...]:
    return value.shape if type(value) is ndarray else ()


def _char_beside(number: Any, value: Any) -> str:
    """The code of the element type of `value`, beside which a Python number takes that; TypeError for any other."""
    dtype = _DTYPES.get(type(value)) or value.dtype
    _fit_beside(number, dtype, True)
    is_alike = dtype.kind in "fc" if type(number) is float else dtype.kind in "iufc"
    return dtype.char if is_alike else ""


#: The element types of Python numbers.
_DTYPES: Final = {float: np.dtype(np.float64), int: np.dtype(np.int64), bool: np.dtype(np.bool_)}


# --- operators --------------------------------------------------------------------------------------------


class SmallOperator:
    """An operator of Python's on small values.

    call: the operator; numbers: that of two Python numbers of which not both are floats; refused: kinds of elements
    that only the NumPy level knows, but for values of which `is_sure`, if it is there, says otherwise.
    """

    __slots__ = ("call", "is_sure", "numbers", "record", "refused", "takes_floats")

    def __init__(
        self, call: Compute, numbers: Compute, refused: str = "", is_sure: Compute | None = None
    ) -> None:
        self.call, self.numbers, self.refused = call, numbers, frozenset(refused)
        self.is_sure = is_sure
        #: The function of the NumPy level, set when that is defined.
        self.record: Callable[..., Any] = call
        self.takes_floats = "f" not in refused

    def combine(self, array: Handle, other: Any, frame: FrameType) -> Array | None:
        """`array` and then `other`, an Array or a Python number, for the user's line in `frame`; None if not sure."""
        left, is_weak = array._value, False
        if type(other) is handles._array_class:
            right = other._value
            if left is None or right is None:
                # Of what stands beside a large array the value is not asked for: it may be computed with that.
                left = small_value(array) if may_be_small(other) else None
                right = None if left is None else small_value(other)
                if left is None or right is None:
                    return None
            device = array._device
            if device is not other._device:
                device = join(device, other._device)
                if device is None:  # not one device
                    return None
        elif (is_weak := type(other) in _OPERANDS) or type(other) in _SCALARS:
            right = other if is_weak else plain_value(other)
            if left is None:
                left = small_value(array)
                if left is None:
                    return None
            device = array._device
        elif type(other) is ndarray:
            if left is None:
                left = small_value(array)
            right = plain_operand(other)
            if left is None or right is None:
                return None
            device = array._device or device_beside()
            if device is None:
                return None
        else:
            return None
        try:
            if type(left) is float and type(right) is float:
                value = self.call(left, right)
            elif type(left) in _CHARS and type(right) in _CHARS:
                value = self.numbers(left, right)
            elif (
                type(left) is ndarray
                and left.dtype is _FLOAT64
                and self.takes_floats
                and (
                    type(right) is float
                    or (
                        type(right) is ndarray
                        and right.dtype is _FLOAT64
                        and (left.size * right.size <= MOST_COMBINED or spread(left, right) <= MOST_COMBINED)
                    )
                )
            ):
                value = run_quietly(self.call, left, right)
                if type(value) is not ndarray:
                    value = plain_value(value)
            else:
                value = self.of_arrays(left, right, is_weak)
        except _REFUSALS:
            return None
        except RuntimeError:  # in another thread just now
            value = self.of_arrays(left, right, is_weak)
        if value is None:
            return None
        if device is None:
            return wrap_constant(value, self.record, (array, other), frame)
        code = frame.f_code
        result = _new(handles._array_class)
        result._shown = None
        result._value = value
        result._device = device
        result._location = (code, frame.f_lasti) if code.co_filename in user_files else location_of(frame)
        return result  # type: ignore[return-value]

    def combine_reflected(self, number: Any, array: Handle, frame: FrameType) -> Array | None:
        """`number`, or an array of NumPy's, and then `array`, as `combine`."""
        is_weak = type(number) in _OPERANDS
        if is_weak:
            left = number
        elif type(number) in _SCALARS:
            left = plain_value(number)
        elif type(number) is ndarray:
            left = plain_operand(number)
        else:
            return None
        right = array._value
        if right is None:
            right = small_value(array)
        if right is None or left is None:
            return None
        device = array._device
        if device is None and type(number) is ndarray and (device := device_beside()) is None:
            return None
        try:
            if type(right) is float and type(left) is float:
                value = self.call(left, right)
            elif type(right) in _CHARS and type(left) in _CHARS:
                value = self.numbers(left, right)
            else:
                value = self.of_arrays(left, right, is_weak)
        except _REFUSALS:
            return None
        if value is None:
            return None
        if device is None:
            return wrap_constant(value, self.record, (number, array), frame)
        return wrap_value(value, device, frame)

    def of_arrays(self, left: Any, right: Any, is_weak: bool) -> Any:
        """Of two values of which one is NumPy's; is_weak: the other one is a number that gives way to its type."""
        if type(left) is complex or type(right) is complex:
            array, kind = (right, "c") if type(left) is complex else (left, "c")
            if getattr(array, "dtype", None) not in _BESIDE_COMPLEX:
                return None
        elif type(left) in _CHARS:
            left, kind = _fit_beside(left, right.dtype, is_weak), right.dtype.kind
        elif type(right) in _CHARS:
            right, kind = _fit_beside(right, left.dtype, is_weak), left.dtype.kind
        else:
            if not _are_few(left, right):
                return None
            kind = left.dtype.kind + right.dtype.kind if self.refused else ""
        is_refused = bool(self.refused) and not self.refused.isdisjoint(kind)
        if is_refused and not (self.is_sure is not None and self.is_sure(left, right)):
            return None
        call = np.multiply if self.call is operator.mul and _are_complex_numbers(left, right) else self.call
        try:
            value = run_quietly(call, left, right)
        except RuntimeError:  # in another thread just now
            value = call_quietly(call, left, right)
        if type(value) is not ndarray:
            return plain_value(value)
        return value if value.nbytes <= MOST_PLAIN_BYTES else None


def _are_complex_numbers(left: Any, right: Any) -> bool:
    """Whether two values are single numbers, one of them complex: NumPy's operator rounds products of their parts that
    its loops may add up first.
    """
    if type(left) is ndarray or type(right) is ndarray:
        return False
    return isinstance(left, complex | np.complex64) or isinstance(right, complex | np.complex64)


def _fit_beside(number: Any, dtype: np.dtype[Any], is_weak: bool) -> Any:
    """A number as NumPy's operators take it beside an array; TypeError for one that they may take otherwise."""
    if not is_weak:
        return number if dtype.char in _WIDE or dtype.type in PYTHONS else _OF_PYTHONS[type(number)](number)
    if type(number) is float:
        is_sure = dtype.char not in _SINGLE or not GREATEST_SINGLE < abs(number) < float("inf")
    else:
        is_sure = -EXACT_SINGLE <= number <= EXACT_SINGLE or (
            dtype.char not in _SINGLE and -EXACT <= number <= EXACT
        )
    if not is_sure:
        raise TypeError
    return number


def _is_exact(left: Any, right: Any) -> bool:
    """Whether floats hold both numbers; `numbers` is not asked for two floats."""
    return (type(left) is float or -EXACT <= left <= EXACT) and (
        type(right) is float or -EXACT <= right <= EXACT
    )


def _in_int64(value: Any) -> Any:
    return value if -_GREATEST <= value <= _GREATEST else None


def _arithmetic(call: Compute) -> SmallOperator:
    def numbers(left: Any, right: Any) -> Any:
        if type(left) is float or type(right) is float:
            return call(left, right) if _is_exact(left, right) else None
        if type(left) is type(right) is bool or _in_int64(left) is None or _in_int64(right) is None:
            return None
        return _in_int64(call(left, right))

    return SmallOperator(call, numbers)


def _comparison(call: Compute, refused: str) -> SmallOperator:
    def numbers(left: Any, right: Any) -> Any:
        if type(left) is float or type(right) is float:
            return call(left, right) if _is_exact(left, right) else None
        return None if _in_int64(left) is None or _in_int64(right) is None else call(left, right)

    return SmallOperator(call, numbers, refused)


def _divide(left: Any, right: Any) -> Any:
    return left / right if _is_exact(left, right) else None


def _of_ints(call: Compute, refused: str = "") -> SmallOperator:
    """An operator of ints alone; of bools too, which stay bools."""

    def numbers(left: Any, right: Any) -> Any:
        if _in_int64(left) is None or _in_int64(right) is None:
            return None
        return call(left, right)  # TypeError for a float

    return SmallOperator(call, numbers, refused)


def _shift(call: Compute) -> SmallOperator:
    def numbers(left: Any, right: Any) -> Any:
        is_usual = type(left) is type(right) is int and 0 <= right < _BITS
        return _in_int64(call(left, right)) if is_usual and _in_int64(left) is not None else None

    return SmallOperator(call, numbers)


def _whole_division(call: Compute) -> SmallOperator:
    def numbers(left: Any, right: Any) -> Any:
        if type(left) is not int or type(right) is not int or _in_int64(left) is None:
            return None
        return _in_int64(call(left, right)) if _in_int64(right) is not None else None

    return SmallOperator(call, numbers, "fcb")


#: By the symbols of the operators.
OPERATORS: Final = {
    **{"+": _arithmetic(operator.add), "-": _arithmetic(operator.sub), "*": _arithmetic(operator.mul)},
    **{"/": SmallOperator(operator.truediv, _divide, "c", are_ordinary)},
    **{"//": _whole_division(operator.floordiv), "%": _whole_division(operator.mod)},
    **{"&": _of_ints(operator.and_), "|": _of_ints(operator.or_), "^": _of_ints(operator.xor)},
    **{"<<": _shift(operator.lshift), ">>": _shift(operator.rshift)},
    **{"==": _comparison(operator.eq, ""), "!=": _comparison(operator.ne, "")},
    **{"<": _comparison(operator.lt, "c"), "<=": _comparison(operator.le, "c")},
    **{">": _comparison(operator.gt, "c"), ">=": _comparison(operator.ge, "c")},
}
