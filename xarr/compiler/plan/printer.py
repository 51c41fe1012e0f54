"""A plan as text: a line for each step, with the buffers that it fills."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from xarr.ir.memory_use import shown_bytes

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Plan, PlanBuffer, Step


def print_plan(plan: Plan) -> str:
    """The text of a plan.

    `b2: f32[3] at 64, until 4` is buffer 2, which lies in the arena from byte 64 on and is read last by step 4.
    """
    devices = ", ".join(sorted({buffer.device for each in plan.walk() for buffer in each.buffers} - {""}))
    title = f"plan {plan.graph.name}{devices and ' on '}{devices}"
    return "\n".join(_lines(plan, title, dict(plan.remarks(plan))))


def _lines(plan: Plan, title: str, remarks: Mapping[Step, str]) -> Iterator[str]:
    peak = plan.layout.peak
    yield f"{title}:"
    yield (
        f"    memory: arena of {shown_bytes(plan.layout.arena)}, at most {shown_bytes(peak.total)} at once, "
        f"{shown_bytes(peak.arguments)} of it arguments"
    )
    for index, number in enumerate(plan.parameters):
        donated = "donated " if number in plan.donated else ""
        yield f"    {_definition(plan, plan.buffers[number])} = {donated}argument {index}"
    for buffer in plan.buffers:
        if buffer.constant is not None:
            yield f"    {_definition(plan, buffer)} = constant"
    for index, step in enumerate(plan.steps):
        yield from _step(plan, index, step, remarks)
    yield f"    return {', '.join(f'b{number}' for number in plan.results)}"


def _step(plan: Plan, index: int, step: Step, remarks: Mapping[Step, str]) -> Iterator[str]:
    outputs = ", ".join(_definition(plan, plan.buffers[number]) for number in step.outputs)
    inputs = ", ".join(f"b{number}" for number in step.inputs)
    space = plan.layout.workspaces[index]
    workspace = "" if space is None else f", workspace of {shown_bytes(space.nbytes)} at {space.offset}"
    cost = step.cost
    call = f"{step.word} {step.op.called}({inputs})"
    remark = f"{cost.operations:,} operations, {shown_bytes(cost.nbytes)}"
    if step.iterations is None:
        remark += " an iteration"
    elif step.iterations != 1:
        remark += f" an iteration, {step.iterations:,} iterations"
    if step in remarks:
        remark += f"; {remarks[step]}"
    yield f"{index:4}: {outputs}{outputs and ' = '}{call}{workspace}  # {remark}"
    for name, inner in step.plans.items():
        for line in _lines(inner, name, remarks):
            yield f"      {line}"


def _definition(plan: Plan, buffer: PlanBuffer) -> str:
    if buffer.base is not None:
        where = f" view of b{buffer.base}" if buffer.is_view else f" over b{buffer.base}"
    else:
        offset = plan.layout.offsets[buffer.number]
        where = "" if offset is None else f" at {offset}"
    if buffer.end == len(plan.steps):
        life = ", result"
    else:
        life = f", until {buffer.end}" if buffer.end > buffer.start else ", unused"
    return f"b{buffer.number}: {buffer.type.short()}{where}{life}"
