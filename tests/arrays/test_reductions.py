"""Methods of Array that reduce and accumulate: every argument reaches the function of NumPy's name."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same

HOST = np.array([[3, 1, 2], [0, -5, 4]], np.int32)
METHODS = (
    "sum",
    "prod",
    "cumsum",
    "cumprod",
    "mean",
    "var",
    "std",
    "max",
    "min",
    "all",
    "any",
    "argmax",
    "argmin",
)
CUMULATIVE = ("cumsum", "cumprod")
TYPED = ("sum", "prod", "cumsum", "cumprod", "mean", "var", "std")
KEPT = tuple(name for name in METHODS if name not in CUMULATIVE)


def check(name: str, *arguments: Any, **options: Any) -> None:
    for host in (HOST, HOST % 2):
        got, wanted = (getattr(each, name)(*arguments, **options) for each in (xarr.asarray(host), host))
        assert_same(got, np.asarray(wanted), ulp=2)


@pytest.mark.parametrize("name", METHODS)
def test_axes(name: str) -> None:
    check(name)
    for axis in (0, -1):
        check(name, axis)
        check(name, axis=axis)


@pytest.mark.parametrize("name", TYPED)
def test_element_types(name: str) -> None:
    check(name, 0, np.float32)
    check(name, dtype=np.float64)


@pytest.mark.parametrize("name", KEPT)
def test_dimensions_that_are_kept(name: str) -> None:
    check(name, 1, keepdims=True)


@pytest.mark.parametrize("name", METHODS)
def test_results_in_an_array(name: str) -> None:
    wanted = np.asarray(getattr(HOST, name)(0))
    out = xarr.zeros(wanted.shape, wanted.dtype)
    got = getattr(xarr.asarray(HOST), name)(axis=0, out=out)
    assert got is out
    assert_same(out, wanted, ulp=2)


def test_options() -> None:
    where = np.array([[True, False, True], [False, True, True]])
    check("sum", where=where, initial=10)
    check("prod", 1, where=where, initial=2)
    check("mean", where=where)
    check("any", 0, where=where)
    check("max", 1, initial=-9, where=where)
    check("var", 0, ddof=1)
    check("std", ddof=1)
