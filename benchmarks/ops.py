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


#: Each gives the rows of one family.
FAMILIES: tuple[Callable[[], Table], ...] = (indexing,)


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
