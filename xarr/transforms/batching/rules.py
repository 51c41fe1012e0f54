"""What becomes of an operation whose operands have one more dimension, the first, along which it is mapped.

A rule gets the node, its operands in the new graph and which of these are batched, and gives the batched result.  An
operation without a rule is taken apart, or runs slice by slice in a loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, TypeAlias

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType, replace_at

Rule: TypeAlias = Callable[[Node, Sequence[Node], Sequence[bool], int], "Node | None"]


def broadcast(node: Node, size: int, shape: Ints | None = None) -> Node:
    """An array without the batch dimension, repeated along it; of rank 0, to `shape` if given."""
    inner = node.shape if shape is None else shape
    first = 1 + len(inner) - len(node.shape)
    dims = tuple(range(first, 1 + len(inner)))
    return Node(ops.BroadcastInDim((size, *inner), dims), (node,))


def batch_all(operands: Sequence[Node], flags: Sequence[bool], size: int) -> tuple[Node, ...]:
    """Operands that all have the batch dimension."""
    return tuple(
        [node if flag else broadcast(node, size) for node, flag in zip(operands, flags, strict=True)]
    )


def shift(dims: Sequence[int]) -> Ints:
    """Dimensions behind one that is new."""
    return tuple([dim + 1 for dim in dims])


def _same_op(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node:
    """An operation that knows nothing of the dimensions before its own."""
    return node.rebuilt(batch_all(operands, flags, size), node.op)


def _lead(change: Callable[[Any, int], Op]) -> Rule:
    """The rule of an operation of which all operands are batched, with attributes changed."""

    def rule(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node:
        return node.rebuilt(batch_all(operands, flags, size), change(node.op, size))

    return rule


def _first_alone(change: Callable[[Any, int], Op], count: int = 1) -> Rule:
    """The rule of an operation whose operands behind the first `count`, or all but so many, are never batched."""

    def rule(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node | None:
        number = len(operands) - count if count < 0 else count
        if any(flags[number:]):
            return None
        own = batch_all(operands[:number], flags[:number], size)
        return node.rebuilt((*own, *operands[number:]), change(node.op, size))

    return rule


# --- movement ---------------------------------------------------------------------------------------------------


def _broadcast_in_dim(op: ops.BroadcastInDim, size: int) -> Op:
    return ops.BroadcastInDim((size, *op.shape), (0, *shift(op.broadcast_dimensions)))


def _pad(op: ops.Pad, size: int) -> Op:
    return ops.Pad((0, *op.low), (0, *op.high), (0, *op.interior))


def _slice(op: ops.Slice, size: int) -> Op:
    return ops.Slice((0, *op.start_indices), (size, *op.limit_indices), (1, *op.strides))


# --- indexing ---------------------------------------------------------------------------------------------------


def _gather(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node:
    op = node.op.expect(ops.Gather)
    changed = replace(op, offset_dims=shift(op.offset_dims))
    if flags[1]:
        dims = shift(op.start_indices_batching_dims)
        changed = replace(
            changed,
            start_indices_batching_dims=(0, *dims) if flags[0] else dims,
            index_vector_dim=op.index_vector_dim + 1,
        )
    if flags[0]:
        dims = shift(op.operand_batching_dims)
        changed = replace(
            changed,
            offset_dims=changed.offset_dims if flags[1] else (0, *changed.offset_dims),
            collapsed_slice_dims=shift(op.collapsed_slice_dims),
            operand_batching_dims=(0, *dims) if flags[1] else dims,
            start_index_map=shift(op.start_index_map),
            slice_sizes=(min(1, size) if flags[1] else size, *op.slice_sizes),
        )
    return node.rebuilt(tuple(operands), changed)


def _scatter(op: ops.Scatter, size: int) -> Op:
    return replace(
        op,
        update_window_dims=shift(op.update_window_dims),
        inserted_window_dims=shift(op.inserted_window_dims),
        input_batching_dims=(0, *shift(op.input_batching_dims)),
        scatter_indices_batching_dims=(0, *shift(op.scatter_indices_batching_dims)),
        scatter_dims_to_operand_dims=shift(op.scatter_dims_to_operand_dims),
        index_vector_dim=op.index_vector_dim + 1,
    )


def _with_first_start(operands: Sequence[Node], count: int) -> tuple[Node, ...]:
    """Operands with one more start index, 0, before the others."""
    starts = operands[count:]
    zero = Node(ops.Constant.of(starts[0].tensor_type.dtype.type(0)[()])) if starts else None
    return (*operands[:count], *([] if zero is None else [zero]), *starts)


def _dynamic_slice(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node:
    op = node.op.expect(ops.DynamicSlice)
    if not any(flags[1:]) and len(operands) > 1:
        return node.rebuilt(_with_first_start(operands, 1), ops.DynamicSlice((size, *op.slice_sizes)))
    starts = batch_all(operands[1:], flags[1:], size)
    columns = [Node(ops.Reshape((size, 1)), (start,)) for start in starts]
    indices = columns[0] if len(columns) == 1 else Node(ops.Concatenate(1), tuple(columns))
    dims = tuple(range(len(op.slice_sizes)))
    gather = ops.Gather(dims, (), (), (), dims, 0, op.slice_sizes, False)
    plain = Node(gather, (node.operands[0], _vector_like(node)), location=node._location or ())
    return _gather(plain, (operands[0], indices), (flags[0], True), size)


def _vector_like(node: Node) -> Node:
    """A stand-in for the start indices of a slice as a vector: its type alone counts."""
    starts = node.operands[1:]
    columns = tuple([Node(ops.Reshape((1,)), (start,)) for start in starts])
    return columns[0] if len(columns) == 1 else Node(ops.Concatenate(0), columns)


def _dynamic_update_slice(
    node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int
) -> Node | None:
    if any(flags[2:]) or len(operands) < 3:
        return None
    own = batch_all(operands[:2], flags[:2], size)
    return node.rebuilt(_with_first_start((*own, *operands[2:]), 2), node.op)


# --- reductions and products ------------------------------------------------------------------------------------


def _arrays_alone(change: Callable[[Any, int], Op]) -> Rule:
    """The rule of reductions of N arrays with N initial values."""

    def rule(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node | None:
        return _first_alone(change, len(operands) // 2)(node, operands, flags, size)

    return rule


def _reduce_window(op: ops.ReduceWindow, size: int) -> Op:
    return replace(
        op,
        window_dimensions=(1, *op.window_dimensions),
        window_strides=(1, *op.window_strides),
        base_dilations=(1, *op.base_dilations),
        window_dilations=(1, *op.window_dilations),
        padding=((0, 0), *op.padding),
    )


def _select_and_scatter(op: ops.SelectAndScatter, size: int) -> Op:
    return replace(
        op,
        window_dimensions=(1, *op.window_dimensions),
        window_strides=(1, *op.window_strides),
        padding=((0, 0), *op.padding),
    )


def _dot_general(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node:
    op = node.op.expect(ops.DotGeneral)
    left = [op.lhs_batching_dimensions, op.lhs_contracting_dimensions]
    right = [op.rhs_batching_dimensions, op.rhs_contracting_dimensions]
    if flags[0]:
        left = [shift(left[0]), shift(left[1])]
    if flags[1]:
        right = [shift(right[0]), shift(right[1])]
    if all(flags):
        left[0], right[0] = (0, *left[0]), (0, *right[0])
    changed = replace(
        op,
        lhs_batching_dimensions=left[0],
        lhs_contracting_dimensions=left[1],
        rhs_batching_dimensions=right[0],
        rhs_contracting_dimensions=right[1],
    )
    product = node.rebuilt(tuple(operands), changed)
    at = 0
    if not all(flags):
        at = len(left[0])
        at += 0 if flags[0] else len(operands[0].shape) - len(left[0]) - len(left[1])
    return move_to_front(product, at)


def move_to_front(node: Node, dim: int) -> Node:
    """An array with a dimension as its first."""
    if not dim:
        return node
    rest = [each for each in range(len(node.shape)) if each != dim]
    return Node(ops.Transpose((dim, *rest)), (node,))


def _convolution(node: Node, operands: Sequence[Node], flags: Sequence[bool], size: int) -> Node | None:
    """Of many inputs with one kernel: they are further examples."""
    op = node.op.expect(ops.Convolution)
    if flags[1] or op.batch_group_count != 1:
        return None
    at, end = op.lhs_spec[0], op.out_spec[0]
    shape = operands[0].shape[1:]
    order = [*range(1, at + 1), 0, *range(at + 1, len(shape) + 1)]
    moved = Node(ops.Transpose(tuple(order)), (operands[0],))
    merged = Node(ops.Reshape(replace_at(shape, at, size * shape[at])), (moved,))
    result = node.rebuilt((merged, operands[1]), op)
    wide = (*result.shape[:end], size, shape[at], *result.shape[end + 1 :])
    return move_to_front(Node(ops.Reshape(wide), (result,)), end)


# --- the table --------------------------------------------------------------------------------------------------


#: Operations whose own dimensions are the last ones.
_TRAILING: Final = (
    *(ops.Cholesky, ops.TriangularSolve, ops.Fft, ops.Eig, ops.Eigh, ops.Svd, ops.Lu, ops.Geqrf),
    *(ops.HouseholderProduct, ops.Solve, ops.LogDeterminant, ops.BitcastConvert),
)

RULES: Final[dict[type[Op], Rule]] = {
    **dict.fromkeys(_TRAILING, _same_op),
    ops.AllGather: _lead(lambda op, _: replace(op, all_gather_dim=op.all_gather_dim + 1)),
    ops.AllReduce: _same_op,
    ops.AllToAll: _lead(
        lambda op, _: replace(
            op, split_dimension=op.split_dimension + 1, concat_dimension=op.concat_dimension + 1
        )
    ),
    ops.BroadcastInDim: _lead(_broadcast_in_dim),
    ops.CollectiveBroadcast: _same_op,
    ops.CollectivePermute: _same_op,
    ops.Concatenate: _lead(lambda op, _: ops.Concatenate(op.dimension + 1)),
    ops.Convolution: _convolution,
    ops.CrossReplicaSum: _same_op,
    ops.DotGeneral: _dot_general,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _dynamic_update_slice,
    ops.Gather: _gather,
    ops.Map: _lead(lambda op, _: replace(op, dimensions=(*op.dimensions, len(op.dimensions)))),
    ops.Pad: _first_alone(_pad),
    ops.Reduce: _arrays_alone(lambda op, _: replace(op, dimensions=shift(op.dimensions))),
    ops.ReduceScatter: _lead(lambda op, _: replace(op, scatter_dimension=op.scatter_dimension + 1)),
    ops.ReduceWindow: _arrays_alone(_reduce_window),
    ops.Reshape: _lead(lambda op, size: ops.Reshape((size, *op.shape))),
    ops.Reverse: _lead(lambda op, _: ops.Reverse(shift(op.dimensions))),
    ops.Scatter: _lead(_scatter),
    ops.SelectAndScatter: _first_alone(_select_and_scatter, 2),
    ops.Slice: _lead(_slice),
    ops.Sort: _lead(lambda op, _: replace(op, dimension=op.dimension + 1)),
    ops.Transpose: _lead(lambda op, _: ops.Transpose((0, *shift(op.permutation)))),
}


def rule_of(op: Op) -> Rule | None:
    """The rule of an operation, None if it has none."""
    rule = RULES.get(type(op))
    return _same_op if rule is None and op.is_elementwise else rule


def is_static(node: Node) -> bool:
    """Whether all operands are arrays of known sizes."""
    types = [operand.type for operand in node.operands]
    return all(isinstance(each, TensorType) and not each.dynamic for each in types)
