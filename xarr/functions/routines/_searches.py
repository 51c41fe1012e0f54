"""Binary search in sorted elements: for each value the number of elements before it, all values at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.dtypes import BOOL, FLOAT, info
from xarr.functions._arguments import filled
from xarr.functions.routines._lines import is_nan

if TYPE_CHECKING:
    from xarr.array import Array


def places_in(table: Array, values: Array, *, right: bool = False) -> Array:
    """How many elements of the sorted `table` come before each value, with `right` also those equal to it.

    table: a vector, NaN last.  values: of the table's type; NaN comes after all numbers.
    Returns int64 of the shape of `values`.
    """
    line = lax.reshape(table, (1, *table.shape))
    found = places_in_lines(line, lax.reshape(values, (values.size, 1)), right)
    return lax.reshape(found, values.shape)


def places_in_lines(table: Array, values: Array, right: bool = False) -> Array:
    """The same in each line of a matrix: values of shape (any, number of lines)."""
    lines, count = table.shape
    found = lax.full_like(values, 0, np.int64)
    if not count or not values.size:
        return found
    if table.dtype in BOOL:
        table, values = (lax.convert_element_type(each, np.int8) for each in (table, values))
    steps = [1 << bit for bit in reversed(range(count.bit_length()))]
    length = 2 * steps[0] - 1
    # The rest comes before no value, or is equal to the greatest integer.
    rest = np.nan if table.dtype in FLOAT else int(info(table.dtype).max)
    padded = lax.reshape(lax.pad(table, rest, [(0, 0, 0), (0, length - count, 0)]), (lines * length,))
    start = lax.mul(lax.broadcasted_iota(np.int64, values.shape, 1), length) if lines > 1 else found
    place = start
    for step in steps:
        probe = lax.take(padded, lax.add(place, step - 1), 0)
        before = lax.le(probe, values) if right else lax.lt(probe, values)
        place = lax.select(before, lax.add(place, step), place)
    found = lax.min(lax.sub(place, start), lax.full_like(found, count))
    if table.dtype not in FLOAT:
        return found
    numbers = filled((lines,), count, np.dtype(np.int64), None) if right else _numbers(table)
    return lax.select(is_nan(values), lax.broadcast_in_dim(numbers, values.shape, (1,)), found)


def _numbers(table: Array) -> Array:
    return lax.reduce_sum(lax.convert_element_type(lax.bitwise_not(is_nan(table)), np.int64), (1,))
