"""The tables of `docs/distributed.md`, and how their rows are made."""

from __future__ import annotations

import importlib.util
import itertools
import sys
from pathlib import Path
from types import ModuleType

import pytest

from tests.support.fault_program import FAULTS

PATH = Path(__file__).parents[2] / "docs" / "make_distributed.py"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_distributed", PATH)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["make_distributed"] = module
    spec.loader.exec_module(module)
    return module


def test_every_fault_has_a_row_and_none_hangs(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8")
    for fault in (*FAULTS, script.MIXED):
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {fault} |")]
        assert "hangs" not in row
        assert row.count(" |") == 4, "threads, and two MPIs"


def test_the_costs_are_those_of_the_library(script: ModuleType) -> None:
    assert script.cost_table() in script.PAGE.read_text(encoding="utf-8")


def test_no_fault_took_longer_than_five_seconds(script: ModuleType) -> None:
    page = script.PAGE.read_text(encoding="utf-8").partition(script.START)[2].partition("## Costs")[0]
    assert not _slow(page)
    assert _slow("| a | 1.0 s, exit 1: x | 5.4 s, exit 1: y |") == [5.4]


def _slow(page: str) -> list[float]:
    words = page.replace(",", " ").split()
    seconds = [float(word) for word, unit in itertools.pairwise(words) if unit == "s" and _is_number(word)]
    return [each for each in seconds if each > 5]


def _is_number(word: str) -> bool:
    return word.replace(".", "", 1).isdigit()


def test_a_run_that_hangs_is_told(script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(script, "LIMIT", 0.2)
    sleeper = script.Engine("sleeper", (sys.executable, "-c", "import time; time.sleep(60)"))
    assert script.run(sleeper, "none").cell() == "**hangs**"


def test_a_cell_says_seconds_status_table_and_text(script: ModuleType) -> None:
    text = "Traceback\nxarr.errors.DeadlockError: a | b\n  replica 0: waits\n"
    assert script.Outcome(1.26, 1, text).cell() == "1.3 s, exit 1, table: DeadlockError: a \\| b"
    assert script.Outcome(0.0, 0, "end").cell() == "0.0 s, exit 0: no text"
