"""Products, running totals, windows, scatters and products of matrices of complex numbers, as compiled loops."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import COMPLEXES
from tests.xarr_numpy.compiled.test_complex import COLUMNS, ROWS, draw_numbers, groups
from xarr import lax
from xarr.base.configuration import current as config
from xarr.ir.ops import NativeWhile

pytest.importorskip("llvmlite")

HostArray = np.ndarray[Any, Any]
Function = Callable[[Any], Any]


def roll(x: Any, *shape: int) -> Any:
    """The numbers of x over and over, in another shape."""
    count = int(np.prod(shape))
    flat = xarr.reshape(x, (x.size,))
    return xarr.reshape(xarr.concat([flat] * -(-count // x.size))[:count], shape)


def products_of_rows(x: Any) -> Any:
    """The product of each row at each of its numbers."""
    return xarr.broadcast_to(xarr.prod(x, axis=1, keepdims=True), x.shape)


def window(operation: Any, initial: int, padding: str, strides: tuple[int, int] = (1, 1)) -> Function:
    return lambda x: lax.reduce_window(
        x * 2, xarr.asarray(initial, dtype=x.dtype), operation, (2, 3), strides, padding
    )


#: What is one group, by name, and the operation that must be in it.
FUNCTIONS: dict[str, tuple[Function, str]] = {
    "product of columns": (lambda x: xarr.prod(x * x, axis=0) + 1, "stablehlo.reduce"),
    "product of rows": (lambda x: x - products_of_rows(x), "stablehlo.reduce"),
    "product of a vector": (lambda x: xarr.prod(x[0] + x[1]), "stablehlo.reduce"),
    "running sum of columns": (lambda x: lax.cumsum(x * x, axis=0) + 1, "stablehlo.reduce_window"),
    "running sum of rows": (lambda x: lax.cumsum(x * x, axis=1) + 1, "stablehlo.reduce_window"),
    "running sum from the end": (
        lambda x: lax.cumsum(x * x, axis=1, reverse=True),
        "stablehlo.reduce_window",
    ),
    "running product of columns": (lambda x: lax.cumprod(x + x, axis=0), "stablehlo.reduce_window"),
    "sums of windows": (window(lax.add, 0, "SAME", (1, 2)), "stablehlo.reduce_window"),
    "products of windows": (window(lax.mul, 1, "VALID"), "stablehlo.reduce_window"),
    "products of padded windows": (window(lax.mul, 1, "SAME"), "stablehlo.reduce_window"),
    "scattered products": (
        lambda x: x.at[xarr.asarray([1, 1, 2, 5])].multiply(x[:4] + 1),
        "stablehlo.scatter",
    ),
    "scattered quotients": (
        lambda x: x.at[xarr.asarray([1, 1, 2, 5])].divide(x[:4] + 1),
        "stablehlo.scatter",
    ),
}
#: Sums of products.  BLAS multiplies them by 1 + 0 i, which makes NaN of infinite ones; the reference does not.
PRODUCTS: dict[str, tuple[Function, str]] = {
    "convolution": (
        lambda x: lax.conv_general_dilated(x[None, None], x[None, None, :3, :3], (1, 1), "SAME"),
        "stablehlo.convolution",
    ),
    "convolution of each feature": (
        lambda x: lax.conv_general_dilated(
            *(roll(x, 1, 12, 16), roll(x, 3, 1, 16), (1,), "SAME"),
            dimension_numbers=("NWC", "WIO", "NWC"),
            feature_group_count=16,
        ),
        "stablehlo.convolution",
    ),
}


def numbers(seed: int, dtype: str, special: bool = True) -> HostArray:
    x = draw_numbers(Random(seed), (ROWS, COLUMNS), dtype)
    return x if special else np.where(np.isfinite(x), x, np.asarray(1j, dtype))


def in_loops(function: Function, x: HostArray) -> HostArray:
    with config(fusion="compiled"):
        return np.asarray(xarr.jit(function)(xarr.asarray(x)))


def one_by_one(function: Function, x: HostArray, backend: str = "numpy") -> HostArray:
    with xarr.use_backend(backend), config(fusion="off"):
        return np.asarray(function(xarr.asarray(x)))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_numbers_have_the_bits_of_single_operations(name: str, dtype: str) -> None:
    function, op = FUNCTIONS[name]
    with config(fusion="compiled"):
        assert f"in {op}" in groups(function, xarr.asarray(numbers(0, dtype)))
    for seed in range(3):
        x = numbers(seed, dtype)
        assert_same(in_loops(function, x), one_by_one(function, x))


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", [*FUNCTIONS, *PRODUCTS])
def test_ordinary_numbers(name: str, dtype: str) -> None:
    function, _ = {**FUNCTIONS, **PRODUCTS}[name]
    parts = np.random.default_rng(3).normal(size=(ROWS, COLUMNS, 2))
    x = parts.view(np.complex128)[..., 0].astype(dtype)
    result, expected = in_loops(function, x), one_by_one(function, x)
    # Sums cancel: against the largest of the results.
    scale = np.finfo(dtype).eps * np.abs(expected).max(initial=1)
    assert np.abs(result - expected).max() <= 64 * scale


@pytest.mark.parametrize("dtype", COMPLEXES)
@pytest.mark.parametrize("name", PRODUCTS)
def test_sums_of_products_have_the_bits_of_the_reference(name: str, dtype: str) -> None:
    function, op = PRODUCTS[name]
    with config(fusion="compiled"):
        assert f"in {op}" in groups(function, xarr.asarray(numbers(0, dtype)))
    for special in (True, False):
        x = numbers(1, dtype, special)
        assert_same(in_loops(function, x), one_by_one(function, x, "reference"))
    assert_same(in_loops(function, x), one_by_one(function, x))


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_a_product_of_matrices_inside_a_reduction(dtype: str) -> None:
    """|x y| summed up at once: the product is never stored."""

    def function(x: Any) -> Any:
        rows = roll(x, 700, 3)
        return xarr.sum(xarr.abs(rows @ rows.T), axis=1)

    x = numbers(2, dtype, special=False)
    with config(fusion="compiled"):
        names = groups(function, xarr.asarray(x))
    assert "stablehlo.dot_general" not in names
    assert_same(in_loops(function, x), one_by_one(function, x), ulp=64)


@pytest.mark.parametrize("dtype", COMPLEXES)
def test_a_native_loop_of_products(dtype: str) -> None:
    x = np.exp(1j * np.arange(20).reshape(4, 5)).astype(dtype)

    def function(x: Any) -> Any:
        return lax.fori_loop(0, 6, lambda i, z: z / 2 + products_of_rows(z) / 20, x)

    with config(fusion="compiled"):
        nodes = xarr.lower(function, xarr.asarray(x)).stage("fused").nodes
        assert any(isinstance(node.op, NativeWhile) for node in nodes)
    assert_same(in_loops(function, x), one_by_one(function, x), ulp=64, normwise=True)


@pytest.mark.parametrize(
    "function",
    [
        xarr.prod,
        lambda x: xarr.max(x, axis=0),
        lambda x: lax.cumprod(x, axis=1),
        lambda x: lax.cumlogsumexp(x, axis=1),
    ],
    ids=["product of a matrix", "extremes", "running product of rows", "running log of sums"],
)
def test_what_order_shows_stays_with_numpy(function: Function) -> None:
    x = numbers(3, "complex128")
    assert_same(in_loops(function, x), one_by_one(function, x))
    with config(fusion="compiled"):
        names = groups(function, xarr.asarray(x))
    assert "in stablehlo.reduce" not in names and "in stablehlo.reduce_window" not in names


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1, 1), (1, 5, 1)], ids=str)
def test_empty_and_single_products(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 2 - 1j)
    for function in (lambda x: xarr.prod(x + 1, axis=0), lambda x: lax.cumsum(x + 1, axis=len(shape) - 1)):
        assert_same(in_loops(function, x), one_by_one(function, x))


@pytest.mark.parametrize("size", [(2, 2), (1, 2)], ids=["planes", "rows"])
@pytest.mark.parametrize("dtype", COMPLEXES)
def test_windows_that_choose_numbers(dtype: str, size: tuple[int, int]) -> None:
    """select_and_scatter by real parts, sums of the sources."""

    def function(x: Any) -> Any:
        return lax.select_and_scatter(
            *(x, lambda a, b: xarr.real(a) >= xarr.real(b), size, size, "VALID", x[:: size[0], ::2][:, :9]),
            *(xarr.asarray(0, dtype=x.dtype), lax.add),
        )

    x = np.asarray(numbers(4, dtype)[: ROWS - 1])
    with config(fusion="compiled"):
        assert "in stablehlo.select_and_scatter" in groups(function, xarr.asarray(x))
    assert_same(in_loops(function, x), one_by_one(function, x))
