"""Reductions of many terms to few results: a block of threads for each result, who combine what each accumulated.

All others are those of the serial schedule, a thread for each result.  Which thread has which term is fixed, and so is
the order in which they combine: the bits of a sum are the same in each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import Index, Source, strides
from xarr.compiler.loop_ir.loops import Affine, Loop, Runs, Store, index_value
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial import reductions
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, store_all
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def reduce(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """One phase that fills the results."""
    assert isinstance(node.op, ops.Reduce) and isinstance(loops, GridLoops)
    combiner = combination(node)
    shape, dimensions = combiner.arrays[0].shape, sorted(node.op.dimensions)
    remaining = [axis for axis in range(len(shape)) if axis not in dimensions]
    rows, terms = (tuple(shape[axis] for axis in axes) for axes in (remaining, dimensions))
    target = loops.target
    few = prod(terms) >= target.min_block_terms and prod(rows) <= target.max_block_results
    if combiner.in_order or not few:
        return reductions.reduce(loops, node)
    initial = [loops.at(each, ()) for each in node.operands[len(combiner.arrays) :]]
    results = loops.results_of(node)

    def body(own: Index) -> Sequence[Loop | Store]:
        loop = Loop(index_value(loops.values, "term"), prod(terms), Runs.BLOCK)
        index = dict(zip((*remaining, *dimensions), (*own, *_split(loop.index, terms)), strict=True))
        at = tuple(index[axis] for axis in range(len(shape)))
        elements = [loops.at(array, at) for array in combiner.arrays]
        loop.accumulators.append(combiner.accumulator(elements, initial))
        totals = loop.accumulators[0].results
        return [loop, *store_all(results, own, combiner.finish(initial, totals))]

    loops.blocks(rows, body)
    return sources_of(results)


def _split(number: Value, shape: Ints) -> Index:
    """The index of an element in row-major order, of its number."""
    if len(shape) == 1:
        return (Affine(((number, 1),)),)
    rows = zip(shape, strides(shape), strict=True)
    return tuple([Affine((((number / stride).rem(size), 1),)) for size, stride in rows])
