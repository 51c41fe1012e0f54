"""Each element of an array several times over: by one count for all, or by a count for each."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import fresh
from xarr.dtypes import BOOL, INTEGER
from xarr.errors import DTypeError, ShapeError, TracedValueError
from xarr.lax.core import put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes


def repeat_uniformly(array: Array, count: int, axis: int) -> Array:
    (count,) = check_sizes(count, name="repeats")
    shape = array.shape
    spread = lax.broadcast_in_dim(
        array,
        (*shape[: axis + 1], count, *shape[axis + 1 :]),
        [dim for dim in range(len(shape) + 1) if dim != axis + 1],
    )
    return lax.reshape(spread, (*shape[:axis], shape[axis] * count, *shape[axis + 1 :]))


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
            raise ShapeError(f"repeat: no elements along axis {axis} of shape {array.shape} to fill {length}")
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
