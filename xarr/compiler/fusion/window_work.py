"""Which operations on windows, and which products, compiled loops hold."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.scalars import DType
from xarr.compiler.target import Target
from xarr.dtypes import BOOL, accumulator_dtype
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType
from xarr.ir.windows import Window, WindowDimension

#: Distances inside an array are counted in int32.
_MAX_DISTANCE: Final = 2**31
#: Of complex numbers BLAS computes products of small matrices as fast.
_PRODUCTS: Final = (np.dtype(np.float32), np.dtype(np.float64))


def prepare(graph: Graph, target: Target) -> Graph:
    """`graph` with operands in the order in which loops go through them fastest."""
    if not any(isinstance(node.op, ops.Convolution) for node in graph.nodes):
        return graph
    return with_kernels_in_order(graph, lambda node: work(node, target) > 0)


def work(node: Node, target: Target) -> int:
    """The number of elements that make each element of the result; 0 for ops that loops over windows cannot hold."""
    rule = _WORK.get(type(node.op))
    return rule(node, target) if rule is not None else 0


def _reduce_window(node: Node, target: Target) -> int:
    op = node.op
    assert isinstance(op, ops.ReduceWindow)
    if len(node.operands) != 2 or max(op.base_dilations, default=1) > 1:
        return 0
    size = op.window.size
    fits = _are_small(op.window_dimensions, target) and size <= target.max_reduced_window
    return size if fits and _holds(node, op.computation) else 0


def _convolution(node: Node, target: Target) -> int:
    op = node.op
    assert isinstance(op, ops.Convolution)
    sizes = tuple(node.operands[1].shape[axis] for axis in op.rhs_spec[2:])
    if not _holds(node) or node.dtype in BOOL:
        return 0
    if max(sizes, default=1) >= target.min_wide_window or prod(sizes) > target.max_window:
        return 0
    if is_depthwise(node):
        return prod(sizes)
    return _dense(node, prod(sizes), target) if is_dense(node) else 0


def _dense(node: Node, taps: int, target: Target) -> int:
    """A convolution over all features, if the kernel stays in a cache or all is small: BLAS is better at others."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    terms, features = taps * node.operands[0].shape[op.lhs_spec[1]], node.shape[op.out_spec[1]]
    is_little = terms * prod(node.shape) <= target.max_loop_products
    is_near = node.operands[1].tensor_type.size * node.dtype.itemsize <= target.max_kernel_bytes
    is_wide = features >= target.min_vector_features and node.dtype.kind == "f"
    return terms if (is_little or is_near) and is_wide else 0


def _products(node: Node, target: Target) -> int:
    """Many products of small matrices, whose columns lie together in the right one."""
    op = node.op
    assert isinstance(op, ops.DotGeneral)
    left, right = (operand.tensor_type for operand in node.operands)
    if not _holds(node) or not left.dtype == right.dtype == node.dtype or node.dtype not in _PRODUCTS:
        return 0
    matrices = prod(left.shape[axis] for axis in op.lhs_batching_dimensions)
    others, free = free_dimensions(node)
    columns = right.shape[-1] if free and free[-1] == right.rank - 1 else 0
    rows = left.shape[others[-1]] if others else 1
    small = right.size // matrices * right.dtype.itemsize <= target.max_matrix_bytes
    terms = prod(left.shape[axis] for axis in op.lhs_contracting_dimensions)
    many = matrices >= target.min_matrices and rows >= target.min_matrix_rows
    return terms if many and small and columns >= target.min_vector_features else 0


def _select_and_scatter(node: Node, target: Target) -> int:
    op = node.op
    assert isinstance(op, ops.SelectAndScatter)
    operand = node.operands[0].tensor_type
    if operand.size >= _MAX_DISTANCE or not _are_small(op.window_dimensions, target):
        return 0
    return op.window.size if _holds(node, op.select, op.scatter) else 0


def _are_small(sizes: tuple[int, ...], target: Target) -> bool:
    return max(sizes, default=1) < target.min_wide_window and 1 < prod(sizes) <= target.max_window


def _holds(node: Node, *graphs: Graph) -> bool:
    """Whether loops can hold the arrays of a node and the scalars of its computations."""
    arrays = (node, *node.operands)
    if not all(isinstance(each.type, TensorType) and elements.is_held(each) for each in arrays):
        return False
    return all(elements.computes(each) and not each.op.graphs for graph in graphs for each in graph.nodes)


# --- convolutions and products ---------------------------------------------------------------------------


def is_depthwise(node: Node) -> bool:
    """Whether each feature of the result is made of one feature of the array, all in one order of dimensions."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    features = node.operands[0].shape[op.lhs_spec[1]]
    return (
        op.feature_group_count == features == node.shape[op.out_spec[1]]
        and op.lhs_spec == op.out_spec
        and max(op.lhs_dilation, default=1) == 1
    )


def is_dense(node: Node) -> bool:
    """Whether each feature of the result is made of all those of the array, and they lie together in memory."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    last = len(op.out_spec) - 1
    return (
        op.feature_group_count == op.batch_group_count == 1
        and op.lhs_spec == op.out_spec
        and op.out_spec[1] == last
        and max(op.lhs_dilation, default=1) == 1
        and sum_dtype(node.operands[0].dtype, node.dtype) == node.operands[0].dtype == node.dtype
    )


def window_of(node: Node) -> Window:
    """The windows along all dimensions of the array, in its order."""
    op = node.op
    assert isinstance(op, ops.Convolution)
    dimensions = [WindowDimension(1)] * len(op.lhs_spec)
    for axis, each in zip(op.lhs_spec[2:], op.window(node.operands[1].tensor_type).dimensions, strict=True):
        dimensions[axis] = each
    return Window(tuple(dimensions))


def sum_dtype(operand: DType, result: DType) -> DType:
    """In which products and sums are formed: the wider of the two, float32 for narrower floats."""
    wide = [accumulator_dtype(dtype) for dtype in (operand, result)]
    if all(dtype.kind in "iu" for dtype in wide):
        return max(wide, key=lambda dtype: dtype.itemsize)
    return np.promote_types(*wide)


def with_kernels_in_order(graph: Graph, is_wanted: Callable[[Node], bool]) -> Graph:
    """`graph`, the kernels of depthwise convolutions transposed so that neighbouring features lie together.

    Only where neighbouring elements of the result belong to different features.
    """

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not (isinstance(node.op, ops.Convolution) and is_wanted(node) and _crosses_features(node)):
            return None
        output, *others = node.op.rhs_spec
        turned = node.rebuilt((operands[1],), ops.Transpose((*others, output)))
        op = dataclasses.replace(node.op, rhs_spec=(len(others), *range(len(others))))
        return node.rebuilt((operands[0], turned), op)

    return rewritten(graph, rule)


def _crosses_features(node: Node) -> bool:
    op, last = node.op, max((axis for axis, size in enumerate(node.shape) if size != 1), default=None)
    assert isinstance(op, ops.Convolution)
    return last == op.out_spec[1] and op.rhs_spec[0] != len(op.rhs_spec) - 1


def free_dimensions(node: Node) -> tuple[Ints, Ints]:
    """Those dimensions of either operand that the result has and the other operand has not."""
    op = node.op
    assert isinstance(op, ops.DotGeneral)
    left, right = node.operands
    gone = (
        op.lhs_batching_dimensions + op.lhs_contracting_dimensions,
        op.rhs_batching_dimensions + op.rhs_contracting_dimensions,
    )
    return (
        tuple(axis for axis in range(len(left.shape)) if axis not in gone[0]),
        tuple(axis for axis in range(len(right.shape)) if axis not in gone[1]),
    )


_WORK: Final[dict[type[Op], Callable[[Node, Target], int]]] = {
    ops.Convolution: _convolution,
    ops.DotGeneral: _products,
    ops.ReduceWindow: _reduce_window,
    ops.SelectAndScatter: _select_and_scatter,
}
