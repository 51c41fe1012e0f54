"""Compute over four times the memory that the program is allowed, in chunks of Dask: of NumPy, then of xarr.

    python examples/larger_than_memory.py
    python examples/larger_than_memory.py --memory 64 --times 8

How far are two random points of the Earth from each other?  A quarter of the way around it on average, which a million
pairs of points tell to three digits.  Each chunk holds some pairs, and one function of it adds up their distances and
the squares of those: thirty operations, each a pass over the chunk with a result of its own in NumPy, and one loop in
xarr, where `xarr.jit` fuses them.  The program asks the system to refuse it more memory than `--memory`, and shows that
the points do not fit as one array.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import dask
import dask.array as da
import numpy as np
from dask.diagnostics import ProgressBar

import xarr

RADIUS = 6371.0
"""Of the Earth, in km."""
PAIRS = 2**17
"""Pairs of points in a chunk, of four numbers each: 4 MiB."""
MEGABYTE = 2**20


def distances(xp: ModuleType, points: Any) -> Any:
    """Distances (n,) in km of the points of n pairs, from four random numbers each, (4, n)."""
    first, second = (
        xp.arcsin(2 * points[0] - 1),
        xp.arcsin(2 * points[1] - 1),
    )  # latitudes, more at the equator
    apart = 2 * math.pi * (points[2] - points[3])
    half = xp.sin((first - second) / 2) ** 2 + xp.cos(first) * xp.cos(second) * xp.sin(apart / 2) ** 2
    return 2 * RADIUS * xp.arcsin(xp.sqrt(xp.minimum(half, 1.0)))


def sums_of(xp: ModuleType) -> Callable[[Any], Any]:
    """The function of a chunk that gives the sums of the distances and of their squares, (2, 1)."""

    def sums(points: Any) -> Any:
        far = distances(xp, points)
        return xp.stack([xp.sum(far), xp.sum(far * far)])[:, None]

    return sums


def compute(backend: str, chunks: int, seed: int) -> tuple[float, float]:
    """The mean distance and its standard deviation, by chunks of the arrays of `backend`."""
    xp, function = (xarr, xarr.jit(sums_of(xarr))) if backend == "xarr" else (np, sums_of(np))
    with dask.config.set({"array.backend": backend}):
        points = da.random.default_rng(seed).random((4, chunks * PAIRS), chunks=(4, PAIRS))
    sums = points.map_blocks(function, chunks=(2, 1), dtype=float, meta=xp.zeros((0, 0)))
    with ProgressBar(dt=0.2):
        first, second = sums.sum(axis=1).compute().tolist()
    mean = first / (chunks * PAIRS)
    return mean, math.sqrt(second / (chunks * PAIRS) - mean**2)


def allow(memory: int) -> bool:
    """Let the system refuse this process more than `memory` bytes beyond those it has; whether it can."""
    try:
        import resource

        with open("/proc/self/status", encoding="utf-8") as status:
            used = next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData"))
    except (ImportError, OSError):
        return False
    resource.setrlimit(resource.RLIMIT_DATA, (used + memory, used + memory))
    return True


def is_refused(nbytes: int) -> bool:
    """Whether the system refuses an array of so many bytes."""
    try:
        np.ones(nbytes // 8)
    except MemoryError:
        return True
    return False


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--memory", type=int, default=256, help="megabytes that are allowed (default 256)")
    parser.add_argument("--times", type=int, default=4, help="how much larger the points are (default 4)")
    options = parser.parse_args()
    if options.memory < 48 or options.times < 1:
        parser.error("wanted 48 <= memory, for the chunks that are computed at once, and 1 <= times")
    return options


def main() -> int:
    options = arguments()
    nbytes = options.memory * options.times * MEGABYTE
    chunks = nbytes // (4 * 8 * PAIRS)
    for backend in ("numpy", "xarr"):  # threads are started and functions compiled before memory is counted
        compute(backend, 2, seed=1)
    is_limited = allow(options.memory * MEGABYTE)
    print(f"{options.memory} MB allowed, {nbytes // MEGABYTE} MB of points in {chunks} chunks")
    if is_limited:
        print(f"as one array: {'MemoryError' if is_refused(nbytes) else 'fits'}")
    else:
        print("this system does not limit memory: the chunks are the same")
    seconds: dict[str, float] = {}
    for backend in ("numpy", "xarr"):
        print(f"\n{backend}")
        started = time.perf_counter()
        mean, spread = compute(backend, chunks, seed=0)
        seconds[backend] = time.perf_counter() - started
        print(f"mean distance {mean:,.1f} km, standard deviation {spread:,.1f} km, {seconds[backend]:.1f} s")
    print(f"\na quarter of the way around: {math.pi / 2 * RADIUS:,.1f} km")
    print(f"the chunks of xarr took {seconds['xarr'] / seconds['numpy']:.0%} of the time of NumPy's")
    return 0


if __name__ == "__main__":
    sys.exit(main())
