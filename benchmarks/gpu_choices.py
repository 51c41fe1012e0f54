"""Numbers of the GPU's schedule that were chosen without one, each beside others: what rows take with either.

    python benchmarks/gpu_choices.py --seconds 60 --json choices.json

Each value has a process of its own, which is ended where it hangs; the file of --json is there after each.  The first
value of a number is what `GpuTarget` has; a result that differs from CuPy's has no time.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import measure
from gpu import write_json
from gpu_rows import ROWS
from gpu_rows.peers import LEFT_OUT, connect
from gpu_rows.row import Case, Function, Input, Row
from gpu_rows.timing import QUICK_BUDGET, Rates, TimedLine, timed_lines
from gpu_rows.workers import START_SECONDS, Messages, end_with_parent, start

from xarr.base.configuration import current as config
from xarr_cupy import backend

#: Who is timed: calls, and replays of a call as a CUDA graph.
TIMED: Final = ("xarr", "replay")
#: Seconds of a row, at most.
ROW_SECONDS: Final = 30.0


@dataclass(frozen=True)
class Choice:
    """A number of the target, its values, and the titles of rows that show what it does."""

    number: str
    values: tuple[float, ...]
    titles: tuple[str, ...]


def lorenz(dtype: str, steps: int) -> Case:
    def program(xp: Any, lax: Any) -> Function:
        def step(_: Any, x: Any) -> Any:
            a, b, c = x[0], x[1], x[2]
            return x + xp.stack([10 * (b - a), a * (28 - c) - b, a * b - c * (8 / 3)]) * 0.01

        return lambda x: lax.fori_loop(0, steps, step, x)

    return Case(program, (Input((3,), dtype),))


def powers(dtype: str, steps: int) -> Case:
    def program(xp: Any, lax: Any) -> Function:
        def step(a: Any, x: Any) -> Any:
            y = a @ x
            return y / xp.sqrt(xp.sum(y * y))

        return lambda a, x: lax.fori_loop(0, steps, lambda _, y: step(a, y), x)

    return Case(program, (Input((4, 4), dtype),) * 2)


#: Loops over short arrays.
LOOPS: Final = (
    Row("n", "Lorenz's equations, 10^4 steps", lorenz, (10**4,), (9,)),
    Row("n", "powers of a 4×4 matrix, 10^3 steps", powers, (10**3,), (9,)),
)
BY_TITLE: Final = {row.title: row for row in (*ROWS, *LOOPS)}
CHOICES: Final = (
    Choice("max_exact_updates", (4, 0), ("(f) scatter-add 10^7 rows of 1 into 10^6, deterministic",)),
    Choice("min_exact_results", (2**14, 1), ("(f) scatter-add 10^7 rows of 1 into 400, deterministic",)),
    Choice("max_carried_elements", (0, 32), tuple(row.title for row in LOOPS)),
    Choice("thread_rows", (32, 16), ("(h) window 31×31 of 4096²",)),
    Choice("max_inner_terms", (64, 0), ("(d) distances by products 16384²×64",)),
    Choice("local_bytes", (48 << 10, 24 << 10), ("(h) window 31×31 of 4096²",)),
)


def set_number(number: str, value: float) -> None:
    """Let the backend compile for a target with this number, before it compiles anything."""
    backend.CupyBackend.target = backend.CupyBackend.target.replace(**{number: value})
    for is_deterministic, schedule in backend._SCHEDULES.items():
        target = schedule.target.replace(**{number: value})
        backend._SCHEDULES[is_deterministic] = replace(schedule, target=target)


def serve(order: str, is_small: bool) -> None:
    """Time the rows of a choice with one value, and print each as a message."""
    end_with_parent()
    asked = json.loads(order)
    set_number(asked["number"], asked["value"])
    output, sys.stdout = sys.stdout, sys.stderr
    peers = connect(())
    peers.without = ("lazy", "cupy best")
    pairs = [(BY_TITLE[title], "float32") for title in asked["titles"]]
    with config(backend="cupy"):
        for line in timed_lines(pairs, peers, Rates(0, 0, {}), float("inf"), QUICK_BUDGET, is_small):
            print(json.dumps(asdict(line)), file=output, flush=True)


def figures(
    choices: Sequence[Choice], seconds: float, command: Sequence[str]
) -> Iterator[tuple[Choice, float, TimedLine]]:
    """The lines of each value of each choice, until so many seconds have passed."""
    deadline = time.monotonic() + seconds
    for choice, value in [(each, value) for each in choices for value in each.values]:
        if time.monotonic() > deadline:
            measure.progress(f"{choice.number} = {value} does not fit in {seconds:.0f} seconds")
            continue
        order = {"number": choice.number, "value": value, "titles": choice.titles}
        worker, allowed = Messages(start([*command, json.dumps(order)])), START_SECONDS
        try:
            for title in choice.titles:
                row, reason = BY_TITLE[title], ""
                try:
                    message = worker.next(min(allowed + ROW_SECONDS, deadline - time.monotonic()))
                    if message is None:
                        reason = f"the process ended with {worker.process.wait()}"
                except TimeoutError as error:
                    message, reason = None, str(error)
                lost = TimedLine(row.letter, row.name, "float32", {}, {"process": reason})
                yield choice, value, TimedLine(**message) if message else lost
                if reason:
                    break
                allowed = 0.0
        finally:
            worker.end()


def describe(choice: Choice, value: float, line: TimedLine) -> str:
    times = ", ".join([f"{name} {line.seconds[name] * 1e6:.1f}" for name in TIMED if name in line.seconds])
    reasons = {name: text for name, text in line.reasons.items() if text != LEFT_OUT}
    return f"{choice.number} = {value}: ({line.row}) {line.name}: {times or '–'} µs" + "".join(
        [f"\n    {name}: {text}" for name, text in reasons.items()]
    )


def main(arguments: list[str] | None = None) -> int:
    """Time all values: 1 if one gave a wrong result, or none."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop before a value then")
    parser.add_argument("--small", action="store_true", help="at the sizes of tests: whether it runs")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    parser.add_argument("--worker", metavar="ORDER", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.worker:
        serve(options.worker, options.small)
        return 0
    size = ["--small"] if options.small else []
    command = [sys.executable, str(Path(__file__).resolve()), *size, "--worker"]
    lines: list[dict[str, Any]] = []
    wrong = False
    for choice, value, line in figures(CHOICES, options.seconds, command):
        print(describe(choice, value, line), flush=True)
        wrong |= line.is_wrong
        lines.append({"number": choice.number, "value": value, **asdict(line)})
        write_json(options.json, {"choices": lines})
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main())
