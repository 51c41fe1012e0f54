"""`xarr.lib` and `xarr.emath`: windows as dimensions, and functions that are complex where they must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.functions import expression
from xarr.errors import ArgumentError, AxisError, ShapeError, TracedValueError, ValueRangeError
from xarr.lib.stride_tricks import sliding_window_view

X = np.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("(x, 2, axis=0, writeable=True)", ArgumentError, "windows are not views"),
        ("(x, 9, axis=0)", ShapeError, "windows of at most 3 elements along axis 0, got 9"),
        ("(x, (2, 3), axis=(0, 0))", ShapeError, "windows of at most 2 elements along axis 0, got 3"),
        ("(x, -1, axis=0)", ShapeError, "sizes of 0 or more"),
        ("(x, 2)", ShapeError, "wanted 2 sizes in window_shape"),
        ("(x, (2, 2), axis=0)", ShapeError, "got 2 sizes for 1 axes"),
        ("(x, 2, axis=7)", AxisError, "axis 7 is out of range"),
    ],
)
def test_refused_windows(text: str, error: type[Exception], words: str) -> None:
    call = expression(f"xp.lib.stride_tricks.sliding_window_view{text}")
    if "writeable" not in text:
        with pytest.raises(ValueError):
            call(np, X)
    with pytest.raises(error, match=words):
        call(xarr, xarr.asarray(X))


@pytest.mark.parametrize(("window", "axis"), [(2, 0), ((2, 3), None), ((2, 2, 2), (1, 0, 1))])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float32", "complex64"])
def test_windows_under_jit(window: Any, axis: Any, dtype: str) -> None:
    x = X.astype(dtype)
    wanted = np.lib.stride_tricks.sliding_window_view(x, window, axis)
    assert_same(xarr.jit(lambda v: sliding_window_view(v, window, axis))(xarr.asarray(x)), wanted)


def test_windows_are_in_the_graph_and_those_summed_at_once_take_no_memory() -> None:
    x = xarr.ones(1_000_000)
    assert "stablehlo.gather" in str(xarr.lower(lambda v: sliding_window_view(v, 3), x).graph)
    windows = sliding_window_view(xarr.ones(2**30, "int8"), 2**14)
    assert windows.shape == (2**30 - 2**14 + 1, 2**14)  # 17 TB, of which nothing is computed


@pytest.mark.parametrize("name", ["sqrt", "log", "arcsin"])
def test_complex_results_need_values(name: str) -> None:
    function = getattr(xarr.emath, name)
    assert function is getattr(xarr.lib.scimath, name)
    with pytest.raises(
        TracedValueError, match=rf"emath\.{name}: .*write xarr\.{name}\(x\.astype\(complex\)\)"
    ):
        xarr.jit(function)(xarr.ones(2))
    assert_same(xarr.jit(function)(xarr.ones(2, complex)), getattr(np.emath, name)(np.ones(2, complex)))
    assert function(xarr.full(2, -2, xarr.bfloat16)).dtype == xarr.complex64


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((3, 2), (8, 8)),
        ((2, 2, 2), (16, 8, 8)),
        ((4,), (0,)),
        ((0, 3), (999, 8)),
        ((), ()),
        (None, None),
    ],
    ids=str,
)
def test_as_strided_is_numpys(shape: Any, strides: Any) -> None:
    for values in (np.arange(6.0), np.arange(6).reshape(2, 3)):
        wanted = np.lib.stride_tricks.as_strided(values, shape, strides).copy()
        assert_same(xarr.lib.stride_tricks.as_strided(xarr.asarray(values), shape, strides), wanted)
    x = xarr.arange(6)
    windows = xarr.lib.stride_tricks.as_strided(x, (4, 3), x.strides * 2)
    windows[0] = 9
    assert_same(x, np.arange(6))


def test_as_strided_reads_no_other_memory() -> None:
    x = xarr.arange(6)
    for shape, strides in (((7,), (8,)), ((2,), (-8,)), ((2, 4), (24, 8)), ((2,), (41,))):
        with pytest.raises(ValueRangeError, match="as_strided: wanted bytes 0 to 48"):
            xarr.lib.stride_tricks.as_strided(x, shape, strides)
    assert_same(xarr.lib.stride_tricks.as_strided(x[::-1], (6,), (8,)), np.arange(6)[::-1].copy())
    with pytest.raises(ShapeError, match="wanted sizes of 0 or more and a stride for each"):
        xarr.lib.stride_tricks.as_strided(x, (2, 2), (8,))
    with pytest.raises(TracedValueError):
        xarr.jit(lambda x: xarr.lib.stride_tricks.as_strided(x, (2,), (8,)))(x)
