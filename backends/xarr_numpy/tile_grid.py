"""How the domain of a group of operations is cut into tiles.

Without reductions a tile is a run of neighbouring elements.  With reductions it holds the reduced
dimensions whole, so that all of a group's operations run on it one after the other; where that makes tiles
too large, or narrow strips of memory, the reduced dimensions are cut as well and tiles leave partial results.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Final, TypeAlias

from xarr.errors import counted

Ints: TypeAlias = tuple[int, ...]

#: Elements of a tile, about.  With a quarter of it, threads spend what they gain on Python's lock.
TILE: Final = 2**16
#: So many times more may a tile have that holds the reduced dimensions whole.
STRETCH: Final = 4
#: Neighbouring elements at least that a tile has where neighbours belong to different results.
COLUMNS: Final = 128
#: A reduced innermost dimension up to this size lies outermost in the memory of tiles, since NumPy's loops
#: over the innermost dimension would be too short.
SHORT: Final = 16
#: Elements that a tile reduces at least where it leaves partial results.
ROWS: Final = 32


@dataclass(frozen=True)
class Grid:
    """Tiles of `chunks` elements along each dimension of the domain; the last ones may be smaller.

    `partial` says that tiles cut through the reduced dimensions.
    """

    domain: Ints
    reduced: Ints
    chunks: Ints
    partial: bool

    @cached_property
    def counts(self) -> Ints:
        """Tiles along each dimension."""
        return tuple(-(-size // chunk) for size, chunk in zip(self.domain, self.chunks, strict=True))

    @cached_property
    def total(self) -> int:
        return prod(self.counts)

    @cached_property
    def parts(self) -> int:
        """Tiles along the reduced dimensions: the partial results for each result."""
        return prod(self.counts[axis] for axis in self.reduced)

    @cached_property
    def cut(self) -> frozenset[int]:
        """The dimensions that are cut."""
        return frozenset(axis for axis, count in enumerate(self.counts) if count > 1)

    @cached_property
    def first(self) -> int | None:
        """The dimension that lies outermost in the memory of tiles, if that is not the first."""
        large = [axis for axis, size in enumerate(self.domain) if size != 1]
        if not large or large[-1] not in self.reduced or self.domain[large[-1]] > SHORT:
            return None
        wide = prod(self.chunks) // self.domain[large[-1]] >= COLUMNS
        return large[-1] if wide and self.counts[large[-1]] == 1 else None

    def tile(self, number: int) -> tuple[int, list[slice]]:
        """Tile `number`: which part of its results it gives, and its range of each dimension."""
        places = []
        for count in reversed(self.counts):
            number, place = divmod(number, count)
            places.append(place)
        places.reverse()
        part = 0
        for axis in self.reduced:
            part = part * self.counts[axis] + places[axis]
        rows = zip(places, self.chunks, self.domain, strict=True)
        return part, [slice(at * chunk, min(size, at * chunk + chunk)) for at, chunk, size in rows]

    def __str__(self) -> str:
        return f"{counted(self.total, 'tile')} of {self.chunks} over {self.domain}"


def grid(domain: Ints, reduced: Ints) -> Grid:
    """The tiles for loops over `domain`, of whose dimensions reductions take `reduced` away."""
    axes = range(len(domain) - 1, -1, -1)
    inner = next((axis for axis in axes if domain[axis] != 1), None)
    if not reduced or inner is None:
        return Grid(domain, reduced, _filled(domain, axes, TILE, {}), False)
    rows = prod(domain[axis] for axis in reduced)
    least = 1 if inner in reduced else min(domain[inner], COLUMNS)
    if rows * least <= STRETCH * TILE:
        whole = {axis: domain[axis] for axis in reduced}
        return Grid(domain, reduced, _filled(domain, axes, max(TILE // rows, least), whole), False)
    most = domain[inner] if inner in reduced else TILE // ROWS
    first = {inner: _share(domain[inner], most)} if domain[inner] > most else {}
    room = TILE // prod(first.values())
    return Grid(domain, reduced, _filled(domain, axes, room, first), True)


def _filled(domain: Ints, axes: Iterable[int], room: int, given: dict[int, int]) -> Ints:
    """Chunks of about `room` elements, filled from the first of `axes` on; some chunks are given."""
    chunks = dict(given)
    for axis in axes:
        if axis not in given:
            chunks[axis] = _share(domain[axis], room)
            room //= chunks[axis]
    return tuple(chunks[axis] for axis in range(len(domain)))


def _share(size: int, room: int) -> int:
    """An equal share of `size`, of about `room` elements."""
    parts = max(1, round(size / max(1, room)))
    return -(-size // parts)
