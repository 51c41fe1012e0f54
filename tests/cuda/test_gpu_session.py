"""The command for a short loan of a GPU: nothing that is there is lost, whatever a part of it does."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.cuda.host_wheel import wheel
from tests.support.checkout import CHECKOUT
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy import backend


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    yield importlib.import_module("gpu_session")
    for name in [
        name
        for name in sys.modules
        if name.partition(".")[0] in ("gpu_rows", "gpu", "gpu_choices", "gpu_session")
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


def test_a_session_that_is_ended_keeps_what_is_there(session: Any, tmp_path: Path) -> None:
    marks = tmp_path / "started"
    waits = (
        f"import pathlib, time; pathlib.Path({str(marks)!r}).write_text('x'); print('before', flush=True); "
    )
    text = f"""
import signal, sys, time
from pathlib import Path
sys.path.insert(0, ".")
import gpu_session as s
signal.signal(signal.SIGTERM, s._end)
parts = [s.Part("first", ("-c", "print(1)"), 0.1), s.Part("waits", ("-c", {waits + "time.sleep(600)"!r}), 0.8)]
s.run_session([*parts, s.Part("never", ("-c", "print(3)"), 0.1)], Path({str(tmp_path)!r}), 600)
"""
    command = [sys.executable, "-c", text]
    folder = CHECKOUT / "benchmarks"
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 60
        while not marks.exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        running = json.loads((tmp_path / "session.json").read_text(encoding="utf-8"))
        process.terminate()
        printed, _ = process.communicate(timeout=60)
    assert [each["state"] for each in running] == ["ended with 0", "not ended"]
    assert "--- waits: ended with the session" in printed and "never" not in printed
    written = json.loads((tmp_path / "session.json").read_text(encoding="utf-8"))
    assert [each["state"] for each in written] == ["ended with 0", session.ENDED]
    assert written[1]["last"] == ["before"]


def test_no_setting_of_xarr_and_no_plugin_of_others_reaches_a_part(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XARR_FUSION", "off")
    show = "import os; print(os.environ.get('XARR_FUSION'), os.environ['PYTEST_DISABLE_PLUGIN_AUTOLOAD'])"
    assert session.run(part(session, "a part", show, 1), tmp_path, 60).last == ["None 1"]


def test_the_parts_are_there_and_fit(session: Any, tmp_path: Path) -> None:
    chosen = session.parts(tmp_path, "abc", 8, 570)
    names = [each.name for each in chosen]
    assert names == ["doctor", "gpu", "choices", "tests", "library", "compiled"]
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
        if each.name in ("gpu", "compiled")
    ]
    pairs = gpu.chosen_pairs(gpu.ROWS, speed)
    met = gpu.known_lines(CHECKOUT / "docs" / "gpu_benchmark.md")
    known = [(row.title, dtype) in met for row, dtype in pairs]
    assert known == sorted(known) and sorted({*known}) == [False, True]
    assert len(pairs) == sum(len(row.dtypes) for row in gpu.ROWS)
    assert speed.json == tmp_path / "gpu.json" and compiled.json == tmp_path / "compiled.json"
    assert speed.without is None and "torch.compile" not in compiled.without


@pytest.mark.skipif(not wheel.is_installed(), reason=wheel.MISSING)
def test_a_rehearsal_has_cupy_on_memory_of_the_host(
    session: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(session.ON_HOST), os.environ.get("PYTHONPATH", "")])
    )
    rows = ("--small", "--rows", "m", "--dtypes", "float32", "--seconds", "100", "--without", "replay")
    script, figures = str(CHECKOUT / "benchmarks" / "gpu.py"), tmp_path / "gpu.json"
    options = ("--quick", "--commit", "abc", "--line-seconds", "50", "--json", str(figures))
    session.run(session.Part("gpu", (script, *rows, *options), 1), tmp_path, 120)
    written = json.loads(figures.read_text(encoding="utf-8"))
    assert written["device"][0].startswith("memory of the host, ")
    assert [each["name"] for each in written["lines"]][:1] == ["x + 1 of 1000"]
    assert "xarr" in written["lines"][0]["seconds"]


def test_choices_are_numbers_of_the_target_and_rows(session: Any) -> None:
    choices = importlib.import_module("gpu_choices")
    for each in choices.CHOICES:
        assert getattr(TARGET, each.number) == each.values[0]
        assert len(set(each.values)) == len(each.values) > 1
        assert set(each.titles) <= choices.BY_TITLE.keys()


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_rows_run_with_each_value_of_a_number(
    session: Any, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    choices, peers = importlib.import_module("gpu_choices"), importlib.import_module("gpu_rows.peers")
    for schedule in backend._SCHEDULES:
        monkeypatch.setitem(backend._SCHEDULES, schedule, backend._SCHEDULES[schedule])
    monkeypatch.setattr(backend.CupyBackend, "target", backend.CupyBackend.target)
    choices.set_number("max_carried_elements", 32)
    assert cupy.schedule().target.max_carried_elements == cupy.target.max_carried_elements == 32
    rates = choices.Rates(0, 0, {})
    pairs = [(row, "float32") for row in choices.LOOPS]
    lines = list(choices.timed_lines(pairs, peers.Peers(np), rates, 1e9, 1e-6, small=True))
    assert [line.reasons for line in lines] == [{}, {}]


def test_a_value_whose_process_is_lost_costs_itself_alone(session: Any, tmp_path: Path) -> None:
    choices, script = importlib.import_module("gpu_choices"), tmp_path / "worker.py"
    text = """
import json, os, sys
order = json.loads(sys.argv[1])
line = {"row": "n", "name": "x", "dtype": "float32", "seconds": {"xarr": 1e-6}}
print(json.dumps(line), flush=True)
if order["value"]:
    os._exit(7)
print(json.dumps(line), flush=True)
"""
    script.write_text(text, encoding="utf-8")
    chosen = [each for each in choices.CHOICES if each.number == "max_carried_elements"]
    lines = list(choices.figures(chosen, 300, [sys.executable, str(script)]))
    assert [value for _, value, _ in lines] == [0, 0, 32, 32]
    assert [bool(line.seconds) for *_, line in lines] == [True, True, True, False]
    assert lines[-1][2].reasons == {"process": "the process ended with 7"}
    said = choices.describe(*lines[0])
    assert said == "max_carried_elements = 0: (n) x: xarr 1.0 µs"
    assert list(choices.figures(chosen, -1, [sys.executable, str(script)])) == []


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
