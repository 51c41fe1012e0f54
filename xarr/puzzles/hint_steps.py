"""Hints in three steps: what shapes there are, how the axes line up or which ops are recorded, and a solution."""

from __future__ import annotations

from typing import Final

from xarr.errors import InputError
from xarr.puzzles.answers import compile_answer, run_answer
from xarr.puzzles.catalogue import puzzle as puzzle_of
from xarr.puzzles.records import Puzzle, draw_sizes

STEPS: Final = 3


def hint(number: int, step: int = 1) -> str:
    """One of three hints to a puzzle: 1 the shapes, 2 the axes and ops, 3 a solution.  InputError for another step."""
    puzzle = puzzle_of(number)
    if step not in (1, 2, 3):
        raise InputError(f"wanted a step of 1, 2 or 3, got {step!r}")
    if step == 3:
        return f"one solution: {puzzle.solution}"
    if step == 1:
        return _hint_shapes(puzzle)
    if puzzle.is_shape:
        return f"count what this makes, axis by axis:\n{puzzle.wanted.rstrip()}"
    from xarr.puzzles.array_hints import describe_solution

    return describe_solution(puzzle)


def _hint_shapes(puzzle: Puzzle) -> str:
    first = next(draw_sizes(puzzle))
    sizes = ", ".join(f"{name} = {size}" for name, size in first.items())
    shapes = "; ".join(f"{spec.name} is {' by '.join(spec.sizes.split())}" for spec in puzzle.arrays)
    if puzzle.is_shape:
        count = len(run_answer(compile_answer(puzzle.solution, puzzle), first))
        return f"{shapes}; for {sizes} the answer has {count} entries"
    from xarr.puzzles.array_hints import shape_of_result

    return f"{shapes}; for {sizes} the result has the shape {shape_of_result(puzzle)}"
