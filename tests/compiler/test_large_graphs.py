"""What it takes to compile a graph grows as the graph does: four times the steps, four times the lines of Python."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.line_counts import count_lines
from xarr import lax
from xarr.compiler.plan.planner import plan
from xarr.compiler.plan.update_order import reads_before_updates
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

from xarr_numpy.compiled.cpython_abi import builtin

pytestmark = pytest.mark.usefixtures("fused")

#: Four times, and a little for what is not counted in steps.
MOST = 4.5
Program = tuple[Callable[..., Any], tuple[Any, ...]]


def is_linear(count: Callable[[int], int], steps: int) -> bool:
    """Whether four times the steps have no more than about four times the count."""
    count(steps // 2)  # what is made once
    few, many = count(steps), count(4 * steps)
    return many <= MOST * few


def count_compilation(make: Callable[[int], Program], steps: int) -> int:
    """The lines that the first call of a program of so many steps runs."""
    function, arguments = make(steps)
    return count_lines(lambda: xarr.jit(function)(*arguments))


def count_planning(make: Callable[[int], Program], steps: int) -> int:
    """The lines that the plan of a program of so many steps takes."""
    function, arguments = make(steps)
    graph = xarr.jit(function).lower(*arguments).stage("fused")
    assert isinstance(graph, Graph)
    return count_lines(lambda: plan(graph))


def count_ordering(steps: int) -> int:
    """The lines that the order of a body of so many updates takes."""
    function, (x,) = swaps(steps)
    graph = xarr.jit(function).lower(x, 1).stage("decomposed")
    assert isinstance(graph, Graph)
    return count_lines(lambda: reads_before_updates(graph))


def parameters(steps: int) -> Program:
    def add_up(arrays: Any) -> Any:
        total = arrays[0]
        for array in arrays[1:]:
            total = total + array
        return total

    return add_up, ([xarr.ones(8) for _ in range(steps)],)


def results(steps: int) -> Program:
    return lambda x: [x[k] * (k + 1.5) for k in range(steps)], (xarr.ones(steps),)


def borders(steps: int) -> Program:
    def spread(u: Any) -> Any:
        for _ in range(steps):
            u = u.at[1:-1].set(0.5 * (u[:-2] + u[2:]))
            u = u.at[0].set(u[1])
        return u

    return spread, (xarr.ones(64),)


def swaps(steps: int) -> Program:
    def swap(x: Any, i: Any, j: Any) -> Any:
        first, second = (lax.dynamic_slice(x, (k,), (1,)) for k in (i, j))
        return lax.dynamic_update_slice(lax.dynamic_update_slice(x, second, (i,)), first, (j,))

    def exchange(x: Any, i: Any) -> Any:
        for _ in range(steps):
            x = swap(x, i, 7 - i)
        return x

    return exchange, (xarr.ones(8),)


def conditions(steps: int) -> Program:
    def choose(x: Any) -> Any:
        for _ in range(steps):
            x = lax.cond(x[0] > 0.5, lambda y: y * 0.5, lambda y: y + 0.25, x)
        return x

    return choose, (xarr.ones(8),)


def reductions(steps: int) -> Program:
    def normalise(x: Any) -> Any:
        for _ in range(steps):
            x = x / xarr.broadcast_to(xarr.sum(x * x, axis=1, keepdims=True), x.shape)
        return x

    return normalise, (xarr.ones((8, 8)),)


@pytest.mark.parametrize("make", [parameters, results, borders, conditions, reductions])
def test_compilation_is_linear(make: Callable[[int], Program]) -> None:
    assert is_linear(partial(count_compilation, make), 12)


@pytest.mark.parametrize("make", [borders, conditions, reductions])
def test_planning_is_linear(make: Callable[[int], Program]) -> None:
    assert is_linear(partial(count_planning, make), 64)


def test_ordering_updates_is_linear() -> None:
    assert is_linear(count_ordering, 64)


def test_what_grows_faster_is_noticed() -> None:
    def pairs(steps: int) -> Program:
        return lambda x: [x[i] + x[j] for i in range(steps) for j in range(i)], (xarr.ones(steps),)

    assert not is_linear(partial(count_compilation, pairs), 6)


def test_functions_that_take_many_arrays_are_short() -> None:
    """Their length does not depend on how many there are."""
    one, many = (builtin.plan_entry_text("entry", count, count, 64).count("\n") for count in (1, 400))
    assert one == many


def test_a_program_of_many_arrays_computes_what_numpy_does() -> None:
    arrays = [np.random.default_rng(k).random(8) for k in range(builtin.MAX_ARRAYS + 1)]
    add_up, _ = parameters(1)
    np.testing.assert_array_equal(np.asarray(xarr.jit(add_up)(arrays)), add_up(arrays))
