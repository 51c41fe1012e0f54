"""What groups declare of the integers that they read, so that their loops need no clamps and tests of indices."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.fuzz import generator, seeds
from tests.support.range_checker import broken_ranges, declared_ranges
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, rewritten

pytestmark = pytest.mark.usefixtures("fused")

N = 300


def fused_graph(function: Callable[..., Any], *arguments: Any) -> Graph:
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("fused")
    assert isinstance(graph, Graph)
    return graph


def label_components(s: Any, t: Any) -> Any:
    """The least number of each component of a graph."""

    def step(c: Any) -> Any:
        old, _ = c
        new = old.at[s].min(old[t]).at[t].min(old[s])
        return new, (new != old).any()

    return lax.while_loop(lambda c: c[1], step, (xarr.arange(s.shape[0]), xarr.asarray(True)))[0]


@pytest.fixture
def edges() -> tuple[Any, Any]:
    s, t = np.random.default_rng(5).integers(-N, N, (2, N))
    return s, t


def test_checked_indices_are_neither_clamped_nor_tested_in_a_loop(edges: tuple[Any, Any]) -> None:
    graph = fused_graph(label_components, *edges)
    assert set(declared_ranges(graph)) == {(0, N - 1)}
    assert broken_ranges(graph, *edges) == []
    text = str(xarr.jit(label_components).lower(*map(xarr.asarray, edges)).stage("program"))
    assert text.count("int64[300] of 0 … 299") == 4
    assert not re.search(r"[<>]=? 299|[<>]=? 300\b.*\n.*\? 299", text)


def test_a_wrong_range_is_found() -> None:
    x, i = np.arange(50.0), np.arange(40) % 9
    graph = fused_graph(lambda x, i: x.at[i].get(mode="clip") * 2.0, x, i)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Fusion):
            return None
        ranges = tuple((0, 7) if each.dtype.kind == "i" else None for each in operands)
        return node.rebuilt(operands, replace(node.op, ranges=ranges))

    assert declared_ranges(graph) == []
    assert broken_ranges(rewritten(graph, rule), x, i) == ["operand 1 of mul: 0 … 8, not (0, 7)"]


def test_equal_groups_declare_what_holds_for_all(edges: tuple[Any, Any]) -> None:
    def function(x: Any, i: Any) -> Any:
        few, many = lax.rem(i, 10), lax.rem(i, 100)
        return x.at[xarr.abs(few)].get(mode="clip") * 2.0, x.at[xarr.abs(many)].get(mode="clip") * 2.0

    x = np.arange(50.0)
    graph = fused_graph(function, x, edges[0])
    assert broken_ranges(graph, x, edges[0]) == []
    few, many = np.abs(np.fmod(edges[0], 10)), np.abs(np.fmod(edges[0], 100))
    assert_same(xarr.jit(function)(x, edges[0])[1], x[np.minimum(many, 49)] * 2)
    assert_same(xarr.jit(function)(x, edges[0])[0], x[few] * 2)


def test_what_is_not_known_is_clamped() -> None:
    def function(x: Any, i: Any) -> Any:
        return lax.fori_loop(0, 3, lambda k, c: c + x.at[i * k].get(mode="clip"), xarr.zeros(4, "int64"))

    i = np.array([2**62, -5, 1, 2])
    graph = fused_graph(function, np.arange(9), i)
    assert set(declared_ranges(graph)) == {(0, 2)}
    assert_same(xarr.jit(function)(np.arange(9), i), np.array([8, 4, 3, 6]))


def test_native_loops_clamp_no_counters() -> None:
    def function(x: Any) -> Any:
        return lax.scan(lambda c, e: (xarr.maximum(c + 1, e), c), np.int64(0), x)

    x = np.random.default_rng(3).integers(0, 99, 50)
    graph = fused_graph(function, x)
    assert (0, 0) in declared_ranges(graph)
    assert broken_ranges(graph, x) == []
    text = str(xarr.jit(function).lower(xarr.asarray(x)).stage("loops"))
    assert "native loop" in text
    assert ", 49)" not in text
    assert_same(xarr.jit(function)(x)[0], np.max(x + np.arange(49, -1, -1)))


@pytest.mark.parametrize("first", [-7, 3, 2**62])
def test_native_loops_clamp_what_may_lie_outside(first: int) -> None:
    def function(x: Any, k: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] + 1, c[1] + lax.dynamic_index_in_dim(x, c[0], keepdims=False)

        return lax.while_loop(lambda c: c[0] < k, step, (k - 9, np.int64(0)))[1]

    x, k = np.arange(5), np.int64(first)
    wanted = sum(x[min(max(j + 5 if j < 0 else j, 0), 4)] for j in range(first - 9, first))
    assert_same(xarr.jit(function)(x, k), np.int64(wanted))


@pytest.mark.parametrize("dtype", ["int64", "int8", "float32", "bool", "complex128"])
def test_one_element_for_all_lanes_need_not_exist(dtype: str) -> None:
    x, y = (np.arange(n).astype(dtype) for n in (70, 3))

    def function(x: Any, y: Any, k: Any) -> Any:
        one = lax.dynamic_slice(y, (k,), (1,))
        return xarr.concatenate([one, x, y[2:], one])

    assert_same(xarr.jit(function)(x, y, 1), np.concatenate([y[1:2], x, y[2:], y[1:2]]))


DTYPES = ["int64", "int32", "int8", "uint8", "uint64", "uint32"]


def _index(random: Random, v: Any, size: int) -> Any:
    """An index that is made of a value."""
    limits = np.iinfo(v.dtype)
    number = random.choice([0, 1, 3, size - 1, size, -1, int(limits.max), int(limits.min)])
    number = min(max(number, int(limits.min)), int(limits.max))
    match random.randrange(8):
        case 0:
            v = xarr.clip(v, 0, min(size - 1, int(limits.max)))
        case 1:
            v = v % min(size, int(limits.max))
        case 2:
            v = v & number
        case 3:
            v = xarr.where(v < number, v, number)
        case 4:
            v = v + number
        case 5:
            v = v - number
        case 6:
            v = xarr.abs(v)
        case _:
            v = xarr.where((v >= 0) & (v < size), v, 0)
    return v.astype(random.choice([v.dtype, "int64", "uint8"]))


def _step(random: Random, x: Any, k: Any, t: Any, i: Any) -> tuple[Any, Any]:
    size = x.shape[0]
    for _ in range(random.randint(1, 3)):
        at, read = _index(random, k, size), _index(random, random.choice([k, x]), size)
        mode = random.choice(["clip", "fill", "wrap"])
        kind = random.randrange(5)
        if kind == 0:
            x = x.at[at].min(t.at[at].get(mode=mode).astype(x.dtype), mode="drop")
        elif kind == 1:
            k = k.at[_index(random, k, k.shape[0])].get(mode=mode)
        elif kind == 2:
            x = xarr.minimum(x, t.at[read[:1]].get(mode=mode).astype(x.dtype))
        elif kind == 3:
            x = x.at[_index(random, i, size)].set(i.astype(x.dtype), mode=random.choice(["clip", "drop"]))
        else:
            k = at.astype(k.dtype)
    return x, k


@pytest.mark.parametrize("seed", seeds(2))
def test_random_loops_read_within_the_ranges_that_they_declare(seed: int) -> None:
    random = generator("declared ranges", seed)
    for _ in range(6):
        size, inner = random.choice([1, 3, 8, 40]), random.randrange(2**32)
        count, first = random.choice([0, 1, 3]), random.choice([0, -2, 1])

        def function(
            x: Any, k: Any, t: Any, inner: int = inner, count: int = count, first: int = first
        ) -> Any:
            draws = Random(inner)
            return lax.fori_loop(
                first, first + count, lambda i, c: _step(Random(draws.random()), *c, t, i), (x, k)
            )

        host = np.random.default_rng(inner)
        x, k = (host.integers(0, size, n).astype(random.choice(DTYPES)) for n in (size, 5))
        t = host.integers(-(2**63), 2**63 - 1, size)
        graph = fused_graph(function, x, k, t)
        assert broken_ranges(graph, x, k, t) == []
        with xarr.config(fusion="off"):
            wanted = [np.asarray(each) for each in xarr.jit(function)(x, k, t)]
        for mine, theirs in zip(xarr.jit(function)(x, k, t), wanted, strict=True):
            assert_same(mine, theirs)
