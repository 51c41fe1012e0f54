"""Functions on arrays as sets: the distinct elements, and which elements are in another array.

How many distinct elements there are depends on the values, so the functions evaluate their argument.  In a
traced function, where it has no value, `size=` says how many elements the result has, as in jax.numpy: the
distinct elements come first, and `fill_value` (by default the smallest element) fills the rest.

Elements are the same if they are equal: each NaN differs from all others, -0.0 and 0.0 are one.
Source: Array API 2025.12, set functions.
"""

from __future__ import annotations

from typing import NamedTuple

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array, promote_operands
from xarr.dtypes import PREDICATE
from xarr.errors import ValueRangeError
from xarr.lax.core import ArrayLike, flag, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.sorting.searching import searchsorted
from xarr.numpy_api.sorting.sets import unique_elements
from xarr.numpy_api.sorting.sorting import sort
from xarr.shapes import check_sizes


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


def _distinct(
    name: str, x: ArrayLike, size: int | None, fill_value: ArrayLike | None, with_index: bool = True
) -> UniqueAll:
    """All that is to be known; indices and inverse_indices are right `with_index` only."""
    array = as_array(x)
    refuse_dynamic(name, array, "lax.sort")
    wanted = None if size is None else check_sizes(integer(name, "size", size), name="size")[0]
    values, extra = unique_elements(name, array, wanted, fill_value, with_index=with_index, equal_nan=False)
    return UniqueAll(values, *extra)


def unique_all(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements of `x` in order, where each stands first, which of them each element is, how
    often each occurs.

    x: array of any shape.  size, fill_value: see the module; the counts of fill values are 0.

    Returns `values`, `indices` and `counts` of one dimension, `inverse_indices` of the shape of `x`; all but
    `values` are int64.  Raises TracedValueError in a traced function without `size`.
    Source: Array API, `unique_all`.
    """
    return _distinct("unique_all", x, size, fill_value)


def unique_counts(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """The distinct elements of `x` in order, and how often each occurs.  Otherwise as `unique_all`.

    Source: Array API, `unique_counts`.
    """
    unique = _distinct("unique_counts", x, size, fill_value, with_index=False)
    return UniqueCounts(unique.values, unique.counts)


def unique_inverse(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """The distinct elements of `x` in order, and which of them each element is.  Otherwise as `unique_all`.

    Source: Array API, `unique_inverse`.
    """
    unique = _distinct("unique_inverse", x, size, fill_value)
    return UniqueInverse(unique.values, unique.inverse_indices)


def unique_values(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of `x` in order.  Otherwise as `unique_all`.

    Source: Array API, `unique_values`.
    """
    return _distinct("unique_values", x, size, fill_value, with_index=False).values


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    kind: str | None = None,
) -> Array:
    """Whether each element equals one of `test_elements`, or with `invert` none of them; NaN equals nothing.

    `assume_unique` and `kind` ("sort", "table", None) are NumPy's advice on speed and change nothing.
    Returns bools of the shape of `element`.  Raises ValueRangeError for another kind.
    Source: Array API and NumPy, `isin`.
    """
    flag("isin", "assume_unique", assume_unique)
    if kind not in (None, "sort", "table"):
        raise ValueRangeError(f"isin: wanted kind 'sort', 'table' or None, got {kind!r}")
    x, among = promote_operands("isin", element, test_elements)
    outside = flag("isin", "invert", invert)
    if not among.size:
        return lax.full_like(x, outside, PREDICATE)
    ordered = sort(among, None)
    nearest = lax.take(ordered, searchsorted(ordered, x), 0)
    return lax.ne(nearest, x) if outside else lax.eq(nearest, x)
