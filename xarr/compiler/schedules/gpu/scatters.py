"""Scatters: who combines an element with its updates, so that no two threads do it at once.

* where no two updates go to one element, a thread for each update;
* where only the last update of an element counts, a thread for each element, once the last one is known;
* where the order of the updates does not matter, a thread for each update, atomically: integers and extremes, and sums
  of floats unless results are to be deterministic; where they go to few elements, blocks combine their updates in
  tables of their own first;
* where many float32 are added to many elements, a thread for each update, as integers: `updates/exact_sums.py`;
* else in the order of the updates, by a thread for each element: updates are sorted by the element that they go to,
  here or by a library before, so that those of one are a segment.  The bits are those of the serial schedule.  Long
  segments are folded in parts, at positions that are always the same, and then the parts: sums of floats have other
  last bits than on the CPU, and the same in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, row_major
from xarr.compiler.loop_ir.loops import (
    Accumulator,
    Affine,
    Atomic,
    Exchange,
    Loop,
    Runs,
    Store,
    index_value,
)
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.gpu.merges import SortOperands, merge_sort
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.schedules.gpu.updates.exact_sums import add_exactly, adds_exactly
from xarr.compiler.schedules.serial.scatters import Updates, combine_in_place
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.dtypes import INTEGER
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import Ints

_ATOMICS: Final[dict[type[Op], Atomic]] = {
    ops.Add: Atomic.ADD,
    ops.Maximum: Atomic.MAXIMUM,
    ops.Minimum: Atomic.MINIMUM,
    ops.And: Atomic.AND,
    ops.Or: Atomic.OR,
    ops.Xor: Atomic.XOR,
}
#: Floats that GPUs add to memory atomically; of complex numbers both parts.
_ADDED: Final = ("float32", "float64", "complex64", "complex128")
#: Floats that lanes of a warp can read from each other.
_SHUFFLED: Final = (np.dtype(np.float32), np.dtype(np.float64))
#: Keys are less.
_MOST: Final = 2**63


def scatter(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The phases that fill the results."""
    assert isinstance(loops, GridLoops)
    updates, results = Updates(loops, node), loops.results_of(node)
    segments = _Segments(loops, updates, results)
    atomics = _atomics_of(updates, bool(loops.target.deterministic))
    if _replaces(updates):
        _keep_last(loops, updates, results)
        return sources_of(results)
    if adds_exactly(node, loops.target):
        add_exactly(loops, updates, results)
        return sources_of(results)
    updates.copy_operands(results)
    if updates.op.unique_indices or prod(updates.windows.batch_shape) == 1:
        combine_in_place(updates, results, ())
    elif atomics is not None and _pays_tables(loops.target, updates, results):
        _combine_in_tables(loops, updates, results, atomics)
    elif atomics is not None:
        _combine_atomically(updates, results, atomics)
    elif updates.op.indices_are_sorted or segments.has_keys:
        segments.combine()
    else:
        combine_in_place(updates, results, range(len(updates.extents)))
    return sources_of(results)


# --- updates that replace ------------------------------------------------------------------------------------


def _replaces(updates: Updates) -> bool:
    """Whether an element becomes what the last update brings."""
    computation = updates.op.update_computation
    return computation.results == computation.parameters[len(updates.operands) :]


def _keep_last(loops: GridLoops, updates: Updates, results: Sequence[Scratch]) -> None:
    """Three phases: no element has an update; the greatest number of an update of each; that update, or the operand."""
    extents, shape = updates.extents, results[0].shape
    dtype = np.dtype(np.int32) if prod(extents) < 2**31 else INT64
    last, none = loops.new(dtype, shape), loops.values.constant(-1, dtype)

    def look(index: Index) -> Sequence[Loop | Store]:
        target, fits = updates.target(index)
        store = last.store(target, row_major(extents, index).value(loops.values).convert(dtype))
        return updates.only_if(fits, [replace(store, atomic=Atomic.MAXIMUM)])

    def choose(index: Index) -> Sequence[Loop | Store]:
        number = last.load(index).convert(INT64)
        # Of an element without an update the first one is read, and not used.
        own = split_number(number.lt(0).select(0, number), extents)
        pairs = zip(updates.elements(own), updates.operands, strict=True)
        new = [number.lt(0).select(loops.at(operand, index), each) for each, operand in pairs]
        return store_all(results, index, new)

    loops.phase(shape, lambda index: [last.store(index, none)])
    loops.phase(extents, look)
    loops.phase(shape, choose)


# --- updates in any order ------------------------------------------------------------------------------------


def _atomics_of(updates: Updates, deterministic: bool) -> Sequence[Atomic | Exchange] | None:
    """The combination of each result if the order of the updates does not matter; None if it does."""
    combiners = monoids(updates.op.update_computation)
    if combiners is None:
        return None
    rows = zip(combiners, updates.operands, strict=True)
    atomics = [_atomic(updates, combiner, operand.dtype, deterministic) for combiner, operand in rows]
    return None if None in atomics else [each for each in atomics if each is not None]


def needs_order(node: Node, target: GpuTarget) -> bool:
    """Whether a scatter of one array folds the updates of an element in their order, several of them."""
    op, (operand, indices, updates) = node.op, [each.tensor_type for each in node.operands]
    assert isinstance(op, ops.Scatter)
    windows = op.windows(operand, indices, updates)
    replaces = op.update_computation.results == op.update_computation.parameters[1:]
    if replaces or op.unique_indices or prod(windows.batch_shape) == 1 or adds_exactly(node, target):
        return False
    combiners = monoids(op.update_computation)
    return combiners is None or _has_order(combiners[0], operand.dtype, bool(target.deterministic))


def _has_order(combiner: type[ops.Binary], dtype: DType, deterministic: bool) -> bool:
    """Whether the order in which elements of a type are combined matters, or nothing combines them atomically."""
    is_extreme = combiner in (ops.Maximum, ops.Minimum) and dtype.kind != "c"
    is_exact = dtype in INTEGER or dtype == np.bool_
    if deterministic and not (is_exact or is_extreme):
        return True
    return _native(combiner, dtype) is None and dtype.itemsize > 8


def _native(combiner: type[ops.Binary], dtype: DType) -> Atomic | None:
    """The combination that GPUs have an instruction for."""
    atomic = _ATOMICS.get(combiner)
    is_known = dtype in INTEGER or (atomic is Atomic.ADD and dtype.name in _ADDED)
    return atomic if is_known else None


def _atomic(
    updates: Updates, combiner: type[ops.Binary], dtype: DType, deterministic: bool
) -> Atomic | Exchange | None:
    """The combination of an element of a type with an update; None where the order matters."""
    if _has_order(combiner, dtype, deterministic):
        return None
    if (atomic := _native(combiner, dtype)) is not None:
        return atomic
    values, register = updates.loops.values, register_dtype(dtype)
    old, new = (values.make("argument", (), register, name, unique=True) for name in ("old", "new"))
    return Exchange(old, new, updates.loops.apply(combiner(), dtype, old, new))


def _combine_atomically(
    updates: Updates, results: Sequence[Scratch], atomics: Sequence[Atomic | Exchange]
) -> None:
    """A phase: a thread for each update."""

    def combine(index: Index) -> Sequence[Loop | Store]:
        target, fits = updates.target(index)
        return updates.only_if(fits, _stores(results, target, _elements(updates, index), atomics))

    updates.loops.phase(updates.extents, combine)


def _stores(
    arrays: Sequence[Scratch], index: Index, new: Sequence[Value], atomics: Sequence[Atomic | Exchange]
) -> list[Store]:
    """The atomic combination of an element of each array with a value."""
    stores = zip(store_all(arrays, index, new), atomics, strict=True)
    return [replace(store, atomic=atomic) for store, atomic in stores]


def _elements(updates: Updates, index: Index) -> list[Value]:
    """The elements that an update brings to each result, in any order."""
    rows = zip(updates.operands, updates.elements(index), strict=True)
    return [_with_one_nan(updates, operand.dtype, element) for operand, element in rows]


def _pays_tables(target: GpuTarget, updates: Updates, results: Sequence[Scratch]) -> bool:
    """Whether each block should have a table of all results."""
    size, count = results[0].buffer.size, prod(updates.extents)
    fits = sum(each.buffer.nbytes for each in results) <= target.table_bytes
    return fits and count >= target.min_table_updates * size and count >= 2 * target.block_updates


def _combine_in_tables(
    loops: GridLoops, updates: Updates, results: Sequence[Scratch], atomics: Sequence[Atomic | Exchange]
) -> None:
    """A phase: a block combines its updates in tables of neutral elements first, and these with the results.

    Lanes next to each other have tables of their own, as far as there is memory: where most updates go to the same
    element, they do not wait for each other.
    """
    combiners = monoids(updates.op.update_computation)
    assert combiners is not None
    size, count, extents = results[0].buffer.size, prod(updates.extents), updates.extents
    blocks = min(loops.target.busy_blocks, count // loops.target.block_updates)
    length = -(-count // blocks)
    copies = _tables_of_block(loops.target, results, length)
    tables = [loops.new_shared(operand.dtype, size * copies) for operand in updates.operands]
    flat = [Scratch(loops.values, each.buffer, (size,)) for each in results]
    pairs = list(zip(combiners, [operand.dtype for operand in updates.operands], strict=True))
    neutral = [_neutral(loops, *pair) for pair in pairs]

    def combine(block: Affine, at: Affine) -> Sequence[Loop | Store]:
        number = (block * length + at).value(loops.values)
        index = split_number(number.lt(count).select(number, count - 1), extents)
        target, fits = updates.target(index)
        inside = number.lt(count) if fits is None else number.lt(count) & fits
        lane = Affine(((at.value(loops.values).rem(copies), 1),)) if copies > 1 else Affine()
        into = (row_major(results[0].shape, target) * copies + lane,)
        return loops.only_if(inside, _stores(tables, into, _elements(updates, index), atomics))

    def empty(at: Index) -> Sequence[Loop | Store]:
        def step(copy: Value, held: Sequence[Value]) -> Sequence[Value]:
            elements = [each.load((at[0] * copies + Affine(((copy, 1),)),)) for each in tables]
            rows = zip(pairs, held, elements, strict=True)
            return [loops.apply(combiner(), dtype, *both) for (combiner, dtype), *both in rows]

        if copies == 1:
            return _stores(flat, at, [each.load(at) for each in tables], atomics)
        loop, totals = loops.carry(copies, neutral, step)
        return [loop, *_stores(flat, at, totals, atomics)]

    def body(index: Index) -> Sequence[Loop | Store]:
        return [
            loops.share(size * copies, lambda at: store_all(tables, at, neutral)),
            loops.share(length, lambda at: combine(index[0], at[0])),
            loops.share(size, empty),
        ]

    loops.blocks((blocks,), body)


def _tables_of_block(target: GpuTarget, results: Sequence[Scratch], length: int) -> int:
    """The number of tables of a block of so many updates: a power of two."""
    nbytes, size = sum(each.buffer.nbytes for each in results), results[0].buffer.size
    copies = 1
    while (
        2 * copies <= target.block_tables
        and 2 * copies * nbytes <= target.table_bytes
        and 2 * copies * size <= length
    ):
        copies *= 2
    return copies


def _neutral(loops: GridLoops, combiner: type[ops.Binary], dtype: DType) -> Value:
    """The neutral element of an operation, as registers hold it."""
    register = register_dtype(dtype)
    element: np.generic = np.array([combiner.identity(dtype)], dtype).view(register)[0]
    return loops.values.constant(element, register)


def _with_one_nan(updates: Updates, dtype: DType, element: Value) -> Value:
    """An update, of the NaNs always the same: which of several came first must not show."""
    if dtype.kind in "iubc":
        return element
    loops, register = updates.loops, register_dtype(dtype)
    is_nan = loops.apply(ops.Compare("NE"), dtype, element, element)
    nan: np.generic = np.array([np.nan], dtype).view(register)[0]
    return is_nan.select(loops.values.constant(nan, register), element)


# --- updates in their order ----------------------------------------------------------------------------------


class _Segments:
    """Updates, or whole windows where two are the same or apart, sorted by where they go, their spot.

    The key of the update of a number is `spot * count + number`; of one that goes nowhere the spot is behind all.
    Where the updates come sorted, as `sort_updates` has them, there are no keys.
    """

    def __init__(self, loops: GridLoops, updates: Updates, results: Sequence[Scratch]) -> None:
        self.loops, self.updates, self.results = loops, updates, results
        windows, shape = updates.windows, results[0].shape
        starts = dict(zip(windows.index_map, windows.last_starts, strict=True))
        are_apart = all(windows.sizes[dim] == 1 or last == 0 for dim, last in starts.items())
        #: What is sorted, what belongs to each, and where these can begin.
        self.shape = windows.batch_shape if are_apart else updates.extents
        self.inner: Ints = windows.sizes if are_apart else ()
        self.spots: Ints = shape
        if are_apart:
            firsts = {**starts, **{dim: shape[dim] - 1 for dim, _ in windows.batching}}
            self.spots = tuple(firsts.get(dim, 0) + 1 for dim in range(len(shape)))
        self.count, self.size = prod(self.shape), prod(self.spots)
        self.keys: Scratch | None = None

    @property
    def has_keys(self) -> bool:
        """Whether there is a number for each key."""
        return (self.size + 1) * self.count < _MOST

    @cached_property
    def has_parts(self) -> bool:
        """Whether there may be long segments, whose updates may be combined part by part."""
        combiners, target = monoids(self.updates.op.update_computation), self.loops.target
        pairs = zip(self.updates.operands, self.updates.updates, strict=True)
        is_of_one_type = all(operand.dtype == update.dtype for operand, update in pairs)
        # What is remembered of each spot takes memory.
        is_small = self.size <= target.max_spots * self.count
        return combiners is not None and is_of_one_type and is_small and self.count > target.segment_part

    def combine(self) -> None:
        """The phases of the sort, and those that go through the segments.

        A thread folds a segment, that of its spot, or of its first update where few spots have one.  Of a long one
        threads or warps fold parts, and a warp combines them, unless the order of all updates matters.
        """
        loops, target = self.loops, self.loops.target
        if not self.updates.op.indices_are_sorted:
            operands = SortOperands([INT64], (), self.count)
            (self.keys,) = merge_sort(loops, operands, self._keys, lambda left, right: left[0].lt(right[0]))
        is_dense = self.size <= self.count > target.segment_part
        if is_dense or self.has_parts:
            bounds = self._find_bounds(is_dense)
        if is_dense:
            loops.phase((self.size, *self.inner), partial(self._fold_spot, bounds))
        else:
            loops.phase((self.count, *self.inner), self._fold)
        if self.has_parts:
            _Parts(self, bounds, target.segment_part).add_phases()

    def _keys(self, _: Index, position: Affine) -> list[Value]:
        """The key of the update of a number."""
        number = self._spot_of_update(position.value(self.loops.values))
        return [number * self.count + position.value(self.loops.values)]

    def _spot_of_update(self, number: Value) -> Value:
        """The number of the spot that an update of a number goes to."""
        own = split_number(number, self.shape) + (Affine(),) * len(self.inner)
        target, fits = self.updates.target(own)
        spot = row_major(self.spots, target).value(self.loops.values)
        return spot if fits is None else fits.select(spot, self.size)

    def spot(self, position: Value) -> Value:
        """The spot of the update at a position of the sorted ones."""
        if self.keys is None:
            return self._spot_of_update(position)
        return self.keys.load((_offset(position),)) / self.count

    def _number(self, position: Value) -> Value:
        """The number of the update at a position of the sorted ones."""
        return position if self.keys is None else self.keys.load((_offset(position),)).rem(self.count)

    def elements(self, position: Value, window: Index) -> list[Value]:
        """The elements that the update at a position brings."""
        return self.updates.elements((*split_number(self._number(position), self.shape), *window))

    def index(self, spot: Value, window: Index) -> Index:
        """The index of an element of the results."""
        start = split_number(spot, self.spots)
        return tuple(a + b for a, b in zip(start, window, strict=True)) if window else start

    def _find_bounds(self, is_dense: bool) -> tuple[Scratch, Scratch]:
        """Arrays of the first position of the segment of each spot, and of the one behind its last.

        Where they are not dense only those of spots with updates are known, else the others are 0.
        """
        loops, count = self.loops, self.count
        dtype = np.dtype(np.int32) if count < 2**31 else INT64
        begins, ends = (loops.new(dtype, (self.size,)) for _ in range(2))
        zero = loops.values.constant(0, dtype)

        def find(index: Index) -> Sequence[Loop | Store]:
            position = index[0].value(loops.values)
            spot = self.spot(position)
            before = self.spot(position.gt(0).select(position - 1, 0))
            behind = self.spot(_least(position + 1, count - 1))
            fits = spot.lt(self.size)
            begins_here = fits & (position.eq(0) | before.ne(spot))
            ends_here = fits & (position.eq(count - 1) | behind.ne(spot))
            at = (_offset(spot),)
            return [
                *loops.only_if(begins_here, [begins.store(at, position.convert(dtype))]),
                *loops.only_if(ends_here, [ends.store(at, (position + 1).convert(dtype))]),
            ]

        if is_dense:
            loops.phase((self.size,), lambda index: store_all([begins, ends], index, [zero, zero]))
        loops.phase((count,), find)
        return begins, ends

    def _fold_spot(self, bounds: tuple[Scratch, Scratch], index: Index) -> Sequence[Loop | Store]:
        """Combine an element with all updates of its segment, if there are any, and not too many for a thread."""
        begin, end = (each.load(index[:1]).convert(INT64) for each in bounds)
        length, most = end - begin, self.count
        exists = length.gt(0)
        if self.has_parts:
            most = self.loops.target.segment_part
            exists = exists & length.le(most)
        own = self.index(index[0].value(self.loops.values), index[1:])

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            return self.updates.combine_elements(held, self.elements(begin + term, index[1:]))

        starts = [each.load(own) for each in self.results]
        loop, totals = self.loops.carry(_least(length, most), starts, step)
        loop.is_of_tile = True
        return self.loops.only_if(exists, [loop, *store_all(self.results, own, totals)])

    def _fold(self, index: Index) -> Sequence[Loop | Store]:
        """Combine an element with all updates of the segment that begins at a position, if one does."""
        loops, count = self.loops, self.count
        position, window = index[0].value(loops.values), index[1:]
        spot = self.spot(position)
        before = self.spot(position.gt(0).select(position - 1, 0))
        inside = (position.eq(0) | before.ne(spot)) & spot.lt(self.size)
        if self.has_parts:
            behind = position + loops.target.segment_part
            is_long = behind.lt(count) & self.spot(_least(behind, count - 1)).eq(spot)
            inside = inside & ~is_long
        own = self.index(spot, window)

        def at(term: Value) -> Value:
            return _least(position + term, count - 1)

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            return self.updates.combine_elements(held, self.elements(at(term), window))

        starts = [each.load(own) for each in self.results]
        loop, totals = loops.carry(_least(count - position, count), starts, step)
        loop.condition = self.spot(at(loop.index)).eq(spot)
        return loops.only_if(inside, [loop, *store_all(self.results, own, totals)])


class _Parts:
    """Long segments, folded in parts: those in each piece of so many positions.

    Of a piece at most the first spot and the last one have a long segment, since that is longer than the piece.
    """

    def __init__(self, segments: _Segments, bounds: tuple[Scratch, Scratch], length: int) -> None:
        self.segments, self.bounds, self.length = segments, bounds, length
        self.loops, self.values, self.updates = segments.loops, segments.loops.values, segments.updates
        self.pieces = -(-segments.count // length)
        combiners = monoids(self.updates.op.update_computation)
        assert combiners is not None
        pairs = zip(combiners, self.updates.operands, strict=True)
        self.neutral = [_neutral(self.loops, combiner, operand.dtype) for combiner, operand in pairs]
        #: Whether lanes of a warp can read each other's: numbers in registers.
        self.has_warps = all(each.dtype.kind in "iu" or each.dtype in _SHUFFLED for each in self.neutral)

    def add_phases(self) -> None:
        """Two phases: a thread or a warp folds each part, and one for each piece the segment that begins there."""
        inner, dtypes = self.segments.inner, [operand.dtype for operand in self.updates.operands]
        parts = [self.loops.new(dtype, (self.pieces, 2, *inner)) for dtype in dtypes]
        # Neighbouring threads read neighbouring elements of a window, or else of the numbers of updates.
        is_wide = prod(inner) >= self.loops.target.min_thread_window
        fold = self._by_thread if is_wide or not self.has_warps else self._by_warp
        self.loops.phase((self.pieces, 2, *inner), partial(self._fold, parts, fold))
        self.loops.phase((self.pieces, *inner), partial(self._combine, parts))

    def _segment(self, position: Value) -> tuple[Value, Value, Value, Value]:
        """The spot of a position, where its segment begins and ends, and whether there is one, and it is long."""
        spot = self.segments.spot(position)
        fits = spot.lt(self.segments.size)
        begin, end = (each.load((_offset(spot),), fits).convert(INT64) for each in self.bounds)
        return spot, begin, end, fits & (end - begin).gt(self.length)

    def _piece(self, number: Affine) -> tuple[Value, Value]:
        """The first position of a piece, and the one behind its last."""
        low = (number * self.length).value(self.values)
        return low, _least(low + self.length, self.segments.count)

    def _fold(
        self,
        parts: Sequence[Scratch],
        fold: Callable[[Value, Value, Index], tuple[Loop, Sequence[Value]]],
        index: Index,
    ) -> Sequence[Loop | Store]:
        """Fold the updates of a piece that belong to the segment of its first position, or of its last one."""
        low, high = self._piece(index[0])
        is_last = index[1].value(self.values).eq(1)
        _, begin, end, is_long = self._segment(is_last.select(high - 1, low))
        first = begin.gt(low).select(begin, low)
        count = end.lt(high).select(end, high) - first
        loop, totals = fold(first, count, index[2:])
        # The segment of the first position may be that of the last one.
        is_own = is_long & (~is_last | begin.gt(low))
        return self.loops.only_if(is_own, [loop, *store_all(parts, index, totals)])

    def _by_thread(self, first: Value, count: Value, window: Index) -> tuple[Loop, Sequence[Value]]:
        """A loop that folds so many updates from a position on, in their order."""

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            elements = self.segments.elements(first + 1 + term, window)
            return self.updates.combine_elements(held, elements)

        starts = self.segments.elements(first, window)
        loop, totals = self.loops.carry(_least(count - 1, self.length), starts, step)
        loop.is_of_tile = True
        return loop, totals

    def _by_warp(self, first: Value, count: Value, window: Index) -> tuple[Loop, Sequence[Value]]:
        """A loop in which a warp folds so many updates from a position on."""
        return self._accumulate(
            _least(count, self.length), lambda term: self.segments.elements(first + term, window)
        )

    def _accumulate(
        self, extent: Value, terms: Callable[[Value], Sequence[Value]]
    ) -> tuple[Loop, Sequence[Value]]:
        """A loop of a warp that combines so many terms, or of a thread."""
        if not self.has_warps:
            return self.loops.carry(
                extent, self.neutral, lambda term, held: self.updates.combine_elements(held, terms(term))
            )
        loop = Loop(index_value(self.values, "term"), extent, Runs.WARP)
        rows = [
            [self.values.make(op, (), each.dtype, name, unique=True) for each in self.neutral]
            for op, name in (("argument", "a"), ("argument", "b"), ("result", "r"))
        ]
        left, right, results = map(tuple, rows)
        combined = tuple(self.updates.combine_elements(left, right))
        loop.accumulators.append(
            Accumulator(tuple(self.neutral), tuple(terms(loop.index)), left, right, combined, results)
        )
        return loop, results

    def _combine(self, parts: Sequence[Scratch], index: Index) -> Sequence[Loop | Store]:
        """Combine an element with the parts of its segment, if that is long and begins in a piece."""
        low, high = self._piece(index[0])
        spot, begin, end, is_long = self._segment(high - 1)
        last = (end - 1) / self.length
        count = last - index[0].value(self.values) + 1

        def terms(term: Value) -> Sequence[Value]:
            # In its first piece it is the last segment, unless it is the only one.
            which = (term.eq(0) & begin.gt(low)).select(self.values.constant(1, INT64), 0)
            piece = _least((index[0] + _offset(term)).value(self.values), self.pieces - 1)
            return [each.load((_offset(piece), _offset(which), *index[1:])) for each in parts]

        loop, totals = self._accumulate(_least(count, self.pieces), terms)
        results, own = self.segments.results, self.segments.index(spot, index[1:])
        new = self.updates.combine_elements([each.load(own) for each in results], totals)
        return self.loops.only_if(is_long & begin.ge(low), [loop, *store_all(results, own, new)])


def _offset(value: Value) -> Affine:
    return Affine(((value, 1),))


def _least(value: Value, most: int) -> Value:
    return value.lt(most).select(value, most)
