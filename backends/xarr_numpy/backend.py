"""The backend object: compile a graph, and move arrays in and out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from xarr.backend import (
    NUMPY_LIMITS,
    AbstractBackend,
    ArrayClass,
    ArrayMethods,
    DirectCall,
    EagerFunction,
    Limits,
    Program,
    read_only,
)
from xarr.base.host.memory import claim
from xarr.base.progress import ProgressCallback
from xarr.compiler.plan.planner import PLANNED, plan, plan_for
from xarr.compiler.target import Target
from xarr.ir.graph import Graph
from xarr.ir.op import Op
from xarr_numpy import eager_functions, engine
from xarr_numpy.ops.table import TABLE
from xarr_numpy.processor import PROCESSOR
from xarr_numpy.program import NumpyProgram, compile_program

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Plan, Step
    from xarr.compiler.schedule import Schedule
    from xarr.ir.types import TensorType


class NumpyBackend(AbstractBackend):
    """Buffers are read-only NumPy arrays."""

    name: ClassVar[str] = "numpy"
    limits: ClassVar[Limits] = NUMPY_LIMITS

    target: ClassVar[Target] = PROCESSOR
    options: ClassVar[tuple[str, ...]] = ("fusion",)
    computes_small_ops: ClassVar[bool] = True

    def supports(self, op: type[Op]) -> bool:
        return op in TABLE or op in PLANNED

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        return engine.fuse(graph, hot, lambda graph: compile_program(plan(graph), is_hot=False).function())

    def schedule(self) -> Schedule | None:
        return engine.schedule() if engine.available() else None

    def engine(self) -> str:
        return engine.description()

    def compile(self, graph: Graph) -> Program:
        return compile_program(plan_for(graph, self))

    def compile_eager(self, graph: Graph) -> Program:
        return compile_program(plan_for(graph, self), is_hot=False)

    def compile_owning(self, graph: Graph, donated: Sequence[int]) -> Program:
        return compile_program(plan_for(graph, self, donated))

    def plan_of(self, program: Program) -> Plan | None:
        return program.plan if isinstance(program, NumpyProgram) else None

    def remarks(self, plan: Plan) -> Sequence[tuple[Step, str]]:
        return engine.steps_in_python(plan)

    def with_progress(self, program: Program, progress: ProgressCallback) -> Program:
        plan = self.plan_of(program)
        return program if plan is None else compile_program(plan, progress)

    def direct_call(self, program: Program) -> DirectCall | None:
        return program.direct() if isinstance(program, NumpyProgram) else None

    def is_final(self, program: Program) -> bool:
        return not isinstance(program, NumpyProgram) or program.is_final

    def eager_function(
        self, op: Op, types: Sequence[TensorType] | None, program: Callable[[], Program]
    ) -> EagerFunction | None:
        return eager_functions.eager_function(op, types, program)

    def array_methods(self, array_class: ArrayClass) -> ArrayMethods | None:
        return engine.array_methods(array_class, type(self))

    def fold_segments(self, name: str, x: Any, starts: Any) -> Any:
        return engine.fold_segments(name, x, starts)

    def claim(self, buffer: np.ndarray[Any, Any]) -> bool:
        return claim(buffer)

    def from_host(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return read_only(array)

    def from_number(self, number: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        # Not by way of `from_host`: the call would take as long as what it does.
        return read_only(number)

    def to_host(self, buffer: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        return buffer
