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
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod

from xarr.compiler.fusion.scatter_windows import windows_of
from xarr.compiler.loop_ir.axis_runs import axis_runs
from xarr.compiler.loop_ir.computed_indices import as_int64, components, is_inside
from xarr.compiler.loop_ir.elements import (
    Elements,
    Index,
    buffer_of,
    compute_scalars,
    reader,
    row_major,
)
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Carry,
    Kernel,
    Loop,
    Store,
    in_threads,
    index_value,
    lanes_if,
    load,
    nest_loops,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import INT64, Value, Values
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
        (self.node,) = self.graph.results
        assert isinstance(self.node.op, ops.Scatter)
        self.op = self.node.op
        self.operand, self.indices, self.updates = self.node.operands
        self.windows = windows_of(self.node)
        self.inputs = tuple(buffer_of(f"in{k}", node, "in") for k, node in enumerate(self.graph.parameters))
        self.out = buffer_of("out0", self.node, "out")
        self.locals: list[Buffer] = []
        self.sources = {
            node: reader(self.values, buffer, node)
            for buffer, node in zip(self.inputs, self.graph.parameters, strict=True)
        }

    def kernel(self) -> Kernel:
        phases = [self._copy_operand(), _Walk(self).phase()]
        return Kernel(self.inputs, (self.out,), (), tuple(self.locals), in_threads(phases))

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
            once = self._once(condition)
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
        start_index, fits = self._start(at)
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
        start_index, fits = self._start(batch)
        if own is None:
            outer.append(self._once(self._all(fits.values())))
        elif self.windows.sizes[own] == 1:
            outer.append(self._once(self._belongs(start_index, fits, own)))
        else:
            (loop,) = (loop for loop in inner if loop.index in dict(window[own].terms))
            low, loop.extent = self._own_part(start_index[own].value(self.values), fits, own)
            window[own] = window[own] + Affine(((low, 1),))
        return nest_loops([around, *outer])[-1], batch

    def _once(self, condition: Value | None) -> Loop:
        """A loop that runs once if the condition holds, else not at all."""
        extent = 1 if condition is None else condition.select(self.values.constant(1, INT64), 0)
        return Loop(index_value(self.values, "once"), extent)

    def _belongs(self, start_index: list[Affine], fits: dict[int, Value], own: int) -> Value:
        """Whether a window that has one index along the divided dimension fits and lies in the range."""
        first, end = self.bounds
        number = start_index[own].value(self.values)
        others = [condition for dim, condition in fits.items() if dim != own]
        belongs = self._all([number.ge(first), number.lt(end), *others])
        assert belongs is not None
        return belongs

    def _all(self, conditions: Iterable[Value]) -> Value | None:
        conjunction: Value | None = None
        for condition in conditions:
            conjunction = condition if conjunction is None else conjunction & condition
        return conjunction

    def _own_part(self, start: Value, fits: dict[int, Value], own: int) -> tuple[Value, Value]:
        """Which part of a window's extent along the divided dimension belongs to the range: first and count."""
        first, end = (bound - start for bound in self.bounds)
        size = self.windows.sizes[own]
        low = first.lt(0).select(0, first)
        high = end.gt(size).select(size, end)
        count = high - low
        some = self._all([*fits.values(), count.gt(0)])
        assert some is not None
        count = some.select(count, 0)
        return low, count.gt(size).select(size, count)

    def _start(self, batch: Index) -> tuple[list[Affine], dict[int, Value]]:
        """Where the window at an index of the batch starts, and by dimension when it fits."""
        start_index, fits = [Affine()] * len(self.shape), dict[int, Value]()
        rank = len(self.scatter.indices.shape)
        element = partial(self.scatter.elements().at, self.scatter.indices)
        for dim, last, number in components(self.windows, rank, batch, element):
            fits[dim] = is_inside(number, last)
            if last:
                start_index[dim] = Affine(((as_int64(number), 1),))
        for dim, position in self.windows.batching:
            start_index[dim] = batch[position]
        return start_index, fits

    def _update(self, batch: Index, window: Index) -> tuple[Store, list[Value]]:
        """Combine one update into its target."""
        scatter, windows = self.scatter, self.windows
        start_index, fits = self._start(batch)
        target = row_major(self.shape, tuple(a + b for a, b in zip(start_index, window, strict=True)))
        index = [Affine()] * len(scatter.updates.shape)
        for dim, at in zip(windows.batch_dims, batch, strict=True):
            index[dim] = at
        for dim, own in zip(windows.kept_dims, windows.window_dims, strict=True):
            index[own] = window[dim]
        update = scatter.elements().at(scatter.updates, tuple(index))
        old = load(self.values, scatter.out, target)
        computation = scatter.op.update_computation
        (new,) = compute_scalars(computation, (old, update), scatter.values)
        return Store(scatter.out, target, new), list(fits.values())


def _split(run: list[int], rank: int) -> Iterator[list[int]]:
    """A run of axes without those of the batch, and these."""
    for part in ([axis for axis in run if axis < rank], [axis for axis in run if axis >= rank]):
        if part:
            yield part
