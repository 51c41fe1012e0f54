"""Loops are rewritten one by one, those inside of others first."""

from __future__ import annotations

from typing import Any

import numpy as np

import xarr
from xarr import lax
from xarr.compiler.while_loops.loop_rewriting import first_results, rewrite_loops
from xarr.ir import ops
from xarr.ir.graph import Graph, Node


def graph_of(function: Any) -> Graph:
    return xarr.lower(function, np.arange(3.0)).stage("traced")  # type: ignore[return-value]


def double_and_add(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda _, x: lax.fori_loop(0, 2, lambda _, x: x * 2, x) + 1, x)


def test_loops_inside_come_first_and_a_graph_without_changes_is_itself() -> None:
    graph, seen = graph_of(double_and_add), []

    def keep(node: Node) -> Node | None:
        seen.append(node.op.body.op_classes)  # type: ignore[attr-defined]
        return None

    assert rewrite_loops(graph, keep) is graph
    assert [ops.While in classes for classes in seen] == [False, True]
    seen.clear()
    loopless = graph_of(lambda x: x * 2 + 1)
    assert rewrite_loops(loopless, keep) is loopless and not seen


def test_results_of_a_loop_that_carries_more() -> None:
    graph = graph_of(double_and_add)
    (loop,) = [node for node in graph.nodes if isinstance(node.op, ops.While)]
    results = first_results(loop, loop)
    assert isinstance(results.op, ops.Tuple) and results.type == loop.type
    assert [each.op for each in results.operands] == [
        ops.GetTupleElement(k) for k in range(len(loop.operands))
    ]
    changed = rewrite_loops(graph, lambda node: first_results(node, node))
    assert changed is not graph and changed.result_types == graph.result_types
