"""From a group of fused operations to the loops that run it.

A group's domain has dimensions that are kept and dimensions that reductions take away.  Its loops are

    for each index of the kept dimensions:              in parallel
        for each index of the reduced dimensions:       stage 1: what its reductions need
        for each index of the reduced dimensions:       stage 2, which may use the results of stage 1
        ...

where the innermost dimension of the domain, whose elements are neighbours in memory, is the vector loop.
If few kept indices would leave processors idle, each stage becomes a phase of its own, in which blocks of
the reduced dimensions run in parallel and leave partial results that a short phase combines.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.compiler import scatters
from xarr.compiler.elements import Elements, Index, Lower, Source, register_dtype, row_major
from xarr.compiler.fuse import CHEAP, MOVES, monoid
from xarr.compiler.loops import Accumulator, Affine, Buffer, Kernel, Loop, Store, index_value, load
from xarr.compiler.scalars import BOOL, DType, Value, Values
from xarr.compiler.updates import around, in_phases, shifted
from xarr.ir import ops
from xarr.ir.graph import Node

Ints: TypeAlias = tuple[int, ...]

#: A partial sum of floats takes at most so many terms before it joins others of its kind.
TERMS: Final = 4096
#: Elements of the reduced dimensions that make a block of their own when few kept indices are there.
BLOCK: Final = 2**15
#: Below so many turns of the parallel loop its work is cut along the reduced dimensions.
FEW: Final = 16
#: Rows above each column from which columns are cut, and the rows of a block at least.
TALL: Final = 256
ROWS: Final = 64
#: Columns from which rows are worth a vector loop of their own.
WIDE: Final = 128
#: Bytes of intermediate values that one turn of the parallel loop may keep.
MOST_LOCAL: Final = 2**17


def build(fusion: ops.Fusion, lower: Lower) -> Kernel:
    """The loop program of a group."""
    if any(isinstance(node.op, ops.Scatter) for node in fusion.computation.results):
        return scatters.build(fusion, lower)
    merged = _merged_axes(fusion, lower)
    return _Nest(fusion, lower, merged).kernel()


def _merged_axes(fusion: ops.Fusion, lower: Lower) -> list[list[int]]:
    """The axes of the domain in runs that one index can go through, since every access takes equal steps."""
    domain = fusion.domain
    single = [[axis] for axis in range(len(domain)) if domain[axis] != 1]
    probe = _Nest(fusion, lower, single)
    probe.kernel()
    runs: list[list[int]] = []
    for (axis,) in single:
        before = runs[-1][-1] if runs else None
        if before is not None and probe.merges(before, axis):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


@dataclass(frozen=True)
class _Run:
    """Neighbouring axes of the domain that one index goes through."""

    axes: tuple[int, ...]
    extent: int
    reduced: bool


class _Nest:
    def __init__(self, fusion: ops.Fusion, lower: Lower, merged: Sequence[Sequence[int]]) -> None:
        self.fusion = fusion
        self.lower = lower
        self.graph = fusion.computation
        self.values = Values()
        self.runs = [
            _Run(tuple(axes), prod(fusion.domain[axis] for axis in axes), axes[0] in fusion.reduced)
            for axes in merged
        ]
        self.inputs = tuple(
            self._buffer(f"in{k}", node, "in") for k, node in enumerate(self.graph.parameters)
        )
        self.outputs = tuple(
            self._buffer(f"out{k}", node, "out") for k, node in enumerate(self.graph.results)
        )
        self.scratch: list[Buffer] = []
        self.locals: list[Buffer] = []
        # What was accessed, for `merges`: the places, the indices of each axis, those used as numbers.
        self.places: list[Affine] = []
        self.index_of: dict[int, list[Value]] = {}
        self.computed: set[Value] = set()
        self.seen: set[Value] = set()
        self.reductions = [node for node in self.graph.nodes if isinstance(node.op, ops.Reduce)]
        self.stage_of = self._stages()
        self.kept_runs = [run for run in self.runs if not run.reduced]
        self.reduced_runs = [run for run in self.runs if run.reduced]

    def _buffer(self, name: str, node: Node, role: Any) -> Buffer:
        return Buffer(name, register_dtype(node.dtype), node.tensor_type.size, role)

    def _stages(self) -> dict[Node, int]:
        """For each node how many reductions follow one another until it can be computed."""
        found = dict.fromkeys(self.graph.parameters, 0)
        for node in self.graph.nodes:
            before = max((found[operand] for operand in node.operands), default=0)
            found[node] = before + isinstance(node.op, ops.Reduce)
        return found

    def merges(self, before: int, axis: int) -> bool:
        """Whether `axis` continues `before`, the axis in front of it, in all places that were accessed."""
        domain, reduced = self.fusion.domain, self.fusion.reduced
        if any(domain[k] != 1 for k in range(before + 1, axis)) or (before in reduced) != (axis in reduced):
            return False
        for outer, inner in zip(self.index_of[before], self.index_of[axis], strict=True):
            if outer in self.computed or inner in self.computed:
                return False
            for place in self.places:
                factors = dict(place.terms)
                if factors.get(outer, 0) != factors.get(inner, 0) * domain[axis]:
                    return False
        return True

    # --- the whole --------------------------------------------------------------------------------------

    def kernel(self) -> Kernel:
        kept = prod(run.extent for run in self.kept_runs)
        total = prod(run.extent for run in self.runs)
        few = TALL * kept <= total if self.column else kept < FEW
        cut = bool(self.reductions) and few and total >= 2 * BLOCK
        phases = list(_Cut(self).phases() if cut else _Whole(self).phases())
        stored = {part.buffer for phase in phases for loop in phase.walk() for part in loop.stores()}
        assert stored.issuperset(self.outputs), "every output is stored at some stage"
        return Kernel(self.inputs, self.outputs, tuple(self.scratch), tuple(self.locals), phases)

    @property
    def column(self) -> bool:
        """Whether neighbouring elements belong to different results of the reductions."""
        return bool(self.reductions) and bool(self.runs) and not self.runs[-1].reduced


class _Loops:
    """The loops of one phase around and inside its stages.  Subclasses decide how stages are laid out."""

    def __init__(self, nest: _Nest) -> None:
        self.nest = nest
        self.values = nest.values
        self.index: list[Affine] = [Affine()] * len(nest.fusion.domain)
        self.sources: dict[Node, Source] = {}
        for buffer, node in zip(nest.inputs, nest.graph.parameters, strict=True):
            self.sources[node] = self.reader(buffer, node)

    def reader(self, buffer: Buffer, node: Node) -> Source:
        """The elements of `node` are in a buffer, in row-major order."""

        def source(index: Index, predicate: Value | None) -> Value:
            place = row_major(node.shape, index)
            self.nest.places.append(place)
            return load(self.values, buffer, place, predicate)

        return source

    def _compute(self, value: Value) -> None:
        """Note which indices are used as numbers."""
        stack, seen = [value], self.nest.seen
        while stack:
            each = stack.pop()
            if each in seen:
                continue
            seen.add(each)
            if each.op == "index":
                self.nest.computed.add(each)
            elif each.op != "load":
                stack.extend(each.operands)
            else:
                count = len(each.attribute.factors)
                # An index in a place is stepped through; a number there was computed.
                stack.extend(place for place in each.operands[:count] if place.op != "index")
                stack.extend(each.operands[count:])

    def loop(self, run: _Run, vector: bool = False, extent: int | Value | None = None) -> Loop:
        """A loop over a run of axes, whose index is that of the last of them."""
        index = index_value(self.values, "i" + "_".join(map(str, run.axes)))
        loop = Loop(index, run.extent if extent is None else extent, vector)
        for axis in run.axes:
            self.index[axis] = Affine()
            self.nest.index_of.setdefault(axis, []).append(index)
        self.index[run.axes[-1]] = Affine(((index, 1),))
        return loop

    def elements(self) -> Elements:
        return Elements(self.values, self.sources, self.nest.lower)

    def at(self, elements: Elements, node: Node) -> Value:
        """The element of a node that runs along the domain or along its kept dimensions."""
        value = elements.at(node, self.own_index(node))
        self._compute(value)
        return value

    def own_index(self, node: Node) -> Index:
        """Where `node`, an output or an operand of a reduction, stands at the present indices."""
        domain, reduced = self.nest.fusion.domain, self.nest.fusion.reduced
        every = [axis for axis in range(len(domain)) if domain[axis] != 1]
        kept = [axis for axis in every if axis not in reduced]
        sizes = [size for size in node.shape if size != 1]
        axes = iter(every if len(sizes) == len(every) else kept)
        return tuple(Affine() if size == 1 else self.index[next(axes)] for size in node.shape)

    def store(self, elements: Elements, number: int) -> Store:
        """Store the element of output `number`."""
        node, buffer = self.nest.graph.results[number], self.nest.outputs[number]
        value = node
        if isinstance(node.op, ops.DynamicUpdateSlice):
            value = node.operands[1]
            place = row_major(node.shape, shifted(node, self.own_index(value)))
        else:
            place = row_major(node.shape, self.own_index(node))
        self.nest.places.append(place)
        return Store(buffer, place, self.at(elements, value))

    def accumulator(self, elements: Elements, node: Node) -> Accumulator:
        """Gather the operand of a reduction."""
        return accumulator(self.nest.lower, node, self.at(elements, node.operands[0]))

    def finished(self, elements: Elements, node: Node, total: Value) -> Value:
        """The result of a reduction, with its initial value."""
        first = elements.at(node.operands[1], ())
        return _combined(self.nest.lower, node, first, total)

    def _is_inner(self, node: Node) -> bool:
        """Whether a node runs along the reduced dimensions too."""
        sizes = [size for size in node.shape if size != 1]
        return len(sizes) == len([size for size in self.nest.fusion.domain if size != 1])

    def _at_stage(self, node: Node, stage: int) -> bool:
        return self._is_inner(node) and self.nest.stage_of[node] + 1 == stage

    def _after_stage(self, node: Node, stage: int) -> bool:
        return not self._is_inner(node) and max(1, self.nest.stage_of[node]) == stage


def accumulator(lower: Lower, node: Node, term: Value) -> Accumulator:
    """Combine a term of each turn as the reduction `node` does."""
    values, dtype = term.values, term.dtype
    left, right = (values.make("argument", (), dtype, name, unique=True) for name in "ab")
    result = values.make("result", (), dtype, "r", unique=True)
    first = values.constant(identity(node, dtype), dtype)
    combined = _combined(lower, node, left, right)
    return Accumulator((first,), (term,), (left,), (right,), (combined,), (result,))


def identity(node: Node, dtype: DType) -> Any:
    """The neutral element of a reduction; that of a float sum is -0, which changes no other zero."""
    op = monoid(node.op)
    if op is ops.Add:
        return False if dtype == BOOL else dtype.type(-0.0) if dtype.kind == "f" else dtype.type(0)
    if op is ops.Multiply:
        return dtype.type(1)
    if op in (ops.Maximum, ops.Minimum):
        low = op is ops.Maximum
        if dtype.kind == "f":
            return dtype.type(-np.inf if low else np.inf)
        if dtype == BOOL:
            return not low
        return np.iinfo(dtype).min if low else np.iinfo(dtype).max
    ones = True if dtype == BOOL else ~dtype.type(0)
    return ones if op is ops.And else dtype.type(0)


def _combined(lower: Lower, node: Node, x: Value, y: Value) -> Value:
    assert isinstance(node.op, ops.Reduce)
    (inner,) = node.op.computation.nodes
    found = lower(inner.op, [node.dtype, node.dtype], [x, y])
    assert found is not None, f"no loop computes {inner.op.name}"
    return found


def _given(value: Value, index: Index, predicate: Value | None) -> Value:
    """A source for a node that has one element in each turn."""
    return value


class _Whole(_Loops):
    """One phase, in which each turn of the parallel loop goes through all stages.

    What lies around an update is copied before it.
    """

    def phases(self) -> list[Loop]:
        nest = self.nest
        loops, updates = [self.phase()], []
        for node, buffer in zip(nest.graph.results, nest.outputs, strict=True):
            if isinstance(node.op, ops.DynamicUpdateSlice):
                updates.append(node)
                loops[:0] = around(node, buffer, self.values, self.elements)
        return in_phases(updates[0], loops, self.values) if updates else loops

    def phase(self) -> Loop:
        nest = self.nest
        if not nest.reductions:
            return self._elementwise()
        if nest.column:
            *outer, inner = nest.kept_runs
            loops = [self.loop(run) for run in outer] + [self.loop(inner, vector=True)]
        else:
            loops = [self.loop(run) for run in nest.kept_runs]
        if not loops:
            loops = [Loop(index_value(self.values, "once"), 1)]
        for before, after in pairwise(loops):
            before.body.append(after)
        self._stages(loops[-1])
        return loops[0]

    def _elementwise(self) -> Loop:
        runs = self.nest.runs
        loops = [self.loop(run, vector=run is runs[-1]) for run in runs]
        if not loops:
            loops = [Loop(index_value(self.values, "once"), 1)]
        for before, after in pairwise(loops):
            before.body.append(after)
        elements = self.elements()
        loops[-1].body.extend(self.store(elements, k) for k in range(len(self.nest.outputs)))
        return loops[0]

    def _stages(self, around: Loop) -> None:
        nest = self.nest
        last = max(nest.stage_of.values())
        for stage in range(1, last + 1):
            self._stage(around, stage, [r for r in nest.reductions if nest.stage_of[r] == stage])
        self._stage(around, last + 1, [])

    def _stage(self, around: Loop, stage: int, reductions: list[Node]) -> None:
        """Loops over the reduced dimensions for these reductions and the outputs that can be had by now."""
        nest = self.nest
        inner = [k for k, node in enumerate(nest.graph.results) if self._at_stage(node, stage)]
        if reductions or inner:
            innermost, loops = self._reduced_loops(around)
            elements = self.elements()
            innermost.body.extend(self.store(elements, k) for k in inner)
            gathered = [self.accumulator(elements, node) for node in reductions]
            self._keep(elements, innermost, stage)
            gather(self.values, loops, gathered)
            after = self.elements()
            for node, found in zip(reductions, loops[0].accumulators, strict=True):
                total = self.finished(after, node, found.results[0])
                self.sources[node] = partial(_given, total)
        outer = [k for k, node in enumerate(nest.graph.results) if self._after_stage(node, stage)]
        elements = self.elements()
        around.body.extend(self.store(elements, k) for k in outer)

    def _reduced_loops(self, around: Loop) -> tuple[Loop, list[Loop]]:
        """New loops over the reduced dimensions inside `around`; long ones in blocks."""
        runs = self.nest.reduced_runs
        loops = []
        for run in runs:
            vector = run is runs[-1] and not self.nest.column
            loops.append(self.loop(run, vector))
        if not loops:  # reductions over dimensions of size 1
            loops = [Loop(index_value(self.values, "once"), 1)]
        around.body.append(loops[0])
        for before, after in pairwise(loops):
            before.body.append(after)
        return loops[-1], loops

    def _keep(self, elements: Elements, innermost: Loop, stage: int) -> None:
        """Keep costly values that a later stage wants again."""
        for node in self._costly(stage):
            size = prod(run.extent for run in self.nest.reduced_runs)
            dtype = register_dtype(node.dtype)
            held = sum(buffer.nbytes for buffer in self.nest.locals)
            if self.nest.column or held + size * dtype.itemsize > MOST_LOCAL:
                continue
            buffer = Buffer(f"kept{len(self.nest.locals)}", dtype, size, "local")
            self.nest.locals.append(buffer)
            innermost.body.append(Store(buffer, self._local_place(), self.at(elements, node)))
            self.sources[node] = self._local(node, buffer)

    def _costly(self, stage: int) -> Iterator[Node]:
        """Costly inner nodes that are computed at this stage and used at a later one."""
        nest = self.nest
        users: dict[Node, list[Node]] = {}
        for node in nest.graph.nodes:
            for operand in node.operands:
                users.setdefault(operand, []).append(node)
        for node in nest.graph.nodes:
            costly = not isinstance(node.op, (*CHEAP, *MOVES, ops.Reduce)) and self._is_inner(node)
            if costly and nest.stage_of[node] + 1 == stage and node not in self.sources:
                later = [user for user in users.get(node, ()) if nest.stage_of[user] + 1 > stage]
                if any(not isinstance(user.op, ops.Reduce) or nest.stage_of[user] > stage for user in later):
                    yield node

    def _local_place(self) -> Affine:
        place = Affine()
        for run in self.nest.reduced_runs:
            place = place * run.extent + self.index[run.axes[-1]]
        return place

    def _local(self, node: Node, buffer: Buffer) -> Source:
        def source(index: Index, predicate: Value | None) -> Value | None:
            if index != self.own_index(node):
                return None
            return load(self.values, buffer, self._local_place())

        return source


def _around(values: Values, inner: Accumulator) -> Accumulator:
    """The accumulator of a loop whose turns end with the results of `inner`."""
    dtypes = [value.dtype for value in inner.results]
    results = tuple(values.make("result", (), dtype, "r", unique=True) for dtype in dtypes)
    return Accumulator(inner.identities, inner.results, inner.left, inner.right, inner.combined, results)


class _Cut(_Loops):
    """Two phases a stage: blocks of the reduced dimensions leave partial results, which are then combined."""

    def phases(self) -> Iterator[Loop]:
        nest = self.nest
        for stage in range(1, max(nest.stage_of.values()) + 1):
            reductions = [node for node in nest.reductions if nest.stage_of[node] == stage]
            partials = yield from self._blocks(stage, reductions)
            yield self._combine(stage, reductions, partials)
        last = [k for k, node in enumerate(nest.graph.results) if self._at_stage(node, stage + 1)]
        if last:
            yield self._elementwise(last)

    def _blocks(self, stage: int, reductions: list[Node]) -> Generator[Loop, None, list[Buffer]]:
        nest = self.nest
        first = nest.reduced_runs[0]
        rest = prod(run.extent for run in nest.runs) // first.extent
        rows = max(ROWS if nest.column else 1, BLOCK // rest)
        count = -(-first.extent // rows)
        around = Loop(index_value(self.values, "block"), count)
        size = prod(run.extent for run in nest.kept_runs)
        partials = []
        for node in reductions:
            dtype = register_dtype(node.dtype)
            partials.append(Buffer(f"partial{len(nest.scratch)}", dtype, count * size, "scratch"))
            nest.scratch.append(partials[-1])
        by_rows = nest.column and nest.kept_runs[-1].extent >= WIDE and size <= MOST_LOCAL // 16
        fill = self._fill_rows if by_rows else self._fill
        fill(around, rows, stage, reductions, partials)
        yield around
        return partials

    def _fill(
        self, around: Loop, rows: int, stage: int, reductions: list[Node], partials: list[Buffer]
    ) -> None:
        """For each kept index the reduced dimensions of a block, gathered in registers."""
        kept = self._nested(around, self._kept_loops())
        loops = self._block_loops(around, rows)
        innermost = self._nested(kept, loops)
        elements = self.elements()
        innermost.body.extend(self.store(elements, k) for k in self._inner_outputs(stage))
        gather(self.values, loops, [self.accumulator(elements, node) for node in reductions])
        for buffer, each in zip(partials, loops[0].accumulators, strict=True):
            kept.body.append(Store(buffer, self._partial_place(around), each.results[0]))

    def _fill_rows(
        self, around: Loop, rows: int, stage: int, reductions: list[Node], partials: list[Buffer]
    ) -> None:
        """Row after row of a block, as they lie in memory, gathered in a row of partial results."""
        first = self._nested(around, self._kept_loops())
        for node, buffer in zip(reductions, partials, strict=True):
            nothing = self.values.constant(identity(node, buffer.dtype), buffer.dtype)
            first.body.append(Store(buffer, self._partial_place(around), nothing))
        innermost = self._nested(around, [*self._block_loops(around, rows), *self._kept_loops()])
        elements = self.elements()
        innermost.body.extend(self.store(elements, k) for k in self._inner_outputs(stage))
        for node, buffer in zip(reductions, partials, strict=True):
            place = self._partial_place(around)
            term = self.at(elements, node.operands[0])
            sum_so_far = load(self.values, buffer, place)
            innermost.body.append(Store(buffer, place, _combined(self.nest.lower, node, sum_so_far, term)))

    def _inner_outputs(self, stage: int) -> list[int]:
        return [k for k, node in enumerate(self.nest.graph.results) if self._at_stage(node, stage)]

    def _kept_loops(self) -> list[Loop]:
        runs = self.nest.kept_runs
        return [self.loop(run, self.nest.column and run is runs[-1]) for run in runs]

    def _block_loops(self, around: Loop, rows: int) -> list[Loop]:
        """Loops over the reduced dimensions of one block, `rows` of the first of them."""
        first, *others = self.nest.reduced_runs
        vector = not self.nest.column
        start = Affine(((around.index, rows),))
        left = start.value(self.values) * -1 + first.extent
        loops = [self.loop(first, vector and not others, left.lt(rows).select(left, rows))]
        self.index[first.axes[-1]] = self.index[first.axes[-1]] + start
        return loops + [self.loop(run, vector and run is others[-1]) for run in others]

    def _partial_place(self, around: Loop) -> Affine:
        size = prod(run.extent for run in self.nest.kept_runs)
        return Affine(((around.index, size),)) + self._kept_place()

    def _combine(self, stage: int, reductions: list[Node], partials: list[Buffer]) -> Loop:
        nest = self.nest
        size = prod(run.extent for run in nest.kept_runs)
        once = Loop(index_value(self.values, "once"), 1)
        kept = self._nested(once, self._kept_loops())
        blocks = Loop(
            index_value(self.values, "block"), partials[0].size // size, not nest.column and size == 1
        )
        kept.body.append(blocks)
        elements = self.elements()
        for node, buffer in zip(reductions, partials, strict=True):
            term = load(self.values, buffer, self._partial_place(blocks))
            blocks.accumulators.append(accumulator(nest.lower, node, term))
        totals = []
        for node, each in zip(reductions, blocks.accumulators, strict=True):
            total = self.finished(elements, node, each.results[0])
            buffer = Buffer(f"total{len(nest.scratch)}", total.dtype, size, "scratch")
            nest.scratch.append(buffer)
            totals.append(buffer)
            kept.body.append(Store(buffer, self._kept_place(), total))
            self.sources[node] = partial(_given, total)
        after = self.elements()
        outer = [k for k, node in enumerate(nest.graph.results) if self._after_stage(node, stage)]
        kept.body.extend(self.store(after, k) for k in outer)
        for node, buffer in zip(reductions, totals, strict=True):
            self.sources[node] = self._total(buffer)
        return once

    def _total(self, buffer: Buffer) -> Source:
        return lambda index, predicate: load(self.values, buffer, self._kept_place())

    def _elementwise(self, outputs: list[int]) -> Loop:
        runs = self.nest.runs
        first, *others = [self.loop(run, vector=run is runs[-1]) for run in runs]
        innermost = self._nested(first, others)
        elements = self.elements()
        innermost.body.extend(self.store(elements, k) for k in outputs)
        return first

    def _nested(self, around: Loop, loops: list[Loop]) -> Loop:
        """Put the loops into one another and into `around`; the innermost."""
        for loop in loops:
            around.body.append(loop)
            around = loop
        return around

    def _kept_place(self) -> Affine:
        place = Affine()
        for run in self.nest.kept_runs:
            place = place * run.extent + self.index[run.axes[-1]]
        return place


def gather(values: Values, loops: list[Loop], gathered: list[Accumulator]) -> None:
    """Accumulate in the innermost of these loops, and its results in the loops around it."""
    loops[-1].accumulators.extend(gathered)
    for outer, inner in zip(reversed(loops[:-1]), reversed(loops[1:]), strict=True):
        outer.accumulators.extend(_around(values, each) for each in inner.accumulators)
