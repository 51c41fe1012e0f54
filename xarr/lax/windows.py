"""Windows that slide over an array: their reductions, choices in them, and running totals.

A window begins at every `window_strides`th index of the operand, dilated and padded as asked for.  Padding may
be given as pairs (low, high), which may be negative, or by name: "VALID" (none), "SAME" (as many windows
as the size divided by the stride, rounded up) or "SAME_LOWER" (the same, an odd one at the beginning).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import BOOL, COMPLEX, FLOAT, PREDICATE
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.computations import combiner, log_add_exp
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node
from xarr.ir.windows import Pairs, dilate_size, named_padding
from xarr.lax.core import ArrayLike, flag, integer, integers, operands
from xarr.lax.dynamic_sizes import refuse_named_padding
from xarr.lax.reduction import combiner_graph, initial_value, with_initial
from xarr.lax.tracing import record_scalar, results_of, tuple_of
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import apply_op
from xarr.shapes import normalize_axis

DType = np.dtype[Any]

#: "VALID", "SAME", "SAME_LOWER", or a pair (low, high) for each dimension.
Padding: TypeAlias = str | Sequence[tuple[int, int]]

_SCALAR = tree.flatten(0)[1]


# --- reduction of windows ----------------------------------------------------------------------------


@names_errors
def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[..., Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements of each window by `computation`, for one array or a pytree of N at once.

    operand: array, or pytree of arrays, of one shape.
    init_value: a scalar for each, in the same structure; a Python scalar takes its array's element type.
    computation: (accumulators, elements) -> accumulators, on scalars, in the structure of `operand`; it should be
        associative and may use nothing but its arguments.
    window_dimensions, window_strides, base_dilation, window_dilation: one for each dimension, >= 1; the
        last three are 1 by default.
    padding: a name or pairs (low, high); names do not look at base_dilation.

    Returns arrays with one element for each window that fits.  Elements meet in row-major order, the initial value
    first; padding and the holes of a dilation take no part, so a window of nothing else gives init_value.
    Raises ShapeError [C1]-[C15], DTypeError for a Python scalar that the element type cannot hold, InputError for
    another name of a padding.
    Source: XLA's ReduceWindow, with jax.lax's arguments.
    """
    arrays, structure = tree.flatten(operand)
    initial, its = tree.flatten(init_value)
    if its != structure or not arrays:
        raise ShapeError(
            "reduce_window [C1]: wanted N >= 1 arrays and N initial values in one structure, "
            f"got {structure} and {its}"
        )
    nodes, starts = with_initial("reduce_window", arrays, initial)
    graph = combiner_graph("reduce_window", "C13", computation, structure, [node.dtype for node in nodes])
    op = _reduction(
        nodes[0], graph, window_dimensions, window_strides, padding, base_dilation, window_dilation
    )
    return tree.unflatten(structure, results_of(op, (*nodes, *starts), len(nodes)))


def _reduction(
    node: Node,
    graph: Graph,
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: Padding,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> ops.ReduceWindow:
    name = "reduce_window"
    sizes = integers(name, "window_dimensions", window_dimensions)
    rows = (window_strides, base_dilation, window_dilation)
    names = ("window_strides", "base_dilation", "window_dilation")
    strides, base, holes = (
        (1,) * len(sizes) if row is None else integers(name, argument, row)
        for argument, row in zip(names, rows, strict=True)
    )
    extents = sizes
    if len(holes) == len(sizes):
        extents = tuple(dilate_size(size, step) for size, step in zip(sizes, holes, strict=True))
    refuse_named_padding(name, node, strides, padding, range(len(strides)))
    pairs = padding_pairs(name, node.shape, extents, strides, padding)
    return ops.ReduceWindow(sizes, strides, base, holes, pairs, graph)


@names_errors
def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
) -> Pairs:
    """The pairs (low, high) of padding that a name stands for; pairs stay as they are.

    window_shape: the extents of the windows, holes of a dilation included.
    Raises InputError for another name or what is no pair, ShapeError unless the sequences have one length.
    Source: jax.lax.padtype_to_pads, XLA's MakePadding.
    """
    name = "padtype_to_pads"
    shape = integers(name, "in_shape", in_shape)
    window = integers(name, "window_shape", window_shape)
    return padding_pairs(name, shape, window, integers(name, "window_strides", window_strides), padding)


def padding_pairs(
    name: str,
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
) -> Pairs:
    """`padtype_to_pads` for the function called `name`."""
    if isinstance(padding, str):
        return named_padding(name, padding, in_shape, window_shape, window_strides)
    if not isinstance(padding, Sequence | np.ndarray):
        raise InputError(f"{name}: wanted a name or pairs (low, high) for padding, got {padding!r}")
    rows = [integers(name, "padding", pair) for pair in padding]
    if any(len(row) != 2 for row in rows):
        raise InputError(f"{name}: wanted a pair (low, high) of padding for each dimension, got {padding!r}")
    return tuple((row[0], row[1]) for row in rows)


# --- choices in windows ------------------------------------------------------------------------------


@names_errors
def select_and_scatter(
    operand: ArrayLike,
    select: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    source: ArrayLike,
    init_value: ArrayLike,
    scatter: Callable[[Any, Any], Any],
) -> Array:
    """Combine each element of `source` into the element of its window of `operand` that `select` chooses.

    operand: array.  source: array with one element for each window.  init_value: scalar.  All of one element
        type, which a Python scalar takes from the operand.
    select: (chosen, next) -> bool, on scalars: whether the one chosen so far stays, for lax.ge and lax.gt the
        largest element, the first or the last of equal ones.  scatter: (element, source) -> element.
    window_dimensions, window_strides: one for each dimension, >= 1.  padding: a name or pairs (low, high).

    Returns an array of the operand's shape: init_value, and what windows combined into it, one after the
    other in row-major order.  A window of nothing but padding takes no part.  A NaN, which nothing is greater than
    or equal to, is passed over with lax.ge and lax.gt by what comes after it.
    Raises ShapeError [C2]-[C10], DTypeError [C1].
    Source: XLA's SelectAndScatter.
    """
    nodes = operands("select_and_scatter", operand, source, init_value)
    combine = _scalar_graph("C10", "scatter", scatter, nodes[0].dtype, nodes[0].dtype)
    return _scatter_windows(nodes, select, window_dimensions, window_strides, padding, combine)


def _scatter_windows(
    nodes: tuple[Node, ...],
    select: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
    combine: Graph,
) -> Array:
    """The op over nodes of operand, source and initial value."""
    name, operand = "select_and_scatter", nodes[0]
    sizes = integers(name, "window_dimensions", window_dimensions)
    strides = integers(name, "window_strides", window_strides)
    pairs = padding_pairs(name, operand.shape, sizes, strides, padding)
    choose = _scalar_graph("C9", "select", select, operand.dtype, PREDICATE)
    return wrap(Node(ops.SelectAndScatter(sizes, strides, pairs, choose, combine), nodes))


def _scalar_graph(
    label: str, role: str, function: Callable[[Any, Any], Any], dtype: DType, result: DType
) -> Graph:
    """(a, b) -> one scalar of type `result` as a graph."""
    recorded = record_scalar(
        "select_and_scatter", label, function, tuple_of(_SCALAR, _SCALAR), [dtype, dtype], role
    )
    if recorded.structure != _SCALAR:
        raise ShapeError(
            f"select_and_scatter [{label}]: {role} must give one scalar: "
            f"{tree.difference(_SCALAR, recorded.structure)}"
        )
    return recorded.with_dtypes([result]).graph


@names_errors
def select_and_scatter_add(
    source: ArrayLike,
    operand: ArrayLike,
    select: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Padding,
) -> Array:
    """Add each element of `source` to the element of its window of `operand` that `select` chooses, from 0.

    With lax.ge the gradient of max pooling.  Bools are combined by "or".  Otherwise as select_and_scatter.
    Source: XLA's SelectAndScatter, under its name in JAX.
    """
    node, values = operands("select_and_scatter", operand, source)
    zero = constant(0, node.dtype)
    add = combiner(ops.Or() if node.dtype in BOOL else ops.Add(), node.dtype)
    nodes = (node, values, zero)
    return _scatter_windows(nodes, select, window_dimensions, window_strides, padding, add)


# --- running totals ----------------------------------------------------------------------------------


@names_errors
def cumsum(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Sums of the elements up to each one along `axis`, from the other end with `reverse`.

    In the operand's element type; integers wrap; narrow floats are added in float32 and rounded once.
    Raises AxisError, DTypeError for bools.  Source: jax.lax.cumsum.
    """
    return _cumulative("cumsum", ops.Add(), operand, axis, reverse)


@names_errors
def cumprod(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """Products of the elements up to each one along `axis`.  Types and errors as cumsum.

    Source: jax.lax.cumprod.
    """
    return _cumulative("cumprod", ops.Multiply(), operand, axis, reverse)


@names_errors
def cummax(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The largest of the elements up to each one along `axis`; NaN from the first NaN on.

    Source: jax.lax.cummax.
    """
    return _cumulative("cummax", ops.Maximum(), operand, axis, reverse)


@names_errors
def cummin(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """The smallest of the elements up to each one along `axis`; NaN from the first NaN on.

    Source: jax.lax.cummin.
    """
    return _cumulative("cummin", ops.Minimum(), operand, axis, reverse)


@names_errors
def cumlogsumexp(operand: ArrayLike, axis: int = 0, reverse: bool = False) -> Array:
    """log(sum(exp(x))) of the elements up to each one along `axis`, without overflow.

    Raises AxisError, DTypeError unless the elements are floats or complex.  Source: jax.lax.cumlogsumexp.
    """
    (node,) = operands("cumlogsumexp", operand)
    if node.dtype not in FLOAT | COMPLEX:
        raise DTypeError(
            f"cumlogsumexp: wanted floats or complex numbers, got {node.tensor_type.short()}; "
            "convert_element_type it"
        )
    graph = log_add_exp(node.dtype)
    return _running("cumlogsumexp", node, graph, -np.inf, axis, reverse)


def _cumulative(name: str, op: ops.Binary, operand: ArrayLike, axis: int, reverse: bool) -> Array:
    (node,) = operands(name, operand)
    if node.dtype in BOOL and isinstance(op, ops.Add | ops.Multiply):
        raise DTypeError(
            f"{name}: wanted numbers, got {node.tensor_type.short()}; convert_element_type it, or use "
            f"{'cummax' if isinstance(op, ops.Add) else 'cummin'}"
        )
    return _running(name, node, combiner(op, node.dtype), initial_value(op, node.dtype), axis, reverse)


def _running(
    name: str,
    node: Node,
    graph: Graph,
    neutral: Any,
    axis: int,
    reverse: bool,
) -> Array:
    """The reduction of windows that each end (or, reversed, begin) at one element."""
    rank = len(node.shape)
    dim = normalize_axis(integer(name, "axis", axis), rank)
    size = node.shape[dim]
    if not size:
        return wrap(node)
    ones = (1,) * rank
    pair = (0, size - 1) if flag(name, "reverse", reverse) else (size - 1, 0)
    sizes = tuple(size if axis == dim else 1 for axis in range(rank))
    padding = tuple(pair if axis == dim else (0, 0) for axis in range(rank))
    start = constant(neutral, node.dtype)
    return apply_op(ops.ReduceWindow(sizes, ones, ones, ones, padding, graph), (node, start))
