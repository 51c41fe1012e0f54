"""Processes that time lines of the GPU's benchmark, and what is kept where a line hangs or takes the device along."""

from __future__ import annotations

import importlib
import io
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

from tests.support.checkout import CHECKOUT

#: A process that answers as one that measures: line 1 does what the first argument says.
WORKER = """
import json, os, sys, time
what, order = sys.argv[1], json.loads(sys.argv[2])
if what == "no device":
    sys.exit("no device")
print("a library says hello")
print(json.dumps({"rates": {"memcpy": 1.0, "kernel": 2.0, "flops": {}}, "header": "a device"}), flush=True)
for number in range(order["first"], 4):
    if number == 1 and what == "hang":
        time.sleep(600)
    if number == 1 and what == "die":
        os._exit(7)
    reasons = {"process": "a fault"} if number == 1 and what == "fault" else {}
    line = {"row": "a", "name": str(number), "dtype": "float32", "seconds": {"xarr": order["rates"] is None}}
    print(json.dumps(line | {"reasons": reasons}), flush=True)
    if reasons:
        time.sleep(600)
"""


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the benchmark, and forgets those it imported."""
    monkeypatch.syspath_prepend(CHECKOUT / "benchmarks")
    yield importlib.import_module
    for name in [name for name in sys.modules if name.partition(".")[0] in ("gpu_rows", "gpu")]:
        del sys.modules[name]


def run(
    modules: Any, folder: Path, what: str, of_line: float = 60, seconds: float = 300
) -> tuple[list[Any], list[Any]]:
    """The lines that processes of WORKER give of four pairs, and the descriptions that were shown."""
    row, workers = modules("gpu_rows.row"), modules("gpu_rows.workers")
    script = folder / "worker.py"
    script.write_text(WORKER, encoding="utf-8")
    pairs = [(row.Row("a", str(number), lambda dtype: None, (), ()), "float32") for number in range(4)]
    shown: list[Any] = []
    command = [sys.executable, str(script), what]
    limits = workers.Limits(seconds, of_line, 0.1)
    return list(workers.lines_by_workers(pairs, command, limits, shown.append)), shown


def test_lines_come_from_one_process(modules: Any, tmp_path: Path) -> None:
    lines, shown = run(modules, tmp_path, "work")
    assert [line.name for line in lines] == ["0", "1", "2", "3"]
    assert all(line.seconds == {"xarr": True} for line in lines)
    assert [each["header"] for each in shown] == ["a device"]


@pytest.mark.parametrize(
    ("what", "of_line", "reason"),
    [("hang", 4, "more than 4 s"), ("die", 60, "the process ended with 7"), ("fault", 60, "a fault")],
)
def test_a_line_that_is_lost_costs_itself_alone(
    modules: Any, tmp_path: Path, what: str, of_line: float, reason: str
) -> None:
    lines, shown = run(modules, tmp_path, what, of_line)
    assert [line.name for line in lines] == ["0", "1", "2", "3"]
    assert lines[1].reasons == {"process": reason}
    # The process behind it knows the device's rates from the one before.
    assert [line.seconds.get("xarr") for line in lines] == [True, what == "fault" or None, False, False]
    assert len(shown) == 1


def test_no_third_process_is_started_where_two_cannot_start(
    modules: Any, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(modules, tmp_path, "no device") == ([], [])
    messages = capfd.readouterr().err
    assert messages.count("no process that measures: the process ended with 1") == 2
    assert "4 lines do not fit" in messages


def test_all_lines_end_in_time(modules: Any, tmp_path: Path) -> None:
    started = time.monotonic()
    lines, _ = run(modules, tmp_path, "hang", seconds=2)
    assert [line.name for line in lines] in (
        ["0", "1"],
        [],
    )  # nothing where the machine takes 2 s to start Python
    assert time.monotonic() - started < 60


def test_a_process_ends_with_the_one_that_started_it(modules: Any) -> None:
    workers = modules("gpu_rows.workers")
    program = "import time; from gpu_rows.workers import end_with_parent; end_with_parent(); time.sleep(600)"
    folders = [CHECKOUT / "benchmarks", CHECKOUT, CHECKOUT / "backends"]
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, folders))},
    )
    with process:  # closes its input
        pass
    assert process.returncode == workers.ORPHANED


def test_a_line_that_its_process_did_not_finish_is_wrong(modules: Any) -> None:
    line = modules("gpu_rows.timing").TimedLine("a", "a test", "float32", {}, {"process": "more than 20 s"})
    assert line.is_wrong
    assert line.verdicts == ["xarr: more than 20 s"]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.usefixtures("cupy")
def test_a_process_sends_what_it_measures(modules: Any) -> None:
    rows, peers, workers, timing = (
        modules(f"gpu_rows{name}") for name in ("", ".peers", ".workers", ".timing")
    )
    pairs = timing.in_order([row for row in rows.ROWS if row.letter == "a"], ["float32"])
    order = {"first": 1, "rates": None, "budget": 1e-6, "without": ["cupy best"]}
    output = io.StringIO()
    workers.serve(json.dumps(order), pairs, peers.Peers(np), str, output, small=True)
    described, line = map(json.loads, output.getvalue().splitlines())
    assert described["rates"]["kernel"] > 0
    assert line["name"] == "chain of 6, 10^8"
    assert {"cupy", "xarr", "lazy"} == line["seconds"].keys()
    assert line["reasons"] == {"cupy best": "left out"}


class Broken:
    """Modules of a device that each call tells a fault of."""

    def synchronize(self) -> None:
        raise RuntimeError("an illegal memory access\nwas met")


def test_a_fault_of_the_device_is_told(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    peers = modules("gpu_rows.peers").Peers(np)
    assert peers.fault() == ""
    monkeypatch.setattr(peers, "synchronize", Broken().synchronize)
    assert peers.fault() == "RuntimeError: an illegal memory access"
