"""Loops over independent rows, one block of them after the other: the bits of each row alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.batch_blocks import in_blocks
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

Function = Callable[..., Any]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XARR_THREADS", "1")


def normal(*shape: int) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).normal(size=shape)


def eliminate(a: Any) -> Any:
    """Row operations on the last two dimensions."""

    def step(k: Any, a: Any) -> Any:
        row = a[:, k] / (a[:, k, k][:, None] + 3)
        return (a - a[:, :, k][:, :, None] * row[:, None, :]).at[:, k].set(row)

    return lax.fori_loop(0, a.shape[1], step, a)


def exchange(a: Any, table: Any, steps: int = 9) -> Any:
    """Of the first dimension, with sums along it, a table, a mask, and a number for all; columns are alone."""

    def step(k: Any, state: Any) -> Any:
        a, total, number, marks = state
        mean = xarr.sum(a * table[k], axis=0)
        a = xarr.where(marks, a[::-1] * 0.5, a.T.T + mean)
        number = number + xarr.sum(table[k])
        update = lax.dynamic_update_slice(a, (mean * number)[None], (lax.rem(k, 3), 0))
        padded = xarr.concatenate([update[1:], xarr.zeros((1, a.shape[1]))])
        return padded, total + mean, number, padded > xarr.arange(a.shape[0])[:, None] * 0.1

    zeros = xarr.zeros(a.shape[1])
    return lax.fori_loop(0, steps, step, (a, zeros, xarr.asarray(0.0), a > 0))


def goes_by_blocks(function: Function, *arguments: Any) -> bool:
    """Whether one loop of a function stands in another, which goes through blocks."""
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("fused")
    assert isinstance(graph, Graph)
    outer = [node.op.body for node in graph.nodes if isinstance(node.op, ops.While)]
    return any(ops.While in body.op_classes for body in outer)


@pytest.mark.parametrize("count", [4000, 4099, 4111], ids=["divisible", "prime", "another prime"])
def test_rows_are_what_they_are_alone(count: int) -> None:
    a = normal(count, 8, 9)
    assert goes_by_blocks(eliminate, a)
    got, some = np.asarray(xarr.jit(eliminate)(a)), [0, 1, 17, 1000, count - 3, count - 2, count - 1]
    assert not goes_by_blocks(eliminate, a[some])
    assert_same(got[some], np.asarray(xarr.jit(eliminate)(a[some])))


@pytest.mark.parametrize("count", [60_000, 60_013])
def test_columns_are_what_they_are_alone(count: int) -> None:
    a, table = normal(5, count), normal(9, 5, 1)
    assert goes_by_blocks(exchange, a, table)
    got = [np.asarray(each) for each in xarr.jit(exchange)(a, table)]
    some = [0, 5, 30_000, count - 2, count - 1]
    alone = [np.asarray(each) for each in xarr.jit(exchange)(a[:, some], table)]
    for whole, part in zip(got, alone, strict=True):
        assert_same(whole[..., some] if whole.shape else whole, part)


@pytest.mark.parametrize("special", [np.nan, np.inf, -0.0])
def test_special_values_stay_in_their_rows(special: float) -> None:
    a = normal(5000, 8, 8)
    expected = np.asarray(xarr.jit(eliminate)(a))
    a[7] = special
    got = np.asarray(xarr.jit(eliminate)(a))
    others = np.arange(5000) != 7
    assert_same(got[others], expected[others])


def test_arguments_stay_as_they_are() -> None:
    a = xarr.asarray(normal(4000, 8, 9)).evaluate()
    before = np.array(a)
    xarr.block_until_ready(xarr.jit(eliminate)(a))
    assert_same(np.asarray(a), before)


def roll_rows(a: Any) -> Any:
    return lax.fori_loop(0, 8, lambda k, a: xarr.roll(a, 1, axis=0) * a[:, k][:, None], a)


def subtract_sums(a: Any) -> Any:
    return lax.fori_loop(0, 8, lambda k, a: a - xarr.sum(a, axis=0) * xarr.sum(a, axis=1)[:, None], a)


def halve_until_small(a: Any) -> Any:
    def step(a: Any) -> Any:
        return a * 0.5 - xarr.sum(a, axis=1)[:, None] * 0.001

    return lax.while_loop(lambda a: xarr.max(xarr.abs(a)) > 1.0, step, a)


def few_steps(a: Any) -> Any:
    return lax.fori_loop(0, 2, lambda k, a: a - xarr.sum(a, axis=1)[:, None], a)


def one_column_a_step(a: Any) -> Any:
    def step(k: Any, a: Any) -> Any:
        return a.at[:, k].set(a[:, k] * a[:, k - 1])

    return lax.fori_loop(1, 8, step, a)


@pytest.mark.parametrize(
    "function", [roll_rows, subtract_sums, halve_until_small, few_steps, one_column_a_step]
)
def test_others_are_left_as_they_are(function: Function) -> None:
    a = normal(300, 1000) if function is subtract_sums else normal(40_000, 8)
    assert not goes_by_blocks(function, a)


def test_small_loops_are_left_as_they_are() -> None:
    assert not goes_by_blocks(eliminate, normal(400, 8, 8))
    graph = xarr.jit(eliminate).lower("f64[400,8,8]").stage("decomposed")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.While)]
    assert in_blocks(node, node.operands, PROCESSOR, lambda node: node) is None


def test_many_threads_share_each_step_instead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XARR_THREADS", "64")
    assert not goes_by_blocks(eliminate, normal(4000, 8, 8))
