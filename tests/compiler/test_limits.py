"""Refusals of arrays and reductions that are too large, each next to the largest that is computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.errors import TooLargeError

pytestmark = pytest.mark.usefixtures("on_numpy")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: lax.reshape(xarr.ones(2), (1,) * 64 + (2,)),
            "has 65 dimensions, and arrays of backend 'numpy' have at most 64, built at .*test_limits",
        ),
        (
            lambda: lax.reduce_sum(lax.full((2**61,), 1.0), (0,)),
            r"f64\[2305843009213693952\] has 2\*\*64 bytes or more, which is beyond what backend 'numpy' can address",
        ),
        (
            lambda: lax.full((0, 2**60), 1.0),
            r"f64\[0,1152921504606846976\] has 2\*\*63 bytes or more",
        ),
        (
            lambda: lax.reduce_sum(lax.full((2**41,), 1, "int8"), (0,)),
            r"^reduce: the result s8\[\] has 2\.2e\+12 elements to go through, .* at most 2\*\*40; reduce it in parts",
        ),
        (
            lambda: lax.full((2**45,), 1.0),
            r"f64\[35184372088832\] has 256 TiB, beyond the memory of any machine",
        ),
    ],
)
def test_what_is_too_large_is_refused(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(TooLargeError, match=message):
        np.asarray(call())


@pytest.mark.parametrize("shape", [(1,) * 63 + (2,), (0, 2**59)])
def test_the_largest_are_computed(shape: tuple[int, ...]) -> None:
    assert np.asarray(lax.full(shape, 1.0)).shape == shape
