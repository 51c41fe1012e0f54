"""A function as several replicas, threads of one process."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

import xarr
from tests.support.collectives import all_reduce, rank
from xarr import config, random
from xarr.base.process_rng import draw, seed_rng
from xarr.communication.communicator import Grid, current_communicator, current_grid
from xarr.distributed import simulate, simulation
from xarr.errors import CommunicationError, InputError


def test_the_results_are_those_of_all_replicas_in_order() -> None:
    assert simulate(4, lambda x, *, y: x + y + rank(), 10, y=5) == [15, 16, 17, 18]
    assert current_communicator().size == 1


def test_replicas_and_partitions_form_a_grid() -> None:
    assert simulate(6, current_grid, num_partitions=3) == [Grid(2, 3)] * 6
    with pytest.raises(CommunicationError, match="divides a world of 6 members, got 4"):
        simulate(6, current_grid, num_partitions=4)


@pytest.mark.parametrize("n", [0, -1, 2.0, True, "2"])
def test_another_number_of_replicas_is_refused(n: object) -> None:
    with pytest.raises(InputError, match="wanted a positive number of replicas"):
        simulate(n, lambda: None)  # type: ignore[arg-type]


def test_what_cannot_be_called_is_refused() -> None:
    with pytest.raises(InputError, match="wanted a function, got 3"):
        simulate(2, 3)  # type: ignore[arg-type]


def test_each_replica_has_the_settings_of_the_caller_and_changes_its_own() -> None:
    def program() -> tuple[str, str]:
        before = config.broadcasting
        if rank() == 1:
            config.broadcasting = "explicit"
        all_reduce(1.0)
        return before, config.broadcasting

    was = config.broadcasting
    with config(broadcasting="rank"):
        assert simulate(2, program) == [("rank", "rank"), ("rank", "explicit")]
        assert config.broadcasting == "rank"
    assert config.broadcasting == was


def test_each_replica_has_random_numbers_of_its_own() -> None:
    zero, one = np.float64(0.0), np.float64(1.0)

    def program() -> list[float]:
        if rank() < 2:
            seed_rng(5)
        numbers = []
        for _ in range(3):
            all_reduce(1.0)  # so that their draws alternate
            numbers.append(float(draw("UNIFORM", (), np.asarray(zero), np.asarray(one))))
        return numbers

    seed_rng(5)
    first, second, third = simulate(3, program)
    wanted = np.random.default_rng(5).random(3).tolist()
    assert first == second == wanted != third
    assert float(draw("UNIFORM", (), np.asarray(zero), np.asarray(one))) == wanted[0]


def test_each_replica_has_the_state_of_numpys_names_for_itself() -> None:
    def program() -> list[list[float]]:
        numbers = []
        random.seed(5 if rank() < 2 else None)
        for _ in range(3):
            all_reduce(1.0)  # so that their draws alternate
            numbers.append([random.rand(), random.normal(), float(random.sample())])
        kept = random.get_state()
        again = random.ranf(), random.permutation(9).tolist()
        random.set_state(kept)
        assert again == (random.ranf(), random.permutation(9).tolist())
        random.shuffle(x := xarr.arange(30))
        assert sorted(x.tolist()) == list(range(30))
        return numbers

    outside = np.random.get_state()
    try:
        random.seed(7)
        first, second, third = simulate(3, program)
        own = np.random.RandomState(5)
        wanted = [[own.rand(), own.normal(), own.random_sample()] for _ in range(3)]
        assert first == second == wanted != third
        assert random.rand() == np.random.RandomState(7).rand()  # untouched by those of the replicas
    finally:
        np.random.set_state(outside)


def test_arrays_are_computed_in_replicas_as_elsewhere() -> None:
    outside = xarr.arange(5.0) + 1

    @xarr.jit
    def f(x: xarr.Array) -> xarr.Array:
        return xarr.sin(x) * outside

    def program() -> list[float]:
        return np.asarray(f(outside * rank())).tolist()

    assert simulate(3, program) == [
        (np.sin(np.arange(1.0, 6) * k) * np.arange(1.0, 6)).tolist() for k in range(3)
    ]


def test_a_replica_that_runs_on_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_GRACE", 0.05)
    stopped = threading.Event()

    def program() -> None:
        if rank() == 0:
            raise ValueError("boom")
        try:
            while True:
                time.sleep(0.01)
        finally:
            stopped.set()

    with pytest.raises(ValueError, match="boom") as caught:
        simulate(2, program)
    assert stopped.is_set()
    assert "could not be stopped" not in str(caught.value.__notes__)


def test_a_replica_that_cannot_be_stopped_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_GRACE", 0.01)
    monkeypatch.setattr(simulation, "_STOPPING", 0.01)
    release = threading.Lock()

    def program() -> None:
        if rank() == 0:
            raise ValueError("boom")
        with release:  # no Python runs meanwhile
            pass

    with release, pytest.raises(ValueError, match="boom") as caught:
        simulate(2, program)
    assert "replica 1 could not be stopped and runs on at test_simulation.py" in str(caught.value.__notes__)


def test_several_errors_are_told_together() -> None:
    def program() -> None:
        raise ValueError(f"boom {rank()}")

    with pytest.raises(ValueError, match="boom 0") as caught:
        simulate(2, program)
    assert caught.value.__notes__ == [
        "raised at replica 0 of 2 replicas",
        "replica 1 raised ValueError: boom 1",
    ]


def test_ctrl_c_ends_all_replicas_with_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(simulation, "_GRACE", 0.5)
    waiting = threading.Event()

    def interrupt(self: threading.Condition, predicate: object, timeout: float | None = None) -> bool:
        if timeout is None:
            self.release()
            waiting.wait()
            self.acquire()
            raise KeyboardInterrupt
        return real(self, predicate, timeout)  # type: ignore[arg-type]

    real = threading.Condition.wait_for
    monkeypatch.setattr(threading.Condition, "wait_for", interrupt)

    def program() -> None:
        if rank() == 0:
            while current_communicator()._world.running > 1:  # type: ignore[attr-defined]
                time.sleep(0.001)
            waiting.set()
            time.sleep(0.02)
        all_reduce(1.0)

    with pytest.raises(KeyboardInterrupt) as caught:
        simulate(2, program)
    assert "replica 1: waits" in str(caught.value.__notes__)
