"""Arrays from formulas, iterables, bytes and text, beyond the Array API standard."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import DeviceLike, convert, fill
from xarr.calls.operands import as_array, broadcast_operands, fresh, promote_operands
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT, canonical, promote, promote_weak, with_byte_order
from xarr.errors import ArgumentError, InputError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, check_callable, integer, items
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import asarray, linspace
from xarr.numpy_api.creation.through_numpy import call_guarded, read
from xarr.numpy_api.manipulation.shapes import atleast_1d
from xarr.numpy_api.mathematics.elementwise import divide, log10, multiply, power, sign
from xarr.numpy_api.statistics.reductions import any as any_of
from xarr.runtime.handles import Handle, commit, common_device
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes, normalize_axis

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
    "geomspace",
    "logspace",
    "require",
    "vander",
]


# --- from arrays ----------------------------------------------------------------------------------


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


def ascontiguousarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with a dimension at least; the order in memory is the backend's affair.  Source: NumPy."""
    result: Array = atleast_1d(asarray(a, dtype, device=None))
    return result


def asfortranarray(a: ArrayLike, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with a dimension at least; the order in memory is the backend's affair.  Source: NumPy."""
    return fresh(ascontiguousarray(a, dtype))  # NumPy makes a copy in another order


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


def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """base ** y for `num` evenly spaced y from `start` to `stop`; see `linspace`.

    An array `base` broadcasts with the ends.  Source: NumPy, `logspace`.
    """
    if isinstance(base, float | int) or not np.ndim(base):
        values = power(base, linspace(start, stop, num, endpoint, axis=axis, device=None))
    else:
        operands = as_array(start), as_array(stop), as_array(base)
        first, last, bases = broadcast_operands("logspace", *operands)
        exponents = linspace(first, last, num, endpoint, axis=axis, device=common_device(operands))
        target = normalize_axis(axis, len(exponents.shape))
        kept = [dim for dim in range(len(exponents.shape)) if dim != target]
        values = power(lax.broadcast_in_dim(bases, exponents.shape, kept), exponents)
    return values if dtype is None else convert(values, canonical(dtype))


def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """`num` numbers from `start` to `stop`, each the one before times a constant.

    The ends are computed now, and NumPy computes what lies between; in a traced function, and for narrow
    floats, xarr's operations do, whose last bits may differ.

    Negative ends of one sign and complex ends do: between the latter lies a spiral.  Raises ValueRangeError
    for an end of 0 (in a traced function it cannot be seen, and gives NaN) and for a negative `num`.
    Source: NumPy, `geomspace`.
    """
    count = integer("geomspace", "num", num)
    if count < 0:
        raise ValueRangeError(f"geomspace: wanted num >= 0, got {count}")
    low, high = as_array(start), as_array(stop)
    for end in (low, high):
        refuse_dynamic("geomspace", end, "xarr.logspace")
        if not end._node.traced and not bool(np.all(to_host(end))):
            raise ValueRangeError("geomspace: a geometric sequence cannot include 0; got it as an end")
    low, high = promote_operands("geomspace", low, high)
    asked = canonical(dtype)
    computed = promote(promote_weak(low.dtype, float), asked)
    wanted = computed if dtype is None else asked
    low, high = broadcast_operands("geomspace", convert(low, computed), convert(high, computed))
    if not low._node.traced and not high._node.traced and computed not in EXTENDED_FLOAT:
        # Looked at already; rounded as NumPy does, so that powers come out as the same integers.
        ends = to_host(low), to_host(high)
        dim = normalize_axis(axis, len(low.shape) + 1)
        return asarray(np.geomspace(*ends, count, endpoint, wanted, dim), device=low._node.device)
    direction = sign(low)
    first, last = divide(low, direction), divide(high, direction)
    values = logspace(log10(first), log10(last), count, endpoint, dtype=computed)
    row = lax.broadcasted_iota(np.int64, values.shape, 0)
    under = range(1, len(values.shape))
    values = lax.select(lax.eq(row, 0), lax.broadcast_in_dim(first, values.shape, under), values)
    if count > 1 and endpoint:
        values = lax.select(lax.eq(row, count - 1), lax.broadcast_in_dim(last, values.shape, under), values)
    values = multiply(values, lax.broadcast_in_dim(direction, values.shape, under))
    dim = normalize_axis(axis, len(values.shape))
    order = [*range(1, dim + 1), 0, *range(dim + 1, len(values.shape))]
    return convert(lax.transpose(values, order), wanted)


def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of powers of a vector: column j has x ** (N - 1 - j), or x ** j if `increasing`.

    Raises ShapeError for what is no vector and for a negative N.  Source: NumPy, `vander`.
    """
    vector = as_array(x)
    if len(vector.shape) != 1:
        raise ShapeError(f"vander: wanted a vector, got shape {vector.shape}")
    refuse_dynamic("vander", vector, "xarr.power")
    (columns,) = check_sizes(vector.shape[0] if N is None else integer("vander", "N", N), name="N")
    vector = convert(vector, promote(vector.dtype, np.dtype(np.int64)))
    size = vector.shape[0]
    ones = fill((size, min(columns, 1)), 1, vector.dtype, vector._node.device)
    each = lax.broadcast_in_dim(vector, (size, max(columns - 1, 0)), (0,))
    powers = lax.concatenate([ones, lax.cumprod(each, 1) if each.size else each], 1)
    return powers if increasing else lax.rev(powers, (1,))


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


def fromiter(iter: Iterable[Any], dtype: DTypeLike, count: int = -1) -> Array:
    """A vector of the numbers of an iterable, all or the first `count`.

    Raises ParseError for too few or what is no number.  Source: NumPy, `fromiter`.
    """
    wanted = canonical(dtype)
    if not isinstance(iter, Iterable):
        raise InputError(f"fromiter: wanted an iterable, got {iter!r}")
    numbers = (to_host(one).item() if isinstance(one, Handle) else one for one in iter)
    return asarray(call_guarded("fromiter", lambda: np.fromiter(numbers, wanted, count)), device=None)


def frombuffer(buffer: Any, dtype: DTypeLike | None = None, count: int = -1, offset: int = 0) -> Array:
    """A vector of the numbers whose bytes an object holds; it keeps them when the object changes.

    dtype: their element type, and how their bytes are ordered: ">u4" for the largest one first.
    Raises ParseError for a number of bytes that no elements have.  Source: NumPy, `frombuffer`.
    """
    wanted = with_byte_order(dtype)
    return asarray(
        call_guarded("frombuffer", lambda: np.frombuffer(buffer, wanted, count, offset)), device=None
    )


def fromstring(string: str, dtype: DTypeLike = float, count: int = -1, *, sep: str = "") -> Array:
    """A vector of the numbers in a text, with `sep` between them.

    Raises ParseError for what is no number.  Source: NumPy, `fromstring`, in its text mode.
    """
    if not sep:
        raise ArgumentError("fromstring: wanted the text between numbers as sep; frombuffer reads bytes")
    numbers: Array = read("fromstring", np.fromstring, dtype, string, count=count, sep=sep)
    return numbers


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
