"""Diagonals of arrays, beside NumPy's."""

from __future__ import annotations

import re

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import AxisError, ShapeError

SHAPES = [(3, 4), (1, 1), (0, 3), (2, 3, 4), (2, 0, 4)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("offset", [-9, -1, 0, 2, 9])
def test_diagonals_and_traces(shape: tuple[int, ...], offset: int) -> None:
    host = np.arange(np.prod(shape), dtype=np.int16).reshape(shape)
    x = xarr.asarray(host)
    for axes in ((0, 1), (1, 0), (-1, 0), (-2, -1)):
        if len({axis % host.ndim for axis in axes}) == 2:
            assert_same(xarr.diagonal(x, offset, *axes), np.diagonal(host, offset, *axes))
            assert_same(xarr.trace(x, offset, *axes), np.asarray(np.trace(host, offset, *axes)))


def test_traces_take_an_element_type_and_an_array_for_the_result() -> None:
    host = np.full((3, 3), 100, np.int8)
    out = xarr.zeros((), np.float32)
    assert_same(xarr.trace(host, dtype=np.float32), np.float32(300))
    assert xarr.trace(host, out=out) is out
    assert_same(out, np.float32(300))


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 2)], ids=str)
@pytest.mark.parametrize("k", [-2, 0, 1])
def test_square_matrices_of_a_diagonal(shape: tuple[int, ...], k: int) -> None:
    host = np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(shape)
    assert_same(xarr.diagflat(host, k), np.diagflat(host, k))


def test_refusals() -> None:
    for shape in ((), (3,)):
        with pytest.raises(
            ShapeError, match=f"diagonal: wanted rank 2 or more, got shape {re.escape(str(shape))}"
        ):
            xarr.diagonal(np.ones(shape))
    with pytest.raises(AxisError, match=r"diagonal: wanted two different axes, got 1 and -1"):
        xarr.diagonal(np.ones((2, 2)), 0, 1, -1)
    with pytest.raises(AxisError):
        xarr.trace(np.ones((2, 2)), 0, 0, 2)
