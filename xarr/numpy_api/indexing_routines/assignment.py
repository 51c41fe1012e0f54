"""Functions that change elements of an array.

As `x[i] = v` does, they make the Array that they are given show another value, and change no other Array; they
return None, as NumPy's.  With `inplace=False` they leave it and return the new Array instead, as jax.numpy's.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr import indexing, lax
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.calls.arguments import truth
from xarr.calls.concrete_values import refuse_traced
from xarr.calls.operands import as_array, broadcast_operands
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import InputError, ShapeError
from xarr.indexing.advanced import valid_indices
from xarr.indexing.assigned_values import convert_value, fit_value
from xarr.indexing.bounds import Mode
from xarr.indexing.flat import flatten, put as put_flat, repeat_values
from xarr.indexing.items import item_of_integers
from xarr.ir.types import replace_at
from xarr.lax.core import ArrayLike, flag
from xarr.numpy_api.indexing_routines.selection import axis_of_indices, compress
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import to_host

__all__ = ["extract", "fill_diagonal", "place", "put", "put_along_axis", "putmask"]


def _array_to_change(name: str, arr: ArrayLike, inplace: bool) -> Array:
    """The array to change.  InputError for what is no Array unless a new one is asked for."""
    if flag(name, "inplace", inplace) and not isinstance(arr, Handle):
        raise InputError(
            f"{name}: wanted an xarr Array to change, got {type(arr).__name__}; inplace=False returns a new one"
        )
    return as_array(arr)


def _return_or_show(array: Array, result: Array, inplace: bool) -> Array | None:
    if not inplace:
        return result
    array._show(result)
    return None


@names_errors
def put(a: Any, ind: ArrayLike, v: ArrayLike, mode: str = "raise", *, inplace: bool = True) -> Array | None:
    """a.flat[ind] = v, where v is repeated or cut to as many elements as there are indices.

    mode: as in `take`.  Raises IndexingError.  Source: NumPy, `put`.
    """
    array = _array_to_change("put", a, inplace)
    return _return_or_show(array, put_flat(array, ind, v, Mode.of(mode)), inplace)


@names_errors
def put_along_axis(
    arr: Any,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    *,
    inplace: bool = True,
    mode: str | None = None,
) -> Array | None:
    """arr[i, indices[i, j, k], k] = values[i, j, k], for axis 1; of elements named twice the last value stays.

    indices: integers of the rank of `arr`; the other dimensions of both broadcast.  values: broadcast to the indices.
    With axis None `arr` is flattened for it.  mode: as in `x.at[…].set`.

    Raises IndexingError, AxisError, ShapeError, BroadcastError.  Source: NumPy, `put_along_axis`.
    """
    array, wanted = _array_to_change("put_along_axis", arr, inplace), Mode.of(mode)
    flat, dim = axis_of_indices("put_along_axis", array, as_array(indices), axis)
    item = item_of_integers("put_along_axis", indices)
    positions = valid_indices(item, dim, flat.shape[dim], wanted, array._node.device)
    like = lax.full(replace_at(flat.shape, dim, 1), False, bool)
    spread, _ = broadcast_operands("put_along_axis", positions, like)
    if replace_at(spread.shape, dim, 1) != like.shape:
        # Where the array has size 1 and the indices have not, its only element is written to for each.
        grid = np.ogrid[tuple([slice(size) for size in flat.shape])]
        index = tuple([positions if axis == dim else other for axis, other in enumerate(grid)])
        result = indexing.update(flat, index, values, mode=wanted)
        return _return_or_show(array, lax.reshape(result, array.shape), inplace)
    new = fit_value(flat, values, spread.shape)
    if not new.size or not flat.size:
        return _return_or_show(array, array.copy(), inplace)
    others = tuple([each for each in range(flat.ndim) if each != dim])
    result = lax.scatter(
        flat,
        spread,
        new,
        lax.ScatterDimensionNumbers((), (dim,), (dim,), others, others),
        mode="clip" if wanted is Mode.CLIP else None,
        index_vector_dim=flat.ndim,
    )
    return _return_or_show(array, lax.reshape(result, array.shape), inplace)


@names_errors
def place(arr: Any, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array | None:
    """Set the elements where `mask` holds to those of `vals`, one after the other, repeated if they are too few.

    mask: as many elements as `arr`.  Raises ShapeError for another number, or for no `vals` where the mask
    holds anywhere, which is computed then.
    Source: NumPy, `place`.
    """
    array = _array_to_change("place", arr, inplace)
    chosen, new = _flat_mask("place", array, mask), _flat_values(array, vals)
    if not new.size:
        refuse_traced("place", "whether a mask is True anywhere", chosen, "give one value at least")
        if to_host(chosen).any():
            raise ShapeError(
                "place: wanted at least one value for the elements where the mask is True, got none"
            )
        return _return_or_show(array, array.copy(), inplace)
    order = lax.sub(lax.cumsum(lax.convert_element_type(chosen, "int64")), 1)
    return _return_or_show(array, _select(array, chosen, new, order), inplace)


@names_errors
def putmask(a: Any, /, mask: ArrayLike, values: ArrayLike, *, inplace: bool = True) -> Array | None:
    """a.flat[i] = values[i % size of values] for each i where `mask` holds.

    mask: as many elements as `a`.  No values change nothing.  Raises ShapeError for another number.
    Source: NumPy, `putmask`.
    """
    array = _array_to_change("putmask", a, inplace)
    chosen, new = _flat_mask("putmask", array, mask), _flat_values(array, values)
    if not new.size:
        return _return_or_show(array, array.copy(), inplace)
    return _return_or_show(array, _select(array, chosen, new, lax.iota("int64", array.size)), inplace)


def _flat_mask(name: str, array: Array, mask: ArrayLike) -> Array:
    holds = truth(mask)
    if holds.size != array.size:
        raise ShapeError(
            f"{name}: wanted a mask with as many elements as the array of shape {array.shape}, got {holds.shape}"
        )
    return flatten(holds)


def _flat_values(array: Array, values: ArrayLike) -> Array:
    return flatten(convert_value(array, values))


def _select(array: Array, chosen: Array, new: Array, order: Array) -> Array:
    """The elements of `new` in `order`, over and over, where a flat mask holds."""
    indices = lax.rem(lax.max(order, lax.full_like(order, 0)), lax.full_like(order, new.size))
    spread = lax.take(new, indices, 0)
    result = lax.select(chosen, spread, flatten(array))
    return lax.reshape(result, array.shape)


@names_errors
def fill_diagonal(a: Any, val: ArrayLike, wrap: bool = False, *, inplace: bool = True) -> Array | None:
    """a[i, i, …, i] = val, where the elements of `val` follow one another down the diagonal, over and over.

    a: at least 2 dimensions, of one size if there are more.  wrap: in a tall matrix the diagonal begins anew one
    row below its end.  Raises ShapeError.  Source: NumPy, `fill_diagonal`.
    """
    array = _array_to_change("fill_diagonal", a, inplace)
    if array.ndim < 2 or (array.ndim > 2 and len(set(array.shape)) > 1):
        raise ShapeError(
            f"fill_diagonal: wanted a matrix, or an array with more dimensions of one size, got {array.shape}"
        )
    step, end = array.shape[1] + 1, array.size
    if array.ndim > 2:
        step = 1 + sum([array.shape[0] ** power for power in range(1, array.ndim)])
    elif not flag("fill_diagonal", "wrap", wrap):
        end = min(end, array.shape[1] ** 2)
    flat = flatten(array)
    count = len(range(0, end, step))
    new = _flat_values(array, val)
    if count and new.size:
        flat = indexing.update(flat, slice(0, end, step), repeat_values(new, count))
    return _return_or_show(array, lax.reshape(flat, array.shape), inplace)


@remembers_calls
def extract(condition: ArrayLike, arr: ArrayLike) -> Array:
    """The elements of `arr` where `condition`, of the same number of elements, holds.

    Raises as `compress`, which this is of both flattened.  Source: NumPy, `extract`.
    """
    chosen = truth(condition)
    return compress(lax.reshape(chosen, (chosen.size,)), arr)
