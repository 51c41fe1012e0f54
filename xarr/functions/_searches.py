"""Binary search in sorted elements: for each value the number of elements before it, all values at once."""

from __future__ import annotations

from collections.abc import Callable
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
    one, precedes = lax.full_like(found, 1), _before(values, right)
    left = count  # So many elements from `found` on have not been decided about.
    while left:
        half = max(left // 2, 1)
        place = lax.add(found, half - 1) if half > 1 else found
        probe = lax.take(flat, place if start is None else lax.add(start, place), 0)
        found = lax.select(precedes(probe), lax.add(place, one), found)
        left -= half
    return found


def _before(values: Array, or_equal: bool) -> Callable[[Array], Array]:
    """The function of x that says where x < values, or x <= values, in the order of `sort`.

    NaN comes last, complex numbers go part by part.
    """
    if values.dtype in COMPLEX:
        return lambda x: _precedes(x, values, or_equal)
    if values.dtype not in FLOAT:
        return lambda x: lax.le(x, values) if or_equal else lax.lt(x, values)
    is_nan = lax.ne(values, values)
    if or_equal:
        return lambda x: lax.bitwise_or(lax.le(x, values), is_nan)
    return lambda x: lax.bitwise_or(lax.lt(x, values), lax.bitwise_and(is_nan, lax.eq(x, x)))


def _precedes(x: Array, y: Array, or_equal: bool) -> Array:
    """x < y, or x <= y, of complex numbers."""
    first, second = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
    smaller, greater = _before(first[1], False)(first[0]), _before(first[0], False)(first[1])
    equal = lax.bitwise_not(lax.bitwise_or(smaller, greater))
    return lax.bitwise_or(smaller, lax.bitwise_and(equal, _before(second[1], or_equal)(second[0])))
