"""NumPy's order of elements: sorting by it, and binary search in what is sorted.

NaN comes last, -0.0 and 0.0 are equal.  Complex numbers go by real, then imaginary part, those without NaN first,
then those with NaN as imaginary part, as real part, as both.  (`lax.sort`, as XLA, compares part by part.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, FLOAT
from xarr.lax.dynamic_sizes import refuse_dynamic


def sort_by_keys(
    keys: Sequence[Array], followers: Sequence[Array], dimension: int
) -> tuple[list[Array], list[Array]]:
    """Keys, the first the most important, and what follows them, in NumPy's order along `dimension`; stable."""
    columns = [column for key in keys for column in _columns(key)]
    arrays = lax.sort((*columns, *followers), dimension, is_stable=True, num_keys=len(columns))
    ends = accumulate(len(_columns(key)) for key in keys)
    return [arrays[end - 1] for end in ends], list(arrays[len(columns) :])


def _columns(key: Array) -> tuple[Array, ...]:
    """Keys whose order, part by part, is NumPy's order of `key`, which is the last of them."""
    return (_nan_parts(key), key) if key.dtype in COMPLEX else (key,)


def _nan_parts(x: Array) -> Array:
    """Of complex numbers: 0 without NaN, 1 for NaN as imaginary part, 2 as real part, 3 as both."""
    real, imag = (
        lax.convert_element_type(lax.ne(part, part), np.uint8) for part in (lax.real(x), lax.imag(x))
    )
    return lax.bitwise_or(lax.add(real, real), imag)


def insertion_points(table: Array, values: Array, *, right: bool = False) -> Array:
    """Count the elements of the sorted `table` before each value, with `right` also those equal to it.

    table: a vector in the order of `sort`.  values: of the table's type.  Returns int64 of the shape of `values`.
    """
    refuse_dynamic("the table of a binary search", table, "comparisons with ==, <= or <")
    return _insertion_points(table, table.shape[0], None, values, right)


def insertion_points_in_lines(table: Array, values: Array, right: bool = False) -> Array:
    """Find `insertion_points` in each line of a matrix: values of shape (any, number of lines)."""
    lines, count = table.shape
    flat = lax.reshape(table, (lines * count,))
    start = lax.mul(lax.broadcasted_iota(np.int64, values.shape, 1), count) if lines > 1 else None
    return _insertion_points(flat, count, start, values, right)


def _insertion_points(flat: Array, count: int, start: Array | None, values: Array, right: bool) -> Array:
    """Find insertion points among `count` sorted elements of `flat` from `start` on; None is its beginning."""
    positions = lax.full_like(values, 0, np.int64)
    if not count or not values.size:
        return positions
    one, precedes = lax.full_like(positions, 1), _order_test(values, right)
    left = count  # So many elements from `positions` on have not been decided about.
    while left:
        half = max(left // 2, 1)
        middle = lax.add(positions, half - 1) if half > 1 else positions
        probe = lax.take(flat, middle if start is None else lax.add(start, middle), 0)
        positions = lax.select(precedes(probe), lax.add(middle, one), positions)
        left -= half
    return positions


def _order_test(values: Array, or_equal: bool) -> Callable[[Array], Array]:
    """A predicate of x: where x < values, or x <= values, in the order of `sort`."""
    if values.dtype in COMPLEX:
        parts = _nan_parts(values)
        return lambda x: _precedes(x, values, _nan_parts(x), parts, or_equal)
    if values.dtype not in FLOAT:
        return lambda x: lax.le(x, values) if or_equal else lax.lt(x, values)
    is_nan = lax.ne(values, values)
    if or_equal:
        return lambda x: lax.bitwise_or(lax.le(x, values), is_nan)
    return lambda x: lax.bitwise_or(lax.lt(x, values), lax.bitwise_and(is_nan, lax.eq(x, x)))


def _precedes(x: Array, y: Array, x_nan: Array, y_nan: Array, or_equal: bool) -> Array:
    """x < y, or x <= y, of complex numbers, with the `_nan_parts` of both."""
    first, second = (lax.real(x), lax.real(y)), (lax.imag(x), lax.imag(y))
    smaller, greater = _order_test(first[1], False)(first[0]), _order_test(first[0], False)(first[1])
    equal = lax.bitwise_not(lax.bitwise_or(smaller, greater))
    by_parts = lax.bitwise_or(smaller, lax.bitwise_and(equal, _order_test(second[1], or_equal)(second[0])))
    return lax.bitwise_or(lax.lt(x_nan, y_nan), lax.bitwise_and(lax.eq(x_nan, y_nan), by_parts))
