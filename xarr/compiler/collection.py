"""Python's collector of garbage, held back while much is made that stays.

A graph of a hundred thousand nodes becomes many objects that live as long as its program.  The collector would go
through all of them again and again, which takes a fifth of the time, and find nothing.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
#: How many threads hold it back, and whether it ran before the first of them did.
_holders = 0
_was_enabled = False


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection of cycles, in any thread, until the last block ends; one that is off anyway stays off."""
    global _holders, _was_enabled
    with _lock:
        if not _holders:
            _was_enabled = gc.isenabled()
            gc.disable()
        _holders += 1
    try:
        yield
    finally:
        with _lock:
            _holders -= 1
            if not _holders and _was_enabled:
                gc.enable()
