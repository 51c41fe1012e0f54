"""Sorts of short rows by loops: as the library sorts, along any axis, to the bit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.loop_ir.loops import Runs
from xarr.compiler.plan.program_plan import LibraryCall
from xarr.compiler.schedule import Schedule
from xarr.compiler.schedules.cpu.builders import BUILDERS
from xarr.compiler.schedules.cpu.single_operations import program_of_operation
from xarr.compiler.schedules.serial.sorts import is_ranked
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("on_numpy", "fused")

SPECIAL = (0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1.0)
TYPES = (
    "bool",
    "int8",
    "uint8",
    "int64",
    "uint64",
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "complex128",
)


def numbers(dtype: str, shape: tuple[int, ...], seed: int = 0) -> Any:
    """Numbers of which many are equal, and special ones."""
    rng = np.random.default_rng(seed)
    draws = rng.integers(-3, 4, shape) * 1.0
    if dtype in ("bool", "uint8", "uint64"):
        draws = np.abs(draws)
    elif "float" in dtype:
        draws = np.where(rng.random(shape) < 0.4, rng.choice(SPECIAL, shape), draws)
    elif dtype == "complex128":
        parts = np.stack([draws, rng.choice(SPECIAL, shape)], axis=-1)
        return parts.view(np.complex128)[..., 0]
    return xarr.asarray(draws).astype(dtype).evaluate()


def sort_of(function: Callable[..., Any], *types: str) -> Node:
    """The sort in a function."""
    graph = xarr.jit(function).lower(*types).stage("decomposed")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Sort)]
    return node


def agree(function: Callable[..., Any], *arguments: Any, is_library: bool = False) -> None:
    """Compare with separate operations; whether a library sorts."""

    def among_others(*own: Any) -> Any:  # a program of a sort alone is left to the library
        return function(*own), xarr.cumsum(xarr.arange(5) + xarr.sum(xarr.arange(3) * 2)) * 2

    with xarr.config(fusion="off"):
        wanted = xarr.jit(among_others)(*arguments)
    compiled = xarr.jit(among_others)
    for got, value in zip(_flat(compiled(*arguments)), _flat(wanted), strict=True):
        assert_same(got, value)
    plan: Any = compiled.lower(*arguments).stage("plan")
    sorts = [step for step in plan.steps if isinstance(step, LibraryCall) and isinstance(step.op, ops.Sort)]
    assert [is_ranked(step.node, Target()) for step in sorts] == [not is_library] * len(sorts)
    assert ("in Python" in str(plan)) is is_library


def _flat(results: Any) -> list[Any]:
    return [each for part in results for each in (part if isinstance(part, list | tuple) else [part])]


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("dtype", TYPES)
def test_elements_and_their_order(dtype: str, axis: int) -> None:
    x = numbers(dtype, (5, 19))
    agree(lambda x: lax.sort(x, dimension=axis), x)
    agree(lambda x: xarr.argsort(x, axis=axis), x)


@pytest.mark.parametrize("size", [1, 2, 3, 8, 17, 64])
def test_sizes(size: int) -> None:
    agree(lambda x: lax.sort(x), numbers("float64", (size,)))
    agree(lambda x: xarr.sort(x[:, None], axis=0), numbers("float64", (size,)))


def test_several_keys_and_what_goes_along() -> None:
    arrays = [numbers(dtype, (3, 20), seed) for seed, dtype in enumerate(("int8", "float64", "int64"))]
    agree(lambda *a: lax.sort(a, num_keys=2), *arrays)
    agree(lambda *a: lax.sort(a, num_keys=1), *arrays)


def test_orders_of_the_user() -> None:
    agree(lambda x: lax.sort_with(x, lambda a, b: abs(a) > abs(b)), numbers("int64", (30,)))


def test_what_a_library_sorts() -> None:
    """Long rows, many of them, and by a comparison that is no order where there are NaNs."""
    agree(lambda x: lax.sort(x), numbers("float64", (801,)), is_library=True)
    agree(lambda x: lax.sort(x), numbers("float64", (17, 64)), is_library=True)
    agree(lambda x: lax.sort_with(x, lax.lt), np.arange(9.0)[::-1].copy(), is_library=True)


def test_no_element() -> None:
    agree(lambda x: lax.sort(x), np.zeros((0, 3)))
    agree(lambda x: lax.sort(x), np.zeros((3, 0)))


def test_rows_of_a_loop() -> None:
    """In a loop in machine code, whose steps sort what the step before left."""

    def function(x: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            ordered = xarr.sort(x, axis=1)
            return xarr.where(ordered > 2, -ordered, ordered + xarr.sum(x[:, :3]) % 5)

        return lax.fori_loop(0, 7, step, x)

    agree(function, np.random.default_rng(3).integers(-9, 9, (4, 12)) * 1.0)


def test_the_loops() -> None:
    schedule = Schedule(Target(), BUILDERS)
    node = sort_of(lambda x: lax.sort(x), "f64[20]")
    kernel = program_of_operation(node, schedule)
    assert kernel is not None
    ranks, elements, _ = kernel.phases
    assert Runs.LANES in ranks.runs and Runs.LANES not in elements.runs
    assert len(list(ranks.walk())) == 2 and len(list(elements.walk())) == 1
    assert program_of_operation(sort_of(lambda x: lax.sort(x), "f64[65]"), schedule) is None
    assert program_of_operation(sort_of(lambda x: lax.sort_with(x, lax.lt), "f64[20]"), schedule) is None
