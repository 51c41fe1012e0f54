"""Reads what is to be explained as a user types it: `(5,1) - (5,)`, `(4,5)[1:, None]`, `sum((3,4), axis=1)` …"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final

import numpy as np

from xarr import lax
from xarr.errors import IndexingError, InputError, ParseError, XarrError
from xarr.explainers.collective import COLLECTIVES, explain_collective
from xarr.explainers.gathers.gather import explain_gather, explain_scatter
from xarr.explainers.index import explain_index
from xarr.explainers.layout import explain_layout
from xarr.explainers.operands import axes_of, read_lists
from xarr.explainers.products import explain_einsum, explain_matmul
from xarr.explainers.promotion import explain_dtype, names_type
from xarr.explainers.recorded_ops import Explained
from xarr.explainers.reduction import explain_reduce
from xarr.explainers.windows import explain_window
from xarr.explanation.expression import read_operand
from xarr.explanation.expression_steps import explain_text
from xarr.explanation.sheets.contraction import PRODUCTS
from xarr.explanation.sheets.reduction import REDUCTIONS
from xarr.lax import GatherDimensionNumbers, ScatterDimensionNumbers, elementwise

EXAMPLES: Final = (
    "(5,1) - (5,)",
    "f32[2,3] @ f32[3,4]",
    "(4,5)[1:, None, [0, 2]]",
    "sum((3,4), axis=1)",
    'einsum("ij,jk->ik", (2,3), (3,4))',
    'window((6,6), 3, strides=2, padding="SAME")',
    "take((5,4), [0, 3], axis=0)",
    "f32[2,3]{0,1}",
    "dtype(int8, uint8)",
    "all_reduce(f32[4096], 4)",
)
#: Longer texts, and more deeply nested ones, are none of Python's here.
_LONGEST, _DEEPEST = 2000, 40
#: NumPy's functions that broadcast their arguments and are no ufuncs.
_BROADCASTING: Final = frozenset(
    [
        "angle",
        "around",
        "clip",
        "fix",
        "i0",
        "imag",
        "isclose",
        "iscomplex",
        "isneginf",
        "isposinf",
        "isreal",
        "nan_to_num",
        "real",
        "round",
        "sinc",
        "where",
    ]
)
_LAYOUT = re.compile(r"\s*(\(.*\)|\w*\[[\d\s,]*\])\s*(\{[^{}]*\})\s*")


def explain_any(text: str) -> Explained:
    """Explain text such as `EXAMPLES`: shapes and an op, an index, a call, an array type with its layout.

    Raises ParseError if it is malformed, and the errors of the explanation that it calls.
    """
    layout = _LAYOUT.fullmatch(text)
    if layout is not None and _is_layout(layout[1]):
        return explain_layout(_shape_text(layout[1]), layout[2].replace(" ", ""))
    expression = _parse(text)
    if isinstance(expression, ast.Subscript) and not _is_type(expression):
        return _explain_subscript(expression)
    if isinstance(expression, ast.Call) and isinstance(expression.func, ast.Name):
        call = _CALLS.get(expression.func.id)
        if call is not None:
            return _explain_call(expression.func.id, call, expression)
    if expression is not None:
        _check_names(expression)
    return explain_text(text)


def _check_names(expression: ast.expr) -> None:
    """Refuse calls of known functions that are not element-wise: as ops they would be explained wrongly."""
    for node in ast.walk(expression):
        name = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else None
        if isinstance(node, ast.Call) and name is not None and not _broadcasts(name, len(node.args)):
            raise ParseError(
                f"cannot explain {ast.unparse(node)}: wanted an element-wise function such as maximum or where, "
                f"or one of {', '.join(PRODUCTS)}; or alone, outside of an expression, one of {', '.join(_CALLS)}"
            )


def _broadcasts(name: str, count: int) -> bool:
    """Whether a function broadcasts `count` arguments, or multiplies matrices; unknown ones are taken to do so."""
    if name in PRODUCTS or name in _BROADCASTING:
        return True
    if name in elementwise.__all__:
        return name not in REDUCTIONS or count > 1
    known = vars(np).get(name, vars(lax).get(name))
    return known is None or (isinstance(known, np.ufunc) and known.signature is None)


def _parse(text: str) -> ast.expr | None:
    """The expression, None where it is none of Python's."""
    if len(text) > _LONGEST:
        return None
    try:
        expression = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return None
    level: list[ast.AST] = [expression]
    for _ in range(_DEEPEST):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return None if level else expression


def _is_type(expression: ast.Subscript) -> bool:
    """Whether it is an array type such as `f32[2,3]`, with no index behind."""
    return isinstance(expression.value, ast.Name)


def _is_layout(text: str) -> bool:
    return not text.startswith("(") or isinstance(_parse(text), ast.Tuple)


def _shape_text(text: str) -> Any:
    return text if not text.startswith("(") else _operand(ast.parse(text, mode="eval").body)


def _explain_subscript(expression: ast.Subscript) -> Explained:
    array = _operand(expression.value)
    if not isinstance(array, tuple | str):
        raise _error(f"a shape before the index, got {ast.unparse(expression.value)}")
    return explain_index(_shape_of("explain_index", array), _item(expression.slice))


def _item(expression: ast.expr) -> Any:
    """An item of an index: a slice, or a literal; a list is an array."""
    if isinstance(expression, ast.Tuple):
        return tuple(_item(each) for each in expression.elts)
    if isinstance(expression, ast.Slice):
        return slice(
            *(
                None if part is None else _literal(part)
                for part in (expression.lower, expression.upper, expression.step)
            )
        )
    value = _literal(expression)
    return read_lists("explain_index", value) if isinstance(value, list) else value


def _literal(expression: ast.expr) -> Any:
    try:
        return ast.literal_eval(expression)
    except (ValueError, TypeError, MemoryError, RecursionError):
        raise _error(f"a number, a list, text, None or a slice, got {ast.unparse(expression)}") from None


def _operand(expression: ast.expr) -> Any:
    """A shape, the text of an array type such as `f32[2,3]`, a type's name, or a literal."""
    if isinstance(expression, ast.Subscript) and isinstance(expression.value, ast.Name):
        return ast.unparse(expression).replace("(", "").replace(")", "")
    if isinstance(expression, ast.Name):
        kinds = {"int": int, "float": float, "complex": complex}
        if expression.id in kinds:
            return kinds[expression.id]
        if names_type(expression.id):
            return expression.id
    return _literal(expression)


def _explain_call(name: str, call: Callable[..., Explained], expression: ast.Call) -> Explained:
    arguments = [_operand(each) for each in expression.args]
    named = {each.arg: _operand(each.value) for each in expression.keywords if each.arg is not None}
    try:
        return call(*arguments, **named)
    except XarrError:
        raise
    except TypeError as error:
        # Python's own words on arguments that are missing or unknown, with the name that the user wrote.
        reason = str(error).partition("() ")[2] or str(error)
        raise _error(f"other arguments of {name}: {reason}") from None


def _error(wanted: str) -> ParseError:
    examples = "\n".join(f"    {example}" for example in EXAMPLES)
    return ParseError(f"cannot read the expression: wanted {wanted}\nexamples:\n{examples}")


# --- calls ---------------------------------------------------------------------------------------------


def _reduce_by(op: str) -> Callable[..., Explained]:
    def reduce(x: Any, axis: Any = None, keepdims: bool = False) -> Explained:
        return explain_reduce(x, axis, op, keepdims)

    return reduce


def _take(x: Any, indices: Any, axis: Any = None) -> Explained:
    """The gather of `take(x, indices, axis)`, which counts negative indices from the end and checks the others."""
    shape, at = _shape_of("take", x), read_lists("take", indices)
    if axis is None:
        shape, axis = (prod(shape),), 0
    axes = axes_of("take", axis, len(shape))
    if len(axes) != 1:
        raise InputError(f"take: wanted an int or None for axis, got {axis!r}")
    at = _indices_from_start(at, axes[0], shape[axes[0]])
    offset = tuple(dim if dim < axes[0] else dim + at.ndim - 1 for dim in range(len(shape)) if dim != axes[0])
    numbers = GatherDimensionNumbers(offset, axes, axes)
    sizes = tuple(1 if dim in axes else size for dim, size in enumerate(shape))
    return explain_gather(shape, (*at.shape, 1), numbers, sizes, indices=at.reshape(*at.shape, 1))


def _indices_from_start(at: np.ndarray[Any, Any], axis: int, size: int) -> np.ndarray[Any, Any]:
    if at.dtype == bool:
        at = at.astype(int)
    if at.dtype.kind != "i":
        raise InputError(f"take: wanted integers as indices, got {at.dtype}")
    outside = at[(at < -size) | (at >= size)]
    if outside.size:
        raise IndexingError(f"take: index {outside[0]} is out of bounds for axis {axis} with size {size}")
    return np.where(at < 0, at + size, at)


def _gather(
    x: Any,
    indices: Any,
    slice_sizes: Any,
    offset_dims: Any = (),
    collapsed_slice_dims: Any = (),
    start_index_map: Any = (),
) -> Explained:
    """A gather by its dimension numbers; indices are a shape, or values as lists."""
    numbers = GatherDimensionNumbers(
        _several(offset_dims), _several(collapsed_slice_dims), _several(start_index_map)
    )
    at, values = _indices("gather", indices)
    return explain_gather(_shape_of("gather", x), at, numbers, slice_sizes, indices=values)


def _scatter(
    x: Any,
    indices: Any,
    updates: Any,
    update_window_dims: Any = (),
    inserted_window_dims: Any = (),
    scatter_dims_to_operand_dims: Any = (),
) -> Explained:
    """A scatter by its dimension numbers; indices are a shape, or values as lists."""
    numbers = ScatterDimensionNumbers(
        _several(update_window_dims), _several(inserted_window_dims), _several(scatter_dims_to_operand_dims)
    )
    at, values = _indices("scatter", indices)
    shapes = _shape_of("scatter", x), _shape_of("scatter", updates)
    return explain_scatter(shapes[0], at, shapes[1], numbers, indices=values)


def _several(dims: Any) -> tuple[Any, ...]:
    """Dimensions as a tuple; a single one may be written without."""
    return tuple(dims) if isinstance(dims, tuple | list) else (dims,)


def _indices(name: str, indices: Any) -> tuple[Any, Any]:
    if isinstance(indices, list):
        values = read_lists(name, indices)
        return values.shape, values
    return _shape_of(name, indices), None


def _shape_of(name: str, operand: Any) -> tuple[int, ...]:
    if isinstance(operand, str):
        return read_operand(operand)[0]
    if not isinstance(operand, tuple):
        raise InputError(f"{name}: wanted a shape such as (5, 4), got {operand!r}")
    return operand


def _window_by(op: str) -> Callable[..., Explained]:
    def slide(
        x: Any,
        window: Any,
        strides: Any = 1,
        padding: Any = "VALID",
        base_dilation: Any = 1,
        window_dilation: Any = 1,
    ) -> Explained:
        return explain_window(x, window, strides, padding, base_dilation, window_dilation, op)

    return slide


def _collective(name: str) -> Callable[..., Explained]:
    def exchange(x: Any, replicas: Any, pairs: Any = None) -> Explained:
        if not isinstance(x, str):
            raise InputError(
                f"{name}: wanted an array type such as f32[1024], since bytes are counted, got {x!r}"
            )
        return explain_collective(name, x, replicas, pairs=pairs)

    return exchange


_CALLS: Final[Mapping[str, Callable[..., Explained]]] = {
    **{op: _reduce_by(op) for op in REDUCTIONS},
    "einsum": explain_einsum,
    "matmul": explain_matmul,
    "window": explain_window,
    "max_pool": _window_by("max"),
    "sum_pool": _window_by("sum"),
    "conv": _window_by("conv"),
    "take": _take,
    "gather": _gather,
    "scatter": _scatter,
    "layout": explain_layout,
    "dtype": explain_dtype,
    "promote": explain_dtype,
    **{name: _collective(name) for name in COLLECTIVES},
}
