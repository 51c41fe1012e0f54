"""All-reduce of float32 sums by threads and under MPI, beside `MPI_Allreduce` and what memory allows.

    python benchmarks/collectives.py                  # two replicas, threads and the MPI of this environment
    python benchmarks/collectives.py --replicas 4 --sizes 1024,1048576 --repeats 20

Times are the least of several runs of each size, the slowest replica's of a run, contenders one after the other in each
repetition, so that others on the machine disturb all alike.  The bound is the bytes that the algorithm must read and
write (`bound_bytes`), at the rate at which one thread copies memory.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import numpy as np

import xarr
from xarr.communication import algorithms
from xarr.communication.communicator import CollectiveCall, Communicator, current_communicator
from xarr.distributed import PartitionSpec, initialize, make_mesh, simulate

Array = np.ndarray[Any, Any]
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)


def add(rows: Sequence[Array], out: Array) -> None:
    """Fold sums, as the NumPy backend does."""
    np.add(rows[0], rows[1] if len(rows) > 1 else 0, out=out)
    for row in rows[2:]:
        np.add(out, row, out=out)


def reduce_once(communicator: Communicator, operand: Array) -> Array:
    """The sum over all replicas by xarr's algorithm."""
    members = tuple(range(communicator.size))
    with communicator.collective(CollectiveCall("all_reduce", f"({operand.size})", members)):
        return algorithms.all_reduce(communicator, members, [operand], [add])[0]


def measure_all(sizes: Sequence[int], repeats: int) -> dict[str, dict[int, float]]:
    """The least seconds of each contender at this replica, by size."""
    communicator = current_communicator()
    contenders: dict[str, Callable[[Array], Any]] = {"xarr": lambda x: reduce_once(communicator, x)}
    if communicator.name == "MPI":
        contenders |= _native()
    best: dict[str, dict[int, float]] = {name: {} for name in contenders}
    for size in sizes:
        operand = np.full(size // 4, communicator.rank + 1, np.float32)
        wanted = communicator.size * (communicator.size + 1) / 2
        for name, run in contenders.items():
            if not np.all(run(operand) == wanted):
                raise SystemExit(f"{name} is wrong for {size} bytes")
        calls = max(1, min(200, (1 << 22) // size))
        for _ in range(repeats):
            for name, run in contenders.items():
                seconds = _slowest(communicator, _seconds(run, operand, calls))
                best[name][size] = min(best[name].get(size, seconds), seconds)
    return best


def _seconds(run: Callable[[Array], Any], operand: Array, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run(operand)
    return (time.perf_counter() - start) / calls


def _slowest(communicator: Communicator, seconds: float) -> float:
    members = tuple(range(communicator.size))
    with communicator.collective(CollectiveCall("all_gather", "(time)", members)):
        return float(algorithms.all_gather(communicator, members, np.asarray(seconds)).max())


def _native() -> dict[str, Callable[[Array], Any]]:
    """MPI's own sum, into a new array and into one that is used again."""
    from mpi4py import MPI

    kept: dict[int, Array] = {}

    def fresh(x: Array) -> Array:
        out = np.empty_like(x)
        MPI.COMM_WORLD.Allreduce(x, out, MPI.SUM)
        return out

    def reuse(x: Array) -> Array:
        out = kept.setdefault(x.size, np.empty_like(x))
        MPI.COMM_WORLD.Allreduce(x, out, MPI.SUM)
        return out

    return {"MPI_Allreduce": fresh, "MPI_Allreduce, output reused": reuse}


def copy_rate() -> float:
    """Bytes read and written a second by copying arrays that no cache holds."""
    source = np.ones(1 << 24, np.float64)
    target = np.empty_like(source)
    best = min(_seconds(lambda x: np.copyto(target, x), source, 1) for _ in range(7))
    return 2 * source.nbytes / best


def bound_bytes(n: int, size: int, is_shared: bool) -> float:
    """The bytes that all replicas must read and write: a fold, and copies of what others fold.

    Where memory is shared, operands are read where they lie; else parts of them are copied before.
    """
    moved = (n - 1) / n * size
    fold = size + size / n
    return n * (fold + 2 * moved + (0 if is_shared else 2 * moved))


def print_table(
    name: str, n: int, rate: float, best: dict[str, dict[int, float]], is_shared: bool, ratio: str | None
) -> None:
    """Print the rows of an engine."""
    print(f"\n{name}, {n} replicas; seconds of the slowest")
    columns = [*best, "bound"]
    print(f"{'bytes':>12}  " + "  ".join(f"{column:>30}" for column in columns) + "  xarr / bound")
    for size in next(iter(best.values())):
        bound = bound_bytes(n, size, is_shared) / rate
        seconds = [*(best[column][size] for column in best), bound]
        cells = [f"{each * 1e6:12,.1f} us {size / each / 1e9:7.2f} GB/s" for each in seconds]
        against = f"{bound / best['xarr'][size]:.0%} of the bound"
        if ratio is not None:
            against += f", {best[ratio][size] / best['xarr'][size]:.2f} of {ratio}"
        print(f"{size:>12,}  " + "  ".join(f"{cell:>30}" for cell in cells) + f"  {against}")


def print_calls(n: int, repeats: int) -> None:
    """Print what a call under `shard_map` takes beside the program of one part alone, under `jit`."""
    mesh, whole = make_mesh(n, "x"), PartitionSpec()
    print(f"\na call of sin(x) * 2 on float32 parts, {n} replicas")
    print(f"{'bytes a part':>12}  {'jit alone':>14}  {'shard_map':>14}")
    for size in (1 << 10, 1 << 20, 1 << 24):
        part = xarr.asarray(np.ones(size // 4, np.float32))
        alone = xarr.jit(_program)
        mapped = xarr.shard_map(_program, mesh=mesh, in_specs=whole, out_specs=whole)
        for run in (alone, mapped):
            run(part)
        seconds = [min(_seconds(run, part, 3) for _ in range(repeats)) for run in (alone, mapped)]
        print(f"{size:>12,}  " + "  ".join(f"{each * 1e6:11,.1f} us" for each in seconds))


def _program(x: xarr.Array) -> xarr.Array:
    return xarr.sin(x) * 2


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(each) for each in text.split(","))


def main() -> None:
    """Run the contenders and print their tables."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument(
        "--sizes", type=_sizes, default=SIZES, help="bytes of the operand, separated by commas"
    )
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument(
        "--worker", type=Path, help="run as a process of MPI, and write the times to this file"
    )
    options = parser.parse_args()
    if options.worker is not None:
        communicator = initialize()
        best = measure_all(options.sizes, options.repeats)
        if communicator.rank == 0:
            options.worker.write_text(json.dumps(best), encoding="utf-8")
        return
    rate, n = copy_rate(), options.replicas
    print(f"memory: {rate / 1e9:.1f} GB/s read and written by one thread; {os.cpu_count()} cores")
    threads = simulate(n, measure_all, options.sizes, options.repeats)[0]
    print_table("threads", n, rate, threads, True, None)
    print_calls(n, options.repeats)
    _measure_mpi(options, rate)


def _measure_mpi(options: argparse.Namespace, rate: float) -> None:
    beside = Path(sys.executable).parent / "mpiexec"
    launcher = str(beside) if beside.exists() else shutil.which("mpiexec")
    if launcher is None:
        print("\nMPI is left out: there is no mpiexec beside this Python or on the path")
        return
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        figures = Path(folder) / "figures.json"
        command = [launcher, "-n", str(options.replicas), sys.executable, __file__, "--worker", str(figures)]
        command += ["--sizes", ",".join(map(str, options.sizes)), "--repeats", str(options.repeats)]
        done = subprocess.run(command, check=False)
        if done.returncode:
            raise SystemExit(f"the processes under MPI ended with status {done.returncode}")
        text = json.loads(figures.read_text(encoding="utf-8"))
    best = {name: {int(size): seconds for size, seconds in each.items()} for name, each in text.items()}
    print_table("MPI", options.replicas, rate, best, False, "MPI_Allreduce")


if __name__ == "__main__":
    main()
