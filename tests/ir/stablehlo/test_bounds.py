"""Dynamic sizes with bounds in StableHLO text: printing, reading, running."""

from __future__ import annotations

import numpy as np
import pytest

from tests.compare import assert_same
from tests.dynamic_cases import CASES, Case
from tests.support.dynamic import late, module_of
from tests.xla import parse
from xarr import lax, stablehlo
from xarr.errors import ParseError, XarrError
from xarr.ir.types import TensorType

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_round_trip(case: Case) -> None:
    text = module_of(case)
    assert str(stablehlo.parse(text).main) == text


@pytest.mark.parametrize(
    "case", [c for c in CASES if "StableHLO" not in c.unlike_xla], ids=lambda case: case.name
)
def test_mlir_reads_what_is_printed(case: Case) -> None:
    parse(module_of(case))


# --- reading -------------------------------------------------------------------------------------------------


def identity(type: str) -> str:
    return f"func.func @main(%x: {type}) -> {type} {{ return %x : {type} }}"


@pytest.mark.parametrize(
    "spelled",
    [
        "tensor<?x3xf32, #stablehlo.bounds<5, ?>>",
        "tensor< ? x 3 x f32 ,#stablehlo.bounds< 5,? > >",
        "tensor<?x3xf32, #stablehlo.type_extensions<bounds = [5, ?]>>",
    ],
)
def test_bounds_are_read(spelled: str) -> None:
    graph = stablehlo.parse(identity(spelled)).main
    assert graph.parameter_types == (TensorType((5, 3), F32, (True, False)),)


@pytest.mark.parametrize(
    ("spelled", "message"),
    [
        ("tensor<?x3xf32, #stablehlo.bounds<5>>", "expected 2 bounds, got 1"),
        ("tensor<?x3xf32, #stablehlo.bounds<5, 3>>", "a size that is known has no bound"),
        ("tensor<?x?xf32, #stablehlo.bounds<5, ?>>", "all unknown sizes have bounds, or none"),
        ("tensor<?xf32, #stablehlo.bounds<99999999999999999999>>", "a bound that no array can have"),
        ("tensor<?xf32, #stablehlo.bounds<9999999999999999999>>", "more elements than any array can have"),
    ],
)
def test_wrong_bounds_are_refused(spelled: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        stablehlo.parse(identity(spelled))


def test_arguments_are_live_parts() -> None:
    text = """
    func.func @main(%x: tensor<?x2xf32, #stablehlo.bounds<5, ?>>) -> tensor<2xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<f32>
      %r = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0]
        : (tensor<?x2xf32, #stablehlo.bounds<5, ?>>, tensor<f32>) -> tensor<2xf32>
      return %r : tensor<2xf32>
    }"""
    module = stablehlo.parse(text)
    for rows in range(6):
        x = np.arange(2 * rows, dtype=np.float32).reshape(rows, 2)
        assert_same(stablehlo.run(module, x)[0], x.sum(0))
        array = lax.set_dimension_size(
            np.resize(x, (5, 2)) if rows else np.ones((5, 2), np.float32), late(rows), 0
        )
        assert_same(stablehlo.run(module, array)[0], x.sum(0))
    for wrong in (
        np.ones((6, 2), np.float32),
        np.ones((2, 3), np.float32),
        np.ones((2, 2)),
        np.ones(2, np.float32),
    ):
        with pytest.raises(XarrError, match=r"f32\[<=5,2\]|tensor<\?x2xf32"):
            stablehlo.run(module, wrong)


def test_results_are_live_parts() -> None:
    (result,) = stablehlo.run(identity("tensor<?xf32, #stablehlo.bounds<5>>"), np.ones(2, np.float32))
    assert_same(np.asarray(result), np.ones(2, np.float32))
    assert result.shape == (5,)


SIZED = """
func.func @main(%x: tensor<5xf32>) -> {result} {{
  %n = stablehlo.constant dense<{size}> : tensor<i32>
  %r = stablehlo.set_dimension_size %x, %n, dim = 0 : (tensor<5xf32>, tensor<i32>) -> {result}
  return %r : {result}
}}"""


def test_the_result_type_says_whether_the_size_is_the_bound() -> None:
    x = np.arange(5, dtype=np.float32)
    dynamic = "tensor<?xf32, #stablehlo.bounds<5>>"
    assert_same(np.asarray(stablehlo.run(SIZED.format(result=dynamic, size=3), x)[0]), x[:3])
    assert_same(stablehlo.run(SIZED.format(result="tensor<5xf32>", size=5), x)[0], x)
    with pytest.raises(ParseError, match="the size is not the bound 5, so dimension 0 is dynamic"):
        stablehlo.parse(SIZED.format(result="tensor<5xf32>", size=3))


def test_a_result_that_is_declared_static_is_refused() -> None:
    text = SIZED.format(result="tensor<?xf32, #stablehlo.bounds<5>>", size=3)
    negated = text.replace(
        "return %r : tensor<?xf32, #stablehlo.bounds<5>>",
        "%s = stablehlo.negate %r : (tensor<?xf32, #stablehlo.bounds<5>>) -> tensor<5xf32>\n return %s : tensor<5xf32>",
    ).replace("-> tensor<?xf32, #stablehlo.bounds<5>> {", "-> tensor<5xf32> {", 1)
    with pytest.raises(ParseError, match="but the text says tensor<5xf32>"):
        stablehlo.parse(negated)


def test_sizes_from_operands_below_bounds() -> None:
    text = """
    func.func @main(%n: tensor<2xi64>)
        -> (tensor<?x2xi32, #stablehlo.bounds<5, ?>>, tensor<3x?xf32, #stablehlo.bounds<?, 4>>) {
      %one = stablehlo.constant dense<1.0> : tensor<f32>
      %i = stablehlo.dynamic_iota %n, dim = 0 : (tensor<2xi64>) -> tensor<?x2xi32, #stablehlo.bounds<5, ?>>
      %b = stablehlo.dynamic_broadcast_in_dim %one, %n, dims = []
        : (tensor<f32>, tensor<2xi64>) -> tensor<3x?xf32, #stablehlo.bounds<?, 4>>
      return %i, %b : tensor<?x2xi32, #stablehlo.bounds<5, ?>>, tensor<3x?xf32, #stablehlo.bounds<?, 4>>
    }"""
    iota, ones = stablehlo.run(text, np.array([3, 2]))
    assert_same(np.asarray(iota), np.repeat(np.arange(3, dtype=np.int32)[:, None], 2, 1))
    assert_same(np.asarray(ones), np.ones((3, 2), np.float32))
