"""One element of each short sorted row: comparisons in lanes give what the sort gives, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
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


def test_other_sorts_stay() -> None:
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100) == 0
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100_000, dtype="int32") == 0
    assert sorts_left(lambda x: lax.sort(x, 0), 9, 100) == 1, "all is wanted"
    assert sorts_left(lambda x: lax.sort(x, 0)[:2], 9, 100) == 1
    assert sorts_left(lambda x: (lax.sort(x, 0)[0], lax.sort(x, 0)[1]), 9, 100) == 1
    assert sorts_left(lambda x: lax.sort(x, 1)[:, 4], 100, 9) == 1, "rows lie together"
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 11, 100) == 1, "too long"
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100_000) == 1, "arrays between groups take more memory"
    assert sorts_left(lambda x: lax.sort(x, 0)[4], 9, 100, dtype="complex64") == 1
    assert sorts_left(lambda x: lax.sort((x, -x), 0, num_keys=1)[0][4], 9, 100) == 1
