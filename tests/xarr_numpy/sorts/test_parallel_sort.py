"""The sort of one array: by several threads, stable where equal elements have different bits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from xarr_numpy import workers
from xarr_numpy.sorts import parallel_sort

RNG = np.random.default_rng(3)
SHAPES = [(0,), (1,), (7,), (5001,), (60, 50), (3, 2000), (2, 0, 3), (4, 5, 70)]


def numbers(shape: tuple[int, ...], dtype: str, few: bool) -> np.ndarray[Any, Any]:
    values = RNG.normal(size=shape) * 100
    if few:
        values = np.round(values / 40) * RNG.choice([-1, 1], size=shape)
    values = values.astype(dtype)
    if few and dtype[0] == "f":
        bits = values.view(f"u{values.itemsize}")
        bits[RNG.random(shape) < 0.05] = np.array(np.nan, dtype).view(bits.dtype)
        bits[RNG.random(shape) < 0.05] = np.array(-np.nan, dtype).view(bits.dtype) + 1
    return values


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("few", [False, True], ids=["many", "few"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint32", "int64", "bool"])
def test_as_a_stable_sort(dtype: str, few: bool, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "count", lambda: threads)
    monkeypatch.setattr(parallel_sort, "SHARED", 100)
    for shape in SHAPES:
        x = numbers(shape, dtype, few)
        for axis in range(x.ndim):
            for each in (x, x.T[..., ::-1]):
                result = parallel_sort.sort(each, axis)
                wanted = np.sort(each, axis=axis, kind="stable")
                assert result.flags.c_contiguous and result.dtype == each.dtype
                assert result.tobytes() == wanted.tobytes()


def test_large_arrays_through_the_program() -> None:
    x = numbers((400_000,), "float32", True)
    before = x.copy()
    result = xarr.sort(xarr.asarray(x))
    assert np.asarray(result).tobytes() == np.sort(x, kind="stable").tobytes()
    assert x.tobytes() == before.tobytes()
