"""Whole programs that nobody tuned: xarr beside NumPy, numba and jit JAX, each in its users' spelling.

    python benchmarks/programs.py                                  # all programs, three sizes, one thread and all
    python benchmarks/programs.py --rows LU,heat --sizes 0,1 --quick
    python benchmarks/programs.py --json programs.json

A program is written in NumPy's spelling, in JAX's, and as loops (`program_rows`).  xarr runs the first two under
`jit` and the first recorded and evaluated at once; numba compiles the loops, with fastmath off and on.  The best
spelling of each side counts.  Contenders are called in blocks, with a pause before each, since idle threads of one
disturb the next; a child process has as many threads and processors as its part of the table says.  Results are
compared with NumPy's; who differs, refuses or takes too long has no time but a reason.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

import measure
from children import (
    PAUSE,
    Limit,
    OutOfTime,
    collect,
    default_threads,
    in_milliseconds,
    integers_listed,
    keep_to_processors,
    lines_of_child,
    mean,
    rows_listed,
)
from program_rows import FAMILIES, ROWS
from program_rows.contenders import OURS, PEERS, STEPPED, makers, refusals
from program_rows.row import Program

PACKAGES = ("numpy", "ml_dtypes", "llvmlite", "jax", "numba")
#: Seconds that all contenders of a line are timed together, and that a first call may take.
BUDGET, QUICK_BUDGET = 1.5, 0.3
LIMIT, QUICK_LIMIT = 30.0, 5.0
#: Seconds for which each contender is called before it is timed.
SETTLING = 0.1
#: How much longer a call that Python steps may take at the next size; one that would pass the limit is left out.
GROWTH = 8
#: The compilers of peers may take so many times the limit.
PATIENCE = 6
#: Lines that are listed as the worst.
WORST = 25


@dataclass
class Line:
    """The measurements of one program of one size with so many threads.

    `seconds` and `first` are of a call and of the first one, by contender; `reasons` say who has none.
    """

    name: str
    size: int
    threads: int
    seconds: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def best(self, names: Iterable[str]) -> str | None:
        """Who of `names` is fastest; None if none has a time."""
        return min(
            (name for name in names if name in self.seconds), key=self.seconds.__getitem__, default=None
        )

    def ratio(self, peers: Iterable[str], ours: Iterable[str] = OURS, times: str = "seconds") -> float | None:
        """The time of the best of `peers` over that of the best of `ours`; None where one has none."""
        table: dict[str, float] = getattr(self, times)
        sides = [[table[name] for name in names if name in table] for names in (peers, ours)]
        return min(sides[0]) / min(sides[1]) if all(sides) else None


ALL_PEERS = tuple(name for names in PEERS.values() for name in names)


# --- measuring, in a child process ---------------------------------------------------------------------------


def measured_line(program: Program, index: int, before: Line | None, options: argparse.Namespace) -> Line:
    """The line of one size; `before` is that of the size before, whose first calls say who will take too long."""
    size = program.tiny if options.tiny else program.sizes[index]
    line = Line(program.name, size, options.worker)
    arguments = program.data(size)
    all_makers = makers(program, arguments, is_parallel=options.worker > 1 and index > 0)
    wanted = all_makers["numpy"]()()
    calls: measure.Contenders = {}
    for name, make in all_makers.items():
        measure.progress(f"{options.worker} threads, {program.name} {size}: first call of {name}")
        problem = before and too_slow(name, before, options.limit)
        if not problem:
            started = time.perf_counter()
            try:
                with Limit(options.limit if name in STEPPED or name in OURS else PATIENCE * options.limit):
                    call = make()
                    got = call()
                line.first[name] = time.perf_counter() - started
                problem = measure.difference(got, wanted, program.tolerance, program.unequal)
            except OutOfTime:
                problem = f"more than {time.perf_counter() - started:.0f} s"
            except refusals() as error:
                problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:150]}"
        if problem:
            line.reasons[name] = problem
        else:
            calls[name] = call
            if not options.tiny:
                _settle(call)
    measure.progress(f"{options.worker} threads, {program.name} {size}: timing {', '.join(calls)}")
    line.seconds = measure.time_blocks(calls, options.budget, PAUSE, options.of_samples)
    return line


def _settle(call: measure.Call) -> None:
    """Call for a while: what is called often may get better machine code."""
    end = time.perf_counter() + SETTLING
    while time.perf_counter() < end:
        call()


def too_slow(name: str, before: Line, limit: float) -> str:
    """Why a contender is left out, from the line of the size before; empty if it takes part."""
    first = before.first.get(name, 0)
    if name in STEPPED and first * GROWTH > limit:
        return f"took {first:.1f} s at {before.size:,}"
    return before.reasons.get(name, "")


def work(programs: Sequence[Program], options: argparse.Namespace) -> None:
    """Measure in this process, and print each line as JSON."""
    warnings.simplefilter("ignore")
    keep_to_processors(options.worker)
    warm_up()
    for program in programs:
        before = None
        for index in options.sizes:
            line = before = measured_line(program, index, before, options)
            print(json.dumps(asdict(line)), flush=True)


def warm_up() -> None:
    """Let each library load what it loads once, so that the first calls of the first program are like others."""
    row = ROWS[0]
    for make in makers(row, row.data(row.tiny + 1), is_parallel=False).values():
        try:
            make()()
        except refusals():
            continue


# --- the child processes -------------------------------------------------------------------------------------


def lines_of_children(programs: Sequence[Program], options: argparse.Namespace) -> Iterator[Line]:
    """The lines with one thread, then with all, each as it is ready."""
    for threads in options.threads:
        remaining = list(programs)
        while remaining:
            done: list[Line] = []
            yield from _lines_of_child(remaining, threads, options, done)
            sizes = {program.name: 0 for program in remaining}
            for line in done:
                sizes[line.name] += 1
            stopped = next((p for p in remaining if sizes[p.name] < len(options.sizes)), None)
            if stopped is None:
                break
            size = stopped.sizes[options.sizes[sizes[stopped.name]]]
            yield Line(stopped.name, size, threads, reasons={"all": "the process ended"})
            remaining = remaining[remaining.index(stopped) + 1 :]


def _lines_of_child(
    programs: Sequence[Program], threads: int, options: argparse.Namespace, done: list[Line]
) -> Iterator[Line]:
    arguments = [
        *(__file__, "--worker", str(threads), "--numbers", ",".join(map(str, map(ROWS.index, programs)))),
        *("--sizes", ",".join(map(str, options.sizes)), "--limit", str(options.limit)),
        *("--budget", str(options.budget), *(["--tiny"] if options.tiny else [])),
        *(["--least"] if options.of_samples is min else []),
    ]
    patience = 60 + PATIENCE * options.limit * (len(OURS) + 1 + len(ALL_PEERS))
    for text in lines_of_child(arguments, threads, patience):
        done.append(Line(**json.loads(text)))
        yield done[-1]


# --- the table -----------------------------------------------------------------------------------------------


def header(options: argparse.Namespace) -> str:
    kind = "medians" if options.of_samples is statistics.median else "least times"
    return (
        f"{measure.machine()}\n{measure.versions(PACKAGES)}\n"
        f"{kind} in ms, of the better spelling of each side; xarr under jit, eager: recorded and evaluated at once\n"
        "best ÷ xarr: the time of the fastest peer over that of xarr under jit, above 1 xarr is ahead;"
        " eager: NumPy's time over that of eager xarr\n"
    )


def table(lines: Sequence[Line]) -> list[str]:
    """A head and a row for each line, in columns that are as wide as what is in them."""
    head = ("", "size", "threads", "xarr", "eager", *PEERS, "best ÷ xarr", "eager", "best")
    return measure.align([head, *(cells(line) for line in lines)], words=(0, len(head) - 1))


def cells(line: Line) -> tuple[str, ...]:
    sides = (OURS, ("eager",), *PEERS.values())
    times = [in_milliseconds(line.seconds[name]) if (name := line.best(side)) else "-" for side in sides]
    ratios = [line.ratio(ALL_PEERS), line.ratio(("numpy",), ("eager",))]
    texts = [f"{ratio:.2g}" if ratio is not None else "-" for ratio in ratios]
    return (line.name, f"{line.size:,}", str(line.threads), *times, *texts, line.best(ALL_PEERS) or "")


def summary(lines: Sequence[Line]) -> list[str]:
    """Geometric means, over all lines and by thread and family, the worst lines, and who has no time."""
    result = ["geometric means of the time of a peer over that of xarr, and of the least of them:"]
    groups: dict[str, Sequence[Line]] = {"all": lines}
    for threads in dict.fromkeys(line.threads for line in lines):
        groups[f"{threads} threads"] = [line for line in lines if line.threads == threads]
    for k in range(3):
        groups[f"size {k}"] = [line for line in lines if size_index(line) == k]
    for family, programs in FAMILIES.items():
        groups[family] = [line for line in lines if line.name in {program.name for program in programs}]
    result += [f"  {name:22}" + _means(group) for name, group in groups.items() if group]
    peers = {peer: sum(line.best(names) is None for line in lines) for peer, names in PEERS.items()}
    result += [
        f"  {count} lines have no time of {peer}: there the best is that of the others"
        for peer, count in peers.items()
        if count
    ]
    ratios = [(ratio, k) for k, line in enumerate(lines) if (ratio := line.ratio(ALL_PEERS)) is not None]
    below = sum(ratio < 0.3 for ratio, _ in ratios)
    result += ["", f"{below} of {len(ratios)} lines below 0.3; the worst:"]
    for ratio, k in sorted(ratios)[:WORST]:
        line = lines[k]
        ours, peer = line.best(OURS), line.best(ALL_PEERS)
        result.append(
            f"  {ratio:7.2g}  {line.name} {line.size:,}, {line.threads} threads: {ours} beside {peer}"
        )
    missing = [
        f"  {line.name} {line.size:,}, {line.threads} threads: {name}: {reason}"
        for line in lines
        for name, reason in line.reasons.items()
        if name != "jax np"
    ]
    return [*result, "", "without a time:", *(missing or ["  none"])]


def size_index(line: Line) -> int:
    program = next(program for program in ROWS if program.name == line.name)
    return program.sizes.index(line.size) if line.size in program.sizes else 0


def _means(lines: Sequence[Line]) -> str:
    parts = [("best", mean(line.ratio(ALL_PEERS) for line in lines))]
    parts += [(peer, mean(line.ratio(names) for line in lines)) for peer, names in PEERS.items()]
    parts.append(("eager/numpy", mean(line.ratio(("numpy",), ("eager",)) for line in lines)))
    parts.append(("first call/jax", mean(line.ratio(("jax",), ("xarr",), "first") for line in lines)))
    return "  ".join(f"{name} {value:.3g}" if value else f"{name} -" for name, value in parts)


# --- the command ---------------------------------------------------------------------------------------------


def sizes_listed(text: str) -> list[int]:
    sizes = integers_listed(text)
    if not sizes or not set(sizes) <= {0, 1, 2}:
        raise argparse.ArgumentTypeError(f"wanted some of 0, 1, 2 (small, middle, large), got {text}")
    return sizes


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--rows", default="", help="parts of the names of programs, such as LU,heat; all without it"
    )
    parser.add_argument("--sizes", type=sizes_listed, default=[0, 1, 2], help="0 small, 1 middle, 2 large")
    parser.add_argument(
        "--threads", type=integers_listed, default=default_threads(), help="counts of threads, such as 1,2"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds, and shorter limits")
    parser.add_argument("--limit", type=float, help="seconds that a first call may take")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, after each line")
    measure.add_least(parser)
    # What the child processes get.
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--numbers", type=integers_listed, help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.limit = options.limit or (QUICK_LIMIT if options.quick else LIMIT)
    options.budget = options.budget or (QUICK_BUDGET if options.quick else BUDGET)
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.worker:
        work([ROWS[number] for number in options.numbers], options)
        return
    programs = rows_listed(ROWS, options.rows)
    head = header(options)
    lines = collect(lines_of_children(programs, options), options.json)
    print("\n".join([head, *table(lines), "", *summary(lines)]))


if __name__ == "__main__":
    main()
