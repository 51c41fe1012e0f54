"""What whole operations cost on large arrays: milliseconds, beside NumPy by hand and jit-compiled JAX.

    python benchmarks/ops.py                  # all rows
    python benchmarks/ops.py scatter          # rows whose name contains the word
    python benchmarks/ops.py --json ops.json

All contenders are measured in one run, in turn, and reported as medians with their ratio to NumPy's:
machines drift, ratios within a run do not.  A further family is one more function in `FAMILIES`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

# These slow NumPy down where they are set, and must be gone before it is imported.
for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)

import numpy as np

import xarr

Call = Callable[[], object]
#: Row -> contender -> one call, which gives a result that is computed.
Table = dict[str, dict[str, Call]]
Medians = dict[str, dict[str, float]]

ROUNDS = 7


def prepared(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """`function` of Arrays, evaluated at each call."""
    held = [xarr.asarray(array).evaluate() for array in arrays]
    return lambda: function(*held).evaluate()


def jitted(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """`function` of JAX arrays, compiled."""
    import jax

    held, compiled = [jax.device_put(array) for array in arrays], jax.jit(function)
    return lambda: compiled(*held).block_until_ready()


def indexing() -> Table:
    """Rows in and out: 10^6 of them, of 16 numbers or of one, from and to 10^5."""
    random = np.random.default_rng(0)
    rows, places = (
        random.normal(size=(100_000, 16)).astype(np.float32),
        random.integers(0, 100_000, 1_000_000),
    )
    updates = random.normal(size=(1_000_000, 16)).astype(np.float32)
    column, numbers = rows[:, 0].copy(), updates[:, 0].copy()

    def gather(lax: Any) -> Callable[..., Any]:
        names = lax.GatherDimensionNumbers((1,), (0,), (0,))
        return lambda x, i: lax.gather(x, i, names, (1, 16), mode="promise_in_bounds")

    def scatter_add(lax: Any, window: tuple[int, ...]) -> Callable[..., Any]:
        names = lax.ScatterDimensionNumbers(window, (0,), (0,))
        return lambda x, i, u: lax.scatter_add(x, i, u, names)

    def scatter_any(lax: Any) -> Callable[..., Any]:
        names = lax.ScatterDimensionNumbers((), (0,), (0,))
        return lambda x, i, u: lax.scatter_with(x, i, u, lambda a, b: a * 0.5 + b, names)

    def add_at(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        result = x.copy()
        np.add.at(result, places, u)
        return result

    def add_flat(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        result = x.copy()
        np.add.at(result.reshape(-1), (places[:, None] * 16 + np.arange(16)).reshape(-1), u.reshape(-1))
        return result

    vectors = places[:, None]
    table: Table = {
        "gather 10^6 rows of 16": {
            "numpy": lambda: rows[places],
            "numpy, take": lambda: np.take(rows, places, axis=0),
            "xarr": prepared(gather(xarr.lax), rows, vectors),
        },
        "scatter-add 10^6 into 10^5": {
            "numpy": lambda: add_at(column, numbers),
            "xarr": prepared(scatter_add(xarr.lax, ()), column, vectors, numbers),
        },
        "scatter-add 10^6 rows of 16": {
            "numpy": lambda: add_at(rows, updates),
            "numpy, flat": lambda: add_flat(rows, updates),
            "xarr": prepared(scatter_add(xarr.lax, (1,)), rows, vectors, updates),
        },
        "scatter a/2 + b, 10^6 into 10^5": {
            "numpy": lambda: add_at(column, numbers),
            "xarr": prepared(scatter_any(xarr.lax), column, vectors, numbers),
        },
    }
    if find_spec("jax"):
        from jax import lax

        table["gather 10^6 rows of 16"]["jax, jit"] = jitted(gather(lax), rows, vectors)
        table["scatter-add 10^6 into 10^5"]["jax, jit"] = jitted(
            scatter_add(lax, ()), column, vectors, numbers
        )
        table["scatter-add 10^6 rows of 16"]["jax, jit"] = jitted(
            scatter_add(lax, (1,)), rows, vectors, updates
        )
    return table


def windows() -> Table:
    """Pooling of a batch of images and its gradient, running sums, and neighbours by the thousand."""
    random = np.random.default_rng(0)
    images = random.normal(size=(8, 112, 112, 64)).astype(np.float32)
    gradient = random.normal(size=(8, 55, 55, 64)).astype(np.float32)
    numbers = random.normal(size=10_000_000).astype(np.float32)
    million = numbers[:1_000_000].copy()
    square = ((1, 3, 3, 1), (1, 2, 2, 1))

    def slices(x: np.ndarray) -> list[np.ndarray]:
        return [x[:, i : i + 109 : 2, j : j + 109 : 2] for i in range(3) for j in range(3)]

    def by_slices(ufunc: np.ufunc) -> np.ndarray:
        first, *others = slices(images)
        total = first.copy()
        for each in others:
            ufunc(total, each, out=total)
        return total

    def max_pool(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.reduce_window(x, np.float32(-np.inf), lax.max, *square)

    def sum_pool(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.reduce_window(x, np.float32(0), lax.add, *square)

    def any_pool(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.reduce_window(x, np.float32(0), lambda a, b: a * 0.5 + b, *square)

    def cumsum(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.cumsum(x, axis=0)

    def neighbours(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.reduce_window(x, np.float32(-np.inf), lax.max, (1000,), (1,), "VALID")

    def unpool(x: np.ndarray, g: np.ndarray) -> np.ndarray:
        """The gradient of max pooling: where the greatest stands, and then additions there."""
        choice = np.argmax(np.stack(slices(x)), axis=0)
        n, h, w, c = np.ogrid[: g.shape[0], : g.shape[1], : g.shape[2], : g.shape[3]]
        places = np.ravel_multi_index((n, 2 * h + choice // 3, 2 * w + choice % 3, c), x.shape)
        result = np.zeros(x.size, x.dtype)
        np.add.at(result, places.reshape(-1), g.reshape(-1))
        return result

    def running(x: np.ndarray) -> np.ndarray:
        """Extremes of 1024 neighbours, by doubling."""
        for shift in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            x = np.maximum(x[:-shift], x[shift:])
        return x

    rows: dict[str, tuple[Call, Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]] = {
        "max pool 3x3/2 of (8,112,112,64)": (lambda: by_slices(np.maximum), max_pool, (images,)),
        "sum pool 3x3/2": (lambda: by_slices(np.add), sum_pool, (images,)),
        "a/2 + b pool 3x3/2": (lambda: by_slices(np.add), any_pool, (images,)),
        "cumsum of 10^7": (lambda: np.cumsum(numbers), cumsum, (numbers,)),
        "max of 1000 neighbours, 10^6": (lambda: running(million), neighbours, (million,)),
    }
    table: Table = {
        row: {"numpy": by_hand, "xarr": prepared(function(xarr.lax), *arrays)}
        for row, (by_hand, function, arrays) in rows.items()
    }

    def scatter(lax: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, g: function(x, lax.ge, *square, ((0, 0),) * 4, g, np.float32(0), lax.add)

    table["max pool 3x3/2, gradient"] = {
        "numpy": lambda: unpool(images, gradient),
        "xarr": prepared(scatter(xarr.lax, xarr.lax.select_and_scatter), images, gradient),
    }
    if find_spec("jax"):
        from jax import lax
        from jax._src.lax.windowed_reductions import _select_and_scatter

        for row, (_, function, arrays) in rows.items():
            table[row]["jax, jit"] = jitted(function(lax), *arrays)
        table["max pool 3x3/2, gradient"]["jax, jit"] = jitted(
            scatter(lax, _select_and_scatter), images, gradient
        )
    return table


#: Each gives the rows of one family.
FAMILIES: tuple[Callable[[], Table], ...] = (indexing, windows)


def time_calls(table: Table, rounds: int) -> Medians:
    """Median milliseconds of each case; one round runs every case once, in turn."""
    samples: dict[tuple[str, str], list[float]] = {}
    gc.disable()
    for round_ in range(rounds + 1):
        for row, contenders in table.items():
            for name, call in contenders.items():
                started = time.perf_counter()
                call()
                if round_:  # the first round warms up
                    samples.setdefault((row, name), []).append((time.perf_counter() - started) * 1e3)
        print(f"\rround {round_}/{rounds}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    gc.enable()
    rows: Medians = {}
    for (row, name), values in samples.items():
        rows.setdefault(row, {})[name] = statistics.median(values)
    return rows


def shown(rows: Medians) -> str:
    """The table: milliseconds, and the ratio to the first contender, which is NumPy by hand."""
    lines = [f"{'':36}{'contender':14}{'ms':>9}{'ratio':>8}"]
    for row, contenders in rows.items():
        first = next(iter(contenders.values()))
        for index, (name, milliseconds) in enumerate(contenders.items()):
            lines.append(
                f"{row if not index else '':36}{name:14}{milliseconds:9.1f}{milliseconds / first:8.2f}"
            )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="", help="run the rows whose name contains it")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    table = {row: calls for family in FAMILIES for row, calls in family().items() if options.word in row}
    rows = time_calls(table, options.rounds)
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores\n")
    print(shown(rows))
    if options.json:
        options.json.write_text(json.dumps({"ms": rows}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
