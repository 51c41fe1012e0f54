"""Where the buffers of a plan lie while its function is written: in its arena, in others, or as views of these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xarr.compiler.loop_ir.elements import strides
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan.layout import MemoryLayout
from xarr.compiler.plan.native_steps import view_offset
from xarr.compiler.plan.program_plan import Plan, Step, View
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TensorType
from xarr_numpy.compiled.plans.function_code import FunctionCode
from xarr_numpy.ops.contraction import reshaped_view

Array = np.ndarray[Any, Any]


class StridedArray(NamedTuple):
    """Elements in the memory of a buffer, from `offset` bytes on; `array` has their strides, and no memory."""

    number: int
    offset: int
    array: Array


def row_major(type: TensorType) -> Array:
    """An array without memory that lies in row-major order."""
    in_bytes = [step * type.dtype.itemsize for step in strides(type.shape)]
    return as_strided(np.empty(0, type.dtype), type.shape, in_bytes)


def _view_of(node: Node, array: Array) -> Array | None:
    """The view of an array that NumPy gives; None if it is a copy, or not known."""
    op = node.op
    if isinstance(op, ops.Transpose):
        return array.transpose(op.permutation)
    if isinstance(op, ops.Slice):
        ranges = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
        part: Array = array[tuple([slice(*each) for each in ranges])]
        return part
    return reshaped_view(array, node.shape) if isinstance(op, ops.Reshape) else None


@dataclass(frozen=True)
class PlanFrame:
    """A plan where it is run: where its arena begins in the arena of all, the addresses of its buffers, which of them
    lie inside of others until these are written, where the copies of views begin that are still read, and the views
    that nothing has read yet.
    """

    plan: Plan
    layout: MemoryLayout
    inside: dict[int, tuple[int, int]]
    start: int
    pointers: dict[int, str]
    copies: dict[int, int] = field(default_factory=dict)
    views: dict[int, View] = field(default_factory=dict)

    def nbytes(self, number: int) -> int:
        return self.plan.buffers[number].type.nbytes


class PlanMemory(FunctionCode):
    """Writes the function of plans whose buffers lie somewhere."""

    def program(self, step: Step) -> Kernel:
        """The loop program of a step."""
        raise NotImplementedError

    def locate_results(self, frame: PlanFrame, targets: Sequence[str | None]) -> set[int]:
        """Give the buffers of results their addresses; the results that need no copy."""
        plan, memory = frame.plan, frame.plan.layout.memory
        kept: set[int] = set()
        for k, (number, target) in enumerate(zip(plan.results, targets, strict=True)):
            root = plan.root(number)
            if memory[number] == "argument" and target == frame.pointers[root]:
                kept.add(k)
            if memory[number] != "result" or root in frame.pointers:
                continue
            fits = target is not None and plan.buffers[root].type.nbytes == frame.nbytes(number)
            if fits and not plan.shows_memory(number):
                assert target is not None
                frame.pointers[root] = target
                kept.add(k)
        for number in plan.results:
            root = plan.root(number)
            if memory[number] == "result" and root not in frame.pointers:
                frame.pointers[root] = self.own(frame, root) or self.allocate(frame.nbytes(root))
        return kept

    def own(self, frame: PlanFrame, number: int) -> str | None:
        """The address of a register for one number inside of a loop; None for other buffers."""
        type = frame.plan.buffers[number].type
        return self.register(type.nbytes) if self.depth and type.size == 1 else None

    def pointer(self, frame: PlanFrame, number: int) -> str:
        pointer = frame.pointers.get(number)
        if pointer is None:
            buffer = frame.plan.buffers[number]
            if number in frame.views:
                return self._show(frame, frame.views.pop(number))
            if buffer.constant is not None:
                pointer = self.constant(buffer.constant)
            elif buffer.base is not None:
                pointer = self.pointer(frame, buffer.base)
            elif number in frame.inside:
                around, behind = frame.inside[number]
                pointer = self.advance(self.pointer(frame, around), behind)
            elif register := self.own(frame, number):
                pointer = register
            else:
                offset = frame.layout.offsets[number]
                assert offset is not None, f"b{number} has no memory"
                pointer = self.at(frame.start + offset)
            frame.pointers[number] = pointer
        return pointer

    def add_view(self, frame: PlanFrame, step: View) -> None:
        """Note a view; in a loop, whose steps may write over what it shows, it has its address at once."""
        frame.views[step.outputs[0]] = step
        if self.depth:
            self.pointer(frame, step.outputs[0])

    def _show(self, frame: PlanFrame, step: View) -> str:
        """The address of a view: in what it shows, or of a copy where its elements do not lie side by side."""
        (number,), target = step.outputs, ""
        if view_offset(step.node) is None:
            frame.copies[number] = start = self.reserve(frame.nbytes(number))
            target = self.at(start)
        return self.show_in(frame, step, target)

    def show_in(self, frame: PlanFrame, step: View, target: str) -> str:
        """The address of a view that nothing has read yet: of a copy in `target`, unless it needs none."""
        source, offset = self.pointer(frame, step.inputs[0]), view_offset(step.node)
        frame.pointers[step.outputs[0]] = shown = target if offset is None else self.advance(source, offset)
        if offset is None:
            with self.scope():
                self.launch(self.program(step), [source, target], None)
        return shown

    def lies(self, frame: PlanFrame, number: int) -> StridedArray | None:
        """Where a buffer lies, with no copy of a view that NumPy does not copy; None if that is not known."""
        whole = row_major(frame.plan.buffers[number].type)
        step = frame.views.get(number)
        if step is None:
            return StridedArray(number, 0, whole)
        base = self.lies(frame, step.inputs[0])
        if base is None:
            return None
        shown = _view_of(step.node, base.array)
        if shown is None:  # of other operations than these, and where the reshaped array is a copy
            return StridedArray(number, 0, whole) if isinstance(step.op, ops.Reshape) else None
        first, start = (each.__array_interface__["data"][0] for each in (base.array, shown))
        return StridedArray(base.number, base.offset + start - first, shown)
