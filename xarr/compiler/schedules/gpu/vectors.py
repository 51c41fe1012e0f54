"""Phases whose threads take several neighbouring elements, so that one load or store moves up to 16 bytes.

A warp that reads 4 bytes a thread has too few bytes on their way to keep the memory of a device busy.  What does not
differ among neighbours, as the index of a row that is gathered, is read and computed once for all of them.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from xarr.compiler.loop_ir.loops import (
    Affine,
    Loop,
    Store,
    grid_loops,
    index_value,
    load,
    nest_loops,
    offset_of,
)
from xarr.compiler.loop_ir.scalars import Value, Values, in_order
from xarr.compiler.loop_ir.vector_accesses import VectorAccesses, vector_accesses
from xarr.compiler.schedules.gpu.target import GpuTarget


def widen(phase: Loop, values: Values, target: GpuTarget) -> Loop:
    """The phase with a width of its innermost loop, and with axes that lie one after the other as one, if that pays."""
    points = prod(loop.max_iterations for loop in grid_loops(phase))
    widths = [2**k for k in range(target.vector_bytes.bit_length() - 1, 0, -1)]
    for each in (phase, _join_axes(phase, values)):
        for width in [width for width in widths if points >= width * target.busy_threads]:
            accesses = vector_accesses(each, width)
            if accesses is not None and _fits(each, accesses, width, target):
                grid_loops(each)[-1].width = width
                return each
    return phase


def _fits(phase: Loop, accesses: VectorAccesses, width: int, target: GpuTarget) -> bool:
    """Whether vectors have no more bytes than one access moves, and a thread not too much to compute."""
    stores = grid_loops(phase)[-1].stores()
    vectors = [value.attribute.buffer for value in accesses.loads] + [each.buffer for each in stores]
    computed = len(accesses.varying) - len(accesses.loads)
    return (
        width * max(each.dtype.itemsize for each in vectors) <= target.vector_bytes
        and width * computed <= target.max_vector_values
    )


def _join_axes(phase: Loop, values: Values) -> Loop:
    """The phase with the innermost axes of its grid as one, as far as all offsets count through both of two."""
    loops = grid_loops(phase)
    last = loops[-1]
    stores = [part for part in last.body if isinstance(part, Store)]
    if len(stores) != len(last.body):
        return phase
    while len(loops) > 1 and (joined := _join(loops, stores, values)) is not None:
        loops, stores = joined
    copies = [Loop(loop.index, loop.extent, loop.runs) for loop in loops]
    copies[0].label = phase.label
    nest_loops(copies)[-1].body += stores
    return copies[0]


def _join(loops: list[Loop], stores: list[Store], values: Values) -> tuple[list[Loop], list[Store]] | None:
    """Loops and stores with the last two axes as one; None where an offset does not count through both."""
    *outer, first, second = loops
    both = {first.index, second.index}
    roots = [value for store in stores for value in (*[each for each, _ in store.offset.terms], store.value)]
    offsets = [offset_of(each) for each in in_order(*roots) if each.op == "load"]
    factors = [dict(offset.terms) for offset in (*offsets, *[store.offset for store in stores])]
    count, extent = first.max_iterations, second.max_iterations
    are_apart = any(each.get(first.index, 0) != each.get(second.index, 0) * extent for each in factors)
    if (are_apart and count > 1 and extent > 1) or any(store.value in both for store in stores):
        return None
    joined = Loop(index_value(values, "point"), count * extent, second.runs)
    counted = second.index if extent > 1 else first.index

    def move(offset: Affine) -> Affine:
        rest = tuple(
            [(known.get(value, value), factor) for value, factor in offset.terms if value not in both]
        )
        return Affine(rest, offset.constant) + Affine(((joined.index, 1),)) * dict(offset.terms).get(
            counted, 0
        )

    known: dict[Value, Value] = {}
    for value in in_order(*roots):
        if value.op == "load":
            predicate = known[value.operands[-1]] if value.attribute.masked else None
            known[value] = load(values, value.attribute.buffer, move(offset_of(value)), predicate)
        elif value in both:
            known[value] = value
        elif not both.isdisjoint(value.operands):
            return None
        else:
            values.rebuild(value, known)
    moved = [replace(each, offset=move(each.offset), value=known[each.value]) for each in stores]
    return [*outer, joined], moved
