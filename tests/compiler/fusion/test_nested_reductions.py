"""A reduction inside the loops of another group: distances, their minima and the indices of those, short rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from xarr import lax
from xarr.base.configuration import current as config
from xarr.compiler.loop_ir.loops import Buffer
from xarr.compiler.schedules.cpu.packing import _PackedCopy
from xarr.ir import ops
from xarr.ir.graph import Graph
from xarr_numpy.processor import PROCESSOR

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(5)


def squares(a: Any, b: Any) -> Any:
    difference = a[:, None, :] - b[None]
    return xarr.sum(difference * difference, axis=-1)


def softmax(x: Any) -> Any:
    powers = xarr.exp(x - xarr.max(x, axis=-1, keepdims=True))
    return powers / xarr.sum(powers, axis=-1, keepdims=True)


def both_ends(a: Any, b: Any) -> Any:
    result = squares(a, b)
    return xarr.min(result, axis=1), xarr.max(result, axis=1), result


def mix(a: Any, b: Any) -> Any:
    """A reduction over two dimensions inside one over the first."""
    terms = xarr.abs(a[:, None, :, None] * b[None, :, None, :])
    return xarr.max(xarr.sum(terms, axis=(2, 3)), axis=0)


#: name: function of two operands, how many kernels it becomes
PROGRAMS: dict[str, tuple[Callable[..., Any], int]] = {
    "squares": (squares, 1),
    "minima of rows": (lambda a, b: xarr.min(squares(a, b), axis=1), 1),
    "minima of columns": (lambda a, b: xarr.min(squares(a, b), axis=0), 1),
    "least distances": (lambda a, b: xarr.min(xarr.sqrt(squares(a, b)), axis=1), 1),
    "minimum of all": (lambda a, b: xarr.min(squares(a, b)), 1),
    "indices": (lambda a, b: xarr.argmin(squares(a, b), axis=1), 1),
    "indices in columns": (lambda a, b: xarr.argmax(squares(a, b), axis=0), 1),
    "softmax of distances": (lambda a, b: softmax(squares(a, b) / -a.shape[1]), 1),
    "sum of powers": (lambda a, b: xarr.sum(xarr.exp(squares(a, b) / -a.shape[1]), axis=1), 1),
    "both ends and all": (both_ends, 2),
    "greatest difference": (lambda a, b: xarr.min(xarr.max(xarr.abs(a[:, None] - b[None]), -1), 1), 1),
    "two dimensions inside": (mix, 1),
}
#: Rows of both operands, and what both have: written out, a loop, an odd one, chains, one longer than chains.
SIZES = [(50, 70, 3), (300, 33, 3), (130, 40, 17), (20, 200, 64), (150, 5, 512), (1, 200, 5)]


@pytest.mark.sampled
@pytest.mark.parametrize(
    ("size", "dtype"),
    [
        *((size, "float32") for size in SIZES),
        *((size, dtype) for size in SIZES[1:3] for dtype in ("float64", "int32")),
        *((SIZES[0], dtype) for dtype in ("float16", "bfloat16")),
    ],
    ids=str,
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_pairs_of_points(name: str, size: tuple[int, int, int], dtype: str) -> None:
    function, count = PROGRAMS[name]
    rows, columns, features = size
    if name == "two dimensions inside":
        features = min(features, 20)
    # Few integers of which sums are exact in any order.
    whole = name in ("indices", "indices in columns") or dtype == "int32"
    arrays = [
        RNG.integers(-3, 4, (n, features)) if whole else RNG.normal(size=(n, features))
        for n in (rows, columns)
    ]
    a, b = (xarr.asarray(array.astype("float32" if whole else "float64"), dtype=dtype) for array in arrays)
    with config(fusion="off"):
        wanted = function(a, b)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        xarr.evaluate(*wanted)
    with config(fusion="compiled"):
        fused = xarr.lower(function, a, b).stage("fused")
        assert isinstance(fused, Graph)
        if min(rows, columns) > 1 and dtype in ("float32", "float64"):
            assert sum(isinstance(node.op, ops.Fusion) for node in fused.nodes) == count, fused.to_text()
        results = function(a, b)
        results = results if isinstance(results, tuple) else (results,)
        xarr.evaluate(*results)
    for mine, exact in zip(results, wanted, strict=True):
        if exact.dtype.kind == "i":
            assert_same(np.asarray(mine), np.asarray(exact))
        else:
            eps = float(xarr.finfo(exact.dtype).eps)
            x, y = np.asarray(mine, np.float64), np.asarray(exact, np.float64)
            np.testing.assert_allclose(x, y, rtol=200 * eps, atol=50 * eps)


@pytest.mark.parametrize(
    ("shape", "dtype", "name"),
    fuzz.one_of_last(
        [(100, 2), (1000, 3), (70, 16), (65, 1), (5, 40, 7), (200, 3, 4), (3, 100, 1, 5)],
        ["bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64"],
        ["sum", "max", "prod", "argmax"],
    ),
    ids=str,
)
def test_short_rows(shape: tuple[int, ...], dtype: str, name: str) -> None:
    x = xarr.asarray(RNG.integers(0, 3, shape), dtype=dtype)
    axes: list[Any] = [-1, (-2, -1)] if len(shape) > 2 and name != "argmax" else [-1]
    for axis in axes:

        def reduce(axis: Any = axis) -> np.ndarray[Any, Any]:
            if name == "argmax":
                return np.asarray(lax.argmax(x, len(shape) - 1, np.int32))
            return np.asarray(getattr(xarr, name)(x + x, axis=axis))

        with config(fusion="off"):
            wanted = reduce()
        with config(fusion="compiled"):
            assert_same(reduce(), wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -0.0, 0.0, -1.0])
def test_the_root_of_the_least_is_the_least_root(value: float) -> None:
    x = np.abs(RNG.normal(size=(40, 70))).astype(np.float32)
    x[3, 5] = value
    x[4] = value
    for axis in (0, 1):
        with config(fusion="off"):
            wanted = np.asarray(xarr.min(xarr.sqrt(xarr.asarray(x)), axis=axis))
        with config(fusion="compiled"):
            assert_same(np.asarray(xarr.min(xarr.sqrt(xarr.asarray(x)), axis=axis)), wanted)


def test_a_sum_of_many_inside_is_accurate() -> None:
    """Sums of sums: the error does not grow with the number of terms."""
    a, b = (RNG.uniform(1, 2, (200, 4096)).astype(np.float32) for _ in range(2))
    exact = np.min(np.abs(a[:, None].astype(np.float64) * b[None, :20]).sum(-1), axis=1)
    with config(fusion="compiled"):
        x, y = xarr.asarray(a), xarr.asarray(b[:20])
        result = np.asarray(xarr.min(xarr.sum(xarr.abs(x[:, None] * y[None]), axis=-1), axis=1))
    np.testing.assert_allclose(result, exact, rtol=2e-6)


def test_what_is_read_once_is_not_copied() -> None:
    """The loops of a reduction that is no inner one are among those that are counted anyway."""
    x = np.arange(5040, dtype=np.float32).reshape(2, 3, 4, 5, 6, 7)

    def total(x: Any) -> Any:
        return xarr.sum(xarr.permute_dims(x, (5, 3, 1, 0, 2, 4)), axis=(0, 2))

    jitted = xarr.jit(total)
    assert "scratch" not in str(jitted.lower(x).stage("program"))
    assert_same(jitted(x), x.transpose(5, 3, 1, 0, 2, 4).sum((0, 2)), ulp=2)


def test_rows_of_a_copy_are_kept_apart_only_where_they_would_meet_in_a_cache() -> None:
    def stride(extent: int) -> int:
        source = Buffer("in0", np.dtype(np.float32), 10**6, "in")
        return _PackedCopy(source, ((1, 3),), 7, extent, 0, False, PROCESSOR).stride

    assert [stride(extent) for extent in (6, 17, 1000, 1024, 1030, 2048)] == [16, 32, 1008, 1088, 1104, 2112]


def test_operands_that_are_not_repeated_are_read_in_order() -> None:
    """Nothing to copy: the inner reduction itself runs in lanes."""
    x = xarr.asarray(RNG.normal(size=(30, 40, 50)))
    with config(fusion="compiled"):
        result = np.asarray(xarr.min(xarr.sum(xarr.exp(x), axis=-1), axis=-1))
        program = xarr.lower(lambda x: xarr.min(xarr.sum(xarr.exp(x), axis=-1), axis=-1), x).stage("program")
    assert "packed" not in str(program)
    np.testing.assert_allclose(result, np.exp(np.asarray(x)).sum(-1).min(-1), rtol=1e-14)


#: Dimensions of both operands: batching, contracting.
PRODUCTS = {
    "matrix": ((300, 3), (400, 3), ((), ()), ((1,), (1,))),
    "transposed": ((300, 40), (40, 400), ((), ()), ((1,), (0,))),
    "batched": ((5, 3, 200), (300, 5, 3), ((0,), (1,)), ((1,), (2,))),
    "two contracted": ((200, 4, 5), (5, 500, 4), ((), ()), ((1, 2), (2, 0))),
    "three free": ((30, 20, 7), (7, 10, 80), ((), ()), ((2,), (0,))),
}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", PRODUCTS)
def test_products_of_matrices_that_are_reduced_at_once(case: str, dtype: str) -> None:
    left, right, batching, contracting = PRODUCTS[case]
    a, b = (xarr.asarray(RNG.normal(size=shape).astype(dtype)) for shape in (left, right))

    def function(a: Any, b: Any) -> Any:
        return xarr.max(1 - 2 * lax.dot_general(a, b, (contracting, batching)), axis=-1)

    with config(fusion="off"):
        wanted = np.asarray(function(a, b))
    with config(fusion="compiled"):
        fused = xarr.lower(function, a, b).stage("fused")
        assert isinstance(fused, Graph)
        assert [type(node.op) for node in fused.nodes] == [ops.Fusion]
        np.testing.assert_allclose(np.asarray(function(a, b)), wanted, rtol=100 * float(np.finfo(dtype).eps))


def test_products_that_are_wanted_whole_stay_with_the_library() -> None:
    a, b = (xarr.asarray(RNG.normal(size=(400, 3))) for _ in range(2))

    def function(a: Any, b: Any) -> Any:
        products = xarr.matmul(a, b.T)
        return xarr.max(products, axis=1), products

    with config(fusion="compiled"):
        fused = xarr.lower(function, a, b).stage("fused")
        assert isinstance(fused, Graph)
        assert any(isinstance(node.op, ops.DotGeneral) for node in fused.nodes)


@pytest.mark.parametrize("columns", [3, 16, 17, 20, 64, 133])
def test_a_reduction_inside_of_lanes_goes_through_a_loop_of_each(columns: int) -> None:
    def function(x: Any) -> Any:
        largest = xarr.max(xarr.abs(x), axis=-1, keepdims=True)
        norm = largest * xarr.linalg.vector_norm(x / largest, axis=-1, keepdims=True)
        return largest, norm, xarr.any(norm < 1e-9, axis=-1)

    x = RNG.uniform(0.1, 0.5, size=(columns, columns)) + 0.5 * np.eye(columns)
    with config(fusion="compiled"):
        largest, norm, _ = xarr.jit(function)(xarr.asarray(x))
    np.testing.assert_array_equal(np.asarray(largest)[:, 0], x.max(axis=1))
    np.testing.assert_allclose(np.asarray(norm)[:, 0], np.linalg.norm(x, axis=1), rtol=1e-14)


def test_what_is_not_worth_a_kernel_leaves_products_whole() -> None:
    a, b = (xarr.asarray(RNG.normal(size=(300, 3))) for _ in range(2))
    with config(fusion="auto"):
        fused = xarr.lower(lambda a, b: xarr.max(xarr.matmul(a, b.T), axis=1), a, b).stage("fused")
        assert isinstance(fused, Graph)
        whole = [node for node in fused.nodes if isinstance(node.op, ops.DotGeneral)]
        assert whole or any(isinstance(node.op, ops.Fusion) for node in fused.nodes)
        assert max(node.tensor_type.size for node in fused.nodes) <= 300 * 300


@pytest.mark.usefixtures("fused")
def test_the_fused_stage_counts_operands_of_an_inner_reduction_once() -> None:
    least = xarr.jit(lambda a, b: xarr.min(squares(a, b), axis=1)).lower("f32[512,32]", "f32[1024,32]")
    fused = least.stage("fused")
    assert isinstance(fused, Graph)
    # Both operands, 64 and 128 KiB, and the copy of the first, which is written and read; the result is 2 KiB.
    assert (
        "reads 262.1 kB (least 196.6 kB), writes 67.6 kB (least 2.0 kB), scratch 65.5 kB" in fused.to_text()
    )


def scaled_norm(a: Any, b: Any) -> Any:
    """The norm of each product of rows, by the largest number of each, which the sum of squares needs too."""
    products = a[:, None, :] * b[None]
    largest = xarr.max(products, axis=2)
    return largest * xarr.sqrt(xarr.sum(xarr.square(products / largest[:, :, None]), axis=2))


@pytest.mark.parametrize("count", [100, 101])
def test_a_reduction_inside_of_another_runs_once_where_it_can(count: int) -> None:
    a, b = (RNG.uniform(1, 2, (50, count)) for _ in range(2))
    with config(fusion="compiled"):
        text = str(xarr.lower(scaled_norm, a, b).stage("loops"))
        result = xarr.jit(scaled_norm)(a, b)
    # Two accumulators of one loop, for every other element.
    assert text.count("by maximum") == 2
    with config(fusion="off"):
        np.testing.assert_allclose(result, xarr.jit(scaled_norm)(a, b), rtol=1e-14)
