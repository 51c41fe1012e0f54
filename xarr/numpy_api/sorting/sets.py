"""Distinct elements, and vectors as sets.

How many elements a result has depends on values.  Outside of traced functions these are looked at; in traced
ones `size` must say how many elements to return, as in jax.numpy: the first ones if there are more, and
`fill_value`, by default the first one (0 if there is none), behind them if there are fewer.

-0.0 and 0.0 are one element; each NaN differs from all others, but for `unique`, which has `equal_nan`.
"""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, is_nan
from xarr.calls.concrete_values import is_known, refuse_traced
from xarr.calls.dependent_shapes import INT64, count_mask, indices_where
from xarr.calls.operands import as_array, promote_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.calls.value_calls import UniqueAll, UniqueCounts, UniqueInverse
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT, PREDICATE
from xarr.errors import ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, integer, put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.manipulation.joining import concatenate
from xarr.numpy_api.manipulation.shapes import ravel
from xarr.numpy_api.sorting.order import sort_by_keys
from xarr.numpy_api.sorting.searching import searchsorted
from xarr.numpy_api.sorting.sorting import sort
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes, normalize_axis

__all__ = [
    "intersect1d",
    "isin",
    "setdiff1d",
    "setxor1d",
    "union1d",
    "unique",
    "unique_all",
    "unique_counts",
    "unique_inverse",
    "unique_values",
]

_WHAT = "how many distinct elements there are"


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...


@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any: ...


@remembers_calls
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    sorted: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements in order; with `axis` the distinct slices along it, in lexicographic order.

    return_index: also where each is first.  return_inverse: also the indices of the elements of `ar` among the
    distinct ones, in the shape of `ar`, or as a vector with `axis`.  return_counts: also how often each is there.
    The result is a tuple if one of them holds.  equal_nan: whether NaN equals NaN; slices with NaN always differ.
    sorted: the result is in order in any case.
    size, fill_value: see above; the index behind the last element is that of the first, the count 0.

    Raises AxisError; in a traced function without `size` TracedValueError.
    Source: NumPy, `unique`; size and fill_value are jax.numpy's.
    """
    array = as_array(ar)
    wanted = [
        flag("unique", name, value)
        for name, value in (
            ("return_index", return_index),
            ("return_inverse", return_inverse),
            ("return_counts", return_counts),
        )
    ]
    refuse_dynamic("unique", array, "numpy.unique")
    if size is not None:
        (size,) = check_sizes(size, name="size")
    dim = None if axis is None else normalize_axis(axis, len(array.shape))
    if dim is not None and len(array.shape) > 1:
        values, extra = _unique_slices(array, dim, size, fill_value)
    else:
        values, extra = unique_elements(
            "unique",
            array,
            size,
            fill_value,
            with_index=any(wanted[:2]),
            equal_nan=flag("unique", "equal_nan", equal_nan),
        )
    chosen = tuple(part for part, is_wanted in zip(extra, wanted, strict=True) if is_wanted)
    return (values, *chosen) if chosen else values


Extra = tuple["Array", "Array", "Array"]


def unique_elements(
    name: str,
    array: Array,
    size: int | None,
    fill_value: ArrayLike | None,
    *,
    with_index: bool,
    equal_nan: bool,
) -> tuple[Array, Extra]:
    """Values, and index, inverse and counts, of which the first two are right `with_index` only.

    That spares the indices a sort.  `name` is the function that errors speak of.
    """
    flat = ravel(array)
    order = own = lax.iota(INT64, flat.shape[0])
    ordered = sort(flat)
    if with_index:
        (ordered,), (order,) = sort_by_keys((flat,), (own,), 0)
    first = _first_of_equals(_differ(ordered, equal_nan), flat.shape[0])
    values, (index, inverse, counts) = _select_unique(name, ordered, first, order, size, fill_value)
    return values, (index, lax.reshape(inverse, array.shape), counts)


def _select_unique(
    name: str, ordered: Array, first: Array, order: Array, size: int | None, fill_value: ArrayLike | None
) -> tuple[Array, Extra]:
    """The results of `unique` for slices in order, of which each `first` is to be kept."""
    length = first.shape[0]
    # One more index than wanted, where the last run of equal slices ends.
    ends, count = indices_where(name, _WHAT, first, size if size is None else size + 1)
    starts = ends if size is None else lax.slice_in_dim(ends, 0, size)
    values = _take(ordered, starts, count, fill_value)
    number = lax.sub(lax.cumsum(lax.convert_element_type(first, INT64)), 1) if length else order
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    inverse = lax.scatter(order, lax.reshape(order, (length, 1)), number, numbers, unique_indices=True)
    return values, (_take(order, starts, None, None), inverse, _counts(ends, count, length))


def _take(array: Array, indices: Array, count: Array | None, fill_value: ArrayLike | None) -> Array:
    """Slices along the first dimension; behind the first `count` of them `fill_value`."""
    size = indices.shape[0]
    if not array.shape[0]:
        filler = fill((), 0, array.dtype) if fill_value is None else _filler(array, fill_value)
        return lax.broadcast_in_dim(filler, (size, *array.shape[1:]), ())
    result = lax.take(array, indices, 0)
    if count is None or not size:
        return result
    zero = fill((), 0, array.dtype)
    filler = lax.broadcast_in_dim(
        zero if fill_value is None else _filler(array, fill_value), result.shape, ()
    )
    is_there = count_mask(size, count)
    if fill_value is None:
        is_there = lax.broadcast_in_dim(lax.gt(count, 0), (size,), ())
    return lax.select(lax.broadcast_in_dim(is_there, result.shape, (0,)), result, filler)


def _filler(array: Array, fill_value: ArrayLike) -> Array:
    filler = as_array(fill_value)
    if filler.shape:
        raise ShapeError(f"wanted a scalar for fill_value, got shape {filler.shape}")
    return convert(filler, array.dtype)


def _counts(starts: Array, count: Array | None, length: int) -> Array:
    """The lengths of runs from each of `starts` to the next; the last one reaches to the end.

    With a `count` there is one start too many, and as many of them count.
    """
    size = starts.shape[0]
    if count is None:
        end = lax.full((1,), length, INT64)
        behind = lax.concatenate([lax.slice_in_dim(starts, 1, size), end], 0) if size else starts
        return lax.sub(behind, starts)
    end = lax.full((size,), length, INT64)
    behind = lax.slice_in_dim(lax.select(count_mask(size, count), starts, end), 1, size)
    counts = lax.sub(behind, lax.slice_in_dim(starts, 0, size - 1))
    return lax.select(count_mask(size - 1, count), counts, lax.full((size - 1,), 0, INT64))


def _differ(ordered: Array, equal_nan: bool) -> Array:
    """Whether each element but the first differs from the one before."""
    size = ordered.shape[0]
    if size < 2:
        return lax.full((0,), False, np.bool_)
    after, before = lax.slice_in_dim(ordered, 1, size), lax.slice_in_dim(ordered, 0, size - 1)
    differ = lax.ne(after, before)
    if equal_nan and ordered.dtype in FLOAT | COMPLEX:
        differ = lax.bitwise_and(differ, lax.bitwise_not(lax.bitwise_and(is_nan(after), is_nan(before))))
    return differ


def _first_of_equals(differ: Array, size: int) -> Array:
    """Which of `size` ordered elements are the first of a run of equal ones."""
    if not size:
        return differ
    return lax.concatenate([lax.full((1,), True, np.bool_), differ], 0)


# --- slices ---------------------------------------------------------------------------------------


def _unique_slices(
    array: Array, axis: int, size: int | None, fill_value: ArrayLike | None
) -> tuple[Array, Extra]:
    rank = len(array.shape)
    turned = lax.transpose(array, [axis, *(dim for dim in range(rank) if dim != axis)])
    if size is None:
        refuse_traced("unique", _WHAT, array, "give size=, the largest number that is possible")
        host = to_host(turned)
        # The order of the narrow floats is that of the float32 which they are.
        host = host.astype(np.float32) if array.dtype in EXTENDED_FLOAT else host
        unique_rows = np.unique(host, True, True, True, axis=0)
        index, inverse, counts = (put(each, array._node.device) for each in unique_rows[1:])
        values = lax.take(turned, index, 0)
    else:
        rows, width = turned.shape[0], math.prod(turned.shape[1:])
        table = lax.reshape(turned, (rows, width))
        keys = [lax.index_in_dim(table, column, 1, keepdims=False) for column in range(width)]
        order = lax.iota(INT64, rows)
        if keys:
            keys, (order,) = sort_by_keys(keys, (order,), 0)
        differ = lax.full((max(rows - 1, 0),), False, np.bool_)
        for key in keys:
            differ = lax.bitwise_or(differ, _differ(key, equal_nan=False))
        first = _first_of_equals(differ, rows)
        ordered = lax.take(turned, order, 0) if rows else turned
        values, (index, inverse, counts) = _select_unique("unique", ordered, first, order, size, fill_value)
    return lax.transpose(values, [*range(1, axis + 1), 0, *range(axis + 1, rank)]), (index, inverse, counts)


# --- two vectors as sets --------------------------------------------------------------------------


class _Both(NamedTuple):
    """The elements of two vectors in order, those of the first before equal ones of the second.

    `order` holds their indices in the concatenated vectors.  A NaN equals the other NaNs of its own vector only.
    """

    values: Array
    order: Array
    of_second: Array
    #: Whether each is the first of a run of equal ones.
    first: Array
    #: Whether the run that each is in ends with an element of the second vector.
    in_second: Array


def _both(ar1: Array, ar2: Array) -> _Both:
    one, other = promote_operands("setops", ar1, ar2)
    values, length = lax.concatenate([one, other], 0), one.shape[0] + other.shape[0]
    if values.dtype in COMPLEX:  # NaN in either part is one NaN
        values = lax.select(is_nan(values), lax.full_like(values, complex(math.nan, math.nan)), values)
    ordered, order = lax.sort((values, lax.iota(INT64, length)), 0, is_stable=True, num_keys=1)
    of_second = lax.ge(order, one.shape[0])
    differ = _differ(ordered, equal_nan=True)
    if values.dtype in FLOAT | COMPLEX and length:
        after, before = lax.slice_in_dim(of_second, 1, length), lax.slice_in_dim(of_second, 0, length - 1)
        nan = is_nan(lax.slice_in_dim(ordered, 1, length))
        differ = lax.bitwise_or(differ, lax.bitwise_and(nan, lax.ne(after, before)))
    first = _first_of_equals(differ, length)
    last = lax.concatenate([differ, lax.full((1,), True, np.bool_)], 0)
    own = lax.iota(INT64, length)
    ends = lax.cummin(lax.select(last, own, lax.full((length,), length - 1, INT64)), 0, reverse=True)
    return _Both(ordered, order, of_second, first, lax.take(of_second, ends, 0))


def _vectors(name: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array]:
    arrays = as_array(ar1), as_array(ar2)
    for array in arrays:
        refuse_dynamic(name, array, f"numpy.{name}")
    return ravel(arrays[0]), ravel(arrays[1])


@remembers_calls
def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """The distinct elements of two arrays, in order.  Raises TracedValueError without `size` in a traced
    function.  Source: NumPy, `union1d`; size and fill_value, see above, are jax.numpy's.
    """
    result: Array = unique(concatenate(_vectors("union1d", ar1, ar2)), size=size, fill_value=fill_value)
    return result


@remembers_calls
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Any:
    """The distinct elements that are in both arrays, in order; NaN is in none.

    assume_unique: that no array has equal elements.  return_indices: also where each is first in either array,
    flattened, as a tuple of three.  Raises TracedValueError without `size` in a traced function.
    Source: NumPy, `intersect1d`; size and fill_value, see above, are jax.numpy's.
    """
    one, other = _vectors("intersect1d", ar1, ar2)
    with_indices = flag("intersect1d", "return_indices", return_indices)
    is_unique = flag("intersect1d", "assume_unique", assume_unique)
    if size is None and not with_indices and is_known(one, other):
        ordered = sort(concatenate([one, other] if is_unique else [unique(one), unique(other)]))
        equal = lax.bitwise_not(_differ(ordered, equal_nan=False))
        return lax.take(ordered, indices_where("intersect1d", _WHAT, equal, None)[0], 0)
    if not one.shape[0] + other.shape[0]:
        return _nothing(promote_operands("intersect1d", one, other)[0], size, fill_value, with_indices)
    both = _both(one, other)
    before = lax.concatenate(
        [lax.full((1,), False, np.bool_), lax.bitwise_not(lax.slice_in_dim(both.of_second, 0, -1))], 0
    )
    # The first of the second vector behind the last of the first vector that it equals.
    meets = lax.bitwise_and(lax.bitwise_not(both.first), lax.bitwise_and(both.of_second, before))
    indices, count = indices_where("intersect1d", _WHAT, meets, size)
    values = _take(both.values, indices, count, fill_value)
    if not with_indices:
        return values
    length = both.first.shape[0]
    starts = lax.select(both.first, lax.iota(INT64, length), lax.full((length,), 0, INT64))
    in_first = lax.take(both.order, lax.take(lax.cummax(starts), indices, 0), 0)
    in_second = lax.sub(lax.take(both.order, indices, 0), one.shape[0])
    return values, in_first, in_second


def _nothing(like: Array, size: int | None, fill_value: ArrayLike | None, with_indices: bool) -> Any:
    (count,) = check_sizes(0 if size is None else size, name="size")
    values = _take(like, lax.full((count,), 0, INT64), None, fill_value)
    index = lax.full((count,), 0, INT64)
    return (values, index, index) if with_indices else values


@remembers_calls
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements of `ar1` that are not in `ar2`, in order; NaN is in none.

    assume_unique: that no array has equal elements; then they stay in the order of `ar1`.
    Raises TracedValueError without `size` in a traced function.
    Source: NumPy, `setdiff1d`; size and fill_value, see above, are jax.numpy's.
    """
    one, other = _vectors("setdiff1d", ar1, ar2)
    if not one.shape[0]:
        result: Array = _nothing(one, size, fill_value, False)
        return result
    is_unique = flag("setdiff1d", "assume_unique", assume_unique)
    if size is None and not is_unique and one.dtype == other.dtype and is_known(one, other):
        return _difference(unique(one), unique(other))
    both = _both(one, other)
    if is_unique:
        length = both.first.shape[0]
        numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
        at = lax.reshape(both.order, (length, 1))
        inside = lax.scatter(both.in_second, at, both.in_second, numbers, unique_indices=True)
        outside = lax.bitwise_not(lax.slice_in_dim(inside, 0, one.shape[0]))
        indices, count = indices_where("setdiff1d", _WHAT, outside, size)
        return _take(one, indices, count, fill_value)
    alone = lax.bitwise_and(both.first, lax.bitwise_not(both.in_second))
    indices, count = indices_where("setdiff1d", _WHAT, alone, size)
    # From the array itself, whose element type the result keeps.
    own = lax.clamp(np.int64(0), lax.take(both.order, indices, 0), np.int64(one.shape[0] - 1))
    return _take(lax.take(one, own, 0), lax.iota(INT64, own.shape[0]), count, fill_value)


def _difference(one: Array, other: Array) -> Array:
    """The elements of `one` that are not in `other`, both without equal elements and in order.

    Among two copies of `one` and one of `other` they are those that are there twice.  This sorts values
    alone, which takes a third of the time that sorting their indices with them does.
    """
    ordered = sort(concatenate([one, one, other]))
    size = ordered.shape[0]
    ends = lax.full((1,), True, np.bool_)
    differ = lax.concatenate([ends, _differ(ordered, equal_nan=False), ends], 0)
    starts, seconds, thirds = (lax.slice_in_dim(differ, k, size - 1 + k) for k in range(3))
    twice = lax.bitwise_and(starts, lax.bitwise_and(lax.bitwise_not(seconds), thirds))
    result = lax.take(ordered, indices_where("setdiff1d", _WHAT, twice, None)[0], 0)
    last = lax.slice_in_dim(one, one.shape[0] - 1, one.shape[0])
    has_nan = one.dtype in FLOAT | COMPLEX and bool(to_host(is_nan(last))[0])
    return concatenate([result, last]) if has_nan else result


@remembers_calls
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The distinct elements that are in one of two arrays only, in order; a NaN is in its own only.

    assume_unique: that no array has equal elements.  Raises TracedValueError without `size` in a traced
    function.  Source: NumPy, `setxor1d`; size and fill_value, see above, are jax.numpy's.
    """
    one, other = _vectors("setxor1d", ar1, ar2)
    is_unique = flag("setxor1d", "assume_unique", assume_unique)
    if not one.shape[0] + other.shape[0]:
        result: Array = _nothing(promote_operands("setxor1d", one, other)[0], size, fill_value, False)
        return result
    if size is None and is_known(one, other):
        values = sort(concatenate([one, other] if is_unique else [unique(one), unique(other)]))
        ends = lax.full((1,), True, np.bool_)
        differ = lax.concatenate([ends, _differ(values, equal_nan=False), ends], 0)
        count = differ.shape[0]
        alone = lax.bitwise_and(lax.slice_in_dim(differ, 1, count), lax.slice_in_dim(differ, 0, count - 1))
    else:
        both = _both(one, other)
        values = both.values
        alone = lax.bitwise_and(both.first, lax.eq(both.of_second, both.in_second))
    indices, counts = indices_where("setxor1d", _WHAT, alone, size)
    return _take(values, indices, counts, fill_value)


def _distinct(
    name: str, x: ArrayLike, size: int | None, fill_value: ArrayLike | None, with_index: bool = True
) -> UniqueAll:
    """All that is to be known; indices and inverse_indices are right `with_index` only."""
    array = as_array(x)
    refuse_dynamic(name, array, "lax.sort")
    wanted = None if size is None else check_sizes(integer(name, "size", size), name="size")[0]
    values, extra = unique_elements(name, array, wanted, fill_value, with_index=with_index, equal_nan=False)
    return UniqueAll(values, *extra)


@remembers_calls
def unique_all(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements of `x` in order, where each stands first, which of them each element is, how
    often each occurs.

    x: array of any shape.  size, fill_value: see the module; the counts of fill values are 0.

    Returns `values`, `indices` and `counts` of one dimension, `inverse_indices` of the shape of `x`; all but
    `values` are int64.  Raises TracedValueError in a traced function without `size`.
    Source: Array API, `unique_all`.
    """
    return _distinct("unique_all", x, size, fill_value)


@remembers_calls
def unique_counts(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCounts:
    """The distinct elements of `x` in order, and how often each occurs.  Otherwise as `unique_all`.

    Source: Array API, `unique_counts`.
    """
    unique = _distinct("unique_counts", x, size, fill_value, with_index=False)
    return UniqueCounts(unique.values, unique.counts)


@remembers_calls
def unique_inverse(
    x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverse:
    """The distinct elements of `x` in order, and which of them each element is.  Otherwise as `unique_all`.

    Source: Array API, `unique_inverse`.
    """
    unique = _distinct("unique_inverse", x, size, fill_value)
    return UniqueInverse(unique.values, unique.inverse_indices)


@remembers_calls
def unique_values(x: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of `x` in order.  Otherwise as `unique_all`.

    Source: Array API, `unique_values`.
    """
    return _distinct("unique_values", x, size, fill_value, with_index=False).values


@remembers_calls
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
