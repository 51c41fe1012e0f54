"""The elements along some axes of an array as lines: what order statistics sort and look into."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from xarr import lax
from xarr.base.frozen_dataclasses import record
from xarr.base.typing import Array
from xarr.calls.arguments import is_nan, stretch
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.sorting.order import sort_by_keys
from xarr.shapes import normalize_axes

Axis = int | Sequence[int] | None


@record
class Lines:
    """A matrix with a line for each result of a reduction, in row-major order.

    kept: the shape of the results; with_ones: the same with size 1 in the reduced dimensions.
    """

    values: Array
    outer_shape: tuple[int, ...]
    with_ones: tuple[int, ...]

    @classmethod
    def along_axes(cls, name: str, array: Array, axis: Axis) -> Lines:
        """The lines along `axis`, all dimensions for None.  Raises AxisError."""
        refuse_dynamic(name, array, "xarr.sort of its live part")
        axes = normalize_axes(axis, array.ndim)
        others = [dim for dim in range(array.ndim) if dim not in axes]
        outer_shape = tuple(array.shape[dim] for dim in others)
        length = math.prod(array.shape[dim] for dim in axes)
        moved = lax.transpose(array, (*others, *axes))
        ones = tuple(1 if dim in axes else size for dim, size in enumerate(array.shape))
        return cls(lax.reshape(moved, (math.prod(outer_shape), length)), outer_shape, ones)

    @property
    def length(self) -> int:
        return self.values.shape[1]

    def sort(self) -> Lines:
        """Sort the elements of each line, NaN last."""
        ((values,), _) = sort_by_keys((self.values,), (), 1)
        return Lines(values, self.outer_shape, self.with_ones)

    def column(self, index: int) -> Array:
        """The element at `index` of each line."""
        return lax.reshape(lax.slice_in_dim(self.values, index, index + 1, axis=1), self.values.shape[:1])

    def elements_at(self, indices: Array) -> Array:
        """The elements at int64 `indices`, of shape (…, number of lines)."""
        lines, length = self.values.shape
        starts = lax.mul(lax.broadcasted_iota(np.int64, indices.shape, len(indices.shape) - 1), length)
        flat = lax.reshape(self.values, (lines * length,))
        return lax.take(flat, lax.add(starts, indices), 0)

    def numbers(self) -> Array:
        """Count the elements of each line that are no NaN, as int64."""
        counted = lax.convert_element_type(lax.bitwise_not(is_nan(self.values)), np.int64)
        return lax.reduce_sum(counted, (1,))

    def reshape_results(
        self, results: Array, before: tuple[int, ...] = (), *, keepdims: bool = False
    ) -> Array:
        """Reshape results (…, number of lines) to the shape of the reduction, after the dimensions `before`."""
        return lax.reshape(results, (*before, *(self.with_ones if keepdims else self.outer_shape)))


def repeat_vector(vector: Array, shape: tuple[int, ...], dimension: int) -> Array:
    """Repeat a vector, or a scalar, in `shape` along all dimensions but one."""
    return stretch(vector, shape) if not vector.shape else lax.broadcast_in_dim(vector, shape, (dimension,))
