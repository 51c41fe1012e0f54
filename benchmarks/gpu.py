"""The GPU beside its peers, xarr, CuPy, jit JAX and PyTorch; without a GPU, what each row asks of one.

    python benchmarks/gpu.py --quick --seconds 300 --json gpu.json     # as many rows as fit, the most important first
    python benchmarks/gpu.py --rows a,c --dtypes float32 --quick
    python benchmarks/gpu.py --static                          # kernels, bytes, registers, occupancy: no GPU
    python benchmarks/gpu.py --static --page docs/gpu_benchmark.md
    python benchmarks/gpu.py --measured gpu.json --page docs/gpu_benchmark.md      # what --json has written
    python benchmarks/gpu.py --quick --unknown-first docs/gpu_benchmark.md --json gpu.json

The static table is what is printed where there is no GPU.  Registers need NVRTC (nvidia-cuda-nvrtc, here or in the
directory that NVRTC_DIRECTORY names).

Lines are timed by a process of their own (`gpu_rows.workers`), and the file of --json is there after each: a command
that is cut off leaves all that was measured.
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import measure
from gpu_rows import ROWS
from gpu_rows.first_calls import PROGRAMS, first_calls
from gpu_rows.pages import merge, met_lines, print_figures
from gpu_rows.peers import Peers, connect
from gpu_rows.row import Row
from gpu_rows.static import COLUMNS, StaticLine, cells, markdown, static_lines
from gpu_rows.timing import (
    BUDGET,
    QUICK_BUDGET,
    Rates,
    TimedLine,
    describe,
    in_order,
    measure_rates,
    timed_lines,
)
from gpu_rows.workers import Limits, command_of, end_with_parent, lines_by_workers, serve

from tests.cuda import nvrtc
from xarr.base.configuration import current as config

MEASURED: Final = "<!-- Written by benchmarks/gpu.py --measured from here on. -->"
START: Final = "<!-- Written by benchmarks/gpu.py from here on. -->"
#: The row of the first calls, which is no program of arrays.
FIRST_CALLS: Final = "o"
#: Seconds that lines leave to it, at most.
FIRST_CALLS_SECONDS: Final = 60.0
PACKAGES: Final = (
    *("numpy", "cupy-cuda13x", "cupy-cuda12x", "jax", "jaxlib", "torch", "triton", "nvidia-cuda-nvrtc"),
    "nvidia-cuda-nvrtc-cu12",
)
#: Contenders that --quick leaves out: each of their programs takes some ten seconds to compile.
WITHOUT: Final = ("torch.compile",)
DTYPES: Final = tuple(dict.fromkeys(dtype for row in ROWS for dtype in row.dtypes))


def print_static(lines: Sequence[StaticLine]) -> None:
    print("\n".join(measure.align([COLUMNS, *map(cells, lines)], words=range(len(COLUMNS)))))
    exceeding = [line for line in lines if line.findings]
    print(f"\n{len(exceeding)} of {len(lines)} lines ask for more than they should:")
    for line in exceeding:
        print(f"({line.row}) {line.name}, {line.dtype}: {'; '.join(line.findings)}")


def write_page(page: Path, lines: Sequence[StaticLine]) -> None:
    """Write the table below the line of a page that says so."""
    above = page.read_text(encoding="utf-8").partition(START)[0]
    page.write_text(f"{above}{START}\n\n{markdown(lines)}\n", encoding="utf-8")


def write_measured(page: Path, figures: dict[str, Any]) -> None:
    """Write what was measured between the line of a page that says so and the static table."""
    text = page.read_text(encoding="utf-8")
    above, static = text.partition(MEASURED)[0], text.partition(START)[2]
    page.write_text(f"{above}{MEASURED}\n\n{print_figures(figures)}\n{START}{static}", encoding="utf-8")


def parse_list(text: str, known: Iterable[str], what: str) -> list[str]:
    parts = [part for part in text.split(",") if part]
    if wrong := set(parts) - set(known):
        raise argparse.ArgumentTypeError(f"wanted {what}, got {', '.join(sorted(wrong))}")
    return parts


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    letters = sorted({row.letter for row in ROWS} | {FIRST_CALLS})
    parser.add_argument(
        "--rows",
        type=lambda text: parse_list(text, letters, f"letters from {letters[0]} to {letters[-1]}"),
        default=letters,
        help="letters of the rows, such as a,c",
    )
    parser.add_argument(
        "--dtypes",
        type=lambda text: parse_list(text, DTYPES, f"some of {', '.join(DTYPES)}"),
        default=[],
        help="such as float32; all of each row where it is left out",
    )
    parser.add_argument("--static", action="store_true", help="what the rows ask of a GPU: none is needed")
    parser.add_argument("--small", action="store_true", help="at the sizes of tests: whether it runs")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="stop before a line that takes longer"
    )
    parser.add_argument(
        "--line-seconds",
        type=float,
        help="end a line that takes longer, and go on; 120, with --quick 30 where it is left out",
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="rounds of 0.2 s a line, and no torch.compile, which takes longer, unless --without says else",
    )
    parser.add_argument(
        "--without",
        type=lambda text: tuple([name for name in text.split(",") if name]),
        help="contenders to leave out, such as torch.compile,lazy",
    )
    parser.add_argument(
        "--unknown-first",
        metavar="PAGE",
        type=Path,
        help="lines come first that have no time in this page, or miss what is wanted",
    )
    parser.add_argument("--commit", default="", help="the commit that is measured, where git cannot tell")
    parser.add_argument("--worker", metavar="ORDER", help=argparse.SUPPRESS)
    parser.add_argument("--page", type=Path, help="also write the static table into this page")
    parser.add_argument(
        "--measured", type=Path, nargs="+", help="write the figures of files of --json into --page"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args(arguments)
    if options.measured and not options.page:
        parser.error("--measured FILE is written into a page: --page docs/gpu_benchmark.md")
    return options


def header(peers: Peers, rates: Rates, revision: str) -> str:
    """The device, what runs on it, and its own rates."""
    missing = "; ".join(f"{name}: {reason}" for name, reason in peers.reasons.items())
    products = ", ".join(f"{dtype} {flops / 1e12:.1f} Tflop/s" for dtype, flops in rates.flops.items())
    return (
        f"{device_name(peers)}; {datetime.date.today()}, commit {revision}\n{measure.versions(PACKAGES)}\n"
        f"copies, GB/s read and written: cudaMemcpy {rates.memcpy / 1e9:.0f}, a kernel {rates.kernel / 1e9:.0f}; "
        f"products: {products}\n{missing}\n"
        "medians in ms; × a peer: xarr under jit over the fastest of its spellings"
    )


def device_name(peers: Peers) -> str:
    """The device with its memory, and the versions of its driver."""
    if not hasattr(peers.arrays, "cuda"):
        return "no device: an emulated one, whose times mean nothing"
    runtime = peers.arrays.cuda.runtime
    properties = runtime.getDeviceProperties(runtime.getDevice())
    name, memory = properties["name"].decode(), properties["totalGlobalMem"] / 2**30
    driver, cuda = runtime.driverGetVersion(), runtime.runtimeGetVersion()
    return f"{name}, {memory:.0f} GiB, driver {driver_version()} (CUDA {driver}), runtime {cuda}"


def driver_version() -> str:
    """The version of NVIDIA's driver, as its own tool prints it."""
    command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    return run_quietly(command).partition("\n")[0] or "unknown"


def commit() -> str:
    """The commit of this checkout, with a mark if something in it is changed."""
    changed = (
        " and changes" if run_quietly(["git", "-C", str(CHECKOUT), "status", "--porcelain", "-uno"]) else ""
    )
    return (run_quietly(["git", "-C", str(CHECKOUT), "rev-parse", "--short", "HEAD"]) or "unknown") + changed


def run_quietly(command: list[str]) -> str:
    """The output of a command, empty if there is no such command or it fails."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def run_static(rows: Sequence[Row], options: argparse.Namespace) -> int:
    """List what rows ask of a GPU."""
    if nvrtc.library() is None:
        print("no registers: pip install nvidia-cuda-nvrtc, or set NVRTC_DIRECTORY", file=sys.stderr)
    lines = list(static_lines(rows, options.dtypes, options.small))
    print(measure.versions(("numpy", "nvidia-cuda-nvrtc")))
    print_static(lines)
    if options.page:
        write_page(options.page, lines)
    write_json(options.json, {"static": [asdict(line) | {"findings": line.findings} for line in lines]})
    return 0


@dataclass
class Figures:
    """The figures so far, printed and written as they come."""

    path: Path | None
    written: dict[str, Any] = field(default_factory=lambda: {"lines": []})
    wrong: int = 0

    def describe(self, message: dict[str, Any]) -> None:
        """Show the device, and keep what it is."""
        print(message["header"], flush=True)
        self._keep(device=message["header"].splitlines(), rates=message["rates"])

    def add(self, line: TimedLine) -> None:
        print(describe(line), flush=True)
        self.wrong += line.is_wrong
        self._keep(lines=[*self.written["lines"], asdict(line) | {"verdicts": line.verdicts}])

    def add_first_calls(self, times: dict[str, tuple[float, float] | str]) -> None:
        print("(o) first call, cold and warm, s:", times, flush=True)
        self._keep(**{"first calls": times})

    def _keep(self, **new: Any) -> None:
        self.written |= new
        write_json(self.path, self.written)


def run_timed(rows: Sequence[Row], options: argparse.Namespace, peers: Peers | None = None) -> int:
    """Time rows on a device, print and keep each line as it is ready: 1 if xarr is wrong somewhere, else 0.

    peers: those of tests, which this process times itself.
    """
    figures, pairs = Figures(options.json), chosen_pairs(rows, options)
    started = time.monotonic()
    has_first_calls = FIRST_CALLS in options.rows and not options.small
    kept = min(FIRST_CALLS_SECONDS, options.seconds / 8) if has_first_calls else 0.0
    budget = QUICK_BUDGET if options.quick else BUDGET
    if peers is None:
        of_line = options.line_seconds or (30.0 if options.quick else 120.0)
        without = options.without if options.without is not None else WITHOUT if options.quick else ()
        limits = Limits(options.seconds - kept, of_line, budget, without)
        command = command_of(repeated_options(options))
        lines = lines_by_workers(pairs, command, limits, figures.describe)
    else:
        sizes = {"copied": 2**12, "side": 8} if options.small else {}
        rates = measure_rates(peers, **sizes)
        figures.describe({"header": header(peers, rates, options.commit or commit()), "rates": asdict(rates)})
        lines = timed_lines(pairs, peers, rates, options.seconds, budget, options.small)
    for line in lines:
        figures.add(line)
    if has_first_calls:
        left = options.seconds - (time.monotonic() - started)
        figures.add_first_calls(first_calls(list(PROGRAMS), left))
    return min(figures.wrong, 1)


def chosen_pairs(rows: Sequence[Row], options: argparse.Namespace) -> list[tuple[Row, str]]:
    """The lines that are asked for, in their order."""
    return in_order(rows, options.dtypes, known_lines(options.unknown_first) if options.unknown_first else ())


def known_lines(page: Path) -> frozenset[tuple[str, str]]:
    """The titles and dtypes of the lines that were measured, by a page, and miss nothing."""
    return met_lines(page.read_text(encoding="utf-8").partition(MEASURED)[2].partition(START)[0])


def repeated_options(options: argparse.Namespace) -> list[str]:
    """The options by which a process chooses the same lines."""
    options_of_lines = ["--rows", ",".join(options.rows), "--dtypes", ",".join(options.dtypes)]
    revision = ["--commit", options.commit or commit()]
    order = ["--unknown-first", str(options.unknown_first)] if options.unknown_first else []
    return [*options_of_lines, *revision, *order, *(["--small"] if options.small else [])]


def run_worker(rows: Sequence[Row], options: argparse.Namespace) -> int:
    """Time the lines that another process asks for."""
    end_with_parent()
    peers = connect()
    output, sys.stdout = sys.stdout, sys.stderr
    pairs = chosen_pairs(rows, options)
    with config(backend="cupy"):
        serve(
            options.worker,
            pairs,
            peers,
            lambda rates: header(peers, rates, options.commit),
            output,
            options.small,
        )
    return 0


def find_gpu() -> str:
    """Why there is none to measure on, as a process says that looks; empty if there is one."""
    looking = "import cupy, sys; sys.exit(None if cupy.cuda.is_available() else 'CuPy sees no GPU')"
    done = subprocess.run([sys.executable, "-c", looking], capture_output=True, text=True, check=False)
    return (done.stderr.strip() or "no CuPy").splitlines()[-1] if done.returncode else ""


def write_json(path: Path | None, figures: dict[str, object]) -> None:
    """Write figures in place of those before; a command that is cut off meanwhile leaves these or those."""
    if path:
        new = path.with_name(f"{path.name}.new")
        new.write_text(json.dumps(figures, indent=2, ensure_ascii=False), encoding="utf-8")
        new.replace(path)


def main(arguments: list[str] | None = None, peers: Peers | None = None, rows: Sequence[Row] = ROWS) -> int:
    """Run the benchmark; tests give other peers."""
    options = parse(arguments)
    rows = [row for row in rows if row.letter in options.rows]
    if options.measured:
        files = [json.loads(each.read_text(encoding="utf-8")) for each in options.measured]
        write_measured(options.page, merge(files))
        return 0
    if options.static:
        return run_static(rows, options)
    if options.worker:
        return run_worker(rows, options)
    if peers is not None:
        with config(backend="cupy"):
            return run_timed(rows, options, peers)
    missing = find_gpu()
    if missing:
        print(f"no GPU, so what is asked of one is listed: {missing}", file=sys.stderr)
        return run_static(rows, options)
    return run_timed(rows, options)


if __name__ == "__main__":
    sys.exit(main())
