"""Loops over regions of an iteration space, in each of which elements come from the same operands.

A pad, a concatenation, and so a roll or a mirrored border, chooses by the index from which operand an element comes.
In one loop over all indices each operand is read under a condition.  Here axes are cut where a condition changes, so
that it is settled in each part, and what remains is what one would write for the inside of a grid and for its border:

    for i0 < 1:                               the first row, with conditions of the columns
    for i0 < n - 2:                           in parallel
        for i1 < 1:                           the first column
        vector for i1 < m - 2:                the inside
        for i1 < 1:                           the last column
    for i0 < 1:                               the last row
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import prod

from xarr.compiler.fusion.iteration_space import Run
from xarr.compiler.loop_ir.loops import Affine, Loop, index_value
from xarr.compiler.schedules.cpu.loop_nest import Loops, Nest


def pay(nest: Nest, runs: Sequence[Run]) -> bool:
    """Whether loops over these runs, without reductions, are better cut into regions."""
    elements, target = prod(run.extent for run in runs), nest.target
    if nest.has_reductions or nest.rows is not None or elements < target.min_cut_elements or not runs:
        return False
    if (
        len(runs) > 1
        and runs[0].extent < target.min_busy_iterations
        and runs[-1].extent > target.part_elements
    ):
        return False  # Processors share parts of the few rows.
    return any(len(_parts(nest, run)) > 1 for run in runs)


def phases(loops: Loops, runs: Sequence[Run], numbers: Sequence[int]) -> list[Loop]:
    """Loops over regions of these runs, which store the elements of these outputs: one phase if little is to do."""
    outermost = _cut(loops, runs, numbers, is_large=True)
    if prod(run.extent for run in runs) >= loops.target.min_copied_elements or len(outermost) == 1:
        return outermost
    return [Loop(index_value(loops.values, "once"), 1, body=[*outermost])]


def _parts(nest: Nest, run: Run) -> list[tuple[int, int]]:
    """The first index and the end of parts of a run: between cuts, or if they are many the largest and the others."""
    cuts = nest.cuts.get(run.axes[0], ()) if len(run.axes) == 1 else ()
    parts = list(pairwise((0, *cuts, run.extent)))
    if len(parts) <= nest.target.max_regions:
        return parts
    first, end = max(parts, key=_extent)
    if 2 * (end - first) < run.extent:
        return [(0, run.extent)]
    return [part for part in ((0, first), (first, end), (end, run.extent)) if _extent(part)]


def _extent(part: tuple[int, int]) -> int:
    return part[1] - part[0]


def _cut(loops: Loops, runs: Sequence[Run], numbers: Sequence[int], is_large: bool) -> list[Loop]:
    """Loops over the parts of the first run, and inside of large ones over the parts of the others."""
    (run, *inner), nest = runs, loops.nest
    parts = _parts(nest, run) if is_large else [(0, run.extent)]
    outer = []
    for part in parts:
        has_lanes = nest.has_lanes(run) and _extent(part) >= nest.target.min_vector_row
        loop = loops.loop(run, _extent(part), has_lanes)
        axis = run.axes[-1]
        loops.index[axis] = loops.index[axis] + Affine(constant=part[0])
        if inner:
            loop.body.extend(_cut(loops, inner, numbers, is_large and 4 * _extent(part) >= run.extent))
        else:
            loops.put(loop, numbers)
        outer.append(loop)
    return outer
