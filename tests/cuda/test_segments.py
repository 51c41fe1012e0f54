"""Scatters that sort their updates, of which an element may have more than one thread folds, on the emulated device."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.cuda.test_cupy_backend import device
from tests.cuda.test_shared_work import bits_in_each_order
from xarr import lax
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy import libraries

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

PART = TARGET.segment_part


def add(x: Any, i: Any, u: Any) -> Any:
    return x.at[i].add(u, mode="drop")


def on_the_cpu(function: Any, arrays: Any) -> np.ndarray[Any, Any]:
    with xarr.use_backend("numpy"):
        return np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays)))


#: How many updates go to each element: long segments at the ends and between short ones, of whole parts, and alone.
COUNTS = {
    "one": [3 * PART + 5],
    "short ones between": [PART + 1, 3, 0, PART, 2 * PART, 1, PART + 1],
    "whole parts": [PART, 2 * PART, PART],
    "much more elements than updates": [0] * 9000 + [PART + 1],
    "more elements than updates": [0] * 900 + [2 * PART + 1] + [0] * 900 + [7],
}


@pytest.mark.sampled
@pytest.mark.parametrize("inner", [(), (3,), (2, 5)])
@pytest.mark.parametrize("name", COUNTS)
def test_exact_sums_have_the_bits_of_the_cpu(
    name: str, inner: tuple[int, ...], cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, counts = np.random.default_rng(1), COUNTS[name]
    i = rng.permutation(np.repeat(np.arange(len(counts)), counts))
    x, u = (rng.integers(-9, 9, (count, *inner)).astype("f4") for count in (len(counts), len(i)))
    device(cupy).races = True
    result = bits_in_each_order(add, [x, i, u], cupy, monkeypatch)
    assert result.tobytes() == on_the_cpu(add, [x, i, u]).tobytes()


@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "complex64"])
def test_long_sums_are_near_and_short_ones_have_the_bits_of_the_cpu(
    dtype: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    i = rng.permutation(np.repeat(np.arange(3), [PART, 700, 40]))
    x, u = rng.normal(size=3) + 5, rng.normal(size=len(i)) / 9

    def function(x: Any, i: Any, u: Any) -> Any:
        return xarr.astype(add(xarr.astype(x, dtype), i, xarr.astype(u, dtype)), "complex128")

    result, wanted = (
        bits_in_each_order(function, [x, i, u], cupy, monkeypatch),
        on_the_cpu(function, [x, i, u]),
    )
    assert result[::2].tobytes() == wanted[::2].tobytes()
    np.testing.assert_allclose(result, wanted, rtol=0.1 if dtype == "bfloat16" else 1e-5)


def test_zeros_keep_their_signs_and_nan_comes_through(cupy: Any) -> None:
    i, u = np.repeat(np.arange(3), 2 * PART), np.full(6 * PART, -0.0)
    u[PART] = np.nan
    result = np.asarray(xarr.jit(add)(np.array([0.0, -0.0, 0.0]), i, u))
    assert np.isnan(result[0]) and np.signbit(result[1:]).tolist() == [True, False]


def test_a_computation_that_is_no_sum_keeps_the_order_of_all_updates(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    arrays = rng.normal(size=4), rng.integers(-1, 5, 4 * PART), rng.normal(size=4 * PART)

    def function(x: Any, i: Any, u: Any) -> Any:
        dims = lax.ScatterDimensionNumbers((), (0,), (0,))
        return (
            lax.scatter_apply(x, i[:, None], lambda a: a * 0.5 + 1, dims, update_shape=i.shape)
            + add(x, i, u) * 0
        )

    result = bits_in_each_order(function, arrays, cupy, monkeypatch)
    np.testing.assert_allclose(result, on_the_cpu(function, arrays), rtol=1e-12)


def test_updates_beyond_all_elements_are_left_out_where_a_library_sorts(
    cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spots that it sorts are of few bits, and the last one is that of what is left out."""
    monkeypatch.setattr(libraries, "MIN_SORTED", 2**6)
    rng = np.random.default_rng(3)
    i = rng.integers(0, 5, 5 * PART)
    x, u = rng.integers(-9, 9, 4).astype("f4"), rng.integers(-9, 9, len(i)).astype("f4")
    assert np.asarray(xarr.jit(add)(x, i, u)).tobytes() == on_the_cpu(add, [x, i, u]).tobytes()
    assert any("uint8" in text or "unsigned char" in text for text in device(cupy).texts)
