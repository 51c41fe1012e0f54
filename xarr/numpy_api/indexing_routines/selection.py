"""Functions that index: slices and elements at indices, which are checked as those of `x[indices]` are."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import stretch, truth
from xarr.calls.operands import (
    DType,
    align_observed,
    as_array,
    broadcast_operands,
    common_dtype,
    is_weak,
    promote_operands,
)
from xarr.calls.outputs import EITHER_WAY, takes_out
from xarr.calls.remembered_calls import remembers_calls
from xarr.dtypes import BOOL, INTEGER, info
from xarr.errors import ShapeError, pluralize
from xarr.indexing import take_slices
from xarr.indexing.advanced import valid_indices
from xarr.indexing.bounds import Mode
from xarr.indexing.items import item_of_integers
from xarr.ir.types import Ints, replace_at
from xarr.lax.core import ArrayLike
from xarr.lax.indexing import GatherDimensionNumbers, default_fill
from xarr.numpy_api.sorting.searching import nonzero
from xarr.shapes import normalize_axis

__all__ = ["choose", "compress", "take", "take_along_axis"]


@takes_out(EITHER_WAY)
def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: Array | None = None,
    mode: str = "raise",
    *,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The slices of `a` at `indices` along `axis`, or elements of the flattened array.

    a: array of shape (A, n, B) with n at `axis`; a scalar counts as a vector.
    indices: integers of any shape I, or bools for 0 and 1.
    mode: "raise", "wrap" (index % n), "clip" (here negative ones are 0, they do not count from the end), or as
        in `x.at[…].get` "fill", with `fill_value`, and "promise_in_bounds".

    Returns an array of shape (A, I, B).  Raises IndexingError, AxisError.  Source: NumPy, `take`; jax.numpy.
    """
    array, wanted = as_array(a), Mode.of(mode)
    if axis is None or not array.shape:
        array = lax.reshape(array, (array.size,))
    dim = 0 if axis is None else normalize_axis(axis, array.ndim)
    item = item_of_integers("take", _numbers(indices), from_end=wanted is not Mode.CLIP)
    return take_slices(array, item, dim, wanted, fill_value)


def _numbers(indices: ArrayLike) -> Array:
    """Bools as integers: for NumPy's functions they are no masks."""
    if isinstance(indices, list | tuple) and not np.size(indices):
        indices = np.empty(np.shape(indices), np.int64)  # NumPy too takes [] for integers
    array = as_array(indices)
    return lax.convert_element_type(array, "int64") if array.dtype in BOOL else array


@takes_out(EITHER_WAY)
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, out: Array | None = None) -> Array:
    """The slices of `a` along `axis`, or the elements, for which `condition`, a vector, holds.

    Raises ShapeError for another rank of the condition, IndexingError where it holds beyond the slices,
    TracedValueError for the condition of a traced function.  Source: NumPy, `compress`.
    """
    chosen = truth(condition)
    if chosen.ndim != 1:
        raise ShapeError(f"compress: wanted a condition with one dimension, got shape {chosen.shape}")
    return take(a, nonzero(chosen)[0], axis)


@takes_out("unsafe")
def choose(
    a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: Array | None = None, mode: str = "raise"
) -> Array:
    """choices[a[i]][i] for each index i of the shape to which `a` and all choices broadcast.

    mode: "raise", "wrap" or "clip" for integers outside of [0, len(choices)); none counts from the end.
    Raises IndexingError, BroadcastError, ShapeError for no choices.  Source: NumPy, `choose`.
    """
    many = choices if isinstance(choices, list | tuple) else list(as_array(choices))
    if not many:
        raise ShapeError("choose: wanted one choice at least, got none")
    dtype = common_dtype(*many)
    which, *arrays = broadcast_operands(
        "choose",
        _numbers(a),
        *promote_operands("choose", *[_wrap_choice(each, dtype) for each in many], dtype=dtype),
    )
    stacked = lax.concatenate([lax.expand_dims(array, (0,)) for array in arrays], 0)
    chosen = _gather_along(stacked, lax.expand_dims(which, (0,)), 0, Mode.of(mode), from_end=False)
    return lax.reshape(chosen, which.shape)


def _wrap_choice(choice: ArrayLike, dtype: DType) -> ArrayLike:
    """A choice; a Python int beyond the integer type of all choices is cut to its bits, as NumPy does it."""
    if dtype not in INTEGER or not is_weak(choice) or not isinstance(choice, int):
        return choice
    limits = info(dtype)
    return (choice - int(limits.min)) % 2 ** (8 * dtype.itemsize) + int(limits.min)


@remembers_calls
def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    *,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """The elements of `arr` at `indices` along `axis`: result[i, j, k] = arr[i, indices[i, j, k], k] for axis 1.

    indices: integers of the rank of `arr`; the other dimensions of both broadcast.  With axis None both are
        vectors, `arr` flattened.
    mode, fill_value: as in `x.at[…].get`.

    Raises IndexingError, AxisError, ShapeError for another rank, BroadcastError.
    Source: NumPy and Array API, `take_along_axis`; modes as in jax.numpy.
    """
    array, numbers = as_array(arr), as_array(indices)
    array, dim = axis_of_indices("take_along_axis", array, numbers, axis)
    return _gather_along(array, numbers, dim, Mode.of(mode), fill_value=fill_value)


def axis_of_indices(name: str, array: Array, indices: Array, axis: int | None) -> tuple[Array, int]:
    """The array, flattened for axis None, and the dimension meant, for indices of its rank."""
    if axis is None:
        array, axis = lax.reshape(array, (array.size,)), 0
    if array.ndim != indices.ndim:
        raise ShapeError(
            f"{name}: wanted indices with {pluralize(array.ndim, 'dimension')}, as the array of shape "
            f"{array.shape}, got shape {indices.shape}"
        )
    return array, normalize_axis(axis, array.ndim)


def _gather_along(
    array: Array,
    indices: Array,
    dim: int,
    mode: Mode,
    from_end: bool = True,
    fill_value: ArrayLike | None = None,
) -> Array:
    size, count = array.shape[dim], indices.shape[dim]
    others = tuple([each for each in range(array.ndim) if each != dim])
    item = item_of_integers("take_along_axis", indices, from_end)
    positions = valid_indices(item, dim, size, mode, array._node.device)
    positions = positions if positions.shape == indices.shape else lax.reshape(positions, indices.shape)
    shape = spread("take_along_axis", array, indices, dim)
    array, positions = (
        stretch(array, replace_at(shape, dim, size)),
        stretch(positions, replace_at(shape, dim, count)),
    )
    if not size and 0 not in positions.shape:
        return lax.full_like(
            positions, default_fill(array.dtype) if fill_value is None else fill_value, array.dtype
        )
    return lax.gather(
        array,
        positions,
        GatherDimensionNumbers((), (dim,), (dim,), others, others),
        [min(1, each) for each in array.shape],
        mode="fill" if mode is Mode.FILL else None,
        fill_value=fill_value,
        index_vector_dim=array.ndim,
    )


def spread(name: str, array: Array, indices: Array, dim: int) -> Ints:
    """The shape to which array and indices broadcast, with size 1 at `dim`."""
    shapes = (replace_at(array.shape, dim, 1), replace_at(indices.shape, dim, 1))
    return align_observed(name, shapes, (array.dtype, indices.dtype)).result
