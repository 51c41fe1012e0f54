"""Rules by which gather, scatter, dynamic slices and convolutions compute on arrays of dynamic sizes.

Windows lie in the live part: starts are clamped to it, and a window of a scatter that leaves it is left
out.  Where the live part is smaller than a window, what the window reads beyond it is 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from xarr.compiler.dynamic.valid_regions import (
    Live,
    append_zeros,
    binary,
    clamp_index,
    convert,
    cut,
    last_start,
    make_signed,
    mask,
    mask_beyond,
    number,
    shared_sizes,
    smallest,
    vector,
    vector_along,
    windows_in,
    zero,
)
from xarr.ir import ops
from xarr.ir.constants import constant, spread
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.dynamic_rules import convolved_dimensions
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import TensorType

Lives = tuple[Live, ...]
_PREDICATE: Final = TensorType((), np.dtype(np.bool_))


def _dynamic_slice(node: Node, operands: Lives) -> Lives:
    operand, *starts = operands
    buffers, partial = [start.buffer for start in starts], {}
    for dim, size in operand.sizes.items():
        if node.shape[dim] != operand.shape[dim]:
            partial[dim] = size
            buffers[dim] = clamp_index(buffers[dim], last_start(size, number(node.shape[dim])))
    window = node.rebuilt((operand.buffer, *buffers))
    sizes = {dim: size for dim, size in operand.sizes.items() if dim not in partial}
    return (Live(mask_beyond(window, zero(window.dtype), partial), sizes),)


def _dynamic_update_slice(node: Node, operands: Lives) -> Lives:
    operand, update, *starts = operands
    buffers = [start.buffer for start in starts]
    for dim in {**operand.sizes, **update.sizes}:
        buffers[dim] = clamp_index(buffers[dim], last_start(operand.size(dim), update.size(dim)))
    if not update.sizes:
        return (Live(node.rebuilt((operand.buffer, update.buffer, *buffers)), operand.sizes),)
    # A window of the bounds would be moved where its live part fits, so it gets padding behind the array.
    padded = append_zeros(operand.buffer, {dim: update.shape[dim] for dim in update.sizes})
    old = Node(ops.DynamicSlice(update.shape), (padded, *buffers))
    new = Node(ops.Select(), (mask(update.shape, update.sizes), update.buffer, old))
    updated = node.rebuilt((padded, new, *buffers))
    for dim in update.sizes:
        updated = cut(updated, dim, 0, operand.shape[dim])
    return (Live(updated, operand.sizes),)


def _vectors(scalars: Sequence[Node], indices: Node, vector_dim: int) -> Node:
    """One int32 for each component of the index vectors, in the shape of the indices."""
    if vector_dim == len(indices.shape):
        return spread(scalars[0], indices.shape)
    return vector_along(Node(ops.Concatenate(0), tuple(vector(scalars))), indices.shape, vector_dim)


def _gather(node: Node, operands: Lives) -> Lives:
    op, (operand, indices) = node.op, operands
    assert isinstance(op, ops.Gather)
    windows = op.windows(operand.buffer.tensor_type, indices.buffer.tensor_type)
    partial = {dim: n for dim, n in operand.sizes.items() if op.slice_sizes[dim] != operand.shape[dim]}
    starts = indices.buffer
    if any(dim in partial for dim in op.start_index_map):
        limits = [last_start(operand.size(dim), number(op.slice_sizes[dim])) for dim in op.start_index_map]
        starts = clamp_index(starts, _vectors(limits, starts, op.index_vector_dim))
    windows_read = node.rebuilt((operand.buffer, starts))
    window_dim = dict(zip(windows.kept_dims, windows.window_dims, strict=True))
    hidden = {window_dim[dim]: n for dim, n in partial.items() if dim in window_dim}
    windows_read = mask_beyond(windows_read, zero(windows_read.dtype), hidden)
    for dim in op.collapsed_slice_dims:
        if dim in partial:
            windows_read = _unless_empty(windows_read, partial[dim])
    sizes = {
        window_dim[dim]: n for dim, n in operand.sizes.items() if dim in window_dim and dim not in partial
    }
    return (Live(windows_read, {**sizes, **_batch_sizes(op, windows, [operand], [indices], [])}),)


def _unless_empty(windows: Node, size: Node) -> Node:
    there = spread(binary(ops.Compare("GT"), size, number(0)), windows.shape)
    return Node(ops.Select(), (there, windows, spread(zero(windows.dtype), windows.shape)))


def _batch_sizes(
    op: ops.Gather | ops.Scatter,
    windows: Windows,
    arrays: Sequence[Live],
    indices: Sequence[Live],
    windowed: Sequence[Live],
) -> dict[int, Node]:
    """The live sizes of the dimensions of windowed arrays that run over index vectors."""
    own = [dim for dim in range(len(indices[0].shape)) if dim != op.index_vector_dim]
    sizes_of: dict[int, list[Node]] = {}
    for each in indices:
        for batch_dim, dim in enumerate(own):
            if dim in each.sizes:
                sizes_of.setdefault(windows.batch_dims[batch_dim], []).append(each.sizes[dim])
    for array in arrays:
        for dim, batch_dim in windows.batching:
            if dim in array.sizes:
                sizes_of.setdefault(windows.batch_dims[batch_dim], []).append(array.sizes[dim])
    for each in windowed:
        for dim in windows.batch_dims:
            if dim in each.sizes:
                sizes_of.setdefault(dim, []).append(each.sizes[dim])
    return {dim: smallest(sizes) for dim, sizes in sizes_of.items()}


def _scatter(node: Node, operands: Lives) -> Lives:
    op, count = node.op.expect(ops.Scatter), len(operands) // 2
    arrays, indices, updates = operands[:count], operands[count], operands[count + 1 :]
    types = [each.buffer.tensor_type for each in (arrays[0], indices, updates[0])]
    windows = op.windows(*types)
    sizes = shared_sizes(arrays)
    batch = _batch_sizes(op, windows, [], [indices], updates)
    own = dict(zip(windows.window_dims, windows.kept_dims, strict=True))
    window = {
        number: size
        for number, size in shared_sizes(updates).items()
        if number in own and sizes.get(own[number]) is not size
    }
    starts = _indices_of_live_windows(op, windows, indices.buffer, sizes, batch)
    buffers = [array.buffer for array in arrays]
    new = [update.buffer for update in updates]
    hidden = {**window, **({} if windows.index_map else batch)}
    if hidden:
        op = _passing_over(op)
        flags = mask(new[0].shape, hidden)
        buffers.append(spread(constant(False, _PREDICATE.dtype), buffers[0].shape))
        new.append(flags)
    scattered = node.rebuilt((*buffers, starts, *new), op)
    return tuple([Live(part, sizes) for part in unpack_results(scattered)[:count]])


def _indices_of_live_windows(
    op: ops.Scatter, windows: Windows, indices: Node, sizes: dict[int, Node], batch: dict[int, Node]
) -> Node:
    """The indices with -1, which is out of bounds, where a window is dead or leaves the live part."""
    indices = make_signed(indices)
    dead: list[Node] = []
    if any(dim in sizes for dim in windows.index_map):
        shape = [(sizes.get(dim) or number(windows.operand_shape[dim]), dim) for dim in windows.index_map]
        last = [binary(ops.Subtract(), size, number(windows.sizes[dim])) for size, dim in shape]
        limits = promote_indices(_vectors(last, indices, op.index_vector_dim), indices)
        dead.append(binary(ops.Compare("GT"), *limits))
    if batch and windows.index_map:
        own = [dim for dim in range(len(indices.shape)) if dim != op.index_vector_dim]
        live = {own[windows.batch_dims.index(dim)]: size for dim, size in batch.items()}
        dead.append(Node(ops.Not(), (mask(indices.shape, live),)))
    for each in dead:
        outside = spread(constant(-1, indices.dtype), indices.shape)
        indices = Node(ops.Select(), (each, outside, indices))
    return indices


def promote_indices(limits: Node, indices: Node) -> tuple[Node, Node]:
    """Indices and limits in a type that holds both."""
    wide = indices.dtype if indices.dtype.itemsize >= 4 else limits.dtype
    return convert(indices, wide), convert(limits, wide)


def _passing_over(op: ops.Scatter) -> ops.Scatter:
    """A scatter with one more array, of flags: updates whose flag is False change nothing."""
    graph = op.update_computation
    count = len(graph.parameters) // 2
    old, new = ([parameter(p.type) for p in graph.parameters[:count]] for _ in range(2))
    flag, is_live = parameter(_PREDICATE), parameter(_PREDICATE)
    results = [
        Node(ops.Select(), (is_live, combined, a))
        for combined, a in zip(graph.inline(*old, *new), old, strict=True)
    ]
    attributes = op.attributes()
    attributes["update_computation"] = Graph((*old, flag, *new, is_live), (*results, flag), graph.name)
    return ops.Scatter(**attributes)


def _convolution(node: Node, operands: Lives) -> Lives:
    """Elements behind the live part count as 0, as padding does."""
    op, (lhs, rhs) = node.op, operands
    assert isinstance(op, ops.Convolution)
    features = [
        each.sizes[spec[1]]
        for each, spec in ((lhs, op.lhs_spec), (rhs, op.rhs_spec))
        if spec[1] in each.sizes
    ]
    hidden = {dim: size for dim, size in lhs.sizes.items() if dim in op.lhs_spec[2:]}
    kernel = {}
    if features:
        hidden[op.lhs_spec[1]] = kernel[op.rhs_spec[1]] = smallest(features)
    buffers = (
        mask_beyond(lhs.buffer, zero(lhs.buffer.dtype), hidden),
        mask_beyond(rhs.buffer, zero(rhs.buffer.dtype), kernel),
    )
    window = dict(zip(op.lhs_spec[2:], op.window(rhs.buffer.tensor_type).dimensions, strict=True))
    sizes = {}
    for (side, dim), out_dim in convolved_dimensions(op).items():
        if dim in operands[side].sizes:
            size = operands[side].sizes[dim]
            sizes[out_dim] = windows_in(size, window[dim]) if side == 0 and dim in window else size
    return (Live(node.rebuilt(buffers), sizes),)


WINDOW_ROWS: Final[dict[type[Op], Callable[[Node, Lives], Lives]]] = {
    ops.Convolution: _convolution,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update_slice,
    ops.Gather: _gather,
    ops.Scatter: _scatter,
}
