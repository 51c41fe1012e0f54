"""Replicas as threads: a board where those of a group meet, and deadlocks that are found without a clock.

The k-th time that the members of a group meet is one board, which is complete when each has put its arrays there.  A
replica that is not the last one waits.  It holds no lock meanwhile, so that what is known about all of them stays
exact: the replica that completes a board counts those who waited there as running again, in the same block.  So if
a replica begins to wait, or ends, and none runs, then none ever will: that is a deadlock, whatever the time.  A board
for which a member that has ended is missing is one too, though others run.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, NoReturn

from xarr.base.frozen_dataclasses import record
from xarr.communication.communicator import Array, CollectiveCall
from xarr.distributed.reports import (
    DEADLOCK_ADVICE,
    ENDED_ADVICE,
    MISMATCH_ADVICE,
    TIMEOUT_ADVICE,
    Standing,
    line_of_thread,
    ranks,
    table,
)
from xarr.errors import (
    CollectiveMismatchError,
    CollectiveTimeoutError,
    CommunicationError,
    DeadlockError,
    ReplicaError,
)

#: Which meeting of which group: its members, how often they had met before, and the round within a collective.
Key = tuple[tuple[int, ...], int, int]
#: Sender, receiver and number of a channel.
Channel = tuple[int, int, int]


class Board:
    """One meeting of a group."""

    def __init__(self, call: CollectiveCall, first: int) -> None:
        self.call = call
        self.first = first
        self.payloads: dict[int, Any] = {}
        self.is_complete = False


@record
class Wait:
    """A board or a channel that a replica waits for, and since when."""

    call: CollectiveCall
    since: float
    target: Board | Channel

    def missing(self) -> tuple[int, ...]:
        """The replicas that have not come yet."""
        if isinstance(self.target, Board):
            there = self.target.payloads
            return tuple([rank for rank in self.call.members if rank not in there])
        return self.target[:1]


class Member:
    """The state of one replica."""

    def __init__(self, lock: threading.Lock) -> None:
        self.wakes = threading.Condition(lock)
        self.wait: Wait | None = None
        self.ended = ""
        self.thread: int | None = None
        self.last: CollectiveCall | None = None
        self.count = 0


class World:
    """The replicas of one `simulate`, and where they meet."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.lock = threading.Lock()
        self.members = [Member(self.lock) for _ in range(size)]
        self.running = size
        #: Class and text of the error that ends all replicas; the first one counts.
        self.failure: tuple[type[CommunicationError], str] | None = None
        #: Notified when a replica ends, and when all are to end.
        self.changed = threading.Condition(self.lock)
        self._boards: dict[Key, Board] = {}
        self._channels: dict[Channel, deque[Array]] = {}

    # --- called by replicas ------------------------------------------------------------------------

    def meet(self, rank: int, key: Key, call: CollectiveCall, payload: Any, timeout: float) -> Board:
        """Put a payload on the board of `key`; returns the board when those of all members are there."""
        with self.lock:
            self._raise_failure()
            self.members[rank].last = call
            board = self._boards.get(key)
            if board is None:
                board = self._boards[key] = Board(call, rank)
            self._compare(board, rank, call)
            board.payloads[rank] = payload
            if len(board.payloads) == len(key[0]):
                del self._boards[key]
                board.is_complete = True
                self._wake(lambda wait: wait.target is board)
            else:
                self._wait(rank, Wait(call, time.monotonic(), board), lambda: board.is_complete, timeout)
        return board

    def send(self, rank: int, channel: Channel, array: Array) -> None:
        """Put an array, which nobody changes any more, into a channel."""
        with self.lock:
            self._raise_failure()
            self._channels.setdefault(channel, deque()).append(array)
            self._wake(lambda wait: wait.target == channel)

    def recv(self, rank: int, channel: Channel, call: CollectiveCall, timeout: float) -> Array:
        """The array that is first in a channel."""
        with self.lock:
            self._raise_failure()
            self.members[rank].last = call
            waiting = self._channels.setdefault(channel, deque())
            if not waiting:
                self._wait(rank, Wait(call, time.monotonic(), channel), lambda: bool(waiting), timeout)
            return waiting.popleft()

    def refuse(self, rank: int, call: CollectiveCall, headline: str) -> NoReturn:
        """Fail because of what a replica was asked to do and cannot."""
        with self.lock:
            self._fail_in(rank, call, CollectiveMismatchError, headline)

    def end(self, rank: int, how: str, is_failure: bool) -> None:
        """Note that a replica has ended, and how, and tell those who wait for it."""
        with self.lock:
            member = self.members[rank]
            member.ended = how
            self.running -= 1
            if is_failure:
                self.fail(ReplicaError, f"replica {rank} {how}")
            else:
                self._look_for_deadlock()
            self.changed.notify_all()

    # --- with the lock held ------------------------------------------------------------------------

    def fail(self, kind: type[CommunicationError], headline: str, advice: str = "") -> None:
        """Let every replica raise an error that ends in a table, if none is raised yet."""
        if self.failure is None:
            self.failure = kind, table(headline, self.standings(), advice)
            for member in self.members:
                member.wakes.notify_all()
            self.changed.notify_all()

    def standings(self) -> list[Standing]:
        """The rows of all replicas."""
        now = time.monotonic()
        return [self._standing(rank, member, now) for rank, member in enumerate(self.members)]

    def _standing(self, rank: int, member: Member, now: float) -> Standing:
        wait = member.wait
        if wait is not None:
            return Standing(rank, "waits", now - wait.since, wait.call, member.count, wait.missing())
        state = member.ended or "runs"
        line = "" if member.ended else line_of_thread(member.thread)
        return Standing(rank, state, 0.0, member.last, member.count, (), line)

    def _raise_failure(self) -> None:
        if self.failure is not None:
            kind, text = self.failure
            raise kind(text)

    def _compare(self, board: Board, rank: int, call: CollectiveCall) -> None:
        other = board.call
        if (other.name, other.signature) != (call.name, call.signature):
            headline = f"replicas {board.first} and {rank} meet in different collectives"
            self._fail_in(rank, call, CollectiveMismatchError, headline, MISMATCH_ADVICE)

    def _fail_in(
        self, rank: int, call: CollectiveCall, kind: type[CommunicationError], headline: str, advice: str = ""
    ) -> NoReturn:
        """Fail because of what a replica that runs is about to do."""
        member = self.members[rank]
        board = Board(call, rank)
        board.payloads[rank] = None
        member.wait = Wait(call, time.monotonic(), board)
        self.fail(kind, headline, advice)
        member.wait = None
        self._raise_failure()
        raise AssertionError

    def _wake(self, is_over: Callable[[Wait], bool]) -> None:
        for member in self.members:
            if member.wait is not None and is_over(member.wait):
                member.wait = None
                self.running += 1
                member.wakes.notify()

    def _wait(self, rank: int, wait: Wait, is_over: Callable[[], bool], timeout: float) -> None:
        member = self.members[rank]
        member.wait = wait
        self.running -= 1
        self._look_for_deadlock()
        end = wait.since + timeout
        while not is_over() and self.failure is None:
            left = end - time.monotonic()
            if left <= 0:
                self._time_out(timeout, wait)
            else:
                member.wakes.wait(left)
        if not is_over():
            member.wait = None
            self.running += 1
            self._raise_failure()

    def _time_out(self, timeout: float, wait: Wait) -> None:
        headline = f"{wait.call.name} has waited for {timeout:g} s for {ranks(wait.missing())}"
        self.fail(CollectiveTimeoutError, headline, TIMEOUT_ADVICE)

    def _look_for_deadlock(self) -> None:
        """Fail if a replica waits for one that has ended, or all wait."""
        waits = [(rank, member.wait) for rank, member in enumerate(self.members) if member.wait is not None]
        for rank, wait in waits:
            gone = [each for each in wait.missing() if self.members[each].ended]
            if gone:
                ended = f"{ranks(gone)} {'has' if len(gone) == 1 else 'have'} ended"
                self.fail(
                    DeadlockError,
                    f"replica {rank} waits in {wait.call.name} for {ranks(wait.missing())}, and {ended}",
                    ENDED_ADVICE,
                )
        if waits and not self.running:
            self.fail(DeadlockError, "deadlock: every replica waits, and none can go on", DEADLOCK_ADVICE)
