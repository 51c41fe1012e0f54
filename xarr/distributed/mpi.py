"""A communicator of one process under MPI, through mpi4py.

Messages are bytes between two processes, and nothing else is asked of MPI, but for reductions of integers and bools
between machines (`native_sums.py`).  So the bits are those of every other engine, and a message carries in its tag a
checksum of the collective, its types and groups, and of how often the group has met: what belongs to another collective
is never taken for an answer.  Replicas that are in different collectives wait for each other then, which `watch.py`
finds.  Processes of one machine reduce from memory to memory where they can (`process_memory.py`), between two such
messages.

A wait polls.  So Ctrl-C works in it as anywhere in Python, and what the watch sees is raised as an exception.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.communication.algorithms import SMALL_BYTES
from xarr.communication.communicator import (
    Array,
    ArrayType,
    CollectiveCall,
    Communicator,
    HostQueues,
    SharedArray,
    describe_arrays,
)
from xarr.distributed.native_sums import NativeSums
from xarr.distributed.process_memory import RemoteArray, find_machines
from xarr.distributed.watch import Activity, Blocked, Watch
from xarr.errors import CollectiveMismatchError, CommunicationError, DeadlockError

#: Bytes of one message: what MPI counts in 32 bits.
_MOST_BYTES: Final = 2**30
#: Bytes of an array below which messages are quicker than telling where it lies.
_LEAST_SHARED: Final = 2**16
#: Polls before a wait is told to the watch, and seconds after which it sleeps between polls.
_QUICK_POLLS: Final = 100
_SPINNING: Final = 0.05
_PAUSE: Final = 0.0002
#: Spread what is counted over all tags.
_STEP, _ROUND = 0x9E3779B1, 0x85EBCA6B


class MpiCommunicator(HostQueues, Communicator):
    """One process of MPI's world, or of an intracommunicator of mpi4py."""

    name = "MPI"

    def __init__(self, mpi: Any, world: Any) -> None:
        super().__init__()
        self._mpi = mpi
        self._rank, self._size = int(world.Get_rank()), int(world.Get_size())
        # Of their own, so that nothing meets messages of the user's or of each other.
        self._data, self._channels = world.Dup(), world.Dup()
        self._tags = int(world.Get_attr(mpi.TAG_UB)) + 1
        self._call: CollectiveCall | None = None
        self._checksum = 0
        self._round = 0
        self.progress = Activity()
        #: Arrays of channels: those that may not have left yet, and those that came before they were wanted.
        self._leaving: list[tuple[Any, Any]] = []
        self._arrived: dict[tuple[int, int], deque[Array]] = {}
        self._received: dict[tuple[int, int], int] = {}
        self._machines = find_machines(world)
        self._native = NativeSums(mpi, world.Dup())
        #: Arrays of collectives that an error ended, which others may still write to.
        self._abandoned: list[tuple[Array, ...]] = []
        can_watch = mpi.Query_thread() == mpi.THREAD_MULTIPLE and self._size > 1
        self.watch = Watch(mpi, world.Dup(), self.progress) if can_watch else None

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._size

    @contextmanager
    def collective(self, call: CollectiveCall) -> Iterator[None]:
        outer = self._call, self._checksum, self._round
        self._call, self._round = call, 0
        self._checksum = zlib.crc32(f"{call.name}{call.signature}{call.members}".encode())
        self.progress.begin(call)
        try:
            yield
        finally:
            self._call, self._checksum, self._round = outer

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        blocked = self._next_round(tuple(sorted({*sends, *recvs} - {self._rank})))
        tag = (self._checksum + blocked.met * _STEP + blocked.round * _ROUND) % self._tags
        own = recvs.get(self._rank)
        requests = [
            self._data.Irecv([piece, self._mpi.BYTE], source, tag)
            for source, array in recvs.items()
            if source != self._rank
            for piece in _pieces(array)
        ]
        requests += [
            self._data.Isend([piece, self._mpi.BYTE], target, tag)
            for target, array in sends.items()
            if target != self._rank
            for piece in _pieces(array)
        ]
        if own is not None:
            own[...] = sends[self._rank]
        if requests:
            self._wait(requests, blocked)

    def _next_round(self, needs: tuple[int, ...]) -> Blocked:
        """The next round of the collective that runs, in which messages go to and from these processes."""
        call = self._call or CollectiveCall("exchange", "", tuple(range(self._size)))
        if self._round == 0:
            self.progress.meet(call)
        number = self._round
        self._round += self._call is not None
        return Blocked(call, self.progress.met[call.members], number, needs)

    @contextmanager
    def share(
        self, members: Sequence[int], arrays: tuple[Array, ...]
    ) -> Iterator[Sequence[tuple[SharedArray, ...]] | None]:
        if max(array.nbytes for array in arrays) < _LEAST_SHARED or not self._share_memory(members):
            yield None
            return
        own = np.array([array.ctypes.data for array in arrays], np.int64)
        table = np.empty((len(members), len(arrays)), np.int64)
        self.exchange(dict.fromkeys(members, own), {rank: table[index] for index, rank in enumerate(members)})
        try:
            yield [
                arrays if rank == self._rank else self._remote_arrays(rank, row.tolist(), arrays)
                for rank, row in zip(members, table, strict=True)
            ]
            others = [rank for rank in members if rank != self._rank]
            self.exchange(dict.fromkeys(others, own), {rank: np.empty_like(own) for rank in others})
        except BaseException:
            self._abandoned.append(arrays)
            raise

    def _share_memory(self, members: Sequence[int]) -> bool:
        machine = self._machines[self._rank][0]
        return bool(machine) and all(self._machines[rank][0] == machine for rank in members)

    def all_reduce(self, members: Sequence[int], operation: str, operand: Array, out: Array) -> bool:
        is_wanted = operand.nbytes > SMALL_BYTES and self._native.can_reduce(operand.dtype)
        if not is_wanted or self._share_memory(members):
            return False
        others = tuple([rank for rank in members if rank != self._rank])
        own = np.array([self._native.has_room(members)])
        told = {rank: np.empty_like(own) for rank in others}
        self.exchange(dict.fromkeys(others, own), told)
        if not all(map(np.all, (own, *told.values()))):
            return False
        request = self._native.start(members, operation, operand, out)
        self._wait([request], self._next_round(others))
        return True

    def _remote_arrays(
        self, rank: int, addresses: Sequence[int], arrays: tuple[Array, ...]
    ) -> tuple[SharedArray, ...]:
        """Arrays of another process, which are like those here."""
        process = self._machines[rank][1]
        return tuple(
            [
                RemoteArray(process, address, array.size, array.dtype)
                for address, array in zip(addresses, arrays, strict=True)
            ]
        )

    def send(self, array: Array, target: int, channel: int) -> None:
        self._raise_failure()
        copy = np.array(array, order="C")
        header = (channel, copy.dtype, copy.shape)
        self._leaving = [each for each in self._leaving if not self._mpi.Request.Testall(each[0])]
        requests = [self._channels.isend(header, target, 0)]
        requests += [self._channels.Isend([piece, self._mpi.BYTE], target, 1) for piece in _pieces(copy)]
        self._leaving.append((requests, copy))
        self.progress.send(target, channel)

    def recv(self, out: Array, source: int, channel: int) -> None:
        wanted = describe_arrays([(out.dtype, out.shape)])
        call = self._call or CollectiveCall("recv", wanted, (source, self._rank))
        key = (source, channel)
        number = self._received[key] = self._received.get(key, 0) + 1
        waiting = self._arrived.setdefault(key, deque())
        blocked = Blocked(call, number, 0, (source,), channel)
        while not waiting:
            self._take_message(source, blocked)
        array = waiting.popleft()
        if (array.dtype, array.shape) != (out.dtype, out.shape):
            got = describe_arrays([(array.dtype, array.shape)])
            raise self._refusal(
                CollectiveMismatchError, f"recv: wanted {wanted} of replica {source}, and it sent {got}"
            )
        out[...] = array

    def take_infeed(self, types: Sequence[ArrayType]) -> Sequence[Array]:
        try:
            return super().take_infeed(types)
        except CommunicationError as error:
            raise self._refusal(DeadlockError, str(error)) from None

    def count_unreceived(self) -> int:
        """The number of arrays that this process has sent through channels and nobody has received."""
        self._leaving = [each for each in self._leaving if not self._mpi.Request.Testall(each[0])]
        return len(self._leaving)

    def _take_message(self, source: int, blocked: Blocked) -> None:
        """Receive the next array that a process has sent, through whichever channel."""
        message = None

        def has_come() -> bool:
            nonlocal message
            message = self._channels.improbe(source, 0)
            return message is not None

        self._poll(has_come, blocked)
        assert message is not None
        channel, dtype, shape = message.recv()
        array = np.empty(shape, dtype)
        requests = [self._channels.Irecv([piece, self._mpi.BYTE], source, 1) for piece in _pieces(array)]
        self._wait(requests, blocked)
        self._arrived.setdefault((source, channel), deque()).append(array)

    def _wait(self, requests: list[Any], blocked: Blocked) -> None:
        test = self._mpi.Request.Testall
        self._poll(lambda: test(requests), blocked)

    def _poll(self, is_done: Any, blocked: Blocked) -> None:
        """Return when `is_done()`; raises what the watch finds meanwhile."""
        self._raise_failure()
        for _ in range(_QUICK_POLLS):
            if is_done():
                return
        begin = time.monotonic()
        self.progress.block(blocked, begin, config.collective_timeout)
        try:
            while not is_done():
                self._raise_failure()
                waited = time.monotonic() - begin
                if self.watch is None and waited > config.collective_timeout:
                    raise self.progress.timeout_error(self._rank, waited)
                if waited > _SPINNING:
                    time.sleep(_PAUSE)
                else:
                    os.sched_yield()
        finally:
            self.progress.unblock()

    def _raise_failure(self) -> None:
        if self.watch is not None and self.watch.failure is not None:
            kind, text = self.watch.failure
            raise kind(text)

    def _refusal(self, kind: type[CommunicationError], headline: str) -> CommunicationError:
        """The error of what this replica cannot do, with a table of all replicas that answer."""
        return kind(self.watch.table(headline) if self.watch is not None else headline)


def _pieces(array: Array) -> Iterator[Array]:
    """The bytes of an array, in parts that one message can carry."""
    if not array.size:
        return
    memory = array.reshape(-1).view(np.uint8)
    for start in range(0, memory.size, _MOST_BYTES):
        yield memory[start : start + _MOST_BYTES]
