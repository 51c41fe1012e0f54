"""Programs of the device: a plan, the commands that it becomes when it first runs, and a run of them.

A run follows the documentation of `xarr.compiler.plan.program_plan`: one block of memory for the arena, memory of its
own for each result, constants that are copied to the device once.  The arena is allocated in each run: what runs at
the same time has its own, and CuPy's pool gives a stream the memory that this stream has freed, without asking the
device.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from xarr.base.progress import ProgressCallback, StepCounter
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.errors import BackendError
from xarr.ir.types import TensorType, TupleType
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import VECTOR_NBYTES, KernelSource
from xarr_cupy.runtime.arrays import DeviceArray, NumberArgument, flatten, pack
from xarr_cupy.runtime.command_builder import CodeOptions, ProgramMemory
from xarr_cupy.runtime.commands import Frame, Launching, LocatedArray, run_all
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
        with self.device.faults:
            return LoadedProgram(self.plan, self.device, self._options, self.progress)

    def with_progress(self, progress: ProgressCallback) -> DeviceProgram:
        """A copy that waits for each step and then tells `progress` how far it is."""
        return DeviceProgram(self.plan, self.device, *self._options[:2], progress)

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        with self.device.driver.active():
            return self._loaded.run(arguments)


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
        located = builder.operands(plan.results)
        #: The slots of the results, where each has memory of its own; else where they are.
        self._slots = _slots_of(located, self._memory)
        self._results: list[LocatedArray] = list(located)
        self._types = plan.graph.result_types
        self._has_tuples = any(
            isinstance(each, TupleType) for each in (*plan.graph.parameter_types, *self._types)
        )
        #: What each run has of its own, the arena first, if there is one.
        arena = TensorType((self._memory.nbytes,), np.dtype(np.uint8))
        self._own = [*([arena] if arena.nbytes else []), *[each.type for each in self._memory.results]]
        self._sizes = [each.nbytes for each in self._own]
        self._constants = [each.memory for each in self._memory.constants]
        #: The parameters that the plan writes over.
        self._reused = [number for number in plan.donated if _is_reused(plan, number)]
        #: The one command of a program that launches, and needs nothing but memory for each of its results.
        self._launching: Launching | None = None
        needs_more = self._has_tuples or self._reused or arena.nbytes or self._constants or progress
        if not needs_more and self._slots == list(range(len(self._own))) and len(self._commands) == 1:
            (command,) = self._commands
            self._launching = command if isinstance(command, Launching) else None

    def run(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """The results for these arguments.  BackendError for those of another backend."""
        command, has_vectors = self._launching, self._memory.has_vectors
        if command is not None:
            for each in arguments:
                if type(each) is not DeviceArray or (has_vectors and each.address % VECTOR_NBYTES):
                    break
            else:
                rest = command.prepared, arguments, self._own, self._sizes
                results = self.device.submit_beside(command.operations, *rest)
                if results is not None:
                    return tuple(results)
        if self._has_tuples:
            return pack(self._types, self._run_anywhere(flatten(arguments)))
        return tuple(self._run_anywhere(arguments))

    def _run_anywhere(self, values: Sequence[Any]) -> list[DeviceArray]:
        """The results for arguments in any memory, and numbers."""
        arrays = self._arrays_of(values)
        if self._memory.has_vectors:
            for array in arrays:
                if array.address % VECTOR_NBYTES:
                    return self._without_vectors._run_anywhere(arrays)
        ordered = self.device.driver.order_streams([*[each.memory for each in arrays], *self._constants])
        if ordered is None:
            return self._run(arrays)
        with ordered:
            return self._run(arrays)

    def _arrays_of(self, values: Sequence[Any]) -> list[DeviceArray]:
        """The arguments as arrays.  BackendError for those of another backend."""
        arrays, new = [*values], []
        for index in [index for index, value in enumerate(values) if type(value) is not DeviceArray]:
            value = values[index]
            if type(value) is not NumberArgument:
                raise BackendError(f"wanted arrays of backend 'cupy', got {type(value).__name__}")
            # In a graph of the caller's it would be stored when that is launched: nothing to keep for others.
            if value.array is None and value.is_known and not self.device.driver.captures():
                (value.array,) = self.device.store_numbers([value])
            if value.array is None:
                value.is_known = True
                new.append(index)
            arrays[index] = value.array
        if new:
            # In one launch, or few.
            stored = self.device.store_numbers([values[index] for index in new])
            for index, array in zip(new, stored, strict=True):
                arrays[index] = array
        return arrays

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
        results = device.new_arrays(self._own, self._sizes)
        arena = results.pop(0) if memory.nbytes else device.nothing
        counter = None if self._progress is None else StepCounter(self._progress, self._step_count)
        arrays = [None, arena, *arguments, *results, *memory.constants]
        frame = Frame(device, arrays, counter)
        run_all(self._commands, frame)
        if self._slots is not None:
            return [results[slot] for slot in self._slots]
        return [frame.array(each) for each in self._results]


def _slots_of(located: Sequence[LocatedArray], memory: ProgramMemory) -> list[int] | None:
    """Which of the results with memory of their own the arrays are; None if one is another, or one is there twice."""
    own = {
        LocatedArray(memory.result(index), buffer.type): index for index, buffer in enumerate(memory.results)
    }
    is_each_one = own.keys() >= set(located) and len(set(located)) == len(located)
    return [own[each] for each in located] if is_each_one else None


def _is_reused(plan: Plan, parameter: int) -> bool:
    """Whether a step writes over a parameter."""
    return any(
        each.base is not None and not each.is_view and plan.root(each.number) == parameter
        for each in plan.buffers
    )
