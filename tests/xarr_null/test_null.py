"""The null backend verifies and prints every graph, and runs none."""

from __future__ import annotations

import numpy as np
import pytest

from tests.programs import graph, scalar
from xarr import lax
from xarr.backend import available, get, use_backend
from xarr.compiler.pipeline import lower, make_program
from xarr.dtypes import FLOAT
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, GraphError, Node, parameter
from xarr.ir.op import operation
from xarr.ir.types import TensorType
from xarr_reference.interpreter import TABLE

VECTOR = TensorType((3,), np.dtype(np.float32))


@operation
class Invented(ops.Unary):
    """An op that no other backend knows."""

    name = "test.invented"
    lax_name = "invented"
    accepts = FLOAT


def test_it_takes_every_operation_whole() -> None:
    assert all(get("null").supports(op) for op in (*TABLE, Invented))
    x = parameter(VECTOR)
    program = make_program(Graph([x], [Node(Invented(), (x,))]), get("null")).program
    assert "%0 = test.invented %arg0 : tensor<3xf32>" in program.text


def test_the_text_is_the_stablehlo_of_what_would_run() -> None:
    traced = graph(lambda x: [lax.add(lax.exp(x), 1)], VECTOR)
    assert make_program(traced, get("null")).program.text == lower(traced, get("null")).to_text()
    assert "stablehlo.exponential" in str(make_program(traced, get("null")).program)


def test_a_program_refuses_to_run() -> None:
    program = get("null").compile(graph(lambda x: [lax.neg(x)], scalar(np.float32)))
    with pytest.raises(
        BackendError, match=r"backend 'null' compiles and never runs.*use_backend\(\"numpy\"\)"
    ):
        program(np.float32(1))


def test_an_array_on_it_has_a_type_and_no_value() -> None:
    with use_backend("null"):
        result = lax.add(np.float32([1, 2]), 1)
        assert (result.shape, result.dtype) == ((2,), np.float32)
        with pytest.raises(BackendError, match="backend 'null' compiles and never runs"):
            np.asarray(result)


def test_data_moves_in_and_out() -> None:
    array = np.arange(3)
    assert get("null").to_host(get("null").from_host(array)) is array
    assert "null" in available()


def test_a_broken_graph_is_refused() -> None:
    x, stray = parameter(VECTOR), parameter(VECTOR)
    with pytest.raises(GraphError, match="parameter of another graph"):
        get("null").compile(Graph([x], [Node(ops.Add(), (x, stray))]))
    wrong = Node(ops.Negate(), (x,), scalar(np.int8))
    with pytest.raises(GraphError, match="a type other than inferred"):
        get("null").compile(Graph([x], [wrong]))
