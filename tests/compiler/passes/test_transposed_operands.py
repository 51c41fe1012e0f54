"""Products of transposed arrays in loops: the arrays are read where they lie, and the products are the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.compiler.passes.transposed_operands import contract_untransposed, multiply_in_order
from xarr.compiler.plan.program_plan import LoopStep, Plan
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.implicit


def whole(*shape: int, dtype: str = "float64") -> Array:
    """Small whole numbers, whose sums of products are exact in any order."""
    return np.random.default_rng(sum(shape)).integers(-4, 5, shape).astype(dtype)


#: Products, the shapes of their operands, and whether they contract what was transposed.
PRODUCTS: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...], bool]] = {
    "transposed matrix and vector": (lambda x, y: x.T @ y, (5, 3), (5,), True),
    "vector and transposed matrix": (lambda x, y: y @ x.T, (5, 3), (3,), True),
    "transposed matrix and matrix": (lambda x, y: x.T @ y, (5, 3), (5, 4), True),
    "matrix and transposed matrix, whose terms lie together": (lambda x, y: x @ y.T, (5, 3), (9, 3), False),
    "and whose columns are few": (lambda x, y: x @ y.T, (5, 3), (4, 3), True),
    "both transposed": (lambda x, y: x.T @ y.T, (5, 3), (4, 5), True),
    "stacks of matrices": (lambda x, y: xarr.matmul(xarr.swapaxes(x, 1, 2), y), (2, 5, 3), (2, 5, 4), True),
    "stacks and a vector": (lambda x, y: xarr.transpose(x, (2, 0, 1)) @ y, (2, 5, 3), (5,), False),
    "an order of free dimensions of its own": (
        lambda x, y: xarr.transpose(x, (1, 0, 2)) @ y,
        (2, 5, 3),
        (3,),
        False,
    ),
}


def count_transposes(graph: Graph) -> int:
    """Count the operands of products that are results of a transpose."""
    products = [node for node in graph.nodes if isinstance(node.op, ops.DotGeneral)]
    assert products
    return sum(isinstance(each.op, ops.Transpose) for node in products for each in node.operands)


@pytest.mark.sampled
@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("dtype", ["float64", "int32", "complex64"])
def test_the_product_is_the_same(name: str, dtype: str) -> None:
    product, left, right, _ = PRODUCTS[name]
    x, y = whole(*left, dtype=dtype), whole(*right, dtype=dtype)

    def repeat(x: Any, y: Any) -> Any:
        return lax.fori_loop(
            0, 3, lambda i, total: total + product(x * (i + 1).astype(dtype), y), 0 * product(x, y)
        )

    wanted = 6 * np.asarray(product(xarr.asarray(x), xarr.asarray(y)))
    got = np.asarray(xarr.jit(repeat)(x, y))
    assert got.dtype == wanted.dtype
    assert np.array_equal(got, wanted)


@pytest.mark.parametrize("name", PRODUCTS)
def test_who_is_contracted_where_it_lies(name: str) -> None:
    product, left, right, is_read = PRODUCTS[name]
    graph = xarr.jit(product).lower(whole(*left), whole(*right)).stage("decomposed")
    assert isinstance(graph, Graph)
    after = contract_untransposed(graph, PROCESSOR)
    after.verify()
    assert after.results[0].type == graph.results[0].type
    assert (count_transposes(after) < count_transposes(graph)) == is_read
    if not is_read:
        assert after is graph


def test_a_matrix_whose_columns_lie_together_comes_behind_the_vector() -> None:
    graph = xarr.jit(lambda x, y: x.T @ y).lower(whole(5, 3), whole(5)).stage("decomposed")
    assert isinstance(graph, Graph)
    (product,) = contract_untransposed(graph, PROCESSOR).nodes
    assert [operand.shape for operand in product.operands] == [(5,), (5, 3)]


@pytest.mark.usefixtures("on_numpy", "fused")
def test_a_loop_copies_no_transposed_matrix() -> None:
    def scale(x: Any) -> Any:
        return lax.fori_loop(0, 9, lambda _, v: (x.T @ (x @ v)) / 64, xarr.ones(64))

    plan = xarr.jit(scale).lower("f64[64,64]").stage("plan")
    assert isinstance(plan, Plan)
    (loop,) = [step for step in plan.steps if isinstance(step, LoopStep)]
    assert "transpose" not in str(loop.body)


#: Products whose transpose is used, and whether their operands are swapped.
TRANSPOSED: dict[str, tuple[Callable[[Any, Any], Any], tuple[int, ...], tuple[int, ...], bool]] = {
    "matrices": (lambda x, y: (x @ y).T, (5, 3), (3, 4), True),
    "of a transposed matrix": (lambda x, y: (x.T @ y).T, (3, 5), (3, 4), True),
    "stacks": (lambda x, y: xarr.swapaxes(x @ y, 1, 2), (2, 5, 3), (2, 3, 4), True),
    "another order": (
        lambda x, y: xarr.transpose(xarr.tensordot(x, y, 1), (2, 1, 0)),
        (2, 5, 3),
        (3, 4),
        False,
    ),
    "sides as wholes": (
        lambda x, y: xarr.transpose(xarr.tensordot(x, y, 1), (2, 0, 1)),
        (2, 5, 3),
        (3, 4),
        True,
    ),
    "the product is used too": (lambda x, y: (x @ y).T @ (x @ y), (5, 3), (3, 4), False),
}


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 3, 1, 2), (1, 0, 3, 2), (3, 0, 1, 2)])
def test_rows_that_a_transpose_keeps_together_are_those_of_the_right_operand(order: tuple[int, ...]) -> None:
    def product(x: Any, y: Any) -> Any:
        return xarr.transpose(x @ y, order)

    x, y = whole(2, 4, 5, 3, dtype="float64"), whole(2, 4, 3, 6, dtype="float64")
    graph = xarr.jit(product).lower(x, y).stage("decomposed")
    assert isinstance(graph, Graph)
    after = multiply_in_order(graph)
    after.verify()
    last = after.results[0].op
    assert isinstance(last, ops.Transpose)
    assert (after is not graph) == (order[-1] == 2)
    assert last.permutation[-1] == (3 if order[-1] >= 2 else 2)
    assert np.array_equal(np.asarray(xarr.jit(product)(x, y)), np.transpose(x @ y, order))


@pytest.mark.parametrize("name", TRANSPOSED)
@pytest.mark.parametrize("dtype", ["float64", "int32", "complex64"])
def test_operands_of_a_transposed_product_are_swapped(name: str, dtype: str) -> None:
    product, left, right, swaps = TRANSPOSED[name]
    x, y = whole(*left, dtype=dtype), whole(*right, dtype=dtype)
    graph = xarr.jit(product).lower(x, y).stage("decomposed")
    assert isinstance(graph, Graph)
    after = multiply_in_order(graph)
    after.verify()
    is_swapped = swaps and dtype != "complex64"  # the parts of NaN would be others
    assert (after is not graph) == is_swapped
    if is_swapped:
        assert ops.Transpose not in {type(after.results[0].op)}
    wanted = np.asarray(product(xarr.asarray(x), xarr.asarray(y)))
    assert np.array_equal(np.asarray(xarr.jit(product)(x, y)), wanted)
