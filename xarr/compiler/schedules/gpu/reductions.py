"""Reductions: who shares the terms of a result, so that all threads are busy and neighbours read neighbours.

* Of rows, whose terms lie side by side, a block has one, or a warp if they are short or many.
* Of columns, whose neighbours are other results, a thread has one: a warp reads 32 neighbours at once.
* Where that leaves threads idle, terms are cut into parts, each with a result of its own, which a second phase reduces.

Other reductions are those of the serial schedule, a thread for each result.  Which thread has which term depends on
shapes alone, and so does the order in which they combine: the bits of a sum are the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Accumulator, Affine, Loop, Runs, Store, index_value
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.serial import reductions
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def reduce(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """One phase that fills the results, or two: parts, and the results of them."""
    assert isinstance(loops, GridLoops)
    reduction = SharedReduction(loops, node)
    target, rows, terms = loops.target, prod(reduction.rows), prod(reduction.terms)
    if reduction.combiner.in_order or terms < target.min_warp_terms:
        return reductions.reduce(loops, node)
    if reduction.has_columns:
        parts = min(target.busy_threads // max(rows, 1), terms // target.min_warp_terms)
        return reduction.of_columns(parts) if parts > 1 else reductions.reduce(loops, node)
    parts = min(target.busy_blocks // max(rows, 1), terms // target.part_terms)
    if parts > 1:
        return reduction.of_parts(parts)
    by_blocks = terms >= target.min_block_terms and rows <= target.max_block_results
    return reduction.of_rows(Runs.BLOCK if by_blocks else Runs.WARP)


class SharedReduction:
    """A reduction, whose terms have numbers in row-major order."""

    def __init__(self, loops: GridLoops, node: Node) -> None:
        self.loops, self.node, self.combiner = loops, node, combination(node)
        shape = self.combiner.arrays[0].shape
        self.dimensions = sorted(node.op.expect(ops.Reduce).dimensions)
        self.remaining = [axis for axis in range(len(shape)) if axis not in self.dimensions]
        self.rows = tuple(shape[axis] for axis in self.remaining)
        self.terms = tuple(shape[axis] for axis in self.dimensions)
        self.initial = [loops.at(each, ()) for each in node.operands[len(self.combiner.arrays) :]]

    @property
    def has_columns(self) -> bool:
        """Whether neighbouring elements belong to different results, so many that a warp reads them at once."""
        inner = [
            size for axis, size in zip(self.remaining, self.rows, strict=True) if axis > max(self.dimensions)
        ]
        return prod(inner) >= self.loops.target.min_warp_terms

    def elements(self, own: Index, term: Affine) -> list[Value]:
        """The elements of the term of a number."""
        number = (term,) if len(self.terms) == 1 else split_number(term.value(self.loops.values), self.terms)
        index = dict(zip((*self.remaining, *self.dimensions), (*own, *number), strict=True))
        at = tuple(index[axis] for axis in range(len(index)))
        return [self.loops.at(array, at) for array in self.combiner.arrays]

    def of_rows(self, word: Runs) -> Sequence[Source]:
        """One phase: a block or a warp for each result."""

        def accumulator(own: Index, term: Affine) -> Accumulator:
            return self.combiner.accumulator(self.elements(own, term), self.initial)

        return self._finish(word, prod(self.terms), accumulator)

    def of_parts(self, parts: int) -> Sequence[Source]:
        """Two phases: a block for each part of a result, and one for each result."""
        length, part_of = self._parts(parts)
        partial_results = [self.loops.new(dtype, (*self.rows, parts)) for dtype in self.combiner.held]

        def body(index: Index) -> Sequence[Loop | Store]:
            *own, part = index
            loop = Loop(index_value(self.loops.values, "term"), length, Runs.BLOCK)
            terms = part_of(tuple(own), part, Affine(((loop.index, 1),)))
            loop.accumulators.append(self.combiner.accumulator_of_terms(terms, self.initial))
            return [loop, *store_all(partial_results, index, loop.accumulators[0].results)]

        self.loops.blocks((*self.rows, parts), body)
        return self.of_partial_results(Runs.BLOCK, partial_results, (parts,))

    def of_partial_results(
        self,
        word: Runs,
        partial_results: Sequence[Scratch],
        parts: Ints,
        results: Sequence[Scratch] = (),
    ) -> Sequence[Source]:
        """One phase: a block or a warp for each result, of arrays that have its partial results behind its index.

        results: where they are stored; in arrays of their own by default.
        """

        def accumulator(own: Index, number: Affine) -> Accumulator:
            part = (number,) if len(parts) == 1 else split_number(number.value(self.loops.values), parts)
            terms = [each.load((*own, *part)) for each in partial_results]
            return self.combiner.accumulator_of_terms(terms, self.initial)

        return self._finish(word, prod(parts), accumulator, results)

    def of_columns(self, parts: int) -> Sequence[Source]:
        """Two phases: a thread for each part of a result, and one for each result."""
        length, part_of = self._parts(parts)
        partial_results = [self.loops.new(dtype, (parts, *self.rows)) for dtype in self.combiner.held]
        results = self.loops.results_of(self.node)

        def body(index: Index) -> Sequence[Loop | Store]:
            part, *own = index

            def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
                return self.combiner.combine(held, part_of(tuple(own), part, Affine(((term, 1),))))

            starts = self.combiner.starts(self.loops.values, self.initial)
            loop, totals = self.loops.carry(length, starts, step)
            return [loop, *store_all(partial_results, index, totals)]

        def finish(own: Index) -> Sequence[Loop | Store]:
            def step(part: Value, held: Sequence[Value]) -> Sequence[Value]:
                at = (Affine(((part, 1),)), *own)
                return self.combiner.combine(held, [each.load(at) for each in partial_results])

            starts = self.combiner.starts(self.loops.values, self.initial)
            loop, totals = self.loops.carry(parts, starts, step)
            return [loop, *store_all(results, own, self.combiner.finish(self.initial, totals))]

        self.loops.phase((parts, *self.rows), body)
        self.loops.phase(self.rows, finish)
        return sources_of(results)

    def _parts(self, parts: int) -> tuple[int, Callable[[Index, Affine, Affine], Sequence[Value]]]:
        """The terms of a part, and those of a result, a part and a number in it: neutral ones behind the last."""
        count = prod(self.terms)
        length = -(-count // parts)

        def terms(own: Index, part: Affine, number: Affine) -> Sequence[Value]:
            term = part * length + number
            if parts * length == count:
                return self.combiner.terms(self.elements(own, term))
            position = term.value(self.loops.values)
            exists = position.lt(count)
            term = Affine(((exists.select(position, count - 1), 1),))
            elements = self.combiner.terms(self.elements(own, term))
            neutral = self.combiner.starts(self.loops.values, self.initial)
            return [exists.select(*pair) for pair in zip(elements, neutral, strict=True)]

        return length, terms

    def _finish(
        self,
        word: Runs,
        count: int,
        accumulator: Callable[[Index, Affine], Accumulator],
        arrays: Sequence[Scratch] = (),
    ) -> Sequence[Source]:
        """A phase in which a block or a warp accumulates so many terms of each result, and finishes it."""
        results = arrays or self.loops.results_of(self.node)

        def body(own: Index) -> Sequence[Loop | Store]:
            loop = Loop(index_value(self.loops.values, "term"), count, word)
            loop.accumulators.append(accumulator(own, Affine(((loop.index, 1),))))
            totals = loop.accumulators[0].results
            return [loop, *store_all(results, own, self.combiner.finish(self.initial, totals))]

        (self.loops.blocks if word is Runs.BLOCK else self.loops.phase)(self.rows, body)
        return sources_of(results)
