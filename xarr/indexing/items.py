"""The items of an index, as NumPy reads them; no value that is not there yet is looked at."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from types import EllipsisType
from typing import Any, ClassVar, Final

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.base.host_arrays import host_array
from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.dtypes import BOOL, INTEGER
from xarr.errors import IndexingError, IndexTypeError, InputError, TracedValueError
from xarr.ir.source import here
from xarr.ir.types import Ints
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.runtime.device_arrays import from_device_array, lies_on_device
from xarr.runtime.handles import Handle
from xarr.runtime.live_values import values_at_hand
from xarr.runtime.trace_stack import is_tracing

HostArray = np.ndarray[Any, Any]

_LEAST: Final = -(2**63)
_GREATEST: Final = 2**63 - 1


@record(eq=False)
class _Values:
    """An array in an index.  Its values are `host` where they are known; `array` is the Array that was given."""

    shape: Ints
    array: Array | None
    host: HostArray | None


class IndexArray(_Values):
    """Integers: for each, which element along one dimension."""

    from_end: ClassVar[bool] = True

    @classmethod
    def of_int(cls, index: int) -> IndexArray:
        """An int as an array; the nearest of int64 for one beyond, which is as much out of bounds."""
        return cls((), None, np.array(min(max(index, _LEAST), _GREATEST)))


class KnownInt(int):
    """The int that an Array holds, in a function that is being recorded."""

    array: Array

    @classmethod
    def of_array(cls, array: Array, value: int) -> KnownInt:
        self = cls(value)
        self.array = array
        return self

    def as_array(self) -> IndexArray:
        """The index as an array, which is looked at where it is used."""
        return IndexArray((), self.array, np.array(int(self)))


class Forward(IndexArray):
    """Integers that do not count from the end: negative ones are out of bounds."""

    from_end = False


class Mask(_Values):
    """Bools: whether each element of as many dimensions is taken.  Without dimensions, whether all are."""


#: One item of an index after reading: a new dimension, a slice, an int, an array, or `...`.
Item = slice | int | IndexArray | Mask | EllipsisType | None


def items_of(index: Any) -> list[Any]:
    """The items of an index as they were read, `...` among them.  IndexingError for what cannot index."""
    return [_item(item) for item in (index if isinstance(index, tuple) else (index,))]


def item_of_integers(name: str, indices: Any, from_end: bool = True) -> IndexArray:
    """An argument of integers as an item.  Raises IndexingError for anything else."""
    item = _item(indices)
    if isinstance(item, int):
        item = IndexArray.of_int(item)
    if not isinstance(item, IndexArray):
        raise IndexingError(f"{name}: wanted integers as indices, got {indices!r}")
    return item if from_end else Forward(item.shape, item.array, item.host)


def count_dimensions(item: Any) -> int:
    """Count the dimensions of an array that an item is about."""
    if item is None or item is Ellipsis:
        return 0
    return len(item.shape) if isinstance(item, Mask) else 1


def expand_ellipsis(items: Sequence[Any], shape: Ints) -> list[Any]:
    """The items with a full slice for each dimension that they leave out; `...` stays, before its slices."""
    dots = [position for position, item in enumerate(items) if item is Ellipsis]
    consuming = sum(map(count_dimensions, items))
    if len(dots) > 1:
        raise IndexingError(f"an index can have one ellipsis, got {len(dots)}")
    if consuming > len(shape):
        raise IndexingError(
            f"too many indices: {consuming} for an array of shape {shape}, which takes {len(shape)}"
        )
    missing = [slice(None)] * (len(shape) - consuming)
    position = dots[0] + 1 if dots else len(items)
    return [*items[:position], *missing, *items[position:]]


_BASIC: Final = (type(None), type(Ellipsis), slice, int)


def _item(item: Any) -> Any:
    if type(item) is slice:
        return _check_bounds(item)
    if type(item) in _BASIC:
        return item
    if isinstance(item, Handle):
        return _of_array(as_array(item))
    if isinstance(item, np.ndarray | bool | np.bool_):
        return _of_host(np.asarray(item), item)
    if isinstance(item, list | tuple | range):
        return _of_sequence(item)
    if lies_on_device(item):
        return _of_array(from_device_array(item, None))
    try:
        return operator.index(item)
    except TracedValueError:
        raise
    except TypeError:
        if hasattr(item, "__array__"):
            return _of_host(np.asarray(item), item)
        raise _refusal(item) from None


def _check_bounds(item: slice) -> slice:
    """The slice; TracedValueError, with what would work, if its bounds have no values yet."""
    for part in (item.start, item.stop, item.step):
        if isinstance(part, Handle) and part._node.traced:
            looked = here()
            location = f"\nIt was asked for at {looked}" if looked else ""
            raise TracedValueError(
                "a slice in a traced function needs bounds with known values, since its length is part of the "
                "shape; for a start that is known only at run time read lax.dynamic_slice(x, (start,), (size,)) or "
                "x[start + xarr.arange(size)], and write lax.dynamic_update_slice(x, v, (start,)) or "
                f"x.at[start + xarr.arange(size)].set(v); an argument of jit in static_argnames has a value{location}"
            )
    return item


def _refusal(item: Any) -> IndexTypeError:
    return IndexTypeError(
        f"wanted an int, a slice, ..., None, or an array or list of ints or bools as index, got {item!r}"
    )


def _of_array(array: Array) -> Any:
    refuse_dynamic("x[…] with indices that are", array, "lax.gather")
    kind = _kind(array.dtype, f"{array.dtype}{list(array.shape)}")
    host = values_at_hand(array._node)
    if kind is IndexArray and host is not None and not array.shape:
        return KnownInt.of_array(array, int(host)) if is_tracing() else int(host)
    return kind(array.shape, array, host)


def _of_host(values: HostArray, item: Any) -> Any:
    kind = _kind(values.dtype, repr(item))
    # A copy, since a lazy graph must not see what becomes of the user's array.
    return int(values) if kind is IndexArray and not values.shape else kind(values.shape, None, values.copy())


def _of_sequence(item: Sequence[Any]) -> Any:
    try:
        values = host_array(item)
    except InputError as error:
        raise IndexingError(f"wanted an array of ints or bools as index, got {item!r}: {error}") from error
    if not values.size:  # NumPy too takes [] for integers
        values = values.astype(np.int64)
    return _of_host(values, item)


def _kind(dtype: np.dtype[Any], shown: str) -> type[_Values]:
    if dtype in BOOL:
        return Mask
    if dtype in INTEGER:
        return IndexArray
    raise IndexTypeError(
        f"wanted an int, a slice, ..., None, or an array or list of ints or bools as index, got {shown}; "
        ".astype(int) makes integers of it"
    )
