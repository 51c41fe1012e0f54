"""What a chunk costs in Dask: µs for each chunk of NumPy and of xarr, in one process.

    python benchmarks/chunks.py                     # beside NumPy's chunks, by time of the processor
    python benchmarks/chunks.py --json chunks.json

Each row computes a dask array of many chunks in the thread of the caller, so that nothing runs beside it; graphs are
made before.  Small chunks show what a task costs, large ones what its arithmetic does: `xarr` records the operations of
a function of a chunk and evaluates its result, `xarr, jit` calls it jitted.  The last rows are what it takes to send a
chunk to another process and to name it.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask
import dask.array as da
import measure
import numpy as np
from dask.base import tokenize

import xarr

#: Elements of a chunk, and how many chunks there are.
CHUNKS = ((100, 256), (10_000, 64), (1_000_000, 8))
ROUNDS = 7

#: A function of a dask array, and one of its chunks and of the library whose arrays they are.
Computation = Callable[[Any], Any]


def chain(xp: Any, block: Any) -> Any:
    """Eight element-wise operations: what a loop over the elements does at once, or each operation for itself."""
    return xp.sqrt(xp.abs(xp.sin(block) * block + 2.0)) - xp.exp(-block * block)


def score(xp: Any, block: Any) -> Any:
    """One number of a chunk by operations whose results are as large as the chunk."""
    return xp.sum((block - 0.5) ** 2 * xp.cos(block), keepdims=True)


def rows(size: int, count: int) -> dict[str, measure.Contenders]:
    """The rows for chunks of `size` elements, whose contenders compute `count` of them."""
    host = np.random.default_rng(0).random(size * count)
    own = da.from_array(xarr.asarray(host), chunks=size)
    numpys = da.from_array(host, chunks=size)
    table: dict[str, measure.Contenders] = {}
    plain: dict[str, Computation] = {"d + 1": lambda d: d + 1, "d.sum()": lambda d: d.sum()}
    for name, call in plain.items():
        table[name] = {"numpy": _compute(call(numpys)), "xarr": _compute(call(own))}
    for name, function, chunks in (("8 operations", chain, (size,)), ("4 operations and a sum", score, (1,))):
        table[name] = {
            "numpy": _compute(_map(numpys, lambda b, f=function: f(np, b), np.zeros(0), chunks)),
            "xarr": _compute(_map(own, lambda b, f=function: f(xarr, b).evaluate(), xarr.zeros(0), chunks)),
            "xarr, jit": _compute(
                _map(own, xarr.jit(lambda b, f=function: f(xarr, b)), xarr.zeros(0), chunks)
            ),
        }
    part, own_part = host[:size], xarr.asarray(host[:size]).evaluate()
    table["pickle, of all chunks"] = {
        "numpy": lambda: [_send(part) for _ in range(count)][-1],
        "xarr": lambda: [_send(own_part) for _ in range(count)][-1],
    }
    table["token, of all chunks"] = {
        "numpy": lambda: [len(tokenize(part)) for _ in range(count)],
        "xarr": lambda: [len(tokenize(own_part)) for _ in range(count)],
    }
    return table


def _map(d: Any, function: Callable[[Any], Any], meta: Any, chunks: tuple[int, ...]) -> Any:
    """`d.map_blocks` without a call for the type of the result."""
    return d.map_blocks(function, dtype=float, meta=meta, chunks=(chunks * d.numblocks[0],))


def _compute(d: Any) -> measure.Call:
    """A call that computes all chunks; the chunks are kept apart, so that none is joined."""
    parts = d.to_delayed().ravel().tolist()

    def call() -> tuple[np.ndarray, ...]:
        return tuple(map(np.asarray, dask.compute(*parts, scheduler="synchronous", optimize_graph=False)))

    return call


def _send(x: Any) -> np.ndarray:
    """A chunk as another process gets it: the memory goes beside the pickle, without a copy."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    return np.asarray(pickle.loads(stream, buffers=buffers))


def measure_rows(rounds: int, sizes: tuple[tuple[int, int], ...]) -> dict[int, measure.Medians]:
    """µs for each chunk: elements of a chunk -> row -> contender, the least of `rounds` in turn."""
    measure.clock = time.process_time
    figures: dict[int, measure.Medians] = {}
    for size, count in sizes:
        table = rows(size, count)
        for name, contenders in table.items():
            measure.progress(f"{size:,} elements: {name}")
            measure.check(contenders, np.dtype(float), tolerance=64)
            best = measure.time_case(contenders, 0.05 * rounds, min)
            figures.setdefault(size, {})[name] = {key: value / count * 1e6 for key, value in best.items()}
    measure.progress("")
    return figures


def format_figures(figures: dict[int, measure.Medians]) -> str:
    """The table of µs for each chunk, with the ratio to NumPy's."""
    contenders = ("numpy", "xarr", "xarr, jit")
    table = [["elements", "row", *contenders, "xarr / numpy", "jit / numpy"]]
    for size, medians in figures.items():
        for row, micros in medians.items():
            cells = [f"{micros[name]:,.1f}" if name in micros else "-" for name in contenders]
            ratios = [
                f"{micros[name] / micros['numpy']:.2f}" if name in micros else "-" for name in contenders[1:]
            ]
            table.append([f"{size:,}", row, *cells, *ratios])
    return "\n".join(measure.align(table, words={1}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--quick", action="store_true", help="few small chunks, once: whether it works")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    sizes = ((100, 4), (1000, 2)) if options.quick else CHUNKS
    print(measure.machine())
    print(measure.versions(("numpy", "dask", "llvmlite")))
    figures = measure_rows(1 if options.quick else options.rounds, sizes)
    print("\nµs of processor time for each chunk, the least of all samples\n")
    print(format_figures(figures))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
