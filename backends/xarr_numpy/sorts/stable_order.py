"""The stable order of integers.

Integers and the positions of their elements are packed into one number each, so that the fastest sort, which is not
stable, gives the stable order.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

#: Beyond these NumPy refuses to sort: "this function only supports up to 32 dimensions".
_MOST_DIMENSIONS: Final = 32

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]


def as_rows(x: Array) -> Array:
    """An array as a matrix of its rows along the last axis if it has more dimensions than NumPy sorts."""
    return x if x.ndim <= _MOST_DIMENSIONS else x.reshape(prod(x.shape[:-1]), x.shape[-1])


def stable_order(columns: Sequence[Array]) -> Array:
    """Where the elements along the last axis stand that come first, second … by columns of integers."""
    order: Array | None = None
    for column in map(as_rows, reversed(columns)):
        column_order = _order(column if order is None else take_along_rows(column, order))
        order = column_order if order is None else take_along_rows(order, column_order)
    assert order is not None
    return order.reshape(columns[0].shape)


def _order(column: Array) -> Array:
    count = column.shape[-1]
    bits = max(count - 1, 0).bit_length()
    positions = np.arange(count)
    if not column.size:
        return np.broadcast_to(positions, column.shape)
    low, high = int(column.min()), int(column.max())
    if (high - low).bit_length() + bits <= 63:
        numbers = column.astype(np.int64) if column.dtype.itemsize < 8 else column.view(np.int64)
        return _order_packed(numbers - _wrap(low), positions, bits)
    order = np.argsort(column, axis=-1)
    ordered = take_along_rows(column, order)
    new = ordered[..., 1:] != ordered[..., :-1]
    if new.all():
        return order
    # Equal elements stand together, in any order: now in that of their positions.
    run = np.zeros(column.shape, np.int64)
    np.cumsum(new, axis=-1, out=run[..., 1:])
    return _order_packed(run, order, bits)


def _wrap(number: int) -> np.int64:
    """The int64 of the same bits."""
    return np.int64((number + 2**63) % 2**64 - 2**63)


def _order_packed(numbers: Array, positions: Array, bits: int) -> Array:
    """Positions in the order of numbers, and where these are equal in their own.  May write into `numbers`."""
    packed = np.left_shift(numbers, bits, out=numbers)
    packed |= positions
    packed.sort(axis=-1)
    packed &= (1 << bits) - 1
    return packed


def take_along_rows(x: Array, order: Array) -> Array:
    if x.ndim == 1:
        return np.take(x, order)
    result: Array = np.take_along_axis(as_rows(x), as_rows(order), -1)
    return result.reshape(order.shape)


def axis_last(x: Array, axis: int) -> Array:
    """A view in which a dimension is the last one."""
    return x if axis == x.ndim - 1 else np.moveaxis(x, axis, -1)


def take_in_order(arrays: Arrays, order: Array, axis: int) -> Arrays:
    if axis == order.ndim - 1:
        return tuple([take_along_rows(x, order) for x in arrays])
    return tuple([np.moveaxis(take_along_rows(np.moveaxis(x, axis, -1), order), -1, axis) for x in arrays])
