"""The backend object: compile a graph, and move arrays in and out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from xarr.backend import NUMPY_LIMITS, AbstractBackend, BorrowedMemory, Limits, Program, get, read_only
from xarr.base.configuration import current as config
from xarr.base.progress import ProgressCallback
from xarr.compiler.fusion import stage
from xarr.compiler.passes.decompose import split_concatenations
from xarr.compiler.passes.empty_arrays import without_empty_operands
from xarr.compiler.passes.small_branches import with_selects
from xarr.compiler.passes.sorted_updates import number_sorts, sort_updates
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.schedule import Kind
from xarr.compiler.schedules.gpu.builders import SCHEDULES, computes
from xarr.compiler.schedules.gpu.scatters import needs_order
from xarr.compiler.schedules.gpu.target import TARGET, GpuTarget
from xarr.compiler.target import Target
from xarr.errors import TooLargeError
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits
from xarr.ir.types import TensorType
from xarr_cupy import driver, interop, libraries
from xarr_cupy.engine import DeviceProgram
from xarr_cupy.runtime.arrays import DeviceArray, NumberArgument
from xarr_cupy.runtime.device import LoadedDevice

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Plan
    from xarr.compiler.schedule import Schedule

#: `kDLCUDA`, the type of the devices.
_CUDA: Final = 2
#: Products that cuBLAS computes are no part of groups.
_SCHEDULES: Final = {
    is_deterministic: replace(
        schedule,
        limits={**schedule.limits, Kind.PRODUCT: lambda node, target: not libraries.multiplies(node)},
    )
    for is_deterministic, schedule in SCHEDULES.items()
}


def _sorts_updates(node: Node, target: GpuTarget) -> bool:
    """Whether CUB sorts the updates of a scatter of one array first."""
    if len(node.operands) != 3:
        return False
    many = node.operands[1].tensor_type.size >= libraries.MIN_SORTED
    return many and computes(node) and needs_order(node, target)


@contextmanager
def _report_memory(type: TensorType) -> Iterator[None]:
    """A context whose errors of too little memory say for what it was wanted, and what to do."""
    try:
        yield
    except TooLargeError as error:
        raise TooLargeError(
            f"out of memory for {type.short()} ({error}); move it in parts, or free Arrays first: the memory of one is "
            "free as soon as no name and no other Array needs it"
        ) from error


class CupyBackend(AbstractBackend):
    """Buffers are arrays in the memory of a GPU.  BackendError where there is no CuPy, no driver or no GPU."""

    name: ClassVar[str] = "cupy"
    #: Those of the host too, which computes what has no kernel.
    limits: ClassVar[Limits] = NUMPY_LIMITS
    target: ClassVar[Target] = TARGET
    is_on_host: ClassVar[bool] = False
    has_views: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ("deterministic",)

    def __init__(self) -> None:
        self._engine = LoadedDevice(driver.connect())
        #: This object and those of other devices, by their numbers.
        self._devices: dict[int, CupyBackend] = {self.ordinal: self}

    def at(self, ordinal: int) -> AbstractBackend:
        first = self._engine.driver
        if ordinal not in range(first.count):
            return super().at(ordinal)
        if ordinal not in self._devices:
            other = copy(self)
            # Not `device` of this object, which it may have made.
            other.__dict__.pop("_device", None)
            other.ordinal, other._engine = ordinal, LoadedDevice(first.at(ordinal))
            self._devices.setdefault(ordinal, other)
        return self._devices[ordinal]

    def supports(self, op: type[Op]) -> bool:
        # A cipher is one member of a group, and its rounds are registers of a thread.  What has no kernel is computed
        # where the table in host.py says.
        return op in (ThreefryBits, PhiloxPair) or get("reference").supports(op)

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        # A launch costs more than its kernel takes for most arrays, so all that can be one group is.
        graph = with_selects(
            split_concatenations(without_empty_operands(graph), TARGET.max_concatenated),
            computes,
            TARGET.max_branch_operations,
            TARGET.max_branch_elements,
        )
        is_sorted = partial(_sorts_updates, target=self._gpu_target())
        graph = sort_updates(libraries.extend_products(graph), is_sorted)
        graph = number_sorts(graph, libraries.is_long_row)
        return stage.fuse(graph, self.target, self.schedule, hot=True)

    def schedule(self) -> Schedule:
        return _SCHEDULES[config.deterministic]

    def engine(self) -> str:
        return f"CUDA C++ kernels ({self._engine.driver.description})"

    def compile(self, graph: Graph) -> Program:
        return self._compile(graph, any_sizes=False)

    def compile_eager(self, graph: Graph) -> Program:
        return self._compile(graph, any_sizes=True)

    def compile_owning(self, graph: Graph, donated: Sequence[int]) -> Program:
        return self._compile(graph, False, donated)

    def _compile(self, graph: Graph, any_sizes: bool, donated: Sequence[int] = ()) -> Program:
        return DeviceProgram(plan_for(graph, self, donated), self._engine, self._gpu_target(), any_sizes)

    def _gpu_target(self) -> GpuTarget:
        target = self.schedule().target
        assert isinstance(target, GpuTarget)
        return target

    def claim(self, buffer: DeviceArray) -> bool:
        buffer.is_claimed = True
        return True

    def with_progress(self, program: Program, progress: ProgressCallback) -> Program:
        return program.with_progress(progress) if isinstance(program, DeviceProgram) else program

    def plan_of(self, program: Program) -> Plan | None:
        return program.plan if isinstance(program, DeviceProgram) else None

    def from_host(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        with self._engine.driver.active(), _report_memory(TensorType(array.shape, array.dtype)):
            return self._engine.upload(array)

    def from_number(self, number: np.ndarray[Any, Any]) -> NumberArgument:
        return NumberArgument(number)

    def to_host(self, buffer: DeviceArray) -> np.ndarray[Any, Any]:
        with self._engine.using(buffer):
            return read_only(self._engine.download(buffer))

    def block_until_ready(self, buffer: DeviceArray) -> None:
        with self._engine.using(buffer):
            self._engine.wait()

    def from_device(self, buffer: Any, origin: AbstractBackend) -> Any:
        if not isinstance(origin, CupyBackend):
            return super().from_device(buffer, origin)
        if origin is self:
            with self._engine.using(buffer), _report_memory(buffer.type):
                return self._engine.copy_of(buffer)
        with origin._engine.using(buffer), self._engine.driver.active(), _report_memory(buffer.type):
            made = self._engine.new(buffer.type)
            if buffer.type.nbytes:
                addresses = made.address, origin._engine.driver, buffer.address
                with self._engine.faults:
                    self._engine.driver.copy_from(*addresses, buffer.type.nbytes)
        return made

    def dlpack_device(self) -> tuple[int, int]:
        return (_CUDA, self.ordinal)

    def stream(self) -> int:
        with self._engine.driver.active():
            return self._engine.driver.stream

    def to_dlpack(
        self, buffer: Any, stream: Any, max_version: tuple[int, int] | None, copy: bool | None
    ) -> Any:
        with self._engine.using(buffer):
            is_versioned = max_version is not None and max_version[0] >= 1
            return interop.lend(self._engine, buffer, stream, is_versioned, bool(copy))

    def from_dlpack(self, capsule: object, dtype: np.dtype[Any] | None) -> BorrowedMemory:
        with self._engine.driver.active():
            return interop.borrow(self._engine, self._engine.driver.borrow(capsule), dtype)

    def from_cuda_array_interface(self, x: Any) -> BorrowedMemory:
        with self._engine.driver.active():
            return interop.borrow(self._engine, self._engine.driver.borrow_by_interface(x))

    def cuda_array_interface(self, buffer: Any) -> dict[str, Any]:
        with self._engine.using(buffer):
            return interop.interface(self._engine, buffer)

    def devices(self) -> tuple[str, ...]:
        return tuple([f"cupy:{k}" if k else "cupy" for k in range(self._engine.driver.count)])
