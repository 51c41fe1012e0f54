"""Tiles that a block shares: what is folded of their rows and columns, and reads across the order of stores.

A phase that stores along its last axis, and reads an array along another one, reads one element of each line of memory.
Here a block reads a tile along the array's own axis, and takes it across from there.  Rows of a tile have one element
more than a tile has columns, so that neighbouring threads read from different banks of memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Access, Affine, Loop, Runs, Store, grid_loops, index_value, nest_loops
from xarr.compiler.loop_ir.scalars import INT64, DType, Value, Values, in_order
from xarr.compiler.schedules.serial.serial_loops import Scratch
from xarr.ir.types import Ints

SIDE: Final = 32
_ROW: Final = SIDE + 1
#: Lines of a thread that lie side by side.
_TOGETHER: Final = 4

#: The element where a predicate holds.
Read: TypeAlias = Callable[["Value | None"], Value]


@dataclass(frozen=True)
class Factor:
    """One of the arrays of which a term is computed: it depends on rows of the result, or on columns.

    * `side` - 0 of rows, 1 of columns,
    * `dtype` - of its elements in shared memory,
    * `locate` - of an index in the result and that of a term: whether there is an element, and how it is read.
    """

    side: int
    dtype: DType
    locate: Callable[[Index, Index], tuple[Value | None, Read]]


@dataclass(frozen=True)
class PairFold:
    """Results each of which folds terms that are computed of its row and of its column.

    * `shape` - of the results; `sides` - the axes of rows and those of columns; those of neither are batches,
    * `terms` - the sizes of the axes of terms,
    * `held` - the types of what a result holds from term to term,
    * `starts`, `step` - what it begins with; of the index, that of a term, what is held, and an element of each factor,
      what is held then,
    * `finish` - of what is held after the last term, the result,
    * `ignores_zeros` - whether a term of zeros changes nothing.
    """

    shape: Ints
    sides: tuple[Ints, Ints]
    terms: Ints
    factors: Sequence[Factor]
    held: Sequence[DType]
    starts: Sequence[Value]
    step: Callable[[Index, Index, Sequence[Value], Sequence[Value]], Sequence[Value]]
    finish: Callable[[Sequence[Value]], Sequence[Value]]
    ignores_zeros: bool = False

    @property
    def batch(self) -> Ints:
        """The axes of neither side."""
        return tuple(axis for axis in range(len(self.shape)) if axis not in (*self.sides[0], *self.sides[1]))

    def sizes(self, axes: Ints) -> Ints:
        return tuple(self.shape[axis] for axis in axes)


@dataclass(frozen=True)
class Output:
    """An array with an element for each result, which is computed of the index and of what the fold has there."""

    array: Scratch
    element: Callable[[Index, Sequence[Value]], Value]


@dataclass(frozen=True)
class TileSide:
    """The rows of a tile of results, or its columns.

    * `number` - that in `PairFold.sides`, `axes` - of the result,
    * `lines` - of all tiles, `own` - of a thread, `size` - of a tile.
    """

    number: int
    axes: Ints
    lines: int
    own: int
    size: int

    @property
    def stride(self) -> int:
        """Elements of shared memory from one term to the next: neighbouring terms lie in different banks."""
        return self.size + _TOGETHER

    @property
    def tiles(self) -> int:
        return -(-self.lines // self.size)

    def lines_of(self, thread: Value, threads: int) -> list[Affine]:
        """The lines in a tile that a thread of this number has: some side by side, that are read 16 bytes at once."""
        together = min(self.own, _TOGETHER)
        first = Affine(((thread, together),))
        return [first + (k % together + k // together * together * threads) for k in range(self.own)]


def read_in_tiles(
    phase: Loop, values: Values, least: int, new_shared: Callable[[DType, int], Scratch]
) -> Loop | None:
    """A phase that does what another does, by blocks; None where it reads nothing across, or too little.

    least: rows and columns from which tiles pay.
    """
    loops = grid_loops(phase)
    last, stores = loops[-1], [part for part in loops[-1].body if isinstance(part, Store)]
    if Runs.BLOCK not in phase.runs or len(stores) != len(last.body) or _extent(last) < least:
        return None
    if any(store.atomic or dict(store.offset.terms).get(last.index) != 1 for store in stores):
        return None
    loads = [value for value in in_order(*(store.value for store in stores)) if value.op == "load"]
    for across in loops[:-1]:
        read = [each for each in loads if _reads_across(each, across.index, last.index)]
        if read and _extent(across) >= least:
            tiles = [new_shared(each.dtype, SIDE * _ROW) for each in read]
            return _Tiles(values, loops, across, stores, dict(zip(read, tiles, strict=True))).phase()
    return None


def _extent(loop: Loop) -> int:
    return loop.max_iterations


def _reads_across(value: Value, across: Value, last: Value) -> bool:
    """Whether neighbours along the axis of `across` are neighbours in memory, and those along the last one are not."""
    access: Access = value.attribute
    if access.masked or any(operand.op != "index" for operand in value.operands):
        return False
    factors = dict(zip(value.operands, access.factors, strict=True))
    return factors.get(across) == 1 and factors.get(last, 0) > 1


class _Tiles:
    """A phase whose blocks have a tile each of two axes, the last one and one across."""

    def __init__(
        self,
        values: Values,
        loops: Sequence[Loop],
        across: Loop,
        stores: Sequence[Store],
        tiles: dict[Value, Scratch],
    ) -> None:
        self.values, self.loops, self.across, self.last = values, loops, across, loops[-1]
        self.stores, self.tiles = stores, tiles

    def phase(self) -> Loop:
        """A grid of tiles; in each a loop that fills it, and one that stores."""
        kept = [loop for loop in self.loops if loop not in (self.across, self.last)]
        grid = [Loop(loop.index, loop.extent, Runs.GRID) for loop in kept]
        for loop in (self.across, self.last):
            count = -(-_extent(loop) // SIDE)
            grid.append(Loop(index_value(self.values, "tile"), count, Runs.GRID))
        *_, across, last = grid
        nest_loops(grid)
        last.body += [self._fill(across.index, last.index), self._store(across.index, last.index)]
        grid[0].label = self.loops[0].label
        return grid[0]

    def _fill(self, across: Value, last: Value) -> Loop:
        """A loop whose neighbouring iterations read neighbours."""
        loop = Loop(index_value(self.values, "element"), SIDE * SIDE, Runs.BLOCK, is_of_tile=True)
        row, column = loop.index / SIDE, loop.index.rem(SIDE)
        at = {self.across.index: across * SIDE + column, self.last.index: last * SIDE + row}
        stores = [
            Store(tile.buffer, Affine(((row, _ROW), (column, 1))), self.values.rebuild(load, dict(at)))
            for load, tile in self.tiles.items()
        ]
        loop.body.append(self._where_inside(at, stores))
        return loop

    def _store(self, across: Value, last: Value) -> Loop:
        """A loop whose neighbouring iterations store neighbours."""
        loop = Loop(index_value(self.values, "element"), SIDE * SIDE, Runs.BLOCK, is_of_tile=True)
        row, column = loop.index / SIDE, loop.index.rem(SIDE)
        at = {self.across.index: across * SIDE + row, self.last.index: last * SIDE + column}
        known = dict(at)
        for load, tile in self.tiles.items():
            known[load] = tile.load((Affine(((column, _ROW), (row, 1))),))
        stores = [
            Store(
                store.buffer,
                Affine(
                    tuple((at.get(value, value), factor) for value, factor in store.offset.terms),
                    store.offset.constant,
                ),
                self.values.rebuild(store.value, known),
            )
            for store in self.stores
        ]
        loop.body.append(self._where_inside(at, stores))
        return loop

    def _where_inside(self, at: dict[Value, Value], stores: Sequence[Store]) -> Loop:
        """Stores where a tile does not stick out of the array."""
        is_inside = at[self.across.index].lt(_extent(self.across)) & at[self.last.index].lt(
            _extent(self.last)
        )
        extent = is_inside.select(self.values.constant(1, INT64), 0)
        return Loop(index_value(self.values, "once"), extent, body=list(stores))
