"""Rules for the nodes of a graph and of all graphs that its operations carry, and the nodes that use a node."""

from __future__ import annotations

from collections.abc import Callable

from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten

Rule = Callable[[Node, tuple[Node, ...]], Node | None]


def rewritten_throughout(graph: Graph, rule: Rule) -> Graph:
    """As `rewritten`, in the bodies of loops, branches, calls and combiners too, each of which is looked at once.

    The rule gets nodes whose op carries the new graphs, and such a node is kept if the rule gives None.
    """

    def rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
        def apply(node: Node, operands: tuple[Node, ...]) -> Node | None:
            op = map_graphs(node.op, inner)
            if op is node.op:
                return rule(node, operands)
            return rule(node.rebuilt(node.operands, op), operands) or node.rebuilt(operands, op)

        return rewritten(graph, apply)

    return OncePerGraph(rewrite)(graph)


def find_users(graph: Graph) -> dict[Node, list[Node]]:
    """For each node that others use these, each once, in their order."""
    users: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        for operand in dict.fromkeys(node.operands):
            users.setdefault(operand, []).append(node)
    return users
