"""A device with what the host remembers of it: arrays go in and out, and a fault names what was launched before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from typing import Any, Final

import numpy as np

from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_cupy.interface import DeviceFaultError, Driver, LocatedMemory
from xarr_cupy.runtime.arrays import NUMBER_NBYTES, DeviceArray, NumberArgument
from xarr_cupy.runtime.launches import Argument, KernelLaunch, Location, Table

#: Operations that the error for a fault lists at most.
_MOST_LISTED: Final = 8
#: Numbers that one launch stores, each of two words.
_NUMBERS_OF_KERNEL: Final = 4
_WORDS: Final = range(2 * _NUMBERS_OF_KERNEL)
#: The kernel that stores numbers.
_STORE: Final = f"""extern "C" __global__ void xarr_store(unsigned long long *target, {
    ", ".join([f"unsigned long long word{k}" for k in _WORDS])
}) {{
    if (threadIdx.x == 0) {{
{"".join([f"        target[{k}] = word{k};" + chr(10) for k in _WORDS])}    }}
}}
"""


class _Faults:
    """A context in which the error of a device that failed is told which operations may have done it."""

    def __init__(self, device: LoadedDevice) -> None:
        self._device = device

    def __enter__(self) -> None: ...

    def __exit__(self, kind: Any, error: BaseException | None, traceback: Any) -> None:
        if isinstance(error, DeviceFaultError):
            self._device.add_suspects(error)


class LoadedDevice:
    """A driver, and the operations that ran on it last, which the error of a device that failed names."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self._recent: deque[Sequence[Node]] = deque(maxlen=_MOST_LISTED)
        self._launched = 0
        #: A context, which may lie in itself.
        self.faults: AbstractContextManager[None] = _Faults(self)

    @contextmanager
    def using(self, *arrays: DeviceArray) -> Iterator[None]:
        """A context in which this thread calls the device, after what other streams did with arrays."""
        with (
            self.driver.active(),
            self.driver.order_streams([each.memory for each in arrays]) or nullcontext(),
        ):
            yield

    def remember(self, nodes: Sequence[Node]) -> None:
        """Note that operations, one at least, are launched now."""
        self._recent.append(nodes)
        self._launched += len(nodes)

    def submit(self, nodes: Sequence[Node], prepared: Any, table: Table) -> None:
        """Launch what the driver has prepared, which computes operations, one at least."""
        self._recent.append(nodes)
        self._launched += len(nodes)
        try:
            self.driver.submit(prepared, table)
        except DeviceFaultError as error:
            self.add_suspects(error)
            raise

    def submit_beside(
        self,
        nodes: Sequence[Node],
        prepared: Any,
        arguments: Sequence[LocatedMemory],
        types: Sequence[TensorType],
        sizes: Sequence[int],
    ) -> list[DeviceArray] | None:
        """As `submit`, with new arrays behind the arguments in the table, which are given.

        None, and nothing is done, where the driver has more to do than that.
        """
        try:
            memories = self.driver.submit_beside(prepared, arguments, sizes)
        except DeviceFaultError as error:
            self.remember(nodes)
            self.add_suspects(error)
            raise
        if memories is None:
            return None
        self._recent.append(nodes)
        self._launched += len(nodes)
        return [*map(DeviceArray, memories, types)]

    def add_suspects(self, error: DeviceFaultError) -> None:
        """Note in an error, once, which operations may have done it."""
        if not error.has_suspects:
            error.has_suspects = True
            for line in self._suspects():
                error.add_note(line)

    def _suspects(self) -> list[str]:
        """A line for each of the latest operations since the host waited, the latest first."""
        nodes = [node for nodes in reversed(self._recent) for node in reversed(nodes)][:_MOST_LISTED]
        more = f" (the last {len(nodes)} of {self._launched})" if self._launched > len(nodes) else ""
        return [
            f"launched before{more}: {node.op.called} -> {node.type}, first built at {node.source}"
            for node in nodes
        ]

    def wait(self) -> None:
        """Wait for all that was launched."""
        with self.faults:
            self.driver.wait()
        self._forget()

    def _forget(self) -> None:
        """Note that the host has waited, and nothing failed."""
        self._recent.clear()
        self._launched = 0

    def new(self, type: TensorType) -> DeviceArray:
        return self.new_arrays((type,), (type.nbytes,))[0]

    def new_arrays(self, types: Sequence[TensorType], sizes: Sequence[int]) -> list[DeviceArray]:
        """An array of each type, with its bytes."""
        return [*map(DeviceArray, self._allocate(sizes), types)]

    @cached_property
    def nothing(self) -> DeviceArray:
        """An array without elements, whose memory nobody accesses."""
        return self.new(TensorType((0,), np.dtype(np.uint8)))

    def _allocate(self, sizes: Sequence[int]) -> Any:
        """Memory of the device, which may fail there by what was launched before."""
        try:
            return self.driver.allocate(sizes)
        except DeviceFaultError as error:
            self.add_suspects(error)
            raise

    def upload(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        made = self.new(TensorType(array.shape, array.dtype))
        self._fill(made, array)
        return made

    def _fill(self, target: DeviceArray, array: np.ndarray[Any, Any]) -> None:
        if array.size:
            with self.faults:
                self.driver.upload(target.address, np.ascontiguousarray(array))

    def store_numbers(self, numbers: Sequence[NumberArgument]) -> list[DeviceArray]:
        """Numbers as arrays, each in bytes of its own: kernels store what they get as arguments."""
        if not numbers:
            return []
        rows = -(-len(numbers) // _NUMBERS_OF_KERNEL)
        (memory,) = self._allocate((rows * _NUMBERS_OF_KERNEL * NUMBER_NBYTES,))
        for first in range(0, len(numbers), _NUMBERS_OF_KERNEL):
            words = [word for each in numbers[first : first + _NUMBERS_OF_KERNEL] for word in each.words]
            words += [0] * (len(_WORDS) - len(words))
            with self.faults:
                self.driver.submit(self._store, [0, memory.address + first * NUMBER_NBYTES, *words])
        return [DeviceArray(memory, each.type, k * NUMBER_NBYTES) for k, each in enumerate(numbers)]

    @cached_property
    def _store(self) -> Any:
        """The launch that stores words: their address comes first in its table, and then they."""
        module, target, *words = self.driver.load(_STORE), *map(Location, range(1, len(_WORDS) + 2))
        argument = Argument(target, 8 * len(words))
        return self.driver.prepare([KernelLaunch(module, "xarr_store", 1, (argument,), tuple(words))])

    def copy_of(self, array: DeviceArray) -> DeviceArray:
        """An array of its own with the elements of another."""
        made = self.new(array.type)
        self.write(made, array)
        return made

    def write(self, target: DeviceArray, value: np.ndarray[Any, Any] | DeviceArray) -> None:
        """Copy a value of the host or of the device into an array."""
        if not isinstance(value, DeviceArray):
            self._fill(target, np.asarray(value, target.type.dtype))
        elif target.address != value.address and target.type.nbytes:
            with self.faults:
                self.driver.copy(target.address, value.address, target.type.nbytes)

    def download(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        made = np.empty(array.type.shape, array.type.dtype)
        if made.size:
            with self.faults:
                self.driver.download(made, array.address)
            self._forget()
        return made
