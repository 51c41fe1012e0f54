"""Folds the parts of an explanation that would be too large for a page, and says what that leaves out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Final, TypeVar

from xarr.errors import pluralize
from xarr.explanation.steps import PictureStep

_T = TypeVar("_T")
_DOTS: Final = "\N{HORIZONTAL ELLIPSIS}"
#: Rows of a table that are kept at its end: the result, and what happens.
_LAST_ROWS: Final = 2


@dataclass(frozen=True, slots=True)
class Measure:
    """The most that is shown: rows and columns of tables, lines of code, bytes of each, entries of lists, and so on."""

    rows: int
    columns: int
    lines: int
    line: int
    entries: int
    text: int
    draws: bool = True


#: From all that there is to what always keeps to a page's bytes.
MEASURES: Final = (
    Measure(10**9, 10**9, 10**9, 10**9, 10**9, 10**9),
    Measure(20, 14, 40, 200, 12, 1500),
    Measure(9, 10, 16, 110, 8, 600),
    Measure(9, 10, 16, 110, 8, 600, draws=False),
    Measure(5, 6, 8, 90, 4, 240, draws=False),
)


class PageFold:
    """Shortens the parts of one fragment to a measure, and keeps in words what it leaves out."""

    def __init__(self, measure: Measure = MEASURES[0]) -> None:
        self.measure = measure
        self._left_out: dict[str, None] = {}

    def text(self, text: str) -> str:
        """The text, without its middle if it is long."""
        shown = cut_middle(text, self.measure.text)
        if shown != text:
            self._left_out["the middle of long texts"] = None
        return shown

    def code(self, title: str, code: str) -> str:
        """The first lines of code and the last, each without its middle if it is long."""
        lines = code.split("\n")
        shown = _fold(lines, self.measure.lines, 1, _DOTS)
        self._note(len(lines), len(shown), "line", f" of “{cut_middle(title, 60)}”")
        cut = [cut_middle(line, self.measure.line) for line in shown]
        if cut != shown:
            self._left_out["the middle of long lines"] = None
        return "\n".join(cut)

    def table(self, rows: Sequence[Sequence[_T]], dots: _T) -> list[Sequence[_T]]:
        """The first rows and the last two, of each the first columns and the last."""
        if not rows:
            return []
        width, most = len(rows[0]), self.measure.columns
        narrow = [_fold(row, most, 1, dots) for row in rows]
        shown = _fold(narrow, self.measure.rows, _LAST_ROWS, [dots] * len(narrow[0]))
        self._note(len(rows), len(shown), "row", " of the table")
        self._note(width, len(narrow[0]), "column", " of the table")
        return list(shown)

    def some(self, listed: Sequence[_T], what: str) -> Sequence[_T]:
        """The first entries of a list."""
        shown = listed[: self.measure.entries]
        if len(shown) < len(listed):
            self._left_out[f"{len(listed) - len(shown):,} of {pluralize(len(listed), what)}"] = None
        return shown

    def steps(self, steps: Sequence[PictureStep]) -> tuple[PictureStep, ...]:
        return tuple(
            replace(one, name=self.text(one.name), text=self.text(one.text), code=self.text(one.code))
            for one in steps
        )

    def picture(self, markup: str) -> str:
        """The markup of a picture, or nothing."""
        if markup and not self.measure.draws:
            self._left_out["the picture"] = None
            return ""
        return markup

    def words(self, elsewhere: str) -> str:
        """A sentence on what is left out, and where it stands; nothing where all is shown."""
        if not self._left_out:
            return ""
        return f"Left out, to keep this small: {', '.join(self._left_out)}. {elsewhere}"

    def _note(self, whole: int, shown: int, what: str, end: str) -> None:
        if shown < whole:  # one of those shown are dots
            self._left_out[f"{whole - shown + 1:,} of {pluralize(whole, what)}{end}"] = None


def _fold(listed: Sequence[_T], most: int, last: int, dots: _T) -> list[_T]:
    """The first entries and the last ones, with dots between, if there are more than `most`."""
    if len(listed) <= most:
        return list(listed)
    return [*listed[: most - last - 1], dots, *listed[len(listed) - last :]]


def cut_middle(text: str, most: int) -> str:
    """The text without so much of its middle that its escaped form has at most so many bytes."""
    if len(text) * 6 <= most or count_bytes(escape(text)) <= most:
        return text
    end = most // 3
    before, after = _take(text, most - end - 3), _take(text[::-1], end)[::-1]
    return f"{before}{_DOTS}{after}"


def _take(text: str, most: int) -> str:
    """The longest beginning whose escaped form has at most so many bytes."""
    size = 0
    for at, character in enumerate(text[: most + 1]):
        size += count_bytes(escape(character))
        if size > most:
            return text[:at]
    return text[: most + 1]


def count_bytes(text: str) -> int:
    """The bytes of a text in a page; of half of a character, which no page has, those of its replacement."""
    return len(text.encode(errors="replace"))
