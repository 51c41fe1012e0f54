"""What `+`, `==`, `+=` … of an Array do beside anything: compute, or leave the answer to the other operand."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import INTEGER, PREDICATE
from xarr.errors import XarrError
from xarr.lax.core import ArrayLike
from xarr.lax.creation import full_like
from xarr.lazy import Handle
from xarr.parts import ALL
from xarr.tracebacks import shorten

if TYPE_CHECKING:
    from xarr.array import Array

#: What every operator computes with.
_KNOWN = (Handle, int, float, complex, bool, list, tuple, np.generic)
#: The methods of `x.at[…]` for the operators that it has.
_OF_AT: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "**": "power"}
_UFUNC_OF_NUMPY: Final = np.ndarray.__array_ufunc__


def is_operand(other: object) -> bool:
    """Whether xarr computes with `other`; anything else gets NotImplemented, so that it is asked itself.

    A class with an `__array_ufunc__` of its own (None too) answers for itself: NumPy's NEP 13.
    """
    if isinstance(other, _KNOWN) or type(other) is np.ndarray:
        return True
    own = getattr(type(other), "__array_ufunc__", _UFUNC_OF_NUMPY)
    return own is _UFUNC_OF_NUMPY and hasattr(other, "__array__")


def operator(function: Callable[[Any, Any], Array]) -> Callable[[Array, Any], Array]:
    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if is_operand(other):
                return function(self, other)
        except XarrError as error:
            shorten(error)
            raise
        return NotImplemented  # type: ignore[no-any-return]

    return method


def equality(
    name: str, function: Callable[[Any, Any], Array], outcome: bool
) -> Callable[[Array, Any], Array]:
    """An object that does not know better itself differs from every number: as in NumPy, `outcome` for each element."""

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if is_operand(other):
                return function(self, other)
        except XarrError as error:
            shorten(error)
            raise
        if getattr(type(other), "__array_ufunc__", _UFUNC_OF_NUMPY) is not _UFUNC_OF_NUMPY:
            return NotImplemented  # type: ignore[no-any-return]
        answer = getattr(type(other), name)(other, self)
        return full_like(self, outcome, PREDICATE) if answer is NotImplemented else answer

    return method


def reflected(function: Callable[[Any, Any], Array]) -> Callable[[Array, Any], Array]:
    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if is_operand(other):
                return function(other, self)
        except XarrError as error:
            shorten(error)
            raise
        return NotImplemented  # type: ignore[no-any-return]

    return method


def in_place(function: Callable[[Any, Any], Array], symbol: str) -> Callable[[Array, Any], Array]:
    """The method of the statement `x symbol= v`, for which `function` computes."""
    name = _OF_AT.get(symbol)

    def method(self: Array, other: ArrayLike) -> Array:
        try:
            if is_operand(other):
                write = ("set", ALL, f"{{part}} {symbol} v") if name is None else (name, ALL, other)
                return self._become(function(self, other), write)
        except XarrError as error:
            shorten(error)
            raise
        return NotImplemented  # type: ignore[no-any-return]

    return method


def repeating(multiply: Callable[[Array, Any], Array]) -> Callable[[Array, Any], Array]:
    """`multiply`, but lists and tuples are left to Python where it can repeat them.

    `[0] * x.max()` is a list of that many zeros, as for the scalars that NumPy's reductions give; its arrays
    without dimensions would multiply the elements, which `xarr.asarray([0]) * x.max()` does.
    """

    def method(self: Array, other: Any) -> Array:
        if isinstance(other, list | tuple) and not self._node.shape and self.dtype in INTEGER:
            return NotImplemented  # type: ignore[no-any-return]
        return multiply(self, other)

    return method
