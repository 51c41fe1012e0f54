"""Data type routines: conversion, promotion, limits of types, and of which kind a type is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy import mintypecode
from numpy.typing import DTypeLike

from xarr.base.host_arrays import scalar_kind
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import DeviceLike, check_casting, convert, fill, move_to_device
from xarr.calls.operands import DType, as_array, common_dtype, fresh, is_weak, promote_operands
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    EXTENDED_FLOAT,
    FLOAT,
    INTEGER,
    NUMBER,
    SIGNED,
    SUB_BYTE,
    SUB_BYTE_INTEGER,
    UNSIGNED,
    KeyType,
    canonical,
    complex_of,
    default_of,
    extended,
    info,
    promote,
    real_part_of,
    widen_dtype,
)
from xarr.errors import ArgumentError, DTypeError, InputError, ValueRangeError
from xarr.lax.core import ArrayLike
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host

__all__ = [
    "astype",
    "can_cast",
    "common_type",
    "finfo",
    "iinfo",
    "isdtype",
    "issubdtype",
    "min_scalar_type",
    "mintypecode",
    "promote_types",
    "result_type",
]


@names_errors
def astype(x: ArrayLike, dtype: DTypeLike, /, *, copy: bool = True, device: DeviceLike = None) -> Array:
    """The elements as `dtype`, see `lax.convert_element_type`; `x` itself if `copy` is false and it fits.

    Raises DTypeError for an element type that xarr has not.  Source: Array API, `astype`.
    """
    array = as_array(x)
    result = move_to_device(convert(array, canonical(dtype)), device)
    return fresh(result) if copy and result is array else result


def _dtype_of(value: Any) -> DType:
    """The element type of an array or Python number, or the one that a dtype names."""
    if is_weak(value):
        return default_of(scalar_kind(value))
    # Of NumPy's scalar classes `shape` and `dtype` are descriptors.
    is_array = not isinstance(value, type) and hasattr(value, "shape") and hasattr(value, "dtype")
    return canonical(value.dtype if is_array else value)


@names_errors
def can_cast(from_: Any, to: DTypeLike, casting: str = "safe") -> bool:
    """Whether an array or dtype can become `to` by the rule "no", "equiv", "safe", "same_kind" or "unsafe".

    Raises ValueRangeError for another rule, DTypeError for what is no dtype.  Source: NumPy, `can_cast`.
    """
    check_casting("can_cast", casting)
    if is_weak(from_):
        raise InputError(f"can_cast: a Python number has no dtype, got {from_!r}; wanted an array or a dtype")
    return bool(np.can_cast(_dtype_of(from_), canonical(to), casting))  # type: ignore[arg-type]


@names_errors
def promote_types(type1: DTypeLike, type2: DTypeLike) -> DType:
    """The smallest element type that both can become.  DTypeError where there is none.  Source: NumPy."""
    return promote(canonical(type1), canonical(type2))


@names_errors
def result_type(*arrays_and_dtypes: Any) -> DType:
    """The element type of an operation on these arrays, dtypes and Python numbers, which give way.

    Raises InputError for no argument, DTypeError where there is no promotion.  Source: NumPy and Array API.
    """
    if not arrays_and_dtypes:
        raise ArgumentError("result_type: wanted at least one array, dtype or number, got none")
    dtypes = [getattr(value, "dtype", value) for value in arrays_and_dtypes]
    if any(isinstance(dtype, KeyType) for dtype in dtypes):
        return _type_of_keys(dtypes)
    return common_dtype(*map(_probe, arrays_and_dtypes))


def _type_of_keys(dtypes: Sequence[Any]) -> DType:
    """Their one type: that of random keys has no promotion."""
    if any(dtype != dtypes[0] for dtype in dtypes):
        raise DTypeError(f"result_type: random keys have no promotion, got {', '.join(map(str, dtypes))}")
    common: DType = dtypes[0]
    return common


def _probe(value: Any) -> Any:
    """A Python number itself; for anything else a scalar Array of its element type."""
    if is_weak(value):
        return value
    dtype = as_array(value).dtype if isinstance(value, list | tuple) else _dtype_of(value)
    return fill((), 0, dtype)


class FloatInfo:
    """Limits of a float type as Python numbers: bits, dtype, eps, max, min, smallest_normal, and whatever
    else NumPy's `finfo` has (tiny, resolution, nmant …)."""

    __slots__ = ("_limits", "bits", "dtype")

    def __init__(self, dtype: DType) -> None:
        self._limits = info(dtype)
        self.dtype = real_part_of(dtype)
        self.bits = int(self._limits.bits)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._limits, name)
        # A number of a strong type would promote narrower arrays that it meets.
        return value if isinstance(value, int | str) else float(value)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *(name for name in dir(self._limits) if not name.startswith("_"))})

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FloatInfo) and self.dtype == other.dtype

    def __hash__(self) -> int:
        return hash(self.dtype)

    def __reduce__(self) -> tuple[Any, ...]:
        return FloatInfo, (self.dtype,)

    def __repr__(self) -> str:
        shown = ("eps", "max", "min", "smallest_normal")
        limits = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"finfo(bits={self.bits}, {limits}, dtype={self.dtype})"


class KindError(DTypeError, ValueError):
    """An element type of the wrong kind.  NumPy says ValueError."""


@names_errors
def finfo(type: Any, /) -> FloatInfo:
    """Limits of a float type, of the parts of a complex one, or of a value's type.

    They are bits, eps, max, min, smallest_normal, dtype and the others of NumPy's.  Raises DTypeError for any other
    type.  Source: NumPy and Array API, `finfo`.
    """
    dtype = _dtype_of(type)
    if dtype not in FLOAT | COMPLEX and (dtype not in SUB_BYTE or dtype in SUB_BYTE_INTEGER):
        raise KindError(f"finfo: wanted a float or complex type, got {dtype}; iinfo is for integers")
    return FloatInfo(dtype)


@names_errors
def iinfo(type: Any, /) -> Any:
    """Limits of an integer type, or of a value's type: bits, max, min, dtype.

    Raises DTypeError for any other.  Source: NumPy, `iinfo`.
    """
    dtype = _dtype_of(type)
    if dtype not in INTEGER | SUB_BYTE_INTEGER:
        raise KindError(f"iinfo: wanted an integer type, got {dtype}; finfo is for floats")
    return info(dtype)


_KINDS: Final = {
    "bool": BOOL,
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": INTEGER,
    "real floating": FLOAT,
    "complex floating": COMPLEX,
    "numeric": NUMBER,
}


@names_errors
def isdtype(dtype: DTypeLike, kind: Any) -> bool:
    """Whether `dtype` is of a kind: a dtype, "bool", "signed integer", "unsigned integer", "integral",
    "real floating", "complex floating", "numeric", or a tuple of these, any of which will do.

    Raises ValueRangeError for an unknown kind.  Source: NumPy and Array API, `isdtype`.
    """
    element = canonical(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(element, one) for one in kind)
    if isinstance(kind, str):
        if kind not in _KINDS:
            raise ValueRangeError(
                f"isdtype: wanted a kind of {', '.join(map(repr, _KINDS))} or a dtype, got {kind!r}"
            )
        return widen_dtype(element) in _KINDS[kind]
    return element == canonical(kind)


@names_errors
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


@names_errors
def min_scalar_type(a: ArrayLike, /) -> DType:
    """The smallest element type that holds a scalar's value; of an array its own.

    Raises DTypeError where xarr has no such type, TracedValueError for a scalar of a traced function.
    Source: NumPy, `min_scalar_type`.
    """
    if isinstance(a, Handle):
        array = as_array(a)
        return array.dtype if array.shape or array.dtype in EXTENDED_FLOAT else np.min_scalar_type(to_host(a))
    return canonical(np.min_scalar_type(a))


@names_errors
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
