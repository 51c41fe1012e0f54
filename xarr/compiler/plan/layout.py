"""Where the buffers of a plan lie: which have memory of their own, and at which offset of the arena.

The arena is laid out step by step: outputs and workspaces take the smallest free block that holds them, and leave it
when nothing needs them any more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from xarr.base.frozen_dataclasses import record
from xarr.compiler.plan.arena import Arena, aligned_size

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Plan, Step

#: Where a buffer lies.
MemoryKind = Literal["argument", "constant", "result", "arena"]


@record
class Workspace:
    """Bytes of the arena."""

    offset: int
    nbytes: int


@record
class Peak:
    """Bytes in use at once at most, constants apart, and those of the arguments among them, which the caller holds."""

    total: int
    arguments: int


@record(eq=False)
class MemoryLayout:
    """The memory of a plan.

    * `arena` - the bytes of the arena, `peak` - the most that is in use at once, all memory counted,
    * `memory` - for each buffer where it lies, `offsets` - its first byte in the arena, if it lies there,
    * `workspaces` - for each step the bytes of the arena that it needs besides its buffers.
    """

    arena: int
    peak: Peak
    memory: tuple[MemoryKind, ...]
    offsets: tuple[int | None, ...]
    workspaces: tuple[Workspace | None, ...]


def lay_out(plan: Plan) -> MemoryLayout:
    """The layout of a plan."""
    roots, last = memory_ends(plan)
    memory = _memory(plan, roots)
    buffers, steps, arena = plan.buffers, plan.steps, Arena()
    offsets: list[int | None] = [None] * len(buffers)
    begins: list[list[int]] = [[] for _ in steps]
    ends: list[list[int]] = [[] for _ in steps]
    for number, root in enumerate(roots):
        if root == number and memory[number] in ("arena", "result"):
            begins[buffers[number].start].append(number)
            if last[number] < len(steps):
                ends[last[number]].append(number)
    arguments = sum([buffers[number].type.nbytes for number in plan.parameters])
    in_use = most = arguments
    workspaces: list[Workspace | None] = []
    for index, step in enumerate(steps):
        for number in begins[index]:
            in_use += buffers[number].type.nbytes
            if memory[number] == "arena":
                offsets[number] = arena.allocate(buffers[number].type.nbytes)
        most = max(most, in_use + inner_nbytes(step))
        size = workspace_nbytes(step)
        workspaces.append(Workspace(arena.allocate(size), size) if size else None)
        if size:
            arena.release(workspaces[-1].offset, size)  # type: ignore[union-attr]
        for number in ends[index]:
            in_use -= buffers[number].type.nbytes
            offset = offsets[number]
            if offset is not None:
                arena.release(offset, buffers[number].type.nbytes)
    all_offsets = tuple([offsets[root] for root in roots])
    return MemoryLayout(arena.nbytes, Peak(most, arguments), memory, all_offsets, tuple(workspaces))


def memory_ends(plan: Plan) -> tuple[list[int], list[int]]:
    """For each buffer the one that has its memory, and the last step that needs the memory of each."""
    roots = list(range(len(plan.buffers)))
    last = [buffer.end for buffer in plan.buffers]
    # Copies, which are bases, may have higher numbers than what lies over them.
    for buffer in sorted(
        [each for each in plan.buffers if each.base is not None], key=lambda each: each.start
    ):
        assert buffer.base is not None
        root = roots[buffer.number] = roots[buffer.base]
        last[root] = max(last[root], buffer.end)
    return roots, last


def _memory(plan: Plan, roots: list[int]) -> tuple[MemoryKind, ...]:
    memory: list[MemoryKind] = ["arena" if each.constant is None else "constant" for each in plan.buffers]
    for number in plan.parameters:
        memory[number] = "argument"
    for number in plan.results:
        if memory[roots[number]] == "arena":
            memory[roots[number]] = "result"
    return tuple([memory[root] for root in roots])


# --- inside of steps -----------------------------------------------------------------------------------------


def inner_nbytes(step: Step) -> int:
    """The bytes that are in use at once inside of a step, at most, besides its buffers."""
    plans = step.plans
    if not plans:
        return sum(step.scratch)
    needs = []
    for plan in plans.values():
        peak = plan.layout.peak
        # What other plans than those of loops result in is counted as outputs of the step.
        shared = 0 if "body" in plans else sum([plan.buffers[number].type.nbytes for number in plan.results])
        needs.append(peak.total - peak.arguments - shared)
    return max([0, *needs])


def workspace_nbytes(step: Step) -> int:
    """The bytes of the arena that a step needs besides its buffers."""
    plans = step.plans
    if not plans:
        return sum(map(aligned_size, step.scratch))
    size = max([aligned_size(plan.layout.arena) for plan in plans.values()])
    return size + sum(spare_sizes(plans["body"])) + aligned_size(1) if "body" in plans else size


def spare_sizes(body: Plan) -> list[int]:
    """For each carried value the bytes of its second buffer; none where a body has its result in its argument."""
    return [
        0
        if k in body.donated or result == body.parameters[k]
        else aligned_size(body.buffers[result].type.nbytes)
        for k, result in enumerate(body.results)
    ]
