"""From a group of fused operations to the loops that run it.

A group's domain has dimensions that are kept and dimensions that reductions take away.  Its loops are

    for each index of the kept dimensions:              in parallel
        for each index of the reduced dimensions:       stage 1: what its reductions need
        for each index of the reduced dimensions:       stage 2, which may use the results of stage 1
        ...

where the innermost dimension of the domain, whose elements are neighbours in memory, is the vector loop.
If few kept indices would leave processors idle, each stage becomes a phase of its own, in which blocks of
the reduced dimensions run in parallel and leave partial results that a short phase combines.

A reduction inside another one is a further loop inside an iteration.  Then the last kept dimension runs in lanes
if it is long enough, each lane with a result of its own, and operands that lanes do not find side by side
are copied first (xarr.compiler.schedules.cpu.packing).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.accesses import Accesses
from xarr.compiler.fusion.iteration_space import Run
from xarr.compiler.fusion.partial_updates import stored_part
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import Elements, Index, Source
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Kernel,
    Loop,
    Store,
    in_threads,
    index_value,
    load,
    nest_loops,
)
from xarr.compiler.loop_ir.scalars import BOOL, Value
from xarr.compiler.schedules.cpu import regions
from xarr.compiler.schedules.cpu.block_phases import BlockPhases
from xarr.compiler.schedules.cpu.loop_nest import Loops, Nest
from xarr.compiler.schedules.cpu.packing import Lane, panel_extent
from xarr.compiler.schedules.cpu.partial_updates import around, in_phases
from xarr.compiler.schedules.cpu.transposed_tiles import Tiles
from xarr.compiler.target import Target
from xarr.dtypes import COMPLEX
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import INSTRUCTION
from xarr.ir.rewriting import find_users


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group of element-wise operations and reductions."""
    accesses = Accesses(fusion)
    runs = accesses.runs()
    nest = Nest(fusion, target, runs, None, accesses.cuts(), accesses.steps())
    is_large = prod(run.extent for run in nest.runs) >= target.min_tiled_elements
    if is_large and not (nest.has_reductions or nest.written_out):
        rows = accesses.transposed_run(runs, target.min_tiled_side)
        nest = nest if rows is None else Nest(fusion, target, runs, rows)
    accesses.values.forget()
    return _kernel(nest)


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a node: not each reduction that wants its elements in order.

    It begins with the initial values, as one loop does, and not several; and where NumPy has to say which of several
    NaN remains, the least or greatest of complex numbers, it computes them.
    """
    op = node.op
    if not isinstance(op, ops.Reduce) or not combination(node).in_order:
        return True
    combines = {type(each.op) for each in op.computation.nodes}
    if node.operands[0].dtype in COMPLEX and combines & {ops.Maximum, ops.Minimum}:
        return False
    return sum(node.operands[0].shape[axis] != 1 for axis in op.dimensions) <= 1


def _kernel(nest: Nest) -> Kernel:
    loops = BlockPhases(nest) if _is_cut(nest) else _Whole(nest)
    phases = list(loops.phases())
    loops.sources.clear()  # they hold the loops, in a circle
    stored = {part.buffer for phase in phases for loop in phase.walk() for part in loop.stores()}
    assert stored.issuperset(nest.outputs), "every output is stored at some stage"
    phases = [*nest.packing.phases(), *phases]
    scratch = (*nest.packing.copies.values(), *nest.scratch)
    return Kernel(nest.inputs, nest.outputs, scratch, tuple(nest.locals), in_threads(phases))


def _is_cut(nest: Nest) -> bool:
    """Whether blocks of the reduced dimensions run in parallel, since there are few kept indices."""
    target = nest.target
    kept = prod(run.extent for run in nest.kept_runs)
    total = prod(run.extent for run in nest.runs)
    if nest.in_order or total < 2 * target.block_elements or all(map(nest.is_known, nest.reductions)):
        return False
    if nest.inner_reductions:
        return kept < target.min_busy_iterations
    return target.min_cut_column * kept <= total if nest.column else kept < target.min_busy_iterations


class _Whole(Loops):
    """One phase, in which each iteration of the parallel loop goes through all stages.

    What lies around an update is copied before it.
    """

    def phases(self) -> list[Loop]:
        nest = self.nest
        loops, updates = self._phases(), []
        for node, buffer in zip(nest.graph.results, nest.outputs, strict=True):
            if isinstance(node.op, ops.DynamicUpdateSlice):
                updates.append(node)
                loops[:0] = around(node, buffer, self.values, lambda: self.elements(self.here))
        return in_phases(updates[0], loops, self.values, self.target) if updates else loops

    def _phases(self) -> list[Loop]:
        nest = self.nest
        if nest.written_out:
            loops = self._outer_loops(nest.outer_runs)
            nest_loops(loops)
            self._write_out(loops[-1])
            return loops[:1]
        if nest.reductions:
            loops = self._outer_loops(nest.kept_runs)
            nest_loops(loops)
            self._stages(loops[-1])
            return loops[:1]
        # A reduction that left its group leaves its dimensions behind, along which some results do not vary.
        varying: list[int] = []
        fixed: list[int] = []
        for number, node in enumerate(nest.graph.results):
            (varying if nest.runs_along_all(stored_part(node)) else fixed).append(number)
        return [
            loop
            for runs, numbers in ((nest.runs, varying), (nest.kept_runs, fixed))
            if numbers
            for loop in self._put_along(runs, numbers)
        ]

    def _put_along(self, runs: list[Run], numbers: list[int]) -> list[Loop]:
        """Loops over these runs, which store the elements of these outputs; the outermost ones."""
        if regions.pay(self.nest, runs):
            return regions.phases(self, self._balance(runs), numbers)
        loops = self._outer_loops(runs)
        nest_loops(loops)
        self.put(loops[-1], numbers)
        return loops[:1]

    def _outer_loops(self, runs: list[Run]) -> list[Loop]:
        """Loops over these runs.  Where iterations reduce, all rows go through a panel of lanes before the next."""
        if not runs:
            return [Loop(index_value(self.values, "once"), 1)]
        last = runs[-1]
        if self.nest.rows in runs:
            return self._in_tiles(
                self.nest.rows, [run for run in runs[:-1] if run is not self.nest.rows], last
            )
        if self._has_panels(last):
            loops = self._in_panels(runs, self.target.panel_elements)
            self.lane = Lane(loops[-1].index, last.extent, loops[0].index)
            return loops
        runs = self._balance(runs)
        few = runs[0].extent < self.target.min_busy_iterations
        few = few and prod(run.extent for run in runs) >= self.target.min_shared_elements
        part = self.target.part_elements
        if few and last.extent > part and self.nest.has_lanes(last) and len(runs) > 1:
            return self._in_panels(runs, part)
        return [self.loop(run) for run in runs]

    def _balance(self, runs: list[Run]) -> list[Run]:
        """The runs with one of many iterations in front, which processors share."""
        outer = runs[:-1] if self.nest.has_lanes(runs[-1]) else runs
        if runs[0].extent >= self.target.min_busy_iterations or not outer:
            return runs
        first = max(outer, key=lambda run: run.extent)
        return [first, *(run for run in runs if run is not first)]

    def _in_panels(self, runs: list[Run], size: int) -> list[Loop]:
        """Loops of which the outermost goes through parts of the last run."""
        *others, last = runs
        outer = [self.loop(run) for run in others]
        panel = Loop(index_value(self.values, "panel"), -(-last.extent // size))
        lane = self.loop(last, panel_extent(panel, last.extent, size))
        axis = last.axes[-1]
        self.index[axis] = self.index[axis] + Affine(((panel.index, size),))
        return [panel, *outer, lane]

    def _in_tiles(self, row: Run, others: list[Run], column: Run) -> list[Loop]:
        """Loops over tiles and inside of each."""
        side = self.target.tile_side
        outer = [self.loop(run) for run in others]
        rows, columns = (
            Loop(index_value(self.values, name), -(-run.extent // side))
            for name, run in (("rows", row), ("columns", column))
        )
        inner: list[Loop] = []
        for run, tiles in ((row, rows), (column, columns)):
            inner.append(self.loop(run, panel_extent(tiles, run.extent, side)))
            axis = run.axes[-1]
            self.index[axis] = self.index[axis] + Affine(((tiles.index, side),))
        self.tiles = Tiles(
            self.values, side, self.target.local_bytes, self.nest.locals, columns, inner[0], inner[1]
        )
        many = bool(outer) and prod(run.extent for run in others[:1]) >= self.target.min_busy_iterations
        return [*outer, rows, columns, *inner] if many else [rows, *outer, columns, *inner]

    def _has_panels(self, last: Run) -> bool:
        nest = self.nest
        loops = nest.inner_reductions and (nest.reductions or nest.has_inner_loops)
        is_long = last.extent >= 2 * self.target.panel_elements
        return bool(loops) and nest.has_lanes(last) and is_long and not nest.written_out

    def _stages(self, around: Loop) -> None:
        for stage, reductions in self._reductions_by_stage():
            self._stage(around, stage, reductions)

    def _reductions_by_stage(self) -> Iterator[tuple[int, list[Node]]]:
        """The number of each stage with its reductions; the last one has none."""
        nest = self.nest
        for stage in range(1, max(nest.stage_of.values()) + 2):
            yield stage, [node for node in nest.reductions if nest.stage_of[node] == stage]

    def _write_out(self, around: Loop) -> None:
        """All stages for each index of the last runs, without loops."""
        kept = [run for run in self.nest.written_out if not run.reduced]
        for position in product(*[range(run.extent) for run in kept]):
            for run, at in zip(kept, position, strict=True):
                self.stand_at(run, Affine((), at))
            for stage, reductions in self._reductions_by_stage():
                self._written_out_stage(around, stage, reductions)

    def _written_out_stage(self, around: Loop, stage: int, reductions: list[Node]) -> None:
        """A stage without loops: each index of the reduced dimensions one after the other."""
        nest, elements = self.nest, self.elements(around)
        totals: dict[Node, tuple[Value, ...]] = {}
        for node in reductions:
            how = nest.combinations[node]
            if how.in_order:
                totals[node] = how.starts(self.values, self._initial(elements, how))
        for position in product(*[range(run.extent) for run in nest.reduced_runs]):
            for run, at in zip(nest.reduced_runs, position, strict=True):
                self.stand_at(run, Affine((), at))
            self.put(around, self.inner_outputs(stage))
            for node in reductions:
                how = nest.combinations[node]
                terms = [self.at(elements, array) for array in how.arrays]
                totals[node] = how.next(totals[node], terms) if node in totals else how.terms(terms)
        for node in reductions:
            self.finish(elements, node, totals[node])
        self.put(around, self.outer_outputs(stage))

    def _stage(self, around: Loop, stage: int, reductions: list[Node]) -> None:
        """Loops over the reduced dimensions for these reductions and the outputs that can be had by now."""
        inner = self.inner_outputs(stage)
        accumulated = [node for node in reductions if not self.nest.is_known(node)]
        totals: dict[Node, Sequence[Value]] = {}
        if accumulated or inner:
            loops = self._reduced_loops()
            around.body.append(nest_loops(loops)[0])
            self.put(loops[-1], inner)
            elements = self.elements(loops[-1])
            accumulators = [self.accumulator(elements, node) for node in accumulated]
            self._keep(elements, loops[-1], stage)
            totals = dict(zip(accumulated, self.accumulate(loops, accumulators), strict=True))
        for node in reductions:
            results = totals.get(node, ())
            if self.nest.is_searched(node):
                results = self._search_index(around, node, results)
            self.finish(self.elements(around), node, results)
        self.put(around, self.outer_outputs(stage))

    def _search_index(self, around: Loop, node: Node, extremum: Sequence[Value]) -> Sequence[Value]:
        """An extremum and its index, for which there is another loop."""
        (loop,) = self._reduced_loops()
        around.body.append(loop)
        (value,) = extremum or [self.values.constant(self.nest.combinations[node].direction == "GT", BOOL)]
        return value, self.search(loop, node, value)

    def _reduced_loops(self) -> list[Loop]:
        """New loops over the reduced dimensions."""
        loops = [self.loop(run) for run in self.nest.reduced_runs]
        # Reductions over dimensions of size 1 have none.
        return loops or [Loop(index_value(self.values, "once"), 1)]

    def _keep(self, elements: Elements, innermost: Loop, stage: int) -> None:
        """Keep costly values that a later stage wants again."""
        for node in self._costly(stage):
            size = prod(run.extent for run in self.nest.reduced_runs)
            dtype = register_dtype(node.dtype)
            held = sum(buffer.nbytes for buffer in self.nest.locals)
            if self.nest.column or held + size * dtype.itemsize > self.target.local_bytes:
                continue
            buffer = Buffer(f"kept{len(self.nest.locals)}", dtype, size, "local")
            self.nest.locals.append(buffer)
            value = self.at(elements, node)
            innermost.body.append(Store(buffer, self._local_offset(), value))
            self.sources[node] = self._local(node, buffer, self.sources.get(node))

    def _costly(self, stage: int) -> Iterator[Node]:
        """Costly inner nodes that are computed at this stage and used at a later one."""
        nest = self.nest
        users = find_users(nest.graph)
        parts = {part for node in nest.inner_reductions for part in nest.parts(node)}
        for node in nest.graph.nodes:
            is_cheap = node.op.cost <= INSTRUCTION or isinstance(node.op, ops.Reduce) or node in self.sources
            if node not in nest.visible or (is_cheap and node not in parts) or not nest.runs_along_all(node):
                continue
            if nest.stage_of[node] + 1 == stage:
                later = [user for user in users.get(node, ()) if nest.stage_of[user] + 1 > stage]
                if any(not isinstance(user.op, ops.Reduce) or nest.stage_of[user] > stage for user in later):
                    yield node

    def _local_offset(self) -> Affine:
        offset = Affine()
        for run in self.nest.reduced_runs:
            offset = offset * run.extent + self.index[run.axes[-1]]
        return offset

    def _local(self, node: Node, buffer: Buffer, otherwise: Source | None) -> Source:
        def source(index: Index, predicate: Value | None) -> Value | None:
            if index != self.own_index(node):
                return otherwise(index, predicate) if otherwise else None
            return load(self.values, buffer, self._local_offset())

        return source
