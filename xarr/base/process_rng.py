"""The random numbers of `rng`, which has no state of its own: one generator for the process, on the host."""

from __future__ import annotations

import threading
from typing import Any, Final

import numpy as np

from xarr.dtypes import FLOAT, INTEGER

Array = np.ndarray[Any, Any]

_lock: Final = threading.Lock()
#: Holds the generator from the first draw on: numpy.random is a tenth of the import of xarr.
_generators: Final[list[np.random.Generator]] = []


def seed_rng(seed: int | None = None) -> None:
    """Start the generator of rng_uniform and rng_normal anew, from `seed` or from the system's entropy.

    After the same seed the same calls give the same numbers, if they are computed in the same order.
    """
    with _lock:
        _generators[:] = [np.random.default_rng(seed)]


def _generator() -> np.random.Generator:
    if not _generators:
        _generators.append(np.random.default_rng())
    return _generators[0]


def draw(distribution: str, shape: tuple[int, ...], a: Array, b: Array) -> Array:
    """UNIFORM numbers in [a, b), or NORMAL ones of mean a and deviation b, of the parameters' element type.

    For a >= b uniform numbers are all `a`.
    """
    dtype = a.dtype
    low, high = a[()], b[()]
    if distribution == "NORMAL":
        with _lock:
            wide = _generator().standard_normal(shape)
        return np.asarray(float(low) + float(high) * wide, dtype)
    if not low < high:
        return np.full(shape, low, dtype)
    with _lock:
        if dtype in INTEGER:
            return np.asarray(_generator().integers(int(low), int(high), shape, dtype))
        wide = np.asarray(_generator().random(shape))
    if dtype not in FLOAT:
        return np.zeros(shape, dtype)  # [False, True) holds False alone
    wide *= float(high) - float(low)
    wide += float(low)
    values = wide.astype(dtype, copy=False)
    # Rounding to a shorter type must not reach the end, which is excluded.
    reached = values >= high
    return np.where(reached, low, values) if np.any(reached) else values
