"""Sorting at the explicit level: in total order by keys, or by any comparator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX
from xarr.errors import DTypeError, InputError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.computations import descending, lexicographic
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, flag, integer, operands
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.movement import slice_in_dim
from xarr.lax.tracing import record_scalar, results_of, tuple_of
from xarr.shapes import normalize_axis
from xarr.tree import LEAF

_INT32: Final = np.dtype(np.int32)


@names_errors
def sort(operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1) -> Any:
    """Order along `dimension`, ascending, one array or a sequence of arrays together.

    operand: array of shape S, or a tuple or list of arrays of shape S, of which the first `num_keys` are the
        keys, the first the most important, and the others follow them.
    is_stable: whether elements with equal keys keep their order.

    -0 and +0 are equal, so are all NaNs, which come last; complex numbers go by real part, then imaginary
    part.
    Returns what was given: an Array, or a tuple of Arrays.
    Raises ShapeError [C1], AxisError, ValueRangeError for num_keys.
    Source: XLA's Sort, with jax.lax's arguments.
    """
    several = isinstance(operand, tuple | list)
    arrays = operand if several else (operand,)
    nodes, dim = _sorted_nodes(arrays, dimension)
    count = integer("sort", "num_keys", num_keys)
    if not 1 <= count <= len(nodes):
        raise ValueRangeError(
            f"sort: wanted num_keys in [1, {len(nodes)}], one for each key array, got {count}"
        )
    comparator = lexicographic([node.dtype for node in nodes], count)
    results = results_of(ops.Sort(dim, flag("sort", "is_stable", is_stable), comparator), nodes, len(nodes))
    return tuple(results) if several else results[0]


def _sorted_nodes(arrays: Sequence[ArrayLike], dimension: int) -> tuple[tuple[Node, ...], int]:
    if not arrays:
        raise ShapeError("sort [C1]: wanted at least one array, got none")
    nodes = operands("sort", *arrays)
    rank = len(nodes[0].shape)
    return nodes, normalize_axis(integer("sort", "dimension", dimension), rank, name="dimension")


@names_errors
def sort_key_val(keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True) -> Any:
    """`keys` in order along `dimension`, and `values` under the same permutation.

    Source: jax.lax.sort_key_val.
    """
    return sort((keys, values), dimension, is_stable)


@names_errors
def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """The `k` largest along `axis`, in descending order, and where they stand, as int32.

    Of equals the first comes first; floats are in total order, so that NaN is larger than infinity.
    Raises ValueRangeError for a k beyond the size, AxisError, DTypeError for complex numbers.
    Source: jax.lax.top_k.
    """
    (node,) = operands("top_k", operand)
    if node.dtype in COMPLEX:
        raise DTypeError(f"top_k: wanted real numbers, got {node.tensor_type.short()}; take abs() or .real")
    dim = normalize_axis(integer("top_k", "axis", axis), len(node.shape))
    refuse_dynamic("top_k", node, "sort", (dim,))
    count = integer("top_k", "k", k)
    if not 0 <= count <= node.shape[dim]:
        raise ValueRangeError(
            f"top_k: wanted k in [0, {node.shape[dim]}], the size along axis {dim}, got {k}"
        )
    numbers = Node(ops.Iota(TensorType(node.shape, _INT32), dim))
    results = results_of(ops.Sort(dim, True, descending(node.dtype, _INT32)), (node, numbers), 2)
    largest, where = (slice_in_dim(each, 0, count, axis=dim) for each in results)
    return largest, where


@names_errors
def sort_with(
    operands: Any, comparator: Callable[..., Any], dimension: int = -1, is_stable: bool = True
) -> Any:
    """Order along `dimension` by `comparator(a0, b0, a1, b1, …)`: whether a comes before b.

    operands: array, or tuple or list of N arrays, of one shape.
    comparator: takes a pair of scalars for each array and gives one bool; it uses nothing but its arguments
        and should be a strict weak order (a before b excludes b before a).

    Returns what was given.  Raises ShapeError [C1] for the arrays, [C3] for the comparator.
    Source: XLA's Sort.
    """
    several = isinstance(operands, tuple | list)
    nodes, dim = _sorted_nodes(operands if several else (operands,), dimension)
    if not callable(comparator):
        raise InputError(f"sort_with: wanted a function for comparator, got {comparator!r}")
    dtypes = [node.dtype for node in nodes for _ in range(2)]
    recorded = record_scalar(
        "sort_with", "C3", comparator, tuple_of(*[LEAF] * len(dtypes)), dtypes, "comparator"
    )
    if recorded.structure != LEAF:
        raise ShapeError(
            f"sort_with [C3]: wanted a comparator with one bool result, got {recorded.structure}"
        )
    results = results_of(ops.Sort(dim, bool(is_stable), recorded.graph), nodes, len(nodes))
    return tuple(results) if several else results[0]
