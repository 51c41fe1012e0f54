"""Plans on a device: memory, kernels one after the other, and the host where a table says so.

A run follows the documentation of `xarr.compiler.plan.program_plan`: one block of memory for the arena, memory of its
own for each result, constants that are copied to the device once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any, Final

import numpy as np

from xarr.base.custom_calls import run_custom_call
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.program_plan import Plan, PlanBuffer, Step
from xarr.compiler.schedules.gpu.builders import computes, program_of
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType, TupleType, Type
from xarr_cupy import host, libraries
from xarr_cupy.driver import DeviceMemory, Driver
from xarr_cupy.emitter import KernelSource, emit

#: Operations that the error for a fault lists at most.
_MOST_RECENT: Final = 8


class DeviceArray:
    """Elements in row-major order, in memory of a device, from `offset` bytes on."""

    __slots__ = ("__weakref__", "memory", "offset", "type")

    def __init__(self, memory: DeviceMemory, type: TensorType, offset: int = 0) -> None:
        self.memory, self.type, self.offset = memory, type, offset

    @property
    def address(self) -> int:
        return self.memory.address + self.offset

    def as_type(self, type: TensorType) -> DeviceArray:
        """An array of another shape or other elements, of as many bytes, in the memory of this one."""
        return DeviceArray(self.memory, type, self.offset)


class LoadedDevice:
    """A driver, and the operations that ran on it last, which the error of a device that failed names."""

    def __init__(self, driver: Driver) -> None:
        self.driver = driver
        self.recent: deque[Node] = deque(maxlen=_MOST_RECENT)

    def new(self, type: TensorType) -> DeviceArray:
        return DeviceArray(self.driver.allocate(type.nbytes), type)

    def upload(self, array: np.ndarray[Any, Any]) -> DeviceArray:
        made = self.new(TensorType(array.shape, array.dtype))
        self._fill(made, array)
        return made

    def _fill(self, target: DeviceArray, array: np.ndarray[Any, Any]) -> None:
        if array.size:
            self.driver.upload(target.address, np.ascontiguousarray(array))

    def write(self, target: DeviceArray, value: np.ndarray[Any, Any] | DeviceArray) -> None:
        """Copy a value of the host or of the device into an array."""
        if not isinstance(value, DeviceArray):
            self._fill(target, np.asarray(value, target.type.dtype))
        elif target.address != value.address and target.type.nbytes:
            self.driver.copy(target.address, value.address, target.type.nbytes)

    def download(self, array: DeviceArray) -> np.ndarray[Any, Any]:
        made = np.empty(array.type.shape, array.type.dtype)
        if made.size:
            try:
                self.driver.download(made, array.address)
            except BackendError as error:
                for node in reversed(self.recent):
                    error.add_note(
                        f"launched before: {node.op.called} -> {node.type}, built at {node.source}"
                    )
                raise
            self.recent.clear()
        return made

    def launch(
        self, kernel: Kernel, source: KernelSource, arrays: Sequence[DeviceArray], workspace: int
    ) -> None:
        """Run a loop program; its scratch buffers lie one after the other from the address `workspace` on."""
        module = self.driver.load(source.text)
        buffers = (*kernel.inputs, *kernel.outputs)
        addresses = {each: array.address for each, array in zip(buffers, arrays, strict=True)}
        for buffer in kernel.scratch:
            addresses[buffer] = workspace
            workspace += aligned_size(buffer.nbytes)
        # Copies to an output are spared where what is copied can be computed there: not over an input.
        in_place = not {addresses[each] for each in kernel.inputs} & {addresses[x] for x in kernel.outputs}
        for call in source.calls:
            if call.copied is not None and in_place:
                addresses[call.copied] = addresses[call.buffers[0]]
        for call in source.calls:
            if call.copied is not None and in_place:
                continue
            arguments = [(addresses[each], each.nbytes) for each in call.buffers]
            self.driver.launch(module, call.name, call.blocks, arguments, call.sizes)


class PlanRun:
    """The arrays of one run of a plan, by the numbers of their buffers."""

    def __init__(
        self, program: DeviceProgram, plan: Plan, arguments: Sequence[DeviceArray], arena: DeviceArray
    ) -> None:
        self.program, self.device = program, program.device
        self.plan, self.arena = plan, arena
        self.arrays = dict(zip(plan.parameters, arguments, strict=True))
        for index, step in enumerate(plan.steps):
            space = plan.layout.workspaces[index]
            self.workspace = DeviceArray(
                arena.memory, arena.type, arena.offset + (space.offset if space else 0)
            )
            self.step(step)
            for buffer in plan.buffers:
                if buffer.end == index:
                    self.arrays.pop(buffer.number, None)

    def results(self) -> list[DeviceArray]:
        return [self.array(number) for number in self.plan.results]

    def array(self, number: int) -> DeviceArray:
        if number not in self.arrays:
            self.arrays[number] = self._memory_of(self.plan.buffers[number])
        return self.arrays[number]

    def _memory_of(self, buffer: PlanBuffer) -> DeviceArray:
        if buffer.constant is not None:
            return self.program.constant(buffer.constant)
        if buffer.base is not None:
            return self.array(buffer.base).as_type(buffer.type)
        offset = self.plan.layout.offsets[buffer.number]
        if offset is None:
            return self.device.new(buffer.type)
        return DeviceArray(self.arena.memory, buffer.type, self.arena.offset + offset)

    # --- steps -------------------------------------------------------------------------------------------

    def step(self, step: Step) -> None:
        inputs = [self.array(number) for number in step.inputs]
        if isinstance(step, program_plan.Launch):
            assert step.program is not None, "plans of this backend are made with its schedule"
            outputs = [self.array(number) for number in step.outputs]
            self.device.recent.append(step.node)
            source = self.program.source_of(step.program)
            self.device.launch(step.program, source, [*inputs, *outputs], self.workspace.address)
            return
        if isinstance(step, program_plan.View):
            return
        for number, value in zip(step.outputs, self.values(step, inputs), strict=True):
            if not self.plan.buffers[number].is_view:
                self.device.write(self.array(number), value)

    def values(self, step: Step, inputs: list[DeviceArray]) -> Sequence[Any]:
        """The results of a step, on the host or on the device."""
        match step:
            case program_plan.Copy():
                return inputs
            case program_plan.CheckStep() if not step.outputs:
                return self.check(step, inputs)
            case program_plan.PlanCall():
                return self.run_inside(step.plan, inputs)
            case program_plan.Branch():
                return self.branch(step, inputs)
            case program_plan.LoopStep():
                return self.loop(step, inputs)
            case program_plan.LaunchLoop():
                return self.launch_loop(step, inputs)
            case _:
                return self.compute(step.node, inputs)

    def check(self, step: program_plan.CheckStep, inputs: Sequence[DeviceArray]) -> Sequence[Any]:
        assert step.call is not None
        host.CALLS[step.call.name, host.OPERATIONS[ops.CustomCall]] += 1
        arrays = tuple([self.device.download(each) for each in inputs])
        described = tuple([(each.dtype, each.shape) for each in arrays])
        run_custom_call(step.call.call_target_name, dict(step.call.attribute_items), described, arrays)
        return []

    def compute(self, node: Node, inputs: Sequence[DeviceArray]) -> Sequence[Any]:
        """The results of one operation: by a library or a kernel where there is one, else by the host."""
        if libraries.computes(node):
            self.device.recent.append(node)
            return self.compute_by_library(node, inputs)
        kernel = kernel_of_operation(
            node.op, tuple([operand.type for operand in node.operands]), self.program.target
        )
        if kernel is not None:
            self.device.recent.append(node)
            return self.launch_operation(kernel, inputs)
        types = flatten_types([node.type])
        if not any(type.size for type in types):
            return [self.device.new(type) for type in types]
        values = [self.device.download(each) for each in inputs]
        packed = pack([operand.type for operand in node.operands], values)
        return flatten(host.compute(node, list(packed)))

    def compute_by_library(self, node: Node, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results of an operation that `libraries.computes`, in new memory."""
        driver, types = self.device.driver, flatten_types([node.type])
        if isinstance(node.op, ops.DotGeneral):
            product = libraries.product_of(node.op, inputs[0].type, inputs[1].type)
            permutations = zip(product.permutations, inputs, strict=True)
            lhs, rhs = [self.transpose(array, order) if order else array for order, array in permutations]
            result = self.device.new(types[0])
            dtypes, addresses = (lhs.type.dtype, types[0].dtype), (lhs.address, rhs.address, result.address)
            driver.gemm(libraries.gemm_arguments(product, dtypes, addresses))
            return [result]
        with driver.library_calls():
            arrays = [driver.view(each.memory, each.offset, each.type) for each in inputs]
            results = libraries.ROUTINES[type(node.op)](driver.arrays, node.op, *arrays)
            pairs = zip(results, types, strict=True)
            return [DeviceArray(driver.memory_of(each.astype(type.dtype)), type) for each, type in pairs]

    def transpose(self, array: DeviceArray, permutation: Ints) -> DeviceArray:
        kernel = kernel_of_operation(ops.Transpose(permutation), (array.type,), self.program.target)
        assert kernel is not None
        return self.launch_operation(kernel, [array])[0]

    def launch_operation(self, kernel: StandaloneKernel, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results of a loop program, in new memory."""
        results = [self.device.new(type) for type in kernel.types]
        nbytes = sum(aligned_size(each.nbytes) for each in kernel.program.scratch)
        workspace = self.device.driver.allocate(nbytes)
        source = self.program.source_of(kernel.program)
        self.device.launch(kernel.program, source, [*inputs, *results], workspace.address)
        return results

    # --- plans inside of steps ---------------------------------------------------------------------------

    def run_inside(self, plan: Plan, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        """The results of a plan inside of a step, whose arena is the beginning of the workspace."""
        return PlanRun(self.program, plan, inputs, self.workspace).results()

    def branch(self, step: program_plan.Branch, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        host.CALLS[step.op.name, host.CONTROL[step.word]] += 1
        chosen, count = self.device.download(inputs[0]), len(step.branches)
        number = 1 - int(chosen) if chosen.dtype == np.bool_ else int(chosen)
        return self.run_inside(step.branches[number if 0 <= number < count else -1], inputs[1:])

    def holds(self, step: Step, condition: DeviceArray) -> bool:
        host.CALLS[step.op.name, host.CONTROL[step.word]] += 1
        return bool(self.device.download(condition))

    def loop(self, step: program_plan.LoopStep, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        state = [self.copy(value) if k in step.body.donated else value for k, value in enumerate(inputs)]
        while self.holds(step, self.run_inside(step.cond, state)[0]):
            state = self.run_inside(step.body, state)
        return [state[k] for k, number in enumerate(step.state) if number in step.outputs]

    def copy(self, array: DeviceArray) -> DeviceArray:
        made = self.device.new(array.type)
        self.device.write(made, array)
        return made

    def launch_loop(self, step: program_plan.LaunchLoop, inputs: Sequence[DeviceArray]) -> list[DeviceArray]:
        condition, body = (kernel_of_graph(graph, self.program.target) for graph in step.op.graphs)
        state = list(inputs)
        while self.holds(step, self.launch_operation(condition, state)[0]):
            state = self.launch_operation(body, state)
        return [state[k] for k in step.carried]


class StandaloneKernel:
    """A loop program that runs outside of a plan's buffers, with the types of its results."""

    def __init__(self, program: Kernel, types: Iterable[TensorType]) -> None:
        self.program, self.types = program, tuple(types)


@lru_cache(1024)
def kernel_of_graph(graph: Graph, target: GpuTarget) -> StandaloneKernel:
    """The loop program of a graph whose results are arrays."""
    return StandaloneKernel(program_of(graph, target), flatten_types(graph.result_types))


@lru_cache(1024)
def kernel_of_operation(op: Op, types: tuple[Type, ...], target: GpuTarget) -> StandaloneKernel | None:
    """The loop program of one operation on operands of these types; None if there is none."""
    operands = [parameter(type) for type in types]
    node = Node(op, tuple(operands))
    return kernel_of_graph(Graph(operands, [node]), target) if computes(node) else None


class DeviceProgram:
    """A compiled graph: its plan, and the CUDA C++ of its kernels, for sizes of its own or for `any_sizes`."""

    def __init__(self, plan: Plan, device: LoadedDevice, target: GpuTarget, any_sizes: bool = False) -> None:
        self.plan, self.device, self.target, self.any_sizes = plan, device, target, any_sizes
        self._constants: dict[ops.Constant, DeviceArray] = {}

    def constant(self, op: ops.Constant) -> DeviceArray:
        """A constant on the device, where it stays."""
        if op not in self._constants:
            self._constants[op] = self.device.upload(np.asarray(op.array))
        return self._constants[op]

    def source_of(self, kernel: Kernel) -> KernelSource:
        """The CUDA C++ of a loop program."""
        return emit(kernel, self.any_sizes)

    @cached_property
    def sources(self) -> tuple[KernelSource, ...]:
        """The kernels of its groups, each once."""
        steps = [step for plan in self.plan.walk() for step in plan.steps]
        kernels = dict.fromkeys(step.program for step in steps if isinstance(step, program_plan.Launch))
        return tuple([self.source_of(kernel) for kernel in kernels if kernel is not None])

    @property
    def text(self) -> str:
        return "\n".join([f"{self.plan}\n", *[source.text for source in self.sources]])

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__

    def __call__(self, *arguments: Any) -> tuple[Any, ...]:
        arrays = flatten(arguments)
        for each in arrays:
            if not isinstance(each, DeviceArray):
                raise BackendError(f"wanted arrays of backend 'cupy', got {type(each).__name__}")
        with self.device.driver.active():
            arena = self.device.new(TensorType((self.plan.layout.arena,), np.dtype(np.uint8)))
            results = PlanRun(self, self.plan, arrays, arena).results()
        return pack(self.plan.graph.result_types, results)


# --- tuples --------------------------------------------------------------------------------------------------


def flatten(values: Sequence[Any]) -> list[Any]:
    """The arrays among values, those in tuples one by one."""
    return [each for value in values for each in (flatten(value) if isinstance(value, tuple) else [value])]


def flatten_types(types: Sequence[Type]) -> list[TensorType]:
    """The types of the arrays among values of these types."""
    flat: list[TensorType] = []
    for type in types:
        if isinstance(type, TupleType):
            flat += flatten_types(type.elements)
        else:
            assert isinstance(type, TensorType)
            flat.append(type)
    return flat


def pack(types: Sequence[Type], arrays: Iterable[Any]) -> tuple[Any, ...]:
    """The reverse of `flatten`: values of these types."""
    # No function inside, which would be a cycle and keep the arrays until the garbage collector comes by.
    return _take_values(types, iter(arrays))


def _take_values(types: Sequence[Type], left: Iterator[Any]) -> tuple[Any, ...]:
    """Values of these types, of the arrays that are left."""
    return tuple(
        [_take_values(type.elements, left) if isinstance(type, TupleType) else next(left) for type in types]
    )
