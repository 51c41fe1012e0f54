"""Sorting by merging, for relations between elements that columns of numbers do not say, and that may be no order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from xarr.ir.graph import Graph
from xarr_numpy import engine, workers
from xarr_numpy.stable import Array, Arrays, along, stable_order, taken

#: Elements at a time, so that what is computed of them stays in a cache.
_TILE: Final = 2**14


def merge_compiled(comparator: Graph, arrays: Arrays, axis: int) -> Arrays:
    """Stable order by a comparator of scalars, compiled: the merge sort of the definition."""
    rows = tuple(np.array(np.moveaxis(x, axis, -1), order="C") for x in arrays)
    engine.sequential_module().merge_sort(comparator, rows)
    return tuple(np.moveaxis(x, -1, axis) for x in rows)


def merge_sort(before: Callable[..., tuple[Any, ...]], arrays: Arrays, axis: int) -> Arrays:
    """Stable order by `before(a0, b0, a1, b1 …)`, a computation on lanes.

    Runs of width 1, 2, 4 … are merged; the place of every element in the merged run is its own place
    plus the number of elements of the other run that go before it, found for many at once by binary
    search.  `before` runs O(log² n) times on every element.  A relation that is no order still gives a
    permutation.
    """
    moved = tuple(np.moveaxis(x, axis, -1) for x in arrays)
    count = moved[0].shape[-1]
    rows = tuple(x.reshape(-1) for x in moved)
    width = 1
    while width < count:
        rows = _rearranged(rows, _merged_places(before, rows, count, width))
        width *= 2
    return tuple(np.moveaxis(row.reshape(x.shape), -1, axis) for row, x in zip(rows, moved, strict=True))


def _rearranged(rows: Arrays, places: Array) -> Arrays:
    """Every element at its place; in the order of places where a relation gives one to several."""
    if (np.bincount(places, minlength=places.size) != 1).any():
        return taken(rows, stable_order([places]), -1)
    found = tuple(np.empty_like(row) for row in rows)
    for new, row in zip(found, rows, strict=True):
        new[places] = row
    return found


def _merged_places(before: Callable[..., tuple[Any, ...]], rows: Arrays, count: int, width: int) -> Array:
    """Where elements go in the merged runs of all lines."""
    total = rows[0].size
    places = np.empty(total, np.int64)

    def tiles(_: int, begin: int, end: int) -> None:
        with np.errstate(all="ignore"):
            for number in range(begin, end):
                place = np.arange(number * _TILE, min((number + 1) * _TILE, total))
                places[place[0] : place[-1] + 1] = _merged(before, rows, place, count, width)

    workers.run(tiles, 0, -(-total // _TILE), _TILE)
    return places


def _merged(
    before: Callable[..., tuple[Any, ...]], rows: Arrays, place: Array, count: int, width: int
) -> Array:
    in_line = place % count
    base = place - in_line % (2 * width)
    line_end = place - in_line + count
    middle = np.minimum(base + width, line_end)
    in_left = place < middle
    first = np.where(in_left, middle, base)
    low, high = first, np.where(in_left, np.minimum(base + 2 * width, line_end), middle)
    own = [row[place[0] : place[-1] + 1] for row in rows]
    for _ in range(width.bit_length()):
        probe = (low + high) >> 1
        others = [np.take(row, probe, mode="clip") for row in rows]
        # Of equal elements the one of the left run goes first, so left asks "is it before me?" and
        # right asks "am I not before it?".
        pairs = [
            (np.where(in_left, other, mine), np.where(in_left, mine, other))
            for mine, other in zip(own, others, strict=True)
        ]
        ahead = np.equal(before(*[side for pair in pairs for side in pair])[0], in_left)
        searching = low < high
        low, high = np.where(searching & ahead, probe + 1, low), np.where(searching & ~ahead, probe, high)
    found: Array = place + low - first - np.where(in_left, 0, middle - base)
    return found


# --- numbers, some of which have no place ------------------------------------------------------------


def merge_by_column(numbers: Array, lost: Array) -> Array:
    """The order that merging gives along the last axis where the elements `lost` (NaN) go before nothing.

    An element of the right half passes those of the left that are greater, but no lost one, and a lost one passes
    nothing.  So a lost one counts as less than all in the left half, as greater in the right; and nobody comes to
    the turn before those in front of him, so that each counts as the greatest up to him.
    """
    ranks = np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape) + 1
    count = numbers.shape[-1]
    if count <= _TILE:
        return _merged_levels(ranks, lost, numbers.size + 1)
    pairs = zip(ranks.reshape(-1, count), lost.reshape(-1, count), strict=True)
    return np.stack([_merged_halves(*pair, numbers.size + 1) for pair in pairs]).reshape(numbers.shape)


def _merged_halves(ranks: Array, lost: Array, most: int) -> Array:
    """The order of one line; `most` is above all ranks, which are positive."""
    if ranks.size <= _TILE:
        return _merged_levels(ranks, lost, most)
    middle = ranks.size // 2
    halves = [slice(0, middle), slice(middle, None)]
    orders = [_merged_halves(ranks[half], lost[half], most) for half in halves]
    left, right = (
        np.maximum.accumulate(np.where(lost[half][order], least, ranks[half][order]))
        for half, order, least in zip(halves, orders, (0, most), strict=True)
    )
    found = np.empty(ranks.size, np.int64)
    found[np.arange(middle) + np.searchsorted(right, left, "left")] = orders[0]
    found[np.arange(right.size) + np.searchsorted(left, right, "right")] = orders[1] + middle
    return found


def _merged_levels(ranks: Array, lost: Array, most: int) -> Array:
    """The same for many short lines, all halves of a size at once."""
    places = np.broadcast_to(np.arange(ranks.shape[-1]), ranks.shape)
    span = most + 1
    for segment, half, in_right in reversed(list(_halves(ranks.shape[-1]))):
        counted = np.where(lost, np.where(in_right, most, 0), ranks)
        greatest = np.maximum.accumulate(counted + half * span, axis=-1) - half * span
        order = stable_order([(segment * span + greatest) * 2 + in_right])
        ranks, lost, places = (along(each, order) for each in (ranks, lost, places))
    return places


def _halves(count: int) -> Iterator[tuple[Array, Array, Array]]:
    """From the whole to pairs: for each place the number of its segment, that of its half, and if it is a right one.

    A segment of one has it on the right.
    """
    first, last = np.array([0]), np.array([count])
    while (last - first).max(initial=0) > 1:
        middle = first + (last - first) // 2
        sizes = np.stack([middle - first, last - middle], axis=1).reshape(-1)
        half = np.repeat(np.arange(sizes.size), sizes)
        yield half // 2, half, half % 2 == 1
        # A segment of one has an empty left half.
        first = np.stack([first, middle], axis=1).reshape(-1)[sizes > 0]
        last = np.append(first[1:], count)
