"""Products of matrices as sums of products in groups: those that are reduced at once, and many of a few elements.

A product whose contracted dimensions are short has many more elements than its operands.  Where a reduction
takes most of them away again, they need never be stored: each is a short sum that stays in registers.  Products of
a few elements each take a library longer to get ready for than to do.
"""

from __future__ import annotations

from collections import Counter
from math import prod
from typing import Final

import numpy as np

from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.computations import combiner, monoids
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.rewriting import find_users
from xarr.ir.types import Ints

#: The types of matrices whose products are computed inside.
_TYPES: Final = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))

_FLOATS: Final = frozenset(map(np.dtype, (np.float32, np.float64)))


def products_inside(graph: Graph, target: Target) -> tuple[Graph, set[Ints]]:
    """The graph with such products decomposed, and the shapes of what must then never be stored."""
    if ops.DotGeneral not in graph.op_classes:
        return graph, set()
    users = find_users(graph)
    results = Counter(graph.results)
    shapes: set[Ints] = set()

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        is_inside = _is_short(node, target) and _is_reduced(node, users, results, target)
        if not is_inside and not _are_small(node, target):
            return None
        apart = split_product(node, operands)
        shapes.add(apart.operands[0].shape)
        return apart

    return rewritten(graph, rule), shapes


def _is_short(node: Node, target: Target) -> bool:
    op = node.op
    if not isinstance(op, ops.DotGeneral) or node.dtype not in _TYPES:
        return False
    lhs, rhs = node.operands
    terms = prod(lhs.shape[axis] for axis in op.lhs_contracting_dimensions)
    size = node.tensor_type.size
    small = 8 * max(lhs.tensor_type.size, rhs.tensor_type.size) <= size * terms
    free = (
        _free(lhs, op.lhs_batching_dimensions, op.lhs_contracting_dimensions),
        _free(rhs, op.rhs_batching_dimensions, op.rhs_contracting_dimensions),
    )
    rows, columns = (prod(x.shape[axis] for axis in axes) for x, axes in zip((lhs, rhs), free, strict=True))
    pays = 0 < terms <= target.max_inner_terms and size >= target.min_unstored_elements
    pays = pays and min(rows, columns) >= target.min_inner_lines
    return lhs.dtype == rhs.dtype == node.dtype and pays and small


def _is_reduced(node: Node, users: dict[Node, list[Node]], results: Counter[Node], target: Target) -> bool:
    """Whether all that comes of a product, element by element, is reduced along its last dimension."""
    last = node.tensor_type.rank - 1
    stack, seen = [node], {node}
    is_reached = False
    while stack:
        each = stack.pop()
        if results[each] or not users.get(each):
            return False
        for user in users[each]:
            op = user.op
            if isinstance(op, ops.Reduce):
                terms = prod(node.shape[axis] for axis in op.dimensions)
                if (
                    last not in op.dimensions
                    or monoids(op.computation) is None
                    or terms < target.min_reduced_products
                ):
                    return False
                is_reached = True
            elif not op.is_elementwise or user.shape != node.shape:
                return False
            elif user not in seen:
                seen.add(user)
                stack.append(user)
    # Several reductions would each want the products anew.
    return is_reached and sum(isinstance(user.op, ops.Reduce) for each in seen for user in users[each]) == 1


def _are_small(node: Node, target: Target) -> bool:
    """Whether a node multiplies many small matrices, or many short rows by one.

    Neither the elements of a result along its last dimensions nor the terms of a sum fill a register.
    """
    op = node.op
    if not isinstance(op, ops.DotGeneral) or not (node.dtype in _TYPES or node.dtype.kind in "iu"):
        return False
    lhs, rhs = node.operands
    if not lhs.dtype == rhs.dtype == node.dtype:
        return False
    terms = prod(lhs.shape[axis] for axis in op.lhs_contracting_dimensions)
    rows = node.tensor_type.rank - len(_free(rhs, op.rhs_batching_dimensions, op.rhs_contracting_dimensions))
    long = [axis for axis, size in enumerate(node.shape) if size >= target.min_busy_iterations]
    if not long or long[-1] >= rows or not 0 < terms * node.dtype.itemsize < target.register_bytes:
        return False
    return terms * prod(node.shape[long[-1] + 1 :]) <= target.max_small_product


def reads_once(node: Node, min_terms: int) -> bool:
    """Whether a product takes one pass over its larger operand, as a matrix times a vector, along one dimension."""
    op = node.op
    if not isinstance(op, ops.DotGeneral) or len(op.lhs_contracting_dimensions) != 1:
        return False
    left, right = (operand.tensor_type for operand in node.operands)
    if node.dtype not in _FLOATS or not left.dtype == right.dtype == node.dtype:
        return False
    terms = left.shape[op.lhs_contracting_dimensions[0]]
    return terms >= min_terms and terms * node.tensor_type.size <= max(left.size, right.size)


def split_product(node: Node, operands: tuple[Node, ...]) -> Node:
    """Sum of products, as a reduction of a product of repeated arrays."""
    op = node.op.expect(ops.DotGeneral)
    lhs, rhs = operands
    batch = len(op.lhs_batching_dimensions)
    left = _free(lhs, op.lhs_batching_dimensions, op.lhs_contracting_dimensions)
    right = _free(rhs, op.rhs_batching_dimensions, op.rhs_contracting_dimensions)
    inner = tuple(lhs.shape[axis] for axis in op.lhs_contracting_dimensions)
    shape = node.shape + inner
    ends = range(len(node.shape), len(shape))
    rows = (*range(batch + len(left)), *ends)
    columns = (*range(batch), *range(batch + len(left), len(shape)))
    wide = (
        _broadcast_operand(
            lhs, (*op.lhs_batching_dimensions, *left, *op.lhs_contracting_dimensions), rows, shape
        ),
        _broadcast_operand(
            rhs, (*op.rhs_batching_dimensions, *right, *op.rhs_contracting_dimensions), columns, shape
        ),
    )
    zero = constant(0, node.dtype)
    return Node(ops.Reduce(tuple(ends), combiner(ops.Add(), node.dtype)), (Node(ops.Multiply(), wide), zero))


def _free(x: Node, batching: Ints, contracting: Ints) -> list[int]:
    return [axis for axis in range(len(x.shape)) if axis not in (*batching, *contracting)]


def _broadcast_operand(x: Node, axes: Ints, dims: Ints, shape: Ints) -> Node:
    """An array whose dimensions `axes` lie at `dims`, in ascending order, of a larger shape."""
    if axes != tuple(range(len(axes))):
        x = Node(ops.Transpose(axes), (x,))
    return Node(ops.BroadcastInDim(shape, dims), (x,))
