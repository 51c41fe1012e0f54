"""Products of transposed matrices as products of the matrices, and transposed products as products.

`x.T @ y` contracts the rows of x, and `(x @ y).T` has those terms of its sums that `y.T @ x.T` has.  A BLAS takes
transposed matrices as they are; a loop reads an operand in the order in which it lies, and a copy of it, or of the
result, may take longer than the product.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from math import prod

from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.types import Ints


def contract_untransposed(graph: Graph, target: Target) -> Graph:
    """The graph with products of what was transposed, where a loop over either reads neighbours one after the other.

    The terms of each sum are the same.
    """
    return rewritten(multiply_in_order(graph), partial(_absorb_transposes, target.min_vector_features))


def multiply_in_order(graph: Graph) -> Graph:
    """The graph with products whose operands are swapped where only a transpose of the result is used, in which rows of
    the left one lie together.

    The terms of each sum are the same.
    """
    if ops.Transpose not in graph.op_classes or ops.DotGeneral not in graph.op_classes:
        return graph
    uses = Counter(operand for node in graph.nodes for operand in node.operands)
    uses.update(graph.results)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Transpose) or uses[node.operands[0]] > 1:
            return None
        (product,) = operands
        permutation = _after_swap(product, node.op.permutation)
        if permutation is None:
            return None
        swapped, is_in_order = _swap_operands(product), permutation == tuple(range(len(permutation)))
        return swapped if is_in_order else node.rebuilt((swapped,), ops.Transpose(permutation))

    return rewritten(graph, rule)


def _after_swap(product: Node, permutation: Ints) -> Ints | None:
    """The permutation of the product of swapped operands that is one of a product, whose last dimension it puts
    elsewhere for that of the left operand; None for others.
    """
    if not isinstance(product.op, ops.DotGeneral) or product.dtype.kind not in "fiu":
        return None
    left, right = map(len, free_dimensions(product))
    first = len(product.op.lhs_batching_dimensions)
    if not (left and right) or permutation[-1] != first + left - 1:
        return None
    moved = [*range(first), *range(first + right, len(permutation)), *range(first, first + right)]
    return tuple([moved[axis] for axis in permutation])


def _swap_operands(product: Node) -> Node:
    """Swap the operands of a product, whose result is then the transpose."""
    op = product.op.expect(ops.DotGeneral)
    dims = [
        (op.rhs_batching_dimensions, op.rhs_contracting_dimensions),
        (op.lhs_batching_dimensions, op.lhs_contracting_dimensions),
    ]
    turned = replace(_with_dimensions(op, dims), precision=op.precision[::-1])
    return product.rebuilt(product.operands[::-1], turned)


def _absorb_transposes(min_features: int, node: Node, operands: tuple[Node, ...]) -> Node | None:
    if not isinstance(node.op, ops.DotGeneral):
        return None
    changed: Node | None = None
    for side in (0, 1):
        product = changed or (node if operands == node.operands else node.rebuilt(operands))
        changed = _without_transpose(product, side, min_features) or changed
    return None if changed is None else _with_columns_last(changed)


def _without_transpose(node: Node, side: int, min_features: int) -> Node | None:
    """The product with what one operand is the transpose of; None if that is none, or the result would be another."""
    op, transposed = node.op.expect(ops.DotGeneral), node.operands[side]
    if not isinstance(transposed.op, ops.Transpose):
        return None
    permutation = transposed.op.permutation
    (base,) = transposed.operands
    free = free_dimensions(node)
    own = tuple(permutation[axis] for axis in free[side])
    dims = [
        (op.lhs_batching_dimensions, op.lhs_contracting_dimensions),
        (op.rhs_batching_dimensions, op.rhs_contracting_dimensions),
    ]
    batching, contracting = (tuple(permutation[axis] for axis in axes) for axes in dims[side])
    dims[side] = (batching, contracting)
    is_read_in_order = len(permutation) - 1 in own or not free[1 - side]
    # Few columns fill no register, terms of the sums do, if they lie together in both operands.
    is_narrow = prod([base.shape[axis] for axis in own]) < min_features
    ends = dims[1 - side][1] == (len(node.operands[1 - side].shape) - 1,)
    is_read_in_order |= is_narrow and ends and contracting == (len(permutation) - 1,)
    if own != tuple(sorted(own)) or not is_read_in_order:
        return None
    operands = [*node.operands]
    operands[side] = base
    return node.rebuilt(tuple(operands), _with_dimensions(op, dims))


def _with_columns_last(node: Node) -> Node:
    """A product of a matrix, of which columns lie side by side, and a vector as that of the vector and the matrix."""
    left = node.operands[0]
    own, other = free_dimensions(node)
    if other or len(left.shape) - 1 not in own or node.dtype.kind not in "fiu":
        return node
    return _swap_operands(node)


def _with_dimensions(op: ops.DotGeneral, dims: list[tuple[Ints, Ints]]) -> ops.DotGeneral:
    """The operation with these batching and contracting dimensions of both operands."""
    (lhs_batching, lhs_contracting), (rhs_batching, rhs_contracting) = dims
    return replace(
        op,
        lhs_batching_dimensions=lhs_batching,
        rhs_batching_dimensions=rhs_batching,
        lhs_contracting_dimensions=lhs_contracting,
        rhs_contracting_dimensions=rhs_contracting,
    )
