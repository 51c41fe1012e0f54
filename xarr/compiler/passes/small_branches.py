"""Branches that do little, element by element: all are computed, and a select has the result of one.

For a machine where reading the number of a branch takes longer than computing all of them.  The bits are the same: what
a branch computes does not depend on whether it is wanted, and element-wise operations neither fail nor go on forever.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from xarr.ir import ops
from xarr.ir.constants import constant, spread
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.control import pack_results
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType

#: What a branch may do besides element-wise operations.
_MOVES: Final = (ops.BroadcastInDim, ops.Constant, ops.Reshape, ops.Slice, ops.Transpose)


def with_selects(graph: Graph, computes: Callable[[Node], bool], operations: int, elements: int) -> Graph:
    """`graph` with selects in place of small branches, all of whose operations the backend `computes` by kernels.

    operations, elements: how many all branches have together, and compute together, at most.
    """

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        op = node.op
        if isinstance(op, ops.If | ops.Case) and _is_small(op.graphs, computes, operations, elements):
            return _select(op, operands)
        return None

    return graph if graph.op_classes.isdisjoint((ops.If, ops.Case)) else rewritten_throughout(graph, rule)


def _is_small(
    branches: Sequence[Graph], computes: Callable[[Node], bool], operations: int, elements: int
) -> bool:
    nodes = [node for branch in branches for node in branch.nodes if node not in branch.parameters]
    if len(nodes) > operations:
        return False
    values = [*nodes, *[result for branch in branches for result in branch.results]]
    types = [node.type for node in values]
    if not all(isinstance(type, TensorType) and not type.dynamic and type.size for type in types):
        return False
    if sum(node.tensor_type.size for node in values) > elements:
        return False
    return all(isinstance(each.op, ops.Constant) or (_is_plain(each) and computes(each)) for each in nodes)


def _is_plain(node: Node) -> bool:
    return node.op.is_elementwise or isinstance(node.op, _MOVES)


def _select(op: ops.If | ops.Case, operands: tuple[Node, ...]) -> Node:
    """The results of one branch, by the first operand, of those of all."""
    number, *arguments = operands
    *others, last = [branch.inline(*arguments) for branch in op.graphs]
    results = list(last)
    # The last branch is that of all numbers that no other one has.
    for k, branch in reversed(list(enumerate(others))):
        chosen = number if isinstance(op, ops.If) else _equals(number, k)
        results = [_choose(chosen, *pair) for pair in zip(branch, results, strict=True)]
    return pack_results(results)


def _equals(number: Node, value: int) -> Node:
    return Node(ops.Compare("EQ"), (number, constant(value, number.dtype)))


def _choose(chosen: Node, on_true: Node, on_false: Node) -> Node:
    return Node(ops.Select(), (spread(chosen, on_true.shape), on_true, on_false))
