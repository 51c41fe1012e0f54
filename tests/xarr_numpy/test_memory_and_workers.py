"""Blocks of memory that results use again, and threads that share the iterations of a loop."""

from __future__ import annotations

import dis
import os
import signal
import subprocess
import sys
import threading
import time
import weakref
from types import FrameType

import numpy as np
import pytest

from xarr.base.host.memory import ALIGNMENT, MIN_POOLED_BYTES, Pool, copy_array
from xarr_numpy import workers

F64 = np.dtype(np.float64)


def test_a_block_goes_back_when_its_last_view_is_gone() -> None:
    pool = Pool()
    array = pool.empty((1000, 100), F64)
    assert (array.shape, array.dtype) == ((1000, 100), F64)
    address = array.ctypes.data
    assert address % ALIGNMENT == 0
    array[:] = 7
    view = array[10:20].T
    del array
    assert pool.unused == 0
    other = pool.empty((1000, 100), F64)
    assert other.ctypes.data != address
    assert (view == 7).all()
    del view
    assert pool.unused >= 800_000
    assert pool.empty((500, 200), F64).ctypes.data == address


def test_a_block_of_another_source_is_not_used_again() -> None:
    """Shared memory becomes the source while arrays of before live: their blocks would lie where no other reaches."""
    pool, made = Pool(), list[int]()

    def make(nbytes: int) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
        made.append(nbytes)
        return np.empty(nbytes, np.uint8)

    array = pool.empty((1000, 100), F64)
    pool.clear()
    pool.source = make
    del array
    assert pool.unused == 0
    for _ in range(2):
        array = pool.empty((1000, 100), F64)
        del array
    assert len(made) == 1


def test_a_block_that_is_much_too_large_is_not_used() -> None:
    pool = Pool()
    large = pool.empty((1_000_000,), F64)
    address = large.ctypes.data
    del large
    small = pool.empty((200_000,), F64)
    assert small.ctypes.data != address
    assert pool.unused >= 8_000_000


def test_what_lies_unused_is_bounded() -> None:
    pool = Pool(most_unused=3_000_000)
    arrays = [pool.empty((100_000,), F64) for _ in range(10)]
    del arrays
    assert 1_600_000 < pool.unused <= 3_000_000
    pool.clear()
    assert pool.unused == 0


def test_small_arrays_come_from_numpy() -> None:
    pool = Pool()
    array = pool.empty((MIN_POOLED_BYTES // 8 - 1,), F64)
    assert array.base is None
    del array
    assert pool.unused == 0


@pytest.mark.parametrize("dtype", ["bool", "float16", "int8", "complex128", "bfloat16"])
def test_any_element_type(dtype: str) -> None:
    import ml_dtypes

    wanted = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    array = Pool().empty((MIN_POOLED_BYTES, 2), wanted)
    assert array.dtype == wanted
    array[:] = 1
    assert (array == 1).all()


def test_threads_take_and_give_back_at_once() -> None:
    pool = Pool()
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(200):
            array = pool.empty((MIN_POOLED_BYTES // 8,), F64)
            array[:] = number
            if not (array == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# --- workers -----------------------------------------------------------------------------------------------


class Iterations:
    """A phase that notes which iterations were run."""

    def __init__(self, extent: int) -> None:
        self.count = np.zeros(extent, np.int64)
        self.calls: list[tuple[int, int]] = []
        self.buffers: set[int] = set()

    def __call__(self, buffers: int, begin: int, end: int) -> None:
        self.calls.append((begin, end))
        self.buffers.add(buffers)
        self.count[begin:end] += 1


@pytest.mark.parametrize(
    ("extent", "cost"), [(1, 10**9), (2, 10**6), (1000, 1), (10**6, 1), (10**6 + 1, 7), (37, 10**5)]
)
def test_every_iteration_runs_once(extent: int, cost: int) -> None:
    iterations = Iterations(extent)
    workers.run(iterations, 123, extent, cost)
    assert (iterations.count == 1).all()
    assert iterations.buffers == {123}
    if extent * cost < workers.WORTH_A_THREAD:
        assert iterations.calls == [(0, extent)]


def test_pieces_of_long_loops_are_whole_registers() -> None:
    iterations = Iterations(10**6 + 1)
    workers.run(iterations, 0, 10**6 + 1, 1)
    assert len(iterations.calls) > 1 or workers.count() == 1
    assert all(begin % workers.GRAIN == 0 for begin, _ in iterations.calls)


def test_a_kernel_inside_a_kernel_runs_alone() -> None:
    inner = Iterations(10**6)

    def phase(buffers: int, begin: int, end: int) -> None:
        if begin == 0:
            workers.run(inner, 0, 10**6, 1)

    workers.run(phase, 0, 10**6, 1)
    assert (inner.count == 1).all()


def test_many_threads_ask_at_once() -> None:
    every = [Iterations(10**6) for _ in range(6)]
    threads = [threading.Thread(target=workers.run, args=(iterations, 0, 10**6, 1)) for iterations in every]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert all((iterations.count == 1).all() for iterations in every)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
def test_a_forked_process_has_workers_of_its_own() -> None:
    workers.run(Iterations(10**6), 0, 10**6, 1)
    child = os.fork()
    if child == 0:  # pragma: no cover
        iterations = Iterations(10**6)
        workers.run(iterations, 0, 10**6, 1)
        os._exit(0 if (iterations.count == 1).all() else 1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_failing_phase_is_raised_and_leaves_the_workers_usable() -> None:
    def phase(buffers: int, begin: int, end: int) -> None:
        raise ArithmeticError("no")

    with pytest.raises(ArithmeticError, match="no"):
        workers.run(phase, 0, 10**6, 1)
    iterations = Iterations(10**6)
    workers.run(iterations, 0, 10**6, 1)
    assert (iterations.count == 1).all()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the system has no timer that sends a signal")
def test_an_interrupt_waits_for_the_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    here, started, running = threading.current_thread(), threading.Event(), []

    def phase(buffers: int, begin: int, end: int) -> None:
        if threading.current_thread() is here:
            assert started.wait(60)
            signal.setitimer(signal.ITIMER_REAL, 0.05)
        elif not started.is_set():
            running.append(begin)
            started.set()
            time.sleep(0.5)
            running.pop()

    monkeypatch.setattr(workers, "count", lambda: 2)
    monkeypatch.setattr(workers, "_pool", None)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            workers.run(phase, 0, 10**6, 1)
        assert started.is_set() and not running
    finally:
        signal.signal(signal.SIGALRM, before)
    for _ in range(3):
        iterations = Iterations(10**6)
        workers.run(iterations, 0, 10**6, 1)
        assert (iterations.count == 1).all()


def test_nobody_waits_for_a_thread_that_has_not_come_to_its_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "count", lambda: 3)
    monkeypatch.setattr(workers, "_pool", None)
    with monkeypatch.context() as busy:
        busy.setattr(threading.Thread, "start", lambda thread: None)
        for _ in range(3):
            iterations = Iterations(10**6)
            workers.run(iterations, 0, 10**6, 1)
            assert (iterations.count == 1).all()


def test_work_that_was_taken_back_is_not_done_later() -> None:
    worker = workers._Worker()
    done: list[int] = []
    for number in range(2000):
        task = workers._Task(lambda number=number: done.append(number), None)  # type: ignore[misc]
        worker.begin(task)
        task.settle()
        seen = list(done)
    worker.begin(workers._Task(lambda: done.append(-1), None))
    while -1 not in done:
        pass
    assert done == [*seen, -1] and len(set(done)) == len(done)


def test_what_was_taken_back_holds_no_memory() -> None:
    memory = Memory()
    gone = weakref.ref(memory)
    task = workers._Task(lambda: None, memory)
    task.settle()
    del memory
    assert gone() is None


def test_what_is_done_holds_no_memory() -> None:
    worker, memory = workers._Worker(), Memory()
    alone = sys.getrefcount(memory)
    for _ in range(500):
        started = threading.Event()
        task = workers._Task(started.set, memory)
        worker.begin(task)
        assert started.wait(60)
        task.settle()
        assert sys.getrefcount(memory) == alone


class Memory:
    """Something to be referred to weakly."""


class Interrupt:
    """Raises KeyboardInterrupt at one of the points of `workers` where CPython looks for signals in this thread.

    These are the beginning of a function, the end of each call, and each jump back.
    """

    def __init__(self, point: int) -> None:
        self.left = point
        self.after_call: set[int] = set()

    def __call__(self, frame: FrameType, event: str, argument: object) -> Interrupt | None:
        if frame.f_code.co_filename != workers.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "call":
            self.count_point()
        if event == "opcode":
            name = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if id(frame) in self.after_call or name.startswith("JUMP_BACKWARD"):
                self.count_point()
            self.after_call.discard(id(frame))
            if name.startswith("CALL"):
                self.after_call.add(id(frame))
        return self

    def count_point(self) -> None:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1


class Phase:
    """Threads look for the memory that they work on until the caller has left, or seems to wait for them."""

    def __init__(self, memory: Memory) -> None:
        self.memory, self.caller = weakref.ref(memory), threading.get_ident()
        self.began, self.left, self.ended = threading.Event(), threading.Event(), threading.Event()
        self.lost: list[int] = []

    def __call__(self, buffers: int, begin: int, end: int) -> None:
        if threading.get_ident() == self.caller:
            self.began.wait(60)
        elif not self.began.is_set():
            self.began.set()
            self.left.wait(0.01)
            if self.memory() is None:
                self.lost.append(begin)
            self.ended.set()


def interrupt_at(point: int) -> bool:
    """Interrupt at this point; whether there is such a one; checks that no thread works on memory that is gone."""
    memory = Memory()
    phase = Phase(memory)
    sys.settrace(Interrupt(point))
    try:
        workers.run(phase, 0, 10**6, 1, held=memory)
        was_interrupted = False
    except KeyboardInterrupt:
        was_interrupted = True
    finally:
        sys.settrace(None)
        del memory
        phase.left.set()
    assert not phase.began.is_set() or phase.ended.wait(60)
    assert not phase.lost
    return was_interrupted


def check_that_all_threads_work() -> None:
    together = threading.Barrier(2, timeout=60)
    workers.run(lambda *_: together.wait(), 0, 2, 10**6)


def test_an_interrupt_anywhere_leaves_no_thread_on_memory_that_is_gone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(workers, "count", lambda: 2)
    monkeypatch.setattr(workers, "_pool", workers._WorkerPool())
    before = sys.gettrace()
    try:
        point = 0
        while interrupt_at(point):
            if point % 10 == 0:
                check_that_all_threads_work()
            point += 1
    finally:
        sys.settrace(before)
    assert point > 50


def test_handles_end_quietly_after_the_modules_of_the_interpreter() -> None:
    # Registered first, so called last: modules go after the exit callbacks, among them that of weakref.finalize.
    code = """
import atexit, sys

@atexit.register
def clear():
    global x, y
    for name, module in list(sys.modules.items()):
        if name.split(".")[0] in ("xarr", "xarr_numpy", "weakref", "math"):
            for key in [key for key in vars(module) if not key.startswith("__")]:
                vars(module)[key] = None
    del x, y

import numpy, xarr
x = xarr.ones(10000) * 2
numpy.asarray(x)
y = x + 1
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr == ""


@pytest.mark.parametrize("count", [3, MIN_POOLED_BYTES])
def test_a_copy_lies_in_row_major_order(count: int) -> None:
    source = np.broadcast_to(np.arange(2.0), (count, 2)).T
    copy = copy_array(source)
    assert copy.flags.c_contiguous and copy.flags.writeable
    assert (copy == source).all() and copy.dtype == source.dtype
