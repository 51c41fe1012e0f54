"""The stage `fused`: ciphers as one operation, loops as native loops, and groups of what remains.

How much work is worth compiling is the backend's to say; nothing else here depends on the machine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from xarr.compiler.passes.ciphers import by_pairs, by_words
from xarr.compiler.thresholds import Thresholds
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, OncePerGraph, map_graphs, rewritten
from xarr.ir.ops.ciphers import cipher_of

if TYPE_CHECKING:
    from xarr.compiler.schedule import Schedule


def fuse(graph: Graph, thresholds: Thresholds, schedule: Callable[[], Schedule]) -> Graph:
    """`graph` with groups and native loops, in the graphs that loops, branches and calls run too.

    `schedule` gives what runs the groups, once it is needed.
    """
    once: OncePerGraph[Graph] = OncePerGraph(
        lambda graph, once: _fused(graph, thresholds.in_loop(), schedule, once), _called
    )
    return _fused(graph, thresholds, schedule, once)


def _fused(
    graph: Graph, thresholds: Thresholds, schedule: Callable[[], Schedule], inner: OncePerGraph[Graph]
) -> Graph:
    """`graph` with groups; `inner` fuses the graphs that loops, branches and calls run."""
    graph = by_pairs(by_words(graph, thresholds.min_work))
    if not _CARRIERS.isdisjoint(graph.op_classes):
        graph = _with_bodies(graph, thresholds, schedule, inner)
    if not thresholds.may_pay(graph):
        return graph
    # It takes a while to load, and small programs do without.
    from xarr.compiler.fusion.form_groups import form_groups

    return form_groups(graph, schedule(), thresholds.pays_group)


#: Ops with graphs that are fused by themselves.
_CARRIERS: Final = frozenset({ops.While, ops.If, ops.Case, ops.Call})


def _with_bodies(
    graph: Graph, thresholds: Thresholds, schedule: Callable[[], Schedule], inner: OncePerGraph[Graph]
) -> Graph:
    """`graph` with loops, branches and calls of fused graphs."""

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, ops.While):
            from xarr.compiler.while_loops.lowering import lower_loop

            return lower_loop(node, operands, thresholds, schedule(), inner)
        if not isinstance(node.op, ops.If | ops.Case | ops.Call) or cipher_of(node) is not None:
            return None
        op = map_graphs(node.op, inner)
        return None if op is node.op else node.rebuilt(operands, op)

    return rewritten(graph, rule)


def _called(node: Node) -> tuple[Graph, ...]:
    """The function that a node calls, if its operations are fused."""
    return node.op.graphs if type(node.op) is ops.Call and cipher_of(node) is None else ()
