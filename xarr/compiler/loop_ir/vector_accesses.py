"""Neighbouring iterations of a grid that one thread may take together, and what of them lies side by side in memory.

A thread that takes `width` neighbours, beginning with a multiple of that, loads and stores vectors of so many elements:
where an offset moves by 1 from one iteration to the next, and begins at a multiple of the width with the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xarr.compiler.loop_ir.loops import Access, Affine, Loop, Runs, Store, grid_loops, offset_of
from xarr.compiler.loop_ir.scalars import Value, in_order

_POINTS = Runs.GRID | Runs.BLOCK


@dataclass(frozen=True)
class VectorAccesses:
    """The values of the iterations that a thread takes together.

    * `loads` - those whose elements lie side by side: one vector for all of these iterations,
    * `varying` - those, and what is computed of them; all other values are equal in these iterations.
    """

    loads: tuple[Value, ...]
    varying: frozenset[Value]


def vector_accesses(phase: Loop, width: int) -> VectorAccesses | None:
    """The values of `width` iterations of the innermost loop of a grid; None where they cannot be taken together.

    All that such an iteration does is to store vectors.  Its number is in offsets alone, and factors of all else in the
    offset of a vector are multiples of the width.
    """
    last = grid_loops(phase)[-1]
    stores = [part for part in last.body if isinstance(part, Store)]
    if phase.runs != _POINTS or len(stores) != len(last.body) or not isinstance(last.extent, int):
        return None
    if last.extent % width or any(each.atomic for each in stores):
        return None
    loads: list[Value] = []
    varying: set[Value] = set()
    for value in in_order(*roots_of(stores, last.index)):
        if value.op == "load" and last.index in value.operands:
            access: Access = value.attribute
            others = [each for each in value.operands if each is not last.index]
            if not is_vector(offset_of(value), last.index, width) or not varying.isdisjoint(others):
                return None
            if access.masked and value.operands[-1] is last.index:
                return None
            loads.append(value)
            varying.add(value)
        elif last.index in value.operands:
            return None
        elif not varying.isdisjoint(value.operands):
            varying.add(value)
    for store in stores:
        if not is_vector(store.offset, last.index, width):
            return None
        if any(value in varying for value, _ in store.offset.terms) or store.value is last.index:
            return None
    return VectorAccesses(tuple(loads), frozenset(varying))


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
