"""The command for a short loan of a GPU: nothing that is there is lost, whatever a part of it does."""

from __future__ import annotations

import importlib
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.checkout import CHECKOUT


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    yield importlib.import_module("gpu_session")
    for name in [
        name for name in sys.modules if name.partition(".")[0] in ("gpu_rows", "gpu", "gpu_session")
    ]:
        del sys.modules[name]


def part(session: Any, name: str, text: str, share: float) -> Any:
    return session.Part(name, ("-c", text), share)


@pytest.mark.thorough
def test_each_part_leaves_what_it_printed(
    session: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hangs = "import time; print('before', flush=True); time.sleep(600)"
    chosen = [
        part(session, "first part", "print('hello')", 0.5),
        part(session, "fails", "import sys; sys.exit('no device')", 0.1),
        part(session, "hangs", hangs, 0.1),
        part(session, "last", "print('end')", 0.3),
    ]
    started = time.monotonic()
    outcomes = session.run_session(chosen, tmp_path, 20)
    assert time.monotonic() - started < 60
    assert [each.state for each in outcomes[:2]] == ["ended with 0", "ended with 1"]
    assert outcomes[2].state.startswith("cut off after ")
    assert [each.last for each in outcomes] == [["hello"], ["no device"], ["before"], ["end"]]
    assert (tmp_path / "first_part.log").read_text(encoding="utf-8") == "hello\n"
    written = json.loads((tmp_path / "session.json").read_text(encoding="utf-8"))
    assert [each["name"] for each in written] == ["first part", "fails", "hangs", "last"]
    assert "--- hangs: cut off after " in capsys.readouterr().out


def test_no_setting_of_xarr_and_no_plugin_of_others_reaches_a_part(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_FUSION", "off")
    show = "import os; print(os.environ.get('XARR_FUSION'), os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'])"
    assert session.run(part(session, "a part", show, 1), tmp_path, 60).last == ["None 1"]


def test_the_parts_are_there_and_fit(session: Any, tmp_path: Path) -> None:
    chosen = session.parts(tmp_path, "abc", 8, 570)
    names = [each.name for each in chosen]
    assert names == ["doctor", "tests", "speed", "torch.compile", "tests of the library"]
    assert sum(each.share for each in chosen) == pytest.approx(1)
    for each in chosen:
        for argument in each.arguments:
            is_path = argument.startswith(("tests/", str(CHECKOUT)))
            assert not is_path or (CHECKOUT / argument).exists()


def test_what_is_measured_begins_with_what_is_not_known(session: Any, tmp_path: Path) -> None:
    gpu = importlib.import_module("gpu")
    speed, compiled = [
        gpu.parse([*each.arguments[1:]])
        for each in session.parts(tmp_path, "abc", 1, 570)
        if each.name in ("speed", "torch.compile")
    ]
    pairs = gpu.chosen_pairs(gpu.ROWS, speed)
    met = gpu.known_lines(CHECKOUT / "docs" / "gpu_benchmark.md")
    known = [(row.title, dtype) in met for row, dtype in pairs]
    assert known == sorted(known) and sorted({*known}) == [False, True]
    assert len(pairs) == sum(len(row.dtypes) for row in gpu.ROWS)
    assert speed.json == tmp_path / "gpu.json" and compiled.json == tmp_path / "compiled.json"
    assert speed.without is None and "torch.compile" not in compiled.without


def test_tests_that_would_begin_too_late_are_skipped(session: Any, tmp_path: Path) -> None:
    run = ("-m", "pytest", "-q", "-ra", "-p", "no:cacheprovider", "tests/cuda/test_gpu_session.py")
    chosen = ("-k", "the_parts_are_there")
    outcome = session.run(session.Part("late", (*run, *chosen, "--seconds=-1"), 1), tmp_path, 120)
    assert "no time left of --seconds=-1" in "\n".join(outcome.last)
    outcome = session.run(session.Part("in time", (*run, *chosen, "--seconds=300"), 1), tmp_path, 120)
    assert outcome.last[-1].startswith("1 passed")


def test_the_most_telling_tests_come_first() -> None:
    conftest = importlib.import_module("tests.cuda.conftest")

    class Item:
        def __init__(self, file: str, name: str, *fixtures: str) -> None:
            self.path, self.name, self.fixturenames, self.markers = Path(file), name, fixtures, []

        def add_marker(self, name: str) -> None:
            self.markers.append(name)

    items: list[Any] = [
        Item("test_windows.py", "test_a", "cupy"),
        Item("test_cupy_wheel.py", f"{conftest.LAST}[sorting]"),
        Item("test_operations.py", "test_b", "cupy"),
        Item("test_on_gpu.py", "test_c", "cupy"),
        Item("test_cupy_wheel.py", "test_d", "device"),
        Item("test_operations.py", "test_e"),
    ]
    conftest.prepare_for_gpu(items)
    assert [item.name[:6] for item in items] == ["test_d", "test_c", "test_b", "test_e", "test_a", "test_t"]
    assert [item.name for item in items if item.markers] == ["test_c", "test_b"]
    assert {CHECKOUT / "tests/cuda" / name for name in conftest.TELLING} <= set(
        (CHECKOUT / "tests/cuda").iterdir()
    )
