"""What stands against computing small values at once, and that it ends."""

from __future__ import annotations

import contextvars
import threading

import pytest

import xarr
from xarr.base.at_once.obstacles import Obstacle, obstacles
from xarr.calls.operands import watching


def test_an_obstacle_holds_as_long_as_it_is_held() -> None:
    before = len(obstacles)
    first, second = Obstacle(), Obstacle()
    assert len(obstacles) == before + 2
    del first
    assert len(obstacles) == before + 1
    del second
    assert len(obstacles) == before


@pytest.mark.parametrize(
    ("settings", "count"),
    [
        ({"debug_nans": True}, 1),
        ({"broadcasting": "warn"}, 1),
        ({"small_arrays": "lazy"}, 1),
        ({"fusion": "compiled"}, 1),
        ({"default_dtype": "float32"}, 1),
        ({"max_depth": 77}, 0),
        ({"fusion": "off"}, 0),
    ],
)
@pytest.mark.implicit
def test_settings_of_a_block(settings: dict[str, object], count: int) -> None:
    with xarr.config(broadcasting="numpy", fusion="auto"):
        before = len(obstacles)
        with xarr.config(**settings):
            assert len(obstacles) == before + count
            xarr.sum(xarr.asarray([1.0, 2.0]).evaluate() * 2).evaluate()  # which keeps settings it has seen
        assert len(obstacles) == before


def test_a_context_that_outlives_its_block() -> None:
    before = len(obstacles)
    with xarr.config(debug_nans=True):
        context = contextvars.copy_context()
    assert len(obstacles) == before + 1
    del context
    assert len(obstacles) == before


def test_settings_of_the_program() -> None:
    saved = xarr.config.snapshot()
    before = len(obstacles)
    try:
        xarr.config.debug_overflow = True
        assert len(obstacles) >= max(before, 1)
    finally:
        xarr.config.restore(saved)
    assert len(obstacles) == before


def test_observers_and_recorded_functions() -> None:
    before = len(obstacles)
    with watching(lambda event: None):
        assert len(obstacles) == before + 1
    seen: list[int] = []

    def function(x: xarr.Array) -> xarr.Array:
        other = threading.Thread(target=lambda: seen.append(len(obstacles)))
        other.start()
        other.join()
        return x

    xarr.jit(function)(xarr.asarray(1.0))
    assert seen[0] > before and len(obstacles) == before
