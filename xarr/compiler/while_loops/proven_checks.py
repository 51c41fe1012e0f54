"""Checks of indices that lie in bounds for certain, in loops too, left out."""

from __future__ import annotations

from xarr.compiler.passes.checks import checks_indices, counted_from_start, index_bounds
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import RangeOf
from xarr.ir.rewriting import rewritten_throughout


def drop_proven_checks(graph: Graph) -> Graph:
    """`graph` without checks that cannot fail, in the graphs of its operations too."""
    if ops.CustomCall not in graph.op_classes:
        return graph
    holds: dict[Node, bool] = {}

    def note(node: Node, range_of: RangeOf) -> None:
        if checks_indices(node):
            range_, (least, size) = range_of(node.operands[0]), index_bounds(node)
            is_inside = range_ is not None and least <= range_[0] and range_[1] < size
            holds[node] = holds.get(node, True) and is_inside

    GraphRanges(note).go_through(graph)
    if not any(holds.values()):
        return graph

    def drop(node: Node, operands: tuple[Node, ...]) -> Node | None:
        return counted_from_start(node, *operands) if holds.get(node) else None

    return rewritten_throughout(graph, drop)
