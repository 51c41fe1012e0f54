"""The stages of compilation: their names, what each prints, and the checks between them."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.operations import own_operations
from xarr.backend import AbstractBackend, get
from xarr.compiler import pipeline
from xarr.compiler.pipeline import STAGES, compile_graph, lower
from xarr.errors import InputError, ValueRangeError
from xarr.ir import ops
from xarr.ir.graph import Graph, GraphError, Node, data, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr_null.backend import NullBackend

VECTOR = TensorType((3,), np.dtype(np.float32))


def doubled() -> Graph:
    x = parameter(VECTOR)
    return Graph([x], [Node(ops.Add(), (x, x))])


@pytest.mark.parametrize("name", ["", "Fused", "compiled", None, 3], ids=repr)
def test_unknown_stage(name: Any) -> None:
    wanted = r"wanted one of the stages traced, simplified, static, decomposed, fused, plan, program, got "
    with pytest.raises(ValueRangeError, match=wanted):
        lower(doubled(), get("numpy"), name)
    with pytest.raises(ValueRangeError, match=wanted):
        xarr.lower(lambda x: -x, "f32[3]").stage(name)


@pytest.mark.parametrize("backend", ["numpy", "reference", "null"])
def test_every_stage_prints(backend: str) -> None:
    with xarr.use_backend(backend):
        lowered = xarr.lower(lambda x: x + x, "f32[3]")
    for name in STAGES:
        assert "stablehlo.add" in str(lowered.stage(name))
    assert "b0: f32[3], until 0 = argument 0" in str(lowered.stage("plan"))
    assert "def program" in str(lowered.stage("program")) or backend != "numpy"


def test_the_module_lists_the_stages_in_order() -> None:
    assert pipeline.__doc__ is not None
    assert " -> ".join([*STAGES, "plan", "program"]) in pipeline.__doc__


class Fusing(NullBackend):
    """Writes x + x as one multiplication, and keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[Graph] = []

    def supports(self, op: type[Op]) -> bool:
        return op in own_operations()

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        self.given.append(graph)
        (x,) = graph.parameters
        two = Node(ops.Constant.of(np.full(3, 2, np.float32)))
        return Graph([x], [Node(ops.Multiply(), (x, two))], graph.name)


def test_a_backend_fuses_what_is_decomposed_and_compiles_what_it_fused() -> None:
    backend = Fusing()
    decomposed = lower(doubled(), backend, "decomposed")
    assert backend.given == []
    assert "multiply" in lower(doubled(), backend, "fused").to_text()
    assert backend.given == [decomposed]
    assert "multiply" in compile_graph(doubled(), backend).text


@pytest.mark.usefixtures("unfused")
def test_a_backend_without_fusion_compiles_what_is_decomposed() -> None:
    backend = get("numpy")
    assert lower(doubled(), backend, "fused") == lower(doubled(), backend, "decomposed")


class Breaking(NullBackend):
    """Its fusion gives a node a type that is not the op's."""

    def fuse(self, graph: Graph, hot: bool = False) -> Graph:
        (x,) = graph.parameters
        return Graph([x], [Node(ops.Negate(), (x,), TensorType((2,), x.dtype))])


def lowered_by(backend: AbstractBackend) -> Graph:
    return lower(doubled(), backend)


def test_a_pass_that_breaks_the_graph_is_caught_under_test() -> None:
    with pytest.raises(GraphError, match="a type other than inferred"):
        lowered_by(Breaking())


def test_verification_is_a_setting() -> None:
    with xarr.config(verify_graphs=False):
        assert lowered_by(Breaking()).results[0].shape == (2,)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_lowered_functions_are_pickled_with_what_they_close_over(backend: str) -> None:
    with xarr.use_backend(backend):
        outer = xarr.asarray(np.float32([1, 2, 3])) * 2

        def function(x: Any, y: Any) -> Any:
            looped = xarr.lax.fori_loop(0, 3, lambda i, value: value * outer, x)
            return looped, xarr.lax.reduce(y, 0.0, lambda a, b: a + b, (0, 1))

        lowered = xarr.lower(function, "f32[3]", "f64[<=2,3]")
    again = pickle.loads(pickle.dumps(lowered))
    assert again.graph == lowered.graph
    assert str(again) == str(lowered)
    assert again.backend is lowered.backend
    assert again.stage("program").text == lowered.stage("program").text
    (value,) = (node.value if node.value is not None else None for node in again.captured)
    np.testing.assert_array_equal(np.asarray(value), [2, 4, 6])


def test_long_graphs_are_pickled_without_recursion() -> None:
    def chain(x: Any) -> Any:
        for _ in range(5_000):
            x = x + 1
        return x

    lowered = xarr.lower(chain, "f64[2]")
    assert len(pickle.loads(pickle.dumps(lowered)).graph.nodes) == len(lowered.graph.nodes)


def test_graphs_that_hold_data_are_not_pickled() -> None:
    leaf = data(VECTOR, np.ones(3, np.float32), get("numpy").device())
    with pytest.raises(InputError, match="holds data, which cannot be pickled"):
        pickle.dumps(Graph([], [Node(ops.Negate(), (leaf,))]))
