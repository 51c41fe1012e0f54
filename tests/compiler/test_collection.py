"""The collector of garbage while large graphs are compiled: held back, and on again afterwards."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest

import xarr
from xarr import backend
from xarr.base.python_build import is_free_threaded
from xarr.compiler import collection, pipeline
from xarr.compiler.collection import collection_paused, full_collection_paused
from xarr.ir.graph import Graph


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.enable()
    yield
    (gc.enable if was_enabled else gc.disable)()


def test_a_block_holds_it_back_until_the_last_one_ends() -> None:
    with collection_paused():
        with collection_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_an_error_ends_the_block() -> None:
    with pytest.raises(ValueError, match="now"), collection_paused():
        raise ValueError("now")
    assert gc.isenabled()


#: A finaliser of a circle, which the collector runs when a block begins, waits for a thread that enters one too.
FINALISER = """
import gc, threading
from xarr.compiler.collection import collection_paused

def enter():
    with collection_paused():
        pass

class Waits:
    def __del__(self):
        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        print("finalised", flush=True)

gc.set_threshold(100_000, 10, 10)
circle = Waits()
circle.itself = circle
del circle
enter()
"""


@pytest.mark.skipif(is_free_threaded(), reason="nothing is collected when a block begins")
def test_finalisers_may_wait_for_threads_that_hold_it_back() -> None:
    done = subprocess.run([sys.executable, "-c", FINALISER], capture_output=True, text=True, timeout=60)
    assert done.stdout == "finalised\n", done.stderr


def test_one_that_is_off_stays_off() -> None:
    gc.disable()
    with collection_paused():
        pass
    assert not gc.isenabled()


def count_old(kind: type) -> int:
    return sum(type(each) is kind for each in gc.get_objects(2))


class _Kept(list[Any]):
    """Objects of which the collector knows."""


@pytest.fixture
def _unfrozen() -> Iterator[None]:
    """Nothing is frozen meanwhile, as the suite's objects are."""
    was_frozen = gc.get_freeze_count()
    gc.unfreeze()
    yield
    if was_frozen:
        gc.freeze()


@pytest.mark.skipif(
    sys.version_info >= (3, 14) or is_free_threaded(), reason="has no three generations of objects"
)
@pytest.mark.usefixtures("_unfrozen")
@pytest.mark.parametrize(("count", "grows_old"), [(100, False), (collection._MANY, True)])
def test_many_objects_are_old_when_the_block_ends(count: int, grows_old: bool) -> None:
    with collection_paused():
        kept = [_Kept() for _ in range(count)]
    assert count_old(_Kept) == (len(kept) if grows_old else 0)
    assert not gc.get_freeze_count()


@pytest.mark.skipif(is_free_threaded(), reason="has no generations")
def test_what_was_thrown_away_before_does_not_grow_old() -> None:
    thrown = _Kept()
    thrown.append(thrown)
    is_there = weakref.ref(thrown)
    del thrown
    with collection_paused():
        assert is_there() is None


@pytest.mark.usefixtures("_unfrozen")
def test_frozen_objects_stay_frozen() -> None:
    gc.freeze()
    try:
        before = gc.get_freeze_count()
        with collection_paused():
            kept = [_Kept() for _ in range(collection._MANY)]
        assert gc.get_freeze_count() == before and kept
    finally:
        gc.unfreeze()


def hold_in_a_thread() -> tuple[threading.Thread, threading.Event]:
    """A thread that is in a block, and what ends it."""
    has_started, end = threading.Event(), threading.Event()

    def hold() -> None:
        with collection_paused():
            has_started.set()
            end.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    has_started.wait()
    return thread, end


def test_another_thread_holds_it_back_for_longer() -> None:
    with collection_paused():
        thread, end = hold_in_a_thread()
    assert not gc.isenabled()
    end.set()
    thread.join()
    assert gc.isenabled()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("is_inside", [False, True])
def test_a_child_process_collects_where_another_thread_held_it_back(is_inside: bool) -> None:
    thread, end = hold_in_a_thread()
    with collection_paused() if is_inside else nullcontext():
        child = os.fork()
        was_held = not gc.isenabled()
    if not child:
        with collection_paused():
            is_paused = not gc.isenabled()
        os._exit(0 if (was_held, is_paused, gc.isenabled()) == (is_inside, True, True) else 1)
    end.set()
    thread.join()
    assert os.waitpid(child, 0)[1] == 0
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("steps", "hot", "collects"), [(3, False, True), (3, True, False), (600, False, False)]
)
def test_it_is_held_back_while_a_program_is_made_that_is_large_or_runs_often(
    steps: int, hot: bool, collects: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chain(x: Any) -> Any:
        for k in range(steps):
            x = x * 0.5 + k
        return x

    traced = xarr.jit(chain).lower("f64[8]").stage("traced")
    assert isinstance(traced, Graph)
    enabled: list[bool] = []
    lower = pipeline.lower

    def look(*arguments: Any, **others: Any) -> Graph:
        enabled.append(gc.isenabled())
        return lower(*arguments, **others)

    monkeypatch.setattr(pipeline, "lower", look)
    pipeline.make_program(traced, backend.get("numpy"), hot)
    assert enabled == [collects]
    assert gc.isenabled()


def test_old_objects_are_left_alone_while_a_function_is_recorded() -> None:
    before, seen = gc.get_threshold(), list[tuple[int, ...]]()

    def look(x: Any) -> Any:
        seen.append(gc.get_threshold())
        assert gc.isenabled()
        return x + 1

    assert xarr.jit(look)(2.0) == 3.0
    ((*young, old),) = seen
    assert young == [*before[:2]]
    assert old > 10**6 or sys.version_info >= (3, 14)  # which has no such threshold
    assert gc.get_threshold() == before


def test_a_threshold_that_the_program_sets_meanwhile_stays() -> None:
    before = gc.get_threshold()
    try:
        with full_collection_paused(), full_collection_paused():
            gc.set_threshold(500, 5, 5)
        assert gc.get_threshold() == (500, 5, 5)
    finally:
        gc.set_threshold(*before)


def test_a_handler_of_signals_may_enter_a_block_anywhere() -> None:
    states = ["collects"]

    def look() -> str:
        with hold.block():
            return states[-1]

    def stop() -> None:
        with hold.block():
            states.append("is held back")

    def go_on(before: str) -> None:
        with hold.block():
            states.append(before)

    hold = collection._Hold(look, stop, go_on)
    for _ in range(2):
        with hold.block():
            assert states[-1] == "is held back"
        assert states[-1] == "collects"
    assert not hold._owners


def test_an_interruption_before_it_is_stopped_leaves_nothing_behind() -> None:
    went_on = list[Any]()

    def stop() -> None:
        raise KeyboardInterrupt

    hold = collection._Hold(lambda: "before", stop, went_on.append)
    with pytest.raises(KeyboardInterrupt), hold.block():
        pass
    assert went_on == ["before"] and not hold._owners


def test_an_interruption_at_the_end_comes_when_it_goes_on() -> None:
    went_on = list[Any]()

    def go_on(before: str) -> None:
        went_on.append(before)
        if len(went_on) < 3:
            raise KeyboardInterrupt

    hold = collection._Hold(lambda: "before", lambda: None, go_on)
    with pytest.raises(KeyboardInterrupt), hold.block():
        pass
    assert went_on == ["before"] * 3 and not hold._owners
