"""Indices that are computed from numbers in arrays: the windows of a gather and a scatter.

A number is never used as an index before it has been brought into the array, or is known to lie in it, so no
index, however large or negative, reads or writes elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np

from xarr.compiler.loop_ir.index_ranges import Ranges
from xarr.compiler.loop_ir.loops import Affine
from xarr.compiler.loop_ir.scalars import INT64, Value
from xarr.ir.ops.indexing import Windows

Index: TypeAlias = tuple[Affine, ...]

_UINT64: Final = np.dtype(np.uint64)
_LARGEST: Final = 2**63 - 1


def as_int64(number: Value) -> Value:
    """An integer as int64; a uint64 that does not fit becomes the largest."""
    if number.dtype == _UINT64 and _range_of(number)[1] > _LARGEST:
        number = number.gt(_LARGEST).select(_LARGEST, number)
    return number.convert(INT64)


def clamp_index(number: Value, last: int) -> Value:
    """An integer brought into [0, last], as int64."""
    number = as_int64(number)
    low, high = _range_of(number)
    if low < 0:
        number = number.lt(0).select(0, number)
    return number.gt(last).select(last, number) if high > last else number


def is_inside(number: Value, last: int) -> Value | None:
    """Whether an integer is in [0, last]; None if it always is."""
    number = as_int64(number)
    low, high = _range_of(number)
    within = number.ge(0) if low < 0 else None
    if high <= last:
        return within
    return number.le(last) if within is None else within & number.le(last)


def _range_of(number: Value) -> tuple[float, float]:
    """The range of a number, wherever the indices of the loops around are."""
    return Ranges({}).of(number)


def components(
    windows: Windows, rank: int, batch: Index, element: Callable[[Index], Value]
) -> Iterator[tuple[int, int, Value]]:
    """The parts of the index vector at `batch`: operand dimension, greatest start there, the number given.

    `element` reads the indices, an array of `rank` dimensions.
    """
    at = windows.index_vector_dim
    for number, (dim, last) in enumerate(zip(windows.index_map, windows.last_starts, strict=True)):
        vector = () if at == rank else (Affine((), number),)
        yield dim, last, element((*batch[:at], *vector, *batch[at:]))


def gather_index(windows: Windows, rank: int, index: Index, element: Callable[[Index], Value]) -> Index:
    """The operand's index of the result's element at `index`, for a gather."""
    batch = tuple(index[dim] for dim in windows.batch_dims)
    operand_index = [Affine()] * len(windows.operand_shape)
    for dim, last, number in components(windows, rank, batch, element):
        if last:  # else the window fits at one index only
            operand_index[dim] = Affine(((clamp_index(number, last), 1),))
    for dim, position in windows.batching:
        operand_index[dim] = batch[position]
    for dim, own in zip(windows.kept_dims, windows.window_dims, strict=True):
        operand_index[dim] = operand_index[dim] + index[own]
    return tuple(operand_index)
