"""One element of each short sorted row: comparisons in lanes give what the sort gives, to the bit."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.base.host.memory import pool
from xarr.compiler.passes.short_sorts import compare_short_rows
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph

Array = np.ndarray[Any, Any]
pytestmark = pytest.mark.implicit
TARGET = Target()
DTYPES = ("bool", "int8", "uint16", "int64", "float16", "bfloat16", "float32", "float64")


def rows_of(dtype: str, size: int) -> Array:
    """(size, 300): each row along the first axis has equal elements, and floats have NaN and both zeros."""
    numbers = np.random.default_rng(size).integers(-3, 4, (size, 300)).astype(np.float64)
    if "float" in dtype:
        numbers[numbers == 3] = np.nan
        numbers[numbers == 2] = -0.0
        numbers[numbers == -3] = np.inf
    elif dtype.startswith("u"):
        numbers = abs(numbers)
    return np.asarray(xarr.asarray(numbers).astype(dtype))


def sorts_left(function: Any, *shape: int, dtype: str = "float64") -> int:
    graph = xarr.jit(function).lower(np.zeros(shape, dtype)).stage("decomposed")
    assert isinstance(graph, Graph)
    after = compare_short_rows(graph, TARGET)
    after.verify()
    return sum(isinstance(node.op, ops.Sort) for node in after.nodes)


@pytest.mark.sampled
@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("size", [2, 3, 9])
def test_the_elements_are_those_of_a_stable_sort(dtype: str, size: int) -> None:
    x = rows_of(dtype, size)
    whole = np.asarray(xarr.jit(lambda x: lax.sort(x, 0))(x))
    for k in range(size):
        element = np.asarray(xarr.jit(lambda x, k=k: lax.sort(x, 0)[k])(x))
        assert_same(element, whole[k])


@pytest.mark.usefixtures("fused")
def test_what_is_sliced_along_other_axes() -> None:
    x = np.random.default_rng(0).normal(size=(4, 5, 20))
    got = xarr.jit(lambda x: lax.sort(x, 1)[1:3, 2, ::3])(x)
    assert_same(np.asarray(got), np.sort(x, 1)[1:3, 2, ::3])


@pytest.mark.usefixtures("on_numpy", "fused")
def test_a_median_of_windows_is_sorted_by_no_library() -> None:
    def median(x: Any) -> Any:
        return lax.sort(xarr.stack([xarr.roll(x, k) for k in range(5)]), 0)[2]

    text = str(xarr.jit(median).lower("f64[1000]").stage("plan"))
    assert "sort" not in text


@pytest.mark.usefixtures("on_numpy", "fused")
def test_a_stack_whose_rows_lie_together_is_none_before_it_is_sorted() -> None:
    def median(x: Any) -> Any:
        windows = xarr.stack([xarr.roll(x, k) for k in range(5)], axis=-1)
        return xarr.sort(windows, axis=-1)[..., 2]

    x = np.random.default_rng(1).normal(size=(20, 9))
    x[3, 4] = np.nan
    text = str(xarr.jit(median).lower(x).stage("plan"))
    assert "sort" not in text
    assert_same(xarr.jit(median)(x), np.sort(np.stack([np.roll(x, k) for k in range(5)], axis=-1))[..., 2])


@pytest.mark.usefixtures("on_numpy", "fused")
def test_large_arrays_take_less_memory_than_a_library() -> None:
    """Which copies the rows to sort them; arrays between groups of comparisons are gone sooner."""
    x = xarr.asarray(np.random.default_rng(0).random((9, 100_000))).evaluate()
    median = xarr.jit(lambda x: lax.sort(x, 0)[4])
    xarr.evaluate(median(x))
    pool.clear()
    tracemalloc.start()
    result = median(x).evaluate()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most <= x.nbytes + 2**14
    assert_same(result, np.sort(np.asarray(x), axis=0)[4])


def test_other_sorts_stay() -> None:
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100) == 0
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100_000, dtype="int32") == 0
    assert sorts_left(lambda x: lax.sort(x, 0), 9, 100) == 1, "all is wanted"
    assert sorts_left(lambda x: lax.sort(x, 0)[:2], 9, 100) == 1
    assert sorts_left(lambda x: (lax.sort(x, 0)[0], lax.sort(x, 0)[1]), 9, 100) == 1
    assert sorts_left(lambda x: lax.sort(x, 1)[:, 4], 100, 9) == 1, "rows lie together"
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 11, 100) == 1, "too long"
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100, dtype="complex64") == 1
    assert sorts_left(lambda x: lax.sort((x, -x), 0, num_keys=1)[0][4], 9, 100) == 1


# --- the first elements of rows ----------------------------------------------------------------------------------


def rows(x: Any) -> Any:
    """Four rows of a hundred elements of a vector."""
    return x[xarr.arange(400) * 7 % x.size].reshape(4, 100)


#: Functions of a vector, of 4 rows too, and whether they want a few of its sorted elements and nothing else.
FIRST: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "top_k": (lambda x: lax.top_k(x, 3), True),
    "argsort": (lambda x: xarr.argsort(x)[:2], True),
    "sort": (lambda x: (xarr.sort(x)[:4:2], xarr.sort(x)[0]), True),
    "descending": (lambda x: xarr.argsort(x, descending=True)[1:3], False),
    "beside others": (lambda x: [e[:2] for e in lax.sort((x, xarr.arange(x.size) * 3), num_keys=1)], True),
    "two keys": (lambda x: [e[:2] for e in lax.sort((x, x[::-1]), num_keys=2)], False),
    "many": (lambda x: xarr.sort(x)[:9], False),
    "all too": (lambda x: (xarr.sort(x)[:2], xarr.sort(x)), False),
    "the last": (lambda x: xarr.sort(x)[-2:], False),
    "rows": (lambda x: lax.top_k(rows(x), 2), True),
    "values of rows": (lambda x: lax.top_k(-rows(x).reshape(2, 2, 100), 2)[0][:, :, 1], True),
    "places in rows": (lambda x: xarr.argsort(rows(x), axis=1)[:, :2], True),
    "one row": (lambda x: lax.top_k(rows(x)[:1], 5), True),
    "short rows": (lambda x: lax.top_k(x.reshape(4, 10), 2), False),
    "some rows": (lambda x: xarr.argsort(rows(x), axis=1)[1:, :2], False),
    "columns": (lambda x: xarr.argsort(rows(x).T, axis=0)[:2], False),
    "beside others in rows": (
        lambda x: [e[:, :2] for e in lax.sort((rows(x), rows(x)[::-1]), num_keys=1)],
        False,
    ),
}


@pytest.mark.sampled
@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("dtype", ["float64", "float32", "int64", "uint32"])
@pytest.mark.parametrize("name", FIRST)
def test_first_elements_are_those_of_the_sort(name: str, dtype: str) -> None:
    function, is_few = FIRST[name]
    x = np.random.default_rng(1).integers(0, 9, 40).astype(dtype)
    if x.dtype.kind == "f":
        x[[3, 8, 20, 21, 30]] = -0.0, np.nan, -np.inf, 0.0, np.inf
    else:
        x[[3, 8, 20, 21, 30]] = [np.iinfo(dtype).max, np.iinfo(dtype).min] * 2 + [np.iinfo(dtype).max]
    graph = xarr.jit(function).lower(x).stage("fused")
    assert (ops.Sort not in graph.op_classes) == is_few
    leaves = xarr.tree.leaves(xarr.jit(function)(x)), xarr.tree.leaves(function(xarr.asarray(x)))
    for got, wanted in zip(*leaves, strict=True):
        assert_same(np.asarray(got), np.asarray(wanted))


@pytest.mark.usefixtures("fused")
@pytest.mark.parametrize("dtype", ["int64", "uint32", "float64"])
def test_elements_of_rows_are_read_from_what_is_compared(dtype: str) -> None:
    """Of floats that is not all: of both zeros, and of all NaNs, one is compared."""
    x = np.random.default_rng(3).integers(0, 2**31, (3, 5, 80)).astype(dtype)
    first = xarr.jit(lambda x: xarr.sort(x)[:, :, :3])
    assert (ops.Sort in first.lower(x).stage("fused").op_classes) == (dtype == "float64")
    assert_same(first(x), np.sort(x)[:, :, :3])


@pytest.mark.parametrize("dtype", ["uint64", "int8", "float16", "bool"])
def test_other_types_are_sorted(dtype: str) -> None:
    assert (
        ops.Sort in xarr.jit(lambda x: xarr.sort(x)[:2]).lower(np.zeros(40, dtype)).stage("fused").op_classes
    )


def test_equal_elements_keep_their_order_where_keys_are_the_greatest() -> None:
    x = np.full(12, np.iinfo(np.int64).max)
    assert np.asarray(xarr.jit(lambda x: xarr.argsort(x)[:3])(x)).tolist() == [0, 1, 2]
