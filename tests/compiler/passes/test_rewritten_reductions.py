"""Reductions over the parts of a stack as combinations of the parts: the same numbers, and no reduction is left."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.rewritten_reductions import combine_stacked_parts
from xarr.ir import ops
from xarr.ir.graph import Graph

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.implicit
MOST = 16


def combine(function: Any, *arrays: Array, stage: str = "decomposed") -> Graph:
    graph = xarr.jit(function).lower(*arrays).stage(stage)
    assert isinstance(graph, Graph)
    after = combine_stacked_parts(graph, MOST)
    after.verify()
    return after


def reductions_left(function: Any, *arrays: Array) -> int:
    after = combine(function, *arrays)
    return sum(isinstance(node.op, ops.Reduce) for each in after.walk() for node in each.nodes)


def three_rows(dtype: str = "float64") -> tuple[Array, Array, Array]:
    numbers = np.random.default_rng(0).integers(-3, 4, (3, 300)).astype(np.float64)
    if "float" in dtype:
        numbers[numbers == 3] = np.nan
        numbers[numbers == 2] = -0.0
        numbers[numbers == -3] = np.inf
    a, b, c = [
        np.asarray(xarr.asarray(abs(row) if dtype[0] == "u" else row).astype(dtype)) for row in numbers
    ]
    return a, b, c


@pytest.mark.sampled
@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("name", ["max", "min", "argmax", "argmin", "sum", "prod", "all", "any"])
def test_parts_combine_as_reductions_do(dtype: str, axis: int, name: str) -> None:
    rows = three_rows(dtype)

    def function(*rows: Any) -> Any:
        return getattr(xarr, name)(xarr.stack(rows, axis=axis), axis=axis)

    with xarr.use_backend("reference"):
        wanted = np.asarray(function(*map(xarr.asarray, rows)))
    assert_same(np.asarray(xarr.jit(function)(*rows)), wanted)
    is_wide = dtype == "float16" and name not in ("max", "min", "all", "any")  # accumulated in float32
    assert reductions_left(function, *rows) == is_wide


@pytest.mark.usefixtures("fused")
def test_what_is_computed_of_a_stack() -> None:
    x, y, z = three_rows()
    weights = np.array([1.0, 2.0, 3.0])

    def function(x: Any, y: Any, z: Any) -> Any:
        return ((xarr.stack([x, y, z], axis=-1) - 1) * weights).sum(axis=-1)

    with np.errstate(invalid="ignore"):
        wanted = ((np.stack([x, y, z], axis=-1) - 1) * weights).sum(axis=-1)
    assert_same(np.asarray(xarr.jit(function)(x, y, z)), wanted)
    assert reductions_left(function, x, y, z) == 0


@pytest.mark.usefixtures("fused")
def test_stacks_beside_arrays_positions_and_repeated_ones() -> None:
    x, y, table = np.arange(4.0), np.arange(4.0) + 1, np.arange(8.0).reshape(2, 4)

    def function(x: Any, y: Any, table: Any) -> Any:
        pair = xarr.stack([x, y])
        repeated = lax.broadcast_in_dim(pair, (2, 4, 3), (0, 1))
        return (pair * table + xarr.arange(2.0)[:, None]).sum(axis=0), repeated.max(axis=0)

    first, second = xarr.jit(function)(x, y, table)
    assert_same(np.asarray(first), (np.stack([x, y]) * table + np.arange(2.0)[:, None]).sum(axis=0))
    assert_same(np.asarray(second), np.repeat(np.maximum(x, y)[:, None], 3, axis=1))
    assert reductions_left(function, x, y, table) == 0


@pytest.mark.usefixtures("fused")
def test_a_computation_of_the_user_goes_from_the_first_part_on() -> None:
    x, y = np.arange(5, dtype="int64"), np.arange(5, dtype="int64")[::-1].copy()

    def function(x: Any, y: Any) -> Any:
        return lax.reduce(xarr.stack([x, y]), np.int64(7), lambda a, b: a * 10 - b, (0,))

    assert_same(np.asarray(xarr.jit(function)(x, y)), (70 - x) * 10 - y)
    assert reductions_left(function, x, y) == 0


@pytest.mark.usefixtures("fused")
def test_bodies_of_loops_too() -> None:
    x = np.random.default_rng(1).normal(size=40)

    def step(_: Any, x: Any) -> Any:
        return 0.5 * xarr.stack([xarr.roll(x, 1), x, xarr.roll(x, -1)]).max(axis=0)

    wanted = x
    for _ in range(3):
        wanted = 0.5 * np.stack([np.roll(wanted, 1), wanted, np.roll(wanted, -1)]).max(axis=0)
    function = lambda x: lax.fori_loop(0, 3, step, x)  # noqa: E731
    assert_same(np.asarray(xarr.jit(function)(x)), wanted)
    assert reductions_left(function, x) == 0


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize(("times", "step"), [(40, lambda z, c: z * z + c), (600, lambda z, c: z * 0.5 + c)])
def test_stacks_at_every_depth_are_looked_for_in_time(times: int, step: Any) -> None:
    """Some operations below a reduction, each part of each once."""
    x = np.linspace(-0.5, 0.2, 8)

    def function(x: Any, y: Any) -> Any:
        c = z = xarr.stack([x, y])
        for _ in range(times):
            z = step(z, c)
        return z.max(axis=0)

    assert reductions_left(function, x, x / 2) == 0
    c = z = np.stack([x, x / 2])
    for _ in range(times):
        z = step(z, c)
    assert_same(np.asarray(xarr.jit(function)(x, x / 2)), z.max(axis=0))


def swap(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 2, lambda _, pair: pair[::-1], (x, y))


OTHERS: dict[str, Any] = {
    "many": lambda x: xarr.stack([x + k for k in range(17)]).max(axis=0),
    "parts of several rows": lambda x: xarr.concatenate([x, x]).max(axis=0),
    "another dimension": lambda x: xarr.stack([x, x]).max(axis=1),
    "costly": lambda x: xarr.exp(xarr.stack([x, x + 1])).max(axis=0),
    "results of a loop": lambda x: swap(x[:2, None], x[2:4, None])[0].max(0),
    "all dimensions": lambda x: xarr.stack([x, x]).max(),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_reductions_stay(name: str) -> None:
    assert reductions_left(OTHERS[name], np.arange(6.0)) == 1


def test_a_graph_without_stacks_is_itself() -> None:
    graph = xarr.jit(lambda x: x.max()).lower(np.arange(6.0)).stage("decomposed")
    assert isinstance(graph, Graph)
    assert combine_stacked_parts(graph, MOST) is graph
