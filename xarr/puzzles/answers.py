"""Answers are users' text: a restricted expression, checked before it runs and bounded while it does."""

from __future__ import annotations

import ast
import linecache
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xarr.errors import InputError
from xarr.puzzles.records import Puzzle


def _list_words(text: str) -> frozenset[str]:
    return frozenset(text.split())


#: Functions of NumPy and constants, of `xarr.lax`, and members of arrays that an answer may use.
NUMPY_NAMES: Final = _list_words(
    "abs add all any arange argmax argmin argsort array asarray atleast_2d bool_ broadcast_to clip concatenate "
    "cumsum diag diagonal divide dot einsum equal exp expand_dims eye flip float32 float64 floor_divide full "
    "greater greater_equal hstack inf inner int32 int64 invert less less_equal linspace logical_and "
    "logical_not logical_or matmul max maximum mean min minimum mod moveaxis multiply nan negative newaxis "
    "not_equal ones ones_like outer pad power prod ravel repeat reshape roll rot90 sign sort sqrt square "
    "squeeze stack subtract sum swapaxes take take_along_axis tensordot tile trace transpose tril triu vecdot "
    "vstack where zeros zeros_like"
)
LAX_NAMES: Final = _list_words(
    "abs add argmax argmin broadcast broadcast_in_dim broadcasted_iota clamp concatenate conv "
    "conv_general_dilated convert_element_type cumsum div dot dot_general dynamic_slice eq exp expand_dims "
    "full gather gather_rows GatherDimensionNumbers ge gt index_in_dim iota le lt max min mul ne neg pad pow "
    "reduce reduce_max reduce_min reduce_prod reduce_sum reduce_window rem reshape rev ScatterDimensionNumbers "
    "scatter scatter_add select slice slice_in_dim sort sqrt squeeze sub take transpose"
)
MEMBERS: Final = _list_words(
    "T add all any argmax argmin argsort astype at clip cumsum diagonal dot dtype flatten get max mean min mT "
    "multiply ndim prod ravel repeat reshape set shape size sort squeeze subtract sum swapaxes take trace "
    "transpose"
)
_MODULES: Final = {"np": NUMPY_NAMES, "xarr": NUMPY_NAMES, "lax": LAX_NAMES}
#: Characters and parts of an answer, and the largest int in it.
_LONGEST, _PARTS, _LARGEST = 500, 200, 10_000
#: The largest number that an answer computes, and elements of an array that it makes.
LIMIT: Final = 1_000_000
_NODES: Final = (
    *(
        ast.Expression,
        ast.BinOp,
        ast.UnaryOp,
        ast.Compare,
        ast.Call,
        ast.keyword,
        ast.Attribute,
        ast.Subscript,
    ),
    *(ast.Slice, ast.Tuple, ast.List, ast.Constant, ast.Name, ast.Load, ast.operator, ast.unaryop, ast.cmpop),
)


class AnswerError(InputError):
    """An answer that is no expression of the allowed kind."""


def compile_answer(text: str, puzzle: Puzzle) -> Any:
    """The code of an answer to a puzzle; AnswerError says what it may not hold.

    It may name the arrays and sizes of the puzzle, `np` and `lax`; where a shape is asked for, sizes alone.
    """
    modules = () if puzzle.is_shape else ("np", "xarr", "lax")
    arrays = () if puzzle.is_shape else [array.name for array in puzzle.arrays]
    return compile_expression(text, frozenset([*arrays, *puzzle.sizes]), modules)


def compile_expression(text: str, names: frozenset[str], modules: Sequence[str] = tuple(_MODULES)) -> Any:
    """The code of a restricted expression over `names` and functions of `modules`."""
    if len(text) > _LONGEST:
        raise AnswerError(f"wanted an expression of at most {_LONGEST} characters, got {len(text)}")
    written = text.strip()
    try:
        tree = ast.parse(written, "<answer>", mode="eval")
    except SyntaxError as error:
        raise AnswerError(f"wanted one expression of Python, got {written!r}: {error.msg}") from None
    except (ValueError, MemoryError, RecursionError):
        raise AnswerError("wanted one expression of Python, which this is not") from None
    parts = list(ast.walk(tree))
    if len(parts) > _PARTS:
        raise AnswerError(f"wanted an expression of at most {_PARTS} parts, got {len(parts)}")
    for part in parts:
        _check_part(part, names, modules)
    guarded = ast.fix_missing_locations(_Guards().visit(tree))
    # So that explanations can show the answer, as they show lines of a file.
    linecache.cache["<answer>"] = (len(written), None, [written + "\n"], "<answer>")
    return compile(guarded, "<answer>", "eval")


def _check_part(part: ast.AST, names: frozenset[str], modules: Sequence[str]) -> None:
    if not isinstance(part, _NODES):
        kind = type(part).__name__
        raise AnswerError(f"wanted arrays, operators, calls and indices in an answer, got {kind} in it")
    if isinstance(part, ast.Name) and part.id not in names and part.id not in modules:
        known = ", ".join(sorted(names)) + (", np and lax" if modules else "")
        raise AnswerError(f"no name {part.id!r} here; there are {known}")
    if isinstance(part, ast.Attribute):
        _check_attribute(part)
    if isinstance(part, ast.Call) and not isinstance(part.func, ast.Attribute):
        raise AnswerError("wanted calls of functions of np or lax, or of methods of arrays")
    if isinstance(part, ast.keyword) and part.arg is None:
        raise AnswerError("wanted arguments one by one, got ** in a call")
    if isinstance(part, ast.Constant):
        _check_constant(part.value)


def _check_attribute(part: ast.Attribute) -> None:
    """Refuse what is not in the lists: names that read files, run code or begin with an underscore among them."""
    module = part.value.id if isinstance(part.value, ast.Name) else ""
    allowed = _MODULES.get(module, MEMBERS)
    if part.attr not in allowed:
        of = f"{module}." if module in _MODULES else "."
        raise AnswerError(f"{of}{part.attr} is not among the functions that answers may use")


def _check_constant(value: Any) -> None:
    if isinstance(value, int | float) and abs(value) > _LARGEST:
        raise AnswerError(f"wanted numbers up to {_LARGEST:,}, got {value!r:.40}")
    if not isinstance(value, int | float | str | None | type(...)):
        raise AnswerError(f"wanted numbers, text, None or ... as constants, got {type(value).__name__}")


class _Guards(ast.NodeTransformer):
    """Puts a guard around each call, index, attribute and operation, and around operands of operators."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        is_power = isinstance(node.op, ast.Pow)
        node.left, node.right = (
            _call("_operand_", node.left),
            _call("_exponent_" if is_power else "_operand_", node.right),
        )
        return _call("_bounded_", node)

    def _guard(self, node: Any) -> ast.AST:
        self.generic_visit(node)
        return _call("_bounded_", node)

    visit_Compare = visit_UnaryOp = visit_Call = visit_Subscript = _guard


def _call(name: str, argument: ast.expr) -> ast.Call:
    call = ast.Call(ast.Name(name, ast.Load()), [argument], [])
    ast.copy_location(call, argument)
    return ast.copy_location(call, argument)


def check_operand(value: Any) -> Any:
    """An operand of an operator: a number, since sequences grow by `*`."""
    if isinstance(value, bool | int | float):
        return value
    raise AnswerError(f"wanted arrays and numbers around an operator, got {type(value).__name__}")


def check_exponent(value: Any) -> Any:
    """An exponent that is not too large."""
    if isinstance(value, int) and abs(value) > 8:
        raise AnswerError(f"wanted an exponent of at most 8, got {value}")
    return value


def check_number(value: Any) -> Any:
    """A value that is not too large to go on with."""
    if isinstance(value, int | float) and LIMIT < abs(value) < float("inf"):
        raise AnswerError(f"wanted numbers up to {LIMIT:,}, got one beyond")
    return value


def run_answer(
    code: Any,
    values: Mapping[str, Any],
    operand: Callable[[Any], Any] = check_operand,
    bounded: Callable[[Any], Any] = check_number,
) -> Any:
    """The value of a compiled answer for `values`; `operand` and `bounded` check what it computes on the way."""
    guards = {
        "_operand_": operand,
        "_exponent_": lambda value: operand(check_exponent(value)),
        "_bounded_": bounded,
    }
    return eval(code, {"__builtins__": {}, **guards, **values})
