"""Functions that call others again and again: each is lowered and compiled once, and too many calls are refused."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.support.graphs import node
from xarr import backend as backends, stablehlo
from xarr.base.configuration import current as config
from xarr.compiler import pipeline
from xarr.compiler.passes.simplify import simplify
from xarr.errors import TooLargeError
from xarr.ir import ops
from xarr.ir.graph import Graph, OncePerGraph, parameter
from xarr.ir.op import Op
from xarr.ir.types import TensorType


def doubling(levels: int, type: str = "tensor<2xi32>", term: str = "one") -> str:
    """A module whose `main` adds 1 to its argument 2 ** levels times, or doubles it with the term "a"."""
    constant = "" if term == "a" else f"%one = stablehlo.constant dense<1> : {type}"
    functions = [
        f"""
  func.func private @f{level}(%a: {type}) -> {type} {{
    %0 = call @f{level + 1}(%a) : ({type}) -> {type}
    %1 = call @f{level + 1}(%0) : ({type}) -> {type}
    return %1 : {type}
  }}"""
        for level in range(levels)
    ]
    return f"""module {{
  func.func @main(%a: {type}) -> {type} {{
    %0 = call @f0(%a) : ({type}) -> {type}
    return %0 : {type}
  }}{"".join(functions)}
  func.func private @f{levels}(%a: {type}) -> {type} {{
    {constant}
    %0 = stablehlo.add %a, %{term} : {type}
    return %0 : {type}
  }}
}}"""


@pytest.fixture(params=["compiled", "off"])
def engine(request: pytest.FixtureRequest) -> None:
    if request.param == "compiled":
        pytest.importorskip("llvmlite")
    config.fusion = request.param


@pytest.mark.usefixtures("engine")
def test_a_function_that_is_called_again_and_again_is_compiled_once() -> None:
    module = stablehlo.parse(doubling(12))
    (result,) = stablehlo.run(module, np.array([1, 2], np.int32), backend="numpy")
    assert np.asarray(result).tolist() == [4097, 4098]
    program = pipeline.make_program(module.main, backends.get("numpy")).program
    assert len(re.findall("^def ", program.text, re.MULTILINE)) <= 14


def test_the_reference_calls_it_too() -> None:
    (result,) = stablehlo.run(doubling(6), np.array([1, 2], np.int32), backend="reference")
    assert np.asarray(result).tolist() == [65, 66]


def test_of_unknown_sizes() -> None:
    """The calls are made static once as well."""
    type = "tensor<?xi32, #stablehlo.bounds<5>>"
    module = stablehlo.parse(doubling(4, type, "a"))
    (result,) = stablehlo.run(module, np.array([1, -2], np.int32))
    assert np.asarray(result).tolist() == [2**16, -(2**17)]
    static = pipeline.lower(stablehlo.parse(doubling(40, type, "a")).main, backends.get("numpy"), "static")
    assert len(static.walk()) == 42


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_calls_without_end_are_refused_before_they_run(backend: str) -> None:
    """With every pass before: none goes through 2 ** 40 functions."""
    module = stablehlo.parse(doubling(40))
    assert module.main.operation_count > 2**40
    (result,) = stablehlo.run(module, np.array([1, 2], np.int32), backend=backend)
    with pytest.raises(
        TooLargeError,
        match=r"runs 4\.4e\+12 operations, .* at most 2\*\*32 .*: put repeated calls into a loop",
    ):
        np.asarray(result)


def test_what_is_known_of_a_graph_takes_each_function_once() -> None:
    first, second = (stablehlo.parse(doubling(40)).main for _ in range(2))
    assert first == second and hash(first) == hash(second) and first.is_pure
    assert str(first) == str(second) and str(first).count("func.func") == 42
    assert len(first.walk()) == 42
    assert stablehlo.parse(str(first)).main == simplify(first).verify()
    assert first != stablehlo.parse(doubling(40).replace("dense<1>", "dense<2>")).main


def test_once_per_graph() -> None:
    """Chains of calls are followed without recursion, and graphs are told apart by identity."""
    a = parameter(TensorType((), np.dtype(np.int32)))
    graph = Graph([a], [node(ops.Add(), a, a)])
    for _ in range(2000):
        b = parameter(a.type)
        graph = Graph([b], [node(ops.Call(graph), node(ops.Call(graph), b))])
    seen: list[Graph] = []

    def count(each: Graph, once: OncePerGraph[int]) -> int:
        seen.append(each)
        return 1 + sum(once(inner) for node in each.nodes for inner in node.op.graphs)

    assert OncePerGraph(count)(graph) == 2**2001 - 1
    assert len(seen) == 2001


def test_an_effect_inside_is_an_effect() -> None:
    def calling(op: Op) -> Graph:
        a, b = (parameter(TensorType((2,), np.dtype(np.float32))) for _ in range(2))
        return Graph([b], [node(ops.Call(Graph([a], [node(op, a)])), b)])

    assert calling(ops.Negate()).is_pure
    assert not calling(
        ops.CustomCall("observed", (TensorType((2,), np.dtype(np.float32)),), (), True)
    ).is_pure
