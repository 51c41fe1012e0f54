"""Deadlocks are found without a clock, and random programs with pauses give no false alarm."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

from tests.support.collectives import all_gather, all_reduce, rank
from tests.support.fuzz import generator
from xarr.communication.communicator import CollectiveCall, current_communicator
from xarr.distributed import boards
from xarr.distributed.boards import World
from xarr.distributed.simulation import simulate
from xarr.errors import DeadlockError


def _random_program(seed: str, n: int) -> None:
    """Collectives of random groups, sends and receives, the same at all replicas, with pauses of their own."""
    shared, own = generator("boards", seed), generator("boards", f"{seed} {rank()}")
    communicator = current_communicator()
    for step in range(shared.randrange(1, 8)):
        if own.random() < 0.2:
            time.sleep(own.random() * 0.003)
        members = shared.sample(range(n), shared.randrange(1, n + 1))
        kind, size = shared.randrange(3), shared.choice((0, 3, 2000))
        source, target = shared.sample(range(n), 2) if n > 1 else (0, 0)
        if kind == 2:
            if rank() == source:
                communicator.send(np.full(size, step), target, step % 2)
            if rank() == target:
                communicator.recv(np.empty(size, np.int64), source, step % 2)
        elif rank() in members:
            operand = np.full(size, rank(), np.int64)
            if kind == 0:
                assert (all_reduce(operand, members=members) == sum(members)).all()
            else:
                assert all_gather(operand, members).tolist() == [[each] * size for each in members]


@pytest.mark.parametrize("part", range(10))
def test_random_programs_with_pauses_give_no_false_alarm(part: int) -> None:
    for number in range(50):
        n = 1 + (part + number) % 6
        simulate(n, _random_program, f"{part} {number}", n)


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
