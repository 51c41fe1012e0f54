"""How `pad` reads its arguments and extends one axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from xarr import lax
from xarr.dtypes import INTEGER, check_fits
from xarr.errors import ShapeError, ValueRangeError
from xarr.functions._core import DType
from xarr.host import host_array
from xarr.lax.core import integer
from xarr.shapes import normalize_axis

if TYPE_CHECKING:
    from xarr.array import Array

PAD_MODES = ("constant", "edge", "reflect", "symmetric", "wrap")


def widths(pad_width: Any, rank: int) -> list[tuple[int, int]]:
    """(before, after) for each axis from what `np.pad` accepts."""
    if isinstance(pad_width, dict):
        by_axis = {normalize_axis(axis, rank): width for axis, width in pad_width.items()}
        pad_width = [pairs("pad_width", by_axis.get(axis, 0), 1)[0] for axis in range(rank)]
    found = [
        (integer("pad", "pad_width", a), integer("pad", "pad_width", b))
        for a, b in pairs("pad_width", pad_width, rank)
    ]
    if np.any(np.asarray(pad_width) < 0):
        raise ValueRangeError(
            f"pad: wanted widths of 0 or more, got {pad_width!r}; slice to make an array smaller"
        )
    return found


def pairs(argument: str, given: Any, rank: int) -> list[tuple[Any, Any]]:
    """A (before, after) pair for each axis from one number, one pair, or as many pairs."""
    values = host_array(given)
    try:
        rows = np.broadcast_to(values, (rank, 2))
    except ValueError:
        raise ShapeError(
            f"pad: wanted {argument} as one number, (before, after) or {rank} such pairs, got "
            f"shape {values.shape}"
        ) from None
    return [(row[0], row[1]) for row in rows]


def padded_by_constants(array: Array, axis: int, width: tuple[int, int], values: tuple[Any, Any]) -> Array:
    """`array` with values[0] before and values[1] after it along `axis`."""
    for side, (count, value) in enumerate(zip(width, values, strict=True)):
        if count:
            rows = [(0, 0, 0)] * len(array.shape)
            rows[axis] = (count, 0, 0) if side == 0 else (0, count, 0)
            array = lax.pad(array, _filler(value, array.dtype), rows)
    return array


def _filler(value: Any, dtype: DType) -> np.ndarray[Any, Any]:
    """A padding value as a 0-d array; ValueRangeError for an integer that `dtype` cannot hold."""
    if dtype in INTEGER and value.dtype.kind in "iu":
        check_fits(int(value), dtype)
    return np.asarray(value).astype(dtype)


def padded_by_own(array: Array, axis: int, width: tuple[int, int], mode: Any) -> Array:
    """NumPy pads the row of indices; runs of them that go up, down or stay become slices."""
    size = array.shape[axis]
    if not size:
        raise ShapeError(
            f"pad: axis {axis} of shape {array.shape} is empty, so mode {mode!r} has nothing to repeat"
        )
    index = np.pad(np.arange(size), width, mode=mode)
    return lax.concatenate([_run(array, axis, *run) for run in _runs(index)], axis)


def _runs(index: np.ndarray[Any, Any]) -> list[tuple[int, int, int]]:
    """(first index, step, length) of the runs with a constant step of 1, -1 or 0."""
    runs: list[tuple[int, int, int]] = []
    for value in index.tolist():
        if runs:
            first, step, length = runs[-1]
            if length == 1 and abs(value - first) <= 1:
                runs[-1] = (first, value - first, 2)
                continue
            if length > 1 and value == first + step * length:
                runs[-1] = (first, step, length + 1)
                continue
        runs.append((value, 0, 1))
    return runs


def _run(array: Array, axis: int, first: int, step: int, length: int) -> Array:
    if step == 0:
        one = lax.slice_in_dim(array, first, first + 1, axis=axis)
        return lax.broadcast_in_dim(one, _with_size(array.shape, axis, length), range(len(array.shape)))
    if step == 1:
        return lax.slice_in_dim(array, first, first + length, axis=axis)
    return lax.rev(lax.slice_in_dim(array, first - length + 1, first + 1, axis=axis), (axis,))


def _with_size(shape: tuple[int, ...], axis: int, size: int) -> tuple[int, ...]:
    return (*shape[:axis], size, *shape[axis + 1 :])
