"""Operations that move elements: result[index] = operand[another index]."""

from __future__ import annotations

from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr_reference.values import Array, Rule, empty, indices


def broadcast_in_dim(node: Node, operand: Array) -> Array:
    """result[i] = operand[j] with j[k] = i[broadcast_dimensions[k]], or 0 where operand has size 1"""
    dims, result = node.op.expect(ops.BroadcastInDim).broadcast_dimensions, empty(node.type)
    for index in indices(result.shape):
        result[index] = operand[
            tuple(0 if size == 1 else index[dim] for size, dim in zip(operand.shape, dims, strict=True))
        ]
    return result


def reshape(node: Node, operand: Array) -> Array:
    """result[i] = operand[j] where i and j have the same offset in the row-major order of their shapes"""
    result = empty(node.type)
    for new, old in zip(indices(result.shape), indices(operand.shape), strict=True):
        result[new] = operand[old]
    return result


def transpose(node: Node, operand: Array) -> Array:
    """result[i] = operand[j] with j[permutation[k]] = i[k]"""
    permutation, result = node.op.expect(ops.Transpose).permutation, empty(node.type)
    for index in indices(operand.shape):
        result[tuple(index[dim] for dim in permutation)] = operand[index]
    return result


def reverse(node: Node, operand: Array) -> Array:
    """result[i] = operand[j] with j[k] = size[k] - 1 - i[k] for k in dimensions, else i[k]"""
    dims, result = node.op.expect(ops.Reverse).dimensions, empty(node.type)
    for index in indices(result.shape):
        result[index] = operand[
            tuple(operand.shape[k] - 1 - at if k in dims else at for k, at in enumerate(index))
        ]
    return result


def slice_(node: Node, operand: Array) -> Array:
    """result[i] = operand[start + i * stride]"""
    op, result = node.op.expect(ops.Slice), empty(node.type)
    for index in indices(result.shape):
        rows = zip(op.start_indices, index, op.strides, strict=True)
        result[index] = operand[tuple(start + at * stride for start, at, stride in rows)]
    return result


def pad(node: Node, operand: Array, padding_value: Array) -> Array:
    """result[low + i * (interior + 1)] = operand[i] where that lies in the result, else the padding value"""
    op, result = node.op.expect(ops.Pad), empty(node.type)
    for index in indices(result.shape):
        result[index] = padding_value[()]
    for index in indices(operand.shape):
        rows = zip(op.low, index, op.interior, strict=True)
        target = tuple(low + at * (interior + 1) for low, at, interior in rows)
        if all(0 <= at < size for at, size in zip(target, result.shape, strict=True)):
            result[target] = operand[index]
    return result


def concatenate(node: Node, *operands: Array) -> Array:
    """result[…, offset + i, …] = operand[…, i, …], offset being the sizes of the operands before it"""
    dim, result, offset = node.op.expect(ops.Concatenate).dimension, empty(node.type), 0
    for operand in operands:
        for index in indices(operand.shape):
            result[(*index[:dim], offset + index[dim], *index[dim + 1 :])] = operand[index]
        offset += operand.shape[dim]
    return result


TABLE: Final[dict[type[Op], Rule]] = {
    ops.BroadcastInDim: broadcast_in_dim,
    ops.Concatenate: concatenate,
    ops.Pad: pad,
    ops.Reshape: reshape,
    ops.Reverse: reverse,
    ops.Slice: slice_,
    ops.Transpose: transpose,
}
