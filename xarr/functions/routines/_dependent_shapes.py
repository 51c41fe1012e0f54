"""Results whose shape depends on values: looked at where they are there, of a size that is given where not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xarr import lax
from xarr.errors import TracedValueError
from xarr.ir.source import here
from xarr.lax import _constants as constants
from xarr.lax.core import ArrayLike
from xarr.lazy import Handle, to_host
from xarr.shapes import check_sizes

if TYPE_CHECKING:
    from xarr.array import Array

Host = np.ndarray[Any, Any]
INT64 = np.dtype(np.int64)


def looked_at(name: str, what: str, value: ArrayLike, instead: str) -> Any:
    """`value`, of an Array its elements as a NumPy array.

    Raises TracedValueError for an Array that depends on an argument of a traced function: `name` needs `what`
    of it; `instead` says what works.
    """
    if not isinstance(value, Handle):
        return value
    refuse_traced(name, what, value, instead)
    return to_host(value)


def refuse_traced(name: str, what: str, array: Handle, instead: str) -> None:
    """TracedValueError for an Array without a value."""
    node = array._node
    if not node.traced:
        return
    asked = here()
    place = f"\nIt was asked for at {asked}" if asked else ""
    place += f"\nIt was built at {node.source}" if node.source else ""
    raise TracedValueError(
        f"{name}: the shape of the result depends on {what}, and in a traced function {node.type.short()} has "
        f"no values yet; {instead}{place}"
    )


def places_of(name: str, what: str, mask: Array, size: int | None) -> tuple[Array, Array | None]:
    """The places where a vector of bools holds, in order, and how many of them count.

    size: how many places to return, None for as many as there are, which looks at the mask.  Behind the true
    ones stands the first of them (or 0).
    """
    if size is None:
        host = looked_at(name, what, mask, "give size=, the largest number that is possible")
        return constants.of_host(np.flatnonzero(host), mask._backend), None
    (wanted,) = check_sizes(size, name="size")
    length = mask.shape[0]
    count = lax.reduce_sum(lax.convert_element_type(mask, INT64), (0,))
    if not length:
        return constants.full((wanted,), 0, INT64), count
    places = constants.iota(INT64, length)
    # False sorts before True, and the sort is stable.
    _, order = lax.sort((lax.bitwise_not(mask), places), 0, is_stable=True, num_keys=1)
    order = lax.slice_in_dim(order, 0, min(wanted, length))
    if wanted > length:
        order = lax.pad(order, np.int64(0), [(0, wanted - length, 0)])
    first = lax.broadcast_in_dim(lax.slice_in_dim(order, 0, 1), (wanted,), (0,)) if wanted else order
    return lax.select(counted(wanted, count), order, first), count


def counted(size: int, count: Array) -> Array:
    """A vector of `size` bools of which the first `count` hold."""
    return lax.lt(constants.iota(INT64, size), lax.broadcast_in_dim(count, (size,), ()))
