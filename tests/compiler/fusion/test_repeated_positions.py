"""What is made of positions and single elements is computed where it is used, and no array for several groups."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.compiler.fusion.repeated_positions import repeat_positions
from xarr.ir import ops
from xarr.ir.graph import Graph

N = 40


def trace(function: Any, *types: str) -> Graph:
    graph: Graph = xarr.lower(function, *types).stage("decomposed")
    return graph


def subtractions(graph: Graph) -> int:
    return sum(isinstance(node.op, ops.Subtract) for node in graph.nodes)


def two_users(x: Any, k: Any) -> Any:
    index = lax.clamp(0, lax.sub(lax.broadcast(k, (N,)), xarr.arange(N)), N - 1)
    return lax.sin(lax.convert_element_type(index, "float64")), lax.reduce_max(index, (0,)), x


def test_each_user_has_its_own() -> None:
    graph = trace(two_users, "f64[40]", "s64[]")
    assert subtractions(graph) == 1
    repeated = repeat_positions(graph)
    assert subtractions(repeated) == 2
    assert [result.type for result in repeated.results] == [result.type for result in graph.results]


def test_what_is_made_of_numbers_alone_is_no_array() -> None:
    """Of a remainder by a number each user compares that with 0 itself."""

    def function(x: Any, y: Any) -> Any:
        divisor = lax.full_like(x, 7)
        sign = lax.lt(divisor, lax.full_like(x, 0))
        return lax.select(sign, lax.neg(x), x), lax.reduce_max(lax.select(sign, y, lax.neg(y)), (0,))

    graph = trace(function, "s64[40]", "s64[40]")
    repeated = repeat_positions(graph)
    assert [sum(isinstance(node.op, ops.Compare) for node in each.nodes) for each in (graph, repeated)] == [
        1,
        2,
    ]


def test_what_two_users_share_is_computed_by_both() -> None:
    """The greatest of an index and the least of its negation: of the positions that both begin with."""

    def function(x: Any, k: Any) -> Any:
        index = lax.sub(lax.broadcast(k, (N,)), xarr.arange(N))
        return lax.reduce_max(lax.neg(index), (0,)), lax.reduce_max(lax.max(index, 3), (0,)), x

    graph = trace(function, "f64[40]", "s64[]")
    assert subtractions(graph) == 1
    assert subtractions(repeat_positions(graph)) == 2


@pytest.mark.parametrize(
    "function",
    [
        lambda x, k: lax.sin(lax.mul(x, x)),  # no positions
        lambda x, k: lax.sub(lax.broadcast(k, (N,)), xarr.arange(N)),  # a result
        lambda x, k: x + lax.convert_element_type(lax.sub(lax.broadcast(k, (N,)), xarr.arange(N)), "float64"),
    ],
    ids=["no positions", "a result", "one user"],
)
def test_other_graphs_stay(function: Any) -> None:
    graph = trace(function, "f64[40]", "s64[]")
    assert repeat_positions(graph) is graph


def test_an_index_for_two_arrays_is_stored_for_neither() -> None:
    def function(x: Any, y: Any) -> Any:
        i = xarr.arange(N)

        def step(k: Any, x: Any) -> Any:
            index = xarr.clip(k - i, 0, N - 1)
            total = xarr.where(i < k, y[index] * x, 0.0).sum()
            return x + total * x[index]

        return lax.fori_loop(0, 5, step, x)

    x, y = np.random.default_rng(0).normal(size=(2, N))
    text = str(xarr.jit(function).lower(xarr.asarray(x), xarr.asarray(y)).stage("program"))
    assert f"int64[{N}]" not in text
    with xarr.config(fusion="off"):
        wanted = np.asarray(xarr.jit(function)(xarr.asarray(x), xarr.asarray(y)))
    got = np.asarray(xarr.jit(function)(xarr.asarray(x), xarr.asarray(y)))
    np.testing.assert_allclose(got, wanted, rtol=1e-13)
