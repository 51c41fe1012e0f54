"""A communicator of one replica that is a thread beside others in this process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NoReturn

import numpy as np

from xarr.base.configuration import current as config
from xarr.communication.algorithms import is_small
from xarr.communication.communicator import (
    Array,
    ArrayType,
    CollectiveCall,
    Communicator,
    HostQueues,
    describe_arrays,
)
from xarr.distributed.boards import Board, Key, World
from xarr.errors import CommunicationError


class ThreadCommunicator(HostQueues, Communicator):
    """One thread's view of a `World`: what others put on a board is read where it lies."""

    name = "a simulation by threads"
    # Before each block a thread waits for Python's lock.
    block_bytes = 2**20

    def __init__(self, world: World, rank: int) -> None:
        super().__init__()
        self._world = world
        self._rank = rank
        self._call: CollectiveCall | None = None
        #: How often each group has met, and the round within the collective that runs.
        self._met: dict[tuple[int, ...], int] = {}
        self._round = 0

    @property
    def rank(self) -> int:
        return self._rank

    @property
    def size(self) -> int:
        return self._world.size

    @contextmanager
    def collective(self, call: CollectiveCall) -> Iterator[None]:
        outer, self._call, self._round = self._call, call, 0
        self._world.members[self._rank].count += 1
        try:
            yield
        finally:
            self._call = outer

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        call = self._current_call()
        board = self._meet(call.members, dict(sends))
        for source, out in recvs.items():
            out[...] = board.payloads[source][self._rank]
        self._meet(call.members, None)

    def all_gather(self, members: Sequence[int], operand: Array, out: Array) -> bool:
        if not is_small(len(members), operand.nbytes):
            return False
        # A copy need not be waited for until all have read it.
        board = self._meet(tuple(members), operand.copy())
        for index, source in enumerate(members):
            out[index, ...] = board.payloads[source]
        return True

    @contextmanager
    def share(
        self, members: Sequence[int], read: tuple[Array, ...], written: tuple[Array, ...] = ()
    ) -> Iterator[Sequence[tuple[Array, ...]] | None]:
        group = tuple(members)
        board = self._meet(group, (*read, *written))
        yield [board.payloads[rank] for rank in members]
        self._meet(group, None)

    def send(self, array: Array, target: int, channel: int) -> None:
        self._world.send(self._rank, (self._rank, target, channel), np.array(array))

    def recv(self, out: Array, source: int, channel: int) -> None:
        wanted = describe_arrays([(out.dtype, out.shape)])
        call = self._call or CollectiveCall("recv", wanted, (source, self._rank))
        received = self._world.recv(
            self._rank, (source, self._rank, channel), call, config.collective_timeout
        )
        if (received.dtype, received.shape) != (out.dtype, out.shape):
            self._refuse_received(call, source, wanted, received)
        out[...] = received

    def take_infeed(self, types: Sequence[ArrayType]) -> Sequence[Array]:
        try:
            return super().take_infeed(types)
        except CommunicationError as error:
            self._world.refuse(
                self._rank, self._call or CollectiveCall("infeed", describe_arrays(types), ()), str(error)
            )

    def _refuse_received(self, call: CollectiveCall, source: int, wanted: str, received: Array) -> NoReturn:
        got = describe_arrays([(received.dtype, received.shape)])
        self._world.refuse(self._rank, call, f"recv: wanted {wanted} of replica {source}, and it sent {got}")

    def _current_call(self) -> CollectiveCall:
        if self._call is None:  # an exchange outside of any collective is one of all
            return CollectiveCall("exchange", "", tuple(range(self.size)))
        return self._call

    def _meet(self, members: tuple[int, ...], payload: Any) -> Board:
        call = self._current_call()
        if self._round == 0:
            self._met[call.members] = self._met.get(call.members, 0) + 1
        key: Key = (members, self._met[call.members], self._round)
        if self._call is not None:
            self._round += 1
        return self._world.meet(self._rank, key, call, payload, config.collective_timeout)
