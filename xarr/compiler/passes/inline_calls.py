"""Calls of small functions, and of those that are called once, as the operations of the function.

What a function computes then joins the groups around the call, and the caller's operations those of the function.
Larger functions that are called several times stay functions, which are compiled once.
"""

from __future__ import annotations

from collections import Counter

from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten


def inline_calls(graph: Graph, target: Target) -> Graph:
    """`graph` without calls of functions that are small, or called once; itself without any.

    Functions with effects stay, since those come in the order of the calls.
    """
    if ops.Call not in graph.op_classes:
        return graph
    calls = Counter(
        id(node.op.computation) for each in graph.walk() for node in each.nodes if type(node.op) is ops.Call
    )

    def rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
        def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
            op = map_graphs(node.op, inner)
            if (
                type(node.op) is ops.Call
                and type(op) is ops.Call
                and op.computation.is_pure
                and _pays(op.computation.operation_count, calls[id(node.op.computation)], target)
            ):
                return op.decompose(*operands)
            return None if op is node.op else node.rebuilt(operands, op)

        return rewritten(graph, rule)

    return OncePerGraph(rewrite, _graphs_of)(graph)


def _pays(operations: int, calls: int, target: Target) -> bool:
    """Whether to copy a function of so many operations into each of its calls."""
    is_small = operations <= target.max_inlined_operations
    return calls == 1 or (is_small and operations * calls <= target.max_copied_operations)


def _graphs_of(node: Node) -> tuple[Graph, ...]:
    return node.op.graphs if type(node.op) is ops.Call else ()
