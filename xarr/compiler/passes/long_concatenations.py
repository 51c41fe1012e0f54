"""Concatenations of more arrays than one kernel takes, which has a pointer to each of them among its parameters."""

from __future__ import annotations

from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.rewriting import rewritten_throughout


def split_concatenations(graph: Graph, most: int) -> Graph:
    """`graph` with concatenations of at most so many arrays, at least 2, each of which may be one in turn."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if len(operands) <= most or not isinstance(node.op, ops.Concatenate):
            return None
        while len(operands) > most:
            parts = [operands[k : k + most] for k in range(0, len(operands), most)]
            operands = tuple([node.rebuilt(part, node.op) for part in parts])
        return node.rebuilt(operands, node.op)

    return rewritten_throughout(graph, rule)
