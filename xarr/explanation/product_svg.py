"""The picture of a product: operands and result as grids, with the cells coloured that one element is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import fsum

from xarr.base.broadcasting import Shape
from xarr.base.canvas import Canvas
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
    width_for,
)
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
            for cell in indices_in(operand.shape)
            if self._is_read(cell, operand.shape, labels, known)
        ]

    def _is_read(self, cell: Shape, shape: Shape, labels: Sequence[str], known: Mapping[str, int]) -> bool:
        """Whether a cell of an operand takes part where the labels of the result have these values."""
        at = dict(known)
        for label, position, size in zip(labels, cell, shape, strict=True):
            is_stretched = size == 1 and self.sizes[label] != 1
            if not is_stretched and at.setdefault(label, position) != position:
                return False
        return True


def draw_product(canvas: Canvas, product: ProductPicture, top: float) -> float:
    """Draw the grids; returns their lower edge."""
    example = tuple(min(1, size - 1) for size in product.result.shape)
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
        title = f"{operand.name}[{','.join(map(str, index))}]"
        return GridCell(_text(index), style, title, f' data-cell="{key_of(number, index)}"')

    name = f"{operand.name}[{','.join(labels)}]" if labels else operand.name
    return CellGrid(name, operand.label, operand.shape, cell, _width(operand))


def _result_grid(product: ProductPicture, example: Shape) -> CellGrid:
    result = product.result

    def cell(index: Shape) -> GridCell:
        keys = [key_of(*each) for each in product.reads(index)[:_READS]]
        title = f"{result.name}[{','.join(map(str, index))}] reads {len(keys)} cells"
        return GridCell(
            _text(index), "c or" if index == example else "c", title, f' data-reads="{" ".join(keys)}"'
        )

    name = f"{result.name}[{','.join(product.output)}]" if product.output else result.name
    return CellGrid(name, result.label, result.shape, cell, _width(result))


def _width(operand: Operand) -> float:
    return width_for([",".join(str(max(size - 1, 0)) for size in operand.shape)])


def _text(index: Shape) -> str:
    return ",".join(map(str, index)) or "()"
