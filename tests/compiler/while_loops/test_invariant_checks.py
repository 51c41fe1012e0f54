"""Checks in front of loops: those that no step changes, with the errors and the order of those inside."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph, Node

LEFT = np.array([0, 2, -1, 3, 1])
RIGHT = np.array([1, 0, 4, -2, 2])


def spread(start, left, right, count):
    """The least neighbour, `count` times."""

    def step(k, x):
        return x.at[left].min(x[right])

    return lax.fori_loop(0, count, step, start)


def lowest(start, left, right):
    """As `spread`, until nothing changes."""

    def step(state):
        x, _ = state
        new = x.at[left].min(x[right])
        return new, (new != x).any()

    return lax.while_loop(lambda state: state[1], step, (start, xarr.asarray(True)))[0]


def checks_of(graph: Graph) -> list[Node]:
    return [node for node in graph.nodes if isinstance(node.op, ops.CustomCall)]


def loop_of(function, *types: str) -> tuple[list[Node], list[Node]]:
    """The checks around and in the one loop of a function."""
    graph = xarr.jit(function).lower(*types).stage("fused")
    (loop,) = (node.op for node in graph.nodes if isinstance(node.op, ops.While))
    return checks_of(graph), checks_of(loop.body)


TYPES = ("s64[5]", "s64[5]", "s64[5]")


@pytest.mark.parametrize("function", [lambda x, i, j: spread(x, i, j, 3), lowest])
def test_checks_are_made_once(function) -> None:
    around, inside = loop_of(function, *TYPES)
    assert (len(around), len(inside)) == (2, 0)


def test_checks_of_what_changes_stay() -> None:
    def function(x, i):
        return lax.fori_loop(0, 3, lambda k, state: (state[0].at[state[1]].add(1), state[1] + 1), (x, i))

    assert [len(each) for each in loop_of(function, "s64[5]", "s64[2]")] == [0, 1]


@pytest.mark.parametrize("count", [0, 1, 4])
def test_results(count: int) -> None:
    start = np.array([5, 3, 8, 1, 9])
    wanted = start.copy()
    for _ in range(count):
        new = wanted.copy()
        np.minimum.at(new, LEFT, wanted[RIGHT])
        wanted = new
    fixed = xarr.jit(lambda x, i, j: spread(x, i, j, count))(start, LEFT, RIGHT)
    counted = xarr.jit(spread)(start, LEFT, RIGHT, np.int64(count))
    for each in (fixed, counted):
        assert_same(np.asarray(each), wanted)


@pytest.mark.parametrize("bad", [5, -6])
@pytest.mark.parametrize("size", [5, 5000])
def test_errors_are_those_of_the_step(bad: int, size: int) -> None:
    left = np.resize(LEFT, size)
    left[size // 2] = bad
    start = np.arange(5)
    text = f"index {bad} is out of bounds for axis 0 with size 5"
    for count in (np.int64(1), np.int64(3)):
        with pytest.raises(IndexError, match=re.escape(text)):
            xarr.jit(spread)(start, left, np.resize(RIGHT, size), count).evaluate()


@pytest.mark.parametrize("size", [5, 5000])
def test_no_step_no_error(size: int) -> None:
    bad, start = np.full(size, 7), np.arange(5)
    assert_same(np.asarray(xarr.jit(spread)(start, bad, bad, np.int64(0))), start)
    with pytest.raises(IndexError, match="index 7 is out of bounds"):
        xarr.jit(spread)(start, bad, bad, np.int64(1)).evaluate()


def test_the_first_error_of_a_step_is_raised() -> None:
    """An index that changes is looked at before one that does not."""

    def function(x, moving, fixed):
        def step(k, state):
            x, moving = state
            x = x.at[moving].add(1)
            return x.at[fixed].add(x[moving]), moving + 1

        return lax.fori_loop(0, 3, step, (x, moving))[0]

    x, fixed = np.zeros(5, np.int64), np.array([9, 9])
    with pytest.raises(IndexError, match="index 8 is out of bounds"):
        xarr.jit(function)(x, np.array([8, 8]), fixed).evaluate()
    with pytest.raises(IndexError, match="index 9 is out of bounds"):
        xarr.jit(function)(x, np.array([3, 3]), fixed).evaluate()


def test_loops_in_loops() -> None:
    def function(x, i, j):
        return lax.fori_loop(0, 2, lambda k, x: spread(x + k, i, j, 3), x)

    start = np.array([5, 3, 8, 1, 9])
    wanted = start
    for k in range(2):
        wanted = np.asarray(spread(xarr.asarray(wanted + k), LEFT, RIGHT, 3))
    assert_same(np.asarray(xarr.jit(function)(start, LEFT, RIGHT)), wanted)
    graph = xarr.jit(function).lower(*TYPES).stage("fused")
    assert len(checks_of(graph)) == 2
    with pytest.raises(IndexError, match="index 5 is out of bounds"):
        xarr.jit(function)(start, LEFT + 2, RIGHT).evaluate()
