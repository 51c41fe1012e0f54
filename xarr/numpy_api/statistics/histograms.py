"""Counting: how many elements have a value, or lie in a bin.

How many bins the rules "auto", "fd" … make, and how far values reach, is looked at when the function is called, for
bins and refusals depend on it.  In a traced function a histogram needs a number of bins or their edges.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill, truth
from xarr.calls.concrete_values import is_known, look_at
from xarr.calls.operands import as_array, common_dtype, promote_operands
from xarr.calls.remembered_calls import remembering, remembers_calls
from xarr.dtypes import BOOL, COMPLEX, EXTENDED_FLOAT, FLOAT, INTEGER, default_float, promote
from xarr.errors import ArgumentError, DTypeError, InputError, ShapeError, ValueRangeError
from xarr.lax.core import ArrayLike, flag, integer, put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.sorting.order import insertion_points
from xarr.numpy_api.statistics import reductions as statistical
from xarr.numpy_api.statistics.lines import repeat_vector
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import evaluate, to_host

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]

_INT64: Final = np.dtype(np.int64)
_FLOAT64: Final = np.dtype(np.float64)
_RULES: Final = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")
#: First and last edge: None for those of the values.
Range = Sequence[Any] | None


# --- values -------------------------------------------------------------------------------------------


@remembers_calls
def bincount(
    x: ArrayLike, /, weights: ArrayLike | None = None, minlength: int = 0, *, length: int | None = None
) -> Array:
    """Count each of 0, 1 … in a vector of integers that are not negative, or add up their weights.

    weights: real, of x's shape.
    length: the number of results; larger values are left out.  By default the values are looked at: there is a
        result for each up to the largest, at least `minlength`.

    int64, or float64 for weights of at least one element.  Raises ShapeError, DTypeError, ValueRangeError for a
    negative value, InputError for `minlength` and `length` together, TracedValueError without `length` in a traced
    function.
    Source: NumPy, `bincount`; jax.numpy has `length`.
    """
    array = as_array(x)
    if len(array.shape) != 1:
        raise ShapeError(f"bincount: wanted one dimension, got shape {array.shape}; x.ravel() has one")
    untyped = not array.size and isinstance(x, list | tuple)
    if array.dtype not in INTEGER | BOOL and not untyped:
        raise DTypeError(f"bincount: wanted integers, got {array.dtype}; convert them with astype")
    least = integer("bincount", "minlength", minlength)
    if least < 0:
        raise ValueRangeError(f"bincount: wanted minlength >= 0, got {least}")
    if length is None:
        count = max(least, _greatest("bincount", array) + 1)
    elif least:
        raise InputError(
            f"bincount: length {length} is exact and minlength {least} a bound; give one of them"
        )
    else:
        count = integer("bincount", "length", length)
    return _add_up((array, weights, count), {})


def _greatest(name: str, array: Array) -> int:
    """The largest, -1 for none.  ValueRangeError for a negative one."""
    if not array.size:
        return -1
    look_at(name, "the number of results", array, "give length=, the number of values there may be")
    most = int(_as_unsigned_max((array,), {}))
    if most > np.iinfo(np.int64).max:
        raise ValueRangeError(
            f"{name}: wanted values that are not negative, got {int(statistical.min(convert(array, _INT64)))}"
        )
    return most


@remembering
def _as_unsigned_max(array: Array) -> Array:
    """The largest of int64 numbers read as unsigned, of which negative ones are the largest: one pass finds either."""
    return statistical.max(lax.bitcast_convert_type(convert(array, _INT64), np.dtype(np.uint64)))


@remembering
def _add_up(array: Array, weights: ArrayLike | None, count: int) -> Array:
    """For each number below `count` the sum of the weights, 1 without, of the elements of `array` that are it."""
    factors = _weights("bincount", weights, array)
    return lax.segment_sum(factors if array.size else convert(factors, _INT64), convert(array, _INT64), count)


def _weights(name: str, weights: ArrayLike | None, array: Array) -> Array:
    """float64 weights of a vector, or an int64 1 for each element."""
    if weights is None:
        return fill(array.shape, 1, _INT64, array._node.device)
    factors = as_array(weights)
    if factors.dtype in COMPLEX:
        raise DTypeError(
            f"{name}: wanted real weights, got {factors.dtype}; count real and imaginary parts separately"
        )
    if factors.shape != array.shape:
        raise ShapeError(
            f"{name}: wanted weights of shape {array.shape}, that of the values, got {factors.shape}"
        )
    return convert(factors, _FLOAT64)


@remembers_calls
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False) -> Array:
    """The int64 number of the bin that each element lies in, 0 before the first edge.

    bins: edges, a vector in increasing or decreasing order.  right: whether bins hold their right edge, not their
    left one.  Raises DTypeError for complex x, ShapeError, ValueRangeError for edges that are not in order: they are
    computed now, and in a traced function go unseen.  Source: NumPy, `digitize`.
    """
    values, edges = as_array(x), as_array(bins)
    for array in (values, edges):
        if array.dtype in COMPLEX:
            raise DTypeError(f"digitize: complex numbers have no order, got {array.dtype}; take abs or real")
    if len(edges.shape) != 1:
        raise ShapeError(f"digitize: wanted edges in one dimension, got shape {edges.shape}")
    if is_known(edges) and _direction(to_host(edges)) == 0:
        raise ValueRangeError(
            f"digitize: wanted bins in increasing or decreasing order, got {to_host(edges)}"
        )
    values, edges = promote_operands("digitize", values, edges)
    side = not flag("digitize", "right", right)
    count = edges.shape[0]
    if count < 2:
        return insertion_points(edges, values, right=side)
    falling = _falling(edges)
    rising = lax.select(repeat_vector(falling, edges.shape, 0), lax.rev(edges, (0,)), edges)
    numbers = insertion_points(rising, values, right=side)
    from_end = lax.sub(lax.full_like(numbers, count), numbers)
    return lax.select(repeat_vector(falling, numbers.shape, 0), from_end, numbers)


def _direction(edges: np.ndarray[Any, Any]) -> int:
    """1 for edges that never fall, -1 for those that never rise, else 0.

    As in NumPy the first edge that differs from the first one decides which of the two is asked, so that edges that
    start with NaN are falling ones.
    """
    others = edges[1:][edges[1:] != edges[:1]] if edges.size else edges
    if not others.size or edges[0] < others[0]:
        return 0 if (edges[:-1] > edges[1:]).any() else 1
    return 0 if (edges[:-1] < edges[1:]).any() else -1


def _falling(edges: Array) -> Array:
    """Whether `_direction` would be -1, of two edges at least that are in order."""
    first, others = edges[0], edges[1:]
    differ = lax.ne(others, repeat_vector(first, others.shape, 0))
    other = lax.dynamic_index_in_dim(others, lax.argmax(differ, 0, np.int64), 0, keepdims=False)
    return lax.bitwise_and(lax.reduce_or(differ, (0,)), lax.bitwise_not(lax.lt(first, other)))


# --- histograms ---------------------------------------------------------------------------------------


@remembers_calls
def histogram(
    a: ArrayLike,
    bins: Any = 10,
    range: Range = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Array, Array]:
    """(how many elements lie in each bin, the edges of the bins), each bin with its left edge, the last with both.

    bins: their number, of one width; their edges, in increasing order; or the rule for their number, one of auto,
        doane, fd, rice, scott, sqrt, stone, sturges.
    range: (first edge, last edge), by default the extremes.  weights: what each element counts for, of a's shape.
    density: divide by the widths and by the total, so that the integral is 1.

    int64, the type of the weights, or float64 for a density.  Edges of bins of one width have a's type, float64 for
    integers.  Raises ValueRangeError for values or a range that are not finite, ShapeError, DTypeError for complex
    elements, TracedValueError for a rule in a traced function.  Source: NumPy, `histogram`.
    """
    values, factors = _ravel("histogram", a, weights)
    edges, reach = _edges("histogram", values, bins, range, factors is not None)
    if reach is None:
        counts = _counts_between(values, edges, factors)
    else:
        counts = _counts(_uniform_bins(values, edges, reach), edges.shape[0] - 1, factors)
    if not flag("histogram", "density", density):
        return counts, edges
    widths = convert(_differences(edges), _FLOAT64)
    counts = convert(counts, promote(counts.dtype, _FLOAT64))
    return lax.div(lax.div(counts, convert(widths, counts.dtype)), statistical.sum(counts)), edges


@remembers_calls
def histogram_bin_edges(
    a: ArrayLike, bins: Any = 10, range: Range = None, weights: ArrayLike | None = None
) -> Array:
    """The edges that `histogram` with these arguments counts between.  Source: NumPy, `histogram_bin_edges`."""
    values, factors = _ravel("histogram_bin_edges", a, weights)
    return _edges("histogram_bin_edges", values, bins, range, factors is not None)[0]


def _ravel(name: str, a: ArrayLike, weights: ArrayLike | None) -> tuple[Array, Array | None]:
    array = as_array(a)
    if array.dtype in COMPLEX:
        raise DTypeError(f"{name}: complex numbers have no order, got {array.dtype}; take abs or real")
    if array.dtype in BOOL:
        array = convert(array, np.dtype(np.uint8))
    flat = lax.reshape(array, (array.size,))
    if weights is None:
        return flat, None
    factors = as_array(weights)
    if factors.shape != array.shape:
        raise ShapeError(
            f"{name}: wanted weights of shape {array.shape}, that of the values, got {factors.shape}"
        )
    return flat, lax.reshape(factors, (factors.size,))


#: First edge, last edge, and the distance between them.
_Reach = tuple["Array", "Array", "Array"]


def _edges(name: str, values: Array, bins: Any, range: Range, weighted: bool) -> tuple[Array, _Reach | None]:
    """The edges, and their reach if all bins have one width."""
    if isinstance(bins, str):
        return _edges_by_rule(name, values, bins, range, weighted)
    if not _is_scalar(bins):
        return _given_edges(name, bins), None
    return _uniform_edges(name, values, _number(name, bins), range)


def _number(name: str, bins: Any) -> int:
    try:
        count = operator.index(bins)
    except TypeError:
        raise ArgumentError(f"{name}: wanted an int, edges or a rule for bins, got {bins!r}") from None
    if count < 1:
        raise ValueRangeError(f"{name}: wanted at least one bin, got {count}")
    return count


def _given_edges(name: str, bins: ArrayLike) -> Array:
    edges = as_array(bins)
    if len(edges.shape) != 1:
        raise ShapeError(f"{name}: wanted edges in one dimension, got shape {edges.shape}")
    if is_known(edges) and (to_host(edges)[:-1] > to_host(edges)[1:]).any():
        raise ValueRangeError(f"{name}: wanted edges in increasing order, got {to_host(edges)}")
    return edges


def _edges_by_rule(
    name: str, values: Array, rule: str, range: Range, weighted: bool
) -> tuple[Array, _Reach | None]:
    if rule not in _RULES:
        raise ValueRangeError(f"{name}: wanted a rule of {', '.join(_RULES)}, got {rule!r}")
    if weighted:
        raise InputError(f"{name}: the rule {rule!r} uses elements, not weights; give a number of bins")
    host = look_at(
        name, f"the number of bins by the rule {rule!r}", values, "give bins= as a number or as edges"
    )
    host = host.astype(np.float32) if values.dtype in EXTENDED_FLOAT else host
    try:
        count = len(np.histogram_bin_edges(host, rule, range)) - 1  # type: ignore[arg-type]
    except ValueError as error:
        raise ValueRangeError(f"{name}: {error}") from error
    return _uniform_edges(name, values, count, range)


def _uniform_edges(name: str, values: Array, count: int, range: Range) -> tuple[Array, _Reach]:
    dtype = values.dtype
    if range is not None:
        first, last = _pair(name, range)
        dtype = common_dtype(first, last, values)
    dtype = dtype if dtype in FLOAT else promote(dtype, default_float())
    if range is None and not is_known(values):
        return _traced_edges(values, count, dtype)
    first, last = _outer_edges(name, values, range)
    edges = _space_evenly(first, last, count, dtype)
    if not (edges[:-1] < edges[1:]).all():
        raise ValueRangeError(
            f"{name}: {count} bins between {first} and {last} are too many for {dtype}, which cannot tell their "
            "edges apart; give fewer"
        )
    ends = (np.asarray(end).astype(dtype) for end in (first, last, _distance(first, last)))
    first_edge, last_edge, distance = (put(end, values._node.device) for end in ends)
    return put(edges, values._node.device), (first_edge, last_edge, distance)


def _space_evenly(first: Any, last: Any, count: int, dtype: np.dtype[Any] | None) -> np.ndarray[Any, Any]:
    if dtype is not None and dtype in EXTENDED_FLOAT:
        return np.linspace(float(first), float(last), count + 1, dtype=np.float32).astype(dtype)
    return np.linspace(first, last, count + 1, dtype=dtype)


def _distance(first: Any, last: Any) -> Any:
    is_whole = all(np.asarray(end).dtype.kind in "iu" for end in (first, last))
    return int(last) - int(first) if is_whole else last - first


def _pair(name: str, range: Any) -> tuple[Any, Any]:
    """The two ends of a range; ArgumentError for another number of them."""
    try:
        first, last = range
    except (TypeError, ValueError):
        raise ArgumentError(f"{name}: wanted range=(first, last), got {range!r}") from None
    return first, last


def _outer_edges(name: str, values: Array, range: Range) -> tuple[Any, Any]:
    """The first and the last edge, in the types they come in, half an element apart from a single value."""
    if range is not None:
        first, last = (to_host(end)[()] if isinstance(end, Handle) else end for end in _pair(name, range))
        if first > last:
            raise ValueRangeError(f"{name}: wanted range=(first, last) with first <= last, got {range}")
    elif not values.size:
        first, last = 0, 1
    else:
        ends = statistical.min(values), statistical.max(values)
        evaluate(*ends)
        first, last = (to_host(end)[()] for end in ends)
    if not (np.isfinite(first) and np.isfinite(last)):
        where = "the elements" if range is None else "range"
        raise ValueRangeError(
            f"{name}: {where} reach from {first} to {last}, and bins are finite; give range=, which leaves out what "
            "lies outside"
        )
    return (first - 0.5, last + 0.5) if first == last else (first, last)


def _traced_edges(values: Array, count: int, dtype: np.dtype[Any]) -> tuple[Array, _Reach]:
    if not values.size:
        first, last = (fill((), end, dtype) for end in (0, 1))
    else:
        first, last = (convert(end, dtype) for end in (statistical.min(values), statistical.max(values)))
        single = lax.eq(first, last)
        first, last = (lax.select(single, lax.add(end, by), end) for end, by in ((first, -0.5), (last, 0.5)))
    distance = lax.sub(last, first)
    shape = (count + 1,)
    steps = lax.mul(lax.iota(dtype, count + 1), repeat_vector(lax.div(distance, float(count)), shape, 0))
    edges = lax.add(steps, repeat_vector(first, shape, 0))
    is_last = lax.eq(lax.iota(_INT64, count + 1), count)
    return lax.select(is_last, repeat_vector(last, shape, 0), edges), (first, last, distance)


def _uniform_bins(values: Array, edges: Array, reach: _Reach) -> Array:
    """The bin of each element, and the number of bins for those in none."""
    count = edges.shape[0] - 1
    values = convert(values, edges.dtype)
    first, last, distance = (repeat_vector(each, values.shape, 0) for each in reach)
    inside = lax.bitwise_and(lax.ge(values, first), lax.le(values, last))
    share = lax.mul(
        lax.div(lax.sub(values, first), distance), repeat_vector(_number_of_bins(edges), values.shape, 0)
    )
    bins = convert(lax.select(inside, share, lax.full_like(share, 0)), _INT64)
    bins = lax.min(bins, lax.full_like(bins, count - 1))
    # The share may be rounded over an edge.
    below = lax.lt(values, lax.take(edges, bins, 0))
    bins = lax.sub(bins, convert(below, _INT64))
    above = lax.ge(values, lax.take(edges, lax.add(bins, 1), 0))
    above = lax.bitwise_and(above, lax.lt(bins, count - 1))
    bins = lax.add(bins, convert(above, _INT64))
    return lax.select(inside, bins, lax.full_like(bins, count))


def _number_of_bins(edges: Array) -> Array:
    return fill((), edges.shape[0] - 1, edges.dtype)


def _counts(bins: Array, count: int, weights: Array | None) -> Array:
    """Sums of the weights in each bin, in float64 or complex128, in the type of the weights."""
    if weights is None:
        return lax.segment_sum(fill(bins.shape, 1, _INT64, bins._node.device), bins, count)
    wide = np.dtype(np.complex128) if weights.dtype in COMPLEX else _FLOAT64
    sums = lax.segment_sum(convert(weights, wide), bins, count)
    return truth(sums) if weights.dtype in BOOL else convert(sums, weights.dtype)


def _counts_between(values: Array, edges: Array, weights: Array | None) -> Array:
    """Count the values between any edges, in order."""
    values, edges = promote_operands("histogram", values, edges)
    count = edges.shape[0] - 1
    if count < 1:
        return lax.full((0,), 0, _INT64 if weights is None else weights.dtype)
    if weights is None:
        # The last bin holds its right edge too.
        up_to_last = convert(lax.le(values, repeat_vector(edges[-1], values.shape, 0)), _INT64)
        last = lax.reshape(lax.reduce_sum(up_to_last, (0,)), (1,))
        reached = lax.concatenate([insertion_points(lax.sort(values, 0), edges[:-1]), last], 0)
        return _differences(reached)
    return _counts(_bins_between(values, edges), count, weights)


def _bins_between(values: Array, edges: Array) -> Array:
    """The bin of each element; -1 before all of them, and behind them their number."""
    bins = lax.sub(insertion_points(edges, values, right=True), 1)
    at_end = lax.eq(values, repeat_vector(edges[-1], values.shape, 0))
    return lax.sub(bins, convert(at_end, _INT64))


def _differences(x: Array) -> Array:
    return lax.sub(x[1:], x[:-1])


# --- in several dimensions ----------------------------------------------------------------------------


@remembers_calls
def histogramdd(
    sample: ArrayLike,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Array, list[Array]]:
    """(how many of N points in D dimensions lie in each box, the edges along each dimension).

    sample: shape (N, D), or a sequence of D vectors.  bins: a number or edges, for all dimensions or for each.
    range: (first, last) or None for each dimension.  weights: what each point counts for, shape (N,).
    density: divide by the volumes and by the total.

    float64, of shape (bins in dimension 0, …).  Raises as `histogram`.  Source: NumPy, `histogramdd`.
    """
    columns = _columns(sample)
    ranges = [None] * len(columns) if range is None else list(range)
    asked = [bins] * len(columns) if _is_scalar(bins) else list(bins)
    for what, items in (("bins", asked), ("range", ranges)):
        if len(items) != len(columns):
            raise ShapeError(
                f"histogramdd: wanted {what} for each of {len(columns)} dimensions, got {len(items)} of them"
            )
    edges = [
        _edges_of_column(column, bin, limits)
        for column, bin, limits in zip(columns, asked, ranges, strict=True)
    ]
    shape = tuple(edge.shape[0] - 1 for edge in edges)
    size = int(np.prod(shape))
    ones = _weights("histogramdd", weights, columns[0])
    boxes = _boxes(columns, edges, shape, size)
    counts = convert(lax.reshape(lax.segment_sum(ones, boxes, size), shape), _FLOAT64)
    if flag("histogramdd", "density", density):
        total = statistical.sum(counts)
        for dim, edge in enumerate(edges):
            counts = lax.div(counts, repeat_vector(convert(_differences(edge), _FLOAT64), shape, dim))
        counts = lax.div(counts, total)
    return counts, edges


def _is_scalar(bins: Any) -> bool:
    """Whether `bins` is one number, rather than edges or bins for each dimension."""
    if isinstance(bins, list | tuple):
        return False
    return not (bins._node.shape if isinstance(bins, Handle) else np.ndim(bins))


def _columns(sample: ArrayLike) -> list[Array]:
    if isinstance(sample, list | tuple):
        columns = [as_array(column) for column in sample]
        if columns and not any(column.shape for column in columns):  # numbers are points in one dimension
            columns = [
                lax.concatenate(
                    [lax.reshape(column, (1,)) for column in promote_operands("histogramdd", *columns)], 0
                )
            ]
        if not columns or any(
            column.shape != columns[0].shape or len(column.shape) != 1 for column in columns
        ):
            shapes = [column.shape for column in columns]
            raise ShapeError(
                f"histogramdd: wanted vectors of one length, one for each dimension, got {shapes}"
            )
    else:
        array = as_array(sample)
        if len(array.shape) == 1:
            array = lax.reshape(array, (array.size, 1))
        if len(array.shape) != 2:
            raise ShapeError(f"histogramdd: wanted a sample of shape (points, dimensions), got {array.shape}")
        refuse_dynamic("histogramdd", array, "a sample of known dimensions", (1,))
        columns = [
            lax.index_in_dim(array, dim, 1, keepdims=False) for dim in np.arange(array.shape[1]).tolist()
        ]
    return [_ravel("histogramdd", column, None)[0] for column in promote_operands("histogramdd", *columns)]


def _edges_of_column(values: Array, bins: Any, range: Range) -> Array:
    if isinstance(bins, str):
        raise InputError(f"histogramdd: wanted an int or edges for bins, got the rule {bins!r}")
    if not _is_scalar(bins):
        return _given_edges("histogramdd", bins)
    count = _number("histogramdd", bins)
    if range is None and not is_known(values):
        return _uniform_edges("histogramdd", values, count, range)[0]
    return as_array(_space_evenly(*_outer_edges("histogramdd", values, range), count, None))


def _boxes(columns: list[Array], edges: list[Array], shape: tuple[int, ...], size: int) -> Array:
    """The number of each point's box in row-major order, -1 for points in none."""
    boxes = lax.full_like(columns[0], 0, _INT64)
    inside = lax.full_like(boxes, True, np.dtype(bool))
    for column, edge, count in zip(columns, edges, shape, strict=True):
        position = _bins_between(*promote_operands("histogramdd", column, edge))
        inside = lax.bitwise_and(inside, lax.bitwise_and(lax.ge(position, 0), lax.lt(position, count)))
        boxes = lax.add(lax.mul(boxes, count), position)
    return lax.select(inside, boxes, lax.full_like(boxes, -1))


@remembers_calls
def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: Any = 10,
    range: Sequence[Range] | None = None,
    density: bool | None = None,
    weights: ArrayLike | None = None,
) -> tuple[Array, Array, Array]:
    """(how many points lie in each box, the edges along x, the edges along y).

    bins: a number or edges for both, or a pair of these.  Otherwise as `histogramdd`.  Source: NumPy, `histogram2d`.
    """
    for_each = not _is_scalar(bins) and len(bins) in (1, 2)
    asked = bins if for_each or _is_scalar(bins) else [bins, bins]
    counts, (along_x, along_y) = histogramdd([x, y], asked, range, density, weights)
    return counts, along_x, along_y
