"""The picture of a gather or scatter: the operand as a grid, each window in it and apart, in one colour."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from operator import lt
from typing import Any

from xarr.base.canvas import Canvas
from xarr.explainers.gathers.window_starts import Placement, placements, slice_of
from xarr.explanation.grids import key_of, width_for
from xarr.explanation.steps import PictureStep, marks_of, step_lines
from xarr.explanation.svg import CELL, MARGIN, STYLE
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints

#: Longer axes and more windows are cut off, with dots that say so.
_CELLS, DRAWN_WINDOWS = 12, 5
#: Rows and columns that are drawn of an operand of two dimensions, and rows of a window in it.
_ROWS, _COLUMNS, _WINDOW_ROWS = 7, 8, 3
_WIDTH, _BETWEEN = 40.0, 48.0


def render_windows(
    windows: Windows, is_gather: bool, vectors: Any, steps: Sequence[PictureStep] = (), words: bool = True
) -> str:
    """A self-contained SVG document; the steps stand below the picture where `words` are wanted.

    `vectors` holds the index vectors, one row each; without them windows stand at evenly spaced indices, as an
    example.
    """
    canvas = Canvas(marks_of(steps))
    placed = list(placements(windows, is_gather, vectors, DRAWN_WINDOWS))
    name = "start_indices" if is_gather else "scatter_indices"
    left = (
        _draw_vectors(canvas, windows, placed, name) + _BETWEEN / 2
        if windows.index_map and placed
        else MARGIN
    )
    if is_gather:
        end = _draw_operand(canvas, windows, placed, "operand", left)
        _draw_windows(canvas, windows, placed, "result", end + _BETWEEN)
    else:
        end = _draw_windows(canvas, windows, placed, "updates", left)
        _draw_operand(canvas, windows, placed, "result", end + _BETWEEN)
    canvas.arrow(end + 8, MARGIN + 60, _BETWEEN - 16, 0.0, "s")
    lines = ["the starts are an example"] if vectors is None and windows.index_map else []
    canvas.cover(0, canvas.height + 6)
    for line in [*lines, *(step_lines(steps) if words else ())]:
        canvas.text(MARGIN, canvas.height + 14, line, "d")
    word = "gather from" if is_gather else "scatter into"
    return canvas.svg(f"{word} {windows.operand_shape}: windows of {windows.sizes}", STYLE)


def is_drawn(windows: Windows) -> bool:
    """Whether there is a picture of the operand: of two dimensions at most."""
    return len(windows.operand_shape) <= 2


def drawn_block(windows: Windows, start: Ints) -> list[Ints]:
    """The elements of a window at a start, of those of the operand that are drawn; none of one that is not."""
    if not is_drawn(windows):
        return []
    rows = zip(start, windows.sizes, windows.operand_shape, strict=True)
    limits = _limits(len(start), _ROWS)
    return list(
        product(
            *(
                range(at, min(at + size, whole, most))
                for (at, size, whole), most in zip(rows, limits, strict=True)
            )
        )
    )


def _limits(rank: int, rows: int) -> Ints:
    """The positions of each axis that are drawn, of two dimensions at most `rows` rows."""
    return (rows, _COLUMNS) if rank == 2 else (_CELLS,) * rank


def _indices_in(shape: Ints, rows: int) -> Iterator[Ints]:
    """The indices of an operand or window that are drawn."""
    return product(*map(range, map(min, shape, _limits(len(shape), rows))))


def _draw_vectors(canvas: Canvas, windows: Windows, placed: Sequence[Placement], name: str) -> float:
    """The index vectors, one below the other, in the colours of their windows; returns the right edge."""
    texts = [str([placement.asked[dim] for dim in windows.index_map]) for placement in placed]
    width = width_for(texts)
    right = canvas.text(MARGIN, MARGIN + 10, name, "t", 13)
    for number, (text, placement) in enumerate(zip(texts, placed, strict=True)):
        style = f"{'x' if placement.is_moved else f'c o{number}'}{canvas.marks.get(vector_key(number), '')}"
        title = f"start {list(placement.asked)}"
        canvas.box(MARGIN, MARGIN + 40 + number * CELL, width, CELL, style, text, title)
    return max(right, MARGIN + width)


def vector_key(number: int) -> str:
    """The key of an index vector."""
    return f"i:{number}"


def window_key(number: int) -> str:
    """The key of all cells of a window that stands alone."""
    return f"w:{number}"


def _draw_operand(
    canvas: Canvas, windows: Windows, placed: Sequence[Placement], name: str, left: float
) -> float:
    """The operand, each element in the colour of the last window that covers it; returns the right edge."""
    covering: dict[Ints, list[int]] = {}
    for number, placement in enumerate(placed):
        if placement.start is not None:
            for element in drawn_block(windows, placement.start):
                covering.setdefault(element, []).append(number)
    shape = windows.operand_shape
    right = max(
        canvas.text(left, MARGIN + 10, name, "t", 13), canvas.text(left, MARGIN + 26, str(shape), "d")
    )
    if 0 in shape:
        canvas.box(left, MARGIN + 40, 76, CELL, "v", "empty")
        return max(right, left + 76)
    for element in _indices_in(shape, _ROWS):
        numbers = covering.get(element, [])
        style = f"c o{numbers[-1]}" if numbers else "v"
        title = f"{name}{list(element)}: {f'windows {numbers}' if numbers else 'in no window'}"
        x, y = _corner(element, left, MARGIN + 40)
        key = key_of(0, element)
        style += canvas.marks.get(key, "")
        canvas.box(x, y, _WIDTH, CELL, style, _cell_text(element), title, f' data-cell="{key}"')
        right = max(right, x + _WIDTH)
    return _dots(canvas, shape, left, right)


def _dots(canvas: Canvas, shape: Ints, left: float, right: float) -> float:
    """Dots at the ends of the axes that are cut off; returns where they end."""
    end = right
    limits = _limits(len(shape), _ROWS)
    if shape and shape[-1] > limits[-1]:
        end = canvas.text(right + 4, MARGIN + 58, "\N{HORIZONTAL ELLIPSIS}", "d")
    if len(shape) == 2 and shape[0] > limits[0]:
        canvas.text(left + 14, MARGIN + 58 + _ROWS * CELL, "\N{VERTICAL ELLIPSIS}", "d")
    return end


def _corner(element: Ints, x: float, y: float) -> tuple[float, float]:
    row, column = (0, 0, *element)[-2:]
    return x + column * _WIDTH, y + row * CELL


def _cell_text(element: Ints) -> str:
    return ",".join(map(str, element)) or "()"


def _draw_windows(
    canvas: Canvas, windows: Windows, placed: Sequence[Placement], name: str, left: float
) -> float:
    """One below the other the windows, each cell with the operand's element that it reads or writes.

    Returns the right edge.
    """
    canvas.text(left, MARGIN + 10, name, "t", 13)
    right = canvas.text(left, MARGIN + 26, str(windows.windowed_shape), "d")
    y = MARGIN + 54
    for number, placement in enumerate(placed):
        label = f"{name}{slice_of(windows, placement.batch)}{_out_of_bounds_mark(placement)}"
        mark = canvas.marks.get(window_key(number), "")
        right = max(right, canvas.text(left, y, label, f"d{mark}"))
        y = 26 + (
            _draw_ellipsis(canvas, left, y + 6, mark)
            if placement.start is None
            else _draw_window(canvas, windows, number, placement.start, left, y + 6)
        )
    hidden = prod(windows.batch_shape) - len(placed)
    if hidden > 0:
        canvas.text(left, y, f"and {hidden} more", "d")
    across = windows.sizes[-1] if windows.sizes else 1
    return max(right, left + _WIDTH * max(2, min(across, _CELLS)))


def _out_of_bounds_mark(placement: Placement) -> str:
    """A mark for a window whose start is out of bounds."""
    if not placement.is_moved:
        return ""
    return f" out of bounds: {list(placement.asked)}{'' if placement.start is None else ', clamped'}"


def _draw_ellipsis(canvas: Canvas, x: float, y: float, mark: str) -> float:
    canvas.box(x, y, 2 * _WIDTH, CELL, f"x{mark}", "left out", "the window does not fit")
    return y + CELL


def _draw_window(canvas: Canvas, windows: Windows, number: int, start: Ints, x: float, y: float) -> float:
    """One window; returns its lower edge."""
    if 0 in windows.sizes:
        canvas.box(x, y, 76, CELL, "v", "empty")
        return y + CELL
    bottom, style = y + CELL, f"c o{number}{canvas.marks.get(window_key(number), '')}"
    limits = _limits(len(start), _ROWS)
    for inside in _indices_in(windows.sizes, _WINDOW_ROWS):
        element = tuple(first + at for first, at in zip(start, inside, strict=True))
        left, top = _corner(inside, x, y)
        reads = f' data-reads="{key_of(0, element)}"' if all(map(lt, element, limits)) else ""
        canvas.box(left, top, _WIDTH, CELL, style, _cell_text(element), f"operand{list(element)}", reads)
        bottom = max(bottom, top + CELL)
    return bottom
