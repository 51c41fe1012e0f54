"""Deadlocks are found without a clock, and random programs with pauses give no false alarm."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.support.collectives import all_reduce, rank
from tests.support.fuzz import generator
from tests.support.random_collectives import run_program
from xarr.communication.communicator import CollectiveCall, current_communicator
from xarr.distributed import boards
from xarr.distributed.boards import World
from xarr.distributed.simulation import simulate
from xarr.errors import DeadlockError


@pytest.mark.parametrize("part", range(10))
def test_random_programs_with_pauses_give_no_false_alarm(part: int) -> None:
    for number in range(50):
        n = 1 + (part + number) % 6
        simulate(n, run_program, f"{part} {number} {generator('boards', 0).random()}", 0.003)


def test_the_programs_would_deadlock_if_one_replica_left_out_an_operation() -> None:
    def program() -> None:
        for seed in range(20):
            if not (rank() == 0 and seed == 10):
                all_reduce(np.ones(3), members=(0, 1) if seed % 2 else (1, 0))

    with pytest.raises(DeadlockError):
        simulate(2, program)


def test_deadlocks_are_found_without_a_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boards.time, "monotonic", lambda: 0.0)

    def program() -> Any:
        return current_communicator().recv(np.empty(1), (rank() + 1) % 3, 0)

    with pytest.raises(DeadlockError, match="every replica waits"):
        simulate(3, program)


def test_a_board_is_forgotten_when_it_is_complete() -> None:
    world = World(1)
    board = world.meet(0, ((0,), 1, 0), CollectiveCall("all_reduce", "()", (0,)), "payload", 1.0)
    assert board.is_complete
    assert board.payloads == {0: "payload"}
    assert not world._boards
