"""Concatenations of more arrays than one kernel takes, which has a pointer to each of them among its parameters."""

from __future__ import annotations

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten


def split_concatenations(graph: Graph, most: int) -> Graph:
    """`graph` with concatenations of at most so many arrays, at least 2, each of which may be one in turn."""
    if not any(_is_long(node, most) for each in graph.walk() for node in each.nodes):
        return graph
    return OncePerGraph[Graph](lambda graph, inner: _split(graph, inner, most))(graph)


def _is_long(node: Node, most: int) -> bool:
    return len(node.operands) > most and isinstance(node.op, ops.Concatenate)


def _split(graph: Graph, inner: OncePerGraph[Graph], most: int) -> Graph:
    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        op = map_graphs(node.op, inner)
        if not _is_long(node, most):
            return None if op is node.op else node.rebuilt(operands, op)
        while len(operands) > most:
            parts = [operands[k : k + most] for k in range(0, len(operands), most)]
            operands = tuple([node.rebuilt(part, op) for part in parts])
        return node.rebuilt(operands, op)

    return rewritten(graph, rule)
