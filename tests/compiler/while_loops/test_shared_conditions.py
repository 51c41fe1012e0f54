"""Arrays that the condition and the body of a loop compute alike: carried by the loop, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.shared_conditions import share_conditions
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

PARENTS = np.array([0, 0, 1, 2, 3, 3, 5, 6, 2, 8])
CYCLE = np.array([0, 0, 1, 2, 3, 3, 5, 6, 10, 8])
NEGATIVE = PARENTS - 10


def jump(p: Any) -> Any:
    """The roots of trees."""
    return lax.while_loop(lambda p: (p[p] != p).any(), lambda p: p[p], p)


def jump_with_steps(p: Any) -> Any:
    """The roots, and what all steps saw."""

    def step(carry: Any) -> Any:
        p, seen = carry
        return p[p], seen + p[p].sum()

    return lax.while_loop(lambda carry: (carry[0][carry[0]] != carry[0]).any(), step, (p, np.int64(0)))


def jump_inside(p: Any) -> Any:
    return lax.fori_loop(0, 3, lambda i, p: jump((p + i) % 10), p)


def smooth(p: Any) -> Any:
    """Numbers that come nearer to one another."""

    def means(x: Any) -> Any:
        return 0.5 * x + 0.25 * (xarr.roll(x, 1) + xarr.roll(x, -1))

    return lax.while_loop(lambda x: abs(means(x) - x).max() > 0.5, means, p * 1.0)


def count_down(p: Any) -> Any:
    return lax.while_loop(lambda p: (p > 3).any(), lambda p: xarr.where(p > 3, p - 2, p), p % 10)


def double(p: Any) -> Any:
    return lax.while_loop(lambda p: p.sum() < 1000, lambda p: p * 2, p % 10 + 1)


def other_index(p: Any) -> Any:
    """A condition that fails where the body does not come to."""
    return lax.while_loop(lambda p: (p[p - 1 + 1] > 99).any(), lambda p: p[p], p)


def count_carried(function: Callable[[Any], Any], most_bytes: int = 2**20) -> int:
    """The number of values that the outermost loop carries more than before."""
    graph = xarr.jit(function).lower(xarr.asarray(PARENTS)).stage("decomposed")
    assert isinstance(graph, Graph)
    before, after = (
        [len(node.operands) for node in each.nodes if isinstance(node.op, ops.While)]
        for each in (graph, share_conditions(graph, most_bytes))
    )
    return after[0] - before[0]


CASES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "pointers": (jump, 1),
    "pointers and a sum": (jump_with_steps, 1),
    "a loop inside": (jump_inside, 0),
    "neighbours": (smooth, 0),
    "a mask": (count_down, 0),
    "nothing is shared": (double, 0),
    "another index": (other_index, 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_is_carried(name: str) -> None:
    function, count = CASES[name]
    assert count_carried(function) == count


def test_large_arrays_are_computed_twice() -> None:
    assert count_carried(jump, most_bytes=PARENTS.nbytes - 1) == 0


def values(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in xarr.tree.leaves(results)]


@pytest.mark.sampled
@pytest.mark.parametrize("fusion", ["auto", "compiled", "off"])
@pytest.mark.parametrize("p", [PARENTS, NEGATIVE], ids=["from the start", "from the end"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_reference(name: str, p: np.ndarray[Any, Any], fusion: str) -> None:
    function, _ = CASES[name]
    with xarr.use_backend("reference"):
        wanted = values(function(xarr.asarray(p)))
    with xarr.config(fusion=fusion):
        for got, other in zip(values(xarr.jit(function)(xarr.asarray(p))), wanted, strict=True):
            assert_same(got, other)


@pytest.mark.parametrize("name", ["pointers", "pointers and a sum", "another index"])
def test_an_index_out_of_bounds_is_an_error(name: str) -> None:
    function, _ = CASES[name]
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        xarr.block_until_ready(xarr.jit(function)(xarr.asarray(CYCLE)))
