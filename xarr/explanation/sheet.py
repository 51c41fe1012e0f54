"""The views that explanations share: text, HTML, SVG and plain data, each from one record of facts."""

from __future__ import annotations

import textwrap
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

from xarr.base.canvas import Canvas
from xarr.explanation.broadcast_code import Suggestion, cut_text
from xarr.explanation.folds import PageFold
from xarr.explanation.html import Displayed, fold_fragment, listing, problem_blocks, render_table, sections
from xarr.explanation.steps import PictureStep, marks_of, render_steps, step_lines
from xarr.explanation.svg import MARGIN, STYLE
from xarr.explanation.text import entry, suggestion_lines

#: Lines of code that a picture shows at most, and characters of one.
_LINES, _CHARACTERS = 14, 110


@dataclass(frozen=True, slots=True)
class Cell:
    """An entry of a table, and the mark that it has: new, stretched, clash, or none."""

    text: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """Listing that computes what is explained, in one language."""

    title: str
    text: str
    is_in_text: bool = True

    @property
    def lines(self) -> list[str]:
        return self.text.rstrip().split("\n")


class Sheet(Displayed, ABC):
    """An explanation with four views: `str(e)` or `e.text()`, `e.html()`, `e.svg()`, `e.to_dict()`.

    A subclass holds the facts; notebooks show the HTML.
    """

    @property
    @abstractmethod
    def headline(self) -> str:
        """One line: the call, the operands, and the result or that there is none."""

    @abstractmethod
    def table(self) -> tuple[tuple[Cell, ...], ...]:
        """The rows, the first of them the head; each begins with its label."""

    @abstractmethod
    def codes(self) -> tuple[Listing, ...]:
        """Listing that computes the same, in several languages; none where it fails."""

    @abstractmethod
    def notes(self) -> tuple[tuple[str, str], ...]:
        """Labels and lines on cost and the like."""

    @abstractmethod
    def draw(self, canvas: Canvas, top: float) -> float:
        """Draw the picture below `top`; returns its lower edge."""

    @abstractmethod
    def facts(self) -> dict[str, Any]:
        """The facts as plain data, but for the steps."""

    def steps(self) -> tuple[PictureStep, ...]:
        """The steps in which the picture comes to be; none if it is there at once.

        Pages make a stepper of them: `draw` finds in the canvas' `marks` what a step shows and what it is about.
        """
        return ()

    def to_dict(self) -> dict[str, Any]:
        """The facts as plain data that `json.dumps` accepts."""
        return {**self.facts(), "steps": [asdict(step) for step in self.steps()]}

    def problems(self) -> tuple[str, ...]:
        """Why it does not run, one sentence each."""
        return ()

    def fixes(self) -> tuple[Suggestion, ...]:
        """Calls that would run, or that may be meant."""
        return ()

    @property
    def advice(self) -> str:
        """A line for where it does not run and nothing else would."""
        return ""

    @property
    def fix_title(self) -> str:
        return "what would work:" if self.problems() else "others:"

    @property
    def fits(self) -> bool:
        """Whether it runs."""
        return not self.problems()

    def text(self) -> str:
        """Plain text: the table, the code, the cost; or what would work."""
        blocks = [[self.headline], list(_table(self)), list(_code(self)), list(_failure(self))]
        return "\n\n".join("\n".join(line.rstrip() for line in block) for block in blocks if block)

    def html(self) -> str:
        """A self-contained HTML fragment; a page may have several."""
        shown = _SheetView(self)
        return fold_fragment(shown.body, "text(), svg(), to_dict() and codes() have it.")

    def svg(self) -> str:
        """A self-contained SVG picture."""
        return render_sheet(self, words=True)

    def _repr_svg_(self) -> str:
        return self.svg()


def render_sheet(sheet: Sheet, words: bool) -> str:
    """The picture, with the headline above it and the code and the problems below where `words` are wanted."""
    steps = sheet.steps()
    canvas, y = Canvas(marks_of(steps)), MARGIN
    if words:
        canvas.text(MARGIN, MARGIN + 10, cut_text(sheet.headline, _CHARACTERS), "t", 13)
        y += 28
    y = sheet.draw(canvas, y)
    lines = [("", line) for line in step_lines(steps)] + _picture_words(sheet)
    for style, line in lines if words else ():
        y += 18
        canvas.text(MARGIN, y, cut_text(line, _CHARACTERS), style)
    label = "; ".join((sheet.headline, *sheet.problems()))
    return canvas.svg(" ".join(label.split()), STYLE)


def _picture_words(sheet: Sheet) -> list[tuple[str, str]]:
    lines = [("w", part) for line in sheet.problems() for part in textwrap.wrap(line, _CHARACTERS)]
    fixes = sheet.fixes()
    lines += [("d", sheet.fix_title)] if fixes else []
    lines += [("", f"  {one.expression} \N{RIGHTWARDS ARROW} {one.result}") for one in fixes]
    lines += [("", sheet.advice)] if sheet.advice and not sheet.fits and not fixes else []
    for code in sheet.codes()[:1]:
        lines += [("", line) for line in code.lines[:_LINES]]
        lines += [("d", "\N{HORIZONTAL ELLIPSIS}")] if len(code.lines) > _LINES else []
    return [*lines, *(("d", f"{label}: {line}") for label, line in sheet.notes())]


def _table(sheet: Sheet) -> Iterator[str]:
    rows = [[cell.text for cell in row] for row in sheet.table()]
    if not rows:
        return
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  " + "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))


def _code(sheet: Sheet) -> Iterator[str]:
    yield from entry("steps", step_lines(sheet.steps()))
    for code in sheet.codes():
        if code.is_in_text:
            yield from entry(code.title, code.lines)
    for label, line in sheet.notes():
        yield from entry(label, [line])


def _failure(sheet: Sheet) -> Iterator[str]:
    yield from (f"  {line}" for line in sheet.problems())
    fixes = sheet.fixes()
    if fixes:
        yield f"  {sheet.fix_title}"
        yield from suggestion_lines(fixes, " " * 6)
    elif not sheet.fits and sheet.advice:
        yield f"  {sheet.advice}"


class _SheetView:
    """All that the HTML of an explanation shows, computed once, to be folded as often as needed."""

    def __init__(self, sheet: Sheet) -> None:
        self._sheet, self._steps, self._fixes = sheet, sheet.steps(), sheet.fixes()
        self._picture = render_sheet(sheet, words=False)
        self._rows = [[(cell.text, cell.mark) for cell in row] for row in sheet.table()]
        self._codes = [(code.title, code.text.rstrip()) for code in sheet.codes()]

    def body(self, fold: PageFold) -> str:
        sheet = self._sheet
        parts = [
            f"<p><code>{escape(fold.text(sheet.headline))}</code></p>",
            render_steps(fold.picture(self._picture), fold.steps(self._steps)),
            render_table(self._rows, fold),
            problem_blocks(sheet.problems(), fold),
        ]
        if self._fixes:
            parts.append(f"<p>{escape(sheet.fix_title)}</p>{listing(self._fixes, fold, 'instead')}")
        elif not sheet.fits and sheet.advice:
            parts.append(f"<p>{escape(fold.text(sheet.advice))}</p>")
        parts.append(sections(self._codes, fold))
        notes = (f"{label}: {line}" for label, line in sheet.notes())
        return "\n".join([*parts, "".join(f"<p>{escape(fold.text(note))}</p>" for note in notes)])
