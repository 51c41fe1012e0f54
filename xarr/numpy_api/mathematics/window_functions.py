"""Window functions of signal processing: float64 samples, symmetric, 1 in the middle.

Formulas, and the results for one sample and none, are those of NumPy's reference.
"""

from __future__ import annotations

from collections.abc import Callable
from math import pi

import numpy as np

from xarr.base.typing import Array
from xarr.calls.operands import as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.lax.core import ArrayLike, whole
from xarr.numpy_api.creation.arrays import counted_range, ones, zeros
from xarr.numpy_api.mathematics.elementwise import cos, sqrt
from xarr.numpy_api.mathematics.special_functions import i0
from xarr.numpy_api.sorting.searching import where
from xarr.runtime.handles import commit

__all__ = ["bartlett", "blackman", "hamming", "hanning", "kaiser"]


@remembers_calls
def bartlett(M: int) -> Array:
    """The triangular window of `M` samples that ends in zeros.  Raises ArgumentError for a fractional M.

    Source: NumPy, `bartlett`.
    """
    return _window("bartlett", M, lambda n, last: where(n <= 0, 1 + n / last, 1 - n / last))


@remembers_calls
def blackman(M: int) -> Array:
    """Blackman's window of `M` samples: 0.42 + 0.5 cos + 0.08 cos.  Raises ArgumentError for a fractional M.

    Source: NumPy, `blackman`.
    """

    def samples(n: Array, last: int) -> Array:
        return 0.42 + 0.5 * cos(pi * n / last) + 0.08 * cos(2.0 * pi * n / last)

    return _window("blackman", M, samples)


@remembers_calls
def hamming(M: int) -> Array:
    """Hamming's window of `M` samples: 0.54 + 0.46 cos.  Raises ArgumentError for a fractional M.

    Source: NumPy, `hamming`.
    """
    return _window("hamming", M, lambda n, last: 0.54 + 0.46 * cos(pi * n / last))


@remembers_calls
def hanning(M: int) -> Array:
    """Von Hann's window of `M` samples: 0.5 + 0.5 cos.  Raises ArgumentError for a fractional M.

    Source: NumPy, `hanning`.
    """
    return _window("hanning", M, lambda n, last: 0.5 + 0.5 * cos(pi * n / last))


@remembers_calls
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window of `M` samples, narrower for a larger `beta`.  Raises ArgumentError for a fractional M.

    Source: NumPy, `kaiser`.
    """
    shape = as_array(beta)

    def samples(n: Array, last: int) -> Array:
        return i0(shape * sqrt(1 - (n / last) ** 2)) / i0(shape)

    return _window("kaiser", M, samples)


def _window(name: str, M: int, samples: Callable[[Array, int], Array]) -> Array:
    """`samples` of the numbers 1 - M, 3 - M, … M - 1 and of M - 1."""
    count = whole(name, "the number of samples M", M)
    if count <= 1:
        return ones(1, device=None) if count == 1 else zeros(0, device=None)
    numbers = counted_range(1 - count, count, 2, np.dtype(np.float64))
    return commit(samples(numbers, count - 1))
