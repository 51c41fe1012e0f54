"""Checks of many indices as checks of one: the least index of an array if that is out of bounds, else the greatest.

A check looks at every index, and gives an array of all of them, counted from the start, where it may raise: two passes
of a library over the array, besides those of what computes and uses the indices.  Here a reduction finds the one
index that the error would be about, in the loop that computes the indices if there is one, and what is left is an
operation for each index, which loops that use the indices do as they go along.
"""

from __future__ import annotations

from math import prod

from xarr.compiler.passes.checks import checks_indices, counted_from_start, index_bounds
from xarr.compiler.target import Target
from xarr.dtypes import info
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, parameter, rewritten
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.types import TensorType


def check_worst_indices(graph: Graph, target: Target) -> Graph:
    """`graph`, but not the graphs of its operations, with a check of one index in place of each of many."""
    if ops.CustomCall not in graph.op_classes:
        return graph

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if (
            not checks_indices(node)
            or node.tensor_type.dynamic
            or prod(node.shape) < target.min_reduced_checks
        ):
            return None
        (least, size), limits = index_bounds(node), info(node.dtype)
        return (
            _check_worst(node, operands[0]) if int(limits.min) <= least and size <= int(limits.max) else None
        )

    return rewritten(graph, rule)


def _check_worst(call: Node, indices: Node) -> Node:
    """The indices counted from the start, which are known only after the worst of them was checked."""
    assert isinstance(call.op, ops.CustomCall)
    (least, _), dtype = index_bounds(call), call.dtype
    low, high = _extremes(indices)
    is_low = Node(ops.Compare("LT"), (low, constant(least, dtype)))
    worst = Node(ops.Select(), (is_low, low, high))
    one = ops.CustomCall(CHECKED_INDICES, (TensorType((), dtype),), call.op.attribute_items)
    checked = call.rebuilt((worst,), one)
    # No bit of the index that was checked is set in others, but they wait for it.
    none = Node(ops.And(), (checked, constant(0, dtype)))
    spread = Node(ops.BroadcastInDim(indices.shape, ()), (none,))
    return Node(ops.Or(), (counted_from_start(call, indices), spread))


def _extremes(indices: Node) -> tuple[Node, Node]:
    """The least and the greatest index, by one reduction."""
    dtype, limits = indices.dtype, info(indices.dtype)
    numbers = [parameter(TensorType((), dtype)) for _ in range(4)]
    combined = [Node(ops.Minimum(), tuple(numbers[::2])), Node(ops.Maximum(), tuple(numbers[1::2]))]
    op = ops.Reduce(tuple(range(len(indices.shape))), Graph(numbers, combined, "extremes"))
    first = [constant(int(limit), dtype) for limit in (limits.max, limits.min)]
    reduction = Node(op, (indices, indices, *first))
    low, high = (Node(ops.GetTupleElement(k), (reduction,)) for k in range(2))
    return low, high
