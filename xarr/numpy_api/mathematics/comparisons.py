"""Comparison of whole arrays, and differences of neighbours."""

from __future__ import annotations

from typing import Final

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, is_nan, with_size
from xarr.calls.operands import as_array, broadcast_operands, fresh, promote_operands
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, PREDICATE, promote_weak
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.mathematics import elementwise
from xarr.numpy_api.statistics.reductions import all as all_of
from xarr.runtime.handles import weak_kind
from xarr.shapes import normalize_axis


def _is_finite(x: Array) -> Array:
    if x.dtype in COMPLEX:
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.is_finite(x)


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


def allclose(
    a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08, equal_nan: bool = False
) -> Array:
    """Whether `isclose` holds everywhere, as a bool Array without dimensions.  Source: NumPy, `allclose`."""
    return all_of(isclose(a, b, rtol, atol, equal_nan))


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


#: Differences up to which each is an array of its own, instead of a loop.
_WRITTEN_OUT: Final = 32


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Each element along `axis` minus the one before it, `n` times over; for bools whether they differ.

    prepend, append: put before and behind along `axis` first; a scalar is as long there as 1.  Their types take part
        in promotion, those of Python numbers as in an array of them.

    Raises ValueRangeError for a negative n, ShapeError for a scalar `a` or parts whose other sizes differ,
    AxisError.  Source: NumPy and Array API, `diff`.
    """
    array, times = as_array(a), integer("diff", "n", n)
    if times < 0:
        raise ValueRangeError(f"diff: wanted n of 0 or more, got {times}")
    if not times:
        return fresh(array)
    if not array.shape:
        raise ShapeError("diff: wanted an array of rank 1 or more, got a scalar")
    dim = normalize_axis(axis, len(array.shape))
    array = _extend(array, prepend, append, dim)
    refuse_dynamic("diff", array, "lax.sub of slices", (dim,))
    if times >= array.shape[dim]:
        return fresh(lax.slice_in_dim(array, 0, 0, axis=dim))
    if times > _WRITTEN_OUT:
        return _many_differences(array, times, dim)
    for _ in range(times):
        last = array.shape[dim]
        after = lax.slice_in_dim(array, 1, None, axis=dim)
        before = lax.slice_in_dim(array, 0, last - 1, axis=dim)
        array = (lax.ne if array.dtype in BOOL else lax.sub)(after, before)
    return fresh(array)


def _many_differences(array: Array, times: int, axis: int) -> Array:
    """A loop over arrays of one size, of whose elements the last one more means nothing each time."""
    last = array.shape[axis] - 1

    def step(values: Array, _: object) -> tuple[Array, tuple[()]]:
        after = lax.slice_in_dim(values, 1, None, axis=axis)
        behind = lax.slice_in_dim(values, last, None, axis=axis)
        after = lax.concatenate([after, behind], axis)
        return (lax.ne if values.dtype in BOOL else lax.sub)(after, values), ()

    values: Array = lax.scan(step, array, None, length=times)[0]
    return lax.slice_in_dim(values, 0, last + 1 - times, axis=axis)


def _extend(array: Array, prepend: ArrayLike | None, append: ArrayLike | None, axis: int) -> Array:
    # As in NumPy, which makes arrays of them first, Python numbers have the type of arrays of them here.
    values = [part if part is None else as_array(part) for part in (prepend, array, append)]
    parts = promote_operands("diff", *(part for part in values if part is not None))
    if len(parts) == 1:
        return array
    one = with_size(array.shape, axis, 1)
    laid_out = [part if part.shape else lax.broadcast_in_dim(part, one, ()) for part in parts]
    for part in laid_out:
        if with_size(part.shape, axis, 1) != one:
            raise ShapeError(
                f"diff: wanted prepend and append that differ from shape {array.shape} along axis {axis} alone, "
                f"got {part.shape}"
            )
    return lax.concatenate(laid_out, axis)
