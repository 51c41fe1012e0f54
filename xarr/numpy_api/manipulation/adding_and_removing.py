"""Add and remove elements: along an axis, by index, at the ends, by a new size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, truth
from xarr.calls.concrete_values import look_at, refuse_traced
from xarr.calls.dependent_shapes import INT64, Host
from xarr.calls.operands import as_array, broadcast_operands, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, INTEGER
from xarr.errors import BroadcastError, IndexingError, ShapeError, ValueRangeError
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, flag
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.joining import concatenate
from xarr.numpy_api.manipulation.shapes import ravel
from xarr.numpy_api.statistics.reductions import any as any_of
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host
from xarr.runtime.view_tracking import INDEX, mark
from xarr.shapes import check_sizes, normalize_axes, normalize_axis

__all__ = ["append", "delete", "insert", "resize", "trim_zeros"]

#: Above this many slices one gather is less to do.
_MOST_SLICES: Final = 4


@remembers_calls
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """`values` behind `arr` along `axis`, or both flattened and then one behind the other for axis None.

    Raises ShapeError, AxisError.  Source: NumPy, `append`.
    """
    if axis is None:
        return concatenate((ravel(arr), ravel(values)))
    return concatenate((as_array(arr), as_array(values)), axis)


@remembers_calls
def resize(a: ArrayLike, new_shape: int | Sequence[int]) -> Array:
    """The elements in row-major order under another shape, as often as it needs them; zeros if there are none.

    Raises ShapeError for negative sizes.  Source: NumPy, `resize`.
    """
    array, sizes = as_array(a), check_sizes(new_shape, name="new_shape")
    refuse_dynamic("resize", array, "lax.pad")
    count = math.prod(sizes)
    if not count or not array.size:
        return fill(sizes, 0, array.dtype, array._node.device)
    times = -(-count // array.size)
    flat = ravel(array)
    if times > 1:
        flat = lax.reshape(lax.broadcast_in_dim(flat, (times, array.size), (1,)), (times * array.size,))
    return lax.reshape(lax.slice_in_dim(flat, 0, count), sizes)


# --- putting in and taking out --------------------------------------------------------------------


@remembers_calls
def insert(arr: ArrayLike, obj: Any, values: ArrayLike, axis: int | None = None) -> Array:
    """`arr` with `values` put in before the indices `obj` along `axis` (of the flattened array without one).

    obj: an int, a slice, a vector of ints, or a mask.  values: converted to the element type of `arr`; for
    several indices they broadcast to what is put in, for one they may be any number of slices.
    Raises IndexingError for an index out of bounds, BroadcastError, AxisError; in a traced function
    TracedValueError for a mask that depends on its arguments.  Source: NumPy, `insert`.
    """
    array, dim = _select_axis("insert", arr, axis)
    size = array.shape[dim]
    if isinstance(obj, Handle) and obj._node.traced:
        return _insert_by_value(array, obj, values, dim)
    where = _indices("insert", obj, size)
    block_values = _as_dtype(values, array)
    if where.size == 1:
        index = _check_index("insert", int(where.reshape(-1)[0]), size, size + 1)
        return _insert_at_one(array, index, block_values, dim, where.ndim == 0)
    block = _fit("insert", block_values, replace_at(array.shape, dim, where.size))
    try:
        source = np.insert(np.arange(size), where, size + np.arange(where.size))
    except IndexError as error:
        raise IndexingError(f"insert: {error}") from None
    return lax.take(lax.concatenate([array, block], dim), source, dim)


def _select_axis(name: str, arr: ArrayLike, axis: int | None) -> tuple[Array, int]:
    """The array and a dimension of it; flattened without an axis."""
    array = as_array(arr)
    refuse_dynamic(name, array, "lax.slice and lax.concatenate")
    if axis is None:
        return (array if len(array.shape) == 1 else ravel(array)), 0
    return array, normalize_axis(axis, len(array.shape))


def _indices(name: str, obj: Any, size: int) -> Host:
    """The indices that an int, a slice, a vector of ints or a mask selects along a dimension."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    indices = np.asarray(look_at(name, "the values of a mask", obj, "give an int or ints as obj"))
    if indices.dtype in BOOL:
        if indices.ndim != 1:
            raise ShapeError(f"{name}: wanted a vector of bools as mask, got shape {indices.shape}")
        return np.flatnonzero(indices)
    if not indices.size and not isinstance(obj, np.ndarray | Handle):
        indices = indices.astype(INT64)
    if indices.dtype not in INTEGER:
        raise IndexingError(f"{name}: wanted ints, a slice or a mask as obj, got {indices.dtype}")
    if indices.ndim > 1:
        raise ShapeError(f"{name}: wanted one int or a vector of ints as obj, got shape {indices.shape}")
    return indices


def _check_index(name: str, index: int, size: int, limit: int) -> int:
    """`index` counted from the start."""
    if not -size <= index < limit:
        raise IndexingError(f"{name}: index {index} is out of bounds for size {size}")
    return index + size if index < 0 else index


def _as_dtype(values: ArrayLike, array: Array) -> Array:
    result = as_array(values)
    if array.dtype in BOOL:
        return truth(result)
    return convert(result, array.dtype)


def _fit(name: str, values: Array, shape: tuple[int, ...]) -> Array:
    """Broadcast `values` to `shape`; leading dimensions of size 1 may be too many, as in an assignment."""
    extra = len(values.shape) - len(shape)
    if extra > 0 and values.shape[:extra] == (1,) * extra:
        values = lax.reshape(values, values.shape[extra:])
    fitted, _ = broadcast_operands(name, values, fill(shape, 0, values.dtype))
    if fitted.shape != shape:
        raise BroadcastError(f"{name}: wanted values that broadcast to shape {shape}, got {values.shape}")
    return fitted


def _insert_at_one(array: Array, index: int, values: Array, axis: int, is_scalar: bool) -> Array:
    """Insert any number of slices at one index; for an int the first dimension of `values` is the `axis`."""
    rank = len(array.shape)
    if len(values.shape) < rank:
        values = lax.reshape(values, (*(1,) * (rank - len(values.shape)), *values.shape))
    if is_scalar:
        order = list(range(1, len(values.shape)))
        order.insert(axis, 0)
        values = lax.transpose(values, order)
    block = _fit("insert", values, replace_at(array.shape, axis, values.shape[axis]))
    head, tail = (
        lax.slice_in_dim(array, *ends, axis=axis) for ends in ((0, index), (index, array.shape[axis]))
    )
    return lax.concatenate([head, block, tail], axis)


def _insert_by_value(array: Array, obj: Any, values: ArrayLike, axis: int) -> Array:
    """Insert at traced indices: slices are sorted by their index, new ones before the old one of that index."""
    size = array.shape[axis]
    if obj.dtype not in INTEGER:
        refuse_traced("insert", "the values of a mask", obj, "give an int or ints as obj")
    if len(obj.shape) > 1:
        raise ShapeError(f"insert: wanted one int or a vector of ints as obj, got shape {obj.shape}")
    block_values = _as_dtype(values, array)
    count = obj.size
    if count == 1 and len(block_values.shape) >= len(array.shape) and not obj.shape:
        block_values = lax.transpose(
            block_values, [*range(1, axis + 1), 0, *range(axis + 1, len(block_values.shape))]
        )
        count = block_values.shape[axis]
    block = _fit("insert", block_values, replace_at(array.shape, axis, count))
    index = convert(lax.reshape(obj, (obj.size,)), INT64)
    index = lax.select(lax.lt(index, 0), lax.add(index, size), index)
    index = lax.broadcast_in_dim(index, (count,), (0,)) if obj.size == 1 else index
    keys = lax.concatenate([index, lax.iota(INT64, size)], 0)
    own = lax.iota(INT64, count + size)
    _, order = lax.sort((keys, own), 0, is_stable=True, num_keys=1)
    return lax.take(lax.concatenate([block, array], axis), order, axis)


@remembers_calls
def delete(
    arr: ArrayLike, obj: Any, axis: int | None = None, *, assume_unique_indices: bool = False
) -> Array:
    """`arr` without the slices at `obj` along `axis` (of the flattened array without one).

    obj: an int, a slice, a vector of ints in any order, or a mask of the length of the dimension.
    assume_unique_indices: that the ints in `obj` all differ, which makes the shape of the result known where
    their values are not, in a traced function; it goes undetected if they do not.
    Raises IndexingError for an index out of bounds, ShapeError for a mask of another length, AxisError;
    in a traced function TracedValueError for ints and masks that depend on its arguments.
    Source: NumPy, `delete`; the last keyword is jax.numpy's.
    """
    array, dim = _select_axis("delete", arr, axis)
    size = array.shape[dim]
    unique = flag("delete", "assume_unique_indices", assume_unique_indices)
    if isinstance(obj, Handle) and obj._node.traced:
        traced = as_array(obj)
        if traced.dtype in INTEGER and (traced.size == 1 or unique):
            return _delete_by_value(array, traced, dim)
    return fresh(_keep_slices(array, _keeps(obj, size), dim))


def _keeps(obj: Any, size: int) -> Host:
    """A mask of what `delete` leaves."""
    if not isinstance(obj, slice):
        instead = "give assume_unique_indices=True if all ints in obj differ, or obj as a static argument"
        is_list = isinstance(obj, list | tuple)  # an empty one has no type yet
        obj = np.asarray(look_at("delete", "the values of obj", obj, instead))
        if obj.dtype in BOOL and obj.shape != (size,):
            raise ShapeError(f"delete: wanted a mask of {size} bools, got shape {obj.shape}")
        if is_list and not obj.size:
            obj = obj.astype(INT64)
        if obj.dtype not in BOOL | INTEGER:
            raise IndexingError(f"delete: wanted ints, a slice or a mask as obj, got {obj.dtype}")
    keeps = np.ones(size, bool)
    try:
        keeps[obj] = False
    except IndexError as error:
        raise IndexingError(f"delete: {error}") from None
    return keeps


def _keep_slices(array: Array, keeps: Host, axis: int) -> Array:
    """The slices where the mask holds, as few slices where they are runs."""
    changes = np.flatnonzero(keeps[1:] != keeps[:-1]) + 1
    if len(changes) > 2 * _MOST_SLICES:
        return lax.take(array, np.flatnonzero(keeps), axis)
    ends = [0, *changes.tolist(), len(keeps)]
    parts = [
        lax.slice_in_dim(array, start, stop, axis=axis)
        for start, stop in pairwise(ends)
        if start < stop and keeps[start]
    ]
    return lax.concatenate(parts, axis) if parts else lax.slice_in_dim(array, 0, 0, axis=axis)


def _delete_by_value(array: Array, obj: Any, axis: int) -> Array:
    """Delete at traced indices, all of them different: what is kept is sorted to the front."""
    size, count = array.shape[axis], obj.size
    if count > size:
        raise IndexingError(f"delete: wanted at most {size} different indices, got {count}")
    index = convert(lax.reshape(obj, (count, 1)), INT64)
    index = lax.select(lax.lt(index, 0), lax.add(index, size), index)
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    gone = lax.scatter(fill((size,), 0, INT64), index, fill((count,), 1, INT64), numbers)
    _, order = lax.sort((gone, lax.iota(INT64, size)), 0, is_stable=True, num_keys=1)
    return lax.take(array, lax.slice_in_dim(order, 0, size - count), axis)


@remembers_calls
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None) -> Any:
    """`filt` without the slices of zeros at its front ("f"), its back ("b") or both ("fb"), along `axis` or all.

    A list or tuple of numbers gives one of the same kind.  Nothing but the bounds of the nonzero elements is looked
    at.  Raises ValueRangeError for another `trim`, AxisError; in a traced function TracedValueError.
    Source: NumPy, `trim_zeros`.
    """
    array = as_array(filt)
    rank = len(array.shape)
    if str(trim).lower() not in ("f", "b", "fb", "bf"):
        raise ValueRangeError(f"trim_zeros: wanted a trim of 'f', 'b' or 'fb', got {trim!r}")
    axes = normalize_axes(axis, rank)
    if not axes:
        return fresh(array)
    refuse_dynamic("trim_zeros", array, "numpy.trim_zeros")
    refuse_traced("trim_zeros", "values", array, "trim outside, or mask by xarr.where(x != 0, x, 0)")
    mask = truth(array)
    others = [tuple(other for other in range(rank) if other != dim) for dim in range(rank)]
    bounds = [_bounds(to_host(any_of(mask, axis=rest) if rest else mask), trim.lower()) for rest in others]
    if any(bound is None for bound in bounds):
        bounds = [(0, 0)] * rank
    if rank == 1 and isinstance(filt, list | tuple):
        return filt[slice(*(bounds[0] or (0, 0)))]
    for dim in axes:
        low, high = bounds[dim] or (0, 0)
        part = lax.slice_in_dim(array, low, high, axis=dim)
        array = mark(array, part, INDEX, (*[slice(None)] * dim, slice(low, high)))
    return array


def _bounds(mask: Host, trim: str) -> tuple[int, int] | None:
    """Where a vector begins and ends without the zeros; None if there is nothing else."""
    nonzero = np.flatnonzero(mask)
    if not nonzero.size:
        return None
    return int(nonzero[0]) if "f" in trim else 0, int(nonzero[-1]) + 1 if "b" in trim else len(mask)
