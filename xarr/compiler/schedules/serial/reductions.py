"""Reductions and running totals: begin, combine one element after the other, finish."""

from __future__ import annotations

from collections.abc import Sequence

from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Store
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, tensor_types
from xarr.compiler.schedules.serial.windows import reduce_window
from xarr.dtypes import COMPLEX, accumulator_dtype
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node
from xarr.ir.types import replace_at


def reduce(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Three phases: the neutral elements, all elements in row-major order, the initial values."""
    combiner = combination(node)
    shape, dimensions = combiner.arrays[0].shape, sorted(node.op.expect(ops.Reduce).dimensions)
    remaining = [axis for axis in range(len(shape)) if axis not in dimensions]
    initial = [loops.at(each, ()) for each in node.operands[len(combiner.arrays) :]]

    def step(own: Index, term: Index, held: Sequence[Value]) -> Sequence[Value]:
        index = dict(zip((*remaining, *dimensions), (*own, *term), strict=True))
        at = tuple(index[axis] for axis in range(len(shape)))
        return combiner.next(held, [loops.at(array, at) for array in combiner.arrays])

    results = loops.fold(
        tuple(shape[axis] for axis in remaining),
        tuple(shape[axis] for axis in dimensions),
        combiner.held,
        lambda index: combiner.starts(loops.values, initial),
        step,
        lambda index, held: combiner.finish(initial, held),
        [type.dtype for type in tensor_types(node.type)],
    )
    return sources_of(results)


def running_totals(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Two phases: the initial values, and row by row one total after the other; other windows one by one.

    Only those by operations that need no order, as from the end of a row elements meet in the other one, and not of
    complex numbers, the signs of whose zeros tell it.  Narrow floats are added up in float32, as NumPy does it.
    """
    scan, monoid = scan_axis(node), monoids(node.op.graphs[0])
    if scan is None or monoid is None or node.dtype in COMPLEX:
        return reduce_window(loops, node)
    (axis, reverse), shape, dtype = scan, node.shape, accumulator_dtype(node.dtype)
    array, initial = node.operands
    total = loops.new(dtype, replace_at(shape, axis, 1))
    results = loops.results_of(node)

    def add(index: Index) -> list[Store]:
        at = index[axis] * -1 + (shape[axis] - 1) if reverse else index[axis]
        own = replace_at(index, axis, at)
        new = loops.apply(
            monoid[0](), dtype, total.load(index), loops.convert(loops.at(array, own), node.dtype, dtype)
        )
        return [total.store(index, new), results[0].store(own, loops.convert(new, dtype, node.dtype))]

    loops.phase(
        total.shape,
        lambda index: [total.store(index, loops.convert(loops.at(initial, ()), node.dtype, dtype))],
    )
    loops.phase(shape, add, [axis])
    return sources_of(results)
