"""Scatters: who combines an element with its updates, so that no two threads do it at once.

* where no two updates go to one element, a thread for each update;
* where only the last update of an element counts, a thread for each element, once the last one is known;
* where the order of the updates does not matter, a thread for each update, atomically: integers and extremes, and sums
  of floats unless results are to be deterministic; where they go to few elements, blocks combine their updates in
  tables of their own first;
* else in the order of the updates, by a thread for each element, or a block where few elements have many: updates are
  sorted by the element that they go to, here or by a library before, so that those of one are a segment.  The bits are
  those of the serial schedule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, row_major
from xarr.compiler.loop_ir.loops import Affine, Atomic, Carry, Exchange, Loop, Store, index_value, new_carry
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.gpu.merges import SortOperands, merge_sort, search
from xarr.compiler.schedules.gpu.target import GpuTarget
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


def needs_order(node: Node, deterministic: bool) -> bool:
    """Whether a scatter of one array folds the updates of an element in their order, several of them."""
    op, (operand, indices, updates) = node.op, [each.tensor_type for each in node.operands]
    assert isinstance(op, ops.Scatter)
    windows = op.windows(operand, indices, updates)
    replaces = op.update_computation.results == op.update_computation.parameters[1:]
    if replaces or op.unique_indices or prod(windows.batch_shape) == 1:
        return False
    combiners = monoids(op.update_computation)
    return combiners is None or _has_order(combiners[0], operand.dtype, deterministic)


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
    """Updates, or whole windows where two are the same or apart, sorted by their targets.

    The key of the update of a number is `target * count + number`; of one that goes nowhere the target is behind all.
    Where the updates come sorted, as `sort_updates` has them, there are no keys.
    """

    def __init__(self, loops: GridLoops, updates: Updates, results: Sequence[Scratch]) -> None:
        self.loops, self.updates, self.results = loops, updates, results
        windows = updates.windows
        starts = zip(windows.index_map, windows.last_starts, strict=True)
        are_apart = all(windows.sizes[dim] == 1 or last == 0 for dim, last in starts)
        #: What is sorted, and what belongs to each.
        self.shape = windows.batch_shape if are_apart else updates.extents
        self.inner: Ints = windows.sizes if are_apart else ()
        self.count = prod(self.shape)
        self.keys: Scratch | None = None

    @property
    def has_keys(self) -> bool:
        """Whether there is a number for each key."""
        return (self.results[0].buffer.size + 1) * self.count < _MOST

    def combine(self) -> None:
        """The phases of the sort, and one that goes through the segments.

        By a thread for each, that of its first update; or by a block, where few elements have many updates.
        """
        if not self.updates.op.indices_are_sorted:
            operands = SortOperands([INT64], (), self.count)
            (self.keys,) = merge_sort(
                self.loops, operands, self._keys, lambda left, right: left[0].lt(right[0])
            )
        size, target = self.results[0].buffer.size, self.loops.target
        if (
            self.count >= target.min_block_folds * size
            and size * prod(self.inner) <= target.max_block_results
        ):
            self.loops.blocks((size, *self.inner), self._fold_by_block)
        else:
            self.loops.phase((self.count, *self.inner), self._fold)

    def _keys(self, _: Index, position: Affine) -> list[Value]:
        """The key of the update of a number."""
        number = self._target_of_update(position.value(self.loops.values))
        return [number * self.count + position.value(self.loops.values)]

    def _target_of_update(self, number: Value) -> Value:
        """The number of the element that an update of a number goes to, the first one of its window."""
        own = split_number(number, self.shape) + (Affine(),) * len(self.inner)
        target, fits = self.updates.target(own)
        size = self.results[0].buffer.size
        element = row_major(self.results[0].shape, target).value(self.loops.values)
        return element if fits is None else fits.select(element, size)

    def _target(self, position: Value) -> Value:
        """The target of the update at a position of the sorted ones."""
        if self.keys is None:
            return self._target_of_update(position)
        return self.keys.load((_offset(position),)) / self.count

    def _number(self, position: Value) -> Value:
        """The number of the update at a position of the sorted ones."""
        return position if self.keys is None else self.keys.load((_offset(position),)).rem(self.count)

    def _fold(self, index: Index) -> Sequence[Loop | Store]:
        """Combine an element with all updates of the segment that begins at a position, if one does."""
        loops, count = self.loops, self.count
        position, window = index[0].value(loops.values), index[1:]
        target = self._target(position)
        before = self._target(position.gt(0).select(position - 1, 0))
        begins = position.eq(0) | before.ne(target)
        inside = begins & target.lt(self.results[0].buffer.size)
        flat = [Scratch(loops.values, each.buffer, (each.buffer.size,)) for each in self.results]
        own = (_offset(target) + (row_major(self.results[0].shape, window) if window else Affine()),)

        def at(term: Value) -> Value:
            return _least(position + term, count - 1)

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            return self.updates.combine(held, (*split_number(self._number(at(term)), self.shape), *window))

        loop, totals = loops.carry(_least(count - position, count), [each.load(own) for each in flat], step)
        loop.condition = self._target(at(loop.index)).eq(target)
        return loops.only_if(inside, [loop, *store_all(flat, own, totals)])

    def _fold_by_block(self, index: Index) -> Sequence[Loop | Store]:
        """Combine an element with the updates of its segment, in their order.

        The threads read the next ones together, and then each of them folds them: the same, so one result is stored.
        """
        loops, values, size = self.loops, self.loops.values, self.results[0].buffer.size
        target, window, most = index[0].value(values), index[1:], loops.target.block_folds
        first, begin = self._begin_of(target, values.constant(0, INT64))
        second, end = self._begin_of(target + 1, begin)
        length, offset = end - begin, row_major(self.results[0].shape, window) if window else Affine()
        at = (index[0] + offset).value(values)
        # Where a window would stick out none begins, and where none begins another block has the element.
        own, begins = Affine(((at.lt(size).select(at, size - 1), 1),)), length.gt(0)
        flat = [Scratch(values, each.buffer, (size,)) for each in self.results]
        # Two parts, since the next one is read while some threads fold.
        shared = [loops.new_shared(update.dtype, 2 * most) for update in self.updates.updates]
        rounds = (length + (most - 1)) / most

        def read(half: Affine, start: Value, at: Index) -> Sequence[Store]:
            here = start + at[0].value(values)
            # At the end some are read that are not folded.
            number = self._number(_least(here, self.count - 1))
            return store_all(
                shared, (at[0] + half,), self.updates.elements((*split_number(number, self.shape), *window))
            )

        outer = Loop(index_value(values, "part"), _least(rounds, -(-self.count // most)))
        names = [new_carry(values, each.buffer.dtype) for each in flat]
        start, half = begin + outer.index * most, Affine(((outer.index.rem(2), most),))

        def step(term: Value, held: Sequence[Value]) -> Sequence[Value]:
            new = [each.load((half + Affine(((term, 1),)),)) for each in shared]
            return self.updates.combine_elements(held, new)

        inner, totals = loops.carry(_least(end - start, most), [own for own, _ in names], step)
        outer.body += [loops.share(most, partial(read, half, start)), inner]
        rows = zip(flat, names, totals, strict=True)
        outer.carries += [
            Carry(each.load((own,), begins), *name[:1], total, name[1]) for each, name, total in rows
        ]
        stores = store_all(flat, (own,), [result for _, result in names])
        return [*first, *second, outer, *loops.only_if(begins, stores)]

    def _begin_of(self, target: Value, low: Value) -> tuple[list[Loop], Value]:
        """A loop that finds the first update from position `low` on of a target or one behind, and its position."""

        def is_before(at: Value, is_open: Value) -> Value:
            return self._target(_least(at, self.count - 1)).lt(target)

        high = self.loops.values.constant(self.count, INT64)
        return search(self.loops, low, high, self.count.bit_length(), is_before)


def _offset(value: Value) -> Affine:
    return Affine(((value, 1),))


def _least(value: Value, most: int) -> Value:
    return value.lt(most).select(value, most)
