"""The picture of a gather or scatter: the operand as a grid, each window in it and apart, in one colour."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Any

from xarr.base.canvas import Canvas
from xarr.explainers.window_starts import Placement, placements, slice_of
from xarr.explanation.svg import CELL, MARGIN, STYLE
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints

#: Longer axes and more windows are cut off, with dots that say so.
_CELLS, _WINDOWS = 12, 5
_WIDTH, _BETWEEN = 40.0, 48.0


def render_windows(windows: Windows, is_gather: bool, vectors: Any) -> str:
    """A self-contained SVG document.

    `vectors` holds the index vectors, one row each; without them windows stand at evenly spaced indices, as an
    example.
    """
    canvas = Canvas()
    placed = list(placements(windows, is_gather, vectors, _WINDOWS))
    if is_gather:
        end = _draw_operand(canvas, windows, placed, "operand", MARGIN)
        _draw_windows(canvas, windows, placed, "result", end + _BETWEEN)
    else:
        end = _draw_windows(canvas, windows, placed, "updates", MARGIN)
        _draw_operand(canvas, windows, placed, "result", end + _BETWEEN)
    canvas.arrow(end + 8, MARGIN + 60, _BETWEEN - 16, 0.0, "s")
    if vectors is None and windows.index_map:
        canvas.text(MARGIN, canvas.height + 16, "the starts are an example", "d")
    word = "gather from" if is_gather else "scatter into"
    return canvas.svg(f"{word} {windows.operand_shape}: windows of {windows.sizes}", STYLE)


def _draw_operand(
    canvas: Canvas, windows: Windows, placed: Sequence[Placement], name: str, left: float
) -> float:
    """The operand, each element in the colour of the last window that covers it; returns the right edge."""
    covering: dict[Ints, list[int]] = {}
    for number, placement in enumerate(placed):
        if placement.start is not None:
            ends = (min(at + size, _CELLS) for at, size in zip(placement.start, windows.sizes, strict=True))
            for element in product(*map(range, placement.start, ends)):
                covering.setdefault(element, []).append(number)
    shape = windows.operand_shape
    right = max(
        canvas.text(left, MARGIN + 10, name, "t", 13), canvas.text(left, MARGIN + 26, str(shape), "d")
    )
    if 0 in shape:
        canvas.box(left, MARGIN + 40, 76, CELL, "v", "empty")
        return max(right, left + 76)
    for element in product(*(range(min(size, _CELLS)) for size in shape)):
        numbers = covering.get(element, [])
        style = f"c o{numbers[-1]}" if numbers else "v"
        title = f"{name}{list(element)}: {f'windows {numbers}' if numbers else 'in no window'}"
        x, y = _corner(element, left, MARGIN + 40)
        canvas.box(x, y, _WIDTH, CELL, style, _cell_text(element), title)
        right = max(right, x + _WIDTH)
    return _dots(canvas, shape, left, right)


def _dots(canvas: Canvas, shape: Ints, left: float, right: float) -> float:
    """Dots at the ends of the axes that are cut off; returns where they end."""
    end = right
    if shape and shape[-1] > _CELLS:
        end = canvas.text(right + 4, MARGIN + 58, "\N{HORIZONTAL ELLIPSIS}", "d")
    if len(shape) == 2 and shape[0] > _CELLS:
        canvas.text(left + 14, MARGIN + 58 + _CELLS * CELL, "\N{VERTICAL ELLIPSIS}", "d")
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
        right = max(right, canvas.text(left, y, label, "d", 11))
        y = 26 + (
            _draw_ellipsis(canvas, left, y + 6)
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


def _draw_ellipsis(canvas: Canvas, x: float, y: float) -> float:
    canvas.box(x, y, 2 * _WIDTH, CELL, "x", "left out", "the window does not fit")
    return y + CELL


def _draw_window(canvas: Canvas, windows: Windows, number: int, start: Ints, x: float, y: float) -> float:
    """One window; returns its lower edge."""
    if 0 in windows.sizes:
        canvas.box(x, y, 76, CELL, "v", "empty")
        return y + CELL
    bottom = y + CELL
    for inside in product(*(range(min(size, _CELLS)) for size in windows.sizes)):
        element = tuple(first + at for first, at in zip(start, inside, strict=True))
        left, top = _corner(inside, x, y)
        canvas.box(left, top, _WIDTH, CELL, f"c o{number}", _cell_text(element), f"operand{list(element)}")
        bottom = max(bottom, top + CELL)
    return bottom
