"""Logic: arrays compared, closely or as a whole; questions about elements and element types: real, infinite …"""

from __future__ import annotations

import math

import numpy as np
from numpy import isscalar

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, is_nan
from xarr.calls.operands import as_array, broadcast_operands, promote_operands
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    PREDICATE,
    promote_weak,
)
from xarr.errors import DTypeError, InputError
from xarr.lax.core import ArrayLike, flag
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.shapes import broadcast_arrays
from xarr.numpy_api.mathematics import elementwise
from xarr.numpy_api.statistics.reductions import all as all_of
from xarr.runtime.handles import weak_kind

__all__ = [
    "allclose",
    "array_equal",
    "array_equiv",
    "isclose",
    "iscomplex",
    "iscomplexobj",
    "isneginf",
    "isposinf",
    "isreal",
    "isrealobj",
    "isscalar",
]


def _is_finite(x: Array) -> Array:
    if x.dtype in COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


@remembers_calls
def isclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether |a - b| <= atol + rtol * |b|, element by element; equal infinities are close.

    NaN is close to nothing, or with `equal_nan` to NaN.  Bools and integers are compared as floats.  rtol, atol:
    numbers, or arrays that broadcast; those of NumPy's types take part in promotion, unlike Python's.  Raises
    BroadcastError.  Source: NumPy, `isclose`.
    """
    tolerances = _tolerance("rtol", rtol), _tolerance("atol", atol)
    arrays = [each for each in tolerances if weak_kind(each) is None]
    x, y, *spread = broadcast_operands("isclose", *promote_operands("isclose", a, b), *arrays)
    share, least = (each if weak_kind(each) is not None else spread.pop(0) for each in tolerances)
    if x.dtype in INTEGER | BOOL:
        x, y = (convert(one, promote_weak(one.dtype, float)) for one in (x, y))
    distance, size = lax.abs(lax.sub(x, y)), lax.abs(y)
    limit = elementwise.add(elementwise.multiply(size, share), least)
    is_same = lax.eq(x, y)
    if flag("isclose", "equal_nan", equal_nan):
        is_same = lax.bitwise_or(is_same, lax.bitwise_and(is_nan(x), is_nan(y)))
    near = lax.bitwise_and(elementwise.less_equal(distance, limit), _is_finite(y))
    return lax.bitwise_or(near, is_same)


def _tolerance(argument: str, value: ArrayLike) -> ArrayLike:
    """A real number, which promotes nothing if it is Python's, or an array of them."""
    if value is None or isinstance(value, str | bytes):
        raise InputError(f"isclose: wanted a number for {argument}, got {value!r}")
    tolerance = value if weak_kind(value) is not None else as_array(value)
    if weak_kind(value) is complex or getattr(tolerance, "dtype", None) in COMPLEX:
        raise DTypeError(f"isclose: wanted a real number for {argument}, got {value!r}")
    return tolerance


@remembers_calls
def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether `isclose` holds everywhere, as a bool Array without dimensions.  Source: NumPy, `allclose`."""
    return all_of(isclose(a, b, rtol, atol, equal_nan))


@remembers_calls
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have one shape and equal elements, as a bool Array without dimensions.

    With `equal_nan` NaN equals NaN.  Source: NumPy, `array_equal`.
    """
    first, second = as_array(a1), as_array(a2)
    for array in (first, second):
        refuse_dynamic("array_equal", array, "all(x == y) for arrays of one live size")
    if first.shape != second.shape:
        return fill((), False, PREDICATE, first._node.device)
    x, y = promote_operands("array_equal", first, second)
    same = lax.eq(x, y)
    if flag("array_equal", "equal_nan", equal_nan) and x.dtype in FLOAT | COMPLEX:
        same = lax.bitwise_or(same, lax.bitwise_and(is_nan(x), is_nan(y)))
    return all_of(same)


@remembers_calls
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays broadcast to one shape and have equal elements there, as a bool without dimensions.

    Source: NumPy, `array_equiv`.
    """
    first, second = as_array(a1), as_array(a2)
    for array in (first, second):
        refuse_dynamic("array_equiv", array, "all(x == y) for arrays of one live size")
    if isinstance(align_numpy(first.shape, second.shape), Misfit):
        return fill((), False, PREDICATE, first._node.device)
    x, y = broadcast_arrays(*promote_operands("array_equiv", first, second))
    return all_of(lax.eq(x, y))


@remembers_calls
def iscomplex(x: ArrayLike) -> Array:
    """Whether the imaginary part differs from 0.  Source: NumPy, `iscomplex`."""
    array = as_array(x)
    return lax.ne(lax.imag(array), 0) if array.dtype in COMPLEX else lax.full_like(array, False, PREDICATE)


@remembers_calls
def isreal(x: ArrayLike) -> Array:
    """Whether the imaginary part is 0.  Source: NumPy, `isreal`."""
    array = as_array(x)
    return lax.eq(lax.imag(array), 0) if array.dtype in COMPLEX else lax.full_like(array, True, PREDICATE)


@remembers_calls
def iscomplexobj(x: ArrayLike) -> bool:
    """Whether the element type is complex, also of an object that is no array and has a `dtype`.

    Source: NumPy, `iscomplexobj`.
    """
    kind = getattr(getattr(x, "dtype", None), "type", None)
    if isinstance(kind, type):
        return issubclass(kind, np.complexfloating)
    return as_array(x).dtype in COMPLEX


@remembers_calls
def isrealobj(x: ArrayLike) -> bool:
    """Whether the element type is not complex.  Source: NumPy, `isrealobj`."""
    return not iscomplexobj(x)


@takes_out("same_kind", broadcasts=True)
def isposinf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether each element is inf.  Raises DTypeError for complex numbers.  Source: NumPy, `isposinf`."""
    return _equals_infinity("isposinf", x, math.inf)


@takes_out("same_kind", broadcasts=True)
def isneginf(x: ArrayLike, out: Array | None = None) -> Array:
    """Whether each element is -inf.  Raises DTypeError for complex numbers.  Source: NumPy, `isneginf`."""
    return _equals_infinity("isneginf", x, -math.inf)


def _equals_infinity(name: str, x: ArrayLike, infinity: float) -> Array:
    array = as_array(x)
    if array.dtype in COMPLEX:
        raise DTypeError(f"{name}: wanted real numbers, got {array.dtype}; use xarr.real(x) or xarr.imag(x)")
    return lax.eq(array, infinity) if array.dtype in FLOAT else lax.full_like(array, False, PREDICATE)
