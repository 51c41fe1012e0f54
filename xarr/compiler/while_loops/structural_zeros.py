"""Products inside loops of what is still zero: columns of a factor that a loop fills one after the other.

    factor[:, j] = f(a[:, j] - factor @ factor[j])          for j = 0, 1, 2 …

Before step j the columns from j on are what the loop began with, zeros, and the sums of the product need not go there:
0 times 0 is 0, which changes no sum but -0.0, and is added once.  So the operands are written as chosen by a condition
of the position, which becomes a bound of the loops (`loop_ir.loop_bounds`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from xarr.compiler.passes.inner_products import reads_once, split_product
from xarr.compiler.while_loops.filled_arrays import counts_up, from_start
from xarr.compiler.while_loops.wanted_parts import Part, Positions, axes_below
from xarr.ir import ops
from xarr.ir.constants import full, integer_of
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.types import TensorType

_INT64: Final = np.dtype(np.int64)


def leave_out_zeros(loop: ops.While, initial: Sequence[Node], min_terms: int) -> Graph:
    """The body of a loop that begins with these values, with such products of at least so many terms as sums."""
    body = loop.body
    if ops.DotGeneral not in body.op_classes or ops.DynamicUpdateSlice not in body.op_classes:
        return body
    zeros, known = _zeros(body, initial), Positions(loop, initial)
    if not zeros:
        return body

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not reads_once(node, min_terms):
            return None
        op = node.op.expect(ops.DotGeneral)
        axes = (*op.lhs_contracting_dimensions, *op.rhs_contracting_dimensions)
        sides = zip(node.operands, axes, strict=True)
        numbers = [_zeros_along(each, axis, zeros, known) for each, axis in sides]
        if numbers[0] is None or numbers[0] is not numbers[1]:
            return None
        rows = zip(operands, axes, strict=True)
        return split_product(node, tuple([_in_front_of(numbers[0], each, axis) for each, axis in rows]))

    return rewritten(body, rule)


def _zeros(body: Graph, initial: Sequence[Node]) -> dict[Node, dict[int, Node]]:
    """For parameters of a body the dimensions along which they are zeros from a number on, a parameter too."""
    counters = {
        old
        for old, new, first in zip(body.parameters, body.results, initial, strict=True)
        if counts_up(old, new) and _is_natural(first)
    }
    zeros: dict[Node, dict[int, Node]] = {}
    for old, new, first in zip(body.parameters, body.results, initial, strict=True):
        if isinstance(new.op, ops.DynamicUpdateSlice) and _is_zero(first):
            filled = _list_filled(old, new, counters)
            if filled:
                zeros[old] = filled
    return zeros


def _is_natural(node: Node) -> bool:
    number = integer_of(node)
    return number is not None and number >= 0


def _is_zero(node: Node) -> bool:
    """Whether an array is +0.0 everywhere, for certain."""
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        (node,) = node.operands
    return isinstance(node.op, ops.Constant) and not any(node.op.raw)


def _list_filled(old: Node, new: Node, counters: set[Node]) -> dict[int, Node]:
    """The dimensions along which all that a step writes lies at the number of a counter."""
    dimensions: dict[int, Node] | None = None
    while new is not old:
        if not isinstance(new.op, ops.DynamicUpdateSlice):
            return {}
        new, update, *starts = new.operands
        numbers = enumerate(from_start(start, counters) for start in starts)
        here = {axis: start for axis, start in numbers if start in counters and update.shape[axis] == 1}
        dimensions = here if dimensions is None else dict(dimensions.items() & here.items())
    return dimensions or {}


def _zeros_along(node: Node, axis: int, zeros: dict[Node, dict[int, Node]], known: Positions) -> Node | None:
    """The number from which on an array has zeros along a dimension, as far as is known."""
    while node not in zeros:
        if isinstance(node.op, ops.Select) and _is_zero(node.operands[2]):
            end = known.where(node.operands[0], True).get(axis, Part()).end
            return end.symbol if end is not None and end.constant <= 0 and end.factor == 1 else None
        (source, *_) = node.operands or (None,)
        if source is None or not isinstance(source.type, TensorType):
            return None
        if isinstance(node.op, ops.DynamicSlice) and node.shape[axis] == source.shape[axis]:
            node = source
            continue
        below = {to: own for own, to in axes_below(node).items()} if isinstance(node.op, ops.Reshape) else {}
        if axis not in below:
            return None
        node, axis = source, below[axis]
    return zeros[node].get(axis)


def _in_front_of(number: Node, operand: Node, axis: int) -> Node:
    """The operand, written as zeros from a number on."""
    position = Node(ops.Iota(TensorType(operand.shape, _INT64), axis))
    if number.dtype != _INT64:
        number = Node(ops.Convert(_INT64), (number,))
    before = Node(ops.Compare("LT"), (position, Node(ops.BroadcastInDim(operand.shape, ()), (number,))))
    return Node(ops.Select(), (before, operand, full(0, operand.shape, operand.dtype)))
