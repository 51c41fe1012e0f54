"""Operations on windows, and products, that loops can compute, and of how many elements each result is made.

Whether they are to is the schedule's to say.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.scalars import DType
from xarr.dtypes import accumulator_dtype, widen_dtype
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType


def work(node: Node) -> int:
    """The number of elements that make each element of the result; 0 for ops that loops over windows cannot compute."""
    rule = _WORK.get(type(node.op))
    return rule(node) if rule is not None else 0


def _reduce_window(node: Node) -> int:
    op = node.op.expect(ops.ReduceWindow)
    return op.window.size if _holds(node, op.computation) else 0


def _convolution(node: Node) -> int:
    op = node.op.expect(ops.Convolution)
    return prod(node.operands[1].shape[axis] for axis in op.rhs_spec[1:]) if _holds(node) else 0


def _products(node: Node) -> int:
    op = node.op.expect(ops.DotGeneral)
    return prod(node.operands[0].shape[axis] for axis in op.lhs_contracting_dimensions) if _holds(node) else 0


def _select_and_scatter(node: Node) -> int:
    op = node.op.expect(ops.SelectAndScatter)
    return op.window.size if _holds(node, op.select, op.scatter) else 0


def _holds(node: Node, *graphs: Graph) -> bool:
    """Whether loops can hold the arrays of a node and the scalars of its computations."""
    arrays = (node, *node.operands)
    if not all(isinstance(each.type, TensorType) and elements.is_held(each) for each in arrays):
        return False
    return all(elements.computes(each) and not each.op.graphs for graph in graphs for each in graph.nodes)


# --- convolutions and products ---------------------------------------------------------------------------


def sum_dtype(operand: DType, result: DType) -> DType:
    """In which products and sums are formed: the wider of the two, float32 for narrower floats, int8 for int4."""
    wide = [accumulator_dtype(widen_dtype(dtype)) for dtype in (operand, result)]
    if all(dtype.kind in "iu" for dtype in wide):
        return max(wide, key=lambda dtype: dtype.itemsize)
    return np.promote_types(*wide)


def with_kernels_in_order(graph: Graph, is_wanted: Callable[[Node], bool]) -> Graph:
    """`graph`, the kernels of the wanted convolutions transposed so that neighbouring features lie together.

    Only where neighbouring elements of the result belong to different features.
    """
    if ops.Convolution not in graph.op_classes:
        return graph

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not (isinstance(node.op, ops.Convolution) and is_wanted(node) and _crosses_features(node)):
            return None
        output, features, *spatial = node.op.rhs_spec
        turned = node.rebuilt((operands[1],), ops.Transpose((*spatial, features, output)))
        count = len(spatial)
        op = dataclasses.replace(node.op, rhs_spec=(count + 1, count, *range(count)))
        return node.rebuilt((operands[0], turned), op)

    return rewritten(graph, rule)


def _crosses_features(node: Node) -> bool:
    op, last = node.op, max((axis for axis, size in enumerate(node.shape) if size != 1), default=None)
    assert isinstance(op, ops.Convolution)
    return last == op.out_spec[1] and op.rhs_spec[0] != len(op.rhs_spec) - 1


def free_dimensions(node: Node) -> tuple[Ints, Ints]:
    """Those dimensions of either operand that the result has and the other operand has not."""
    op = node.op.expect(ops.DotGeneral)
    left, right = (each.tensor_type for each in node.operands)
    return op.lhs_free(left), op.rhs_free(right)


_WORK: Final[dict[type[Op], Callable[[Node], int]]] = {
    ops.Convolution: _convolution,
    ops.DotGeneral: _products,
    ops.ReduceWindow: _reduce_window,
    ops.SelectAndScatter: _select_and_scatter,
}
