"""Neighbouring iterations of a grid that one thread may take together, and what of them lies side by side in memory.

A thread that takes `width` neighbours, beginning with a multiple of that, loads and stores vectors of so many elements:
where an offset moves by 1 from one iteration to the next, and begins at a multiple of the width with the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xarr.compiler.loop_ir.loops import Access, Affine, Buffer, Loop, Runs, Store, grid_loops, offset_of
from xarr.compiler.loop_ir.scalars import Value, in_order

_POINTS = Runs.GRID | Runs.BLOCK


@dataclass(frozen=True)
class VectorAccesses:
    """The values of the iterations that a thread takes together.

    * `loads` - those whose elements lie side by side from a multiple of the width on, and exist in all of these
      iterations or in none: one vector,
    * `shifted` - other loads whose elements lie side by side: parts of two vectors, each of which is loaded if one of
      its elements that are wanted exists,
    * `varying` - all of these, and what is computed of them and of the number of the iteration; all other values are
      equal in these iterations.
    """

    loads: tuple[Value, ...]
    shifted: tuple[Value, ...]
    varying: frozenset[Value]

    @property
    def needs_index(self) -> bool:
        """Whether an iteration needs its number, or a part of a vector."""
        return bool(self.shifted) or any(value.op == "index" for value in self.varying)


def vector_accesses(phase: Loop, width: int) -> VectorAccesses | None:
    """The values of `width` iterations of the innermost loop of a grid; None where they cannot be taken together.

    All that such an iteration does is to store vectors.  Factors of all else than its number in the offset of a vector
    are multiples of the width, and whether an element exists is computed of indices.
    """
    last = grid_loops(phase)[-1]
    stores = [part for part in last.body if isinstance(part, Store)]
    if phase.runs != _POINTS or len(stores) != len(last.body) or not isinstance(last.extent, int):
        return None
    if last.extent % width or any(each.atomic for each in stores):
        return None
    loads: list[Value] = []
    shifted: list[Value] = []
    varying: set[Value] = set()
    #: Values that elements of vectors are computed into.
    of_elements: set[Value] = set()
    for value in in_order(*roots_of(stores, last.index)):
        needed = value.operands
        if value.op == "load" and last.index in needed:
            access: Access = value.attribute
            predicate = needed[-1] if access.masked else None
            offsets = [each for each in needed[: len(access.factors)] if each is not last.index]
            if not varying.isdisjoint(offsets) or predicate in of_elements or predicate is last.index:
                return None
            if predicate not in varying and is_vector(offset_of(value), last.index, width):
                loads.append(value)
            elif _is_part_of_vectors(access.buffer, offset_of(value), last.index, width):
                shifted.append(value)
            else:
                return None
            of_elements.add(value)
            varying.add(value)
        elif not (varying | {last.index}).isdisjoint(needed):
            varying.update([value, *[each for each in needed if each is last.index]])
            if not of_elements.isdisjoint(needed):
                of_elements.add(value)
    for store in stores:
        if not is_vector(store.offset, last.index, width):
            return None
        if any(value in varying for value, _ in store.offset.terms if value is not last.index):
            return None
        if store.value is last.index:
            return None
    return VectorAccesses(tuple(loads), tuple(shifted), frozenset(varying))


def roots_of(stores: Iterable[Store], index: Value) -> list[Value]:
    """The values that stores need, the index itself in their offsets apart."""
    offsets = [value for each in stores for value, _ in each.offset.terms if value is not index]
    return [*offsets, *[each.value for each in stores]]


def is_vector(offset: Affine, index: Value, width: int) -> bool:
    """Whether offsets move with an index by 1, and all else in them by multiples of the width."""
    factors = dict(offset.terms)
    return (
        factors.pop(index, 0) == 1
        and offset.constant % width == 0
        and all(factor % width == 0 for factor in factors.values())
    )


def _is_part_of_vectors(buffer: Buffer, offset: Affine, index: Value, width: int) -> bool:
    """Whether offsets move with an index by 1, all else in them but the constant by multiples of the width.

    And whether the vector around each element lies in the buffer.
    """
    return buffer.size % width == 0 and is_vector(Affine(offset.terms), index, width)
