"""Binary search in sorted elements: for each value the number of elements before it, all values at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.functions._arguments import filled, laid
from xarr.functions.routines._lines import is_nan

if TYPE_CHECKING:
    from xarr.array import Array


def places_in(
    table: Array, values: Array, *, right: bool = False, starts: Array | None = None, count: int | None = None
) -> Array:
    """How many elements of the sorted `table` come before each value, with `right` also those equal to it.

    table: a vector, NaN last.  values: of the table's type; NaN comes after all numbers.
    starts, count: the part of the table to search for each value, by default all of it.
    Returns int64 of the shape of `values`.
    """
    count = table.shape[0] if count is None else count
    found = filled(values.shape, 0, np.dtype(np.int64), values._backend)
    if not count:
        return found
    is_last = is_nan(values)
    for step in (1 << bit for bit in reversed(range(count.bit_length()))):
        further = lax.add(found, step)
        place = lax.sub(lax.min(further, laid(_int64(count), values.shape)), 1)
        probe = lax.take(table, place if starts is None else lax.add(starts, place), 0)
        before = lax.le(probe, values) if right else lax.lt(probe, values)
        unordered = is_last if right else lax.bitwise_and(is_last, lax.bitwise_not(is_nan(probe)))
        before = lax.bitwise_and(lax.bitwise_or(before, unordered), lax.le(further, count))
        found = lax.select(before, further, found)
    return found


def _int64(value: int) -> Array:
    return filled((), value, np.dtype(np.int64), None)
