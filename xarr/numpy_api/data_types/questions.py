"""Questions about element types, shapes and kinds of objects, beyond those of the Array API standard."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import isscalar, mintypecode

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.typing import Array
from xarr.calls.arguments import fill
from xarr.calls.operands import DType, as_array, promote_operands
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    EXTENDED_FLOAT,
    INTEGER,
    PREDICATE,
    KeyType,
    canonical,
    complex_of,
    extended,
)
from xarr.errors import DTypeError
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.shapes import broadcast_arrays
from xarr.numpy_api.statistics.reductions import all as all_of
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host
from xarr.shapes import normalize_axes

__all__ = [
    "array_equiv",
    "common_type",
    "isscalar",
    "issubdtype",
    "iterable",
    "min_scalar_type",
    "mintypecode",
    "ndim",
    "shape",
    "size",
]


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Whether the type `arg1` is `arg2` or below it, as float32 is below `xarr.floating`.

    bfloat16 and the float8 types, which NumPy has not, are below floating, inexact, number and generic; that of random
    keys is below `dtypes.prng_key`, `dtypes.extended` and generic.  Raises DTypeError for what is no type.
    Source: NumPy, `issubdtype`.
    """
    if isinstance(arg1, KeyType) or _is_kind_of_key(arg1) or _is_kind_of_key(arg2):
        kind = arg1.type if isinstance(arg1, KeyType) else arg1
        if not isinstance(arg2, type) or not _is_kind_of_key(kind):
            return bool(arg2 == arg1)
        return arg2 is np.generic or issubclass(kind, arg2)
    try:
        first = arg1 if _is_class(arg1) else np.dtype(arg1).type
        second = arg2 if _is_class(arg2) else np.dtype(arg2).type
    except TypeError as error:
        raise DTypeError(f"issubdtype: wanted two types, got {arg1!r} and {arg2!r}: {error}") from None
    if (not _is_class(arg1) and np.dtype(arg1) in EXTENDED_FLOAT) or _is_extended(first):
        return second is first or issubclass(np.floating, second)
    return issubclass(first, second)


def _is_kind_of_key(arg: Any) -> bool:
    return isinstance(arg, type) and issubclass(arg, extended)


def _is_class(arg: Any) -> bool:
    return isinstance(arg, type) and issubclass(arg, np.generic)


def _is_extended(scalar: type[Any]) -> bool:
    return not issubclass(scalar, np.number) and np.dtype(scalar) in EXTENDED_FLOAT


def min_scalar_type(a: ArrayLike, /) -> DType:
    """The smallest element type that holds a scalar's value; of an array its own.

    Raises DTypeError where xarr has no such type, TracedValueError for a scalar of a traced function.
    Source: NumPy, `min_scalar_type`.
    """
    if isinstance(a, Handle):
        array = as_array(a)
        return array.dtype if array.shape or array.dtype in EXTENDED_FLOAT else np.min_scalar_type(to_host(a))
    return canonical(np.min_scalar_type(a))


def common_type(*arrays: ArrayLike) -> type[Any]:
    """The float or complex scalar class that all arrays fit in; integers count as float64.

    Raises DTypeError for bools, for pairs without promotion, and for no array.  Source: NumPy, `common_type`.
    """
    dtypes = [as_array(array).dtype for array in arrays]
    refused = [dtype for dtype in dtypes if dtype in BOOL]
    if refused:
        raise DTypeError(f"common_type: wanted arrays of numbers, got {refused[0]}; convert it with astype")
    result = np.dtype(np.float16)
    if dtypes:
        reals = [np.dtype(np.float64) if dtype in INTEGER else dtype for dtype in dtypes]
        probes = [fill((), 0, dtype) for dtype in reals]
        result = promote_operands("common_type", *probes)[0].dtype
    return (complex_of(result) if result in COMPLEX else result).type


def ndim(a: ArrayLike) -> int:
    """The number of dimensions.  Source: NumPy, `ndim`."""
    return len(as_array(a).shape)


def shape(a: ArrayLike) -> tuple[int, ...]:
    """The sizes of the dimensions.  Source: NumPy, `shape`."""
    array = as_array(a)
    refuse_dynamic("shape", array, "x.shape for the bounds")
    return array.shape


def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or the size of a dimension, or the product of several.

    Raises AxisError.  Source: NumPy, `size`.
    """
    array = as_array(a)
    refuse_dynamic("size", array, "x.size for the bound")
    return math.prod(array.shape[dim] for dim in normalize_axes(axis, len(array.shape)))


def iterable(y: object) -> bool:
    """Whether `iter(y)` works; of an Array whether it has a dimension.  Source: NumPy, `iterable`."""
    if isinstance(y, Handle):
        return bool(as_array(y).shape)
    return bool(np.iterable(y))


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
