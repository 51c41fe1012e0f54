"""`simulate`: a function as several replicas, threads of this process."""

from __future__ import annotations

import contextvars
import ctypes
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from xarr.base import process_rng
from xarr.base.configuration import current as config
from xarr.communication.communicator import current_communicator, use_communicator
from xarr.distributed.boards import World
from xarr.distributed.reports import line_of_thread
from xarr.distributed.threads import ThreadCommunicator
from xarr.errors import CommunicationError, InputError, ReplicaError, pluralize

R = TypeVar("R")
#: Seconds that replicas get to come to an end by themselves after one has failed, and to be stopped then.
_GRACE: Final = 1.5
_STOPPING: Final = 1.0


class _Stopped(BaseException):
    """Raised by the simulation in a replica that goes on after another has failed."""


def simulate(n: int, f: Callable[..., R], *args: Any, num_partitions: int = 1, **kwargs: Any) -> list[R]:
    """The results of `f(*args, **kwargs)` at each of n replicas, which are threads of this process.

    num_partitions: by which n is divisible; members are n / num_partitions replicas of so many partitions each.
    A replica has settings and random numbers of its own, from those of the caller on.  `xarr.lax.replica_id()` tells
    which one runs.

    Raises what a replica raises, with its number in a note.  DeadlockError if no replica can go on, or one waits for
    another that has ended; CollectiveMismatchError if they meet in different collectives; CollectiveTimeoutError if a
    collective waits for longer than `config.collective_timeout`; each with a table of who waits where.
    """
    if type(n) is not int or n < 1:
        raise InputError(f"simulate: wanted a positive number of replicas, got {n!r}")
    if not callable(f):
        raise InputError(f"simulate: wanted a function, got {f!r}")
    run = _Simulation(n, num_partitions, lambda: f(*args, **kwargs))
    run.start()
    run.wait()
    return run.results()


def run_parts(parts: Sequence[Callable[[], R]]) -> list[R]:
    """The results of functions without arguments, one for each replica, as `simulate` has them of one function."""
    run = _Simulation(len(parts), 1, lambda: parts[current_communicator().rank]())
    run.start()
    run.wait()
    return run.results()


class _Simulation:
    """One call of `simulate`."""

    def __init__(self, n: int, num_partitions: int, call: Callable[[], Any]) -> None:
        self.world = World(n)
        self.call = call
        self.values: list[Any] = [None] * n
        self.errors: dict[int, BaseException] = {}
        communicators = [ThreadCommunicator(self.world, rank) for rank in range(n)]
        with use_communicator(communicators[0], num_partitions):
            pass  # refuses a number of partitions that does not divide n
        self.threads = [
            threading.Thread(
                target=contextvars.copy_context().run,
                args=(self._run, communicator, num_partitions),
                name=f"replica {communicator.rank}",
                daemon=True,
            )
            for communicator in communicators
        ]

    def start(self) -> None:
        for thread in self.threads:
            thread.start()

    def _run(self, communicator: ThreadCommunicator, num_partitions: int) -> None:
        rank = communicator.rank
        self.world.members[rank].thread = threading.get_ident()
        try:
            with use_communicator(communicator, num_partitions), config.separate(), process_rng.separate():
                self.values[rank] = self.call()
            how, is_failure = "has returned", False
        except SystemExit as error:
            self.errors[rank] = error
            how, is_failure = (
                f"has left by sys.exit({'' if error.code is None else repr(error.code)})",
                bool(error.code),
            )
        except BaseException as error:
            self.errors[rank] = error
            is_failure = not isinstance(error, _Stopped)
            how = "was stopped" if not is_failure else f"raised {type(error).__name__}: {_first_line(error)}"
        self.world.end(rank, how, is_failure)

    def wait(self) -> None:
        """Return when all replicas have ended, or after one has failed and the others had time to end."""
        world = self.world
        try:
            with world.changed:
                world.changed.wait_for(lambda: world.failure is not None or self._have_ended())
        except KeyboardInterrupt as error:
            with world.lock:
                world.fail(ReplicaError, "interrupted by Ctrl-C")
                assert world.failure is not None
                error.add_note(world.failure[1])
            self._end_all()
            raise
        self._end_all()

    def _have_ended(self) -> bool:
        return all(member.ended for member in self.world.members)

    def _end_all(self) -> None:
        """Give replicas that still run some time, then stop those that run Python."""
        changed = self.world.changed
        with changed:
            if changed.wait_for(self._have_ended, _GRACE):
                return
        for thread, member in zip(self.threads, self.world.members, strict=True):
            if not member.ended and thread.ident is not None:
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(thread.ident), ctypes.py_object(_Stopped)
                )
        with changed:
            changed.wait_for(self._have_ended, _STOPPING)

    def results(self) -> list[Any]:
        """The values that the replicas returned; raises the error that came first."""
        left = [rank for rank, member in enumerate(self.world.members) if not member.ended]
        if self.errors or self.world.failure is not None:
            raise self._error(left)
        return self.values

    def _error(self, left: list[int]) -> BaseException:
        """The error that began it: one that a replica raised by itself, or else that of the world."""
        own = [rank for rank in sorted(self.errors) if self._is_own(self.errors[rank])]
        exits = [rank for rank in own if isinstance(self.errors[rank], SystemExit)]
        others = [rank for rank in own if rank not in exits]
        size = pluralize(self.world.size, "replica")
        if others:
            error = self.errors[others[0]]
            error.add_note(f"raised at replica {others[0]} of {size}")
            for rank in others[1:]:
                error.add_note(f"replica {rank} {self.world.members[rank].ended}")
            if self.world.failure is not None and len(own) < self.world.size:
                error.add_note(self.world.failure[1].partition("\n")[2])
        elif self.world.failure is not None:
            kind, text = self.world.failure
            error = kind(text)
            error.__cause__ = next(
                iter([each for each in self.errors.values() if isinstance(each, kind)]), None
            )
        else:
            how = self.world.members[exits[0]].ended
            error = ReplicaError(f"replica {exits[0]} of {size} {how} instead of returning")
        for rank in left:
            line = line_of_thread(self.threads[rank].ident)
            error.add_note(f"replica {rank} could not be stopped and runs on{f' at {line}' if line else ''}")
        return error

    def _is_own(self, error: BaseException) -> bool:
        """Whether a replica raised an error by itself, and not because of another one."""
        failure = self.world.failure
        if isinstance(error, _Stopped):
            return False
        return not (
            isinstance(error, CommunicationError) and failure is not None and failure[1] in str(error)
        )


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0]
