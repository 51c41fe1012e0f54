"""What whole operations cost on large arrays: milliseconds, beside NumPy by hand and jit-compiled JAX.

    python benchmarks/ops.py                  # all rows
    python benchmarks/ops.py scatter          # rows whose name contains the word
    python benchmarks/ops.py --json ops.json
    python benchmarks/ops.py --least          # on a machine that is busy with other work
    python benchmarks/ops.py --least --cpu    # on one that is very busy: processor time, of all threads together

All contenders are measured in one run, in turn, and reported as medians with their ratio to NumPy's:
machines drift, ratios within a run do not.  Rows in which xarr is much slower than NumPy are named at the end, with
the reason.  A further family is one more function in `FAMILIES`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import measure
import numpy as np
from single_ops import REASONS, single_ops

import xarr

Call = measure.Call
#: Row -> contender -> one call, which gives a result that is computed.
Table = dict[str, measure.Contenders]
Medians = measure.Medians

ROUNDS = 7


def prepare(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """`function` of Arrays, evaluated at each call."""
    held = [xarr.asarray(array).evaluate() for array in arrays]
    return lambda: function(*held).evaluate()


def compile_by_jax(function: Callable[..., Any], *arrays: np.ndarray) -> Call:
    """`function` of JAX arrays, compiled."""
    import jax

    held, compiled = [jax.device_put(array) for array in arrays], jax.jit(function)
    return lambda: compiled(*held).block_until_ready()


def indexing() -> Table:
    """Rows in and out: 10^6 of them, of 16 numbers or of one, from and to 10^5."""
    random = np.random.default_rng(0)
    rows, indices = (
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
        np.add.at(result, indices, u)
        return result

    def add_flat(x: np.ndarray, u: np.ndarray) -> np.ndarray:
        result = x.copy()
        np.add.at(result.reshape(-1), (indices[:, None] * 16 + np.arange(16)).reshape(-1), u.reshape(-1))
        return result

    def halve_and_add(x: np.ndarray, indices: np.ndarray, u: np.ndarray) -> np.ndarray:
        """x / 2 + u in order: the k-th update of every index in round k."""
        order = np.argsort(indices, kind="stable")
        targets = indices[order]
        first = np.flatnonzero(np.append(True, targets[1:] != targets[:-1]))
        counts = np.diff(first, append=targets.size)
        result = x.copy()
        for k in range(counts.max()):
            live = first[counts > k]
            result[targets[live]] = result[targets[live]] * np.float32(0.5) + u[order[live + k]]
        return result

    one_index, few = np.zeros(20_000, np.int64), numbers[:20_000].copy()
    vectors = indices[:, None]
    table: Table = {
        "gather 10^6 rows of 16": {
            "numpy": lambda: rows[indices],
            "numpy, take": lambda: np.take(rows, indices, axis=0),
            "xarr": prepare(gather(xarr.lax), rows, vectors),
        },
        "scatter-add 10^6 into 10^5": {
            "numpy": lambda: add_at(column, numbers),
            "xarr": prepare(scatter_add(xarr.lax, ()), column, vectors, numbers),
        },
        "scatter-add 10^6 rows of 16": {
            "numpy": lambda: add_at(rows, updates),
            "numpy, flat": lambda: add_flat(rows, updates),
            "xarr": prepare(scatter_add(xarr.lax, (1,)), rows, vectors, updates),
        },
        "scatter a/2 + b, 2*10^4 into one": {
            "numpy": lambda: halve_and_add(column, one_index, few),
            "xarr": prepare(scatter_any(xarr.lax), column, one_index[:, None], few),
        },
        "scatter a/2 + b, 10^6 into 10^5": {
            "numpy": lambda: halve_and_add(column, indices, numbers),
            "numpy, only b": lambda: add_at(column, numbers),
            "xarr": prepare(scatter_any(xarr.lax), column, vectors, numbers),
        },
    }
    if find_spec("jax"):
        from jax import lax

        table["gather 10^6 rows of 16"]["jax, jit"] = compile_by_jax(gather(lax), rows, vectors)
        table["scatter-add 10^6 into 10^5"]["jax, jit"] = compile_by_jax(
            scatter_add(lax, ()), column, vectors, numbers
        )
        table["scatter-add 10^6 rows of 16"]["jax, jit"] = compile_by_jax(
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

    def halves_by_slices() -> np.ndarray:
        total = np.zeros_like(slices(images)[0])
        for each in slices(images):
            np.multiply(total, np.float32(0.5), out=total)
            np.add(total, each, out=total)
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
        indices = np.ravel_multi_index((n, 2 * h + choice // 3, 2 * w + choice % 3, c), x.shape)
        result = np.zeros(x.size, x.dtype)
        np.add.at(result, indices.reshape(-1), g.reshape(-1))
        return result

    def running(x: np.ndarray) -> np.ndarray:
        """Extremes of 1024 neighbours, by doubling."""
        for shift in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
            x = np.maximum(x[:-shift], x[shift:])
        return x

    rows: dict[str, tuple[Call, Callable[[Any], Callable[..., Any]], tuple[np.ndarray, ...]]] = {
        "max pool 3x3/2 of (8,112,112,64)": (lambda: by_slices(np.maximum), max_pool, (images,)),
        "sum pool 3x3/2": (lambda: by_slices(np.add), sum_pool, (images,)),
        "a/2 + b pool 3x3/2": (halves_by_slices, any_pool, (images,)),
        "cumsum of 10^7": (lambda: np.cumsum(numbers), cumsum, (numbers,)),
        "max of 1000 neighbours, 10^6": (lambda: running(million), neighbours, (million,)),
    }
    table: Table = {
        row: {"numpy": by_hand, "xarr": prepare(function(xarr.lax), *arrays)}
        for row, (by_hand, function, arrays) in rows.items()
    }

    def scatter(lax: Any, function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x, g: function(x, lax.ge, *square, ((0, 0),) * 4, g, np.float32(0), lax.add)

    table["max pool 3x3/2, gradient"] = {
        "numpy": lambda: unpool(images, gradient),
        "xarr": prepare(scatter(xarr.lax, xarr.lax.select_and_scatter), images, gradient),
    }
    if find_spec("jax"):
        from jax import lax
        from jax._src.lax.windowed_reductions import _select_and_scatter

        for row, (_, function, arrays) in rows.items():
            table[row]["jax, jit"] = compile_by_jax(function(lax), *arrays)
        table["max pool 3x3/2, gradient"]["jax, jit"] = compile_by_jax(
            scatter(lax, _select_and_scatter), images, gradient
        )
    return table


def contraction() -> Table:
    """A convolution of many channels and a depthwise one, and a sort."""
    random = np.random.default_rng(0)
    images = random.normal(size=(8, 56, 56, 64)).astype(np.float32)
    kernel = random.normal(size=(3, 3, 64, 64)).astype(np.float32)
    depthwise = random.normal(size=(3, 3, 1, 64)).astype(np.float32)
    numbers = random.normal(size=10_000_000).astype(np.float32)
    names = ("NHWC", "HWIO", "NHWC")

    def pad() -> np.ndarray:
        return np.pad(images, ((0, 0), (1, 1), (1, 1), (0, 0)))

    def by_columns() -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(pad(), (3, 3), (1, 2))
        columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, 9 * 64)
        return (columns @ kernel.reshape(9 * 64, 64)).reshape(8, 56, 56, 64)

    def by_shifts() -> np.ndarray:
        x = pad()
        return sum(x[:, i : i + 56, j : j + 56] @ kernel[i, j] for i in range(3) for j in range(3))

    def by_products() -> np.ndarray:
        x = pad()
        return sum(x[:, i : i + 56, j : j + 56] * depthwise[i, j, 0] for i in range(3) for j in range(3))

    def convolve(lax: Any, groups: int) -> Callable[..., Any]:
        def function(x: Any, k: Any) -> Any:
            options = {"dimension_numbers": names, "feature_group_count": groups}
            return lax.conv_general_dilated(x, k, (1, 1), "SAME", **options)

        return function

    table: Table = {
        "conv 3x3 of (8,56,56,64), 64 filters": {
            "numpy": by_columns,
            "numpy, shifts": by_shifts,
            "xarr": prepare(convolve(xarr.lax, 1), images, kernel),
        },
        "depthwise conv 3x3 of (8,56,56,64)": {
            "numpy": by_products,
            "xarr": prepare(convolve(xarr.lax, 64), images, depthwise),
        },
        "sort of 10^7": {
            "numpy": lambda: np.sort(numbers),
            "xarr": prepare(lambda x: xarr.lax.sort(x), numbers),
        },
    }
    if find_spec("jax"):
        from jax import lax

        table["conv 3x3 of (8,56,56,64), 64 filters"]["jax, jit"] = compile_by_jax(
            convolve(lax, 1), images, kernel
        )
        table["depthwise conv 3x3 of (8,56,56,64)"]["jax, jit"] = compile_by_jax(
            convolve(lax, 64), images, depthwise
        )
        table["sort of 10^7"]["jax, jit"] = compile_by_jax(lambda x: lax.sort(x), numbers)
    return table


def numbers() -> Table:
    """10^7 random numbers, a factor of 1000 rows with a system, and a transform."""
    random = np.random.default_rng(0)
    matrix = random.normal(size=(1000, 1000))
    definite = matrix @ matrix.T + 1000 * np.eye(1000)
    right = random.normal(size=(1000, 1000))
    signal = random.normal(size=(64, 2**16)).astype(np.float32)
    size = (10_000_000,)
    words = np.array([0, 42], np.uint32)

    def draw(module: Any, name: str) -> Callable[..., Any]:
        return lambda key: getattr(module, name)(key, size, np.float32)

    def solve(lax: Any) -> Callable[..., Any]:
        def function(a: Any, b: Any) -> Any:
            factor = lax.linalg.cholesky(a)
            return lax.linalg.triangular_solve(factor, b, left_side=True, lower=True)

        return function

    def transform(lax: Any) -> Callable[..., Any]:
        return lambda x: lax.fft(x, "RFFT", (2**16,))

    table: Table = {
        "uniform, 10^7 float32": {
            "numpy": lambda: random.random(size, np.float32),
            "xarr": prepare(draw(xarr.random, "uniform"), words),
        },
        "normal, 10^7 float32": {
            "numpy": lambda: random.standard_normal(size, np.float32),
            "xarr": prepare(draw(xarr.random, "normal"), words),
        },
        "cholesky and solve, 1000": {
            "numpy": lambda: np.linalg.solve(np.linalg.cholesky(definite), right),
            "xarr": prepare(solve(xarr.lax), definite, right),
        },
        "rfft of 64 x 65536": {
            "numpy": lambda: np.fft.rfft(signal),
            "xarr": prepare(transform(xarr.lax), signal),
        },
    }
    if find_spec("jax"):
        import jax

        for row, name in (("uniform, 10^7 float32", "uniform"), ("normal, 10^7 float32", "normal")):
            table[row]["jax, jit"] = compile_by_jax(draw(jax.random, name), words)
        table["rfft of 64 x 65536"]["jax, jit"] = compile_by_jax(transform(jax.lax), signal)
    return table


#: Each gives the rows of one family.
FAMILIES: tuple[Callable[[], Table], ...] = (indexing, windows, contraction, numbers, single_ops)

#: No operation should take more than so many times what NumPy takes.
MOST: Final = 3


def format_rows(rows: Medians) -> str:
    """The table: milliseconds, and the ratio to the first contender, which is NumPy by hand."""
    lines = [f"{'':36}{'contender':14}{'ms':>9}{'ratio':>8}"]
    for row, contenders in rows.items():
        first = next(iter(contenders.values()))
        for index, (name, milliseconds) in enumerate(contenders.items()):
            lines.append(
                f"{row if not index else '':36}{name:14}{milliseconds:9.1f}{milliseconds / first:8.2f}"
            )
    return "\n".join(lines)


def least_times(table: Table, rounds: int) -> Medians:
    """The least of `rounds` times of each call, in milliseconds, taken in turn row by row."""
    rows = {}
    for number, (row, contenders) in enumerate(table.items()):
        measure.progress(f"{number}/{len(table)} {row}")
        times = [measure.time_table({row: contenders}, 1, unit=1e-3)[row] for _ in range(rounds)]
        rows[row] = {name: min(each[name] for each in times) for name in contenders}
    measure.progress("")
    return rows


def remarks(rows: Medians) -> str:
    """The rows in which xarr takes more than `MOST` times as long as NumPy, and why."""
    slow = [row for row, times in rows.items() if times["xarr"] > MOST * next(iter(times.values()))]
    lines = [f"{row}: {REASONS.get(row, 'no reason is known')}" for row in slow]
    return "\n".join([f"\nmore than {MOST} times NumPy:", *lines]) if lines else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("word", nargs="?", default="", help="run the rows whose name contains it")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument(
        "--least", action="store_true", help="least times, for a machine busy with other work"
    )
    parser.add_argument(
        "--cpu", action="store_true", help="processor time of all threads, not time that passes"
    )
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    if options.cpu:
        measure.clock = time.process_time
    table = {row: calls for family in FAMILIES for row, calls in family().items() if options.word in row}
    rows = (
        least_times(table, options.rounds)
        if options.least
        else measure.time_table(table, options.rounds, unit=1e-3)
    )
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores\n")
    print(format_rows(rows))
    print(remarks(rows))
    if options.json:
        options.json.write_text(json.dumps({"ms": rows}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
