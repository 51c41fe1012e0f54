"""Threads that share the iterations of a phase, in machine code: no Python, and so no lock of it, is between them.

    i64 share(ptr pool, ptr phase, ptr buffers, i64 begin, i64 end, i64 least, i64 parts, i64 wake, i64 most)
        runs the iterations from `begin` on; the first that was not run: `end`, or less after `most` nanoseconds
    void serve(ptr worker)
        what a thread does for ever: it runs iterations, looks out for more for a while, and sleeps

The iterations that are left are cut into `parts`, of which the next thread takes the first, but `least` iterations at
once: large ranges first, small ones at the end.  The caller works too, and waits only for threads that have started:
one that wakes up late finds the gate closed.

The `gate` counts the threads that are inside and says whether more may come in.  What they run is written while it
is closed and no thread is inside.  A thread that goes to sleep says so, then looks at the gate once more; who opens it
looks for sleepers afterwards, in the one order that all threads agree upon: so none of them misses the other.

Sources: LLVM Language Reference, "Atomic Memory Ordering Constraints"; CPython, Include/pythread.h.
"""

from __future__ import annotations

from collections.abc import Mapping
from string import Template
from typing import Final

from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.processor import PROCESSOR

#: Bytes between numbers that different threads write, two cache lines.
APART: Final = 2 * PROCESSOR.line_bytes
#: Bytes from the start of a pool to its numbers.
USER, GATE, NEXT, JOB, WORKERS = (APART * k for k in range(5))
#: In `JOB`: the phase, its buffers, the end of its iterations, the least range, the parts, until when to take ranges.
JOB_FIELDS: Final = ("phase", "buffers", "end", "least", "parts", "until")
#: Bytes from `WORKERS` to the number of workers, to the lock on which a caller sleeps, and to the first worker.
NUMBER, DONE, FIRST = 0, 8, APART
#: Bytes from the start of a worker to whether it sleeps, to the lock on which it does, and to its pool.
SLEEPS, LOCK, POOL = 0, 8, 16

#: In the gate, above the number of those inside: whether it is open, whether the caller sleeps.
_OPEN: Final = 2**32
_CALLER_SLEEPS: Final = 2**33
_INSIDE: Final = _OPEN - 1

#: Iterations that are handed out together are a multiple of this: whole registers.
GRAIN: Final = 256
#: How often it looks between two looks at the clock, at which it also lets others have the processor.
LOOKS: Final = 64

#: What tells the processor that a thread looks out for what another writes, and what declares it.
_PAUSES: Final[Mapping[str, tuple[str, str]]] = {
    "x86_64": ("llvm_x86_sse2_pause()", "def llvm_x86_sse2_pause(): ..."),
    "aarch64": ("llvm_aarch64_hint(1)", "def llvm_aarch64_hint(kind: i32): ..."),
    "arm64": ("llvm_aarch64_hint(1)", "def llvm_aarch64_hint(kind: i32): ..."),
}
#: What names in capital letters stand for.
_CONSTANTS: Final = {
    **{"GATE": GATE, "NEXT": NEXT, "WORKERS": WORKERS, "FIRST": FIRST, "APART": APART},
    **{"POOL": POOL, "LOCK": LOCK, "DONE": DONE, "GRAIN": GRAIN, "LOOKS": LOOKS},
    **{
        "OPEN": _OPEN,
        "CALLER_SLEEPS": _CALLER_SLEEPS,
        "INSIDE": _INSIDE,
        "AWAKE": PROCESSOR.awake_nanoseconds,
    },
}

_TEXT: Final = Template("""
def PyThread_release_lock(lock: ptr): ...
def PyThread_acquire_lock(lock: ptr, waits: i32) -> i32: ...
def clock_gettime(clock: i32, time: ptr) -> i32: ...
def sched_yield() -> i32: ...
$DECLARED

def now() -> i64:
    time = stack(i64, 2)
    clock_gettime($CLOCK, time)
    return time.i64[0] * 1000000000 + time.i64[1]

# Look at a gate until one of some bits is as wanted, for a while; the gate.
def look(gate: ptr, wanted: i64, is_set: i1) -> i64:
    until = now() + AWAKE
    while True:
        for k in range(LOOKS):
            seen = atomic_load(gate)
            if ((seen & wanted) != 0) == is_set:
                return seen
            $PAUSE
        sched_yield()
        if now() > until:
            return seen

# Take ranges of iterations and run them, while there are some and there is time.
def ranges(pool: ptr):
    while True:
        begin = atomic_load(pool + NEXT)
        left = pool.JOB_END - begin
        if left <= 0:
            return
        size = left / pool.JOB_PARTS
        if size < pool.JOB_LEAST:
            size = pool.JOB_LEAST
        if size > GRAIN:
            size = (size + GRAIN - 1) & -GRAIN
        if size > left:
            size = left
        if exchange_if(pool + NEXT, begin, begin + size):
            call(void, pool.JOB_PHASE, pool.JOB_BUFFERS, begin, begin + size)
            if now() > pool.JOB_UNTIL:
                return

@exported
def serve(worker: ptr):
    pool = worker.POOL
    gate = pool + GATE
    while True:
        seen = look(gate, OPEN, True)
        if seen & OPEN:
            if exchange_if(gate, seen, seen + 1):
                ranges(pool)
                atomic_and(gate, ~OPEN)
                if atomic_sub(gate, 1) == CALLER_SLEEPS + 1:
                    PyThread_release_lock((pool + WORKERS).DONE)
            continue
        atomic_xchg(worker, 1)
        if atomic_load(gate) & OPEN and exchange_if(worker, 1, 0):
            continue
        PyThread_acquire_lock(worker.LOCK, 1)

@exported
def share(
    pool: ptr, phase: ptr, buffers: ptr, begin: i64, end: i64, least: i64, parts: i64, wake: i64, most: i64
) -> i64:
    if not exchange_if(pool, 0, 1):
        call(void, phase, buffers, begin, end)
        return end
    pool.JOB_PHASE = phase
    pool.JOB_BUFFERS = buffers
    pool.JOB_END = end
    pool.JOB_LEAST = least
    pool.JOB_PARTS = parts
    pool.JOB_UNTIL = now() + most
    atomic_store(pool + NEXT, begin)
    gate = pool + GATE
    atomic_xchg(gate, OPEN)
    workers = pool + WORKERS
    number = workers.i64[0]
    for k in range(wake if wake < number else number):
        worker = workers + FIRST + APART * k
        if exchange_if(worker, 1, 0):
            PyThread_release_lock(worker.LOCK)
    ranges(pool)
    atomic_and(gate, ~OPEN)
    while True:
        seen = look(gate, INSIDE, False)
        if not (seen & INSIDE):
            break
        if exchange_if(gate, seen, seen | CALLER_SLEEPS):
            PyThread_acquire_lock(workers.DONE, 1)
            break
    reached = atomic_load(pool + NEXT)
    atomic_store(gate, 0)
    atomic_store(pool, 0)
    return reached
""")


def text(clock: int, architecture: str) -> str:
    """The module in LLVM IR; clock: the number of the system's monotonic clock."""
    pause, declared = _PAUSES.get(architecture, ("pass", ""))
    lines = [f"{name} = {value}" for name, value in _CONSTANTS.items()]
    for k, name in enumerate(JOB_FIELDS):
        lines.append(
            f"JOB_{name.upper()}: {'ptr' if name in ('phase', 'buffers') else 'i64'} = {JOB + 8 * k}"
        )
    lines.append(_TEXT.substitute(CLOCK=clock, PAUSE=pause, DECLARED=declared))
    return compile_functions("\n".join(lines))
