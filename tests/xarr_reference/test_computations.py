"""The reference backend's ops that carry computations, its text, and its errors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compare import assert_same
from tests.programs import graph, run, scalar
from xarr import lax
from xarr.backend import get, use_backend
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, data, parameter
from xarr.ir.op import operation
from xarr.ir.types import TensorType, TupleType
from xarr_reference import interpreter

F32, I32, PRED = scalar(np.float32), scalar(np.int32), scalar(bool)
bf16 = ml_dtypes.bfloat16


def fold(function: Any, dtype: Any) -> Graph:
    """A combiner of two scalars."""
    return graph(lambda x, y: [function(x, y)], scalar(dtype), scalar(dtype))


ADD, MAX = fold(lax.add, np.float32), fold(lax.max, np.float32)


# --- reduce -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dims", [(), (0,), (1,), (2,), (0, 1), (2, 0), (0, 1, 2)])
@pytest.mark.parametrize("shape", [(4, 2, 3), (1, 1, 1), (2, 0, 3)])
def test_sums_over_dimensions(shape: tuple[int, ...], dims: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    # Of integers below 2**24 every order of summation gives the same.
    assert_same(run(ops.Reduce(dims, ADD), x, np.float32(0)), x.sum(dims) if dims else x)


def test_the_sums_of_the_operation_semantics() -> None:
    x = np.broadcast_to(np.float32([[1, 2, 3], [4, 5, 6]]), (4, 2, 3))
    assert_same(run(ops.Reduce((0,), ADD), x, np.float32(0)), np.float32([[4, 8, 12], [16, 20, 24]]))
    assert_same(run(ops.Reduce((2,), ADD), x, np.float32(0)), np.float32([[6, 15]] * 4))
    assert_same(run(ops.Reduce((1, 2), ADD), x, np.float32(0)), np.float32([21] * 4))
    assert_same(run(ops.Reduce((0, 1, 2), ADD), x, np.float32(0)), np.float32(84))


def test_reduction_starts_from_the_initial_value() -> None:
    assert_same(run(ops.Reduce((0,), ADD), np.float32([1, 2]), np.float32(10)), np.float32(13))
    assert_same(
        run(ops.Reduce((1,), MAX), np.empty((2, 0), np.float32), np.float32(-5)), np.float32([-5, -5])
    )
    assert_same(run(ops.Reduce((), MAX), np.float32(3), np.float32(5)), np.float32(5))
    assert_same(run(ops.Reduce((0,), MAX), np.float32([np.nan, 9]), np.float32(0)), np.float32(np.nan))


def test_reduction_folds_from_the_left_in_row_major_order() -> None:
    digits = fold(lambda x, y: lax.add(lax.mul(x, 10), y), np.int32)
    x = np.int32([[1, 2, 3], [4, 5, 6]])
    assert_same(run(ops.Reduce((1, 0), digits), x, np.int32(0)), np.int32(123456))
    assert_same(run(ops.Reduce((0,), digits), x, np.int32(7)), np.int32([714, 725, 736]))


def test_sums_of_narrow_floats_round_at_each_step() -> None:
    x = np.array([256, 1, 1], bf16)
    assert_same(run(ops.Reduce((0,), fold(lax.add, bf16)), x, bf16(0)), bf16(256))


def test_reduction_of_several_arrays() -> None:
    def argmax(best: Any, where: Any, value: Any, index: Any) -> Any:
        better = lax.gt(value, best)
        return lax.select(better, value, best), lax.select(better, index, where)

    op = ops.Reduce((1,), graph(argmax, F32, I32, F32, I32))
    x, at = np.float32([[3, 9, 9], [5, -1, 2]]), np.broadcast_to(np.int32([0, 1, 2]), (2, 3))
    best, where = run(op, x, at, np.float32(-np.inf), np.int32(-1))
    assert_same(best, np.float32([9, 5]))
    assert_same(where, np.int32([1, 0]))


# --- dot_general --------------------------------------------------------------------------------------


def dot(contract: Any, batch: Any = ((), ()), dtype: Any = np.float32) -> ops.DotGeneral:
    return ops.DotGeneral(*batch, *contract, np.dtype(dtype))


def test_the_products_of_the_operation_semantics() -> None:
    lhs, rhs = np.float32([[1, 2, 3], [4, 5, 6]]), np.float32([[1, 1, 1], [2, 2, 2]])
    assert_same(run(dot(((1,), (1,))), lhs, rhs), np.float32([[6, 12], [15, 30]]))
    lhs, unit = np.float32([[[1, 2], [3, 4]], [[5, 6], [7, 8]]]), np.float32([[[1, 0], [0, 1]]] * 2)
    assert_same(run(dot(((2,), (1,)), ((0,), (0,))), lhs, unit), lhs)


def test_batching_and_contraction_over_any_dimensions() -> None:
    rng = np.random.default_rng(0)
    lhs, rhs = rng.integers(-9, 9, (2, 3, 4, 5)), rng.integers(-9, 9, (5, 4, 6, 3))
    result = run(dot(((3, 0), (0, 1)), dtype=np.int64), lhs[:, :, :, :], rhs[:, :2])
    assert_same(result, np.einsum("kbcl,lkde->bcde", lhs, rhs[:, :2]))
    result = run(dot(((3,), (0,)), ((1, 2), (3, 1)), np.int64), lhs, rhs)
    assert_same(result, np.einsum("abcl,lcdb->bcad", lhs, rhs))


def test_products_without_elements_or_dimensions() -> None:
    assert_same(run(dot(((), ())), np.float32(3), np.float32(4)), np.float32(12))
    assert_same(run(dot(((), ())), np.float32([1, 2]), np.float32([3])), np.float32([[3], [6]]))
    empty = np.empty((2, 0), np.float32)
    assert_same(run(dot(((1,), (1,))), empty, empty), np.zeros((2, 2), np.float32))
    assert_same(run(dot(((0,), (0,))), empty, empty), np.zeros((0, 0), np.float32))


def test_products_accumulate_in_the_result_type_but_narrow_floats_in_float32() -> None:
    ones = np.ones(300, np.int8)
    assert_same(run(dot(((0,), (0,)), dtype=np.int8), ones, ones), np.int8(44))
    assert_same(run(dot(((0,), (0,)), dtype=np.int32), ones, ones), np.int32(300))
    many = np.ones(300, bf16)
    assert_same(run(dot(((0,), (0,)), dtype=bf16), many, many), bf16(300))
    x, y = np.float16([60000, 60000, -60000]), np.float16([2, 1, 2])
    assert_same(run(dot(((0,), (0,)), dtype=np.float16), x, y), np.float16(60000))
    assert_same(
        run(dot(((0,), (0,)), dtype=bool), np.array([True, False]), np.array([True, True])), np.bool_(True)
    )


# --- sort ---------------------------------------------------------------------------------------------

LESS = graph(lambda a, b: [lax.lt(a, b)], F32, F32)


def test_each_line_is_sorted() -> None:
    x = np.float32([[3, 1, 2], [0, 5, -1]])
    assert_same(run(ops.Sort(1, True, LESS), x), np.float32([[1, 2, 3], [-1, 0, 5]]))
    assert_same(run(ops.Sort(0, True, LESS), x), np.float32([[0, 1, -1], [3, 5, 2]]))
    deep = np.random.default_rng(1).permutation(60).astype(np.float32).reshape(3, 5, 4)
    assert_same(run(ops.Sort(1, True, LESS), deep), np.sort(deep, 1))


@pytest.mark.parametrize("shape", [(0,), (1,), (2, 0), (0, 3)])
def test_sorting_little_or_nothing(shape: tuple[int, ...]) -> None:
    x = np.ones(shape, np.float32)
    assert_same(run(ops.Sort(len(shape) - 1, True, LESS), x), x)


def test_arrays_are_sorted_together() -> None:
    comparator = graph(lambda a, b, c, d, e, f: [lax.lt(a, b)], I32, I32, I32, I32, F32, F32)
    results = run(
        ops.Sort(0, True, comparator), np.int32([3, 1]), np.int32([42, 50]), np.float32([-3.0, 1.1])
    )
    for actual, expected in zip(results, ([1, 3], [50, 42], [1.1, -3.0]), strict=True):
        assert_same(actual, np.array(expected, actual.dtype))
    assert [array.dtype for array in results] == [np.int32, np.int32, np.float32]


def test_sorting_is_stable() -> None:
    keys = np.random.default_rng(2).integers(0, 4, 40).astype(np.int32)
    comparator = graph(lambda a, b, c, d: [lax.gt(a, b)], I32, I32, I32, I32)
    ordered, indices = run(ops.Sort(0, True, comparator), keys, np.arange(40, dtype=np.int32))
    expected = np.argsort(-keys, kind="stable").astype(np.int32)
    assert_same(indices, expected)
    assert_same(ordered, keys[expected])


# --- control ------------------------------------------------------------------------------------------


def test_map() -> None:
    computation = graph(lambda x, y: [lax.lt(lax.add(x, 1), y)], F32, F32)
    x, y = np.float32([[1, 5], [2, 2]]), np.float32([[3, 3], [3, 3.5]])
    assert_same(run(ops.Map((0, 1), computation), x, y), np.array([[True, False], [False, True]]))
    assert_same(run(ops.Map((), computation), x[0, 0], y[0, 0]), np.bool_(True))
    assert_same(run(ops.Map((0,), computation), x[0, :0], y[0, :0]), np.empty(0, bool))


def test_while() -> None:
    vector = TensorType((2,), np.dtype(np.float32))
    cond = graph(lambda n, x: [lax.lt(n, 5)], I32, vector)
    body = graph(lambda n, x: [lax.add(n, 1), lax.mul(x, x)], I32, vector)
    count, power = run(ops.While(cond, body), np.int32(2), np.float32([2, 1]))
    assert_same(count, np.int32(5))
    assert_same(power, np.float32([256, 1]))
    count, same = run(ops.While(cond, body), np.int32(9), np.float32([2, 1]))
    assert_same(count, np.int32(9))
    assert_same(same, np.float32([2, 1]))
    halve = ops.While(graph(lambda x: [lax.gt(x, 1)], F32), graph(lambda x: [lax.div(x, 2)], F32))
    assert_same(run(halve, np.float32(10)), np.float32(0.625))


def branch(number: float) -> Graph:
    return graph(lambda x: [lax.add(x, number)], F32)


def test_if() -> None:
    op = ops.If(branch(1), branch(2))
    assert_same(run(op, np.bool_(True), np.float32(0)), np.float32(1))
    assert_same(run(op, np.bool_(False), np.float32(0)), np.float32(2))


@pytest.mark.parametrize(("index", "expected"), [(0, 1), (1, 2), (2, 3), (3, 3), (-1, 3), (-(2**31), 3)])
def test_case_takes_the_last_branch_out_of_range(index: int, expected: int) -> None:
    op = ops.Case((branch(1), branch(2), branch(3)))
    assert_same(run(op, np.int32(index), np.float32(0)), np.float32(expected))


def test_calls_tuples_and_barriers() -> None:
    swap = graph(lambda x, y: [y, lax.neg(x)], F32, I32)
    first, second = run(ops.Call(swap), np.float32(1), np.int32(2))
    assert_same(first, np.int32(2))
    assert_same(second, np.float32(-1))
    assert_same(run(ops.Call(branch(1)), np.float32(1)), np.float32(2))
    assert_same(run(ops.OptimizationBarrier(), np.float32(1)), np.float32(1))
    kept = run(ops.OptimizationBarrier(), np.float32(1), np.int32(2))
    assert_same(kept[1], np.int32(2))


def test_tuples_nest() -> None:
    x, y = parameter(F32), parameter(I32)
    inner = Node(ops.Tuple(), (x, y))
    outer = Node(ops.Tuple(), (inner, y))
    element = Node(ops.GetTupleElement(0), (Node(ops.GetTupleElement(0), (outer,)),))
    assert outer.type is TupleType((TupleType((F32, I32)), I32))
    results = get("reference").compile(Graph([x, y], [element, outer]))(np.float32(1), np.int32(2))
    assert_same(results[0], np.float32(1))
    assert_same(results[1][0][1], np.int32(2))


# --- the program --------------------------------------------------------------------------------------


def test_the_text_is_stablehlo() -> None:
    x = parameter(TensorType((2, 3), np.dtype(np.float32)))
    start = Node(ops.Constant.of(np.float32(1.5)))
    made = Graph([x], [Node(ops.Reduce((1,), ADD), (x, start))])
    assert get("reference").compile(made).text == made.to_text()


@operation
class Broken(ops.Unary):
    """An op whose rule fails."""

    name = "test.broken"
    lax_name = "broken"
    accepts = frozenset({np.dtype(np.float32)})


def test_errors_while_running_name_the_op_and_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(interpreter.TABLE, Broken, lambda node, x: x[5])
    with pytest.raises(IndexError) as caught:
        run(Broken(), np.ones(2, np.float32))
    assert isinstance(caught.value.__dict__["_xarr_node"].op, Broken)


def test_evaluation_on_the_reference_backend_is_a_flag_away() -> None:
    with use_backend("reference"):
        x = lax.broadcasted_iota(np.float32, (2, 2), 1)
        assert_same(lax.add(x, np.float32([[1, 1], [2, 2]])), np.float32([[1, 2], [2, 3]]))


def test_a_leaf_with_a_value_is_no_op_of_a_program() -> None:
    leaf = data(F32, np.float32(1), get("reference"))
    with pytest.raises(BackendError, match="'reference' has no data"):
        get("reference").compile(Graph([], [leaf]))
