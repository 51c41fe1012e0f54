"""Windows along one dimension at a time, folded by whole-array operations whose number does not grow with them.

A window of several dimensions is folded along the last one, then along the one before, and so on: that keeps the
row-major order of its elements, so the computation need only be associative.  Along one dimension the way depends
on how windows lie:

* each is a prefix (or a suffix) of the dimension: a running total,
* they are few and small: one operation for each further element of a window,
* they do not overlap: blocks, reduced in pairs,
* otherwise: totals of 1, 2, 4, 8 … neighbours, of which two or a few make up any window; for ufuncs in tiles
  (`neighbours`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from xarr.ir.types import replace_at
from xarr.ir.windows import Window, WindowDimension
from xarr_numpy.functions.iota_and_pad import pad
from xarr_numpy.ops.overlapping_windows import fold_neighbours

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

#: (arrays, arrays) -> arrays, element by element.
Combine = Callable[[Arrays, Arrays], Arrays]

#: Windows with fewer elements are folded one by one even if they do not overlap.
_BLOCK: Final = 16
#: What an operation costs besides that of its elements, in elements.
_OVERHEAD: Final = 2000


@dataclass(frozen=True)
class Monoid:
    """An associative way to combine N arrays with N others.

    * `fill` - what padding and holes are filled with, one value for each array,
    * `is_neutral` - whether combining with `fill` changes nothing; otherwise a mask tells what to leave out,
    * `ufunc` - the ufunc that `combine` is, for one array.
    """

    combine: Combine
    fill: tuple[Any, ...]
    is_neutral: bool = False
    ufunc: np.ufunc | None = None


def fold(monoid: Monoid, arrays: Arrays, window: Window) -> tuple[Arrays, Array | None]:
    """The arrays with one element for each window, and where windows have elements at all.

    The second is None if all have, or if `fill` is neutral and stands for those without; it has size 1 in the
    dimensions on which it does not depend.
    """
    shape = arrays[0].shape
    full: Array | None = None
    for axis in reversed(range(len(shape))):
        dimension = window.dimensions[axis]
        if dimension.is_trivial:
            continue
        arrays = _fold_axis(monoid, arrays, axis, dimension)
        if not monoid.is_neutral:
            some = dimension.counts(shape[axis]) > 0
            if not some.all():
                some = _in_axis(some, axis, len(shape))
                full = some if full is None else full & some
    return arrays, full


def _in_axis(values: Array, axis: int, rank: int) -> Array:
    return values.reshape([-1 if other == axis else 1 for other in range(rank)])


def part(x: Array, axis: int, indices: slice) -> Array:
    """x[…, indices, …] along `axis`."""
    return x[(slice(None),) * axis + (indices,)]


def _fold_axis(monoid: Monoid, arrays: Arrays, axis: int, dimension: WindowDimension) -> Arrays:
    """Fold the windows along one dimension."""
    size = arrays[0].shape[axis]
    windows = dimension.output_size(size)
    if not windows or not size:
        shape = replace_at(arrays[0].shape, axis, windows)
        return tuple(np.full(shape, fill, x.dtype) for x, fill in zip(arrays, monoid.fill, strict=True))
    run = _run(dimension, size, windows)
    if run is not None:
        return _running(monoid, arrays, axis, run)
    if monoid.ufunc is not None and _prefers_loop(dimension, windows, arrays[0].size // size):
        return (_loop(monoid.ufunc, arrays[0], monoid.fill[0], axis, dimension),)
    arrays, mask = _pad(monoid, arrays, axis, dimension, windows)
    if mask is not None:
        arrays = (*arrays, _in_axis(mask, axis, arrays[0].ndim))
    combine = monoid.combine if mask is None else _mask(monoid.combine)
    results = _fold_whole(combine, monoid.ufunc, arrays, axis, dimension, windows)
    return results if mask is None else results[:-1]


# --- running totals ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class WindowRun:
    """Windows along one dimension, all of them prefixes of it, or all suffixes.

    Window k has clip(first + k * step, 0, size) elements.
    """

    backwards: bool
    first: int
    step: int
    windows: int
    size: int

    @property
    def is_each(self) -> bool:
        """Whether the windows have 1, 2, 3 … elements, or backwards all, then one less, and so on down to 1."""
        steps = (self.size, -1) if self.backwards else (1, 1)
        return (self.first, self.step) == steps and self.windows == self.size

    def counts(self) -> Array:
        return np.clip(self.first + np.arange(self.windows) * self.step, 0, self.size)

    @property
    def longest(self) -> int:
        last = self.first + (self.windows - 1) * self.step
        return min(max(self.first, last), self.size)


def _run(dimension: WindowDimension, size: int, windows: int) -> WindowRun | None:
    """The running totals that the windows are, if they are."""
    if dimension.size == 1 or windows == 1 or dimension.base_dilation > 1 or dimension.window_dilation > 1:
        return None
    start = -dimension.padding_low
    if start + (windows - 1) * dimension.stride <= 0:
        return WindowRun(False, start + dimension.size, dimension.stride, windows, size)
    if start + dimension.size >= size:
        return WindowRun(True, size - start, -dimension.stride, windows, size)
    return None


def _running(monoid: Monoid, arrays: Arrays, axis: int, run: WindowRun) -> Arrays:
    """Totals of the first (or, backwards, the last) elements, as many as each window has."""
    combine, ufunc = monoid.combine, monoid.ufunc
    if run.backwards:
        arrays = tuple(np.flip(x, axis) for x in arrays)
    # Elements that no window has need not be added up.
    arrays = tuple(part(x, axis, slice(0, max(run.longest, 1))) for x in arrays)
    if ufunc is not None:
        totals: Arrays = (ufunc.accumulate(arrays[0], axis=axis, dtype=arrays[0].dtype),)
    elif run.backwards:
        totals = _scan(lambda first, second: combine(second, first), arrays, axis)
    else:
        totals = _scan(combine, arrays, axis)
    if run.is_each:
        return tuple(np.flip(x, axis) for x in totals) if run.backwards else totals
    counts = run.counts()
    return tuple(_take_totals(x, axis, counts, fill) for x, fill in zip(totals, monoid.fill, strict=True))


def _take_totals(totals: Array, axis: int, counts: Array, fill: Any) -> Array:
    """The total of counts[k] elements, `fill` for none."""
    result: Array = np.take(totals, counts - 1, axis=axis, mode="clip")
    none = counts == 0
    if none.any():
        result[(slice(None),) * axis + (none,)] = fill
    return result


def _scan(combine: Combine, arrays: Arrays, axis: int) -> Arrays:
    """All running totals, with about two combinations for each element: pairs, their totals, what lies between."""
    size = arrays[0].shape[axis]
    if size < 2:
        return arrays
    even, odd = (tuple(part(x, axis, slice(k, None, 2)) for x in arrays) for k in (0, 1))
    pairs = combine(tuple(part(x, axis, slice(0, size // 2)) for x in even), odd)
    totals = _scan(combine, pairs, axis)
    between = tuple(part(x, axis, slice(0, (size - 1) // 2)) for x in totals)
    later = combine(between, tuple(part(x, axis, slice(1, None)) for x in even))
    results = tuple(np.empty_like(x, shape=x.shape) for x in arrays)
    for result, x, total, rest in zip(results, arrays, totals, later, strict=True):
        part(result, axis, slice(0, 1))[...] = part(x, axis, slice(0, 1))
        part(result, axis, slice(1, None, 2))[...] = total
        part(result, axis, slice(2, None, 2))[...] = rest
    return results


# --- one operation for each element of a window ------------------------------------------------------


def _prefers_loop(dimension: WindowDimension, windows: int, lines: int) -> bool:
    """Whether that is less work than totals of 1, 2, 4 … neighbours are, in `lines` arrays of one dimension."""
    if dimension.size >= _BLOCK and (windows == 1 or dimension.stride >= dimension.dilated_size):
        return False
    rounds = dimension.size.bit_length() - 1
    extent = (windows - 1) * dimension.stride + dimension.dilated_size
    loop = (dimension.size - 1) * (windows * lines + _OVERHEAD)
    return loop <= rounds * ((extent + windows) * lines + 2 * _OVERHEAD)


def _loop(ufunc: np.ufunc, x: Array, neutral: Any, axis: int, dimension: WindowDimension) -> Array:
    """Combine what stands first in each window with what stands second, and so on; the order does not matter."""
    size = x.shape[axis]
    windows = dimension.output_size(size)
    overlaps = [dimension.overlap(element, size) for element in range(dimension.size)]
    whole = [part(x, axis, each.base) for each in overlaps if each.length == windows]
    shape = replace_at(x.shape, axis, windows)
    if len(whole) > 1:
        total: Array = ufunc(whole[0], whole[1])
    else:
        total = np.array(whole[0]) if whole else np.full(shape, neutral, x.dtype)
    for more in whole[2:]:
        ufunc(total, more, out=total)
    for each in overlaps:
        if 0 < each.length < windows:
            target = part(total, axis, each.windows)
            ufunc(target, part(x, axis, each.base), out=target)
    return total


# --- blocks, and totals of neighbours ----------------------------------------------------------------


def _pad(
    monoid: Monoid, arrays: Arrays, axis: int, dimension: WindowDimension, windows: int
) -> tuple[Arrays, Array | None]:
    """The arrays with padding and holes, as far as windows reach, and a mask of what is neither.

    The mask has one dimension; it is None if it is not needed.
    """
    size = arrays[0].shape[axis]
    extent = (windows - 1) * dimension.stride + dimension.dilated_size
    holes = dimension.base_dilation - 1
    low, high = dimension.padding_low, extent - dimension.padding_low - size - (size - 1) * holes
    if low <= 0 and high <= 0 and not holes:
        return tuple(part(x, axis, slice(-low, -low + extent)) for x in arrays), None
    rank = arrays[0].ndim
    rows = [tuple(value if other == axis else 0 for other in range(rank)) for value in (low, high, holes)]
    filled = tuple(
        pad(x, np.asarray(fill, x.dtype)[()], *rows) for x, fill in zip(arrays, monoid.fill, strict=True)
    )
    if monoid.is_neutral:
        return filled, None
    return filled, pad(np.ones(size, np.bool_), np.False_, (low,), (high,), (holes,))  # type: ignore[arg-type]


def _mask(combine: Combine) -> Combine:
    """Combine arrays of which the last is a mask: what it leaves out changes nothing."""

    def function(first: Arrays, second: Arrays) -> Arrays:
        *left, here = first
        *right, there = second
        both = combine(tuple(left), tuple(right))
        rows = zip(both, left, right, strict=True)
        kept = [np.where(here & there, x, np.where(here, a, b)) for x, a, b in rows]
        return (*kept, here | there)

    return function


def _fold_whole(
    combine: Combine,
    ufunc: np.ufunc | None,
    arrays: Arrays,
    axis: int,
    dimension: WindowDimension,
    windows: int,
) -> Arrays:
    """Fold windows that lie in the arrays as they are."""
    step, stride = dimension.window_dilation, dimension.stride
    if dimension.size > 1 and (windows == 1 or stride >= dimension.dilated_size):
        blocks = tuple(_blocks(x, axis, dimension, windows) for x in arrays)
        if ufunc is not None:
            return (ufunc.reduce(blocks[0], axis=axis + 1, dtype=blocks[0].dtype),)
        return _in_pairs(combine, blocks, axis + 1)
    if ufunc is not None:
        return (fold_neighbours(ufunc, arrays[0], axis, dimension, windows),)
    extent = (windows - 1) * stride + 1
    total: Arrays | None = None
    offset, covered = 0, 1
    while True:
        if dimension.size & covered:
            here = tuple(part(x, axis, slice(offset, offset + extent, stride)) for x in arrays)
            total = here if total is None else combine(total, here)
            offset += covered * step
        covered *= 2
        if covered > dimension.size:
            return total  # type: ignore[return-value]
        shift = covered // 2 * step
        arrays = combine(
            tuple(part(x, axis, slice(0, -shift)) for x in arrays),
            tuple(part(x, axis, slice(shift, None)) for x in arrays),
        )


def _blocks(x: Array, axis: int, dimension: WindowDimension, windows: int) -> Array:
    """A view with the windows along `axis`, and the elements of each along a new axis after it."""
    own = x.strides[axis]
    shape = replace_at(x.shape, axis, windows, dimension.size)
    strides = (
        *x.strides[:axis],
        own * dimension.stride,
        own * dimension.window_dilation,
        *x.strides[axis + 1 :],
    )
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)


def _in_pairs(combine: Combine, arrays: Arrays, axis: int) -> Arrays:
    """Fold the elements along `axis`, neighbours first."""
    size = arrays[0].shape[axis]
    while size > 1:
        even = size - size % 2
        pairs = combine(
            tuple(part(x, axis, slice(0, even, 2)) for x in arrays),
            tuple(part(x, axis, slice(1, even, 2)) for x in arrays),
        )
        if even < size:
            rest = [part(x, axis, slice(even, None)) for x in arrays]
            pairs = tuple(np.concatenate(pair, axis) for pair in zip(pairs, rest, strict=True))
        arrays, size = pairs, (size + 1) // 2
    return tuple(x.squeeze(axis) for x in arrays)


Slices = tuple[slice, ...]


def element_ranges(window: Window, shape: Sequence[int]) -> list[tuple[int, tuple[Slices, Slices]]]:
    """For each element of a window, numbered row-major: which windows have it, and where it lies for them."""
    overlaps = [window.overlap(element, shape) for element in window.elements()]
    return [
        (number, (tuple(each.windows for each in overlap), tuple(each.base for each in overlap)))
        for number, overlap in enumerate(overlaps)
        if overlap is not None
    ]
