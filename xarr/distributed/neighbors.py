"""The processes of a world that run on one machine and have mapped one another's memory.

Who may open whose memory depends on users, containers and security modules, so each process tries it once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from xarr.communication.communicator import Array
from xarr.distributed.shared_memory import SharedMemory, map_file, own_memory, use_shared_memory

#: How others find the memory of a process: its number, that of the file, the size, and what is written there.
Address = tuple[int, int, int, bytes]


class Neighbors:
    """The memory of each process on this machine, this one's own among them, by rank; none where they share none."""

    def __init__(self, own: SharedMemory | None = None, memories: dict[int, Array] | None = None) -> None:
        self._own = own
        self._memories = memories or {}

    def have(self, members: Sequence[int]) -> bool:
        """Whether all of these processes share memory."""
        return all(map(self._memories.__contains__, members))

    def find(self, array: Array) -> int:
        """Where an array lies that others can reach; -1 of others."""
        return -1 if self._own is None else self._own.find(array)

    def array(self, rank: int, start: int, like: Array) -> Array:
        """The array at a position in the memory of a process, of the shape and type of another one."""
        return self._memories[rank][start : start + like.nbytes].view(like.dtype).reshape(like.shape)


def find_neighbors(world: Any) -> Neighbors:
    """The neighbors of this process among those of a communicator of mpi4py, which all of its processes call."""
    own = _machine()
    machines, rank = world.allgather(own), world.Get_rank()
    near = [each for each, machine in enumerate(machines) if machine and machine == own]
    memory = own_memory(len(near)) if len(near) > 1 else None
    addresses = world.allgather(_address(memory) if memory is not None else None)
    memories = {each: _map(addresses[each]) for each in near if each != rank} if memory is not None else {}
    reached = world.allgather(memory is not None and all(each is not None for each in memories.values()))
    if memory is None or not all(reached[each] for each in near):
        return Neighbors()
    use_shared_memory(memory)
    others = {each: mapped for each, mapped in memories.items() if mapped is not None}
    return Neighbors(memory, {**others, rank: memory.bytes})


def _machine() -> str:
    """A name that two processes share if they run under one kernel and number processes alike; "" if not known."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return ""


def _address(memory: SharedMemory) -> Address:
    return os.getpid(), memory.file, memory.size, memory.token


def _map(address: Address | None) -> Array | None:
    """The memory of another process; None if it cannot be reached."""
    if address is None:
        return None
    process, number, size, token = address
    try:
        file = os.open(f"/proc/{process}/fd/{number}", os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        memory = map_file(file, size) if os.fstat(file).st_size == size else None
    except (OSError, ValueError):
        return None
    finally:
        os.close(file)
    return memory if memory is not None and memory[:16].tobytes() == token else None
