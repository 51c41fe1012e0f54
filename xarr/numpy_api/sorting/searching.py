"""Functions that search: choice by a condition, indices of extremes."""

from __future__ import annotations

from typing import Any, overload

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import arranges_elements, truth
from xarr.calls.operands import as_array, broadcast_operands, promote_operands
from xarr.calls.outputs import THERE_AND_BACK, takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import COMPLEX, INTEGER
from xarr.errors import ArgumentError, DTypeError, ShapeError, TracedValueError, ValueRangeError
from xarr.ir.source import here
from xarr.lax.core import ArrayLike, flag, integer, put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.sorting.order import insertion_points
from xarr.numpy_api.statistics import reductions
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes, normalize_axis

__all__ = ["argmax", "argmin", "argwhere", "flatnonzero", "nonzero", "searchsorted", "where"]


@overload
def where(condition: ArrayLike, /) -> tuple[Array, ...]: ...


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


@arranges_elements
def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /) -> Any:
    """x where `condition` differs from 0, else y; all three broadcast, x and y promote.

    `where(condition)` alone is `nonzero(condition)`.  Raises BroadcastError, InputError for one array alone.
    Source: NumPy, `where`.
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ArgumentError(
            "where: wanted condition, x and y, or the condition alone, got only one of x and y"
        )
    choice, yes, no = broadcast_operands("where", truth(condition), *promote_operands("where", x, y))
    return lax.select(choice, yes, no)


@remembers_calls
def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> tuple[Array, ...]:
    """Where `a` differs from 0, NaN too: for each dimension the int64 indices, in row-major order.

    size: how many there shall be, which a traced function must say; the first ones, or after the last
        `fill_value` (0, one value for all dimensions, or one for each).

    Computes `a` now, unless `size` is given.  Raises ShapeError for a scalar, TracedValueError in a traced
    function without `size`.  Source: NumPy and Array API, `nonzero`; `size` as in jax.numpy.
    """
    mask = truth(a)
    refuse_dynamic("nonzero", mask, "a static array")
    if not mask.shape:
        raise ShapeError("nonzero: a scalar has no dimension to index; xarr.atleast_1d(x) has one")
    if size is not None:
        return _some_nonzero(mask, check_sizes((integer("nonzero", "size", size),))[0], fill_value)
    if mask._node.traced:
        location = f"\nIt was asked for at {looked}" if (looked := here()) else ""
        raise TracedValueError(
            "nonzero: how many elements differ from 0 depends on values, which a traced function does not have yet; "
            f"nonzero(x, size=n) gives n indices, and xarr.where(x, y, z) chooses element by element{location}"
        )
    indices = np.nonzero(to_host(mask))
    return tuple([put(each.astype(np.int64, copy=False), mask._node.device) for each in indices])


def _some_nonzero(mask: Array, size: int, fill_value: ArrayLike | None) -> tuple[Array, ...]:
    """The indices of the first `size` elements that hold: the k-th goes to position k, those beyond are dropped."""
    flat = lax.reshape(mask, (mask.size,))
    order = lax.sub(lax.cumsum(lax.convert_element_type(flat, np.int64)), 1)
    beyond = lax.full_like(order, size)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    positions = lax.scatter(
        lax.full((size,), 0, np.int64),
        lax.select(flat, order, beyond),
        lax.iota(np.int64, mask.size),
        numbers,
        index_vector_dim=1,
    )
    total = lax.reduce_sum(lax.convert_element_type(flat, np.int64), (0,))
    is_there = lax.lt(lax.iota(np.int64, size), lax.broadcast_in_dim(total, (size,), ()))
    fillers = _fillers(fill_value, mask.ndim)
    indices = []
    step = mask.size
    for length, filler in zip(mask.shape, fillers, strict=True):
        step //= max(length, 1)
        index = lax.rem(lax.div(positions, max(step, 1)), max(length, 1))
        spread = lax.broadcast_in_dim(lax.convert_element_type(filler, np.int64), (size,), ())
        indices.append(lax.select(is_there, index, spread))
    return tuple(indices)


def _fillers(fill_value: ArrayLike | None, rank: int) -> list[Array]:
    values = (
        fill_value
        if isinstance(fill_value, tuple | list)
        else [0 if fill_value is None else fill_value] * rank
    )
    if len(values) != rank:
        raise ShapeError(
            f"nonzero: wanted a fill_value, or one for each of {rank} dimensions, got {len(values)}"
        )
    return [as_array(each) for each in values]


@remembers_calls
def flatnonzero(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """`nonzero` of the flattened array.  Source: NumPy, `flatnonzero`; `size` as in jax.numpy."""
    array = as_array(a)
    return nonzero(lax.reshape(array, (array.size,)), size=size, fill_value=fill_value)[0]


@remembers_calls
def argwhere(a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements that differ from 0, one in each row: `nonzero` in columns.

    Of a scalar, a row without columns if it differs from 0.  Source: NumPy, `argwhere`; `size` as in jax.numpy.
    """
    array = as_array(a)
    if not array.shape:
        row = flatnonzero(array, size=size, fill_value=fill_value)
        return lax.full((row.size, 0), 0, np.int64)
    columns = nonzero(array, size=size, fill_value=fill_value)
    return lax.concatenate([lax.expand_dims(column, (1,)) for column in columns], 1)


def _extreme_index(name: str, a: ArrayLike, axis: int | None, keepdims: bool) -> Array:
    array = as_array(a)
    rank = len(array.shape)
    dim = None if axis is None else normalize_axis(axis, rank)
    flat = lax.reshape(array, (array.size,)) if dim is None else array
    dimension = 0 if dim is None else dim
    if not flat.shape[dimension]:
        raise ShapeError(f"{name}: wanted at least one element along axis {axis}, got shape {array.shape}")
    if array.dtype in COMPLEX:
        flat, name = _is_extreme(name, flat, dimension), "argmax"
    index: Array = (lax.argmax if name == "argmax" else lax.argmin)(flat, dimension, np.int64)
    if not flag(name, "keepdims", keepdims):
        return index
    return lax.expand_dims(index, range(rank) if dim is None else (dim,))


def _is_extreme(name: str, array: Array, dimension: int) -> Array:
    """Compare complex numbers with the largest or smallest along a dimension, by real, then imaginary part.

    NaNs are among them, and where there is one, nothing else is.
    """
    extreme = (reductions.max if name == "argmax" else reductions.min)(array, dimension, keepdims=True)
    spread = lax.broadcast_in_dim(extreme, array.shape, range(len(array.shape)))
    return lax.bitwise_or(lax.eq(array, spread), lax.ne(array, array))


@takes_out(THERE_AND_BACK)
def argmax(
    a: ArrayLike, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """The int64 index of the largest element along `axis`, or in the flattened array: of the first NaN if
    there is one, else of the first of equal ones.

    Complex numbers go by real, then imaginary part.  Raises ShapeError, a ValueError, for no elements, AxisError.
    Source: NumPy, `argmax`.
    """
    return _extreme_index("argmax", a, axis, keepdims)


@takes_out(THERE_AND_BACK)
def argmin(
    a: ArrayLike, axis: int | None = None, out: Array | None = None, *, keepdims: bool = False
) -> Array:
    """The int64 index of the smallest element; NaN, ties and errors as `argmax`.  Source: NumPy, `argmin`."""
    return _extreme_index("argmin", a, axis, keepdims)


@remembers_calls
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None) -> Array:
    """Where each of `v` would go into the sorted vector `a`: before equal elements for side "left", after
    them for "right".

    sorter: the integers that sort `a`, as `argsort` gives them.  NaN comes last; complex numbers go by real,
    then imaginary part.  Returns int64 of the shape of `v`, from 0 to the size of `a`.  Raises ShapeError if
    `a` or `sorter` is no vector of one size, ValueRangeError for another side, DTypeError for a sorter that
    is not of integers.  Source: NumPy and Array API, `searchsorted`.
    """
    if side not in ("left", "right"):
        raise ValueRangeError(f"searchsorted: wanted side 'left' or 'right', got {side!r}")
    within, wanted = promote_operands("searchsorted", a, v)
    if len(within.shape) != 1:
        raise ShapeError(f"searchsorted: wanted a sorted vector, got shape {within.shape}")
    if sorter is not None:
        within = lax.take(within, _sorter(sorter, within.shape), 0) if within.size else within
    return insertion_points(within, wanted, right=side == "right")


def _sorter(sorter: ArrayLike, shape: tuple[int, ...]) -> Array:
    order = as_array(sorter)
    if order.dtype not in INTEGER:
        raise DTypeError(f"searchsorted: wanted integers for sorter, got {order.dtype}; argsort gives them")
    if order.shape != shape:
        raise ShapeError(f"searchsorted: wanted a sorter of shape {shape}, that of a, got {order.shape}")
    return order
