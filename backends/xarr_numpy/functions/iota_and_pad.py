"""Counting along a dimension, and padding."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.dtypes import INTEGER
from xarr.ir.types import Ints
from xarr_numpy.functions.conversion import convert

Array = np.ndarray[Any, Any]


def iota(shape: Ints, dimension: int, dtype: np.dtype[Any]) -> Array:
    """0, 1 … along `dimension`, with size 1 in every other one."""
    size = shape[dimension]
    if dtype in INTEGER and size - 1 <= np.iinfo(dtype).max:
        counts = np.arange(size, dtype=dtype)
    else:
        counts = convert(np.arange(size), dtype)
    return counts.reshape([-1 if axis == dimension else 1 for axis in range(len(shape))])


def pad(x: Array, value: Array, low: Ints, high: Ints, interior: Ints) -> Array:
    """XLA's pad: `interior` values between, `low` and `high` around; negative ones cut off."""
    shape = tuple(
        lo + size + max(size - 1, 0) * gap + hi
        for size, lo, hi, gap in zip(x.shape, low, high, interior, strict=True)
    )
    result = np.full(shape, value, x.dtype)
    target, source = [], []
    for size, lo, gap, total in zip(x.shape, low, interior, shape, strict=True):
        step = gap + 1
        first = max(0, -(lo // step)) if lo < 0 else 0
        last = min(size, -(-(total - lo) // step))
        source.append(slice(first, max(first, last)))
        target.append(
            slice(lo + first * step, max(0, lo + last * step), step) if last > first else slice(0, 0)
        )
    result[tuple(target)] = x[tuple(source)]
    return result


SCOPE: Final[dict[str, Any]] = {
    function.__name__: function
    for function in (
        iota,
        pad,
    )
}
