"""Products with one-hot matrices, which add rows to their classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
Program = Callable[[Any, Any], Any]

#: The last block of rows is a part of one.
COUNT, CLASSES, COLUMNS = 2500, 20, 6


def one_hot(labels: Any, dtype: Any) -> Any:
    """(n, classes)"""
    shape = (labels.shape[0], CLASSES)
    wide = lax.broadcast_in_dim(labels, shape, (0,))
    return lax.convert_element_type(lax.eq(wide, lax.broadcasted_iota(labels.dtype, shape, 1)), dtype)


def one_hot_columns(labels: Any, dtype: Any) -> Any:
    """(classes, n), the comparison the other way round"""
    shape = (CLASSES, labels.shape[0])
    wide = lax.broadcast_in_dim(labels, shape, (1,))
    return lax.convert_element_type(lax.eq(lax.broadcasted_iota(labels.dtype, shape, 0), wide), dtype)


#: The sums of the rows of each class, in the spellings that people use.
SPELLINGS: dict[str, Program] = {
    "transposed": lambda x, labels: one_hot(labels, x.dtype).T @ x,
    "columns": lambda x, labels: one_hot_columns(labels, x.dtype) @ x,
    "from the right": lambda x, labels: (x.T @ one_hot(labels, x.dtype)).T,
    "from the right, columns": lambda x, labels: (x.T @ one_hot_columns(labels, x.dtype).T).T,
    "contracted": lambda x, labels: lax.dot_general(one_hot(labels, x.dtype), x, (((0,), (0,)), ((), ()))),
}


def scatters(program: Program, x: Array, labels: Array) -> int:
    """The number of scatters in the groups of a program."""
    with xarr.config(fusion="compiled"):
        graph = xarr.lower(program, x, labels).stage("fused")
    assert isinstance(graph, Graph)
    groups = [node.op.computation for node in graph.nodes if isinstance(node.op, ops.Fusion)]
    return sum(isinstance(node.op, ops.Scatter) for group in groups for node in group.nodes)


def compile_program(program: Program, x: Array, labels: Array) -> Array:
    with xarr.config(fusion="compiled"):
        return np.asarray(xarr.jit(program)(xarr.asarray(x), xarr.asarray(labels)))


def compute_expected(x: Array, labels: Array) -> Array:
    """The product as NumPy computes it."""
    member = (labels[:, None] == np.arange(CLASSES)).astype(x.dtype)
    with np.errstate(invalid="ignore"):
        return member.T @ x


def whole_numbers(dtype: str, seed: int = 0) -> Array:
    return np.random.default_rng(seed).integers(-9, 10, (COUNT, COLUMNS)).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["int8", "int64", "uint16"])
def test_rows_are_added_to_their_classes(spelling: str, dtype: str, kind: str) -> None:
    x = whole_numbers(dtype)
    labels = np.random.default_rng(1).integers(0, CLASSES, COUNT).astype(kind)
    program = SPELLINGS[spelling]
    assert scatters(program, x, labels) == 1
    assert_same(compile_program(program, x, labels), compute_expected(x, labels))


def test_rows_of_no_class_are_left_out() -> None:
    x = whole_numbers("float32")
    labels = np.random.default_rng(2).integers(-30, 3 * CLASSES, COUNT)
    assert_same(compile_program(SPELLINGS["transposed"], x, labels), compute_expected(x, labels))


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("label", [-5, 0, 7, CLASSES - 1, CLASSES])
def test_zero_times_what_is_not_finite_is_nan(value: float, label: int) -> None:
    x = whole_numbers("float64")
    labels = np.random.default_rng(3).integers(0, CLASSES, COUNT)
    x[1700, 2] = x[40, 2] = value
    labels[[40, 1700]] = label
    x[600, 4], labels[600] = value, 3
    x[601, 4], labels[601] = value, 11
    result = compile_program(SPELLINGS["transposed"], x, labels)
    assert_same(result, compute_expected(x, labels))
    assert np.isnan(result[:, 4]).all() and np.isnan(result[:, 2]).sum() >= CLASSES - 1


def test_rows_are_counted() -> None:
    labels = np.random.default_rng(4).integers(-1, CLASSES + 1, COUNT)
    x = whole_numbers("float32")

    def program(x: Any, labels: Any) -> Any:
        return lax.reduce_sum(one_hot(labels, x.dtype), (0,))

    assert scatters(program, x, labels) == 1
    assert_same(
        compile_program(program, x, labels), np.bincount(labels + 1)[1 : CLASSES + 1].astype("float32")
    )


def test_sums_of_many_rows_are_sums_of_sums() -> None:
    x = np.random.default_rng(5).random((2**17, 8)).astype("float32")
    results = compile_program(SPELLINGS["transposed"], x, np.zeros(len(x), np.int64))
    assert_same(results[0], x.sum(axis=0, dtype="float64").astype("float32"), ulp=8)
    assert not results[1:].any()


def test_what_is_no_one_hot_matrix_stays_a_product() -> None:
    x, labels = whole_numbers("float32"), np.random.default_rng(6).integers(0, CLASSES, COUNT)

    def twice(x: Any, labels: Any) -> Any:
        return lax.mul(one_hot(labels, x.dtype), x.dtype.type(2)).T @ x

    def along_the_classes(x: Any, labels: Any) -> Any:
        return one_hot(labels, x.dtype) @ x[:CLASSES]

    for program in (twice, along_the_classes):
        assert scatters(program, x, labels) == 0
    assert_same(compile_program(twice, x, labels), 2 * compute_expected(x, labels))
    assert_same(compile_program(along_the_classes, x, labels), x[labels])


@pytest.mark.parametrize("axis", [0, 1])
def test_products_of_each_class_or_row_by_itself_stay_products(axis: int) -> None:
    """Both operands have the other dimension as one of a batch."""
    x = np.random.default_rng(7).integers(-9, 10, (COUNT, CLASSES)).astype("float32")
    labels = np.random.default_rng(8).integers(0, CLASSES, COUNT)
    numbers = (((axis,), (axis,)), ((1 - axis,), (1 - axis,)))

    def program(x: Any, labels: Any) -> Any:
        return lax.dot_general(one_hot(labels, x.dtype), x, numbers)

    member = (labels[:, None] == np.arange(CLASSES)).astype("float32")
    assert_same(compile_program(program, x, labels), (member * x).sum(axis=axis))


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_a_label_stands_for_each_class_whose_number_it_is_when_numbers_begin_anew(dtype: str) -> None:
    shape = (COUNT, 600)
    labels = np.random.default_rng(9).integers(0, 256, COUNT).astype("uint8").view(dtype)
    x = whole_numbers("float32")

    def program(x: Any, labels: Any) -> Any:
        numbers = lax.broadcasted_iota(dtype, shape, 1)
        member = lax.convert_element_type(lax.eq(lax.broadcast_in_dim(labels, shape, (0,)), numbers), x.dtype)
        return lax.concatenate([member.T @ x, lax.reshape(lax.reduce_sum(member, (0,)), (600, 1))], 1)

    member = (labels[:, None] == np.arange(600).astype(dtype)).astype("float32")
    expected = np.concatenate([member.T @ x, member.sum(axis=0)[:, None]], 1)
    assert_same(compile_program(program, x, labels), expected)
