"""The sign of extremes that are zero: 0.0 is larger than -0.0, and NumPy leaves to chance which it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.dtypes import FLOAT

Array = np.ndarray[Any, Any]


def settle_zeros(ufunc: np.ufunc, extremes: Any, is_among: Callable[[Callable[[Any], Any]], Any]) -> Any:
    """The result of `np.maximum` or `np.minimum` with the sign that wins among zeros; that of other ufuncs as it is.

    extremes: any shape and element type.  is_among: for each element of it whether a test holds for one of the
    numbers that were compared; it is called only where that matters.
    """
    if (ufunc is not np.maximum and ufunc is not np.minimum) or extremes.dtype not in FLOAT:
        return extremes
    if not extremes.ndim and extremes:  # a number, as the greatest of all elements mostly is
        return extremes
    zero = extremes == 0
    if not zero.any():
        return extremes
    negative = ufunc is np.minimum
    doubtful = zero & (np.signbit(extremes) != negative)
    if not doubtful.any():
        return extremes
    wins = is_among(lambda values: (values == 0) & (np.signbit(values) == negative))
    return np.where(doubtful & wins, extremes.dtype.type(-0.0 if negative else 0.0), extremes)[()]
