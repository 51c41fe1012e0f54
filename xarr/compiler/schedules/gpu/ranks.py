"""Sorts of different int64 keys by ranks: each key goes where as many lie before it as are less.

Tiles are sorted by comparing each key with all of its tile, and then merged two by two: how many keys of the other run
are less says a binary search.  A step is a phase of independent keys; n of them take log2(n / tile) + 1.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Final

from xarr.compiler.loop_ir.elements import Index, row_major
from xarr.compiler.loop_ir.loops import Affine, Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial.serial_loops import Scratch
from xarr.ir.types import Ints

#: Keys of a tile.
TILE: Final = 256


def sort_keys(loops: GridLoops, shape: Ints, key: Callable[[Index], Value]) -> Scratch:
    """An array of the keys of all indices of a shape, in ascending order; no two are equal."""
    count = prod(shape)
    keys, other = (loops.new(INT64, (count,)) for _ in range(2))
    loops.phase(shape, lambda index: [keys.store((row_major(shape, index),), key(index))])
    _sort_tiles(loops, keys, other)
    width = TILE
    while width < count:
        keys, other = other, keys
        _merge(loops, keys, other, width)
        width *= 2
    return other


def _sort_tiles(loops: GridLoops, keys: Scratch, target: Scratch) -> None:
    """A phase: each key to its rank among those of its tile."""
    (count,) = keys.shape
    zero = loops.values.constant(0, INT64)

    def rank(index: Index) -> Sequence[Loop | Store]:
        own, position = keys.load(index), index[0].value(loops.values)
        first = position / TILE * TILE

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            exists = (first + term).lt(count)
            is_less = exists & _load_at(keys, first + term, exists).lt(own)
            return [held[0] + is_less.convert(INT64)]

        loop, (less,) = loops.carry(min(TILE, count), [zero], step)
        return [loop, target.store((Affine(((first, 1), (less, 1))),), own)]

    loops.phase((count,), rank)


def _merge(loops: GridLoops, keys: Scratch, target: Scratch, width: int) -> None:
    """A phase: each key of two neighbouring sorted runs of a width to its rank in both."""
    (count,) = keys.shape

    def rank(index: Index) -> Sequence[Loop | Store]:
        own, position = keys.load(index), index[0].value(loops.values)
        pair = position / (2 * width) * (2 * width)
        is_left = (position - pair).lt(width)
        other = is_left.select(pair + width, pair)
        within = is_left.select(position - pair, position - pair - width)

        def is_before(at: Value) -> Value:
            exists = (other + at).lt(count)
            return exists & _load_at(keys, other + at, exists).lt(own)

        searching, less = search(loops, width, is_before)
        return [*searching, target.store((Affine(((pair, 1), (within, 1), (less, 1))),), own)]

    loops.phase((count,), rank)


def _load_at(keys: Scratch, position: Value, predicate: Value) -> Value:
    return keys.load((Affine(((position, 1),)),), predicate)


def search(loops: GridLoops, count: int, holds: Callable[[Value], Value]) -> tuple[list[Loop], Value]:
    """A loop that finds the first of `count` positions at which a condition fails, `count` if at none, and that.

    Where the condition fails once it fails at all positions behind.
    """
    zero, end = loops.values.constant(0, INT64), loops.values.constant(count, INT64)

    def halve(_: Value, held: Sequence[Value]) -> Sequence[Value]:
        low, high = held
        middle = (low + high) / 2
        is_open = low.lt(high)
        # At the end of the search nothing is read behind the last position.
        is_right = is_open & holds(middle.lt(count).select(middle, count - 1))
        return [is_right.select(middle + 1, low), (is_open & ~is_right).select(middle, high)]

    loop, (first, _) = loops.carry(count.bit_length(), [zero, end], halve)
    return [loop], first
