"""The communicator of a thread: faults end in a table at once, and what is slow is no fault."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.support.collectives import all_gather, all_reduce, rank
from xarr import config
from xarr.communication.communicator import CollectiveCall, current_communicator
from xarr.distributed.simulation import simulate
from xarr.errors import (
    CollectiveMismatchError,
    CollectiveTimeoutError,
    CommunicationError,
    DeadlockError,
    ReplicaError,
)

X = np.ones(1000)


def _fails(kind: type[Exception], program: Callable[[], Any], *parts: str, n: int = 3) -> str:
    """The text with notes of the error that a program ends in, which has these parts."""
    with pytest.raises(kind) as caught:
        simulate(n, program)
    text = "\n".join([str(caught.value), *getattr(caught.value, "__notes__", [])])
    for part in parts:
        assert part in text, text
    return text


def test_a_replica_that_returns_early() -> None:
    def program() -> None:
        all_reduce(X)
        if rank() != 1:
            all_reduce(X)

    _fails(
        DeadlockError,
        program,
        "replica 1 has ended",
        "replica 1: has returned, after #1 all_reduce",
        "a return",
    )


def test_a_replica_that_exits_early() -> None:
    def program() -> None:
        if rank() == 1:
            sys.exit(0)
        all_reduce(X)

    _fails(DeadlockError, program, "replica 1: has left by sys.exit(0)")


def test_an_exit_that_nobody_waits_for_is_an_error_all_the_same() -> None:
    def program() -> None:
        if rank() == 1:
            sys.exit(0)

    _fails(ReplicaError, program, "replica 1 of 3 replicas has left by sys.exit(0) instead of returning")


def test_an_exception_is_raised_itself_with_a_table_in_its_notes() -> None:
    def program() -> None:
        all_reduce(X)
        if rank() == 1:
            raise ValueError("boom")
        all_reduce(X)

    _fails(
        ValueError,
        program,
        "boom",
        "raised at replica 1 of 3",
        "replica 1: raised ValueError: boom, after #1",
    )


def test_an_exception_in_the_computation_of_a_reduction() -> None:
    def refuse(left: Any, right: Any) -> Any:
        if rank() == 2:
            raise ZeroDivisionError("no")
        return left

    _fails(
        ZeroDivisionError,
        lambda: all_reduce(X, refuse),
        "raised at replica 2 of 3",
        "#1 all_reduce(float64[1000])",
    )


def test_another_operation() -> None:
    def program() -> None:
        all_gather(X) if rank() == 1 else all_reduce(X)

    text = _fails(CollectiveMismatchError, program, "meet in different collectives", "built at program.py:1")
    assert "#1 all_gather(float64[1000])" in text
    assert "#1 all_reduce(float64[1000])" in text


@pytest.mark.parametrize("other", [np.ones(10), np.ones(1000, np.float32), np.ones(50000)])
def test_another_shape_or_type(other: np.ndarray[Any, Any]) -> None:
    _fails(CollectiveMismatchError, lambda: all_reduce(other if rank() == 1 else X), str(other.dtype))


def test_another_order_of_groups() -> None:
    def program() -> None:
        if rank() < 2:
            groups: list[tuple[int, ...]] = [(0, 1), (0, 1, 2)]
            for group in groups if rank() else groups[::-1]:
                all_reduce(X, members=group)
        else:
            all_reduce(X)

    _fails(
        DeadlockError, program, "every replica waits", "replica 0: waits", "for replica 1 in #1", "same order"
    )


def test_other_groups() -> None:
    groups = {0: (0, 1), 1: (1, 2), 2: (0, 1, 2)}
    _fails(DeadlockError, lambda: all_reduce(X, members=groups[rank()]), "every replica waits")


def test_one_that_is_left_out() -> None:
    def program() -> None:
        all_reduce(X)
        if rank() != 2:
            all_gather(X)
        all_reduce(X)

    _fails(CollectiveMismatchError, program, "#2 all_gather", "#2 all_reduce")


def test_a_recv_without_a_send() -> None:
    def program() -> None:
        if rank() == 1:
            current_communicator().recv(np.empty(3), 0, 7)

    _fails(DeadlockError, program, "replica 1: waits", "for replica 0 in", "recv(float64[3])")


def test_a_recv_of_another_type() -> None:
    def program() -> None:
        communicator = current_communicator()
        if rank() == 0:
            communicator.send(np.ones(4, np.int8), 1, 7)
        elif rank() == 1:
            communicator.recv(np.empty(3), 0, 7)

    _fails(CollectiveMismatchError, program, "wanted (float64[3]) of replica 0, and it sent (int8[4])")


def test_what_is_sent_is_a_copy_and_channels_keep_their_order() -> None:
    def program() -> list[float]:
        communicator, out = current_communicator(), np.empty(1)
        if rank() == 0:
            array = np.zeros(1)
            for channel, value in ((7, 1.0), (8, 2.0), (7, 3.0)):
                array[0] = value
                communicator.send(array, 1, channel)
            return []
        received = []
        for channel in (8, 7, 7):
            communicator.recv(out, 0, channel)
            received.append(float(out[0]))
        return received

    assert simulate(2, program) == [[], [2.0, 1.0, 3.0]]


def test_an_infeed_that_nobody_feeds() -> None:
    def program() -> None:
        if rank() == 1:
            current_communicator().take_infeed([(np.dtype(np.float32), (2,))])
        all_reduce(X)

    _fails(CommunicationError, program, "infeed: wanted (float32[2]), and nothing waits", "replica 1: waits")


def test_an_endless_loop_is_stopped_after_the_timeout() -> None:
    released = threading.Event()

    def program() -> None:
        if rank() == 1:
            while not released.wait(0.01):
                pass
        with config(collective_timeout=0.2):
            all_reduce(X)

    try:
        _fails(
            CollectiveTimeoutError,
            program,
            "all_reduce has waited for 0.2 s for replica 1",
            "replica 1: runs at",
            "config.collective_timeout",
        )
    finally:
        released.set()


def test_the_first_mismatch_is_told_by_every_replica() -> None:
    seen: list[str] = []

    def program() -> None:
        try:
            all_gather(X) if rank() == 1 else all_reduce(X)
        except CommunicationError as error:
            seen.append(str(error))
            raise

    _fails(CollectiveMismatchError, program)
    assert len(seen) == 3
    assert len(set(seen)) == 1


def test_exchanges_outside_of_a_collective_are_of_all() -> None:
    def program() -> float:
        communicator, out = current_communicator(), np.empty(1)
        for step in range(3):
            target, source = (rank() + 1) % 3, (rank() - 1) % 3
            communicator.exchange({target: np.full(1, rank() + 10.0 * step)}, {source: out})
        return float(out[0])

    assert simulate(3, program) == [22.0, 20.0, 21.0]


def test_nested_collectives_do_not_meet_each_other() -> None:
    def program() -> Any:
        outer = CollectiveCall("outer", "()", (0, 1))
        with current_communicator().collective(outer):
            return all_reduce(X).sum()

    assert simulate(2, program) == [2000.0, 2000.0]
