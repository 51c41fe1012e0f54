"""What a checker says of an answer."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import Protocol

from xarr.base.canvas import MONOSPACED
from xarr.puzzles.records import Reason, Rule


class Explanation(Protocol):
    """An explanation of the ops of an answer: of a program, of a broadcast, of a product."""

    def text(self) -> str:
        """Plain text."""

    def html(self) -> str:
        """A self-contained HTML fragment, with pictures."""


@dataclass(frozen=True)
class Verdict:
    """The verdict on an answer: whether it passed; else why not, and the explanation of the smallest failure.

    `elements` is what it reads and writes on the first arrays, `best` what the best known answer does.
    """

    number: int
    answer: str
    passed: bool
    message: str
    reason: Reason | None = None
    rule: Rule | None = None
    explanation: Explanation | None = None
    elements: int | None = None
    best: int | None = None

    def text(self) -> str:
        """Plain text: the message, and the explanation."""
        return self.message if self.explanation is None else f"{self.message}\n\n{self.explanation.text()}"

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = "" if self.explanation is None else self.explanation.html()
        return f'<pre style="{MONOSPACED}">{escape(self.message)}</pre>{shown}'


@dataclass(frozen=True)
class Failure:
    """Why an answer is wrong on some arrays or sizes."""

    reason: Reason
    text: str
