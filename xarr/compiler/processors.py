"""How many processors the loops, sorts and products of one call share.

All that this process may use, by default.  XARR_THREADS says another number; without it, who runs several calls at
once, as Dask's workers do, may say that each is to keep to its own thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from xarr.errors import ConfigError

#: Asked in order for the number of threads of a call in this thread, or None.
_asked: Final[list[Callable[[], int | None]]] = []


def ask_first(threads: Callable[[], int | None]) -> None:
    """Let `threads()` say how many threads a call in the current thread may use; None where it does not know."""
    _asked.insert(0, threads)


def count() -> int:
    """The number of threads that a call may use.  ConfigError for a variable XARR_THREADS that is none."""
    set_number = _from_environment()
    if set_number is not None:
        return set_number
    for threads in _asked:
        number = threads()
        if number is not None:
            return number
    return available()


def available() -> int:
    """The number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _from_environment() -> int | None:
    text = os.environ.get("XARR_THREADS", "")
    if text in ("", "auto"):
        return None
    if not text.isdecimal() or int(text) == 0:
        raise ConfigError(
            f'environment variable XARR_THREADS: wanted a positive integer or "auto", got {text!r}'
        )
    return int(text)
