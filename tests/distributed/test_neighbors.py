"""Processes that map one another's memory: who does, refusals, and programs of several."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.collectives import all_reduce, rank
from tests.support.mpi import environment, needs_mpi, run_script
from xarr.base.host.memory import pool
from xarr.communication.communicator import Array, current_communicator
from xarr.distributed import neighbors
from xarr.distributed.mpi import MpiCommunicator
from xarr.distributed.neighbors import Address, find_neighbors
from xarr.distributed.shared_memory import HUGE_PAGE, SharedMemory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory is shared on Linux alone")
SIZE = 4 * HUGE_PAGE
CHILD = f"""
import numpy as np
from xarr.distributed.neighbors import _address
from xarr.distributed.shared_memory import SharedMemory
memory = SharedMemory({SIZE})
x = memory.block(24).view(np.float64)
x[:] = 1, 2, 3
print(repr((_address(memory), memory.find(x))), flush=True)
input()
print(x.sum(), flush=True)
input()
"""


@contextmanager
def _child() -> Iterator[tuple[subprocess.Popen[str], Address, int]]:
    """A process that shares the numbers 1, 2, 3: the address of its memory, and where in it they are."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    ) as child:
        assert child.stdout is not None
        address, start = eval(child.stdout.readline())
        try:
            yield child, address, start
        finally:
            child.kill()


class World:
    """A communicator of mpi4py, of this process and of another one that says what it is told to."""

    def __init__(self, *told: Any) -> None:
        self.told = list(told)

    def Get_rank(self) -> int:
        return 0

    def allgather(self, own: Any) -> list[Any]:
        return [own, self.told.pop(0)]


@pytest.fixture
def own(monkeypatch: pytest.MonkeyPatch) -> SharedMemory:
    """A small memory instead of that of this process, which keeps its pool."""
    memory = SharedMemory(SIZE)
    monkeypatch.setattr(neighbors, "own_memory", lambda processes: memory)
    monkeypatch.setattr(neighbors, "use_shared_memory", lambda memory: None)
    return memory


def test_arrays_of_a_neighbor_are_read_and_written(own: SharedMemory) -> None:
    with _child() as (child, address, start):
        near = find_neighbors(World(neighbors._machine(), address, True))
        assert near.have((0, 1))
        assert not near.have((0, 2))
        array = near.array(1, start, np.empty(3))
        assert array.tolist() == [1, 2, 3]
        array[1] = 10
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write("\n")
        child.stdin.flush()
        assert float(child.stdout.readline()) == 14
        child.kill()
        child.wait()
        assert array.tolist() == [1, 10, 3]  # though nobody else has it any more
    mine = own.block(PAGE := 4096)
    assert near.find(mine) == own.find(mine)
    assert np.shares_memory(near.array(0, own.find(mine), np.empty(PAGE, np.uint8)), mine)


@pytest.mark.parametrize("what", ["process", "file", "size", "content", "nothing", "refused there"])
def test_one_that_cannot_be_reached_means_no_neighbors(what: str, own: SharedMemory) -> None:
    with _child() as (_, address, _), open(os.devnull) as other:
        process, file, size, token = address
        told = {
            "process": (2**22 + 1, file, size, token),
            "file": (os.getpid(), other.fileno(), size, token),
            "size": (process, file, 2 * size, token),
            "content": (process, file, size, b"0123456789abcdef"),
            "nothing": None,
            "refused there": address,
        }[what]
        near = find_neighbors(World(neighbors._machine(), told, what != "refused there"))
    assert not near.have((0, 1))
    assert near.find(own.block(8)) == -1


@pytest.mark.parametrize("machine", ["elsewhere", ""])
def test_processes_of_other_machines_are_no_neighbors(machine: str, own: SharedMemory) -> None:
    assert not find_neighbors(World(machine, None, False)).have((0, 1))


def test_no_machine_is_known_without_proc(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str) -> str:
        raise OSError(path)

    monkeypatch.setattr(os, "readlink", refuse)
    assert neighbors._machine() == ""


def _refuse(left: Array, right: Array) -> Array:
    raise ZeroDivisionError("no sum today")


def _die(left: Array, right: Array) -> Array:
    os.kill(os.getpid(), signal.SIGKILL)
    return left


@needs_mpi
def test_an_exception_amid_a_reduction_ends_all() -> None:
    done = run_script(3, Path(__file__), timeout=30)
    text = done.stdout + done.stderr
    assert done.returncode != 0
    for part in (
        "ZeroDivisionError: no sum today",
        "Where the replicas were",
        "replica 0: ",
        "#2 all_reduce",
    ):
        assert part in text, text


@needs_mpi
def test_a_process_killed_amid_a_reduction_ends_all() -> None:
    done = run_script(3, Path(__file__), "killed", timeout=30)
    assert done.returncode != 0
    assert "reduced" not in done.stdout


@needs_mpi
def test_processes_of_a_machine_share_large_arrays() -> None:
    done = run_script(2, Path(__file__), "shares")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("shared") == 2


def _share() -> None:
    """Read and write arrays here and there, in shared memory and elsewhere, large and small."""
    communicator = current_communicator()
    assert isinstance(communicator, MpiCommunicator)
    find = communicator._neighbors.find
    near, far = pool.empty((300_000,), np.dtype(np.float64)), np.empty(300_000)
    assert find(near) >= 0 > find(far)
    small, none = np.arange(5) + rank(), np.empty(0)
    for array in (near, far):
        array[:] = rank()
        written = np.zeros(3), pool.empty((200_000,), np.dtype(np.int16)), np.zeros(200_000)
        with communicator.share((1, 0), (array, small, none), written) as shared:
            assert shared is not None
            for owner, (large, few, nothing, *targets) in zip((1, 0), shared, strict=True):
                assert (large == owner).all() and (few == np.arange(5) + owner).all() and not nothing.size
                for target in targets:
                    target[rank() :: 2] = 10 * owner + rank()
        for each in written:
            assert (each[0], each[1]) == (10 * rank(), 10 * rank() + 1)
    with communicator.share((0, 1), (small, none)) as shared:
        assert shared is None
    print("shared")


if __name__ == "__main__":
    X = np.ones(200_000)
    if sys.argv[1:] == ["shares"]:
        _share()
    elif sys.argv[1:] == ["killed"]:
        all_reduce(X)
        all_reduce(X, _die if rank() == 1 else np.add)
        print("reduced")
    else:
        all_reduce(X)
        all_reduce(X, _refuse if rank() == 1 else np.add)
