"""The operators `+`, `==`, `+=` … of an Array beside anything: they compute, or leave it to the other operand."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import Parameter, Signature, signature
from numbers import Number
from sys import _getframe as frame_of
from types import FunctionType
from typing import Any, Final, ParamSpec, TypeVar

import numpy as np

from xarr.base.at_once.obstacles import obstacles
from xarr.base.tracebacks import shorten
from xarr.base.typing import Array
from xarr.calls.call_plans import repeat_of, repeats
from xarr.calls.remembered_calls import runner
from xarr.calls.small_values import OPERATORS, show_small_value
from xarr.dtypes import COMPLEX, INTEGER, PREDICATE
from xarr.errors import DTypeError, ShapeError, XarrError
from xarr.lax.core import ArrayLike
from xarr.lax.creation import full_like
from xarr.numpy_api.mathematics import elementwise
from xarr.runtime.device_arrays import lies_on_device
from xarr.runtime.handles import Handle, may_be_small
from xarr.runtime.view_tracking import ALL

Function = Callable[[Any, Any], "Array"]
Method = Callable[["Array", Any], "Array"]
P = ParamSpec("P")
R = TypeVar("R")

#: What Python calls the methods of operators, between underscores.
_NAMES: Final = {
    **{"+": "add", "-": "sub", "*": "mul", "/": "truediv", "//": "floordiv", "%": "mod", "**": "pow"},
    **{"&": "and", "|": "or", "^": "xor", "<<": "lshift", ">>": "rshift"},
    **{"==": "eq", "!=": "ne", "<": "lt", "<=": "le", ">": "gt", ">=": "ge"},
}
#: What every operator computes with.
_KNOWN = (Handle, int, float, complex, bool, list, tuple, np.generic)
#: What Python repeats when it is multiplied.
_SEQUENCES: Final = (list, tuple)
#: The methods of `x.at[…]` for the operators that it has.
_OF_AT: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power"}
_UFUNC_OF_NUMPY: Final = np.ndarray.__array_ufunc__


def is_operand(other: object) -> bool:
    """Whether xarr computes with `other`; anything else gets NotImplemented, so that it is asked itself.

    A class with an `__array_ufunc__` of its own (None too) answers for itself: NumPy's NEP 13.  Not so arrays of other
    libraries on a GPU, as CuPy's: CuPy would compute with the memory of the Array, and return an array of its own.
    """
    if isinstance(other, _KNOWN) or type(other) is np.ndarray or lies_on_device(other):
        return True
    own = getattr(type(other), "__array_ufunc__", _UFUNC_OF_NUMPY)
    return own is _UFUNC_OF_NUMPY and hasattr(other, "__array__")


def compute(function: Callable[[Any, Any], R], left: Any, right: Any) -> R:
    """`function` of the operands of an operator, whose errors name no function."""
    try:
        return function(left, right)
    except XarrError as error:
        shorten(error, "")
        raise


def raise_to_power(x1: Array, x2: ArrayLike) -> Array:
    """x1 ** x2 for the operator, which has functions of its own for some Python numbers, as NumPy's operator.

    They give other results than `power` for infinities and -0.0, and other last bits: sqrt(-0.0) is -0.0.
    Source: NumPy, `fast_scalar_power` in `number.c`.
    """
    return _power(x1, x2) if may_be_small(x1) else powers.run((x1, x2), {})


def _power(x1: Array, x2: ArrayLike) -> Array:
    """As `raise_to_power`."""
    if type(x2) in (int, float) and x1.dtype.kind in "fc":
        function = _POWERS.get((type(x2), x2))
        if function is not None:
            return function(x1)
    return elementwise.power(x1, x2)


#: What the operator computes for these Python numbers, of floats and complex numbers.
_POWERS: Final[dict[tuple[type, float], Callable[[Array], Array]]] = {
    (int, 2): elementwise.square,
    (int, -1): elementwise.reciprocal,
    (float, 0.5): elementwise.sqrt,
}
raise_to_power.__name__ = "pow"  # as help of the operators has it
powers: Final = runner(_power)


def _name_method(method: Method, name: str, summary: str) -> Method:
    """`method` as help and tracebacks show it, the method `name` of Array."""
    method.__name__, method.__qualname__, method.__module__ = name, f"Array.{name}", "xarr.arrays.array"
    method.__code__ = method.__code__.replace(co_name=name, co_qualname=f"Array.{name}")
    method.__doc__ = summary
    return method


def as_method(function: Callable[P, R], summary: str) -> Callable[P, R]:
    """`function`, of an array first of all, as the method of Array with its name: the same code, no call more."""
    made: Any = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    first, *others = signature(function).parameters.values()
    made.__signature__ = Signature([first.replace(name="self", annotation=Parameter.empty), *others])
    made.__qualname__, made.__module__ = f"Array.{function.__name__}", "xarr.arrays.array"
    made.__annotations__, made.__doc__ = function.__annotations__, summary
    made.__kwdefaults__ = function.__kwdefaults__
    return made  # type: ignore[no-any-return]


def arithmetic(symbol: str, function: Function) -> tuple[Method, Method, Method]:
    """The methods of `self + other`, `other + self` and `self += other`, for which `function` computes."""
    return operator(symbol, function), reflect(symbol, function), in_place(symbol, function)


def operator(
    symbol: str, function: Function, otherwise: Function = lambda self, other: NotImplemented
) -> Method:
    """The method of the expression `self symbol other`, by `function`, and by `otherwise` for what is no operand."""

    small, repeat = OPERATORS.get(symbol), repeat_of(function)
    if small is not None:
        small.record = function

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if self._value is None and (result := repeat(self, other, frame_of(1))) is not None:
                return result
            if not obstacles and small is not None:
                result = small.combine(self, other, frame_of(1))
                if result is not None:
                    return result
            if is_operand(other):
                return function(self, other)
        except XarrError as error:
            shorten(error, "")
            raise
        return otherwise(self, other)

    return _name_method(
        method, f"__{_NAMES[symbol]}__", f"self {symbol} other, by `xarr.{function.__name__}`."
    )


def reflect(symbol: str, function: Function) -> Method:
    """The method of the expression `other symbol self`, for which `function` computes."""

    small, repeat = OPERATORS.get(symbol), repeat_of(function)

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if self._value is None and (result := repeat(other, self, frame_of(1))) is not None:
                return result
            if not obstacles and small is not None:
                result = small.combine_reflected(other, self, frame_of(1))
                if result is not None:
                    return result
            if is_operand(other):
                return function(other, self)
        except XarrError as error:
            shorten(error, "")
            raise
        return NotImplemented  # type: ignore[no-any-return]

    return _name_method(
        method, f"__r{_NAMES[symbol]}__", f"other {symbol} self, by `xarr.{function.__name__}`."
    )


def in_place(symbol: str, function: Function) -> Method:
    """The method of the statement `self symbol= other`, for which `function` computes."""
    name, small, repeat = _OF_AT.get(symbol), OPERATORS.get(symbol), repeat_of(function)

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            again = repeat(self, other, frame_of(1)) if self._value is None else None
            if again is None and not obstacles and small is not None:
                result = small.combine(self, other, frame_of(1))
                if result is not None and show_small_value(self, result):
                    return self
            if again is not None or is_operand(other):
                write = ("set", ALL, f"{{part}} {symbol} v") if name is None else (name, ALL, other)
                return self._become(function(self, other) if again is None else again, write, symbol)
        except XarrError as error:
            shorten(error, "")
            raise
        return NotImplemented  # type: ignore[no-any-return]

    summary = f"self {symbol}= other, which makes self show the result of `xarr.{function.__name__}`."
    return _name_method(method, f"__i{_NAMES[symbol]}__", summary)


def in_type_of(array: Array, result: Array, symbol: str) -> Array:
    """The result of `array symbol= other` in the element type of `array`, which NumPy's casting must allow.

    Raises ShapeError for a result of another shape, DTypeError for one that does not fit.
    """
    if result.shape != array.shape:
        raise ShapeError(
            f"an in-place operation cannot change shape {array.shape} to {result.shape}; "
            f"write x = x {symbol} y instead"
        )
    if result.dtype == array.dtype:
        return result
    loses_imaginary = result.dtype in COMPLEX and array.dtype not in COMPLEX
    if loses_imaginary or not np.can_cast(result.dtype, array.dtype, "same_kind"):
        raise DTypeError(
            f"an in-place operation cannot convert {array.dtype} to {result.dtype}; "
            f"write x = x {symbol} y instead"
        )
    return result.astype(array.dtype)


def equality(symbol: str, function: Function, outcome: bool) -> Method:
    """The method of `self == other` or `self != other`.

    An object that does not know better itself differs from every number: as in NumPy, `outcome` for each element.
    Sequences of numbers, as `range`, and numbers of other kinds, as `Fraction`, are left to `function`.
    """

    def compare_unknown(self: Array, other: Any) -> Array:
        if getattr(type(other), "__array_ufunc__", _UFUNC_OF_NUMPY) is not _UFUNC_OF_NUMPY:
            return NotImplemented  # type: ignore[no-any-return]
        if isinstance(other, Sequence) and not isinstance(other, str | bytes):
            return compute(function, self, other)
        answer = getattr(type(other), f"__{_NAMES[symbol]}__")(other, self)
        if answer is NotImplemented and isinstance(other, Number):
            return compute(function, self, other)
        return full_like(self, outcome, PREDICATE) if answer is NotImplemented else answer

    return operator(symbol, function, compare_unknown)


def repeating(symbol: str, function: Function) -> tuple[Method, Method, Method]:
    """As `arithmetic`, but lists and tuples are left to Python where it can repeat them.

    `[0] * x.max()` is a list of that many zeros, as for the scalars that NumPy's reductions give; its arrays
    without dimensions would multiply the elements, which `xarr.asarray([0]) * x.max()` does.
    """

    def unless_repeated(left: Any, right: Any) -> Any:
        array, other = (right, left) if isinstance(left, _SEQUENCES) else (left, right)
        if isinstance(other, _SEQUENCES) and not array._node.shape and array.dtype in INTEGER:
            return NotImplemented
        return function(left, right)

    unless_repeated.__name__, repeats[unless_repeated] = function.__name__, repeat_of(function)
    return operator(symbol, unless_repeated), reflect(symbol, unless_repeated), in_place(symbol, function)
