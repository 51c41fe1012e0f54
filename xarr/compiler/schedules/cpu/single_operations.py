"""Loop programs of single operations, for programs that no library is to be called from.

They are those of the serial schedule, which knows most operations, with neighbouring results in lanes; products are
made by the builders of groups.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from xarr.compiler.fusion import scan_windows
from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Runs, in_threads
from xarr.compiler.loop_ir.scalars import in_order
from xarr.compiler.passes.inner_products import split_product
from xarr.compiler.schedule import Kind, Schedule
from xarr.compiler.schedules.cpu.products import sums_in_lanes
from xarr.compiler.schedules.serial import movement
from xarr.compiler.schedules.serial.builders import RULES, computes
from xarr.compiler.schedules.serial.serial_loops import Body, Rule, SerialLoops
from xarr.compiler.schedules.serial.sorts import is_ranked, sort
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.types import Ints, Type

#: What the serial schedule knows, and sorts.
_RULES: Final[Mapping[type[Op], Rule]] = {**RULES, ops.Sort: sort}
#: Loop programs that are kept.
_KEPT = 1024


def program_of_operation(node: Node, schedule: Schedule) -> Kernel | None:
    """The loop program of an operation, a function of its operands; None if there is none.

    That of an update of a part writes the update alone, to a result that holds the array already, and takes the
    other operands.  One object for equal operations.
    """
    return _program(node.op, tuple([operand.type for operand in node.operands]), schedule)


@lru_cache(_KEPT)
def program_of_concatenation(graph: Graph, schedule: Schedule) -> Kernel | None:
    """The loop program of a graph whose result is a concatenation, of what only moves elements; None if there is none.

    Not of many operands of a few elements, whose copies one by one take longer than choosing among them.
    """
    (node,) = graph.results
    if node.tensor_type.size < schedule.target.register_bytes * len(node.operands):
        return None
    if not all(elements.computes(each) for each in graph.nodes):
        return None
    kernel = movement.concatenate_in_order(_LaneLoops(graph, RULES), node)
    in_threads(kernel.phases)
    return kernel


def multiplies_in_lanes(node: Node, schedule: Schedule) -> bool:
    """Whether the loop program of a product computes several columns, or several terms of a sum, in lanes."""
    operands = [parameter(operand.type) for operand in node.operands]
    alone = Node(node.op, tuple(operands))
    return _fused_product(alone, Graph(operands, [alone]), schedule) is not None


@lru_cache(_KEPT)
def _program(op: Op, types: tuple[Type, ...], schedule: Schedule) -> Kernel | None:
    operands = [parameter(type) for type in types]
    node = Node(op, tuple(operands))
    if isinstance(op, ops.StridedUpdate):
        return _update(node)
    if isinstance(op, ops.Fusion | ops.Call) or not computes(node, _RULES):
        return None
    if isinstance(op, ops.Sort) and not is_ranked(node, schedule.target):
        return None
    if scan_windows.scan_axis(node) is not None and not scan_windows.computes(node):
        return None
    if isinstance(op, ops.DynamicUpdateSlice):
        return _update(node)
    graph = Graph(operands, [node])
    if isinstance(op, ops.DotGeneral):
        fusion = _fused_product(node, graph, schedule)
        if fusion is not None:
            return schedule.build(fusion)
    if isinstance(op, ops.Transpose) and node.tensor_type.size >= schedule.target.min_tiled_elements:
        return schedule.build(ops.Fusion(graph, node.shape))  # through tiles that stay in a cache
    loops = _LaneLoops(graph, _RULES)
    kernel = loops.kernel()
    in_threads(kernel.phases)
    return kernel


def _fused_product(node: Node, graph: Graph, schedule: Schedule) -> ops.Fusion | None:
    """A product as a group: around it, where columns lie side by side, or of a reduction, where terms do."""
    op = node.op.expect(ops.DotGeneral)
    left, right = node.operands
    if not left.dtype == right.dtype == node.dtype or node.dtype.kind != "f" or node.dtype.itemsize < 4:
        return None
    _, columns = free_dimensions(node)
    if columns and columns[-1] == right.tensor_type.rank - 1 and right.shape[-1] > 1:
        return ops.Fusion(graph, node.shape) if schedule.builds(Kind.PRODUCT) else None
    if sums_in_lanes(node) and schedule.builds(Kind.PRODUCT):
        return ops.Fusion(graph, node.shape)
    ends = [(op.lhs_contracting_dimensions, left), (op.rhs_contracting_dimensions, right)]
    if any(not dims or dims[-1] != array.tensor_type.rank - 1 for dims, array in ends):
        return None
    whole = Graph(graph.parameters, [split_product(node, graph.parameters)])
    rank = len(node.shape)
    domain = (*node.shape, *[left.shape[axis] for axis in op.lhs_contracting_dimensions])
    return ops.Fusion(whole, domain, tuple(range(rank, len(domain))))


def _update(node: Node) -> Kernel:
    """Store the update where it lies in the result."""
    operands = node.operands[1:]
    kernel = movement.update_in_place(_LaneLoops(Graph(operands, operands), RULES), node)
    in_threads(kernel.phases)
    return kernel


class _LaneLoops(SerialLoops):
    """Serial loops, in lanes along the last axis of what they store, if the elements of that lie side by side."""

    def phase(self, shape: Ints, body: Body, ordered: Sequence[int] = ()) -> None:
        count = len(self.phases)
        super().phase(shape, body, ordered)
        for phase in self.phases[count:]:
            loops = [loop for loop in list(phase.walk())[: len(shape) - len(ordered)] if loop.extent != 1]
            if loops and _stores_neighbours(loops[-1]):
                loops[-1].runs |= Runs.LANES


def _stores_neighbours(loop: Loop) -> bool:
    """Whether neighbouring iterations of a loop store neighbouring elements, and all run the same inner loops."""
    inner = list(loop.walk())
    return all(isinstance(each.extent, int) for each in inner) and all(
        _steps_by_one(store.offset, loop) for each in inner for store in each.stores()
    )


def _steps_by_one(offset: Affine, loop: Loop) -> bool:
    return all(
        factor == 1 if value is loop.index else loop.index not in in_order(value)
        for value, factor in offset.terms
    ) and any(value is loop.index for value, _ in offset.terms)
