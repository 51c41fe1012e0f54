"""What MLIR or XLA would refuse or read otherwise is printed in other words, or refused when it is built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.graphs import F32, V, constant, graph, node, on_numpy, part, tensor
from tests.xla import parse, run_stablehlo, squeeze_spaces
from xarr import lax, stablehlo
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TupleType

PRED = np.dtype(np.bool_)
PAIR = TupleType((tensor(F32), V))
NUMBERS = [0, 1j, -0.0, complex(0, np.nan), 1e-30j, complex(-0.0, -0.0), 2]


# --- complex numbers as bools --------------------------------------------------------------------------------


def as_bool(dtype: Any, *shape: int) -> Graph:
    def function(x: Node) -> tuple[Node, ...]:
        converted = node(ops.Convert(PRED), x)
        return converted, node(ops.Not(), converted), node(ops.Convert(PRED), x)

    return graph(function, tensor(dtype, *shape))


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("shape", [(7,), (), (0, 2), (7, 1)], ids=str)
def test_xla_reads_the_imaginary_part_of_what_becomes_a_bool(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.array(NUMBERS[: np.prod(shape, dtype=int)], dtype).reshape(shape)
    program = as_bool(dtype, *shape)
    assert squeeze_spaces(str(parse(str(program)))) == squeeze_spaces(str(program))
    for result, wanted in zip(run_stablehlo(str(program), x), on_numpy(program, x), strict=True):
        assert_same(result, wanted)
    assert_same(on_numpy(program, x)[0], x != 0)


def test_the_text_reads_back_as_a_comparison() -> None:
    module = stablehlo.parse(str(as_bool(np.complex64, 7)))
    assert str(module.main) == str(as_bool(np.complex64, 7))
    result = stablehlo.run(module, np.array(NUMBERS, np.complex64))[0]
    assert_same(np.asarray(result), np.array(NUMBERS, np.complex64) != 0)


def test_the_conversion_inside_a_computation() -> None:
    scalar = tensor(np.complex64)
    inner = graph(lambda x: node(ops.Convert(PRED), x), scalar)
    program = graph(lambda x: node(ops.Map((0,), inner), x), tensor(np.complex64, 7))
    assert "stablehlo.compare" in str(program)
    (result,) = run_stablehlo(str(program), np.array(NUMBERS, np.complex64))
    assert result.tolist() == [False, True, False, True, True, False, True]


def test_locations_are_those_of_the_conversion() -> None:
    program = as_bool(np.complex64)
    lines = [line for line in program.to_text(locations=True).splitlines() if "stablehlo.compare" in line]
    assert len(lines) == 2
    assert all("graph_parts.py" in line for line in lines)


@pytest.mark.parametrize("dtype", ["float32", "int8", "complex64"])
def test_other_conversions_print_as_conversions(dtype: str) -> None:
    to = np.float32 if dtype == "complex64" else np.bool_
    assert "stablehlo.convert" in str(graph(lambda x: node(ops.Convert(np.dtype(to)), x), tensor(dtype, 3)))


# --- tuples --------------------------------------------------------------------------------------------------


def pair(x: Node, v: Node) -> Node:
    return node(ops.Tuple(), x, v)


def test_while_c0() -> None:
    cond, body = graph(lambda t: constant(False, bool), PAIR), graph(lambda t: t, PAIR)
    message = r"while_loop \[C0\]: wanted arrays, got the tuple \(f32\[\], f32\[3\]\); pass its elements one"
    with pytest.raises(ShapeError, match=message):
        graph(lambda x, v: part(0, node(ops.While(cond, body), pair(x, v))), tensor(F32), V)


def test_if_c0() -> None:
    takes, gives = graph(lambda t: part(1, t), PAIR), graph(pair, tensor(F32), V)
    with pytest.raises(ShapeError, match=r"cond \[C0\]: wanted arrays, got the tuple"):
        graph(lambda p, x, v: node(ops.If(takes, takes), p, pair(x, v)), tensor(bool), tensor(F32), V)
    with pytest.raises(ShapeError, match=r"cond \[C0\]: wanted arrays, got the tuple"):
        graph(lambda p, x, v: node(ops.If(gives, gives), p, x, v), tensor(bool), tensor(F32), V)


def test_case_c0() -> None:
    gives = graph(pair, tensor(F32), V)
    with pytest.raises(ShapeError, match=r"switch \[C0\]: wanted arrays, got the tuple"):
        graph(lambda i, x, v: node(ops.Case((gives,)), i, x, v), tensor(np.int32), tensor(F32), V)


def test_mlir_refuses_what_is_refused_here() -> None:
    text = """
    func.func @main(%arg0: tensor<i1>, %arg1: tuple<tensor<f32>>) -> tuple<tensor<f32>> {
      %0 = "stablehlo.if"(%arg0) ({
        stablehlo.return %arg1 : tuple<tensor<f32>>
      }, {
        stablehlo.return %arg1 : tuple<tensor<f32>>
      }) : (tensor<i1>) -> tuple<tensor<f32>>
      return %0 : tuple<tensor<f32>>
    }"""
    with pytest.raises(Exception, match="result #0 must be"):
        parse(text)


def test_a_loop_over_the_elements_of_a_tuple_is_accepted_and_runs() -> None:
    def function(v: Any, m: Any) -> Any:
        whole = lax.tuple(v, m)
        carried = (lax.get_tuple_element(whole, 0), lax.get_tuple_element(whole, 1))
        return lax.while_loop(lambda c: lax.lt(lax.reduce_max(c[0], (0,)), 100.0), double, carried)

    def double(carried: Any) -> Any:
        return lax.add(carried[0], carried[0]), lax.neg(carried[1])

    program = xarr.lower(function, "f32[3]", "f32[2,3]").graph
    v, m = np.float32([1, 2, 3]), np.float32([[1, 2, 3], [4, 5, 6]])
    for result, wanted in zip(run_stablehlo(str(program), v, m), on_numpy(program, v, m), strict=True):
        assert_same(result, wanted)
