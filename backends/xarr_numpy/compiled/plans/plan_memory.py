"""Where the buffers of a plan lie while its function is written: in its arena, in others, or as views of these."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

from xarr.compiler.fusion.form_groups import form_groups
from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.elements import strides
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.plan.layout import memory_ends
from xarr.compiler.plan.native_steps import ends_of_views, list_bases, view_offset
from xarr.compiler.plan.program_plan import Plan, Step, View
from xarr.compiler.schedule import Schedule
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType
from xarr_numpy.compiled.plans import sorted_rows
from xarr_numpy.compiled.plans.function_code import FunctionCode
from xarr_numpy.ops.contraction import reshaped_view
from xarr_numpy.processor import PROCESSOR

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


def in_order(array: Array, axes: Ints) -> Array:
    """An array that lies in row-major order when its dimensions are transposed by `axes`, of the shape of another."""
    whole = row_major(TensorType(tuple([array.shape[axis] for axis in axes]), array.dtype))
    return whole.transpose(np.argsort(axes))


def _view_of(node: Node, array: Array) -> Array | None:
    """The view of an array that NumPy gives; None if it is a copy, or not known."""
    op = node.op
    if isinstance(op, ops.Transpose):
        return array.transpose(op.permutation)
    if isinstance(op, ops.Slice):
        ranges = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
        part: Array = array[tuple([slice(*each) for each in ranges])]
        return part
    if isinstance(op, ops.BroadcastInDim):
        steps = dict(zip(op.broadcast_dimensions, zip(array.shape, array.strides, strict=True), strict=True))
        bytes_apart = [
            steps[k][1] if k in steps and steps[k][0] == n else 0 for k, n in enumerate(node.shape)
        ]
        return as_strided(array, node.shape, bytes_apart)
    return reshaped_view(array, node.shape) if isinstance(op, ops.Reshape) else None


@dataclass(frozen=True)
class PlanFrame:
    """A plan where it is run: the addresses of its buffers, which of them lie inside of others until these are written,
    where those that are still needed, and copies of views, begin in the arena, and the views that nothing has read yet.
    """

    plan: Plan
    inside: dict[int, tuple[int, int]]
    pointers: dict[int, str]
    reserved: dict[int, int] = field(default_factory=dict)
    copies: dict[int, int] = field(default_factory=dict)
    views: dict[int, View] = field(default_factory=dict)

    @cached_property
    def ends(self) -> dict[int, int]:
        """The last step that needs the memory of each buffer."""
        return dict(enumerate(memory_ends(self.plan)[1]))

    @cached_property
    def ends_of_views(self) -> dict[int, int]:
        return ends_of_views(self.plan)

    def nbytes(self, number: int) -> int:
        return self.plan.buffers[number].type.nbytes


class PlanMemory(FunctionCode):
    """Writes the function of plans whose buffers lie somewhere."""

    schedule: Schedule

    def program(self, step: Step) -> Kernel:
        """The loop program of a step."""
        raise NotImplementedError

    def run_graph(self, graph: Graph, inputs: Sequence[str], targets: Sequence[str | None]) -> list[str]:
        """Run a graph of groups; where its results lie."""
        raise NotImplementedError

    def group(self, graph: Graph) -> Graph:
        """A graph of groups that computes the same."""
        return form_groups(graph, self.schedule, lambda domain, cost: True)

    def sort(self, node: Node, inputs: Sequence[str], outputs: Sequence[str]) -> bool:
        """Sort rows by integers; whether that is done."""
        keys = sorted_rows.keys_of(node, self.schedule)
        if keys is None:
            return False
        columns = [self.allocate(key.tensor_type.nbytes) for key in keys.results]
        self.run_graph(self.group(keys), inputs, columns)
        sorted_rows.write_sort(self, node, columns, inputs, outputs)
        return True

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
        return kept

    def free_memory(self, frame: PlanFrame, index: int, but_of: Collection[int] = ()) -> None:
        """Let go of the memory that no step behind `index` needs, except that of some buffers."""
        blocks: dict[int, int]
        for blocks, ends in ((frame.reserved, frame.ends), (frame.copies, frame.ends_of_views)):
            for number in [each for each in blocks if ends[each] <= index and each not in but_of]:
                self.release(blocks.pop(number))

    def own(self, frame: PlanFrame, number: int) -> str | None:
        """The address of a register for one number inside of a loop; None for other buffers."""
        type = frame.plan.buffers[number].type
        return self.register(type.nbytes) if self.depth and type.size == 1 else None

    def pointer(self, frame: PlanFrame, number: int) -> str:
        pointer = frame.pointers.get(number)
        if pointer is None:
            buffer = frame.plan.buffers[number]
            if number in frame.views:
                return self._show(frame, number)
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
                frame.reserved[number] = start = self.reserve(frame.nbytes(number))
                pointer = self.at(start)
            frame.pointers[number] = pointer
        return pointer

    def show_before(self, frame: PlanFrame, step: Step, index: int) -> None:
        """Copy the elements of views that nothing has read yet where a step writes over what they show."""
        roots = (
            [frame.pointers.get(frame.plan.root(number)) for number in step.outputs] if frame.views else ()
        )
        for number in [*frame.views]:
            shown = frame.pointers.get(frame.plan.root(number))
            if shown is not None and shown in roots and frame.ends_of_views[number] >= index:
                self.pointer(frame, number)

    def is_copied(self, frame: PlanFrame, number: int) -> bool:
        """Whether a buffer is a view that nothing has read yet, and whose elements do not lie side by side."""
        step = frame.views.get(number)
        return step is not None and view_offset(step.node) is None

    def with_views(self, frame: PlanFrame, step: Step) -> tuple[Graph, list[int]]:
        """A step with the views that nothing has read yet, as a graph, and the numbers of the buffers that it reads."""
        nodes: dict[int, Node] = {}
        read: dict[int, Node] = {}

        def node_of(number: int) -> Node:
            view = frame.views.get(number)
            if number not in nodes:
                if view is not None and self._is_read_in_order(view):
                    nodes[number] = Node(view.op, (node_of(view.inputs[0]),))
                else:
                    nodes[number] = read[number] = parameter(frame.plan.buffers[number].type)
            return nodes[number]

        result = Node(step.op, tuple(map(node_of, step.inputs)))
        return Graph([*read.values()], [result]), [*read]

    def transposition(self, frame: PlanFrame, number: int, axes: Ints) -> tuple[Kernel, str]:
        """The loop program that copies a buffer with its dimensions in another order, and the address that it reads.

        Of views that nothing has read yet it reads what they show.
        """
        moves: list[Op] = [ops.Transpose(axes)]
        while (view := frame.views.get(number)) is not None and elements.computes(view.node):
            moves.append(view.op)
            number = view.inputs[0]
        source = node = parameter(frame.plan.buffers[number].type)
        for op in reversed(moves):
            node = Node(op, (node,))
        return self.schedule.build(ops.Fusion(Graph([source], [node]), node.shape)), self.pointer(
            frame, number
        )

    def _is_read_in_order(self, view: View) -> bool:
        """Whether loops may read elements where a view shows them: those of large matrices are copied by tiles."""
        is_large = view.node.tensor_type.size >= PROCESSOR.min_tiled_elements
        return elements.computes(view.node) and not (is_large and isinstance(view.op, ops.Transpose))

    def write_to(self, frame: PlanFrame, number: int, target: str) -> None:
        """Write what is in a buffer to another address too."""
        if self.is_copied(frame, number):
            step = frame.views[number]
            source = self.pointer(frame, step.inputs[0])
            with self.scope():
                self.launch(self.program(step), [source, target])
        else:
            self.copy(target, self.pointer(frame, number), frame.nbytes(number))

    def is_free_after(self, frame: PlanFrame, step: Step, number: int, index: int) -> bool:
        """Whether a step that reads a buffer alone may write over it: it lies in the arena, and is not needed later."""
        ends = frame.ends if number in frame.reserved else frame.ends_of_views
        if number not in frame.reserved and number not in frame.copies:
            return False
        shown = [base for each in step.inputs for base in list_bases(frame.plan, each)]
        return ends[number] <= index and shown.count(number) == 1

    def _show(self, frame: PlanFrame, number: int) -> str:
        """The address of a view: in what it shows, or of a copy where its elements do not lie side by side."""
        step = frame.views[number]
        offset = view_offset(step.node)
        if offset is None:
            frame.copies[number] = start = self.reserve(frame.nbytes(number))
            shown = self.at(start)
            self.write_to(frame, number, shown)
        else:
            shown = self.advance(self.pointer(frame, step.inputs[0]), offset)
        del frame.views[number]
        frame.pointers[number] = shown
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
