"""Scatters as loops: first the operand is laid down as the result, then windows are combined into it.

    for each element of the operand:                         in parallel
        result[...] = operand[...]
    for each range of one dimension of the operand:          in parallel
        for each index vector, in row-major order:
            if the window lies in the operand:
                for each element of the window whose target is in the range:
                    result[target] = combine(result[target], update)

Every thread goes through all index vectors and writes to targets of its own.  So each target meets its
updates in their order, whatever the number of threads.

Single elements, of which it takes a while to say where they go, or of which a reduction looks at the indices too, go
there in blocks, and one thread does all:

    for each block of index vectors:
        vector for each of them:
            target = where the update goes, -1 where it goes nowhere
            the accumulators of the reductions take in their elements
        for each of them, one after the other:
            if target >= 0:
                result[target] = combine(result[target], update)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod

from xarr.compiler.fusion.accesses import parts_of
from xarr.compiler.fusion.scatter_windows import windows_of
from xarr.compiler.loop_ir.accumulators import combination, outer_accumulator
from xarr.compiler.loop_ir.axis_runs import axis_runs
from xarr.compiler.loop_ir.computed_indices import as_int64, components, is_inside
from xarr.compiler.loop_ir.elements import (
    Elements,
    Index,
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
    Carry,
    Kernel,
    Loop,
    Runs,
    Store,
    in_threads,
    index_value,
    lanes_if,
    load,
    nest_loops,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import INT64, Value, Values, in_order
from xarr.compiler.target import Target
from xarr.ir import ops


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group whose result is a scatter."""
    return _ScatterSchedule(fusion, target).kernel()


_Way = Callable[[Loop, list[Loop], list[Loop], Index, list[Affine]], tuple[Loop, Index]]


class _ScatterSchedule:
    def __init__(self, fusion: ops.Fusion, target: Target) -> None:
        self.target = target
        self.graph = fusion.computation
        self.values = Values()
        (self.node,) = [node for node in self.graph.results if isinstance(node.op, ops.Scatter)]
        self.op = self.node.op.expect(ops.Scatter)
        self.operand, self.indices, self.updates = self.node.operands
        self.windows = windows_of(self.node)
        self.inputs = input_buffers(self.graph, fusion.ranges)
        results = enumerate(self.graph.results)
        self.outputs = {node: buffer_of(f"out{k}", node, "out") for k, node in results}
        self.out = self.outputs[self.node]
        self.locals: list[Buffer] = []
        self.sources = {
            node: reader(self.values, buffer, node)
            for buffer, node in zip(self.inputs, self.graph.parameters, strict=True)
        }

    def kernel(self) -> Kernel:
        blocks = _Blocks(self)
        phases = [self._copy_operand(), blocks.phase() if blocks.pay() else _Walk(self).phase()]
        outputs = tuple(self.outputs[node] for node in self.graph.results)
        return Kernel(self.inputs, outputs, (), tuple(self.locals), in_threads(phases))

    def elements(self) -> Elements:
        return Elements(self.values, self.sources)

    # --- the operand --------------------------------------------------------------------------------

    def _copy_operand(self) -> Loop:
        """The operand as the result."""
        shape = self.operand.shape
        single = [index_value(self.values, f"i{axis}") for axis in range(len(shape))]
        index = tuple(Affine(((value, 1),)) for value in single)
        element = self.elements().at(self.operand, index)
        runs = axis_runs(shape, single, [element], [row_major(shape, index)])
        loops, at = self.loops(shape, runs)
        loops = loops or [Loop(index_value(self.values, "once"), 1)]
        loops[-1].runs = lanes_if(bool(runs))
        loops[-1].body.append(Store(self.out, row_major(shape, at), self.elements().at(self.operand, at)))
        return nest_loops(loops)[0]

    def loops(self, extents: Sequence[int], runs: Sequence[Sequence[int]]) -> tuple[list[Loop], Index]:
        """A loop for each run of axes, and the index of each axis in them."""
        loops, index = [], [Affine()] * len(extents)
        for run in runs:
            value = index_value(self.values, "i" + "_".join(map(str, run)))
            loops.append(Loop(value, prod(extents[axis] for axis in run)))
            index[run[-1]] = Affine(((value, 1),))
        return loops, tuple(index)

    def start(self, batch: Index) -> tuple[list[Affine], dict[int, Value]]:
        """Where the window at an index of the batch starts, and by dimension when it fits, if not always."""
        windows = self.windows
        start_index, fits = [Affine()] * len(windows.operand_shape), dict[int, Value]()
        rank = len(self.indices.shape)
        element = partial(self.elements().at, self.indices)
        for dim, last, number in components(windows, rank, batch, element):
            if (within := is_inside(number, last)) is not None:
                fits[dim] = within
            if last:
                start_index[dim] = Affine(((as_int64(number), 1),))
        for dim, position in windows.batching:
            start_index[dim] = batch[position]
        return start_index, fits

    def index_of_update(self, batch: Index, window: Index) -> Index:
        """The index of an element of a window in the updates."""
        windows = self.windows
        index = [Affine()] * len(self.updates.shape)
        for dim, at in zip(windows.batch_dims, batch, strict=True):
            index[dim] = at
        for dim, own in zip(windows.kept_dims, windows.window_dims, strict=True):
            index[own] = window[dim]
        return tuple(index)

    def update(self, batch: Index, window: Index) -> Value:
        """The update of an element of a window."""
        return self.elements().at(self.updates, self.index_of_update(batch, window))

    def combine(self, target: Affine, update: Value) -> Store:
        """Combine an update into its target."""
        old = load(self.values, self.out, target)
        (new,) = compute_scalars(self.op.update_computation, (old, update), self.values)
        return Store(self.out, target, new)

    def once_if(self, condition: Value | None) -> Loop:
        """A loop that runs once if the condition holds, else not at all."""
        extent = 1 if condition is None else condition.select(self.values.constant(1, INT64), 0)
        return Loop(index_value(self.values, "once"), extent)


def _all_of(conditions: Iterable[Value]) -> Value | None:
    """Whether all conditions hold; None without any."""
    conjunction: Value | None = None
    for condition in conditions:
        conjunction = condition if conjunction is None else conjunction & condition
    return conjunction


def _index_of(loop: Loop) -> Affine:
    return Affine(((loop.index, 1),))


class _Blocks:
    """The phase that goes through updates of single elements in blocks."""

    def __init__(self, scatter: _ScatterSchedule) -> None:
        self.scatter = scatter
        self.target, self.values = scatter.target, scatter.values
        self.shape = scatter.windows.batch_shape
        self.window = (Affine(),) * len(scatter.windows.operand_shape)
        self.reductions = [node for node in scatter.graph.nodes if isinstance(node.op, ops.Reduce)]
        self.combinations = [combination(node) for node in self.reductions]

    def pay(self) -> bool:
        """Whether updates go through blocks."""
        if self.reductions:
            return True
        if prod(self.scatter.windows.sizes) != 1 or prod(self.shape) < 2 * self.target.min_vector_columns:
            return False
        single = tuple(Affine(((index_value(self.values, "i"), 1),)) for _ in self.shape)
        computed = [
            value for value in in_order(self._target(single)) if value.operands and value.op != "load"
        ]
        return len(computed) > self.target.max_target_operations

    def phase(self) -> Loop:
        single = [index_value(self.values, f"i{axis}") for axis in range(len(self.shape))]
        index = tuple(Affine(((value, 1),)) for value in single)
        roots = [self._target(index), self.scatter.update(index, self.window)]
        roots += [term for terms in self._terms(index) for term in terms]
        runs = axis_runs(self.shape, single, roots)
        loops, _ = self.scatter.loops(self.shape, runs)
        phase = Loop(index_value(self.values, "once"), 1)
        chain = self._blocks(phase, loops, runs)
        self._reduce(phase, chain)
        return phase

    def _blocks(self, phase: Loop, loops: list[Loop], runs: list[list[int]]) -> list[Loop]:
        """Put the loops into the phase; those around what is accumulated, and the loop that does it."""
        *around, every = loops
        total = every.max_iterations
        most = min(self.target.listed_updates, self.target.local_bytes // 32, total)
        start, count = Affine(), self.values.constant(total, INT64)
        if total > most:
            around.append(Loop(index_value(self.values, "block"), -(-total // most)))
            start = Affine(((around[-1].index, most),))
            left = start.value(self.values) * -1 + total
            count = left.lt(most).select(left, most)
        lanes, each = (
            Loop(index_value(self.values, name), count if total > most else total, runs_as)
            for name, runs_as in (("lane", Runs.LANES), ("k", Runs.SERIAL))
        )
        nest_loops([phase, *around])
        inner = around[-1] if around else phase
        inner.body += [lanes, each]
        outer = {run[-1]: _index_of(loop) for run, loop in zip(runs[:-1], around, strict=False)}
        at = self._index({**outer, runs[-1][-1]: start + _index_of(lanes)})
        self._fill(lanes, at, each, most)
        return [*around, lanes]

    def _index(self, axes: dict[int, Affine]) -> Index:
        """An index of the batch; the axes that are not given have one element, or are part of a run."""
        return tuple(axes.get(axis, Affine()) for axis in range(len(self.shape)))

    def _fill(self, lanes: Loop, at: Index, each: Loop, most: int) -> None:
        """Let both loops do their part of an update."""
        goes_to = self._keep(lanes, "target", self._target(at), each, most)
        update = self._update_one_by_one(lanes, self.scatter.update(at, self.window), each, most)
        once = self.scatter.once_if(goes_to.ge(0))
        once.body.append(self.scatter.combine(Affine(((goes_to, 1),)), update))
        each.body.append(once)
        for how, terms in zip(self.combinations, self._terms(at), strict=True):
            lanes.accumulators.append(how.accumulator(terms, ()))

    def _update_one_by_one(self, lanes: Loop, update: Value, each: Loop, most: int) -> Value:
        """The update where updates go one after the other: kept if it takes a while to compute in lanes.

        Elements that lie anywhere are read there, by indices that are kept.
        """
        values = in_order(update)
        computed = [value for value in values if value.operands and value.op != "load"]
        indices = {
            index: None
            for value in values
            if value.op == "load" and not value.attribute.masked
            for index in value.operands
            if index.op not in ("index", "load")
        }
        of_indices = in_order(*indices)
        light = [value for value in computed if value not in of_indices]
        if len(light) > self.target.max_light_operations or any(each.op == "rarely" for each in values):
            return self._keep(lanes, "update", update, each, most)
        known = {lanes.index: each.index}
        for index in indices:
            known[index] = self._keep(lanes, f"at{len(self.scatter.locals)}", index, each, most)
        return self.values.rebuild(update, known)

    def _keep(self, lanes: Loop, name: str, value: Value, each: Loop, most: int) -> Value:
        """Store a value in the lanes, and load it where updates go one after the other."""
        buffer = Buffer(name, value.dtype, most, "local")
        self.scatter.locals.append(buffer)
        lanes.body.append(Store(buffer, Affine(((lanes.index, 1),)), value))
        return load(self.values, buffer, Affine(((each.index, 1),)))

    def _target(self, batch: Index) -> Value:
        """Where an update goes, -1 for nowhere."""
        start, fits = self.scatter.start(batch)
        number = row_major(self.scatter.windows.operand_shape, tuple(start)).value(self.values)
        wanted = _all_of(fits.values())
        return number if wanted is None else wanted.select(number, -1)

    def _terms(self, batch: Index) -> list[list[Value]]:
        """The elements that each reduction takes in: those of arrays of the shape of the updates."""
        elements, index = self.scatter.elements(), self.scatter.index_of_update(batch, self.window)
        return [[elements.at(array, index) for array in how.arrays] for how in self.combinations]

    def _reduce(self, phase: Loop, chain: list[Loop]) -> None:
        """Accumulate in the loops around the lanes too, and store what comes of it behind them."""
        totals = [each.results for each in chain[-1].accumulators]
        for outer, inner in zip(reversed(chain[:-1]), reversed(chain[1:]), strict=True):
            rows = zip(inner.accumulators, totals, strict=True)
            outer.accumulators = [outer_accumulator(each, total) for each, total in rows]
            totals = [each.results for each in outer.accumulators]
        scatter, sources = self.scatter, dict(self.scatter.sources)
        elements = Elements(self.values, sources)
        for node, how, total in zip(self.reductions, self.combinations, totals, strict=True):
            initial = [elements.at(first, ()) for first in node.operands[len(how.arrays) :]]
            results = how.finish(initial, total)
            parts = parts_of(node, scatter.graph).items()
            sources.update((part, constant_source(results[number])) for part, number in parts)
        after = Elements(self.values, sources)
        for node, buffer in scatter.outputs.items():
            if node is not scatter.node:
                index = (Affine(),) * len(node.shape)
                phase.body.append(Store(buffer, Affine(), after.at(node, index)))


class _Walk:
    """The phase in which every thread goes through all updates."""

    def __init__(self, scatter: _ScatterSchedule) -> None:
        self.scatter = scatter
        self.target = scatter.target
        self.values, self.windows = scatter.values, scatter.windows
        self.shape = self.windows.operand_shape
        self.divided = self._divided_dimension()
        names = ("first", "end")
        self.bounds = tuple(self.values.make("argument", (), INT64, name, unique=True) for name in names)

    def _divided_dimension(self) -> int | None:
        """The dimension whose ranges belong to threads: the outermost one with many indices.

        None where an update costs no more than to see whose it is.
        """
        if prod(self.windows.sizes) < self.target.min_vector_row:
            return None
        large = [dim for dim, size in enumerate(self.shape) if size >= self.target.min_range_extent]
        some = sorted((dim for dim, size in enumerate(self.shape) if size > 1), key=lambda d: -self.shape[d])
        return next(iter((*large, *some)), None)

    def phase(self) -> Loop:
        batch_shape, sizes = self.windows.batch_shape, self.windows.sizes
        extents = (*batch_shape, *sizes)
        single = [index_value(self.values, f"i{axis}") for axis in range(len(extents))]
        index = tuple(Affine(((value, 1),)) for value in single)
        rank = len(batch_shape)
        store, conditions = self._update(index[:rank], index[rank:])
        alone = () if self.divided is None else (rank + self.divided,)
        runs = axis_runs(extents, single, [store.value, *conditions], [store.offset], alone)
        # Batches and windows are never one run.
        runs = [part for run in runs for part in _split(run, rank)]
        own = self.divided
        phase = Loop(index_value(self.values, "range"), 1 if own is None else self.shape[own])
        phase.bounds, phase.repeats = self.bounds, False
        if own is None or not self._is_listed(own) or len([run for run in runs if run[0] < rank]) != 1:
            self._updates(phase, extents, runs, self._test_updates)
            return phase
        # A range that is all there is needs no list.
        whole = self.bounds[0].eq(0) & self.bounds[1].eq(self.shape[own])
        for condition, way in ((whole, self._test_updates), (~whole, self._list_updates)):
            once = self.scatter.once_if(condition)
            phase.body.append(once)
            self._updates(once, extents, runs, way)
        phase.repeats = prod(sizes) < self.target.min_shared_window
        return phase

    def _updates(self, around: Loop, extents: Sequence[int], runs: list[list[int]], way: _Way) -> None:
        """Loops through the batch, `way` says which parts of it, and in them through the windows."""
        loops, at = self.scatter.loops(extents, runs)
        rank = len(self.windows.batch_shape)
        count = len([run for run in runs if run[0] < rank])
        outer, inner = loops[:count], loops[count:]
        window = list(at[rank:])
        around, batch = way(around, outer, inner, at[:rank], window)
        if inner:
            last = [dim for dim, size in enumerate(self.shape) if size != 1][-1]
            long = self.windows.sizes[last] >= self.target.min_vector_row
            inner[-1].runs = lanes_if(runs[-1][-1] == rank + last and long)
        store, _ = self._update(batch, tuple(window))
        nest_loops([around, *inner])[-1].body.append(store)

    def _is_listed(self, own: int) -> bool:
        """Whether windows are in a range as a whole or not at all, one like the other."""
        return self.windows.sizes[own] == 1 and not self.scatter.op.indices_are_sorted

    def _list_updates(
        self, around: Loop, outer: list[Loop], inner: list[Loop], batch: Index, window: list[Affine]
    ) -> tuple[Loop, Index]:
        """Loops that first list which of a block of updates belong to the range, and then go through these.

        Whether an update belongs to it is a toss-up, and a branch that a processor cannot foresee costs as much as
        the update.  Listing takes none.
        """
        (every,), own = outer, self.divided
        assert own is not None
        total = every.max_iterations
        at_once = min(self.target.listed_updates, self.target.local_bytes // INT64.itemsize)
        most = min(at_once, total)
        listed = Buffer("own", INT64, most, "local")
        self.scatter.locals.append(listed)
        block = Loop(index_value(self.values, "block"), -(-total // at_once))
        start = Affine(((block.index, at_once),))
        left = start.value(self.values) * -1 + total
        within = (
            left.lt(at_once).select(left, at_once) if total > at_once else self.values.constant(total, INT64)
        )
        each = Loop(every.index, within if total > at_once else total)
        at = tuple(index + start if index.terms else index for index in batch)
        start_index, fits = self.scatter.start(at)
        wanted = self._belongs(start_index, fits, own)
        count, last = new_carry(self.values, INT64)
        each.carries.append(Carry(self.values.constant(0, INT64), count, count + wanted.convert(INT64), last))
        (flat,) = (index for index in at if index.terms)
        each.body.append(Store(listed, Affine(((count, 1),)), flat.value(self.values)))
        own_updates = Loop(index_value(self.values, "k"), last.lt(most).select(last, most))
        around.body.append(block)
        block.body += [each, own_updates]
        number = load(self.values, listed, Affine(((own_updates.index, 1),)))
        return own_updates, tuple(Affine(((number, 1),)) if index.terms else index for index in batch)

    def _test_updates(
        self, around: Loop, outer: list[Loop], inner: list[Loop], batch: Index, window: list[Affine]
    ) -> tuple[Loop, Index]:
        """Loops that go through the updates and leave out those that do not belong to the range."""
        own = self.divided
        start_index, fits = self.scatter.start(batch)
        if own is None:
            outer += [self.scatter.once_if(_all_of(fits.values()))] if fits else []
        elif self.windows.sizes[own] == 1:
            outer.append(self.scatter.once_if(self._belongs(start_index, fits, own)))
        else:
            (loop,) = (loop for loop in inner if loop.index in dict(window[own].terms))
            low, loop.extent = self._own_part(start_index[own].value(self.values), fits, own)
            window[own] = window[own] + Affine(((low, 1),))
        return nest_loops([around, *outer])[-1], batch

    def _belongs(self, start_index: list[Affine], fits: dict[int, Value], own: int) -> Value:
        """Whether a window that has one index along the divided dimension fits and lies in the range."""
        first, end = self.bounds
        number = start_index[own].value(self.values)
        others = [condition for dim, condition in fits.items() if dim != own]
        belongs = _all_of([number.ge(first), number.lt(end), *others])
        assert belongs is not None
        return belongs

    def _own_part(self, start: Value, fits: dict[int, Value], own: int) -> tuple[Value, Value]:
        """Which part of a window's extent along the divided dimension belongs to the range: first and count."""
        first, end = (bound - start for bound in self.bounds)
        size = self.windows.sizes[own]
        low = first.lt(0).select(0, first)
        high = end.gt(size).select(size, end)
        count = high - low
        some = _all_of([*fits.values(), count.gt(0)])
        assert some is not None
        count = some.select(count, 0)
        return low, count.gt(size).select(size, count)

    def _update(self, batch: Index, window: Index) -> tuple[Store, list[Value]]:
        """Combine one update into its target."""
        start_index, fits = self.scatter.start(batch)
        target = row_major(self.shape, tuple(a + b for a, b in zip(start_index, window, strict=True)))
        return self.scatter.combine(target, self.scatter.update(batch, window)), list(fits.values())


def _split(run: list[int], rank: int) -> Iterator[list[int]]:
    """A run of axes without those of the batch, and these."""
    for part in ([axis for axis in run if axis < rank], [axis for axis in run if axis >= rank]):
        if part:
            yield part
