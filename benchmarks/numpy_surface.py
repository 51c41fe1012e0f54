"""What the functions that xarr shares with NumPy cost on 10^6 elements, evaluated at each call, beside NumPy.

    python benchmarks/numpy_surface.py                      # all rows, by family
    python benchmarks/numpy_surface.py linalg               # rows whose expression contains the word
    python benchmarks/numpy_surface.py --family sorting     # families whose name contains it
    python benchmarks/numpy_surface.py --least --cpu        # on a machine that is busy: processor time
    python benchmarks/numpy_surface.py --json surface.json

NumPy and xarr run in turn in one process, and what xarr gives is compared with NumPy's before it is timed, but
where NumPy leaves the values open and where the call of xarr is another one.  The rows in which xarr takes more than
three times what NumPy takes are named at the end, the worst first.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import measure
import numpy as np
import surface_calls

import xarr

#: No function should take more than so many times what NumPy takes.
MOST: Final = 3
#: Nor is a row named whose difference is less than that, in milliseconds: it is what recording costs.
LEAST: Final = 0.3
#: Seconds for a row, without the first call.
BUDGET: Final = 0.5
TOLERANCE: Final = 1e-6

#: Of the table by family in docs/performance.md.
HEADING: Final = (
    "| family | rows | least multiple | median | greatest | above 2 | above 3 |",
    "| --- | --- | --- | --- | --- | --- | --- |",
)

#: Row -> milliseconds of NumPy and of xarr.
Times = dict[str, dict[str, float]]


def evaluate(value: Any) -> Any:
    """Compute every Array of a result."""
    held: list[Any] = []
    _collect(value, held)
    if held:
        xarr.evaluate(*held)
    return value


def _collect(value: Any, held: list[Any]) -> None:
    if isinstance(value, xarr.Array):
        held.append(value)
    elif isinstance(value, tuple | list) and not (value and np.isscalar(value[0])):
        for each in value:
            _collect(each, held)


def contenders(line: str, scopes: dict[str, dict[str, Any]]) -> measure.Contenders:
    """One call of each library."""
    numpy_text, _, xarr_text = line.partition(" | ")
    by_numpy = eval(f"lambda: {numpy_text}", scopes["numpy"])
    by_xarr = eval(f"lambda: {xarr_text or numpy_text}", scopes["xarr"])

    def quiet() -> object:
        with np.errstate(all="ignore"):
            return by_numpy()

    return {"numpy": quiet, "xarr": lambda: evaluate(by_xarr())}


def difference(results: Any, wanted: Any) -> str:
    """The difference of results in structure, type or values; "" where they do not."""
    if isinstance(wanted, tuple | list) and len(wanted) and not np.isscalar(wanted[0]):
        if not isinstance(results, tuple | list) or len(results) != len(wanted):
            return f"{type(results).__name__}, wanted {len(wanted)} results"
        problems = (difference(one, other) for one, other in zip(results, wanted, strict=True))
        return next((problem for problem in problems if problem), "")
    got, right = np.asarray(results), np.asarray(wanted)
    if (got.shape, got.dtype) != (right.shape, right.dtype):
        return f"{got.dtype} {got.shape}, wanted {right.dtype} {right.shape}"
    if right.dtype.kind in "fc":
        finite = np.isfinite(right)
        scale = float(np.max(np.abs(right), initial=0.0, where=finite))
        good = np.allclose(got, right, rtol=TOLERANCE, atol=TOLERANCE * scale, equal_nan=True)
    else:
        good = np.array_equal(got, right)
    return "" if good else "other values"


def measure_lines(
    lines: list[str], scopes: dict[str, dict[str, Any]], budget: float, least: bool
) -> tuple[Times, list[str]]:
    """Milliseconds of each line, and the lines whose results differ from NumPy's, which are not timed."""
    rows: Times = {}
    wrong: list[str] = []
    of_samples: Callable[[list[float]], float] = min if least else statistics.median
    for number, line in enumerate(lines):
        measure.progress(f"{number}/{len(lines)} {line}")
        calls = contenders(line, scopes)
        result, wanted = calls["xarr"](), calls["numpy"]()
        problem = "" if line in UNEQUAL or "|" in line else difference(result, wanted)
        del result, wanted
        if problem:
            wrong.append(f"{line}: {problem}")
            continue
        seconds = measure.time_case(calls, budget, of_samples)
        rows[line] = {name: 1e3 * each for name, each in seconds.items()}
    measure.progress("")
    return rows, wrong


#: Rows whose values may differ from NumPy's, which leaves them open.
UNEQUAL: Final = frozenset(
    {
        "xp.empty(1000000)",
        "xp.empty_like(v)",
        *(f"xp.arg{name}" for name in ("sort(i)", "partition(v, 1000)", "partition(m, 100, axis=0)")),
        "xp.unique_values(few)",
        *(f"xp.{name}" for name in ("partition(v, 1000)", "partition(m, 100, axis=0)")),
        "v.argpartition(1000)",
        "xp.einsum_path('ij,jk,kl->il', small, small, small)",
    }
)


def ratio(times: dict[str, float]) -> float:
    return times["xarr"] / times["numpy"]


def format_rows(rows: Times) -> str:
    return "\n".join(
        f"{line:76}{times['numpy']:10.3f}{times['xarr']:10.3f}{ratio(times):8.2f}"
        for line, times in rows.items()
    )


def slow(rows: Times) -> list[str]:
    """Rows above `MOST` times NumPy, the worst first."""
    lines = [
        line for line, times in rows.items() if ratio(times) > MOST and times["xarr"] - times["numpy"] > LEAST
    ]
    return sorted(lines, key=lambda line: -ratio(rows[line]))


def summary(family: str, rows: Times) -> str:
    """A line of docs/performance.md."""
    ratios = {line.rpartition(" | ")[2]: ratio(times) for line, times in rows.items()}
    worst, best = max(ratios, key=lambda line: ratios[line]), min(ratios, key=lambda line: ratios[line])
    above = [sum(each > limit for each in ratios.values()) for limit in (2, 3)]
    return (
        f"| {family} | {len(rows)} | {ratios[best]:.2g} (`{best}`) | {statistics.median(ratios.values()):.2f} "
        f"| {ratios[worst]:.2g} (`{worst}`) | {above[0]} | {above[1]} |"
    )


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="", help="run the rows whose expression contains it")
    parser.add_argument("--family", default="", help="run the families whose name contains it")
    parser.add_argument("--budget", type=float, default=BUDGET, help="seconds for a row")
    parser.add_argument(
        "--least", action="store_true", help="least times, for a machine busy with other work"
    )
    parser.add_argument("--cpu", action="store_true", help="processor time of all threads")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args()


def main() -> None:
    options = arguments()
    if options.cpu:
        measure.clock = time.process_time
    operands = surface_calls.arrays()
    scopes = {
        "numpy": surface_calls.scope(np, operands),
        "xarr": surface_calls.scope(
            xarr, {name: xarr.asarray(each).evaluate() for name, each in operands.items()}
        ),
    }
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores\n")
    every: Times = {}
    wrong: list[str] = []
    summaries = []
    for family, lines in surface_calls.lines().items():
        wanted = [line for line in lines if options.word in line and options.family in family]
        rows, differing = measure_lines(wanted, scopes, options.budget, options.least)
        if rows:
            print(
                f"{family:76}{'numpy ms':>10}{'xarr ms':>10}{'ratio':>8}\n{format_rows(rows)}\n", flush=True
            )
            summaries.append(summary(family, rows))
        every |= rows
        wrong += differing
    print("\n".join([*HEADING, *summaries]))
    print(
        "\n".join(
            [f"\nmore than {MOST} times NumPy:", format_rows({line: every[line] for line in slow(every)})]
        )
    )
    if wrong:
        print("\n".join(["\nnot timed, for the results differ:", *wrong]))
    if options.json:
        options.json.write_text(json.dumps({"ms": every}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
