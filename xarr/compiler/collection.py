"""Python's collector of garbage, held back while much is made that stays.

A graph of a hundred thousand nodes becomes many objects that live as long as its program.  The collector would go
through all of them again and again, which takes a fifth of the time, and find nothing.  Where there are many they are
old at once when it goes on: it goes through them with all other old objects, as often as these repay that.  While a
user's function is recorded it goes on with young objects, since the function may make any garbage.
"""

from __future__ import annotations

import gc
import operator
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from xarr.base.python_build import is_free_threaded

#: A threshold that no count of collections reaches.
_NEVER: Final = 10**9
#: Young objects that are old when a block ends: to go through them takes longer than a hundredth of a second.
_MANY: Final = 50_000
_lock: Final = threading.RLock()


class _Hold:
    """Blocks that hold the collector back, in all threads: `stop` begins it, `go_on` ends it by what `look` gave.

    A handler of signals, or a finaliser, may enter a block of its own anywhere in this: so the first block is known
    before it stops the collector, and the last one until that goes on.
    """

    def __init__(
        self, look: Callable[[], Any], stop: Callable[[], None], go_on: Callable[[Any], None]
    ) -> None:
        self._look, self._stop, self._go_on = look, stop, go_on
        #: The blocks, with the thread of each, and what was before the first of them.
        self._owners: dict[object, int] = {}
        self._before: Any = None

    @contextmanager
    def block(self) -> Iterator[None]:
        """Hold it back until the last block ends."""
        block = object()
        try:
            with _lock:
                self._owners[block] = threading.get_ident()
                if len(self._owners) == 1:
                    self._before = self._look()
                    self._stop()
            yield
        finally:
            interruption: KeyboardInterrupt | None = None
            while block in self._owners:
                try:
                    with _lock:
                        self._end(block)
                except KeyboardInterrupt as raised:  # ends the program's work, and not this
                    interruption = raised
            if interruption is not None:
                raise interruption

    def _end(self, block: object) -> None:
        if len(self._owners) == 1 and block in self._owners:
            self._resume()
        self._owners.pop(block, None)

    def _resume(self) -> None:
        self._go_on(self._before)
        self._before = None

    def keep_own(self) -> None:
        """Forget other threads than this one, after a fork: none goes on that could end its block."""
        own = threading.get_ident()
        own_blocks = {block: owner for block, owner in self._owners.items() if owner == own}
        if self._owners and not own_blocks:
            self._resume()
        self._owners = own_blocks


def _collect_again(was_enabled: bool | None) -> None:
    if was_enabled:
        has_ages = not is_free_threaded()
        if has_ages and gc.get_count()[0] >= _MANY and not gc.get_freeze_count():
            # In one call, in which no handler of signals runs: what it interrupted would never be collected.
            list(map(operator.call, (gc.freeze, gc.unfreeze)))
        gc.enable()


def _stop_full() -> None:
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, _NEVER)


def _collect_old_again(thresholds: tuple[int, int, int] | None) -> None:
    young, middle, old = gc.get_threshold()
    if old == _NEVER and thresholds is not None:  # unless the program has set another one meanwhile
        gc.set_threshold(young, middle, thresholds[2])


_all: Final = _Hold(gc.isenabled, gc.disable, _collect_again)
_full: Final = _Hold(gc.get_threshold, _stop_full, _collect_old_again)
#: No collections that go through old objects too, in any thread, until the last block ends.
full_collection_paused: Final = _full.block


@contextmanager
def collection_paused() -> Iterator[None]:
    """No collection of cycles, in any thread, until the last block ends; one that is off anyway stays off.

    What the program has thrown away just now is not to grow old, and is collected first: outside of the lock, since
    finalisers run there, which may wait for other threads.
    """
    if gc.isenabled() and not is_free_threaded():
        gc.collect(0)
    with _all.block():
        yield


def _in_child() -> None:
    for hold in (_all, _full):
        hold.keep_own()
    _lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_lock.acquire, after_in_parent=_lock.release, after_in_child=_in_child)
