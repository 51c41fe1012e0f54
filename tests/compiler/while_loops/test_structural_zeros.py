"""Products inside loops of columns that are still zero: shorter sums, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.structural_zeros import leave_out_zeros
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

N = 24
#: Whole numbers, whose sums are exact, and what zeros must not lose.
NUMBERS = np.random.default_rng(1).integers(-3, 4, (N, N)) * 1.0
SPECIAL = np.where(NUMBERS == 0, -0.0, np.where(NUMBERS == 3, np.inf, NUMBERS))


def fill(
    start: int = 0, stop: int = N, first: float = 0.0, offset: int = 0, other: bool = False
) -> Callable[[Any], Any]:
    """A loop that fills columns by products of those before, or of the argument's rows if `other`."""

    def function(a: Any) -> Any:
        def step(j: Any, factor: Any) -> Any:
            row = lax.dynamic_index_in_dim(a if other else factor, lax.rem(j, N), 0, keepdims=False)
            column = lax.dynamic_index_in_dim(a, j, 1, keepdims=False) - lax.dot(factor, row)
            column = lax.clamp(-9.0, column, 9.0)
            at = j if offset == 0 else lax.add(j, offset)
            return lax.dynamic_update_slice_in_dim(factor, lax.reshape(column, (N, 1)), at, 1)

        return lax.fori_loop(start, stop, step, lax.full((N, N), first, "float64"))

    return function


def shortens(function: Callable[[Any], Any]) -> bool:
    """Whether the product becomes a sum with a condition."""
    graph = xarr.jit(function).lower(xarr.asarray(NUMBERS)).stage("decomposed")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.While)]
    assert isinstance(node.op, ops.While)
    body = leave_out_zeros(node.op, node.operands, 16)
    assert (body is node.op.body) is (ops.DotGeneral in body.op_classes)
    return body is not node.op.body


CASES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "all columns": (fill(), True),
    "from the third on": (fill(start=2), True),
    "beyond the end": (fill(stop=N + 3), True),
    "no step": (fill(stop=0), True),
    "negative steps": (fill(start=-2), False),
    "negative zeros": (fill(first=-0.0), False),
    "ones": (fill(first=1.0), False),
    "the column behind": (fill(offset=1), False),
    "what may be infinite": (fill(other=True), False),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("array", [NUMBERS, SPECIAL], ids=["whole", "special"])
def test_sums_without_zeros_are_the_same(name: str, array: np.ndarray[Any, Any]) -> None:
    function, is_shorter = CASES[name]
    assert shortens(function) is is_shorter
    with xarr.config(fusion="off"):
        wanted = np.asarray(function(xarr.asarray(array)))
    assert_same(xarr.jit(function)(xarr.asarray(array)), wanted)


def test_a_condition_is_a_bound_of_the_loop() -> None:
    text = str(xarr.jit(fill()).lower(xarr.asarray(NUMBERS)).stage("loops"))
    assert "combine" in text and " by fma(" in text
    assert "? in" not in text.partition(" by fma(")[0].rpartition("vector")[2]


@pytest.mark.implicit
@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8"])
def test_zeros_behind_a_carried_number_of_any_type(dtype: str) -> None:
    def function(a: Any, first: Any) -> Any:
        position = xarr.arange(N, dtype=dtype)

        def step(j: Any, carried: Any) -> Any:
            k, factor, total = carried
            before = xarr.where(position < k, a, 0.0)
            total = total + before @ xarr.where(position < k, a[j], 0.0)
            return (
                (k + 1).astype(dtype),
                factor.at[:, j].set(xarr.clip(factor @ factor[j] + a[j], -9, 9)),
                total,
            )

        return lax.fori_loop(0, N, step, (first, xarr.zeros((N, N)), xarr.zeros(N)))[2]

    x, first = xarr.asarray(NUMBERS), xarr.asarray(np.array(3, dtype))
    with xarr.config(fusion="off"):
        wanted = np.asarray(function(x, first))
    assert_same(xarr.jit(function)(x, first), wanted)
