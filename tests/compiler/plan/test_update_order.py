"""Reads of an array come before its update where they can."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import xarr
from xarr import lax
from xarr.compiler.passes.checks import checks_indices
from xarr.compiler.plan.overwriting import is_update
from xarr.compiler.plan.update_order import reads_before_updates
from xarr.ir import ops
from xarr.ir.graph import Graph, Node


def graph_of(function: Callable[..., Any], *types: str) -> Graph:
    """The graph of a function, as it stands before groups are made."""
    graph = xarr.jit(function).lower(*types).stage("decomposed")
    assert isinstance(graph, Graph)
    return graph


def late_reads(order: list[Node] | tuple[Node, ...]) -> int:
    """Count the slices that stand behind the first update."""
    first = next(k for k, node in enumerate(order) if is_update(node))
    return sum(isinstance(node.op, ops.DynamicSlice) for node in order[first:])


def swap(x: Any, i: Any, j: Any) -> Any:
    """Exchange two elements; the second read is behind the first update."""
    first, second = (lax.dynamic_slice(x, (k,), (1,)) for k in (i, j))
    return lax.dynamic_update_slice(lax.dynamic_update_slice(x, second, (i,)), first, (j,))


def reread(x: Any, i: Any, j: Any) -> Any:
    """Read what the update wrote."""
    new = lax.dynamic_update_slice(x, lax.dynamic_slice(x, (i,), (1,)), (j,))
    return lax.dynamic_update_slice(new, lax.dynamic_slice(new, (i,), (1,)), (i,))


def test_a_read_moves_before_an_update() -> None:
    graph = graph_of(swap, "f64[9]", "s64[]", "s64[]")
    assert late_reads(graph.nodes)
    order = reads_before_updates(graph)
    assert not late_reads(tuple(order))
    assert sorted(map(id, order)) == sorted(map(id, graph.nodes))
    seen = set(graph.parameters)
    for node in order:
        assert seen.issuperset(node.operands)
        seen.add(node)


def test_what_needs_an_update_stays_behind_it() -> None:
    graph = graph_of(reread, "f64[9]", "s64[]", "s64[]")
    assert late_reads(tuple(reads_before_updates(graph))) == late_reads(graph.nodes) == 1


def read_at_checks(x: Any, i: Any, j: Any) -> Any:
    """The old array is read at an index that is checked behind the update, as is one at which the new one is read."""
    new = lax.dynamic_update_slice(x, lax.dynamic_slice(x, (0,), (1,)), (i,))
    return new, new[j] - x[i + j]


def test_checks_of_indices_move_in_their_order() -> None:
    graph = graph_of(read_at_checks, "f64[9]", "s64[]", "s64[]")
    order = reads_before_updates(graph)
    calls = [node for node in order if checks_indices(node)]
    assert len(calls) == 2 and calls == [node for node in graph.nodes if checks_indices(node)]
    (update,) = (node for node in order if is_update(node))
    (read,) = (
        each for each in order if each.operands[:1] == graph.parameters[:1] and calls[1] in each.operands
    )
    assert order.index(read) < order.index(update) < graph.nodes.index(read)


def test_what_is_seen_keeps_checks_where_they_are() -> None:
    """A function of the user runs before a check that raises after it."""

    def print_between(x: Any, i: Any, j: Any) -> Any:
        new = lax.dynamic_update_slice(x, lax.dynamic_slice(x, (0,), (1,)), (i,))
        xarr.debug.print("{}", new[0])
        return new, x[j]

    graph = graph_of(print_between, "f64[9]", "s64[]", "s64[]")
    assert list(reads_before_updates(graph)) == list(graph.nodes)


@pytest.mark.parametrize("size, moves", [(4, True), (5, False)])
def test_what_is_kept_takes_no_more_than_the_array(size: int, moves: bool) -> None:
    def both(x: Any, i: Any) -> Any:
        new = lax.dynamic_update_slice(x, x[:1], (i,))
        return new, *(lax.dynamic_slice(x, (k,), (size,)) for k in range(2))

    assert late_reads(tuple(reads_before_updates(graph_of(both, "f64[9]", "s64[]")))) == (0 if moves else 2)


def test_a_graph_without_updates_is_as_it_was() -> None:
    graph = graph_of(lambda x: xarr.sum(x * 2), "f64[9]")
    assert reads_before_updates(graph) is graph.nodes


def test_reads_move_in_front_of_their_own_update() -> None:
    """Each of several updates gets the reads of its array in front of it, in their order, and nothing else moves."""

    def swaps(x: Any, y: Any, i: Any, j: Any) -> Any:
        for _ in range(3):
            x, y = swap(y, i, j), swap(x, j, i)
        return x, y

    graph = graph_of(swaps, "f64[9]", "f64[9]", "s64[]", "s64[]")
    order = reads_before_updates(graph)
    assert sorted(map(id, order)) == sorted(map(id, graph.nodes))
    seen = set(graph.parameters)
    updated: set[Node] = set()
    for node in order:
        assert seen.issuperset(node.operands)
        seen.add(node)
        if isinstance(node.op, ops.DynamicSlice):
            assert node.operands[0] not in updated
        if is_update(node):
            updated.add(node.operands[0])
    assert len(updated) == 12
