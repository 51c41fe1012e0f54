"""A device in memory of the host, as CuPy's own code asks for it: the methods bear the names of CUDA's functions.

All is done at once, in the order in which it is asked for.  An error of a kernel is told later, as a device does: by
the next call that waits, and by all after it until `reset`.
"""

from __future__ import annotations

import ctypes
import hashlib
import mmap
import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests.cuda.emulator.module import CACHE, LaunchError, Module

_ALIGNMENT: Final = 512
_COUNT: Final = 2
_OUT_OF_MEMORY, _INVALID_VALUE, _ILLEGAL_ADDRESS = 2, 1, 700
_INVALID_DEVICE, _INVALID_HANDLE = 101, 400
_INVALID_IMAGE, _NOT_FOUND = 200, 500
_CAPTURE_UNSUPPORTED, _CAPTURE_INVALIDATED = 900, 901
_CAPTURE_ISOLATION, _CAPTURED_EVENT = 905, 907
_NOT_READY = 600
#: The kind of a copy inside of a device.
_INSIDE: Final = 3
_NAMES: Final = {
    _INVALID_VALUE: "CUDA_ERROR_INVALID_VALUE",
    _OUT_OF_MEMORY: "CUDA_ERROR_OUT_OF_MEMORY",
    _ILLEGAL_ADDRESS: "CUDA_ERROR_ILLEGAL_ADDRESS",
    _INVALID_IMAGE: "CUDA_ERROR_INVALID_IMAGE",
    _NOT_FOUND: "CUDA_ERROR_NOT_FOUND",
    _CAPTURE_UNSUPPORTED: "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
}
#: By the numbers of `cudaDeviceAttr`.
_ATTRIBUTES: Final = {
    **{1: 1024, 2: 1024, 3: 1024, 4: 64, 5: 2**31 - 1, 6: 65535, 7: 65535, 8: 49152, 10: 32},
    **{12: 65536, 16: 132, 39: 2048, 75: 9, 76: 0, 81: 233472, 97: 232448},
}
_PROPERTIES: Final = {
    "name": b"memory of the host",
    **{"major": 9, "minor": 0, "multiProcessorCount": 132, "warpSize": 32, "sharedMemPerBlock": 49152},
}


class Allocation(NamedTuple):
    """Memory of a device: its bytes, the object that has them, and the number of the device."""

    nbytes: int
    memory: Any
    device: int


def keep_text(image: bytes, text: str) -> None:
    """Remember of which text NVRTC made machine code, for later processes too."""
    path = _text_file(image)
    path.parent.mkdir(exist_ok=True)
    own = path.with_suffix(f".{os.getpid()}")
    own.write_text(text, encoding="utf-8")
    own.replace(path)


def _text_file(image: bytes) -> Path:
    return CACHE / f"{hashlib.sha256(image).hexdigest()[:32]}.cu"


class HostDevice:
    """Two devices of `limit` bytes each, which emulate an sm_90; a thread calls one of them.

    * `mallocs`, `launches`, `copies`, `replays`, `peer_copies`, `device_waits` - how often what was asked for; what a
      stream captures counts whenever its graph is replayed,
    * `streams` - the stream of each thing done, `waits` - which stream waits for what was done on which,
    * `synchronised` - the streams that the host waited for,
    * `launch_seconds` - how long a launch takes, as events tell it, while the host goes on; `most_ahead` - how many
      seconds of work had been launched and had not run, at most; `event_waits` - how often the host waited for one,
    * `early_unloads` - modules that were unloaded while a launch of theirs may have been running,
    * `order` - that of the threads of kernels, `blocks` - a bound of their grids.
    """

    def __init__(self, limit: int = 1 << 30) -> None:
        self.limit, self.order, self.blocks = limit, "forward", 2
        self.mallocs = self.launches = self.copies = self.replays = self.peer_copies = 0
        self.device_waits = self.event_waits = self.early_unloads = 0
        self.launch_seconds = self.most_ahead = 0.0
        #: The times at which what was launched has run, and up to which the host knows that it has.
        self._launched_until = self._known_until = 0.0
        #: Modules of which something may run.
        self._running: set[Module] = set()
        #: What the next capture fails with, in tests.
        self.capture_status: int | None = None
        #: Kernels that cannot be captured, in tests.
        self.uncaptured: set[str] = set()
        #: What was asked for of each stream that captures; None for what cannot be captured.
        self._captures: dict[int, list[Callable[[], None] | None]] = {}
        self.streams: list[int] = []
        self.synchronised: list[int] = []
        self.waits: list[tuple[int, int]] = []
        self._recorded: dict[int, int] = {}
        self._times: dict[int, float] = {}
        #: Events that were recorded in a capture.
        self._captured: set[int] = set()
        #: Texts that NVRTC has compiled in this process.
        self.compiled: list[str] = []
        self._threads = threading.local()
        self._allocations: dict[int, Allocation] = {}
        #: Memory of the host that copies may read later on, by its address.
        self._pinned: dict[int, range] = {}
        #: The devices of streams and modules.
        self._devices_of: dict[int, int] = {}
        self._objects: dict[int, Any] = {}
        self._handles = count(1 << 20, 16)
        self._fault: str | None = None
        self._is_told = False

    @property
    def used(self) -> int:
        """Bytes that are allocated on both devices."""
        return sum(each.nbytes for each in self._allocations.values())

    @property
    def current_device(self) -> int:
        """The device that this thread calls."""
        number: int = getattr(self._threads, "device", 0)
        return number

    def _own_bytes(self) -> int:
        """Bytes that are allocated on the device that this thread calls."""
        own = self.current_device
        return sum(each.nbytes for each in self._allocations.values() if each.device == own)

    def fail(self) -> None:
        """Have a fault, as of a kernel before."""
        self._fault = "a fault that a test made"

    @property
    def graphs(self) -> set[int]:
        """The handles of graphs: of each what was captured, and what is launched of it.  None is ever used again."""
        return {handle for handle, each in self._objects.items() if isinstance(each, list)}

    def reset(self) -> None:
        """Forget a fault, which takes a new process on a device, and what tests have set or left to run."""
        self._fault, self._is_told = None, False
        self.launch_seconds, self.capture_status = 0.0, None
        self.uncaptured.clear()
        self._captures.clear()
        self._captured.clear()
        self._running.clear()
        self._known_until, self.most_ahead = self._launched_until, 0.0

    def _raise(self, status: int) -> Any:
        from cupy_backends.cuda.api.runtime import CUDARuntimeError

        raise CUDARuntimeError(status)

    def _raise_of_driver(self, status: int) -> Any:
        from cupy_backends.cuda.api.driver import CUDADriverError

        # Its constructor asks the driver for the name of the status.
        error = CUDADriverError.__new__(CUDADriverError, status)
        error.args, error.status = (_NAMES[status],), status
        raise error

    def _wait(self) -> None:
        if self._fault is not None:
            self._is_told = True
            self._raise(_ILLEGAL_ADDRESS)

    # --- devices -----------------------------------------------------------------------------------------

    def _ensure_context(self) -> None: ...

    def runtimeGetVersion(self) -> int:
        return 13020

    def driverGetVersion(self) -> int:
        return 13020

    def getDeviceCount(self) -> int:
        return _COUNT

    def getDevice(self) -> int:
        return self.current_device

    def setDevice(self, number: int) -> None:
        if number not in range(_COUNT):
            self._raise(_INVALID_DEVICE)
        self._threads.device = number

    def deviceCanAccessPeer(self, device: int, peer: int) -> int:
        return 0

    def deviceGetAttribute(self, attribute: int, device: int) -> int:
        return _ATTRIBUTES[attribute]

    def getDeviceProperties(self, device: int) -> dict[str, Any]:
        return {**_PROPERTIES, "totalGlobalMem": self.limit}

    def deviceSynchronize(self) -> None:
        self.device_waits += 1
        # A wait for a device of which a stream captures is an error, and what was captured is not valid.
        captures = [steps for stream, steps in self._captures.items() if self._is_own(stream)]
        if captures:
            for steps in captures:
                steps.append(None)
            self._raise(_CAPTURE_UNSUPPORTED)
        self._running.clear()
        self._known_until = self._launched_until
        self._wait()

    def ctxGetCurrent(self) -> int:
        return 1

    def ctxSetCurrent(self, context: int) -> None: ...

    # --- memory ------------------------------------------------------------------------------------------

    def malloc(self, nbytes: int) -> int:
        self.mallocs += 1
        if self._is_told:
            self._raise(_ILLEGAL_ADDRESS)
        if self._own_bytes() + nbytes > self.limit:
            self._raise(_OUT_OF_MEMORY)
        memory = mmap.mmap(-1, nbytes + _ALIGNMENT)
        start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
        address = -(-start // _ALIGNMENT) * _ALIGNMENT
        # What is allocated holds no numbers.
        ctypes.memset(address, 0xAB, nbytes)
        self._allocations[address] = Allocation(nbytes, memory, self.current_device)
        return address

    def free(self, address: int) -> None:
        if self._allocations.pop(address, None) is None:
            self._raise(_INVALID_VALUE)

    def memGetInfo(self) -> tuple[int, int]:
        return self.limit - self._own_bytes(), self.limit

    def _allocation_of(self, address: int) -> tuple[int, int] | None:
        """The bytes from an address to the end of its allocation, and its device; None if it is in none."""
        starts = sorted(self._allocations)
        index = bisect_right(starts, address) - 1
        if index < 0:
            return None
        allocation = self._allocations[starts[index]]
        left = starts[index] + allocation.nbytes - address
        return (left, allocation.device) if left > 0 else None

    def _bytes_from(self, address: int) -> int:
        """The bytes from an address to the end of its allocation; 0 if it is in none."""
        allocation = self._allocation_of(address)
        return 0 if allocation is None else allocation[0]

    def pointerGetAttributes(self, address: int) -> Any:
        """Which device an address belongs to; of memory of the host none, and whether that is pinned."""
        from cupy_backends.cuda.api.runtime import PointerAttributes

        allocation = self._allocation_of(address)
        if allocation is not None:
            return PointerAttributes(allocation[1], address, 0, 2)
        is_pinned = any(address in each for each in self._pinned.values())
        return PointerAttributes(-2, 0, address, 1) if is_pinned else PointerAttributes(-2, 0, 0, 0)

    def hostRegister(self, address: int, nbytes: int, flags: int) -> None:
        self._pinned[address] = range(address, address + nbytes)

    def hostUnregister(self, address: int) -> None:
        del self._pinned[address]

    def pointerGetMemoryType(self, address: int) -> int:
        return 0 if self._allocation_of(address) is None else 2

    def memcpyPeerAsync(
        self, target: int, target_device: int, source: int, source_device: int, nbytes: int, stream: int
    ) -> None:
        """Copy between memory that must be of the devices that are named."""
        for address, number in ((target, target_device), (source, source_device)):
            allocation = self._allocation_of(address)
            if allocation is None or allocation[0] < nbytes or allocation[1] != number:
                self._raise(_INVALID_VALUE)
        self._use_stream(stream)
        self.peer_copies += 1
        self._wait()
        ctypes.memmove(target, source, nbytes)

    def memcpy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        self._wait()
        # 1 is to the device, 2 from it, 3 inside of it, and 4 whichever the addresses say.
        for address, is_device in ((target, kind in (1, 3)), (source, kind in (2, 3))):
            if kind != 4 and (self._bytes_from(address) >= nbytes) != is_device and nbytes:
                self._raise(_INVALID_VALUE)
        ctypes.memmove(target, source, nbytes)

    def memcpyAsync(self, target: int, source: int, nbytes: int, kind: int, stream: int) -> None:
        self._use_stream(stream)
        if stream in self._captures:
            if kind != _INSIDE:
                self._raise(_CAPTURE_UNSUPPORTED)
            self._captures[stream].append(partial(self._copy, target, source, nbytes, kind))
        else:
            self._copy(target, source, nbytes, kind)

    def _copy(self, target: int, source: int, nbytes: int, kind: int) -> None:
        self.copies += 1
        self.memcpy(target, source, nbytes, kind)

    def memset(self, address: int, value: int, nbytes: int) -> None:
        if self._bytes_from(address) < nbytes:
            self._raise(_INVALID_VALUE)
        ctypes.memset(address, value, nbytes)

    def memsetAsync(self, address: int, value: int, nbytes: int, stream: int) -> None:
        self.memset(address, value, nbytes)

    # --- streams and events ------------------------------------------------------------------------------

    def _new_handle(self) -> int:
        """The handle of a stream, event or module of the device that this thread calls."""
        handle = next(self._handles)
        self._devices_of[handle] = self.current_device
        return handle

    def _use_stream(self, stream: int) -> None:
        """Note that something was asked for on a stream, which must be one of the device that this thread calls."""
        self._check_device(stream)
        self.streams.append(stream)

    def _is_own(self, handle: int) -> bool:
        """Whether a handle is of the device that this thread calls."""
        return self._devices_of.get(handle, self.current_device) == self.current_device

    def _check_device(self, handle: int) -> None:
        if not self._is_own(handle):
            self._raise(_INVALID_HANDLE)

    def streamCreate(self) -> int:
        return self._new_handle()

    def streamCreateWithFlags(self, flags: int) -> int:
        return self._new_handle()

    def streamCreateWithPriority(self, flags: int, priority: int) -> int:
        return self._new_handle()

    def streamDestroy(self, stream: int) -> None: ...

    def streamSynchronize(self, stream: int) -> None:
        if stream in self._captures:
            self._raise(_CAPTURE_UNSUPPORTED)
        self.streams.append(stream)
        self.synchronised.append(stream)
        self._known_until = self._launched_until
        self._wait()

    # --- graphs ------------------------------------------------------------------------------------------

    def streamIsCapturing(self, stream: int) -> int:
        return int(stream in self._captures)

    def streamBeginCapture(self, stream: int, mode: int = 0) -> None:
        # Of the default stream nothing can be captured.
        if stream in (0, 1) or stream in self._captures:
            self._raise(_CAPTURE_UNSUPPORTED)
        self._captures[stream] = []

    def streamEndCapture(self, stream: int) -> int:
        """The graph of what was asked for on a stream; error 901 if something could not be captured."""
        steps = self._captures.pop(stream)
        if self.capture_status is not None:
            self._raise(self.capture_status)
        if None in steps:
            self._raise(_CAPTURE_INVALIDATED)
        handle = self._new_handle()
        self._objects[handle] = steps
        return handle

    def graphInstantiate(self, graph: int) -> int:
        handle = self._new_handle()
        self._objects[handle] = self._objects[graph]
        return handle

    def graphLaunch(self, graph: int, stream: int) -> None:
        """Do all of a graph, in the order in which it was captured."""
        self._check_device(graph)
        self._use_stream(stream)
        if self._is_told:
            self._raise(_ILLEGAL_ADDRESS)
        self.replays += 1
        for step in self._objects[graph]:
            if stream in self._captures:
                self._captures[stream].append(step)
            else:
                step()

    def graphDestroy(self, graph: int) -> None:
        del self._objects[graph]

    def graphExecDestroy(self, graph: int) -> None:
        del self._objects[graph]

    # --- events ------------------------------------------------------------------------------------------

    def streamWaitEvent(self, stream: int, event: int, flags: int = 0) -> None:
        if (event in self._captured) != (stream in self._captures):
            self._raise(_CAPTURE_ISOLATION)
        self.waits.append((stream, self._recorded[event]))

    def eventCreateWithFlags(self, flags: int) -> int:
        return self._new_handle()

    def eventDestroy(self, event: int) -> None: ...

    def eventRecord(self, event: int, stream: int) -> None:
        # Of another device than the stream it cannot be recorded.
        self._check_device(event)
        self._check_device(stream)
        self._recorded[event] = stream
        (self._captured.add if stream in self._captures else self._captured.discard)(event)
        self._times[event] = self._launched_until

    def eventQuery(self, event: int) -> int:
        """0 if the host may know that all before an event has run."""
        self._refuse_captured(event)
        return 0 if self._times[event] <= self._known_until else _NOT_READY

    def _refuse_captured(self, event: int) -> None:
        """Raise what CUDA answers of an event in a capture, which has not run."""
        if event in self._captured:
            self._raise(_CAPTURED_EVENT)

    def eventSynchronize(self, event: int) -> None:
        self._refuse_captured(event)
        self.event_waits += 1
        self._known_until = max(self._known_until, self._times[event])
        self._wait()

    def eventElapsedTime(self, start: int, end: int) -> float:
        """Milliseconds between two events that have come."""
        if max(self._times[start], self._times[end]) > self._known_until:
            self._raise(_NOT_READY)
        return (self._times[end] - self._times[start]) * 1000

    # --- modules and kernels -----------------------------------------------------------------------------

    def moduleLoadData(self, image: bytes) -> int:
        """A module of machine code that NVRTC made."""
        path = _text_file(image)
        if not path.exists():
            self._raise_of_driver(_INVALID_IMAGE)
        handle = self._new_handle()
        self._objects[handle] = Module(path.read_text(encoding="utf-8"))
        return handle

    def moduleUnload(self, module: int) -> None:
        self.early_unloads += self._objects[module] in self._running
        del self._objects[module]

    def moduleGetFunction(self, module: int, name: str) -> int:
        if name not in self._objects[module].kernels:
            self._raise_of_driver(_NOT_FOUND)
        handle = self._new_handle()
        self._devices_of[handle] = self._devices_of[module]
        self._objects[handle] = (self._objects[module], name)
        return handle

    def launchKernel(self, function: int, *rest: int) -> None:
        """Run a kernel on the emulator; a fault is told later."""
        self._check_device(function)
        if self._is_told:
            self._raise_of_driver(_ILLEGAL_ADDRESS)
        grid, block, stream, pointers = rest[:3], rest[3:6], rest[7], rest[8]
        if 0 in (*grid, *block):
            self._raise_of_driver(_INVALID_VALUE)
        self._use_stream(stream)
        module, name = self._objects[function]
        arguments, numbers = [], []
        slots = (ctypes.c_uint64 * max(1, len(module.kernels[name]))).from_address(pointers)
        for slot, parameter in zip(slots, module.kernels[name], strict=False):
            # The driver reads arguments when it launches, not when the kernel runs.
            value = ctypes.c_uint64.from_address(slot).value
            numbers.append(ctypes.c_uint64(value))
            start = value if parameter.is_pointer else ctypes.addressof(numbers[-1])
            arguments.append((start, parameter.is_pointer))
        run = partial(self._run_kernel, module, name, grid, block, arguments, numbers)
        if stream not in self._captures:
            run()
        elif name in self.uncaptured:
            self._captures[stream].append(None)
            self._raise_of_driver(_CAPTURE_UNSUPPORTED)
        else:
            self._captures[stream].append(run)

    def _run_kernel(
        self,
        module: Module,
        name: str,
        grid: Sequence[int],
        block: Sequence[int],
        arguments: Sequence[tuple[int, bool]],
        numbers: Sequence[Any],
    ) -> None:
        """Run a kernel of pointers, and of numbers, whose memory `numbers` hold."""
        self.launches += 1
        self._running.add(module)
        self._launched_until += self.launch_seconds
        if not self.launch_seconds:
            self._known_until = self._launched_until
        self.most_ahead = max(self.most_ahead, self._launched_until - self._known_until)
        for address, is_pointer in arguments:
            allocation = self._allocation_of(address) if is_pointer else None
            if allocation is not None and allocation[1] != self.current_device:
                self._fault = (
                    f"{name} got the memory of device {allocation[1]} on device {self.current_device}"
                )
                return
        sizes = [(start, self._bytes_from(start) if is_pointer else 8) for start, is_pointer in arguments]
        try:
            module.launch(name, [min(grid[0], self.blocks), *grid[1:]], block, sizes, self.order)
        except LaunchError as error:
            self._fault = str(error)
