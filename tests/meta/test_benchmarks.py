"""The benchmark of the CPU engine runs, prints its table and notices a contender that is wrong; nothing is timed."""

from __future__ import annotations

import importlib
import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.checkout import CHECKOUT

BENCHMARKS = CHECKOUT / "benchmarks"


def run(*arguments: str, script: str = "cpu.py") -> subprocess.CompletedProcess[str]:
    """Run a benchmark as a user would, with the library under test."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("XARR_") and k != "PYTHONSAFEPATH"}
    clean["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    clean["XARR_KERNEL_CACHE"] = "off"  # Nothing is left behind on disk.
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / script), *arguments],
        env=clean,
        capture_output=True,
        text=True,
        timeout=1200,
        check=False,
    )


@pytest.fixture
def measure(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("measure")


def test_one_row_in_both_dtypes(tmp_path: Path) -> None:
    figures = tmp_path / "cpu.json"
    done = run("--quick", "--rows", "a", "--sizes", "1000", "--json", str(figures))
    assert done.returncode == 0, done.stderr
    assert "memory bandwidth" in done.stdout
    assert "compile time of (a), ms: xarr" in done.stdout
    assert "timing xarr" in done.stderr
    for dtype in ("float32", "float64"):
        line = next(line for line in done.stdout.splitlines() if re.match(rf"\(a\) chain +{dtype}", line))
        assert re.search(
            r" 1,000( +[\d.]+| +-){4,} +(numpy|numexpr|jax|numba|numba fast|torch) +\d+%$", line
        ), line
    lines = json.loads(figures.read_text(encoding="utf-8"))["lines"]
    assert [(line["row"], line["dtype"], line["size"]) for line in lines] == [
        ("a", "float32", 1000),
        ("a", "float64", 1000),
    ]
    assert {"xarr", "lazy", "numpy"} <= lines[0]["seconds"].keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", "z"), "wanted letters from a to m, got z"),
        (("--dtypes", "int8"), "wanted float32, float64 or both, got int8"),
        (("--sizes", "1000,0"), "wanted positive lengths, got 0"),
    ],
    ids=["rows", "dtypes", "sizes"],
)
def test_options_that_mean_nothing(arguments: tuple[str, str], message: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert message in done.stderr


SHORT = ("--rounds", "1", "--calls", "1")
NEEDS_DASK = pytest.mark.skipif(find_spec("dask") is None, reason="Dask is not installed")


@pytest.mark.parametrize(
    ("script", "arguments", "row"),
    [
        ("numpy_surface.py", ("cbrt", "--budget", "0.01"), "cbrt"),
        pytest.param("chunks.py", ("--quick",), "token, of all chunks", marks=NEEDS_DASK),
        ("compile.py", ("--rows", "scalars", "--sizes", "100", "--no-jax"), "scalars"),
        pytest.param("overhead.py", SHORT, "import, ms: numpy", marks=pytest.mark.thorough),
        pytest.param("ops.py", ("--rounds", "1"), "sort", marks=pytest.mark.thorough),
        pytest.param("cpu.py", ("--quick", "--sizes", "1000"), r"\(m\)", marks=pytest.mark.thorough),
        pytest.param("numpy_surface.py", ("--budget", "0.001"), "cbrt", marks=pytest.mark.thorough),
    ],
    ids=["one name", "chunks", "first calls", "overhead", "each operation", "each row", "each name"],
)
def test_the_other_benchmarks_print_their_tables(script: str, arguments: tuple[str, ...], row: str) -> None:
    done = run(*arguments, script=script)
    assert done.returncode == 0, done.stderr
    assert re.search(rf"{row}.*\d", done.stdout)


RIGHT = np.array([1, 2, np.nan, np.inf], np.float32)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (RIGHT.astype(np.float64), "dtype float64, wanted float32"),
        (RIGHT[:3], r"shape \(3,\), wanted \(4,\)"),
        (RIGHT + np.float32(1e-3), "by up to 0.001"),
        (np.array([1, 2, 3, np.inf], np.float32), "other differs from numpy"),
        ((RIGHT, RIGHT), "other differs from numpy: 2 results, wanted 1"),
    ],
    ids=["dtype", "shape", "value", "nan", "count"],
)
def test_wrong_contender_is_noticed(measure: ModuleType, wrong: object, message: str) -> None:
    contenders = {"other": lambda: wrong, "numpy": lambda: RIGHT}
    with pytest.raises(measure.WrongResult, match=message):
        measure.check(contenders, np.dtype(np.float32), tolerance=64)


def test_wrong_integers_are_noticed(measure: ModuleType) -> None:
    right = np.arange(100)
    wrong = np.where(right < 3, -1, right)
    contenders = {"other": lambda: wrong, "numpy": lambda: right}
    measure.check(contenders, np.dtype(np.float32), tolerance=64, unequal=0.03)
    with pytest.raises(measure.WrongResult, match=r"3\.00% of the elements, at most 2\.00% may"):
        measure.check(contenders, np.dtype(np.float32), tolerance=64, unequal=0.02)


def test_right_contender_may_differ_in_the_last_places(measure: ModuleType) -> None:
    near = RIGHT + np.float32(2 * 63 * np.finfo(np.float32).eps)
    measure.check({"other": lambda: near, "numpy": lambda: RIGHT}, np.dtype(np.float32), tolerance=64)


def test_the_command_ends_where_a_contender_is_wrong(
    measure: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = importlib.import_module("cpu")
    monkeypatch.setattr(cpu, "memory_bandwidth", lambda: 1e9)
    broken = cpu.Row("b", "broken", lambda dtype, size: {"xarr": lambda: RIGHT, "numpy": lambda: RIGHT[:1]})
    with pytest.raises(measure.WrongResult, match=r"\(b\) broken +float32: xarr differs from numpy"):
        cpu.main(["--rows", "b", "--dtypes", "float32"], rows=[broken])


def test_collectives_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    done = run("--sizes", "1024,70000", "--repeats", "1", script="collectives.py")
    assert done.returncode == 0, done.stderr
    assert "threads, 2 replicas" in done.stdout
    assert re.search(r"^ +1,024 +[\d.,]+ us +[\d.,]+ us$", done.stdout, re.M)  # a call of shard_map
    for size in ("1,024", "70,000"):
        assert re.search(
            rf"^ +{size} +[\d.,]+ us +[\d.]+ GB/s +[\d.,]+ us .*% of the bound", done.stdout, re.M
        )
