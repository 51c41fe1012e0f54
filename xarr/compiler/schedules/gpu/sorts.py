"""Sorts by any comparator: Batcher's odd-even merge network, each of whose steps is a phase of independent pairs.

A step compares elements that lie `distance` apart and exchanges those in the wrong order.  Where the comparator has
none, the positions that they had decide, so the sort is stable.  A row of n elements takes about log2(n)^2 / 2 steps.

Source: D. E. Knuth, The Art of Computer Programming 3, section 5.2.2, algorithm M.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, store_all
from xarr.ir import ops
from xarr.ir.graph import Node


def sort(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """A phase that copies the operands and numbers them, and one for each step of the network."""
    op, shape = node.op, node.operands[0].shape
    assert isinstance(op, ops.Sort)
    axis = op.dimension
    results = loops.results_of(node)
    arrays = [*results, loops.new(INT64, shape)]

    def begin(index: Index) -> list[Store]:
        elements = [loops.at(operand, index) for operand in node.operands]
        return store_all(arrays, index, [*elements, index[axis].value(loops.values)])

    def goes_before(left: Sequence[Value], right: Sequence[Value]) -> Value:
        pairs = [each for pair in zip(left, right, strict=True) for each in pair]
        (before,) = compute_scalars(op.comparator, pairs, loops.values)
        return before

    def exchange(width: int, distance: int, index: Index) -> Sequence[Loop | Store]:
        other = (*index[:axis], index[axis] + distance, *index[axis + 1 :])
        (*left, position), (*right, behind) = ([each.load(at) for each in arrays] for at in (index, other))
        wrong = goes_before(right, left) | (~goes_before(left, right) & behind.lt(position))
        wrong = wrong & _is_pair(index[axis].value(loops.values), width, distance)
        stores = [*store_all(arrays, index, [*right, behind]), *store_all(arrays, other, [*left, position])]
        return loops.only_if(wrong, stores)

    loops.phase(shape, begin)
    for width, distance in steps(shape[axis]):
        pairs = (*shape[:axis], shape[axis] - distance, *shape[axis + 1 :])
        loops.phase(pairs, partial(exchange, width, distance))
    return sources_of(results)


def steps(count: int) -> Iterator[tuple[int, int]]:
    """For each step on so many elements the width of the runs that it merges, and the distance of its pairs."""
    width = 1
    while width < count:
        distance = width
        while distance:
            yield width, distance
            distance //= 2
        width *= 2


def _is_pair(position: Value, width: int, distance: int) -> Value:
    """Whether a step compares the element at a position with the one that lies `distance` behind."""
    first = distance % width
    inside = position - first if first else position
    # In each 2 * distance elements the first half is compared with the second, inside of a run of 2 * width.
    is_left = (inside / distance).rem(2).eq(0)
    if first:
        is_left = is_left & position.ge(first)
    return is_left & (position / (2 * width)).eq((position + distance) / (2 * width))
