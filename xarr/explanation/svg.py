"""The picture of a broadcast: operands and result as grids, new and stretched axes as unlike arrows."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import fsum
from typing import Any, TypeAlias

from xarr.base.broadcasting import Dimensions, Shape
from xarr.base.canvas import CHARACTER, Canvas
from xarr.explanation.broadcast_code import (
    Suggestion,
    cut_text,
    explicit_ops,
    loop_body,
    loop_variables,
    suggestions,
    warnings,
)
from xarr.explanation.broadcast_facts import BroadcastFacts, Operand
from xarr.explanation.steps import STEP_STYLE
from xarr.explanation.text import cell_text, headline, no_suggestion, problem_lines

Positions: TypeAlias = tuple[int | None, ...]
"""The positions of an axis that are drawn; None is a gap."""

MARGIN, CELL, GAP, BETWEEN = 20.0, 28.0, 18.0, 64.0
LABEL = 28
"""Longer names are cut in the picture; the titles have them in full."""

#: The class of what a picture shows from a step of the explanation on: new axes, stretched ones, the result.  Pictures
#: show all; what surrounds them may hide what comes later, as the HTML does.
_FROM_NEW, _FROM_STRETCH, _FROM_RESULT = " p2", " p3", " p4"
_FROM = {"n": _FROM_NEW, "s": _FROM_STRETCH, "": ""}

# Okabe and Ito's palette, distinct to colour-blind readers: operands in order, then the result.
_COLOURS = ("#0072B2", "#D55E00", "#CC79A7", "#E69F00", "#56B4E9")
_RESULT = "#009E73"

STYLE = (
    ".xarr-b{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;max-width:100%;height:auto}"
    ".xarr-b .paper{fill:#fff}.xarr-b text{fill:#1b1b1b;white-space:pre}.xarr-b .t{font-weight:700;font-size:13px}"
    ".xarr-b .o{font-size:22px}.xarr-b .d,.xarr-b .v text{fill:#5f5f5f}.xarr-b .w{fill:#a63d00}"
    ".xarr-b g text{text-anchor:middle;font-size:11px}"
    ".xarr-b .c rect{fill:#8a8a8a;fill-opacity:.32;stroke:#333}"
    ".xarr-b .v rect{fill:#8a8a8a;fill-opacity:.1;stroke:#8a8a8a;stroke-dasharray:3 3}"
    ".xarr-b .x rect{fill:#fbd9d9;stroke:#c8102e;stroke-width:2.5}"
    ".xarr-b .m rect{fill:#fbd9d9;stroke:#c8102e;stroke-width:1.6;stroke-dasharray:4 3}"
    ".xarr-b .lit rect{fill-opacity:.7;stroke-width:3}"
    ".xarr-b .s{fill:none;stroke:#333;stroke-width:1.6}.xarr-b .sh{fill:#333}"
    ".xarr-b .n{fill:none;stroke:#7a4d9e;stroke-width:2;stroke-dasharray:2 3}.xarr-b .nh{fill:#7a4d9e}"
    ".xarr-b .k{fill:none;stroke:#c8102e;stroke-width:4}.xarr-b .g{fill:none;stroke:#8a8a8a;stroke-opacity:.5}"
    + "".join(f".xarr-b .o{i} rect{{fill:{colour}}}" for i, colour in enumerate(_COLOURS))
    + f".xarr-b .or rect{{fill:{_RESULT}}}"
    "@media(prefers-color-scheme:dark){.xarr-b .paper{fill:#16181d}.xarr-b text{fill:#ececec}"
    ".xarr-b .d,.xarr-b .v text{fill:#a9adb5}.xarr-b .w{fill:#ff9d5c}"
    ".xarr-b .c rect{fill-opacity:.5;stroke:#cfcfcf}.xarr-b .v rect{fill-opacity:.12;stroke:#7d828c}"
    ".xarr-b .lit rect{stroke:#fff}"
    ".xarr-b .x rect,.xarr-b .m rect{fill:#571a20;stroke:#ff6b6b}.xarr-b .s{stroke:#ddd}.xarr-b .sh{fill:#ddd}"
    ".xarr-b .n{stroke:#c59be8}.xarr-b .nh{fill:#c59be8}.xarr-b .k{stroke:#ff6b6b}}" + STEP_STYLE
)


@dataclass(frozen=True)
class _Picture:
    """One array to draw in the coordinates of `frame`: an operand spread over the result, or the result.

    `dimensions` maps the axes of `operand` to those of the frame; `new` and `stretched` are frame axes.
    """

    operand: Operand
    frame: Shape
    dimensions: Dimensions
    new: Dimensions
    stretched: Dimensions
    style: str
    number: int | None
    clashing: Dimensions = ()

    @property
    def phase(self) -> str:
        """The class of what belongs to the whole array: a result is there in the last step."""
        return _FROM_RESULT if self.number is None else ""

    def source(self, index: Sequence[int]) -> tuple[int, ...]:
        """The operand's element that is read at this index of the frame."""
        return tuple(0 if axis in self.stretched else index[axis] for axis in self.dimensions)

    def is_stored(self, index: Sequence[int]) -> bool:
        return not any(index[axis] for axis in (*self.new, *self.stretched))

    def is_missing(self, index: Sequence[int]) -> bool:
        """Whether another operand has an element here, and this one would have to."""
        return any(index[axis] >= self.operand.shape[axis] for axis in self.clashing)


def render_svg(facts: BroadcastFacts, words: bool = True, has_style: bool = True) -> str:
    """The picture as a self-contained SVG document, light or dark as the reader's system is.

    Without `words` it leaves out what stands below the grids: table, code, warnings and fixes; without `has_style` the
    style, which another picture of the same page has then.
    """
    canvas = Canvas()
    pictures = _spread(facts) if facts.alignment is not None else _separate_pictures(facts)
    if facts.operator.is_statement and facts.alignment is not None:
        # The first operand is the value, the second what it is written to.
        pictures = [replace(pictures[-1], operand=facts.operands[1]), pictures[0]]
    y = _draw_stack(canvas, facts, pictures) if facts.clashing_axes else _draw_row(canvas, facts, pictures)
    if words and facts.has_table and (facts.alignment is None or facts.rank > 3):
        y = _draw_table(canvas, facts, y)
    y = _draw_words(canvas, facts, y) if words else y
    if facts.has_table:
        _draw_legend(canvas, pictures, y)
    label = "; ".join((headline(facts), *problem_lines(facts)))
    return canvas.svg(" ".join(label.split()), STYLE if has_style else "")


# --- what is drawn --------------------------------------------------------------------------------


def _spread(facts: BroadcastFacts) -> list[_Picture]:
    """Each operand spread over the result's shape, then the result."""
    alignment, result = facts.alignment, facts.result
    assert alignment is not None and result is not None, "only aligned operands can be spread"
    pictures = []
    for i, operand in enumerate(facts.operands):
        new, stretched = alignment.new_axes(i), alignment.stretched_axes(i)
        style = f"o{i % len(_COLOURS)}"
        pictures.append(
            _Picture(operand, alignment.result, alignment.dimensions[i], new, stretched, style, i)
        )
    own = tuple(range(len(result.shape)))
    return [*pictures, _Picture(result, result.shape, own, (), (), "or", None)]


def _separate_pictures(facts: BroadcastFacts) -> list[_Picture]:
    """Each operand in its own shape, along an axis that clashes in the largest size that meets there."""
    pictures = []
    for i, operand in enumerate(facts.operands):
        own = tuple(range(len(operand.shape)))
        cells = facts.row(i)
        clashing = tuple(k for k, axis in enumerate(facts.dimensions(i)) if cells[axis].kind == "clash")
        frame = tuple(
            max(row[axis].size or 0 for row in facts.rows) if k in clashing else operand.shape[k]
            for k, axis in enumerate(facts.dimensions(i))
        )
        style = f"o{i % len(_COLOURS)}"
        pictures.append(_Picture(operand, frame, own, (), (), style, i, clashing))
    return pictures


def _fold(size: int, limit: int) -> Positions:
    """All positions of a short axis; the first two and last two of a long one, of a small picture one each."""
    if size <= limit:
        return tuple(range(size))
    return (0, 1, None, size - 2, size - 1) if limit > 3 else (0, None, size - 1)


def _cell_text(picture: _Picture, index: Sequence[int]) -> str:
    source = picture.source(index)
    if picture.is_missing(index):
        return ""
    if picture.operand.values is None:
        return ",".join(map(str, source)) or "()"
    return write_value(picture.operand.values[source])


def write_value(value: Any) -> str:
    kind = value.dtype.kind
    if kind == "b":
        return "T" if value else "F"
    if kind in "iu":
        return cut_text(str(int(value)), 9)
    return cut_text(f"{complex(value):.2g}" if kind == "c" else f"{float(value):.3g}", 11)


# --- grids ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Grid:
    """The cells of a picture that are drawn: panels of rows of columns, and the width of a column."""

    panels: Positions
    rows: Positions
    columns: Positions
    prefix: tuple[int, ...]
    width: float

    def index(self, rank: int, panel: int, row: int, column: int) -> tuple[int, ...]:
        return (*self.prefix, panel, row, column)[-rank:] if rank else ()

    @property
    def grid_width(self) -> float:
        return fsum(GAP if column is None else self.width for column in self.columns)

    @property
    def panel_height(self) -> float:
        """The height of one panel."""
        return fsum(GAP if row is None else CELL for row in self.rows)


def _grid(picture: _Picture, arrays: int) -> _Grid:
    """The cells that are drawn of one of several arrays: fewer of many."""
    rank, less = len(picture.frame), max(0, min(arrays - 4, 4))
    columns = _fold(picture.frame[-1], 6 - less) if rank else (0,)
    rows = _fold(picture.frame[-2], max(2, (6 if rank == 2 else 5) - less)) if rank > 1 else (0,)
    panels = _fold(picture.frame[-3], max(2, 4 - less)) if rank == 3 else (0,) * (0 not in picture.frame[:-2])
    grid = _Grid(panels, rows, columns, (0,) * max(0, rank - 3), 0.0)
    positions = product(*(filter(lambda p: p is not None, axis) for axis in (panels, rows, columns)))
    texts = [_cell_text(picture, grid.index(rank, *position)) for position in positions]  # type: ignore[arg-type]
    width = max(CELL, 11 * CHARACTER * max(map(len, texts), default=0) + 8)
    return _Grid(panels, rows, columns, grid.prefix, width)


def _draw_row(canvas: Canvas, facts: BroadcastFacts, pictures: list[_Picture]) -> float:
    """The arrays from left to right with the op between them; returns where the next part may start."""
    captions = [_captions(picture) for picture in pictures]
    top = MARGIN + 18 + 16 * max(map(len, captions)) + 18
    call = facts.operator.symbol is None or len(facts.operands) != 2
    call = call and not facts.operator.is_statement
    x, y, level = MARGIN, top, top + 14 + CELL / 2 + 7
    if call:
        name = "" if facts.operator.template else cut_text(facts.operator.name, LABEL)
        x = canvas.text(MARGIN, level, f"{name}(", "o", 22) + 8
    for i, (picture, lines) in enumerate(zip(pictures, captions, strict=True)):
        right, bottom = _draw_picture(canvas, facts, picture, lines, x, top, len(pictures))
        y = max(y, bottom)
        x = right
        if i < len(pictures) - 1:
            sign = _sign(facts, i, call)
            middle = right + (BETWEEN - len(sign) * 22 * CHARACTER) / 2
            canvas.text(middle, level, sign, "o" + _FROM_RESULT * sign.endswith("="), 22)
            x = right + BETWEEN
        elif call and facts.alignment is None:
            canvas.text(right + 8, level, ")", "o", 22)
    return y + 26


def _sign(facts: BroadcastFacts, i: int, call: bool) -> str:
    """The sign behind array `i`: the op or a comma, and `=` before the result."""
    if facts.operator.is_statement:
        return "="
    last = i == len(facts.operands) - 1
    if call:
        return ") =" if last else ","
    return "=" if last else facts.operator.symbol or ""


def _captions(picture: _Picture) -> list[tuple[str, str]]:
    """The captions under the name, with the style of the arrow that stands before each."""
    lines = [("n", f"axis {axis}: new \N{RIGHTWARDS ARROW} {picture.frame[axis]}") for axis in picture.new]
    lines += [
        ("s", f"axis {axis}: 1 \N{RIGHTWARDS ARROW} {picture.frame[axis]}") for axis in picture.stretched
    ]
    if len(picture.frame) > 3:
        prefix = ",".join("0" * (len(picture.frame) - 2))
        whole = "" if picture.frame == picture.operand.shape else " of the result"
        lines = [("", f"drawn: [{prefix},:,:]{whole}")]
    return lines


def _draw_picture(
    canvas: Canvas,
    facts: BroadcastFacts,
    picture: _Picture,
    captions: list[tuple[str, str]],
    x: float,
    top: float,
    arrays: int,
) -> tuple[float, float]:
    """One array with its name and captions; returns its right and bottom edges."""
    phase = picture.phase
    right = canvas.text(x, MARGIN + 10, cut_text(picture.operand.name, LABEL), f"t{phase}", 13)
    right = max(right, canvas.text(x, MARGIN + 26, cut_text(picture.operand.label, 2 * LABEL), f"d{phase}"))
    for i, (arrow, caption) in enumerate(captions):
        y = MARGIN + 42 + 16 * i
        if arrow:
            canvas.arrow(x, y - 4, 22, 0, arrow + _FROM[arrow])
        style = f"d{phase or _FROM[arrow]}"
        right = max(right, canvas.text(x + (28 if arrow else 0), y, caption, style))
    edge, bottom = _draw_grid(canvas, facts, picture, _grid(picture, arrays), x, top + 14)
    return max(right, edge), bottom


def _draw_stack(canvas: Canvas, facts: BroadcastFacts, pictures: list[_Picture]) -> float:
    """Operands that clash under each other, column under column, as their last axes meet."""
    grids = [_grid(picture, len(pictures)) for picture in pictures]
    width = max((grid.width for grid in grids), default=CELL)
    symbol = facts.operator.symbol if len(pictures) == 2 else None
    x, y = MARGIN + 32, MARGIN
    left = max(map(_arrow_width, pictures), default=0.0)
    for i, (picture, grid) in enumerate(zip(pictures, grids, strict=True)):
        name = cut_text(picture.operand.name, LABEL)
        if symbol is not None and i:
            canvas.text(MARGIN, y + 14, symbol, "o", 22)
        end = canvas.text(x, y + 10, name, "t", 13)
        canvas.text(end + 12, y + 10, cut_text(picture.operand.label, 2 * LABEL), "d")
        for _, caption in _captions(picture):
            y += 16
            canvas.text(x, y + 10, caption, "d")
        aligned = replace(grid, width=width)
        _, y = _draw_grid(canvas, facts, picture, aligned, x + left - _arrow_width(picture), y + 28)
        y += 18
    return y + 8


def _draw_grid(
    canvas: Canvas, facts: BroadcastFacts, picture: _Picture, grid: _Grid, x: float, top: float
) -> tuple[float, float]:
    """The cells of an array; returns their right and bottom edges."""
    if 0 in picture.frame:
        word = "empty" if 0 in picture.operand.shape else "not read"
        canvas.box(
            x,
            top,
            76,
            CELL,
            f"v{picture.phase}",
            word,
            f"{cut_text(picture.operand.label, 2 * LABEL)}: {word}",
        )
        return x + 76, top + CELL
    rank = len(picture.frame)
    left = x + _arrow_width(picture)
    y = top
    starts = []
    for panel in grid.panels:
        if panel is None:
            style = _gap_style(picture, grid, rank - 3, 0, 0)
            canvas.text(left + grid.grid_width / 2 - 4, y + 8, "\N{VERTICAL ELLIPSIS}", style)
            y += GAP
            continue
        if rank == 3:
            axes = "" if len(grid.panels) == 1 else f"[{panel},:,:]"
            canvas.text(left, y + 8, axes, _gap_style(picture, grid, None, panel, 0))
            y += 13 if axes else 0
        starts.append(y)
        _draw_panel(canvas, facts, picture, grid, panel, left, y)
        y += grid.panel_height + 8
    _draw_arrows(canvas, picture, grid, left, starts)
    return left + grid.grid_width, y - 8


def _arrow_width(picture: _Picture) -> float:
    """Space at the left of the grid for arrows along rows and panels."""
    rank = len(picture.frame)
    marked = {*picture.new, *picture.stretched, *picture.clashing}
    return 14.0 * sum(1 for axis in (rank - 2, rank - 3) if axis in marked and axis >= 0 and rank - axis <= 3)


def _draw_panel(
    canvas: Canvas, facts: BroadcastFacts, picture: _Picture, grid: _Grid, panel: int, left: float, y: float
) -> None:
    rank = len(picture.frame)
    for row in grid.rows:
        x = left
        if row is None:
            style = _gap_style(picture, grid, rank - 2, panel, 0)
            canvas.text(left + grid.width / 2 - 4, y + 13, "\N{VERTICAL ELLIPSIS}", style)
            y += GAP
            continue
        for column in grid.columns:
            if column is None:
                style = _gap_style(picture, grid, rank - 1, panel, row)
                canvas.text(x + 5, y + CELL / 2 + 3, "\N{HORIZONTAL ELLIPSIS}", style)
                x += GAP
                continue
            index = grid.index(rank, panel, row, column)
            _draw_cell(canvas, facts, picture, index, x, y, grid.width)
            x += grid.width
        y += CELL


def _gap_style(picture: _Picture, grid: _Grid, axis: int | None, panel: int, row: int) -> str:
    """The style of what stands for elements in this panel and row, left out along `axis` or, if None, all of them."""
    stored = picture.is_stored(grid.index(len(picture.frame), panel, row, 0))
    stretched = axis in picture.new or axis in picture.stretched
    return f"d{picture.phase or _FROM_STRETCH * (stretched or not stored)}"


def _draw_cell(
    canvas: Canvas,
    facts: BroadcastFacts,
    picture: _Picture,
    index: tuple[int, ...],
    x: float,
    y: float,
    width: float,
) -> None:
    source = picture.source(index)
    if picture.is_missing(index):
        wanted = f"[{','.join(map(str, index))}]"
        canvas.box(x, y, width, CELL, "m", "", f"{cut_text(picture.operand.name, LABEL)} has no {wanted}")
        return
    stored = picture.is_stored(index)
    subscript = f"[{','.join(map(str, source))}]" if source else ""
    name = cut_text(picture.operand.name, LABEL)
    title = f"{name}{subscript}" if stored else f"reads {name}{subscript} again"
    data = ""
    if picture.number is None:
        title = cut_text(loop_body(facts, tuple(map(str, index))), 8 * LABEL)
        data = f' data-reads="{_sources(facts, index)}"'
    elif stored and facts.alignment is not None:
        data = f' data-cell="{picture.number}:{",".join(map(str, source))}"'
    style = f"{'c' if stored else 'v'} {picture.style}{picture.phase}{'' if stored else _FROM_STRETCH}"
    canvas.box(x, y, width, CELL, style, _cell_text(picture, index), title, data)


def _sources(facts: BroadcastFacts, index: tuple[int, ...]) -> str:
    """The cell of each operand that the result reads here, as `0:2,0 1:3`."""
    alignment = facts.alignment
    assert alignment is not None, "only a result has sources"
    keys = []
    for i, dimensions in enumerate(alignment.dimensions):
        stretched = alignment.stretched_axes(i)
        keys.append(f"{i}:{','.join('0' if axis in stretched else str(index[axis]) for axis in dimensions)}")
    return " ".join(keys)


def _draw_arrows(canvas: Canvas, picture: _Picture, grid: _Grid, left: float, starts: list[float]) -> None:
    """Arrows along the drawn axes that are new or stretched, and bars along those that clash."""
    rank = len(picture.frame)
    top = starts[0]
    above = top - (19 if rank == 3 and len(grid.panels) > 1 else 7)
    bottom = starts[-1] + grid.panel_height
    gap = 10.0
    columns, rows, panels = rank - 1, rank - 2, rank - 3
    middle = left + grid.width / 2
    for axis, x, y, across, down in (
        (columns, middle, above, grid.grid_width - grid.width, 0.0),
        (rows, left - gap, top + CELL / 2, 0.0, grid.panel_height - CELL),
        (panels, left - gap - 14 * (rows in _marked_axes(picture)), top + CELL / 2, 0.0, starts[-1] - top),
    ):
        if axis < 0 or (axis == panels and rank > 3):
            continue
        if axis in picture.clashing:
            for start in starts if axis == rows else starts[:1]:
                bar = (
                    (left, above, grid.grid_width, 0.0)
                    if axis == columns
                    else (x, start, 0.0, grid.panel_height)
                )
                canvas.line(*(bar if axis != panels else (x, top, 0.0, bottom - top)), "k")
        elif axis in _marked_axes(picture) and across + down > 0:
            arrow = "n" if axis in picture.new else "s"
            canvas.arrow(x, y, across, down, arrow + _FROM[arrow])


def _marked_axes(picture: _Picture) -> set[int]:
    return {*picture.new, *picture.stretched, *picture.clashing}


# --- table, words, legend -------------------------------------------------------------------------


def _draw_table(canvas: Canvas, facts: BroadcastFacts, y: float) -> float:
    """The aligned axis table: one box per axis, dashed where an operand lacks it, marked where it clashes."""
    width = max(48.0, 11 * CHARACTER * max(len(cell_text(c)) for row in facts.rows for c in row) + 12)
    names = [cut_text(name, LABEL) for name in facts.names]
    left = MARGIN + 12 * CHARACTER * max(map(len, [*names, "result"])) + 14
    canvas.text(MARGIN, y + 8, "axis", "d")
    for axis in range(facts.rank):
        canvas.text(left + axis * width + width / 2 - 4, y + 8, str(axis), "d")
    y += 16
    for i, (name, row) in enumerate(zip(names, facts.rows, strict=True)):
        canvas.text(MARGIN, y + 18, name)
        for axis, cell in enumerate(row):
            base = "v" if cell.kind in ("new", "stretched") else "c"
            style = "x" if cell.kind == "clash" else f"{base} o{i % len(_COLOURS)}"
            canvas.box(left + axis * width, y, width - 6, CELL - 4, style, cell_text(cell))
        y += CELL
    if facts.result is not None:
        canvas.text(MARGIN, y + 18, facts.result.name)
        for axis, size in enumerate(facts.result.shape):
            canvas.box(left + axis * width, y, width - 6, CELL - 4, "c or", str(size))
        y += CELL
    return y + 18


def _draw_words(canvas: Canvas, facts: BroadcastFacts, y: float) -> float:
    """The loop and the explicit ops; or why it fails, and what would work."""
    lines: list[tuple[str, str]] = []  # style, text; a tab indents
    if facts.alignment is not None and facts.rank <= 8:
        lines.append(("", loop_body(facts, loop_variables(facts))))
        lines += [("d", line) for line in explicit_ops(facts)]
    for warning in warnings(facts):
        lines += [("w", f"! {warning.kind}: {line}") for line in warning.lines[:1]]
        lines += [("", "\t" + _suggestion_text(one)) for one in warning.suggestions]
        lines += [("d", f"\t{warning.more}")] if warning.more else []
    lines += [("w", part) for line in problem_lines(facts) for part in textwrap.wrap(line, 96)]
    if facts.alignment is None:
        fixes, more = suggestions(facts)
        lines.append(("", "what would work:" if fixes else no_suggestion(facts)))
        lines += [("", "\t" + _suggestion_text(one)) for one in fixes[:8]]
        lines += [("d", "\tand others")] if more or len(fixes) > 8 else []
    for style, line in lines:
        y += 18
        canvas.text(MARGIN + 24 * line.startswith("\t"), y, cut_text(line.strip(), 160), style)
    return y + 24


def _suggestion_text(one: Suggestion) -> str:
    explicit = f" or {one.explicit}" if one.explicit else ""
    return f"{one.expression}{explicit} \N{RIGHTWARDS ARROW} {one.result}"


def _draw_legend(canvas: Canvas, pictures: list[_Picture], y: float) -> None:
    """The marks that occur in this picture."""
    x = MARGIN
    canvas.box(x, y - 4, 16, 16, "c")
    x = canvas.text(x + 22, y + 8, "stored", "d") + 20
    if any(picture.clashing for picture in pictures):
        canvas.box(x, y - 4, 16, 16, "m")
        x = canvas.text(x + 22, y + 8, "missing: another operand has an element here", "d") + 20
    if any(picture.new or picture.stretched for picture in pictures):
        canvas.box(x, y - 4, 16, 16, "v")
        x = canvas.text(x + 22, y + 8, "read again, not stored", "d") + 20
    for style, word, marked in (
        ("n", "new axis", any(picture.new for picture in pictures)),
        ("s", "stretched axis", any(picture.stretched for picture in pictures)),
    ):
        if marked:
            canvas.arrow(x, y + 4, 24, 0, style)
            x = canvas.text(x + 30, y + 8, word, "d") + 20
