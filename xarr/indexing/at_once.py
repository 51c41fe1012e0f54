"""Elements and parts of arrays with values, read and written in memory, without a node of the graph.

Where ops on small arrays are computed at once (`xarr.runtime.small_ops`), what is read must be small, the array itself
may be of any size.  An index or a value that is not as usual here is left to the functions that record, whose errors
say what is wrong.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.base import python_build
from xarr.base.typing import Array
from xarr.calls.operands import broadcasts_silently, observers
from xarr.calls.ufuncs import is_ufunc
from xarr.errors import XarrError
from xarr.indexing.assigned_values import convert_value
from xarr.indexing.element_loops import count
from xarr.indexing.host_index import array_items, basic_items, most_elements
from xarr.ir.device import Device
from xarr.ir.graph import Data, Node
from xarr.ir.source import caller, location_of
from xarr.ir.types import Ints, part_of
from xarr.lax.core import gives_way, scalar_constant
from xarr.runtime.handles import Handle, show_leaf, wrap_leaf
from xarr.runtime.pending import StandIn
from xarr.runtime.small_ops import MOST_BYTES, MOST_COMPUTED, SmallOps, pending_value, small_ops
from xarr.runtime.trace_stack import recording
from xarr.runtime.view_tracking import INDEX, mark

HostArray = np.ndarray[Any, Any]

#: Bytes of a contiguous part up to which it is copied, which takes less time than to copy the array at the next write.
_MAX_COPIED: Final = 2**10
_IS_FREE_THREADED: Final = python_build.is_free_threaded()
_FLOAT64: Final = np.dtype(np.float64)
_BOOL: Final = np.dtype(np.bool_)
_NUMBERS: Final = frozenset({bool, int, float, complex})
#: Errors of NumPy for an index, each of which the functions that record explain.
_REFUSALS: Final = (IndexError, OverflowError, ValueError)
_INTEGERS: Final = frozenset(map(np.dtype, ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")))
_NUMERIC: Final = _INTEGERS | frozenset(map(np.dtype, ("f2", "f4", "f8")))
#: What `x.at[…]` combines by, as NumPy does it for one element after the other, and of which element types: of zeros
#: of both signs NumPy's minimum of floats may be either.
_ACCUMULATIONS: Final = {
    **{name: (getattr(np, name), _NUMERIC) for name in ("add", "subtract", "multiply")},
    **{name: (getattr(np, name), _INTEGERS) for name in ("minimum", "maximum")},
}


def element(array: Handle) -> Any:
    """The value of an array without dimensions as a Python number; None if it does not lie on the host.

    None too while a function is recorded, which may hang on the number: what it hangs on is never written in place.
    """
    node = array._node
    value, device = node.value, node.device
    if recording or type(value) is not np.ndarray or value.ndim:
        return None
    assert device is not None
    return value.item() if device.backend.computes_small_ops else None


def read_at_once(array: Array, index: Any, frame: FrameType) -> Array | None:
    """array[index] of an array with a value, a part where NumPy makes a view; None if it is to be recorded.

    frame: that of who reads, whose line is counted if it reads a single element.
    """
    node = array._node
    buffer, device = node.value, node.device
    if type(buffer) is not np.ndarray:
        if type(node) is StandIn:
            node.is_looked_at = True
        return None
    table = small_ops()
    if table is None:
        return None
    assert device is not None
    if not device.backend.computes_small_ops:
        return None
    items = basic_items(index, buffer.ndim)
    if items is None:
        return _read_arrays(table, node, buffer, index, frame)
    try:
        value = buffer[items]
    except _REFUSALS:
        return None
    if type(value) is not np.ndarray:
        value = np.asarray(value)
        value.flags.writeable = False
        if buffer.ndim:
            count(frame, 1)
        type_ = part_of(node.type, ())
        return wrap_leaf(type_, value, device, False, location_of(frame))
    return _read_part(array, node, index, buffer, value, frame)


def _read_part(
    array: Array, node: Node, index: Any, buffer: HostArray, value: HostArray, frame: FrameType
) -> Array | None:
    """`value`, the part at an index of the memory of `node`, which `array` shows, as a copy where that is small.

    None if it is to be recorded.
    """
    device = node.device
    assert device is not None
    most, nbytes = device.backend.target.max_eager_bytes, value.nbytes
    if nbytes > most:
        return None
    # What would keep a much larger array alive is a copy, as among the results of programs.
    is_contiguous, is_large = value.flags.c_contiguous, buffer.nbytes > most
    is_copy = is_large or (nbytes <= _MAX_COPIED and is_contiguous)
    if is_copy:
        value = value.copy()
        value.flags.writeable = False
    else:
        node.exposed = True
        if node.value is not buffer:  # given just now to a call in another thread, which may write to it
            return None
    type_ = part_of(node.type, value.shape)
    part = wrap_leaf(type_, value, device, not is_copy, location_of(frame))
    return mark(array, part, INDEX, index)


def _read_arrays(
    table: SmallOps, node: Node, buffer: HostArray, index: Any, frame: FrameType
) -> Array | None:
    """A copy of what an index with arrays means, where NumPy copies too."""
    device = node.device
    assert device is not None
    items = array_items(table, index, device)
    if items is None:
        return None
    has_mask = any([type(item) is np.ndarray and item.dtype is _BOOL for item in items])
    most = MOST_COMPUTED if has_mask else device.backend.target.max_eager_bytes
    if most_elements(buffer.shape, items) * buffer.itemsize > most:
        return None
    node.handles += 1  # so that nobody writes over it meanwhile
    try:
        if node.value is not buffer:  # given just now to a call in another thread
            return None
        value = np.asarray(buffer[items])
    except _REFUSALS:
        return None
    finally:
        node.handles -= 1
    if value.base is not None or not value.flags.c_contiguous:  # NumPy may keep the operand's order in memory
        value = np.array(value, order="C")
    value.flags.writeable = False
    type_ = part_of(node.type, value.shape)
    return wrap_leaf(type_, value, device, False, location_of(frame))


def write_at_once(array: Array, index: Any, value: Any, frame: FrameType) -> bool:
    """Do array[index] = value in memory, in place where nothing else sees it; False if the write is to be recorded.

    frame: that of who writes, whose line is counted if it writes a single element.  Raises as `convert_value`.
    """
    write = _write_of(array, index, value)
    if write is None:
        return False
    buffer, items, shape, written, device = write
    node, location = array._node, location_of(frame)
    if not shape and buffer.ndim:
        count(frame, 1)
    is_part = getattr(array, "_part", None) is not None  # which becomes an array of its own, with a warning
    is_own = buffer.ndim and not is_part  # without dimensions the Array may hold the number besides
    if is_own and _write_in_place(node, buffer, items, written, device, location):
        return True
    buffer = np.array(buffer)
    buffer[items] = written
    buffer.flags.writeable = False
    if not is_part:
        show_leaf(array, buffer, device, location)
    else:
        shown = wrap_leaf(node.tensor_type, buffer, device, False, location)
        array._show(shown, ("set", index, value))
    return True


def updated_at_once(array: Array, index: Any, value: Any, combine: Any) -> Array | None:
    """`array` with `value` at the index, or added, subtracted or multiplied there; None if that is to be recorded.

    Raises as `convert_value`.
    """
    accumulate, type_ = None, array._node.tensor_type
    if combine is not None:
        accumulate, accepted = _ACCUMULATIONS.get(combine.__name__ if is_ufunc(combine) else "", (None, ()))
        if accumulate is None or type_.dtype not in accepted:
            return None
    write = None if type_.nbytes > MOST_BYTES else _write_of(array, index, value)
    if write is None:
        return None
    buffer, items, _, written, device = write
    buffer = np.array(buffer)
    if accumulate is None:
        buffer[items] = written
    else:
        with np.errstate(all="ignore"):
            accumulate.at(buffer, items, written)
    buffer.flags.writeable = False
    return wrap_leaf(type_, buffer, device, False, caller())


def _write_of(array: Array, index: Any, value: Any) -> tuple[HostArray, Any, Ints, Any, Device] | None:
    """A write for NumPy: the buffer, the index, its shape, what is written, and the device; None to record it."""
    table = small_ops()
    if table is None or observers:
        return None
    node = array._node
    buffer = _buffer(table, node)
    if buffer is None:
        return None
    device = node.device or backends.default_device().uncommitted
    items = basic_items(index, buffer.ndim)
    if items is None:
        items = array_items(table, index, device)
        if items is None:
            return None
    try:
        shape = buffer[items].shape
    except _REFUSALS:
        return None
    kind = type(value)
    if kind is float and buffer.dtype is _FLOAT64:
        return buffer, items, shape, value, device
    if kind in _NUMBERS:
        try:
            if not gives_way(kind, buffer.dtype):
                return None
            return buffer, items, shape, scalar_constant(value, buffer.dtype).array, device
        except XarrError:
            return None
    written, device = _value_to_write(table, array, value, shape, device)
    return (buffer, items, shape, written, device) if type(written) is np.ndarray else None


def _value_to_write(
    table: SmallOps, array: Array, value: Any, shape: Ints, device: Device
) -> tuple[Any, Device]:
    """The values of an array that is written to an index of this shape, None to record it, and where they lie."""
    kind = type(value)
    if not isinstance(value, Handle | np.generic) and kind is not np.ndarray:
        return None, device
    own_shape = value._node.shape if isinstance(value, Handle) else value.shape
    if own_shape and own_shape != shape and not _stretches(own_shape, shape):
        return None, device
    is_alike = isinstance(value, Handle) and value._node.dtype is array._node.dtype and value._weak is None
    new = value._node if is_alike else convert_value(array, value)._node
    own = new.device
    if own is not None and own is not device:
        if own.committed is not device.committed:
            return None, device
        device = own.committed
    return _value_of(table, new, device), device


def _stretches(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    """Whether a value may be broadcast to what is written, by NumPy's rule and without a word about it."""
    if len(shape) > len(wanted) or not broadcasts_silently():
        return False
    return all([own in (1, size) for own, size in zip(shape[::-1], wanted[::-1], strict=False)])


def _write_in_place(
    node: Node,
    buffer: HostArray,
    items: Any,
    written: Any,
    device: Device,
    location: tuple[CodeType, int] | None,
) -> bool:
    """Write to the value of a node that one Array shows and nothing else sees; False if that is not sure.

    The node stays: a thread that has just come by it still says by `exposed` that it looks at the memory.
    """
    is_shared = node.exposed or node.handles != 1
    if is_shared or type(node.op) is not Data or _IS_FREE_THREADED or not device.backend.claim(buffer):
        return False
    is_written = False
    try:
        # From here to the write no Python is called, so that no other thread comes between.  In a write of more than a
        # few hundred elements NumPy lets others run: docs/numpy_users.md says that nobody may read meanwhile.
        if node.value is buffer and not node.exposed and node.handles == 1:
            buffer[items] = written
            is_written = True
    except ValueError:  # read-only again, as another thread has written meanwhile
        return False
    buffer.flags.writeable = False
    if is_written:
        node.device, node._location = device, location
    return is_written


def _value_of(table: SmallOps, node: Node, device: Device) -> Any:
    """The value of a node on a device, computed now if need be, of a large array too; None for what is recorded."""
    if node.value is not None:
        return node.value
    if type(node) is StandIn:
        node.is_looked_at = True
    return pending_value(table, node, device, MOST_COMPUTED)


def _buffer(table: SmallOps, node: Node) -> HostArray | None:
    """The value of an array on a backend that computes small ops; None if it has none and is not made of constants."""
    device, value = node.device, node.value
    if value is None:
        device = device or backends.default_device()
        value = _value_of(table, node, device)
        if node.value is not None and node.device is not None:
            device = node.device
    if type(value) is not np.ndarray or device is None or not device.backend.computes_small_ops:
        return None
    return value
