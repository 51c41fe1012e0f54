"""What a program of machine code alone needs to know of a plan: which views are addresses, what loops write in place.

In such a program no step makes a view of an input but the step `View`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

from xarr.base.frozen_dataclasses import record
from xarr.compiler.plan import program_plan
from xarr.compiler.plan.arena import aligned_size
from xarr.compiler.plan.layout import memory_ends
from xarr.compiler.plan.overwriting import is_beside, overwrites
from xarr.compiler.plan.program_plan import Plan, PlanBuffer
from xarr.compiler.target import Target
from xarr.compiler.while_loops.iterated_groups import IteratedGroup
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints, TensorType, TupleType


def view_offset(node: Node) -> int | None:
    """Bytes from the first element of its operand to that of a view; None if the elements of either do not lie alike.

    Those of both must lie in row-major order, side by side.
    """
    op, (operand,) = node.op, node.operands
    if isinstance(op, ops.Reshape) or node.tensor_type.size == operand.tensor_type.size == 1:
        return 0
    if isinstance(op, ops.BroadcastInDim):
        return 0 if node.tensor_type.size == operand.tensor_type.size else None
    if isinstance(op, ops.Transpose):
        moved = [axis for axis in op.permutation if operand.shape[axis] != 1]
        return 0 if all(x < y for x, y in pairwise(moved)) else None
    if isinstance(op, ops.Slice) and lies_together(operand.shape, node.shape, op.strides):
        offset, stride = 0, node.dtype.itemsize
        for size, start in zip(reversed(operand.shape), reversed(op.start_indices), strict=True):
            offset += start * stride
            stride *= size
        return offset
    return None


def lies_together(whole: Ints, part: Ints, strides: Ints) -> bool:
    """Whether a part of an array lies side by side: one index, then a range, then whole dimensions."""
    axes = [axis for axis, size in enumerate(part) if size != 1]
    if any(strides[axis] != 1 for axis in axes):
        return False
    return not axes or all(part[axis] == whole[axis] for axis in range(axes[0] + 1, len(part)))


def list_bases(plan: Plan, number: int) -> Iterator[int]:
    """A buffer, and those that it lies in."""
    base: int | None = number
    while base is not None:
        yield base
        base = plan.buffers[base].base


def ends_of_views(plan: Plan) -> dict[int, int]:
    """For each view of a plan the last step that reads it, or a view of it."""
    ends: dict[int, int] = {}
    for buffer in reversed(plan.buffers):
        if buffer.is_view and buffer.base is not None:
            end = ends[buffer.number] = max(buffer.end, ends.get(buffer.number, -1))
            ends[buffer.base] = max(end, ends.get(buffer.base, -1))
    return ends


def copied_views(plan: Plan, hands_on: bool) -> int:
    """The bytes of views that are copied for the step that reads them, in Python too: launches want row-major order.

    Of the step that reads the largest ones; and of the results, if the plan `hands_on` these to such steps.
    """
    copied = frozenset([each.number for each in plan.buffers if each.is_view and _is_copied(plan, each)])
    launches = [
        step for step in plan.steps if isinstance(step, program_plan.Launch | program_plan.LaunchLoop)
    ]

    def size(numbers: Iterable[int]) -> int:
        return sum([plan.buffers[each].type.nbytes for each in copied.intersection(numbers)])

    return max([0, *[size(step.inputs) for step in launches]]) + (size(plan.results) if hands_on else 0)


def carried_type(loop: program_plan.LoopStep, number: int) -> TensorType:
    """The type of a carried value."""
    return loop.body.buffers[loop.body.parameters[number]].type


def is_fixed(loop: program_plan.LoopStep, number: int) -> bool:
    """Whether no iteration changes a carried value."""
    return loop.body.results[number] == loop.body.parameters[number]


def carries_in_place(loop: program_plan.LoopStep, min_bytes: int) -> frozenset[int]:
    """The carried values that need one array alone: each iteration writes the next one over it.

    Those that the body updates, if all that reads the old value does so before; and those of `min_bytes` that become
    another carried value, which is copied at the end of the body.
    """
    body = loop.body
    numbers = range(len(body.parameters))
    written = frozenset([k for k in numbers if k in body.donated or _versions_of_arguments(body)[k]])
    large = [k for k in numbers if body.buffers[body.parameters[k]].type.nbytes >= min_bytes]
    return written.union([k for k in large if _is_moved(body, k, written)])


def begins_empty(loop: program_plan.Step, number: int) -> bool:
    """Whether a carried value of a loop is memory that holds nothing when it begins."""
    return isinstance(loop.node.operands[number].op, ops.Empty)


@lru_cache(64)
def _versions_of_arguments(body: Plan) -> list[list[int]]:
    """For each argument of a body the `_versions` up to the result that it becomes; none is in two lists."""
    every: list[list[int]] = []
    for k in range(len(body.parameters)):
        versions = _versions(body, k, k)
        every.append([] if any(not set(versions).isdisjoint(others) for others in every) else versions)
    return every


def _versions(plan: Plan, parameter: int, result: int) -> list[int]:
    """The buffers that hold an argument after one step and the next that changes it, from a result on, if each may be
    written over the one before: when nothing needs that any more.  Empty otherwise.
    """
    argument, current = plan.parameters[parameter], plan.results[result]
    versions: list[int] = []
    while current != argument:
        before = _buffer_below(plan, current, argument)
        if before is None or before in plan.results or [*plan.results].count(current) > 1:
            return []
        versions.append(current)
        current = before
    return versions


def _buffer_below(body: Plan, number: int, wanted: int) -> int | None:
    """The input over which a step may write a buffer, since it is the last that needs this input: `wanted`, if that is
    one; None without one.
    """
    new = body.buffers[number]
    if new.start < 0 or new.is_view or new.base is not None:
        return None if new.is_view else new.base
    step = body.steps[new.start]
    occupied = {body.buffers[output].base for output in step.outputs}
    operands = [step.inputs[k] for k in _operands_below(step, step.outputs.index(number))]
    fitting = [old for old in operands if old not in occupied and _is_last_read(body, step, new.start, old)]
    return wanted if wanted in fitting else next(iter(fitting), None)


def _is_last_read(body: Plan, step: program_plan.Step, index: int, number: int) -> bool:
    """Whether a step, that with this index, is the last that needs a buffer of its own memory, and reads it once."""
    old = body.buffers[number]
    if old.end != index or old.constant is not None or old.is_view or step.inputs.count(number) != 1:
        return False
    return not any(_is_read(body, view, index) for view in _views(body, number))


def _operands_below(step: program_plan.Step, output: int) -> list[int]:
    """The inputs of a step whose memory an output may be written to, if nothing else needs them."""
    if isinstance(step, program_plan.Copy):
        return [0]
    if isinstance(step, program_plan.LoopStep):
        # An iteration writes what it changes over the value before, or to a second array.
        return [step.state.index(step.outputs[output])]
    if isinstance(step, program_plan.LaunchLoop):
        return [step.carried[output]]
    if isinstance(step, program_plan.Branch):
        arguments = range(len(step.inputs) - 1)
        return [1 + k for k in arguments if all(_becomes(plan, k, output) for plan in step.branches)]
    if not step.makes_new:
        return []
    return [k for k in range(len(step.inputs)) if (output, k) in overwrites(step.node, {k}, 1)]


def _becomes(plan: Plan, parameter: int, result: int) -> bool:
    """Whether a result is an argument, or may be written over it."""
    number = plan.parameters[parameter]
    is_same = plan.results[result] == number and [*plan.results].count(number) == 1
    return is_same or bool(_versions(plan, parameter, result))


def _views(plan: Plan, number: int) -> list[PlanBuffer]:
    """The views of a buffer that lie in its memory, not in copies."""
    by_base, views = _views_by_base(plan), [number]
    for base in views:
        views += [each for each in by_base.get(base, ()) if not _is_copied(plan, plan.buffers[each])]
    return [plan.buffers[each] for each in views[1:]]


@lru_cache(64)
def _views_by_base(plan: Plan) -> dict[int, list[int]]:
    """The views of each buffer of a plan that has some."""
    views: dict[int, list[int]] = {}
    for each in plan.buffers:
        if each.is_view and each.base is not None:
            views.setdefault(each.base, []).append(each.number)
    return views


def _is_copied(plan: Plan, view: PlanBuffer) -> bool:
    step = plan.steps[view.start]
    return isinstance(step, program_plan.View) and view_offset(step.node) is None


def _is_read(plan: Plan, view: PlanBuffer, index: int) -> bool:
    """Whether a view is needed when step `index` writes what it shows, or later."""
    step = plan.steps[index]
    return view.end > index or (view.end == index and not is_beside(step, view.number))


def _is_moved(body: Plan, number: int, written: frozenset[int]) -> bool:
    """Whether a result is another argument, which no step writes over, and the argument is in no other result."""
    argument, result = body.parameters[number], body.results[number]
    if result == argument or result not in body.parameters or body.parameters.index(result) in written:
        return False
    others = [other for k, other in enumerate(body.results) if k != number]
    return argument not in map(body.root, others)


@record(eq=False)
class MemoryOfOthers:
    """The buffers of a plan without memory of their own in machine code: they lie `inside` of others, at an offset, or
    `over` an argument.
    """

    inside: dict[int, tuple[int, int]]
    over: dict[int, int]


OWN_MEMORY: Final = MemoryOfOthers({}, {})


def memory_of_body(loop: program_plan.LoopStep, min_bytes: int) -> MemoryOfOthers:
    """Buffers of at least `min_bytes` of a loop's body lie in the memory of a result until that is written.

    That holds nothing before, unless the carried value is written in place.
    """
    body = loop.body
    in_place = carries_in_place(loop, min_bytes)
    over = {
        body.root(version): body.parameters[k]
        for k in in_place
        for version in _versions_of_arguments(body)[k]
        if k not in body.donated
    }
    return MemoryOfOthers(_in_results(body, in_place, min_bytes), over)


def memory_of_branch(plan: Plan, inputs: Sequence[str], outputs: Sequence[str]) -> MemoryOfOthers:
    """Results of a branch that have the addresses of arguments are written over these."""
    pairs = [(inputs.index(address), k) for k, address in enumerate(outputs) if address in inputs]
    over = {
        plan.root(version): plan.parameters[parameter]
        for parameter, result in pairs
        for version in _versions(plan, parameter, result)
    }
    return MemoryOfOthers({}, over)


def _in_results(body: Plan, in_place: frozenset[int], min_bytes: int) -> dict[int, tuple[int, int]]:
    """For each buffer that lies in the memory of a result the number of that, and the offset."""
    roots, last = memory_ends(body)
    memory = body.layout.memory
    results = [
        body.buffers[roots[number]]
        for k, number in enumerate(body.results)
        if k not in in_place and memory[number] == "result" and not body.shows_memory(number)
    ]
    inside: dict[int, tuple[int, int]] = {}
    for buffer in sorted(body.buffers, key=lambda each: -each.type.nbytes):
        number, size = buffer.number, aligned_size(buffer.type.nbytes)
        if roots[number] != number or memory[number] != "arena" or size < min_bytes:
            continue
        for result in results:
            beside = [
                (offset, offset + aligned_size(body.buffers[other].type.nbytes))
                for other, (around, offset) in inside.items()
                if around == result.number
                and body.buffers[other].start <= last[number]
                and buffer.start <= last[other]
            ]
            offset = _first_gap(sorted(beside), size)
            if last[number] < result.start and offset + size <= result.type.nbytes:
                inside[number] = result.number, offset
                break
    return inside


def _first_gap(occupied: list[tuple[int, int]], size: int) -> int:
    """Where `size` bytes fit between ranges in use, which are in order."""
    offset = 0
    for start, end in occupied:
        if start - offset >= size:
            break
        offset = max(offset, end)
    return offset


def is_small(plan: Plan, target: Target) -> bool:
    """Whether one function of machine code for all of a plan may pay: calls take much of its time, and it has groups.

    A plan that is one loop has a function already; of one without groups a library is as fast.
    """
    if plan.donated or _has_more_steps(plan, target.max_native_steps):
        return False
    if any(isinstance(node.type, TupleType) for node in (*plan.graph.parameters, *plan.graph.results)):
        return False
    if _MACHINE_CODE.isdisjoint(map(type, plan.steps)) or _is_one_phase(plan):
        return False
    return plan.layout.peak.total <= target.max_native_bytes


def _has_more_steps(plan: Plan, most: int) -> bool:
    """Whether a plan has more steps than `most` besides views, with those of all plans inside."""
    count = 0
    for each in plan.walk():
        count += sum([not isinstance(step, program_plan.View) for step in each.steps])
        if count > most:
            return True
    return False


_MACHINE_CODE: Final = frozenset({program_plan.Launch, program_plan.LaunchLoop, program_plan.LoopStep})


def _is_one_phase(plan: Plan) -> bool:
    """Whether a plan is one loop that takes the arguments and gives the results as they come."""
    step, *others = plan.steps
    program = step.program if isinstance(step, program_plan.Launch) and not others else None
    return (
        program is not None
        and len(program.phases) == 1
        and not program.scratch
        and (step.inputs, step.outputs) == (plan.parameters, plan.results)
    )


def obstacle(step: program_plan.Step) -> str | None:
    """Why a step of a small plan is better not part of its function, as far as that can be seen at once."""
    if isinstance(step, program_plan.PythonCall):
        return "is a function of Python"
    if isinstance(step, program_plan.LibraryCall) and step.op.is_elementwise and step.node.tensor_type.size:
        return "is in no group"
    program = step.program if isinstance(step, program_plan.LaunchLoop) else None
    if isinstance(program, IteratedGroup) and program.radius is not None:
        return "takes several iterations of rows that lie in a cache"
    return None if getattr(step.op, "progress", None) is None else "shows how far it is"
