"""Checks of many indices, of which compiled programs look at the worst one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.passes.index_checks import check_worst_indices, drop_proven_checks
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")

COUNT, SIZE = 5000, 90


def pick(x: xarr.Array, i: xarr.Array) -> Any:
    """Elements that are picked, and counts of how often."""
    return x[i], xarr.zeros(x.shape[0], "int64").at[i].add(1)


def indices(dtype: str, *changed: tuple[int, int]) -> np.ndarray[Any, Any]:
    """Indices in bounds, negative ones too, but for those changed: (number, index)."""
    low = 0 if np.dtype(dtype).kind == "u" else -SIZE
    drawn = np.random.default_rng(7).integers(low, SIZE, COUNT).astype(dtype)
    for number, index in changed:
        drawn[number] = index
    return drawn


def checked_sizes(graph: Graph) -> list[int]:
    return [node.tensor_type.size for node in graph.nodes if checks_indices(node)]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("shape", [(COUNT,), (50, 100)])
def test_indices_are_counted_from_the_start(dtype: str, shape: tuple[int, ...]) -> None:
    i, x = indices(dtype).reshape(shape), np.arange(SIZE) * 1.5
    with xarr.config(fusion="compiled"):
        program = xarr.jit(pick)
        picked, counts = program(xarr.asarray(x), xarr.asarray(i))
        assert checked_sizes(program.lower(xarr.asarray(x), xarr.asarray(i)).stage("fused")) == [1]
    assert_same(picked, x[i])
    assert_same(counts, np.bincount((i.astype(np.int64) % SIZE).ravel(), minlength=SIZE))


@pytest.mark.parametrize("fusion", ["off", "compiled"])
@pytest.mark.parametrize(
    "changed", [[(17, SIZE)], [(4999, -SIZE - 1)], [(3, 100), (2, 120), (7, -91), (9, -100)], [(0, 2**62)]]
)
def test_the_error_names_the_index_that_it_names_without_loops(
    changed: list[tuple[int, int]], fusion: str
) -> None:
    worst = min(index for _, index in changed)
    worst = worst if worst < -SIZE else max(index for _, index in changed)
    message = f"^index {worst} is out of bounds for axis 0 with size {SIZE}"
    with xarr.config(fusion=fusion), pytest.raises(IndexError, match=message):
        xarr.jit(pick)(xarr.zeros(SIZE), xarr.asarray(indices("int64", *changed)))


def test_few_indices_and_types_that_do_not_hold_the_size_are_checked_as_they_are() -> None:
    for i, size in ((indices("int64")[:100], SIZE), (indices("uint8"), 300)):
        graph = xarr.lower(pick, xarr.zeros(size), xarr.asarray(i)).stage("decomposed")
        assert isinstance(graph, Graph)
        assert check_worst_indices(graph, PROCESSOR) is graph


def count_cells(x: xarr.Array, y: xarr.Array, weights: xarr.Array) -> xarr.Array:
    """A weighted histogram, whose indices are computed, checked and used along the way."""
    i, j = xarr.floor(x * 8).astype("int64"), xarr.floor(y * 5).astype("int64")
    return xarr.zeros((8, 5)).at[i, j].add(weights)


def groups(function: Any, *arrays: Any) -> int:
    graph = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("fused")
    return sum(type(node.op) is ops.Fusion for node in graph.nodes)


@pytest.mark.parametrize("shape", [(COUNT,), (50, 100), (1, COUNT), (4096,)])
def test_scatters_find_the_index_to_check_as_they_go_along(shape: tuple[int, ...]) -> None:
    generator = np.random.default_rng(5)
    x, y = generator.uniform(-1, 1, shape), generator.uniform(-1, 1, shape)
    weights = np.where(generator.random(shape) < 0.01, np.nan, generator.normal(size=shape))
    wanted = np.zeros((8, 5))
    np.add.at(wanted, (np.floor(x * 8).astype(int), np.floor(y * 5).astype(int)), weights)
    assert_same(xarr.jit(count_cells)(*map(xarr.asarray, (x, y, weights))), wanted)
    with xarr.config(fusion="compiled"):
        assert groups(count_cells, x, y, weights) == 1


@pytest.mark.parametrize("bad", [1.0, -1.01, 1e30, -np.inf, np.inf])
@pytest.mark.parametrize("which", [0, 1])
def test_what_is_out_of_bounds_is_an_error_after_the_scatter_too(bad: float, which: int) -> None:
    arrays = [np.random.default_rng(k).random(COUNT) for k in range(3)]
    arrays[which][4321] = bad
    with pytest.raises(IndexError, match=f"out of bounds for axis {which} with size {(8, 5)[which]}"):
        xarr.jit(count_cells)(*map(xarr.asarray, arrays))


def waits(function: Any, *arrays: Any) -> bool:
    """Whether a scatter's result waits for a check, and not its indices."""
    graph = xarr.jit(function).lower(*map(xarr.asarray, arrays)).stage("decomposed")
    assert isinstance(graph, Graph)
    return ops.OptimizationBarrier in check_worst_indices(graph, PROCESSOR).op_classes


def test_indices_that_others_see_wait_for_their_check() -> None:
    i = indices("int64")
    assert waits(lambda i: xarr.zeros(SIZE).at[i].add(1.0), i)
    assert not waits(pick, np.zeros(SIZE), i)


def test_errors_keep_their_order() -> None:
    """An index waits for its check if something between that and the scatter may fail."""

    def add_at(i: xarr.Array, k: xarr.Array, few: xarr.Array) -> xarr.Array:
        updates = xarr.ones(COUNT) * xarr.zeros(3)[few].sum()
        return xarr.zeros((SIZE, 7)).at[i, k].add(updates)

    i, few = indices("int64", (3, 100)), np.arange(3)
    k = i % 7
    with pytest.raises(IndexError, match="index 100 is out of bounds for axis 0"):
        xarr.jit(add_at)(*map(xarr.asarray, (i, k + 7, few + 5)))
    with pytest.raises(IndexError, match="index 13 is out of bounds for axis 1"):
        xarr.jit(add_at)(*map(xarr.asarray, (indices("int64"), k + 7, few + 5)))
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 3"):
        xarr.jit(add_at)(*map(xarr.asarray, (indices("int64"), k, few + 5)))


# --- checks that cannot fail --------------------------------------------------------------------------------


def checks_left(function: Callable[..., Any], *arguments: Any) -> int:
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("simplified")
    assert isinstance(graph, Graph)
    return sum(checks_indices(node) for each in drop_proven_checks(graph).walk() for node in each.nodes)


def find_roots(s: Any, t: Any) -> Any:
    """The least number of each component of a graph, by hooking roots and halving paths."""

    def step(c: Any) -> Any:
        p, _ = c
        high, low = xarr.maximum(p[s], p[t]), xarr.minimum(p[s], p[t])
        q = p.at[high].min(low)
        q = q[q]
        return q, (q != p).any()

    return lax.while_loop(lambda c: c[1], step, (xarr.arange(s.shape[0]), xarr.asarray(True)))[0]


def test_tables_that_hold_numbers_of_themselves_are_read_without_checks() -> None:
    s, t = np.random.default_rng(1).integers(0, 40, (2, 40))
    # Those of s and t, which are arguments.
    assert checks_left(find_roots, s, t) == 2
    labels = np.arange(40)
    for _ in range(40):
        np.minimum.at(labels, s, labels[t])
        np.minimum.at(labels, t, labels[s])
    assert_same(xarr.jit(find_roots)(s, t), labels)


@pytest.mark.parametrize("wrong", [40, -41, 2**62])
def test_those_that_may_fail_stay(wrong: int) -> None:
    s, t = np.random.default_rng(1).integers(0, 40, (2, 40))
    s[7] = wrong
    with pytest.raises(IndexError, match=str(wrong)):
        np.asarray(xarr.jit(find_roots)(s, t))


def test_a_table_that_a_step_may_fill_with_anything_is_checked() -> None:
    def function(s: Any, k: Any) -> Any:
        return lax.fori_loop(0, 3, lambda i, p: p[p].at[s].set(k), xarr.arange(8))

    assert checks_left(function, np.arange(3), np.int64(7)) == 2
    with pytest.raises(IndexError, match="8"):
        np.asarray(xarr.jit(function)(np.arange(3), np.int64(8)))
