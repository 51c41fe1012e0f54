"""The device: memory, copies, kernels.  CuPy's is here; the tests have one that emulates a device on the host.

Nothing else in this package imports CuPy.  This module has never run on a GPU: see docs/backends.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np

from xarr.errors import BackendError

#: Threads of a block, and blocks of a grid at most: each thread takes further points in steps of all threads.
BLOCK: Final = 256
MOST_BLOCKS: Final = 2**16
#: Every number is rounded as it is written, and subnormal numbers are kept, as on the CPU.
OPTIONS: Final = ("--std=c++17", "-fmad=false", "-ftz=false", "-prec-div=true", "-prec-sqrt=true")
_INSTALL: Final = "pip install 'xarr[cuda13]', or 'xarr[cuda12]' for a driver of CUDA 12"

HostArray = np.ndarray[Any, Any]


class DeviceMemory(Protocol):
    """Bytes of a device, freed when nothing holds the object."""

    @property
    def address(self) -> int: ...


class Driver(Protocol):
    """A device: what an engine needs of it."""

    #: For messages: which device, and by what.
    description: str

    def allocate(self, nbytes: int) -> DeviceMemory:
        """Bytes of which nothing is known."""

    def upload(self, address: int, array: HostArray) -> None:
        """Copy an array in row-major order to the device."""

    def download(self, array: HostArray, address: int) -> None:
        """Copy from the device to an array in row-major order, after all that was launched."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy inside of the device."""

    def load(self, text: str) -> Any:
        """The kernels of a CUDA C++ text, compiled."""

    def launch(self, module: Any, name: str, blocks: int, arguments: Sequence[tuple[int, int]]) -> None:
        """Run a kernel in blocks of `BLOCK` threads; the arguments are pointers, each with its bytes."""


def connect_cupy() -> Driver:
    """The first GPU, by CuPy.  BackendError where there is no CuPy, an old one, no driver or no device."""
    if find_spec("cupy") is None:
        raise BackendError(f"backend 'cupy' needs CuPy 14 or later, which is not installed: {_INSTALL}")
    import cupy

    if int(cupy.__version__.partition(".")[0]) < 14:
        raise BackendError(f"backend 'cupy' needs CuPy 14 or later, got {cupy.__version__}: {_INSTALL}")
    if not cupy.cuda.is_available():
        raise BackendError(
            f"backend 'cupy': CuPy {cupy.__version__} is installed, but no NVIDIA driver or no GPU is here; "
            "nvidia-smi must list one.  The backend 'numpy' needs none."
        )
    return CupyDriver(cupy)


#: Connects a new backend to its device; tests put an emulated one here.
connect: Callable[[], Driver] = connect_cupy


class CupyMemory:
    """Memory of CuPy's pool."""

    def __init__(self, pointer: Any) -> None:
        self._pointer = pointer
        self.address: int = pointer.ptr


class CupyDriver:
    """A GPU by CuPy, on its current stream.  Kernels are compiled by NVRTC: CuPy itself would flush subnormals."""

    def __init__(self, cupy: Any) -> None:
        self._cuda, self._runtime = cupy.cuda, cupy.cuda.runtime
        self._modules: dict[str, Any] = {}
        self._architecture = f"sm_{cupy.cuda.Device().compute_capability}"
        self.description = f"CuPy {cupy.__version__}, {self._architecture}"

    def allocate(self, nbytes: int) -> DeviceMemory:
        return CupyMemory(self._cuda.alloc(max(nbytes, 1)))

    def upload(self, address: int, array: HostArray) -> None:
        self._runtime.memcpy(address, array.ctypes.data, array.nbytes, self._runtime.memcpyHostToDevice)

    def download(self, array: HostArray, address: int) -> None:
        self._cuda.get_current_stream().synchronize()
        self._runtime.memcpy(array.ctypes.data, address, array.nbytes, self._runtime.memcpyDeviceToHost)

    def copy(self, target: int, source: int, nbytes: int) -> None:
        stream = self._cuda.get_current_stream().ptr
        self._runtime.memcpyAsync(target, source, nbytes, self._runtime.memcpyDeviceToDevice, stream)

    def load(self, text: str) -> Any:
        if text not in self._modules:
            module = self._cuda.function.Module()
            module.load(self._compile(text))
            self._modules[text] = module
        return self._modules[text]

    def _compile(self, text: str) -> bytes:
        """The cubin of a text."""
        nvrtc = self._cuda.nvrtc
        program = nvrtc.createProgram(text, "xarr.cu", (), ())
        try:
            nvrtc.compileProgram(program, (*OPTIONS, f"-arch={self._architecture}"))
            cubin: bytes = nvrtc.getCUBIN(program)
        except nvrtc.NVRTCError as error:
            log = nvrtc.getProgramLog(program)
            raise BackendError(f"backend 'cupy': NVRTC refuses a kernel of xarr ({error}):\n{log}") from error
        finally:
            nvrtc.destroyProgram(program)
        return cubin

    def launch(self, module: Any, name: str, blocks: int, arguments: Sequence[tuple[int, int]]) -> None:
        pointers = tuple([np.uint64(address) for address, _ in arguments])
        module.get_function(name)((blocks,), (BLOCK,), pointers)
