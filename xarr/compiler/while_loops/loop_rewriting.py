"""Loops of a graph rewritten one by one, into loops that may carry more than before."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter, rewritten
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType


def rewrite_loops(graph: Graph, change: Callable[[Node], Node | None]) -> Graph:
    """`graph` with what `change` gives for each `while`, None to keep it; in graphs inside too, these first."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if type(node.op) is not ops.While:
            return None
        return change(node if operands == node.operands else node.rebuilt(operands))

    return rewritten_throughout(graph, rule) if ops.While in graph.op_classes else graph


def with_parameters(graph: Graph, nodes: Iterable[Node]) -> Graph:
    """`graph` with more parameters, which it takes for nodes instead of computing them, if it has them."""
    held = {node: parameter(node.type) for node in nodes}
    return rewritten(
        graph.derive({}, parameters=(*graph.parameters, *held.values())), lambda node, _: held.get(node)
    )


def carry(loop: ops.While, nodes: Sequence[Node]) -> ops.While:
    """A loop that carries nodes of its body, which no step changes, behind its other values."""
    body = loop.body.derive({}, [*loop.body.results, *nodes])
    return ops.While(with_parameters(loop.cond, nodes), with_parameters(body, nodes), loop.progress)


def first_results(wider: Node, node: Node) -> Node:
    """The results of a loop among those of one that carries more behind them."""
    parts = [Node(ops.GetTupleElement(k), (wider,)) for k in range(len(node.operands))]
    return parts[0] if isinstance(node.type, TensorType) else Node(ops.Tuple(), tuple(parts))
