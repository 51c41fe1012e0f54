"""Python's collector of garbage, held back while much is made that stays.

A graph of a hundred thousand nodes becomes many objects that live as long as its program.  The collector would go
through all of them again and again, which takes a fifth of the time, and find nothing.
"""

from __future__ import annotations

import gc
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_lock: Final = threading.Lock()
#: The threads that hold it back, each as often as it does, and whether it ran before the first of them did.
_holders: Final[list[int]] = []
_was_enabled = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection of cycles, in any thread, until the last block ends; one that is off anyway stays off."""
    global _was_enabled
    holder = threading.get_ident()
    with _lock:
        if not _holders:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders.append(holder)
    try:
        yield
    finally:
        with _lock:
            _holders.remove(holder)
            _resume()


def _resume() -> None:
    if not _holders and _was_enabled:
        gc.enable()


def _in_child() -> None:
    """After a fork: no other thread goes on that could end its block."""
    if _holders:
        own = threading.get_ident()
        _holders[:] = [holder for holder in _holders if holder == own]
        _resume()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
