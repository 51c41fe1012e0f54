"""Which complex numbers NumPy divides as the op does: those of ordinary size."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import numpy as np


@cache
def ordinary_sizes(dtype: np.dtype[Any]) -> tuple[Any, Any]:
    """The least and the greatest size of the larger part of numbers that are neither tiny nor huge."""
    limits = np.finfo(dtype)
    return limits.tiny / limits.eps, limits.max / 4


_TINY, _HUGE = map(float, ordinary_sizes(np.dtype(np.float64)))
#: Element types that a quotient of complex128 is computed of without rounding twice.
_TYPES: Final = frozenset(map(np.dtype, (np.complex128, np.float64, np.int64)))


def are_ordinary(dividend: Any, divisor: Any) -> bool:
    """Whether NumPy's quotient of these arrays and numbers, one of them complex, is the op's: complex128, none extreme.

    The rule of `complex_divide` of the NumPy backend: no number is huge, tiny or NaN, and no divisor is 0.
    """
    return _is_ordinary(divisor, True) and _is_ordinary(dividend, False)


def _is_ordinary(value: Any, is_divisor: bool) -> bool:
    if isinstance(value, int | float | complex) and not isinstance(value, bool):
        larger: Any = max(abs(value.real), abs(value.imag))
        # The greater of NaN and another is either: the sum tells.
        is_sure = abs(value.real) + abs(value.imag) <= _HUGE
        return is_sure and (larger >= _TINY or (larger == 0 and not is_divisor))
    if type(value) is not np.ndarray or value.dtype not in _TYPES:
        return False
    if value.dtype.kind == "c":
        larger = np.maximum(np.abs(value.real), np.abs(value.imag))
    else:
        larger = np.abs(value.astype(np.float64, copy=False))
    fits = (larger >= _TINY) & (larger <= _HUGE)
    if not is_divisor:
        fits |= larger == 0
    return bool(np.count_nonzero(fits) == larger.size)
