"""Writes through a boolean mask as a choice between old and new, which needs no value of the mask."""

from __future__ import annotations

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array, fresh, is_weak
from xarr.indexing.advanced import Combine
from xarr.indexing.assigned_values import fit_value
from xarr.indexing.basic import write_region
from xarr.indexing.index_plan import IndexPlan, ShapePart
from xarr.indexing.items import Mask
from xarr.lax.core import ArrayLike


def only_mask(layout: IndexPlan) -> Mask | None:
    """The mask of an index that has no other array."""
    arrays = (*layout.arrays, *layout.scalars)
    return arrays[0] if len(arrays) == 1 and isinstance(arrays[0], Mask) else None


def is_same_for_each(value: ArrayLike, layout: IndexPlan) -> bool:
    """Whether the value is the same for all elements of the mask, however many there are."""
    shape = () if is_weak(value) else value.shape
    from_end = len(layout.tokens) - layout.tokens.index(ShapePart.BATCH)
    return len(shape) < from_end or shape[-from_end] == 1


def write_mask(
    array: Array, layout: IndexPlan, mask: Mask, value: ArrayLike, combine: Combine | None
) -> Array:
    """`array` with `value`, the same for each element of the mask, or `combine(old, value)` where it holds."""
    inner = array if layout.region.is_whole(array.shape) else layout.region.read(array)
    values = lax.reshape(fit_value(array, value, layout.result((1,))), layout.kept_sizes)
    rows = list(zip(layout.groups, layout.indexed, strict=True))
    kept = [dim for group, index in rows if index is None for dim in group]
    new = lax.broadcast_in_dim(values, inner.shape, kept)
    if combine is not None:
        new = combine(inner, new).astype(array.dtype)
    chosen = mask.array if mask.array is not None else as_array(mask.host)
    masked = [dim for group, index in rows if index is not None for dim in group]
    if chosen.shape != tuple(inner.shape[dim] for dim in masked):
        return fresh(array)  # an empty mask, which holds nowhere
    where = lax.broadcast_in_dim(chosen, inner.shape, masked)
    inside = lax.select(where, new, inner)
    return write_region(array, layout.region, inside)
