"""Calls of small functions, and of those called once, become operations of the caller."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.inline_calls import inline_calls
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph

pytestmark = pytest.mark.implicit

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


@xarr.jit
def relu(x: Any) -> Any:
    return xarr.maximum(x, 0)


@xarr.jit
def halves(x: Any) -> Any:
    return x / 2, relu(x - 1)


@xarr.jit
def long(x: Any) -> Any:
    for k in range(40):
        x = xarr.sin(x + k)
    return x


def graph_of(function: Any) -> Graph:
    graph = xarr.jit(function).lower(xarr.asarray(X)).stage("decomposed")
    assert isinstance(graph, Graph)
    return graph


def calls_in(graph: Graph) -> int:
    """The calls that are left, inside of loops and functions too."""
    return sum(isinstance(node.op, ops.Call) for each in graph.walk() for node in each.nodes)


def layers(x: Any) -> Any:
    for _ in range(3):
        x = relu(x * 2 - 1)
    left, right = halves(x)
    return left + right


def loop(x: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, x: relu(x - 0.1) + relu(x), x)


@pytest.mark.parametrize("function", [layers, loop])
def test_small_functions_are_part_of_the_caller(function: Any) -> None:
    graph = graph_of(function)
    assert calls_in(graph) > 0
    assert calls_in(inline_calls(graph, Target())) == 0
    assert_same(xarr.jit(function)(X), function(xarr.asarray(X)))


def test_a_large_function_is_copied_once_only() -> None:
    once, twice = graph_of(lambda x: long(x) + 1), graph_of(lambda x: long(long(x)))
    assert calls_in(inline_calls(once, Target())) == 0
    assert inline_calls(twice, Target()) is twice


def test_copies_of_a_small_function_are_bounded_together() -> None:
    graph = graph_of(layers)
    few = Target().replace(max_copied_operations=1)
    left = [node.op.computation for node in inline_calls(graph, few).nodes if type(node.op) is ops.Call]
    assert len(left) == 4
    assert len({id(each) for each in left}) == 1


def test_a_graph_without_calls_is_itself() -> None:
    graph = graph_of(lambda x: x + 1)
    assert inline_calls(graph, Target()) is graph


def test_what_a_function_computes_joins_the_groups_of_the_caller() -> None:
    lowered = xarr.jit(lambda x: relu(x * 2) + relu(x - 1)).lower("f32[100]")
    (node,) = lowered.stage("fused").nodes
    assert isinstance(node.op, ops.Fusion)
