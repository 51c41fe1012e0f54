"""The random numbers of `rng`, which has no state of its own: one generator for the process, on the host.

Replicas that are threads of one process have one each, and one for what has NumPy's names besides.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from xarr.dtypes import FLOAT, INTEGER

Array = np.ndarray[Any, Any]

_lock: Final = threading.Lock()
#: Holds the generator from the first draw on: numpy.random is a tenth of the import of xarr.
_process: Final[list[np.random.Generator]] = []
#: That of this thread or task: in the process's own, or in one of a block of `separate`.
_own: Final[ContextVar[list[np.random.Generator]]] = ContextVar("generators", default=_process)
#: What stands for numpy.random's own state in this thread or task; None for that itself.
_own_state: Final[ContextVar[list[np.random.RandomState] | None]] = ContextVar("random state", default=None)


def seed_rng(seed: int | None = None) -> None:
    """Start the generator of rng_uniform and rng_normal anew, from `seed` or from the system's entropy.

    After the same seed the same calls give the same numbers, if they are computed in the same order.
    """
    with _lock:
        _own.get()[:] = [np.random.default_rng(seed)]


@contextmanager
def separate() -> Iterator[None]:
    """Let this thread or task have generators of its own in the block, seeded from the system's entropy."""
    tokens = _own.set([]), _own_state.set([])
    try:
        yield
    finally:
        _own.reset(tokens[0])
        _own_state.reset(tokens[1])


def separate_state() -> np.random.RandomState | None:
    """The state that stands for numpy.random's own in this thread or task; None where it is that itself."""
    states = _own_state.get()
    if states is not None and not states:
        states.append(np.random.RandomState())
    return states[0] if states else None


def _generator() -> np.random.Generator:
    generators = _own.get()
    if not generators:
        generators.append(np.random.default_rng())
    return generators[0]


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
