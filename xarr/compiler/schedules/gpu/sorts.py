"""Sorts along any axis by any comparator: merge sorts where that is known to be an order, else a network.

Merges by what is no order, such as `lt` where there are NaNs, would leave elements out and repeat others.  A network
only exchanges elements: Batcher's odd-even merges, each of whose steps is a phase of independent pairs.
A step compares elements that lie `distance` apart and exchanges those in the wrong order.  Where the comparator has
none, the positions that they had decide, so the sort is stable.  A row of n elements takes about log2(n)^2 / 2 steps.

Source: D. E. Knuth, The Art of Computer Programming 3, section 5.2.2, algorithm M.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import prod

from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Affine, Loop, Store
from xarr.compiler.loop_ir.scalars import INT64, DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.gpu.merges import GoesBefore, SortOperands, merge_sort, tiles_of
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.compiler.schedules.serial.sorts import goes_before_by
from xarr.compiler.sort_keys import is_order
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints, replace_at


def sort(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The phases of a sort; for merges, rows along another axis than the last one are brought side by side first."""
    op, shape = node.op, node.operands[0].shape
    assert isinstance(loops, GridLoops) and isinstance(op, ops.Sort)
    axis, size = op.dimension, shape[op.dimension]
    if size <= 1 or 0 in shape:
        return [partial(loops.at, operand) for operand in node.operands]
    goes_before = partial(goes_before_by, loops, op.comparator)
    if not is_order(op.comparator):
        return sources_of(_sort_by_network(loops, node, goes_before))
    dtypes = [operand.dtype for operand in node.operands]
    others = replace_at(shape, axis)
    sources: Sequence[Source] = [partial(_at_row, partial(loops.at, each), axis) for each in node.operands]
    if prod(shape[axis + 1 :]) > 1 and size > tiles_of(loops.target, dtypes, prod(others), size).run:
        sources = [
            _copy_rows(loops, each.dtype, (*others, size), source)
            for each, source in zip(node.operands, sources, strict=True)
        ]

    def elements(own: Index, position: Affine) -> list[Value]:
        return [_element(source, (*own, position)) for source in sources]

    arrays = merge_sort(loops, SortOperands(dtypes, others, size), elements, goes_before)
    return [partial(_of_row, source, axis) for source in sources_of(arrays)]


def _copy_rows(loops: GridLoops, dtype: DType, shape: Ints, source: Source) -> Source:
    """A phase that writes the elements of rows side by side, and these elements."""
    array = loops.new(dtype, shape)
    loops.phase(shape, lambda index: [array.store(index, _element(source, index))])
    return array.load


def _at_row(source: Source, axis: int, index: Index, predicate: Value | None = None) -> Value | None:
    """The element of an array whose index ends with the one along an axis."""
    return source((*index[:axis], index[-1], *index[axis:-1]), predicate)


def _of_row(source: Source, axis: int, index: Index, predicate: Value | None = None) -> Value | None:
    """The element at an index, of an array whose last axis is another one's axis."""
    return source((*index[:axis], *index[axis + 1 :], index[axis]), predicate)


def _element(source: Source, index: Index) -> Value:
    element = source(index, None)
    assert element is not None, "operands of a sort have elements"
    return element


# --- the network -------------------------------------------------------------------------------------------


def _sort_by_network(loops: SerialLoops, node: Node, goes_before: GoesBefore) -> list[Scratch]:
    """A phase that copies the operands and numbers them, and one for each step of the network."""
    axis, shape = node.op.expect(ops.Sort).dimension, node.operands[0].shape
    results = loops.results_of(node)
    arrays = [*results, loops.new(INT64, shape)]

    def begin(index: Index) -> list[Store]:
        elements = [loops.at(operand, index) for operand in node.operands]
        return store_all(arrays, index, [*elements, index[axis].value(loops.values)])

    def exchange(width: int, distance: int, index: Index) -> Sequence[Loop | Store]:
        other = replace_at(index, axis, index[axis] + distance)
        (*left, position), (*right, behind) = ([each.load(at) for each in arrays] for at in (index, other))
        wrong = goes_before(right, left) | (~goes_before(left, right) & behind.lt(position))
        stores = [*store_all(arrays, index, [*right, behind]), *store_all(arrays, other, [*left, position])]
        # Elements that are no pair of this step are not even read: others write them.
        is_pair = _is_pair(index[axis].value(loops.values), width, distance)
        return loops.only_if(is_pair, loops.only_if(wrong, stores))

    loops.phase(shape, begin)
    for width, distance in steps(shape[axis]):
        pairs = replace_at(shape, axis, shape[axis] - distance)
        loops.phase(pairs, partial(exchange, width, distance))
    return results


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
