"""Indices as NumPy has them: reads, writes by value, and `x.at`.

An index of ints, slices, `...` and None is a *region* (region.py).  One with arrays is read into *items*
(items.py), a *layout* of dimensions (layout.py) and *vectors* at which windows start (arrays.py); what is out of
bounds is in bounds.py, writes through a mask in masks.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr.base.typing import Array
from xarr.calls.operands import as_array, is_weak
from xarr.errors import ArgumentError, BroadcastError, pluralize
from xarr.indexing.advanced import Combine, apply_arrays, read_arrays, write_arrays
from xarr.indexing.assigned_values import fit_value
from xarr.indexing.at_once import updated_at_once
from xarr.indexing.basic import BasicIndex, read_region, write_region
from xarr.indexing.bounds import Mode
from xarr.indexing.index_plan import IndexPlan, ShapePart, layout_of
from xarr.indexing.items import IndexArray, expand_ellipsis, items_of
from xarr.indexing.masks import is_same_for_each, only_mask, write_mask
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.handles import Handle
from xarr.runtime.view_tracking import INDEX, mark

#: What reads and writes arrays of dynamic sizes.
_READS: Final = "lax.slice, lax.dynamic_slice or lax.gather"
_WRITES: Final = "lax.dynamic_update_slice or lax.scatter"


def _sizes(array: Array, what: str = "x[…]", instead: str = _READS) -> tuple[int, ...]:
    """The shape that an index is read by; ShapeError for dynamic sizes, of which that would be the bounds."""
    type = array._node.tensor_type
    if type.dynamic:
        refuse_dynamic(what, array, instead)
    return type.shape


def _parse(shape: tuple[int, ...], index: Any, mode: Mode) -> BasicIndex | IndexPlan:
    return layout_of(expand_ellipsis(items_of(index), shape), shape, mode)


def read(array: Array, index: Any, mode: Mode = Mode.ERROR, fill_value: ArrayLike | None = None) -> Array:
    """array[index].

    Raises IndexingError for what cannot index and for what is out of bounds (when the result is computed, if
    the index has no values before), TracedValueError for a mask of a traced function.
    """
    shape = _sizes(array)
    region = BasicIndex.lookup(index, shape) if mode is Mode.ERROR else None
    target = region or _parse(shape, index, mode)
    if isinstance(target, BasicIndex):
        return target.read(array)
    return read_arrays(array, target, mode, fill_value)


def read_part(array: Array, index: Any) -> Array:
    """array[index], where `read_at_once` does not read it, as `read` does.

    It is a part of `array` where NumPy would make a view (`xarr.runtime.view_tracking`).
    """
    shape = _sizes(array)
    region = BasicIndex.lookup(index, shape)
    if region is not None:
        # A single element is a number in NumPy, unless there is an ellipsis.
        is_view = not region.shape and (index is ... or (type(index) is tuple and ... in index))
        part = read_region(array, index, region)
        return mark(array, part, INDEX, index) if is_view else part
    target = _parse(shape, index, Mode.ERROR)
    if not isinstance(target, BasicIndex):
        return read_arrays(array, target, Mode.ERROR, None)
    items = index if isinstance(index, tuple) else (index,)
    part = target.read(array)
    # NumPy copies what is at arrays without dimensions.
    is_copy = not target.shape or any(isinstance(item, Handle | np.ndarray) for item in items)
    return part if is_copy else mark(array, part, INDEX, index)


def take_slices(
    array: Array, item: IndexArray, axis: int, mode: Mode = Mode.ERROR, fill_value: ArrayLike | None = None
) -> Array:
    """The slices of `array` at the integers of `item` along `axis`.  Raises as `read`."""
    shape = array.shape
    items = expand_ellipsis([*[slice(None)] * axis, item], shape)
    layout = layout_of(items, shape, mode)
    assert isinstance(layout, IndexPlan)
    return read_arrays(array, layout, mode, fill_value)


def update(
    array: Array, index: Any, value: ArrayLike, combine: Combine | None = None, mode: Mode = Mode.ERROR
) -> Array:
    """`array` with `value` at the index, or `combine(old, value)` there; element type and shape stay.

    `value` broadcasts to what the index selects by NumPy's rule (leading dimensions of size 1 may be too many, but
    not of a list, nor where a single element is written).  Raises as `read`, and for a value of another shape or
    kind.
    """
    if mode is Mode.ERROR:
        updated = updated_at_once(array, index, value, combine)
        if updated is not None:
            return updated
    return _record_update(array, index, value, combine, mode)


def _record_update(array: Array, index: Any, value: ArrayLike, combine: Combine | None, mode: Mode) -> Array:
    """`update` as nodes of the graph."""
    shape = _sizes(array, "x[…] = v", _WRITES)
    region = BasicIndex.lookup(index, shape) if mode is Mode.ERROR else None
    target = region or _parse(shape, index, mode)
    if isinstance(target, IndexPlan):
        value = value if is_weak(value) else as_array(value)
        _refuse_matrix(target, index, value)
        mask = only_mask(target)
        if mask is not None and is_same_for_each(value, target):
            return write_mask(array, target, mask, value, combine)
        return write_arrays(array, target, value, combine, mode)
    values = fit_value(array, value, target.shape)
    if not is_weak(value):
        _refuse_dimensions(target, index, value)
    if combine is not None:
        values = combine(target.read(array), values).astype(array.dtype)
    return write_region(array, target, values)


def write(array: Array, index: Any, value: ArrayLike) -> None:
    """array[index] = value, where `write_at_once` does not do it.  Raises as `update`."""
    array._show(_record_update(array, index, value, None, Mode.ERROR), ("set", index, value))


def _refuse_dimensions(region: BasicIndex, index: Any, value: Any) -> None:
    """BroadcastError for a list with more dimensions than what is written, and for any vector into one element."""
    shape = np.shape(value)
    is_element = not region.shape and not _has_ellipsis(index)
    if len(shape) > len(region.shape) and (is_element or not hasattr(value, "shape")):
        raise BroadcastError(
            f"x[i] = v: wanted a value of {pluralize(len(region.shape), 'dimension')} at most for what the index "
            f"selects, of shape {region.shape}, got one of shape {shape}; v.reshape({region.shape}) is one"
            if not is_element
            else f"x[i] = v: wanted a number for a single element, got a value of shape {shape}; write v[0] or v.item()"
        )


def _refuse_matrix(layout: IndexPlan, index: Any, value: ArrayLike) -> None:
    """ArgumentError for a matrix, whatever its sizes, as the elements that a mask alone selects: they are a vector."""
    mask = only_mask(layout)
    rank = 0 if is_weak(value) else len(value.shape)
    is_alone = layout.tokens == (ShapePart.BATCH,) and not (isinstance(index, tuple) and len(index) > 1)
    if rank > 1 and mask is not None and is_alone and not layout.scalars:
        raise ArgumentError(
            f"x[mask] = v: wanted a number or a vector for the elements that the mask selects, got {value.shape}; "
            "v.ravel() is one, and xarr.where(mask, v, x) chooses element by element"
        )


def _has_ellipsis(index: Any) -> bool:
    return index is Ellipsis or (isinstance(index, tuple) and any(item is Ellipsis for item in index))


def apply(array: Array, index: Any, function: Callable[[Any], Any], mode: Mode = Mode.ERROR) -> Array:
    """`array` with `function` applied to what is at the index, once for each time that an element is meant."""
    target = _parse(_sizes(array, "x.at", _WRITES), index, mode)
    if isinstance(target, BasicIndex):
        return write_region(array, target, fit_value(array, function(target.read(array)), target.shape))
    mask = only_mask(target)
    if mask is not None:
        return write_mask(array, target, mask, False, lambda old, _: function(old))
    return apply_arrays(array, target, function, mode)
