"""Products and convolutions of narrow numbers in wider types: exact where they were, and rounded once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.compiler.wide_products import widen_products
from xarr.dtypes import bfloat16, float8_e5m2
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy import engine
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")

NARROW = ("float16", bfloat16, float8_e5m2)
INTEGERS = ("int8", "uint8", "int16", "uint16")


def product(result: Any = None) -> Any:
    """The product of two matrices, or of two stacks of them, with sums of a type."""

    def multiply(x: Any, y: Any) -> Any:
        batch = tuple(range(x.ndim - 2))
        dims = (((x.ndim - 1,), (y.ndim - 2,)), (batch, batch))
        return lax.dot_general(x, y, dims, preferred_element_type=result)

    return multiply


def convolve(x: Any, kernel: Any) -> Any:
    """Windows of three elements with dilation, and padding."""
    dims = ("NWC", "WIO", "NWC")
    return lax.conv_general_dilated(x, kernel, (1,), [(2, 1)], rhs_dilation=(2,), dimension_numbers=dims)


def types_of_products(function: Any, *arrays: Any) -> set[Any]:
    """The types in which the program of a function multiplies matrices, or windows."""
    graph = xarr.jit(function).lower(*arrays).stage("fused")
    assert isinstance(graph, Graph)
    nodes = [node for each in graph.walk() for node in each.nodes]
    kinds = ops.DotGeneral | ops.Convolution
    return {np.dtype(node.op.dtype) for node in nodes if isinstance(node.op, kinds)}


def whole(shape: tuple[int, ...], dtype: Any, low: int = -3) -> Any:
    """Small whole numbers, whose sums of products are exact in any order."""
    numbers = np.random.default_rng(sum(shape)).integers(max(low, 0) if "u" in str(dtype) else low, 4, shape)
    return xarr.asarray(numbers).astype(dtype)


@pytest.mark.parametrize("dtype", NARROW)
@pytest.mark.parametrize(
    "shapes", [((9, 5), (5, 17)), ((5, 3, 2), (5, 2, 4)), ((3, 0), (0, 2)), ((2, 3), (3, 0))]
)
def test_sums_of_narrow_floats(dtype: Any, shapes: Any) -> None:
    """They are formed in float32, and rounded once, or become the wider type that is wanted."""
    x, y = (whole(shape, dtype) for shape in shapes)
    assert types_of_products(product(), x, y) <= {np.dtype(np.float32)}
    for result, wide in ((dtype, np.float32), (np.float32, np.float32), (np.float64, np.float64)):
        wanted = np.matmul(np.asarray(x).astype(wide), np.asarray(y).astype(wide))
        assert_same(xarr.jit(product(result))(x, y), xarr.asarray(wanted).astype(result))


def test_overflow_is_that_of_the_sum() -> None:
    """A sum that fits is right though a part of it does not, and one that does not is infinite."""
    x = xarr.asarray([[300.0, 300.0, 1.0], [300.0, 0.0, np.nan]]).astype("float16")
    y = xarr.asarray([[300.0, 250.0], [-300.0, 0.0], [1.0, 2.0]]).astype("float16")
    wanted = np.asarray([[1.0, np.inf], [np.nan, np.nan]], np.float16)
    assert_same(xarr.jit(product())(x, y), wanted)


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("result", [None, "int8", "uint16", "int32", "int64", "float32"])
def test_sums_of_integers(dtype: str, result: str | None) -> None:
    """They are exact, and wrap as the type of the result does."""
    limits = np.iinfo(dtype)
    numbers = np.random.default_rng(3).integers(limits.min, limits.max, (2, 40, 40), endpoint=True)
    numbers //= 256 if result == "float32" else 1  # for exact sums in any order
    x, y = (xarr.asarray(each).astype(dtype) for each in numbers)
    exact = np.matmul(*numbers)
    assert_same(xarr.jit(product(result))(x, y), exact.astype(result or dtype))
    types = {np.dtype(np.float32)} if dtype.endswith("8") or result == "float32" else {np.dtype(np.float64)}
    assert types_of_products(product(result), x, y) == types


@pytest.mark.parametrize("dtype, number, most", [("int8", -128, 1024), ("uint8", 255, 256)])
def test_sums_as_large_as_a_float_holds(dtype: str, number: int, most: int) -> None:
    """They are exact; longer ones are sums in double precision."""
    for terms, wide in ((most, np.float32), (most + 1, np.float64)):
        x, y = (xarr.full(shape, number, dtype=dtype) for shape in ((9, terms), (terms, 9)))
        assert types_of_products(product("int64"), x, y) == {np.dtype(wide)}
        assert_same(xarr.jit(product("int64"))(x, y), np.full((9, 9), number**2 * terms))


def test_what_is_not_exact_in_floats_stays() -> None:
    """Sums of wide integers wrap in their type."""
    x = xarr.full((9, 9), 2**30 + 1, dtype="int32")
    assert types_of_products(product(), x, x) == {np.dtype(np.int32)}
    wanted = (np.full((9, 9), (2**30 + 1) ** 2 * 9, dtype=object) + 2**31) % 2**32 - 2**31
    assert_same(xarr.jit(product())(x, x), wanted.astype(np.int32))


@pytest.mark.parametrize("shapes", [((9, 5), (5, 17)), ((3, 0), (0, 2))])
def test_bools(shapes: Any) -> None:
    """They are combined by "and" and "or"."""
    x, y = (whole(shape, "int8") > 1 for shape in shapes)
    assert_same(xarr.jit(product())(x, y), np.asarray(x) @ np.asarray(y))


@pytest.mark.parametrize("dtype", ["float16", bfloat16, "int8", "uint8", "int16", "bool"])
def test_convolutions(dtype: Any) -> None:
    """They are those of the operations one by one, to the bit."""
    x, kernel = whole((2, 30, 5), dtype), whole((3, 5, 16), dtype)
    compiled = xarr.jit(convolve)(x, kernel)
    with xarr.config(fusion="off"):
        assert_same(compiled, convolve(x, kernel))
    assert types_of_products(convolve, x, kernel) <= {np.dtype(np.float32), np.dtype(np.float64)}


def test_convolutions_in_loops_stay_as_they_are() -> None:
    """A loop over windows of one feature converts each element by itself."""
    graph = Graph(*_depthwise())
    assert widen_products(graph, engine.schedule) is graph


def _depthwise() -> tuple[list[Any], list[Any]]:
    def function(x: Any, kernel: Any) -> Any:
        dims = ("NWC", "WIO", "NWC")
        return lax.conv_general_dilated(
            x, kernel, (1,), [(1, 1)], dimension_numbers=dims, feature_group_count=8
        )

    graph = xarr.jit(function).lower("f16[2,30,8]", "f16[3,1,8]").stage("decomposed")
    assert isinstance(graph, Graph)
    return list(graph.parameters), list(graph.results)


def test_in_loops_and_once() -> None:
    """Products of one array convert it once; in loops they are as exact, to the step."""
    x = whole((8, 8), "float16", -1)

    def step(_: Any, y: Any) -> Any:
        return (product()(x, y) + product()(y, x)) * 0.125

    wanted = x
    for k in range(5):
        wanted = xarr.asarray(np.asarray(step(k, wanted)))
    assert_same(xarr.jit(lambda x: lax.fori_loop(0, 5, step, x))(x), wanted)
    graph = widen_products(xarr.jit(lambda y: step(0, y)).lower(x).stage("decomposed"), engine.schedule)
    wide = [node for node in graph.nodes if isinstance(node.op, ops.Convert) and node.dtype == np.float32]
    assert len(wide) == 2


def test_other_machines_multiply_them_as_they_are() -> None:
    """It is for libraries without such products."""
    assert PROCESSOR.widens_products and not type(PROCESSOR).__base__().widens_products  # type: ignore[misc]
