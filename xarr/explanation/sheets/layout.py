"""Explanations of layouts: where each element of an array lies in memory, and what a step along each axis costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import Any

from xarr.base.broadcasting import Shape
from xarr.base.canvas import Canvas
from xarr.base.layouts import Layout
from xarr.errors import pluralize
from xarr.explanation.broadcast_code import Suggestion, human_bytes
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.grids import COLOURS, CellGrid, GridCell, draw_grid, indices_in, key_of, width_for
from xarr.explanation.notation import element_bytes
from xarr.explanation.sheet import Cell, Listing, Sheet
from xarr.explanation.steps import PictureStep, join_terms, write_element
from xarr.explanation.svg import MARGIN

_LETTERS = "ijklmnpqrstuvw"
#: Bytes that a processor reads at once.
_LINE = 64
#: Axes that are walked along in steps, and positions of a walk that light up.
_WALKED, _LIT = 5, 16


@dataclass(frozen=True, repr=False)
class LayoutExplanation(Sheet):
    """The order of an array's elements in memory: one object, several views.

    `layout` is None of a view whose elements do not fill a block of memory: `strides`, in elements, then say where
    they lie.
    """

    operand: Operand
    strides: tuple[int, ...]
    layout: Layout | None

    @cached_property
    def order(self) -> tuple[int, ...]:
        """The axes from the most major, which changes slowest in memory, to the most minor."""
        if self.layout is not None:
            return self.layout.major_to_minor
        return tuple(
            sorted(
                range(len(self.strides)), key=lambda axis: (self.strides[axis] != 0, -abs(self.strides[axis]))
            )
        )

    @property
    def widths(self) -> Shape:
        """The sizes in memory, padding included."""
        return self.operand.shape if self.layout is None else self.layout.widths(self.operand.shape)

    def offset(self, index: Sequence[int]) -> int:
        """Where an element lies, counted in elements from the first one."""
        return sum(at * stride for at, stride in zip(index, self.strides, strict=True))

    @property
    def _extent(self) -> int:
        """The elements of memory from the first to the last one that is shown."""
        rows = zip(self.operand.shape, self.strides, strict=True)
        return sum((size - 1) * abs(stride) for size, stride in rows) + 1 if self.operand.size else 0

    @property
    def _lowest(self) -> int:
        """The offset of the element that lies first in memory: below 0 where an axis runs backwards."""
        if not self.operand.size:
            return 0
        return sum(min(0, (n - 1) * step) for n, step in zip(self.operand.shape, self.strides, strict=True))

    @property
    def itemsize(self) -> int | None:
        return None if self.operand.dtype is None else element_bytes(self.operand.dtype)

    @property
    def headline(self) -> str:
        kind = "strided view" if self.layout is None else f"layout {self.layout}"
        known = {
            self._column_major(): " (column-major, Fortran order)",
            self._row_major(): " (row-major, C order)",
        }
        name = known.get(self.strides, "") if self.layout is not None else ""
        return f"{self.operand.name}: {self.operand.label}, {kind}{name}"

    def _row_major(self) -> tuple[int, ...]:
        return Layout.row_major(len(self.strides)).strides(self.operand.shape)

    def _column_major(self) -> tuple[int, ...]:
        return Layout.column_major(len(self.strides)).strides(self.operand.shape)

    def table(self) -> tuple[tuple[Cell, ...], ...]:
        axes = range(len(self.strides))
        if not axes:
            return ()
        rows = [("axis", [str(axis) for axis in axes]), ("size", [str(size) for size in self.operand.shape])]
        if self.widths != self.operand.shape:
            rows.append(("in memory", [str(width) for width in self.widths]))
        rows.append(("stride", [pluralize(stride, "element") for stride in self.strides]))
        if self.itemsize:
            rows.append(("in bytes", [str(stride * self.itemsize) for stride in self.strides]))
        rows.append(("how", [self._how(axis) for axis in axes]))
        return tuple((Cell(label), *(Cell(text) for text in cells)) for label, cells in rows)

    def _how(self, axis: int) -> str:
        stride = self.strides[axis]
        if stride == 0:
            return "repeated, not stored"
        words = [word for word, at in (("most major", 0), ("most minor", -1)) if self.order[at] == axis]
        words += ["contiguous"] if stride == 1 else ["backwards"] if stride < 0 else []
        return ", ".join(words) or "between"

    @property
    def loop(self) -> str:
        """The loop nest that reads memory from front to back, as Python that fills `memory`."""
        lines, indent = [], ""
        names = _letters(len(self.strides))
        for axis in self.order:
            lines.append(f"{indent}for {names[axis]} in range({self.operand.shape[axis]}):")
            indent += "    "
        parts = [
            names[axis] if self.strides[axis] == 1 else f"{names[axis]} * {self.strides[axis]}"
            for axis in self.order
            if self.strides[axis]
        ]
        parts += [str(-self._lowest)] if self._lowest else []
        index = ", ".join(names) or "()"
        return "\n".join(
            [*lines, f"{indent}memory[{' + '.join(parts) or '0'}] = {self.operand.reference}[{index}]"]
        )

    @property
    def numpy(self) -> str | None:
        """An expression of a NumPy array that lies in this order; None of padded ones and of views."""
        if self.layout is None or self.layout.padded_dimensions is not None:
            return None
        name, order = self.operand.name, self.order
        if order == tuple(range(len(order))):
            return f"np.ascontiguousarray({name})" if order else f"np.array({name})"
        if order == tuple(reversed(range(len(order)))):
            return f"np.asfortranarray({name})"
        back = tuple(order.index(axis) for axis in range(len(order)))
        return f"{self.operand.reference}.transpose({order}).copy().transpose({back})"

    def codes(self) -> tuple[Listing, ...]:
        made = (
            [] if self.layout and self.layout.padded_dimensions is not None else [Listing("loop", self.loop)]
        )
        if self.numpy is not None:
            made.append(Listing("NumPy", self.numpy))
        if self.layout is not None:
            sizes = ",".join(map(str, self.operand.shape))
            made.append(Listing("XLA", f"{self.operand.dtype or 'f64'}[{sizes}]{self.layout}"))
        return tuple(made)

    def notes(self) -> tuple[tuple[str, str], ...]:
        size = prod(self.widths) if self.layout is not None else self._extent
        if self.itemsize is not None:
            each = human_bytes(size * self.itemsize)
            words = f"{pluralize(size, 'element')} of {pluralize(self.itemsize, 'byte')}, {each}"
        else:
            words = pluralize(size, "element")
        padding = size - self.operand.size
        if self.layout is None:
            words += f", from the first to the last that the view of {self.operand.size} shows"
        words += f", {padding} of them padding" if padding and self.layout is not None else ""
        return (("memory", words), *self._walks())

    def _walks(self) -> list[tuple[str, str]]:
        """The lines of memory that walks along the axes read, where the size of an element is known."""
        if not self.itemsize or not self.operand.size:
            return []
        parts = []
        for axis, (stride, size) in enumerate(zip(self.strides, self.operand.shape, strict=True)):
            step = abs(stride) * self.itemsize
            lines = min(size, ((size - 1) * step + self.itemsize - 1) // _LINE + 1)
            parts.append(f"{pluralize(size, 'element')} along axis {axis} lie in {pluralize(lines, 'line')}")
        return [("reads", f"{', '.join(parts)} of {_LINE} bytes")] if parts else []

    def fixes(self) -> tuple[Suggestion, ...]:
        """The other orders of few axes, with their strides."""
        if self.layout is None or not 2 <= len(self.order) <= 3 or self.layout.padded_dimensions is not None:
            return ()
        others = {Layout(order) for order in _permutations(len(self.order))} - {self.layout}
        rows = [(str(other), other.strides(self.operand.shape)) for other in others]
        return tuple(Suggestion(text, None, f"strides {strides}") for text, strides in sorted(rows)[:5])

    @property
    def fix_title(self) -> str:
        return "other layouts:"

    def facts(self) -> dict[str, Any]:
        return {
            "operand": self.operand.to_dict(),
            "layout": None if self.layout is None else str(self.layout),
            "major_to_minor": list(self.order),
            "strides": list(self.strides),
            "itemsize": self.itemsize,
            "allocated": prod(self.widths),
            "loop": self.loop,
        }

    # --- steps and picture --------------------------------------------------------------------------

    def steps(self) -> tuple[PictureStep, ...]:
        """Memory from front to back: the first element, then axis by axis, the one that changes fastest first."""
        if not self.operand.size:
            return ()
        walked = [
            axis for axis in reversed(self.order) if self.operand.shape[axis] > 1 and self.strides[axis]
        ]
        at_front = f"{write_element(self.operand.name, self._front)} lies first, at offset 0"
        first = PictureStep("first element", at_front, lights=(key_of(0, (0,)), key_of("m", (0,))))
        if not walked:
            return (first,)
        steps, free, shown = [first], set[int](), {0}
        for axis in walked[:_WALKED]:
            free.add(axis)
            reached = [
                at for at, index in self._lying.items() if at not in shown and self._leaves(index) <= free
            ]
            shown.update(reached)
            steps.append(self._walk(axis, tuple(key_of("m", (at,)) for at in reached)))
        rest = [key_of("m", at) for at in indices_in((self._memory,)) if at[0] not in shown]
        return (
            *steps,
            PictureStep(
                "every element", "each index times the stride of its axis", self._formula, tuple(rest)
            ),
        )

    @property
    def _formula(self) -> str:
        """The offset of any element."""
        names = _letters(len(self.strides))
        terms = [f"{name} * {stride}" for name, stride in zip(names, self.strides, strict=True) if stride]
        terms += [str(-self._lowest)] if self._lowest else []
        return f"{write_element(self.operand.name, names)} lies at {' + '.join(terms)}"

    def _walk(self, axis: int, shows: tuple[str, ...]) -> PictureStep:
        """A walk along an axis, the others staying where they are."""
        stride, size = self.strides[axis], self.operand.shape[axis]
        forth = range(size) if stride > 0 else range(size - 1, -1, -1)

        def element(number: int) -> str:
            return write_element(
                self.operand.name, (*self._front[:axis], forth[number], *self._front[axis + 1 :])
            )

        offsets = [at * abs(stride) for at in sorted({*range(min(size, _LIT)), size - 1})]
        lights = [key_of(kind, (at,)) for kind in (0, "m") for at in offsets]
        far = f", {pluralize(abs(stride) * self.itemsize, 'byte')}" if self.itemsize else ""
        way = "backwards, " if stride < 0 else ""
        where = join_terms(size, lambda number: str(number * abs(stride)), ", ")
        text = f"{way}{pluralize(abs(stride), 'element')}{far} from one to the next: at offsets {where}"
        return PictureStep(f"axis {axis}", text, join_terms(size, element, ", "), shows, tuple(lights))

    @property
    def _front(self) -> Shape:
        """The index of the element that lies first in memory."""
        return tuple(
            size - 1 if stride < 0 else 0
            for size, stride in zip(self.operand.shape, self.strides, strict=True)
        )

    def _leaves(self, index: Shape) -> set[int]:
        """The axes along which an element lies elsewhere than the first one in memory."""
        return {axis for axis, (at, first) in enumerate(zip(index, self._front, strict=True)) if at != first}

    @property
    def _memory(self) -> int:
        """The elements of memory, from the first to the last one of the array."""
        return self._extent if self.layout is None else max(prod(self.widths), 1)

    @cached_property
    def _lying(self) -> dict[int, Shape]:
        """The index of the element at each offset that is drawn, without those of padding and of gaps."""
        indices = ((at, self._index_at(at, self.order)) for (at,) in indices_in((self._memory,)))
        return {at: index for at, index in indices if index is not None}

    def _index_at(self, offset: int, axes: Shape) -> Shape | None:
        """The index of an element at an offset from the first one, others than `axes` at the front; None of a gap."""
        if not axes:
            return self._front if not offset else None
        axis, rest = axes[0], axes[1:]
        size, stride = self.operand.shape[axis], abs(self.strides[axis])
        reach = sum((self.operand.shape[each] - 1) * abs(self.strides[each]) for each in rest)
        least = max(0, -(-(offset - reach) // stride)) if stride else 0
        for at in range(least, min(size - 1, offset // stride) + 1 if stride else 1):
            index = self._index_at(offset - at * stride, rest)
            if index is not None:
                own = size - 1 - at if self.strides[axis] < 0 else at
                return (*index[:axis], own, *index[axis + 1 :])
        return None

    def _style(self, index: Shape) -> str:
        """One colour for each index of the axis that changes slowest in memory."""
        slow = next((axis for axis in self.order if self.strides[axis]), None)
        return "c o0" if slow is None else f"c o{index[slow] % COLOURS}"

    def draw(self, canvas: Canvas, top: float) -> float:
        """The array with the offset of each element, and below it memory with the index that lies there."""
        shape = self.operand.shape
        lowest = self._lowest

        def cell(index: Shape) -> GridCell:
            offset, style = self.offset(index) - lowest, self._style(index)
            title = f"{self.operand.reference}{list(index)} lies at offset {offset}"
            return GridCell(str(offset), style, title, key_of(0, (offset,)))

        width = width_for([str(max(0, prod(self.widths) - 1)), "0,0"])
        caption = f"{self.operand.label}, offsets in memory"
        _, bottom = draw_grid(canvas, CellGrid(self.operand.name, caption, shape, cell, width), MARGIN, top)
        if not self.operand.size:
            return bottom + 8
        return self._draw_memory(canvas, bottom + 14) + 8

    def _draw_memory(self, canvas: Canvas, top: float) -> float:
        """The first cells of memory, each with the index of the element that lies there."""
        drawn = set(indices_in(self.operand.shape))

        def cell(at: Shape) -> GridCell:
            index = self._lying.get(at[0])
            if index is None:
                return GridCell("", "v", "not an element of it", key_of("m", at))
            reads = [key_of(0, at)] if index in drawn else []
            text = ",".join(map(str, index)) or "()"
            return GridCell(text, self._style(index), f"offset {at[0]}", key_of("m", at), reads)

        width = width_for([",".join(str(size - 1) for size in self.operand.shape)])
        grid = CellGrid("memory", "from left to right", (self._memory,), cell, width)
        return draw_grid(canvas, grid, MARGIN, top)[1]


def _letters(rank: int) -> list[str]:
    """Names of indices."""
    return [_LETTERS[axis] if axis < len(_LETTERS) else f"i{axis}" for axis in range(rank)]


def _permutations(rank: int) -> list[tuple[int, ...]]:
    return [order for order in product(range(rank), repeat=rank) if len(set(order)) == rank]
