"""Arrays that a loop fills: memory that holds nothing yet in place of what they begin with, and the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.filled_arrays import without_initial_values
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

N = 12
#: Whole numbers, whose sums are exact.
X = np.random.default_rng(5).integers(-4, 5, (N, 3)) * 1.0


def fill(
    start: int = 0,
    stop: int = N,
    axis: int = 0,
    offset: int = 0,
    step: int = 1,
    reads: bool = False,
    condition: bool = False,
) -> Callable[[Any], Any]:
    """A loop that writes rows, or columns, of an array of -7, or adds to them."""

    def function(x: Any) -> Any:
        def write(carry: Any) -> Any:
            i, table = carry
            row = xarr.full((N, 1) if axis else (1, N), i * 2.0) + x[0, 0]
            at = i if not offset else i + offset
            row = row + lax.dynamic_slice_in_dim(table, at, 1, axis) if reads else row
            return i + step, lax.dynamic_update_slice_in_dim(table, row, at, axis)

        def goes_on(carry: Any) -> Any:
            return (carry[0] < stop) & (carry[1][0, 0] < 99) if condition else carry[0] < stop

        return lax.while_loop(goes_on, write, (np.int64(start), xarr.full((N, N), -7.0)))[1]

    return function


def scans(x: Any) -> Any:
    return lax.scan(lambda total, row: (total + row, total * row), x[0], x)


def scans_backwards(x: Any) -> Any:
    return lax.scan(lambda total, row: (total + row, (total, row.sum())), x[0], x, reverse=True)


def scans_inside(x: Any) -> Any:
    def outer(row: Any, other: Any) -> Any:
        cells, table = lax.scan(lambda cell, each: (cell * 0.5 + each,) * 2, other[0], row)
        return table, cells

    return lax.scan(outer, x[0], x)


def empty_arrays(function: Callable[[Any], Any]) -> int:
    """The number of arrays that hold nothing when the outermost loop begins."""
    graph = xarr.jit(function).lower(xarr.asarray(X)).stage("decomposed")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.While)]
    assert isinstance(node.op, ops.While)
    operands = without_initial_values(node.op, node.operands)
    return sum(isinstance(operand.op, ops.Empty) for operand in operands)


CASES: dict[str, tuple[Callable[[Any], Any], int]] = {
    "a scan": (scans, 1),
    "backwards": (scans_backwards, 2),
    "a scan in a scan": (scans_inside, 1),
    "all rows": (fill(), 1),
    "all columns": (fill(axis=1), 1),
    "more steps than rows": (fill(stop=N + 4), 1),
    "not the last row": (fill(stop=N - 1), 0),
    "not the first row": (fill(start=1), 0),
    "negative steps": (fill(start=-2), 0),
    "no step": (fill(stop=0), 0),
    "every other row": (fill(step=2), 0),
    "one row later": (fill(offset=1), 0),
    "what is there is read": (fill(reads=True), 0),
    "it may end sooner": (fill(condition=True), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_what_holds_nothing(name: str) -> None:
    function, count = CASES[name]
    assert empty_arrays(function) == count


def values(results: Any) -> list[np.ndarray[Any, Any]]:
    return [np.asarray(each) for each in xarr.tree.leaves(results)]


@pytest.mark.parametrize("fusion", ["auto", "compiled", "off"])
@pytest.mark.parametrize("name", CASES)
def test_results_are_those_of_the_reference(name: str, fusion: str) -> None:
    function, _ = CASES[name]
    with xarr.use_backend("reference"):
        wanted = values(function(xarr.asarray(X)))
    with xarr.config(fusion=fusion):
        for got in (values(xarr.jit(function)(xarr.asarray(X))), values(function(xarr.asarray(X)))):
            for each, other in zip(got, wanted, strict=True):
                assert_same(each, other)
