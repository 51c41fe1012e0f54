"""Each lesson opens with a prediction, shows one thing in four ways, and ends with puzzles that there are."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.checkout import CHECKOUT
from xarr.puzzles import PUZZLES

FOLDER = CHECKOUT / "docs" / "learn"
PARTS = ["NumPy", "As a loop", "Explicitly", "As a picture", "Puzzles"]
LESSONS = sorted(FOLDER.glob("[1-8]_*.md"))


def problems_of(text: str, folder: Path) -> list[str]:
    """The parts that a lesson lacks, as lines of text."""
    problems = []
    paragraphs = text.partition("---\n\n")[2].split("\n\n")
    if not paragraphs[0].startswith("# ") or not paragraphs[1].startswith("**Predict.** "):
        problems.append("wanted a title and a prediction at the top")
    sections = [line.removeprefix("## ") for line in text.split("\n") if line.startswith("## ")]
    if sections != PARTS:
        problems.append(f"wanted {', '.join(PARTS)}, got {sections}")
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", text)
    problems += [f"{path} has no words" for words, path in pictures if not words]
    problems += [f"{path} does not exist" for _, path in pictures if not (folder / path).is_file()]
    if not pictures:
        problems.append("wanted a picture")
    if len(re.findall(r"^```\{code-cell\} python$", text, re.MULTILINE)) != 1:
        problems.append("wanted one cell that is run when the site is built")
    numbers = re.findall(r"\d+", text.rpartition("## Puzzles")[2])
    if not numbers or any(int(number) > len(PUZZLES) for number in numbers):
        problems.append(f"wanted numbers of puzzles at the end, got {numbers}")
    return problems


@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_lesson_has_all_parts(path: Path) -> None:
    assert problems_of(path.read_text(encoding="utf-8"), FOLDER) == []


def test_lessons_are_listed() -> None:
    index = (FOLDER / "index.md").read_text(encoding="utf-8")
    assert len(LESSONS) == 8
    assert re.findall(r"^\d_\w+$", index, re.MULTILINE) == [path.stem for path in LESSONS]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("**Predict.**", "Think."),
        ("---\n\n", ""),
        ("## NumPy", "## Numpy"),
        ("## As a loop", "## Level by level"),
        ("surprise.svg", "missing.svg"),
        ("![a - b, a: (5, 1), b: (5,): both become (5, 5)]", "![]"),
        ("puzzle 4", "puzzle 99"),
        ("{code-cell} python", "python"),
    ],
)
def test_what_is_missing_is_noticed(old: str, new: str) -> None:
    text = LESSONS[0].read_text(encoding="utf-8")
    assert old in text
    assert problems_of(text.replace(old, new), FOLDER) != []
