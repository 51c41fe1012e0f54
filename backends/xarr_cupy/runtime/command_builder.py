"""From a plan to the commands that run it: where each array lies, and which kernels and copies run one after the other.

All arrays of a program, those of plans inside of steps too, have locations that are known here, so that runs compute
none.  What an operation of its own needs besides, which the plan does not know of, lies behind the plan's arena.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

import numpy as np

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.program_plan import Plan, Step
from xarr.compiler.schedules.gpu.builders import computes, program_of, program_of_update
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType, Type
from xarr_cupy import libraries
from xarr_cupy.codegen.emitter import emit
from xarr_cupy.codegen.kernel_calls import KernelSource
from xarr_cupy.interface import Driver
from xarr_cupy.runtime.arrays import DeviceArray, flatten_types
from xarr_cupy.runtime.commands import (
    Branching,
    Checking,
    Command,
    Commands,
    Computing,
    CountingStep,
    Launching,
    LocatedArray,
    Multiplying,
    Sorting,
    compute_by_host,
    compute_by_library,
)
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import Argument, KernelLaunch, Location, MemoryCopy

#: The slots of the table: 0 is `launches.NUMBER`; then the arena, the arguments, the results, the constants.
ARENA: Final = 1
_FIRST_ARGUMENT: Final = 2


class CodeOptions(NamedTuple):
    """Choices of the code of kernels.

    * `target` - for which machine they are,
    * `any_sizes` - whether they take the sizes of arrays as arguments,
    * `conditions` - bools without which they do nothing,
    * `has_kernels_alone` - whether copies are kernels too,
    * `has_vectors` - whether arguments lie at multiples of 16 bytes, as all else does.
    """

    target: GpuTarget
    any_sizes: bool = False
    conditions: Argument | None = None
    has_kernels_alone: bool = False
    has_vectors: bool = True


def scratch_nbytes(kernel: Kernel) -> int:
    """Bytes of the scratch buffers of a loop program, as they lie one after the other."""
    return sum(aligned_size(each.nbytes) for each in kernel.scratch)


class StandaloneKernel:
    """A loop program that runs outside of a plan's buffers, with the types of its results."""

    def __init__(self, program: Kernel, types: Iterable[TensorType]) -> None:
        self.program, self.types = program, tuple(types)

    @property
    def scratch(self) -> int:
        """Bytes of its scratch buffers."""
        return scratch_nbytes(self.program)


@lru_cache(1024)
def kernel_of_graph(graph: Graph, target: GpuTarget) -> StandaloneKernel:
    """The loop program of a graph whose results are arrays."""
    return StandaloneKernel(program_of(graph, target), flatten_types(graph.result_types))


@lru_cache(1024)
def copy_of(type: TensorType) -> Kernel:
    """The loop program that copies an array."""
    operand = parameter(type)
    return program_of(Graph([operand], [operand]))


@lru_cache(1024)
def kernel_of_operation(op: Op, types: tuple[Type, ...], target: GpuTarget) -> StandaloneKernel | None:
    """The loop program of one operation on operands of these types; None if there is none."""
    operands = [parameter(type) for type in types]
    node = Node(op, tuple(operands))
    return kernel_of_graph(Graph(operands, [node]), target) if computes(node) else None


def runs_as_kernel(node: Node, target: GpuTarget) -> bool:
    """Whether an operation that is part of no group is a kernel, or nothing: no call of a library or of the host."""
    if libraries.multiplies(node) or libraries.computes(node) or node.op.is_ordered:
        return False
    types = tuple([operand.type for operand in node.operands])
    has_elements = any(type.size for type in flatten_types([node.type]))
    return not has_elements or kernel_of_operation(node.op, types, target) is not None


@lru_cache(1024)
def kernel_of_update(op: Op, types: tuple[Type, ...], target: GpuTarget) -> Kernel:
    """The loop program that writes an update into the array that it changes; it takes the other operands."""
    return program_of_update(Node(op, tuple([parameter(type) for type in types])), target)


class ProgramMemory:
    """The slots of a program's table, and what of them is the same in each run.

    * `arguments`, `results` - how many slots those have, `constants` - those that are on the device to stay,
    * `nbytes` - bytes of the arena, with those behind the plan's,
    * `has_vectors` - whether a kernel takes arrays to lie at multiples of 16 bytes.
    """

    def __init__(self, plan: Plan, device: LoadedDevice) -> None:
        self.device = device
        self.constants: list[DeviceArray] = []
        self._arena = aligned_size(plan.layout.arena)
        self.nbytes = self._arena
        self.has_vectors = False
        self.arguments = [Location(_FIRST_ARGUMENT + k) for k in range(len(plan.parameters))]
        #: The buffers that are results with memory of their own, by their slots.
        self.results = [
            each
            for each, memory in zip(plan.buffers, plan.layout.memory, strict=True)
            if memory == "result" and each.base is None
        ]
        self._of_constants: dict[ops.Constant, Location] = {}

    def result(self, index: int) -> Location:
        """The location of a result that has memory of its own, by its index among them."""
        return Location(_FIRST_ARGUMENT + len(self.arguments) + index)

    def constant(self, op: ops.Constant) -> Location:
        """The location of a constant, which is copied to the device now."""
        if op not in self._of_constants:
            slot = _FIRST_ARGUMENT + len(self.arguments) + len(self.results) + len(self.constants)
            self._of_constants[op] = Location(slot)
            self.constants.append(self.device.upload(np.asarray(op.array)))
        return self._of_constants[op]

    def scratch(self) -> ScratchMemory:
        """Memory that one step needs, and no other at the same time."""
        return ScratchMemory(self, self._arena)


class ScratchMemory:
    """Bytes behind the arena of the plan, from `end` on."""

    def __init__(self, memory: ProgramMemory, end: int) -> None:
        self._memory, self._end = memory, end

    def location(self, nbytes: int) -> Location:
        """The location of so many bytes more."""
        start = self._end
        self._end += aligned_size(nbytes)
        self._memory.nbytes = max(self._memory.nbytes, self._end)
        return Location(ARENA, start)

    def operand(self, type: TensorType) -> LocatedArray:
        """An array of a type in bytes of its own."""
        return LocatedArray(self.location(type.nbytes), type)


class CommandList:
    """Commands as they are added, launches that follow one another as one."""

    def __init__(self, device: LoadedDevice) -> None:
        self._driver = device.driver
        self._commands: list[Command] = []
        self._launches: list[KernelLaunch | MemoryCopy] = []
        self._nodes: list[Node] = []

    def launch(self, node: Node, launches: Iterable[KernelLaunch | MemoryCopy]) -> None:
        """Launch what an operation needs."""
        for each in launches:
            self._launches.append(each._replace(node=node) if isinstance(each, KernelLaunch) else each)
        self._nodes.append(node)

    def add(self, command: Command) -> None:
        self._close()
        self._commands.append(command)

    def _close(self) -> None:
        if self._launches:
            prepared = self._driver.prepare(self._launches)
            self._commands.append(Launching(tuple(dict.fromkeys(self._nodes)), prepared))
            self._launches, self._nodes = [], []

    def commands(self) -> Commands:
        self._close()
        return tuple(self._commands)


class PlanCommands(ABC):
    """Adds the commands of a plan to a list.

    * `arena` - where its arena begins, `arguments` - where those are,
    * `results` - where its buffers are that are neither arguments nor constants nor in the arena, by their numbers,
    * `outermost` - the node of the program's graph that it computes a part of, None for the program itself.
    """

    def __init__(
        self,
        memory: ProgramMemory,
        options: CodeOptions,
        out: CommandList,
        plan: Plan,
        arena: Location,
        arguments: Sequence[Location],
        results: Mapping[int, Location],
        outermost: Node | None = None,
    ) -> None:
        self.memory, self.options, self.out = memory, options, out
        self.plan, self.arena, self.outermost = plan, arena, outermost
        #: Whether steps are waited for and counted, those of called functions too.
        self.counts = False
        self._locations = {**dict(zip(plan.parameters, arguments, strict=True)), **results}

    # --- arrays ------------------------------------------------------------------------------------------

    def operand(self, number: int) -> LocatedArray:
        """The array of a buffer."""
        root = self.plan.root(number)
        if root not in self._locations:
            buffer, offset = self.plan.buffers[root], self.plan.layout.offsets[root]
            if buffer.constant is not None:
                self._locations[root] = self.memory.constant(buffer.constant)
            else:
                assert offset is not None, "results have locations"
                self._locations[root] = self.arena.plus(offset)
        return LocatedArray(self._locations[root], self.plan.buffers[number].type)

    def operands(self, numbers: Iterable[int]) -> tuple[LocatedArray, ...]:
        return tuple([self.operand(number) for number in numbers])

    # --- steps -------------------------------------------------------------------------------------------

    def add_all(self) -> None:
        """Add the commands of all steps, but for constants in arrays that no kernel reads."""
        read = {number for step in self.plan.steps for number in self._inputs_read(step)}
        read.update(self.plan.results)
        for index, step in enumerate(self.plan.steps):
            space = self.plan.layout.workspaces[index]
            if not isinstance(step.node.op, ops.BroadcastInDim) or not read.isdisjoint(step.outputs):
                self.add_step(step, self.arena.plus(space.offset if space else 0))
            if self.counts:
                self.out.add(CountingStep(self.node_to_blame(step.node)))

    def _inputs_read(self, step: Step) -> list[int]:
        """The buffers that a step reads."""
        unread = self.unread_inputs(step)
        return [number for k, number in enumerate(step.inputs) if k not in unread]

    def unread_inputs(self, step: Step) -> set[int]:
        """The inputs of a step, by their positions, that its kernels do not read."""
        return set()

    def add_step(self, step: Step, workspace: Location) -> None:
        """Add the commands of a step."""
        inputs = self.operands(step.inputs)
        outputs = self.operands(step.outputs)
        match step:
            case program_plan.View():
                pass
            case program_plan.Launch():
                assert step.program is not None, "plans of this backend are made with its schedule"
                self.launch(step.node, step.program, [*inputs, *outputs], workspace)
            case program_plan.Copy():
                self.copy(step.node, outputs[0], inputs[0])
            case program_plan.CheckStep() if not step.outputs:
                assert step.call is not None
                self.out.add(Checking(self.node_to_blame(step.node), step.call, inputs))
            case program_plan.Update() if outputs[0].location == inputs[0].location:
                kernel = self.kernel_of_update(step.node)
                self.launch(step.node, kernel, [*inputs[1:], *outputs], workspace)
            case program_plan.PlanCall():
                self.call(step, inputs, outputs, workspace)
            case program_plan.Branch():
                self.branch(step, inputs, outputs, workspace)
            case program_plan.LoopStep():
                self.loop(step, inputs, workspace)
            case program_plan.LaunchLoop():
                self.launch_loop(step, inputs, outputs)
            case _:
                self.compute(step, inputs, outputs)

    def node_to_blame(self, node: Node) -> Node:
        """The node of the program's graph that is told where `node` fails."""
        return self.outermost or node

    def copy(self, node: Node, target: LocatedArray, source: LocatedArray) -> None:
        if target.location == source.location or not target.type.nbytes:
            return
        if self.options.conditions is None and not self.options.has_kernels_alone:
            self.out.launch(node, [MemoryCopy(target.location, source.location, target.type.nbytes)])
        else:
            self.launch(node, copy_of(target.type), [source, target], target.location)

    def launch(self, node: Node, kernel: Kernel, arrays: Sequence[LocatedArray], workspace: Location) -> None:
        """Run a loop program."""
        self.out.launch(node, self.launches_of(kernel, arrays, workspace))

    def launches_of(
        self, kernel: Kernel, arrays: Sequence[LocatedArray], workspace: Location
    ) -> list[KernelLaunch]:
        """The launches of a loop program; its scratch buffers lie one after the other in the workspace."""
        conditions = self.options.conditions
        count = conditions.nbytes if conditions else 0
        source = emit(kernel, self.options.any_sizes, count, self.options.has_vectors)
        launches = launches_of(self.memory.device.driver, kernel, source, arrays, workspace)
        self.memory.has_vectors |= any(call.has_vectors for call in source.calls)
        if conditions is None:
            return launches
        return [each._replace(arguments=(conditions, *each.arguments)) for each in launches]

    # --- operations of their own -------------------------------------------------------------------------

    def compute(
        self, step: Step, inputs: tuple[LocatedArray, ...], outputs: tuple[LocatedArray, ...]
    ) -> None:
        """Add one operation: by a library or a kernel where there is one, else by the host."""
        node, blamed = step.node, self.node_to_blame(step.node)
        targets = tuple(
            [
                None if self.plan.buffers[number].is_view else output
                for number, output in zip(step.outputs, outputs, strict=True)
            ]
        )
        if libraries.multiplies(node):
            self.multiply(node, inputs, outputs[0])
        elif libraries.sorts(node):
            self.sort(node, inputs[0], outputs)
        elif libraries.computes(node):
            self.out.add(Computing(blamed, node, compute_by_library, inputs, targets))
        elif (kernel := self._kernel_of(node)) is not None:
            self.launch_alone(node, kernel, inputs, outputs)
        elif node.op.is_ordered or any(type.size for type in flatten_types([node.type])):
            self.out.add(Computing(blamed, node, compute_by_host, inputs, targets))

    def kernel_of_update(self, node: Node) -> Kernel:
        return kernel_of_update(node.op, tuple([each.type for each in node.operands]), self.options.target)

    def _kernel_of(self, node: Node) -> StandaloneKernel | None:
        return kernel_of_operation(node.op, tuple([each.type for each in node.operands]), self.options.target)

    def launch_alone(
        self,
        node: Node,
        kernel: StandaloneKernel,
        inputs: Sequence[LocatedArray],
        outputs: Sequence[LocatedArray],
        scratch: ScratchMemory | None = None,
    ) -> None:
        """Run a loop program that knows nothing of the plan: none of its outputs may lie over an input."""
        scratch = scratch or self.memory.scratch()
        read = {each.location for each in inputs}
        own = [scratch.operand(each.type) if each.location in read else each for each in outputs]
        self.launch(node, kernel.program, [*inputs, *own], scratch.location(kernel.scratch))
        for target, source in zip(outputs, own, strict=True):
            self.copy(node, target, source)

    def multiply(self, node: Node, inputs: Sequence[LocatedArray], output: LocatedArray) -> None:
        """Call cuBLAS, after kernels that transpose what it cannot take as it lies."""
        product, scratch = (
            libraries.product_of(node.op.expect(ops.DotGeneral), inputs[0].type, inputs[1].type),
            self.memory.scratch(),
        )
        lhs, rhs = [
            each if order is None else self.transpose(node, each, order, scratch)
            for each, order in zip(inputs, product.permutations, strict=True)
        ]
        around = libraries.gemm_arguments(product, lhs.type.dtype, output.type.dtype)
        self.out.add(Multiplying(self.node_to_blame(node), around, lhs, rhs, output))

    def sort(self, node: Node, array: LocatedArray, outputs: Sequence[LocatedArray]) -> None:
        """Let CUB sort a copy of an array."""
        if array.type.dtype.kind == "f":
            kernel = kernel_of_graph(libraries.with_one_nan(array.type), self.options.target)
            self.launch_alone(node, kernel, [array], outputs[:1])
        else:
            self.copy(node, outputs[0], array)
        self.out.add(Sorting(self.node_to_blame(node), *outputs))

    def transpose(
        self, node: Node, array: LocatedArray, permutation: Ints, scratch: ScratchMemory
    ) -> LocatedArray:
        kernel = kernel_of_operation(ops.Transpose(permutation), (array.type,), self.options.target)
        assert kernel is not None
        result = scratch.operand(kernel.types[0])
        self.launch_alone(node, kernel, [array], [result], scratch)
        return result

    # --- plans inside of steps ---------------------------------------------------------------------------

    def add_plan(
        self,
        out: CommandList,
        step: Step,
        plan: Plan,
        workspace: Location,
        arguments: Sequence[Location],
        results: Sequence[Location],
    ) -> None:
        """Add the commands of a plan inside of a step, whose arena is the beginning of the workspace."""
        own: dict[int, Location] = {}
        for number, location in zip(plan.results, results, strict=True):
            root = plan.root(number)
            if plan.layout.memory[root] == "result":
                own.setdefault(root, location)
        outermost = self.node_to_blame(step.node)
        inner = type(self)(self.memory, self.options, out, plan, workspace, arguments, own, outermost)
        inner.counts = self.counts and isinstance(step, program_plan.PlanCall)
        inner.add_all()
        # What is an argument is copied first: a result may lie over one.
        copies = [
            (inner.operand(number), location) for number, location in zip(plan.results, results, strict=True)
        ]
        copies.sort(key=lambda pair: pair[0].location not in arguments)
        for source, location in copies:
            inner.copy(step.node, LocatedArray(location, source.type), source)

    def call(
        self,
        step: program_plan.PlanCall,
        inputs: Sequence[LocatedArray],
        outputs: Sequence[LocatedArray],
        workspace: Location,
    ) -> None:
        self.add_plan(
            self.out,
            step,
            step.plan,
            workspace,
            [each.location for each in inputs],
            [each.location for each in outputs],
        )

    def branch(
        self,
        step: program_plan.Branch,
        inputs: Sequence[LocatedArray],
        outputs: Sequence[LocatedArray],
        workspace: Location,
    ) -> None:
        arguments = [each.location for each in inputs[1:]]
        results = [each.location for each in outputs]
        branches = []
        for plan in step.branches:
            out = CommandList(self.memory.device)
            self.add_plan(out, step, plan, workspace, arguments, results)
            branches.append(out.commands())
        self.out.add(Branching(self.node_to_blame(step.node), step, inputs[0], tuple(branches)))

    # --- loops -------------------------------------------------------------------------------------------

    @abstractmethod
    def loop(self, step: program_plan.LoopStep, inputs: Sequence[LocatedArray], workspace: Location) -> None:
        """Add a loop of plans."""

    @abstractmethod
    def launch_loop(
        self, step: program_plan.LaunchLoop, inputs: Sequence[LocatedArray], outputs: Sequence[LocatedArray]
    ) -> None:
        """Add a loop that needs nothing but kernels."""


def launches_of(
    driver: Driver, kernel: Kernel, source: KernelSource, arrays: Sequence[LocatedArray], workspace: Location
) -> list[KernelLaunch]:
    """The launches of a loop program, whose CUDA C++ is `source`: see `PlanCommands.launches_of`."""
    module = driver.load(source.text)
    buffers = (*kernel.inputs, *kernel.outputs)
    locations = {each: array.location for each, array in zip(buffers, arrays, strict=True)}
    for buffer in kernel.scratch:
        locations[buffer] = workspace
        workspace = workspace.plus(aligned_size(buffer.nbytes))
    calls = []
    for call in source.calls:
        # Copies to an output are spared where what is copied can be computed there.
        if call.copied is not None:
            output = locations[call.buffers[0]]
            if call.over.issuperset([each for each in kernel.inputs if locations[each] == output]):
                locations[call.copied] = output
                continue
        calls.append(call)
    calls = [each for each in calls if each.copies is None or len({locations[x] for x in each.copies}) > 1]
    return [
        KernelLaunch(
            module,
            call.name,
            call.blocks,
            tuple([Argument(locations[each], each.nbytes) for each in call.buffers]),
            call.sizes,
            call,
        )
        for call in calls
    ]
