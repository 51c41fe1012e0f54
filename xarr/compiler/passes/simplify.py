"""Remove work that has no effect: repeated subexpressions, moves that move nothing, tuples that are only unpacked."""

from __future__ import annotations

from typing import Final

from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs
from xarr.ir.op import Op
from xarr.ir.ops import GetTupleElement, Transpose, Tuple


def simplify(graph: Graph) -> Graph:
    """An equal graph without duplicate nodes and without nodes that return their operand unchanged; itself without any.

    Optimization barriers are kept apart: two of them never merge, and nothing moves across one.
    Computations that ops carry are simplified too.
    """
    once = OncePerGraph(_simplify_graph)
    return once(graph) if len(graph.walk()) > 1 else _simplify_graph(graph, once)


def _simplify_graph(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
    new: dict[Node, Node] = {node: node for node in graph.parameters}
    known: dict[object, Node] = {}
    is_changed, has_graphs = False, len(graph.walk()) > 1
    for node in graph.nodes:
        op, operands = node.op, node.operands
        if is_changed:
            operands = tuple(map(new.__getitem__, operands))
        may_forward = op.only_changes_type or type(op) in _FORWARDING
        kept = _forward(node, operands) if may_forward else None
        if kept is None:
            op = map_graphs(op, inner) if has_graphs else op
            own = _with_parts(node, op, operands) if has_graphs or is_changed else node
            kept = known.setdefault((op, operands), own)
            if kept is not own and not _is_pure(op):
                kept = own
        is_changed = is_changed or kept is not node
        new[node] = kept
    return graph.derive(new) if is_changed else graph


def _is_pure(op: Op) -> bool:
    return op.is_pure and all(graph.is_pure for graph in op.graphs)


def _with_parts(node: Node, op: Op, operands: tuple[Node, ...]) -> Node:
    """`node` itself if these are its op and operands, else a new one."""
    if op is not node.op:
        return node.rebuilt(operands, op)
    return node if operands == node.operands else node.rebuilt(operands)


#: Ops besides those that only change a type whose result may be an operand.
_FORWARDING: Final = frozenset({GetTupleElement, Transpose})


def _forward(node: Node, operands: tuple[Node, ...]) -> Node | None:
    """The operand that `node` returns unchanged, if it does."""
    op = node.op
    if op.only_changes_type and operands[0].type is node.type:
        return operands[0]
    if isinstance(op, Transpose) and op.permutation == tuple(range(len(op.permutation))):
        return operands[0]
    if isinstance(op, GetTupleElement) and isinstance(operands[0].op, Tuple):
        return operands[0].operands[op.index]
    return None
