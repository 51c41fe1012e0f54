"""The picture of a product and its steps: operands and result as grids, and the cells that one element is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import fsum, prod

from xarr.base.broadcasting import Shape
from xarr.base.canvas import Canvas
from xarr.errors import pluralize
from xarr.explanation.broadcast_code import list_words
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.grids import (
    COLOURS,
    CellGrid,
    GridCell,
    draw_grid,
    draw_row,
    fold,
    indices_in,
    key_of,
    positions_in,
    width_for,
)
from xarr.explanation.steps import PictureStep, join_terms, unravel, write_element
from xarr.explanation.svg import MARGIN

#: A cell of the result names at most so many cells that it reads.
_READS = 16


@dataclass(frozen=True)
class ProductPicture:
    """A sum of products: operands and result with a label for each axis, and the size of each label."""

    operands: Sequence[Operand]
    labels: Sequence[Sequence[str]]
    result: Operand
    output: Sequence[str]
    sizes: Mapping[str, int]
    #: Whether the first factor is conjugated.
    conjugates: bool = False

    @property
    def example(self) -> Shape:
        """The element of the result that is shown in detail: one of those that are drawn, and not the first."""
        return tuple((at[:2] or [0])[-1] for at in positions_in(self.result.shape, self.arrays))

    @property
    def arrays(self) -> int:
        """The number of arrays in the picture."""
        return len(self.operands) + 1

    @property
    def summed(self) -> list[str]:
        """The labels that the result has not."""
        every = dict.fromkeys(label for labels in self.labels for label in labels)
        return [label for label in every if label not in self.output]

    def reads(self, index: Shape) -> list[tuple[int, Shape]]:
        """The drawn cells that an element of the result is made of: the number of the operand, and its index."""
        known = dict(zip(self.output, index, strict=True))
        return [
            (number, cell)
            for number, (operand, labels) in enumerate(zip(self.operands, self.labels, strict=True))
            for cell in indices_in(operand.shape, self.arrays)
            if self._is_read(cell, operand.shape, labels, known)
        ]

    def count_reads(self) -> int:
        """The number of cells that each element of the result is made of, those that are not drawn included."""
        if 0 in self.sizes.values():
            return 0
        count = 0
        for operand, labels in zip(self.operands, self.labels, strict=True):
            own = set(zip(labels, operand.shape, strict=True))
            count += prod(self.sizes[each] for each in self.summed if (each, self.sizes[each]) in own)
        return count

    def steps(self) -> tuple[PictureStep, ...]:
        """The axes that meet; of one element the cells that it needs, and their products; all elements."""
        meet = PictureStep("line up", self._meetings(), lights=self._keys((0,) * len(self.output)))
        count = self.result.size
        if 0 in self.sizes.values():
            empty = "the result has no elements" if not count else "sums of no products are 0"
            return (meet, PictureStep("every element", empty))
        example, inside = self.example, self._keys(self.example)
        shown = key_of("r", example)
        added = prod(self.sizes[label] for label in self.summed)
        needed = [
            write_element(name, [at.get(label, ":") for label in labels])
            for name, labels, at in self._operands()
        ]
        element = write_element(self.result.name, example)
        drawn = indices_in(self.result.shape, self.arrays)
        others = tuple(key for index in drawn if (key := key_of("r", index)) != shown)
        steps = (
            meet,
            PictureStep("one element", f"{element} needs {list_words(needed)}", lights=inside),
            PictureStep(
                "multiply and add" if self.summed else "multiply" if len(self.operands) > 1 else "copy",
                _count_products(len(self.operands), added),
                f"{element} = {join_terms(added, self._product, ' + ')}",
                (shown,),
                (shown, *inside),
            ),
        )
        if count == 1:
            return steps
        whole = f"the same for each of the {count:,} elements"
        if self.summed and len(self.operands) > 1:
            whole += f": {count:,} × {added:,} = {count * added:,} products"
        return (*steps, PictureStep("every element", whole, shows=others))

    def _operands(self) -> Iterator[tuple[str, Sequence[str], dict[str, str]]]:
        """Each operand's name and labels, and where the labels of the example stand in it."""
        known = dict(zip(self.output, self.example, strict=True))
        for operand, labels in zip(self.operands, self.labels, strict=True):
            own = dict(zip(labels, operand.shape, strict=True))
            yield (
                operand.name,
                labels,
                {
                    label: "0" if size == 1 else str(known[label])
                    for label, size in own.items()
                    if label in known or size == 1
                },
            )

    def _product(self, number: int) -> str:
        """One of the products that the example adds up."""
        summed = self.summed
        at = dict(zip(summed, unravel(number, [self.sizes[label] for label in summed]), strict=True))
        factors = [
            write_element(name, [own.get(label) or str(at[label]) for label in labels])
            for name, labels, own in self._operands()
        ]
        if self.conjugates:
            factors[0] += ".conj()"
        return " * ".join(factors)

    def _keys(self, index: Shape) -> tuple[str, ...]:
        """The cells that an element of the result is made of; none where there is no such element."""
        return () if 0 in self.sizes.values() else tuple(key_of(*each) for each in self.reads(index))

    def _meetings(self) -> str:
        """The axes that each label stands for, summed ones first, and those that are kept."""
        parts = []
        for label in sorted(self.sizes, key=lambda each: each in self.output):
            positions = [
                f"axis {axis} of {operand.name}"
                + (", stretched," if operand.shape[axis] != self.sizes[label] else "")
                for operand, labels in zip(self.operands, self.labels, strict=True)
                for axis, own in enumerate(labels)
                if own == label
            ]
            if label not in self.output or len(positions) > 1:
                end = "they go along together" if label in self.output else "summed over"
                parts.append(f"{label}, of size {self.sizes[label]:,}, is {list_words(positions)}: {end}")
        kept = [label for label in self.output if not any(part.startswith(f"{label},") for part in parts)]
        if kept:
            parts.append(f"{list_words(kept)} {'is' if len(kept) == 1 else 'are'} kept")
        return "; ".join(parts) or "there are no axes"

    def _is_read(self, cell: Shape, shape: Shape, labels: Sequence[str], known: Mapping[str, int]) -> bool:
        """Whether a cell of an operand takes part where the labels of the result have these values."""
        at = dict(known)
        for label, position, size in zip(labels, cell, shape, strict=True):
            is_stretched = size == 1 and self.sizes[label] != 1
            if not is_stretched and at.setdefault(label, position) != position:
                return False
        return True


def _count_products(factors: int, count: int) -> str:
    """One element in words: an element, a product, or a sum of them."""
    each = "product" if factors > 1 else "element"
    if count == 1:
        return f"one {each}" + (", nothing to add" if factors > 1 else ", moved")
    return f"{count:,} {each}s are added up"


def draw_product(canvas: Canvas, product: ProductPicture, top: float) -> float:
    """Draw the grids; returns their lower edge."""
    example = product.example
    coloured = set(product.reads(example)) if 0 not in product.sizes.values() else set()
    grids = [_operand_grid(product, number, coloured) for number in range(len(product.operands))]
    result = _result_grid(product, example)
    bottom = (
        _draw_cross(canvas, grids, result, top)
        if _is_matrix_product(product)
        else draw_row(canvas, _with_signs(grids, result), top, MARGIN)
    )
    if not coloured:
        return bottom + 8
    words = f"result{list(example) or ''} is made of the coloured cells"
    words += f", summed over {', '.join(product.summed)}" if product.summed else ""
    canvas.text(MARGIN, bottom + 10, words, "d")
    return bottom + 18


def _with_signs(grids: Sequence[CellGrid], result: CellGrid) -> list[CellGrid | str]:
    parts: list[CellGrid | str] = []
    for grid in grids:
        parts += [grid, "\N{MULTIPLICATION SIGN}"]
    return [*parts[:-1], "=", result]


def _is_matrix_product(product: ProductPicture) -> bool:
    """Whether rows of the one meet columns of the other: the second then stands above the result."""
    if len(product.labels) != 2 or any(len(labels) != 2 for labels in (*product.labels, product.output)):
        return False
    (i, k), (other, j) = (tuple(labels) for labels in product.labels)
    return k == other and tuple(product.output) == (i, j) and len({i, j, k}) == 3


def _draw_cross(canvas: Canvas, grids: Sequence[CellGrid], result: CellGrid, top: float) -> float:
    """The first operand at the left of the result, the second above it."""
    left = MARGIN + max(len(grids[0].caption) * 7.6, _width_of(grids[0])) + 28
    _, level = draw_grid(canvas, grids[1], left, top)
    level += 16
    _, low = draw_grid(canvas, grids[0], MARGIN, level)
    _, lower = draw_grid(canvas, result, left, level)
    return max(low, lower) + 8


def _width_of(grid: CellGrid) -> float:
    return (
        fsum(18.0 if at is None else grid.width for at in fold(grid.shape[-1], grid.most))
        if grid.shape
        else 0.0
    )


def _operand_grid(product: ProductPicture, number: int, coloured: set[tuple[int, Shape]]) -> CellGrid:
    operand, labels = product.operands[number], product.labels[number]

    def cell(index: Shape) -> GridCell:
        style = f"c o{number % COLOURS}" if (number, index) in coloured else "c"
        title = write_element(operand.name, index)
        return GridCell(_text(index), style, title, key_of(number, index))

    name = write_element(operand.name, labels) if labels else operand.name
    return CellGrid(name, operand.label, operand.shape, cell, _width(operand), product.arrays)


def _result_grid(product: ProductPicture, example: Shape) -> CellGrid:
    result = product.result

    def cell(index: Shape) -> GridCell:
        keys = [key_of(*each) for each in product.reads(index)[:_READS]]
        reads = pluralize(product.count_reads(), "cell")
        title = f"{result.name}[{','.join(map(str, index))}] reads {reads}"
        return GridCell(_text(index), "c or" if index == example else "c", title, key_of("r", index), keys)

    name = f"{result.name}[{','.join(product.output)}]" if product.output else result.name
    return CellGrid(name, result.label, result.shape, cell, _width(result), product.arrays)


def _width(operand: Operand) -> float:
    return width_for([",".join(str(max(size - 1, 0)) for size in operand.shape)])


def _text(index: Shape) -> str:
    return ",".join(map(str, index)) or "()"
