"""Threads that share the iterations of machine code: every iteration once, nobody at work when the caller goes on."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import xarr
from tests.compare import assert_same
from tests.support.threads import threads
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.threads import phases, work_sharing
from xarr_numpy.compiled.threads.phases import Phase

pytestmark = pytest.mark.skipif(not phases.works(), reason="the system has no such threads")

#: What `Iterations` begins with: for how long to wait in each iteration, how many wait for one another, how many are
#: inside, how many were inside at once, how many ranges there were.
WAIT, MEET, INSIDE, MOST, RANGES, FIRST = range(6)

#: Notes in `iterations` who is inside, waits in each iteration until enough are or it has waited long enough, and
#: counts it.
TEXT = f"""
define void @note(ptr %iterations, i64 %begin, i64 %end) nounwind {{
entry:
  %wait = load i64, ptr %iterations
  %meet.slot = getelementptr i64, ptr %iterations, i64 {MEET}
  %meet = load i64, ptr %meet.slot
  %inside.slot = getelementptr i64, ptr %iterations, i64 {INSIDE}
  %most.slot = getelementptr i64, ptr %iterations, i64 {MOST}
  %ranges.slot = getelementptr i64, ptr %iterations, i64 {RANGES}
  %others = atomicrmw add ptr %inside.slot, i64 1 seq_cst
  %all = add i64 %others, 1
  %before = atomicrmw max ptr %most.slot, i64 %all seq_cst
  %counted = atomicrmw add ptr %ranges.slot, i64 1 seq_cst
  br label %iteration
iteration:
  %i = phi i64 [ %begin, %entry ], [ %i1, %count ]
  %some = icmp slt i64 %i, %end
  br i1 %some, label %look, label %done
look:
  %n = phi i64 [ 0, %iteration ], [ %n1, %look ]
  %n1 = add i64 %n, 1
  %most = load atomic i64, ptr %most.slot seq_cst, align 8
  %is.met = icmp sge i64 %most, %meet
  %is.long = icmp sge i64 %n1, %wait
  %goes = or i1 %is.met, %is.long
  br i1 %goes, label %count, label %look
count:
  %offset = add i64 %i, {FIRST}
  %slot = getelementptr i64, ptr %iterations, i64 %offset
  %old = load i64, ptr %slot
  %new = add i64 %old, 1
  store i64 %new, ptr %slot
  %i1 = add i64 %i, 1
  br label %iteration
done:
  %left = atomicrmw sub ptr %inside.slot, i64 1 seq_cst
  ret void
}}"""

CODE = llvm_jit.load(llvm_jit.assemble(TEXT), ["note"])
#: Looks of a thread that waits for another which must come, and of one that just takes its time.
LONG, A_WHILE = 2**40, 20_000


class Iterations:
    """Counters of how often each iteration ran."""

    def __init__(self, extent: int, wait: int = 0, meet: int = 2**62) -> None:
        self.all = np.zeros(FIRST + extent, np.int64)
        self.all[[WAIT, MEET]] = wait, meet

    @property
    def address(self) -> int:
        return self.all.ctypes.data

    def ran(self, times: int) -> bool:
        return bool((self.all[FIRST:] == times).all()) and self.all[INSIDE] == 0


@pytest.fixture
def forked() -> Iterator[list[int]]:
    """Collects processes, which must end well."""
    children: list[int] = []
    yield children
    for child in children:
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 0


def phase(extent: int, **options: Any) -> Phase:
    return Phase(CODE.addresses["note"], extent, 1000.0, **options)


def wait_for_sleep() -> None:
    """Until no thread looks out for work any more."""
    pool = phases._present()
    first = pool.address + work_sharing.WORKERS + work_sharing.FIRST + work_sharing.SLEEPS
    addresses = range(first, first + (pool.threads - 1) * work_sharing.APART, work_sharing.APART)
    while not all(ctypes.c_int64.from_address(address).value for address in addresses):
        time.sleep(0.001)


@pytest.mark.parametrize("count", [1, 2, 3, 7])
@pytest.mark.parametrize("extent", [1, 2, 3, 37, 1000, 100_001])
def test_every_iteration_runs_once(count: int, extent: int) -> None:
    iterations = Iterations(extent)
    with threads(count):
        for times in range(1, 20):
            phase(extent).run(iterations.address)
            assert iterations.ran(times)


def test_little_work_stays_with_the_caller() -> None:
    iterations = Iterations(1000)
    with threads(3, min_shared_nanoseconds=1000 * 1000 + 1):
        phase(1000).run(iterations.address)
    assert iterations.ran(1) and iterations.all[RANGES] == 1


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("sleeps", [False, True], ids=["at once", "asleep"])
def test_all_threads_come(count: int, sleeps: bool) -> None:
    iterations = Iterations(1000, LONG, meet=count)
    with threads(count):
        for times in range(1, 6):
            iterations.all[MOST] = 0
            if sleeps:
                wait_for_sleep()
            phase(1000).run(iterations.address)
            assert iterations.ran(times) and iterations.all[MOST] == count


def test_only_as_many_as_the_work_is_worth() -> None:
    iterations = Iterations(1000, A_WHILE // 10)
    with threads(5, min_waking_nanoseconds=2_000_000):
        wait_for_sleep()
        phase(1000).run(iterations.address)
        assert iterations.ran(1) and iterations.all[MOST] == 1


def test_the_caller_waits_for_whoever_is_late() -> None:
    with threads(2):
        for times in range(20):
            iterations = Iterations(2, A_WHILE * (times % 3 + 1) * 20)
            phase(2).run(iterations.address)
            assert iterations.ran(1)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranges_that_are_costly_are_as_few_as_threads(count: int) -> None:
    iterations = Iterations(100, A_WHILE)
    with threads(count):
        phase(100, whole=True).run(iterations.address)
    assert iterations.ran(1) and iterations.all[RANGES] == count


def test_with_too_few_threads_there_is_one_range() -> None:
    iterations = Iterations(100, A_WHILE)
    with threads(2):
        phase(100, threads=3).run(iterations.address)
    assert iterations.ran(1) and iterations.all[RANGES] == 1


def test_one_processor_stops_for_python_too() -> None:
    iterations = Iterations(1000)
    with threads(1):
        phase(1000).run(iterations.address)
        assert iterations.ran(1) and iterations.all[RANGES] == 1
    with threads(1, max_uninterrupted_nanoseconds=1):
        phase(1000).run(iterations.address)
    assert iterations.ran(2) and iterations.all[RANGES] > 2


def test_where_there_are_no_such_threads_those_of_python_share(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(phases, "works", lambda: False)
    iterations = Iterations(1000, LONG, meet=2)
    with threads(2):
        phase(1000).run(iterations.address)
    assert iterations.ran(1) and iterations.all[MOST] == 2


def test_many_callers_at_once() -> None:
    every = [Iterations(300, 10) for _ in range(6)]

    def call(iterations: Iterations) -> None:
        for _ in range(300):
            phase(300).run(iterations.address)

    with threads(3):
        callers = [threading.Thread(target=call, args=(iterations,)) for iterations in every]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join(60)
    assert all(iterations.ran(300) for iterations in every)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer that sends a signal")
def test_an_interrupt_comes_between_ranges_and_leaves_nobody_at_work() -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    iterations = Iterations(10**6, 1000)
    before = signal.signal(signal.SIGALRM, interrupt)
    with threads(2, max_uninterrupted_nanoseconds=10**6):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.05)
            with pytest.raises(KeyboardInterrupt):
                phase(10**6).run(iterations.address)
        finally:
            signal.signal(signal.SIGALRM, before)
        done = iterations.all[FIRST:].copy()
        assert iterations.all[INSIDE] == 0 and 0 < done.sum() < 10**6 and done.max() == 1
        assert (np.diff(done) <= 0).all()
        time.sleep(0.01)
        assert (iterations.all[FIRST:] == done).all()
        others = Iterations(1000, LONG, meet=2)
        phase(1000).run(others.address)
        assert others.ran(1)


def test_a_jitted_call_is_shared() -> None:
    x = np.linspace(-3, 3, 100_000, dtype=np.float32)
    held = xarr.asarray(x).evaluate()
    with threads(3):
        jitted = xarr.jit(lambda x: xarr.exp(-(x**2)) + xarr.tanh(x))
        many = np.asarray(jitted(held))
        for _ in range(50):
            assert_same(jitted(held), many)
    # Machine code that would wake two finds a pool in which there is one, or none.
    for count in (2, 1):
        with threads(count):
            assert_same(jitted(held), many)
            phases._present()
            assert_same(jitted(held), many)


@pytest.mark.usefixtures("fused")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_forked_process_makes_threads_when_a_jitted_call_wants_them(forked: list[int]) -> None:
    with threads(2):
        held = xarr.asarray(np.linspace(-3, 3, 100_000)).evaluate()
        jitted = xarr.jit(lambda x: xarr.sum(xarr.exp(-(x**2)) + xarr.tanh(x)))
        wanted = float(jitted(held))
        assert float(jitted(held)) == wanted
        child = os.fork()
        if child == 0:  # pragma: no cover
            none = phases._pool is None
            same = all(float(jitted(held)) == wanted for _ in range(5))
            os._exit(0 if none and same and phases._pool is not None else 1)
        forked.append(child)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_forked_process_has_threads_of_its_own(forked: list[int]) -> None:
    busy, over = Iterations(300, 10), threading.Event()

    def call() -> None:
        while not over.is_set():
            phase(300).run(busy.address)

    with threads(3):
        caller = threading.Thread(target=call)
        caller.start()
        try:
            for _ in range(10):
                child = os.fork()
                if child == 0:  # pragma: no cover
                    iterations = Iterations(1000, LONG, meet=3)
                    phase(1000).run(iterations.address)
                    os._exit(0 if iterations.ran(1) else 1)
                forked.append(child)
        finally:
            over.set()
            caller.join(60)


def test_a_process_ends_while_threads_are_awake() -> None:
    program = (
        "import numpy as np, xarr; x = xarr.asarray(np.ones(300_000)); f = xarr.jit(lambda x: xarr.exp(x) + x);"
        "[f(x) for _ in range(5)]"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
