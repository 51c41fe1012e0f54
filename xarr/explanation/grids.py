"""Arrays drawn as grids of cells: rows of columns, panels for a third axis, dots where a long axis is cut off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from xarr.base.broadcasting import Shape
from xarr.base.canvas import CHARACTER, Canvas
from xarr.explanation.svg import CELL, GAP

Positions: TypeAlias = tuple[int | None, ...]

#: The most cells that pictures of several arrays have, about; the texts around an array take as much as some cells.
_CELLS, _AROUND = 230, 12
#: The number of colours that cells alternate between, of `o0` to `o4`.
COLOURS = 5


@dataclass(frozen=True, slots=True)
class GridCell:
    """A cell: its text, its style, the text shown on hovering, its key, and the keys of the cells that it reads.

    Cells of one array may have one key.  One that reads others is found by its key in steps alone.
    """

    text: str
    style: str
    title: str = ""
    key: str = ""
    reads: Sequence[str] = ()

    @property
    def data(self) -> str:
        """The attributes by which cells light up those that they read."""
        if self.reads:
            return f' data-reads="{" ".join(self.reads)}"'
        return f' data-cell="{self.key}"' if self.key else ""


@dataclass(frozen=True, slots=True)
class CellGrid:
    """An array to draw: name and caption above, and what each cell shows; `arrays` is how many its picture has."""

    name: str
    caption: str
    shape: Shape
    cell: Callable[[Shape], GridCell]
    width: float = CELL
    arrays: int = 2

    @property
    def most(self) -> int:
        """The positions of an axis that are drawn."""
        return most_drawn(len(self.shape), self.arrays)


def fold(size: int, most: int) -> Positions:
    """The positions of an axis that are drawn: all of a short one, else the first and the last, None between."""
    return tuple(range(size)) if size <= most else (*range(most - 2), None, size - 1)


def most_drawn(rank: int, arrays: int = 2) -> int:
    """The positions of an axis that are drawn, by the rank of the array: fewer of more axes, and beside more arrays."""
    most = {0: 16, 1: 16, 2: 7}.get(rank, 4)
    while most > 1 and arrays * (most ** min(rank, 3) + _AROUND) > _CELLS:
        most -= 1
    return most


def positions_in(shape: Shape, arrays: int = 2) -> list[list[int]]:
    """The positions of each axis that are drawn: of those before the last three the first."""
    most = most_drawn(len(shape), arrays)
    rows = (fold(1 if axis < len(shape) - 3 else size, most) for axis, size in enumerate(shape))
    return [[at for at in row if at is not None] for row in rows]


def indices_in(shape: Shape, arrays: int = 2) -> list[Shape]:
    """The indices of the cells that are drawn, row-major."""
    return list(product(*positions_in(shape, arrays)))


def width_for(texts: Sequence[str]) -> float:
    """The width of cells that hold these texts."""
    return max([CELL, *(11 * CHARACTER * len(text) + 10 for text in texts)])


def draw_grid(canvas: Canvas, grid: CellGrid, left: float, top: float) -> tuple[float, float]:
    """One array; returns its right and lower edges."""
    right = canvas.text(left, top + 10, grid.name, "t", 13) if grid.name else left
    right = max(right, canvas.text(left, top + 26, grid.caption, "d")) if grid.caption else right
    y = top + 36 if grid.name or grid.caption else top
    if 0 in grid.shape:
        canvas.box(left, y, 76, CELL, "v", "empty")
        return max(right, left + 76), y + CELL
    rank = len(grid.shape)
    prefix = (0,) * (rank - 3)
    if prefix:
        y += 14
        right = max(right, canvas.text(left, y - 4, f"drawn: [{','.join('0' * len(prefix))},:,:,:]", "d"))
    for panel in fold(grid.shape[-3], grid.most) if rank > 2 else (0,):
        if panel is None:
            canvas.text(left + 10, y + 8, "\N{VERTICAL ELLIPSIS}", "d")
            y += GAP
            continue
        if rank > 2:
            canvas.text(left, y + 8, f"[{','.join(map(str, (*prefix, panel)))},:,:]", "d")
            y += 13
        edge, y = _draw_panel(canvas, grid, (*prefix, panel) if rank > 2 else (), left, y)
        right, y = max(right, edge), y + 6
    return right, y - 6


def _draw_panel(canvas: Canvas, grid: CellGrid, prefix: Shape, left: float, y: float) -> tuple[float, float]:
    rank, right = len(grid.shape), left
    rows: Positions = fold(grid.shape[-2], grid.most) if rank > 1 else (0,)
    columns: Positions = fold(grid.shape[-1], grid.most) if rank else (0,)
    for row in rows:
        if row is None:
            canvas.text(left + grid.width / 2 - 4, y + 13, "\N{VERTICAL ELLIPSIS}", "d")
            y += GAP
            continue
        x = left
        for column in columns:
            if column is None:
                canvas.text(x + 5, y + CELL / 2 + 3, "\N{HORIZONTAL ELLIPSIS}", "d")
                x += GAP
                continue
            cell = grid.cell((*prefix, row, column)[-rank:] if rank else ())
            style = f"{cell.style}{canvas.marks.get(cell.key, '')}"
            canvas.box(x, y, grid.width, CELL, style, cell.text, cell.title, cell.data)
            x += grid.width
        right, y = max(right, x), y + CELL
    return right, y


def draw_row(canvas: Canvas, parts: Sequence[CellGrid | str], top: float, left: float) -> float:
    """Arrays from left to right with signs between them; returns the lower edge."""
    x, bottom = left, top
    for part in parts:
        if isinstance(part, str):
            big = len(part) < 3
            level = top + 36 + CELL / 2 + (6 if big else 4)
            x = canvas.text(x + 6, level, part, "o" if big else "d", 22 if big else 12) + 14
        else:
            x, edge = draw_grid(canvas, part, x, top)
            x, bottom = x + 10, max(bottom, edge)
    return bottom + 8


def key_of(number: int | str, index: Shape) -> str:
    """The key of a cell of array `number`, by which it is read: `0:2,1`; of the result `r:2,1`."""
    return f"{number}:{','.join(map(str, index))}"
