"""`check`: whether an answer to a puzzle is right, and if not, where it is wrong on the smallest arrays."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from html import escape
from typing import Any, Final

import numpy as np

from xarr.base.canvas import MONOSPACED
from xarr.base.configuration import current as config
from xarr.calls.operands import as_array
from xarr.errors import XarrError
from xarr.explainers.program import ProgramExplanation, explain
from xarr.puzzles.answers import AnswerError, compile_answer, evaluate_answer
from xarr.puzzles.catalogue import puzzle as puzzle_of
from xarr.puzzles.draws import Draw, draws_of, first_difference
from xarr.puzzles.graph_rules import broken_rule, elements_of
from xarr.puzzles.records import RULES, Puzzle, Reason, Rule
from xarr.runtime.handles import Handle

#: Elements that an answer may read and write: all puzzles take less than a thousand.
_MOST_WORK: Final = 100_000_000


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
    explanation: ProgramExplanation | None = None
    elements: int | None = None
    best: int | None = None

    def text(self) -> str:
        """Plain text: the message, and the explanation."""
        shown = self.explanation is not None and bool(self.explanation.steps)
        return f"{self.message}\n\n{self.explanation}" if shown else self.message

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        shown = self.explanation.html() if self.explanation is not None and self.explanation.steps else ""
        return f'<pre style="{MONOSPACED}">{escape(self.message)}</pre>{shown}'


def check(number: int, answer: str) -> Verdict:
    """Check an answer to a puzzle: shape, element type and values exactly, on arrays of many sizes, and the rules.

    An answer is never broadcast to the shape that is wanted.  Raises AnswerError, an InputError, for text that is no
    expression of the allowed kind, InputError for a number without a puzzle.
    """
    puzzle = puzzle_of(number)
    names = frozenset([array.name for array in puzzle.arrays] + list(puzzle.sizes))
    code = compile_answer(answer, names)
    tried = [(draw, _failure(puzzle, code, draw)) for draw in draws_of(puzzle)]
    failures = [(draw, failure) for draw, failure in tried if failure is not None]
    if failures:
        return _rejection(puzzle, answer, code, *_smallest(failures))
    return _approval(puzzle, answer, code)


@dataclass(frozen=True)
class _Failure:
    reason: Reason
    text: str


def _smallest(failures: list[tuple[Draw, _Failure]]) -> tuple[Draw, _Failure]:
    """The failure on the fewest elements, among those for the reason of the first, whose sizes are distinct."""
    alike = [each for each in failures if each[1].reason == failures[0][1].reason]
    return min(alike, key=lambda each: (0 in each[0].sizes.values(), each[0].elements))


def _run(puzzle: Puzzle, code: Any, draw: Draw) -> Any:
    """The answer's value on a draw, recorded and not computed."""
    mode = "explicit" if "nothing implicit" in puzzle.rules else "numpy"
    arrays = {name: as_array(array) for name, array in draw.arrays.items()}
    with config(small_arrays="lazy", broadcasting=mode):
        return evaluate_answer(code, {**draw.sizes, **arrays})


def _failure(puzzle: Puzzle, code: Any, draw: Draw) -> _Failure | None:
    try:
        got = _run(puzzle, code, draw)
        _check_work(got)
        if puzzle.is_shape:
            return _compare_tuples(got, draw.result)
        if not isinstance(got, Handle):
            return _Failure("kind", f"wanted an array, got {type(got).__name__}")
        return _compare(np.asarray(got), np.asarray(draw.result))
    except AnswerError:
        raise
    except (
        XarrError,
        TypeError,
        ValueError,
        IndexError,
        ZeroDivisionError,
        OverflowError,
        AttributeError,
    ) as error:
        return _Failure("does not run", f"it does not run: {str(error).split(chr(10))[0]}")


def _check_work(got: Any) -> None:
    """Refuse an answer that would take long, before it is computed."""
    work = elements_of(got._node) if isinstance(got, Handle) else 0
    if work > _MOST_WORK:
        raise AnswerError(
            f"wanted an answer that reads and writes at most {_MOST_WORK:,} elements, got {work:,}"
        )


def _compare_tuples(got: Any, wanted: tuple[int, ...]) -> _Failure | None:
    shape = tuple(got) if isinstance(got, list | tuple) else (got,)
    if not all(isinstance(size, int) for size in shape):
        return _Failure("kind", f"wanted a tuple of sizes such as {wanted}, got {got!r}")
    return None if shape == wanted else _Failure("shape", f"wanted {wanted}, got {shape}")


def _compare(got: np.ndarray[Any, Any], wanted: np.ndarray[Any, Any]) -> _Failure | None:
    if got.shape != wanted.shape:
        return _Failure("shape", f"wanted the shape {wanted.shape}, got {got.shape}")
    if got.dtype != wanted.dtype:
        return _Failure("dtype", f"wanted elements of {wanted.dtype}, got {got.dtype}")
    at = first_difference(got, wanted)
    if at is None:
        return None
    where = f"[{', '.join(map(str, at))}]" if at else ""
    return _Failure("values", f"wanted result{where} = {wanted[at]}, got {got[at]}")


def _rejection(puzzle: Puzzle, answer: str, code: Any, draw: Draw, failure: _Failure) -> Verdict:
    sizes = ", ".join(f"{name} = {size}" for name, size in draw.sizes.items())
    shapes = ", ".join(f"{name} {array.shape}" for name, array in draw.arrays.items())
    message = f"not yet: for {sizes} ({shapes}) {failure.text}"
    explanation = None if puzzle.is_shape else _explanation(lambda: _run(puzzle, code, draw))
    return Verdict(puzzle.number, answer, False, message, failure.reason, explanation=explanation)


def _explanation(run: Callable[[], Any]) -> ProgramExplanation | None:
    """The ops of an answer, explained; None where it stops at an error that is not one of shapes."""
    try:
        explained = explain(run)
    except (XarrError, TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError, AttributeError):
        return None
    return explained if isinstance(explained, ProgramExplanation) else None


def _approval(puzzle: Puzzle, answer: str, code: Any) -> Verdict:
    """The verdict on an answer whose results are right: the rules, and the score."""
    if puzzle.is_shape:
        return Verdict(puzzle.number, answer, True, "right")
    draw = next(iter(draws_of(puzzle)))
    node, best = _run(puzzle, code, draw)._node, best_known(puzzle.number)
    elements, broken = elements_of(node), broken_rule(node, puzzle.rules, best)
    if broken is not None:
        rule, said = broken
        message = f"right, but against the rule “{rule}” ({RULES[rule]}): {said}"
        explanation = _explanation(lambda: _run(puzzle, code, draw))
        return Verdict(puzzle.number, answer, False, message, "rule", rule, explanation, elements, best)
    score = f"it reads and writes {elements} elements, the best known answer {best}"
    return Verdict(puzzle.number, answer, True, f"right: {score}", None, None, None, elements, best)


@lru_cache(maxsize=64)
def best_known(number: int) -> int:
    """The elements that the solution of a puzzle reads and writes on its first arrays."""
    puzzle = puzzle_of(number)
    names = frozenset([array.name for array in puzzle.arrays] + list(puzzle.sizes))
    node = _run(puzzle, compile_answer(puzzle.solution, names), next(iter(draws_of(puzzle))))._node
    return elements_of(node)
