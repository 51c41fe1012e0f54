"""Checks of many indices, of which compiled programs look at the worst one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.passes.index_checks import check_worst_indices
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
