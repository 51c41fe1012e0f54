"""Reductions inside loops of which a part alone is wanted: the others are left out, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.wanted_parts import Positions, leave_out_unwanted
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

N = 24
#: Whole numbers, whose sums are exact, and what must not be lost, or come in from where nothing is wanted.
NUMBERS = np.random.default_rng(1).integers(-3, 4, (N, N)) * 1.0
SPECIAL = np.where(
    NUMBERS == 0, -0.0, np.where(NUMBERS == 3, np.inf, np.where(NUMBERS == -3, np.nan, NUMBERS))
)
K = xarr.arange(N)


def rows(condition: Callable[[Any, Any], Any], start: int = 0, stop: int = N) -> Callable[[Any], Any]:
    """A loop that writes to a column sums of rows where a condition holds."""

    def function(a: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            total = xarr.sum(x + a[i % N], axis=1)
            return x.at[:, 0].set(xarr.where(condition(K, i), total, 7.0))

        return lax.fori_loop(start, stop, step, a)

    return function


def with_element(offset: int) -> Callable[[Any], Any]:
    """A loop in which the wanted rows, and one more element, are used."""

    def function(a: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            column = a[:, i] - x @ x[i]
            pivot = lax.dynamic_index_in_dim(column, i + offset, 0, keepdims=False)
            return x.at[:, i].set(xarr.clip(xarr.where(i <= K, column - pivot, 0.0), -9, 9))

        return lax.fori_loop(0, N - 3, step, xarr.zeros_like(a))

    return function


def columns(a: Any) -> Any:
    """A loop with products of rows and a matrix, of which the columns behind the step's are wanted."""

    def step(i: Any, x: Any) -> Any:
        return x.at[i].set(xarr.clip(xarr.where(i < K, a[i] @ x, 1.0), -9, 9))

    return lax.fori_loop(0, N, step, a)


def from_the_end(a: Any) -> Any:
    def step(t: Any, x: Any) -> Any:
        i = N - 1 - t
        return x.at[i].set(xarr.clip(xarr.where(i >= K, x @ a[i], 1.0), -9, 9))

    return lax.fori_loop(0, N, step, a)


def used_elsewhere(a: Any) -> Any:
    def step(i: Any, x: Any) -> Any:
        total = xarr.sum(x, axis=1)
        return x.at[:, 0].set(xarr.where(i < K, total, xarr.max(total)))

    return lax.fori_loop(0, N, step, a)


#: Loops, and whether part of a reduction is left out.
CASES: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "behind": (rows(lambda k, i: k > i), True),
    "up to": (rows(lambda k, i: k <= i), True),
    "between": (rows(lambda k, i: (k > i - 2) & (k < i + 3)), True),
    "at": (rows(lambda k, i: k == i), True),
    "not behind, nor at the end": (rows(lambda k, i: ~((k > i) | (k == N - 1))), True),
    "shifted positions": (rows(lambda k, i: k + 2 > i), True),
    "no step": (rows(lambda k, i: k > i, stop=0), True),
    "beyond the end": (rows(lambda k, i: k > i, stop=N + 9), True),
    "in front of the start": (rows(lambda k, i: k > i, start=-9), True),
    "a number computed from negative steps": (rows(lambda k, i: k > i + 1, start=-9), False),
    "all but": (rows(lambda k, i: k != i), False),
    "outside": (rows(lambda k, i: (k < i) | (k > i + 2)), False),
    "the step's element": (with_element(0), True),
    "an element behind": (with_element(2), True),
    "an element in front": (with_element(-1), False),
    "columns": (columns, False),
    "from the end": (from_the_end, True),
    "used elsewhere": (used_elsewhere, False),
}


def leaves_out(function: Callable[[Any], Any]) -> bool:
    graph = xarr.jit(function).lower(xarr.asarray(NUMBERS)).stage("decomposed")
    assert isinstance(graph, Graph)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.While)]
    assert isinstance(node.op, ops.While)
    return leave_out_unwanted(node.op, node.operands, 16) is not node.op.body


@pytest.mark.parametrize("name", CASES)
def test_what_is_left_out(name: str) -> None:
    function, is_shorter = CASES[name]
    assert leaves_out(function) is is_shorter


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("array", [NUMBERS, SPECIAL], ids=["whole", "special"])
def test_same_results(name: str, array: np.ndarray[Any, Any]) -> None:
    function, _ = CASES[name]
    x = xarr.asarray(array)
    with xarr.config(fusion="off"), np.errstate(all="ignore"):
        wanted = np.asarray(function(x))
    assert_same(xarr.jit(function)(x), wanted)


def test_loops_run_where_rows_are_wanted() -> None:
    text = str(xarr.jit(CASES["behind"][0]).lower(xarr.asarray(NUMBERS)).stage("program"))
    assert "outside" in text or " <= i" in text


def test_positions_that_wrap_around_are_none() -> None:
    def function(a: Any, k: Any) -> Any:
        def step(_: Any, x: Any) -> Any:
            return xarr.where(lax.iota("int8", 200) < k, xarr.sum(a + x[0], axis=1), x)

        return lax.fori_loop(0, 3, step, xarr.ones(200))

    a, k = xarr.asarray(np.tile(NUMBERS[:20], (10, 1))), xarr.asarray(np.int8(20))
    with xarr.config(fusion="off"):
        wanted = np.asarray(function(a, k))
    assert_same(xarr.jit(function)(a, k), wanted)


def test_what_is_a_part_of_many_conditions_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def function(a: Any) -> Any:
        def step(i: Any, x: Any) -> Any:
            wanted, number, position = i <= K, i, K
            for row in a[:20]:
                wanted = (wanted & (x[0] > row)) | (wanted & (x[1] < row))
                number, position = number + number, position + (number - number)
            total = xarr.where(position < number, xarr.sum(x, axis=1), 0.0)
            return x.at[:, 0].set(xarr.where(wanted, total, 1.0))

        return lax.fori_loop(0, 3, step, a)

    looked = [0]
    for name in ("_where", "_position", "_find_number"):
        plain = getattr(Positions, name)

        def count(*arguments: Any, plain: Any = plain) -> Any:
            looked[0] += 1
            return plain(*arguments)

        monkeypatch.setattr(Positions, name, count)
    assert leaves_out(function)
    assert 0 < looked[0] < 2000
