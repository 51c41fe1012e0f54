"""Binary search in sorted elements: for each value the number of elements before it, all values at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.dtypes import COMPLEX, FLOAT
from xarr.lax import _constants as constants

if TYPE_CHECKING:
    from xarr.array import Array


def places_in(table: Array, values: Array, *, right: bool = False) -> Array:
    """How many elements of the sorted `table` come before each value, with `right` also those equal to it.

    table: a vector in the order of `sort`: NaN last, complex numbers by real, then imaginary part.
    values: of the table's type; NaN comes after all numbers.  Returns int64 of the shape of `values`.
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
    flat = lax.reshape(table, (lines * count,))
    start = lax.mul(constants.broadcasted_iota(np.int64, values.shape, 1), count) if lines > 1 else None
    for step in [1 << bit for bit in reversed(range(count.bit_length()))]:
        # The last element stands for those behind it, which are not there.
        place = lax.min(lax.add(found, step - 1), lax.full_like(found, count - 1))
        probe = lax.take(flat, place if start is None else lax.add(start, place), 0)
        found = lax.select(_precedes(probe, values, right), lax.add(place, 1), found)
    return found


def _precedes(x: Array, y: Array, or_equals: bool) -> Array:
    """x < y, or x <= y, in the order of `sort`: NaN last, complex numbers part by part."""
    if x.dtype in COMPLEX:
        first, second = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
        equal = lax.bitwise_not(lax.bitwise_or(_precedes(*first, False), _precedes(*first[::-1], False)))
        later = lax.bitwise_and(equal, _precedes(*second, or_equals))
        return lax.bitwise_or(_precedes(*first, False), later)
    if x.dtype not in FLOAT:
        return lax.le(x, y) if or_equals else lax.lt(x, y)
    y_is_nan = lax.ne(y, y)
    if or_equals:
        return lax.bitwise_or(lax.le(x, y), y_is_nan)
    return lax.bitwise_or(lax.lt(x, y), lax.bitwise_and(y_is_nan, lax.eq(x, x)))
