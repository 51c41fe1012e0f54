"""Memory of this process that others of its machine map: on Linux, one file without a name, which ends with the last of
them, however they end.

Results are put there (`Pool.source`), so that the others read and write them where they lie: at the speed of memory,
with no call of the kernel.  The file is as large as the memory of the machine and has holes where nothing lies.  Large
arrays get huge pages, as NumPy's do: with small ones a copy takes up to twice as long.

A child of `os.fork` has the same memory, while it must not see what its parent computes next.  So the child gets a copy
of all that lies there, for which the parent waits.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, Final

import numpy as np

from xarr.base.host.memory import fresh_block, pool
from xarr.communication.communicator import Array

#: Bytes of pages, small and huge, and of arrays from which on these are huge, as NumPy has them.
PAGE: Final = mmap.PAGESIZE
HUGE_PAGE: Final = 2**21
LEAST_HUGE: Final = 2**22
#: Bytes of addresses that all processes of a machine may take of each.
_MOST_ADDRESSES: Final = 2**45

_NONE: Final = 0  # PROT_NONE
_USED: Final = mmap.PROT_READ | mmap.PROT_WRITE
_PRIVATE: Final = 0x02 | 0x20 | 0x4000  # MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE
_IN_PLACE: Final = 0x01 | 0x10  # MAP_SHARED, MAP_FIXED
_MOVED: Final = 0x01 | 0x02  # MREMAP_MAYMOVE, MREMAP_FIXED
#: Linux 6.1 and later: huge pages now, also where the system gives files none (`shmem_enabled` of "never").
_MADV_COLLAPSE: Final = 25


class Spans:
    """The parts of a range of bytes that are free, in order."""

    def __init__(self, start: int, stop: int) -> None:
        self._range = start, stop
        self._free = [(start, stop)]

    def take(self, length: int) -> int | None:
        """The start of the first free part that is long enough, which is free no more; None if there is none."""
        for index, (start, stop) in enumerate(self._free):
            if stop - start >= length:
                self._free[index : index + 1] = [(start + length, stop)] if stop - start > length else []
                return start
        return None

    def put(self, start: int, length: int) -> None:
        """Free a part, and join it with those beside it."""
        stop = start + length
        before = next((each for each in self._free if each[1] == start), None)
        after = next((each for each in self._free if each[0] == stop), None)
        joined = (before[0] if before else start, after[1] if after else stop)
        self._free = sorted([*(each for each in self._free if each not in (before, after)), joined])

    def spans_in_use(self) -> Iterator[tuple[int, int]]:
        """Start and end of each part that is not free."""
        at, end = self._range
        for start, stop in [*self._free, (end, end)]:
            if at < start:
                yield at, start
            at = stop


class _Bytes:
    """Lends memory to an array; when the last view of it is gone the memory is given back."""

    __slots__ = ("__array_interface__", "_give_back")

    def __init__(self, address: int, nbytes: int, give_back: Callable[[], object]) -> None:
        self._give_back = give_back
        self.__array_interface__ = {
            "version": 3,
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (address, False),
        }

    def __del__(self) -> None:
        self._give_back()


class SharedMemory:
    """A file without a name, and what lies where in it; OSError or ValueError if the system has none of that size."""

    def __init__(self, size: int) -> None:
        self.file = os.memfd_create("xarr", os.MFD_CLOEXEC)
        try:
            os.ftruncate(self.file, size)
            self.bytes = map_file(self.file, size)
            #: What a child closes when it has its copy, made beforehand: at a fork there may be no free descriptors.
            self._pipe: tuple[int, int] | None = os.pipe()
        except BaseException:
            os.close(self.file)
            raise
        self.size = size
        self.address = self.bytes.ctypes.data
        #: What others read to see that they have mapped this memory and no other.
        self.token = os.urandom(16)
        self.bytes[:16] = np.frombuffer(self.token, np.uint8)
        self._small, self._large = Spans(PAGE, size // 2), Spans(size // 2, size)
        self._lock = threading.RLock()
        #: Whether a part is being taken, by this thread too where the garbage collector runs in it.
        self._is_taking = False
        #: What was freed, by whichever thread the garbage collector runs in, and is not in the spans yet.
        self._freed: deque[tuple[int, int, bool]] = deque()
        #: Whether a child is getting its copy, and whether this is a child's.
        self._is_copied = False
        self._is_private = False
        self._source = pool.source

    def block(self, nbytes: int) -> Array:
        """Bytes of this memory; of NumPy's if it is full."""
        spans, page = (self._large, HUGE_PAGE) if nbytes >= LEAST_HUGE else (self._small, PAGE)
        length = -(-nbytes // page) * page
        start = self._take(spans, length)
        if start is None:
            return fresh_block(nbytes)
        if page == HUGE_PAGE:
            self.bytes[start : start + length : HUGE_PAGE] = 0  # nothing is made huge where nothing lies
            with suppress(OSError):  # of an older kernel, or where memory is short: pages are small then
                _call("madvise", self.address + start, length, _MADV_COLLAPSE)
        return np.asarray(_Bytes(self.address + start, nbytes, functools.partial(self.free, start, length)))

    def _take(self, spans: Spans, length: int) -> int | None:
        with self._lock:
            if self._is_taking:
                return None
            self._is_taking = True
            try:
                self._take_back()
                return spans.take(length)
            finally:
                self._is_taking = False

    def find(self, array: Array) -> int:
        """Where an array begins that lies here, in C order and aligned; -1 of others, and 0 without elements."""
        if not array.size:
            return 0
        start = int(array.__array_interface__["data"][0]) - self.address
        is_plain = array.flags.c_contiguous and array.flags.aligned
        return start if is_plain and 0 <= start <= self.size - array.nbytes else -1

    def free(self, start: int, length: int) -> None:
        """Give pages back to the system, and their addresses to later arrays; called at any time by any thread."""
        is_removed = not self._is_copied
        if is_removed:
            self._remove(start, length)
        self._freed.append((start, length, is_removed))

    def _take_back(self) -> None:
        while self._freed:
            start, length, is_removed = self._freed.popleft()
            if not is_removed:
                self._remove(start, length)
            (self._small if start < self.size // 2 else self._large).put(start, length)

    def _remove(self, start: int, length: int) -> None:
        advice = mmap.MADV_DONTNEED if self._is_private else mmap.MADV_REMOVE
        _call("madvise", self.address + start, length, advice)

    # --- around os.fork ----------------------------------------------------------------------------

    def before_fork(self) -> None:
        """Let nothing change until the child has its copy: what is computed meanwhile lies elsewhere."""
        self._lock.acquire()
        if self._is_private:
            return
        self._source, pool.source = pool.source, fresh_block
        pool.clear()
        self._is_copied = True
        self._take_back()
        self._renew_pipe()

    def _renew_pipe(self) -> None:
        """Take a new pipe where there is one: a process that a library forked may have that made beforehand open."""
        try:
            new = os.pipe()
        except OSError:
            if self._pipe is None:
                raise
            return
        for each in self._pipe or ():
            os.close(each)
        self._pipe = new

    def in_parent(self) -> None:
        """Wait for the child."""
        try:
            if not self._is_private:
                self._wait_for_child()
        finally:
            self._lock.release()

    def _wait_for_child(self) -> None:
        try:
            if self._pipe is not None:
                reads, writes = self._pipe
                os.close(writes)
                _read_to_end(reads)
        finally:
            self._pipe = None
            self._is_copied, pool.source = False, self._source
        with suppress(OSError):  # before the next fork it is tried again
            self._pipe = os.pipe()

    def in_child(self) -> None:
        """Copy what lies here, to the same addresses, and take new memory from the system."""
        self._lock = threading.RLock()
        if self._is_private:
            return
        try:
            if self._pipe is None:
                raise OSError("no file descriptors are left for its parent to wait by")
            for start, stop in (*self._small.spans_in_use(), *self._large.spans_in_use()):
                _copy_in_place(self.address + start, stop - start)
            for each in self._pipe:
                os.close(each)  # which the parent sees as the end
        except BaseException as error:
            # To go on would be to see what the parent writes.
            os.write(2, f"xarr: a forked process has no memory of its own for its arrays: {error}\n".encode())
            os._exit(1)
        self._is_copied, self._is_private, self._pipe = False, True, None
        pool.clear()
        pool.source = fresh_block


def _read_to_end(file: int) -> None:
    """Wait until the other end of a pipe is closed, whatever is raised meanwhile: Ctrl-C takes effect afterwards.

    What is raised in a function that `os.fork` calls is printed and lost, so another thread raises it again.
    """
    is_interrupted = False
    while True:
        try:
            os.read(file, 1)
            break
        except KeyboardInterrupt:
            is_interrupted = True
    os.close(file)
    if is_interrupted:
        main = threading.main_thread().ident
        threading.Timer(0.05, signal.pthread_kill, (main, signal.SIGINT)).start()


def map_file(file: int, size: int) -> Array:
    """A file in memory at a multiple of huge pages, which large arrays get where the system has them."""
    reserved, length = _call("mmap", 0, size + HUGE_PAGE, _NONE, _PRIVATE, -1, 0), size + HUGE_PAGE
    address = -(-reserved // HUGE_PAGE) * HUGE_PAGE
    try:
        _call("mmap", address, size, _USED, _IN_PLACE, file, 0)
    except OSError:
        _call("munmap", reserved, length)
        raise
    with suppress(OSError):  # of a kernel without huge pages
        _call("madvise", address + size // 2, size // 2, mmap.MADV_HUGEPAGE)
    return np.asarray(_Bytes(address, size, functools.partial(_call, "munmap", reserved, length)))


def _copy_in_place(address: int, length: int) -> None:
    """Replace memory by a private copy of it; OSError if there is no room."""
    new = _call("mmap", 0, length, _USED, _PRIVATE, -1, 0)
    ctypes.memmove(new, address, length)
    _call("mremap", new, length, length, _MOVED, address)


@functools.cache
def _function(name: str) -> Any:
    """A function of C, which returns an address or whether it failed."""
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_ssize_t if name in ("mmap", "mremap") else ctypes.c_int
    return function


def _call(name: str, *arguments: int) -> int:
    """The result of a function of C; OSError of -1."""
    result = int(_function(name)(*map(ctypes.c_size_t, arguments)))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


_own: SharedMemory | None = None


def own_memory(processes: int) -> SharedMemory | None:
    """The memory of this process that `processes` of its machine map, made when first asked for; None if it has none.

    Results go there from when `use_shared_memory` is called.
    """
    global _own
    if _own is None and sys.platform == "linux":
        installed = os.sysconf("SC_PHYS_PAGES") * mmap.PAGESIZE
        size = min(2 * installed, _MOST_ADDRESSES // (processes + 1))
        try:
            _own = SharedMemory(size // (2 * HUGE_PAGE) * 2 * HUGE_PAGE)
        except (OSError, ValueError):  # limits of files or addresses, or a system that has no such files
            return None
        os.register_at_fork(
            before=_own.before_fork, after_in_parent=_own.in_parent, after_in_child=_own.in_child
        )
    return _own


def use_shared_memory(memory: SharedMemory) -> None:
    """Let large results lie where others map them."""
    pool.clear()
    pool.source = memory.block
