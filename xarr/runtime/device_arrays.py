"""Arrays of other libraries in the memory of a GPU, which become Arrays there without a way by the host.

Source: DLPack 1.1, `DLDeviceType`; CUDA Array Interface, version 3.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr import backend as backends
from xarr.backend import AbstractBackend, BorrowedMemory
from xarr.base.typing import Array
from xarr.errors import BackendError, XarrError
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Node, data
from xarr.ir.types import TensorType
from xarr.runtime import dlpack
from xarr.runtime.handles import Handle, compute, wrap

#: `kDLCUDA` and `kDLCUDAManaged`.
_CUDA: Final = frozenset({2, 13})
#: Arrays of xarr, and what lies on the host.
_OTHERS: Final = (Handle, np.ndarray, np.generic, list, tuple, str, bytes)


def lies_on_device(x: object) -> bool:
    """Whether x is an array of another library in the memory of a GPU."""
    if isinstance(x, _OTHERS):
        return False
    if hasattr(type(x), "__dlpack_device__"):
        return _dlpack_device(x)[0] in _CUDA
    return hasattr(x, "__cuda_array_interface__")


def _dlpack_device(x: Any) -> tuple[int, int]:
    try:
        kind, ordinal = x.__dlpack_device__()
    except (BufferError, RuntimeError, ValueError):  # as of an array that is spread over several devices
        return (0, 0)
    return int(kind), int(ordinal)


def from_device_array(x: Any, copy: bool | None) -> Array:
    """An Array with the values of `x`, for which `lies_on_device` holds, on its own device.

    They are copied there, unless `copy` is False; then the memory is shared, and must not be written to.  Raises
    BackendError if no backend computes on the device here, ValueError if `copy=False` is not possible, DTypeError for
    an element type that xarr has not.
    """
    try:
        owner = backends.get("cuda")
    except BackendError as error:
        raise BackendError(
            f"the values of {type(x).__name__} lie on a GPU, where xarr cannot compute: {error}; "
            'device="cpu" copies them to the CPU'
        ) from error
    borrowed, owner = _borrow(x, owner, copy)
    dtype = borrowed.dtype
    if borrowed.strides is None:
        device = owner.device()
        buffer = borrowed.buffer if copy is False else owner.from_device(borrowed.buffer, owner)
        result = wrap(data(TensorType(borrowed.shape, dtype), buffer, device))
    elif copy is False:
        raise ValueError(
            f"copy=False is not possible: wanted elements in row-major order, got strides {borrowed.strides} of "
            f"{type(x).__name__} of shape {borrowed.shape}"
        )
    else:
        result = _collect(borrowed, owner)
    if copy is not False:
        # From here on the memory may be written to by others.
        owner.block_until_ready(result._node.value)
    return result


def _borrow(x: Any, owner: AbstractBackend, copy: bool | None) -> tuple[BorrowedMemory, AbstractBackend]:
    """The memory of `x`, and the backend on its device."""
    try:
        if hasattr(type(x), "__dlpack_device__"):
            owner = owner.at(_dlpack_device(x)[1])
            return dlpack.borrow(x, owner, copy), owner
        borrowed = owner.from_cuda_array_interface(x)
        return borrowed, owner.at(borrowed.ordinal)
    except XarrError:
        raise
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise BackendError(f"the memory of {type(x).__name__} cannot be read: {error}") from error


def _collect(borrowed: BorrowedMemory, owner: AbstractBackend) -> Array:
    """The elements of memory with strides, one after the other."""
    device, numbers = owner.device(), TensorType(borrowed.shape, np.dtype(np.int64))
    memory = data(TensorType((borrowed.size,), borrowed.dtype), borrowed.buffer, device)
    offsets = full(borrowed.offset, numbers.shape, numbers.dtype)
    for axis, stride in enumerate(borrowed.strides or ()):
        steps = Node(
            ops.Multiply(), (Node(ops.Iota(numbers, axis)), full(stride, numbers.shape, numbers.dtype))
        )
        offsets = Node(ops.Add(), (offsets, steps))
    # Each offset is an index vector of one component.
    gather = ops.Gather((), (0,), (), (), (0,), numbers.rank, (1,))
    result = wrap(Node(gather, (memory, offsets)))
    compute(result)
    return result
