"""Minima of square roots, as in the distance to the nearest of many points."""

from __future__ import annotations

from collections import Counter

import numpy as np

from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, rewritten


def move_sqrt_after_min(graph: Graph) -> Graph:
    """The graph with the root of a minimum in place of a minimum of roots.

    They are the same bits: the root rounds to nearest and so keeps the order, that of the zeros too, and it is
    NaN for whatever is below zero.
    """
    if not graph.op_classes.issuperset((ops.Sqrt, ops.Reduce)):
        return graph
    users = Counter(operand for node in graph.nodes for operand in dict.fromkeys(node.operands))
    users.update(graph.results)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        is_last = _is_min_of_sqrt(node) and users[node.operands[0]] == 1
        return _sqrt_of_min(node, operands) if is_last else None

    return rewritten(graph, rule)


def _is_min_of_sqrt(node: Node) -> bool:
    return (
        isinstance(node.op, ops.Reduce)
        and isinstance(node.operands[0].op, ops.Sqrt)
        and monoids(node.op.computation) == (ops.Minimum,)
        and node.dtype.kind == "f"
    )


def _sqrt_of_min(node: Node, operands: tuple[Node, ...]) -> Node:
    root, initial = operands
    infinity = constant(np.inf, node.dtype)
    least = node.rebuilt((root.operands[0], infinity))
    root_of_least = root.rebuilt((least,))
    first = Node(ops.BroadcastInDim(node.shape, ()), (initial,)) if node.shape else initial
    return Node(ops.Minimum(), (first, root_of_least))
