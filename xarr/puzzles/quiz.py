"""The quiz of twelve shapes, for a class before and after the lessons, and the marks for answers."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

from xarr.errors import InputError, pluralize
from xarr.explanation.expression_steps import explain_text

#: A shape, None for what fails.
Answer: TypeAlias = tuple[int, ...] | None

QUIZ: Final = (
    "(3,4) + (4,)",
    "(3,4) + (3,)",
    "(5,1) - (5,)",
    "(2,1,3) * (4,1)",
    "(3,) + ()",
    "(2,3) == (3,2)",
    "(0,3) + (1,)",
    "(8,3,5,5) + (3,1,1)",
    "(1,) * (1,1)",
    "(2,3) @ (3,4)",
    "(5,2,3) @ (3,)",
    "(4,1) + (1,4)",
)
#: How an answer says on the command line that the operation fails.
_FAILS: Final = ("fails", "None")


@dataclass(frozen=True)
class Marks:
    """The marks for the answers to the quiz: `right` is their count, `wrong` has the numbers of the others."""

    right: int
    wrong: tuple[int, ...]

    def text(self) -> str:
        """The count, and how to see why the others are wrong."""
        head = f"{self.right} of {len(QUIZ)} right"
        commands = [f'{number:>4}  python -m xarr explain "{QUIZ[number - 1]}"' for number in self.wrong]
        return "\n".join([head, *(["not right, and why:"] if commands else []), *commands])

    def __str__(self) -> str:
        return self.text()

    __repr__ = __str__


def mark(answers: Sequence[Answer]) -> Marks:
    """Mark the answers to the questions of `QUIZ`.

    answers: for each question the shape of the result as a tuple, None where the operation fails.

    A shape is right if it is the same tuple: it is never broadcast to the one that is wanted.  Raises InputError for
    another number of answers, and for one that is neither a tuple of ints nor None.
    """
    if len(answers) != len(QUIZ):
        raise InputError(f"mark: wanted {len(QUIZ)} answers, got {len(answers)}")
    for number, answer in enumerate(answers, 1):
        if not _is_answer(answer):
            raise InputError(
                f"mark: wanted a shape such as (3, 4) or None as answer {number}, got {answer!r}"
            )
    pairs = zip(answers, map(_result, QUIZ), strict=True)
    wrong = tuple([number for number, (answer, result) in enumerate(pairs, 1) if answer != result])
    return Marks(len(QUIZ) - len(wrong), wrong)


def _is_answer(value: object) -> bool:
    return value is None or (isinstance(value, tuple) and all(type(size) is int for size in value))


def list_questions() -> str:
    """The questions with their numbers, and how to answer them."""
    lines = [f"{number:>4}  {question}" for number, question in enumerate(QUIZ, 1)]
    return "\n".join(
        [
            "What is the shape of each result, or does it fail?",
            *lines,
            f'answer by {pluralize(len(QUIZ), "shape")} in quotation marks, or "fails": xarr quiz "(3,4)" fails …',
        ]
    )


def read_answer(text: str) -> Answer:
    """An answer of the command line: `(3,4)`, `(3,)`, `()`, or `fails`.  Raises InputError for other text."""
    if text in _FAILS:
        return None
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = text
    if not isinstance(value, tuple):
        raise InputError(f'quiz: wanted a shape such as "(3,4)" or "fails", got {text!r}')
    return value


def _result(question: str) -> Answer:
    shape = explain_text(question).to_dict()["result"]
    return None if shape is None else tuple(shape)
