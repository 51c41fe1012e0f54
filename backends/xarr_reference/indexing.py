"""Operations that read and write windows at positions known only when the program runs."""

from __future__ import annotations

from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints
from xarr_reference.values import Array, Computation, Rule, Value, cell, empty, indices, join_index, pack


def gather(node: Node, operand: Array, start_indices: Array) -> Array:
    """result[i] = operand[start + w]

    The dimensions of i that are not offset dimensions are an index b of the batch; start holds the index
    vector at b, clamped so that the window lies in the operand, and the parts of b that run along with
    batching dimensions; w holds the offset dimensions of i.  What a window of size 0 lacks is 0.
    """
    array, starts = (each.tensor_type for each in node.operands)
    windows, result = node.op.expect(ops.Gather).windows(array, starts), empty(node.type)
    for batch in indices(windows.batch_shape):
        start = list(start_of(windows, batch, start_indices))
        for dim, last in zip(windows.index_map, windows.last_starts, strict=True):
            start[dim] = min(max(start[dim], 0), last)
        for window in indices(windows.window_shape):
            index = join_index((windows.batch_dims, batch), (windows.window_dims, window))
            is_empty = 0 in windows.sizes
            result[index] = 0 if is_empty else operand[element_of(windows, tuple(start), window)]
    return result


def scatter(node: Node, computation: Computation, *operands: Array) -> Value:
    """result = inputs, and then for every index b of the batch and every index w of the window

    result[start + w] = f(result[start + w], updates[b, w]), with start as in gather but not clamped: a
    window that does not lie in the result as a whole is left out.  b and w in row-major order, w faster.
    """
    count = len(operands) // 2
    inputs, scatter_indices, updates = operands[:count], operands[count], operands[count + 1 :]
    types = [each.tensor_type for each in node.operands]
    windows = node.op.expect(ops.Scatter).windows(types[0], types[count], types[count + 1])
    results = tuple(array.copy() for array in inputs)
    for batch in indices(windows.batch_shape):
        start = start_of(windows, batch, scatter_indices)
        rows = zip(start, windows.sizes, windows.operand_shape, strict=True)
        if not all(at >= 0 and at + size <= whole for at, size, whole in rows):
            continue
        for window in indices(windows.window_shape):
            target = element_of(windows, start, window)
            source = join_index((windows.batch_dims, batch), (windows.window_dims, window))
            current = [cell(array, target) for array in results]
            combined = computation(*current, *[cell(array, source) for array in updates])
            for array, value in zip(results, combined, strict=True):
                array[target] = value[()]
    return pack(results)


def start_of(windows: Windows, batch: Ints, start_indices: Array) -> Ints:
    """The start of the window of this index of the batch."""
    start = [0] * len(windows.operand_shape)
    for component, dim in enumerate(windows.index_map):
        at = windows.index_vector_dim
        vector = () if at == start_indices.ndim else (component,)
        start[dim] = int(start_indices[(*batch[:at], *vector, *batch[at:])])
    for dim, position in windows.batching:
        start[dim] = batch[position]
    return tuple(start)


def element_of(windows: Windows, start: Ints, window: Ints) -> Ints:
    """The operand's element at this index of the window that begins at `start`."""
    offset = dict(zip(windows.kept_dims, window, strict=True))
    return tuple(at + offset.get(dim, 0) for dim, at in enumerate(start))


def dynamic_slice(node: Node, operand: Array, *start_indices: Array) -> Array:
    """result[i] = operand[start + i], start being clamped so that the window lies in the operand"""
    result = empty(node.type)
    start = clamp_starts(start_indices, operand.shape, result.shape)
    for index in indices(result.shape):
        result[index] = operand[tuple(at + offset for at, offset in zip(start, index, strict=True))]
    return result


def dynamic_update_slice(node: Node, operand: Array, update: Array, *start_indices: Array) -> Array:
    """result = operand, but result[start + i] = update[i], start being clamped so that it fits"""
    result = operand.copy()
    start = clamp_starts(start_indices, operand.shape, update.shape)
    for index in indices(update.shape):
        result[tuple(at + offset for at, offset in zip(start, index, strict=True))] = update[index]
    return result


def clamp_starts(start_indices: tuple[Array, ...], shape: Ints, sizes: Ints) -> Ints:
    """The starts as close as possible to those given with which a window of `sizes` lies in `shape`."""
    rows = zip(start_indices, shape, sizes, strict=True)
    return tuple(min(max(int(start), 0), whole - size) for start, whole, size in rows)


TABLE: Final[dict[type[Op], Rule]] = {
    ops.DynamicSlice: dynamic_slice,
    ops.DynamicUpdateSlice: dynamic_update_slice,
    ops.Gather: gather,
    ops.Scatter: scatter,
}
