"""Arrays in other processes of this machine, read and written where they lie: on Linux, where the kernel allows it.

The kernel copies between two processes by process_vm_readv and process_vm_writev, as MPI does for large messages.
Called here, a reduction gets a block into the cache, combines it and hands it on, with no pass over memory in between.
Who may reach whom depends on users, containers and security modules, so each process tries it once.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from xarr.base.host.memory import pool
from xarr.communication.communicator import Array
from xarr.errors import CommunicationError


class _Piece(ctypes.Structure):
    """The `iovec` of C."""

    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


def _find_call(name: str) -> Any:
    """A function of C, None where there is none."""
    if sys.platform != "linux":
        return None
    call = getattr(ctypes.CDLL(None, use_errno=True), name, None)
    if call is not None:
        call.restype = ctypes.c_ssize_t
        pieces = ctypes.POINTER(_Piece), ctypes.c_ulong
        call.argtypes = [ctypes.c_int, *pieces, *pieces, ctypes.c_ulong]
    return call


_READ: Final = _find_call("process_vm_readv")
_WRITE: Final = _find_call("process_vm_writev")


class RemoteArray:
    """A flat array in another process, whose parts are read and written; CommunicationError if it has ended."""

    def __init__(self, process: int, address: int, size: int, dtype: np.dtype[Any]) -> None:
        self._process, self._address = process, address
        self._size, self._dtype = size, dtype

    def __getitem__(self, part: slice) -> Array:
        start, stop, _ = part.indices(self._size)
        out = pool.empty((max(0, stop - start),), self._dtype)
        self._copy(_READ, out, start)
        return out

    def __setitem__(self, part: slice, value: Array) -> None:
        self._copy(_WRITE, value, part.indices(self._size)[0])

    def _copy(self, call: Any, own: Array, start: int) -> None:
        """Copy between an array here and as many elements there."""
        local, remote = own.ctypes.data, self._address + start * self._dtype.itemsize
        left = own.nbytes
        while left:
            here, there = _Piece(local, left), _Piece(remote, left)
            done = call(self._process, ctypes.byref(here), 1, ctypes.byref(there), 1, 0)
            if done <= 0:
                raise CommunicationError(
                    f"the memory of process {self._process} is not there any more, which has ended or left the "
                    f"collective: {os.strerror(ctypes.get_errno())}"
                )
            local, remote, left = local + done, remote + done, left - done


def find_machines(world: Any) -> list[tuple[str, int]]:
    """The machine and the number of each process of a communicator of mpi4py, which all of its processes call.

    A machine is "" where a process does not reach the memory of all others on it.
    """
    probe = np.frombuffer(os.urandom(16), np.uint8)
    own = _machine() if _READ is not None and _WRITE is not None else ""
    told = world.allgather((own, os.getpid(), probe.ctypes.data, probe.tobytes()))
    reached = world.allgather(_reaches_all(own, told))
    refused = {machine for (machine, *_), good in zip(told, reached, strict=True) if not good}
    return [("" if machine in refused else machine, process) for machine, process, *_ in told]


def _machine() -> str:
    """A name that two processes share if they run under one kernel and number processes alike; "" if not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _reaches_all(own: str, told: Sequence[tuple[str, int, int, bytes]]) -> bool:
    """Whether the probe of every process of this machine can be read here."""
    try:
        return all(
            RemoteArray(process, address, 16, np.dtype(np.uint8))[0:16].tobytes() == probe
            for machine, process, address, probe in told
            if machine and machine == own
        )
    except CommunicationError:
        return False
