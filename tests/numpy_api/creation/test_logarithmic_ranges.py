"""Ranges of numbers whose logarithms are evenly spaced, beside NumPy's."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import ValueRangeError

ENDS = [(0, 3), (2.0, -1.5), (np.array([0.0, 1.0]), 2.0), (np.array([[1.0], [2.0]]), np.array([3.0, 4.0]))]


@pytest.mark.implicit
@pytest.mark.parametrize("ends", ENDS, ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"num": 4, "base": 2.0}, {"num": 5, "endpoint": False}, {"num": 1}, {"num": 0}], ids=str
)
def test_logspace(ends: Any, options: dict[str, Any]) -> None:
    for axis in (0, -1):
        wanted = np.logspace(*ends, **options, axis=axis)
        assert_same(xarr.logspace(*ends, **options, axis=axis), wanted, ulp=2)


@pytest.mark.implicit
def test_logspace_of_several_bases() -> None:
    wanted = np.logspace(0, 3, 4, base=np.array([2.0, 10.0]))
    assert_same(xarr.logspace(0, 3, 4, base=np.array([2.0, 10.0])), wanted, ulp=2)
    wanted = np.logspace(0, [3.0, 1.0], 4, base=np.array([2.0, 10.0]), axis=1)
    assert_same(xarr.logspace(0, np.array([3.0, 1.0]), 4, base=np.array([2.0, 10.0]), axis=1), wanted, ulp=2)


@pytest.mark.sampled
@pytest.mark.implicit
@pytest.mark.parametrize(
    "ends", [(1, 1000), (-1.0, -256.0), (1j, 16j), (np.array([1.0, 4.0]), 64.0)], ids=str
)
@pytest.mark.parametrize(
    "options", [{"num": 4}, {"num": 5, "endpoint": False}, {"num": 1}, {"num": 0}], ids=str
)
def test_geomspace(ends: Any, options: dict[str, Any]) -> None:
    for axis in (0, -1):
        wanted = np.geomspace(*ends, **options, axis=axis)
        assert_same(xarr.geomspace(*ends, **options, axis=axis), wanted)
        traced = xarr.jit(lambda *ends, axis=axis: xarr.geomspace(*ends, **options, axis=axis))
        got = np.asarray(traced(*map(xarr.asarray, ends)))
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=1e-14, atol=1e-14)
        if options.get("endpoint", True) and options["num"] > 1:  # the ends are exact
            for end, k in zip(ends, (0, -1), strict=True):
                assert (got.take(k, axis) == end).all()


def test_ends_of_different_signs_give_nan_without_a_warning() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        between = xarr.geomspace(-1.0, 2.0, 3)
    assert np.isnan(np.asarray(between)[1])


def test_element_types() -> None:
    assert_same(xarr.logspace(0, 3, 4, dtype=np.int32), np.array([1, 10, 100, 1000], np.int32))
    assert_same(xarr.geomspace(1, 1000, 4, dtype=np.int32), np.array([1, 10, 100, 1000], np.int32))
    ends = np.array(1, np.float32), np.array(8, np.float32)
    assert_same(xarr.geomspace(*ends, 4), np.geomspace(*ends, 4))
    assert xarr.logspace(0, 3, 4, dtype=np.float16).dtype == np.float16


def test_refusals() -> None:
    with pytest.raises(ValueRangeError, match=r"geomspace: wanted num >= 0, got -1"):
        xarr.geomspace(1, 10, -1)
    for ends in ((0, 10), (np.array([1.0, 0.0]), np.array([5.0, 5.0])), (1.0, 0.0)):
        with pytest.raises(ValueRangeError, match="geomspace: wanted ends other than 0"):
            xarr.geomspace(*ends, 3)
