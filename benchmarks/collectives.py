"""All-reduce of float32 sums by threads and under MPI, beside `MPI_Allreduce` and what memory allows.

    python benchmarks/collectives.py                  # two replicas, threads and the MPI of this environment
    python benchmarks/collectives.py --replicas 4 --sizes 1024,1048576 --repeats 20
    python benchmarks/collectives.py --dtype int32    # natively reduced across machines only; see docs/distributed.md

Times are the least of several runs of each size, from a meeting of all replicas to the next, contenders one after the
other in each repetition, so that others on the machine disturb all alike.  The bound is a contender too: each replica
copies its operand to a result that is there.  An all-reduce can read and write no less, whatever it does: every operand
is read, and every result written.  Memory may be half as fast for a while, of all processes: so beside the ratio of
the least times stands the median of the ratios of each repetition, in which a copy and xarr follow one another.
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
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

import numpy as np

import xarr
from xarr.base.host.memory import copy_array
from xarr.communication import algorithms
from xarr.communication.communicator import CollectiveCall, Communicator, current_communicator
from xarr.distributed import PartitionSpec, initialize, make_mesh, simulate
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.types import TensorType
from xarr_numpy.ops.collectives import fold_by

Array = np.ndarray[Any, Any]
#: Seconds of each repetition, by contender and size.
Times = dict[str, dict[int, list[float]]]
BOUND = "a copy, the bound"
FOREIGN = "xarr, NumPy's operand"
SIZES = (1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 22, 1 << 24, 1 << 26)


@cache
def sums(dtype: str) -> algorithms.Fold:
    """The sums of the NumPy backend."""
    x, y = (parameter(TensorType((), np.dtype(dtype))) for _ in range(2))
    return fold_by(Graph([x, y], [Node(ops.Add(), (x, y))]), lambda x, y: (np.add(x, y),))


def reduce_once(communicator: Communicator, operand: Array) -> Array:
    """The sum over all replicas by xarr's algorithm."""
    members, fold = tuple(range(communicator.size)), sums(operand.dtype.name)
    with communicator.collective(CollectiveCall("all_reduce", f"({operand.size})", members)):
        return algorithms.all_reduce(communicator, members, [operand], [fold])[0]


def measure_all(sizes: Sequence[int], repeats: int, dtype: str) -> Times:
    """The seconds of each contender by size, from a meeting of all replicas to the next."""
    communicator = current_communicator()
    contenders: dict[str, Callable[[Array], Any]] = {BOUND: _Copy()}
    contenders["xarr"] = lambda x: reduce_once(communicator, x)
    if communicator.name == "MPI":
        contenders |= {FOREIGN: lambda x: reduce_once(communicator, foreign), **_native()}
    times: Times = {name: {size: [] for size in sizes} for name in contenders}
    for size in sizes:
        foreign = np.full(size // 4, communicator.rank + 1, dtype)
        operand = copy_array(foreign)  # which lies where results of programs do
        wanted = communicator.size * (communicator.size + 1) / 2
        for name, run in contenders.items():
            if not np.all(run(operand) == (communicator.rank + 1 if name == BOUND else wanted)):
                raise SystemExit(f"{name} is wrong for {size} bytes")
        calls = max(1, min(200, (1 << 22) // size))
        for _ in range(repeats):
            for name, run in contenders.items():
                times[name][size].append(_slowest(communicator, run, operand, calls))
    return times


def _seconds(run: Callable[[Array], Any], operand: Array, calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        run(operand)
    return (time.perf_counter() - start) / calls


def _slowest(communicator: Communicator, run: Callable[[Array], Any], operand: Array, calls: int) -> float:
    """Seconds a call, from when all replicas have come until all have done their calls."""
    _meet(communicator)
    start = time.perf_counter()
    for _ in range(calls):
        run(operand)
    _meet(communicator)
    return _largest(communicator, (time.perf_counter() - start) / calls)


def _meet(communicator: Communicator) -> None:
    _largest(communicator, 0.0)


def _largest(communicator: Communicator, number: float) -> float:
    members = tuple(range(communicator.size))
    with communicator.collective(CollectiveCall("all_gather", "(time)", members)):
        return float(algorithms.all_gather(communicator, members, np.asarray(number)).max())


class _Copy:
    """Reads an operand and writes a result, of memory that was used before."""

    def __init__(self) -> None:
        self._out = np.empty(0)

    def __call__(self, x: Array) -> Array:
        if (self._out.shape, self._out.dtype) != (x.shape, x.dtype):
            self._out = np.zeros_like(x)
        np.copyto(self._out, x)
        return self._out


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


def print_table(name: str, n: int, times: Times, ratio: str | None) -> None:
    """Print the rows of an engine."""
    print(f"\n{name}, {n} replicas")
    print(f"{'bytes':>12}  " + "  ".join(f"{column:>30}" for column in times) + "  xarr / bound")
    for size in next(iter(times.values())):
        best = {column: min(times[column][size]) for column in times}
        cells = [f"{each * 1e6:12,.1f} us {size / each / 1e9:7.2f} GB/s" for each in best.values()]
        pairs = zip(times[BOUND][size], times["xarr"][size], strict=True)
        share = median([bound / own for bound, own in pairs])
        against = f"{best[BOUND] / best['xarr']:.0%} of the bound, median {share:.0%}"
        if ratio is not None:
            against += f", {best[ratio] / best['xarr']:.2f} of {ratio}"
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
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--dtype", choices=("float32", "int32"), default="float32")
    parser.add_argument(
        "--worker", type=Path, help="run as a process of MPI, and write the times to this file"
    )
    options = parser.parse_args()
    if options.worker is not None:
        communicator = initialize()
        times = measure_all(options.sizes, options.repeats, options.dtype)
        if communicator.rank == 0:
            options.worker.write_text(json.dumps(times), encoding="utf-8")
        return
    n = options.replicas
    print(f"{options.dtype}; {os.cpu_count()} cores")
    threads = simulate(n, measure_all, options.sizes, options.repeats, options.dtype)[0]
    print_table("threads", n, threads, None)
    print_calls(n, options.repeats)
    _measure_mpi(options)


def _measure_mpi(options: argparse.Namespace) -> None:
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
        command += ["--dtype", options.dtype]
        done = subprocess.run(command, check=False)
        if done.returncode:
            raise SystemExit(f"the processes under MPI ended with status {done.returncode}")
        text = json.loads(figures.read_text(encoding="utf-8"))
    times = {name: {int(size): seconds for size, seconds in each.items()} for name, each in text.items()}
    print_table("MPI", options.replicas, times, "MPI_Allreduce, output reused")


if __name__ == "__main__":
    main()
