"""What the watch of a process decides on a snapshot of all of them."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping

import pytest

from xarr.communication.communicator import CollectiveCall
from xarr.distributed.watch import Activity, Blocked, Report, standing, verdict, write_error
from xarr.errors import CollectiveMismatchError, DeadlockError

ALL = (0, 1, 2)
ADD = CollectiveCall("all_reduce", "(float64[3], add)", ALL, "program.py:1")
GATHER = CollectiveCall("all_gather", "(float64[3])", ALL, "program.py:2")
PAIR = CollectiveCall("all_reduce", "(float64[3], add)", (0, 1), "program.py:3")


def _report(
    rank: int,
    blocked: Blocked | None = None,
    met: Mapping[tuple[int, ...], int] | None = None,
    sent: Mapping[tuple[int, int], int] | None = None,
    ended: str = "",
) -> Report:
    return Report(
        rank, 0, blocked, 1.0, blocked.call if blocked else None, 1, met or {}, sent or {}, ended, "", False
    )


def _block_in(call: CollectiveCall, met: int, rank: int, round: int = 0) -> Blocked:
    return Blocked(call, met, round, tuple([each for each in call.members if each != rank]))


def _report_in(rank: int, call: CollectiveCall, met: int, round: int = 0) -> Report:
    return _report(rank, _block_in(call, met, rank, round), {call.members: met})


def _snapshot(*reports: Report) -> dict[int, Report]:
    return {report.rank: report for report in reports}


def test_all_in_one_exchange_is_a_slow_transfer() -> None:
    assert verdict(_snapshot(*[_report_in(rank, ADD, 4) for rank in ALL])) is None


def test_who_is_a_round_or_a_collective_ahead_has_sent() -> None:
    behind = _report_in(0, ADD, 4, 0)
    assert verdict(_snapshot(behind, _report_in(1, ADD, 4, 1), _report_in(2, ADD, 5))) is None


def test_one_that_runs_may_still_come() -> None:
    assert verdict(_snapshot(_report_in(0, ADD, 4), _report_in(1, ADD, 4), _report(2, met={ALL: 3}))) is None


def test_two_in_different_collectives() -> None:
    outcome = verdict(_snapshot(_report_in(0, ADD, 4), _report_in(1, GATHER, 4), _report(2)))
    assert outcome is not None
    assert outcome[0] is CollectiveMismatchError
    assert "replicas 0 and 1 meet in different collectives" in outcome[1]
    assert (
        "replica 1: waits 1.0 s for replicas 0, 2 in #1 all_gather(float64[3]), built at program.py:2"
        in outcome[1]
    )


@pytest.mark.parametrize("met", [3, 4])
def test_one_that_has_ended_before_it_came(met: int) -> None:
    ended = _report(2, met={ALL: met}, ended="has returned")
    outcome = verdict(_snapshot(_report_in(0, ADD, 4), _report(1), ended))
    assert (outcome is None) == (met == 4)
    if outcome is not None:
        assert outcome[0] is DeadlockError
        assert "replica 2 has ended" in outcome[1]


def test_a_circle_of_groups() -> None:
    first = _report(0, _block_in(ADD, 1, 0), {ALL: 1})
    second = _report(1, _block_in(PAIR, 1, 1), {(0, 1): 1})
    third = _report(2, _block_in(ADD, 1, 2), {ALL: 1})
    outcome = verdict(_snapshot(first, second, third))
    assert outcome is not None
    assert outcome[0] is DeadlockError
    assert "every replica waits" in outcome[1]
    assert verdict(_snapshot(first, second, _report(2))) is None


def test_a_chain_behind_a_round_that_cannot_go_on() -> None:
    behind = _report(1, Blocked(ADD, 1, 0, (2,)), {ALL: 1})
    ahead = _report(0, Blocked(ADD, 1, 1, (1,)), {ALL: 1})
    elsewhere = _report(2, Blocked(CollectiveCall("recv", "()", (0, 2)), 1, 0, (0,), 7))
    outcome = verdict(_snapshot(ahead, behind, elsewhere))
    assert outcome is not None
    assert "every replica waits" in outcome[1]


@pytest.mark.parametrize(("sent", "is_stuck"), [(0, True), (1, True), (2, False)])
def test_a_receiver_waits_for_as_many_arrays_as_it_has_asked_for(sent: int, is_stuck: bool) -> None:
    receiver = _report(1, Blocked(CollectiveCall("recv", "()", (0, 1)), 2, 0, (0,), 7))
    sender = _report(0, _block_in(PAIR, 1, 0), {(0, 1): 1}, {(1, 7): sent})
    assert (verdict(_snapshot(sender, receiver)) is not None) == is_stuck


def test_nobody_waits() -> None:
    assert verdict(_snapshot(_report(0, ended="has returned"), _report(1, ended="has returned"))) is None


def test_a_report_changes_its_stamp_when_a_wait_begins_and_ends() -> None:
    progress = Activity()
    progress.begin(ADD)
    progress.meet(ADD)
    first = progress.report(0)
    assert (first.blocked, first.met, first.number) == (None, {ALL: 1}, 1)
    assert "in test_a_report_changes" in first.line
    progress.block(_block_in(ADD, 1, 0), 0.0, 1.0)
    waiting = progress.report(0)
    progress.unblock()
    assert waiting.blocked is not None
    assert len({first.stamp, waiting.stamp, progress.report(0).stamp}) == 3
    assert standing(waiting).state == "waits"
    assert standing(first).state == "runs"


def test_who_is_alone_with_the_clock_tells_its_own_row() -> None:
    progress = Activity()
    progress.begin(ADD)
    assert "replica 3: runs" in str(progress.timeout_error(3, 12.0))


def test_errors_are_written_where_nobody_reads_them_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    """As when the launcher is killed: what follows the text, the end of the process, must happen all the same."""
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        write_error("the launcher is gone")
        monkeypatch.undo()
        with contextlib.suppress(BrokenPipeError):
            stream.close()
