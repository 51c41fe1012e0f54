"""Phases whose threads take several neighbouring elements, so that one load or store moves up to 16 bytes.

A warp that reads 4 bytes a thread has too few bytes on their way to keep the memory of a device busy.  What does not
differ among neighbours, as the index of a row that is gathered, is read and computed once for all of them.

Along other axes than the innermost, along which the threads of a warp read side by side, a thread takes neighbouring
points that load the same elements.  A window of 3×3 shares six of its nine elements with the next one: for four of them
18 elements are loaded, not 36, and the weights of a convolution by channels once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Final

from xarr.compiler.loop_ir.loops import (
    Access,
    Affine,
    Loop,
    Runs,
    Store,
    grid_loops,
    index_value,
    load,
    loads_of,
    nest_loops,
    offset_of,
)
from xarr.compiler.loop_ir.scalars import INT64, Value, Values, constant_of, in_order
from xarr.compiler.loop_ir.vector_accesses import VectorAccesses, vector_accesses
from xarr.compiler.schedules.gpu.target import GpuTarget

_POINTS: Final = Runs.GRID | Runs.BLOCK
#: Numbers of points of a thread that are tried as divisors of an extent, the best first.
_COUNTS: Final = (4, 5, 3, 2)


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
    loads = (*accesses.loads, *accesses.shifted)
    vectors = [value.attribute.buffer for value in loads] + [each.buffer for each in stores]
    computed = len(accesses.varying) - len(loads)
    return (
        width * max(each.dtype.itemsize for each in vectors) <= target.vector_bytes
        and width * computed <= target.max_vector_values
    )


def lie_together(value: Value, exists: Value | None, index: Value, count: int) -> bool:
    """Whether elements at so many indices from a multiple of that on lie side by side, and exist all or none."""
    roots = [value] if exists is None else [value, exists]
    for each in in_order(*roots):
        if each.op == "load" and index in each.operands:
            access: Access = each.attribute
            factors = dict(zip(each.operands, access.factors, strict=False))
            rest = [access.constant, *[factor for other, factor in factors.items() if other is not index]]
            if factors.get(index) != 1 or any(number % count for number in rest):
                return False
        elif index in each.operands:
            return False
    return True


def nearest_of(value: Value, names: Sequence[Value]) -> int:
    """The number of the index by which the offset of a load changes least: that of the last one if none does."""
    steps: dict[int, int] = {}
    for each in (each for each in in_order(value) if each.op == "load"):
        access: Access = each.attribute
        for operand, factor in zip(each.operands, access.factors, strict=False):
            if operand in names:
                steps.setdefault(names.index(operand), abs(factor))
    return min(steps, key=lambda each: steps[each], default=len(names) - 1)


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


# --- neighbours along other axes -----------------------------------------------------------------------------


def share_loads(phase: Loop, values: Values, target: GpuTarget) -> Loop:
    """The phase with several points for each thread, where that saves loads and leaves enough threads."""
    loops = grid_loops(phase)
    extents = [loop.max_iterations for loop in loops]
    stores = [part for part in loops[-1].body if isinstance(part, Store)]
    if phase.runs != _POINTS or len(stores) != len(loops[-1].body) or any(each.atomic for each in stores):
        return phase
    loads = loads_of(phase)
    buffers = [value.attribute.buffer for value in loads]
    if len(set(buffers)) == len(buffers) or 0 in extents:
        return phase
    for axis in reversed(range(len(loops) - 1)):
        counts = [
            count
            for count in _COUNTS
            if extents[axis] % count == 0 and prod(extents) >= count * target.busy_threads
        ]
        if prod(extents[axis + 1 :]) < target.min_warp_terms or not counts:
            continue
        varying = _find_varying(loops[axis].index, loads)
        for count in counts:
            if _loads_left(loads, loops[axis].index, varying, count) <= target.max_neighbours_loads:
                joined = _join_points(loops, stores, axis, count, values)
                if _count_computed(joined) <= target.max_neighbours_values:
                    return joined
    return phase


def _find_varying(index: Value, roots: Sequence[Value]) -> set[Value]:
    """The values that differ with an index, among those that others need."""
    varying = {index}
    for value in in_order(*roots):
        if not varying.isdisjoint(value.operands):
            varying.add(value)
    return varying


def _loads_left(loads: Sequence[Value], index: Value, varying: set[Value], count: int) -> float:
    """Of the loads of so many points along an axis the part that one thread needs: of those that differ among them."""
    total, keys = 0, set()
    for value in loads:
        if value not in varying:
            continue
        total += count
        offset = offset_of(value)
        factors = dict(offset.terms)
        step = factors.get(index, 0)
        # What is computed of the index otherwise is another element for each point.
        is_computed = any(each in varying for each in factors if each is not index)
        for point in range(count):
            own = (value, point) if is_computed else None
            keys.add((value.attribute.buffer, frozenset(offset.terms), offset.constant + point * step, own))
    return len(keys) / total if total else 1


def _count_computed(phase: Loop) -> int:
    """Count the values that an iteration of a grid computes."""
    roots = list(grid_loops(phase)[-1].roots())
    return sum(value.op not in ("load", "constant", "index") for value in in_order(*roots))


def _join_points(
    loops: Sequence[Loop], stores: Sequence[Store], axis: int, count: int, values: Values
) -> Loop:
    """The phase in which a thread has so many neighbouring points along an axis."""
    copies = [Loop(loop.index, loop.extent, loop.runs) for loop in loops]
    copies[0].label = loops[0].label
    copies[axis].index = index_value(values, loops[axis].index.attribute)
    copies[axis].extent = loops[axis].max_iterations // count
    body: list[Loop | Store] = []
    for point in range(count):
        moved = _MovedValues(values, loops[axis].index, Affine(((copies[axis].index, count),), point))
        body += [Store(each.buffer, moved.offset(each.offset), moved.value(each.value)) for each in stores]
    nest_loops(copies)[-1].body += body
    return copies[0]


class _MovedValues:
    """Values with another number in place of an index; equal sums of indices become one value."""

    def __init__(self, values: Values, index: Value, number: Affine) -> None:
        self.values = values
        self.known: dict[Value, Value] = {index: number.value(values)}
        self.sums: dict[Value, Affine] = {index: number}

    def value(self, root: Value) -> Value:
        for value in in_order(root):
            if value not in self.known:
                self._add(value)
        return self.known[root]

    def offset(self, offset: Affine) -> Affine:
        result = Affine(constant=offset.constant)
        for value, factor in offset.terms:
            moved = self.value(value)
            result += self.sums.get(value, Affine(((moved, 1),))) * factor
        return result

    def _add(self, value: Value) -> None:
        """Move a value, of operands that are known."""
        if value.op == "load":
            access: Access = value.attribute
            predicate = self.known[value.operands[-1]] if access.masked else None
            self.known[value] = load(self.values, access.buffer, self.offset(offset_of(value)), predicate)
            return
        total = self._sum(value)
        if total is None:
            self.values.rebuild(value, self.known)
            return
        self.sums[value] = total
        is_same = all(self.known[each] is each for each in value.operands)
        self.known[value] = value if is_same else total.value(self.values)

    def _sum(self, value: Value) -> Affine | None:
        """A value as a sum of indices, where it is one."""
        if value.dtype != INT64:
            return None
        if value.op == "constant":
            return Affine(constant=int(constant_of(value)))
        if value.op == "index":
            return Affine(((value, 1),))
        parts = [self.sums.get(each) for each in value.operands]
        if value.op not in ("add", "sub", "mul") or None in parts:
            return None
        first, second = [each for each in parts if each is not None]
        if value.op == "mul":
            if first.terms and second.terms:
                return None
            return first * second.constant if first.terms else second * first.constant
        return first + (second if value.op == "add" else second * -1)
