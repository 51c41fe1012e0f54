"""Folds of a function of two operands over the leading dimension of an array, the rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from xarr import indexing, lax
from xarr.backend import default_device
from xarr.base.typing import Array
from xarr.calls.arguments import convert, fill
from xarr.calls.operands import as_array
from xarr.dtypes import FLOAT, INTEGER
from xarr.errors import IndexingError, ShapeError, pluralize
from xarr.indexing.bounds import Mode
from xarr.ir.device import join_devices
from xarr.ir.source import caller
from xarr.ir.types import TensorType, has_plain_elements
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.check_flags import unread
from xarr.runtime.handles import compute, wrap_leaf
from xarr.runtime.small_ops import small_ops


def leading(x: Array, axes: tuple[int, ...]) -> Array:
    """`x` with the dimensions `axes` as one, the first.  ShapeError for dynamic ones, whose last row is not known."""
    refuse_dynamic("a fold row by row", x, "lax.reduce", axes)
    others = [dim for dim in range(x.ndim) if dim not in axes]
    turned = lax.transpose(x, (*axes, *others))
    size = math.prod(x.shape[axis] for axis in axes)
    return lax.reshape(turned, (size, *[x.shape[dim] for dim in others]))


def head(rows: Array) -> Array:
    """The first row."""
    return lax.index_in_dim(rows, 0, 0, False)


def tail(rows: Array) -> Array:
    """All rows but the first."""
    return lax.slice_in_dim(rows, 1, None)


def fold_by_halves(function: Any, rows: Array) -> Array:
    """The fold of one row or more, in any order, in a logarithmic number of steps."""
    while rows.shape[0] > 1:
        half = rows.shape[0] // 2
        pairs = function(lax.slice_in_dim(rows, 0, half), lax.slice_in_dim(rows, half, 2 * half))
        odd = rows.shape[0] % 2
        rows = lax.concatenate([pairs, lax.slice_in_dim(rows, 2 * half, None)], 0) if odd else pairs
    return head(rows)


def _steps(function: Any, first: Array, rows: Array, holds: Array | None, keeps: bool) -> tuple[Array, Any]:
    """The carried value after each row, if it `keeps` them, and after all."""

    def step(carry: Array, slices: tuple[Array, ...]) -> tuple[Array, tuple[Array, ...]]:
        new = convert(function(carry, slices[0]), carry.dtype)
        new = lax.select(slices[1], new, carry) if len(slices) > 1 else new
        return new, (new,) if keeps else ()

    return lax.scan(step, first, (rows,) if holds is None else (rows, holds))


def _as_sum(function: Any, first: Array, rows: Array, holds: Array | None) -> Array | None:
    """first - a, first - a - b … as running sums of first, -a, -b …; None for other functions."""
    dtype = first.dtype
    if function.__name__ != "subtract" or (dtype in FLOAT and dtype.itemsize < 4):
        return None
    if holds is not None:
        rows = lax.select(holds, rows, lax.full_like(rows, 0))
    return lax.cumsum(lax.concatenate([lax.expand_dims(first, (0,)), lax.neg(rows)], 0), 0)


def last(function: Any, first: Array, rows: Array, holds: Array | None) -> Array:
    """f(… f(f(first, a), b) …) of the rows a, b … where `holds`."""
    sums = _as_sum(function, first, rows, holds)
    if sums is not None:
        return lax.index_in_dim(sums, -1, 0, False)
    return _steps(function, first, rows, holds, keeps=False)[0]


def running_folds(function: Any, first: Array, rows: Array) -> Array:
    """The prefix folds as rows: first, f(first, a), f(f(first, a), b) …"""
    sums = _as_sum(function, first, rows, None)
    if sums is not None:
        return sums
    (folds,) = _steps(function, first, rows, None, keeps=True)[1]
    return lax.concatenate([lax.expand_dims(first, (0,)), folds], 0)


# --- segments -------------------------------------------------------------------------------------------


def starts_of(name: str, indices: Any, size: int) -> tuple[Array, int]:
    """Where segments of `size` rows begin, and a bound of their lengths: the next power of two, or `size`.

    Raises IndexingError for what are no integers, and for known ones beyond the rows; in a trace, negative ones
    become `size`, which is out of bounds when they are read.
    """
    array = as_array(indices)
    if array.ndim != 1:
        raise ShapeError(f"{name}: wanted indices in one dimension, got shape {array.shape}")
    if not array.size:
        return fill((0,), 0, np.dtype(np.int64), array._node.device), 0
    if array.dtype not in INTEGER:
        raise IndexingError(f"{name}: wanted integers as indices, got {array.dtype}; convert with astype")
    longest = size
    if not array._node.traced:
        host = np.asarray(array)
        wrong = host[(host < 0) | (host >= size)]
        if wrong.size:
            raise IndexingError(
                f"{name}: index {wrong[0]} is out of bounds for {pluralize(size, 'element')}, 0 … {size - 1}"
            )
        lengths = np.diff(host.astype(np.int64), append=size)
        longest = min(size, 1 << (max(1, int(lengths.max())) - 1).bit_length())
    starts = convert(array, np.dtype(np.int64))
    return lax.select(lax.lt(starts, 0), lax.full_like(starts, size), starts), longest


def _lengths(starts: Array, size: int) -> Array:
    """The number of rows of each segment, at least the one that it begins with."""
    ends = lax.concatenate([tail(starts), lax.full((1,), size, np.int64)], 0)
    return lax.max(lax.sub(ends, starts), 1)


def _rows_at(rows: Array, indices: Array) -> Array:
    """The rows at `indices`, clamped to the last row."""
    return indexing.read(rows, indices, Mode.CLIP)


def _select_rows(condition: Array, on_true: Array, on_false: Array) -> Array:
    """Rows of `on_true` where the condition, one bool a row, holds, else of `on_false`."""
    return lax.select(lax.broadcast_in_dim(condition, on_true.shape, (0,)), on_true, on_false)


def segments(function: Any, rows: Array, starts: Array, longest: int) -> Array:
    """The fold of each segment, of no more than `longest` rows, of an associative function.

    A segment is put together of windows of 1, 2, 4 … rows, for the bits of its length; the folds of all windows of
    a width come from those of half the width.
    """
    size, dtype = rows.shape[0], rows.dtype
    if function.__name__ in ("add", "multiply") and dtype in FLOAT and dtype.itemsize < 4:
        # As for all sums: narrow floats are added as float32 and rounded once.
        return convert(segments(function, convert(rows, np.dtype(np.float32)), starts, longest), dtype)
    folds = indexing.read(rows, starts)
    left, positions, width = lax.sub(_lengths(starts, size), 1), lax.add(starts, 1), 1
    while width < longest:
        takes = lax.ne(lax.bitwise_and(left, width), 0)
        folds = _select_rows(takes, function(folds, _rows_at(rows, positions)), folds)
        positions = lax.select(takes, lax.add(positions, width), positions)
        count = rows.shape[0] - width
        if count > 0 and 2 * width < longest:
            halves = lax.slice_in_dim(rows, 0, count), lax.slice_in_dim(rows, width, width + count)
            # Each is read twice: one group of all of them would fold every window from single rows.
            rows = lax.optimization_barrier(function(*halves))
        width *= 2
    return folds


def segments_at_once(name: str, rows: Array, starts: Array) -> Array | None:
    """As `segments`, of a vector of numbers, by the backend in one pass; None where it has none, or ops are recorded.

    The vector is computed, if it is not: each window of `segments` would be.
    """
    operands = rows._node, starts._node
    if small_ops() is None or rows.ndim != 1 or not starts.size or any([node.traced for node in operands]):
        return None
    if any([node.tensor_type.dynamic for node in operands]):
        return None
    device = join_devices(*[node.device for node in operands]) or default_device()
    if not device.backend.computes_small_ops or not has_plain_elements(rows.dtype):
        return None
    for node in operands:
        node.handles += 1  # so that nobody writes over it meanwhile
    try:
        values = [compute(each).value for each in (rows, starts)]
        is_known = not unread and all([value is not None for value in values])
        folded = device.backend.fold_segments(name, *values) if is_known else None
    finally:
        for node in operands:
            node.handles -= 1
    if folded is None:
        return None
    folded.flags.writeable = False
    return wrap_leaf(TensorType(folded.shape, folded.dtype), folded, device, False, caller())


def segments_from_the_left(function: Any, rows: Array, starts: Array, longest: int) -> Array:
    """The fold of each segment from its first row to its last; arguments as `segments`."""
    lengths = _lengths(starts, rows.shape[0])

    def step(number: Array, carry: Array) -> Array:
        new = convert(function(carry, _rows_at(rows, lax.add(starts, number))), carry.dtype)
        return _select_rows(lax.lt(number, lengths), new, carry)

    folds: Array = lax.fori_loop(
        np.int64(1), lax.reduce_max(lengths, (0,)), step, indexing.read(rows, starts)
    )
    return folds
