"""Windows: wide ones axis by axis, so that each element is combined a few times along an axis whatever the width.

Neighbouring windows with steps of 1 have most of their elements in common.  A thread has several of them: it combines
what all have once, and from there on outwards what only some have, so 16 windows of 31 elements take 62 steps, not
496.  Where one of the axes is the innermost, a block has a tile of the result, reads what the tile needs from memory
once, combines it along another axis on its way into shared memory, and from there along the innermost axis: so lanes
next to each other read and write memory side by side, and nothing is stored between the axes.

Only by operations that need no order, and not of complex numbers, the signs of whose zeros tell it.  Narrow floats are
added up in float32.  Windows with steps or holes have a thread for each result of an axis.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import prod
from typing import Final, TypeAlias

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Affine, Loop, Store, index_value
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.gpu import scans
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial import windows
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, tensor_types
from xarr.compiler.schedules.serial.windows import element_of_window, lies_inside, select_if
from xarr.dtypes import COMPLEX, accumulator_dtype
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints, replace_at
from xarr.ir.windows import Window, WindowDimension

#: Banks of shared memory.
_BANKS: Final = 32
#: The element at an index, which need not exist where a predicate is false, as what accumulates it.
_ElementAt: TypeAlias = Callable[[Index, "Value | None"], Value]


def reduce_window(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Phases along the axes of wide windows; running totals as `scans` has them, others one by one."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.ReduceWindow)
    if scan_axis(node) is not None:
        return scans.running_totals(loops, node)
    if (
        _is_wide(loops, node.op)
        and len(node.operands) == 2
        and node.dtype not in COMPLEX
        and monoids(node.op.computation)
    ):
        return _AxisWindows(loops, node).add_phases()
    if prod(node.op.window_dimensions) * len(node.op.computation.nodes) <= loops.target.max_unrolled_terms:
        return _add_small(loops, node)
    return windows.reduce_window(loops, node)


def _add_small(loops: GridLoops, node: Node) -> Sequence[Source]:
    """A phase in which a thread has small windows, of whose elements each has its own line."""
    assert isinstance(node.op, ops.ReduceWindow)
    dtypes = [each.dtype for each in tensor_types(node.type)]
    start, step = windows.start_and_step(loops, node)
    shape, sizes = tensor_types(node.type)[0].shape, node.op.window_dimensions
    if len(dtypes) > 1 or not _is_extremum(node.op):
        return sources_of(loops.fold_unrolled(shape, sizes, start, step, lambda index, held: held, dtypes))
    # Narrow floats are compared as wider ones, and not rounded in between.
    extrema = _AxisWindows(loops, node)

    def start_wide(index: Index) -> list[Value]:
        return [extrema.initial_value()]

    def step_wide(own: Index, number: Index, held: Sequence[Value]) -> list[Value]:
        at, exists = element_of_window(loops, extrema.op.window, extrema.array.shape, own, number)
        return [select_if(exists, extrema.combine(held[0], extrema.element(at, exists)), held[0])]

    def finish(index: Index, held: Sequence[Value]) -> list[Value]:
        return [loops.convert(held[0], extrema.held, node.dtype)]

    return sources_of(loops.fold_unrolled(shape, sizes, start_wide, step_wide, finish, dtypes))


def _is_extremum(op: ops.ReduceWindow) -> bool:
    """Whether the result of a window is one of its elements."""
    monoid = monoids(op.computation)
    return monoid is not None and isinstance(monoid[0](), ops.Maximum | ops.Minimum)


def _is_wide(loops: GridLoops, op: ops.ReduceWindow) -> bool:
    """Whether fewer elements are combined axis by axis: half as many along several, or along one that slides."""
    wide = [each for each in op.window.dimensions if each.size > 1]
    size, least = prod(each.size for each in wide), loops.target.min_wide_window_elements
    return size >= least and (
        (len(wide) == 1 and _slides(wide[0])) or 2 * sum(each.size for each in wide) <= size
    )


def _slides(dimension: WindowDimension) -> bool:
    """Whether each window has all elements of the one before but its first."""
    return dimension.stride == dimension.base_dilation == dimension.window_dilation == 1


class _AxisWindows:
    """The phases of a reduction of windows: one for each axis along which they are wide, or for two."""

    def __init__(self, loops: GridLoops, node: Node) -> None:
        assert isinstance(node.op, ops.ReduceWindow)
        self.loops, self.node, self.op = loops, node, node.op
        self.values, self.target = loops.values, loops.target
        self.array, self.initial = node.operands
        monoid = monoids(node.op.computation)
        assert monoid is not None
        self.monoid = monoid[0]()
        #: The type of partial results, and the one in which phases hand them on: an extremum is one of the elements.
        self.held: DType = accumulator_dtype(node.dtype)
        self.between: DType = node.dtype if _is_extremum(node.op) else self.held

    def add_phases(self) -> Sequence[Source]:
        """Along the innermost axis first; what comes last begins with the initial value."""
        axes = [axis for axis, each in enumerate(self.op.window.dimensions) if not each.is_trivial]
        shape = self.array.shape
        elements: _ElementAt = self.element
        while axes:
            phase = _next_phase(self, shape, elements, axes)
            axes = [axis for axis in axes if axis not in phase.axes]
            shape, results = phase.shape, phase.add(not axes)
            elements = self._load_from(results, self.between)
        return sources_of([results])

    def element(self, index: Index, predicate: Value | None = None) -> Value:
        """An element of the array as what accumulates it."""
        return self.loops.convert(self.loops.at(self.array, index, predicate), self.node.dtype, self.held)

    def _load_from(self, results: Scratch, dtype: DType) -> _ElementAt:
        """The elements that a phase has stored."""
        return lambda index, predicate: self.loops.convert(results.load(index, predicate), dtype, self.held)

    def combine(self, left: Value, right: Value) -> Value:
        """The result of two parts of a window, one behind the other."""
        if left is self.neutral and _is_extremum(self.op):
            return right
        return self.loops.apply(self.monoid, self.held, left, right)

    @cached_property
    def neutral(self) -> Value:
        """A value that changes no partial result."""
        return self.values.constant(self.monoid.identity(self.held), register_dtype(self.held))

    def finish(self, result: Value, is_last: bool) -> Value:
        """A result of a phase as it is stored: the last one combined with the initial value."""
        if not is_last:
            return self.loops.convert(result, self.held, self.between)
        return self.loops.convert(self.combine(self.initial_value(), result), self.held, self.node.dtype)

    def initial_value(self) -> Value:
        """The initial value as what accumulates elements."""
        return self.loops.convert(self.loops.at(self.initial, ()), self.node.dtype, self.held)

    def slide(
        self, element: Callable[[Affine], Value], size: int, count: int
    ) -> tuple[list[Loop | Store], list[Value]]:
        """The results of `count` neighbouring windows of `size` elements, at least as many, from the first one on.

        And the parts of the body that must stand before them.
        """

        def at(number: int) -> Value:
            return element(Affine(constant=number))

        def step(index: Value, held: Sequence[Value]) -> list[Value]:
            return [self.combine(held[0], element(Affine(((index, 1),), count)))]

        parts: list[Loop | Store] = []
        common = at(count - 1)
        if size - count > self.target.max_unrolled_terms:
            loop, (common,) = self.loops.carry(size - count, [common], step)
            parts.append(loop)
        else:
            for number in range(count, size):
                common = self.combine(common, at(number))
        results = [common]
        for number in reversed(range(count - 1)):
            results.insert(0, self.combine(at(number), results[0]))
        behind = None
        for window in range(1, count):
            new = at(size + window - 1)
            behind = new if behind is None else self.combine(behind, new)
            results[window] = self.combine(results[window], behind)
        return parts, results


def _next_phase(reduction: _AxisWindows, shape: Ints, elements: _ElementAt, axes: Sequence[int]) -> _Phase:
    """The phase along the last axes of those that are left."""
    dimensions = reduction.op.window.dimensions
    last = axes[-1]
    if not _slides(dimensions[last]):
        return _SingleWindows(reduction, shape, elements, (last,))
    if last == len(shape) - 1:
        others = [axis for axis in axes[:-1] if _slides(dimensions[axis])]
        if not others:
            idle = [axis for axis in range(last) if dimensions[axis].is_trivial]
            others = sorted(idle, key=lambda axis: shape[axis])
        for pair in ((*others[-1:], last), (last,)):
            tiles = _TiledWindows(reduction, shape, elements, pair)
            if tiles.pays():
                return tiles
    return _NeighbouringWindows(reduction, shape, elements, (last,))


class _Phase:
    """A phase of windows along some axes of what an array has."""

    def __init__(
        self, reduction: _AxisWindows, before: Ints, elements: _ElementAt, axes: tuple[int, ...]
    ) -> None:
        self.reduction, self.elements, self.axes, self.before = reduction, elements, axes, before
        self.loops, self.target = reduction.loops, reduction.target
        self.dimensions = [reduction.op.window.dimensions[axis] for axis in axes]
        own = dict(zip(axes, self.dimensions, strict=True))
        self.window = Window(tuple(own.get(axis, WindowDimension(1)) for axis in range(len(before))))
        self.shape = self.window.output_shape(before)

    def add(self, is_last: bool) -> Scratch:
        """Add the phase; the array of its results."""
        raise NotImplementedError

    def dtype(self, is_last: bool) -> DType:
        """The type of the results."""
        return self.reduction.node.dtype if is_last else self.reduction.between

    def position(self, number: int, window: Affine) -> tuple[Affine, Value | None]:
        """The index of the first element of a window along an own axis, and whether it exists, None for always.

        Of a tile that sticks out of the results there is none: any element does.
        """
        dimension, size = self.dimensions[number], self.before[self.axes[number]]
        at = window + -dimension.padding_low
        if not lies_inside(dimension, size):
            return at, self.loops.elements.is_inside(at, 0, size, None)
        value = at.value(self.loops.values)
        return Affine(((value.lt(size).select(value, size - 1), 1),)), None

    def element(self, index: Index, predicates: Sequence[Value | None]) -> Value:
        """The element at an index, the neutral one where one of the predicates is false."""
        exists = None
        for each in predicates:
            exists = each if exists is None else exists if each is None else exists & each
        return select_if(exists, self.elements(index, exists), self.reduction.neutral)


class _SingleWindows(_Phase):
    """A thread has a window along one axis, with any steps and holes."""

    def add(self, is_last: bool) -> Scratch:
        reduction, loops = self.reduction, self.loops
        (axis,), (dimension,) = self.axes, self.dimensions

        def step(own: Index, number: Index, held: Sequence[Value]) -> list[Value]:
            numbers = tuple(number[0] if k == axis else Affine() for k in range(len(own)))
            at, exists = element_of_window(loops, self.window, self.before, own, numbers)
            return [select_if(exists, reduction.combine(held[0], self.elements(at, exists)), held[0])]

        (results,) = loops.fold(
            self.shape,
            (dimension.size,),
            [reduction.held],
            lambda index: [reduction.neutral],
            step,
            lambda index, held: [reduction.finish(held[0], is_last)],
            [self.dtype(is_last)],
        )
        return results


class _NeighbouringWindows(_Phase):
    """A thread has several windows side by side along one axis."""

    def add(self, is_last: bool) -> Scratch:
        (axis,), (dimension,) = self.axes, self.dimensions
        count = min(self.target.thread_windows, dimension.size)
        results = self.loops.new(self.dtype(is_last), self.shape)
        groups = -(-self.shape[axis] // count)

        def body(index: Index) -> list[Loop | Store]:
            first = index[axis] * count

            def element(number: Affine) -> Value:
                at, exists = self.position(0, first + number)
                return self.element(replace_at(index, axis, at), [exists])

            parts, values = self.reduction.slide(element, dimension.size, count)
            for number, value in enumerate(values):
                own = first + number
                store = results.store(replace_at(index, axis, own), self.reduction.finish(value, is_last))
                is_outside = groups * count - count + number >= self.shape[axis]
                parts += self._if_inside(own, store) if is_outside else [store]
            return parts

        self.loops.phase(replace_at(self.shape, axis, groups), body)
        return results

    def _if_inside(self, at: Affine, store: Store) -> Sequence[Loop | Store]:
        (axis,) = self.axes
        return self.loops.only_if(at.value(self.loops.values).lt(self.shape[axis]), [store])


class _TiledWindows(_Phase):
    """A block has a tile of the result, of rows along one axis and columns along the innermost; or columns alone.

    Threads have columns of what the tile needs, or parts of them, and store their results along the first axis in
    shared memory; then parts of its rows.
    """

    def __init__(
        self, reduction: _AxisWindows, before: Ints, elements: _ElementAt, axes: tuple[int, ...]
    ) -> None:
        super().__init__(reduction, before, elements, axes)
        target, rows = self.target, self.dimensions[0] if len(axes) == 2 else WindowDimension(1)
        self.row_size, self.size = rows.size, self.dimensions[-1].size
        #: Rows of a thread, and of the tile.
        self.own_rows = min(target.thread_rows, self.row_size)
        self.rows = target.thread_rows // self.own_rows * self.own_rows if len(axes) == 2 else 1
        #: Rows whose results are in shared memory at the same time.
        self.part_rows = -(-self.rows // 2)
        #: Columns of a thread, an odd number, so that neighbours read from different banks; those that the tile needs,
        #: and those that it has.
        self.own_columns = min(target.thread_windows, self.size) - 1 | 1
        nbytes = self.rows * register_dtype(reduction.held).itemsize
        nbytes += self.part_rows * reduction.node.dtype.itemsize
        most = target.block_threads * (1 if len(axes) == 2 else self.own_columns)
        groups = (min(target.local_bytes // nbytes, most) - self.size + 1) // self.own_columns
        self._have(groups)
        while groups > 0 and self._nbytes > target.local_bytes:
            groups -= 1
            self._have(groups)

    def _have(self, groups: int) -> None:
        """Let a row of the tile be so many threads' columns."""
        self.columns = groups * self.own_columns
        self.read_columns = self.columns + self.size - 1
        #: Elements from one row to the next: neighbouring threads read from different banks across rows too.
        self.row_stride = self.read_columns + (self.columns - self.read_columns) % _BANKS

    @property
    def _nbytes(self) -> int:
        """Bytes of shared memory."""
        held, result = register_dtype(self.reduction.held), self.reduction.node.dtype
        return self.rows * self.row_stride * held.itemsize + int(
            self.part_rows * self.columns * result.itemsize
        )

    def pays(self) -> bool:
        """Whether tiles are full of results, and most of what they read is not read by their neighbours too."""
        shape = [self.shape[axis] for axis in self.axes]
        return (
            2 * self.columns >= self.read_columns
            and 2 * shape[-1] >= self.columns
            and (len(shape) == 1 or 2 * shape[0] >= self.rows)
        )

    def add(self, is_last: bool) -> Scratch:
        loops = self.loops
        results = loops.new(self.dtype(is_last), self.shape)
        columns = loops.new_shared(self.reduction.held, self.rows * self.row_stride)
        tile = loops.new_shared(self.dtype(is_last), self.part_rows * self.columns)
        steps = [self.rows, self.columns][-len(self.axes) :]
        tiles = [-(-self.shape[axis] // step) for axis, step in zip(self.axes, steps, strict=True)]
        others = tuple(size for axis, size in enumerate(self.shape) if axis not in self.axes)

        def body(index: Index) -> Sequence[Loop | Store]:
            other = index[: len(others)]
            firsts = [at * step for at, step in zip(index[len(others) :], steps, strict=True)]
            parts: list[Loop | Store] = [self._combine_columns(columns, other, firsts)]
            for first in range(0, self.rows, self.part_rows):
                rows = range(first, min(first + self.part_rows, self.rows))
                parts.append(self._combine_rows(columns, tile, rows, is_last))
                parts.append(self._store(tile, results, rows, other, firsts))
            return parts

        loops.blocks((*others, *tiles), body)
        return results

    def _index(self, others: Index, own: Sequence[Affine]) -> Index:
        """An index, of those along the own axes and along all others."""
        known, rest = dict(zip(self.axes, own, strict=True)), iter(others)
        return tuple(known[axis] if axis in known else next(rest) for axis in range(len(self.before)))

    def _share(self, count: int, body: Callable[[Value], Sequence[Loop | Store]]) -> Loop:
        """A loop over a tile, whose iterations the threads of a block share."""
        loop = self.loops.share(count, lambda index: body(index[0].terms[0][0]))
        loop.is_of_tile = True
        return loop

    def _combine_columns(self, columns: Scratch, others: Index, firsts: Sequence[Affine]) -> Loop:
        """Store the results along the first axis of all columns that the tile needs."""

        def body(number: Value) -> Sequence[Loop | Store]:
            column = Affine(((number.rem(self.read_columns), 1),))
            row = Affine(((number / self.read_columns, self.own_rows),))
            at, exists = self.position(len(self.axes) - 1, firsts[-1] + column)

            def element(term: Affine) -> Value:
                if len(self.axes) == 1:
                    return self.element(self._index(others, [at]), [exists])
                row_at, row_exists = self.position(0, firsts[0] + row + term)
                return self.element(self._index(others, [row_at, at]), [row_exists, exists])

            parts, values = self.reduction.slide(element, self.row_size, self.own_rows)
            stores = [
                columns.store(((row + k) * self.row_stride + column,), value)
                for k, value in enumerate(values)
            ]
            return [*parts, *stores]

        return self._share(self.rows // self.own_rows * self.read_columns, body)

    def _combine_rows(self, columns: Scratch, tile: Scratch, rows: range, is_last: bool) -> Loop:
        """Store the results along the innermost axis of some rows of the tile."""
        groups = self.columns // self.own_columns

        def body(number: Value) -> Sequence[Loop | Store]:
            row, first = number / groups, Affine(((number.rem(groups), self.own_columns),))
            start = Affine(((row, self.row_stride),), rows.start * self.row_stride) + first

            def element(term: Affine) -> Value:
                return columns.load((start + term,))

            parts, values = self.reduction.slide(element, self.size, self.own_columns)
            own = Affine(((row, self.columns),)) + first
            stores = [
                tile.store((own + k,), self.reduction.finish(value, is_last))
                for k, value in enumerate(values)
            ]
            return [*parts, *stores]

        return self._share(len(rows) * groups, body)

    def _store(
        self, tile: Scratch, results: Scratch, rows: range, others: Index, firsts: Sequence[Affine]
    ) -> Loop:
        """Copy some rows of the tile to the results, so far as there are any: a thread has a column."""
        values, has_rows = self.loops.values, len(self.axes) == 2

        def body(number: Value) -> Sequence[Loop | Store]:
            column = firsts[-1] + Affine(((number, 1),))
            row = Loop(index_value(values, "row"), len(rows), is_of_tile=True)
            value = tile.load((Affine(((row.index, self.columns), (number, 1))),))
            own = [firsts[0] + Affine(((row.index, 1),), rows.start), column] if has_rows else [column]
            row.body.append(results.store(self._index(others, own), value))
            if has_rows:
                rest = (firsts[0] * -1 + (self.shape[self.axes[0]] - rows.start)).value(values)
                row.extent = rest.lt(len(rows)).select(rest, len(rows))
            inside = column.value(values).lt(self.shape[self.axes[-1]])
            return self.loops.only_if(inside, [row])

        return self._share(self.columns, body)
