"""Every puzzle: its solution passes, its wrong answers fail for the reason that is listed, hints give nothing away."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import xarr
from tests.support.explained import check_views
from xarr.errors import InputError
from xarr.explainers.comparison import ComparisonExplanation
from xarr.puzzles import PUZZLES, check, hint, puzzle
from xarr.puzzles.answers import compile_answer, run_answer
from xarr.puzzles.array_checker import best_known
from xarr.puzzles.draws import draws_of
from xarr.puzzles.hint_steps import STEPS
from xarr.puzzles.records import RULES, ArraySpec, Puzzle, Wrong

pytestmark = [pytest.mark.implicit, pytest.mark.usefixtures("on_numpy")]

WRONG = [(one.number, wrong) for one in PUZZLES for wrong in one.wrong]


def test_there_are_thirty_six_in_six_chapters() -> None:
    assert [one.number for one in PUZZLES] == list(range(1, 37))
    chapters = [one.chapter for one in PUZZLES]
    assert puzzle(7).title == "every pair"
    assert chapters == sorted(chapters) and {chapters.count(chapter) for chapter in chapters} == {6}
    assert len({one.title for one in PUZZLES}) == 36
    assert len(WRONG) >= 150 and all(len(one.wrong) >= 4 for one in PUZZLES)
    assert {rule for one in PUZZLES for rule in one.rules} < set(RULES)


@pytest.mark.parametrize("number", range(1, 37))
def test_solution_passes(number: int) -> None:
    verdict = check(number, puzzle(number).solution)
    assert verdict.passed and verdict.reason is None, verdict
    assert verdict.elements == verdict.best
    assert str(verdict).startswith("right")


@pytest.mark.parametrize("number", range(1, 37))
def test_wrong_answers_fail_for_the_right_reason(number: int) -> None:
    for wrong in puzzle(number).wrong:
        verdict = check(number, wrong.answer)
        assert not verdict.passed, wrong
        assert verdict.reason == wrong.reason, (wrong, verdict.message)
        assert ("rule" in verdict.message) == (wrong.reason == "rule")
        html = verdict._repr_html_()
        assert html.startswith("<pre") and "<svg" in html, "the failure is drawn"


@pytest.mark.parametrize("number", range(1, 37))
def test_hints_do_not_begin_with_the_solution(number: int) -> None:
    one = puzzle(number)
    before = [hint(number, step) for step in range(1, STEPS)]
    for text in before:
        assert one.solution not in text
        assert not any(wrong.answer in text and len(wrong.answer) > 8 for wrong in one.wrong) or one.is_shape
    assert hint(number, STEPS) == f"one solution: {one.solution}"
    assert len({*before}) == STEPS - 1


@pytest.mark.parametrize("number", range(1, 37))
def test_draws_are_distinct_first_then_one_nothing_and_equal(number: int) -> None:
    one, draws = puzzle(number), list(draws_of(puzzle(number)))
    first = list(draws[0].sizes.values())
    assert len(set(first)) == len(first) and min(first) > 1
    if len(one.sizes) > 1:
        assert any(len(set(draw.sizes.values())) == 1 for draw in draws)
    if number not in (31, 32, 33):
        assert any(0 in draw.sizes.values() for draw in draws)
        assert any(1 in draw.sizes.values() for draw in draws)


@pytest.mark.parametrize("number", [one.number for one in PUZZLES if one.is_shape])
def test_a_solution_that_is_a_shape_is_what_numpy_says(number: int) -> None:
    """Answers are compared with the solution, so that they can be checked where there is no NumPy."""
    one = puzzle(number)
    code = compile_answer(one.solution, one)
    draws = list(draws_of(one))
    assert len(draws) >= 4
    assert [run_answer(code, draw.sizes) for draw in draws] == [draw.result for draw in draws]
    wrong = compile_answer(one.wrong[0].answer, one)
    assert [run_answer(wrong, draw.sizes) for draw in draws] != [draw.result for draw in draws]


def test_shapes_are_checked_without_numpy() -> None:
    code = (
        "import sys\nclass Absent:\n    def find_spec(name, *_):\n"
        "        if name in ('numpy', 'ml_dtypes', 'llvmlite'): raise ImportError(name)\n"
        "sys.meta_path.insert(0, Absent)\nfrom xarr.puzzles import PUZZLES, check, hint\n"
        "for one in PUZZLES:\n    if one.is_shape:\n        print(one.number, hint(one.number), hint(one.number, 2))\n"
        "        assert check(one.number, one.solution).passed\n"
        "        assert not any(check(one.number, wrong.answer).passed for wrong in one.wrong)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert "31 x is k by m by n; for k = 3, m = 4, n = 2 the answer has 3 entries count what" in run.stdout


def test_a_wrong_shape_is_explained_by_the_op_that_the_puzzle_shows() -> None:
    explained = {
        one.number: str(check(one.number, one.wrong[0].answer).explanation) for one in PUZZLES if one.is_shape
    }
    assert all("->" in explained[number] for number in (1, 2, 3, 4, 5, 6, 33))
    assert explained[5].startswith("x.sum(axis=1)    x: (3, 4, 2)   ->  (3, 2)")
    assert explained[31].startswith("x: (3, 4, 2), layout {2,1,0} (row-major, C order)")
    assert explained[32].startswith("x.T: (4, 3), layout {0,1} (column-major, Fortran order)")
    verdict = check(6, "(m, p)")
    assert verdict.explanation is not None
    assert verdict.explanation.text().startswith("x @ y    x: (3, 4)   y: (2, 4, 5)")


def test_what_has_no_op_to_explain_is_drawn_beside_what_is_wanted() -> None:
    other = check(24, "lax.transpose(x, (2, 0, 1))").explanation
    assert isinstance(other, ComparisonExplanation)
    facts = check_views(other)
    assert np.shape(facts["wanted"]) == (1, 2, 3) and np.shape(facts["got"]) == (2, 3, 1)
    assert (
        other.svg().count('<g class="x"') == 6 and "wanted the shape (1, 2, 3), got (2, 3, 1)" in other.text()
    )
    close = check(14, "x[:, ::-1].diagonal()").explanation
    assert isinstance(close, ComparisonExplanation) and close.svg().count('<g class="x"') == 2
    fails = check(23, "lax.dot(x, y)").explanation
    assert isinstance(fails, ComparisonExplanation) and fails.got is None and "no result" in fails.text()
    right = check(24, "lax.transpose(lax.transpose(x, (1, 0, 2)), (0, 2, 1))").explanation
    assert isinstance(right, ComparisonExplanation) and '<g class="x"' not in right.svg()


@pytest.mark.parametrize("answer", ["None", "lax", "np", "'x'", "...", "(None,)", "a.dtype"])
def test_of_an_answer_that_is_no_array_only_what_is_wanted_is_drawn(answer: str) -> None:
    verdict = check(7, answer)
    explanation = verdict.explanation
    assert verdict.reason == "kind" and isinstance(explanation, ComparisonExplanation)
    assert check_views(explanation)["got"] is None and "wanted an array" in explanation.html()


def test_an_answer_is_never_broadcast() -> None:
    assert check(14, "np.zeros((1,))").reason == "shape"
    assert check(34, "np.zeros(())").reason == "values"
    assert check(17, "np.diag(d)[None]").reason == "shape"


def test_dtype_counts() -> None:
    assert check(16, "(x > 0).sum(axis=0) * 1.0").reason == "dtype"


def test_what_fits_by_chance_does_not_pass() -> None:
    """Sizes written as numbers, and equal sizes, fit some draws only."""
    assert not check(22, "lax.broadcast_in_dim(v, (3, 4), (0,))").passed
    assert not check(6, "(k, m, n)").passed


def test_the_smallest_failure_is_explained() -> None:
    verdict = check(8, "x - v")
    assert verdict.reason == "does not run"
    assert verdict.explanation is not None and verdict.explanation.error is not None
    assert "x - v    x: f64[2,1]" not in verdict.text() and "does not broadcast" in verdict.text()
    assert "v[:, None]" in verdict.text()


def test_rules_say_what_was_recorded() -> None:
    verdict = check(19, "lax.add(lax.neg(lax.neg(x)), v, broadcast_dimensions=(1,))")
    assert verdict.reason == "rule" and verdict.rule == "one op"
    assert "it records 3: neg, add" in verdict.message
    verdict = check(34, "np.outer(a, b).sum()")
    assert verdict.rule == "few elements" and verdict.elements is not None and verdict.best is not None
    assert verdict.elements > verdict.best


def test_hints_say_what_a_solution_records() -> None:
    assert hint(19, 2).startswith("a solution records these ops: broadcast_in_dim, add")


def test_the_best_known_answer_is_the_solution() -> None:
    assert [best_known(number) for number in (24, 29, 34)] == [0, 12, 14]


def test_scores_count_what_is_read() -> None:
    assert check(29, "lax.reduce_window(x, 0.0, lax.add, (3,), (1,))").elements == 4 * 3
    assert check(29, "x[:-2] + x[1:-1] + x[2:]").elements == 2 * 3 * 3
    assert check(24, "lax.transpose(x, (1, 2, 0))").elements == 0
    assert check(18, "x @ y").elements == (3 * 4 * 5) * (2 * 2 + 1)


def test_other_answers_than_the_solution_pass() -> None:
    for number, answer in (
        (7, "np.add(a.reshape(-1, 1), b)"),
        (13, "np.outer(a, b)"),
        (14, "np.einsum('ii->i', x)"),
        (17, "np.eye(n) * d"),
        (18, "np.einsum('bik,bkj->bij', x, y)"),
        (25, "np.take(x, i, axis=0)"),
        (28, "x.reshape(-1, 2).max(axis=1)"),
        (29, "x[:-2] + x[1:-1] + x[2:]"),
    ):
        assert check(number, answer).passed, check(number, answer)


@pytest.mark.parametrize("number", [0, 37, -1, "7", 1.5, None])
def test_numbers_without_a_puzzle(number: object) -> None:
    with pytest.raises(InputError, match="wanted the number of a puzzle, 1 to 36"):
        puzzle(number)


@pytest.mark.parametrize("step", [0, 4, None])
def test_steps_without_a_hint(step: object) -> None:
    with pytest.raises(InputError, match="step of 1, 2 or 3"):
        hint(1, step)  # type: ignore[arg-type]


def test_text_of_a_puzzle() -> None:
    assert str(puzzle(7)) == repr(puzzle(7))
    assert "result[i, j] = a[i] + b[j]" in str(puzzle(7))
    assert "rule “one op”" in str(puzzle(19))
    assert isinstance(xarr.puzzles.puzzle(1), Puzzle)
    assert Puzzle(1, "c", "t", "t", (ArraySpec("x", "2*m n+2"),), "", "", (Wrong("x", "shape"),)).sizes == (
        "m",
        "n",
    )
