"""Run the turns of a loop on several processors."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Final

Phase = Callable[[int, int, int], object]

#: Elements below which handing work to another thread costs more than it saves.
WORTH_A_THREAD: Final = 2**18
#: Turns of the outermost loop that are handed out together are a multiple of this: whole registers.
GRAIN: Final = 256
#: Ranges of turns for each thread, so that one which comes late has less to do.
PIECES: Final = 8


def count() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Worker:
    """A thread that waits for work."""

    def __init__(self) -> None:
        self._wanted = threading.Lock()
        self._done = threading.Lock()
        self._wanted.acquire()
        self._done.acquire()
        self._guard = threading.Lock()
        self._work: Callable[[], None] | None = None
        #: Whether the thread was woken and has not looked for work since.
        self._is_waking = False
        self._is_working = False
        threading.Thread(target=self._run, daemon=True, name="xarr").start()

    def start(self, work: Callable[[], None]) -> None:
        with self._guard:
            self._work = work
            if not self._is_waking:
                self._is_waking = True
                self._wanted.release()

    def finish(self, failures: list[BaseException]) -> None:
        """Wait until the work is done, or take it back: on a busy machine the thread may not have come to it.

        What a signal raises meanwhile, as Ctrl-C does, joins `failures`: the thread still uses the caller's memory.
        """
        with self._guard:
            if self._work is not None:
                self._work = None
                return
        while self._is_working:
            try:
                self._done.acquire()
            except BaseException as error:
                failures.append(error)

    def _run(self) -> None:
        while True:
            self._wanted.acquire()
            with self._guard:
                work, self._work, self._is_waking = self._work, None, False
                self._is_working = work is not None
                self._done.acquire(blocking=False)  # a `finish` that saw it done at once has left it free
            if work is not None:
                work()
                self._is_working = False
                self._done.release()


class _Pool:
    def __init__(self) -> None:
        self.process = os.getpid()
        self.workers = [_Worker() for _ in range(count() - 1)]
        #: Whoever finds it taken works alone.
        self.lock = threading.Lock()


_pool: _Pool | None = None


def run(
    phase: Phase, buffers: int, extent: int, cost: int, pieces_each: int = PIECES, least: int = 2
) -> None:
    """Run all turns of a phase, whose turns compute `cost` elements each.

    Each thread gets about `pieces_each` ranges of them; with fewer than `least` threads there is one range.
    """
    if extent * cost < WORTH_A_THREAD or extent < 2:
        phase(buffers, 0, extent)
        return
    pool = _present()
    if len(pool.workers) + 1 < least or not pool.lock.acquire(blocking=False):
        phase(buffers, 0, extent)
        return
    try:
        _share(pool, phase, buffers, extent, cost, pieces_each)
    finally:
        pool.lock.release()


def _present() -> _Pool:
    global _pool
    if _pool is None or _pool.process != os.getpid():  # threads do not survive a fork
        _pool = _Pool()
    return _pool


def _share(pool: _Pool, phase: Phase, buffers: int, extent: int, cost: int, pieces_each: int) -> None:
    """Cut the turns into pieces, of which every thread takes the next until there is none."""
    threads = len(pool.workers) + 1
    piece = max(1, WORTH_A_THREAD // 2 // max(1, cost), -(-extent // (threads * pieces_each)))
    if piece > GRAIN:
        piece = -(-piece // GRAIN) * GRAIN
    pieces = iter(range(0, extent, piece))
    turn = threading.Lock()
    failures: list[BaseException] = []

    def work() -> None:
        while not failures:
            with turn:
                start = next(pieces, None)
            if start is None:
                return
            try:
                phase(buffers, start, min(start + piece, extent))
            except BaseException as error:  # raised by the caller, when no thread works any more
                failures.append(error)

    try:
        for worker in pool.workers:
            worker.start(work)
        work()
    finally:
        for worker in pool.workers:
            worker.finish(failures)
    if failures:
        raise failures[0]
