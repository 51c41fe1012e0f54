"""Arrays from formulas, iterables, bytes and text, beyond the Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import DeviceLike, convert
from xarr.calls.operands import fresh
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT, canonical, with_byte_order
from xarr.errors import ArgumentError, InputError, ValueRangeError
from xarr.lax.core import ArrayLike, check_callable, items
from xarr.numpy_api.creation.arrays import asarray
from xarr.numpy_api.creation.numpy_readers import call_guarded, read
from xarr.numpy_api.manipulation.shapes import atleast_1d
from xarr.numpy_api.statistics.reductions import any as any_of
from xarr.runtime.handles import Handle, commit
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes

__all__ = [
    "asanyarray",
    "asarray_chkfinite",
    "ascontiguousarray",
    "asfortranarray",
    "frombuffer",
    "fromfile",
    "fromfunction",
    "fromiter",
    "fromstring",
    "require",
]


# --- from arrays ----------------------------------------------------------------------------------


@names_errors
def asanyarray(
    a: ArrayLike,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    device: DeviceLike = None,
    copy: bool | None = None,
) -> Array:
    """`asarray`: xarr has one class of arrays.  Source: NumPy, `asanyarray`."""
    return asarray(a, dtype, order, device=device, copy=copy)


@names_errors
def ascontiguousarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with a dimension at least; the backend decides the order in memory.  Source: NumPy."""
    result: Array = atleast_1d(asarray(a, dtype, device=None))
    return result


@names_errors
def asfortranarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with a dimension at least; the backend decides the order in memory.  Source: NumPy."""
    return fresh(ascontiguousarray(a, dtype))  # NumPy makes a copy in another order


@names_errors
def asarray_chkfinite(a: ArrayLike, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """`asarray`, which is evaluated to see that there is no NaN and no infinity.

    Raises ValueRangeError if there is one; in a traced function TracedValueError.
    Source: NumPy, `asarray_chkfinite`.
    """
    array = asarray(a, dtype, order, device=None)
    parts = [lax.real(array), lax.imag(array)] if array.dtype in COMPLEX else [array]
    for part in parts:
        if part.dtype in FLOAT and bool(to_host(any_of(lax.bitwise_not(lax.is_finite(part))))):
            raise ValueRangeError("asarray_chkfinite: wanted finite numbers, got NaN or infinity among them")
    return array


_FLAGS: Final = {
    **{name: "C" for name in ("C", "C_CONTIGUOUS", "CONTIGUOUS")},
    **{name: "F" for name in ("F", "F_CONTIGUOUS", "FORTRAN")},
    **{name: name[0] for name in ("A", "ALIGNED", "W", "WRITEABLE", "O", "OWNDATA", "E", "ENSUREARRAY")},
}


@names_errors
def require(
    a: ArrayLike, dtype: DTypeLike | None = None, requirements: str | Sequence[str] | None = None
) -> Array:
    """`asarray`: an Array can be computed with and written to whatever its memory is like.

    requirements: "C", "F", "A", "W", "O", "E" or their long names.  Raises ValueRangeError for another one, and
    for "C" with "F".  Source: NumPy, `require`.
    """
    wanted = [name.upper() for name in items("require", "requirements", requirements or ())]
    unknown = [name for name in wanted if name not in _FLAGS]
    if unknown:
        raise ValueRangeError(f"require: wanted requirements of {', '.join(_FLAGS)}, got {unknown[0]!r}")
    if {"C", "F"} <= {_FLAGS[name] for name in wanted}:
        raise ValueRangeError('require: "C" and "F" contradict each other; wanted one of them')
    return asarray(a, dtype, device=None)


# --- from formulas --------------------------------------------------------------------------------


@names_errors
def fromfunction(
    function: Callable[..., Any], shape: Sequence[int], *, dtype: DTypeLike = float, **kwargs: Any
) -> Any:
    """`function` of the coordinates: one array of `shape` for each dimension, as keywords come `kwargs`.

    Returns what the function does.  Source: NumPy, `fromfunction`.
    """
    sizes, wanted = check_sizes(shape), canonical(dtype)
    grids = [
        commit(convert(lax.broadcasted_iota(np.int64, sizes, dimension), wanted))
        for dimension in range(len(sizes))
    ]
    check_callable("fromfunction", "function", function)
    return function(*grids, **kwargs)


# --- from iterables, bytes and text ---------------------------------------------------------------


@names_errors
def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """A vector of the numbers of an iterable, all or the first `count`.

    Raises ParseError for too few or what is no number.  Source: NumPy, `fromiter`.
    """
    wanted = canonical(dtype)
    if not isinstance(iter, Iterable):
        raise InputError(f"fromiter: wanted an iterable, got {iter!r}")
    numbers = (to_host(one).item() if isinstance(one, Handle) else one for one in iter)
    return asarray(call_guarded("fromiter", lambda: np.fromiter(numbers, wanted, count)), device=None)


@names_errors
def frombuffer(buffer: Any, dtype: DTypeLike | None = None, count: int = -1, offset: int = 0) -> Array:
    """A vector of the numbers whose bytes an object holds; it keeps them when the object changes.

    dtype: their element type, and how their bytes are ordered: ">u4" for the largest one first.
    Raises ParseError for a number of bytes that no elements have.  Source: NumPy, `frombuffer`.
    """
    wanted = with_byte_order(dtype)
    return asarray(
        call_guarded("frombuffer", lambda: np.frombuffer(buffer, wanted, count, offset)), device=None
    )


@names_errors
def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str = "") -> Array:
    """A vector of the numbers in a text, with `sep` between them.

    Raises ParseError for what is no number.  Source: NumPy, `fromstring`, in its text mode.
    """
    if not sep:
        raise ArgumentError("fromstring: wanted sep, the text between numbers; frombuffer reads bytes")
    numbers: Array = read("fromstring", np.fromstring, dtype, string, count=count, sep=sep)
    return numbers


@names_errors
def fromfile(
    file: Any, dtype: DTypeLike | None = None, count: int = -1, sep: str = "", offset: int = 0
) -> Array:
    """A vector of the numbers in a file: their bytes, or text with `sep` between them.

    dtype: their element type, and how their bytes are ordered: ">u4" for the largest one first.
    Raises ParseError.  Source: NumPy, `fromfile`.
    """
    wanted = canonical(dtype)
    if sep and wanted in EXTENDED_FLOAT:
        numbers: Array = read("fromfile", np.fromfile, wanted, file, count=count, sep=sep)
        return numbers
    host = call_guarded("fromfile", lambda: np.fromfile(file, with_byte_order(dtype), count, sep, offset))
    return asarray(host, device=None)
