"""Rules that every plan keeps; what breaks one is an error in the planner, never of the user."""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterator
from itertools import pairwise

from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import ALIGNMENT
from xarr.compiler.plan.program_plan import Plan, PlanBuffer, Step
from xarr.errors import XarrError


class PlanError(XarrError):
    """A plan breaks a rule."""


def verify(plan: Plan) -> Plan:
    """The plan itself; PlanError if it, or one inside, breaks a rule.

    * P1: buffers are numbered in order, and steps name no other ones.
    * P2: each buffer that is no argument and no constant is written by one step, its `start`.
    * P3: a buffer is written before it is read, and read by no step after its `end`.
    * P4: a base is there when what lies in it is written, and it has no memory elsewhere.
    * P5: a buffer that is written over is not read afterwards, nor is a view of it; its size is the same, and it is no
      constant, no result, and no argument that is not donated.
    * P6: of two buffers that live at once, none lies in the other's part of the arena, nor in a workspace in use.
    * P7: every buffer of the arena, and every workspace, lies inside the arena, at a multiple of the alignment.
    * P8: plans inside have as many arguments and results as their step has inputs and outputs, of the same types,
      and fit into its workspace.
    * P9: a loop program has the inputs and outputs of its step, with as many elements, and carries as many values.
    """
    for each in plan.walk():
        for problem in _problems(each):
            raise PlanError(f"plan {each.graph.name}: {problem}")
    return plan


def _problems(plan: Plan) -> Iterator[str]:
    """One line for each problem, with the label of the rule."""
    numbers = range(len(plan.buffers))
    named = [*plan.parameters, *plan.results]
    named += [number for step in plan.steps for number in (*step.inputs, *step.outputs)]
    if [buffer.number for buffer in plan.buffers] != list(numbers):
        yield "P1: buffers are not numbered in order"
        return
    for number in named:
        if number not in numbers:
            yield f"P1: there is no buffer b{number}"
            return
    yield from _writer_problems(plan)
    yield from _reader_problems(plan)
    yield from _base_problems(plan)
    yield from _overlap_problems(plan)
    for index, (step, space) in enumerate(zip(plan.steps, plan.layout.workspaces, strict=True)):
        yield from _inner_problems(plan, step, 0 if space is None else space.nbytes)
        if isinstance(step, program_plan.Launch | program_plan.LaunchLoop):
            yield from _launch_problems(plan, index, step)


def _writer_problems(plan: Plan) -> Iterator[str]:
    writers: dict[int, list[int]] = {buffer.number: [] for buffer in plan.buffers}
    for index, step in enumerate(plan.steps):
        for number in step.outputs:
            writers[number].append(index)
    for buffer in plan.buffers:
        is_given = buffer.number in plan.parameters or buffer.constant is not None
        wanted = [] if is_given else [buffer.start]
        if writers[buffer.number] != wanted or (is_given and buffer.start != -1):
            steps = ", ".join(map(str, writers[buffer.number])) or "no step"
            yield f"P2: b{buffer.number} starts at {buffer.start} and is written by {steps}"


def _reader_problems(plan: Plan) -> Iterator[str]:
    for index, step in enumerate(plan.steps):
        for number in step.inputs:
            buffer = plan.buffers[number]
            if buffer.start >= index:
                yield f"P3: step {index} reads b{number}, which step {buffer.start} writes"
            if buffer.end < index:
                yield f"P3: step {index} reads b{number}, which is needed until {buffer.end}"
    for number in plan.results:
        if plan.buffers[number].end != len(plan.steps):
            yield f"P3: b{number} is a result, and is needed until {plan.buffers[number].end}"


def _base_problems(plan: Plan) -> Iterator[str]:
    groups: dict[int, list[PlanBuffer]] = {}
    for buffer in plan.buffers:
        base = buffer.base
        if base is not None and (
            base not in range(len(plan.buffers)) or plan.buffers[base].start >= buffer.start
        ):
            yield f"P4: b{buffer.number} lies in b{base}, which is not there yet"
            return
        groups.setdefault(root_of(plan, buffer).number, []).append(buffer)
    for number, (memory, offset) in enumerate(zip(plan.layout.memory, plan.layout.offsets, strict=True)):
        if (offset is not None) != (memory == "arena"):
            yield f"P4: b{number} of memory {memory} has offset {offset}"
    for group in groups.values():
        for buffer in group if len(group) > 1 else ():
            if buffer.base is not None:
                yield from _memory_problems(plan, buffer, plan.buffers[buffer.base], group)


def _memory_problems(
    plan: Plan, buffer: PlanBuffer, base: PlanBuffer, group: list[PlanBuffer]
) -> Iterator[str]:
    """Problems of a buffer that lies in the memory of `base`, as the whole `group` does."""
    layout = plan.layout
    memory, offset = layout.memory[base.number], layout.offsets[base.number]
    if (memory, offset) != (layout.memory[buffer.number], layout.offsets[buffer.number]):
        yield f"P4: b{buffer.number} lies elsewhere than its base b{base.number}"
    if buffer.is_view:
        return
    reason = ""
    if base.end > buffer.start:
        reason = f"is needed until {base.end}"
    elif base.type.nbytes != buffer.type.nbytes:
        reason = f"has {base.type.nbytes} bytes instead of {buffer.type.nbytes}"
    elif base.number not in plan.steps[buffer.start].inputs:
        reason = "is not an input of that step"
    elif memory == "constant":
        reason = "is a constant"
    elif memory == "argument" and root_of(plan, base).number not in plan.donated:
        reason = "is an argument that is not donated"
    if reason:
        yield f"P5: step {buffer.start} writes b{buffer.number} over b{base.number}, which {reason}"
    for other in group:
        if other.start < buffer.start < other.end:
            yield f"P5: b{other.number} shows b{base.number}, over which step {buffer.start} writes"


def root_of(plan: Plan, buffer: PlanBuffer) -> PlanBuffer:
    """The buffer that has the memory in which a buffer lies."""
    while buffer.base is not None:
        buffer = plan.buffers[buffer.base]
    return buffer


#: A part of the arena that is in use: its offset, its end, and what lies there.
_Block = tuple[int, int, str]


def _overlap_problems(plan: Plan) -> Iterator[str]:
    """Sweep over the steps: what lies in the arena at each."""
    count = len(plan.steps)
    begins: list[list[_Block]] = [[] for _ in range(count)]
    ends: list[list[_Block]] = [[] for _ in range(count)]
    last = [buffer.end for buffer in plan.buffers]
    for buffer in plan.buffers:
        root = root_of(plan, buffer).number
        last[root] = max(last[root], buffer.end)
    for buffer in plan.buffers:
        offset = plan.layout.offsets[buffer.number]
        if buffer.base is None and offset is not None:
            block = (offset, offset + buffer.type.nbytes, f"b{buffer.number}")
            begins[buffer.start].append(block)
            ends[min(last[buffer.number], count - 1)].append(block)
    for index, space in enumerate(plan.layout.workspaces):
        if space is not None:
            block = (space.offset, space.offset + space.nbytes, f"the workspace of step {index}")
            begins[index].append(block)
            ends[index].append(block)
    in_use: list[_Block] = []
    for index in range(count):
        for block in begins[index]:
            offset, end, name = block
            if offset % ALIGNMENT or offset < 0 or end > plan.layout.arena:
                yield f"P7: {name} lies from {offset} to {end}, in an arena of {plan.layout.arena}"
            insort(in_use, block)
        for (_, end, name), (offset, _, other) in pairwise(each for each in in_use if each[0] < each[1]):
            if begins[index] and end > offset:
                yield f"P6: {name} and {other} overlap at step {index}"
        for block in ends[index]:
            in_use.remove(block)


def _launch_problems(
    plan: Plan, index: int, step: program_plan.Launch | program_plan.LaunchLoop
) -> Iterator[str]:
    """Problems of a launch whose loop program takes other arrays than it gets."""
    inputs, outputs = (
        [plan.buffers[number].type.size for number in each] for each in (step.inputs, step.outputs)
    )
    if isinstance(step, program_plan.LaunchLoop):
        sizes = dict(enumerate(inputs))
        wanted = {} if step.program is None else step.program.sizes()
        passed = {k: sizes.get(k) for k in wanted}
        if wanted != passed or outputs != [sizes.get(k) for k in step.carried]:
            yield f"P9: step {index} hands values of {sizes} elements, by number, to a loop of {wanted}"
    elif step.program is not None:
        both = [[buffer.size for buffer in each] for each in (step.program.inputs, step.program.outputs)]
        if [inputs, outputs] != both:
            yield f"P9: step {index} hands arrays of {inputs} and {outputs} elements to a loop program of {both}"


def _inner_problems(plan: Plan, step: Step, workspace: int) -> Iterator[str]:
    inputs = [plan.buffers[number].type for number in step.inputs]
    outputs = [plan.buffers[number].type for number in step.outputs]
    for name, inner in step.plans.items():
        wanted = inputs[1:] if isinstance(step, program_plan.Branch) else inputs
        results = inputs if isinstance(step, program_plan.LoopStep) else outputs
        if [inner.buffers[number].type for number in inner.parameters] != wanted:
            yield f"P8: the {name} of {step.word} {step.op.called} takes other arguments than its inputs"
        types = [inner.buffers[number].type for number in inner.results]
        if name != "condition" and types != results:
            yield f"P8: the {name} of {step.word} {step.op.called} has other results than its outputs"
        if inner.layout.arena > workspace:
            yield f"P8: the {name} of {step.word} {step.op.called} does not fit into its workspace"
