"""Ranges of integers in graphs with loops, branches and calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.communication.process_groups import Mesh
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import Range, RangeOf
from xarr.ir.types import TensorType

X = np.arange(9)
K = np.int64(3)


def ranges_of(graph: Graph, op: type[Any]) -> set[Range | None]:
    """The ranges of the results of an operation, wherever it is computed."""
    ranges: set[Range | None] = set()

    def note(node: Node, range_of: RangeOf) -> None:
        if type(node.op) is op:
            ranges.add(range_of(node))

    GraphRanges(note).go_through(graph)
    return ranges


def ranges_in(function: Callable[..., Any], *arguments: Any, op: type[Any] = ops.Abs) -> set[Range | None]:
    """The ranges of what `abs` is asked for, which is not looked through here: of `op` in a function."""
    graph = xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("simplified")
    assert isinstance(graph, Graph)
    return ranges_of(graph, op)


def sum_of(count: int, term: Callable[[Any, Any], Any], first: Any = 0) -> Callable[[Any], Any]:
    return lambda x: lax.fori_loop(first, count, lambda i, c: c + x[lax.abs(term(i, c)) % 9], np.int64(0))


def test_what_is_left_behind_a_loop_lies_in_its_ranges() -> None:
    """Before each step a counter is less than the limit, behind the last one it is not."""
    graph = (
        xarr.jit(lambda: lax.while_loop(lambda k: k < 10, lambda k: k + 3, np.int64(0)))
        .lower()
        .stage("simplified")
    )
    assert isinstance(graph, Graph)
    (loop,) = [node.op for node in graph.nodes if isinstance(node.op, ops.While)]
    ranges = GraphRanges(lambda node, range_of: None)
    assert list(ranges.inside_loop(loop, [(0, 0)])) == [(0, 9)]
    assert list(ranges.around_loop(loop, [(0, 0)])) == [(0, 12)]


def test_a_counter_stays_below_its_end() -> None:
    assert ranges_in(sum_of(7, lambda i, c: i), X) == {(0, 6)}
    assert ranges_in(sum_of(7, lambda i, c: 2 * i - 3, 2), X) == {(1, 9)}


def test_a_counter_that_goes_down() -> None:
    def function(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] > 0, lambda c: (c[0] - 2, x[lax.abs(c[0])]), (8, x[0]))

    assert ranges_in(function, X) == {(1, 8)}


def test_a_carry_whose_end_moves_without_a_bound_is_not_known() -> None:
    def function(x: Any) -> Any:
        return lax.while_loop(lambda c: x[c] > 0, lambda c: lax.abs(c) + 3, np.int64(1))

    # It may wrap around, and then begin anywhere.
    assert ranges_in(function, X) == {None}


def test_tables_that_hold_numbers_of_themselves() -> None:
    def function(i: Any) -> Any:
        def step(p: Any) -> Any:
            return lax.abs(p)[lax.abs(p)].at[i].min(p[0])

        return lax.while_loop(lambda p: p[3] != 0, step, xarr.arange(9))

    assert ranges_in(function, np.arange(9)) == {(0, 8)}


def test_values_that_depend_on_one_another() -> None:
    def function(x: Any) -> Any:
        def step(c: Any) -> Any:
            a, b, i = c
            return lax.abs(b), a & 7, i + 1

        return lax.while_loop(lambda c: c[2] < 5, step, (x[0] & 3, np.int64(6), 0))

    assert ranges_in(function, X) == {(0, 6)}


def test_a_condition_of_several_terms() -> None:
    def function(x: Any, k: Any) -> Any:
        def holds(c: Any) -> Any:
            return (c[0] < 6) & (c[0] >= -2) & (x[0] > c[1])

        return lax.while_loop(holds, lambda c: (c[0] + k, lax.abs(c[0])), (0, np.int64(0)))

    assert ranges_in(function, X, K) == {(0, 5)}


def test_a_condition_says_nothing_of_what_is_left_behind_the_loop() -> None:
    def function(x: Any) -> Any:
        return lax.abs(lax.while_loop(lambda i: i < 6, lambda i: i + 5, np.int64(0)))

    assert ranges_in(function, X) == {(0, 10)}


def test_loops_of_no_steps_give_what_they_begin_with() -> None:
    def function(x: Any) -> Any:
        return lax.abs(lax.while_loop(lambda i: i < 6, lambda i: i + 1, np.int64(20)))

    ((low, high),) = filter(None, ranges_in(function, X))
    assert low <= 20 <= high


def test_loops_in_loops() -> None:
    def function(x: Any) -> Any:
        def inner(i: Any, j: Any) -> Any:
            return lax.fori_loop(0, 4, lambda k, c: lax.abs(i + k + 0 * c), j)

        return lax.fori_loop(0, 5, inner, np.int64(0))

    assert ranges_in(function, X) == {(0, 7)}


def test_branches_give_what_either_gives() -> None:
    def function(k: Any) -> Any:
        return lax.abs(lax.cond(k > 2, lambda: lax.full((2,), 5), lambda: lax.full((2,), -3)))

    assert ranges_in(function, K) == {(0, 5)}


@pytest.mark.parametrize(
    ("dtype", "step", "wanted"),
    [("int8", 100, None), ("uint8", 100, (0, 200)), ("int64", 100, (0, 200)), ("uint64", 2**63, None)],
)
def test_numbers_that_may_wrap_around_are_not_known(
    dtype: str, step: int, wanted: tuple[int, int] | None
) -> None:
    def function(x: Any) -> Any:
        one = xarr.asarray(np.array(step, dtype))
        flags = (x > 3).astype(dtype)
        return lax.max(flags * one + flags * one, lax.full_like(flags, 0))

    wanted = wanted or (0, int(np.iinfo(dtype).max))
    assert ranges_in(function, X, op=ops.Maximum) <= {wanted, None}


def test_a_graph_that_several_operations_run_is_noted_for_each() -> None:
    def function(x: Any) -> Any:
        step = xarr.jit(lambda k: lax.abs(k) + 1)
        return step(xarr.arange(4)) + step(xarr.arange(4) + 10)

    assert ranges_in(function, X) == {(0, 3), (10, 13)}


def test_a_graph_that_is_run_again_for_the_same_ranges_is_noted_once() -> None:
    k = parameter(TensorType((), np.dtype(np.int64)))
    inner = Graph((k,), [Node(ops.Abs(), (k,))])
    for _ in range(16):
        once = Node(ops.Call(inner), (k,))
        inner = Graph((k,), [Node(ops.Call(inner), (once,))])
    noted = []
    GraphRanges(lambda node, range_of: noted.append(node)).go_through(inner)
    assert len(noted) < 100


def test_what_other_operations_run_is_noted_without_ranges() -> None:
    k = parameter(TensorType((), np.dtype(np.int64)))
    size = Graph((k,), [Node(ops.Abs(), (k,))])
    parts = ops.ManualComputation(Mesh((("x", 1),)), ((),), ((),), ("x",), size, lambda op, _: op)
    called = Node(ops.Call(size), (constant(3, k.dtype),))
    for results in ([called, Node(parts, (k,))], [Node(parts, (k,)), called]):
        assert ranges_of(Graph((k,), results), ops.Abs) == {(3, 3), None}
