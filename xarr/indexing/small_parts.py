"""Elements and parts of small values, read and written in memory without a node of the graph.

Only indices and values that mean the same to NumPy and xarr; None and False leave all others to `at_once`.  A value is
written to in place while the Array alone refers to it, and is copied else.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from sys import getrefcount
from types import FrameType
from typing import Any, Final

import numpy as np
from numpy import ndarray

from xarr import lax
from xarr.base import python_build
from xarr.base.at_once.numpy_calls import EXACT, EXACT_SINGLE, fits_single
from xarr.base.typing import Array
from xarr.calls.concrete_values import join, plain_value, small_value, wrap_constant, wrap_value
from xarr.indexing import read
from xarr.indexing.element_loops import LIMIT, count, counts
from xarr.ir.device import Device
from xarr.ir.graph import Data
from xarr.ir.source import location_of, user_files
from xarr.ir.types import MOST_PLAIN_BYTES
from xarr.runtime import handles
from xarr.runtime.handles import Handle
from xarr.runtime.materialisation import own_constant
from xarr.runtime.view_tracking import IMAG, INDEX, REAL, RESHAPE, TRANSPOSE, PartStep, mark

HostArray = np.ndarray[Any, Any]

#: Bytes of a contiguous part up to which it is copied, which takes less time than to copy the array at the next write.
MAX_COPIED: Final = 2**10
_ENDS: Final = frozenset({int, type(None)})
_FLOAT64: Final = np.dtype(np.float64)
_FLOAT32: Final = np.dtype(np.float32)
_INT64: Final = np.dtype(np.int64)
_BOOL: Final = np.dtype(np.bool_)
#: Of uint64 the largest would count from the end.
_INDICES: Final = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "?")))
_LEAST_SINGLE: Final = float(np.finfo(np.float32).tiny)
_NUMPY_INTS: Final = frozenset([np.dtype(f"{sign}{size}").type for sign in "iu" for size in (1, 2, 4, 8)])
_REFUSALS: Final = (IndexError, OverflowError, ValueError)
_IS_FREE_THREADED: Final = python_build.is_free_threaded()


class _References:
    """`references[x]` is how many references there are to x, by an expression that lets no other thread run."""

    __slots__ = ()

    __getitem__ = getrefcount


_references: Final[Any] = _References()


# --- indices ------------------------------------------------------------------------------------------------


def small_items(index: Any) -> Any:
    """An index of ints, slices, `...`, None and arrays of ints and bools for NumPy; None for any other."""
    if type(index) is not tuple:
        item = _item(index)
        return None if item is _UNKNOWN else (None,) if item is None else item
    for item in index:
        if type(item) is not int:
            break
    else:
        return index
    items = []
    for item in index:
        own = _item(item)
        if own is _UNKNOWN:
            return None
        items.append(own)
    return tuple(items)


#: What `_item` gives for an item that is none of these.
_UNKNOWN: Final = "unknown"


def _item(item: Any) -> Any:
    kind = type(item)
    if kind is int or item is None or item is ...:
        return item
    if kind is slice:
        start, stop, step = item.start, item.stop, item.step
        if type(start) in _ENDS and type(stop) in _ENDS and type(step) in _ENDS:
            return item
        ends = (_end(start), _end(stop), _end(step))
        return _UNKNOWN if _UNKNOWN in ends else slice(*ends)
    if kind is handles._array_class:
        value = small_value(item)
        if type(value) is ndarray and value.ndim and value.dtype in _INDICES:
            return value
        item, kind = value, type(value)
    elif kind is ndarray and item.ndim and item.dtype in _INDICES and item.nbytes <= MOST_PLAIN_BYTES:
        return item.copy()
    elif kind is list and item and {*map(type, item)} == {int}:
        try:
            return np.array(item, np.int64)
        except OverflowError:
            return _UNKNOWN
    return item if kind is int else int(item) if kind in _NUMPY_INTS else _UNKNOWN


def _end(end: Any) -> Any:
    if type(end) in _ENDS:
        return end
    value = small_value(end) if type(end) is handles._array_class else end
    return int(value) if type(value) is int or type(value) in _NUMPY_INTS else _UNKNOWN


def _holds_array(index: Any) -> bool:
    kind = handles._array_class
    return type(index) is kind or (type(index) is tuple and kind in map(type, index))


def _arrays_of(items: Any) -> list[HostArray]:
    if type(items) is ndarray:
        return [items]
    return [item for item in items if type(item) is ndarray] if type(items) is tuple else []


# --- reading ------------------------------------------------------------------------------------------------


def read_small(array: Array, index: Any, frame: FrameType) -> Array | None:
    """array[index], for the user's line in `frame`, a part where NumPy makes a view; None where that is not sure."""
    buffer = array._value
    if type(buffer) is not ndarray:
        buffer = small_value(array)
        if type(buffer) is not ndarray:
            return None
    device = array._device
    items = index if type(index) is int else small_items(index)
    if items is None:
        return None
    arrays = [] if items is index else _arrays_of(items)
    if device is None:
        device = _device_of_index(index) if arrays else None
        if device is None:
            return _read_constant(array, index, items, arrays, frame)
    try:
        if arrays:
            return _read_items(device, buffer, items, arrays, frame)
        value = buffer[items]
    except _REFUSALS:
        return None
    if type(value) is ndarray:
        if _holds_array(index):  # of which NumPy makes a copy
            return wrap_value(value.copy(), device, frame)
        return _read_part(array, INDEX, index, buffer, value, frame)
    # Counted here, as `count` does.
    code, instruction = frame.f_code, frame.f_lasti
    key = id(code) + instruction
    number = counts.get(key)
    if number is None or number + 1 >= LIMIT:
        count(frame, 1)
    else:
        counts[key] = number + 1
    result = _new(handles._array_class)
    result._shown = None
    kind = type(value)
    result._value = float(value) if kind is np.float64 else plain_value(value)
    result._device = device
    result._location = (code, instruction) if code.co_filename in user_files else location_of(frame)
    return result  # type: ignore[return-value]


def _read_constant(
    array: Array, index: Any, items: Any, arrays: list[HostArray], frame: FrameType
) -> Array | None:
    """As `read_small` of constants alone."""
    holds_array = _holds_array(index)
    if holds_array and _device_of_index(index) is not None:
        return None
    if not _is_small_selection(array._value, items, arrays):
        return None
    record: Callable[..., Any] = read
    operands: tuple[Any, ...] = (array, index if type(index) is handles._array_class else items)
    if holds_array and type(index) is tuple:
        # Lists and ends of slices as they are now: the user may change them.
        own = [
            raw if type(raw) is handles._array_class else item for raw, item in zip(index, items, strict=True)
        ]
        record, operands = _read_at, (array, *own)
    try:
        value = array._value[items]
    except _REFUSALS:
        return None
    if type(value) is not ndarray:
        count(frame, 1)
        return wrap_constant(plain_value(value), record, operands, frame)
    part = wrap_constant(np.array(value, order="C"), record, operands, frame)
    return part if part is None or arrays else mark(array, part, INDEX, index)


def _read_at(array: Array, *items: Any) -> Array:
    return read(array, items)


_new: Final = object.__new__


#: What records the steps of parts of constants.
_STEPS: Final[dict[PartStep, Callable[[Array, Any], Array]]] = {
    TRANSPOSE: lax.transpose,
    RESHAPE: lambda array, shape: lax.reshape(array, shape[0]),
    REAL: lambda array, _: lax.real(array),
    IMAG: lambda array, _: lax.imag(array),
}


def _read_part(
    array: Array, step: PartStep, argument: Any, buffer: HostArray, value: HostArray, frame: FrameType
) -> Array | None:
    """`value`, the part of `buffer` that a step makes, as a copy where that is small."""
    if array._device is None:
        part = wrap_constant(np.array(value, order="C"), _STEPS[step], (array, argument), frame)
        return None if part is None else mark(array, part, step, argument)
    if value.nbytes <= MAX_COPIED and value.flags.c_contiguous:
        value = value.copy()
    elif not value.ndim:
        return None
    elif array._shown is not None:
        array._shown.exposed = True
        if array._value is not buffer:  # given just now to a call in another thread, which may write to it
            return None
    return mark(array, wrap_value(value, array._device, frame), step, argument)


def transpose_small(array: Array, axes: tuple[Any, ...], frame: FrameType) -> Array | None:
    """array.transpose(axes) of ints, none for the reverse order, for the user's line in `frame`, a part as in NumPy.

    None where that is not sure.
    """
    buffer = array._value
    if type(buffer) is not ndarray and type(buffer := small_value(array)) is not ndarray:
        return None
    rank = buffer.ndim
    if axes and {*map(type, axes)} - {int}:
        return None
    if not axes:
        return _read_part(array, TRANSPOSE, range(rank)[::-1], buffer, buffer.T, frame)
    try:
        order = tuple([range(rank)[axis] for axis in axes])
        return _read_part(array, TRANSPOSE, order, buffer, buffer.transpose(order), frame)
    except (IndexError, ValueError):
        return None


def show_component(array: Array, is_real: bool, frame: FrameType) -> Array | None:
    """array.real or array.imag of complex numbers, as `transpose_small`."""
    buffer = array._value
    if type(buffer) is not ndarray or buffer.dtype.kind != "c":
        return None
    if is_real:
        return _read_part(array, REAL, False, buffer, buffer.real, frame)
    return _read_part(array, IMAG, None, buffer, buffer.imag, frame)


def reshape_small(array: Array, shape: tuple[Any, ...], frame: FrameType) -> Array | None:
    """array.reshape(shape) of ints, as `transpose_small`."""
    buffer = array._value
    if type(buffer) is not ndarray and type(buffer := small_value(array)) is not ndarray:
        return None
    if {*map(type, shape)} - {int}:
        return None
    try:
        value = buffer.reshape(shape)
    except (TypeError, ValueError, OverflowError):
        return None
    return _read_part(array, RESHAPE, (value.shape, "C"), buffer, value, frame) if value.ndim else None


def _device_of_index(index: Any) -> Device | None:
    """Where Arrays in an index lie; None for constants alone, and for several devices."""
    device = None
    for item in index if type(index) is tuple else (index,):
        if type(item) is handles._array_class and item._device is not None:
            if device is not None and item._device is not device:
                return None
            device = item._device
    return device


def _read_items(
    device: Device, buffer: HostArray, items: Any, arrays: list[HostArray], frame: FrameType
) -> Array | None:
    """A copy of what an index with arrays means, where NumPy copies too."""
    if not _is_small_selection(buffer, items, arrays):
        return None
    value = buffer[items]
    if type(value) is not ndarray:
        return None
    if value.base is not None or not value.flags.c_contiguous:  # NumPy may keep the operand's order in memory
        value = np.array(value, order="C")
    return wrap_value(value, device, frame)


def _is_small_selection(buffer: HostArray, items: Any, arrays: list[HostArray]) -> bool:
    """Whether what arrays among `items` select cannot be large."""
    if not arrays:
        return True
    most = MOST_PLAIN_BYTES // buffer.itemsize
    if len(arrays) > 1 or arrays[0].dtype is not _BOOL or type(items) is tuple:
        batch = arrays[0].size
        for each in arrays[1:]:
            batch = batch if each.shape == arrays[0].shape and each.dtype is not _BOOL else batch * each.size
        # Each array of ints stands for one dimension, of which no product is less than that of the smallest.
        chosen = len(arrays) if all([each.dtype is not _BOOL for each in arrays]) else 0
        return bool(batch * buffer.size <= most * max(1, prod(sorted(buffer.shape)[:chosen])))
    return True


# --- writing ------------------------------------------------------------------------------------------------


def write_small(array: Array, index: Any, value: Any, frame: FrameType) -> bool:
    """Do array[index] = value for the user's line in `frame`; False where that is not sure, and nothing is done."""
    buffer = array._value
    if type(buffer) is not ndarray:
        buffer = small_value(array)
        if type(buffer) is not ndarray:
            return False
    if getattr(array, "_part", None) is not None:
        return False
    if array._device is None or array._shown is not None:
        if not (_forget_node(array) if array._device is not None else own_constant(array)):
            return False
        buffer = array._value
        if type(buffer) is not ndarray:
            return False
    device = array._device
    items = index if type(index) is int else small_items(index)
    if items is None or device is None:
        return False
    if type(value) is float and buffer.dtype is _FLOAT64:
        written = value
    else:
        written, device = _written_and_device(buffer, items, value, device)
        if written is None or device is None:
            return False
    if type(items) is int or type(items) is tuple:
        _count(buffer, items, frame)
    while True:
        try:
            # Between counting and writing no other thread runs.
            if _references[buffer] == _ALONE and buffer.base is None and not _IS_FREE_THREADED:
                buffer[items] = written
            else:
                buffer = np.array(buffer)
                buffer[items] = written
                array._value = buffer
            break
        except _REFUSALS:
            if array._value is not buffer or not _make_writeable(buffer):
                return False
    array._device = device
    code = frame.f_code
    array._location = (code, frame.f_lasti) if code.co_filename in user_files else location_of(frame)
    return True


def updated_small(array: Array, index: Any, value: Any, frame: FrameType) -> Array | None:
    """`array` with `value` at the index, for the user's line in `frame`; None where that is not sure."""
    buffer = array._value
    if type(buffer) is not ndarray and type(buffer := small_value(array)) is not ndarray:
        return None
    items = index if type(index) is int else small_items(index)
    if items is None or array._device is None:
        return None
    written, device = _written_and_device(buffer, items, value, array._device)
    if written is None or device is None:
        return None
    copy = np.array(buffer)
    try:
        copy[items] = written
    except _REFUSALS:
        return None
    return wrap_value(copy, device, frame)


def _written_and_device(
    buffer: HostArray, items: Any, value: Any, device: Device
) -> tuple[Any, Device | None]:
    """Give what NumPy is to write, None where that is not sure, and the device of the array afterwards."""
    joined: Device | None = device
    if type(value) is handles._array_class:
        if small_value(value) is None:
            return None, None
        joined = join(device, value._device)
    try:
        return _fit_written(buffer, items, value), joined
    except _REFUSALS:
        return None, None


def _count_alone() -> int:
    """Count as `write_small` does for a value that an Array alone refers to, in this interpreter."""
    array = object.__new__(Handle)
    array._value = np.zeros(1)
    buffer = array._value
    return _references[buffer] if type(buffer) is ndarray else 0


_ALONE: Final = _count_alone()


def _make_writeable(buffer: HostArray) -> bool:
    """Let read-only memory of one Array alone be written to; False if it is not read-only, or has to stay so."""
    if buffer.flags.writeable:
        return False
    try:
        buffer.flags.writeable = True
    except ValueError:
        return False
    return True


def _forget_node(array: Array) -> bool:
    """Let an Array hold its value alone, if nothing but the node has seen it; whether it does."""
    node = array._shown
    if node is None or array._value is None:
        return False
    if type(node.op) is not Data:
        return False
    if node.exposed or node.handles != 1 or node.value is None:
        return False
    array._device, array._location = node.device, node._location or None
    array._shown = array._share = None
    return True


def is_sure_single(value: float) -> bool:
    """Whether NumPy rounds a number to float32 without a word: one that is not too large, or too small but 0."""
    return fits_single(value) and not 0 < abs(value) < _LEAST_SINGLE


def _rank(buffer: HostArray, items: Any) -> int:
    """The number of dimensions of a part."""
    if type(items) is int:
        return buffer.ndim - 1
    if type(items) is ndarray:
        return (
            buffer.ndim
            - (items.ndim if items.dtype is _BOOL else 1)
            + (1 if items.dtype is _BOOL else items.ndim)
        )
    return np.ndim(buffer[items])


def _count(buffer: HostArray, items: Any, frame: FrameType) -> None:
    """Count a write if it is to one element."""
    if type(items) is int:
        if buffer.ndim == 1:
            count(frame, 1)
    elif len(items) == buffer.ndim and {*map(type, items)} == {int}:
        count(frame, 1)


def _fit_written(buffer: HostArray, items: Any, value: Any) -> Any:
    """Give what NumPy is to write; None for what may need a conversion or a word."""
    kind, dtype = type(value), buffer.dtype
    if kind is handles._array_class:
        value = small_value(value)
        kind = type(value)
    if kind is ndarray:
        return value if value.dtype is dtype and value.ndim <= _rank(buffer, items) else None
    if isinstance(value, np.generic):
        return value if value.dtype is dtype else None
    if kind is float:
        return value if dtype is _FLOAT64 or (dtype is _FLOAT32 and is_sure_single(value)) else None
    if kind is int:
        most = EXACT if dtype is _FLOAT64 or dtype is _INT64 else EXACT_SINGLE if dtype is _FLOAT32 else -1
        return value if -most <= value <= most else None
    return value if kind is bool and dtype is _BOOL else None
