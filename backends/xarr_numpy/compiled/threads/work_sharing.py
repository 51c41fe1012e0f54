"""Threads that share the iterations of a phase, as LLVM IR: no Python, and so no lock of it, is between them.

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

from collections.abc import Mapping, Sequence
from typing import Final

from xarr_numpy.compiled.codegen.shorthand import expand
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
    "x86_64": ("call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"),
    "aarch64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
    "arm64": ("call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"),
}

_DECLARATIONS: Final = """
declare void @PyThread_release_lock(ptr)
declare i32 @PyThread_acquire_lock(ptr, i32)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_yield()
"""


def text(clock: int, architecture: str) -> str:
    """The module; clock: the number of the system's monotonic clock."""
    pause, declared = _PAUSES.get(architecture, ("", ""))
    parts = (_DECLARATIONS, declared, _now(clock), _wait(pause), _RANGES, _serve(), _share())
    return expand("\n".join(parts))


def _now(clock: int) -> str:
    return f"""
define internal i64 @now() nounwind {{
  %time = alloca [2 x i64], align 8
  %status = call i32 @clock_gettime(i32 {clock}, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %rest = load i64, ptr %time[1]
  %whole = mul i64 %seconds, 1000000000
  %now = add i64 %whole, %rest
  ret i64 %now
}}"""


def _wait(pause: str) -> str:
    """Look at a gate until one of some bits is as wanted, for a while; the gate."""
    return f"""
define internal i64 @look(ptr %gate, i64 %bits, i1 %set) nounwind {{
entry:
  %start = call i64 @now()
  %until = add i64 %start, {PROCESSOR.awake_nanoseconds}
  then look:
  %n = phi i64 [ 0, %entry ], [ %n1, %again ], [ 0, %clock ]
  %state = load atomic i64, ptr %gate seq_cst, align 8
  %these = and i64 %state, %bits
  %some = icmp ne i64 %these, 0
  %differs = xor i1 %some, %set
  unless %differs goto end, again:
  {pause}
  %n1 = add i64 %n, 1
  %long = icmp eq i64 %n1, {LOOKS}
  unless %long goto look, clock:
  %yielded = call i32 @sched_yield()
  %time = call i64 @now()
  %late = icmp sgt i64 %time, %until
  unless %late goto look, end:
  ret i64 %state
}}"""


def _load_fields(names: Sequence[str], base: str, offset: int, kinds: Mapping[str, str]) -> str:
    """Lines that load numbers side by side."""
    lines = []
    for k, name in enumerate(names):
        lines.append(f"  %{name}.slot = getelementptr i8, ptr {base}, i64 {offset + 8 * k}")
        lines.append(f"  %{name} = load {kinds.get(name, 'i64')}, ptr %{name}.slot, align 8")
    return "\n".join(lines)


_KINDS: Final = {"phase": "ptr", "buffers": "ptr", "lock": "ptr", "done": "ptr", "pool": "ptr"}

#: Take ranges of iterations and run them, while there are some and there is time.
_RANGES: Final = f"""
define internal void @ranges(ptr %pool) nounwind {{
entry:
{_load_fields(JOB_FIELDS, "%pool", JOB, _KINDS)}
  %next.slot = getelementptr i8, ptr %pool, i64 {NEXT}
  then take:
  %begin = load atomic i64, ptr %next.slot monotonic, align 8
  %left = sub i64 %end, %begin
  %some = icmp sgt i64 %left, 0
  unless %some goto none, cut:
  %part = sdiv i64 %left, %parts
  %is.little = icmp slt i64 %part, %least
  %piece = select i1 %is.little, i64 %least, i64 %part
  %is.long = icmp sgt i64 %piece, {GRAIN}
  %more = add i64 %piece, {GRAIN - 1}
  %rounded = and i64 %more, {-GRAIN}
  %length = select i1 %is.long, i64 %rounded, i64 %piece
  %is.last = icmp sgt i64 %length, %left
  %size = select i1 %is.last, i64 %left, i64 %length
  %after = add i64 %begin, %size
  %exchanged = cmpxchg ptr %next.slot, i64 %begin, i64 %after monotonic monotonic
  %is.mine = extractvalue {{ i64, i1 }} %exchanged, 1
  unless %is.mine goto take, run:
  call void %phase(ptr %buffers, i64 %begin, i64 %after)
  %now = call i64 @now()
  %is.late = icmp sgt i64 %now, %until
  unless %is.late goto take, none:
  ret void
}}"""


def _serve() -> str:
    return f"""
define void @serve(ptr %worker) nounwind {{
entry:
{_load_fields(("lock", "pool"), "%worker", LOCK, _KINDS)}
  %gate = getelementptr i8, ptr %pool, i64 {GATE}
  then look:
  %seen = call i64 @look(ptr %gate, i64 {_OPEN}, i1 true)
  %seen.open = and i64 %seen, {_OPEN}
  %is.open = icmp ne i64 %seen.open, 0
  unless %is.open goto rest, enter:
  %one.more = add i64 %seen, 1
  %entered = cmpxchg ptr %gate, i64 %seen, i64 %one.more seq_cst seq_cst
  %is.in = extractvalue {{ i64, i1 }} %entered, 1
  unless %is.in goto look, work:
  call void @ranges(ptr %pool)
  %closed = atomicrmw and ptr %gate, i64 {~_OPEN} seq_cst
  %left = atomicrmw sub ptr %gate, i64 1 seq_cst
  %is.awaited = icmp eq i64 %left, {_CALLER_SLEEPS + 1}
  unless %is.awaited goto look, tell:
  %done.slot = getelementptr i8, ptr %pool, i64 {WORKERS + DONE}
  %done = load ptr, ptr %done.slot, align 8
  call void @PyThread_release_lock(ptr %done)
  br label %look
rest:
  %was.awake = atomicrmw xchg ptr %worker, i64 1 seq_cst
  %again = load atomic i64, ptr %gate seq_cst, align 8
  %again.open = and i64 %again, {_OPEN}
  %is.open.again = icmp ne i64 %again.open, 0
  unless %is.open.again goto sleep, rise:
  %risen = cmpxchg ptr %worker, i64 1, i64 0 seq_cst seq_cst
  %is.up = extractvalue {{ i64, i1 }} %risen, 1
  if %is.up goto look, sleep:
  %woken = call i32 @PyThread_acquire_lock(ptr %lock, i32 1)
  br label %look
}}"""


def _share() -> str:
    fields = "\n".join(
        f"  %{name}.put = getelementptr i8, ptr %pool, i64 {JOB + 8 * k}\n"
        f"  store {_KINDS.get(name, 'i64')} %{name}, ptr %{name}.put, align 8"
        for k, name in enumerate(JOB_FIELDS)
    )
    return f"""
define i64 @share(ptr %pool, ptr %phase, ptr %buffers, i64 %begin, i64 %end, i64 %least, i64 %parts, i64 %wake,
    i64 %most) nounwind {{
entry:
  %took = cmpxchg ptr %pool, i64 0, i64 1 seq_cst seq_cst
  %is.free = extractvalue {{ i64, i1 }} %took, 1
  if %is.free goto open, alone:
  call void %phase(ptr %buffers, i64 %begin, i64 %end)
  ret i64 %end
open:
  %started = call i64 @now()
  %until = add i64 %started, %most
{fields}
  %next.slot = getelementptr i8, ptr %pool, i64 {NEXT}
  store atomic i64 %begin, ptr %next.slot monotonic, align 8
  %gate = getelementptr i8, ptr %pool, i64 {GATE}
  %opened = atomicrmw xchg ptr %gate, i64 {_OPEN} seq_cst
  %workers = getelementptr i8, ptr %pool, i64 {WORKERS}
  %number = load i64, ptr %workers, align 8
  %is.less = icmp slt i64 %wake, %number
  %called = select i1 %is.less, i64 %wake, i64 %number
  then wakes:
  %w = phi i64 [ 0, %open ], [ %w1, %next ]
  %is.enough = icmp eq i64 %w, %called
  if %is.enough goto work, see:
  %offset = mul i64 %w, {APART}
  %worker.offset = add i64 %offset, {FIRST}
  %worker = getelementptr i8, ptr %workers, i64 %worker.offset
  %roused = cmpxchg ptr %worker, i64 1, i64 0 seq_cst seq_cst
  %slept = extractvalue {{ i64, i1 }} %roused, 1
  unless %slept goto next, rouse:
  %lock.slot = getelementptr i8, ptr %worker, i64 {LOCK}
  %lock = load ptr, ptr %lock.slot, align 8
  call void @PyThread_release_lock(ptr %lock)
  then next:
  %w1 = add i64 %w, 1
  br label %wakes
work:
  call void @ranges(ptr %pool)
  %closed = atomicrmw and ptr %gate, i64 {~_OPEN} seq_cst
  then wait:
  %seen = call i64 @look(ptr %gate, i64 {_INSIDE}, i1 false)
  %inside = and i64 %seen, {_INSIDE}
  %is.over = icmp eq i64 %inside, 0
  if %is.over goto over, rest:
  %waits = or i64 %seen, {_CALLER_SLEEPS}
  %said = cmpxchg ptr %gate, i64 %seen, i64 %waits seq_cst seq_cst
  %is.said = extractvalue {{ i64, i1 }} %said, 1
  unless %is.said goto wait, sleep:
  %done.slot = getelementptr i8, ptr %workers, i64 {DONE}
  %done = load ptr, ptr %done.slot, align 8
  %told = call i32 @PyThread_acquire_lock(ptr %done, i32 1)
  then over:
  %reached = load atomic i64, ptr %next.slot monotonic, align 8
  store atomic i64 0, ptr %gate seq_cst, align 8
  store atomic i64 0, ptr %pool seq_cst, align 8
  ret i64 %reached
}}"""
