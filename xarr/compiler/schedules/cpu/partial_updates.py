"""Updates of a part of an array as part of a loop nest: the part is computed in place, the rest copied.

A `DynamicUpdateSlice` whose starts are constants, and whose update is computed, is the root of a group.  The
domain is that of the update; its elements are stored where they belong in the result, and loops of their own
copy what lies around them.  So a stencil that leaves the border as it is reads and writes the grid once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from math import prod

from xarr.compiler.fusion.partial_updates import placement
from xarr.compiler.loop_ir.elements import Elements, row_major
from xarr.compiler.loop_ir.loops import Affine, Buffer, Loop, Store, index_value, lanes_if
from xarr.compiler.loop_ir.scalars import Values
from xarr.compiler.target import Target
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def around(node: Node, buffer: Buffer, values: Values, elements: Callable[[], Elements]) -> Iterator[Loop]:
    """Loops that copy what lies around an update: for each dimension the parts before and behind it."""
    shape, starts = placement(node)
    inner = node.operands[1].shape
    for axis, (whole, start, size) in enumerate(zip(shape, starts, inner, strict=True)):
        for first, extent in ((0, start), (start + size, whole - start - size)):
            if extent:
                begins = (*starts[:axis], first, *(0 for _ in shape[axis + 1 :]))
                extents = (*inner[:axis], extent, *shape[axis + 1 :])
                yield _copy(node, buffer, values, elements(), begins, extents)


def _copy(
    node: Node, buffer: Buffer, values: Values, elements: Elements, begins: Ints, extents: Ints
) -> Loop:
    """Loops over one box of the result."""
    index: list[Affine] = [Affine(constant=begin) for begin in begins]
    loops = []
    long = [axis for axis, extent in enumerate(extents) if extent > 1] or [len(extents) - 1]
    for axis in long:
        counter = index_value(values, f"o{axis}")
        loops.append(Loop(counter, extents[axis], lanes_if(axis == long[-1] == len(extents) - 1)))
        index[axis] = index[axis] + Affine(((counter, 1),))
    for outer, loop in pairwise(loops):
        outer.body.append(loop)
    offset = tuple(index)
    loops[-1].body.append(Store(buffer, row_major(node.shape, offset), elements.at(node.operands[0], offset)))
    return loops[0]


def in_phases(node: Node, loops: list[Loop], values: Values, target: Target) -> list[Loop]:
    """The loops one after the other: as phases, which threads share, or in one if there is little to do."""
    if prod(node.shape) >= target.min_copied_elements or len(loops) == 1:
        return loops
    return [Loop(index_value(values, "once"), 1, body=[*loops])]
