"""Rules for the nodes of a graph and of all graphs that it runs."""

from __future__ import annotations

from collections.abc import Callable

from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten

Rule = Callable[[Node, tuple[Node, ...]], Node | None]


def rewritten_throughout(graph: Graph, rule: Rule) -> Graph:
    """As `rewritten`, in the bodies of loops, branches and calls too, each of which is looked at once.

    A node for which the rule gives None keeps its op, with the new graphs where that runs some.
    """

    def rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
        def apply(node: Node, operands: tuple[Node, ...]) -> Node | None:
            replacement = rule(node, operands)
            if replacement is not None or not node.op.runs_graphs:
                return replacement
            op = map_graphs(node.op, inner)
            return None if op is node.op else node.rebuilt(operands, op)

        return rewritten(graph, apply)

    return OncePerGraph(rewrite)(graph)
