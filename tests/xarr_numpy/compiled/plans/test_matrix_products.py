"""Products of matrices in machine code: the bits of `numpy.matmul`, and Python where NumPy's loop is not found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.ir.graph import Node

pytest.importorskip("llvmlite")

from xarr_numpy import blas, engine
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.plans import matrix_products, plan_code
from xarr_numpy.compiled.plans.plan_memory import row_major
from xarr_numpy.processor import PROCESSOR

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.skipif(not struct_offsets.works(), reason="no C functions of NumPy's are known here"),
]

RNG = np.random.default_rng(7)
#: (shapes, contracted dimensions, dimensions of the batch)
PRODUCTS: list[tuple[tuple[Any, Any], Any, Any]] = [
    (((20, 30), (30, 40)), ((1,), (0,)), ((), ())),
    (((30, 20), (30, 40)), ((0,), (0,)), ((), ())),
    (((20, 30), (40, 30)), ((1,), (1,)), ((), ())),
    (((1, 30), (30, 40)), ((1,), (0,)), ((), ())),
    (((20, 30), (30,)), ((1,), (0,)), ((), ())),
    (((30,), (30,)), ((0,), (0,)), ((), ())),
    (((20, 1), (1, 40)), ((1,), (0,)), ((), ())),
    (((3, 20, 17), (3, 17, 9)), ((2,), (1,)), ((0,), (0,))),
    (((20, 5, 17), (9, 5, 17)), ((2,), (2,)), ((1,), (1,))),
    (((3, 1, 20, 17), (3, 1, 17, 9)), ((3,), (2,)), ((0, 1), (0, 1))),
    (((2, 3, 20, 17), (2, 3, 17, 5)), ((3,), (2,)), ((0, 1), (0, 1))),
    (((4, 6, 8), (6, 8, 5)), ((1, 2), (0, 1)), ((), ())),
]


@pytest.fixture(autouse=True)
def by_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    """No product is a loop, in loops and outside."""
    numbers = ("max_native_products", "max_native_lane_products", "max_native_call_products")
    limits = PROCESSOR.replace(**dict.fromkeys(numbers, 0), max_small_product=0)
    for module in (engine, plan_code):
        monkeypatch.setattr(module, "PROCESSOR", limits)


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    x = RNG.normal(size=shape) + (1j * RNG.normal(size=shape) if dtype in "FD" else 0)
    return x.astype(dtype)


def time_of(node: Node) -> float | None:
    return matrix_products.product_time(node, [row_major(each.tensor_type) for each in node.operands])


def plan_of(function: Any, *arguments: Any) -> str:
    return str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("plan"))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", ["f", "d", "F", "D"])
@pytest.mark.parametrize(("shapes", "contracted", "batch"), PRODUCTS)
def test_the_bits_are_those_of_single_operations(
    shapes: Any, contracted: Any, batch: Any, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(x: Any, y: Any) -> Any:
        return lax.dot_general(x + x, y, (contracted, batch)) * 2

    operands = [numbers(shape, dtype) for shape in shapes]
    with xarr.config(fusion="off"):
        wanted = np.asarray(xarr.jit(multiply)(*operands))
    with xarr.config(fusion="compiled"):
        assert "in Python" not in plan_of(multiply, *operands)
        assert_same(xarr.jit(multiply)(*operands), wanted)
    monkeypatch.setattr(matrix_products, "loop_of", lambda dtype: None)
    with xarr.config(fusion="compiled"):
        assert "in Python" in plan_of(multiply, *operands)


VIEWS: dict[str, Any] = {
    "transposed": lambda x, y: x @ y.T,
    "transposed matrices": lambda x, y: (
        x.reshape(12, 2, 20).transpose(1, 0, 2) @ y.reshape(12, 2, 20).transpose(1, 2, 0)
    ),
    "parts": lambda x, y: x[2:9, 3:30] @ y[1:, 4:31].T,
    "every second row": lambda x, y: x[::2] @ y.T,
    "every second column": lambda x, y: x[:, ::2] @ y[:, 1::2].T,
    "heads": lambda x, y: (
        x.reshape(12, 2, 2, 10)[:, 1].transpose(1, 0, 2) @ y.reshape(12, 2, 2, 10)[:, 0].transpose(1, 2, 0)
    ),
    "heads of a batch": lambda x, y: (
        x.reshape(2, 6, 4, 10).transpose(0, 2, 1, 3) @ y.reshape(2, 6, 4, 10).transpose(0, 2, 3, 1)
    ),
    "heads of a batch, whose sides lie otherwise": lambda x, y: xarr.einsum(
        "hbqd,bkhd->qbhk", x.reshape(4, 2, 6, 10), y.reshape(2, 6, 4, 10)
    ),
    "heads of a batch of batches": lambda x, y: (
        x.reshape(3, 2, 4, 2, 10).transpose(3, 1, 0, 2, 4)
        @ y.reshape(3, 2, 4, 2, 10).transpose(3, 1, 0, 4, 2)
    ),
    "heads that are copied": lambda x, y: xarr.tensordot(
        x.reshape(4, 6, 20).transpose(1, 2, 0), y.reshape(4, 20, 6), ((2, 1), (0, 1))
    ),
    "copies of parts": lambda x, y: xarr.tensordot(
        x[2:8, 3:39].reshape(6, 4, 9).transpose(2, 1, 0)[1:], y[2:8, :36].reshape(9, 4, 6), ((2, 1), (2, 1))
    ),
    "rows that are repeated": lambda x, y: xarr.broadcast_to(x[:1], x.shape) @ y.T,
    "a vector for each row": lambda x, y: xarr.broadcast_to(x[0, 0], x.shape) @ y.T,
    "a copy": lambda x, y: x.T.reshape(12, 40) @ y.T,
    "a view of a copy": lambda x, y: x.T.reshape(12, 5, 8)[:, 2] @ y[:, :8].T,
    "read otherwise": lambda x, y: x @ y.T + (y.T * 2)[:12].T.sum(),
}


@pytest.mark.parametrize("dtype", ["f", "d", "D"])
@pytest.mark.parametrize("name", VIEWS)
def test_views_have_the_bits_that_python_gives(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def multiply(x: Any, y: Any) -> Any:
        return VIEWS[name](x, y), x + 1

    x, y = numbers((12, 40), dtype), numbers((12, 40), dtype)
    with xarr.config(fusion="compiled"):
        got = [np.asarray(each) for each in xarr.jit(multiply)(x, y)]
        is_native = "in Python" not in plan_of(multiply, x, y)
    monkeypatch.setattr(matrix_products, "loop_of", lambda dtype: None)
    with xarr.config(fusion="compiled"):
        assert "in Python" in plan_of(multiply, x, y)
        for one, other in zip(xarr.jit(multiply)(x, y), got, strict=True):
            assert_same(one, other)
    assert is_native is (name != "heads of a batch of batches")


def test_a_matrix_times_itself_transposed_has_the_bits_of_matmul() -> None:
    def multiply(x: Any) -> Any:
        return x @ x.T, x + 1

    x = numbers((13, 40), "d")
    with xarr.config(fusion="compiled"):
        assert_same(xarr.jit(multiply)(x)[0], np.matmul(x, x.T))


@pytest.mark.parametrize("dtype", ["f2", "i4", "?"])
def test_what_blas_does_not_multiply_is_left_to_python(dtype: str) -> None:
    x = (RNG.normal(size=(9, 9)) * 3).astype(dtype)
    node = lax.dot(xarr.asarray(x), xarr.asarray(x))._node
    assert time_of(node) is None


def test_operands_that_are_copied_and_work_for_threads_are_left_to_python(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def product(*shapes: tuple[int, ...], dims: Any) -> float | None:
        x, y = (xarr.zeros(shape) for shape in shapes)
        with xarr.config(small_arrays="lazy"):
            return time_of(lax.dot_general(x, y, dims)._node)

    assert product((3, 4), (4, 5), dims=(((1,), (0,)), ((), ()))) is not None
    assert product((2, 3, 4), (3, 5), dims=(((1,), (0,)), ((), ()))) is None
    assert product((0, 4), (4, 5), dims=(((1,), (0,)), ((), ()))) is None
    side = 2**8
    assert blas.are_for_threads(2, side**3)
    for several in (True, False):
        monkeypatch.setattr(blas, "can_be_held", lambda several=several: several)
        time = product((2, side, side), (2, side, side), dims=(((2,), (1,)), ((0,), (0,))))
        assert (time is None) is several


def steps(x: Any, y: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, x: xarr.tanh(x @ y + i), x)


def test_loops_multiply_without_python(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers((11, 30), "d"), numbers((30, 30), "d")
    with xarr.config(fusion="compiled"):
        assert "in Python" not in plan_of(steps, x, y)
        got = np.asarray(xarr.jit(steps)(x, y))
    monkeypatch.setattr(matrix_products, "loop_of", lambda dtype: None)
    with xarr.config(fusion="compiled"):
        assert "called back in Python: is done faster by a BLAS" in plan_of(steps, x, y)
        assert_same(xarr.jit(steps)(x, y), got)


def test_long_products_are_called_back(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = numbers((11, 30), "d"), numbers((30, 30), "d")
    monkeypatch.setattr(plan_code, "PROCESSOR", plan_code.PROCESSOR.replace(max_native_blas_nanoseconds=10))
    with xarr.config(fusion="compiled"):
        assert "called back in Python" in plan_of(steps, x, y)
