"""Programs of the device: a plan, the commands that it becomes when it first runs, and a run of them.

A run follows the documentation of `xarr.compiler.plan.program_plan`: one block of memory for the arena, memory of its
own for each result, constants that are copied to the device once.  The arena is allocated in each run: what runs at
the same time has its own, and CuPy's pool gives a stream the memory that this stream has freed, without asking the
device.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

import numpy as np

from xarr.base.progress import ProgressCallback, StepCounter
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan.program_plan import LibraryCall, Plan, Step, Update
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.errors import BackendError
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_cupy import libraries
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import VECTOR_NBYTES, KernelSource
from xarr_cupy.runtime.arrays import DeviceArray, NumberArgument, flatten, pack
from xarr_cupy.runtime.command_builder import (
    ARENA,
    CodeOptions,
    CommandList,
    ProgramMemory,
    kernel_of_operation,
    kernel_of_update,
)
from xarr_cupy.runtime.commands import Commands, Frame, LocatedArray, run_all
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import Location
from xarr_cupy.runtime.loop_commands import ProgramCommands, kernels_of


def _comment_of(node: Node) -> str:
    """A comment with the operation of a node, and the lines that built it or what it consists of."""
    nodes = [node, *[inner for graph in node.op.graphs for inner in graph.nodes]]
    lines = dict.fromkeys(
        f"{os.path.basename(each.source.filename)}:{each.source.line}"
        for each in nodes
        if each.source is not None
    )
    where = f", built at {', '.join(lines)}" if lines else ""
    return f"// {node.op.called} -> {node.type.short()}{where}"


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
    def _kernels(self) -> dict[Kernel, Node]:
        """The loop programs of its groups, each once, with the first node that it computes."""
        steps = [(plan, step) for plan in self.plan.walk() for step in plan.steps]
        kernels: dict[Kernel, Node] = {}
        for plan, step in steps:
            for kernel in kernels_of(plan, step):
                kernels.setdefault(kernel, step.node)
        return kernels

    @cached_property
    def sources(self) -> tuple[KernelSource, ...]:
        """The kernels of its groups, each once."""
        return tuple([emit(kernel, self._options.any_sizes) for kernel in self._kernels])

    def _standalone_kernels(self) -> dict[Kernel, Node]:
        """The loop programs of operations that are part of no group, each with the first node that it computes."""
        kernels: dict[Kernel, Node] = {}
        for plan in self.plan.walk():
            for step in plan.steps:
                kernel = self._standalone_kernel(plan, step)
                if kernel is not None:
                    kernels.setdefault(kernel, step.node)
        return kernels

    def _standalone_kernel(self, plan: Plan, step: Step) -> Kernel | None:
        """The loop program of a step that is one operation, if it has one."""
        node = step.node
        if (
            not isinstance(step, LibraryCall | Update)
            or libraries.multiplies(node)
            or libraries.computes(node)
        ):
            return None
        types, target = tuple([operand.type for operand in node.operands]), self._options.target
        if isinstance(step, Update) and plan.buffers[step.outputs[0]].base is not None:
            return kernel_of_update(node.op, types, target)
        kernel = kernel_of_operation(node.op, types, target)
        return None if kernel is None else kernel.program

    @property
    def text(self) -> str:
        """The plan, and the kernels under comments with the lines of the program that built what they compute."""
        rows = [*self._kernels.items(), *self._standalone_kernels().items()]
        any_sizes = self._options.any_sizes
        texts = [f"{_comment_of(node)}\n{emit(kernel, any_sizes).with_comments()}" for kernel, node in rows]
        return "\n".join([f"{self.plan}\n", *texts])

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
        self.device, self._memory = device, ProgramMemory(plan, device)
        self._plan, self._options = plan, options
        self._progress, self._step_count = progress, plan.step_count
        memory, out = self._memory, CommandList(device)
        own = {buffer.number: memory.result(index) for index, buffer in enumerate(memory.results)}
        builder = ProgramCommands(memory, options, out, plan, Location(ARENA), memory.arguments, own)
        builder.counts = progress is not None
        builder.add_all()
        self._commands: Commands = out.commands()
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
        stored = iter(self.device.store_numbers([each for each in numbers if each.array is None]))
        return [each if isinstance(each, DeviceArray) else each.array or next(stored) for each in values]

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
