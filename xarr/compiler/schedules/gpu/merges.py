"""Stable merge sorts of rows by comparators that are orders, and the binary searches of these and of other phases.

* a thread sorts a run of a few elements in registers, by exchanges of neighbours; a row that is one run needs no more;
* a block merges the runs of a tile in shared memory, two by two; rows that fit into a tile are sorted by that;
* the tiles of longer rows are merged two by two, in two phases for each doubling: a thread for each tile of the result
  finds where that begins in both operands, and a block merges it in shared memory.

In a merge a thread has a part of the result.  Where it begins in both operands says a binary search along a diagonal of
the merge matrix.  Whatever the comparator answers, searches end, and nothing outside of the operands is read; but
merges by one that is no order would leave elements out and repeat others.

Source: O. Green, R. McColl, D. A. Bader, GPU Merge Path: a GPU merging algorithm, ICS 2012.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from math import prod
from typing import TypeAlias

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Loop, Store, index_value
from xarr.compiler.loop_ir.scalars import INT64, DType, Value, in_order
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.schedules.serial.serial_loops import Scratch, store_all
from xarr.ir.types import Ints

#: Positions in a tile.
_INT32: DType = np.dtype(np.int32)

#: The elements of all operands at an index of the other axes, and a position in a row.
ElementsAt: TypeAlias = Callable[[Index, Affine], Sequence[Value]]
#: Whether the first elements must come before the second ones.
GoesBefore: TypeAlias = Callable[[Sequence[Value], Sequence[Value]], Value]
#: The elements of all operands at a position of a run, zeros where a predicate is false.
LoadAt: TypeAlias = Callable[[Value, Value | None], Sequence[Value]]


@dataclass(frozen=True)
class SortOperands:
    """The element types of what is sorted together, how many elements a row has, and the sizes of the other axes."""

    dtypes: Sequence[DType]
    others: Ints
    size: int


@dataclass(frozen=True)
class SortTiles:
    """The sizes of a sort: of the runs that threads sort, and of tiles, in rows or parts of one and their elements."""

    run: int
    rows: int
    length: int


def tiles_of(target: GpuTarget, dtypes: Sequence[DType], count: int, size: int) -> SortTiles:
    """The tiles in which so many rows of a size are sorted."""
    nbytes = sum(register_dtype(dtype).itemsize for dtype in dtypes)
    # Of an odd number of elements for each thread, neighbouring threads write to different banks of memory.
    run = (max(1, min(target.sorted_run, target.sorted_run_bytes // nbytes)) - 1) // 2 * 2 + 1
    # A merge reads one half of the memory, and writes the other.
    capacity = max(1, target.local_bytes // (2 * nbytes))
    most = min(capacity, target.sorted_tile)
    whole = -(-size // run) * run
    if whole <= capacity:
        return SortTiles(run, max(1, min(count, most // max(whole, 1))), size)
    length = run
    while 2 * length <= most:
        length *= 2
    return SortTiles(run, 1, length)


def merge_sort(
    loops: GridLoops, operands: SortOperands, elements: ElementsAt, goes_before: GoesBefore
) -> list[Scratch]:
    """An array of the shape (*others, size) for each operand, sorted along its last axis."""
    sort = _MergeSort(loops, operands, elements, goes_before)
    if operands.size <= sort.tiles.run:
        arrays = sort.by_threads()
    else:
        arrays, width = sort.by_blocks(), 1
        while width < sort.parts:
            arrays = sort.merge(arrays, width)
            width *= 2
    shape = (*operands.others, operands.size)
    return [Scratch(loops.values, each.buffer, shape) for each in arrays]


@dataclass(frozen=True)
class _Runs:
    """Two sorted runs side by side, of `left` and of `right` elements, and a part of what they are merged to.

    * `load` - the elements at a position from the beginning of the first on,
    * `diagonal` - how many come before the part.
    """

    left: Value
    right: Value
    diagonal: Value
    load: LoadAt


class _MergeSort:
    """The phases of a sort, whose arrays have an axis of rows and one of the elements of a row."""

    def __init__(
        self, loops: GridLoops, operands: SortOperands, elements: ElementsAt, goes_before: GoesBefore
    ) -> None:
        self.loops, self.values, self.operands = loops, loops.values, operands
        self.elements, self.goes_before = elements, goes_before
        self.count, self.size = prod(operands.others), operands.size
        self.tiles = tiles_of(loops.target, operands.dtypes, self.count, self.size)
        #: Runs of a row of a tile, its elements with those that the last one lacks, and tiles of a row.
        self.runs = -(-self.tiles.length // self.tiles.run)
        self.row_size = self.runs * self.tiles.run
        self.parts = -(-self.size // self.tiles.length)
        #: Arrays whose elements no later phase needs.
        self.free: list[list[Scratch]] = []

    @property
    def half(self) -> int:
        """Elements of a tile in shared memory, of whole runs."""
        return self.tiles.rows * self.row_size

    @cached_property
    def shared(self) -> list[Scratch]:
        """Two tiles of each operand, one behind the other: a merge reads one and writes the other."""
        return [self.loops.new_shared(dtype, 2 * self.half) for dtype in self.operands.dtypes]

    def _new_arrays(self) -> list[Scratch]:
        return [self.loops.new(dtype, (self.count, self.size)) for dtype in self.operands.dtypes]

    # --- phases ------------------------------------------------------------------------------------------

    def by_threads(self) -> list[Scratch]:
        """Sort rows of one run each: a phase with a thread for each row."""
        arrays = self._new_arrays()

        def body(index: Index) -> Sequence[Store]:
            own = split_number(index[0].value(self.values), self.operands.others)
            run = [list(self.elements(own, Affine((), at))) for at in range(self.size)]
            self._sort_run(run, [None] * self.size)
            rows = [store_all(arrays, (index[0], Affine((), at)), each) for at, each in enumerate(run)]
            return [store for stores in rows for store in stores]

        self.loops.phase((self.count,), body)
        return arrays

    def by_blocks(self) -> list[Scratch]:
        """Sort tiles: a phase with a block for each."""
        arrays, rows, length = self._new_arrays(), self.tiles.rows, self.tiles.length
        levels = (self.runs - 1).bit_length()

        def body(index: Index) -> Sequence[Loop | Store]:
            begin = (index[1] * length).value(self.values)
            size = self._int32(_least(self.size - begin, length)) if self.parts > 1 else None
            merges = Loop(index_value(self.values, "level"), levels)
            merges.body.append(self.loops.share(rows * self.runs, partial(self._merge_runs, merges, size)))
            return [
                self.loops.share(rows * length, partial(self._fill, index)),
                self.loops.share(rows * self.runs, partial(self._sort_own_run, size)),
                *([merges] if levels else []),
                self.loops.share(rows * length, partial(self._store, arrays, levels % 2, index)),
            ]

        self.loops.blocks((-(-self.count // rows), self.parts), body)
        return arrays

    def merge(self, arrays: list[Scratch], width: int) -> list[Scratch]:
        """Merge neighbours of so many sorted tiles each: a phase with a thread and one with a block for each tile.

        The first one finds how many elements of the left neighbour come before the tile.
        """
        made = self.free.pop() if self.free else self._new_arrays()
        splits = self.loops.new(INT64, (self.count, self.parts))

        def find(index: Index) -> Sequence[Loop | Store]:
            _, runs = self._pair(arrays, width, index)
            searching, first = self._search_path(runs, (width * self.tiles.length).bit_length())
            return [*searching, splits.store(index, first)]

        self.loops.phase(splits.shape, find)
        self.loops.blocks(splits.shape, lambda index: self._merge_tile(arrays, made, splits, width, index))
        self.free.append(arrays)
        return made

    # --- tiles -------------------------------------------------------------------------------------------

    def _fill(self, index: Index, at: Index) -> Sequence[Store]:
        """The element of a tile that is at a position of it, to the second half of the memory."""
        row, position, here = self._position(index, at)
        # At the end elements are there again, which are not sorted.
        row = row.lt(self.count).select(row, self.count - 1) if self.count % self.tiles.rows else row
        position = position.lt(self.size).select(position, self.size - 1) if self._sticks_out else position
        own = split_number(row, self.operands.others)
        return store_all(self.shared, (here + self.half,), self.elements(own, _offset(position)))

    def _store(self, arrays: list[Scratch], half: int, index: Index, at: Index) -> Sequence[Loop | Store]:
        """The sorted element at a position of a tile, from a half of the memory to the arrays."""
        row, position, here = self._position(index, at)
        values = [each.load((here + half * self.half,)) for each in self.shared]
        stores: Sequence[Loop | Store] = store_all(arrays, (_offset(row), _offset(position)), values)
        if self._sticks_out:
            stores = self.loops.only_if(position.lt(self.size), stores)
        return self.loops.only_if(row.lt(self.count), stores) if self.count % self.tiles.rows else stores

    @property
    def _sticks_out(self) -> bool:
        """Whether the last tile of a row has positions behind its end."""
        return self.size % self.tiles.length != 0

    def _position(self, index: Index, at: Index) -> tuple[Value, Value, Affine]:
        """The row, the position in it, and that in shared memory of an element of the tile of an index."""
        row, position = self._split(at, self.tiles.length)
        return (
            (index[0] * self.tiles.rows + row).value(self.values),
            (index[1] * self.tiles.length + position).value(self.values),
            row * self.row_size + position,
        )

    def _split(self, at: Index, size: int) -> tuple[Affine, Affine]:
        """The row of a tile and the number in it, of the number among all rows of a tile of so many each."""
        if self.tiles.rows == 1:
            return Affine(), at[0]
        number = at[0].value(self.values)
        return _offset(number / size), _offset(number.rem(size))

    def _sort_own_run(self, size: Value | None, at: Index) -> Sequence[Loop | Store]:
        """Sort a run of the second half of the memory into the first half; rows of the tile have a size."""
        run = self.tiles.run
        row, number = self._split(at, self.runs)
        begin = row * self.row_size + number * run
        exists: list[Value | None] = [None] * run
        if size is not None or self.tiles.length % run:
            first = self._int32((number * run).value(self.values))
            exists = [(first + k).lt(self._length(size)) for k in range(run)]
        elements = [
            [each.load((begin + (self.half + k),), condition) for each in self.shared]
            for k, condition in enumerate(exists)
        ]
        self._sort_run(elements, exists)
        rows = [store_all(self.shared, (begin + k,), values) for k, values in enumerate(elements)]
        return [store for stores in rows for store in stores]

    def _sort_run(self, elements: list[list[Value]], exists: Sequence[Value | None]) -> None:
        """Exchange neighbours until all are in order: those that do not exist are the last ones, and stay there."""
        for step in range(len(elements)):
            for k in range(step % 2, len(elements) - 1, 2):
                left, right, condition = elements[k], elements[k + 1], exists[k + 1]
                is_wrong = self.goes_before(right, left)
                is_wrong = is_wrong if condition is None else condition & is_wrong
                pairs = list(zip(left, right, strict=True))
                elements[k] = [is_wrong.select(y, x) for x, y in pairs]
                elements[k + 1] = [is_wrong.select(x, y) for x, y in pairs]

    def _merge_runs(self, level: Loop, size: Value | None, at: Index) -> Sequence[Loop | Store]:
        """Merge two neighbours of 2**level runs each, as far as the part of a thread goes."""
        row, own = self._split(at, self.runs)
        number, run = self._int32(own.value(self.values)), self.tiles.run
        doubling = self._int32(level.index) + 1
        first = number >> doubling << doubling
        begin, width = first * run, self.values.constant(run, _INT32) << self._int32(level.index)
        rest = self._length(size) - begin
        half = level.index.rem(2)
        base = row * self.row_size + _offset(begin.convert(INT64))
        runs = _Runs(
            _least(rest, width),
            _least(_most(rest - width, 0), width),
            (number - first) * run,
            partial(self._load_shared, base + _offset(half) * self.half),
        )
        rounds = level.index + run.bit_length()
        most = (self.tiles.length // 2 + run).bit_length()
        return self._merge_part(runs, _least(rounds, most), base + _offset(1 - half) * self.half)

    def _length(self, size: Value | None) -> Value:
        """The size of the rows of a tile."""
        return self.values.constant(self.tiles.length, _INT32) if size is None else size

    def _load_shared(self, begin: Affine, position: Value, predicate: Value | None) -> list[Value]:
        return [each.load((begin + _offset(position.convert(INT64)),), predicate) for each in self.shared]

    # --- merges ------------------------------------------------------------------------------------------

    def _pair(self, arrays: list[Scratch], width: int, index: Index) -> tuple[Value, _Runs]:
        """Two neighbours that are merged to tiles, of which one has an index.

        The number of the tile among those of both, and both as far as the tile goes.
        """
        part, most = index[1].value(self.values), width * self.tiles.length
        first = part / (2 * width) * (2 * width)
        begin = first * self.tiles.length
        rest = self.size - begin

        def load(position: Value, predicate: Value | None) -> list[Value]:
            return [each.load((index[0], _offset(begin + position)), predicate) for each in arrays]

        left, right = _least(rest, most), _least(_most(rest - most, 0), most)
        runs = _Runs(left, right, (part - first) * self.tiles.length, load)
        return part - first, runs

    def _merge_tile(
        self, arrays: list[Scratch], made: list[Scratch], splits: Scratch, width: int, index: Index
    ) -> Sequence[Loop | Store]:
        """Read what a tile consists of, merge it in shared memory, and store it."""
        length = self.tiles.length
        number, pair = self._pair(arrays, width, index)
        follows = (number + 1).lt(2 * width) & (index[1] + 1).value(self.values).lt(self.parts)
        first = splits.load(index)
        end = follows.select(splits.load((index[0], index[1] + 1), follows), pair.left)
        total = _least(pair.left + pair.right - pair.diagonal, length)
        # By a comparator that is no order the next tile may begin before this one.
        left = _least(_most(end - first, 0), total)
        right = total - left
        # The extent that all threads need is a sum of what they need too, which is computed once for that.
        extent = _least(left + right, length)

        def read(at: Index) -> Sequence[Store]:
            own = at[0].value(self.values)
            position = own.lt(left).select(first + own, pair.left + (pair.diagonal - first) + (own - left))
            return store_all(self.shared, (at[0] + self.half,), pair.load(position, None))

        def merge(at: Index) -> Sequence[Loop | Store]:
            diagonal = self._int32(at[0].value(self.values)) * self.tiles.run
            load = partial(self._load_shared, Affine((), self.half))
            runs = _Runs(self._int32(left), self._int32(right), diagonal, load)
            return self._merge_part(runs, length.bit_length(), Affine())

        return [
            self.loops.share(extent, read),
            self.loops.share(self.runs, merge),
            self.loops.share(extent, partial(self._store, made, 0, index)),
        ]

    def _merge_part(self, runs: _Runs, rounds: int | Value, target: Affine) -> list[Loop]:
        """Merge as many elements of two runs as a run has, from a diagonal on, to shared memory behind `target`."""
        searching, first = self._search_path(runs, rounds)
        count = (runs.left + runs.right - runs.diagonal).convert(INT64)
        chosen: list[Value] = []

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            ahead, behind = held[0], runs.diagonal + self._int32(term) - held[0]
            has_left, has_right = ahead.lt(runs.left), behind.lt(runs.right)
            left, right = runs.load(ahead, has_left), runs.load(runs.left + behind, has_right)
            is_right = has_right & (~has_left | self.goes_before(right, left))
            # What is not compared is read once.
            compared = {*in_order(is_right)}
            either = runs.load(is_right.select(runs.left + behind, ahead), None)
            for x, y, one in zip(left, right, either, strict=True):
                chosen.append(is_right.select(y, x) if x in compared or y in compared else one)
            return [ahead + (~is_right).convert(_INT32)]

        loop, _ = self.loops.carry(_least(count, self.tiles.run), [first], step)
        at = target + _offset(runs.diagonal.convert(INT64)) + _offset(loop.index)
        loop.body += store_all(self.shared, (at,), chosen)
        return [*searching, loop]

    def _search_path(self, runs: _Runs, rounds: int | Value) -> tuple[list[Loop], Value]:
        """A loop that finds how many elements of the left run come before the diagonal, and that number."""

        def is_left(middle: Value, is_open: Value) -> Value:
            ahead = runs.load(middle, is_open)
            behind = runs.load(runs.left + runs.diagonal - 1 - middle, is_open)
            return ~self.goes_before(behind, ahead)

        low = _most(runs.diagonal - runs.right, 0)
        return search(self.loops, low, _least(runs.diagonal, runs.left), rounds, is_left)

    def _int32(self, value: Value) -> Value:
        return value.convert(_INT32)


def search(
    loops: GridLoops,
    low: Value,
    high: Value,
    rounds: int | Value,
    holds: Callable[[Value, Value], Value],
) -> tuple[list[Loop], Value]:
    """A loop that finds the first position from `low` on at which a condition fails, `high` if at none, and that.

    Where the condition fails once it fails at all positions behind.

    * `rounds` - of the loop, at most: the bits of the number of positions,
    * `holds` - the condition at a position, which is one of them where its second argument is true.
    """

    def halve(_: Value, held: Sequence[Value]) -> Sequence[Value]:
        low, high = held
        middle, is_open = (low + high) / 2, low.lt(high)
        is_right = is_open & holds(middle, is_open)
        return [is_right.select(middle + 1, low), (is_open & ~is_right).select(middle, high)]

    loop, (first, _) = loops.carry(rounds, [low, high], halve)
    return [loop], first


def _least(value: Value, other: Value | int) -> Value:
    return value.lt(other).select(value, other)


def _most(value: Value, other: Value | int) -> Value:
    return value.gt(other).select(value, other)


def _offset(value: Value) -> Affine:
    return Affine(((value, 1),))
