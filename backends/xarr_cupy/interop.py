"""Memory that other libraries lend to this one, and the other way: DLPack and `__cuda_array_interface__`.

Source: DLPack 1.1; CUDA Array Interface, version 3.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.backend import BorrowedMemory
from xarr.dtypes import ANY, EXTENDED_FLOAT, SUB_BYTE
from xarr.errors import DTypeError
from xarr.ir.types import TensorType
from xarr_cupy.interface import Driver
from xarr_cupy.runtime.arrays import DeviceArray
from xarr_cupy.runtime.device import LoadedDevice


def lend(device: LoadedDevice, array: DeviceArray, stream: int | None, is_versioned: bool, copy: bool) -> Any:
    """A DLPack capsule with the memory of an array, or with a copy of it, which holds that memory.

    Floats that NumPy lacks are exported as their bits.  BufferError for elements of less than a byte.
    """
    if array.type.dtype in SUB_BYTE:
        raise BufferError(
            f"__dlpack__: wanted elements of a byte or more, got {array.type.dtype}, whose elements DLPack packs; "
            'x.astype("int8") has bytes'
        )
    if copy:
        array = device.copy_of(array)
    # 0, which the protocol forbids and old versions of PyTorch pass, is the legacy default stream too.
    return device.driver.lend(_view(device.driver, array), 1 if stream == 0 else stream, is_versioned)


def interface(device: LoadedDevice, array: DeviceArray) -> dict[str, Any]:
    """The `__cuda_array_interface__` of an array of elements that NumPy has, read-only."""
    described = device.driver.interface(_view(device.driver, array))
    # The address of no elements is 0.
    return {**described, "data": (array.address if array.type.size else 0, True)}


def _view(driver: Driver, array: DeviceArray) -> Any:
    type = array.type
    if type.dtype in EXTENDED_FLOAT:
        type = TensorType(type.shape, np.dtype(f"u{type.dtype.itemsize}"))
    return driver.view(array.memory, array.offset, type)


def borrow(device: LoadedDevice, array: Any, dtype: np.dtype[Any] | None = None) -> BorrowedMemory:
    """The memory of an array of the driver's library, as `BorrowedMemory` describes it.

    dtype: the element type whose bits the array has; None for its own.  DTypeError for a type that xarr has not,
    BufferError for elements that do not lie at multiples of their size.
    """
    shape, dtype = tuple(array.shape), np.dtype(array.dtype) if dtype is None else dtype
    if dtype not in ANY:
        raise DTypeError(f"wanted elements of a type that xarr has, got {dtype}")
    if 0 in shape:
        memory, ordinal = device.driver.memory_at(array, 0)
        return BorrowedMemory(device.new(TensorType(shape, dtype)), dtype, 0, shape, ordinal=ordinal)
    steps = [0 if size == 1 else stride for size, stride in zip(shape, array.strides, strict=True)]
    reaches = [(size - 1) * step for size, step in zip(shape, steps, strict=True)]
    first = sum(min(0, reach) for reach in reaches)
    memory, ordinal = device.driver.memory_at(array, first)
    if memory.address % dtype.itemsize or any(step % dtype.itemsize for step in steps):
        raise BufferError(
            f"wanted elements at multiples of their size, {dtype.itemsize} bytes, got strides of {array.strides} bytes "
            f"from the address {memory.address - first}"
        )
    size = (sum(max(0, reach) for reach in reaches) - first) // dtype.itemsize + 1
    if array.flags.c_contiguous:
        return BorrowedMemory(
            DeviceArray(memory, TensorType(shape, dtype)), dtype, size, shape, ordinal=ordinal
        )
    strides = tuple([step // dtype.itemsize for step in steps])
    buffer = DeviceArray(memory, TensorType((size,), dtype))
    return BorrowedMemory(buffer, dtype, size, shape, strides, -first // dtype.itemsize, ordinal)
