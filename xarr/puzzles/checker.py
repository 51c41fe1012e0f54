"""`check`: whether an answer to a puzzle is right, and if not, where it is wrong on the smallest arrays.

Answers that are shapes are checked here, by sizes alone; those that are arrays in `array_checker`, which needs NumPy.
"""

from __future__ import annotations

import ast
from typing import Any, Final

from xarr.base.layouts import Layout
from xarr.explanation.broadcast import explain_shapes
from xarr.explanation.broadcast_facts import Operand
from xarr.explanation.sheets.contraction import explain_product
from xarr.explanation.sheets.layout import LayoutExplanation
from xarr.explanation.sheets.reduction import ReductionSheet
from xarr.puzzles.answers import AnswerError, compile_answer, run_answer
from xarr.puzzles.catalogue import puzzle as puzzle_of
from xarr.puzzles.records import Puzzle, draw_sizes, shape_of
from xarr.puzzles.verdicts import Explanation, Failure, Verdict

#: Operators of expressions whose shape is asked for, as explanations name them.
_SYMBOLS: Final = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def check(number: int, answer: str) -> Verdict:
    """Check an answer to a puzzle: shape, element type and values exactly, on arrays of many sizes, and the rules.

    An answer is never broadcast to the shape that is wanted.  Raises AnswerError, an InputError, for text that is no
    expression of the allowed kind, InputError for a number without a puzzle.
    """
    puzzle = puzzle_of(number)
    code = compile_answer(answer, puzzle)
    if puzzle.is_shape:
        return _check_shape(puzzle, answer, code)
    from xarr.puzzles.array_checker import check_array

    return check_array(puzzle, answer, code)


def _check_shape(puzzle: Puzzle, answer: str, code: Any) -> Verdict:
    """Compare an answer with the solution on sizes; the tests compare the solution with what the puzzle wants."""
    solution = compile_answer(puzzle.solution, puzzle)
    for sizes in draw_sizes(puzzle):
        failure = _failure(code, sizes, run_answer(solution, sizes))
        if failure is not None:
            said = ", ".join(f"{name} = {size}" for name, size in sizes.items())
            arrays = ", ".join(f"{spec.name} {shape_of(spec, sizes)}" for spec in puzzle.arrays)
            message = f"not yet: for {said} ({arrays}) {failure.text}"
            explanation = _explanation(puzzle, sizes)
            return Verdict(puzzle.number, answer, False, message, failure.reason, explanation=explanation)
    return Verdict(puzzle.number, answer, True, "right")


def _failure(code: Any, sizes: dict[str, int], wanted: tuple[int, ...]) -> Failure | None:
    try:
        got = run_answer(code, sizes)
    except AnswerError:
        raise
    except (TypeError, ValueError, IndexError, ZeroDivisionError, OverflowError, AttributeError) as error:
        return Failure("does not run", f"it does not run: {error}")
    shape = tuple(got) if isinstance(got, list | tuple) else (got,)
    if not all(isinstance(size, int) for size in shape):
        return Failure("kind", f"wanted a tuple of sizes such as {wanted}, got {got!r}")
    return None if shape == wanted else Failure("shape", f"wanted {wanted}, got {shape}")


def _explanation(puzzle: Puzzle, sizes: dict[str, int]) -> Explanation:
    """The code that the puzzle shows, on arrays of these sizes: an op of two, a reduction, or how one array lies."""
    operands = [Operand(spec.name, shape_of(spec, sizes)) for spec in puzzle.arrays]
    shapes, names = [one.shape for one in operands], [one.name for one in operands]
    match ast.parse(puzzle.shown, mode="eval").body:
        case ast.BinOp(op=ast.MatMult()):
            return explain_product("matmul", shapes, names)
        case ast.BinOp(op=op):
            return explain_shapes(*shapes, op=_SYMBOLS[type(op)], names=names)
        case ast.Call(
            func=ast.Attribute(attr=function), keywords=[ast.keyword(value=ast.Constant(value=int() as axis))]
        ):
            return ReductionSheet(function, operands[0], (axis,))
        case shown:
            layout = Layout.row_major(len(shapes[0]))
            if isinstance(shown, ast.Attribute):  # x.T, the same memory
                layout = Layout(layout.major_to_minor)
                operands[0] = Operand(puzzle.shown, shapes[0][::-1])
            return LayoutExplanation(operands[0], layout.strides(operands[0].shape), layout)
