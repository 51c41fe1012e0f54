"""Results whose shape depends on values: looked at where they are there, of a size that is given where not."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.concrete_values import look_at
from xarr.lax.core import put
from xarr.shapes import check_sizes

Host = np.ndarray[Any, Any]
INT64 = np.dtype(np.int64)


def indices_where(name: str, what: str, mask: Array, size: int | None) -> tuple[Array, Array | None]:
    """The indices where a vector of bools holds, in order, and how many of them count.

    size: how many indices to return, None for as many as there are, which looks at the mask.  Behind the true
    ones stands the first of them (or 0).
    """
    if size is None:
        host = look_at(name, what, mask, "give size=, the largest number that is possible")
        return put(np.flatnonzero(host).astype(INT64, copy=False), mask._node.device), None
    (wanted,) = check_sizes(size, name="size")
    length = mask.shape[0]
    count = lax.reduce_sum(lax.convert_element_type(mask, INT64), (0,))
    if not length:
        return lax.full((wanted,), 0, INT64), count
    indices = lax.iota(INT64, length)
    # False sorts before True, and the sort is stable.
    _, order = lax.sort((lax.bitwise_not(mask), indices), 0, is_stable=True, num_keys=1)
    order = lax.slice_in_dim(order, 0, min(wanted, length))
    if wanted > length:
        order = lax.pad(order, np.int64(0), [(0, wanted - length, 0)])
    first = lax.broadcast_in_dim(lax.slice_in_dim(order, 0, 1), (wanted,), (0,)) if wanted else order
    return lax.select(count_mask(wanted, count), order, first), count


def count_mask(size: int, count: Array) -> Array:
    """A vector of `size` bools of which the first `count` hold."""
    return lax.lt(lax.iota(INT64, size), lax.broadcast_in_dim(count, (size,), ()))
