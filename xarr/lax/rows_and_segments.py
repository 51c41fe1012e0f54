"""Gathers and scatters that write their dimension numbers themselves: rows, and sums over segments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import highest, lowest
from xarr.errors import IndexingError, ShapeError
from xarr.ir.constants import constant
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, broadcast_node, integer, operands
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.lax.indexing import (
    GatherDimensionNumbers,
    Mode,
    ScatterDimensionNumbers,
    ScatterFunction,
    gather,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from xarr.runtime.handles import wrap
from xarr.shapes import check_sizes, normalize_axis


@names_errors
def take(
    x: ArrayLike, indices: ArrayLike, axis: int, *, mode: Mode = None, fill_value: ArrayLike | None = None
) -> Array:
    """The slices of `x` at `indices` along `axis`.

    x: array of shape (A, n, B) with n at `axis`.  indices: integers of any shape I.
    mode, fill_value: as in gather; by default an index out of bounds takes the nearest slice.  A negative
        one is out of bounds, it does not count from the end.

    Returns an array of shape (A, I, B).  Raises AxisError, DTypeError [I2] for indices that are no integers,
    IndexingError where there is no slice to take.  Source: jax.numpy.take, by XLA's Gather.
    """
    (node,) = operands("take", x)
    (rows,) = operands("take", indices)
    shape, rank = node.shape, len(rows.shape)
    dim = normalize_axis(integer("take", "axis", axis), len(shape))
    if not shape[dim] and rows.tensor_type.size:
        raise IndexingError(
            f"take: dimension {dim} of {node.tensor_type.short()} is empty and has no slice to take"
        )
    offset = (*range(dim), *range(dim + rank, len(shape) - 1 + rank))
    sizes = replace_at(shape, dim, min(1, shape[dim]))
    numbers = GatherDimensionNumbers(offset, (dim,), (dim,))
    return gather(x, indices, numbers, sizes, mode=mode, fill_value=fill_value, index_vector_dim=rank)


@names_errors
def gather_rows(
    x: ArrayLike, indices: ArrayLike, *, mode: Mode = None, fill_value: ArrayLike | None = None
) -> Array:
    """x[indices] for rows: `take` along the first dimension.  Source: XLA's Gather."""
    return take(x, indices, 0, mode=mode, fill_value=fill_value)


def _segment(
    name: str, what: str, combine: ScatterFunction, neutral: Callable[[np.dtype[Any]], Any]
) -> Callable[..., Array]:
    def function(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
    ) -> Array:
        (node,) = operands(name, data)
        (ids,) = operands(name, segment_ids)
        rank = len(ids.shape)
        if not rank or node.shape[:rank] != ids.shape:
            raise ShapeError(
                f"{name}: wanted segment_ids of the leading dimensions of data {node.tensor_type.short()}, "
                f"got {ids.tensor_type.short()}"
            )
        refuse_dynamic(name, node, "scatter into an array of these sizes", range(rank, len(node.shape)))
        (count,) = check_sizes((integer(name, "num_segments", num_segments),))
        start = constant(neutral(node.dtype), node.dtype)
        empty = broadcast_node(start, (count, *node.shape[rank:]), ())
        numbers = ScatterDimensionNumbers(range(rank, len(node.shape)), (0,), (0,))
        return combine(
            wrap(empty), segment_ids, data, numbers,
            indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
            mode=mode, index_vector_dim=rank,
        )  # fmt: skip

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"{what} of the rows of `data` with the same segment id, the neutral element if there are none.\n\n"
        "data: array of shape (I, R).  segment_ids: integers of shape I; ids outside [0, num_segments) are\n"
        '    left out unless `mode` is "clip".\n\n'
        "Returns an array of shape (num_segments, R), combined in data's element type and in order.\n"
        "Raises ShapeError, DTypeError [I2].  Source: jax.ops, where num_segments is optional."
    )
    return names_errors(function)


segment_sum = _segment("segment_sum", "The sums", scatter_add, lambda dtype: 0)
segment_prod = _segment("segment_prod", "The products", scatter_mul, lambda dtype: 1)
segment_max = _segment("segment_max", "The greatest", scatter_max, lowest)
segment_min = _segment("segment_min", "The least", scatter_min, highest)
