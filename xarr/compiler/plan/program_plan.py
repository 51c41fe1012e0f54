"""The plan of a program: its buffers, and the steps that fill them in order.

A plan is what a fused graph becomes before any engine writes code for it.  It knows no machine: NumPy's engine writes
Python from it, others print it as C, or launch it on a GPU.  Everything is fixed when it is made.

An engine runs a plan of arguments a0, a1 … like this:

1. It has memory for four kinds of buffers, `Plan.layout.memory`.  `argument`: what the caller passes, in the order of
   `Plan.parameters`.  `constant`: the elements of `PlanBuffer.constant`.  `result`: memory of its own for each, which
   the caller gets.  `arena`: one block of `Plan.layout.arena` bytes for all others; a buffer lies at its offset there.
   A buffer with a `base` has no memory of its own: it lies in that of its base, as a view of it (`is_view`), or
   written over it by the step that reads the base for the last time.
2. It runs `Plan.steps` in order.  Each reads its `inputs` and fills its `outputs`, buffers both.  What a step needs
   meanwhile lies in its workspace, some bytes of the arena too.
3. It returns the buffers `Plan.results`.  One whose memory is an argument's or a constant's, or that is there
   twice, is copied where the caller's arrays may not share memory.

A plan inside of a step (a branch, a called function, the condition and the body of a loop) runs in the same way: its
arguments are inputs of the step, its results are outputs of the step, and its arena lies at the start of the
step's workspace.  Only a loop has more to do, which `LoopStep` says.  Tuples are gone: their elements are buffers.

An engine without memory of its own to manage may leave offsets, workspaces and copies between plans to its library,
as NumPy's does, and follow bases alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, NamedTuple, TypeAlias

from xarr.base.frozen_dataclasses import record
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.costs import NOTHING, Cost, cost_of, iterations_of
from xarr.compiler.plan.layout import MemoryLayout, lay_out, spare_sizes
from xarr.compiler.plan.printer import print_plan
from xarr.ir.ops import Fusion, GetTupleElement

#: What the text of a plan says of steps.
Remarks: TypeAlias = "Callable[[Plan], Iterable[tuple[Step, str]]]"

if TYPE_CHECKING:
    from xarr.compiler.loop_ir.loops import Kernel
    from xarr.compiler.while_loops.iterated_groups import IteratedGroup
    from xarr.compiler.while_loops.native_loops import NativeLoop
    from xarr.ir.graph import Graph, Node
    from xarr.ir.op import Op
    from xarr.ir.ops import Constant, CustomCall
    from xarr.ir.types import TensorType


class PlanBuffer(NamedTuple):
    """An array of a plan: one step writes it, steps that follow read it.

    * `type`, `device` - what it holds, and the name of the device where it lies,
    * `start` - the number of the step that writes it; -1 for arguments and constants,
    * `end` - the number of the last step that reads it, the number of steps for a result, `start` if nothing does,
    * `base`, `is_view` - the buffer whose memory it has, if it has none of its own, and whether it shows that, or is
      written over it,
    * `constant` - the op that holds the elements of a constant.
    """

    number: int
    type: TensorType
    device: str
    start: int
    end: int
    base: int | None = None
    is_view: bool = False
    constant: Constant | None = None


@record(eq=False)
class Step:
    """A part of a plan that an engine does at once.

    * `node` - the node of the fused graph that it computes: its op, its types, its line in the user's program,
    * `inputs`, `outputs` - the numbers of the buffers that it reads and fills, in the order of the op,
    * `word` - what the text of a plan calls such a step,
    * `makes_new` - whether each output has memory of its own, or is written over an input, whatever library the engine
      uses.
    """

    word: ClassVar[str]
    makes_new: ClassVar[bool] = False
    node: Node
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def op(self) -> Op:
        return self.node.op

    @property
    def plans(self) -> dict[str, Plan]:
        """The plans inside, by what they are for."""
        return {}

    @property
    def cost(self) -> Cost:
        """Element operations and bytes moved; of a loop those of one iteration, of branches those of the dearest."""
        return cost_of(self.node)

    @property
    def iterations(self) -> int | None:
        """The number of times that the cost falls due; None for a loop of which that is not known beforehand."""
        return 1

    @property
    def scratch(self) -> list[int]:
        """Bytes of the buffers in its workspace that its loop program needs besides inputs and outputs."""
        return []


@record(eq=False)
class Launch(Step):
    """Run the loop program of a group.  The buffers of the program are the inputs, the outputs, and its scratch
    buffers one after the other in the workspace, each at a multiple of `arena.ALIGNMENT` bytes.

    `program` is None in a plan that was made without a schedule: see `planner.plan`.
    """

    word = "launch"
    makes_new = True
    program: Kernel | None

    @property
    def scratch(self) -> list[int]:
        return [] if self.program is None else [buffer.nbytes for buffer in self.program.scratch]


@record(eq=False)
class LaunchLoop(Step):
    """Run a loop whose iterations need nothing but machine code (`ops.NativeWhile`): inputs are the carried values
    before, outputs those of them that change, after.

    * `program` - what it runs: expressions for one point, of which each may have a thread of its own; or a group that
      each iteration runs.  Both call a carried value by its number.  None in a plan that was made without a schedule,
    * `carried` - the number of the carried value that each output is.

    Outputs whose `end` is their `start` are not wanted.  In the workspace lie, as those of `Launch`, a second buffer
    for each carried value that a group computes, which alternates with the output, and then the group's scratch.
    The checks of the loop follow as steps.
    """

    word = "launch loop"
    makes_new = True
    program: NativeLoop | IteratedGroup | None
    carried: tuple[int, ...]

    @property
    def scratch(self) -> list[int]:
        body, sizes = self.op.graphs[1], []
        for result in body.results if self.outputs else ():
            source = result.operands[0] if isinstance(result.op, GetTupleElement) else result
            if isinstance(source.op, Fusion):
                sizes.append(result.tensor_type.nbytes)
        kernel = getattr(self.program, "kernel", None)
        return sizes if kernel is None else sizes + [buffer.nbytes for buffer in kernel.scratch]

    @property
    def iterations(self) -> int | None:
        return iterations_of(self.node)


@record(eq=False)
class LibraryCall(Step):
    """Compute an op by the engine's own table: a product, an FFT, a factorisation, a sort, what is in no group."""

    word = "library"


@record(eq=False)
class Update(Step):
    """Write the second input over a part of a copy of the first, or of the first itself (`ops.DynamicUpdateSlice`
    and `ops.StridedUpdate`)."""

    word = "update"
    makes_new = True


@record(eq=False)
class View(Step):
    """Show the memory of the input in another way: another shape or order, or a part.  Nothing is computed."""

    word = "view"

    @property
    def cost(self) -> Cost:
        return NOTHING


@record(eq=False)
class Copy(Step):
    """Copy the input to the output, `nbytes`.  The node is the one that wants the copy."""

    word = "copy"
    nbytes: int

    @property
    def cost(self) -> Cost:
        return Cost(0, 2 * self.nbytes)


@record(eq=False)
class Allocate(Step):
    """Give the output memory, whatever that holds (`ops.Empty`)."""

    word = "allocate"
    makes_new = True

    @property
    def cost(self) -> Cost:
        return NOTHING


@record(eq=False)
class PythonCall(Step):
    """Call a function of Python on host arrays (`ops.CustomCall`)."""

    word = "python"


@record(eq=False)
class CheckStep(Step):
    """Raise an error, unless inputs are as they must be: `ops.Check`, or `call`, a check of indices.

    The output, if there is one, is the input that was checked, as a view, or with indices from the end made positive.
    """

    word = "check"
    call: CustomCall | None = None


@record(eq=False)
class PlanCall(Step):
    """Run the plan of a function (`ops.Call`)."""

    word = "call"
    plan: Plan

    @property
    def plans(self) -> dict[str, Plan]:
        return {"function": self.plan}

    @property
    def cost(self) -> Cost:
        return self.plan.cost


@record(eq=False)
class Branch(Step):
    """Run one of several plans of the other inputs: the first where the first input holds, else the second
    (`ops.If`), or that of the number that it is, the last if there is none (`ops.Case`).
    """

    word = "branch"
    branches: tuple[Plan, ...]

    @property
    def plans(self) -> dict[str, Plan]:
        return {f"branch {number}": plan for number, plan in enumerate(self.branches)}

    @property
    def cost(self) -> Cost:
        return max([plan.cost for plan in self.branches], key=lambda cost: (cost.operations, cost.nbytes))


@record(eq=False)
class LoopStep(Step):
    """Run `body` on the carried values as long as `cond` of them holds (`ops.While`).

    The inputs are all carried values before the first iteration.  Value k is carried in the buffer `state[k]`: the
    input itself where no iteration changes it, else an output, filled from the input before the first iteration; an
    input that is the base of its output is there already.
    Body and condition take the buffers `state` as their arguments.  The body writes its result k over argument k
    where that is donated; otherwise to the spare at `spares[k]`, in bytes from the start of the workspace, which is
    the state of the next iteration: the two alternate, or are copied.  All results of an iteration count as
    written at once.  The condition's bool lies at `spares[-1]`.
    """

    word = "loop"
    cond: Plan
    body: Plan
    state: tuple[int, ...]

    @property
    def plans(self) -> dict[str, Plan]:
        return {"condition": self.cond, "body": self.body}

    @property
    def cost(self) -> Cost:
        return self.cond.cost + self.body.cost

    @property
    def iterations(self) -> int | None:
        has_effects = any(step.op.is_ordered for step in self.cond.steps)  # so that it is computed each time
        return None if has_effects else iterations_of(self.node)

    @property
    def spares(self) -> tuple[int | None, ...]:
        """For each carried value the offset of its spare in the workspace, None if it has none; then the bool's."""
        offset = max(aligned_size(self.cond.layout.arena), aligned_size(self.body.layout.arena))
        offsets: list[int | None] = []
        for size in spare_sizes(self.body):
            offsets.append(offset if size else None)
            offset += size
        return *offsets, offset


def no_remarks(plan: Plan) -> Iterable[tuple[Step, str]]:
    """No text for any step."""
    return ()


@record(eq=False)
class Plan:
    """A program as data: see the module.

    * `graph` - the fused graph that it was made from,
    * `parameters`, `results` - the numbers of their buffers, elements of tuples one by one; parameters are 0, 1 …,
    * `donated` - the parameters among them that may be written over,
    * `remarks` - says what the text of a plan says of steps, of those of inner plans too: why they run in Python.
    """

    graph: Graph
    buffers: tuple[PlanBuffer, ...]
    steps: tuple[Step, ...]
    parameters: tuple[int, ...]
    results: tuple[int, ...]
    donated: tuple[int, ...]
    remarks: Remarks

    @cached_property
    def layout(self) -> MemoryLayout:
        """Where the buffers lie; laid out when it is first asked for, since some engines have no use for it."""
        return lay_out(self)

    @cached_property
    def step_count(self) -> int:
        """The number of steps that a run takes, with those of called functions; a loop or a branch is one."""
        return len(self.steps) + sum(
            [call.plan.step_count for call in self.steps if isinstance(call, PlanCall)]
        )

    @cached_property
    def cost(self) -> Cost:
        """The cost of its steps; of loops of unknown length one iteration counts."""
        return sum(
            [step.cost * (1 if step.iterations is None else step.iterations) for step in self.steps], NOTHING
        )

    def input_output_aliases(self, step: Step) -> tuple[tuple[int, int], ...]:
        """The outputs of a step that are written over an input: pairs of their indices in `outputs` and `inputs`."""
        buffers = self.buffers
        return tuple(
            [
                (index, step.inputs.index(base))
                for index, number in enumerate(step.outputs)
                if (base := buffers[number].base) is not None and not buffers[number].is_view
            ]
        )

    def root(self, number: int) -> int:
        """The buffer whose memory a buffer has: itself, or that at the end of its bases."""
        while (base := self.buffers[number].base) is not None:
            number = base
        return number

    def shows_memory(self, number: int) -> bool:
        """Whether a buffer is a view, or written over one."""
        while (base := self.buffers[number].base) is not None:
            if self.buffers[number].is_view:
                return True
            number = base
        return False

    def is_used(self, number: int) -> bool:
        """Whether a step reads a buffer, or it is a result."""
        buffer = self.buffers[number]
        return buffer.end > buffer.start

    def used_state(self, step: LoopStep) -> list[int]:
        """The carried values of a loop of this plan that are used after it."""
        return [k for k, number in enumerate(step.state) if self.is_used(number)]

    def walk(self) -> Iterator[Plan]:
        """This plan and those inside, outer ones first, each as often as a step holds it."""
        stack = [self]
        while stack:
            plan = stack.pop()
            yield plan
            stack.extend(inner for step in reversed(plan.steps) for inner in reversed(step.plans.values()))

    def __str__(self) -> str:
        return print_plan(self)

    __repr__ = __str__
