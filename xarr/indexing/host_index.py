"""Indices whose values are at hand, as NumPy reads them.

NumPy and xarr mean the same by ints, slices, `...`, None and arrays of ints or bools.  What they may take differently,
or what has no value yet, is left to the functions that record: None stands for it here.
"""

from __future__ import annotations

from math import prod
from typing import Any, Final

import numpy as np

from xarr.calls.concrete_values import small_value
from xarr.calls.operands import broadcasts_silently
from xarr.ir.device import Device
from xarr.runtime.handles import Handle
from xarr.runtime.small_ops import MOST_BYTES, MOST_COMPUTED, SmallOps, pending_value

HostArray = np.ndarray[Any, Any]

#: NumPy's integers, which stand for ints.
_NUMPY_INTS: Final = frozenset(
    [np.dtype(kind).type for kind in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")]
)
_ENDS: Final = frozenset({int, type(None)})
#: Element types of index arrays that NumPy takes for what they are: of uint64 the largest would count from the end.
_INTEGERS: Final = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4")))
_BOOL: Final = np.dtype(np.bool_)


def basic_items(index: Any, rank: int) -> Any:
    """An index of ints, slices, `...` and None, or one that means a single element, for NumPy; else None."""
    if type(index) is int:
        return index
    if type(index) is not tuple:
        if _is_basic(index):
            return (None,) if index is None else index
        if type(index) in _NUMPY_INTS:
            return int(index)
        return _number(index) if rank == 1 else None
    for item in index:
        if type(item) is not int and not _is_basic(item):
            break
    else:
        return index
    items = tuple([int(item) if type(item) in _NUMPY_INTS else item for item in index])
    if all(map(_is_basic, items)):
        return items
    numbers = tuple([_number(item) for item in items]) if len(items) == rank else (None,)
    return None if None in numbers else numbers


def _is_basic(item: Any) -> bool:
    if type(item) is slice:
        return type(item.start) in _ENDS and type(item.stop) in _ENDS and type(item.step) in _ENDS
    return type(item) is int or item is None or item is ...


def _number(item: Any) -> int | None:
    """An integer with a value that stands for an index of one dimension; None for anything else."""
    if type(item) is int:
        return item
    if isinstance(item, Handle):
        value = item._node.value if item._value is None else item._value
        if type(value) is int or type(value) in _NUMPY_INTS:
            return int(value)
        if type(value) is np.ndarray and not value.ndim and value.dtype.kind in "iu":
            return int(value)
    return None


def array_items(table: SmallOps, index: Any, device: Device) -> tuple[Any, ...] | None:
    """An index with arrays of ints and bools whose values are on `device`, for NumPy; None for any other."""
    result: list[Any] = []
    batch: tuple[int, ...] = ()
    is_mixed = False
    for item in index if type(index) is tuple else (index,):
        if type(item) is not int and not _is_basic(item):
            array = _index_array(table, item, device)
            if array is None:
                return None
            if array.ndim:
                own = (-1,) if array.dtype is _BOOL else array.shape  # which no other array has
                is_mixed = is_mixed or batch not in ((), own) or (batch == own == (-1,))
                batch = own
                result.append(array)
            elif array.dtype is _BOOL:
                return None
            else:
                result.append(int(array))
        else:
            result.append(item)
    # That index arrays broadcast among themselves is told to observers, and may be refused.
    return None if is_mixed and not broadcasts_silently() else tuple(result)


def _index_array(table: SmallOps, item: Any, device: Device) -> HostArray | None:
    """An item of an index as an array of ints or bools that is on the host; None for anything else."""
    if isinstance(item, Handle) and small_value(item) is not None and item._device is None:
        value: HostArray | None = np.asarray(item._value)  # of constants alone: nothing is recorded for it
    elif isinstance(item, Handle):
        node = item._node
        if node.device is not None and node.device.committed is not device.committed:
            return None
        # The shape of what a mask selects hangs on its values.
        most_bytes = MOST_COMPUTED if node.dtype is _BOOL else MOST_BYTES
        value = node.value if node.value is not None else pending_value(table, node, device, most_bytes)
    elif type(item) is list:
        value = _array_of_ints(item) if item and {*map(type, item)} == {int} else None
    else:
        value = np.asarray(item) if type(item) is np.ndarray or type(item) in _NUMPY_INTS else None
    is_index = type(value) is np.ndarray and (value.dtype is _BOOL or value.dtype in _INTEGERS)
    return value if is_index else None


def _array_of_ints(items: list[int]) -> HostArray | None:
    try:
        return np.array(items, np.int64)
    except OverflowError:
        return None


def most_elements(shape: tuple[int, ...], items: tuple[Any, ...]) -> int:
    """A bound on the elements that an index with arrays selects from an array of this shape; of a mask their number."""
    arrays = [item for item in items if type(item) is np.ndarray]
    has_mask = any([array.dtype is _BOOL for array in arrays])
    if has_mask and len(arrays) == 1:
        return int(np.count_nonzero(arrays[0])) * (prod(shape) // max(1, arrays[0].size))
    batch = arrays[0].size if len({array.shape for array in arrays}) == 1 else prod([a.size for a in arrays])
    if has_mask or None in map(_kind, items) or ... in map(_kind, items):
        return batch * prod(shape)
    kept = [size for item, size in zip(items, shape, strict=False) if type(item) is slice]
    return batch * prod(kept) * prod(shape[len(items) :])


def _kind(item: Any) -> Any:
    """None and `...` as they are, since arrays are not compared with them."""
    return item if item is None or item is ... else 0
