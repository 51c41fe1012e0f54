"""Copies of operands in the order in which loops read them.

Where neighbouring iterations of a vector loop read elements that lie apart, and each element is read many times
over, the elements are copied first: those of neighbouring iterations beside each other, in panels as wide as one
vector loop if that runs inside a loop over panels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from math import prod

from xarr.compiler.loop_ir.loops import Affine, Buffer, Loop, Runs, Store, index_value, load
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.compiler.target import Target


@dataclass(frozen=True)
class Lane:
    """The index of a vector loop, how often it runs, and the index of the loop over panels around it."""

    index: Value
    extent: int
    panel: Value | None = None


@dataclass(frozen=True)
class _PackedCopy:
    """Elements to copy: `rows` are steps and extents, the elements of a row `step` apart from `constant` on."""

    source: Buffer
    rows: tuple[tuple[int, int], ...]
    step: int
    extent: int
    constant: int
    panels: bool
    target: Target

    @property
    def count(self) -> int:
        return prod(extent for _, extent in self.rows)

    @property
    def stride(self) -> int:
        """Elements from one row to the next."""
        if self.panels:
            return self.target.panel_elements
        line = self.target.line_bytes // self.source.dtype.itemsize
        stride = -(-self.extent // line) * line
        apart = stride * self.source.dtype.itemsize
        # Rows that lie a multiple of 4096 bytes apart would push each other out of the cache.
        return stride + 4 * line if self._aliases(apart) else stride

    def _aliases(self, apart: int) -> bool:
        alias = self.target.alias_bytes
        return apart >= alias and apart % alias < 4 * self.target.line_bytes

    @property
    def size(self) -> int:
        return (
            (-(-self.extent // self.target.panel_elements) if self.panels else 1) * self.count * self.stride
        )

    @property
    def last(self) -> int:
        """The last element that is read."""
        return sum((n - 1) * f for f, n in self.rows) + (self.extent - 1) * self.step + self.constant


@dataclass
class Packing:
    """The copies of one kernel; `iterations` is how often its innermost loops run, those of inner reductions apart.

    inner: the indices of these.
    """

    values: Values
    target: Target
    iterations: int
    extents: dict[Value, int] = field(default_factory=dict)
    inner: set[Value] = field(default_factory=set)
    copies: dict[_PackedCopy, Buffer] = field(default_factory=dict)

    def address_in_copy(self, buffer: Buffer, offset: Affine, lane: Lane) -> tuple[Buffer, Affine] | None:
        """Where the element lies in a copy, if one is worth it."""
        factors = dict(offset.terms)
        step = factors.pop(lane.index, 0)
        if lane.panel is not None and factors.pop(lane.panel, 0) != step * self.target.panel_elements:
            return None
        rows = sorted(((f, v) for v, f in factors.items()), key=lambda row: -row[0])
        if step <= 1 or any(f <= 0 or v not in self.extents for f, v in rows):
            return None
        # Other loads may want what lies between, and share the copy.
        between = min(step, *(f for f, _ in rows)) if rows else step
        columns = between if 0 <= offset.constant < between <= self.target.max_copied_step else 1
        copy = _PackedCopy(
            buffer,
            (*((f, self.extents[v]) for f, v in rows), *([(1, columns)] if columns > 1 else [])),
            step,
            lane.extent,
            offset.constant if columns == 1 else 0,
            lane.panel is not None,
            self.target,
        )
        if not self._is_worth(copy, prod(self.extents[v] for f, v in rows if f < step and v in self.inner)):
            return None
        if copy not in self.copies:
            name = f"packed{len(self.copies)}"
            self.copies[copy] = Buffer(name, buffer.dtype, copy.size, "scratch")
        row = Affine()
        for (_, extent), (_, value) in zip(copy.rows, rows, strict=False):
            row = row * extent + Affine(((value, 1),))
        if columns > 1:
            row = row * columns + offset.constant
        offset = row * copy.stride + Affine(((lane.index, 1),))
        if lane.panel is not None:
            offset = offset + Affine(((lane.panel, copy.count * self.target.panel_elements),))
        return self.copies[copy], offset

    def _is_worth(self, copy: _PackedCopy, inner: int) -> bool:
        read = self.iterations * inner
        copied = copy.count * copy.extent
        return (
            copy.constant >= 0
            and copy.last < copy.source.size
            and copied <= 2 * copy.source.size
            and read >= max(self.target.min_copied_reads, self.target.min_reads_per_copy * copied)
        )

    def phases(self) -> Iterator[Loop]:
        """The loops that make the copies."""
        for copy, target in self.copies.items():
            yield self._phase(copy, target)

    def _phase(self, copy: _PackedCopy, target: Buffer) -> Loop:
        loops = []
        source, offset = Affine((), copy.constant), Affine()
        extent: int | Value = copy.extent
        if copy.panels:
            size = self.target.panel_elements
            panel = Loop(index_value(self.values, "panel"), -(-copy.extent // size))
            loops.append(panel)
            extent = panel_extent(panel, copy.extent, size)
            source = source + Affine(((panel.index, size * copy.step),))
            offset = Affine(((panel.index, copy.count * size),))
        row = Affine()
        for step, count in copy.rows:
            loops.append(Loop(index_value(self.values, "row"), count))
            source = source + Affine(((loops[-1].index, step),))
            row = row * count + Affine(((loops[-1].index, 1),))
        lane = Loop(index_value(self.values, "lane"), extent, Runs.LANES)
        loops.append(lane)
        source = source + Affine(((lane.index, copy.step),))
        offset = offset + row * copy.stride + Affine(((lane.index, 1),))
        lane.body.append(Store(target, offset, load(self.values, copy.source, source)))
        for before, after in pairwise(loops):
            before.body.append(after)
        return loops[0]


def panel_extent(panel: Loop, extent: int, size: int) -> int | Value:
    """The number of the `extent` iterations that fall into a panel of `size`."""
    if extent % size == 0:
        return size
    left = panel.index * -size + extent
    return left.lt(size).select(left, size)
