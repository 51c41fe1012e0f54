"""The elements along some axes of an array as lines: what order statistics sort and look into."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from xarr import lax
from xarr.base.records import record
from xarr.functions._arguments import is_nan, stretch
from xarr.functions._searches import sort_by_keys
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.shapes import normalize_axes

if TYPE_CHECKING:
    from xarr.arrays.array import Array

Axis = int | Sequence[int] | None


@record
class Lines:
    """A matrix with a line for each result of a reduction, in row-major order.

    kept: the shape of the results; with_ones: the same with size 1 in the reduced dimensions.
    """

    values: Array
    kept: tuple[int, ...]
    with_ones: tuple[int, ...]

    @classmethod
    def of(cls, name: str, array: Array, axis: Axis) -> Lines:
        """The lines along `axis`, all dimensions for None.  Raises AxisError."""
        refuse_dynamic(name, array, "xarr.sort of its live part")
        axes = normalize_axes(axis, array.ndim)
        others = [dim for dim in range(array.ndim) if dim not in axes]
        kept = tuple(array.shape[dim] for dim in others)
        length = math.prod(array.shape[dim] for dim in axes)
        moved = lax.transpose(array, (*others, *axes))
        ones = tuple(1 if dim in axes else size for dim, size in enumerate(array.shape))
        return cls(lax.reshape(moved, (math.prod(kept), length)), kept, ones)

    @property
    def length(self) -> int:
        return self.values.shape[1]

    def sorted(self) -> Lines:
        """With the elements of each line in order, NaN last."""
        ((values,), _) = sort_by_keys((self.values,), (), 1)
        return Lines(values, self.kept, self.with_ones)

    def column(self, place: int) -> Array:
        """The element at `place` of each line."""
        return lax.reshape(lax.slice_in_dim(self.values, place, place + 1, axis=1), self.values.shape[:1])

    def at(self, places: Array) -> Array:
        """The elements at int64 `places`, of shape (…, number of lines)."""
        lines, length = self.values.shape
        starts = lax.mul(lax.broadcasted_iota(np.int64, places.shape, len(places.shape) - 1), length)
        flat = lax.reshape(self.values, (lines * length,))
        return lax.take(flat, lax.add(starts, places), 0)

    def numbers(self) -> Array:
        """How many elements of each line are no NaN, as int64."""
        counted = lax.convert_element_type(lax.bitwise_not(is_nan(self.values)), np.int64)
        return lax.reduce_sum(counted, (1,))

    def shaped(self, results: Array, before: tuple[int, ...] = (), *, keepdims: bool = False) -> Array:
        """Results of shape (…, number of lines) in the shape of the reduction, after the dimensions `before`."""
        return lax.reshape(results, (*before, *(self.with_ones if keepdims else self.kept)))


def along(vector: Array, shape: tuple[int, ...], dimension: int) -> Array:
    """A vector, or a scalar, repeated in `shape` along all dimensions but one."""
    return stretch(vector, shape) if not vector.shape else lax.broadcast_in_dim(vector, shape, (dimension,))
