"""Tile arrays: the whole several times over, or each element, by one count for all or by a count for each."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.layouts import items_of
from xarr.base.typing import Array
from xarr.calls.arguments import (
    arranges_elements,
)
from xarr.calls.operands import as_array, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import (
    BOOL,
    INTEGER,
)
from xarr.errors import (
    DTypeError,
    ShapeError,
    TracedValueError,
)
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, put, whole
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.shapes import Axes, ravel
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes, normalize_axis

__all__ = ["repeat", "tile"]


def repeat_uniformly(array: Array, count: int, axis: int) -> Array:
    if count < 0:
        raise ShapeError(f"repeat: wanted repeats of 0 or more, got {count}")
    (count,) = check_sizes(count, name="repeats")
    shape = array.shape
    spread = lax.broadcast_in_dim(
        array,
        (*shape[: axis + 1], count, *shape[axis + 1 :]),
        [dim for dim in range(len(shape) + 1) if dim != axis + 1],
    )
    return lax.reshape(spread, replace_at(shape, axis, shape[axis] * count))


def repeat_by_counts(array: Array, repeats: Array, axis: int, total: int | None) -> Array:
    """Each element as often as its count says, so that there are `total`, by default all.

    With a total the counts are not looked at: each element but the first adds 1 where its copies start, and the
    running sum is the element's number.
    """
    size = array.shape[axis]
    refuse_dynamic("repeat", array, "lax.gather", (axis,))
    if repeats.dtype not in INTEGER | BOOL:
        raise DTypeError(f"repeat: wanted integers for repeats, got {repeats.dtype}")
    if repeats.shape not in ((), (1,), (size,)):
        raise ShapeError(
            f"repeat: wanted one count, or a vector of {size}, one for each element along axis {axis} of "
            f"shape {array.shape}; got shape {repeats.shape}"
        )
    counts = lax.convert_element_type(lax.reshape(repeats, (repeats.size,)), np.int64)
    counts = lax.broadcast_in_dim(counts, (size,), (0,)) if repeats.size == 1 else counts
    if total is None:
        known = _concrete_counts(counts)
        length = int(known.sum())
    else:
        known, (length,) = None, check_sizes(total, name="total_repeat_length")
    if not size:
        if length:
            raise ShapeError(
                f"repeat: wanted an element along axis {axis} to fill {length}, got shape {array.shape}"
            )
        return fresh(array)
    if known is not None:
        indices = put(np.repeat(np.arange(size), known), array._node.device)
        return lax.take(array, indices, axis)
    starts = lax.sub(lax.cumsum(counts), counts)
    marks = lax.segment_sum(lax.full_like(starts, 1), starts, length)
    return lax.take(array, lax.sub(lax.cumsum(marks), 1), axis)


def _concrete_counts(counts: Array) -> np.ndarray[Any, Any]:
    """The values of the counts, 0 or more, since the size of the result is their sum.

    Raises TracedValueError in a trace, ShapeError for negative ones.
    """
    if counts._node.traced:
        location = f"\nIt was asked for at {counts._node.source}" if counts._node.source else ""
        raise TracedValueError(
            "repeat: the size of the result is the sum of repeats, whose values a traced function does not have "
            f"yet; give total_repeat_length={location}"
        )
    values = to_host(counts)
    if values.size and values.min() < 0:
        raise ShapeError(f"repeat: wanted counts of 0 or more for repeats, got {values.min()}")
    return values


@arranges_elements
def tile(A: ArrayLike, reps: Axes) -> Array:
    """`A` repeated reps[i] times along dimension i; the shorter of shape and reps gets ones in
    front.

    True repeats once, False not at all.  Raises ShapeError for negative counts.  Source: NumPy, `tile`.
    """
    array = as_array(A)
    counts = check_sizes(tuple(map(_count, items_of(reps))), name="reps")
    rank = builtins.max(len(counts), len(array.shape))
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - len(array.shape)) + array.shape
    between = [size for pair in zip(counts, sizes, strict=True) for size in pair]
    odd = range(2 * rank)[1::2]
    spread = lax.broadcast_in_dim(lax.reshape(array, sizes), between, odd)
    return lax.reshape(spread, [count * size for count, size in zip(counts, sizes, strict=True)])


def _count(value: Any) -> Any:
    """A bool as the int that it counts as; anything else itself."""
    is_flag = isinstance(value, bool | np.bool_) or (isinstance(value, Handle) and value._node.dtype in BOOL)
    return int(value) if is_flag else value


@remembers_calls
def repeat(
    a: ArrayLike,
    repeats: int | ArrayLike,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
) -> Array:
    """Each element `repeats` times, next to each other, along `axis` (of the flattened array without one).

    repeats: a count for all elements, or a vector with one for each, which is evaluated, as its sum is the
        size of the result; in a traced function `total_repeat_length` says it, as in jax.numpy: what is
        more is left out, and the last element fills what is missing.

    Raises ShapeError for a negative count, or as many counts as no axis is long, TracedValueError for counts
    without a value, DTypeError for counts that are no integers.  Source: NumPy, `repeat`.
    """
    array = as_array(a)
    array, dim = (ravel(array), 0) if axis is None else (array, normalize_axis(axis, len(array.shape)))
    is_traced = isinstance(repeats, Handle) and repeats._node.traced
    if total_repeat_length is None and not is_traced and np.size(repeats) == 1:
        return repeat_uniformly(array, whole("repeat", "repeats", np.ravel(np.asarray(repeats))[0]), dim)
    return repeat_by_counts(array, as_array(repeats), dim, total_repeat_length)
