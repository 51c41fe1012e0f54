"""Loops of tiles: a block computes some rows and columns of a result, each thread a few of either.

Of what a term has of a row, and of a column, the block reads some terms into shared memory, and each thread accumulates
these in registers; then come the next terms.  So an element is read once for each tile of the result, and not for each
element of it.  What follows is computed of a tile where it is: results element by element, or a reduction along its
columns, of which only a part for each block is stored.

The terms of an element are accumulated one after the other, and the parts of a result in an order that shapes fix, so
the bits are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from math import isqrt, prod
from operator import or_

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, strides
from xarr.compiler.loop_ir.loops import (
    Affine,
    Atomic,
    Carry,
    Loop,
    Runs,
    Store,
    index_value,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_neighbours
from xarr.compiler.schedules.gpu.reductions import SharedReduction
from xarr.compiler.schedules.gpu.tiles import Factor, Output, PairFold, TileSide
from xarr.compiler.schedules.gpu.vectors import lie_together, nearest_of
from xarr.compiler.schedules.serial.serial_loops import Scratch, store_all
from xarr.compiler.schedules.serial.windows import select_if
from xarr.ir.types import Ints


@dataclass
class _Tile:
    """Where a tile lies: the index of a batch, and the numbers of rows and of columns of tiles."""

    batch: Index
    numbers: tuple[Affine, Affine]
    #: The elements of factors in shared memory, and which of the first one's exist, if any does not.
    factors: Sequence[Scratch] = field(default_factory=list)
    mask: Scratch | None = None
    #: A number that is not 0 where an element of another factor was not finite: else no mask is needed.
    infinite: Scratch | None = None


@dataclass(frozen=True)
class _Neighbours:
    """Elements of a factor that lie side by side in memory.

    * `term` - the axis of terms along which they do; None if they do along a line,
    * `together` - how many of them exist all or none, and are read at once.
    """

    term: int | None
    together: int


class PairTiles:
    """The phases that compute the results of a fold, of which each thread has some rows and columns in registers."""

    def __init__(self, loops: GridLoops, fold: PairFold, columns: int | None = None) -> None:
        """columns: the side whose lines neighbouring threads have; that along which results lie by default."""
        self.loops, self.values, self.target, self.fold = loops, loops.values, loops.target, fold
        # Neighbouring threads have neighbouring columns, along the last axis of the result.
        last = int(len(fold.shape) - 1 in fold.sides[1]) if columns is None else columns
        self.threads = isqrt(self.target.block_threads)
        self.sides = self._sides(last, self._own(last))
        self.count, depth = prod(fold.terms), 1
        while depth < min(self.count, self.target.product_terms):
            depth *= 2
        self.depth = depth

    def _own(self, last: int) -> tuple[int, int]:
        """Rows and columns of a thread: as many as registers hold beside what else it needs.

        Of sums of products in 4 bytes more, where that leaves tiles for all processors.
        """
        target, fold = self.target, self.fold
        nbytes = sum(register_dtype(each).itemsize for each in fold.held)
        if nbytes > 8 or any(each.dtype.kind == "c" for each in fold.factors):
            return 2, 2
        if fold.ignores_zeros and nbytes <= 4:
            own = target.many_product_rows, target.product_side
            tiles = [each.tiles for each in self._sides(last, own)]
            if prod([*fold.sizes(fold.batch), *tiles]) >= target.min_large_tiles:
                return own
        return target.product_side, target.product_side

    def _sides(self, last: int, own: tuple[int, int]) -> tuple[TileSide, TileSide]:
        """Both sides, first that of a thread's rows, of which a thread has so many lines; `last` is the second one."""
        rows, columns = (
            TileSide(k, axes, prod(self.fold.sizes(axes)), count, count * self.threads)
            for k, axes, count in (
                (k, self.fold.sides[k], n) for k, n in zip((1 - last, last), own, strict=True)
            )
        )
        return rows, columns

    def pays(self, min_terms: int) -> bool:
        """Whether there are terms and lines that fill tiles, tiles for all processors, and memory for them."""
        tiles = prod([*self.fold.sizes(self.fold.batch), *[each.tiles for each in self.sides]])
        return (
            self.count >= min_terms
            and min(each.lines for each in self.sides) >= self.target.min_product_side
            and tiles >= self.target.min_product_tiles
            and self._shared_bytes <= self.target.local_bytes // 2
        )

    @property
    def _shared_bytes(self) -> int:
        """Bytes of shared memory that a tile takes."""
        rows = [(each.dtype.itemsize, self.sides[self._side_of(each)]) for each in self.fold.factors]
        rows += [(1, rows[0][1])] if self._has_mask else []
        return sum(itemsize * self.depth * side.stride for itemsize, side in rows)

    def add_outputs(self, outputs: Sequence[Output]) -> None:
        """Add a phase with a block for each tile, which stores elements of outputs."""
        grid = (*self.fold.sizes(self.fold.batch), *[each.tiles for each in self.sides])

        def body(index: Index) -> Sequence[Loop | Store]:
            *batch, row, column = index
            tile = self._new_tile(tuple(batch), (row, column))
            thread, lines = self._new_thread()
            folding, results = self._accumulate(tile, lines)
            thread.body += folding
            for line, held in results:
                thread.body += self._store(tile, line, held, outputs)
            return [thread]

        self.loops.blocks(grid, body)

    # --- indices -----------------------------------------------------------------------------------------

    def _index(self, batch: Index, parts: dict[int, Affine]) -> Index:
        """The index in the result: 0 along the axes that nothing says anything of."""
        known = {**dict(zip(self.fold.batch, batch, strict=True)), **parts}
        return tuple(known.get(axis, Affine()) for axis in range(len(self.fold.shape)))

    def _split(self, side: TileSide, number: Affine, together: int = 1, behind: int = 0) -> dict[int, Affine]:
        """The index along the axes of a side, of the line so many behind the first of a number of so many together."""
        if len(side.axes) == 1:
            return {side.axes[0]: number * together + behind}
        parts = split_neighbours(number.value(self.values), self.fold.sizes(side.axes), together, behind)
        return dict(zip(side.axes, parts, strict=True))

    @cached_property
    def _neighbours(self) -> list[_Neighbours]:
        """The elements of each factor that lie beside each other."""
        fold = self.fold
        names = [index_value(self.values, "axis") for _ in (*fold.shape, *fold.terms)]
        index, rank = [Affine(((name, 1),)) for name in names], len(fold.shape)
        rows = []
        for factor in fold.factors:
            exists, read = factor.locate(tuple(index[:rank]), tuple(index[rank:]))
            value = read(exists)
            axis = nearest_of(value, names)
            last = self.sides[self._side_of(factor)].axes[-1]
            size = fold.terms[axis - rank] if axis >= rank else fold.shape[last] if axis == last else 1
            together = [
                count
                for count in (4, 2)
                if size % count == 0 == self.depth % count and lie_together(value, exists, names[axis], count)
            ]
            rows.append(_Neighbours(axis - rank if axis >= rank else None, max(together, default=1)))
        terms = [each.term for each in rows if each.term is not None]
        return [each if each.term in (None, *terms[:1]) else replace(each, together=1) for each in rows]

    @cached_property
    def _term_order(self) -> Ints:
        """The axes of terms, last the one along which neighbours of the first factor lie side by side."""
        axis = next((each.term for each in self._neighbours if each.term is not None), None)
        return tuple(sorted(range(len(self.fold.terms)), key=lambda each: each == axis))

    def _term(self, number: Value, together: int = 1, behind: int = 0) -> Index:
        """The index of the term so many behind the first one of those of a number, of so many together."""
        order, terms = self._term_order, self.fold.terms
        if not order:
            return ()
        sizes = [terms[k] for k in order]
        return tuple(
            part
            for _, part in sorted(zip(order, split_neighbours(number, sizes, together, behind), strict=True))
        )

    # --- tiles -------------------------------------------------------------------------------------------

    def _side_of(self, factor: Factor) -> int:
        """The number of a factor's side: 0 where a thread's lines are rows."""
        return int(factor.side != self.sides[0].number)

    def _new_tile(self, batch: Index, numbers: tuple[Affine, Affine]) -> _Tile:
        factors = self.fold.factors
        sides = [self.sides[self._side_of(each)] for each in factors]
        arrays = [
            self.loops.new_shared(each.dtype, self.depth * side.stride)
            for each, side in zip(factors, sides, strict=True)
        ]
        if not self._has_mask:
            return _Tile(batch, numbers, arrays)
        mask = self.loops.new_shared(BOOL, self.depth // self._masked_terms * sides[0].stride)
        return _Tile(batch, numbers, arrays, mask, self.loops.new_shared(np.dtype(np.int32), 1))

    @cached_property
    def _masked_terms(self) -> int:
        """Neighbouring terms that exist all or none of a line of the first factor."""
        near = self._neighbours[0]
        return near.together if near.term is not None else 1

    @cached_property
    def _has_mask(self) -> bool:
        """Whether elements of the first factor may not exist, of which the others times infinity would count."""
        index = tuple(Affine(((index_value(self.values, "axis"), 1),)) for _ in self.fold.shape)
        term = tuple(Affine(((index_value(self.values, "axis"), 1),)) for _ in self.fold.terms)
        exists, _ = self.fold.factors[0].locate(index, term)
        return exists is not None and self.fold.factors[0].dtype.kind in "fc"

    def _new_thread(self) -> tuple[Loop, tuple[list[Affine], list[Affine]]]:
        """A loop of all threads in lockstep, and the lines in a tile that a thread has."""
        index, count = index_value(self.values, "thread"), self.target.block_threads
        thread = Loop(index, count, Runs.LOCKSTEP, is_of_tile=True)
        rows, columns = self.sides
        own = (index / self.threads, index.rem(self.threads))
        return thread, (rows.lines_of(own[0], self.threads), columns.lines_of(own[1], self.threads))

    def _accumulate(
        self, tile: _Tile, lines: tuple[list[Affine], list[Affine]]
    ) -> tuple[list[Loop], list[tuple[tuple[Affine, Affine], list[Value]]]]:
        """Loops over all terms, some at a time, and what they leave for each row and column of a thread."""
        depth, fold = self.depth, self.fold
        chunk = Loop(index_value(self.values, "chunk"), -(-self.count // depth))
        extent: int | Value = depth
        if self.count % depth and not fold.ignores_zeros:
            extent = self._part_of(Affine(((chunk.index, 1),)), depth, self.count)
        chunk.body.append(self._fill(tile, chunk.index))
        pairs = [(row, column) for row in lines[0] for column in lines[1]]
        names = [[new_carry(self.values, each.dtype) for each in fold.starts] for _ in pairs]
        held = [[argument for argument, _ in each] for each in names]
        loops = [chunk]
        if tile.infinite is None:
            held = self._add_terms(chunk, tile, pairs, extent, held)
        else:
            none = Store(tile.infinite.buffer, Affine(), self.values.constant(0, np.int32))
            loops.insert(0, self.loops.share(1, lambda index: [none]))
            loops[0].is_of_tile = True
            count, whole = tile.infinite.load((Affine(),)), self.values.constant(depth, INT64)
            held = self._add_terms(chunk, replace(tile, mask=None), pairs, count.eq(0).select(whole, 0), held)
            held = self._add_terms(chunk, tile, pairs, count.ne(0).select(whole, 0), held)
        for each, following in zip(names, held, strict=True):
            rows = zip(fold.starts, each, following, strict=True)
            chunk.carries += [Carry(start, own, new, result) for start, (own, result), new in rows]
        return loops, [
            (line, [result for _, result in each]) for line, each in zip(pairs, names, strict=True)
        ]

    def _add_terms(
        self,
        chunk: Loop,
        tile: _Tile,
        lines: Sequence[tuple[Affine, Affine]],
        extent: int | Value,
        held: Sequence[Sequence[Value]],
    ) -> list[list[Value]]:
        """Add a loop over some terms to the one over chunks; what it makes of what a thread holds for its lines."""
        term = Loop(index_value(self.values, "term"), extent, is_of_tile=True)
        chunk.body.append(term)
        number = Affine(((chunk.index, self.depth), (term.index, 1)))
        results = []
        for line, before in zip(lines, held, strict=True):
            names = [new_carry(self.values, each.dtype) for each in before]
            following = self._step(tile, line, (term.index, number), [argument for argument, _ in names])
            rows = zip(before, names, following, strict=True)
            term.carries += [Carry(start, own, new, result) for start, (own, result), new in rows]
            results.append([result for _, result in names])
        return results

    def _part_of(self, number: Affine, size: int, count: int) -> Value:
        """The size of a part of a number, where `count` is cut into parts of a size, and the last one is shorter."""
        rest = (number * -size + count).value(self.values)
        return rest.lt(size).select(rest, size)

    def _step(
        self, tile: _Tile, line: tuple[Affine, Affine], term: tuple[Value, Affine], held: Sequence[Value]
    ) -> Sequence[Value]:
        """The values that a result holds after one more term; `term` is its number in the chunk, and among all."""

        def load(array: Scratch, side: int) -> Value:
            return array.load((Affine(((term[0], self.sides[side].stride),)) + line[side],))

        pairs = zip(self.fold.factors, tile.factors, strict=True)
        elements = [load(array, self._side_of(factor)) for factor, array in pairs]
        index, number = self._result_index(tile, line), term[1].value(self.values)
        new = self.fold.step(index, self._term(number), held, elements)
        if tile.mask is None:
            return new
        side = self._side_of(self.fold.factors[0])
        together = term[0] / self._masked_terms if self._masked_terms > 1 else term[0]
        exists = tile.mask.load((Affine(((together, self.sides[side].stride),)) + line[side],))
        return [select_if(exists, after, before) for after, before in zip(new, held, strict=True)]

    def _numbers(self, tile: _Tile, line: tuple[Affine, Affine]) -> list[Affine]:
        """The numbers of a row and a column of the result."""
        rows = zip(self.sides, tile.numbers, line, strict=True)
        return [number * side.size + own for side, number, own in rows]

    def _result_index(self, tile: _Tile, line: tuple[Affine, Affine]) -> Index:
        parts: dict[int, Affine] = {}
        for side, number in zip(self.sides, self._numbers(tile, line), strict=True):
            parts |= self._split(side, number)
        return self._index(tile.batch, parts)

    def _fill(self, tile: _Tile, chunk: Value) -> Loop:
        """A loop of the block that reads what all factors of a tile need for some terms."""
        rows = list(zip(self.fold.factors, self._neighbours, strict=True))
        sizes = [self.sides[self._side_of(each)].size * self.depth // near.together for each, near in rows]
        loop = Loop(index_value(self.values, "element"), min(sizes), Runs.BLOCK, is_of_tile=True)
        others: list[Value] = []
        for number, size in enumerate(sizes):
            for first in range(0, size, min(sizes)):
                stores = self._fill_elements(tile, number, loop.index + first, chunk)
                loop.body += stores
                others += [each.value for each in stores] if number else []
        if tile.infinite is not None:
            is_one = reduce(or_, map(_is_infinite, others))
            one = self.values.constant(1, np.int32)
            note = Store(tile.infinite.buffer, Affine(), one, Atomic.OR)
            loop.body += self.loops.only_if(is_one, [note])
        return loop

    def _fill_elements(self, tile: _Tile, number: int, element: Value, chunk: Value) -> list[Store]:
        """The stores of neighbouring elements of the factor of a number, and of whether they exist."""
        factor, near = self.fold.factors[number], self._neighbours[number]
        k = self._side_of(factor)
        side = self.sides[k]
        # Neighbouring threads read neighbours.
        along_terms, together = near.term is not None, near.together
        counts = [side.size, self.depth]
        counts[along_terms] //= together
        line, term = (
            (element / counts[1], element.rem(counts[1]))
            if along_terms
            else (element.rem(counts[0]), element / counts[0])
        )
        own = tile.numbers[k] * counts[0] + Affine(((line, 1),))
        chunk_term = chunk * counts[1] + term
        stores: list[Store] = []
        for behind in range(together):
            steps = (1, together, 0, behind) if along_terms else (together, 1, behind, 0)
            at = Affine(((term, side.stride * steps[1]), (line, steps[0])), side.stride * steps[3] + steps[2])
            value, exists = self._element(factor, side, tile.batch, own, chunk_term, steps)
            stores.append(tile.factors[number].store((at,), value))
            if tile.mask is not None and number == 0 and behind % self._masked_terms == 0:
                at = Affine(((term, side.stride), (line, steps[0])), steps[2])
                does = self.values.constant(True, BOOL) if exists is None else exists
                stores.append(tile.mask.store((at,), does))
        return stores

    def _element(
        self, factor: Factor, side: TileSide, batch: Index, line: Affine, term: Value, steps: Ints
    ) -> tuple[Value, Value | None]:
        """An element of a factor, 0 where it does not exist, and whether it does.

        steps: how many lines, and terms, are together, and which of them it is.
        """
        lines, terms, *behind = steps
        index = self._index(batch, self._split(side, line, lines, behind[0]))
        exists, read = factor.locate(index, self._term(term, terms, behind[1]))
        number = line.value(self.values)
        conditions = [number.lt(side.lines // lines)] if side.lines % side.size else []
        conditions += [term.lt(self.count // terms)] if self.count % self.depth else []
        conditions += [exists] if exists is not None else []
        predicate = None
        for condition in conditions:
            predicate = condition if predicate is None else predicate & condition
        value, zero = read(predicate), self.values.constant(0, register_dtype(factor.dtype))
        return (value if predicate is None else predicate.select(value, zero)), predicate

    # --- what becomes of results ---------------------------------------------------------------------------

    def _is_inside(self, tile: _Tile, line: tuple[Affine, Affine], sides: Sequence[int]) -> Value | None:
        """Whether a row and a column exist, of those sides whose tiles may stick out of the result."""
        condition = None
        for k, number in enumerate(self._numbers(tile, line)):
            side = self.sides[k]
            if k in sides and side.lines % side.size:
                inside = number.value(self.values).lt(side.lines)
                condition = inside if condition is None else condition & inside
        return condition

    def _store(
        self, tile: _Tile, line: tuple[Affine, Affine], held: Sequence[Value], outputs: Sequence[Output]
    ) -> Sequence[Loop | Store]:
        """Store a result, where a tile does not stick out of the array."""
        steps, offset = strides(self.fold.shape), Affine()
        for axis, at in zip(self.fold.batch, tile.batch, strict=True):
            offset += at * steps[axis]
        for side, number in zip(self.sides, self._numbers(tile, line), strict=True):
            if side.axes == tuple(range(side.axes[0], side.axes[-1] + 1)):
                offset += number * steps[side.axes[-1]]
            else:
                for axis, at in self._split(side, number).items():
                    offset += at * steps[axis]
        index, results = self._result_index(tile, line), self.fold.finish(held)
        stores = [Store(each.array.buffer, offset, each.element(index, results)) for each in outputs]
        condition = self._is_inside(tile, line, (0, 1))
        return stores if condition is None else self.loops.only_if(condition, stores)


class ReducedTiles:
    """Tiles of which only a reduction along their columns is stored: a block has all columns of some rows, or a part.

    Each thread reduces its columns of all tiles of the part, then a thread of each row those of 16 threads; parts are
    reduced by a phase of their own.
    """

    def __init__(
        self,
        tiles: PairTiles,
        reduction: SharedReduction,
        elements: Callable[[Index, Sequence[Value], Value | None], Sequence[Value]],
    ) -> None:
        """elements: of an index that exists where a predicate holds, and what the fold has there, what is reduced."""
        self.tiles, self.loops, self.values = tiles, tiles.loops, tiles.values
        self.reduction, self.combiner, self.elements = reduction, reduction.combiner, elements
        fold, target = tiles.fold, tiles.target
        self.rows, self.columns = tiles.sides
        self.grid = (*fold.sizes(fold.batch), self.rows.tiles)
        parts = min(self.columns.tiles, max(1, target.busy_blocks // prod(self.grid)))
        #: Tiles of a part, and parts.
        self.length = -(-self.columns.tiles // parts)
        self.parts = -(-self.columns.tiles // self.length)
        #: Axes of rows that are reduced too.
        self.extra = tuple(axis for axis in self.rows.axes if axis in self.reduction.dimensions)

    def add_phases(self, results: Sequence[Scratch]) -> None:
        """Add a phase with a block for each part, and one that reduces parts if there are several."""
        counts = (*self.tiles.fold.sizes(self.extra), self.parts)
        is_one = prod(counts) == 1
        shape = (*self.reduction.rows, *counts)
        arrays = results if is_one else [self.loops.new(dtype, shape) for dtype in self.combiner.held]
        self.loops.blocks((*self.grid, self.parts), lambda index: self._body(index, arrays, is_one))
        if not is_one:
            is_long = prod(counts) >= self.tiles.target.min_block_terms
            self.reduction.of_partial_results(Runs.BLOCK if is_long else Runs.WARP, arrays, counts, results)

    def _body(self, index: Index, arrays: Sequence[Scratch], is_one: bool) -> Sequence[Loop | Store]:
        *batch, row, part = index
        tiles, threads = self.tiles, self.tiles.threads
        thread, lines = tiles._new_thread()
        extent: int | Value = self.length
        if self.parts * self.length != self.columns.tiles:
            extent = tiles._part_of(part, self.length, self.columns.tiles)
        step = Loop(index_value(self.values, "tile"), extent)
        tile = tiles._new_tile(tuple(batch), (row, part * self.length + Affine(((step.index, 1),))))
        folding, results = tiles._accumulate(tile, lines)
        step.body += folding
        starts = self.combiner.starts(self.values, self.reduction.initial)
        totals = [self._reduce_row(step, starts, tile, own, results) for own in lines[0]]
        thread.body.append(step)
        stride = threads + 1
        partial = [self.loops.new_shared(each.dtype, self.rows.size * stride) for each in starts]
        column = Affine(((thread.index.rem(threads), 1),))
        for own, held in zip(lines[0], totals, strict=True):
            thread.body += store_all(partial, (own * stride + column,), held)
        return [thread, self._combine(tile, partial, stride, (*index,), arrays, is_one)]

    def _reduce_row(
        self,
        step: Loop,
        starts: Sequence[Value],
        tile: _Tile,
        row: Affine,
        results: Sequence[tuple[tuple[Affine, Affine], list[Value]]],
    ) -> Sequence[Value]:
        """Let the loop over tiles carry what the columns of a row give; what it leaves."""
        tiles = self.tiles
        names = [new_carry(self.values, each.dtype) for each in starts]
        held: Sequence[Value] = [argument for argument, _ in names]
        for line, folded in results:
            if line[0] is not row:
                continue
            index, results_there = tiles._result_index(tile, line), tiles.fold.finish(folded)
            elements = self.elements(index, results_there, tiles._is_inside(tile, line, (0, 1)))
            new = self.combiner.next(held, elements)
            inside = tiles._is_inside(tile, line, (1,))
            if inside is not None:
                new = tuple([inside.select(*pair) for pair in zip(new, held, strict=True)])
            held = new
        for start, (argument, result), following in zip(starts, names, held, strict=True):
            step.carries.append(Carry(start, argument, following, result))
        return [result for _, result in names]

    def _combine(
        self,
        tile: _Tile,
        partial: Sequence[Scratch],
        stride: int,
        index: Index,
        arrays: Sequence[Scratch],
        is_one: bool,
    ) -> Loop:
        """A loop of the block over the rows of a tile, each of which combines what its threads have."""
        loop = Loop(index_value(self.values, "row"), self.rows.size, Runs.BLOCK, is_of_tile=True)
        line = Affine(((loop.index, 1),))

        def load(column: Affine) -> list[Value]:
            return [each.load((line * stride + column,)) for each in partial]

        inner, totals = self.loops.carry(
            self.tiles.threads - 1,
            load(Affine()),
            lambda number, held: self.combiner.combine(held, load(Affine(((number, 1),), 1))),
        )
        inner.is_of_tile = True
        number = tile.numbers[0] * self.rows.size + line
        whole = self.tiles._index(tile.batch, self.tiles._split(self.rows, number))
        own = tuple(whole[axis] for axis in self.reduction.remaining)
        at = own if is_one else (*own, *(whole[axis] for axis in self.extra), index[-1])
        finished = self.combiner.finish(self.reduction.initial, totals) if is_one else totals
        parts: list[Loop | Store] = [inner, *store_all(arrays, at, finished)]
        if self.rows.lines % self.rows.size:
            inside = number.value(self.values).lt(self.rows.lines)
            loop.body += self.loops.only_if(inside, parts)
        else:
            loop.body += parts
        return loop


def _is_infinite(value: Value) -> Value:
    """Whether a number is infinite or NaN."""
    if value.dtype.kind == "c":
        return _is_infinite(value.real()) | _is_infinite(value.imag())
    return (value - value).ne(0)
