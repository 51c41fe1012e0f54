"""`pad`: an array with more elements around it, in every mode of NumPy's.

One axis is padded after the other, and each sees what the earlier ones added, as in NumPy's reference.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.base.host_arrays import host_array
from xarr.base.typing import Array
from xarr.calls.arguments import convert, truth
from xarr.calls.operands import DType, as_array, fresh
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, check_fits
from xarr.errors import ArgumentError, DTypeError, ShapeError, TracedValueError, ValueRangeError
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, integer, put
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import broadcast_array, linspace
from xarr.numpy_api.mathematics.elementwise import multiply, subtract
from xarr.numpy_api.mathematics.rounding import rint
from xarr.numpy_api.statistics.order_statistics import median
from xarr.numpy_api.statistics.reductions import max as max_of, mean, min as min_of
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host
from xarr.shapes import check_sizes, normalize_axis

__all__ = ["pad"]

Pair = tuple[Any, Any]

#: What each mode takes beside the widths.
_KEYWORDS: Final[dict[str, str]] = {
    "constant": "constant_values",
    "edge": "",
    "empty": "",
    "linear_ramp": "end_values",
    "maximum": "stat_length",
    "mean": "stat_length",
    "median": "stat_length",
    "minimum": "stat_length",
    "reflect": "reflect_type",
    "symmetric": "reflect_type",
    "wrap": "",
}
#: Above this many slices one gather is less to do.
_MOST_RUNS: Final = 8


@remembers_calls
def pad(
    array: ArrayLike, pad_width: Any, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """`pad_width` more elements before and after each dimension.

    pad_width: one int, (before, after), or that for each dimension; also a dict from axes.  Modes, and the
    keyword that each takes, which may be given for each side of each dimension as pad_width:

    - "constant": `constant_values`, by default 0.
    - "edge" repeats the outermost element; "empty" means zeros, as `xarr.empty` does.
    - "linear_ramp": evenly from the outermost element to `end_values`, by default 0.
    - "maximum", "mean", "median", "minimum" of the `stat_length` outermost elements, by default of all.
    - "reflect" and "symmetric" mirror, without and with the outermost; with `reflect_type="odd"` values are
      mirrored in the outermost too.
    - "wrap" goes on at the other end.
    - a function of a padded vector, its (before, after), the axis, and the dict of all keywords, that writes
      into the vector.  It is recorded once and run for each vector; one that looks at values is called with
      each, as a NumPy array.

    Raises ValueRangeError for another mode or a negative width, InputError for a keyword of another mode,
    ShapeError for an empty dimension that is to be padded from its own elements, DTypeError for a complex number
    around real ones.  Source: NumPy, `pad`.
    """
    padded = as_array(array)
    wanted = _widths(pad_width, len(padded.shape))
    if not isinstance(mode, str):
        return _by_function(padded, wanted, mode, kwargs)
    option = _keyword(mode, kwargs)
    if mode in ("constant", "empty"):
        return fresh(_by_constants(padded, wanted, 0 if option is None else option))
    if not padded.size:
        _refuse_empty(padded.shape, wanted, mode)
        return fresh(_by_constants(padded, wanted, 0))
    extend = _extension(mode, option, len(padded.shape))
    for axis, width in enumerate(wanted):
        if width != (0, 0):
            refuse_dynamic(f"pad with mode {mode!r}", padded, 'mode "constant"', (axis,))
            padded = extend(padded, axis, width)
    return fresh(padded)


def _keyword(mode: str, kwargs: dict[str, Any]) -> Any:
    """The value of the mode's keyword, None for its default."""
    if mode not in _KEYWORDS:
        raise ValueRangeError(f"pad: wanted a mode of {', '.join(_KEYWORDS)} or a function, got {mode!r}")
    for name in kwargs:
        if name != _KEYWORDS[mode]:
            takes = _KEYWORDS[mode] or "no keyword"
            raise ArgumentError(f"pad: mode {mode!r} takes {takes}, got {name}")
    return kwargs.get(_KEYWORDS[mode])


def _extension(mode: str, option: Any, rank: int) -> Callable[[Array, int, tuple[int, int]], Array]:
    """The function that pads one axis."""
    if mode == "linear_ramp":
        ends = _pairs("end_values", 0 if option is None else option, rank)
        return lambda array, axis, width: _by_ramps(array, axis, width, ends[axis])
    if mode in _STATISTICS:
        lengths = [(None, None)] * rank if option is None else _lengths(mode, option, rank)
        return lambda array, axis, width: _by_statistic(array, axis, width, mode, lengths[axis])
    if option not in (None, "even", "odd"):
        raise ValueRangeError(f"pad: wanted reflect_type 'even' or 'odd', got {option!r}")
    if option == "odd":
        return lambda array, axis, width: _mirror_values(array, axis, width, mode == "symmetric")
    return lambda array, axis, width: _by_own(array, axis, width, mode)


# --- arguments ------------------------------------------------------------------------------------


def _widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """(before, after) for each axis from what `np.pad` accepts."""
    if isinstance(pad_width, dict):
        by_axis = {normalize_axis(axis, rank): width for axis, width in pad_width.items()}
        pad_width = [_pairs("pad_width", by_axis.get(axis, 0), 1)[0] for axis in range(rank)]
        pad_width = pad_width or 0
    if host_array(pad_width).dtype not in INTEGER:
        raise ArgumentError(f"pad: wanted ints for pad_width, got {pad_width!r}")
    widths = [
        (integer("pad", "pad_width", a), integer("pad", "pad_width", b))
        for a, b in _pairs("pad_width", pad_width, rank)
    ]
    if np.any(np.asarray(pad_width) < 0):
        raise ValueRangeError(
            f"pad: wanted widths of 0 or more, got {pad_width!r}; slice to make an array smaller"
        )
    return widths


def _pairs(argument: str, option: Any, rank: int) -> list[Pair]:
    """A (before, after) pair for each axis from one number, one pair, or as many pairs."""
    if isinstance(option, Handle):
        spread = broadcast_array("pad", as_array(option), (rank, 2))
        scalars = [[lax.slice(spread, (i, j), (i + 1, j + 1)) for j in (0, 1)] for i in range(rank)]
        return [(lax.reshape(low, ()), lax.reshape(high, ())) for low, high in scalars]
    values = host_array(option)
    try:
        rows = np.broadcast_to(values, (rank, 2))
    except ValueError:
        raise ShapeError(
            f"pad: wanted {argument} as one number, (before, after) or {rank} such pairs, got "
            f"shape {values.shape}"
        ) from None
    return [(row[0], row[1]) for row in rows]


def _lengths(mode: str, option: Any, rank: int) -> list[Pair]:
    pairs = [(round(float(a)), round(float(b))) for a, b in _pairs("stat_length", option, rank)]
    if any(length < 0 for pair in pairs for length in pair):
        raise ValueRangeError(f"pad: wanted a stat_length of 0 or more, got {option!r}")
    if mode in ("maximum", "minimum") and any(0 in pair for pair in pairs):
        raise ValueRangeError(f"pad: wanted a stat_length of 1 or more for mode {mode!r}, got 0")
    return pairs


def _refuse_empty(shape: tuple[int, ...], widths: list[tuple[int, int]], mode: str) -> None:
    for axis, width in enumerate(widths):
        if not shape[axis] and width != (0, 0):
            raise ShapeError(
                f"pad: axis {axis} of shape {shape} is empty, so mode {mode!r} has no elements to repeat; "
                'modes "constant" and "empty" need none'
            )


# --- constants and ramps --------------------------------------------------------------------------


def _by_constants(array: Array, widths: list[tuple[int, int]], option: Any) -> Array:
    if not isinstance(option, Handle) and np.ndim(option) == 0:
        filler = _filler(host_array(option)[()], array.dtype)
        return lax.pad(array, filler, [(*width, 0) for width in widths]) if any(map(any, widths)) else array
    values = _pairs("constant_values", option, len(array.shape))
    for axis, (width, pair) in enumerate(zip(widths, values, strict=True)):
        if width != (0, 0):
            left, right = (
                lax.broadcast_in_dim(_filler(value, array.dtype), replace_at(array.shape, axis, count), ())
                for value, count in zip(pair, width, strict=True)
            )
            array = _join_sides(array, axis, left, right)
    return array


def _filler(value: Any, dtype: DType) -> Any:
    """A padding value as a 0-d array.

    Raises ValueRangeError for an integer that `dtype` cannot hold, DTypeError for a complex number as a real one.
    """
    if isinstance(value, Handle):
        return convert(as_array(value), dtype)
    if value.dtype.kind == "c" and dtype not in COMPLEX | BOOL:
        raise DTypeError(
            f"pad: the complex number {value} does not fit {dtype}; take .real, .imag or abs() first"
        )
    if dtype in INTEGER and value.dtype.kind in "iu":
        check_fits(int(value), dtype)
    if dtype in INTEGER and not np.isfinite(value):
        raise ValueRangeError(f"pad: {value} does not fit an array of {dtype}, which holds integers")
    return np.asarray(value).astype(dtype)


def _by_ramps(array: Array, axis: int, width: tuple[int, int], ends: Pair) -> Array:
    left, right = (
        linspace(end, edge, count, endpoint=False, axis=axis, device=array._node.device)
        for end, edge, count in zip(ends, _edges(array, axis), width, strict=True)
    )
    return _join_sides(array, axis, _store(left, array.dtype), lax.rev(_store(right, array.dtype), (axis,)))


def _store(values: Array, dtype: DType) -> Array:
    """Computed values as NumPy's reference writes them into the padded array."""
    if dtype in BOOL:
        return truth(values)
    if dtype in INTEGER and values.dtype in FLOAT:
        values = lax.floor(values)
    return convert(lax.real(values) if values.dtype in COMPLEX and dtype not in COMPLEX else values, dtype)


def _edges(array: Array, axis: int) -> tuple[Array, Array]:
    """The first and the last slice along `axis`, without it."""
    last = array.shape[axis] - 1
    return lax.index_in_dim(array, 0, axis, keepdims=False), lax.index_in_dim(
        array, last, axis, keepdims=False
    )


def _join_sides(array: Array, axis: int, left: Array, right: Array) -> Array:
    return lax.concatenate([part for part in (left, array, right) if part.shape[axis]], axis)


# --- statistics -----------------------------------------------------------------------------------


_STATISTICS: Final[dict[str, Callable[..., Array]]] = {
    "maximum": max_of,
    "mean": mean,
    "median": median,
    "minimum": min_of,
}


def _by_statistic(array: Array, axis: int, width: tuple[int, int], mode: str, lengths: Pair) -> Array:
    size = array.shape[axis]
    counts = [size if length is None else builtins.min(length, size) for length in lengths]
    # A mean or median of nothing is NaN, which float arrays can be padded with; a side without padding needs none.
    is_mean = mode in ("mean", "median")
    nan_fits = is_mean and array.dtype in FLOAT | COMPLEX
    asked = [count for count, wide in zip(counts, width, strict=True) if wide or not is_mean]
    if 0 in asked and not nan_fits:
        raise ValueRangeError(f"pad: wanted a stat_length of 1 or more for mode {mode!r}, got 0")
    starts = (0, size - counts[1])
    left, right = (
        _statistic(lax.slice_in_dim(array, start, start + count, axis=axis), axis, mode)
        for start, count in zip(starts, counts, strict=True)
    )
    right = left if counts == [size, size] else right
    return _join_sides(array, axis, _spread(left, axis, width[0]), _spread(right, axis, width[1]))


def _statistic(chunk: Array, axis: int, mode: str) -> Array:
    result = _STATISTICS[mode](chunk, axis=axis, keepdims=True)
    rounds = chunk.dtype in INTEGER and result.dtype in FLOAT
    return _store(rint(result) if rounds else result, chunk.dtype)


def _spread(one: Array, axis: int, count: int) -> Array:
    """A slice of size 1 along `axis`, `count` times."""
    return lax.broadcast_in_dim(one, replace_at(one.shape, axis, count), range(len(one.shape)))


# --- own elements ---------------------------------------------------------------------------------


def _by_own(array: Array, axis: int, width: tuple[int, int], mode: str) -> Array:
    """Runs of indices that go up, down or stay become slices; of very many runs one gather is made."""
    size = array.shape[axis]
    if mode == "edge" or size == 1:
        runs = [(0, 0, width[0]), (0, 1, size), (size - 1, 0, width[1])]
        return lax.concatenate([_run(array, axis, *run) for run in runs if run[2]], axis)
    period = {"wrap": size, "reflect": 2 * size - 2, "symmetric": 2 * size}[mode]
    if sum(width) > _MOST_RUNS * size:
        return lax.take(array, _sources(width, size, period, mode), axis)
    before, after = _runs(-width[0], width[0], size, period), _runs(size, width[1], size, period)
    return lax.concatenate([_run(array, axis, *run) for run in [*before, (0, 1, size), *after]], axis)


def _sources(width: tuple[int, int], size: int, period: int, mode: str) -> Array:
    """Where each element of the padded axis comes from."""
    (total,) = check_sizes(width[0] + size + width[1], name="pad: the padded size")
    turned = lax.rem(lax.add(lax.iota(np.int64, total), -width[0] % period), period)
    if mode == "wrap":
        return turned
    return lax.min(turned, lax.sub(period if mode == "reflect" else period - 1, turned))


def _runs(position: int, count: int, size: int, period: int) -> list[tuple[int, int, int]]:
    """(first index, step, length) of the runs up and down from which the `count` elements at `position` come."""
    runs = []
    while count:
        turned = position % period
        rises = turned < size
        length = builtins.min((size if rises else period) - turned, count)
        # The way down leaves both outermost elements out, or has them too.
        first = turned if rises else period - turned - (1 if period == 2 * size else 0)
        runs.append((first, 1 if rises else -1, length))
        position, count = position + length, count - length
    return runs


def _run(array: Array, axis: int, first: int, step: int, length: int) -> Array:
    if step == 0:
        return _spread(lax.slice_in_dim(array, first, first + 1, axis=axis), axis, length)
    if step == 1:
        return lax.slice_in_dim(array, first, first + length, axis=axis)
    return lax.rev(lax.slice_in_dim(array, first - length + 1, first + 1, axis=axis), (axis,))


def _mirror_values(array: Array, axis: int, width: tuple[int, int], with_edge: bool) -> Array:
    """Mirror in position and in value (reflect_type "odd"), as often as the widths need."""
    original = array.shape[axis]
    if original == 1:
        first, last = (lax.expand_dims(edge, (axis,)) for edge in _edges(array, axis))
        return _join_sides(array, axis, _spread(first, axis, width[0]), _spread(last, axis, width[1]))
    left, right = width
    while left or right:
        size = array.shape[axis]
        # Only whole copies of the original are mirrored at once, with or without the element at the edge.
        period = size // original * original if with_edge else (size - 1) // (original - 1) * (original - 1)
        before, after = builtins.min(period, left), builtins.min(period, right)
        skip = 0 if with_edge else 1
        array = _join_sides(
            array,
            axis,
            _mirror_at(array, axis, 0, skip, before),
            _mirror_at(array, axis, size - 1, size - skip - after, after),
        )
        left, right = left - before, right - after
    return array


def _mirror_at(array: Array, axis: int, edge: int, start: int, count: int) -> Array:
    """2 * (the slice at `edge`) - (the `count` slices from `start`, backwards)."""
    chunk = lax.rev(lax.slice_in_dim(array, start, start + count, axis=axis), (axis,))
    middle = _spread(lax.slice_in_dim(array, edge, edge + 1, axis=axis), axis, count)
    return _store(subtract(multiply(2, middle), chunk), array.dtype)


# --- a function -----------------------------------------------------------------------------------


def _by_function(array: Array, widths: list[tuple[int, int]], mode: Any, kwargs: dict[str, Any]) -> Array:
    if not callable(mode):
        raise ArgumentError(f"pad: wanted the name of a mode or a function, got {mode!r}")
    refuse_dynamic("pad with a function", array, 'mode "constant"')
    padded = _by_constants(array, widths, 0)
    try:
        for axis, width in enumerate(widths):
            padded = _each_vector(padded, axis, width, mode, kwargs)
        return padded
    except TracedValueError:
        if array._node.traced:
            raise
    values = np.pad(to_host(array), widths, mode, **kwargs)
    return put(values, array._node.device)


def _each_vector(array: Array, axis: int, width: tuple[int, int], function: Any, kwargs: Any) -> Array:
    """`function` recorded for one vector along `axis` and run for all."""
    if not array.size:
        return array
    order = [*(dim for dim in range(len(array.shape)) if dim != axis), axis]
    turned = lax.transpose(array, order)
    rows = lax.reshape(turned, (array.size // array.shape[axis], array.shape[axis]))

    def pad_vector(vector: Array) -> Array:
        function(vector, width, axis, kwargs)
        return vector

    result = lax.reshape(lax.map(pad_vector, rows), turned.shape)
    return lax.transpose(result, [order.index(dim) for dim in range(len(order))])
