"""What the backend `cupy` computes without the host, on the emulated device: arrays without elements."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr_cupy import host

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

EMPTY, VALUES = np.zeros((0, 3)), np.arange(6.0).reshape(2, 3)

#: Functions of a module with NumPy's names, of an empty array, and of one with elements.
EMPTY_CASES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "sum": lambda xp, e, x: e.sum(0),
    "sum of all": lambda xp, e, x: xp.exp(e).sum() + 1,
    "prod": lambda xp, e, x: e.prod(0),
    "all": lambda xp, e, x: (e > 0).all(0),
    "max": lambda xp, e, x: xp.max(e, axis=0, initial=-5.0),
    "concatenate": lambda xp, e, x: xp.concatenate([e, x, e]) * 2,
    "pad": lambda xp, e, x: xp.pad(e, ((1, 2), (0, 1)), constant_values=3.0),
    "dot": lambda xp, e, x: (e.T @ e + 1) * 2,
    "bincount": lambda xp, e, x: xp.bincount(e.ravel().astype(int), minlength=4),
    "cumsum": lambda xp, e, x: xp.cumsum(e, 0),
    "sort": lambda xp, e, x: xp.sort(e, 0),
    "elements of no index": lambda xp, e, x: x[xp.zeros(0, dtype=int)],
    "arithmetic": lambda xp, e, x: xp.sin(e) * 2,
}


@pytest.mark.parametrize("is_jitted", [False, True], ids=["lazy", "jit"])
@pytest.mark.parametrize("function", EMPTY_CASES.values(), ids=EMPTY_CASES)
def test_arrays_without_elements(
    function: Callable[[Any, Any, Any], Any], is_jitted: bool, cupy: Any
) -> None:
    def call(e: Any, x: Any) -> Any:
        return function(xarr, e, x)

    host.CALLS.clear()
    result = (xarr.jit(call) if is_jitted else call)(xarr.asarray(EMPTY), xarr.asarray(VALUES))
    assert_same(result, np.asarray(function(np, EMPTY, VALUES)))
    assert not host.CALLS
