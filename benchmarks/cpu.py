"""The CPU engine beside its peers: xarr, NumPy, numexpr, jit JAX, numba and PyTorch on the rows of one table.

    python benchmarks/cpu.py                                       # all rows; some minutes
    python benchmarks/cpu.py --rows a,c --sizes 1000 --dtypes float32 --quick
    python benchmarks/cpu.py --json cpu.json

All contenders of a line are measured in one process, in turn, and reported as medians, with the ratio of xarr
under `jit` to the best peer: machines drift, ratios within a run do not.  Each contender's result is compared
with NumPy's before it is timed; a wrong one ends the run.  Contenders that are not installed do not take part.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import measure
import numpy as np
from cpu_rows import ROWS
from cpu_rows.contenders import Row, by_xarr, numba_kernels
from cpu_rows.elementwise import compiling

from xarr.base.configuration import current as config

Statistic = Callable[[list[float]], float]

#: Whose times are columns; the others are peers all the same.
OURS = ("xarr", "lazy")
PACKAGES = ("numpy", "ml_dtypes", "llvmlite", "numexpr", "jax", "numba", "scipy", "torch")
#: Seconds that the rounds of one line take together.
BUDGET, QUICK_BUDGET = 2.0, 0.2
#: Elements of each of three arrays whose traffic measures the memory.
TRIAD = 2 * 10**7


@dataclass(frozen=True)
class Line:
    """The measurements of one row, for one dtype and size."""

    row: str
    name: str
    dtype: str
    size: int
    seconds: dict[str, float]
    #: Bytes that must be read and written, over those that the memory moves in the time that xarr takes.
    bandwidth: float | None

    @property
    def best_peer(self) -> str:
        return min((name for name in self.seconds if name not in OURS), key=lambda name: self.seconds[name])

    @property
    def ratio(self) -> float:
        return self.seconds["xarr"] / self.seconds[self.best_peer]


def measure_rows(rows: Iterable[Row], options: argparse.Namespace, bandwidth: float) -> Iterator[Line]:
    """The lines of the table, each as it is ready.  Raises WrongResult."""
    budget = QUICK_BUDGET if options.quick else BUDGET
    for row in rows:
        for size in sizes(row, options):
            for dtype in options.dtypes:
                yield measured_line(row, np.dtype(dtype), size, budget, bandwidth, options.of_samples)
    measure.progress("")


def sizes(row: Row, options: argparse.Namespace) -> tuple[int, ...]:
    if row.one_dimensional and options.sizes:
        return tuple(options.sizes)
    return row.quick_sizes if options.quick and row.quick_sizes else row.sizes


def measured_line(
    row: Row, dtype: np.dtype, size: int, budget: float, bandwidth: float, of_samples: Statistic
) -> Line:
    label = f"({row.letter}) {row.name} {size or ''} {dtype}"
    measure.progress(f"{label}: compiling and checking")
    contenders = row.case(dtype, size)
    try:
        measure.check(contenders, dtype, row.tolerance, row.unequal)
    except measure.WrongResult as error:
        raise measure.WrongResult(f"{label}: {error}") from None
    measure.progress(f"{label}: timing {', '.join(contenders)}")
    seconds = measure.time_case(contenders, budget, of_samples)
    needed = row.traffic(size) * dtype.itemsize / bandwidth if row.traffic else None
    return Line(row.letter, row.name, dtype.name, size, seconds, needed and needed / seconds["xarr"])


def memory_bandwidth() -> float:
    """Bytes a second that x + 3 y moves, for arrays much larger than the caches: the best of xarr and numba."""
    measure.progress("memory bandwidth")
    x, y = np.ones(TRIAD), np.ones(TRIAD)
    calls = [by_xarr(lambda x, y: x + 3 * y, x, y)["xarr"]]
    kernels = numba_kernels()
    if kernels:
        out = np.empty_like(x)
        calls.append(lambda: kernels.triad(x, y, out))
    return max(3 * x.nbytes / _best_of(call, 7) for call in calls)


def _best_of(call: measure.Call, rounds: int) -> float:
    return min(_seconds(call) for _ in range(rounds))


def _seconds(call: measure.Call) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def compile_milliseconds(rounds: int = 5) -> dict[str, float]:
    """Contender -> what the first call of row (a) takes beyond a later one; medians over functions that are new."""
    times: dict[str, list[float]] = {}
    for round_ in range(rounds):
        for name, fresh in compiling().items():
            measure.progress(f"compile time of (a), {round_ + 1}/{rounds}")
            call = fresh(1 + time.time_ns() % 10**9 / 1e10)
            first, later = _seconds(call), _best_of(call, 5)
            times.setdefault(name, []).append((first - later) * 1e3)
    measure.progress("")
    return {name: statistics.median(values) for name, values in times.items()}


def header(bandwidth: float, of_samples: Statistic) -> str:
    kind = "medians" if of_samples is statistics.median else "least times"
    return (
        f"{measure.machine()}\n{measure.versions(PACKAGES)}; fusion {config.fusion}\n"
        f"memory bandwidth (x + 3 y of float64): {bandwidth / 1e9:.1f} GB/s; "
        "numba runs in parallel, without fastmath and, as numba fast, with it\n"
        f"{kind} in ms; × best: xarr under jit over the best peer; memory: part of the bandwidth that xarr reaches\n"
    )


def columns(lines: Iterable[Line]) -> list[str]:
    """Names of the contenders that take part anywhere, in the order in which they come up."""
    return list(dict.fromkeys(name for line in lines for name in line.seconds))


def table(lines: Sequence[Line]) -> list[str]:
    """A head and a row for each line, in columns that are as wide as what is in them."""
    names = columns(lines)
    head = ("", "dtype", "size", *names, "× best", "best", "memory")
    return measure.align([head, *(cells(line, names) for line in lines)], words=(0, 1, len(head) - 2))


def cells(line: Line, names: Iterable[str]) -> tuple[str, ...]:
    times = [_short(line.seconds[name]) if name in line.seconds else "-" for name in names]
    size = f"{line.size:,}" if line.size else ""
    memory = f"{line.bandwidth:.0%}" if line.bandwidth else ""
    ends = (f"{line.ratio:.2f}", line.best_peer, memory)
    return (f"({line.row}) {line.name}", line.dtype, size, *times, *ends)


def _short(seconds: float) -> str:
    """Milliseconds with three digits that mean something."""
    milliseconds = seconds * 1e3
    return f"{milliseconds:.{max(0, 2 - int(np.floor(np.log10(milliseconds))))}f}"


def split_list(text: str) -> list[str]:
    return [part for part in text.split(",") if part]


def sizes_listed(text: str) -> list[int]:
    sizes = [int(part) for part in split_list(text)]
    if min(sizes, default=0) < 1:
        raise argparse.ArgumentTypeError(f"wanted positive lengths, got {min(sizes, default='none')}")
    return sizes


def dtypes_listed(text: str) -> list[str]:
    wrong = set(split_list(text)) - {"float32", "float64"}
    if wrong:
        raise argparse.ArgumentTypeError(f"wanted float32, float64 or both, got {', '.join(sorted(wrong))}")
    return split_list(text)


def rows_listed(text: str) -> list[str]:
    wrong = set(split_list(text)) - {row.letter for row in ROWS}
    if wrong:
        raise argparse.ArgumentTypeError(f"wanted letters from a to m, got {', '.join(sorted(wrong))}")
    return split_list(text)


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    letters = sorted({row.letter for row in ROWS})
    parser.add_argument("--rows", type=rows_listed, default=letters, help="letters of the rows, such as a,c")
    parser.add_argument(
        "--sizes", type=sizes_listed, help="lengths for the one-dimensional rows (a), (b), (k)"
    )
    parser.add_argument("--dtypes", type=dtypes_listed, default=["float32", "float64"])
    parser.add_argument(
        "--quick", action="store_true", help="few rounds and steps: whether it runs, not how fast"
    )
    measure.add_least(parser)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None, rows: Iterable[Row] = ROWS) -> None:
    options = parse(arguments)
    bandwidth = memory_bandwidth()
    compiled = compile_milliseconds(1 if options.quick else 5) if "a" in options.rows else {}
    lines = list(measure_rows([row for row in rows if row.letter in options.rows], options, bandwidth))
    print(header(bandwidth, options.of_samples))
    print("\n".join(table(lines)))
    if compiled:
        times = ", ".join(f"{name} {value:.0f}" for name, value in compiled.items())
        print(f"\ncompile time of (a), ms: {times} (wanted: at most 30)")
    if options.json:
        figures = {"bandwidth": bandwidth, "compile ms": compiled, "lines": [asdict(line) for line in lines]}
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
