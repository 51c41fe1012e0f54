"""Products of matrices in machine code: the bits of `numpy.matmul`, and Python where NumPy's loop is not found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax

pytest.importorskip("llvmlite")

from xarr_numpy import blas, engine
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.plans import matrix_products, plan_code
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


def plan_of(function: Any, *arguments: Any) -> str:
    return str(xarr.jit(function).lower(*map(xarr.asarray, arguments)).stage("plan"))


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
    assert matrix_products.product_time(node) is None


def test_operands_that_are_copied_and_work_for_threads_are_left_to_python() -> None:
    def product(*shapes: tuple[int, ...], dims: Any) -> float | None:
        x, y = (xarr.zeros(shape) for shape in shapes)
        with xarr.config(small_arrays="lazy"):
            return matrix_products.product_time(lax.dot_general(x, y, dims)._node)

    assert product((3, 4), (4, 5), dims=(((1,), (0,)), ((), ()))) is not None
    assert product((2, 3, 4), (3, 5), dims=(((1,), (0,)), ((), ()))) is None
    assert product((0, 4), (4, 5), dims=(((1,), (0,)), ((), ()))) is None
    side = 2**8
    assert blas.are_for_threads(2, side**3)
    assert product((2, side, side), (2, side, side), dims=(((2,), (1,)), ((0,), (0,)))) is None


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
