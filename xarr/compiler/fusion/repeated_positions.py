"""Arrays that are made of positions or single elements alone, as `clip(k - arange(n), 0, n - 1)`: one for each user.

A group computes them as it goes along, in a few operations an element; one array for several groups would be stored
and loaded, and an index that is loaded may be any.
"""

from __future__ import annotations

from typing import Final

from xarr.ir import ops
from xarr.ir.constants import repeats_one
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.op import INSTRUCTION
from xarr.ir.types import TensorType

#: Operations that are done again for each user, at most, and users of one array.
_MOST_OPERATIONS: Final = 12
_MOST_USERS: Final = 4


def repeat_positions(graph: Graph) -> Graph:
    """The graph in which users of what is made of positions compute it themselves; the same one if there is nothing."""
    if graph.op_classes.isdisjoint((ops.Iota, ops.BroadcastInDim)):
        return graph
    counts = _operation_counts(graph)
    repeated = {node for node, users in _users(graph, counts).items() if 1 < len(users) <= _MOST_USERS}
    if not repeated:
        return graph
    # What is made of them has one user, which then computes all of it.
    for node in counts:
        if not repeated.isdisjoint(node.operands):
            repeated.add(node)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if node in counts or repeated.isdisjoint(node.operands):
            return None
        own: dict[Node, Node] = {}
        return node.rebuilt(
            tuple(
                _copy(new, counts[old], own) if old in repeated else new
                for old, new in zip(node.operands, operands, strict=True)
            )
        )

    return rewritten(graph, rule)


def _operation_counts(graph: Graph) -> dict[Node, int]:
    """Nodes that are made of positions and single elements, with the number of operations that this takes."""
    counts: dict[Node, int] = {}
    for node in graph.nodes:
        if not _is_cheap(node):
            continue
        parts = [counts.get(each, 0 if _is_free(each) else _MOST_OPERATIONS) for each in node.operands]
        if sum(parts) < _MOST_OPERATIONS:
            counts[node] = sum(parts) + 1
    return counts


def _is_cheap(node: Node) -> bool:
    is_array = isinstance(node.type, TensorType) and not node.type.dynamic and node.type.size > 1
    return is_array and node.op.is_elementwise and node.op.cost <= INSTRUCTION


def _is_free(node: Node) -> bool:
    """Whether a node gives positions or one element everywhere."""
    is_one = isinstance(node.type, TensorType) and node.type.size == 1
    return isinstance(node.op, ops.Iota) or repeats_one(node) or is_one


def _users(graph: Graph, counts: dict[Node, int]) -> dict[Node, set[Node]]:
    """For each node of `counts` that need not be an array, the others that use it or what is made of it.

    Those that must be arrays are taken out of `counts`.
    """
    stored = set(graph.results)
    for node in graph.nodes:
        if not (node in counts or node.op.is_elementwise or isinstance(node.op, ops.Gather | ops.Reduce)):
            stored.update(node.operands)
    for node in stored & counts.keys():
        del counts[node]
    users: dict[Node, set[Node]] = {node: set() for node in counts}
    for node in reversed(graph.nodes):
        for operand in node.operands:
            if operand in counts:
                users[operand] |= users[node] if node in counts else {node}
    return users


def _copy(node: Node, depth: int, own: dict[Node, Node]) -> Node:
    """A node of the same operations on the same positions, for one user."""
    if not depth or not _is_cheap(node):
        return node
    if node not in own:
        own[node] = node.rebuilt(tuple(_copy(each, depth - 1, own) for each in node.operands))
    return own[node]
