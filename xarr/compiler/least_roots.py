"""Minima of square roots, as in the distance to the nearest of many points."""

from __future__ import annotations

from collections import Counter

import numpy as np

from xarr.compiler.accumulators import monoids
from xarr.ir import ops
from xarr.ir.graph import Graph, Node


def least_roots(graph: Graph) -> Graph:
    """The graph with the root of a minimum in place of a minimum of roots.

    They are the same bits: the root rounds to nearest and so keeps the order, that of the zeros too, and it is
    NaN for whatever is below zero.
    """
    users = Counter(operand for node in graph.nodes for operand in dict.fromkeys(node.operands))
    users.update(graph.results)
    new: dict[Node, Node] = {}
    for node in graph.nodes:
        operands = tuple(new.get(operand, operand) for operand in node.operands)
        if _is_least_root(node) and users[node.operands[0]] == 1:
            new[node] = _least_root(node, operands)
        elif operands != node.operands:
            new[node] = node.rebuilt(operands)
    return (
        Graph(graph.parameters, [new.get(node, node) for node in graph.results], graph.name) if new else graph
    )


def _is_least_root(node: Node) -> bool:
    return (
        isinstance(node.op, ops.Reduce)
        and isinstance(node.operands[0].op, ops.Sqrt)
        and monoids(node.op.computation) == (ops.Minimum,)
        and node.dtype.kind == "f"
    )


def _least_root(node: Node, operands: tuple[Node, ...]) -> Node:
    root, initial = operands
    infinity = Node(ops.Constant.of(np.array(np.inf, node.dtype)))
    least = node.rebuilt((root.operands[0], infinity))
    found = root.rebuilt((least,))
    first = Node(ops.BroadcastInDim(node.shape, ()), (initial,)) if node.shape else initial
    return Node(ops.Minimum(), (first, found))
