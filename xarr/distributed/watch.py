"""Find out that processes can never go on: a thread in each, which asks the others where they are.

The thread is idle while collectives are quick.  If its process has waited for `_SOON` seconds it asks all others for a
report, again and again.  What it decides on is a snapshot: reports of two rounds of questions between which no process
has started or ended a wait, so that all of it was true at one time, however slow the network is.  In a snapshot a
process can go on if each of those that it exchanges messages with has come to the same exchange, or was there before;
then what it waits for is on its way, which may take as long as it likes.  It never can if one has ended before it came,
or is in another collective instead.  If all wait, and none can go on, that is a deadlock.  Only a process that runs,
or one that does not answer, is a matter of time: `config.collective_timeout`.

One process tells it at once, the others a second later, so that one table is printed and not all of them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from xarr.base.frozen_dataclasses import record
from xarr.communication.communicator import CollectiveCall
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
)

#: Seconds between two looks, and between two rounds of questions; and how long a wait is quick.
_TICK: Final = 0.05
_ASKING: Final = 0.25
_SOON: Final = 0.4
#: Seconds that all but the first process give the first one to tell what is wrong.
_POLITENESS: Final = 1.0
#: Seconds that a process without an answer is waited for, where a table is wanted at once.
_PATIENCE: Final = 0.6

Failure = tuple[type[CommunicationError], str]


@record
class Blocked:
    """A wait in an exchange, the `round`-th of a collective for which the group has met `met` times; or for a sender.

    `needs` are those to whom or from whom a message goes; of a sender's arrays, the `met`-th of `channel` is wanted.
    """

    call: CollectiveCall
    met: int
    round: int
    needs: tuple[int, ...]
    channel: int | None = None


@record
class Report:
    """The state of a process, as it tells it to others.

    * `stamp` - counts waits that have begun or ended: equal stamps mean that nothing has changed in between,
    * `blocked`, `seconds` - what it waits for, None if it runs, and since when,
    * `met`, `sent` - how often each of its groups has met, how many arrays it has sent by receiver and channel,
    * `ended` - how it has ended, "" if it has not; `has_failed` - whether it is telling what is wrong.
    """

    rank: int
    stamp: int
    blocked: Blocked | None
    seconds: float
    call: CollectiveCall | None
    number: int
    met: Mapping[tuple[int, ...], int]
    sent: Mapping[tuple[int, int], int]
    ended: str
    line: str
    has_failed: bool


class Activity:
    """The state of the main thread of a process, written by it and read by its watch."""

    def __init__(self) -> None:
        self.met: dict[tuple[int, ...], int] = {}
        self.sent: dict[tuple[int, int], int] = {}
        self.stamp = 0
        self.number = 0
        self.call: CollectiveCall | None = None
        #: What is waited for, since when, and for how long at most.
        self.waiting: tuple[Blocked, float, float] | None = None
        self.ended = ""
        self.has_failed = False
        self.thread = threading.get_ident()

    def begin(self, call: CollectiveCall) -> None:
        """Count a collective."""
        self.number += 1
        self.call = call

    def meet(self, call: CollectiveCall) -> int:
        """Count a meeting of a group; how often it has met now."""
        count = self.met[call.members] = self.met.get(call.members, 0) + 1
        return count

    def send(self, target: int, channel: int) -> None:
        """Count an array that was sent."""
        self.sent[target, channel] = self.sent.get((target, channel), 0) + 1

    def block(self, blocked: Blocked, since: float, timeout: float) -> None:
        """Note that a wait is no longer quick."""
        self.stamp += 1
        self.waiting = blocked, since, timeout

    def unblock(self) -> None:
        """Note that a wait is over."""
        self.waiting = None
        self.stamp += 1

    def report(self, rank: int) -> Report:
        """The state for others."""
        # The stamp first: a change while the rest is read makes the next report another one.
        stamp, waiting = self.stamp, self.waiting
        blocked, seconds = (waiting[0], time.monotonic() - waiting[1]) if waiting else (None, 0.0)
        line = "" if blocked or self.ended else line_of_thread(self.thread)
        counts = self.met.copy(), self.sent.copy()
        last = self.call, self.number
        return Report(rank, stamp, blocked, seconds, *last, *counts, self.ended, line, self.has_failed)

    def timeout_error(self, rank: int, seconds: float) -> CollectiveTimeoutError:
        """The error of a process that nobody answers."""
        headline = f"a collective has waited for {seconds:.0f} s"
        return CollectiveTimeoutError(table(headline, [standing(self.report(rank))], TIMEOUT_ADVICE))


class Watch:
    """The thread of one process."""

    def __init__(self, mpi: Any, control: Any, progress: Activity) -> None:
        self._mpi, self._control, self._progress = mpi, control, progress
        self._rank, self._size = control.Get_rank(), control.Get_size()
        self._parent = os.getppid()
        #: The error for the main thread to raise.
        self.failure: Failure | None = None
        self._reports: dict[int, Report] = {}
        self._snapshot: dict[int, Report] = {}
        self._question = 0
        self._asked_at = 0.0
        self._ask_anyway = threading.Event()
        self._answers: dict[int, Report] = {}
        self._requests: list[Any] = []
        self._outcome: tuple[Failure, float] | None = None
        self._has_told = False
        self._stop = False
        self._thread = threading.Thread(target=self._run, name="xarr watch", daemon=True)
        self._thread.start()

    def table(self, headline: str, advice: str = "") -> str:
        """A table of all processes, of which those that run are asked first; called by the main thread."""
        self._answers = {}
        self._ask_anyway.set()
        end = time.monotonic() + _PATIENCE
        while len(self._answers) < self._size - 1 and time.monotonic() < end:
            time.sleep(0.01)
        return table(headline, self._standings(), advice)

    def has_all_ended(self) -> bool:
        """Whether every other process has said that it has ended, or the thread that listens to that has."""
        if not self._thread.is_alive():
            return True
        others = [self._reports.get(rank) for rank in range(self._size) if rank != self._rank]
        return self._has_told and all(each is not None and each.ended for each in others)

    def stop(self) -> None:
        """End the thread, before MPI ends."""
        self._stop = True
        self._thread.join()

    # --- the thread --------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._look()
        except BaseException:
            # The main thread would wait for ever if nobody looked any more: it raises this.
            self.failure = (
                CommunicationError,
                f"the watch of replica {self._rank} failed:\n{traceback.format_exc()}",
            )
            raise

    def _look(self) -> None:
        while not self._stop:
            time.sleep(_TICK)
            self._receive()
            if os.getppid() != self._parent:  # Open MPI leaves processes alive if mpiexec is killed.
                write_error(f"[replica {self._rank}] the launcher is gone; this process ends\n")
                os._exit(1)
            if self._progress.ended and not self._has_told:
                self._tell("report", 0, self._own(), self._others())
                self._has_told = True
            self._ask_and_judge()

    def _own(self) -> Report:
        return self._progress.report(self._rank)

    def _others(self) -> list[int]:
        return [rank for rank in range(self._size) if rank != self._rank]

    def _tell(self, kind: str, question: int, report: Report | None, targets: list[int]) -> None:
        self._requests = [each for each in self._requests if not each.Test()]
        message = kind, question, report
        self._requests += [self._control.isend(message, target, 0) for target in targets]

    def _receive(self) -> None:
        while (message := self._control.improbe(self._mpi.ANY_SOURCE, 0)) is not None:
            status = self._mpi.Status()
            kind, question, report = message.recv(status=status)
            source = status.Get_source()
            if kind == "ask":
                self._tell("report", question, self._own(), [source])
            else:
                self._reports[source] = report
                if question == self._question:
                    self._answers[source] = report

    def _ask_and_judge(self) -> None:
        waiting, now = self._progress.waiting, time.monotonic()
        is_late = waiting is not None and now - waiting[1] > min(_SOON, waiting[2] / 2)
        if self._ask_anyway.is_set():
            self._ask_anyway.clear()
            self._asked_at = 0.0
            self._ask(now)
        if not is_late or self.failure is not None:
            return
        assert waiting is not None
        known = {**{r: each for r, each in self._reports.items() if each.ended}, **self._answers}
        if len(known) == self._size - 1 and self._question:
            self._judge({**known, self._rank: self._own()}, now)
            self._ask(now)
        elif now - self._asked_at > _ASKING * 4 or not self._question:
            self._ask(now)
        has_asked = self._question > 0 and (len(known) == self._size - 1 or now - self._asked_at >= _ASKING)
        if now - waiting[1] > waiting[2] and has_asked:
            headline = f"{waiting[0].call.name} has waited for {waiting[2]:g} s"
            self._find((CollectiveTimeoutError, table(headline, self._standings(), TIMEOUT_ADVICE)), now)
        if self._outcome is not None and now >= self._outcome[1]:
            self._progress.has_failed = True
            self.failure = self._outcome[0]

    def _ask(self, now: float) -> None:
        """Begin another round of questions, but not sooner than it makes sense."""
        if now - self._asked_at < _ASKING and self._question:
            return
        self._question += 1
        self._answers, self._asked_at = {}, now
        alive = [
            rank for rank in self._others() if rank not in self._reports or not self._reports[rank].ended
        ]
        self._tell("ask", self._question, None, alive)

    def _judge(self, reports: dict[int, Report], now: float) -> None:
        """Look at reports of all processes; nothing follows unless they are those of the round before."""
        before, self._snapshot = self._snapshot, reports
        if {r: each.stamp for r, each in before.items()} != {r: each.stamp for r, each in reports.items()}:
            self._outcome = None
            return
        outcome = verdict(reports)
        if outcome is not None:
            self._find(outcome, now)

    def _find(self, failure: Failure, now: float) -> None:
        if self._outcome is None:
            others = self._reports.values()
            is_first = not any(
                each.has_failed or (each.blocked and each.rank < self._rank) for each in others
            )
            self._outcome = failure, now if is_first else now + _POLITENESS

    def _standings(self) -> list[Standing]:
        reports = {**self._reports, self._rank: self._own()}
        silent = "does not answer: it was stopped, or runs code outside of Python"
        return [
            standing(reports[rank]) if rank in reports else Standing(rank, silent)
            for rank in range(self._size)
        ]


def write_error(text: str) -> None:
    """Write to standard error, if its reader is still there."""
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:
        pass  # The launcher that read it is gone, and what follows must happen all the same.


def standing(report: Report) -> Standing:
    """The row of a table for a report."""
    if report.ended or report.blocked is None:
        state = report.ended or "runs"
        return Standing(report.rank, state, 0.0, report.call, report.number, (), report.line)
    return Standing(report.rank, "waits", report.seconds, report.blocked.call, report.number)


def verdict(reports: Mapping[int, Report]) -> Failure | None:
    """The error that a snapshot of all processes shows; None if one may still go on."""
    missing = {
        rank: _missing(report, reports) for rank, report in reports.items() if report.blocked is not None
    }
    rows = [
        replace(standing(report), missing=missing.get(rank, ())) for rank, report in sorted(reports.items())
    ]
    for rank, absent in missing.items():
        blocked = reports[rank].blocked
        assert blocked is not None
        gone = [each for each in absent if reports[each].ended]
        if gone:
            ended = f"{ranks(gone)} {'has' if len(gone) == 1 else 'have'} ended"
            headline = f"replica {rank} waits in {blocked.call.name} for {ranks(absent)}, and {ended}"
            return DeadlockError, table(headline, rows, ENDED_ADVICE)
        other = [each for each in absent if _is_elsewhere(blocked, reports[each])]
        if other:
            headline = f"replicas {rank} and {other[0]} meet in different collectives"
            return CollectiveMismatchError, table(headline, rows, MISMATCH_ADVICE)
    is_stuck = all(report.ended or missing.get(rank) for rank, report in reports.items())
    if missing and is_stuck:
        return DeadlockError, table(
            "deadlock: every replica waits, and none can go on", rows, DEADLOCK_ADVICE
        )
    return None


def _missing(report: Report, reports: Mapping[int, Report]) -> tuple[int, ...]:
    """The processes that one which waits needs, and that have not come to where it is."""
    blocked = report.blocked
    assert blocked is not None
    return tuple([each for each in blocked.needs if not _has_come(report.rank, blocked, reports[each])])


def _has_come(rank: int, blocked: Blocked, other: Report) -> bool:
    """Whether another process is where this one waits, or was there, so that its message is under way."""
    if blocked.channel is not None:
        return other.sent.get((rank, blocked.channel), 0) >= blocked.met
    met, there = other.met.get(blocked.call.members, 0), other.blocked
    if met != blocked.met:
        return met > blocked.met
    if (
        there is None
        or (there.call.members, there.met) != (blocked.call.members, met)
        or there.channel is not None
    ):
        return True
    return not _is_elsewhere(blocked, other) and there.round >= blocked.round


def _is_elsewhere(blocked: Blocked, other: Report) -> bool:
    """Whether another process meets the same group the same time for something else."""
    there = other.blocked
    if there is None or there.channel is not None or blocked.channel is not None:
        return False
    is_meeting = (there.call.members, there.met) == (blocked.call.members, blocked.met)
    return is_meeting and (there.call.name, there.call.signature) != (
        blocked.call.name,
        blocked.call.signature,
    )
