"""What hints say of solutions that are arrays: the shape of the result, the ops, how axes line up."""

from __future__ import annotations

import numpy as np

from xarr.base.configuration import current as config
from xarr.calls.operands import as_array
from xarr.explainers.program import explain
from xarr.explanation.broadcast import BroadcastExplanation
from xarr.explanation.broadcast_facts import BroadcastFacts
from xarr.explanation.text import how
from xarr.puzzles.answers import compile_answer
from xarr.puzzles.array_answers import evaluate_answer
from xarr.puzzles.draws import draws_of
from xarr.puzzles.graph_rules import recorded_ops
from xarr.puzzles.records import Puzzle


def shape_of_result(puzzle: Puzzle) -> tuple[int, ...]:
    """The shape of what is wanted for the first arrays."""
    return np.shape(next(iter(draws_of(puzzle))).result)


def describe_solution(puzzle: Puzzle) -> str:
    """The ops that the solution records, and how the axes of its broadcasts line up, without the expression."""
    draw, code = next(iter(draws_of(puzzle))), compile_answer(puzzle.solution, puzzle)
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
