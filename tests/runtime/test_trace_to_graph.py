"""Graphs of functions: their parameters, in order, what they capture, and arguments that outlive their function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import type_of
from xarr import lax
from xarr.backend import get
from xarr.base.typing import Array
from xarr.compiler.pipeline import make_program
from xarr.errors import InputError, TracedValueError
from xarr.ir import ops
from xarr.ir.graph import Graph, parameter
from xarr.runtime.handles import wrap
from xarr.runtime.materialisation import to_host
from xarr.runtime.trace_stack import innermost, is_tracing
from xarr.runtime.trace_to_graph import trace

X = np.arange(3.0)
F64 = type_of(X)


def run(graph: Graph, *arrays: Any) -> list[Any]:
    engine = get("reference")
    operands = [engine.from_host(np.asarray(array)) for array in arrays]
    return list(map(engine.to_host, make_program(graph, engine).program(*operands)))


def test_a_function_becomes_a_graph() -> None:
    inside: list[bool] = []

    def function(x: Array, y: Array) -> list[Array]:
        inside.append(is_tracing())
        return [lax.sub(x, y), x]

    graph, captured = trace(function, [F64, F64], name="difference")
    assert (inside, is_tracing(), captured, graph.name) == ([True], False, (), "difference")
    assert [each.type for each in graph.parameters] == [F64, F64]
    assert_same(run(graph, X, X + 2)[0], np.full(3, -2.0))
    assert graph.results[1] is graph.parameters[0]


def test_arrays_from_outside_are_the_last_parameters() -> None:
    outside = lax.add(lax.full((3,), 0.0, np.float64), X)
    other = lax.full((3,), 5.0, np.float64)
    graph, captured = trace(lambda x: [lax.add(lax.mul(x, outside), outside)], [F64])
    assert captured == (outside._node,) and captured[0].exposed
    assert len(graph.parameters) == 2
    assert_same(run(graph, X + 1, to_host(outside))[0], (X + 1) * X + X)
    # What is made of constants alone is computed inside.
    graph, captured = trace(lambda x: [lax.mul(x, other)], [F64])
    assert captured == ()
    assert_same(run(graph, X)[0], X * 5)


def test_an_array_that_is_returned_as_it_is_is_captured() -> None:
    outside = lax.add(lax.full((3,), 0.0, np.float64), X)
    graph, captured = trace(lambda x: [outside], [F64])
    assert captured == (outside._node,)
    assert graph.results == (graph.parameters[1],)


def test_nodes_of_the_graph_are_its_own() -> None:
    shown: list[Array] = []

    def function(x: Array) -> list[Array]:
        shown.append(lax.neg(x))
        return [shown[0]]

    graph, _ = trace(function, [F64])
    assert isinstance(graph.results[0].op, ops.Negate)
    assert graph.results[0] is not shown[0]._node


def test_more_parameters_follow_those_of_the_types() -> None:
    extra: list[Any] = []
    outside = lax.add(lax.full((3,), 0.0, np.float64), X)

    def function(x: Array) -> list[Array]:
        extra.append(parameter(F64))
        return [lax.add(lax.add(x, wrap(extra[0])), outside)]

    graph, captured = trace(function, [F64], extra=extra)
    assert captured == (outside._node,)
    assert graph.parameters[1:2] == (extra[0],)
    assert len(graph.parameters) == 3 and len(graph.results) == 1
    assert_same(run(graph, X, 2 * X, X)[0], 4 * X)


def test_effects_are_kept_only_where_they_are_allowed() -> None:
    def function(x: Array) -> list[Array]:
        xarr.debug.callback(print, x)
        return [x]

    graph, _ = trace(function, [F64], effects=True)
    assert [node.op.name for node in graph.ordered] == ["stablehlo.custom_call"]
    with pytest.raises(InputError, match="cannot have side effects"):
        trace(function, [F64])


def test_a_function_within_runs_where_that_around_it_does() -> None:
    device = get("numpy").device()
    owners: list[Any] = []

    def inner(x: Array) -> list[Array]:
        around = innermost()
        assert around is not None
        owners.append(around.device)
        return [x]

    def around(x: Array) -> list[Array]:
        trace(inner, [F64])
        return [x]

    for owner in (device, None):
        trace(around, [F64], owner=owner)
    trace(inner, [F64], device=device)
    trace(inner, [F64], device=device.uncommitted)
    assert owners == [device, None, device, None]


def test_an_argument_of_a_function_that_has_ended_is_refused() -> None:
    kept: list[Array] = []

    def keep(x: Array) -> list[Array]:
        kept.append(lax.neg(x))
        return [x]

    trace(keep, [F64])
    with pytest.raises(
        TracedValueError, match="later uses an argument tensor<3xf64> of a traced function that has ended"
    ):
        trace(lambda x: [lax.add(x, kept[0])], [F64], name="later")
    # That of a function around, which has not, is captured.
    inner: list[Any] = []

    def around(x: Array) -> list[Array]:
        inner.append(trace(lambda y: [lax.add(x, y)], [F64])[1])
        return [x]

    trace(around, [F64])
    ((captured,),) = inner
    assert captured.type == F64 and not captured.operands
