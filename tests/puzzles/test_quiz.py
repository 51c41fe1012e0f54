"""The quiz of twelve shapes: its marks are those of NumPy, and of no shape that could be broadcast."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from tests.support.checkout import CHECKOUT
from xarr.__main__ import main
from xarr.errors import InputError
from xarr.puzzles import QUIZ, mark

pytestmark = pytest.mark.implicit


def of_numpy(question: str) -> tuple[int, ...] | None:
    """The shape that NumPy makes of arrays of these shapes; None where it fails."""
    try:
        return eval(re.sub(r"\([\d,]*\)", lambda shape: f"np.ones({shape[0]})", question), {"np": np}).shape  # type: ignore[no-any-return]
    except ValueError:
        return None


RIGHT = [of_numpy(question) for question in QUIZ]


def test_what_numpy_says_is_right() -> None:
    assert (mark(RIGHT).right, mark(RIGHT).wrong) == (12, ())
    assert None in RIGHT and len(QUIZ) == 12


@pytest.mark.parametrize("number", range(1, 13))
def test_another_shape_is_wrong(number: int) -> None:
    own = RIGHT[number - 1]
    for other in (None, (1, *own), own[1:], own[::-1], (*own[:-1], 99)) if own is not None else ((), (3, 4)):
        if other != own:
            assert mark([*RIGHT[: number - 1], other, *RIGHT[number:]]).wrong == (number,)


@pytest.mark.parametrize("answer", [[3, 4], 3, "(3,4)", (3.0, 4), (True, 4)])
def test_what_is_no_shape_is_refused(answer: Any) -> None:
    with pytest.raises(InputError, match="answer 1, got"):
        mark([answer, *RIGHT[1:]])


def test_answers_are_counted() -> None:
    with pytest.raises(InputError, match="wanted 12 answers, got 11"):
        mark(RIGHT[1:])


def test_the_command_lists_and_marks(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["quiz"]) == 0
    shown = capsys.readouterr().out
    assert all(question in shown for question in QUIZ)
    answers = ["fails" if each is None else str(each) for each in RIGHT]
    assert main(["quiz", *answers]) == 0
    assert capsys.readouterr().out == "12 of 12 right\n"
    assert main(["quiz", *answers[:2], "(5,1)", *answers[3:]]) == 1
    assert 'python -m xarr explain "(5,1) - (5,)"' in capsys.readouterr().out
    for wrong in ("3", "(3", "import os"):
        assert main(["quiz", wrong]) == 2
    assert "wanted a shape such as" in capsys.readouterr().err


def test_the_page_has_the_same_questions() -> None:
    page = (CHECKOUT / "docs" / "learn" / "quiz.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| \d+ \| `a (\S+) b` \| (\(.*\)), (\(.*\)) \|$", page, re.MULTILINE)
    shown = [f"{first} {op} {second}".replace(" ", "") for op, first, second in rows]
    assert shown == [question.replace(" ", "") for question in QUIZ]
