"""What a step of a plan costs: operations on elements, and bytes that it reads and writes.

Both are counts, the same for every machine.  An engine makes a time of them with numbers of its own.
"""

from __future__ import annotations

from math import prod
from typing import Final

from xarr.base.frozen_dataclasses import record
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.memory_use import nbytes
from xarr.ir.types import TensorType


@record
class Cost:
    """Operations on elements, and bytes read and written."""

    operations: int
    nbytes: int

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.operations + other.operations, self.nbytes + other.nbytes)

    def __mul__(self, times: int) -> Cost:
        return Cost(self.operations * times, self.nbytes * times)


NOTHING: Final = Cost(0, 0)


def cost_of(node: Node) -> Cost:
    """The cost of one node: each operand is read once, each result written once."""
    moved = nbytes(node.type) + sum(nbytes(operand.type) for operand in node.operands)
    return Cost(operations(node), moved)


def iterations_of(node: Node) -> int | None:
    """The number of iterations of a loop, None if that is not known; 1 for other nodes."""
    return node.op.iterations(node) if isinstance(node.op, ops.While) else 1


def operations(node: Node) -> int:
    """Operations on elements.  Of a loop those of one iteration, of branches those of the dearest."""
    op = node.op
    if op.graphs and isinstance(op, ops.If | ops.Case):
        return max(map(_graph_operations, op.graphs))
    if isinstance(op, ops.Call | ops.While):
        return sum(map(_graph_operations, op.graphs))
    if isinstance(op, ops.DotGeneral):
        contracted = prod(node.operands[0].shape[axis] for axis in op.lhs_contracting_dimensions)
        return 2 * _size(node) * contracted
    if isinstance(op, ops.Convolution):
        kernel = node.operands[1].shape
        return 2 * _size(node) * prod(kernel) // max(1, kernel[op.rhs_spec[0]])
    if isinstance(op, ops.Reduce):
        return sum(_size(operand) for operand in node.operands[: len(node.operands) // 2])
    return _size(node) * op.cost


def _graph_operations(graph: Graph) -> int:
    return sum(map(operations, graph.nodes))


def _size(node: Node) -> int:
    return max([each.size for each in element_types(node.type) if isinstance(each, TensorType)], default=0)
