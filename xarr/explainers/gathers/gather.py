"""`explain_gather` and `explain_scatter`: of what is given the windows, and their starts where these are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, Final, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike

from xarr import tree
from xarr.base.configuration import current as config
from xarr.errors import InputError, ShapeError
from xarr.explainers.gathers.window_explanation import WindowExplanation
from xarr.explainers.operands import read_lists
from xarr.ir.computations import scalars
from xarr.ir.graph import Graph, Node, postorder
from xarr.ir.ops import Gather, Scatter
from xarr.ir.ops.indexing import Windows
from xarr.ir.types import Ints, TensorType
from xarr.lax.core import integers
from xarr.lax.indexing import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    dimension_fields,
    vector_dimension,
)
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.materialisation import to_host

_ELEMENT, _INDEX = np.dtype(np.float32), np.dtype(np.int64)


def explain_gather(
    operand: Any,
    start_indices: Any = None,
    dimension_numbers: Any = None,
    slice_sizes: Sequence[SupportsIndex] | None = None,
    *,
    index_vector_dim: int | None = None,
    indices: ArrayLike | None = None,
) -> WindowExplanation:
    """Explain `lax.gather(operand, start_indices, dimension_numbers, slice_sizes)`.

    operand, start_indices: arrays, or shapes given as tuples or lists of ints.  The values of given indices
        are shown: which element goes where, and what is out of bounds.
    index_vector_dim: as in `lax.gather`, by default the last dimension of the indices.
    indices: values beside a shape of the indices; without any the picture shows an example.

    Of a function alone, as in `explain_gather(lambda: lax.take(x, i))`, or of an Array not yet evaluated, the gather in
    it is explained.

    Raises InputError for arguments of another kind and unless there is one gather, ShapeError [C1]-[C21] for
    numbers that do not fit.
    """
    if dimension_numbers is None and start_indices is None:
        return explain_node(_the_node("explain_gather", Gather, operand))
    offset, collapsed, index_map, batching, own_batching = dimension_fields(
        "explain_gather", dimension_numbers, GatherDimensionNumbers
    )
    whole, starts = (
        TensorType(_shape("explain_gather", shape), dtype)
        for shape, dtype in ((operand, _ELEMENT), (start_indices, _INDEX))
    )
    sizes = integers("explain_gather", "slice_sizes", slice_sizes)
    vector_dim = vector_dimension("explain_gather", starts.rank, index_vector_dim)
    op = Gather(offset, collapsed, batching, own_batching, index_map, vector_dim, sizes)
    op.infer(whole, starts)
    windows = op.windows(whole, starts)
    values = _values(start_indices) if indices is None else indices
    return WindowExplanation(
        "gather", starts.shape, windows, _vectors("explain_gather", windows, starts.shape, values)
    )


def explain_scatter(
    operand: Any,
    scatter_indices: Any = None,
    updates: Any = None,
    dimension_numbers: Any = None,
    *,
    index_vector_dim: int | None = None,
    indices: ArrayLike | None = None,
) -> WindowExplanation:
    """Explain a `lax.scatter…(operand, scatter_indices, updates, dimension_numbers)`.

    operand, scatter_indices, updates: arrays, or shapes given as tuples or lists of ints.  The values of given
        indices are shown: which element goes where, and what is left out.
    index_vector_dim: as in `lax.scatter`, by default the last dimension of the indices.
    indices: values beside a shape of the indices; without any the picture shows an example.

    Of a function alone, as in `explain_scatter(lambda: lax.segment_sum(x, i))`, or of an Array not yet evaluated, the
    scatter in it is explained.

    Raises InputError for arguments of another kind and unless there is one scatter, ShapeError [C1]-[C22] for
    numbers that do not fit.
    """
    if dimension_numbers is None and scatter_indices is None:
        return explain_node(_the_node("explain_scatter", Scatter, operand))
    window, inserted, index_map, batching, own_batching = dimension_fields(
        "explain_scatter", dimension_numbers, ScatterDimensionNumbers
    )
    whole, starts, parts = (
        TensorType(_shape("explain_scatter", shape), dtype)
        for shape, dtype in ((operand, _ELEMENT), (scatter_indices, _INDEX), (updates, _ELEMENT))
    )
    old, new = scalars(_ELEMENT, _ELEMENT)
    vector_dim, replacing = (
        vector_dimension("explain_scatter", starts.rank, index_vector_dim),
        Graph((old, new), [new]),
    )
    op = Scatter(window, inserted, batching, own_batching, index_map, vector_dim, replacing)
    op.infer(whole, starts, parts)
    windows = op.windows(whole, starts, parts)
    values = _values(scatter_indices) if indices is None else indices
    return WindowExplanation(
        "scatter", starts.shape, windows, _vectors("explain_scatter", windows, starts.shape, values)
    )


# --- arguments ---------------------------------------------------------------------------------------


def _the_node(name: str, kind: type[Gather | Scatter], what: Any) -> Node:
    """The one gather or scatter that a function, or an Array not yet evaluated, stands for."""
    if not callable(what) and not isinstance(what, Handle):
        raise InputError(
            f"{name}: wanted operand, indices and dimension numbers, or a function; got {what!r}"
        )
    with config(small_arrays="lazy"):  # what is computed knows no more how
        results = tree.flatten(what() if callable(what) else what)[0]
    nodes = [result._node for result in results if isinstance(result, Handle)]
    matches: list[Node] = [node for node in postorder(nodes) if isinstance(node.op, kind)]
    if len(matches) != 1:
        raise InputError(
            f"{name}: wanted one {kind.lax_name} to explain, got {len(matches)}; give a function that makes "
            "one, such as lambda: lax.take(x, i) (an evaluated Array no longer knows which op made it)"
        )
    return matches[0]


def explain_node(node: Node, evaluates: bool = True) -> WindowExplanation:
    """Explain the node of a gather or scatter; `evaluates` says whether indices are computed, to be shown."""
    op, types = node.op, [operand.tensor_type for operand in node.operands]
    assert isinstance(op, Gather | Scatter)
    if isinstance(op, Gather):
        windows, at = op.windows(types[0], types[1]), 1
    else:
        at = len(types) // 2
        windows = op.windows(types[0], types[at], types[at + 1])
    starts = node.operands[at]
    known = not starts.traced if evaluates else isinstance(starts.value, np.ndarray)
    values = np.asarray(to_host(wrap(starts))) if known else None
    name = "gather" if isinstance(op, Gather) else "scatter"
    vectors = _vectors(f"explain_{name}", windows, types[at].shape, values)
    explained = WindowExplanation(name, types[at].shape, windows, vectors)
    return replace(explained, combine=_combination(op)) if isinstance(op, Scatter) else explained


#: How Python writes what a scatter does with an element and its update, by the function of `xarr.lax`.
_COMBINATIONS: Final = {
    "add": "{0} += {1}",
    "sub": "{0} -= {1}",
    "mul": "{0} *= {1}",
    "max": "{0} = max({0}, {1})",
    "min": "{0} = min({0}, {1})",
}


def _combination(op: Scatter) -> str:
    """A template for combining an element of one array with an update: one operation where it is one, else `f`."""
    graph = op.update_computation
    if len(graph.results) == 1:
        result = graph.results[0]
        if result is graph.parameters[1]:
            return "{0} = {1}"
        if tuple(result.operands) == tuple(graph.parameters):
            return _COMBINATIONS.get(result.op.lax_name, WindowExplanation.combine)
    return WindowExplanation.combine


def _values(argument: Any) -> Any:
    """The values of indices that are an array, None of a shape and of what is being traced."""
    if isinstance(argument, Handle):
        return None if argument._node.traced else np.asarray(to_host(argument))
    return argument if isinstance(argument, np.ndarray) or _is_nested(argument) else None


def _is_nested(argument: Any) -> bool:
    """Whether it is a list of lists, which is an array, where a list of ints is a shape."""
    return isinstance(argument, list) and any(isinstance(entry, list) for entry in argument)


def _shape(name: str, sizes: Any) -> Ints:
    if isinstance(sizes, Handle | np.ndarray) or _is_nested(sizes):
        array = sizes._node.tensor_type if isinstance(sizes, Handle) else read_lists(name, sizes)
        return tuple(array.shape)
    shape = integers(name, "a shape", sizes)
    if any(size < 0 for size in shape):
        raise ShapeError(f"wanted sizes of 0 or more, got the shape {shape}")
    return shape


def _vectors(name: str, windows: Windows, shape: Ints, indices: ArrayLike | None) -> Any:
    """The index vectors as an array (windows, components), None if they are not known."""
    if indices is None:
        return None
    values = read_lists(name, indices)
    if values.dtype.kind not in "iu" or values.shape != shape:
        raise InputError(
            f"{name}: wanted integer indices of shape {shape}, got {values.dtype} of {values.shape}"
        )
    if windows.index_vector_dim == values.ndim:
        return values.reshape(-1, 1)
    components = values.shape[windows.index_vector_dim]
    return np.moveaxis(values, windows.index_vector_dim, -1).reshape(prod(windows.batch_shape), components)
