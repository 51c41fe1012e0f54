"""Running totals: a thread for each short row, a block for each long one or for some columns, or for parts of these.

Of columns, whose neighbours in memory are of other rows, a block goes through tiles: a thread has some terms of one in
registers, which come one after the other, and tells their total to the threads that have the terms behind them.

Where there are few, they are cut into parts, in three phases: the totals of all parts, the running totals of these, and
those within each part, which begin with what comes before it.  They read each element twice.  A scan that looks back at
the parts before would read it once, but what it finds there depends on which blocks are done: sums of floats would have
other bits in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from math import prod
from operator import and_

from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Carry,
    Loop,
    Prefix,
    Runs,
    Store,
    index_value,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import DType, Value, in_order
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.serial import reductions
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.dtypes import COMPLEX, accumulator_dtype
from xarr.ir import ops
from xarr.ir.computations import commutes, monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints, replace_at


def running_totals(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The phases of running totals; of other windows those of the serial schedule.

    Only by computations that need no order, as from the end of a row elements meet in the other one, and not of complex
    numbers, the signs of whose zeros tell it.  Narrow floats are added up in float32, as NumPy does it.
    """
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.ReduceWindow)
    scan, is_monoid = scan_axis(node), monoids(node.op.computation) is not None
    is_narrow = accumulator_dtype(node.dtype) != node.dtype
    if (
        scan is None
        or node.dtype in COMPLEX
        or not (is_monoid or (commutes(node.op.computation) and not is_narrow))
    ):
        return reductions.running_totals(loops, node)
    rows, target = _Rows(loops, node, *scan), loops.target
    count, size = prod(rows.others), rows.size
    parts = min(target.busy_blocks // max(count, 1), size // target.part_terms)
    if size < target.min_warp_terms or 0 in node.shape:
        rows.by_threads()
    elif rows.inner >= target.min_columns:
        _RowsAcross(rows).add_phases()
    elif parts > 1 and is_monoid:
        rows.in_parts(parts)
    else:
        rows.by_blocks()
    return sources_of(rows.results)


class _Rows:
    """Rows along an axis, from whose first element, or last, totals run to the other end."""

    def __init__(self, loops: GridLoops, node: Node, axis: int, reverse: bool) -> None:
        self.loops, self.node, self.axis, self.reverse = loops, node, axis, reverse
        self.array, self.initial = node.operands
        self.size = node.shape[axis]
        self.others: Ints = replace_at(node.shape, axis)
        #: How many rows lie side by side, so that neighbouring elements are of different ones.
        self.inner = prod(node.shape[axis + 1 :])
        #: The type of totals, and the operation that combines them if it is one.
        self.held: DType = accumulator_dtype(node.dtype)
        self.monoid = monoids(node.op.expect(ops.ReduceWindow).computation)
        self.results = loops.results_of(node)

    def by_threads(self) -> None:
        """One phase: a thread goes through a row."""

        def body(own: Index) -> Sequence[Loop | Store]:
            totals: list[Value] = []

            def step(at: Value, held: Sequence[Value]) -> Sequence[Value]:
                totals.append(self.combine(held[0], self.element(own, Affine(((at, 1),)))))
                return totals

            loop, _ = self.loops.carry(self.size, [self.first()], step)
            loop.body += self.store(own, Affine(((loop.index, 1),)), totals[0])
            return [loop]

        self.loops.phase(self.others, body)

    def by_blocks(self) -> None:
        """One phase: a block for each row."""

        def body(own: Index) -> Sequence[Loop | Store]:
            def term(at: Affine) -> Value:
                return self.element(own, at)

            return [self.run(self.size, self.first(), term, lambda at, total: self.store(own, at, total))]

        self.loops.blocks(self.others, body)

    def in_parts(self, parts: int) -> None:
        """Three phases: the totals of parts of rows, the running totals of these, and those within parts."""
        assert self.monoid is not None
        shape, length = (*self.others, parts), -(-self.size // parts)
        values = self.loops.values
        totals, ends = (self.loops.new(self.held, shape) for _ in range(2))
        neutral = self.neutral()

        def position(part: Affine, at: Affine) -> Value:
            return (part * length + at).value(values)

        def term(own: Index, part: Affine, at: Affine) -> Value:
            if self.size % length == 0:
                return self.element(own, part * length + at)
            here = position(part, at)
            exists = here.lt(self.size)
            inside = Affine(((exists.select(here, self.size - 1), 1),))
            return exists.select(self.element(own, inside), neutral)

        def add(index: Index) -> Sequence[Loop | Store]:
            *own, part = index
            loop = Loop(index_value(values, "term"), length, Runs.BLOCK)
            each = term(tuple(own), part, Affine(((loop.index, 1),)))
            (left, right), result = self._names(), values.make("result", (), self.held, "r", unique=True)
            combined = (self.combine(left, right),)
            loop.accumulators.append(Accumulator((neutral,), (each,), (left,), (right,), combined, (result,)))
            return [loop, totals.store(index, result)]

        def run_over_parts(own: Index) -> Sequence[Loop | Store]:
            def store(part: Affine, total: Value) -> Sequence[Store]:
                return [ends.store((*own, part), total)]

            return [self.run(parts, self.first(), lambda part: totals.load((*own, part)), store)]

        def run_within(index: Index) -> Sequence[Loop | Store]:
            *own, part = index
            number = part.value(values)
            before = ends.load((*own, part + -1), number.gt(0))
            first = number.gt(0).select(before, self.first())

            def store(at: Affine, total: Value) -> Sequence[Loop | Store]:
                if self.size % length == 0:
                    return self.store(tuple(own), part * length + at, total)
                here = position(part, at)
                return self.loops.only_if(
                    here.lt(self.size), self.store(tuple(own), Affine(((here, 1),)), total)
                )

            return [self.run(length, first, lambda at: term(tuple(own), part, at), store)]

        self.loops.blocks(shape, add)
        self.loops.blocks(self.others, run_over_parts)
        self.loops.blocks(shape, run_within)

    # --- parts of bodies ---------------------------------------------------------------------------------

    def run(
        self,
        count: int,
        initial: Value,
        term: Callable[[Affine], Value],
        store: Callable[[Affine, Value], Sequence[Loop | Store]],
    ) -> Loop:
        """A loop of a block that goes through so many terms, and what is stored of the total up to each."""
        loop = Loop(index_value(self.loops.values, "term"), count, Runs.BLOCK)
        at = Affine(((loop.index, 1),))
        left, right = self._names()
        running = self.loops.values.make("result", (), self.held, "running", unique=True)
        loop.prefixes.append(Prefix(initial, term(at), left, right, self.combine(left, right), running))
        loop.body += store(at, running)
        return loop

    def _names(self) -> tuple[Value, Value]:
        """Names of two totals."""
        make = self.loops.values.make
        return make("argument", (), self.held, "a", unique=True), make(
            "argument", (), self.held, "b", unique=True
        )

    def combine(self, left: Value, right: Value) -> Value:
        """The total of two neighbouring parts."""
        if self.monoid is not None:
            return self.loops.apply(self.monoid[0](), self.held, left, right)
        assert isinstance(self.node.op, ops.ReduceWindow)
        (total,) = compute_scalars(self.node.op.computation, (left, right), self.loops.values)
        return total

    def neutral(self) -> Value:
        """A total that changes no other one."""
        assert self.monoid is not None
        return self.loops.values.constant(self.monoid[0].identity(self.held), self.held)

    def first(self) -> Value:
        """The initial value as a total."""
        return self.loops.convert(self.loops.at(self.initial, ()), self.node.dtype, self.held)

    def _index(self, own: Index, at: Affine) -> Index:
        """The index of an element, of those of its row and in the order of totals."""
        if self.reverse:
            at = at * -1 + (self.size - 1)
        return (*own[: self.axis], at, *own[self.axis :])

    def element(self, own: Index, at: Affine) -> Value:
        return self.loops.convert(self.loops.at(self.array, self._index(own, at)), self.node.dtype, self.held)

    def store(self, own: Index, at: Affine, total: Value) -> Sequence[Store]:
        results: Sequence[Scratch] = self.results
        return store_all(
            results, self._index(own, at), [self.loops.convert(total, self.held, self.node.dtype)]
        )


class _RowsAcross:
    """Rows that lie side by side, of which a block has some: its threads have some terms of each, a tile at a time."""

    def __init__(self, rows: _Rows) -> None:
        self.rows, self.loops, self.values = rows, rows.loops, rows.loops.values
        target = rows.loops.target
        self.outer, self.inner = rows.node.shape[: rows.axis], rows.node.shape[rows.axis + 1 :]
        #: Columns of a block, threads that share one, and the terms of a thread in a tile.
        self.width = min(target.max_columns, 1 << (rows.inner - 1).bit_length())
        self.threads = target.block_threads // self.width
        self.terms = self._terms()
        self.tiles = -(-rows.inner // self.width)

    def _terms(self) -> int:
        """Terms of a thread: no more than there are, nor than its registers hold with what each is computed of."""
        rows, target, terms = self.rows, self.loops.target, 1
        index = [Affine(((index_value(self.values, "axis"), 1),)) for _ in rows.node.shape]
        values = in_order(rows.element(tuple(index[1:]), index[0]))
        most = min(target.column_terms, target.max_neighbours_values // len(values))
        while 2 * terms <= most and terms * self.threads < rows.size:
            terms *= 2
        return terms

    def add_phases(self) -> None:
        """One phase, or three where there are too few columns: parts of them, as of other rows."""
        rows, target = self.rows, self.loops.target
        parts = min(
            target.busy_blocks // (prod(self.outer) * self.tiles), rows.size // target.min_column_part
        )
        if parts <= 1 or rows.monoid is None:
            grid = (*self.outer, self.tiles)
            self.loops.blocks(
                grid, lambda index: self._run(index, Affine(), rows.size, lambda _: rows.first())
            )
            return
        length = -(-rows.size // parts)
        parts = -(-rows.size // length)
        totals, ends = (self.loops.new(rows.held, (parts, *rows.others)) for _ in range(2))

        def add(index: Index) -> Sequence[Loop | Store]:
            part, *own = index

            def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
                at = part * length + Affine(((term, 1),))
                return [rows.combine(held[0], rows.element(tuple(own), at))]

            loop, result = self.loops.carry(self._least(part, length), [rows.neutral()], step)
            return [loop, totals.store(index, result[0])]

        def run_over_parts(own: Index) -> Sequence[Loop | Store]:
            def store(part: Affine, total: Value) -> Sequence[Store]:
                return [ends.store((part, *own), total)]

            return [rows.run(parts, rows.first(), lambda part: totals.load((part, *own)), store)]

        def run_within(index: Index) -> Sequence[Loop | Store]:
            *outer, part, tile = index

            def first(own: Index) -> Value:
                number = part.value(self.values)
                before = ends.load((part + -1, *own), number.gt(0))
                return number.gt(0).select(before, rows.first())

            return self._run((*outer, tile), part, length, first)

        self.loops.phase(totals.shape, add)
        self.loops.blocks(rows.others, run_over_parts)
        self.loops.blocks((*self.outer, parts, self.tiles), run_within)

    def _least(self, part: Affine, length: int) -> int | Value:
        """The terms of a part, of which the last one is shorter where they do not divide a row."""
        if self.rows.size % length == 0:
            return length
        rest = (part * -length + self.rows.size).value(self.values)
        return rest.lt(length).select(rest, length)

    def _run(
        self, index: Index, part: Affine, length: int, first: Callable[[Index], Value]
    ) -> Sequence[Loop | Store]:
        """The totals of a part, of a length, of the columns of a block; `first` says what they begin with."""
        rows, values, count = self.rows, self.values, self.threads * self.terms
        thread = Loop(
            index_value(values, "thread"), self.loops.target.block_threads, Runs.LOCKSTEP, is_of_tile=True
        )
        segment, column = thread.index / self.width, thread.index.rem(self.width)
        own, is_inside = self._own(index, column)
        tile = Loop(index_value(values, "tile"), -(-length // count))
        begin = Affine(((tile.index, count), (segment, self.terms)))
        positions, checks = zip(
            *[self._position(part, length, begin + k) for k in range(self.terms)], strict=True
        )
        totals: list[Value] = []
        for position in positions:
            element = rows.element(own, position)
            totals.append(rows.combine(totals[-1], element) if totals else element)
        # Two parts, since the next ones are stored while some threads read.
        shared = self.loops.new_shared(rows.held, 2 * self.loops.target.block_threads)
        half = Affine(((tile.index.rem(2), self.loops.target.block_threads),))
        carried, result = new_carry(values, rows.held)

        def step(other: Value, held: Sequence[Value]) -> Sequence[Value]:
            total = shared.load((half + Affine(((other, self.width), (column, 1))),))
            return [rows.combine(held[0], total), other.eq(segment).select(held[0], held[1])]

        others, (following, before) = self.loops.carry(self.threads, [carried, carried], step)
        others.is_of_tile = True
        tile.carries.append(Carry(first(own), carried, following, result))
        tile.body += [shared.store((half + Affine(((thread.index, 1),)),), totals[-1]), others]
        for position, check, total in zip(positions, checks, totals, strict=True):
            stores = rows.store(own, position, rows.combine(before, total))
            conditions = [each for each in (check, is_inside) if each is not None]
            tile.body += self.loops.only_if(reduce(and_, conditions), stores) if conditions else stores
        thread.body.append(tile)
        return [thread]

    def _own(self, index: Index, column: Value) -> tuple[Index, Value | None]:
        """The index of a column of a block, and whether there is one, None for always."""
        *outer, tile = index
        number = (tile * self.width + Affine(((column, 1),))).value(self.values)
        is_inside = None
        if self.rows.inner % self.width:
            is_inside = number.lt(self.rows.inner)
            number = is_inside.select(number, self.rows.inner - 1)
        return (*outer, *split_number(number, self.inner)), is_inside

    def _position(self, part: Affine, length: int, at: Affine) -> tuple[Affine, Value | None]:
        """The position in a row of a term of a part, and whether it is one of the part, None for always.

        What is no term is computed of another one, which changes only what comes behind all terms.
        """
        position = part * length + at
        checks = []
        if length % (self.threads * self.terms):
            checks.append(at.value(self.values).lt(length))
        if self.rows.size % length:
            checks.append(position.value(self.values).lt(self.rows.size))
        if not checks:
            return position, None
        exists = reduce(and_, checks)
        inside = exists.select(position.value(self.values), self.rows.size - 1)
        return Affine(((inside, 1),)), exists
