"""Checks of many indices as checks of one: the least index of an array if that is out of bounds, else the greatest.

A check looks at every index, and gives an array of all of them, counted from the start, where it may raise: two passes
of a library over the array, besides those of what computes and uses the indices.  Here a reduction finds the one
index that the error would be about, in the loop that computes the indices if there is one, and what is left is an
operation for each index, which loops that use the indices do as they go along.

Indices of scatters alone need not wait for their check, since a scatter leaves out what goes nowhere: what waits is its
result, and the loops of the scatter find the index to check as they go along (`fusion.scatter_windows`).

Checks that cannot fail, by what is known of the ranges of indices, are left out before.
"""

from __future__ import annotations

from math import prod

from xarr.compiler.passes.checks import checks_indices, counted_from_start, index_bounds
from xarr.compiler.target import Target
from xarr.dtypes import info
from xarr.ir import ops
from xarr.ir.constants import constant, full
from xarr.ir.graph import Graph, Node, parameter, rewritten
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import RangeOf
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.rewriting import find_users, rewritten_throughout
from xarr.ir.types import TensorType


def drop_proven_checks(graph: Graph) -> Graph:
    """`graph` without checks that cannot fail, in the graphs of its operations too."""
    if ops.CustomCall not in graph.op_classes:
        return graph
    holds: dict[Node, bool] = {}

    def note(node: Node, range_of: RangeOf) -> None:
        if checks_indices(node):
            range_, (least, size) = range_of(node.operands[0]), index_bounds(node)
            is_inside = range_ is not None and least <= range_[0] and range_[1] < size
            holds[node] = holds.get(node, True) and is_inside

    GraphRanges(note).go_through(graph)
    if not any(holds.values()):
        return graph

    def drop(node: Node, operands: tuple[Node, ...]) -> Node | None:
        return counted_from_start(node, *operands) if holds.get(node) else None

    return rewritten_throughout(graph, drop)


def check_worst_indices(graph: Graph, target: Target) -> Graph:
    """`graph`, but not the graphs of its operations, with a check of one index in place of each of many."""
    if ops.CustomCall not in graph.op_classes:
        return graph
    waiting = _scatters_that_wait(graph, target) if ops.Scatter in graph.op_classes else {}
    late = {call for calls in waiting.values() for call in calls}
    checked: dict[Node, Node] = {}

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if node in waiting:
            result = node if operands == node.operands else node.rebuilt(operands)
            together = (result, *[checked[call] for call in waiting[node]])
            return Node(ops.GetTupleElement(0), (Node(ops.OptimizationBarrier(), together),))
        if not _has_worst(node, target):
            return None
        checked[node] = one = _check_worst(node, operands[0])
        counted = counted_from_start(node, operands[0])
        return counted if node in late else _wait(counted, one, index_bounds(node)[1])

    return rewritten(graph, rule)


def _has_worst(node: Node, target: Target) -> bool:
    """Whether a node checks many indices, the worst of which can be told by numbers of their type."""
    if not checks_indices(node) or node.tensor_type.dynamic or prod(node.shape) < target.min_reduced_checks:
        return False
    (least, size), limits = index_bounds(node), info(node.dtype)
    return int(limits.min) <= least and size <= int(limits.max)


def _scatters_that_wait(graph: Graph, target: Target) -> dict[Node, list[Node]]:
    """For scatters the checks that their results may wait for: those of which scatters alone use what comes of them."""
    users = find_users(graph)
    seen_outside = {*graph.results, *graph.ordered}
    order = {node: number for number, node in enumerate(graph.nodes)}
    waiting: dict[Node, list[Node]] = {}
    #: The next node that may fail, and stays where it is.
    following = len(order)
    for call in reversed(graph.nodes):
        if not _may_fail(call):
            continue
        scatters = _scatters_of(call, users, seen_outside) if _has_worst(call, target) else []
        if not scatters or max(map(order.__getitem__, scatters)) > following:
            following = order[call]
            continue
        for scatter in scatters:
            waiting.setdefault(scatter, []).insert(0, call)
    return waiting


def _may_fail(node: Node) -> bool:
    """Whether a node may raise an error, or have another effect that is to come in its order."""
    return not node.op.is_pure or node.op.runs_graphs or isinstance(node.op, ops.CustomCall | ops.Check)


def _scatters_of(call: Node, users: dict[Node, list[Node]], seen_outside: set[Node]) -> list[Node]:
    """The scatters that use what comes of a check; none if anything else does in the end."""
    stack, seen = [call], {call}
    scatters: dict[Node, None] = {}
    while stack:
        each = stack.pop()
        if each in seen_outside or not users.get(each):
            return []
        for user in users[each]:
            if isinstance(user.op, ops.Scatter) and isinstance(user.type, TensorType):
                scatters[user] = None
            elif not (user.op.is_elementwise or user.op.moves or type(user.op) is ops.Gather):
                return []
            elif user not in seen:
                seen.add(user)
                stack.append(user)
    return list(scatters)


def _check_worst(call: Node, indices: Node) -> Node:
    """The check of the worst of the indices."""
    assert isinstance(call.op, ops.CustomCall)
    (least, _), dtype = index_bounds(call), call.dtype
    low, high = _extremes(indices)
    is_low = Node(ops.Compare("LT"), (low, constant(least, dtype)))
    worst = Node(ops.Select(), (is_low, low, high))
    one = ops.CustomCall(CHECKED_INDICES, (TensorType((), dtype),), call.op.attribute_items)
    return call.rebuilt((worst,), one)


def _wait(indices: Node, checked: Node, size: int) -> Node:
    """The indices, which are known only after the worst of them was checked."""
    # No number is clamped, but all wait for the one that was checked, and lie in a range that is known.
    first = Node(ops.And(), (checked, constant(0, checked.dtype)))
    low = Node(ops.BroadcastInDim(indices.shape, ()), (first,))
    return Node(ops.Clamp(), (low, indices, full(size - 1, indices.shape, indices.dtype)))


def _extremes(indices: Node) -> tuple[Node, Node]:
    """The least and the greatest index, by one reduction."""
    dtype, limits = indices.dtype, info(indices.dtype)
    numbers = [parameter(TensorType((), dtype)) for _ in range(4)]
    combined = [Node(ops.Minimum(), tuple(numbers[::2])), Node(ops.Maximum(), tuple(numbers[1::2]))]
    op = ops.Reduce(tuple(range(len(indices.shape))), Graph(numbers, combined, "extremes"))
    first = [constant(int(limit), dtype) for limit in (limits.max, limits.min)]
    low, high = unpack_results(Node(op, (indices, indices, *first)))
    return low, high
