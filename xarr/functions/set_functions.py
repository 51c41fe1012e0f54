"""Functions on arrays as sets: the distinct elements, and which elements are in another array.

How many distinct elements there are depends on the values, so the functions evaluate their argument.  In a
traced function, where it has no value, `size=` says how many places the result has, as in jax.numpy: the
distinct elements come first, and `fill_value` (by default the smallest element) fills the rest.

Elements are the same if they are equal: each NaN differs from all others, -0.0 and 0.0 are one.
Source: Array API 2025.12, set functions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from xarr import lax
from xarr.dtypes import PREDICATE
from xarr.errors import ShapeError, TracedValueError, ValueRangeError
from xarr.functions._arguments import converted, filled, laid
from xarr.functions._core import as_array, promoted
from xarr.functions.searching_functions import nonzero, searchsorted
from xarr.ir.source import here
from xarr.lax.core import ArrayLike, flag, integer
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.shapes import check_sizes

if TYPE_CHECKING:
    from xarr.array import Array

_PLACE = np.dtype(np.int64)


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Array
    inverse_indices: Array


class _Groups:
    """The elements of an array in order, and where each group of equal ones starts.

    There is one start more than places for groups, that of what follows the last one; starts without a group
    are the number of elements.
    """

    def __init__(self, name: str, x: ArrayLike, size: int | None) -> None:
        array = as_array(x)
        refuse_dynamic(name, array, "lax.sort")
        self.name, self.shape, self.count = name, array.shape, array.size
        places = lax.iota(_PLACE, array.size)
        flat = lax.reshape(array, (array.size,))
        self.ordered, self.order = lax.sort((flat, places), 0, is_stable=True, num_keys=1)
        self.is_first = _differs_from_previous(self.ordered)
        self.starts, self.is_padded = _places_of(name, self.is_first, size), size is not None
        self.size = self.starts.shape[0] - 1

    def _at_starts(self, ordered: Array) -> Array:
        """The elements that stand first in each group; the smallest where there is no group."""
        if not self.count:
            return filled((self.size,), 0, ordered.dtype, ordered._backend)
        starts = lax.slice_in_dim(self.starts, 0, self.size)
        zeros = filled(starts.shape, 0, _PLACE, None)
        return lax.take(ordered, lax.select(self._is_used(starts), starts, zeros), 0)

    def _is_used(self, starts: Array) -> Array:
        return lax.lt(starts, filled(starts.shape, self.count, _PLACE, None))

    def values(self, fill_value: ArrayLike | None) -> Array:
        found = self._at_starts(self.ordered)
        if fill_value is None or not self.is_padded:
            return found
        (fill,) = promoted(self.name, fill_value, dtype=found.dtype)
        if fill.shape:
            raise ShapeError(f"{self.name}: wanted a scalar for fill_value, got shape {fill.shape}")
        return lax.select(
            self._is_used(lax.slice_in_dim(self.starts, 0, self.size)), found, laid(fill, found.shape)
        )

    def indices(self) -> Array:
        return self._at_starts(self.order)

    def inverse(self) -> Array:
        """The number of each element's group, put back into the order of the array."""
        group = lax.sub(lax.cumsum(converted(self.is_first, _PLACE)), 1)
        _, found = lax.sort((self.order, group), 0, is_stable=True, num_keys=1)
        return lax.reshape(found, self.shape)

    def counts(self) -> Array:
        after = lax.slice_in_dim(self.starts, 1, None)
        return lax.sub(after, lax.slice_in_dim(self.starts, 0, self.size))


def _places_of(name: str, mask: Array, size: int | None) -> Array:
    """Where the elements of a vector hold, or the first `size` and one more; then its length for the others."""
    end = mask.shape[0]
    if size is not None:
        wanted = check_sizes(integer(name, "size", size), name="size")[0] + 1
        (found,) = nonzero(mask, size=wanted, fill_value=end)
        return found
    if mask._node.traced:
        place = f"\nIt was asked for at {asked}" if (asked := here()) else ""
        raise TracedValueError(
            f"{name}: how many distinct elements there are depends on values, which a traced function does not "
            f"have yet; give size=, e.g. xarr.{name}(x, size=10), which fills or cuts to that many{place}"
        )
    (found,) = nonzero(mask)
    return lax.pad(found, filled((), end, _PLACE, None), [(0, 1, 0)])


def _differs_from_previous(ordered: Array) -> Array:
    """Whether each element differs from the one before it; the first one does."""
    (count,) = ordered.shape
    if not count:
        return filled((0,), False, PREDICATE, ordered._backend)
    changes = lax.ne(lax.slice_in_dim(ordered, 1, None), lax.slice_in_dim(ordered, 0, count - 1))
    return lax.pad(changes, filled((), True, PREDICATE, None), [(1, 0, 0)])


def unique_all(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements of `x` in order, where each stands first, which of them each element is, how
    often each occurs.

    x: array of any shape.  size, fill_value: see the module; the counts of filled places are 0.

    Returns `values`, `indices` and `counts` of one dimension, `inverse_indices` of the shape of `x`; all but
    `values` are int64.  Raises TracedValueError in a traced function without `size`.
    Source: Array API, `unique_all`.
    """
    groups = _Groups("unique_all", x, size)
    return UniqueAll(groups.values(fill_value), groups.indices(), groups.inverse(), groups.counts())


def unique_counts(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """The distinct elements of `x` in order, and how often each occurs.  Otherwise as `unique_all`."""
    groups = _Groups("unique_counts", x, size)
    return UniqueCounts(groups.values(fill_value), groups.counts())


def unique_inverse(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """The distinct elements of `x` in order, and which of them each element is.  Otherwise as `unique_all`."""
    groups = _Groups("unique_inverse", x, size)
    return UniqueInverse(groups.values(fill_value), groups.inverse())


def unique_values(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of `x` in order.  Otherwise as `unique_all`."""
    return _Groups("unique_values", x, size).values(fill_value)


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
    x, among = promoted("isin", element, test_elements)
    for array in (x, among):
        refuse_dynamic("isin", array, "comparisons with ==")
    outside = flag("isin", "invert", invert)
    if not among.size:
        return filled(x.shape, outside, PREDICATE, x._backend)
    ordered = lax.sort(lax.reshape(among, (among.size,)), 0)
    nearest = lax.take(ordered, searchsorted(ordered, x), 0)
    return lax.ne(nearest, x) if outside else lax.eq(nearest, x)
