"""Hints in three steps: what shapes there are, how the axes line up or which ops are recorded, and a solution."""

from __future__ import annotations

from typing import Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.calls.operands import as_array
from xarr.errors import InputError
from xarr.explainers.program import explain
from xarr.explanation.broadcast import BroadcastExplanation
from xarr.explanation.broadcast_facts import BroadcastFacts
from xarr.explanation.text import how
from xarr.puzzles.answers import compile_answer, evaluate_answer
from xarr.puzzles.catalogue import puzzle as puzzle_of
from xarr.puzzles.draws import Draw, draws_of
from xarr.puzzles.graph_rules import recorded_ops
from xarr.puzzles.records import Puzzle

STEPS: Final = 3


def hint(number: int, step: int = 1) -> str:
    """One of three hints to a puzzle: 1 the shapes, 2 the axes and ops, 3 a solution.  InputError for another step."""
    puzzle = puzzle_of(number)
    if step not in (1, 2, 3):
        raise InputError(f"wanted a step of 1, 2 or 3, got {step!r}")
    if step == 3:
        return f"one solution: {puzzle.solution}"
    draw = next(iter(draws_of(puzzle)))
    return _shapes(puzzle, draw) if step == 1 else _axes(puzzle, draw)


def _shapes(puzzle: Puzzle, draw: Draw) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in draw.sizes.items())
    shapes = "; ".join(f"{spec.name} is {' by '.join(spec.sizes.split())}" for spec in puzzle.arrays)
    wanted = (
        f"the answer has {len(draw.result)} entries"
        if puzzle.is_shape
        else (f"the result has the shape {np.shape(draw.result)}")
    )
    return f"{shapes}; for {sizes} {wanted}"


def _axes(puzzle: Puzzle, draw: Draw) -> str:
    """The ops that the solution records, and how the axes of its broadcasts line up; of a shape, the loops."""
    if puzzle.is_shape:
        return f"count what this makes, axis by axis:\n{puzzle.wanted.rstrip()}"
    names = frozenset([array.name for array in puzzle.arrays] + list(puzzle.sizes))
    code = compile_answer(puzzle.solution, names)
    arrays = {name: as_array(array) for name, array in draw.arrays.items()}

    def run() -> object:
        return evaluate_answer(code, {**draw.sizes, **arrays})

    with config(small_arrays="lazy"):
        node = run()._node  # type: ignore[attr-defined]
    ops = ", ".join(dict.fromkeys(each.op.lax_name for each in recorded_ops(node)))
    lines = [f"a solution records these ops: {ops}"]
    explained = explain(run)
    for step in getattr(explained, "steps", ()):
        if isinstance(step.explanation, BroadcastExplanation):
            lines += _line_up(step.explanation)
    return "\n".join(lines)


def _line_up(facts: BroadcastFacts) -> list[str]:
    """Each axis of a broadcast in words, without the expression."""
    sizes = facts.result.shape if facts.result is not None else ()
    letters = {name: letter for name, letter in zip(facts.names, ["first", "second", "third"], strict=False)}
    lines = []
    for axis, size in enumerate(sizes):
        said = how(facts, axis)
        for name, word in letters.items():
            said = said.replace(f"{name}:", f"the {word} operand:")
        lines.append(f"  axis {axis} of size {size}: {said}")
    return lines
