"""Gathers that leave all rows but a few where they are: updates of these rows, with the same results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.while_loops.row_exchanges import exchange_rows, update_under_conditions
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

N = 6

#: Indices of rows, of positions and two numbers, and whether they are moves of rows.
INDICES: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "exchange": (lambda r, k, p: xarr.where(r == k, p, xarr.where(r == p, k, r)), True),
    "copy": (lambda r, k, p: xarr.where(r == k, p, r), True),
    "copy, compared the other way": (lambda r, k, p: xarr.where(k == r, p, r), True),
    "three": (
        lambda r, k, p: xarr.where(r == k, p, xarr.where(r == p, k + 1, xarr.where(r == k + 1, k, r))),
        True,
    ),
    "constant rows": (lambda r, k, p: xarr.where(r == 2, k, xarr.where(r == k, 2, r)), True),
    "all others": (lambda r, k, p: xarr.where(r != k, p, r), False),
    "many": (lambda r, k, p: xarr.where(r >= k, p, r), False),
    "reversed": (lambda r, k, p: xarr.where(r == k, p, N - 1 - r), False),
    "no rest": (lambda r, k, p: xarr.where(r == k, p, 0 * r), False),
}


def rows_of(name: str, dtype: str = "int64") -> Callable[..., Any]:
    index, _ = INDICES[name]

    def function(a: Any, k: Any, p: Any) -> Any:
        rows = index(xarr.arange(N, dtype=dtype), k.astype(dtype), p.astype(dtype))
        return lax.gather(
            a,
            rows[:, None],
            lax.GatherDimensionNumbers(
                offset_dims=tuple(range(1, a.ndim)), collapsed_slice_dims=(0,), start_index_map=(0,)
            ),
            (1, *a.shape[1:]),
        )

    return function


def is_exchanged(graph: Graph) -> bool:
    """Whether gathers of a graph become updates; one that has none stays the same graph."""
    result = exchange_rows(graph)
    has_updates = ops.DynamicUpdateSlice in result.op_classes
    assert has_updates == (result is not graph) == (ops.Gather not in result.op_classes)
    return has_updates


@pytest.mark.parametrize("name", INDICES)
def test_which_gathers_are_moves_of_rows(name: str) -> None:
    graph = xarr.lower(rows_of(name), "f64[6,3]", "s64[]", "s64[]").stage("decomposed")
    assert is_exchanged(graph) == INDICES[name][1]


def test_other_gathers_stay() -> None:
    def columns(a: Any, k: Any) -> Any:
        return a[:, xarr.where(xarr.arange(6) == k, 0, xarr.arange(6))]

    def fewer(a: Any, k: Any) -> Any:
        return a[xarr.where(xarr.arange(4) == k, 0, xarr.arange(4))]

    for function in (columns, fewer):
        graph = xarr.lower(function, "f64[6,6]", "s64[]").stage("decomposed")
        assert not is_exchanged(graph)


@pytest.mark.sampled
@pytest.mark.parametrize("name", INDICES)
@pytest.mark.parametrize("shape", [(N,), (N, 3), (N, 2, 2), (N, 0), (N, 1)])
def test_rows(name: str, shape: tuple[int, ...]) -> None:
    """Steps whose numbers lie in bounds and outside, equal and apart."""
    move = rows_of(name)

    def function(a: Any, numbers: Any) -> Any:
        def step(a: Any, pair: Any) -> Any:
            return move(a, pair[0], pair[1]), a.sum()

        return lax.scan(step, a, numbers)

    a = np.arange(float(np.prod(shape))).reshape(shape)
    ends = [-(2**63), -7, -6, -1, 0, 2, 3, 5, 6, 2**63 - 2]
    numbers = np.array([(k, p) for k in ends for p in ends])
    agree(function, a, numbers)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32"])
def test_narrow_numbers(dtype: str) -> None:
    move = rows_of("exchange", dtype)

    def function(a: Any, numbers: Any) -> Any:
        return lax.scan(lambda a, pair: (move(a, pair[0], pair[1]), a[0]), a, numbers)

    a = np.array([[0.0, np.nan], [-0.0, 1.0], [np.inf, 2.0], [3.0, -np.inf], [4.0, 5.0], [6.0, 7.0]])
    agree(function, a, np.array([(0, 5), (2, 2), (3, 1), (4, 0), (1, 200), (130, 3)]))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float16"])
@pytest.mark.parametrize("rows", [128, 256, 300, 2049])
def test_positions_up_to_the_last_number_of_their_type_and_beyond(dtype: str, rows: int) -> None:
    def function(a: Any, numbers: Any) -> Any:
        r, own = lax.iota("int64", rows), lax.iota(dtype, rows)

        def step(i: Any, a: Any) -> Any:
            k, p = numbers[i, 0], numbers[i, 1]
            near = r if dtype == "float16" else own
            index = xarr.where(
                own == k, p.astype(near.dtype), xarr.where(own == p, k.astype(near.dtype), near)
            )
            return xarr.take(a, index, mode="clip")

        return lax.fori_loop(0, numbers.shape[0], step, a)

    agree(function, np.arange(float(rows)), np.array([(0, 100), (1, 2), (127, 3), (1, 1)], dtype))


def agree(function: Callable[..., Any], *arguments: Any) -> None:
    operands = [xarr.asarray(each) for each in arguments]
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.jit(function)(*operands)]
    for got, expected in zip(xarr.jit(function)(*operands), wanted, strict=True):
        assert_same(np.asarray(got), expected)


def test_a_loop_that_exchanges_rows_carries_one_array() -> None:
    """The plan has updates, and no gather of the whole array."""

    def function(a: Any) -> Any:
        r = xarr.arange(N)

        def step(k: Any, a: Any) -> Any:
            p = xarr.argmax(xarr.where(r >= k, xarr.abs(a[:, k]), -1.0))
            return a[xarr.where(r == k, p, xarr.where(r == p, k, r))]

        return lax.fori_loop(0, N, step, a)

    a = np.random.default_rng(0).normal(size=(N, N))
    low = xarr.jit(function).lower(xarr.asarray(a))
    assert "dynamic_update_slice" in str(low.stage("plan")) and "gather" not in str(low.stage("plan"))
    wanted = a.copy()
    for k in range(N):
        p = k + int(np.argmax(np.abs(wanted[k:, k])))
        wanted[[k, p]] = wanted[[p, k]]
    assert_same(np.asarray(xarr.jit(function)(xarr.asarray(a))), wanted)


#: Arrays that are changed if something holds, and whether they become updates alone.
CHOICES: dict[str, tuple[Callable[[Any, Any, Any], Any], bool]] = {
    "an element": (lambda c, a, i: xarr.where(c, a.at[i, 1].set(7), a), True),
    "otherwise": (lambda c, a, i: xarr.where(c, a, a.at[i].add(3)), True),
    "rows one after the other": (lambda c, a, i: xarr.where(c, a.at[i].set(1).at[0].set(a[i]), a), True),
    "of another array": (lambda c, a, i: xarr.where(c, (a * 2).at[i].set(0), a * 2), True),
    "several rows": (lambda c, a, i: xarr.where(c, a.at[xarr.stack([i, i, 0 * i])].set(a[1:4]), a), True),
    "unless, several": (lambda c, a, i: xarr.where(c, a, a.at[xarr.stack([i, 0 * i]), 1].add(5)), True),
    "of unsigned numbers": (
        lambda c, a, i: xarr.where(c, a.at[xarr.stack([i, 0 * i]).astype("uint8")].set(3), a),
        False,
    ),
    "of what is not chosen": (lambda c, a, i: xarr.where(c, a.at[i].set(0), a * 2), False),
    "used elsewhere": (lambda c, a, i: (lambda b: xarr.where(c, b, a) + b)(a.at[i].set(9)), False),
    "element by element": (lambda c, a, i: xarr.where(a > 2, a.at[i].set(0), a), False),
}


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.parametrize("dtype", ["float64", "int32", "bool"])
def test_parts_are_chosen_where_arrays_with_parts_were(name: str, dtype: str) -> None:
    choose, becomes_updates = CHOICES[name]
    a = (np.arange(N * 3).reshape(N, 3) % 5).astype(dtype)

    def function(a: Any, flags: Any) -> Any:
        def step(i: Any, a: Any) -> Any:
            return choose(flags[i], a, (i * 5) % N).astype(dtype)

        return lax.fori_loop(0, 4, step, a)

    flags = np.array([True, False, True, False])
    with xarr.config(fusion="off"):
        wanted = function(xarr.asarray(a), xarr.asarray(flags))
    assert_same(xarr.jit(function)(a, flags), wanted)
    if dtype == "float64":
        graph = xarr.lower(choose, "pred[]", f"f64[{N},3]", "s64[]").stage("decomposed")
        assert isinstance(graph, Graph)
        after = update_under_conditions(graph)
        after.verify()
        assert (after is not graph) == becomes_updates
        if becomes_updates:
            wide = [each for each in after.nodes if isinstance(each.op, ops.Select) and each.shape == (N, 3)]
            assert not wide
