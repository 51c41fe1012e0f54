"""What the page is told of an answer to a puzzle, by CPython: the same module answers in the browser."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.support.play_site import load_script
from xarr.puzzles import PUZZLES, check, puzzle

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy")]
page = load_script("puzzle_page")


def ask(number: int, answer: str) -> Any:
    """The reply to an answer, after its way through JSON."""
    return json.loads(page.check(json.dumps({"number": number, "answer": answer})))


@pytest.mark.parametrize("number", [1, 7, 21, 28, 34])
def test_the_verdict_is_that_of_the_checker(number: int) -> None:
    one = puzzle(number)
    for answer in (one.solution, *(wrong.answer for wrong in one.wrong)):
        reply, verdict = ask(number, answer), check(number, answer)
        assert (reply["passed"], reply["message"]) == (verdict.passed, verdict.message)
        assert (reply["elements"], reply["best"]) == (verdict.elements, verdict.best)
        assert not (reply["passed"] and reply["steps"])


def test_what_fails_is_drawn_step_by_step() -> None:
    steps = ask(8, "x - v")["steps"]
    assert len(steps) == 1
    assert steps[0]["svg"].startswith("<svg ") and "what would work" in steps[0]["text"]
    steps = ask(10, "x - x.sum(axis=0)")["steps"]
    assert [step["text"].partition("   ")[0] for step in steps] == ["x.sum(axis=0)", "x - x.sum(axis=0)"]
    many = " + ".join(f"(p[:, None] * q * {i}).sum(axis=-1)" for i in range(3))
    assert len(ask(15, many)["steps"]) == 4


def test_a_shape_is_drawn_by_the_op_that_was_asked_for() -> None:
    steps = ask(3, "(m, n, k)")["steps"]
    assert len(steps) == 1 and "a * b    a: (3, 1, 4)   b: (2, 1)" in steps[0]["text"]
    for number, wrong, said in (
        (5, "(m, n)", "x.sum(axis=1)    x: (3, 4, 2)"),
        (31, "(1, n, m * n)", "x: (3, 4, 2), layout {2,1,0}"),
        (32, "(n, 1)", "x.T: (4, 3), layout {0,1}"),
    ):
        (step,) = ask(number, wrong)["steps"]
        assert step["text"].startswith(said) and step["svg"].startswith("<svg ")


def test_what_is_no_answer_is_said() -> None:
    assert ask(7, "open('x')")["error"].startswith("wanted calls of functions of np or lax")
    assert "1 to 36" in ask(99, "a")["error"]


def test_tasks_are_those_of_the_puzzles() -> None:
    listed = page.list_puzzles()
    assert [(one["number"], one["title"], one["task"]) for one in listed] == [
        (one.number, one.title, one.task) for one in PUZZLES
    ]
    assert listed[21]["arrays"] == [["v", "float64[m]"], ["w", "float64[n]"]]
    assert listed[21]["rules"][2] == ["one broadcast", "it broadcasts one operand at most"]
    assert listed[0]["names"] == ["m", "n"] and listed[6]["names"] == ["a", "b", "m", "n"]
