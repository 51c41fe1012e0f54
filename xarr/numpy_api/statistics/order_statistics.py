"""Order statistics: medians, quantiles by every rule of NumPy's, partial and lexicographic sorting.

Everything is sorted as a whole, in O(n log n); NaN, in either part of a complex number, comes last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, is_listed, is_nan
from xarr.calls.operands import as_array
from xarr.calls.outputs import show, takes_out, target_of
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, FLOAT, promote
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, integer
from xarr.numpy_api.sorting.order import sort_by_keys
from xarr.numpy_api.sorting.sorting import argsort, sort
from xarr.numpy_api.statistics import reductions
from xarr.numpy_api.statistics.lines import Axis, Lines
from xarr.numpy_api.statistics.quantiles import Quantiles, weighted_quantiles
from xarr.numpy_api.statistics.reductions import mean
from xarr.runtime.handles import Handle, common_device
from xarr.shapes import normalize_axis

__all__ = ["argpartition", "lexsort", "median", "partition", "percentile", "ptp", "quantile", "sort_complex"]


@remembers_calls
def ptp(a: ArrayLike, axis: Axis = None, out: Array | None = None, keepdims: bool = False) -> Array:
    """The largest element minus the smallest; integers wrap.

    Raises DTypeError for bools, ShapeError for no elements.  Source: NumPy, `ptp`.
    """
    array = as_array(a)
    if out is not None:
        target = target_of("ptp", out)
        # NumPy writes the largest element there, and then the difference.
        wide = convert(array, promote(array.dtype, target.dtype))
        return show("ptp", target, ptp(wide, axis, None, keepdims), "same_kind", broadcasts=False)
    if array.dtype in BOOL:
        raise DTypeError("ptp: bools have no difference; wanted numbers, e.g. x.astype('int64')")
    largest, smallest = (reductions.extreme("ptp", each, array, axis, keepdims) for each in (True, False))
    return lax.sub(largest, smallest)


@takes_out("unsafe")
def median(
    a: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """The middle element over `axis`, or the mean of the middle two; NaN for no elements or if any is NaN.

    Integers and bools give the default float.  `overwrite_input` changes nothing, as arrays are values.
    Raises AxisError.  Source: NumPy, `median`.
    """
    lines = Lines.along_axes("median", as_array(a), axis).sort()
    middle = lines.length // 2
    first = middle - 1 if lines.length % 2 == 0 and middle else middle
    chosen = lax.slice_in_dim(lines.values, first, min(middle + 1, lines.length), axis=1)
    result = mean(chosen, 1)
    if lines.length and lines.values.dtype in FLOAT | COMPLEX:
        last = lines.column(lines.length - 1)
        result = lax.select(is_nan(last), last, result)
    return lines.reshape_results(result, keepdims=flag("median", "keepdims", keepdims))


@takes_out("same_kind", broadcasts=True)
def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The `q`-quantiles, 0 <= q <= 1, over `axis`; the dimensions of q, at most 2, come first in the result.

    method: inverted_cdf, averaged_inverted_cdf, closest_observation, interpolated_inverted_cdf, hazen, weibull,
        linear, median_unbiased, normal_unbiased (the nine of Hyndman and Fan), lower, higher, midpoint, nearest.
    weights: not negative, of a's shape or of its sizes along `axis`; for inverted_cdf only.
    `overwrite_input` changes nothing, as arrays are values.

    q and weights are computed now, to be looked at; in a traced function wrong ones go unseen.
    Slices with NaN give NaN.  The type is a's where elements are chosen, else that of `a * q`, a float.
    Raises DTypeError for complex `a`, ValueRangeError for q out of range or an unknown method, ShapeError for no
    elements and for weights of another shape, AxisError.  Source: NumPy, `quantile`.
    """
    asked = Quantiles.of("quantile", q, method, percent=False)
    return _quantile("quantile", as_array(a), asked, axis, keepdims, weights)


@takes_out("same_kind", broadcasts=True)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axis = None,
    out: Array | None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """The `q`-th percentiles, 0 <= q <= 100: `quantile` at q / 100.  Source: NumPy, `percentile`."""
    asked = Quantiles.of("percentile", q, method, percent=True)
    return _quantile("percentile", as_array(a), asked, axis, keepdims, weights)


def _quantile(
    name: str, array: Array, asked: Quantiles, axis: Axis, keepdims: bool, weights: ArrayLike | None
) -> Array:
    asked.refuse_unordered(array)
    keepdims = flag(name, "keepdims", keepdims)
    if weights is not None:
        return weighted_quantiles(asked, array, axis, weights, keepdims=keepdims, ignore_nan=False)
    lines = Lines.along_axes(name, array, axis).sort()
    if not lines.length:
        raise ShapeError(f"{name}: wanted at least one element along axis {axis}, got shape {array.shape}")
    result = asked.select_from_sorted(lines, lines.length)
    if lines.values.dtype in FLOAT:
        last = lax.broadcast_in_dim(lines.column(lines.length - 1), result.shape, (1,))
        result = lax.select(is_nan(last), convert(last, result.dtype), result)
    return lines.reshape_results(result, asked.shape, keepdims=keepdims)


# --- partial and lexicographic sorting --------------------------------------------------------------


@remembers_calls
def partition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> Array:
    """The elements along `axis`, those at `kth` where a sort would put them: here all of them are sorted.

    Raises ValueRangeError for a `kth` out of bounds or another kind, AxisError.  Source: NumPy, `partition`.
    """
    array = _sort_for_partition("partition", a, kth, axis, kind)
    return sort(array, axis, order=order)


@remembers_calls
def argpartition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> Array:
    """The int64 indices that `partition` the elements along `axis`.  Arguments and errors as there.

    Source: NumPy, `argpartition`.
    """
    array = _sort_for_partition("argpartition", a, kth, axis, kind)
    return argsort(array, axis, order=order)


def _sort_for_partition(name: str, a: ArrayLike, kth: Any, axis: int | None, kind: Any) -> Array:
    array = as_array(a)
    if kind != "introselect":
        wrong = ValueRangeError if isinstance(kind, str) else ArgumentError
        raise wrong(f"{name}: wanted the kind 'introselect', got {kind!r}")
    size = array.size if axis is None else array.shape[normalize_axis(axis, array.ndim)]
    numbers = as_array(kth).tolist() if isinstance(kth, Handle | np.ndarray) else kth
    for number in numbers if is_listed(numbers) else [numbers]:
        if not -size <= integer(name, "kth", number) < size and size:
            raise ValueRangeError(
                f"{name}: wanted kth in [{-size}, {size - 1}], the indices of axis {axis}, got {number}"
            )
    return array


@remembers_calls
def lexsort(keys: ArrayLike, axis: int = -1) -> Array:
    """The int64 indices that sort by several keys along `axis`: by the last key first, ties by those before it.

    keys: a sequence of arrays of one shape, or an array whose first dimension runs over them.
    Raises InputError for no keys, ShapeError for keys of several shapes, AxisError.  Source: NumPy, `lexsort`.
    """
    columns = _keys(keys)
    shape = columns[0].shape
    for column in columns:
        if column.shape != shape:
            raise ShapeError(f"lexsort: wanted keys of one shape, got {[each.shape for each in columns]}")
    if not shape:
        return fill((), 0, np.dtype(np.int64), common_device(columns))
    dim = normalize_axis(axis, len(shape))
    indices = lax.broadcasted_iota(np.int64, shape, dim)
    _, (result,) = sort_by_keys(columns[::-1], (indices,), dim)
    return result


def _keys(keys: ArrayLike) -> list[Array]:
    if isinstance(keys, list | tuple):
        columns = [as_array(key) for key in keys]
    else:
        stacked = as_array(keys)
        if not stacked.shape:
            raise InputError(
                "lexsort: wanted a sequence of keys, or an array whose rows are keys, got a scalar"
            )
        columns = [lax.index_in_dim(stacked, row, 0, keepdims=False) for row in range(stacked.shape[0])]
    if not columns:
        raise InputError("lexsort: wanted at least one key, got none")
    return columns


@remembers_calls
def sort_complex(a: ArrayLike) -> Array:
    """The elements along the last axis as complex numbers, by real part, then by imaginary part.

    complex64 for integers up to 16 bits, complex128 for other reals.  Raises AxisError for a scalar.
    Source: NumPy, `sort_complex`.
    """
    result = sort(a)
    if result.dtype in COMPLEX:
        return result
    if result.dtype in BOOL:
        return convert(result, np.dtype(np.complex128))
    small = result.dtype not in FLOAT and result.dtype.itemsize <= 2
    return convert(result, np.dtype(np.complex64 if small else np.complex128))
