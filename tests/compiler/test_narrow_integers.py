"""Integers that loops carry in 32 bits, where they fit for certain: with the results of those of 64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.narrow_integers import narrow_carried_integers
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

N = 3000
RANDOM = np.random.default_rng(5)
SOURCES, TARGETS = RANDOM.integers(0, N, (2, N // 2))


def spread(s: Any, t: Any, dtype: str = "int64", first: int = 0, most: bool = False) -> Any:
    """Labels of the components of a graph, from `first` on."""

    def step(state: Any) -> Any:
        labels, _ = state
        if most:
            new = labels.at[s].max(labels[t]).at[t].max(labels[s])
        else:
            new = labels.at[s].min(labels[t]).at[t].min(labels[s])
        return new, (new != labels).any()

    labels = xarr.arange(N, dtype=dtype) + xarr.asarray(first, dtype=dtype)
    return lax.while_loop(lambda state: state[1], step, (labels, xarr.asarray(True)))[0]


def find_roots(s: Any, t: Any) -> Any:
    """As `spread`, by hooking roots, until no path has two steps: indices are what is carried."""

    def step(p: Any) -> Any:
        high, low = xarr.maximum(p[s], p[t]), xarr.minimum(p[s], p[t])
        p = p.at[high].min(low)
        return p[p]

    def goes_on(p: Any) -> Any:
        return ((p[p] != p) | (p[xarr.clip(s, 0, N - 1)][:1] < 0)).any() | (p[s] != p[t]).any()

    return lax.while_loop(goes_on, step, xarr.arange(N))


def choose(s: Any, t: Any) -> Any:
    """Updates that replace, choices, parts, and sums that are wide."""

    def step(k: Any, state: Any) -> Any:
        x, total = state
        x = x.at[s].set(xarr.where(x[t] > 7, xarr.minimum(x[s], 2000), -3))
        x = xarr.concatenate([x[1:], x[:1]])[::-1].reshape(2, -1).T.reshape(-1)
        x = lax.dynamic_update_slice(x, x[5:9], (k,))
        return x, total + (x * 3_000_000_000).sum()

    return lax.fori_loop(0, 9, step, (xarr.arange(N) - 100, xarr.asarray(0)))


def compute_updates(s: Any, t: Any) -> Any:
    """Updates that are computed with wide numbers, of elements and of parts, and fit."""

    def step(k: Any, x: Any) -> Any:
        x = x.at[s].set(xarr.clip(x[t] * 3_000_000_000 + k, 0, 999))
        return lax.dynamic_update_slice(x, (x[5:9] * 3_000_000_000) & 1023, (k,))

    return lax.fori_loop(0, 9, step, xarr.arange(N))


def widths(function: Callable[..., Any], *arguments: Any) -> list[np.dtype[Any]]:
    """The types of the arrays that the one loop of a function carries and changes."""
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("fused")
    assert isinstance(graph, Graph)
    (loop,) = [node.op for node in graph.nodes if isinstance(node.op, ops.While)]
    rows = zip(loop.body.parameters, loop.body.results, strict=True)
    return [old.dtype for old, new in rows if old is not new and old.tensor_type.size == N]


FUNCTIONS: dict[str, tuple[Callable[..., Any], bool]] = {
    "the least": (spread, True),
    "the greatest": (lambda s, t: spread(s, t, most=True), True),
    "unsigned": (lambda s, t: spread(s, t, "uint64"), True),
    "negative": (lambda s, t: spread(s, t, first=-1500), True),
    "up to the end": (lambda s, t: spread(s, t, first=2**31 - N), True),
    "beyond the end": (lambda s, t: spread(s, t, first=2**31 - N + 1), False),
    "from the end": (lambda s, t: spread(s, t, first=-(2**31)), True),
    "below the end": (lambda s, t: spread(s, t, first=-(2**31) - 1), False),
    "narrow already": (lambda s, t: spread(s, t, "int16"), False),
    "indices": (find_roots, True),
    "other operations": (choose, True),
    "computed updates": (compute_updates, True),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_results(name: str) -> None:
    function, is_narrow = FUNCTIONS[name]
    assert (np.int32 in widths(function, SOURCES, TARGETS)) is is_narrow
    with xarr.config(fusion="off"):
        wanted = xarr.jit(function)(SOURCES, TARGETS)
    got = xarr.jit(function)(SOURCES, TARGETS)
    pairs = zip(got, wanted, strict=True) if isinstance(got, tuple) else [(got, wanted)]
    for one, other in pairs:
        assert_same(np.asarray(one), np.asarray(other))


def test_steps_that_compute_updates_leave_the_array_narrow() -> None:
    graph = xarr.jit(compute_updates).lower(SOURCES, TARGETS).stage("decomposed")
    assert isinstance(graph, Graph)
    (loop,) = [
        node.op for node in narrow_carried_integers(graph, PROCESSOR).nodes if isinstance(node.op, ops.While)
    ]
    converted = [node.tensor_type.size for node in loop.body.nodes if isinstance(node.op, ops.Convert)]
    assert converted and N not in converted


def test_what_may_grow_is_carried_as_it_is() -> None:
    def count(s: Any, t: Any) -> Any:
        return lax.fori_loop(0, 9, lambda k, x: x.at[s].add(x[t]), xarr.arange(N))

    assert widths(count, SOURCES, TARGETS) == [np.dtype(np.int64)]


def test_results_may_be_what_a_loop_began_with() -> None:
    def no_step(s: Any, t: Any, steps: Any) -> Any:
        return lax.fori_loop(0, steps, lambda k, x: x.at[s].min(x[t]), xarr.arange(N)), s, t

    function = xarr.jit(no_step)
    assert np.int32 in widths(no_step, SOURCES, TARGETS, 3)
    for each, wanted in zip(function(SOURCES, TARGETS, 0), (np.arange(N), SOURCES, TARGETS), strict=True):
        assert_same(np.asarray(each), wanted)


def test_wrong_indices_are_errors_of_the_loop() -> None:
    with pytest.raises(xarr.errors.XarrError, match="3000"):
        xarr.block_until_ready(xarr.jit(spread)(SOURCES, np.where(TARGETS[3] == TARGETS, N, TARGETS)))


def test_other_machines_carry_them_as_they_are() -> None:
    graph = xarr.jit(spread).lower(SOURCES, TARGETS).stage("decomposed")
    assert isinstance(graph, Graph)
    assert narrow_carried_integers(graph, PROCESSOR.replace(min_narrow_bytes=0)) is graph
