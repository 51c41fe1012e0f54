"""Checks answers that are arrays: shape, element type, values, rules, score."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.calls.operands import as_array
from xarr.dtypes import ANY
from xarr.errors import XarrError
from xarr.explainers.comparison import ComparisonExplanation
from xarr.explainers.program import ProgramExplanation, explain
from xarr.puzzles.answers import AnswerError, compile_answer
from xarr.puzzles.array_answers import evaluate_answer
from xarr.puzzles.catalogue import puzzle as puzzle_of
from xarr.puzzles.draws import Draw, draws_of, first_difference
from xarr.puzzles.graph_rules import broken_rule, elements_of
from xarr.puzzles.records import RULES, Puzzle
from xarr.puzzles.verdicts import Explanation, Failure, Verdict
from xarr.runtime.handles import Handle

#: Elements that an answer may read and write: all puzzles take less than a thousand.
_MOST_WORK: Final = 100_000_000
#: What answers that are wrong raise.
_ERRORS: Final = (
    *(XarrError, TypeError, ValueError, IndexError),
    *(ZeroDivisionError, OverflowError, AttributeError),
)


def check_array(puzzle: Puzzle, answer: str, code: Any) -> Verdict:
    """Check the compiled answer to a puzzle that asks for an array."""
    tried = [(draw, _failure(puzzle, code, draw)) for draw in draws_of(puzzle)]
    failures = [(draw, failure) for draw, failure in tried if failure is not None]
    if failures:
        return _rejection(puzzle, answer, code, *_smallest(failures))
    return _approval(puzzle, answer, code)


def _smallest(failures: list[tuple[Draw, Failure]]) -> tuple[Draw, Failure]:
    """The failure on the fewest elements, among those for the reason of the first, whose sizes are distinct."""
    alike = [each for each in failures if each[1].reason == failures[0][1].reason]
    return min(alike, key=lambda each: (0 in each[0].sizes.values(), each[0].elements))


def _run(puzzle: Puzzle, code: Any, draw: Draw) -> Any:
    """The answer's value on a draw, recorded and not computed."""
    mode = "explicit" if "nothing implicit" in puzzle.rules else "numpy"
    arrays = {name: as_array(array) for name, array in draw.arrays.items()}
    with config(small_arrays="lazy", broadcasting=mode):
        return evaluate_answer(code, {**draw.sizes, **arrays})


def _failure(puzzle: Puzzle, code: Any, draw: Draw) -> Failure | None:
    try:
        got = _run(puzzle, code, draw)
        _check_work(got)
        if not isinstance(got, Handle):
            return Failure("kind", f"wanted an array, got {type(got).__name__}")
        return _compare(np.asarray(got), np.asarray(draw.result))
    except AnswerError:
        raise
    except _ERRORS as error:
        return Failure("does not run", f"it does not run: {str(error).split(chr(10))[0]}")


def _check_work(got: Any) -> None:
    """Refuse an answer that would take long, before it is computed."""
    work = elements_of(got._node) if isinstance(got, Handle) else 0
    if work > _MOST_WORK:
        raise AnswerError(
            f"wanted an answer that reads and writes at most {_MOST_WORK:,} elements, got {work:,}"
        )


def _compare(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> Failure | None:
    if got.shape != wanted.shape:
        return Failure("shape", f"wanted the shape {wanted.shape}, got {got.shape}")
    if got.dtype != wanted.dtype:
        return Failure("dtype", f"wanted elements of {wanted.dtype}, got {got.dtype}")
    at = first_difference(got, wanted)
    if at is None:
        return None
    where = f"[{', '.join(map(str, at))}]" if at else ""
    return Failure("values", f"wanted result{where} = {wanted[at]}, got {got[at]}")


def _rejection(puzzle: Puzzle, answer: str, code: Any, draw: Draw, failure: Failure) -> Verdict:
    sizes = ", ".join(f"{name} = {size}" for name, size in draw.sizes.items())
    shapes = ", ".join(f"{name} {array.shape}" for name, array in draw.arrays.items())
    message = f"not yet: for {sizes} ({shapes}) {failure.text}"
    explanation = _explanation(puzzle, answer, code, draw, failure.text)
    return Verdict(puzzle.number, answer, False, message, failure.reason, explanation=explanation)


def _explanation(puzzle: Puzzle, answer: str, code: Any, draw: Draw, failure: str) -> Explanation:
    """The ops of an answer, explained; where there are none, the result that is wanted beside its own."""
    got = None
    try:
        explained = explain(lambda: _run(puzzle, code, draw))
        if isinstance(explained, ProgramExplanation) and explained.steps:
            return explained
        result = np.asarray(_run(puzzle, code, draw))
        got = result if result.dtype in ANY else None  # what has no elements that an array has is not drawn
    except _ERRORS:  # one that is not of shapes ends it
        pass
    return ComparisonExplanation(answer, failure, draw.arrays, np.asarray(draw.result), got)


def _approval(puzzle: Puzzle, answer: str, code: Any) -> Verdict:
    """The verdict on an answer whose results are right: the rules, and the score."""
    draw = next(iter(draws_of(puzzle)))
    node, best = _run(puzzle, code, draw)._node, best_known(puzzle.number)
    elements, broken = elements_of(node), broken_rule(node, puzzle.rules, best)
    if broken is not None:
        rule, said = broken
        message = f"right, but against the rule “{rule}” ({RULES[rule]}): {said}"
        explanation = _explanation(puzzle, answer, code, draw, message)
        return Verdict(puzzle.number, answer, False, message, "rule", rule, explanation, elements, best)
    score = f"it reads and writes {elements} elements, the best known answer {best}"
    return Verdict(puzzle.number, answer, True, f"right: {score}", None, None, None, elements, best)


@lru_cache(maxsize=64)
def best_known(number: int) -> int:
    """The elements that the solution of a puzzle reads and writes on its first arrays."""
    puzzle = puzzle_of(number)
    node = _run(puzzle, compile_answer(puzzle.solution, puzzle), next(iter(draws_of(puzzle))))._node
    return elements_of(node)
