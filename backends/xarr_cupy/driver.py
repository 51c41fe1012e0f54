"""A GPU by CuPy: memory, copies, kernels.

Nothing else in this package imports CuPy.  What was seen on a GPU is in docs/backends.md.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from importlib import metadata
from importlib.util import find_spec
from math import prod
from threading import Lock, get_ident
from typing import Any, Final

from xarr.errors import BackendError, TooLargeError
from xarr.ir.memory_use import shown_bytes
from xarr.ir.types import TensorType
from xarr_cupy.codegen.kernel_calls import BLOCK
from xarr_cupy.interface import DeviceFaultError, DeviceMemory, Driver, HostArray, LocatedMemory
from xarr_cupy.machine_code import load_text
from xarr_cupy.modules import CupyModule, LoadedModules
from xarr_cupy.runtime.launch_queue import LAUNCH_SECONDS, LaunchQueue
from xarr_cupy.runtime.launches import Launches, Table
from xarr_cupy.runtime.packed_launches import (
    LEAST_CAPTURED,
    CaptureRefusedError,
    GraphMemory,
    PackedKernel,
    PackedLaunches,
)

_INSTALL: Final = "pip install 'xarr[cuda13]', or 'xarr[cuda12]' for a driver of CUDA 12"
#: The packages of CuPy, of which there may be one.
_WHEELS: Final = ("cupy", "cupy-cuda12x", "cupy-cuda13x")
#: Of `cublasMath_t`: no TF32, and sums of parts of a product, too, are formed in float32, not in a shorter result.
_MATH_MODE: Final = 16
#: The number of the default stream that each thread has of its own.
_PER_THREAD: Final = 2
#: The numbers of the stream that all threads share.
_DEFAULT: Final = (0, 1)
#: Launches that the error for a fault lists at most.
_MOST_SUSPECTS: Final = 8
#: What CUDA answers where launches cannot be captured: cudaErrorNotPermitted, cudaErrorNotSupported, and those of
#: captures.
_REFUSED_IN_CAPTURES: Final = range(900, 909)
_NOT_CAPTURED: Final = (800, 801, *_REFUSED_IN_CAPTURES)
_OUT_OF_MEMORY: Final = 2
#: Of products, for an estimate.
_OPERATIONS_PER_SECOND: Final = 5e13

#: How often this process was forked off from another.  To ask the system for its number at each call takes long.
_forks = 0


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def connect_cupy() -> Driver:
    """The first GPU, by CuPy.

    BackendError where there is no CuPy, an old one or two of them, no NVRTC, no driver or an old one, or no device: it
    says which, and what to install.
    """
    if find_spec("cupy") is None:
        raise BackendError(f"backend 'cupy' needs CuPy 14 or later, which is not installed: {_INSTALL}")
    wheels = [name for name in _WHEELS if any(metadata.distributions(name=name))]
    if len(wheels) > 1:
        raise BackendError(
            f"backend 'cupy': {' and '.join(wheels)} are both installed, and write over each other's files: "
            f"pip uninstall {' '.join(wheels)}, then {_INSTALL}"
        )
    import cupy

    if int(cupy.__version__.partition(".")[0]) < 14:
        raise BackendError(f"backend 'cupy' needs CuPy 14 or later, got {cupy.__version__}: {_INSTALL}")
    _require_device(cupy)
    try:
        cupy.cuda.nvrtc.getVersion()
    except RuntimeError as error:
        raise BackendError(
            "backend 'cupy' needs NVRTC, the compiler of its kernels, which is not installed: pip install "
            f"nvidia-cuda-nvrtc, or nvidia-cuda-nvrtc-cu12 for cupy-cuda12x; CuPy says: {error}"
        ) from error
    return CupyDriver(cupy)


def _require_device(cupy: Any) -> None:
    """BackendError where CuPy cannot use a GPU."""
    if cupy.cuda.is_available():
        return
    has, wanted = cupy.cuda.runtime.driverGetVersion(), cupy.cuda.runtime.runtimeGetVersion()
    if has == 0:
        reason = "there is no NVIDIA driver: install it, so that nvidia-smi lists a GPU"
    elif has // 1000 < wanted // 1000:
        # There is no CuPy 14 for CUDA 11.
        older = f", or pip uninstall {' '.join(_WHEELS)}, then pip install 'xarr[cuda{has // 1000}]'"
        reason = (
            f"the NVIDIA driver is one for CUDA {has // 1000}, and this CuPy is built for CUDA {wanted // 1000}: "
            f"update the driver{older if has // 1000 >= 12 else ''}"
        )
    else:
        reason = (
            "the NVIDIA driver lists no GPU: nvidia-smi must list one, and CUDA_VISIBLE_DEVICES not hide it"
        )
    raise BackendError(
        f"backend 'cupy': CuPy {cupy.__version__} is installed, but {reason}.  The backend 'numpy' needs none."
    )


#: Connects a new backend to its device; tests put an emulated one here.
connect: Callable[[], Driver] = connect_cupy


class CupyMemory:
    """Memory of CuPy's pool, or of another library.

    `stream` - the one that it was allocated on, to which the pool gives it back: all that is asked for on it comes
    after what was done with the memory; `owner` - its number, as `_owner_of` has it.
    """

    __slots__ = ("address", "owner", "pointer", "stream")

    def __init__(self, pointer: Any, stream: Any, owner: tuple[int, int]) -> None:
        self.pointer, self.stream, self.owner = pointer, stream, owner
        self.address: int = pointer.ptr


def _owner_of(stream: Any) -> tuple[int, int]:
    """The number of a stream, with the thread where each has a stream of its own under that number."""
    return stream.ptr, get_ident() if stream.ptr == _PER_THREAD else 0


class CupyDriver:
    """A GPU by CuPy, on its current stream.  Kernels are compiled by NVRTC: CuPy itself would flush subnormals.

    A fault of a kernel is told when the host waits for it: the error lists the kernels launched since the host waited
    last.
    """

    def __init__(self, cupy: Any, ordinal: int = 0) -> None:
        self._cuda, self._runtime = cupy.cuda, cupy.cuda.runtime
        self.arrays, self.ordinal = cupy, ordinal
        self.count: int = self._runtime.getDeviceCount()
        self._device = self._cuda.Device(ordinal)
        self._default_pool = cupy.get_default_memory_pool
        self._modules = LoadedModules(self._load_text, self._wait_for_all)
        self._graphs, self._capturing = GraphMemory(), Lock()
        self._queue = LaunchQueue(self._record_time, self._wait_for_event, self._cuda.get_elapsed_time)
        self._errors = (self._runtime.CUDARuntimeError, self._cuda.driver.CUDADriverError)
        self._forks = _forks
        #: What was launched last since the host waited, kernels in a row: module and name of each.
        self._suspects: deque[Sequence[tuple[CupyModule, str]]] = deque(maxlen=_MOST_SUSPECTS)
        self._launched = 0
        self._architecture = f"sm_{self._device.compute_capability}"
        number = f", device {ordinal}" if self.count > 1 else ""
        self.description = f"CuPy {cupy.__version__}, {self._architecture}{number}"

    def at(self, ordinal: int) -> Driver:
        return self if ordinal == self.ordinal else CupyDriver(self.arrays, ordinal)

    def active(self) -> AbstractContextManager[Any]:
        if self._forks != _forks:
            raise BackendError(
                "backend 'cupy': CUDA does not work in a process that was forked from one that has used it: start "
                'processes by multiprocessing.get_context("spawn"), or use the GPU in them alone'
            )
        # CuPy has a stack of devices for each thread.
        device: AbstractContextManager[Any] = self._device
        return device

    def allocate(self, sizes: Sequence[int]) -> list[DeviceMemory]:
        made: list[DeviceMemory] = []
        stream, allocate = self._cuda.get_current_stream(), self._cuda.alloc
        owner = _owner_of(stream)
        try:
            for nbytes in sizes:
                # The pool frees all that it keeps, and tries again, before it gives up.
                made.append(CupyMemory(allocate(nbytes or 1), stream, owner))
        except MemoryError as error:
            raise TooLargeError(self._memory_report(shown_bytes(sizes[len(made)]))) from error
        except self._runtime.CUDARuntimeError as error:
            raise self._error(error) from error
        return made

    def _memory(self, pointer: Any) -> CupyMemory:
        stream = self._cuda.get_current_stream()
        return CupyMemory(pointer, stream, _owner_of(stream))

    def order_streams(self, memories: Collection[Any]) -> AbstractContextManager[Any] | None:
        stream = self._cuda.get_current_stream()
        own = _owner_of(stream)
        foreign = [each for each in memories if each.owner != own]
        if not foreign:
            return None
        others = {each.owner: each.stream for each in foreign}
        if self.captures(stream):
            raise BackendError(
                "backend 'cupy': the current stream captures a graph, which cannot wait for the stream of an array, "
                "number or constant from before: begin with all of them, and with the first call of a jitted "
                "function, on the stream that captures"
            )
        return self._order_after(stream, others)

    def captures(self, stream: Any = None) -> bool:
        """Whether a graph is captured of a stream, the current one by default; the default stream is none of these."""
        stream = self._cuda.get_current_stream() if stream is None else stream
        return stream.ptr not in _DEFAULT and bool(stream.is_capturing())

    @contextmanager
    def _order_after(self, stream: Any, others: Mapping[tuple[int, int], Any]) -> Iterator[None]:
        """A context in which a stream comes after others, which come after it in turn."""
        reachable = [each for (_, thread), each in others.items() if thread in (0, get_ident())]
        # The stream of another thread, which this one cannot name.
        is_whole = len(reachable) < len(others)
        if is_whole:
            self._wait_for_all()
        for each in reachable:
            self._wait_for(each, stream)
        try:
            yield
        except BaseException as error:
            try:
                self._order_before(stream, reachable, is_whole)
            except DeviceFaultError as fault:
                error.add_note(f"and then: {fault}")
            raise
        self._order_before(stream, reachable, is_whole)

    def _order_before(self, stream: Any, others: Iterable[Any], is_whole: bool) -> None:
        """Let other streams come after one, and with `is_whole` all that is asked for from now on."""
        if is_whole:
            self._wait_for_all()
        for each in others:
            self._wait_for(stream, each)

    def _wait_for(self, earlier: Any, later: Any) -> None:
        """Let a stream wait for all that was asked for on another one."""
        self._run(later.wait_event, self._record_event(earlier))

    def _record_event(self, stream: Any, event: Any = None) -> Any:
        """An event, a new one without time by default, behind all that was asked for on a stream."""
        event = event or self._cuda.Event(disable_timing=True)
        self._run(event.record, stream)
        return event

    def _memory_report(self, wanted: str) -> str:
        """Say how much was wanted, and who holds the memory of the device."""
        pool = self._default_pool()
        free, total = self._runtime.memGetInfo()
        others = max(0, total - free - pool.total_bytes())
        return (
            f"wanted {wanted} of {self.description}, of whose {shown_bytes(total)} {shown_bytes(free)} "
            f"are free: arrays of this process hold {shown_bytes(pool.used_bytes())}, CuPy's pool keeps "
            f"{shown_bytes(pool.free_bytes())}, other programs and libraries hold {shown_bytes(others)}"
        )

    def upload(self, address: int, array: HostArray) -> None:
        kind, stream = self._runtime.memcpyHostToDevice, self._cuda.get_current_stream()
        source = array.ctypes.data
        self._run(self._runtime.memcpyAsync, address, source, array.nbytes, kind, stream.ptr)
        # CUDA has read pageable memory, of type 0, when it returns; other memory the caller may write to too early.
        if self._runtime.pointerGetAttributes(source).type:
            self._wait(stream)

    def download(self, array: HostArray, address: int) -> None:
        kind, stream = self._runtime.memcpyDeviceToHost, self._cuda.get_current_stream()
        self._run(self._runtime.memcpyAsync, array.ctypes.data, address, array.nbytes, kind, stream.ptr)
        self._wait(stream)

    def wait(self) -> None:
        self._wait(self._cuda.get_current_stream())

    def _wait(self, stream: Any) -> None:
        self._run(stream.synchronize)
        self._suspects.clear()
        self._launched = 0

    def _wait_for_all(self) -> None:
        # A stream that captures, for another thread, cannot be waited for.
        with self._capturing:
            self._run(self._runtime.deviceSynchronize)

    def _record_time(self, spare: Any) -> Any:
        """An event with its time; None in a capture, whose launches wait for a replay, and whose events say nothing.

        spare: such an event, which may be recorded once more.
        """
        stream = self._cuda.get_current_stream()
        return None if self.captures(stream) else self._record_event(stream, spare or self._cuda.Event())

    def _wait_for_event(self, event: Any) -> None:
        self._run(event.synchronize)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        kind, stream = self._runtime.memcpyDeviceToDevice, self._cuda.get_current_stream().ptr
        self._run(self._runtime.memcpyAsync, target, source, nbytes, kind, stream)

    def copy_from(self, target: int, origin: Driver, source: int, nbytes: int) -> None:
        # CUDA goes by way of the host where the two devices cannot reach each other.
        with origin.active():
            other = self._cuda.get_current_stream()
            computed = self._record_event(other)
        stream = self._cuda.get_current_stream()
        self._run(stream.wait_event, computed)
        self._run(
            self._runtime.memcpyPeerAsync,
            *(target, self.ordinal, source, origin.ordinal, nbytes, stream.ptr),
        )
        copied = self._record_event(stream)
        # Memory that is freed there now may be written to only after the copy.
        with origin.active():
            self._run(other.wait_event, copied)

    def view(self, memory: DeviceMemory, offset: int, type: TensorType) -> Any:
        assert isinstance(memory, CupyMemory)
        return self.arrays.ndarray(type.shape, type.dtype, memory.pointer + offset)

    def memory_of(self, array: Any) -> DeviceMemory:
        return self._memory(self.arrays.ascontiguousarray(array).data)

    @property
    def stream(self) -> int:
        # 1 is the legacy default stream, which CUDA itself calls 0.
        return self._cuda.get_current_stream().ptr or 1

    def lend(self, array: Any, stream: int | None, is_versioned: bool) -> Any:
        # CuPy lets the consumer's stream wait for the current one.
        return array.__dlpack__(stream=stream, max_version=(1, 0) if is_versioned else None)

    def borrow(self, capsule: object) -> Any:
        return self.arrays.from_dlpack(capsule)

    def borrow_by_interface(self, x: Any) -> Any:
        # CuPy would copy what is on another device than the current one; of no elements the address is 0.
        address = x.__cuda_array_interface__["data"][0]
        ordinal = self._runtime.pointerGetAttributes(address).device if address else self.ordinal
        with self._cuda.Device(ordinal):
            return self.arrays.asarray(x)

    def interface(self, array: Any) -> dict[str, Any]:
        described: dict[str, Any] = array.__cuda_array_interface__
        return described

    def memory_at(self, array: Any, offset: int) -> tuple[DeviceMemory, int]:
        return self._memory(array.data + offset), array.data.device_id

    @contextmanager
    def library_calls(self) -> Iterator[None]:
        import cupyx

        try:
            with cupyx.errstate(linalg="raise"):
                yield
        except (RuntimeError, ImportError, MemoryError) as error:
            raise self._library_error(error) from error

    def _library_error(self, error: Exception) -> BackendError | TooLargeError:
        """The error for one of a library of CUDA."""
        if isinstance(error, self._errors):
            return self._error(error)
        said = str(error).partition("\n")[0]
        if isinstance(error, MemoryError):
            return TooLargeError(self._memory_report(f"memory for a library of CUDA ({said})"))
        failed = f"backend 'cupy': a library of CUDA failed, or is not installed: {said}"
        return BackendError(f"{failed}.  To install it, {_INSTALL}")

    def gemm(self, arguments: Sequence[int]) -> None:
        try:
            from cupy_backends.cuda.libs import cublas

            handle = self._cuda.get_cublas_handle()
            mode = cublas.getMathMode(handle)  # CuPy's, as the handle
            cublas.setMathMode(handle, _MATH_MODE)
            try:
                cublas.gemmStridedBatchedEx(handle, *arguments)
            finally:
                cublas.setMathMode(handle, mode)
        except (RuntimeError, ImportError, MemoryError) as error:
            raise self._library_error(error) from error
        self._queue.add(LAUNCH_SECONDS + 2 * prod(arguments[2:5]) * arguments[-3] / _OPERATIONS_PER_SECOND)

    def _run(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call CUDA.  BackendError if the device failed, now or before; TooLargeError, and it works, without memory."""
        try:
            function(*arguments)
        except self._errors as error:
            raise self._error(error) from error

    def _error(self, error: Any) -> BackendError | TooLargeError:
        """The error for one of CUDA's."""
        if error.status == _OUT_OF_MEMORY:
            return TooLargeError(self._memory_report("memory for a kernel"))
        if error.status in _REFUSED_IN_CAPTURES:
            return BackendError(
                f"backend 'cupy': CUDA refuses this while a stream captures a graph, {error}: let nothing be looked "
                "at, waited for or copied from the host meanwhile, and call what is captured once before"
            )
        return self._fault(error)

    def _fault(self, error: Exception) -> DeviceFaultError:
        """The error of a device that failed, which names the programs that may have done it."""
        launched = [kernel for row in reversed(self._suspects) for kernel in reversed(row)][:_MOST_SUSPECTS]
        suspects = [module.heads[name] for module, name in launched]
        more = f", the last {len(suspects)} of {self._launched}" if self._launched > len(suspects) else ""
        fault = DeviceFaultError(
            f"backend 'cupy': the device failed, {error}.  Launched since the host last waited for it{more}, "
            f"the latest first: {'; '.join(suspects) or 'nothing of xarr'}.  With CUDA_LAUNCH_BLOCKING=1 the "
            "last launch is the one that failed.  No other call can use the device in this process."
        )
        for module in dict.fromkeys(module for module, _ in launched):
            fault.add_note(module.text)
        return fault

    def load(self, text: str) -> CupyModule:
        return self._modules.module(text)

    def _load_text(self, text: str) -> Any:
        return load_text(text, self._architecture, self._cuda.nvrtc, self._load)

    def _load(self, code: bytes) -> Any:
        """The module of machine code.  BackendError for what is none for this device."""
        module = self._cuda.function.Module()
        try:
            self._run(module.load, code)
        except TooLargeError:
            # CUDA does not ask CuPy's pool for what that keeps.
            self._default_pool().free_all_blocks()
            self._run(module.load, code)
        return module

    def prepare(self, launches: Launches) -> PackedLaunches:
        return PackedLaunches(launches, self._graphs)

    def submit(self, prepared: PackedLaunches, table: Table) -> None:
        stream = self._cuda.get_current_stream()
        if prepared.kernels:
            self._suspects.append(prepared.kernels)
            self._launched += len(prepared.kernels)
        try:
            graph = None
            if len(prepared.calls) >= LEAST_CAPTURED and not self.captures(stream):
                capture = partial(self._capture, prepared, table)
                graph = prepared.graphs.graph(prepared.addresses(table), capture)
            if graph is None:
                self._launch_all(prepared, table, stream.ptr)
            else:
                graph.launch(stream)
        except self._errors as error:
            raise self._error(error) from error
        self._queue.add(prepared.seconds)

    def submit_beside(
        self, prepared: PackedLaunches, arguments: Sequence[LocatedMemory], sizes: Sequence[int]
    ) -> list[DeviceMemory] | None:
        # As `order_streams`, `allocate` and `submit` do it, with the stream found once: a call is as short as CuPy's.
        if len(prepared.calls) >= LEAST_CAPTURED:
            return None
        stream, allocate = self._cuda.get_current_stream(), self._cuda.alloc
        number, table = stream.ptr, [0, 0]
        owner = (number, get_ident() if number == _PER_THREAD else 0)
        for each in arguments:
            if each.memory.owner != owner:
                return None
            table.append(each.address)
        made: list[DeviceMemory] = []
        try:
            for nbytes in sizes:
                memory = CupyMemory(allocate(nbytes or 1), stream, owner)
                made.append(memory)
                table.append(memory.address)
        except (MemoryError, self._runtime.CUDARuntimeError):
            return None
        if prepared.kernels:
            self._suspects.append(prepared.kernels)
            self._launched += len(prepared.kernels)
        try:
            self._launch_all(prepared, table, number)
        except self._errors as error:
            raise self._error(error) from error
        self._queue.add(prepared.seconds)
        return made

    def _launch_all(self, prepared: PackedLaunches, table: Table, stream: int) -> None:
        launch = self._cuda.driver.launchKernel
        arguments = prepared.fill(table)
        pointers = arguments.pointers
        for each in prepared.calls:
            if type(each) is PackedKernel:
                function, blocks, start = each
                launch(function, blocks, 1, 1, BLOCK, 1, 1, 0, stream, pointers + start, 0)
            else:
                nbytes, target, source = each
                addresses = arguments.values[target], arguments.values[source]
                self._runtime.memcpyAsync(*addresses, nbytes, self._runtime.memcpyDeviceToDevice, stream)
        prepared.release(arguments)

    def _capture(self, prepared: PackedLaunches, table: Table) -> Any:
        """The launches as a CUDA graph, which does not run yet.

        CaptureRefusedError where CUDA cannot capture them, DeviceFaultError where the device failed before.
        """
        # Not the caller's stream, which may be the default one, of which nothing can be captured.
        stream = self._cuda.Stream(non_blocking=True)
        try:
            with self._capturing:
                stream.begin_capture()
                try:
                    self._launch_all(prepared, table, stream.ptr)
                except BaseException:
                    # The first error counts: of what was captured until then CUDA says only that it is not valid.
                    with suppress(*self._errors):
                        stream.end_capture()
                    raise
                return stream.end_capture()
        except self._errors as error:
            if error.status in _NOT_CAPTURED:
                raise CaptureRefusedError(is_lasting=True) from error
            if error.status == _OUT_OF_MEMORY:
                raise CaptureRefusedError(is_lasting=False) from error
            raise self._fault(error) from error
