"""The stage `fused`: loops as native loops, and groups of what remains.

How much work is worth compiling is the backend's to say; nothing else here depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING

from xarr.compiler.fusion.partial_updates import update_strided_parts
from xarr.compiler.fusion.repeated_positions import repeat_positions
from xarr.compiler.fusion.shared_groups import share_groups
from xarr.compiler.narrow_integers import narrow_carried_integers
from xarr.compiler.passes.complex_powers import expand_complex_powers
from xarr.compiler.passes.empty_arrays import without_empty_operands
from xarr.compiler.passes.index_checks import check_worst_indices, drop_proven_checks
from xarr.compiler.passes.inline_calls import inline_calls
from xarr.compiler.passes.powers_of_two import shift_by_powers_of_two
from xarr.compiler.passes.rewritten_reductions import combine_stacked_parts
from xarr.compiler.passes.short_sorts import compare_short_rows, look_for_first_elements
from xarr.compiler.passes.simplify import simplify
from xarr.compiler.passes.transposed_operands import multiply_in_order
from xarr.compiler.plan.declared_ranges import declare_ranges
from xarr.compiler.plan.planner import peak
from xarr.compiler.target import Target
from xarr.compiler.while_loops.invariant_checks import hoist_checks
from xarr.compiler.while_loops.shared_conditions import share_conditions
from xarr.compiler.wide_products import widen_products
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.op import FUNCTION
from xarr.ir.types import TensorType

if TYPE_CHECKING:
    from xarr.compiler.fusion.constant_folding import Fold
    from xarr.compiler.schedule import Schedule


def fuse(
    graph: Graph,
    target: Target,
    schedule: Callable[[], Schedule],
    hot: bool = False,
    fold: Fold | None = None,
) -> Graph:
    """`graph` with groups and native loops, in the graphs that loops, branches and calls run too.

    * `schedule` - gives what runs the groups, with the same target, once it is needed,
    * `hot` - that the program runs often, as under `jit`, so that whatever can be compiled pays,
    * `fold` - then computes beforehand what is known of the graph, and of those that loops, branches and calls run.
    """
    fold = fold if hot else None
    min_work = 1 if hot else target.min_work
    if hot:
        inlined = inline_calls(graph, target)
        graph = without_empty_operands(graph if inlined is graph else simplify(inlined))
        graph = update_strided_parts(graph) if target.has_strided_updates else graph
        if target.widens_products:
            graph = widen_products(graph, schedule)
        graph = multiply_in_order(expand_complex_powers(shift_by_powers_of_two(graph)))
        graph = combine_stacked_parts(graph, target.max_unrolled_terms)
        graph = hoist_checks(share_conditions(drop_proven_checks(graph), target.spare_bytes))
        graph = narrow_carried_integers(check_worst_indices(graph, target), target)
    # What a loop, a branch or a call runs may take more memory with groups, unless all does.
    over: list[Graph] = []
    fused = _with_inner(graph, min_work, target, schedule, over, fold)
    if over and not _fits(fused, graph, target):
        fused = _with_inner(graph, min_work, target, schedule, None, fold)
    return declare_ranges(fused) if hot else fused


def _fits(fused: Graph, graph: Graph, target: Target) -> bool:
    """Whether a graph with groups needs no more memory than the operations one by one, within `form_groups`' limits."""
    plain = peak(graph, overwrites=False, target=target).total
    return peak(fused, target=target).total <= max(plain + target.added_bytes, target.spare_bytes)


def _with_inner(
    graph: Graph,
    min_work: int,
    target: Target,
    schedule: Callable[[], Schedule],
    over: list[Graph] | None,
    fold: Fold | None,
) -> Graph:
    """`graph` with groups, in the graphs that loops, branches and calls run too; `over` as for `form_groups`."""
    inner = min(min_work, target.min_loop_work)
    once: OncePerGraph[Graph] = OncePerGraph(
        lambda graph, once: _fuse(graph, inner, schedule, once, over, fold, is_inner=True), _called_graphs
    )
    return _fuse(graph, min_work, schedule, once, fold=fold)


def _fuse(
    graph: Graph,
    min_work: int,
    schedule: Callable[[], Schedule],
    inner: OncePerGraph[Graph],
    over: list[Graph] | None = None,
    fold: Fold | None = None,
    is_inner: bool = False,
) -> Graph:
    """`graph` with groups of so many instructions; `inner` fuses the graphs that loops, branches and calls run, of
    which it may be one.
    """
    if any(op.runs_graphs for op in graph.op_classes):
        graph = _with_bodies(graph, min_work, schedule, inner, fold)
    if fold is not None:  # what loops compute only once, too
        graph = fold(graph, 0)
    if not _may_pay(graph, min_work):
        return graph
    # It takes a while to load, and small programs do without.
    from xarr.compiler.fusion.form_groups import form_groups, group_systems

    machine = schedule()
    if min_work <= 1:
        graph = look_for_first_elements(compare_short_rows(graph, machine.target), machine.target)
        graph = group_systems(repeat_positions(graph), machine, is_inner)
    grouped = form_groups(graph, machine, lambda domain, cost: prod(domain) * cost >= min_work, over)
    return share_groups(grouped, machine.target.min_alike_groups)


def _may_pay(graph: Graph, min_work: int) -> bool:
    """Whether there may be a group of so many instructions."""
    if min_work <= 1:
        return True
    sizes = [prod(type.shape) for type in graph.types if isinstance(type, TensorType)]
    return max(sizes, default=0) * FUNCTION * max(1, len(graph.nodes)) >= min_work


def _with_bodies(
    graph: Graph,
    min_work: int,
    schedule: Callable[[], Schedule],
    inner: OncePerGraph[Graph],
    fold: Fold | None,
) -> Graph:
    """`graph` with loops, branches and calls of fused graphs."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, ops.While):
            from xarr.compiler.while_loops.lowering import lower_loop

            if fold is not None:  # the body of a native loop has no tables
                node = node.rebuilt(operands, map_graphs(node.op, lambda graph: fold(graph, 1)))
            return lower_loop(node, operands, min_work, schedule(), inner)
        if not node.op.runs_graphs:
            return None
        op = map_graphs(node.op, inner)
        return None if op is node.op else node.rebuilt(operands, op)

    return rewritten(graph, rule)


def _called_graphs(node: Node) -> tuple[Graph, ...]:
    """The function that a node calls, if its operations are fused."""
    return node.op.graphs if type(node.op) is ops.Call else ()
