"""What an engine needs of a device; `driver.py` has CuPy's, the tests one that emulates a device on the host."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from xarr.errors import BackendError
from xarr.ir.types import TensorType
from xarr_cupy.runtime.launches import Launches, Table

HostArray = np.ndarray[Any, Any]


class DeviceFaultError(BackendError):
    """A device failed: no other call can use it in this process."""

    #: Whether notes of it list what was launched before.
    has_suspects = False


class DeviceMemory(Protocol):
    """Bytes of a device, freed when nothing holds the object."""

    @property
    def address(self) -> int: ...


class LocatedMemory(Protocol):
    """An array in memory, from an address on."""

    @property
    def memory(self) -> Any: ...

    @property
    def address(self) -> int: ...


class Driver(Protocol):
    """A device: what an engine needs of it."""

    #: For messages: which device, and by what.
    description: str
    #: A library of arrays with NumPy's names: CuPy, or NumPy where the device is emulated.
    arrays: Any
    #: The number of the device, and how many there are.
    ordinal: int
    count: int

    def at(self, ordinal: int) -> Driver:
        """A driver of another device, or this one, by a number less than `count`."""

    def active(self) -> AbstractContextManager[Any]:
        """A context in which this thread calls this device; the one that it called before is put back."""

    def order_streams(self, memories: Collection[DeviceMemory]) -> AbstractContextManager[Any] | None:
        """A context in which the caller's stream is after what others did with memory, and they after it; or None."""

    def captures(self) -> bool:
        """Whether what is launched now does not run, but becomes a part of a graph of the caller's."""

    def allocate(self, sizes: Sequence[int]) -> list[DeviceMemory]:
        """Bytes of which nothing is known, so many for each."""

    def upload(self, address: int, array: HostArray) -> None:
        """Copy an array in row-major order to the device; it may be written to afterwards."""

    def download(self, array: HostArray, address: int) -> None:
        """Copy from the device to an array in row-major order, after all that was launched."""

    def wait(self) -> None:
        """Wait for all that was launched.  DeviceFaultError, as from any other method, if the device failed."""

    def copy(self, target: int, source: int, nbytes: int) -> None:
        """Copy inside of the device."""

    def copy_from(self, target: int, origin: Driver, source: int, nbytes: int) -> None:
        """Copy from another device, `origin`, after all that was launched on both."""

    def view(self, memory: DeviceMemory, offset: int, type: TensorType) -> Any:
        """The elements in memory as an array of `arrays`."""

    def memory_of(self, array: Any) -> DeviceMemory:
        """The elements of an array of `arrays`, in row-major order."""

    @property
    def stream(self) -> int:
        """DLPack's number of the caller's stream."""

    def lend(self, array: Any, stream: int | None, is_versioned: bool) -> Any:
        """A DLPack capsule with an array of `arrays`, ready on a stream of the consumer's."""

    def borrow(self, capsule: object) -> Any:
        """The memory in a DLPack capsule as an array of `arrays`."""

    def borrow_by_interface(self, x: Any) -> Any:
        """The memory of an object with `__cuda_array_interface__` as an array of `arrays`, after all that was asked for
        on the object's stream."""

    def interface(self, array: Any) -> dict[str, Any]:
        """The `__cuda_array_interface__` of an array of `arrays`."""

    def memory_at(self, array: Any, offset: int) -> tuple[DeviceMemory, int]:
        """The memory of an array of `arrays` from `offset` bytes after its first element, and the device's number."""

    def library_calls(self) -> AbstractContextManager[None]:
        """A context for calls of `arrays`: LinAlgError where a factorisation fails, BackendError with no library."""

    def gemm(self, arguments: Sequence[int]) -> None:
        """Call cublasGemmStridedBatchedEx with these arguments after the handle."""

    def load(self, text: str) -> Any:
        """The kernels of a CUDA C++ text, compiled."""

    def prepare(self, launches: Launches) -> Any:
        """Launches in a row, as `submit` takes them."""

    def submit(self, prepared: Any, table: Table) -> None:
        """Launch what was prepared, one after the other, with the addresses of a run."""

    def submit_beside(
        self, prepared: Any, arguments: Sequence[LocatedMemory], sizes: Sequence[int]
    ) -> list[DeviceMemory] | None:
        """Launch what was prepared with a table of these arrays, from slot 2 on, and of new memory, which is given.

        None, and nothing is done, where it takes more: streams that wait, a graph, memory of the pool's that it must
        free first.
        """
