"""The GPU beside its peers, xarr, CuPy, jit JAX and PyTorch; without a GPU, what each row asks of one.

    python benchmarks/gpu.py --seconds 500 --json gpu.json     # as many rows as fit, the most important first
    python benchmarks/gpu.py --rows a,c --dtypes float32 --quick
    python benchmarks/gpu.py --static                          # kernels, bytes, registers, occupancy: no GPU
    python benchmarks/gpu.py --static --page docs/gpu_benchmark.md

The static table is what is printed where there is no GPU.  Registers need NVRTC (nvidia-cuda-nvrtc, here or in the
directory that NVRTC_DIRECTORY names).
"""

from __future__ import annotations

import argparse
import datetime
import json
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import measure
from gpu_rows import ROWS
from gpu_rows.first_calls import PROGRAMS, first_calls
from gpu_rows.peers import Peers, connect
from gpu_rows.row import Row
from gpu_rows.static import COLUMNS, StaticLine, cells, markdown, static_lines
from gpu_rows.timing import BUDGET, QUICK_BUDGET, Rates, describe, in_order, measure_rates, timed_lines

from tests.cuda import nvrtc
from xarr.base.configuration import current as config

START: Final = "<!-- Written by benchmarks/gpu.py from here on. -->"
#: The row of the first calls, which is no program of arrays.
FIRST_CALLS: Final = "o"
PACKAGES: Final = (
    *("numpy", "cupy-cuda13x", "cupy-cuda12x", "jax", "jaxlib", "torch", "triton", "nvidia-cuda-nvrtc"),
    "nvidia-cuda-nvrtc-cu12",
)
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
    parser.add_argument("--quick", action="store_true", help="few rounds: whether it runs, not how fast")
    parser.add_argument("--page", type=Path, help="also write the static table into this page")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    return parser.parse_args(arguments)


def header(peers: Peers, rates: Rates) -> str:
    """The device, what runs on it, and its own rates."""
    missing = "; ".join(f"{name}: {reason}" for name, reason in peers.reasons.items())
    products = ", ".join(f"{dtype} {flops / 1e12:.1f} Tflop/s" for dtype, flops in rates.flops.items())
    return (
        f"{device_name(peers)}; {datetime.date.today()}, commit {commit()}\n{measure.versions(PACKAGES)}\n"
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
    write_json(options, {"static": [asdict(line) | {"findings": line.findings} for line in lines]})
    return 0


def run_timed(rows: Sequence[Row], options: argparse.Namespace, peers: Peers) -> int:
    """Time rows on a device, print and keep each line as it is ready: 1 if xarr is wrong somewhere, else 0."""
    sizes = {"copied": 2**12, "side": 8} if options.small else {}
    rates = measure_rates(peers, **sizes)
    print(header(peers, rates), flush=True)
    figures = {"device": device_name(peers), "commit": commit(), "rates": asdict(rates), "lines": []}
    budget = QUICK_BUDGET if options.quick else BUDGET
    pairs = in_order(rows, options.dtypes)
    wrong = 0
    for line in timed_lines(pairs, peers, rates, options.seconds, budget, options.small):
        print(describe(line), flush=True)
        figures["lines"].append(asdict(line) | {"verdicts": line.verdicts})
        write_json(options, figures)
        wrong += line.is_wrong
    if FIRST_CALLS in options.rows and not options.small:
        names = [name for name in PROGRAMS if name != "jax" or peers.jax is not None]
        figures["first calls"] = first_calls(names)
        write_json(options, figures)
        print("(o) first call, cold and warm, s:", figures["first calls"])
    return min(wrong, 1)


def write_json(options: argparse.Namespace, figures: dict[str, object]) -> None:
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False))


def main(arguments: list[str] | None = None, peers: Peers | None = None, rows: Sequence[Row] = ROWS) -> int:
    """Run the benchmark; tests give other peers."""
    options = parse(arguments)
    rows = [row for row in rows if row.letter in options.rows]
    if options.static:
        return run_static(rows, options)
    if peers is None:
        try:
            peers = connect()
        except (ImportError, RuntimeError) as error:
            print(f"no GPU, so what is asked of one is listed: {error}", file=sys.stderr)
            return run_static(rows, options)
    with config(backend="cupy"):
        return run_timed(rows, options, peers)


if __name__ == "__main__":
    sys.exit(main())
