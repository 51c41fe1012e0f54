"""Scatters that loops can run, and where their windows lie."""

from __future__ import annotations

from collections.abc import Container
from math import prod
from typing import Any

from xarr.compiler.fusion.groups import Group
from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.operands_first import reach


def computes(node: Node) -> bool:
    """Whether loops can run this scatter: of one array, by scalars that they can compute."""
    op = node.op
    if not isinstance(op, ops.Scatter) or len(node.operands) != 3:
        return False
    held = all(map(elements.is_held, (node, *node.operands)))
    return held and all(elements.computes(each) for each in op.update_computation.nodes)


def is_sparse(node: Node) -> bool:
    """Whether a scatter writes no more than half of as many elements as its array has."""
    return 2 * node.operands[2].tensor_type.size <= node.tensor_type.size


def updates_by_array(graph: Graph) -> dict[Node, list[Node]]:
    """The arrays that updates and sparse scatters write parts of, and what does so, which may be in their memory."""
    updates: dict[Node, list[Node]] = {}
    for node in graph.nodes:
        is_update = isinstance(node.op, ops.DynamicUpdateSlice | ops.StridedUpdate)
        if is_update or (computes(node) and is_sparse(node)):
            updates.setdefault(node.operands[0], []).append(node)
    return updates


def reads_elsewhere(graph: Graph, arrays: Container[Node]) -> set[Node]:
    """The nodes that read any elements of these arrays: gathers, and what is computed element by element of all.

    A scatter that computes them as it goes along can not write over such an array, and has to copy it.
    """
    reads: set[Node] = set()
    whole: set[Node] = set()
    for node in graph.nodes:
        if any(operand in arrays or operand in whole for operand in node.operands):
            if isinstance(node.op, ops.Gather):
                reads.add(node)
            elif node.op.is_elementwise or node.op.moves:
                whole.add(node)
    return reads | whole


def has_rows(node: Node, target: Target) -> bool:
    """Whether windows hold neighbouring elements, so that the innermost loop is a vector loop."""
    windows = windows_of(node)
    inner = [dim for dim, size in enumerate(windows.operand_shape) if size != 1][-1:]
    return any(windows.sizes[dim] >= target.min_vector_row for dim in inner)


def can_accumulate(scatter: Group, other: Group) -> bool:
    """Whether the loops of a scatter of single elements can accumulate what another group reduces, which are integers.

    It reduces the same domain to a number for each reduction, in any order, and none of these depends on another.
    """
    if scatter.scatter is None or other.domain != scatter.domain or prod(scatter.domain) == 1:
        return False
    if other.kept_axes() or other.scatter or other.scan or other.placed or other.inner:
        return False
    if prod(windows_of(scatter.scatter).sizes) != 1:
        return False
    reductions = [node for node in other.along if isinstance(node.op, ops.Reduce)]
    return all(_accumulates_integers(node, other) for node in reductions)


def _accumulates_integers(node: Node, group: Group) -> bool:
    """Whether a reduction takes all elements of the group's domain, integers in any order, and no result of another."""
    how, op = combination(node), node.op.expect(ops.Reduce)
    is_whole = node.operands[0].shape == group.domain and len(op.dimensions) == len(group.domain)
    if not is_whole or how.monoids is None or any(array.dtype.kind not in "iub" for array in how.arrays):
        return False
    members = reach(node.operands, lambda each: [x for x in each.operands if x in group.along])
    return not any(isinstance(each.op, ops.Reduce) for each in members)


def windows_of(node: Node) -> Any:
    """Where the windows of a scatter lie."""
    operand, indices, updates = (each.tensor_type for each in node.operands)
    return node.op.expect(ops.Scatter).windows(operand, indices, updates)
