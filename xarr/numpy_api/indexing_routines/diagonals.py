"""Diagonals of arrays, and what is made of them."""

from __future__ import annotations

from numpy.typing import DTypeLike

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.calls.outputs import takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import AxisError, ShapeError
from xarr.lax.core import ArrayLike, integer
from xarr.numpy_api.creation.matrices import diag, diagonal_of_last_two
from xarr.numpy_api.statistics.reductions import sum as total
from xarr.runtime.view_tracking import DIAGONAL, mark
from xarr.shapes import normalize_axis

__all__ = ["diagflat", "diagonal", "trace"]


@remembers_calls
def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """The elements a[…, i, …, i + offset, …] of the dimensions axis1 and axis2, along a new last dimension.

    Raises ShapeError for rank 0 and 1, AxisError for equal axes and those out of the rank.
    Source: NumPy, `diagonal`.
    """
    array, shift = as_array(a), integer("diagonal", "offset", offset)
    if array.ndim < 2:
        raise ShapeError(f"diagonal: wanted rank 2 or more, got shape {array.shape}")
    first, second = (normalize_axis(axis, array.ndim) for axis in (axis1, axis2))
    if first == second:
        raise AxisError(f"diagonal: wanted two different axes, got {axis1} and {axis2}")
    rest = [axis for axis in range(array.ndim) if axis not in (first, second)]
    result = diagonal_of_last_two(lax.transpose(array, [*rest, first, second]), shift)
    return mark(array, result, DIAGONAL, (shift, first, second))


@takes_out("unsafe", sums=True)
def trace(
    a: ArrayLike,
    offset: int = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: Array | None = None,
) -> Array:
    """The sum of `diagonal`, with the element types of `sum`.  Source: NumPy, `trace`."""
    return total(diagonal(a, offset, axis1, axis2), axis=-1, dtype=dtype)


@remembers_calls
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """All elements, in row-major order, as diagonal k of a square matrix of zeros.  Source: NumPy, `diagflat`."""
    array = as_array(v)
    return diag(lax.reshape(array, (array.size,)), k)
