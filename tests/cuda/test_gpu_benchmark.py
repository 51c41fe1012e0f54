"""The benchmark of the GPU: what it says of programs without a device, and that each of its rows runs and is right."""

from __future__ import annotations

import importlib
import json
import re
import shutil
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


@pytest.mark.parametrize(("size", "times"), [(3000, 2), (30000, 3)], ids=["kept", "read twice"])
def test_a_row_that_is_read_twice_is_moved_once(size: int, times: int, modules: Any) -> None:
    """Threads keep 3,000 elements of a row in registers, and load 30,000 again."""
    work, least = list_work(modules, lambda x: x / x.sum(1, keepdims=True), ((2000, size), "float32"))
    assert work.kernels == 1
    assert work.moved == least
    assert work.accessed == times * 2000 * size * 4


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
    def function(x: Any) -> Any:
        return xarr.pure_callback(lambda x: x, xarr.ShapeDtypeStruct((4,), "float32"), x)

    work, _ = list_work(modules, function, ((4,), "float32"))
    assert len(work.host) == 1


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
        (("--rows", "z"), "wanted letters from a to o, got z"),
        (("--dtypes", "float64"), "wanted some of float32, bfloat16, uint8, int32, uint32, got float64"),
    ],
)
def test_options_that_mean_nothing(
    modules: Any, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], message: str
) -> None:
    with pytest.raises(SystemExit):
        modules("gpu").main(["--static", *arguments])
    assert message in capsys.readouterr().err


# --- timed, on the emulated device, with NumPy for CuPy ------------------------------------------------------


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.usefixtures("cupy")
@pytest.mark.parametrize(
    "letter", ["a", *[pytest.param(letter, marks=pytest.mark.thorough) for letter in "bcdefghijklmn"]]
)
def test_rows_of_each_letter_run_and_agree_with_numpy(modules: Any, letter: str) -> None:
    gpu_rows, peers, timing = (modules(f"gpu_rows{name}") for name in ("", ".peers", ".timing"))
    rates = timing.Rates(1e9, 2e9, {"float32": 1e9, "int32": 1e9})
    pairs = timing.in_order([row for row in gpu_rows.ROWS if row.letter == letter], [])
    pairs = [(row, dtype) for row, dtype in pairs if dtype == row.dtypes[0]]
    lines = list(timing.timed_lines(pairs, peers.Peers(np), rates, 1e9, 1e-6, small=True))
    assert len(lines) == len(pairs) > 0
    for line in lines:
        assert not line.reasons, line
        assert {"xarr", "lazy"} <= line.seconds.keys()
        assert letter == "l" or "cupy" in line.seconds
        assert line.share > 0


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.usefixtures("cupy")
def test_the_command_times_what_fits_and_says_what_is_met(
    modules: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    gpu, peers = modules("gpu"), modules("gpu_rows.peers")
    figures = tmp_path / "gpu.json"
    arguments = ["--small", "--quick", "--rows", "a", "--dtypes", "float32", "--json", str(figures)]
    assert gpu.main(arguments, peers.Peers(np)) == 0
    printed = capsys.readouterr().out
    assert "no device: an emulated one" in printed
    assert "copies, GB/s read and written: cudaMemcpy" in printed
    line = next(
        line for line in printed.splitlines() if line.startswith("(a) chain of 6, 10^8 float32: cupy ")
    )
    assert re.search(
        r"; \d+\.\d\d × cupy; \d+% of the bandwidth; \[≥ 85% of the bandwidth: (met|MISSED)\]", line
    )
    lines = json.loads(figures.read_text(encoding="utf-8"))["lines"]
    assert [each["name"] for each in lines] == ["chain of 6, 10^5", "chain of 6, 10^8"]
    assert gpu.main([*arguments, "--seconds", "-1"], peers.Peers(np)) == 0
    assert "2 lines do not fit in -1 seconds" in capsys.readouterr().err


@pytest.mark.thorough
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
@pytest.mark.usefixtures("cupy")
def test_wrong_results_and_contenders_that_cannot_are_told(modules: Any) -> None:
    row, peers, timing = (modules(f"gpu_rows.{name}") for name in ("row", "peers", "timing"))
    rates = timing.Rates(1e9, 1e9, {})

    def line(by_cupy: Any, program: Any = lambda x: x * 2) -> Any:
        case = row.Case(lambda xp, lax: program, (row.Input((100,), "float32"),), by_cupy)
        every = row.Row("a", "a test", lambda dtype: case, (), ())
        return timing.timed_line(every, "float32", case, peers.Peers(np), rates, 1e-6)

    def refuse(x: Any) -> Any:
        raise TypeError("no such kernel\nsecond line")

    right = line({"cupy": lambda cp: lambda x: x + x, "cupy best": lambda cp: refuse})
    assert set(right.seconds) == {"cupy", "xarr", "lazy"}
    assert right.reasons == {"cupy best": "TypeError: no such kernel"}
    assert not right.is_wrong
    wrong = line({"cupy": lambda cp: lambda x: x + x}, lambda x: x * 2.001)
    assert wrong.is_wrong
    assert set(wrong.seconds) == {"cupy"}
    assert wrong.reasons["xarr"].startswith("WRONG: by up to ")
    assert wrong.verdicts[0].startswith("xarr: WRONG")
    assert line({"cupy": lambda cp: lambda x: (x, x)}).reasons["xarr"] == "WRONG: 1 results, wanted 2"
    assert line({"cupy": lambda cp: lambda x: x[:3]}).reasons["xarr"] == "WRONG: 100 elements, wanted 3"
    assert line({"cupy": lambda cp: lambda x: x > 0}, lambda x: x < 0).is_wrong


def test_ratios_are_to_the_fastest_spelling(modules: Any) -> None:
    timing = modules("gpu_rows.timing")
    times = {"xarr": 2.0, "cupy": 4.0, "cupy best": 1.0, "jax": 1.8}
    line = timing.TimedLine("a", "a test", "float32", times, share=0.9, wanted_share=0.85)
    assert line.ratio("cupy") == 2
    assert line.ratio("torch") is None
    assert line.verdicts == ["≥ 85% of the bandwidth: met", "≤ 1.03 × cupy: MISSED", "≤ 1.2 × jax: met"]


def test_the_important_come_first(modules: Any) -> None:
    pairs = modules("gpu_rows.timing").in_order(modules("gpu_rows").ROWS, [])
    assert [pairs[0][0].letter, pairs[0][1]] == ["a", "float32"]
    dtypes = [row.dtypes.index(dtype) for row, dtype in pairs]
    assert dtypes == sorted(dtypes)


def test_replays_of_a_call_give_its_result(modules: Any, host: Any) -> None:
    row, peers = modules("gpu_rows.row"), modules("gpu_rows.peers")
    case = row.Case(lambda xp, lax: lambda x, y: xp.sqrt(x * x) + y, (row.Input((100,), "float32"),) * 2)
    every = row.Row("a", "a test", lambda dtype: case, (), ())
    contenders = peers.Peers(importlib.import_module("cupy"), without=("torch.compile",))
    prepared = peers.prepare(case, every, "float32", contenders)
    assert not prepared.reasons and {"xarr", "replay"} <= prepared.calls.keys()
    launches, replays = host.launches, host.replays
    result = prepared.calls["replay"]()
    assert (host.launches - launches, host.replays - replays) == (1, 1)
    x, y = row.arrays_of(case.inputs)
    np.testing.assert_allclose(np.asarray(result), abs(x) + y, rtol=1e-6)
    # A product, which CuPy does not capture, costs the line its replay alone.
    refused = row.Case(lambda xp, lax: lambda x: x @ x, (row.Input((8, 8), "float32"),))
    reasons = peers.prepare(refused, every, "float32", contenders).reasons
    assert [*reasons] in ([], ["replay"])


@pytest.mark.thorough
def test_first_calls_are_timed_in_new_processes(modules: Any) -> None:
    cold, warm = modules("gpu_rows.first_calls").first_calls(["xarr"], backend="numpy")["xarr"]
    assert cold > 0 < warm


def test_measured_figures_stand_in_the_page_above_the_static_table(modules: Any, tmp_path: Path) -> None:
    seconds = {"cupy": 2e-3, "cupy best": 1e-3, "xarr": 5e-4, "lazy": 7e-4, "jax": 4e-4}
    line = {"row": "a", "name": "chain", "dtype": "float32", "seconds": seconds, "share": 0.5}
    failed = {"row": "b", "name": "softmax", "dtype": "bfloat16", "seconds": {}, "reasons": {"xarr": "WRONG"}}
    figures = {
        "device": ["a GPU", "packages", "rates", "", "more"],
        "lines": [line | {"wanted_share": 0.85, "verdicts": ["old"]}, failed],
        "first calls": {"xarr": [0.5, 0.25], "jax": "more than 1 s"},
    }
    (tmp_path / "gpu.json").write_text(json.dumps(figures), encoding="utf-8")
    gpu, page = modules("gpu"), tmp_path / "page.md"
    page.write_text(f"above\n{gpu.MEASURED}\nold\n{gpu.START}\nstatic\n", encoding="utf-8")
    assert gpu.main(["--measured", str(tmp_path / "gpu.json"), "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith(f"above\n{gpu.MEASURED}\n\na GPU\n\npackages\n\nrates\n\n| row |")
    assert text.endswith(f"\n{gpu.START}\nstatic\n")
    assert "\nold\n" not in text and "more\n" not in text
    assert "| (a) chain | float32 | 0.5 | 0.7 | – | 2 | 1 | 0.4 | – | – | 0.50 | 1.25 | – | 50% |" in text
    assert "xarr takes 0.50 of CuPy's time in 1 lines, 1.25 of JAX's time in 1 lines." in text
    assert "xarr 0.50 and 0.25; jax more than 1 s" in text
    assert "- (a) chain, float32: ≥ 85% of the bandwidth: MISSED; ≤ 1.2 × jax: MISSED." in text
    assert "- (b) softmax, bfloat16: xarr: WRONG." in text
    with pytest.raises(SystemExit):
        gpu.main(["--measured", str(tmp_path / "gpu.json")])


def test_lines_that_meet_what_is_wanted_come_last(modules: Any, tmp_path: Path) -> None:
    gpu, row = modules("gpu"), modules("gpu_rows.row")

    def line(name: str, seconds: float) -> dict[str, Any]:
        times = {"xarr": seconds, "cupy": 1.0} if seconds else {}
        return {"row": "a", "name": name, "dtype": "float32", "seconds": times}

    figures = {"device": [], "lines": [line("slow", 2.0), line("fast", 0.5), line("slower", 0.0)]}
    page = tmp_path / "page.md"
    measured = f"| (a) new | float32 | 1 |\n{gpu.MEASURED}\n{gpu.print_figures(figures)}"
    page.write_text(f"{measured}{gpu.START}\n| (a) slow | float32 | 1 |", encoding="utf-8")
    rows = [row.Row("a", name, None, (), ()) for name in ("fast", "slow", "slower", "new")]
    options = gpu.parse(["--unknown-first", str(page)])
    titles = [f"{each.name} {dtype}" for each, dtype in gpu.chosen_pairs(rows, options)]
    assert titles[-1] == "fast float32" and titles[0] == "slow float32" and len(titles) == 8
    assert gpu.repeated_options(options)[-2:] == ["--unknown-first", str(page)]


def test_figures_of_several_files_are_lines_with_all_contenders(modules: Any) -> None:
    merge = modules("gpu_rows.pages").merge

    def file(device: str, *lines: tuple[str, dict[str, float]]) -> dict[str, Any]:
        rows = [{"row": "a", "name": name, "dtype": "f", "seconds": seconds} for name, seconds in lines]
        return {"device": [device], "lines": rows}

    first = file("one", ("x", {"xarr": 1.0, "jax": 2.0}), ("failed", {}))
    second = file("two", ("x", {"xarr": 1.5, "torch.compile": 3.0}), ("failed", {"cupy": 1.0}), ("y", {}))
    merged = merge([first, second])
    assert merged["device"] == ["one"]
    assert [(each["name"], each["seconds"]) for each in merged["lines"]] == [
        ("x", {"xarr": 1.0, "jax": 2.0, "torch.compile": 3.0}),
        ("failed", {}),
        ("y", {}),
    ]
    assert first["lines"][0]["seconds"] == {"xarr": 1.0, "jax": 2.0}


def test_contenders_are_timed_by_calls_in_a_row_behind_others(
    modules: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    timing, now, calls = modules("gpu_rows.timing"), [0.0], {"fast": 0, "slow": 0}

    def call(name: str, seconds: float) -> Any:
        def run() -> None:
            calls[name] += 1
            now[0] += seconds

        return run

    monkeypatch.setattr(timing.measure, "clock", lambda: now[0])
    contenders = {"fast": call("fast", 1e-4), "slow": call("slow", 0.5)}
    sampling = {"sample_seconds": timing.SAMPLE, "warming": timing.WARMING}
    medians = timing.measure.time_case(contenders, 0.2, **sampling)
    assert medians == pytest.approx({"fast": 1e-4, "slow": 0.5})
    rounds = timing.measure.FEWEST_ROUNDS
    assert calls == {"fast": 1 + rounds * (100 + timing.WARMING), "slow": 1 + rounds}
