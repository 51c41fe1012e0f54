"""Programs of the device: a plan, the commands that it becomes when it first runs, and a run of them.

A run follows the documentation of `xarr.compiler.plan.program_plan`: one block of memory for the arena, memory of its
own for each result, constants that are copied to the device once.  The arena is allocated in each run: what runs at
the same time has its own, and CuPy's pool gives a stream the memory that this stream has freed, without asking the
device.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from xarr.base.progress import ProgressCallback, StepCounter
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.errors import BackendError
from xarr.ir.types import TensorType
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import VECTOR_NBYTES, KernelSource
from xarr_cupy.runtime.arrays import DeviceArray, NumberArgument, flatten, pack
from xarr_cupy.runtime.command_builder import CodeOptions
from xarr_cupy.runtime.commands import Frame, LocatedArray, run_all
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.loop_commands import kernels_of
from xarr_cupy.runtime.program_text import commands_of, print_kernels


class DeviceProgram:
    """A compiled graph: its plan, and the CUDA C++ of its kernels, for sizes of its own or for `any_sizes`."""

    def __init__(
        self,
        plan: Plan,
        device: LoadedDevice,
        target: GpuTarget,
        any_sizes: bool = False,
        progress: ProgressCallback | None = None,
    ) -> None:
        self.plan, self.device, self.progress = plan, device, progress
        self._options = CodeOptions(target, any_sizes)

    @cached_property
    def sources(self) -> tuple[KernelSource, ...]:
        """The kernels of its groups, each once."""
        steps = [(plan, step) for plan in self.plan.walk() for step in plan.steps]
        kernels = dict.fromkeys(kernel for each in steps for kernel in kernels_of(*each))
        return tuple([emit(kernel, self._options.any_sizes) for kernel in kernels])

    @property
    def text(self) -> str:
        """The plan, and the kernels that a run launches, under comments with the lines that built what they compute."""
        return "\n".join([f"{self.plan}\n", *print_kernels(self.plan, self._options)])

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    @cached_property
    def _loaded(self) -> LoadedProgram:
        with self.device.faults():
            return LoadedProgram(self.plan, self.device, self._options, self.progress)

    def with_progress(self, progress: ProgressCallback) -> DeviceProgram:
        """A copy that waits for each step and then tells `progress` how far it is."""
        return DeviceProgram(self.plan, self.device, *self._options[:2], progress)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        arrays = flatten(arguments)
        for each in arrays:
            if not isinstance(each, DeviceArray | NumberArgument):
                raise BackendError(f"wanted arrays of backend 'cupy', got {type(each).__name__}")
        with self.device.driver.active():
            results = self._loaded.run(arrays)
        return pack(self.plan.graph.result_types, results)


class LoadedProgram:
    """The commands of a plan, whose kernels and constants are on the device."""

    def __init__(
        self, plan: Plan, device: LoadedDevice, options: CodeOptions, progress: ProgressCallback | None
    ) -> None:
        self.device, self._plan, self._options = device, plan, options
        self._progress, self._step_count = progress, plan.step_count
        self._memory, builder, self._commands = commands_of(
            plan, device, options, counts=progress is not None
        )
        self._results: list[LocatedArray] = list(builder.operands(plan.results))
        #: The parameters that the plan writes over.
        self._reused = [number for number in plan.donated if _is_reused(plan, number)]

    def _arrays_of(self, values: list[DeviceArray | NumberArgument]) -> list[DeviceArray]:
        """The arguments as arrays."""
        arrays = [each for each in values if isinstance(each, DeviceArray)]
        numbers = [each for each in values if isinstance(each, NumberArgument)]
        if not numbers:
            return arrays
        for each in numbers:
            if each.is_known and each.array is None:
                (each.array,) = self.device.store_numbers([each])
            each.is_known = True
        # Asked once: another thread that has the same constant may keep it on the device meanwhile.
        kept = [each.array for each in numbers]
        missing = [number for number, array in zip(numbers, kept, strict=True) if array is None]
        stored = iter(self.device.store_numbers(missing))
        those_of_numbers = iter([array or next(stored) for array in kept])
        return [each if isinstance(each, DeviceArray) else next(those_of_numbers) for each in values]

    def run(self, values: list[DeviceArray | NumberArgument]) -> list[DeviceArray]:
        """The results for these arguments."""
        memory, device = self._memory, self.device
        arguments = self._arrays_of(values)
        if memory.has_vectors and any(each.address % VECTOR_NBYTES for each in arguments):
            return self._without_vectors.run([*arguments])
        with device.driver.order_streams([each.memory for each in (*arguments, *memory.constants)]):
            return self._run(arguments)

    @cached_property
    def _without_vectors(self) -> LoadedProgram:
        """The program for arguments that other libraries lend from an address of any element on."""
        options = self._options._replace(has_vectors=False)
        return LoadedProgram(self._plan, self.device, options, self._progress)

    def _run(self, arguments: list[DeviceArray]) -> list[DeviceArray]:
        memory, device = self._memory, self.device
        for number in self._reused:
            if not arguments[number].is_claimed:
                arguments[number] = device.copy_of(arguments[number])
        arena = device.new(TensorType((memory.nbytes,), np.dtype(np.uint8)))
        results = [device.new(buffer.type) for buffer in memory.results]
        counter = None if self._progress is None else StepCounter(self._progress, self._step_count)
        frame = Frame(device, [None, arena, *arguments, *results, *memory.constants], counter)
        run_all(self._commands, frame)
        return [frame.array(each) for each in self._results]


def _is_reused(plan: Plan, parameter: int) -> bool:
    """Whether a step writes over a parameter."""
    return any(
        each.base is not None and not each.is_view and plan.root(each.number) == parameter
        for each in plan.buffers
    )
