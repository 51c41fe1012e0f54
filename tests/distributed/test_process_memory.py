"""Arrays in other processes: parts read and written, refusals, and who reaches whom."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.collectives import all_reduce, rank
from tests.support.mpi import needs_mpi, run_script
from xarr.communication.communicator import Array, current_communicator
from xarr.distributed import process_memory
from xarr.distributed.process_memory import RemoteArray, find_machines
from xarr.errors import CommunicationError

CHILD = """
import os
import numpy as np
x = np.arange(300_000.0)
print(os.getpid(), x.ctypes.data, flush=True)
input()
print(x.sum(), flush=True)
"""
F64 = np.dtype(np.float64)

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")


def _may_read_itself() -> bool:
    """Whether the kernel has process_vm_readv and the container lets it be called."""
    own = np.arange(3.0)
    try:
        return bool((RemoteArray(os.getpid(), own.ctypes.data, 3, F64)[0:3] == own).all())
    except CommunicationError:
        return False


needs_process_memory = pytest.mark.skipif(
    process_memory._READ is None or not _may_read_itself(),
    reason="the kernel does not let processes read others",
)
#: Processes that are no parent and child: Yama's usual setting lets only the administrator's do so.
needs_memory_of_any_process = pytest.mark.skipif(
    _SCOPE.exists() and _SCOPE.read_text().strip() != "0" and os.geteuid() != 0,
    reason=f"{_SCOPE} lets processes read the memory of their children alone",
)


@contextmanager
def _child() -> Iterator[tuple[subprocess.Popen[str], RemoteArray]]:
    """A process that holds the numbers from 0 to 299,999, and they."""
    command = [sys.executable, "-c", CHILD]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        process, address = map(int, child.stdout.readline().split())
        try:
            yield child, RemoteArray(process, address, 300_000, F64)
        finally:
            child.kill()


@needs_process_memory
def test_parts_are_read_and_written() -> None:
    with _child() as (child, remote):
        assert remote[3:6].tolist() == [3.0, 4.0, 5.0]
        assert remote[299_999:300_007].tolist() == [299_999.0]
        assert remote[5:5].tolist() == []
        np.testing.assert_array_equal(remote[0:300_000], np.arange(300_000.0))
        remote[10:300_000] = np.zeros(299_990)
        remote[0:2] = np.array([7.0, 8.0])
        text, _ = child.communicate("\n")
        assert float(text) == 7 + 8 + sum(range(2, 10))


@needs_process_memory
def test_a_process_that_has_ended_is_told() -> None:
    with _child() as (child, remote):
        child.communicate("\n")
        with pytest.raises(CommunicationError, match="is not there any more, which has ended"):
            remote[0:3]
        with pytest.raises(CommunicationError, match="is not there any more, which has ended"):
            remote[0:3] = np.zeros(3)


class World:
    """A communicator of mpi4py, of this process and of others that say what they are told to."""

    def __init__(self, *others: tuple[str, int, int, bytes]) -> None:
        self.others = others

    def allgather(self, own: Any) -> list[Any]:
        return [own, *(self.others if isinstance(own, tuple) else [True] * len(self.others))]


@needs_process_memory
def test_processes_that_reach_each_other_are_on_one_machine() -> None:
    ((machine, process),) = find_machines(World())
    assert machine
    assert find_machines(World(("elsewhere", 5, 7, b"")))[1] == ("elsewhere", 5)
    with _child() as (_, remote):
        first = remote[0:2].tobytes()
        other = machine, remote._process, remote._address, first
        assert find_machines(World(other)) == [(machine, process), (machine, remote._process)]


@needs_process_memory
@pytest.mark.parametrize("probe", [b"0123456789abcdef", b""])
def test_another_content_means_another_process(probe: bytes) -> None:
    machine = process_memory._machine()
    with _child() as (_, remote):
        machines = find_machines(World((machine, remote._process, remote._address, probe)))
    assert [each for each, _ in machines] == ["", ""]


@needs_process_memory
def test_memory_that_cannot_be_read_means_no_machine() -> None:
    machines = find_machines(World((process_memory._machine(), 2**22 + 1, 4096, bytes(16))))
    assert [each for each, _ in machines] == ["", ""]


def test_no_machine_is_known_where_the_kernel_does_not_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "_READ", None)
    assert [each for each, _ in find_machines(World())] == [""]


def test_no_function_is_looked_for_on_other_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert process_memory._find_call("process_vm_readv") is None


def _refuse(left: Array, right: Array) -> Array:
    raise ZeroDivisionError("no sum today")


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


@needs_process_memory
@needs_memory_of_any_process
@needs_mpi
def test_processes_of_a_machine_share_large_arrays() -> None:
    done = run_script(2, Path(__file__), "shares")
    assert done.returncode == 0, done.stdout + done.stderr


if __name__ == "__main__":
    X = np.ones(200_000)
    if sys.argv[1:] == ["shares"]:
        for array in (X, X[:10]):
            with current_communicator().share((0, 1), (array,)) as shared:
                assert (shared is not None) == (array is X)
    else:
        all_reduce(X)
        all_reduce(X, _refuse if rank() == 1 else np.add)
