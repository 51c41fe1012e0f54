"""A communicator of one process under MPI, through mpi4py.

Messages are bytes between two processes, and nothing else is asked of MPI, but for reductions of integers and bools
between machines (`native_sums.py`).  So the bits are those of every other engine, and a message carries in its tag a
checksum of the collective, its types and groups, and of how often the group has met: what belongs to another collective
is never taken for an answer.  Replicas that are in different collectives wait for each other then, which `watch.py`
finds.  Processes of one machine reduce in memory that they share where they can (`neighbors.py`), between two such
messages.

A wait polls.  So Ctrl-C works in it as anywhere in Python, and what the watch sees is raised as an exception.
"""

from __future__ import annotations

import os
import time
import zlib
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.base.host.memory import pool
from xarr.communication.algorithms import is_small
from xarr.communication.communicator import (
    Array,
    ArrayType,
    CollectiveCall,
    Communicator,
    HostQueues,
    describe_arrays,
)
from xarr.distributed.native_sums import NativeSums
from xarr.distributed.neighbors import find_neighbors
from xarr.distributed.watch import Activity, Blocked, Watch
from xarr.errors import CollectiveMismatchError, CommunicationError, DeadlockError

#: Bytes of one message: what MPI counts in 32 bits.
_MOST_BYTES: Final = 2**30
#: Bytes of an array below which messages are quicker than telling where it lies.
_LEAST_SHARED: Final = 2**17
#: Polls before a wait is told to the watch, and seconds after which it sleeps between polls.
_QUICK_POLLS: Final = 100
_SPINNING: Final = 0.05
_PAUSE: Final = 0.0002
#: Element types whose arrays are buffers for all; those of ml_dtypes are not.
_PLAIN: Final = frozenset("?bBhHiIlLqQefdFD")
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
        #: What runs, its checksum, how often its group has met, and the round, -1 before the first one.
        self._call = self._outside = CollectiveCall("exchange", "", tuple(range(self._size)))
        self._checksum, self._met, self._round = 0, 0, -1
        self.progress = Activity()
        #: Arrays of channels: those that may not have left yet, and those that came before they were wanted.
        self._leaving: list[tuple[Any, Any]] = []
        self._arrived: dict[tuple[int, int], deque[Array]] = {}
        self._received: dict[tuple[int, int], int] = {}
        self._neighbors = find_neighbors(world)
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

    def collective(self, call: CollectiveCall) -> AbstractContextManager[None]:
        return _Operation(self, call)

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        rank, byte, tag = self._rank, self._mpi.BYTE, self._next_tag()
        requests = [
            self._data.Irecv((piece, byte), source, tag)
            for source, array in recvs.items()
            if source != rank
            for piece in _pieces(array)
        ]
        requests += [
            self._data.Isend((piece, byte), target, tag)
            for target, array in sends.items()
            if target != rank
            for piece in _pieces(array)
        ]
        if rank in recvs:
            recvs[rank][...] = sends[rank]
        if requests:
            self._wait(requests, lambda: self._describe_wait({*sends, *recvs} - {rank}))

    def _next_tag(self) -> int:
        """Begin the next round of the collective that runs; the tag of its messages."""
        if self._round < 0:
            self._met = self.progress.meet(self._call)
        self._round += 1
        return (self._checksum + self._met * _STEP + self._round * _ROUND) % self._tags

    def _describe_wait(self, needs: Iterable[int]) -> Blocked:
        """A wait in the round that runs, in which messages go to and from these processes."""
        return Blocked(self._call, self._met, self._round, tuple(sorted(needs)))

    @contextmanager
    def share(
        self, members: Sequence[int], read: tuple[Array, ...], written: tuple[Array, ...] = ()
    ) -> Iterator[Sequence[tuple[Array, ...]] | None]:
        largest = max(array.nbytes for array in (*read, *written))
        if largest < _LEAST_SHARED or not self._neighbors.have(members):
            yield None
            return
        find = self._neighbors.find
        starts, arrays = [*map(find, read), *map(find, written)], [*read, *written]
        for index, start in enumerate(starts):
            if start < 0:
                arrays[index] = _lend_for_others(arrays[index], is_read=index < len(read))
                starts[index] = find(arrays[index])
        own, targets = np.array(starts), arrays[len(read) :]
        table = np.empty((len(members), len(arrays)), own.dtype)
        self.exchange(dict.fromkeys(members, own), {rank: table[index] for index, rank in enumerate(members)})
        rows = table.tolist()
        if min(map(min, rows)) < 0:  # the memory of one is full
            yield None
            return
        try:
            yield [
                (*read, *targets) if rank == self._rank else self._remote_arrays(rank, row, arrays)
                for rank, row in zip(members, rows, strict=True)
            ]
            others = [rank for rank in members if rank != self._rank]
            self.exchange(dict.fromkeys(others, own), {rank: np.empty_like(own) for rank in others})
        except BaseException:
            self._abandoned.append(tuple(arrays))
            raise
        for array, target in zip(written, targets, strict=True):
            if target is not array:
                np.copyto(array, target)

    def _remote_arrays(self, rank: int, starts: Sequence[int], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Arrays of another process, which are like those here."""
        return tuple(
            [self._neighbors.array(rank, start, like) for start, like in zip(starts, arrays, strict=True)]
        )

    def all_reduce(self, members: Sequence[int], operation: str, operand: Array, out: Array) -> bool:
        is_left = is_small(len(members), operand.nbytes) or self._neighbors.have(members)
        if is_left or not self._native.can_reduce(operation, operand.dtype):
            return False
        others = [rank for rank in members if rank != self._rank]
        own = np.array([self._native.has_room(members)])
        told = {rank: np.empty_like(own) for rank in others}
        self.exchange(dict.fromkeys(others, own), told)
        if not all(map(np.all, (own, *told.values()))):
            return False
        request = self._native.start(members, operation, operand, out)
        self._next_tag()
        self._wait([request], lambda: self._describe_wait(others))
        return True

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
        is_inside = self._call is not self._outside
        call = self._call if is_inside else CollectiveCall("recv", wanted, (source, self._rank))
        key = (source, channel)
        number = self._received[key] = self._received.get(key, 0) + 1
        waiting = self._arrived.setdefault(key, deque())
        while not waiting:
            self._take_message(source, lambda: Blocked(call, number, 0, (source,), channel))
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

    def _take_message(self, source: int, blocked: Callable[[], Blocked]) -> None:
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

    def _wait(self, requests: list[Any], blocked: Callable[[], Blocked]) -> None:
        self._poll(partial(self._mpi.Request.Testall, requests), blocked)

    def _poll(self, is_done: Callable[[], bool], blocked: Callable[[], Blocked]) -> None:
        """Return when `is_done()`; raises what the watch finds meanwhile, which is told of waits that are not quick."""
        self._raise_failure()
        for _ in range(_QUICK_POLLS):
            if is_done():
                return
        begin = time.monotonic()
        self.progress.block(blocked(), begin, config.collective_timeout)
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


class _Operation(AbstractContextManager[None]):
    """The block of one collective."""

    __slots__ = ("_call", "_outer", "_own")

    def __init__(self, own: MpiCommunicator, call: CollectiveCall) -> None:
        self._own, self._call = own, call

    def __enter__(self) -> None:
        own, call = self._own, self._call
        self._outer = own._call, own._checksum, own._met, own._round
        own._call, own._round = call, -1
        own._checksum = zlib.crc32(f"{call.name}{call.signature}{call.members}".encode())
        own.progress.begin(call)

    def __exit__(self, *error: object) -> None:
        own = self._own
        own._call, own._checksum, own._met, own._round = self._outer


def _lend_for_others(array: Array, is_read: bool) -> Array:
    """An array like this one in memory that others map, if there is room; a copy if they read it."""
    lent = pool.lend(array.shape, array.dtype)
    if is_read:
        np.copyto(lent, array)
    return lent


def _pieces(array: Array) -> list[Array]:
    """The bytes of an array, in parts that one message can carry."""
    nbytes = array.nbytes
    if 0 < nbytes <= _MOST_BYTES and array.dtype.char in _PLAIN:
        return [array]
    memory = array.reshape(-1).view(np.uint8)
    return [memory[start : start + _MOST_BYTES] for start in range(0, nbytes, _MOST_BYTES)]
