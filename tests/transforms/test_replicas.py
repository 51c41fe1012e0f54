"""Jitted functions in replicas that are threads: none waits for a lock that a replica holds which waits for it."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.collectives import all_reduce, rank
from xarr import config
from xarr.distributed import simulate
from xarr.errors import CollectiveTimeoutError
from xarr.transforms import jit as jit_module, traced

#: Instead of a hang where a replica waits for a lock, in which it counts as one that runs.
SECONDS = 20


@pytest.mark.parametrize("n", [2, 3])
def test_a_function_may_meet_others_while_it_is_recorded(n: int) -> None:
    @xarr.jit
    def f(x: xarr.Array) -> xarr.Array:
        return x + all_reduce(1.0)

    with config(collective_timeout=SECONDS):
        assert simulate(n, lambda: float(f(xarr.asarray(float(rank()))))) == [float(n + k) for k in range(n)]


def test_it_would_hang_if_replicas_recorded_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lock = threading.RLock()
    monkeypatch.setattr(jit_module.Jitted, "_only_one", lambda self, signature: lock)

    @xarr.jit
    def f(x: xarr.Array) -> xarr.Array:
        return x + all_reduce(1.0)

    with config(collective_timeout=0.3), pytest.raises(CollectiveTimeoutError, match="has waited for"):
        simulate(2, lambda: float(f(xarr.asarray(1.0))))


def test_values_from_outside_may_need_all_replicas() -> None:
    def meet(x: Any) -> Any:
        return x + all_reduce(1.0)

    def program() -> float:
        with config(small_arrays="lazy"):
            outside = xarr.pure_callback(meet, xarr.ShapeDtypeStruct((), np.float64), xarr.asarray(0.0))
            return float(xarr.jit(lambda x: x * outside)(xarr.asarray(3.0)))

    with config(collective_timeout=SECONDS):
        assert simulate(2, program) == [6.0, 6.0]


def test_what_is_recorded_may_depend_on_the_replica() -> None:
    @xarr.jit
    def f(x: xarr.Array) -> xarr.Array:
        return x + 1 if rank() == 0 else x * 10

    def program() -> list[float]:
        results = []
        for number in range(20):
            results.append(float(f(xarr.asarray(float(number)))))
            all_reduce(1.0)
        return results

    first, second = simulate(2, program)
    assert first == [number + 1.0 for number in range(20)]
    assert second == [number * 10.0 for number in range(20)]
    assert float(f(xarr.asarray(5.0))) == 6.0  # alone this is replica 0


def test_programs_are_shared_by_replicas(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    make = traced.make_program

    def count(graph: Any, *args: Any, **kwargs: Any) -> Any:
        made.append(graph)
        return make(graph, *args, **kwargs)

    monkeypatch.setattr(traced, "make_program", count)
    f = xarr.jit(lambda x: xarr.sin(x) * 7.25 + 1)
    assert len(set(simulate(4, lambda: float(f(xarr.asarray(0.5)))))) == 1
    assert len(made) == 1
    assert f.compilations == 4
