"""Reductions of the explicit level: by any computation, by the common ones, and the indices of extremes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import (
    BOOL,
    COMPLEX,
    FLOAT,
    INTEGER,
    canonical,
    highest,
    lowest,
    widen_dtype,
)
from xarr.errors import DTypeError, ShapeError
from xarr.ir import ops
from xarr.ir.computations import arg_extremum, combiner
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, integer, integers, operands
from xarr.lax.dynamic_sizes import refuse_empty
from xarr.lax.tracing import record_scalar, results_of, tuple_of
from xarr.runtime.handles import wrap
from xarr.runtime.small_ops import apply_op
from xarr.shapes import normalize_axis
from xarr.tree import Structure

DType = np.dtype[Any]


@names_errors
def reduce(
    operands: Any, init_values: Any, computation: Callable[..., Any], dimensions: Sequence[int]
) -> Any:
    """Combine the elements along `dimensions` by `computation`, for one array or a pytree of N at once.

    operands: array, or pytree of arrays, of one shape S.
    init_values: a scalar for each, in the same structure; a Python scalar takes its array's element type.
    computation: (accumulators, elements) -> accumulators, on scalars, in the structure of `operands`; it
        should be associative, with `init_values` neutral, and may use nothing but its arguments.
    dimensions: non-negative dimension numbers.

    Returns arrays of shape S without `dimensions`; `init_values` where a dimension has size 0.
    Raises ShapeError [C1]-[C4], DTypeError for a Python scalar that the element type cannot hold.
    Source: XLA's Reduce, with jax.lax's arguments.
    """
    arrays, structure = tree.flatten(operands)
    initial, its = tree.flatten(init_values)
    if its != structure or not arrays:
        raise ShapeError(
            "reduce [C1]: wanted N >= 1 arrays and N initial values in one structure, "
            f"got {structure} and {its}"
        )
    nodes, starts = with_initial("reduce", arrays, initial)
    axes = integers("reduce", "dimensions", dimensions)
    graph = combiner_graph("reduce", "C4", computation, structure, [node.dtype for node in nodes])
    results = results_of(ops.Reduce(axes, graph), (*nodes, *starts), len(nodes))
    return tree.unflatten(structure, results)


def with_initial(name: str, arrays: Sequence[Any], initial: Sequence[Any]) -> tuple[list[Node], list[Node]]:
    """The nodes of arrays, those of initial values, where Python scalars take their array's element type."""
    nodes, starts = [], []
    for array, value in zip(arrays, initial, strict=True):
        node, start = operands(name, array, value)
        nodes.append(node)
        starts.append(start)
    return nodes, starts


def combiner_graph(
    name: str, label: str, computation: Callable[..., Any], structure: Structure, dtypes: Sequence[DType]
) -> Graph:
    """(accumulators, elements) -> accumulators as a graph; ShapeError with `label` for another structure."""
    recorded = record_scalar(name, label, computation, tuple_of(structure, structure), [*dtypes, *dtypes])
    if recorded.structure != structure:
        raise ShapeError(
            f"{name} [{label}]: the computation must return the structure that it accumulates: "
            f"{tree.difference(structure, recorded.structure)}"
        )
    return recorded.with_dtypes(dtypes).graph


def initial_value(op: ops.Binary, dtype: DType) -> Any:
    """The value that a reduction by an op starts from: its identity; of a sum 0, as in jax.lax."""
    return 0 if isinstance(op, ops.Add) else op.identity(dtype)


def _reduce_by(name: str, op: ops.Binary, operand: ArrayLike, axes: Sequence[int]) -> Array:
    (node,) = operands(name, operand)
    value = initial_value(op, node.dtype)
    if node.dtype in COMPLEX and 0 in node.shape:
        value = complex(value.real)  # what XLA gives for no elements; no complex number is beyond it
    start = constant(value, node.dtype)
    reduction = ops.Reduce(integers(name, "axes", axes), combiner(op, node.dtype))
    return apply_op(reduction, (node, start))


def _refuse_bool(name: str, operand: ArrayLike, instead: str) -> None:
    (node,) = operands(name, operand)
    if node.dtype in BOOL:
        raise DTypeError(
            f"{name}: wanted numbers, got {node.tensor_type.short()}; use {instead}, or "
            "convert_element_type first"
        )


@names_errors
def reduce_sum(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Sum over `axes`, in the operand's element type; integers wrap; 0 for no elements.

    Narrow floats accumulate in float32 and round once.  Raises ShapeError [C3] for axes that are not distinct
    and in range, DTypeError for bools.  Source: jax.lax.reduce_sum, XLA's Reduce.
    """
    _refuse_bool("reduce_sum", operand, "reduce_or")
    return _reduce_by("reduce_sum", ops.Add(), operand, axes)


@names_errors
def reduce_prod(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Product over `axes`, in the operand's element type; 1 for no elements.  Errors as reduce_sum.

    Source: jax.lax.reduce_prod, XLA's Reduce.
    """
    _refuse_bool("reduce_prod", operand, "reduce_and")
    return _reduce_by("reduce_prod", ops.Multiply(), operand, axes)


@names_errors
def reduce_max(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The largest over `axes`, NaN if there is one; -inf or the least value of the type for no elements.

    Source: jax.lax.reduce_max, XLA's Reduce.
    """
    return _reduce_by("reduce_max", ops.Maximum(), operand, axes)


@names_errors
def reduce_min(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """The smallest over `axes`, NaN if there is one; inf or the largest value of the type for no elements.

    Source: jax.lax.reduce_min, XLA's Reduce.
    """
    return _reduce_by("reduce_min", ops.Minimum(), operand, axes)


@names_errors
def reduce_and(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Logical and of bools, bitwise and of integers; all bits set for no elements.

    Source: jax.lax.reduce_and, XLA's Reduce.
    """
    return _reduce_by("reduce_and", ops.And(), operand, axes)


@names_errors
def reduce_or(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Logical or of bools, bitwise or of integers; 0 for no elements.

    Source: jax.lax.reduce_or, XLA's Reduce.
    """
    return _reduce_by("reduce_or", ops.Or(), operand, axes)


@names_errors
def reduce_xor(operand: ArrayLike, axes: Sequence[int]) -> Array:
    """Logical exclusive or of bools, bitwise of integers; 0 for no elements.

    Source: jax.lax.reduce_xor, XLA's Reduce.
    """
    return _reduce_by("reduce_xor", ops.Xor(), operand, axes)


@names_errors
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index, as `index_dtype`, of the largest element along `axis`.

    The first NaN counts as the largest, else the first of equal elements.
    Raises ShapeError for an empty dimension, DTypeError for an index type that is no integer or for complex
    elements.  Source: jax.lax.argmax.
    """
    return _arg_extremum("argmax", "GT", operand, axis, index_dtype)


@names_errors
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    """The index of the smallest element along `axis`; NaN, ties and errors as argmax.

    Source: jax.lax.argmin.
    """
    return _arg_extremum("argmin", "LT", operand, axis, index_dtype)


def _arg_extremum(name: str, direction: str, operand: ArrayLike, axis: int, index_dtype: DTypeLike) -> Array:
    (node,) = operands(name, operand)
    dim = normalize_axis(integer(name, "axis", axis), len(node.shape))
    indices = canonical(index_dtype)
    if indices not in INTEGER:
        raise DTypeError(f"{name}: wanted an integer index_dtype, got {indices}")
    if widen_dtype(node.dtype) not in FLOAT | INTEGER | BOOL:
        raise DTypeError(
            f"{name}: complex numbers have no order, got {node.tensor_type.short()}; take abs or real"
        )
    if not node.shape[dim]:
        raise ShapeError(
            f"{name}: dimension {dim} of {node.tensor_type.short()} is empty and has no extreme element"
        )
    positions = Node(ops.Iota(TensorType(node.shape, indices), dim))
    neutral = (lowest if direction == "GT" else highest)(node.dtype)
    starts = [constant(v, t) for v, t in ((neutral, node.dtype), (0, indices))]
    reduction = ops.Reduce((dim,), arg_extremum(direction, node.dtype, indices))
    indices_there = results_of(reduction, (node, positions, *starts), 2)[1]
    return refuse_empty(name, indices_there, wrap(node), (dim,))
