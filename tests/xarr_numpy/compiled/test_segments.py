"""Folds of segments in machine code: the bits of what is recorded, whatever starts are in bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same

pytest.importorskip("llvmlite")

from xarr_numpy.compiled import segments
from xarr_numpy.compiled.cpython_abi import struct_offsets

pytestmark = [
    pytest.mark.usefixtures("on_numpy"),
    pytest.mark.skipif(
        struct_offsets.obstacle() is not None, reason="no machine code that reads arrays here"
    ),
]
NAMES = ("add", "multiply", "maximum", "minimum")


def draw(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    size = int(rng.integers(1, 300))
    x = rng.normal(size=size).astype(dtype)
    if rng.random() < 0.4:
        x[rng.integers(size, size=size)] = rng.choice([0.0, -0.0, np.inf, np.nan, 1e30], size).astype(dtype)
    starts = rng.integers(0, size, int(rng.integers(1, 20)))
    return x, np.sort(starts) if rng.random() < 0.5 else starts


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_folds_are_those_of_what_is_recorded(name: str, dtype: str) -> None:
    rng = np.random.default_rng(NAMES.index(name))
    for _ in range(40):
        x, starts = draw(rng, dtype)
        got = segments.fold(name, x, starts)
        with xarr.config(small_arrays="lazy", fusion="off"):
            wanted = np.asarray(getattr(xarr, name).reduceat(xarr.asarray(x), xarr.asarray(starts)))
        assert got is not None
        assert_same(got, wanted)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("name", NAMES)
def test_large_vectors_are_folded_at_once(name: str) -> None:
    x = np.random.default_rng(0).normal(size=50_000)
    starts = np.arange(0, 50_000, 1_000)
    with xarr.config(fusion="auto", small_arrays="eager"):
        array = xarr.asarray(x).evaluate() * 2.0
        folded = getattr(xarr, name).reduceat(array, xarr.asarray(starts))
        assert folded.is_evaluated
    with xarr.config(small_arrays="lazy", fusion="off"):
        assert_same(
            np.asarray(folded), np.asarray(getattr(xarr, name).reduceat(xarr.asarray(x * 2.0), starts))
        )


def test_a_window_is_put_together_of_its_halves() -> None:
    x = np.random.default_rng(1).normal(size=40)
    parts = x.copy()
    while len(parts) > 1:
        parts = parts[::2] + parts[1::2]
        if len(parts) == 1:
            break
        parts = parts if len(parts) % 2 == 0 else np.append(parts, 0.0)
    sixteen = x[1:17].reshape(-1, 2).sum(1).reshape(-1, 2).sum(1).reshape(-1, 2).sum(1).sum()
    assert segments.fold("add", x[:17].copy(), np.array([0]))[0] == x[0] + sixteen  # type: ignore[index]


def test_others_are_left_to_what_is_recorded() -> None:
    x = np.ones(4)
    assert segments.fold("subtract", x, np.array([0])) is None
    assert segments.fold("add", x.astype(np.int8), np.array([0])) is None
    for start in (4, -1, 2**62):
        assert segments.fold("add", x, np.array([0, start])) is None
    assert segments.fold("add", np.ones((4, 2))[:, 0], np.array([0, 2])).tolist() == [2, 2]  # type: ignore[union-attr]
    assert "declare double" in segments.fold_text("add", "d")
    with pytest.raises(xarr.errors.IndexingError, match="out of bounds"):
        xarr.add.reduceat(xarr.asarray(x), [0, 4])
