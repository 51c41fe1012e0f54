"""A device in memory of the host, as CuPy's own code asks for it: the methods bear the names of CUDA's functions.

All is done at once, in the order in which it is asked for.  An error of a kernel is told later, as a device does: by
the next call that waits, and by all after it until `reset`.
"""

from __future__ import annotations

import ctypes
import mmap
from bisect import bisect_right
from itertools import count
from typing import Any, Final

import numpy as np

from tests.cuda.emulator.module import LaunchError, Module

_ALIGNMENT: Final = 512
_OUT_OF_MEMORY, _INVALID_VALUE, _ILLEGAL_ADDRESS = 2, 1, 700
_INVALID_IMAGE, _NOT_FOUND = 200, 500
_NAMES: Final = {_INVALID_IMAGE: "CUDA_ERROR_INVALID_IMAGE", _NOT_FOUND: "CUDA_ERROR_NOT_FOUND"}
#: By the numbers of `cudaDeviceAttr`.
_ATTRIBUTES: Final = {
    **{1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 10: 32},
    **{12: 65536, 16: 132, 39: 2048, 75: 9, 76: 0, 81: 233472, 97: 232448},
}
_PROPERTIES: Final = {
    "name": b"memory of the host",
    **{"major": 9, "minor": 0, "multiProcessorCount": 132, "warpSize": 32, "sharedMemPerBlock": 49152},
}


class HostDevice:
    """One device of `limit` bytes, which emulates an sm_90.

    `mallocs` and `launches` count what was asked for, `streams` has the stream of each thing done; `order` is that of
    the threads of kernels, `blocks` bounds their grids.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit, self.order, self.blocks = limit, "forward", 2
        self.mallocs = self.launches = 0
        self.streams: list[int] = []
        #: Texts by the machine code that NVRTC made of them.
        self.texts: dict[bytes, str] = {}
        self.current_device = 0
        self._allocations: dict[int, tuple[int, Any]] = {}
        self._objects: dict[int, Any] = {}
        self._handles = count(1 << 20, 16)
        self._fault: str | None = None

    @property
    def used(self) -> int:
        """Bytes that are allocated."""
        return sum(size for size, _ in self._allocations.values())

    def fail(self) -> None:
        """Have a fault, as of a kernel before."""
        self._fault = "a fault that a test made"

    def reset(self) -> None:
        """Forget a fault; on a device that takes a new process."""
        self._fault = None

    def _raise(self, status: int) -> Any:
        from cupy_backends.cuda.api.runtime import CUDARuntimeError

        raise CUDARuntimeError(status)

    def _raise_of_driver(self, status: int) -> Any:
        from cupy_backends.cuda.api.driver import CUDADriverError

        # Its constructor asks the driver for the name of the status.
        error = CUDADriverError.__new__(CUDADriverError, status)
        error.args = (_NAMES[status],)
        raise error

    def _wait(self) -> None:
        if self._fault is not None:
            self._raise(_ILLEGAL_ADDRESS)

    # --- devices -----------------------------------------------------------------------------------------

    def _ensure_context(self) -> None: ...

    def runtimeGetVersion(self) -> int:
        return 13020

    def driverGetVersion(self) -> int:
        return 13020

    def getDeviceCount(self) -> int:
        return 1

    def getDevice(self) -> int:
        return self.current_device

    def setDevice(self, number: int) -> None:
        if number != 0:
            self._raise(101)

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        return _ATTRIBUTES[attribute]

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        return {**_PROPERTIES, "totalGlobalMem": self.limit}

    def deviceSynchronize(self) -> None:
        self._wait()

    def ctxGetCurrent(self) -> int:
        return 1

    def ctxSetCurrent(self, context: int) -> None: ...

    # --- memory ------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int) -> int:
        self.mallocs += 1
        if self.used + nbytes > self.limit:
            self._raise(_OUT_OF_MEMORY)
        memory = mmap.mmap(-1, nbytes + _ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        address = -(-start // _ALIGNMENT) * _ALIGNMENT
        # What is allocated holds no numbers.
        ctypes.memset(address, 0xAB, nbytes)
        self._allocations[address] = (nbytes, memory)
        return address

    def free(self, address: int) -> None:
        if self._allocations.pop(address, None) is None:
            self._raise(_INVALID_VALUE)

    def memGetInfo(self) -> tuple[int, int]:
        return self.limit - self.used, self.limit

    def _bytes_from(self, address: int) -> int:
        """The bytes from an address to the end of its allocation; 0 if it is in none."""
        starts = sorted(self._allocations)
        at = bisect_right(starts, address) - 1
        return max(0, starts[at] + self._allocations[starts[at]][0] - address) if at >= 0 else 0

    def memcpy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        self._wait()
        # 1 is to the device, 2 from it, 3 inside of it.
        for address, is_device in ((target, kind in (1, 3)), (source, kind in (2, 3))):
            if (self._bytes_from(address) >= nbytes) != is_device and nbytes:
                self._raise(_INVALID_VALUE)
        ctypes.memmove(target, source, nbytes)

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self.streams.append(stream)
        self.memcpy(target, source, nbytes, kind)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        if self._bytes_from(address) < nbytes:
            self._raise(_INVALID_VALUE)
        ctypes.memset(address, value, nbytes)

    def memsetAsync(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self.memset(address, value, nbytes)

    # --- streams and events ------------------------------------------------------------------------------

    def streamCreate(self) -> int:
        return next(self._handles)

    def streamCreateWithFlags(self, flags: int) -> int:
        return next(self._handles)

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        return next(self._handles)

    def streamDestroy(self, stream: int) -> None: ...

    def streamSynchronize(self, stream: int) -> None:
        self.streams.append(stream)
        self._wait()

    def streamIsCapturing(self, stream: int) -> int:
        return 0

    def streamWaitEvent(self, stream: int, event: int) -> None: ...

    def eventCreateWithFlags(self, flags: int) -> int:
        return next(self._handles)

    def eventDestroy(self, event: int) -> None: ...

    def eventRecord(self, event: int, stream: int) -> None: ...

    def eventSynchronize(self, event: int) -> None:
        self._wait()

    # --- modules and kernels -----------------------------------------------------------------------------

    def moduleLoadData(self, image: bytes) -> int:
        """A module of machine code that NVRTC made."""
        if image not in self.texts:
            self._raise_of_driver(_INVALID_IMAGE)
        handle = next(self._handles)
        self._objects[handle] = Module(self.texts[image])
        return handle

    def moduleUnload(self, module: int) -> None:
        del self._objects[module]

    def moduleGetFunction(self, module: int, name: str) -> int:
        if name not in self._objects[module].kernels:
            self._raise_of_driver(_NOT_FOUND)
        handle = next(self._handles)
        self._objects[handle] = (self._objects[module], name)
        return handle

    def launchKernel(self, function: int, *rest: int) -> None:
        """Run a kernel on the emulator; a fault is told later."""
        self.launches += 1
        grid, block, stream, pointers = rest[:3], rest[3:6], rest[7], rest[8]
        self.streams.append(stream)
        module, name = self._objects[function]
        parameters = module.kernels[name]
        slots = np.ctypeslib.as_array((ctypes.c_uint64 * max(1, len(parameters))).from_address(pointers))
        arguments = []
        for slot, parameter in zip(slots.tolist(), parameters, strict=False):
            address = ctypes.c_uint64.from_address(slot).value
            arguments.append((address, self._bytes_from(address)) if parameter.is_pointer else (slot, 8))
        try:
            module.launch(name, [min(grid[0], self.blocks), *grid[1:]], block, arguments, self.order)
        except LaunchError as error:
            self._fault = str(error)
