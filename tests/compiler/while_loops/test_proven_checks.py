"""Checks of indices that cannot fail are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.while_loops.invariant_checks import drop_proven_checks
from xarr.ir.graph import Graph


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
