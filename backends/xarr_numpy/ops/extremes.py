"""The sign of extremes that are zero: 0.0 is larger than -0.0, and NumPy leaves to chance which it gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.dtypes import FLOAT

Array = np.ndarray[Any, Any]


def settled(ufunc: np.ufunc, found: Any, is_among: Callable[[Callable[[Any], Any]], Any]) -> Any:
    """What `np.maximum` or `np.minimum` found, with the sign that wins among zeros; for other ufuncs as it is.

    found: any shape and element type.  is_among: for each of its places whether a test holds for one of the
    numbers that were compared; it is called only where that matters.
    """
    if (ufunc is not np.maximum and ufunc is not np.minimum) or found.dtype not in FLOAT:
        return found
    zero = found == 0
    if not zero.any():
        return found
    negative = ufunc is np.minimum
    doubtful = zero & (np.signbit(found) != negative)
    if not doubtful.any():
        return found
    wins = is_among(lambda values: (values == 0) & (np.signbit(values) == negative))
    return np.where(doubtful & wins, found.dtype.type(-0.0 if negative else 0.0), found)[()]
