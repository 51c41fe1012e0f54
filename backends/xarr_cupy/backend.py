"""The backend object: compile a graph, and move arrays in and out."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Final

import numpy as np

from xarr.backend import AbstractBackend, Program, get, read_only
from xarr.base.configuration import current as config
from xarr.compiler.fusion import stage
from xarr.compiler.plan.planner import plan_for
from xarr.compiler.schedule import Kind
from xarr.compiler.schedules.gpu.builders import SCHEDULES
from xarr.compiler.schedules.gpu.target import TARGET, GpuTarget
from xarr.compiler.target import Target
from xarr.ir.graph import Graph
from xarr.ir.op import Op
from xarr_cupy import driver, libraries
from xarr_cupy.engine import DeviceArray, DeviceProgram, LoadedDevice

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Plan
    from xarr.compiler.schedule import Schedule

#: Products that cuBLAS computes are no part of groups.
_SCHEDULES: Final = {
    is_deterministic: replace(
        schedule,
        limits={**schedule.limits, Kind.PRODUCT: lambda node, target: not libraries.multiplies(node)},
    )
    for is_deterministic, schedule in SCHEDULES.items()
}


class CupyBackend(AbstractBackend):
    """Buffers are arrays in the memory of a GPU.  BackendError where there is no CuPy, no driver or no GPU."""

    name: ClassVar[str] = "cupy"
    target: ClassVar[Target] = TARGET
    is_on_host: ClassVar[bool] = False
    has_views: ClassVar[bool] = False
    options: ClassVar[tuple[str, ...]] = ("deterministic",)

    def __init__(self) -> None:
        self._engine = LoadedDevice(driver.connect())

    def supports(self, op: type[Op]) -> bool:
        # What has no kernel is computed where the table in host.py says.
        return get("reference").supports(op)

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        # A launch costs more than its kernel takes for most arrays, so all that can be one group is.
        return stage.fuse(graph, self.target, self.schedule, hot=True)

    def schedule(self) -> Schedule:
        return _SCHEDULES[config.deterministic]

    def engine(self) -> str:
        return f"CUDA C++ kernels ({self._engine.driver.description})"

    def compile(self, graph: Graph) -> Program:
        target = self.schedule().target
        assert isinstance(target, GpuTarget)
        return DeviceProgram(plan_for(graph, self), self._engine, target)

    def plan_of(self, program: Program) -> Plan | None:
        return program.plan if isinstance(program, DeviceProgram) else None

    def from_host(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        return self._engine.upload(array)

    def to_host(self, buffer: DeviceArray) -> np.ndarray[Any, Any]:
        return read_only(self._engine.download(buffer))

    def devices(self) -> tuple[str, ...]:
        return ("cupy",)
