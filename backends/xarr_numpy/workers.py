"""Run the iterations of a loop on several processors.

Python handles Ctrl-C between any two instructions of the main thread.  So the thread that shares a loop waits for the
threads whatever is raised meanwhile; and should the very waiting be interrupted, the threads themselves hold
the memory and the machine code that they use, until they are done with the iterations they have.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable
from queue import SimpleQueue
from typing import Final

from xarr.compiler.processors import count as count

Phase = Callable[[int, int, int], object]

#: Elements below which handing work to another thread costs more than it saves.
WORTH_A_THREAD: Final = 2**18
#: Iterations of the outermost loop that are handed out together are a multiple of this: whole registers.
GRAIN: Final = 256
#: Ranges of iterations for each thread, so that one which comes late has less to do.
PIECES: Final = 8


class _Task:
    """Work for one thread, which is done once or taken back."""

    def __init__(self, work: Callable[[], None], held: object) -> None:
        self._work: Callable[[], None] | None = work
        self._held = held
        #: Who came first, the thread or the caller.
        self._first: dict[str, str] = {}
        self._is_over = False
        self._ending = threading.Lock()
        self._ending.acquire()

    def run(self) -> None:
        if self._first.setdefault("by", "thread") != "thread":
            return
        try:
            assert self._work is not None, "it was not taken back"
            self._work()
        finally:
            # Before the caller goes on: who refers to an array decides whether it may be written over.
            self._work = self._held = None
            self._is_over = True
            self._ending.release()

    def settle(self) -> None:
        """Wait until it is done, or take it back: on a busy machine the thread may not have come to it.

        May be called again where something was raised meanwhile.
        """
        if self._first.setdefault("by", "caller") == "caller":
            self._work = self._held = None
            return
        while not self._is_over:
            with self._ending:
                pass


class _Worker:
    """A thread that does one task after the other."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task] = SimpleQueue()
        self.begin = self._tasks.put
        threading.Thread(target=self._run, daemon=True, name="xarr").start()

    def _run(self) -> None:
        while True:
            # No variable keeps the task, and the memory that it holds, while there is none.
            self._tasks.get().run()


class _User:
    """A user of the pool, for as long as this exists."""


class _WorkerPool:
    def __init__(self) -> None:
        self.process = os.getpid()
        self.workers = [_Worker() for _ in range(count() - 1)]
        self._lock = threading.Lock()
        self._user: Callable[[], _User | None] = lambda: None

    def take(self, user: _User) -> bool:
        """Take it for `user`; whether no other user has it."""
        with self._lock:
            if self._user() is not None:
                return False
            self._user = weakref.ref(user)
            return True


_pool: _WorkerPool | None = None


def run(
    phase: Phase,
    buffers: int,
    extent: int,
    cost: int,
    pieces_each: int = PIECES,
    least: int = 2,
    held: object = None,
) -> None:
    """Run all iterations of a phase, which compute `cost` elements each.

    Each thread gets about `pieces_each` ranges of them; with fewer than `least` threads there is one range.
    held: what owns the memory at `buffers` and the code of the phase, where the phase itself does not.
    """
    if extent * cost < WORTH_A_THREAD or extent < 2:
        phase(buffers, 0, extent)
        return
    pool = _present()
    user = _User()
    try:
        if len(pool.workers) + 1 >= least and pool.take(user):
            _share(pool, phase, buffers, extent, cost, pieces_each, held)
        else:  # a thread that finds it taken works alone
            phase(buffers, 0, extent)
    finally:
        del user


def _present() -> _WorkerPool:
    global _pool
    if _pool is None or _pool.process != os.getpid():  # threads do not survive a fork
        _pool = _WorkerPool()
    return _pool


def _share(
    pool: _WorkerPool, phase: Phase, buffers: int, extent: int, cost: int, pieces_each: int, held: object
) -> None:
    """Cut the iterations into pieces, of which every thread takes the next until there is none."""
    threads = len(pool.workers) + 1
    piece = max(1, WORTH_A_THREAD // 2 // max(1, cost), -(-extent // (threads * pieces_each)))
    if piece > GRAIN:
        piece = -(-piece // GRAIN) * GRAIN
    pieces = deque(range(0, extent, piece))
    failures: list[BaseException] = []

    def work() -> None:
        while pieces:
            try:
                start = pieces.popleft()
            except IndexError:
                return
            try:
                phase(buffers, start, min(start + piece, extent))
            except BaseException as error:  # raised by the caller, when no thread works any more
                failures.append(error)
                pieces.clear()

    try:
        tasks = [_Task(work, held) for _ in pool.workers]
        try:
            for worker, task in zip(pool.workers, tasks, strict=True):
                worker.begin(task)
            work()
        except BaseException as error:
            failures.append(error)
        _settle(tasks, pieces, failures)
        if failures:
            raise failures[0]
    finally:
        pieces.clear()
        # What was raised refers to this call, which otherwise would refer to it.
        failures.clear()


def _settle(tasks: list[_Task], pieces: deque[int], failures: list[BaseException]) -> None:
    """Wait until no thread works on these; what is raised meanwhile, as by Ctrl-C, joins `failures`."""
    while tasks:
        try:
            if failures:
                pieces.clear()
            while tasks:
                tasks[-1].settle()
                tasks.pop()
        except BaseException as error:
            failures.append(error)
