"""Small branches of a backend that computes all of them, and selects."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.small_branches import with_selects
from xarr.ir import ops
from xarr.ir.graph import Graph

pytestmark = pytest.mark.implicit


def graph_of(function: Any, *arrays: Any) -> Graph:
    graph = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("decomposed")
    assert isinstance(graph, Graph)
    return graph


def control_of(
    graph: Graph, computes: Any = lambda node: True, operations: int = 64, elements: int = 2**20
) -> list[str]:
    """The branches that are left, inside of loops too."""
    rewritten = with_selects(graph, computes, operations, elements)
    nodes = [node for each in rewritten.walk() for node in each.nodes]
    return [node.op.lax_name for node in nodes if isinstance(node.op, ops.If | ops.Case)]


def choose(x: Any) -> Any:
    return lax.cond(x[0] > 0, lambda x: (x + 1, x), lambda x: (-x, x * 2), x)


def switch(i: Any, x: Any) -> Any:
    branches = [lambda x: x * 2, lambda x: xarr.sqrt(x), lambda x: x]
    return lax.switch(i, branches, x)


def test_both_kinds_become_selects() -> None:
    assert control_of(graph_of(choose, np.ones(3))) == []
    assert control_of(graph_of(switch, np.int32(1), np.ones(3))) == []


def test_branches_in_loops_and_in_branches_do_too() -> None:
    def function(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            return lax.cond(
                i > 1, lambda x: lax.cond(x[0] > 2, lambda x: x, lambda x: x + 1, x), lambda x: x * 3, x
            )

        return lax.fori_loop(0, 3, step, x)

    assert control_of(graph_of(function, np.ones(3))) == []


@pytest.mark.parametrize(
    "branch",
    [
        lambda x: lax.while_loop(lambda x: x[0] < 9, lambda x: x + 1, x),
        lambda x: lax.sort(x),
        lambda x: x.at[lax.convert_element_type(x[0], "int32")].get(mode="clip") + x,
    ],
    ids=["loop", "sort", "gather"],
)
def test_other_branches_stay(branch: Any) -> None:
    assert control_of(graph_of(lambda x: lax.cond(x[0] > 0, branch, lambda x: x, x), np.ones(3))) != []


def test_what_the_backend_does_not_compute_or_what_is_large_stays() -> None:
    graph = graph_of(choose, np.ones(3))
    assert control_of(graph, lambda node: not isinstance(node.op, ops.Negate)) != []
    assert control_of(graph, elements=17) != []
    assert control_of(graph, operations=2) != []


@pytest.mark.parametrize("number", [-1, 0, 1, 2, 3])
def test_results_on_a_device(number: int, cupy: Any) -> None:
    host = pytest.importorskip("xarr_cupy.host")
    x = np.array([-0.0, 4.0, np.nan, -np.inf, -1.0])
    i = np.int32(number)
    host.CALLS.clear()
    results = xarr.jit(switch)(xarr.asarray(i), xarr.asarray(x)), *xarr.jit(choose)(xarr.asarray(x + number))
    assert not host.CALLS
    with xarr.use_backend("numpy"):
        wanted = switch(xarr.asarray(i), xarr.asarray(x)), *choose(xarr.asarray(x + number))
        for each, other in zip(results, wanted, strict=True):
            assert_same(each, other)
