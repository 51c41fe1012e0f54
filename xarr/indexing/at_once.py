"""Elements and parts of arrays with values, read and written in memory, without a node of the graph.

Where ops on small arrays are computed at once (`xarr.runtime.small_ops`), what is read must be small, the array itself
may be of any size.  An index or a value that is not as usual here is left to the functions that record, whose errors
say what is wrong.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.base import python_build
from xarr.base.typing import Array
from xarr.calls.operands import observers
from xarr.errors import XarrError
from xarr.indexing.assigned_values import convert_value
from xarr.ir.device import Device
from xarr.ir.graph import Data, Node, data_of
from xarr.ir.source import caller
from xarr.ir.types import TensorType
from xarr.lax.core import gives_way, scalar_constant
from xarr.runtime.check_flags import unread
from xarr.runtime.handles import Handle, show_leaf, wrap_leaf
from xarr.runtime.small_ops import SmallOps, pending_value, small_ops
from xarr.runtime.trace_stack import recording
from xarr.runtime.view_tracking import INDEX, mark

HostArray = np.ndarray[Any, Any]

#: Bytes of a contiguous part up to which it is copied, which takes less time than to copy the array at the next write.
_MAX_COPIED: Final = 2**10
_IS_FREE_THREADED: Final = python_build.is_free_threaded()
_FLOAT64: Final = np.dtype(np.float64)
_ENDS: Final = frozenset({int, type(None)})
_NUMBERS: Final = frozenset({bool, int, float, complex})
#: Errors of NumPy for an index, each of which the functions that record explain.
_REFUSALS: Final = (IndexError, OverflowError, ValueError)


def element(array: Handle) -> Any:
    """The value of an array without dimensions as a Python number; None if it does not lie on the host.

    None too while a function is recorded, which may hang on the number: what it hangs on is never written in place.
    """
    node = array._node
    value, device = node.value, node.device
    if unread or recording or type(value) is not np.ndarray or value.ndim:
        return None
    assert device is not None
    return value.item() if device.backend.computes_small_ops else None


def read_at_once(array: Array, index: Any) -> Array | None:
    """array[index] of an array with a value, a part where NumPy makes a view; None if it is to be recorded."""
    node = array._node
    buffer, device = node.value, node.device
    if type(buffer) is not np.ndarray or small_ops() is None:
        return None
    assert device is not None
    backend = device.backend
    items = _items(index, buffer.ndim)
    if items is None or not backend.computes_small_ops:
        return None
    try:
        value = buffer[items]
    except _REFUSALS:
        return None
    if type(value) is not np.ndarray:
        value = np.asarray(value)
        value.flags.writeable = False
        type_ = TensorType((), buffer.dtype)
        return wrap_leaf(data_of(type_), type_, value, device, False, caller())
    most, nbytes = backend.target.max_eager_bytes, value.nbytes
    is_contiguous = value.flags.c_contiguous
    if nbytes > most or (buffer.nbytes > most and not is_contiguous):
        return None
    is_copy = is_contiguous and (nbytes <= _MAX_COPIED or buffer.nbytes > most)
    if is_copy:
        value = value.copy()
        value.flags.writeable = False
    else:
        node.exposed = True
        if node.value is not buffer:  # given just now to a call in another thread, which may write to it
            return None
    type_ = TensorType(value.shape, buffer.dtype)
    part = wrap_leaf(data_of(type_), type_, value, device, not is_copy, caller())
    return mark(array, part, INDEX, index)


def _items(index: Any, rank: int) -> Any:
    """An index that NumPy reads as xarr does, of ints, slices, `...` and None, or that means one element; else None."""
    if type(index) is int:
        return index
    if type(index) is not tuple:
        return index if _is_basic(index) else _number(index) if rank == 1 else None
    for item in index:
        if type(item) is not int and not _is_basic(item):
            break
    else:
        return index
    numbers = tuple([_number(item) for item in index]) if len(index) == rank else (None,)
    return None if None in numbers else numbers


def _is_basic(item: Any) -> bool:
    if type(item) is slice:
        return type(item.start) in _ENDS and type(item.stop) in _ENDS and type(item.step) in _ENDS
    return type(item) is int or item is None or item is ...


def _number(item: Any) -> int | None:
    """An integer with a value that stands for an index of one dimension; None for anything else."""
    if type(item) is int or isinstance(item, np.integer):
        return int(item)
    if isinstance(item, Handle):
        value = item._node.value
        if type(value) is np.ndarray and not value.ndim and value.dtype.kind in "iu":
            return int(value)
    return None


def write_at_once(array: Array, index: Any, value: Any) -> bool:
    """Do array[index] = value in memory, in place where nothing else sees it; False if the write is to be recorded.

    Raises as `convert_value`.
    """
    table = small_ops()
    if table is None or observers:
        return False
    node = array._node
    buffer = _buffer(table, node)
    if buffer is None:
        return False
    items = _items(index, buffer.ndim)
    if items is None:
        return False
    try:
        target = buffer[items]
    except _REFUSALS:
        return False
    device = node.device or backends.default_device().uncommitted
    kind = type(value)
    if kind is float and buffer.dtype is _FLOAT64:
        written = value
    elif kind in _NUMBERS:
        try:
            if not gives_way(kind, buffer.dtype):
                return False
            written = scalar_constant(value, buffer.dtype).array
        except XarrError:
            return False
    elif isinstance(value, Handle | np.generic) or kind is np.ndarray:
        own_shape = value._node.shape if isinstance(value, Handle) else value.shape
        if own_shape and own_shape != target.shape:
            return False
        new = convert_value(array, value)._node
        own = new.device
        if own is not None and own is not device:
            if own.committed is not device.committed:
                return False
            device = own.committed
        written = pending_value(table, new, device) if new.value is None else new.value
        if type(written) is not np.ndarray:
            return False
    else:
        return False
    is_part = getattr(array, "_part", None) is not None  # which becomes an array of its own, with a warning
    if not is_part and _write_in_place(node, buffer, items, written, device):
        return True
    buffer = np.array(buffer)
    buffer[items] = written
    buffer.flags.writeable = False
    if not is_part:
        show_leaf(array, buffer, device, caller())
    else:
        shown = wrap_leaf(data_of(node.type), node.tensor_type, buffer, device, False, caller())
        array._show(shown, ("set", index, value))
    return True


def _write_in_place(node: Node, buffer: HostArray, items: Any, written: Any, device: Device) -> bool:
    """Write to the value of a node that one Array shows and nothing else sees; False if that is not sure.

    The node stays: a thread that has just come by it still says by `exposed` that it looks at the memory.
    """
    is_shared = node.exposed or node.handles != 1
    if is_shared or type(node.op) is not Data or _IS_FREE_THREADED or not device.backend.claim(buffer):
        return False
    is_written = False
    try:
        # From here to the write no Python is called, so that no other thread comes between.
        if node.value is buffer and not node.exposed and node.handles == 1:
            buffer[items] = written
            is_written = True
    except ValueError:  # read-only again, as another thread has written meanwhile
        return False
    buffer.flags.writeable = False
    if is_written:
        node.device, node._location = device, caller()
    return is_written


def _buffer(table: SmallOps, node: Node) -> HostArray | None:
    """The value of an array on a backend that computes small ops; None if it has none and is not made of constants."""
    device, value = node.device, node.value
    if value is None and device is None:
        device = backends.default_device()
        value = pending_value(table, node, device)
    if type(value) is not np.ndarray or device is None or not device.backend.computes_small_ops:
        return None
    return value
