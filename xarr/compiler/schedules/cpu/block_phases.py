"""Reductions of which few results remain: blocks of the reduced dimensions run in parallel."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from dataclasses import dataclass
from math import prod

import numpy as np

from xarr.compiler.loop_ir.elements import Source
from xarr.compiler.loop_ir.loops import Affine, Buffer, Loop, Store, index_value, lanes_if, load, nest_loops
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.cpu.loop_nest import Loops
from xarr.ir.graph import Node


@dataclass(frozen=True)
class _Partial:
    """A reduction and what holds its partial results."""

    node: Node
    buffers: tuple[Buffer, ...]


class BlockPhases(Loops):
    """Two phases a stage: blocks of the reduced dimensions leave partial results, which are then combined."""

    def phases(self) -> Iterator[Loop]:
        nest = self.nest
        for stage in range(1, max(nest.stage_of.values()) + 1):
            reductions = [node for node in nest.reductions if nest.stage_of[node] == stage]
            rows, partials = yield from self._blocks(stage, reductions)
            yield self._combine(stage, rows, partials)
        last = self.inner_outputs(stage + 1)
        if last:
            loops = [self.loop(run) for run in nest.runs]
            self.put(loops[-1], last)
            yield nest_loops(loops)[0]

    def _blocks(
        self, stage: int, reductions: list[Node]
    ) -> Generator[Loop, None, tuple[int, list[_Partial]]]:
        """Gives how many rows a block has, too."""
        nest = self.nest
        first = nest.reduced_runs[0]
        rest = prod(run.extent for run in nest.runs) // first.extent
        target = nest.target
        rows = max(target.min_block_rows if nest.column else 1, target.block_elements // rest)
        blocks = -(-first.extent // rows)
        around = Loop(index_value(self.values, "block"), blocks)
        size = prod(run.extent for run in nest.kept_runs)
        partials = []
        for node in reductions:
            held = nest.combinations[node].held[: 1 if nest.is_searched(node) else None]
            buffers = [self._scratch("partial", dtype, blocks * size) for dtype in held]
            partials.append(_Partial(node, tuple(buffers)))
        is_wide = nest.column and nest.kept_runs[-1].extent >= target.min_vector_columns
        by_rows = is_wide and size <= target.local_bytes // 16
        fill = self._fill_rows if by_rows else self._fill
        fill(around, rows, stage, partials)
        yield around
        return rows, partials

    def _scratch(self, name: str, dtype: DType, size: int) -> Buffer:
        buffer = Buffer(f"{name}{len(self.nest.scratch)}", dtype, size, "scratch")
        self.nest.scratch.append(buffer)
        return buffer

    def _fill(self, around: Loop, rows: int, stage: int, partials: list[_Partial]) -> None:
        """For each kept index the reduced dimensions of a block, accumulated in registers."""
        kept = self._kept_loops(around)
        loops = self._block_loops(around.index, rows)
        kept.body.append(nest_loops(loops)[0])
        self.put(loops[-1], self.inner_outputs(stage))
        elements = self.elements(loops[-1])
        totals = self.accumulate(loops, [self.accumulator(elements, each.node) for each in partials])
        for each, results in zip(partials, totals, strict=True):
            for buffer, result in zip(each.buffers, results, strict=True):
                kept.body.append(Store(buffer, self._partial_offset(around), result))

    def _fill_rows(self, around: Loop, rows: int, stage: int, partials: list[_Partial]) -> None:
        """Row after row of a block, as they lie in memory, accumulated in a row of partial results."""
        first = self._kept_loops(around)
        for each in partials:
            starts = self.nest.combinations[each.node].starts(self.values, ())
            for buffer, start in zip(each.buffers, starts, strict=True):
                first.body.append(Store(buffer, self._partial_offset(around), start))
        loops = self._block_loops(around.index, rows)
        around.body.append(nest_loops(loops)[0])
        innermost = self._kept_loops(loops[-1])
        self.put(innermost, self.inner_outputs(stage))
        elements = self.elements(innermost)
        for each in partials:
            combination = self.nest.combinations[each.node]
            offset = self._partial_offset(around)
            terms = [self.at(elements, array) for array in combination.arrays]
            held = [load(self.values, buffer, offset) for buffer in each.buffers]
            for buffer, value in zip(each.buffers, combination.next(held, terms), strict=True):
                innermost.body.append(Store(buffer, offset, value))

    def _kept_loops(self, around: Loop) -> Loop:
        """Loops over the kept dimensions inside `around`; the innermost."""
        loops = [self.loop(run) for run in self.nest.kept_runs]
        around.body.extend([nest_loops(loops)[0]] if loops else [])
        return loops[-1] if loops else around

    def _block_loops(self, block: Value, rows: int) -> list[Loop]:
        """Loops over the reduced dimensions of one block, `rows` of the first of them."""
        first, *others = self.nest.reduced_runs
        start = Affine(((block, rows),))
        left = start.value(self.values) * -1 + first.extent
        loops = [self.loop(first, left.lt(rows).select(left, rows))]
        self.index[first.axes[-1]] = self.index[first.axes[-1]] + start
        return loops + [self.loop(run) for run in others]

    def _partial_offset(self, around: Loop) -> Affine:
        size = prod(run.extent for run in self.nest.kept_runs)
        return Affine(((around.index, size),)) + self._kept_offset()

    def _combine(self, stage: int, rows: int, partials: list[_Partial]) -> Loop:
        nest = self.nest
        size = prod(run.extent for run in nest.kept_runs)
        once = Loop(index_value(self.values, "once"), 1)
        kept = self._kept_loops(once)
        count = partials[0].buffers[0].size // size
        runs = lanes_if(not nest.column and size == 1)
        blocks = Loop(index_value(self.values, "block"), count, runs)
        kept.body.append(blocks)
        for each in partials:
            offset = self._partial_offset(blocks)
            terms = [load(self.values, buffer, offset) for buffer in each.buffers]
            combination = nest.combinations[each.node]
            if nest.is_searched(each.node):
                terms.append(blocks.index.convert(combination.held[1]))
            blocks.accumulators.append(combination.accumulator_of_terms(terms))
        elements = self.elements(kept)
        totals: dict[Node, Buffer] = {}
        for each, accumulator in zip(partials, blocks.accumulators, strict=True):
            results = accumulator.results
            if nest.is_searched(each.node):
                results = (results[0], self._search_index(kept, rows, each.node, *results))
                elements = self.elements(kept)
            self.finish(elements, each.node, results)
            for part in nest.parts(each.node):
                total = elements.at(part, self.own_index(part))
                totals[part] = self._scratch("total", total.dtype, size)
                kept.body.append(Store(totals[part], self._kept_offset(), total))
        self.put(kept, self.outer_outputs(stage))
        for part, buffer in totals.items():
            self.sources[part] = self._total(buffer)
        return once

    def _search_index(self, kept: Loop, rows: int, node: Node, extremum: Value, block: Value) -> Value:
        """The least index of an extremum, in the first block that has it."""
        nothing = block.eq(np.iinfo(block.dtype).max)  # where all elements are the neutral one
        (loop,) = self._block_loops(nothing.select(0, block).convert(INT64), rows)
        kept.body.append(loop)
        return self.search(loop, node, extremum)

    def _total(self, buffer: Buffer) -> Source:
        return lambda index, predicate: load(self.values, buffer, self._kept_offset())

    def _kept_offset(self) -> Affine:
        offset = Affine()
        for run in self.nest.kept_runs:
            offset = offset * run.extent + self.index[run.axes[-1]]
        return offset
