"""The maximum and minimum of two scalars: as IEEE 754-2019 has them, whichever operand comes late."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from tests.support.elementwise_kernels import Kernel
from xarr_numpy.compiled.codegen import scalar_extremes

NUMBERS = (0.0, -0.0, 1.0, -1.0, 5e-324, -5e-324, 1e30, -1e30, np.inf, -np.inf, np.nan, -np.nan)


def extreme(op: str, x: float, y: float) -> float:
    """By the text of the standard: NaN if either is, and -0 < +0."""
    if np.isnan(x) or np.isnan(y):
        return np.nan
    if x == y:
        return (x if np.signbit(y) else y) if op == "maximum" else (x if np.signbit(x) else y)
    return max(x, y) if op == "maximum" else min(x, y)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("op", ["maximum", "minimum"])
def test_all_pairs_of_special_numbers(op: str, dtype: Any) -> None:
    with np.errstate(under="ignore"):
        x, y = np.array(list(product(NUMBERS, repeat=2))).astype(dtype).T.copy()
    kernel = Kernel(lambda x, y: getattr(x, op)(y), [np.dtype(dtype)] * 2, 1)
    wanted = np.array([extreme(op, a, b) for a, b in zip(x, y, strict=True)], dtype)
    got = kernel(x, y)
    assert np.array_equal(got, wanted, equal_nan=True)
    numbers = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got)[numbers], np.signbit(wanted)[numbers])


def test_bits_of_one_nan_are_kept() -> None:
    quiet = np.array([0x7FF8_0000_0000_0123, 0xFFF8_0000_0000_0456], np.uint64).view(np.float64)
    numbers = np.array([3.0, -0.0])
    for op in ("maximum", "minimum"):
        kernel = Kernel(lambda x, y, op=op: getattr(x, op)(y), [np.dtype(np.float64)] * 2, 1)
        for operands in ((quiet, numbers), (numbers, quiet)):
            assert kernel(*operands).tobytes() == quiet.tobytes()


def test_what_there_are_functions_for() -> None:
    assert scalar_extremes.is_known("maximum", "float") and scalar_extremes.is_known("minimum", "double")
    assert not scalar_extremes.is_known("maximum", "half")
    assert not scalar_extremes.is_known("maximum", "<8 x double>")
    assert not scalar_extremes.is_known("sqrt", "double")
