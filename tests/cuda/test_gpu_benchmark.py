"""The benchmark of the GPU: what it says of programs without a device, and that each of its rows runs and is right."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.checkout import CHECKOUT
from xarr_cupy import driver

BENCHMARKS = CHECKOUT / "benchmarks"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the benchmark, and forgets those it imported."""
    monkeypatch.syspath_prepend(BENCHMARKS)
    yield importlib.import_module
    for name in [name for name in sys.modules if name.partition(".")[0] in ("gpu_rows", "gpu")]:
        del sys.modules[name]


@pytest.mark.parametrize(
    ("architecture", "threads", "registers", "shared", "wanted"),
    [
        ("sm_80", 256, 32, 0, 1),
        ("sm_80", 256, 37, 0, 0.75),  # 40 registers a thread as they are allocated: 48 warps
        ("sm_80", 256, 64, 0, 0.5),
        ("sm_80", 256, 255, 0, 0.125),
        ("sm_80", 1024, 33, 0, 0.5),  # one block: two have no registers
        ("sm_80", 32, 16, 0, 0.5),  # 32 blocks at most
        ("sm_75", 256, 64, 0, 1),  # 32 warps at most
        ("sm_86", 256, 40, 0, 1),  # 48 warps at most
        ("sm_80", 256, 32, 48 << 10, 0.375),  # three blocks with a kilobyte more each
        ("sm_90", 256, 32, 48 << 10, 0.5),
        ("sm_75", 256, 32, 48 << 10, 0.25),
        ("sm_80", 256, 32, 164 << 10, 0),
    ],
)
def test_occupancy(
    modules: Any, architecture: str, threads: int, registers: int, shared: int, wanted: float
) -> None:
    got = modules("gpu_rows.occupancy").occupancy(architecture, threads, registers, shared)
    assert got == wanted


def list_work(modules: Any, function: Any, *inputs: tuple[tuple[int, ...], str], **settings: Any) -> Any:
    """The work of a function of arrays of these shapes and dtypes, and the least bytes."""
    row, listing = modules("gpu_rows.row"), modules("gpu_rows.listing")
    case = row.Case(lambda xp, lax: function, tuple(row.Input(*each) for each in inputs))
    line = row.Row("a", "a test", lambda dtype: case, (), (), **settings)
    with listing.no_device():
        return listing.work_of(case, line), listing.least_bytes(case)


def test_a_chain_is_one_kernel_that_moves_each_array_once(modules: Any) -> None:
    work, least = list_work(modules, lambda x: xarr.sqrt(x * 2 + 1), ((100, 30), "float32"))
    assert (work.kernels, work.libraries, work.copies, work.host) == (1, 0, 0, [])
    assert least == work.moved == work.accessed == 2 * 100 * 30 * 4


def test_a_row_that_is_read_twice_is_moved_once(modules: Any) -> None:
    work, least = list_work(modules, lambda x: x / x.sum(1, keepdims=True), ((100, 3000), "float32"))
    assert work.kernels == 1
    assert work.moved == least
    assert work.accessed == 3 * 100 * 3000 * 4


def test_a_window_reads_elements_as_often_as_it_has_them(modules: Any) -> None:
    def function(x: Any) -> Any:
        return xarr.lax.reduce_window(x, xarr.asarray(-np.inf, x.dtype), xarr.lax.max, (5,), (1,), "VALID")

    work, _ = list_work(modules, function, ((1004,), "float32"))
    assert work.accessed == 6 * 1000 * 4
    assert work.moved == (1004 + 1000) * 4


def test_a_product_is_a_call_of_a_library(modules: Any) -> None:
    work, least = list_work(modules, lambda x: x @ x, ((64, 64), "float32"))
    assert (work.kernels, work.libraries) == (0, 1)
    assert work.moved == 3 * 64 * 64 * 4
    assert least == 2 * 64 * 64 * 4


def test_the_host_is_listed(modules: Any) -> None:
    work, _ = list_work(modules, lambda x: xarr.linalg.eigvals(x), ((4, 4), "float64"))
    assert work.host == ["lapack.geev"]


def test_the_backend_is_what_it_was_before(modules: Any) -> None:
    connect, loaded = driver.connect, xarr.backend._loaded
    before = loaded.get("cupy")
    list_work(modules, lambda x: x + 1, ((4,), "float32"))
    assert loaded.get("cupy") is before
    assert driver.connect is connect


def test_each_row_is_listed_in_the_page(modules: Any) -> None:
    page = (CHECKOUT / "docs" / "gpu_benchmark.md").read_text(encoding="utf-8")
    for row in modules("gpu_rows").ROWS:
        for dtype in row.dtypes:
            assert f"| ({row.letter}) {row.name} | {dtype} |" in page


def test_the_command_prints_findings_and_writes_them(
    modules: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gpu: ModuleType = modules("gpu")
    page = tmp_path / "page.md"
    page.write_text(f"Above.\n\n{gpu.START}\nold", encoding="utf-8")
    gpu.main(
        ["--static", "--small", "--rows", "a,g", "--page", str(page), "--json", str(tmp_path / "x.json")]
    )
    printed = capsys.readouterr().out
    assert "(a) chain of 6, 10^8" in printed
    assert "lines ask for more than they should" in printed
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"Above.\n\n{gpu.START}\n\n| row | dtype | kernels |")
    assert "old" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--rows", "z"), "wanted letters from a to n, got z"),
        (("--dtypes", "float64"), "wanted some of float32, bfloat16, uint8, int32, uint32, got float64"),
    ],
)
def test_options_that_mean_nothing(
    modules: Any, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit):
        modules("gpu").main(["--static", *arguments])
    assert message in capsys.readouterr().err
