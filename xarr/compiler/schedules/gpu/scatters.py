"""Scatters: who combines an element with its updates, so that no two threads do it at once.

* where no two updates go to one element, a thread for each update;
* where only the last update of an element counts, a thread for each element, once the last one is known;
* where the order of the updates does not matter, a thread for each update, atomically: integers and extremes, and sums
  of floats unless results are to be deterministic; where they go to few elements, blocks combine their updates in
  tables of their own first;
* where many float32 are added to many elements, a thread for each update, as integers (`updates/exact_sums.py`);
* else in the order of the updates, by a thread for each element: updates are sorted by the element that they go to,
  here or by a library before, so that those of one are a segment.  The bits are those of the serial schedule.  Long
  segments are folded in parts, at positions that are always the same, and then the parts: sums of floats have other
  last bits than on the CPU, and the same in each run (`updates/segments.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, row_major
from xarr.compiler.loop_ir.loops import Affine, Atomic, Exchange, Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.schedules.gpu.updates.exact_sums import add_exactly, adds_exactly
from xarr.compiler.schedules.gpu.updates.segments import Segments, neutral_element
from xarr.compiler.schedules.serial.scatters import Updates, combine_in_place
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.dtypes import INTEGER
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.op import Op

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


def scatter(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The phases that fill the results."""
    assert isinstance(loops, GridLoops)
    updates, results = Updates(loops, node), loops.results_of(node)
    segments = Segments(loops, updates, results)
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
    neutral = [neutral_element(loops, *pair) for pair in pairs]

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


def _with_one_nan(updates: Updates, dtype: DType, element: Value) -> Value:
    """An update, of the NaNs always the same: which of several came first must not show."""
    if dtype.kind in "iubc":
        return element
    loops, register = updates.loops, register_dtype(dtype)
    is_nan = loops.apply(ops.Compare("NE"), dtype, element, element)
    nan: np.generic = np.array([np.nan], dtype).view(register)[0]
    return is_nan.select(loops.values.constant(nan, register), element)
