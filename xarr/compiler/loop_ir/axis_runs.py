"""Neighbouring dimensions that one loop can go through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xarr.compiler.loop_ir.loops import Access, Affine, offset_of
from xarr.compiler.loop_ir.scalars import Value
from xarr.ir.operands_first import reach


def axis_runs(
    extents: Sequence[int],
    indices: Sequence[Value],
    roots: Iterable[Value],
    offsets: Iterable[Affine] = (),
    alone: Iterable[int] = (),
) -> list[list[int]]:
    """The axes of `extents` in runs, in order; those of extent 1 are left out.

    Each axis has an index of `indices`.  Two axes are one run if every offset in memory, among `offsets` and where
    `roots` load from, moves as far with an iteration of the outer one as with all iterations of the inner one, and if
    no value is computed from their indices.  Those of `alone` stay by themselves.
    """
    accesses, computed = _loads_and_indices(indices, roots)
    factors = [dict(access.terms) for access in (*accesses, *offsets)]
    apart = set(alone) | {axis for axis, index in enumerate(indices) if index in computed}
    runs: list[list[int]] = []
    for axis, extent in enumerate(extents):
        if extent == 1:
            continue
        before = runs[-1][-1] if runs else axis
        evenly = all(f.get(indices[before], 0) == f.get(indices[axis], 0) * extent for f in factors)
        if runs and evenly and apart.isdisjoint((before, axis)):
            runs[-1].append(axis)
        else:
            runs.append([axis])
    return runs


def _loads_and_indices(indices: Sequence[Value], roots: Iterable[Value]) -> tuple[list[Affine], set[Value]]:
    """Where the values load from, and the indices that they are computed from."""
    every = set(indices)
    offsets: list[Affine] = []
    computed: set[Value] = set()
    roots = list(roots)
    computed.update(every.intersection(roots))
    for value in reach(roots, lambda value: value.operands):
        count = 0
        if isinstance(value.attribute, Access):
            offset = offset_of(value)
            count = len(offset.terms)
            offsets.append(offset)
        computed |= every.intersection(value.operands[count:])
    return offsets, computed
