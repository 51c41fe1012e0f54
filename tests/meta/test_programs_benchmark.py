"""The benchmark of whole programs: each is right in every spelling on tiny arrays, and its table is printed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.meta.test_benchmarks import run
from tests.support.scripts import benchmark_importer

FAMILIES = (
    *("linear algebra", "dynamic programming", "searches", "sparse", "filters", "stencils", "particles"),
    *("equations", "strings", "images", "complex numbers", "clusters and batches", "networks"),
)


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Imports a module of the benchmark, and forgets those it imported."""
    yield from benchmark_importer(monkeypatch, "program_rows", "programs")


def problems(modules: Any, program: Any, with_peers: bool) -> dict[str, str]:
    """Who gives something else than NumPy does for a program on tiny arrays, and how it differs."""
    measure, contenders = modules("measure"), modules("program_rows.contenders")
    arguments = program.data(program.tiny)
    calls = contenders.makers(program, arguments, is_parallel=False, with_peers=with_peers)
    wanted = calls.pop("numpy")()()
    results = {"loops": lambda: lambda: program.by_loops(*arguments), **calls}
    results.pop("jax np", None)  # NumPy's writes are refused there.
    differences = {
        name: measure.difference(make()(), wanted, program.tolerance, program.unequal)
        for name, make in results.items()
    }
    return {name: problem for name, problem in differences.items() if problem}


@pytest.mark.implicit
@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_spelling_gives_what_numpy_gives(modules: Any, family: str) -> None:
    programs = modules("program_rows").FAMILIES[family]
    wrong = {program.name: problems(modules, program, with_peers=False) for program in programs}
    assert wrong == {program.name: {} for program in programs}


@pytest.mark.implicit
@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("family", FAMILIES)
def test_each_peer_gives_what_numpy_gives(modules: Any, family: str) -> None:
    wrong = {
        program.name: problems(modules, program, with_peers=True)
        for program in modules("program_rows").FAMILIES[family]
    }
    # fastmath has no NaN, by which this program knows missing samples.
    wrong.get("smoothing past missing samples", {}).pop("numba fast", None)
    assert not any(wrong.values()), wrong


def test_there_are_forty_programs_and_each_has_a_name(modules: Any) -> None:
    rows = modules("program_rows")
    names = [program.name for program in rows.ROWS]
    assert len(names) >= 40
    assert len(set(names)) == len(names)
    assert tuple(rows.FAMILIES) == FAMILIES


def doubling_program(modules: Any, **changes: Any) -> Any:
    row = modules("program_rows.row")
    spellings = {
        "by_numpy": lambda xp, x: x * 2,
        "by_jax": lambda jnp, lax, x: x + x,
        "by_loops": lambda x: x * 2,
    }
    return row.Program("doubled", lambda n: (np.ones(n),), **(spellings | changes), sizes=(1, 2, 3), tiny=4)


def measure_program(modules: Any, program: Any) -> Any:
    programs = modules("programs")
    options = programs.parse(["--worker", "1", "--budget", "0.01"])
    return programs.measured_line(program, 0, None, options)


def test_a_wrong_spelling_has_no_time_but_a_reason(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules("programs"), "PAUSE", 0)
    program = doubling_program(modules, by_jax=lambda jnp, lax, x: x + 3)
    line = measure_program(modules, program)
    assert "xarr" not in line.seconds
    assert line.reasons["xarr"].startswith("by up to 2")
    assert {"numpy", "xarr np", "eager"} <= line.seconds.keys()


def test_a_refused_spelling_has_no_time_but_a_reason(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules("programs"), "PAUSE", 0)
    line = measure_program(
        modules, doubling_program(modules, by_jax=lambda jnp, lax, x: x if x.sum() > 0 else -x)
    )
    assert line.reasons["xarr"].startswith("TracedValueError")


def test_what_took_long_is_left_out_at_the_next_size(modules: Any) -> None:
    programs = modules("programs")
    before = programs.Line("LU", 16, 1, first={"eager": 2.0, "xarr": 2.0}, reasons={"numba": "refused"})
    assert programs.too_slow("eager", before, 10) == "took 2.0 s at 16"
    assert programs.too_slow("eager", before, 20) == ""
    assert programs.too_slow("xarr", before, 10) == ""
    assert programs.too_slow("numba", before, 10) == "refused"


def test_the_summary_compares_the_best_of_each_side(modules: Any) -> None:
    programs = modules("programs")
    seconds = {
        "numpy": 8.0,
        "numba": 4.0,
        "numba fast": 2.0,
        "jax": 1.0,
        "xarr": 10.0,
        "xarr np": 5.0,
        "eager": 80.0,
    }
    line = programs.Line("heat", 32, 1, seconds)
    assert line.ratio(programs.ALL_PEERS) == 0.2
    assert line.best(programs.OURS) == "xarr np"
    text = "\n".join(programs.summary([line]))
    assert "best 0.2  numpy 1.6  numba 0.4  jax 0.2  eager/numpy 0.1" in text
    assert "1 of 1 lines below 0.3" in text
    assert "have no time of" not in text
    without = programs.Line(
        "heat", 32, 1, {"numpy": 8.0, "numba": 4.0, "xarr": 5.0}, reasons={"jax": "more than 30 s"}
    )
    assert "1 lines have no time of jax" in "\n".join(programs.summary([line, without]))
    line.reasons["xarr"] = "refused"
    assert "heat 32, 1 threads: xarr: refused" in "\n".join(programs.summary([line]))


def test_the_command_prints_its_table(tmp_path: Path) -> None:
    figures = tmp_path / "programs.json"
    arguments = ("--rows", "pairs", "--sizes", "0", "--threads", "1", "--tiny", "--budget", "0.01")
    done = run(*arguments, "--json", str(figures), script="programs.py")
    assert done.returncode == 0, done.stderr
    assert "pairs of letters" in done.stdout
    assert "first call of xarr" in done.stderr
    (line,) = json.loads(figures.read_text(encoding="utf-8"))
    assert {"numpy", "xarr", "xarr np", "eager"} <= line["seconds"].keys()


def test_a_process_that_ends_is_a_reason(modules: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    programs: ModuleType = modules("programs")

    def no_lines(rows: Any, threads: int, options: Any, done: list[Any]) -> Iterator[Any]:
        if len(rows) == 1:
            done.append(programs.Line(rows[0].name, rows[0].sizes[0], threads))
            yield done[-1]

    monkeypatch.setattr(programs, "_lines_of_child", no_lines)
    options = programs.parse(["--sizes", "0", "--threads", "1"])
    lines = list(programs.lines_of_children(programs.ROWS[:2], options))
    assert [line.reasons for line in lines] == [{"all": "the process ended"}, {}]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [(("--sizes", "7"), "wanted some of 0, 1, 2"), (("--rows", "nonsense"), "wanted parts of names")],
)
def test_options_that_mean_nothing(arguments: tuple[str, ...], message: str) -> None:
    done = run(*arguments, script="programs.py")
    assert done.returncode != 0
    assert message in done.stderr
