"""Reductions as other operations: those over the parts of a stack, and minima of square roots.

`max(stack([a, b, c]), axis=0)` is the maximum of a, b and c.  A loop over three parts would ask for each element which
part it is in; without it neighbours lie in lanes, and borders of the parts are cut off.  So is what is computed of a
stack before it is reduced, as `sum(stack([dx, dy], axis=-1) ** 2, axis=-1)`, where that costs little.  Terms are added
from the first one on, and the initial value comes first or last as in other reductions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Final, TypeAlias

import numpy as np

from xarr.dtypes import COMPLEX, FLOAT
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.constants import constant, full, spread
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.op import INSTRUCTION, Op
from xarr.ir.ops.control import compute_on_arrays, pack_results
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import Ints, TensorType

#: How many operations deep below a reduction stacks are looked for.
_DEPTH: Final = 6


def combine_stacked_parts(graph: Graph, most: int) -> Graph:
    """The graph without reductions along the dimension of a stack of at least two, and at most `most`, parts."""
    if not graph.op_classes.issuperset((ops.Concatenate, ops.Reduce)):
        return graph

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        op = node.op
        if isinstance(op, ops.GetTupleElement) and isinstance(operands[0].op, ops.Tuple):
            return operands[0].operands[op.index]
        if not isinstance(op, ops.Reduce) or len(op.dimensions) != 1:
            return None
        (axis,), arrays = op.dimensions, operands[: len(operands) // 2]
        count = arrays[0].shape[axis]
        if not 2 <= count <= most or not any(_is_stack(each, axis, _DEPTH) for each in arrays):
            return None
        return _combine(op.computation, arrays, operands[len(arrays) :], axis)

    return rewritten_throughout(graph, rule)


def _is_stack(node: Node, axis: int, depth: int) -> bool:
    """Whether each index of a dimension has another array, or what is easily computed of these."""
    op = node.op
    if isinstance(op, ops.Concatenate) and op.dimension == axis:
        return len(node.operands) == node.shape[axis] and all(each.shape[axis] == 1 for each in node.operands)
    if not depth:
        return False
    if isinstance(op, ops.BroadcastInDim):
        (operand,), dims = node.operands, op.broadcast_dimensions
        inner = dims.index(axis) if axis in dims else None
        is_whole = inner is not None and operand.shape[inner] == node.shape[axis]
        return inner is not None and is_whole and _is_stack(operand, inner, depth - 1)
    return _is_light(node) and any(_is_stack(each, axis, depth - 1) for each in node.operands)


def _is_light(node: Node) -> bool:
    is_cheap = node.op.is_elementwise and node.op.cost <= INSTRUCTION
    return is_cheap and all(
        isinstance(each.type, TensorType) and each.shape == node.shape for each in node.operands
    )


def _combine(
    computation: Graph, arrays: tuple[Node, ...], initial: tuple[Node, ...], axis: int
) -> Node | None:
    """The results of a reduction of parts; None if loops accumulate these otherwise than one after the other."""
    dtypes, operations = {each.dtype for each in initial}, monoids(computation)
    is_exact = operations is not None and {*operations} <= {ops.Maximum, ops.Minimum}
    if not is_exact and any(dtype in FLOAT and dtype.itemsize < 4 for dtype in dtypes):
        return None  # they are accumulated in float32
    parts = _StackParts()
    first, *rows = [tuple([parts.of(each, axis, k) for each in arrays]) for k in range(arrays[0].shape[axis])]
    start = tuple([spread(each, first[0].shape) for each in initial])
    in_order = operations is None or not dtypes.isdisjoint(COMPLEX)
    held: tuple[Node, ...] | None = start if in_order else first
    for row in [first, *rows] if in_order else [*rows, None]:
        pair = (*start, *(held or ())) if row is None else (*(held or ()), *row)
        held = compute_on_arrays(computation, pair)
        if held is None:
            return None
    return pack_results(held or ())


class _StackParts:
    """The elements of arrays at an index of a dimension, each computed once, of stacks at most so deep below."""

    def __init__(self) -> None:
        self._known: dict[tuple[Node, int, int, int], Node] = {}

    def of(self, node: Node, axis: int, k: int, depth: int = _DEPTH) -> Node:
        key = node, axis, k, depth
        if key not in self._known:
            self._known[key] = self._compute(node, axis, k, depth) or _slice(node, axis, k)
        return self._known[key]

    def _compute(self, node: Node, axis: int, k: int, depth: int) -> Node | None:
        """As `of`; None for a part of the whole array."""
        rule = _RULES.get(type(node.op))
        if rule is not None:
            return rule(node, axis, k)
        if isinstance(node.op, ops.BroadcastInDim):
            return self._of_broadcast(node, axis, k, depth)
        if not depth or not _is_light(node) or not _is_stack(node, axis, depth):
            return None
        return node.rebuilt(tuple([self.of(each, axis, k, depth - 1) for each in node.operands]))

    def _of_broadcast(self, node: Node, axis: int, k: int, depth: int) -> Node:
        op, (operand,) = node.op, node.operands
        assert isinstance(op, ops.BroadcastInDim)
        dims = op.broadcast_dimensions
        if axis in dims:
            inner = dims.index(axis)
            operand = self.of(operand, inner, k if operand.shape[inner] > 1 else 0, depth)
            dims = _drop_axis(dims, inner)
        dims = tuple([dim - (dim > axis) for dim in dims])
        shape = _drop_axis(node.shape, axis)
        return operand if operand.shape == shape else Node(ops.BroadcastInDim(shape, dims), (operand,))


def _slice(node: Node, axis: int, k: int) -> Node:
    part = Node(ops.Slice.cut(node.shape, axis, k, k + 1), (node,))
    return _reshape(part, _drop_axis(node.shape, axis))


def _reshape(node: Node, shape: Ints) -> Node:
    """An array with other dimensions of size 1: where these were added, the array before."""
    while node.shape != shape and isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        (operand,) = node.operands
        if operand.tensor_type.size != node.tensor_type.size:
            break
        node = operand
    return node if node.shape == shape else Node(ops.Reshape(shape), (node,))


def _drop_axis(sizes: Ints, axis: int) -> Ints:
    return (*sizes[:axis], *sizes[axis + 1 :])


def _of_concatenation(node: Node, axis: int, k: int) -> Node | None:
    assert isinstance(node.op, ops.Concatenate)
    if not _is_stack(node, axis, 0):
        return None
    return _reshape(node.operands[k], _drop_axis(node.shape, axis))


def _of_iota(node: Node, axis: int, k: int) -> Node:
    op, shape = node.op.expect(ops.Iota), _drop_axis(node.shape, axis)
    if op.dimension == axis:
        return full(k, shape, node.dtype)
    type = TensorType(shape, node.dtype)
    return Node(replace(op, type=type, dimension=op.dimension - (op.dimension > axis)))


def _of_constant(node: Node, axis: int, k: int) -> Node:
    return Node(ops.Constant.of(np.take(node.op.expect(ops.Constant).array, k, axis)))


_Rule: TypeAlias = Callable[[Node, int, int], Node | None]
_RULES: Final[dict[type[Op], _Rule]] = {
    ops.Concatenate: _of_concatenation,
    ops.Constant: _of_constant,
    ops.Iota: _of_iota,
}


# --- minima of square roots ------------------------------------------------------------------------------------


def move_sqrt_after_min(graph: Graph) -> Graph:
    """The graph with the root of a minimum in place of a minimum of roots.

    They are the same bits: the root rounds to nearest and so keeps the order, that of the zeros too, and it is
    NaN for whatever is below zero.
    """
    if not graph.op_classes.issuperset((ops.Sqrt, ops.Reduce)):
        return graph
    users = Counter(operand for node in graph.nodes for operand in dict.fromkeys(node.operands))
    users.update(graph.results)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        is_last = _is_min_of_sqrt(node) and users[node.operands[0]] == 1
        return _sqrt_of_min(node, operands) if is_last else None

    return rewritten(graph, rule)


def _is_min_of_sqrt(node: Node) -> bool:
    return (
        isinstance(node.op, ops.Reduce)
        and isinstance(node.operands[0].op, ops.Sqrt)
        and monoids(node.op.computation) == (ops.Minimum,)
        and node.dtype.kind == "f"
    )


def _sqrt_of_min(node: Node, operands: tuple[Node, ...]) -> Node:
    root, initial = operands
    infinity = constant(np.inf, node.dtype)
    least = node.rebuilt((root.operands[0], infinity))
    root_of_least = root.rebuilt((least,))
    return Node(ops.Minimum(), (spread(initial, node.shape), root_of_least))
