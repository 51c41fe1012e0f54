"""Loops of a plan as commands, with as few looks of the host at their conditions as can be.

A loop of independent points is one launch for many steps.  Any other alternates between two parts of memory.  Where the
number of iterations is known, nothing reads a condition.  Else the kernels of an iteration look at it themselves, and
the host only after a batch of iterations: unless there is something among them that needs the host, or no kernel can
be kept from, such as a call of a library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from copy import copy
from itertools import chain
from typing import Final

import numpy as np

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.program_plan import Plan
from xarr.compiler.schedules.gpu import point_loops
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.while_loops.iterated_groups import IteratedGroup
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_cupy import libraries
from xarr_cupy.codegen.block_loops import NAME, emit_block_loop, shared_bytes
from xarr_cupy.codegen.kernel_calls import KernelCall
from xarr_cupy.runtime.command_builder import (
    CommandList,
    PlanCommands,
    ScratchMemory,
    runs_as_kernel,
    scratch_nbytes,
)
from xarr_cupy.runtime.commands import Command, Commands, Computing, LocatedArray, Sorting
from xarr_cupy.runtime.device import LoadedDevice
from xarr_cupy.runtime.launches import Argument, KernelLaunch, Location, MemoryCopy
from xarr_cupy.runtime.repetitions import Batching, Continuing, Iteration, Looping, Repeating, ShowingProgress

_BOOL: Final = TensorType((), np.dtype(np.bool_))
_BOOLS: Final = TensorType((2,), np.dtype(np.bool_))
#: Blocks of each kernel, and kernels, up to which a pair of iterations is a part of one kernel of one block.
MOST_BLOCKS: Final = 4
MOST_KERNELS: Final = 64
#: Pairs of iterations of one launch, at most, and blocks and kilobytes that they compute and take, one after the other:
#: some tenths of a second, since nothing ends a launch.
MOST_TIMES: Final = 2**14
MOST_WORK: Final = 2**18
_TRUE: Final = ops.Constant.of(np.ones(2, np.bool_))

Arrays = Sequence[LocatedArray]


def kernels_of(plan: Plan, step: program_plan.Step) -> Sequence[Kernel]:
    """The loop programs that a plan says a step of it runs."""
    match step:
        case program_plan.Launch(program=kernel) if kernel is not None:
            return [kernel]
        case program_plan.LaunchLoop(program=NativeLoop() as loop):
            return [point_loops.point_loop(loop, step.node.operands, wanted_results(plan, step)).kernel]
        case program_plan.LaunchLoop(program=IteratedGroup() as loop):
            return [loop.kernel]
    return []


def wanted_results(plan: Plan, step: program_plan.LaunchLoop) -> frozenset[int]:
    """The carried values of a loop whose results a later step reads, or that are results of the plan."""
    outputs = [plan.buffers[number] for number in step.outputs]
    return frozenset([k for k, each in zip(step.carried, outputs, strict=True) if each.end > each.start])


def _work_of(calls: Sequence[KernelCall]) -> int:
    """Blocks that kernels have together, and kilobytes of their buffers."""
    return sum(call.blocks + sum(buffer.nbytes for buffer in call.buffers) // 2**10 for call in calls)


def _pointers_of(
    arguments: Sequence[Sequence[Argument]], calls: Sequence[KernelCall]
) -> tuple[tuple[Argument, ...], list[list[int]]]:
    """The pointers of one kernel for several, and by kernels which of them each parameter is.

    A pointer is a location and a type of the elements there, and knows the largest array at it.
    """
    pointers: dict[tuple[Location, str], Argument] = {}
    keys = [
        [(argument.location, buffer.dtype.name) for argument, buffer in zip(own, call.buffers, strict=True)]
        for own, call in zip(arguments, calls, strict=True)
    ]
    for argument, key in zip(chain.from_iterable(arguments), chain.from_iterable(keys), strict=True):
        if key not in pointers or pointers[key].nbytes < argument.nbytes:
            pointers[key] = argument
    numbers = {key: number for number, key in enumerate(pointers)}
    return tuple(pointers.values()), [[numbers[key] for key in own] for own in keys]


def launches_alone(plan: Plan, target: GpuTarget, repeats: bool, sorts: bool = False) -> bool:
    """Whether a plan is nothing but launches of kernels, where copies are kernels too.

    Then kernels may decide not to do it, and the host has no part in it.  repeats: loops of known length may be there,
    which repeat launches, and not only such of an iteration or two.  sorts: and so may sorts of CUB's that leave no
    trace but in the arena.
    """
    return all(_launches_alone(plan, step, target, repeats, sorts) for step in plan.steps)


def sorts_in_arena(plan: Plan, step: program_plan.Step) -> bool:
    """Whether a step is a sort by CUB, to memory that is not read after the plan: it may be done in vain."""
    if not libraries.sorts(step.node):
        return False
    return all(plan.layout.memory[plan.root(number)] == "arena" for number in step.outputs)


def _launches_alone(
    plan: Plan, step: program_plan.Step, target: GpuTarget, repeats: bool, sorts: bool
) -> bool:
    match step:
        case program_plan.View() | program_plan.Launch() | program_plan.Copy() | program_plan.Update():
            return True
        case program_plan.CheckStep() if not step.outputs:
            return False
        case program_plan.Branch():
            return False
        case program_plan.PlanCall():
            return launches_alone(step.plan, target, repeats, sorts)
        case program_plan.LoopStep():
            is_short = step.iterations is not None and (repeats or step.iterations <= 2)
            return is_short and launches_alone(step.body, target, repeats, sorts)
        case program_plan.LaunchLoop(program=NativeLoop() as loop):
            wanted = wanted_results(plan, step)
            return point_loops.point_loop(loop, step.node.operands, wanted).launches is not None
        case program_plan.LaunchLoop(program=IteratedGroup() as group):
            is_short = step.iterations is not None and (repeats or step.iterations <= 2)
            return is_short and _scalar_loop(step, group).launches is not None
        case _:
            return runs_as_kernel(step.node, target) or (sorts and sorts_in_arena(plan, step))


def _scalar_loop(step: program_plan.LaunchLoop, group: IteratedGroup) -> point_loops.PointLoop:
    """The loop of the scalars of an iterated group, and how many launches it takes."""
    scalars = [step.node.operands[k] for k in group.scalar_indices]
    return point_loops.point_loop(group.scalars, scalars, frozenset(range(len(scalars))))


class _LaunchList(CommandList):
    """A list of launches of kernels, which are not prepared."""

    def __init__(self, device: LoadedDevice) -> None:
        super().__init__(device)
        self.kernels: list[KernelLaunch] = []

    def launch(self, node: Node, launches: Iterable[KernelLaunch | MemoryCopy]) -> None:
        for each in launches:
            assert isinstance(each, KernelLaunch), "copies are kernels here"
            self.kernels.append(each)

    def add(self, command: Command) -> None:
        raise AssertionError("`launches_alone` holds for what is added here")


class ProgramCommands(PlanCommands):
    """Adds the commands of a plan to a list, those of its loops too."""

    # --- parts of the commands ---------------------------------------------------------------------------

    def part(self, conditions: Argument | None = None) -> ProgramCommands:
        """A builder like this one that has a list of its own, of launches that ask for `conditions`."""
        builder = copy(self)
        if conditions is not None:
            builder.options = self.options._replace(conditions=conditions)
        builder.out = CommandList(self.memory.device)
        return builder

    def copies(self, node: Node, targets: Arrays, sources: Arrays) -> Commands:
        """The commands that copy those arrays that lie elsewhere."""
        builder = self.part()
        builder.copy_all(node, targets, sources)
        return builder.out.commands()

    def copy_all(self, node: Node, targets: Arrays, sources: Arrays) -> None:
        for target, source in zip(targets, sources, strict=True):
            self.copy(node, target, source)

    def repeat(
        self, node: Node, times: int, build: Callable[[ProgramCommands], None], has_kernels_alone: bool
    ) -> None:
        """Add what `build` adds to a list so many times: as one kernel if little is done each time."""
        if times > 1 and has_kernels_alone and self._repeat_in_one_block(node, times, build):
            return
        if times > 0:
            repeated = self.part()
            build(repeated)
            self.out.add(Repeating(self.node_to_blame(node), repeated.out.commands(), times))

    def _repeat_in_one_block(self, node: Node, times: int, build: Callable[[ProgramCommands], None]) -> bool:
        """Add a kernel that is the loop itself; False where it has to be more than a few kernels of few blocks each."""
        if self.options.any_sizes or self.options.conditions is not None:
            return False
        builder = copy(self)
        builder.options = self.options._replace(has_kernels_alone=True)
        builder.out = launched = _LaunchList(self.memory.device)
        build(builder)
        calls = [
            each.call for each in launched.kernels if each.call is not None and each.blocks <= MOST_BLOCKS
        ]
        if not len(calls) == len(launched.kernels) <= MOST_KERNELS:
            return False
        if shared_bytes(calls) > self.options.target.local_bytes:
            return False
        pointers, parameters = _pointers_of([each.arguments for each in launched.kernels], calls)
        module = self.memory.device.driver.load(emit_block_loop(calls, parameters, len(pointers)))
        most = max(1, min(MOST_TIMES, MOST_WORK // _work_of(calls)))
        full, rest = (
            KernelLaunch(module, NAME, 1, pointers, (np.int64(count),)) for count in (most, times % most)
        )
        if times >= most:
            repeated = self.part()
            repeated.out.launch(node, [full])
            self.out.add(
                Repeating(self.node_to_blame(node), repeated.out.commands(), times // most, 2 * most)
            )
        if times % most:
            self.out.launch(node, [rest])
        return True

    def add_step(self, step: program_plan.Step, workspace: Location) -> None:
        progress = step.op.progress if isinstance(step.op, ops.While) else None
        is_shown = progress is not None or (self.counts and isinstance(step.op, ops.While))
        if not is_shown or self.options.conditions is not None or self.options.has_kernels_alone:
            super().add_step(step, workspace)
            return
        loop = self.part()
        PlanCommands.add_step(loop, step, workspace)
        carried, commands = self.operands(step.inputs), loop.out.commands()
        shown = progress, self.counts, step.iterations, carried
        self.out.add(ShowingProgress(self.node_to_blame(step.node), *shown, commands))

    # --- loops of plans ----------------------------------------------------------------------------------

    def loop(self, step: program_plan.LoopStep, inputs: Arrays, workspace: Location) -> None:
        """Add a loop of plans, whose state lies in the buffers of the step and in their spares in turn."""
        state = self.operands(step.state)
        *spares, offset = step.spares
        assert offset is not None
        others = [
            each if spare is None else LocatedArray(workspace.plus(spare), each.type)
            for each, spare in zip(state, spares, strict=True)
        ]
        if step.iterations is not None:
            self._counted_loop(step, step.iterations, inputs, (state, others), workspace)
            return
        assert self.options.conditions is None, "the host has no part in what kernels decide on"
        conditions = LocatedArray(workspace.plus(offset), _BOOLS)
        batches = self._in_batches(step, inputs, (state, others), workspace, conditions)
        self.out.add(batches or self._one_by_one(step, inputs, (state, others), workspace, conditions))

    def _counted_loop(
        self,
        step: program_plan.LoopStep,
        count: int,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        workspace: Location,
    ) -> None:
        """Add a loop of so many iterations, the last of which leaves the state in the first of two memories."""
        if count == 0:
            self.copy_all(step.node, states[0], inputs)
            return
        target, other = (states[0], states[1]) if count % 2 else (states[1], states[0])
        in_place = {
            own.location for own, spare in zip(*states, strict=True) if own.location == spare.location
        }
        # The first iteration reads inputs where they are, unless it writes there.
        first = []
        for own, source in zip(other, inputs, strict=True):
            is_copied = bool({own.location, source.location} & in_place)
            first.append(own if is_copied else source)
            if is_copied:
                self.copy(step.node, own, source)
        self._run_plan(step, step.body, workspace, first, target)
        if count == 1:
            return
        if count % 2 == 0:
            self._run_plan(step, step.body, workspace, target, other)
            target, other = other, target

        def add_pair(builder: ProgramCommands) -> None:
            for present, following in ((target, other), (other, target)):
                builder._run_plan(step, step.body, workspace, present, following)

        has_kernels_alone = launches_alone(step.body, self.options.target, repeats=False)
        self.repeat(step.node, (count - 1) // 2, add_pair, has_kernels_alone)

    def _run_plan(
        self, step: program_plan.LoopStep, plan: Plan, workspace: Location, present: Arrays, results: Arrays
    ) -> None:
        arguments, locations = ([each.location for each in arrays] for arrays in (present, results))
        self.add_plan(self.out, step, plan, workspace, arguments, locations)

    def _in_batches(
        self,
        step: program_plan.LoopStep,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        workspace: Location,
        conditions: LocatedArray,
    ) -> Batching | None:
        """A loop whose kernels look at its conditions; None where something in it is no kernel.

        A condition that was computed twice must be the same both times, which atomic sums of floats are not.
        """
        target = self.options.target
        if not target.deterministic:
            return None
        if not all(launches_alone(plan, target, repeats=True, sorts=True) for plan in (step.cond, step.body)):
            return None
        commands: list[Command] = []
        for number, (present, following) in enumerate((states, states[::-1])):
            condition, body = self._conditional_parts(conditions.location, number)
            holds = LocatedArray(conditions.location.plus(number), _BOOL)
            condition._run_plan(step, step.cond, workspace, present, [holds])
            body._run_plan(step, step.body, workspace, present, following)
            commands += [*condition.out.commands(), *body.out.commands()]
        return self._batching(step, inputs, states, conditions, commands)

    def _conditional_parts(
        self, conditions: Location, number: int
    ) -> tuple[ProgramCommands, ProgramCommands]:
        """The builders of what computes condition `number`, unless the other one ended the loop, and of the body."""
        other = Argument(conditions.plus(1 - number), 1)
        return self.part(other), self.part(Argument(conditions, 2))

    def _batching(
        self,
        step: program_plan.Step,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        conditions: LocatedArray,
        pair: Sequence[Command],
    ) -> Batching:
        start = self.part()
        start.copy_all(step.node, states[0], inputs)
        start.copy(step.node, conditions, LocatedArray(self.memory.constant(_TRUE), _BOOLS))
        finish = (), self.copies(step.node, *states)
        node = self.node_to_blame(step.node)
        return Batching(
            node, step, start.out.commands(), tuple(pair), conditions, finish, _have_libraries(pair)
        )

    def _one_by_one(
        self,
        step: program_plan.LoopStep,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        workspace: Location,
        conditions: LocatedArray,
    ) -> Looping:
        """A loop whose condition the host reads before each iteration."""
        holds = LocatedArray(conditions.location, _BOOL)
        iterations = []
        for number, (present, following) in enumerate((states, states[::-1])):
            condition, body = self.part(), self.part()
            condition._run_plan(step, step.cond, workspace, present, [holds])
            body._run_plan(step, step.body, workspace, present, following)
            finish = self.copies(step.node, states[0], present)
            parts = condition.out.commands(), holds, body.out.commands()
            iterations.append(Iteration(*parts, 1 - number, finish))
        start = self.copies(step.node, states[0], inputs)
        return Looping(self.node_to_blame(step.node), step, start, tuple(iterations))

    # --- native loops ------------------------------------------------------------------------------------

    def unread_inputs(self, step: program_plan.Step) -> set[int]:
        if not isinstance(step, program_plan.LaunchLoop) or not isinstance(step.program, NativeLoop):
            return set()
        wanted = wanted_results(self.plan, step)
        loop = point_loops.point_loop(step.program, step.node.operands, wanted)
        return point_loops.unread_inputs(loop)

    def launch_loop(self, step: program_plan.LaunchLoop, inputs: Arrays, outputs: Arrays) -> None:
        if isinstance(step.program, NativeLoop):
            self._loop_over_points(step, step.program, inputs, outputs)
        else:
            assert isinstance(step.program, IteratedGroup), "plans of this backend are made with its schedule"
            self._iterated_group(step, step.program, inputs, outputs)

    def _loop_over_points(
        self, step: program_plan.LaunchLoop, loop: NativeLoop, inputs: Arrays, outputs: Arrays
    ) -> None:
        """Add a loop of independent points: one launch takes many steps, and the next one goes on in the outputs."""
        wanted = wanted_results(self.plan, step)
        kernel, count, results = point_loops.point_loop(loop, step.node.operands, wanted)
        scratch = self.memory.scratch()
        more = [] if count is not None else [scratch.operand(_BOOL)]
        workspace = scratch.location(scratch_nbytes(kernel))
        state = _replace_arrays(inputs, step.carried, outputs)
        by_number = dict(zip(step.carried, outputs, strict=True))
        outputs = [by_number[k] for k in results]
        first, following = (
            self.launches_of(kernel, [*before, *outputs, *more], workspace) for before in (inputs, state)
        )
        if count is not None:
            self.out.launch(step.node, [*first, *following * (count - 1)])
            return
        lists = self.part().out, self.part().out
        for out, launches in zip(lists, (first, following), strict=True):
            out.launch(step.node, launches)
        node = self.node_to_blame(step.node)
        self.out.add(Continuing(node, step, lists[0].commands(), lists[1].commands(), more[0]))

    def _iterated_group(
        self, step: program_plan.LaunchLoop, group: IteratedGroup, inputs: Arrays, outputs: Arrays
    ) -> None:
        """Add a loop of one group, which reads one of two memories and writes the other, and of some scalars."""
        scratch = self.memory.scratch()
        own = _replace_arrays(inputs, step.carried, outputs)
        spares = [scratch.operand(each.type) for each in outputs]
        other = _replace_arrays(inputs, step.carried, spares)
        states, workspace = (own, other), scratch.location(scratch_nbytes(group.kernel))
        changing = group.changing_scalars()
        kernel, launches, _ = _scalar_loop(step, group)
        if step.iterations is None or launches is None:
            self._group_in_batches(step, group, inputs, states, scratch, workspace)
            return
        if not wanted_results(self.plan, step).isdisjoint(changing):
            before, after = (
                [those[k] for k in numbers]
                for those, numbers in ((inputs, group.scalar_indices), (own, changing))
            )
            self.out.launch(step.node, self.launches_of(kernel, [*before, *after], workspace) * launches)
        self._counted_group(step, group, step.iterations, inputs, states, workspace)

    def _counted_group(
        self,
        step: program_plan.LaunchLoop,
        group: IteratedGroup,
        count: int,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        workspace: Location,
    ) -> None:
        own, other = states
        results = [own[k] for k in group.results]
        if count == 0:
            self.copy_all(step.node, results, [inputs[k] for k in group.results])
            return
        overwrites = {each.location for each in results} & {inputs[k].location for k in group.operands}
        target, source = (own, other) if count % 2 and not overwrites else (other, own)
        self._launch_group(step, group, inputs, target, workspace)

        def add_pair(builder: ProgramCommands) -> None:
            for present, following in ((target, source), (source, target)):
                builder._launch_group(step, group, present, following, workspace)

        self.repeat(step.node, (count - 1) // 2, add_pair, has_kernels_alone=True)
        if count % 2 == 0:
            self._launch_group(step, group, target, source, workspace)
            target = source
        self.copy_all(step.node, results, [target[k] for k in group.results])

    def _launch_group(
        self,
        step: program_plan.LaunchLoop,
        group: IteratedGroup,
        present: Arrays,
        following: Arrays,
        workspace: Location,
    ) -> None:
        arrays = [*[present[k] for k in group.operands], *[following[k] for k in group.results]]
        self.launch(step.node, group.kernel, arrays, workspace)

    def _group_in_batches(
        self,
        step: program_plan.LaunchLoop,
        group: IteratedGroup,
        inputs: Arrays,
        states: tuple[Arrays, Arrays],
        scratch: ScratchMemory,
        workspace: Location,
    ) -> None:
        """Add the loop with a step of the scalars, which says whether there is one, in front of each of the group."""
        assert self.options.conditions is None, "the host has no part in what kernels decide on"
        conditions, commands = scratch.operand(_BOOLS), []
        scalars = point_loops.program(group.scalars, 1, True)
        for number, (present, following) in enumerate((states, states[::-1])):
            condition, body = self._conditional_parts(conditions.location, number)
            holds = LocatedArray(conditions.location.plus(number), _BOOL)
            before = [present[k] for k in group.scalar_indices]
            after = [following[k] for k in group.changing_scalars()]
            condition.launch(step.node, scalars, [*before, *after, holds], workspace)
            body._launch_group(step, group, present, following, workspace)
            commands += [*condition.out.commands(), *body.out.commands()]
        self.out.add(self._batching(step, inputs, states, conditions, commands))


def _have_libraries(commands: Sequence[Command]) -> bool:
    """Whether a library computes a part of launches that are repeated."""
    return any(
        isinstance(each, Computing | Sorting)
        or (isinstance(each, Repeating) and _have_libraries(each.commands))
        for each in commands
    )


def _replace_arrays(arrays: Arrays, numbers: Iterable[int], others: Arrays) -> list[LocatedArray]:
    """Arrays with others in place of those of these numbers."""
    replaced = list(arrays)
    for k, other in zip(numbers, others, strict=True):
        replaced[k] = other
    return replaced
