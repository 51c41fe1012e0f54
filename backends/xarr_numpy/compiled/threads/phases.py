"""Phases of machine code on several processors.

Threads of their own, which run no Python, take ranges of the iterations of a phase (`work_sharing`).
The caller takes ranges like them and returns when all that were taken are done.  So it holds the memory and the code
for as long as anybody uses them, and where it finds the threads at work for another it works alone.

A thread that sleeps comes some 50 microseconds after it was called, and to call it costs the caller some more.  One
that has just worked looks out for the next phase for a while, and is there at once.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
import time
from functools import cache
from typing import Any, Final

from xarr.compiler.loop_ir.loops import Loop
from xarr_numpy import workers
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.threads import costs, work_sharing as code
from xarr_numpy.processor import PROCESSOR

#: Elements, as xarr_numpy.workers counts them, in a nanosecond.
ELEMENTS: Final = 5


_PHASE: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_SHARE: Final = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 6)


class Phase:
    """A function of machine code for ranges of iterations, how many it has, and what one takes in nanoseconds.

    whole: each thread gets but one range; threads: with fewer there is one range in all.
    """

    def __init__(self, address: int, extent: int, cost: float, whole: bool = False, threads: int = 2) -> None:
        self.address = address
        self.extent = extent
        self.cost = cost
        self.whole = whole
        self.threads = threads
        self.work = extent * cost
        self.function = _PHASE(address)

    def at(self, address: int) -> Phase:
        """The phase whose code is there."""
        return Phase(address, self.extent, self.cost, self.whole, self.threads)

    def with_work(self, extent: int, cost: float) -> Phase:
        """A phase of other iterations."""
        return Phase(self.address, extent, cost, self.whole, self.threads)

    def run(self, buffers: int, held: object = None) -> None:
        """Run all iterations.  held: what owns the memory and the code."""
        if self.work < PROCESSOR.min_shared_nanoseconds or self.extent < 2:
            self.function(buffers, 0, self.extent)
        elif works():
            self._share(_present(), buffers)
        else:
            elements = max(1, round(self.cost * ELEMENTS))
            pieces = 1 if self.whole else workers.PIECES
            workers.run(self.function, buffers, self.extent, elements, pieces, self.threads, held)

    def _share(self, pool: _ThreadPool, buffers: int) -> None:
        plan = self._plan(pool.threads)
        if plan is None:
            self.function(buffers, 0, self.extent)
            return
        share, begin = _share(), 0
        while begin < self.extent:
            begin = share(
                pool.address,
                self.address,
                buffers,
                begin,
                self.extent,
                *plan,
                PROCESSOR.max_uninterrupted_nanoseconds,
            )

    def plan_in_threads(self) -> tuple[int, int, int] | None:
        """As `_plan` for the threads that there are; None too where the phase is little work."""
        if self.work < PROCESSOR.min_shared_nanoseconds or self.extent < 2 or not works():
            return None
        return self._plan(_present().threads)

    def _plan(self, number: int) -> tuple[int, int, int] | None:
        """Arguments of `share`: the least range, the parts into which the rest is cut, and the threads to wake.

        None if one thread of `number` runs all iterations.
        """
        is_soon_done = self.whole or self.work < PROCESSOR.max_uninterrupted_nanoseconds
        if number < self.threads and (number > 1 or is_soon_done):
            return None
        least = (
            -(-self.extent // number) if self.whole else int(PROCESSOR.min_range_nanoseconds / self.cost) + 1
        )
        parts = max(PROCESSOR.ranges_per_thread * number, int(self.work / PROCESSOR.max_range_nanoseconds))
        wake = (
            min(number - 1, int(self.work / PROCESSOR.min_waking_nanoseconds * 2))
            if self.work >= PROCESSOR.min_waking_nanoseconds
            else 0
        )
        return least, parts, wake


def shared_phase(address: int, phase: Loop) -> Phase:
    """A phase for threads to share: with bounds one range each, where ranges repeat work not among two."""
    threads = 3 if phase.repeats else 2
    return Phase(address, costs.extent_of(phase), costs.iteration(phase), bool(phase.bounds), threads)


def shared_addresses() -> tuple[int, int]:
    """The addresses of the pool of threads and of the function `share`, for machine code that shares phases."""
    return _present().address, _functions()["share"]


class _ThreadPool:
    """Threads and the memory that they read, which exist until the process ends."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        size = code.WORKERS + code.FIRST + self.threads * code.APART
        memory = ctypes.create_string_buffer(size + code.APART)
        _keep(memory)
        self.address = -(-ctypes.addressof(memory) // code.APART) * code.APART
        first = self.address + code.WORKERS
        _put(first + code.NUMBER, self.threads - 1)
        _put(first + code.DONE, _lock())
        for number in range(self.threads - 1):
            worker = first + code.FIRST + number * code.APART
            _put(worker + code.LOCK, _lock())
            _put(worker + code.POOL, self.address)
            _start(_functions()["serve"], worker)


def _keep(owner: object) -> None:
    """Never release an object: threads still read it when the interpreter has ended."""
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(owner))


def _put(address: int, number: int) -> None:
    ctypes.c_int64.from_address(address).value = number


def _lock() -> int:
    """A lock that is held: who acquires it waits until another thread releases it."""
    allocate = ctypes.pythonapi.PyThread_allocate_lock
    allocate.restype = ctypes.c_void_p
    lock: int | None = allocate()
    if lock is None:
        raise MemoryError("no lock for a thread")
    acquire = ctypes.pythonapi.PyThread_acquire_lock
    acquire.argtypes = [ctypes.c_void_p, ctypes.c_int]
    acquire(lock, 1)
    return lock


def _start(function: int, argument: int) -> None:
    """A thread that Python does not know; where the system gives none the others do its part."""
    start = ctypes.pythonapi.PyThread_start_new_thread
    start.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    start.restype = ctypes.c_ulong
    start(function, argument)


@cache
def _functions() -> dict[str, int]:
    text = code.text(time.CLOCK_MONOTONIC, platform.machine())
    machine_code = llvm_jit.compile_module(text, ["share", "serve"], serial=("",))
    _keep(machine_code)
    return machine_code.addresses


@cache
def _share() -> Any:
    return _SHARE(_functions()["share"])


def works() -> bool:
    """Whether the system has what the threads need; without, phases run in those of `workers`."""
    return os.name == "posix"


_pool: _ThreadPool | None = None
_making = threading.Lock()


def _present() -> _ThreadPool:
    global _pool
    if _pool is None:
        with _making:
            if _pool is None:
                _pool = _ThreadPool(workers.count())
    return _pool


def _forget() -> None:
    global _pool, _making
    _pool, _making = None, threading.Lock()


if hasattr(os, "register_at_fork"):  # threads do not survive a fork
    os.register_at_fork(after_in_child=_forget)
