"""Scatters: the operand as the result, then one update after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xarr.compiler.loop_ir.computed_indices import as_int64, components, is_inside
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import Affine, Atomic, Loop, Store
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, store_all
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.indexing import Windows


def scatter(loops: SerialLoops, node: Node, atomics: Sequence[Atomic] | None = None) -> Sequence[Source]:
    """Two phases: copy the operands, then combine each element of each window that lies in them.

    One update comes after the other, unless each result is combined with its updates by one of `atomics`.
    """
    op, count = node.op, len(node.operands) // 2
    assert isinstance(op, ops.Scatter)
    operands, indices, updates = node.operands[:count], node.operands[count], node.operands[count + 1 :]
    windows = op.windows(operands[0].tensor_type, indices.tensor_type, updates[0].tensor_type)
    results, rank = loops.results_of(node), len(windows.batch_shape)

    def begin(index: Index) -> list[Store]:
        return store_all(results, index, [loops.at(operand, index) for operand in operands])

    def combine(index: Index) -> Sequence[Loop | Store]:
        batch, window = index[:rank], index[rank:]
        start, fits = _start(loops, indices, windows, batch)
        target = tuple(a + b for a, b in zip(start, window, strict=True))
        at = [Affine()] * len(updates[0].shape)
        for dim, own in zip(windows.batch_dims, batch, strict=True):
            at[dim] = own
        for dim, own_dim in zip(windows.kept_dims, windows.window_dims, strict=True):
            at[own_dim] = window[dim]
        new = [loops.at(update, tuple(at)) for update in updates]
        if atomics is None:
            old = [each.load(target) for each in results]
            new = list(compute_scalars(op.update_computation, [*old, *new], loops.values))
        stores = store_all(results, target, new)
        if atomics is not None:
            pairs = zip(stores, atomics, strict=True)
            stores = [replace(store, atomic=atomic) for store, atomic in pairs]
        return stores if fits is None else loops.only_if(fits, stores)

    extents = (*windows.batch_shape, *windows.sizes)
    loops.phase(results[0].shape, begin)
    loops.phase(extents, combine, range(len(extents)) if atomics is None else ())
    return sources_of(results)


def _start(loops: SerialLoops, indices: Node, windows: Windows, batch: Index) -> tuple[Index, Value | None]:
    """The start of the window at an index of the batch, and whether all of it lies in the operand, None for always."""
    start, fits = [Affine()] * len(windows.operand_shape), None

    def element(index: Index) -> Value:
        return loops.at(indices, index)

    for dim, last, number in components(windows, len(indices.shape), batch, element):
        within = is_inside(number, last)
        fits = within if fits is None else fits & within
        start[dim] = Affine(((as_int64(number), 1),))
    for dim, position in windows.batching:
        start[dim] = batch[position]
    return tuple(start), fits
