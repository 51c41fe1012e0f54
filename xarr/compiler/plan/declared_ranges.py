"""Ranges of integers that groups read, declared where it decides which elements are read and written.

The loops of a group test and clamp every index that they load, unless the range that is declared of the array says that
it lies in bounds.  So nothing may be declared before the graph is what will run: a check that was taken out of a loop
would have been the proof.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, postorder
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import Range, RangeOf, has_range, hull
from xarr.ir.rewriting import rewritten_throughout

#: What reads or writes at indices.
_INDEXED: Final = frozenset({ops.Gather, ops.Scatter, ops.DynamicSlice, ops.DynamicUpdateSlice})
_LOOPS: Final = (ops.Fusion, ops.NativeWhile)


def declare_ranges(graph: Graph) -> Graph:
    """`graph` with the ranges of what its groups read for indices; equal groups declare what holds for all of them."""
    if _INDEXED.isdisjoint(graph.op_classes) or graph.op_classes.isdisjoint(_LOOPS):
        return graph
    groups = {node.op for each in graph.walk() for node in each.nodes if isinstance(node.op, _LOOPS)}
    if not any(map(_numbers, groups)):
        return graph
    declared: dict[ops.Fusion | ops.NativeWhile, tuple[Range | None, ...]] = {}

    def note(node: Node, range_of: RangeOf) -> None:
        op = node.op
        if isinstance(op, _LOOPS) and (numbers := _numbers(op)):
            ranges = [range_of(each) if k in numbers else None for k, each in enumerate(node.operands)]
            before = declared.get(op)
            declared[op] = tuple(ranges if before is None else map(hull, before, ranges))

    GraphRanges(note).go_through(graph)
    new = {op: replace(op, ranges=ranges) for op, ranges in declared.items() if any(ranges)}
    if not new:
        return graph

    def declare(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, _LOOPS) or node.op not in new:
            return None
        return node.rebuilt(operands, new[node.op])

    return rewritten_throughout(graph, declare)


def _indices(node: Node) -> tuple[Node, ...]:
    """The operands that say where a node reads or writes."""
    op, operands = node.op, node.operands
    if isinstance(op, ops.Scatter):
        return operands[len(operands) // 2 : len(operands) // 2 + 1]
    if isinstance(op, ops.Gather | ops.DynamicSlice):
        return operands[1:]
    return operands[2:] if isinstance(op, ops.DynamicUpdateSlice) else ()


@lru_cache(1024)
def _numbers(op: ops.Fusion | ops.NativeWhile) -> frozenset[int]:
    """The numbers of a group's parameters of which indices are computed; all that a loop with indices carries."""
    if isinstance(op, ops.NativeWhile):
        graph = op.body
        return (
            frozenset() if _INDEXED.isdisjoint(graph.op_classes) else frozenset(range(len(graph.parameters)))
        )
    graph = op.computation
    used = set(postorder([index for node in graph.nodes for index in _indices(node)]))
    return frozenset(k for k, node in enumerate(graph.parameters) if node in used and has_range(node))
