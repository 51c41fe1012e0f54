"""Groups of the operations that compiled loops hold, as many as the memory of the operations one by one allows."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, prod
from typing import Final

from xarr.compiler.fusion import scan_windows, scatter_windows, window_groups, window_work
from xarr.compiler.fusion.fuse import fused_graphs
from xarr.compiler.fusion.groups import cost
from xarr.compiler.fusion.partial_updates import is_large_update
from xarr.compiler.loop_ir import accumulators, elements
from xarr.compiler.passes.one_hot import one_hot_sums
from xarr.compiler.plan.planner import peak
from xarr.compiler.schedule import Kind, Schedule, kind_around
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter, rewritten
from xarr.ir.op import INSTRUCTION
from xarr.ir.ops.control import unpack_results
from xarr.ir.types import TensorType, Type


def kind_of_member(node: Node) -> Kind | None:
    """The kind of the groups that a node may be a part of before there are groups around windows; None for none."""
    if isinstance(node.op, ops.Reduce) and not accumulators.computes(node):
        return None
    if elements.computes(node) or _is_update_by_members(node):
        return Kind.NEST
    if scatter_windows.computes(node):
        return Kind.SCATTER
    return Kind.SCAN if scan_windows.computes(node) else None


def _is_update_by_members(node: Node) -> bool:
    """Whether a node updates much of an array by what may be computed in the same group."""
    return (
        is_large_update(node)
        and all(elements.computes(each) for each in node.operands[1:])
        and not isinstance(node.operands[1].op, ops.Reduce)
    )


def form_groups(
    graph: Graph,
    schedule: Schedule,
    worth: Callable[[tuple[int, ...], int], bool],
    over: list[Graph] | None = None,
) -> Graph:
    """`graph` with groups; `worth` gets a group's domain and how many instructions each of its elements takes.

    The groups need no more memory than the operations one by one, but for `added_bytes`, in which they may keep some
    numbers longer, or unless it is within `spare_bytes`.  With `over` they may, if no others do without: that joins it.
    """
    target, describe = schedule.target, schedule.describe

    def computes(node: Node) -> bool:
        kind = kind_of_member(node)
        return kind is not None and schedule.takes(kind, node)

    def work(node: Node) -> int:
        elements = window_work.work(node)
        return elements if elements and schedule.takes(kind_around(node), node) else 0

    most: int | None = None
    least: tuple[int, Graph] | None = None
    scattered = graph
    if schedule.builds(Kind.SCATTER):
        scattered = one_hot_sums(graph, target, lambda shape: worth(shape, INSTRUCTION))
    for source in dict.fromkeys((scattered, graph)):
        before = None
        candidates = fused_graphs(
            source,
            target,
            computes,
            lambda group: worth(group.shape(), cost(group)),
            describe,
            schedule.builds(Kind.ACCUMULATING_SCATTER),
        )
        for candidate in candidates:
            if candidate is before:
                continue
            before = candidate
            fused = window_groups.fuse(
                window_work.with_kernels_in_order(candidate, lambda node: work(node) > 0),
                target,
                work,
                worth,
                describe,
            )
            if most is None and (fused is graph or _bytes_of_all(fused) <= target.spare_bytes):
                return fused
            needed = peak(fused, target=target).total
            if most is None and needed > target.spare_bytes:
                most = peak(graph, overwrites=False, target=target).total + target.added_bytes
            if needed <= max(most or 0, target.spare_bytes):
                return fused
            if least is None or needed < least[0]:
                least = needed, fused
    if over is None or least is None:
        return graph
    over.append(least[1])
    return least[1]


def group_systems(graph: Graph, schedule: Schedule, is_inner: bool) -> Graph:
    """`graph` with a group of each operation that solves many small systems of equations, or few in an inner graph."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Solve) or not schedule.takes(Kind.SYSTEMS, node):
            return None
        if not is_inner and prod(node.operands[1].shape[:-2]) < schedule.target.min_systems:
            return None
        inner = [parameter(operand.type) for operand in node.operands]
        results = unpack_results(Node(node.op, tuple(inner)))
        return node.rebuilt(operands, ops.Fusion(Graph(inner, results), node.operands[1].shape[:-2]))

    return rewritten(graph, rule) if ops.Solve in graph.op_classes else graph


#: Ops that run other graphs, which have arrays of their own.
_CARRIERS: Final = (ops.While, ops.If, ops.Case, ops.Call)


def _bytes_of_all(graph: Graph) -> float:
    """The bytes of all arrays of a graph, no fewer than it needs at once; infinite if ops run other graphs."""
    if any(isinstance(node.op, _CARRIERS) and not isinstance(node.op, ops.Fusion) for node in graph.nodes):
        return inf
    return sum([_nbytes(node.type) for node in (*graph.parameters, *graph.nodes)])


def _nbytes(type: Type) -> int:
    return type.nbytes if isinstance(type, TensorType) else sum(map(_nbytes, type.elements))
