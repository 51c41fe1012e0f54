"""The benchmark of the NumPy surface has a row for each name, and notices a wrong result; nothing is timed."""

from __future__ import annotations

import importlib
from types import ModuleType

import numpy as np
import pytest

from tests.support.checkout import CHECKOUT
from tests.support.numpy_records import records


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    return importlib.import_module("surface_calls")


@pytest.fixture
def surface(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    return importlib.import_module("numpy_surface")


def test_each_shared_name_has_a_row_or_a_reason(calls: ModuleType) -> None:
    rows = {calls.name_of(line) for lines in calls.lines().values() for line in lines}
    missing = set(records()) - rows - set(calls.NOT_TIMED)
    assert not missing, f"benchmarks/surface_calls.txt has no row for {sorted(missing)}"
    assert not rows & set(calls.NOT_TIMED)
    assert set(calls.NOT_TIMED) <= set(records())


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("xp.linalg.solve(a, e)", "linalg.solve"),
        ("v.sum()", "ndarray.sum"),
        ("v[b]", ""),
        ("rng.random(9) | xp.random.uniform(key, (9,))", ""),
    ],
)
def test_name_of_a_row(calls: ModuleType, line: str, name: str) -> None:
    assert calls.name_of(line) == name


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.array([1.0, 2, 4, np.inf]), "other values"),
        (np.array([1.0, 2, 3, np.inf]), "other values"),
        (np.array([1, 2, np.nan, np.inf], np.float32), "float32 (4,), wanted float64 (4,)"),
        (np.array([[1, 2, np.nan, np.inf]]), "float64 (1, 4), wanted float64 (4,)"),
    ],
    ids=["value", "nan", "dtype", "shape"],
)
def test_a_wrong_result_is_noticed(surface: ModuleType, wrong: np.ndarray, message: str) -> None:
    right = np.array([1, 2, np.nan, np.inf])
    assert surface.difference(right.copy(), right) == ""
    assert surface.difference(wrong, right) == message
    assert surface.difference((right, wrong), (right, right)) == message
    assert surface.difference((right,), (right, right)) == "tuple, wanted 2 results"


def test_slow_rows_are_named_the_worst_first(surface: ModuleType) -> None:
    rows = {
        "twice": {"numpy": 1.0, "xarr": 2.0},
        "4 times": {"numpy": 1.0, "xarr": 4.0},
        "9 times": {"numpy": 1.0, "xarr": 9.0},
        "9 times, but recording": {"numpy": 0.01, "xarr": 0.09},
    }
    assert surface.slow(rows) == ["9 times", "4 times"]
    assert surface.summary("all", rows) == "| all | 4 | 2 (`twice`) | 6.50 | 9 (`9 times`) | 3 | 3 |"
