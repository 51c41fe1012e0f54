"""The loops of a group of fused operations: its axes, its buffers, and where elements come from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import product
from math import prod
from typing import Literal

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.accesses import own_index
from xarr.compiler.fusion.iteration_space import IterationSpace, Run, inside_count, inside_sizes
from xarr.compiler.fusion.partial_updates import shift_index, stored_part
from xarr.compiler.loop_ir.accumulators import Combination, outer_accumulator
from xarr.compiler.loop_ir.elements import Elements, Index, Source, constant_source, row_major
from xarr.compiler.loop_ir.loop_bounds import bound_by_conditions
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Buffer,
    Loop,
    Search,
    Store,
    index_value,
    lanes_if,
    load,
    nest_loops,
)
from xarr.compiler.loop_ir.scalars import BOOL, INT64, Value
from xarr.compiler.schedules.cpu.packing import Lane, Packing
from xarr.compiler.schedules.cpu.transposed_tiles import Tiles
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import INSTRUCTION
from xarr.ir.operands_first import reach

#: Which loop runs in lanes: that of the last axis, of the last kept one, of the last one of an inner
#: reduction, or none.
Lanes = Literal["last", "kept", "inner", "none"]


class Nest(IterationSpace):
    """A group with the runs of axes that its loops go through, and what goes through them in lanes.

    rows: the number of the run of which tiles have rows, if the group is computed in tiles.
    cuts: by axis the indices from which on elements come from other operands.
    steps: by axis by how many elements, at most, the next index reads or writes farther on.
    """

    def __init__(
        self,
        fusion: ops.Fusion,
        target: Target,
        merged: Sequence[Sequence[int]],
        rows: int | None = None,
        cuts: Mapping[int, Sequence[int]] | None = None,
        steps: Mapping[int, int] | None = None,
    ) -> None:
        super().__init__(fusion, merged)
        self.cuts = cuts or {}
        self.steps = steps or {}
        self.target = target
        self.scratch: list[Buffer] = []
        self.locals: list[Buffer] = []
        self.rows = None if rows is None else self.runs[rows]
        self.packing = Packing(self.values, target, prod(run.extent for run in self.runs))

    def is_searched(self, node: Node) -> bool:
        """Whether the index of an extremum is looked for once the extremum is known, in a loop of its own.

        That goes over some elements twice, but costs a fraction of keeping an index beside each value.
        """
        combination = self.combinations[node]
        return (
            combination.direction is not None
            and self._is_light(combination.arrays[0])
            and set(self.parts(node).values()) == {1}
            and not self.column
            and len(self.reduced_runs) == 1
            and self.runs[-1] is self.reduced_runs[0]
            and self.has_lanes(self.runs[-1])
        )

    def is_known(self, node: Node) -> bool:
        """Whether it is clear which value a search looks for: the first true one, or the first false one."""
        return self.is_searched(node) and node.operands[0].dtype == BOOL

    def _is_light(self, node: Node) -> bool:
        """Whether an element costs little to compute once more."""
        stack, seen = [node], {node}
        while stack:
            each = stack.pop()
            if each.op.cost > INSTRUCTION or len(seen) > self.target.max_light_operations:
                return False
            stack.extend(operand for operand in each.operands if operand not in seen)
            seen.update(each.operands)
        return True

    # --- which loop runs in lanes ---------------------------------------------------------------------------

    @cached_property
    def written_out(self) -> list[Run]:
        """The runs of which each index is written out, for each index of the run before, often a lane: reduced ones and
        short ones at the end, which fill no register; else none.

        All that is computed is then in registers from stage to stage.
        """
        many = self.target.min_results_side_by_side
        count = max([k + 1 for k, run in enumerate(self.kept_runs) if run.extent >= many], default=0)
        outer, short = self.kept_runs[:count], self.kept_runs[count:]
        if not outer or self.runs[-1] is outer[-1] or self.has_inner_loops or self.rows is not None:
            return []
        written = [run for run in self.runs if run.reduced or run in short]
        row = self.runs[-1].extent if short else prod(run.extent for run in written)
        sizes = [
            register_dtype(node.dtype).itemsize for node in (*self.graph.parameters, *self.graph.results)
        ]
        if row * max(sizes) >= self.target.register_bytes or (short and not self._has_whole_rows(outer[-1])):
            return []
        if short and not (self._has_near_lanes(outer[-1]) or self._is_cheap_apart()):
            return []
        inside = sum(
            [inside_count(node) * (1 + self._work(self.insides(node))) for node in self.inner_reductions]
        )
        work = inside + self._work(filter(self._is_array, self.visible))
        most = self.target.max_written_out_operations
        return written if prod(run.extent for run in written) * work <= most else []

    @property
    def outer_runs(self) -> list[Run]:
        """The runs that are not written out."""
        return [run for run in self.runs if run not in self.written_out]

    def _has_whole_rows(self, run: Run) -> bool:
        """Whether all indices of a run have the same computation, and whole arrays are written."""
        if not self.has_reductions and any(axis in self.cuts for axis in run.axes):
            return False
        return not any(isinstance(node.op, ops.DynamicUpdateSlice) for node in self.graph.results)

    def _has_near_lanes(self, run: Run) -> bool:
        """Whether lanes along a run read and write near elements."""
        return self.steps.get(run.axes[-1], 0) <= self.target.max_lane_stride

    def _is_cheap_apart(self) -> bool:
        """Whether little is computed of few elements, which do not lie side by side: lanes would not pay."""
        last = self.runs[-1]
        if last.extent >= self.target.min_tiled_side or self.steps.get(last.axes[-1], 0) <= 1:
            return False
        return all(
            isinstance(node.op, ops.Reduce) or node.op.cost <= INSTRUCTION for node in self.graph.nodes
        )

    @staticmethod
    def _work(nodes: Iterable[Node]) -> int:
        return sum([node.op.cost for node in nodes])

    def insides(self, node: Node) -> set[Node]:
        """The operations inside an inner reduction."""

        def operands_inside(node: Node) -> list[Node]:
            return [each for each in node.operands if each not in self.visible and each.operands]

        return set(reach(operands_inside(node), operands_inside))

    @cached_property
    def lanes(self) -> Lanes:
        if self.written_out:
            is_near = self.written_out == self.reduced_runs or self._has_near_lanes(self.outer_runs[-1])
            return "kept" if is_near else "none"
        ends_reduced = bool(self.runs) and self.runs[-1].reduced
        wide = self.kept_runs[-1].extent if self.kept_runs else 1
        # Results along the reduced dimensions are stored in lanes along the last of them, or one by one.
        stores = any(self.runs_along_all(node) for node in self.graph.results)
        if self.in_order and ends_reduced:
            return "kept" if wide >= self.target.max_unrolled_terms and not stores else "none"
        if not self.inner_reductions:
            return "last"
        if self._reads_all() and self._fewest_inside() > self.target.max_unrolled_terms:
            return "none" if any(self.combinations[n].in_order for n in self.inner_reductions) else "inner"
        several = any(self.stage_of[node] for node in self.visible if self._is_array(node))
        if ends_reduced and wide >= self.target.min_vector_columns and not several and not stores:
            return "kept"
        return "last"

    def _is_array(self, node: Node) -> bool:
        return len(node.operands) < 3 and node not in self.reductions and self.runs_along_all(node)

    def _fewest_inside(self) -> int:
        return min(inside_count(node) for node in self.inner_reductions)

    def _reads_all(self) -> bool:
        """Whether an operand has an element for each iteration of the innermost loops, which no copy would help."""
        domain = prod(self.fusion.domain)
        iterations = domain * max(inside_count(node) for node in self.inner_reductions)
        return any(2 * node.tensor_type.size >= iterations for node in self.graph.parameters)

    @property
    def has_inner_loops(self) -> bool:
        """Whether an inner reduction is long enough for a loop."""
        return any(inside_count(node) > self.target.max_unrolled_terms for node in self.inner_reductions)

    @cached_property
    def column(self) -> bool:
        """Whether neighbouring lanes belong to different results of the reductions."""
        if self.lanes == "last":
            return bool(self.reductions) and bool(self.runs) and not self.runs[-1].reduced
        return self.lanes == "kept"

    def has_lanes(self, run: Run) -> bool:
        """Whether the loop over a run is the vector loop."""
        if self.lanes in ("inner", "none"):
            return False
        if self.written_out:
            return run is self.outer_runs[-1]
        return run is (self.kept_runs if self.column else self.runs)[-1]


class Loops:
    """The loops of one phase around and inside its stages.  Subclasses decide how stages are laid out."""

    def __init__(self, nest: Nest) -> None:
        self.nest = nest
        self.target = nest.target
        self.values = nest.values
        self.index: list[Affine] = [Affine()] * len(nest.fusion.domain)
        self.lane: Lane | None = None
        self.tiles: Tiles | None = None
        #: The loop whose iteration elements are computed for: loops of inner reductions go into it.
        self.here = Loop(index_value(self.values, "once"), 1)
        #: Whether elements are computed for the lanes of an inner reduction's loop.
        self._in_lanes = False
        #: The loops of inner reductions that elements are computed for: the loop around them all, and their indices.
        self._inside: list[tuple[Loop, frozenset[Value]]] = []
        self._reduced: dict[tuple[Loop, Node, Index, Value | None, bool], tuple[Value, ...]] = {}
        self.sources: dict[Node, Source] = {}
        for buffer, node in zip(nest.inputs, nest.graph.parameters, strict=True):
            self.sources[node] = self.reader(buffer, node)
        for node in nest.inner_reductions:
            for part, number in nest.parts(node).items():
                self.sources[part] = self._inner_source(node, number)

    def reader(self, buffer: Buffer, node: Node) -> Source:
        """The elements of `node` are in a buffer, in row-major order."""

        def source(index: Index, predicate: Value | None) -> Value:
            offset = row_major(node.shape, index)
            if self.tiles is not None and predicate is None:
                element = self.tiles.read(buffer, offset)
                if element is not None:
                    return element
            if self.lane is not None and predicate is None:
                packed = self.nest.packing.address_in_copy(buffer, offset, self.lane)
                if packed is not None:
                    return load(self.values, *packed)
            return load(self.values, buffer, offset, predicate)

        return source

    def loop(self, run: Run, extent: int | Value | None = None, vector: bool | None = None) -> Loop:
        """A loop over a run of axes, whose index is that of the last of them."""
        index = index_value(self.values, "i" + "_".join(map(str, run.axes)))
        lanes = self.nest.has_lanes(run) if vector is None else vector
        loop = Loop(index, run.extent if extent is None else extent, lanes_if(lanes))
        self.stand_at(run, Affine(((index, 1),)))
        if isinstance(loop.extent, int):
            self.nest.packing.extents[index] = loop.extent
            if lanes and not self.nest.written_out:
                self.lane = Lane(index, loop.extent)
        return loop

    def stand_at(self, run: Run, index: Affine) -> None:
        """Let elements be those at an index of a run of axes."""
        for axis in run.axes:
            self.index[axis] = Affine()
        self.index[run.axes[-1]] = index

    def elements(self, here: Loop) -> Elements:
        """Elements for the iterations of a loop, which inner reductions put their loops into."""
        self.here = here
        return Elements(self.values, self.sources, self.nest.packing.extents)

    def at(self, elements: Elements, node: Node) -> Value:
        """The element of a node that runs along the domain or along its kept dimensions."""
        return elements.at(node, self.own_index(node))

    def own_index(self, node: Node) -> Index:
        """Where `node`, an output or an operand of a reduction, stands at the present indices."""
        return own_index(self.nest.fusion, node, self.index)

    def put(self, loop: Loop, numbers: Iterable[int]) -> None:
        """Store the elements of these outputs in each iteration of a loop."""
        elements = self.elements(loop)
        for number in numbers:
            node, buffer = self.nest.graph.results[number], self.nest.outputs[number]
            updated = stored_part(node)
            index = self.own_index(updated)
            offset = row_major(node.shape, index if updated is node else shift_index(node, index))
            value = self.at(elements, updated)  # may put a loop into the body first
            loop.body.append(Store(buffer, offset, value))

    def accumulator(self, elements: Elements, node: Node) -> Accumulator:
        """Accumulate the operands of a reduction."""
        combination = self.nest.combinations[node]
        if self.nest.is_searched(node):
            return combination.extremum(self.at(elements, combination.arrays[0]))
        terms = [self.at(elements, array) for array in combination.arrays]
        return combination.accumulator(terms, self._initial(elements, combination, combination.in_order))

    def search(self, loop: Loop, node: Node, extremum: Value) -> Value:
        """The index of an extremum among the iterations of a loop, the least one; the loop does nothing else."""
        combination, elements = self.nest.combinations[node], self.elements(loop)
        element = self.at(elements, combination.arrays[0])
        iteration = self.values.make("result", (), INT64, "r", unique=True)
        loop.search = Search(combination.is_extremum(element, extremum), iteration)
        before = self.index[self.nest.reduced_runs[0].axes[-1]] + Affine(((loop.index, -1),))
        return (before + Affine(((iteration, 1),))).value(self.values).convert(combination.held[1])

    def inner_outputs(self, stage: int) -> list[int]:
        """The outputs that run along the reduced dimensions and can be had in the loops of a stage."""
        nest = self.nest
        return [
            k
            for k, node in enumerate(nest.graph.results)
            if nest.runs_along_all(node) and nest.stage_of[node] + 1 == stage
        ]

    def outer_outputs(self, stage: int) -> list[int]:
        """The outputs along the kept dimensions that can be had after a stage."""
        nest = self.nest
        return [
            k
            for k, node in enumerate(nest.graph.results)
            if not nest.runs_along_all(node) and max(1, nest.stage_of[node]) == stage
        ]

    def _initial(self, elements: Elements, combination: Combination, wanted: bool = True) -> list[Value]:
        return (
            [elements.at(each, ()) for each in combination.node.operands[len(combination.arrays) :]]
            if wanted
            else []
        )

    def finish(self, elements: Elements, node: Node, totals: Sequence[Value]) -> None:
        """Let the results of a reduction be known from what was accumulated."""
        combination = self.nest.combinations[node]
        results = combination.finish(self._initial(elements, combination), totals)
        for part, number in self.nest.parts(node).items():
            self.sources[part] = constant_source(results[number])

    # --- reductions inside the iterations --------------------------------------------------------------------------

    def _inner_source(self, node: Node, number: int) -> Source:
        def source(index: Index, predicate: Value | None) -> Value:
            here = self.here
            if predicate is None:
                self.here = self._outermost_for(index)
            key = (self.here, node, index, predicate, self._in_lanes)
            if key not in self._reduced:
                self._reduced[key] = self._reduce(node, index, predicate)
            self.here = here
            return self._reduced[key][number]

        return source

    def _outermost_for(self, index: Index) -> Loop:
        """The loop in each iteration of which an inner reduction at an index is computed once.

        It is one around the loops of other inner reductions whose indices the index has not.
        """
        here, used = self.here, {value for at in index for value, _ in at.terms}
        if not all(value in self.nest.packing.extents for value in used):
            return here  # an index that was computed from elements
        for around, indices in reversed(self._inside):
            if not used.isdisjoint(indices):
                break
            here = around
        return here

    def _reduce(self, node: Node, index: Index, predicate: Value | None) -> tuple[Value, ...]:
        """The results of an inner reduction at an index: written out if it is short, else a loop."""
        combination, here = self.nest.combinations[node], self.here
        elements = self.elements(here)
        count = inside_count(node)
        target = self.nest.target
        is_short = count <= target.max_unrolled_terms
        if is_short and count * len(self.nest.insides(node)) <= target.max_unrolled_values:
            totals = self._unroll(elements, combination, index, predicate)
        else:
            totals = self._loop_over_reduced(elements, combination, index, predicate)
        self.here = here
        return combination.finish(self._initial(elements, combination), totals)

    def _terms(
        self,
        elements: Elements,
        combination: Combination,
        index: Index,
        inner: Iterable[Affine],
        predicate: Value | None,
    ) -> list[Value]:
        """The elements that are reduced, at an index of the result and one of the reduced dimensions."""
        op, shape = combination.node.op.expect(ops.Reduce), combination.node.operands[0].shape
        kept, own = iter(index), iter(inner)
        offset = [
            (next(own) if size != 1 else Affine()) if axis in op.dimensions else next(kept)
            for axis, size in enumerate(shape)
        ]
        return [elements.at(array, tuple(offset), predicate) for array in combination.arrays]

    def _unroll(
        self, elements: Elements, combination: Combination, index: Index, predicate: Value | None
    ) -> tuple[Value, ...]:
        held: tuple[Value, ...] | None = None
        if combination.in_order:
            held = combination.starts(self.values, self._initial(elements, combination))
        for numbers in product(*map(range, inside_sizes(combination.node))):
            indices = [Affine((), number) for number in numbers]
            terms = self._terms(elements, combination, index, indices, predicate)
            held = combination.terms(terms) if held is None else combination.next(held, terms)
        assert held is not None
        return held

    def _loop_over_reduced(
        self, elements: Elements, combination: Combination, index: Index, predicate: Value | None
    ) -> tuple[Value, ...]:
        """One loop for each reduced dimension, two for a long last one: sums of sums lose less.

        Each iteration of the innermost accumulates two elements, apart, since a processor can add both at once.
        """
        *sizes, last = inside_sizes(combination.node)
        initial = self._initial(elements, combination, combination.in_order)
        # A reduction inside of another goes through its own loop in each lane of that one.
        vector = self.nest.lanes == "inner" and not self._in_lanes
        loops = [self._inner_loop("k", size) for size in sizes]
        indices = [Affine(((loop.index, 1),)) for loop in loops]
        at, width, left = Affine(), last, 0
        if not vector and not combination.in_order:
            chain = self.nest.target.chain_terms
            if last >= 4 * chain and last % chain == 0:
                loops.append(self._inner_loop("chain", last // chain))
                at, width = Affine(((loops[-1].index, chain),)), chain
            left = width % 2 if not sizes else 0
        chains = 1 if vector or combination.in_order or (width - left) % 2 else 2
        loops.append(self._inner_loop("k", width // chains, vector))
        outside = self.here
        self._inside.append((outside, frozenset(loop.index for loop in loops)))
        inner = self.elements(loops[-1])
        accumulators = []
        around, self._in_lanes = self._in_lanes, self._in_lanes or vector
        for chain in range(chains):
            offset = at + Affine(((loops[-1].index, chains),), chain)
            terms = self._terms(inner, combination, index, [*indices, offset], predicate)
            accumulators.append(combination.accumulator(terms, initial))
        self._in_lanes = around
        self._inside.pop()
        self.here = outside
        # Behind the loops of other reductions inside of this one that do not depend on its indices.
        outside.body.append(nest_loops(loops)[0])
        first, *others = self.accumulate(loops, accumulators)
        for other in others:
            first = combination.combine(first, other)
        if left:
            terms = self._terms(elements, combination, index, [Affine((), last - 1)], predicate)
            first = combination.next(first, terms)
        return first

    def accumulate(self, loops: list[Loop], accumulators: list[Accumulator]) -> list[tuple[Value, ...]]:
        """Accumulate in the innermost of these loops, and its results in the loops around it; the results of them all.

        The innermost one runs where conditions of its index want it to.
        """
        loops[-1].accumulators.extend(accumulators)
        lanes = [] if self.lane is None else [self.lane.index]
        totals = bound_by_conditions(loops[-1], lanes, self.target.min_bounded_iterations)
        for outer, inner in zip(reversed(loops[:-1]), reversed(loops[1:]), strict=True):
            rows = zip(inner.accumulators, totals, strict=True)
            outer.accumulators.extend(outer_accumulator(each, total) for each, total in rows)
            totals = [each.results for each in outer.accumulators]
        return totals

    def _inner_loop(self, name: str, extent: int | Value, vector: bool = False) -> Loop:
        loop = Loop(index_value(self.values, name), extent, lanes_if(vector))
        if isinstance(extent, int):
            self.nest.packing.extents[loop.index] = extent
            self.nest.packing.inner.add(loop.index)
        return loop
