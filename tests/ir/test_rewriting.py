"""Rules for the nodes of a graph and of all graphs that it runs."""

from __future__ import annotations

from typing import Any

import numpy as np

import xarr
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.rewriting import rewritten_throughout

X = np.arange(3.0)


def record(function: Any, *arguments: Any) -> Graph:
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("traced")
    assert isinstance(graph, Graph)
    return graph


def count(graph: Graph, op: type[Any]) -> int:
    return sum([isinstance(node.op, op) for each in graph.walk() for node in each.nodes])


def test_a_rule_holds_in_loops_and_branches() -> None:
    def function(x: Any) -> Any:
        x = lax.cond(x[0] > 0, lambda x: lax.abs(x), lambda x: x, lax.abs(x))
        return lax.fori_loop(0, 3, lambda i, x: lax.fori_loop(0, i, lambda j, x: lax.abs(x), x), x)

    graph = record(function, X)
    assert (count(graph, ops.Abs), count(graph, ops.Sign)) == (3, 0)
    new = rewritten_throughout(
        graph, lambda node, operands: Node(ops.Sign(), operands) if isinstance(node.op, ops.Abs) else None
    )
    assert (count(new, ops.Abs), count(new, ops.Sign)) == (0, 3)


def test_a_graph_without_replacements_is_itself() -> None:
    graph = record(lambda x: lax.fori_loop(0, 3, lambda i, x: lax.abs(x), x), X)
    assert rewritten_throughout(graph, lambda node, operands: None) is graph


def test_a_rule_has_the_operands_of_the_new_graph_and_the_last_word_on_an_op_that_runs_graphs() -> None:
    graph = record(lambda x: lax.fori_loop(0, 3, lambda i, x: lax.abs(x), lax.sign(x)), X)

    def leave_out(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if isinstance(node.op, ops.Sign):
            return Node(ops.Negate(), operands)
        if isinstance(node.op, ops.While):
            assert any(isinstance(operand.op, ops.Negate) for operand in operands)
            return Node(ops.Tuple(), operands)
        return None

    new = rewritten_throughout(graph, leave_out)
    assert (count(new, ops.While), count(new, ops.Abs), count(new, ops.Negate)) == (0, 0, 1)


def test_a_graph_that_two_ops_run_is_looked_at_once() -> None:
    @xarr.jit
    def inner(x: Any) -> Any:
        return lax.abs(x)

    graph = record(lambda x: inner(inner(x)), X)
    seen: list[Node] = []
    rewritten_throughout(graph, lambda node, operands: seen.append(node))
    assert sum([isinstance(node.op, ops.Abs) for node in seen]) == 1
