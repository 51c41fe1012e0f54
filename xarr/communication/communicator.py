"""What a distributed program asks of the members around it: a `Communicator`, and which one is in use.

A communicator is one member's view of a world of `size` members, numbered by `rank` from 0.  One method is required,
`exchange`; the others have defaults that are right for a world of one member.  A collective runs as

    with communicator.collective(call):
        communicator.exchange({target: array}, {source: buffer})   # as many rounds as its algorithm has

so that a communicator knows during each exchange which operation it belongs to, and who else takes part in it.

XLA numbers members by replica and partition.  Which grid of both they form is no fact of a world but of the program:
`use_communicator` sets it, and `current_grid` tells it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache
from typing import Any, Final, NoReturn

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.errors import CommunicationError, pluralize

Array = np.ndarray[Any, Any]
#: Element type and sizes of one array.
ArrayType = tuple[np.dtype[Any], tuple[int, ...]]


@record
class CollectiveCall:
    """One operation in which several members take part, as one of them sees it.

    * `name` - the operation, as users call it: `all_reduce`,
    * `signature` - types, attributes and groups, as one line of text; equal at all members that take part,
    * `members` - the ranks that take part, in the order of the group, this member's own among them,
    * `source` - the line of the program that built it, `file.py:12`; "" if it is not known.
    """

    name: str
    signature: str
    members: tuple[int, ...]
    source: str = ""


class Communicator(ABC):
    """One member's view of a world.

    Arrays are NumPy arrays in C order; those to be sent may be read-only, and element types may be any, those of
    ml_dtypes included: bytes are moved, nothing is computed.  Every method raises CommunicationError if another member
    failed, or takes part in another operation, or if no member can go on.  None of them is called by two threads at
    once.
    """

    #: What messages call this kind of world.
    name: str = "communicator"
    #: Bytes of a result that are folded at a time, so that a cache still holds them when others get theirs.
    block_bytes: int = 2**18

    @property
    @abstractmethod
    def rank(self) -> int:
        """The number of this member."""

    @property
    @abstractmethod
    def size(self) -> int:
        """The number of members."""

    @abstractmethod
    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        """Send `sends[target]` to each target, and write what each source sends here into `recvs[source]`.

        An array that is sent to this member itself is written to its own receipt.  Returns when all receipts are
        written and all arrays that were sent may be overwritten.  What a member sends to another has as many bytes as
        the other expects, and both do so in the same round of the same operation.
        """

    def collective(self, call: CollectiveCall) -> AbstractContextManager[None]:
        """Surround the exchanges of one operation."""
        return nullcontext()

    def all_gather(self, members: Sequence[int], operand: Array, out: Array) -> bool:
        """Write the operand of `members[i]` to `out[i]`, if there is a faster way than exchanges; tell whether it was.

        out: of the shape of the operand behind one more dimension, of the number of members.
        """
        return False

    def all_to_all(self, members: Sequence[int], operand: Array, out: Array) -> bool:
        """Write row `j` of the operand of `members[i]` to `out[i]` of `members[j]`, as `all_gather` does."""
        return False

    @contextmanager
    def share(
        self, members: Sequence[int], read: tuple[Array, ...], written: tuple[Array, ...] = ()
    ) -> Iterator[Sequence[tuple[Array, ...]] | None]:
        """Let the members of a group reach one another's arrays where they lie; None if they cannot.

        Gives the arrays of each member, in the order of the group: those that are `read`, or copies of them, and those
        that are `written` by anyone.  The end of the block waits for all members.
        """
        yield None

    def all_reduce(self, members: Sequence[int], operation: str, operand: Array, out: Array) -> bool:
        """Write the combination of all operands to `out`, as `all_gather` does.

        operation: `add`, `multiply`, `maximum`, `minimum`, `and`, `or` or `xor`, StableHLO's of these names.  Of
        integers and bools, where the order of the operands does not show in the result, and of floats on demand.
        """
        return False

    def send(self, array: Array, target: int, channel: int) -> None:
        """Send a copy of an array to the member `target`, without waiting until it is received there."""
        self._refuse_channel("send", channel)

    def recv(self, out: Array, source: int, channel: int) -> None:
        """Write the next array that the member `source` sends through `channel` to `out`; wait for it."""
        self._refuse_channel("recv", channel)

    def _refuse_channel(self, name: str, channel: int) -> NoReturn:
        raise CommunicationError(
            f"{name}: wanted a world whose members can send through channels, got {self.name} of "
            f"{pluralize(self.size, 'member')} (channel {channel})"
        )

    def feed(self, arrays: Sequence[Array]) -> None:
        """Put the arrays of one `infeed` of this member in, behind those that wait; called by the host."""
        raise CommunicationError(f"feed: {self.name} has no infeed")

    def take_infeed(self, types: Sequence[ArrayType]) -> Sequence[Array]:
        """The arrays that were put in first; waits for them if there are none."""
        raise CommunicationError(f"infeed: {self.name} has no infeed")

    def put_outfeed(self, arrays: Sequence[Array]) -> None:
        """Put the arrays of one `outfeed` of this member out, without waiting until the host takes them."""
        raise CommunicationError(f"outfeed: {self.name} has no outfeed")

    def fetch(self) -> Sequence[Array]:
        """The arrays that were put out first; called by the host.  Raises CommunicationError if there are none."""
        raise CommunicationError(f"fetch: {self.name} has no outfeed")


class HostQueues:
    """The queues between one member and its host: what waits for `infeed`, and what `outfeed` put out.

    A base beside `Communicator`, for worlds in which an `infeed` that nothing waits for is an error at once.
    """

    def __init__(self) -> None:
        self._incoming: list[tuple[Array, ...]] = []
        self._outgoing: list[tuple[Array, ...]] = []

    def feed(self, arrays: Sequence[Array]) -> None:
        """Put copies of the arrays of one `infeed` in."""
        self._incoming.append(tuple(np.array(array) for array in arrays))

    def take_infeed(self, types: Sequence[ArrayType]) -> Sequence[Array]:
        """The arrays that were put in first; CommunicationError if there are none, or others than the program wants."""
        if not self._incoming:
            raise CommunicationError(
                f"infeed: wanted {describe_arrays(types)}, and nothing waits; feed it before the program runs"
            )
        arrays = self._incoming[0]
        got = [(array.dtype, array.shape) for array in arrays]
        if got != list(types):
            raise CommunicationError(
                f"infeed: wanted {describe_arrays(types)}, and {describe_arrays(got)} waits"
            )
        return self._incoming.pop(0)

    def put_outfeed(self, arrays: Sequence[Array]) -> None:
        """Put copies of the arrays of one `outfeed` out."""
        self._outgoing.append(tuple(np.array(array) for array in arrays))

    def fetch(self) -> Sequence[Array]:
        """The arrays that were put out first; CommunicationError if there are none."""
        if not self._outgoing:
            raise CommunicationError("fetch: no outfeed has put anything out")
        return self._outgoing.pop(0)


def describe_arrays(types: Sequence[ArrayType]) -> str:
    """Write types of arrays for a message: `(float32[2,3], int64[])`."""
    shown = [f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in types]
    return f"({', '.join(shown)})"


class SingleMember(HostQueues, Communicator):
    """A world of one member, which is the one in use if no other is."""

    name = "a program of its own"
    rank = 0
    size = 1

    def __init__(self) -> None:
        super().__init__()
        self._sent: dict[int, list[Array]] = {}

    def exchange(self, sends: Mapping[int, Array], recvs: Mapping[int, Array]) -> None:
        """Write what this member sends to itself."""
        for source, out in recvs.items():
            if source != 0 or 0 not in sends:
                raise CommunicationError(
                    f"wanted an array of member {source}, and this is a program of one member"
                )
            out[...] = sends[source]

    def send(self, array: Array, target: int, channel: int) -> None:
        """Keep a copy of the array for a `recv` of the same channel."""
        if target != 0:
            raise CommunicationError(f"send: there is no member {target} in a program of one member")
        self._sent.setdefault(channel, []).append(np.array(array))

    def recv(self, out: Array, source: int, channel: int) -> None:
        """Write the array that was sent first; CommunicationError if there is none."""
        if source != 0 or not self._sent.get(channel):
            raise CommunicationError(
                f"recv: nothing was sent by member {source} through channel {channel}, and this is a program of one "
                "member, so nothing will be"
            )
        out[...] = self._sent[channel].pop(0)


@record
class Grid:
    """Replicas times partitions: how XLA numbers the members of a world, row by row."""

    num_replicas: int
    num_partitions: int

    def coordinates_of(self, rank: int) -> tuple[int, int]:
        """The numbers of the replica and of the partition of a member."""
        return divmod(rank, self.num_partitions)

    def rank_of(self, replica: int, partition: int) -> int:
        """The member of a replica and a partition."""
        return replica * self.num_partitions + partition


_ALONE: Final = SingleMember()
#: The communicator in use and the number of partitions of each replica, in each thread its own.
_current: ContextVar[tuple[Communicator, int]] = ContextVar("communicator", default=(_ALONE, 1))


def current_communicator() -> Communicator:
    """The communicator in use: that of the innermost `use_communicator`, or a world of one member."""
    return _current.get()[0]


def current_grid() -> Grid:
    """The replicas and partitions that the members of the world in use form."""
    communicator, partitions = _current.get()
    return _grid(communicator.size // partitions, partitions)


@cache
def _grid(num_replicas: int, num_partitions: int) -> Grid:
    return Grid(num_replicas, num_partitions)


@contextmanager
def use_communicator(communicator: Communicator, num_partitions: int = 1) -> Iterator[Communicator]:
    """Use a communicator in the block, in this thread.

    num_partitions: of each replica, by which the size of the world is divisible; else CommunicationError is raised.
    """
    if num_partitions < 1 or communicator.size % num_partitions:
        raise CommunicationError(
            f"wanted a number of partitions that divides a world of {pluralize(communicator.size, 'member')}, "
            f"got {num_partitions}"
        )
    token = _current.set((communicator, num_partitions))
    try:
        yield communicator
    finally:
        _current.reset(token)
