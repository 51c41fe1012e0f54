"""Sorts of short rows: the position of an element in order is the number of elements that come before it.

    for each element:            for each other one:  rank += it comes before, or equals it and stands before
    for each element:            result[rank] = element

This takes the square of a row's length, but in lanes, and no memory but the ranks.  By a comparator that is no order,
such as `lt` where there are NaNs, elements would have the same rank, so those have no loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import prod

from xarr.compiler.loop_ir.computed_indices import clamp_index
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import Affine, Carry, Loop, Store, index_value, new_carry
from xarr.compiler.loop_ir.scalars import INT64, Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, store_all
from xarr.compiler.sort_keys import are_ranked, is_order
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import replace_at


def is_ranked(node: Node, target: Target) -> bool:
    """Whether a sort is by an order, and of rows so short that counting what comes before an element pays."""
    op, shape = node.op, node.operands[0].shape
    if not isinstance(op, ops.Sort) or not is_order(op.comparator):
        return False
    return are_ranked(shape[op.dimension], prod(shape), target)


def sort(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Two phases: the ranks, and the elements where they belong."""
    op, shape = node.op.expect(ops.Sort), node.operands[0].shape
    axis, values = op.dimension, loops.values
    ranks, results = loops.new(INT64, shape), loops.results_of(node)

    def elements(index: Index) -> list[Value]:
        return [loops.at(operand, index) for operand in node.operands]

    def count(index: Index) -> list[Loop | Store]:
        other = Loop(index_value(values, "other"), shape[axis])
        beside = elements(replace_at(index, axis, Affine(((other.index, 1),))))
        own = elements(index)
        before = partial(goes_before_by, loops, op.comparator)
        stands_before = other.index.lt(index[axis].value(values))
        counts = before(beside, own) | (stands_before & ~before(own, beside))
        rank, last = new_carry(values, INT64)
        other.carries.append(Carry(values.constant(0, INT64), rank, rank + counts.convert(INT64), last))
        return [other, ranks.store(index, last)]

    def put(index: Index) -> list[Store]:
        rank = Affine(((clamp_index(ranks.load(index), shape[axis] - 1), 1),))
        return store_all(results, replace_at(index, axis, rank), elements(index))

    loops.phase(shape, count)
    loops.phase(shape, put)
    return sources_of(results)


def goes_before_by(
    loops: SerialLoops, comparator: Graph, left: Sequence[Value], right: Sequence[Value]
) -> Value:
    """Whether the left elements must come before the right ones."""
    pairs = [each for pair in zip(left, right, strict=True) for each in pair]
    (before,) = compute_scalars(comparator, pairs, loops.values)
    return before
