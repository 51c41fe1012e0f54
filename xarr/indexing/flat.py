"""An array as if it had one dimension, in row-major order: `x.flat` and `x.put`."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

from xarr import indexing, lax
from xarr.base.typing import Array
from xarr.errors import ShapeError, pluralize
from xarr.indexing.advanced import write_arrays
from xarr.indexing.assigned_values import convert_value
from xarr.indexing.bounds import Mode
from xarr.indexing.index_plan import IndexPlan, layout_of
from xarr.indexing.items import item_of_integers
from xarr.lax.core import ArrayLike
from xarr.lax.dynamic_sizes import refuse_dynamic


def flatten(array: Array) -> Array:
    """All elements in one dimension.  ShapeError for dynamic sizes."""
    refuse_dynamic("x.flat", array, "lax.reshape")
    return lax.reshape(array, (array.size,))


def repeat_values(values: Array, count: int) -> Array:
    """The first `count` elements of `values`, flattened and repeated over and over."""
    flat = flatten(values)
    if flat.size == 1:
        return lax.broadcast_in_dim(lax.reshape(flat, ()), (count,), ())
    if flat.size >= count:
        return lax.slice_in_dim(flat, 0, count)
    indices = lax.rem(lax.iota("int64", count), lax.full((count,), flat.size, "int64"))
    return lax.take(flat, indices, 0)


def put(array: Array, indices: ArrayLike, values: ArrayLike, mode: Mode) -> Array:
    """`array` with array.flat[indices] = values, which are repeated or cut to the number of indices."""
    new, flat = convert_value(array, values), flatten(array)
    item = item_of_integers("put", indices, from_end=mode is not Mode.CLIP)
    layout = layout_of([item], flat.shape, mode)
    assert isinstance(layout, IndexPlan)
    if new.size:
        spread = lax.reshape(repeat_values(new, prod(item.shape)), item.shape)
        flat = write_arrays(flat, layout, spread, None, mode)
    return lax.reshape(flat, array.shape)


class Flat:
    """`x.flat`: its elements in order.  Reading it makes new Arrays, `x.flat[i] = v` makes x show a new value.

    Values that are fewer than the elements they are for are repeated, more are cut off, as in NumPy.
    """

    __slots__ = ("_array",)

    def __init__(self, array: Array) -> None:
        self._array = array

    def __len__(self) -> int:
        return flatten(self._array).size

    def __iter__(self) -> Iterator[Array]:
        return iter(flatten(self._array))

    def __getitem__(self, index: Any) -> Array:
        return indexing.read(flatten(self._array), index)

    def __setitem__(self, index: Any, value: ArrayLike) -> None:
        flat, new = flatten(self._array), convert_value(self._array, value)
        wanted = indexing.read(flat, index)
        if wanted.size and not new.size:
            raise ShapeError(
                f"x.flat: wanted one value at least for {pluralize(wanted.size, 'element')}, got none"
            )
        spread = lax.reshape(repeat_values(new, wanted.size), wanted.shape) if wanted.size else wanted
        result = indexing.update(flat, index, spread)
        self._array._show(lax.reshape(result, self._array.shape))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return flatten(self._array).__array__(dtype, copy)
