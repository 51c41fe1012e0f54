"""Elements of an array that are written a few apart, `x[1::2] = v`, as updates of these alone.

A recorded program chooses by a mask with holes between what is written, with holes too, and the array.  An engine that
writes in place touches what is written, and makes neither of the other two.
"""

from __future__ import annotations

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.types import TensorType


def update_strided_parts(graph: Graph) -> Graph:
    """The graph with such choices as updates, and the graphs that loops, branches and calls run."""
    if not any(ops.Pad in each.op_classes and ops.Select in each.op_classes for each in graph.walk()):
        return graph
    return OncePerGraph(_rewrite)(graph)


def _rewrite(graph: Graph, inner: OncePerGraph[Graph]) -> Graph:
    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, ops.Select) and _is_strided_write(node):
            _, (update, _), array = operands[0], operands[1].operands, operands[2]
            pad = operands[1].op
            assert isinstance(pad, ops.Pad)
            strides = tuple([holes + 1 for holes in pad.interior])
            return Node(ops.StridedUpdate(pad.low, strides), (array, update))
        op = map_graphs(node.op, inner) if node.op.runs_graphs else node.op
        return None if op is node.op else node.rebuilt(operands, op)

    return rewritten(graph, rule)


def _is_strided_write(node: Node) -> bool:
    """Whether a node chooses what lies on every few elements, and an array around them and in between."""
    mask, laid, _ = node.operands
    pad = laid.op
    if not isinstance(pad, ops.Pad) or not isinstance(node.type, TensorType) or node.type.dynamic:
        return False
    sizes = laid.operands[0].shape
    if not any(pad.interior) or 0 in sizes or min((*pad.low, *pad.high)) < 0 or mask.op != pad:
        return False
    here, elsewhere = mask.operands
    return here.shape == sizes and _is(here, True) and _is(elsewhere, False)


def _is(node: Node, truth: bool) -> bool:
    """Whether each element of an array of bools is one known one."""
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        (node,) = node.operands
    return isinstance(node.op, ops.Constant) and bool(np.all(node.op.array == truth))
