"""Loops of a graph rewritten one by one, into loops that may carry more than before."""

from __future__ import annotations

from collections.abc import Callable

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.types import TensorType


def rewrite_loops(graph: Graph, change: Callable[[Node], Node | None]) -> Graph:
    """`graph` with what `change` gives for each `while`, None to keep it; in graphs inside too, these first."""
    if not any(op.runs_graphs for op in graph.op_classes):
        return graph

    def rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
        def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
            if not node.op.runs_graphs:
                return None
            op = map_graphs(node.op, inner)
            mapped = node if op is node.op and operands == node.operands else node.rebuilt(operands, op)
            changed = change(mapped) if type(op) is ops.While else None
            return changed or (None if mapped is node else mapped)

        return rewritten(graph, rule)

    return OncePerGraph(rewrite)(graph)


def first_results(wider: Node, node: Node) -> Node:
    """The results of a loop among those of one that carries more behind them."""
    parts = [Node(ops.GetTupleElement(k), (wider,)) for k in range(len(node.operands))]
    return parts[0] if isinstance(node.type, TensorType) else Node(ops.Tuple(), tuple(parts))
