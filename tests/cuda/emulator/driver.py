"""The emulated device as a driver of `xarr_cupy`: memory of the host, kernels by g++.

What is allocated holds no numbers: its bytes are 0xAB.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.cuda.emulator.module import Module
from tests.cuda.libraries import ARRAYS, gemm_strided_batched_ex
from tests.cuda.nvrtc import TEXTS
from xarr.ir.types import TensorType
from xarr.runtime import dlpack
from xarr_cupy.codegen.kernel_calls import BLOCK
from xarr_cupy.interface import Driver, HostArray, LocatedMemory
from xarr_cupy.runtime.launches import Launches, Location, MemoryCopy, Table, address_of

_ALIGNMENT = 256
#: `kDLCUDA`.
_CUDA = 2
#: The device that each thread calls.
_thread = threading.local()


class EmulatedMemory:
    """Bytes of the host, from an aligned address on."""

    def __init__(self, nbytes: int) -> None:
        self.bytes = np.full(nbytes + _ALIGNMENT, 0xAB, np.uint8)
        self.address = -(-self.bytes.ctypes.data // _ALIGNMENT) * _ALIGNMENT


class BorrowedBytes:
    """Memory of an array, from an address on."""

    def __init__(self, address: int, array: Any) -> None:
        self.address, self.array = address, array


class EmulatedDriver:
    """One of two devices, which runs the threads of a kernel one after the other, in one of three orders.

    `seed` says which of the shuffled orders it is.  `launches` counts kernels, `products` calls of cuBLAS, `copies`
    those from the other device, `waits` those of the host without a copy, `copies_inside` those inside of the device;
    `blocks` bounds grids, so that threads have several points.
    With `races` a kernel in which two threads access an element, and nothing says who does first, is a fault.
    """

    description = "emulated on the host"
    arrays = ARRAYS
    count = 2

    def __init__(
        self, order: str = "forward", blocks: int = 2, races: bool = False, ordinal: int = 0
    ) -> None:
        self.order, self.blocks, self.races, self.ordinal = order, blocks, races, ordinal
        self.seed = 1
        self.texts: dict[str, None] = {}
        self.copies_inside = 0
        self.launches = self.downloads = self.uploads = self.products = self.copies = self.waits = 0

    def at(self, ordinal: int) -> EmulatedDriver:
        return EmulatedDriver(self.order, self.blocks, self.races, ordinal)

    @contextmanager
    def active(self) -> Iterator[None]:
        before, _thread.ordinal = getattr(_thread, "ordinal", None), self.ordinal
        try:
            yield
        finally:
            _thread.ordinal = before

    def _check_active(self) -> None:
        """Nothing is asked of a device that is not the thread's; tests of the driver alone have none."""
        assert getattr(_thread, "ordinal", None) in (None, self.ordinal), "another device is active"

    def order_streams(self, memories: Collection[Any]) -> None:
        """Nothing has to wait: there is one stream."""

    def captures(self) -> bool:
        return False

    def allocate(self, sizes: Sequence[int]) -> list[EmulatedMemory]:
        self._check_active()
        return [EmulatedMemory(nbytes) for nbytes in sizes]

    def upload(self, address: int, array: HostArray) -> None:
        self.uploads += 1
        ctypes.memmove(address, array.ctypes.data, array.nbytes)

    def download(self, array: HostArray, address: int) -> None:
        self.downloads += 1
        ctypes.memmove(array.ctypes.data, address, array.nbytes)

    def wait(self) -> None:
        self._check_active()
        self.waits += 1

    def copy(self, target: int, source: int, nbytes: int) -> None:
        self.copies_inside += 1
        ctypes.memmove(target, source, nbytes)

    def copy_from(self, target: int, origin: Driver, source: int, nbytes: int) -> None:
        assert origin is not self
        self.copies += 1
        ctypes.memmove(target, source, nbytes)

    def view(self, memory: EmulatedMemory | BorrowedBytes, offset: int, type: TensorType) -> Any:
        if isinstance(memory, BorrowedBytes):
            span = (ctypes.c_uint8 * type.nbytes).from_address(memory.address + offset)
            span.owner = memory  # the bytes live as long as the view
            return np.frombuffer(span, np.uint8).view(type.dtype).reshape(type.shape)
        start = memory.address - memory.bytes.ctypes.data + offset
        return memory.bytes[start : start + type.nbytes].view(type.dtype).reshape(type.shape)

    @property
    def stream(self) -> int:
        return 1

    def lend(self, array: Any, stream: int | None, is_versioned: bool) -> Any:
        capsule = array.__dlpack__(max_version=(1, 0) if is_versioned else None)
        tensor = dlpack._tensor_of(capsule)
        tensor.device_type, tensor.device_id = _CUDA, self.ordinal
        return capsule

    def borrow(self, capsule: object) -> Any:
        tensor = dlpack._tensor_of(capsule)
        assert (tensor.device_type, tensor.device_id) == (_CUDA, self.ordinal)
        tensor.device_type, tensor.device_id = dlpack.CPU
        return np.from_dlpack(dlpack._HeldCapsule(capsule, dlpack.CPU))

    def borrow_by_interface(self, x: Any) -> Any:
        described = {**x.__cuda_array_interface__}
        if described.pop("mask", None) is not None:
            raise ValueError("masked arrays are not supported")
        holder = SimpleNamespace(__array_interface__=described, owner=x)
        return np.asarray(holder)

    def interface(self, array: Any) -> dict[str, Any]:
        return {**array.__array_interface__, "stream": self.stream}

    def memory_at(self, array: Any, offset: int) -> tuple[BorrowedBytes, int]:
        return BorrowedBytes(array.ctypes.data + offset, array), self.ordinal

    def memory_of(self, array: Any) -> EmulatedMemory:
        memory = EmulatedMemory(array.nbytes)
        array = np.ascontiguousarray(array)
        ctypes.memmove(memory.address, array.ctypes.data, array.nbytes)
        return memory

    def library_calls(self) -> AbstractContextManager[None]:
        return nullcontext()

    def gemm(self, arguments: Sequence[int]) -> None:
        self.products += 1
        gemm_strided_batched_ex(0, *arguments)

    def load(self, text: str) -> Any:
        self.texts[text] = None
        if TEXTS in os.environ and "__global__" in text:
            name = hashlib.sha256(text.encode()).hexdigest()[:32]
            Path(os.environ[TEXTS], f"{name}.cu").write_text(text, encoding="utf-8")
        return _module(text, self.races)

    def launch(
        self,
        module: Any,
        name: str,
        blocks: int,
        arguments: Sequence[tuple[int, int]],
        sizes: Sequence[np.generic] = (),
    ) -> None:
        self._check_active()
        self.launches += 1
        numbers = [np.array(each) for each in sizes]
        arguments = [*arguments, *[(each.ctypes.data, each.nbytes) for each in numbers]]
        module.launch(name, [min(blocks, self.blocks)], [BLOCK], arguments, self.order, self.seed)

    def prepare(self, launches: Launches) -> Launches:
        return tuple(launches)

    def submit(self, prepared: Launches, table: Table) -> None:
        for each in prepared:
            if isinstance(each, MemoryCopy):
                self.copy(address_of(each.target, table), address_of(each.source, table), each.nbytes)
            else:
                arguments = [(address_of(location, table), nbytes) for location, nbytes in each.arguments]
                sizes = [
                    np.int64(address_of(size, table)) if isinstance(size, Location) else size
                    for size in each.sizes
                ]
                self.launch(each.module, each.name, each.blocks, arguments, sizes)

    def submit_beside(
        self, prepared: Launches, arguments: Sequence[LocatedMemory], sizes: Sequence[int]
    ) -> list[EmulatedMemory]:
        made = self.allocate(sizes)
        self.submit(prepared, [0, 0, *[each.address for each in (*arguments, *made)]])
        return made


_module = lru_cache(None)(Module)
