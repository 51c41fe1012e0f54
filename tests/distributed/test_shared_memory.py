"""Memory that others map: which parts are free, what becomes of arrays that go, and copies for forked processes."""

from __future__ import annotations

import mmap
import os
import platform
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.support.mpi import environment
from xarr.communication.communicator import Array
from xarr.distributed import shared_memory
from xarr.distributed.shared_memory import HUGE_PAGE, LEAST_HUGE, PAGE, SharedMemory, Spans, map_file

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="only Linux has files without a name")
SIZE = 64 * HUGE_PAGE


@pytest.fixture
def memory() -> Iterator[SharedMemory]:
    yield SharedMemory(SIZE)


def _resident(memory: SharedMemory) -> int:
    """Bytes of the file that lie in memory."""
    return os.fstat(memory.file).st_blocks * 512


@given(st.lists(st.integers(1, 12), max_size=40))
def test_parts_never_overlap_and_all_come_back(lengths: list[int]) -> None:
    spans = Spans(5, 105)
    lengths_at: dict[int, int] = {}
    for length in lengths:
        start = spans.take(length)
        if start is None or length % 3 == 0:
            for each in sorted(lengths_at, key=lambda at: (at * 7 + length) % 11)[:2]:
                spans.put(each, lengths_at.pop(each))
        if start is not None:
            assert start in range(5, 106 - length)
            assert all(start + length <= at or at + size <= start for at, size in lengths_at.items())
            lengths_at[start] = length
        used = [at for begin, end in spans.spans_in_use() for at in range(begin, end)]
        assert used == sorted(at for begin, size in lengths_at.items() for at in range(begin, begin + size))
    for each, size in lengths_at.items():
        spans.put(each, size)
    assert spans.take(100) == 5
    assert spans.take(1) is None


@pytest.mark.parametrize("nbytes", [1, PAGE, 3 * PAGE + 1, LEAST_HUGE, LEAST_HUGE + 1])
def test_a_block_lies_in_the_file_until_its_last_view_goes(memory: SharedMemory, nbytes: int) -> None:
    block = memory.block(nbytes)
    assert block.shape == (nbytes,)
    at = memory.find(block)
    assert at % (HUGE_PAGE if nbytes >= LEAST_HUGE else PAGE) == 0
    block[:] = 7
    with mmap.mmap(memory.file, SIZE) as other:
        assert other[at : at + nbytes] == b"\x07" * nbytes
        view = block[nbytes // 2 :]
        del block
        assert other[at + nbytes - 1] == view[-1] == 7
        before = _resident(memory)
        del view
        assert _resident(memory) < before
        assert other[at : at + nbytes] == bytes(nbytes)
    assert memory.find(memory.block(nbytes)) == at


def test_a_memory_that_is_full_leaves_arrays_to_numpy(memory: SharedMemory) -> None:
    block = memory.block(SIZE // 2)
    other = memory.block(LEAST_HUGE)
    assert memory.find(block) == SIZE // 2
    assert memory.find(other) == -1
    other[:] = 1
    del block
    assert memory.find(memory.block(LEAST_HUGE)) == SIZE // 2


def test_only_arrays_in_order_are_there(memory: SharedMemory) -> None:
    block = memory.block(PAGE)
    at = memory.find(block)
    assert memory.find(block[8:].view(np.float64)) == at + 8
    assert memory.find(block[1:17].view(np.float64)) == -1
    assert memory.find(block[::2]) == -1
    assert memory.find(np.zeros(PAGE)) == -1
    assert memory.find(np.zeros((0, 3))) == 0


def test_blocks_may_go_in_any_thread(memory: SharedMemory) -> None:
    def work() -> None:
        for nbytes in (PAGE, LEAST_HUGE, 5 * PAGE) * 100:
            block = memory.block(nbytes)
            block[-1] = 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.find(memory.block(SIZE // 2)) == SIZE // 2
    assert _resident(memory) <= HUGE_PAGE  # what others read to know it


def test_a_finalizer_amid_another_array_gets_memory_of_numpys(
    memory: SharedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The garbage collector may run anything while a part is taken."""
    starts: list[int] = []

    def take_back() -> None:
        starts.append(memory.find(memory.block(PAGE)))

    monkeypatch.setattr(memory, "_take_back", take_back)
    assert memory.find(memory.block(PAGE)) == PAGE
    assert starts == [-1]


def test_no_memory_is_made_where_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> int:
        raise OSError("no such files")

    monkeypatch.setattr(shared_memory, "_own", None)
    monkeypatch.setattr(os, "memfd_create", refuse)
    assert shared_memory.own_memory(2) is None
    monkeypatch.setattr(sys, "platform", "darwin")
    assert shared_memory.own_memory(2) is None


def test_a_file_that_cannot_be_mapped_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def refuse(file: int, size: int) -> mmap.mmap:
        opened.append(file)
        raise OSError("no addresses")

    monkeypatch.setattr(shared_memory, "map_file", refuse)
    with pytest.raises(OSError, match="no addresses"):
        SharedMemory(SIZE)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_pages_are_small_where_the_kernel_has_no_huge_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mmap, "MADV_HUGEPAGE", 9999)
    memory = SharedMemory(SIZE)
    assert map_file(memory.file, SIZE)[:16].tobytes() == memory.token


def _has_huge_pages() -> bool:
    """Whether the kernel gives files huge pages that ask for them, in spite of a `shmem_enabled` of "never"."""
    setting = Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled")
    version = tuple(map(int, re.findall(r"\d+", platform.release())[:2]))
    return version >= (6, 1) and setting.is_file() and "[deny]" not in setting.read_text(encoding="ascii")


def _huge_bytes(array: Array) -> int:
    """Bytes of huge pages in the part of this process's addresses where an array lies."""
    address, lines = array.ctypes.data, Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines()
    is_inside, kilobytes = False, 0
    for line in lines:
        if part := re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line):
            is_inside = int(part[1], 16) <= address < int(part[2], 16)
        elif is_inside and line.startswith("ShmemPmdMapped:"):
            kilobytes += int(line.split()[1])
    return kilobytes * 1024


@pytest.mark.skipif(not _has_huge_pages(), reason="the kernel gives files no huge pages")
def test_large_arrays_get_huge_pages_here_and_where_others_map_them(memory: SharedMemory) -> None:
    small = memory.block(LEAST_HUGE - 1)
    small[:] = 1
    assert _huge_bytes(small) == 0
    blocks = [memory.block(LEAST_HUGE + 1) for _ in range(8)]  # memory may be too scattered for some
    for block in blocks:
        block[:] = 1
    if not _huge_bytes(blocks[0]):
        pytest.skip("memory is too scattered for huge pages")
    others = map_file(memory.file, SIZE)
    assert _huge_bytes(others[SIZE // 2 :]) == 0
    for block in blocks:
        assert others[memory.find(block) :][: block.size].min() == 1
    assert _huge_bytes(others[SIZE // 2 :]) == _huge_bytes(blocks[0])


def test_pages_are_small_where_the_kernel_cannot_make_them_huge(
    memory: SharedMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "_MADV_COLLAPSE", 9999)
    block = memory.block(LEAST_HUGE)
    assert memory.find(block) == SIZE // 2
    assert not block.any()


def test_a_map_goes_with_its_last_array(memory: SharedMemory) -> None:
    def maps() -> int:
        return Path("/proc/self/maps").read_text(encoding="utf-8").count("/memfd:xarr")

    before, view = maps(), map_file(memory.file, SIZE)[:8]
    assert maps() > before
    del view
    assert maps() == before


#: Parent and child change what they have of the same arrays, and look at it afterwards.
FORKS = """
import os
import numpy as np
from xarr.base.host.memory import pool
from xarr.distributed import shared_memory

memory = shared_memory.own_memory(2)
shared_memory.use_shared_memory(memory)
sizes = 300_000, 3_000_000
arrays = [pool.empty((size,), np.dtype(np.float64)) for size in sizes]
for array in arrays:
    array[:] = 1
assert all(memory.find(array) >= 0 for array in arrays)
gone = pool.empty((500_000,), np.dtype(np.float64))
reads, writes = os.pipe()
child = os.fork()
if child == 0:
    assert os.read(reads, 1) == b"x"  # when the parent has written
    assert all((array == 1).all() for array in arrays)
    for array in arrays:
        array[:] = 3
    new = pool.empty((300_000,), np.dtype(np.float64))
    assert memory.find(new) == -1
    del arrays, array, gone
    grandchild = os.fork()
    os._exit(os.waitstatus_to_exitcode(os.waitpid(grandchild, 0)[1]) if grandchild else 0)
for array in arrays:
    array[:] = 2
del gone
again = [pool.empty((size,), np.dtype(np.float64)) for size in sizes]
for array in again:
    array[:] = 9
os.write(writes, b"x")
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert all((array == 2).all() for array in arrays)
assert all((array == 9).all() and memory.find(array) >= 0 for array in again)
print("apart")
"""


def test_a_forked_process_has_copies_that_nobody_else_changes() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS], env=environment(), capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "apart\n", done.stderr


#: A process that has no file descriptors left forks, and so does one that lacks even those it had before.
FORKS_WITHOUT_DESCRIPTORS = """
import os
import resource
import sys
import numpy as np
from xarr.base.host.memory import pool
from xarr.distributed import shared_memory

memory = shared_memory.own_memory(2)
shared_memory.use_shared_memory(memory)
array = pool.empty((3_000_000,), np.dtype(np.float64))
array[:] = 1
resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
held = []


def hold_all():
    try:
        while True:
            held.append(os.dup(0))
    except OSError:
        pass


for is_robbed in (False, True):
    hold_all()
    if is_robbed:
        for each in memory._pipe:
            os.close(each)
        memory._pipe = None
        hold_all()
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        print("child", (array == 1).all(), memory._is_private, flush=True)
        os._exit(0)
    array[:] = 2
    print("parent", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    array[:] = 1
assert memory.find(pool.empty((3_000_000,), np.dtype(np.float64))) >= 0
"""


def test_a_process_without_free_descriptors_forks_and_one_that_cannot_wait_has_no_child() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS_WITHOUT_DESCRIPTORS],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "child True True\nparent 0\nparent 1\n", done.stderr
    assert "has no memory of its own for its arrays: no file descriptors are left" in done.stderr
    assert "Too many open files" in done.stderr
    assert done.returncode == 0


#: A library forks a process that stays, without Python's hooks; afterwards the program forks.
FORKS_BESIDE_A_HELPER = """
import ctypes
import os
import signal
from xarr.distributed import shared_memory

shared_memory.use_shared_memory(shared_memory.own_memory(2))
libc = ctypes.CDLL(None)
helper = libc.fork()
if helper == 0:
    libc.sleep(50)
    libc._exit(0)
child = os.fork()
if child == 0:
    os._exit(0)
os.waitpid(child, 0)
print("helper goes on:", os.waitpid(helper, os.WNOHANG) == (0, 0))
os.kill(helper, signal.SIGKILL)
"""


def test_a_fork_waits_for_no_process_of_a_library() -> None:
    command = [sys.executable, "-c", FORKS_BESIDE_A_HELPER]
    done = subprocess.run(command, env=environment(), stdout=subprocess.PIPE, text=True, timeout=40)
    assert done.stdout == "helper goes on: True\n"


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_ends_no_wait_for_the_copy_of_a_child_and_is_raised_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reads, writes = os.pipe()
    tries = list[int]()

    def read(file: int, count: int) -> bytes:
        tries.append(file)
        if len(tries) == 1:
            raise KeyboardInterrupt
        return b""

    monkeypatch.setattr(os, "read", read)
    try:
        with pytest.raises(KeyboardInterrupt):
            shared_memory._read_to_end(reads)
            assert tries == [reads, reads]
            threading.Event().wait(30)
    finally:
        os.close(writes)
