"""Loops: the commands of one iteration, in turn from one part of memory to another, and who reads the condition."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.schedules.gpu.point_loops import point_loop
from xarr.compiler.while_loops.iterated_groups import IteratedGroup
from xarr.compiler.while_loops.native_loops import NativeLoop
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_cupy import host
from xarr_cupy.runtime.command_builder import CommandList, PlanCommands, kernel_of_graph
from xarr_cupy.runtime.commands import Commands, Frame, LocatedArray, run_all
from xarr_cupy.runtime.launches import Location, MemoryCopy

_BOOL: Final = TensorType((), np.dtype(np.bool_))


class Iteration(NamedTuple):
    """An iteration of a loop whose state lies in certain memory.

    * `condition`, `holds` - what computes whether there is one more iteration, and where that bool is then,
    * `body`, `following` - what computes the next state, and the number of the iteration that finds it,
    * `finish` - what copies the state to the results if the loop ends here.
    """

    condition: Commands
    holds: LocatedArray
    body: Commands
    following: int
    finish: Commands


class Looping(NamedTuple):
    """Run a loop, whose condition the host reads before each iteration.

    `start` copies what is carried to the state of the first of `iterations`.
    """

    node: Node
    step: program_plan.Step
    start: Commands
    iterations: tuple[Iteration, ...]

    def run(self, frame: Frame) -> None:
        run_all(self.start, frame)
        present = self.iterations[0]
        while self._holds(present, frame):
            run_all(present.body, frame)
            present = self.iterations[present.following]
        run_all(present.finish, frame)

    def _holds(self, iteration: Iteration, frame: Frame) -> bool:
        run_all(iteration.condition, frame)
        return read_condition(self.step, iteration.holds, frame)


class Continuing(NamedTuple):
    """Run `first`, and `following` as long as `more` is true behind them, which the host reads."""

    node: Node
    step: program_plan.Step
    first: Commands
    following: Commands
    more: LocatedArray

    def run(self, frame: Frame) -> None:
        run_all(self.first, frame)
        while read_condition(self.step, self.more, frame):
            run_all(self.following, frame)


def read_condition(step: program_plan.Step, holds: LocatedArray, frame: Frame) -> bool:
    """A bool that says whether a loop goes on."""
    host.CALLS[step.op.name, host.CONTROL[step.word]] += 1
    return bool(frame.read(holds))


def kernels_of(step: program_plan.Step) -> Sequence[Kernel]:
    """The loop programs that a plan says a step runs."""
    match step:
        case program_plan.Launch(program=kernel) if kernel is not None:
            return [kernel]
        case program_plan.LaunchLoop(program=NativeLoop() as loop):
            return [point_loop(loop, step.node.operands).kernel]
        case program_plan.LaunchLoop(program=IteratedGroup() as loop):
            return [loop.kernel]
    return []


class ProgramCommands(PlanCommands):
    """Adds the commands of a plan to a list, those of its loops too."""

    def loop(self, step: program_plan.LoopStep, inputs: Sequence[LocatedArray], workspace: Location) -> None:
        """Add a loop of plans, whose state lies in the buffers of the step and in their spares in turn."""
        state = self.operands(step.state)
        *spares, offset = step.spares
        assert offset is not None
        others = [
            each if spare is None else LocatedArray(workspace.plus(spare), each.type)
            for each, spare in zip(state, spares, strict=True)
        ]
        holds = LocatedArray(workspace.plus(offset), _BOOL)
        iterations = []
        for number, (present, following) in enumerate(((state, others), (others, state))):
            arguments = [each.location for each in present]
            condition, body = CommandList(self.memory.device), CommandList(self.memory.device)
            self.add_plan(condition, step, step.cond, workspace, arguments, [holds.location])
            self.add_plan(body, step, step.body, workspace, arguments, [each.location for each in following])
            finish = self._copies(step.node, state, present)
            iterations.append(Iteration(condition.commands(), holds, body.commands(), 1 - number, finish))
        start = self._copies(step.node, state, inputs)
        self.out.add(Looping(self.node_to_blame(step.node), step, start, tuple(iterations)))

    def launch_loop(
        self, step: program_plan.LaunchLoop, inputs: Sequence[LocatedArray], outputs: Sequence[LocatedArray]
    ) -> None:
        if isinstance(step.program, NativeLoop):
            self._loop_over_points(step, step.program, inputs, outputs)
        else:
            self._loop_of_programs(step, inputs, outputs)

    def _loop_over_points(
        self,
        step: program_plan.LaunchLoop,
        loop: NativeLoop,
        inputs: Sequence[LocatedArray],
        outputs: Sequence[LocatedArray],
    ) -> None:
        """Add a loop of independent points: one launch takes many steps, and the next one goes on in the outputs."""
        kernel, count = point_loop(loop, step.node.operands)
        scratch = self.memory.scratch()
        more = [] if count is not None else [scratch.operand(_BOOL)]
        workspace = scratch.location(sum(aligned_size(each.nbytes) for each in kernel.scratch))
        state = list(inputs)
        for k, output in zip(step.carried, outputs, strict=True):
            state[k] = output
        first, following = (
            self.launches_of(kernel, [*before, *outputs, *more], workspace) for before in (inputs, state)
        )
        if count is not None:
            self.out.launch(step.node, [*first, *following * (count - 1)])
            return
        lists = CommandList(self.memory.device), CommandList(self.memory.device)
        for out, launches in zip(lists, (first, following), strict=True):
            out.launch(step.node, launches)
        node = self.node_to_blame(step.node)
        self.out.add(Continuing(node, step, lists[0].commands(), lists[1].commands(), more[0]))

    def _loop_of_programs(
        self, step: program_plan.LaunchLoop, inputs: Sequence[LocatedArray], outputs: Sequence[LocatedArray]
    ) -> None:
        """Add a loop of two loop programs: its state is the inputs, and then in two parts of scratch memory in turn."""
        condition, body = (kernel_of_graph(graph, self.options.target) for graph in step.op.graphs)
        scratch = self.memory.scratch()
        states = [inputs, *[[scratch.operand(type) for type in body.types] for _ in range(2)]]
        holds = scratch.operand(condition.types[0])
        workspace = scratch.location(max(condition.scratch, body.scratch))
        iterations = []
        for present, following in ((0, 1), (1, 2), (2, 1)):
            lists = CommandList(self.memory.device), CommandList(self.memory.device)
            kernels = ((condition, [holds]), (body, states[following]))
            for out, (kernel, results) in zip(lists, kernels, strict=True):
                arrays = [*states[present], *results]
                out.launch(step.node, self.launches_of(kernel.program, arrays, workspace))
            finish = self._copies(step.node, outputs, [states[present][k] for k in step.carried])
            iterations.append(Iteration(lists[0].commands(), holds, lists[1].commands(), following, finish))
        self.out.add(Looping(self.node_to_blame(step.node), step, (), tuple(iterations)))

    def _copies(
        self, node: Node, targets: Sequence[LocatedArray], sources: Sequence[LocatedArray]
    ) -> Commands:
        """The commands that copy those arrays that lie elsewhere."""
        out = CommandList(self.memory.device)
        for target, source in zip(targets, sources, strict=True):
            if target.location != source.location and target.type.nbytes:
                out.launch(node, [MemoryCopy(target.location, source.location, target.type.nbytes)])
        return out.commands()
