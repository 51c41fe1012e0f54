"""Reductions and running totals: begin, combine one element after the other, finish."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from xarr.compiler.fusion.scan_windows import scanned
from xarr.compiler.loop_ir.accumulators import Combination, combination
from xarr.compiler.loop_ir.elements import Index, Source
from xarr.compiler.loop_ir.loops import Store
from xarr.compiler.loop_ir.scalars import DType
from xarr.compiler.schedules.serial.serial_loops import SerialLoops, sources_of, store_all
from xarr.compiler.schedules.serial.windows import reduce_window
from xarr.dtypes import COMPLEX, FLOAT
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Node


def reduce(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Three phases: the neutral elements, all elements in row-major order, the initial values."""
    assert isinstance(node.op, ops.Reduce)
    found = _combination(node)
    shape, dimensions = found.arrays[0].shape, sorted(node.op.dimensions)
    kept = [axis for axis in range(len(shape)) if axis not in dimensions]
    reduced = tuple(shape[axis] for axis in kept)
    initial = [loops.at(each, ()) for each in node.operands[len(found.arrays) :]]
    partial = [loops.new(dtype, reduced) for dtype in found.held]
    results = loops.results_of(node)

    def begin(index: Index) -> list[Store]:
        return store_all(partial, index, found.starts(loops.values, initial))

    def combine(index: Index) -> list[Store]:
        own = tuple(index[axis] for axis in kept)
        elements = [loops.at(array, index) for array in found.arrays]
        return store_all(partial, own, found.next([each.load(own) for each in partial], elements))

    def finish(index: Index) -> list[Store]:
        return store_all(results, index, found.finished(initial, [each.load(index) for each in partial]))

    loops.phase(reduced, begin)
    loops.phase(shape, combine, dimensions)
    loops.phase(reduced, finish)
    return sources_of(results)


def _combination(node: Node) -> Combination:
    """What a reduction does; in order, with the initial values first, where there is no neutral element.

    Of complex numbers only sums have one: (1 + 0 i) (inf + 0 i) is inf + NaN i.
    """
    found = combination(node)
    pairs = zip(found.monoids or (), found.arrays, strict=False)
    known = all(array.dtype not in COMPLEX or op is ops.Add for op, array in pairs)
    return found if known else replace(found, monoids=None)


def running_totals(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """Two phases: the initial values, and row by row one total after the other; other windows one by one.

    Only those by operations that need no order, as from the end of a row elements meet in the other one, and not of
    complex numbers, the signs of whose zeros tell it.  Narrow floats are added up in float32, as NumPy does it.
    """
    scan, found = scanned(node), monoids(node.op.graphs[0])
    if scan is None or found is None or node.dtype in COMPLEX:
        return reduce_window(loops, node)
    (axis, reverse), shape, dtype = scan, node.shape, _held(node.dtype)
    array, initial = node.operands
    total = loops.new(dtype, (*shape[:axis], 1, *shape[axis + 1 :]))
    results = loops.results_of(node)

    def add(index: Index) -> list[Store]:
        at = index[axis] * -1 + (shape[axis] - 1) if reverse else index[axis]
        own = (*index[:axis], at, *index[axis + 1 :])
        new = loops.apply(
            found[0](), dtype, total.load(index), loops.convert(loops.at(array, own), node.dtype, dtype)
        )
        return [total.store(index, new), results[0].store(own, loops.convert(new, dtype, node.dtype))]

    loops.phase(
        total.shape,
        lambda index: [total.store(index, loops.convert(loops.at(initial, ()), node.dtype, dtype))],
    )
    loops.phase(shape, add, [axis])
    return sources_of(results)


def _held(dtype: DType) -> DType:
    """In which type totals are held."""
    return np.dtype(np.float32) if dtype in FLOAT and dtype.itemsize < 4 else dtype
