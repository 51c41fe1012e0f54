"""Running totals as loops.

A `ReduceWindow` whose windows all begin at one end of an axis, and end at each of its indices, gives running
totals.  With what computes its operand and what uses its result element by element it is one loop nest.

Along the last axis that has more than one index, a vector loop goes through it:

    for each index of the other axes:                        in parallel
        vector for each index of the axis:
            total = running total of the operand
            result[...] = ... total ...

Reductions of the same rows, from which what is added up may be computed, come before, in loops of their own.

Along another axis rows of totals, which stay in the cache, take in one row of the operand after the other:

    for each index of the other axes, the last of them in blocks:   in parallel
        for each index of the axis:
            vector for each element of the block:
                total[...] = total[...] combined with the operand
                result[...] = ... total[...] ...

Neither depends on the number of threads.  A float total along the last axis is at most n / L + log2(L) + 1
additions deep, with L lanes in a register, along others n: never deeper than when elements are added in turn.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.iteration_space import stages_of
from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.axis_runs import axis_runs
from xarr.compiler.loop_ir.elements import (
    Elements,
    Index,
    Source,
    buffer_of,
    compute_scalars,
    constant_source,
    input_buffers,
    reader,
    row_major,
)
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Kernel,
    Loop,
    Prefix,
    Runs,
    Store,
    in_threads,
    index_value,
    load,
    nest_loops,
)
from xarr.compiler.loop_ir.scalars import Value, Values, in_order
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import INSTRUCTION


def _ancestors(roots: Iterable[Node]) -> list[Node]:
    """The nodes that `roots` are computed from, and these."""
    needed = dict.fromkeys(roots)
    stack = list(needed)
    while stack:
        new = [operand for operand in stack.pop().operands if operand not in needed]
        needed.update(dict.fromkeys(new))
        stack.extend(new)
    return list(needed)


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group with running totals."""
    return _Scans(fusion, target).kernel()


class _Scans:
    def __init__(self, fusion: ops.Fusion, target: Target) -> None:
        self.target = target
        self.graph, self.domain = fusion.computation, fusion.domain
        self.values = Values()
        self.scans = [node for node in self.graph.nodes if scan_axis(node)]
        self.reductions = [node for node in self.graph.nodes if isinstance(node.op, ops.Reduce)]
        axes = {scan_axis(node) for node in self.scans}
        assert len(axes) == 1, "the totals of a group run along one axis"
        ((self.axis, self.reverse),) = (each for each in axes if each)
        self.inputs = input_buffers(self.graph, fusion.ranges)
        self.outputs = tuple(buffer_of(f"out{k}", node, "out") for k, node in enumerate(self.graph.results))
        self.locals: list[Buffer] = []
        self.arguments: dict[Node, Source] = {
            node: reader(self.values, buffer, node)
            for buffer, node in zip(self.inputs, self.graph.parameters, strict=True)
        }

    def kernel(self) -> Kernel:
        runs = self._runs()
        position = runs.index([self.axis])
        phase = self._along_rows(runs) if position == len(runs) - 1 else self._by_rows(runs, position)
        return Kernel(self.inputs, self.outputs, (), tuple(self.locals), in_threads([phase]))

    # --- where things are ---------------------------------------------------------------------------

    def _runs(self) -> list[list[int]]:
        """The axes of the domain in runs that one index can go through."""
        single = [index_value(self.values, f"i{axis}") for axis in range(len(self.domain))]
        index = [Affine(((value, 1),)) for value in single]
        roots: list[Value] = []
        sources = dict(self.arguments) | {node: partial(self._unknown, node) for node in self.reductions}
        elements = Elements(self.values, sources)
        for node in self.scans:
            roots.append(elements.at(node.operands[0], self._own(node.operands[0], index)))
            sources[node] = partial(self._unknown, node)
        roots += [
            elements.at(node.operands[0], self._own(node.operands[0], index)) for node in self.reductions
        ]
        stores = self._stores(elements, index)
        roots += [store.value for store in stores]
        return axis_runs(self.domain, single, roots, [store.offset for store in stores], [self.axis])

    def _unknown(self, node: Node, index: Index, predicate: Value | None) -> Value:
        return self.values.make("argument", (), register_dtype(node.dtype), node)

    def _own(self, node: Node, index: Sequence[Affine]) -> Index:
        """Where a node that runs along the domain, or along its rows, stands at an index of it."""
        every = [axis for axis, size in enumerate(self.domain) if size != 1]
        if not self._is_in_rows(node):
            every.remove(self.axis)
        axes = iter(every)
        return tuple(Affine() if size == 1 else index[next(axes)] for size in node.shape)

    def _is_in_rows(self, node: Node) -> bool:
        """Whether a node has an element for each of the domain, not just for each of its rows."""
        return sum(size != 1 for size in node.shape) == sum(size != 1 for size in self.domain)

    def _stores(
        self, elements: Elements, index: Sequence[Affine], in_rows: bool | None = None
    ) -> list[Store]:
        stores = []
        for buffer, node in zip(self.outputs, self.graph.results, strict=True):
            if in_rows not in (None, self._is_in_rows(node)):
                continue
            at = self._own(node, index)
            stores.append(Store(buffer, row_major(node.shape, at), elements.at(node, at)))
        return stores

    def _index(self, runs: Sequence[Sequence[int]], run_indices: Sequence[Affine]) -> list[Affine]:
        """The index of each axis, given that of each run."""
        index = [Affine()] * len(self.domain)
        for run, at in zip(runs, run_indices, strict=True):
            index[run[-1]] = at
        if self.reverse:
            index[self.axis] = index[self.axis] * -1 + (self.domain[self.axis] - 1)
        return index

    def _loop(self, run: Sequence[int]) -> Loop:
        extent = 1
        for axis in run:
            extent *= self.domain[axis]
        return Loop(index_value(self.values, "i" + "_".join(map(str, run))), extent)

    # --- the two ways --------------------------------------------------------------------------------

    def _along_rows(self, runs: list[list[int]]) -> Loop:
        """The axis is the innermost."""
        outer = [self._loop(run) for run in runs[:-1]] or [Loop(index_value(self.values, "once"), 1)]
        around = nest_loops(outer)[-1]
        sources = dict(self.arguments)
        stages = stages_of(self.graph, self.reductions)
        for stage in range(1, 1 + max((stages[node] for node in self.reductions), default=0)):
            self._reduce(stage, stages, runs, outer, sources)
        inner, index = self._row(runs, outer)
        elements = Elements(self.values, sources)
        for node in self.scans:
            term = elements.at(node.operands[0], self._own(node.operands[0], index))
            prefix = self._prefix(node, elements.at(node.operands[1], ()), term)
            inner.prefixes.append(prefix)
            sources[node] = partial(self._own_total, self._own(node, index), prefix.running)
        inner.body += self._stores(elements, index, in_rows=True)
        after = Elements(self.values, sources)
        around.body += [inner, *self._stores(after, index, in_rows=False)]
        return outer[0]

    def _row(self, runs: list[list[int]], outer: list[Loop]) -> tuple[Loop, list[Affine]]:
        """A new loop through a row, and the index of each axis in it."""
        row = self._loop(runs[-1])
        row.runs = Runs.LANES
        run_indices = [Affine(((loop.index, 1),)) for loop in (*outer[: len(runs) - 1], row)]
        return row, self._index(runs, run_indices)

    def _reduce(
        self,
        stage: int,
        stages: dict[Node, int],
        runs: list[list[int]],
        outer: list[Loop],
        sources: dict[Node, Source],
    ) -> None:
        """Go through a row for the reductions of a stage; keep what was costly and is wanted again."""
        row, index = self._row(runs, outer)
        elements = Elements(self.values, sources)
        outer[-1].body.append(row)
        combinations = [combination(node) for node in self.reductions if stages[node] == stage]
        for each in combinations:
            terms = [elements.at(array, self._own(array, index)) for array in each.arrays]
            row.accumulators.append(each.accumulator(terms, ()))
        for node in _ancestors([array for each in combinations for array in each.arrays]):
            is_costly = node.op.cost > INSTRUCTION and not isinstance(node.op, ops.Reduce | ops.ReduceWindow)
            wanted = is_costly and self._is_in_rows(node) and stages[node] == stage - 1
            if wanted and self._is_used_after(node, stage, stages):
                self._keep(node, row, index, elements, sources)
        after = Elements(self.values, sources)
        for each, accumulator in zip(combinations, row.accumulators, strict=True):
            initial = [after.at(first, ()) for first in each.node.operands[len(each.arrays) :]]
            (total,) = each.finish(initial, accumulator.results)
            sources[each.node] = constant_source(total)

    def _keep(
        self, node: Node, row: Loop, index: list[Affine], elements: Elements, sources: dict[Node, Source]
    ) -> None:
        at = self._own(node, index)
        value = elements.at(node, at)
        size = self.domain[self.axis]
        held = sum(buffer.nbytes for buffer in self.locals)
        if node in sources or held + size * value.dtype.itemsize > self.target.local_bytes:
            return
        if value not in in_order(*(term for each in row.accumulators for term in each.terms)):
            return
        buffer = Buffer(f"kept{len(self.locals)}", value.dtype, size, "local")
        self.locals.append(buffer)
        row.body.append(Store(buffer, index[self.axis], value))
        sources[node] = partial(self._load_from_row, buffer, at)

    def _is_used_after(self, node: Node, stage: int, stages: dict[Node, int]) -> bool:
        """Whether what comes after the reductions of a stage uses a node that they use too."""
        return any(
            stages[user] >= stage and not (isinstance(user.op, ops.Reduce) and stages[user] == stage)
            for user in self.graph.nodes
            if node in user.operands
        )

    def _load_from_row(
        self, buffer: Buffer, own: Index, index: Index, predicate: Value | None
    ) -> Value | None:
        """An element of the present row; those of other rows are not there."""
        last = max(dim for dim, at in enumerate(own) if at.terms)
        if (*index[:last], *index[last + 1 :]) != (*own[:last], *own[last + 1 :]):
            return None
        return load(self.values, buffer, index[last], predicate)

    def _prefix(self, node: Node, initial: Value, term: Value) -> Prefix:
        left, right = (self.values.make("argument", (), term.dtype, name, unique=True) for name in ("a", "b"))
        (total,) = compute_scalars(node.op.expect(ops.ReduceWindow).computation, (left, right), self.values)
        running = self.values.make("result", (), term.dtype, "running", unique=True)
        return Prefix(initial, term, left, right, total, running)

    def _own_total(self, own: Index, total: Value, index: Index, predicate: Value | None) -> Value:
        assert index == own, "a running total is used where it is computed"
        return total

    def _by_rows(self, runs: list[list[int]], position: int) -> Loop:
        """Other axes are inside of the axis: the last of them is gone through in blocks."""
        others = [run for run in runs if run != [self.axis]]
        loops = [self._loop(run) for run in others]
        row, along = loops.pop(), self._loop([self.axis])
        width = row.max_iterations
        least, longest = self.target.min_scan_row, self.target.max_scan_row
        # What the axis carries lies in local buffers.
        carried = sum(register_dtype(node.dtype).itemsize for node in self.scans)
        longest = max(1, min(longest, self.target.local_bytes // carried))
        most = min(longest, -(-width // (self.target.min_busy_iterations * least)) * least, width)
        block = Loop(index_value(self.values, "block"), -(-width // most))
        start = Affine(((block.index, most),))
        size: int | Value = width
        if width > most:
            left = start.value(self.values) * -1 + width
            size = left.lt(most).select(left, most)
        run_indices = [Affine(((loop.index, 1),)) for loop in loops]
        inner, first = (Loop(index_value(self.values, "j"), size, Runs.LANES) for _ in range(2))
        at = Affine(((inner.index, 1),))
        run_indices.append(at + start if width > most else at)
        run_indices.insert(position, Affine(((along.index, 1),)))
        index = self._index(runs, run_indices)
        sources = dict(self.arguments)
        elements = Elements(self.values, sources)
        for node in self.scans:
            held = Buffer(f"total{len(self.locals)}", register_dtype(node.dtype), most, "local")
            self.locals.append(held)
            first.body.append(Store(held, Affine(((first.index, 1),)), elements.at(node.operands[1], ())))
            assert isinstance(node.op, ops.ReduceWindow)
            term = elements.at(node.operands[0], self._own(node.operands[0], index))
            so_far = load(self.values, held, at)
            (total,) = compute_scalars(node.op.computation, (so_far, term), self.values)
            inner.body.append(Store(held, at, total))
            sources[node] = partial(self._own_total, self._own(node, index), total)
        inner.body += self._stores(elements, index)
        outer = nest_loops([*loops, block])
        outer[-1].body += [first, along]
        along.body.append(inner)
        return outer[0]
