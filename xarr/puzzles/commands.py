"""`xarr puzzles` lists the puzzles and which are solved; `xarr puzzle 7 "a[:, None] + b"` checks an answer."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from xarr.puzzles.catalogue import PUZZLES, puzzle
from xarr.puzzles.checker import check
from xarr.puzzles.hint_steps import STEPS, hint
from xarr.puzzles.progress import note_solved, progress_file, solved_puzzles
from xarr.puzzles.quiz import list_questions, mark, read_answer

#: What to do with a puzzle that is shown.
_USE = "answer by an expression in quotation marks behind the number; --hint 1, 2 and 3 help"


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the three commands to a command line."""
    commands.add_parser("puzzles", help="list the puzzles on shapes and indices, and which are solved")
    one = commands.add_parser("puzzle", help='show a puzzle, or check an answer: puzzle 7 "a[:, None] + b"')
    one.add_argument("number", type=int)
    one.add_argument("answer", nargs="?", help="an expression of the puzzle's arrays, np and lax")
    one.add_argument(
        "--hint", type=int, choices=range(1, STEPS + 1), help="1 the shapes, 2 the axes and ops, 3 a solution"
    )
    quiz = commands.add_parser("quiz", help="show the quiz of twelve shapes, or mark its answers")
    quiz.add_argument("answers", nargs="*", help='a shape such as "(3,4)" for each question, or "fails"')


def list_puzzles() -> str:
    """One line for each puzzle, under its chapter; solved ones have a mark, and their score where they have one."""
    return "\n".join(_lines(solved_puzzles()))


def _lines(kept: dict[int, int | None]) -> Iterator[str]:
    chapter = ""
    for one in PUZZLES:
        if one.chapter != chapter:
            chapter = one.chapter
            yield f"chapter {chapter}"
        mark = "x" if one.number in kept else " "
        score = kept.get(one.number)
        yield f"  [{mark}] {one.number:>2}  {one.title}{'' if score is None else f'   ({score} elements)'}"
    yield f"{sum(one.number in kept for one in PUZZLES)} of {len(PUZZLES)} solved"


def run_puzzle(options: argparse.Namespace) -> tuple[str, int]:
    """The text to print and the exit status: 1 where an answer does not pass."""
    one = puzzle(options.number)
    if options.answer is None:
        return (hint(one.number, options.hint) if options.hint else f"{one.text()}\n{_USE}"), 0
    verdict = check(one.number, options.answer)
    if not verdict.passed:
        shown = f"\nhint: {hint(one.number, options.hint)}" if options.hint else ""
        return verdict.text() + shown, 1
    kept = note_solved(one.number, verdict.elements)
    lost = "" if kept else f"\n(not written down: {progress_file()} cannot be written)"
    return verdict.text() + lost, 0


def run_quiz(options: argparse.Namespace) -> tuple[str, int]:
    """The text to print and the exit status: 1 where an answer is wrong."""
    if not options.answers:
        return list_questions(), 0
    marks = mark([read_answer(each) for each in options.answers])
    return marks.text(), 1 if marks.wrong else 0
