"""What the first call of a large graph takes: Python loops that `jit` unrolls, beside jit JAX.

    python benchmarks/compile.py                                # all rows, 10^2 to 10^4 nodes
    python benchmarks/compile.py --rows stencil,lstm --sizes 100,1000,100000 --limit 300
    python benchmarks/compile.py --no-jax
    python benchmarks/compile.py --cpu                          # on a machine that is busy: the processor's time

A row is one function in NumPy's spelling, with as many steps as make about so many nodes of xarr's graph.  Each first
call runs in a process of its own, in which the library has compiled a small function before, and which no cache on
disk helps: `XARR_KERNEL_CACHE` is off.  Results are compared with NumPy's.  Columns: the nodes that were recorded,
seconds of the first call of xarr and of JAX, microseconds a node, and milliseconds of the second call.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import measure
import numpy

PACKAGES = ("numpy", "llvmlite", "jax")
SIZES = (100, 1_000, 10_000)
LIMIT = 120.0
#: Writes a value to a part of an array and gives the array with it: JAX's arrays are never written to.
Write = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class Row:
    """A program that Python unrolls.

    * `steps` - its number of steps for about so many nodes,
    * `make` - the function for a module, a way to write to a part, and a number of steps,
    * `data` - its arguments.
    """

    name: str
    steps: Callable[[int], int]
    make: Callable[[Any, Write, int], Callable[..., Any]]
    data: Callable[[int], tuple[Any, ...]]


def draws(*shape: int) -> Any:
    """Numbers between 0 and 1, the same each time."""
    return numpy.random.default_rng(len(shape)).random(shape)


def stencil(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """Waves whose borders are written as slices."""

    def waves(u: Any) -> Any:
        for _ in range(steps):
            v = u + 0.0
            inner = 0.25 * (u[1:-1, :-2] + u[1:-1, 2:] + u[:-2, 1:-1] + u[2:, 1:-1])
            v = write(v, (slice(1, -1), slice(1, -1)), inner)
            v = write(v, 0, v[1])
            v = write(v, -1, v[-2])
            u = write(v, (slice(None), 0), v[:, 1])
        return u

    return waves


def scalars(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """A recurrence of two numbers over the elements of an array."""

    def run_filter(x: Any) -> Any:
        a, b = x[0], x[1]
        for i in range(steps):
            a, b = 0.5 * b + 0.25 * a + x[i], a - 0.125 * x[i]
        return a + b

    return run_filter


def elements(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """The edit distance of two words, each element of the table written by itself."""

    def distance(a: Any, b: Any) -> Any:
        table = np.zeros((steps + 1, steps + 1))
        table = write(table, (slice(None), 0), np.arange(steps + 1.0))
        table = write(table, 0, np.arange(steps + 1.0))
        for i in range(1, steps + 1):
            for j in range(1, steps + 1):
                cost = np.where(a[i - 1] == b[j - 1], 0.0, 1.0)
                least = np.minimum(table[i - 1, j] + 1.0, table[i, j - 1] + 1.0)
                table = write(table, (i, j), np.minimum(least, table[i - 1, j - 1] + cost))
        return table

    return distance


def elimination(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """LU without exchanges: each step works on a smaller part of the matrix."""

    def factor(a: Any) -> Any:
        for k in range(steps):
            a = write(a, (slice(k + 1, None), k), a[k + 1 :, k] / a[k, k])
            rest = a[k + 1 :, k + 1 :] - a[k + 1 :, k, None] * a[None, k, k + 1 :]
            a = write(a, (slice(k + 1, None), slice(k + 1, None)), rest)
        return a

    return factor


def lstm(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """Steps of an LSTM, with products of small matrices."""

    def sigmoid(x: Any) -> Any:
        return 1.0 / (1.0 + np.exp(-x))

    def encode(x: Any, w: Any, u: Any) -> Any:
        h = c = np.zeros((4, 16))
        for i in range(steps):
            z = x[i % 8] @ w + h @ u
            c = sigmoid(z[:, :16]) * c + sigmoid(z[:, 16:32]) * np.tanh(z[:, 32:48])
            h = sigmoid(z[:, 48:]) * np.tanh(c)
        return h

    return encode


def results(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """Many results, one number each."""

    def numbers(x: Any) -> Any:
        return [x[i] * (i + 1.0) for i in range(steps)]

    return numbers


def random_operations(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """Element-wise operations drawn at random, of earlier values drawn at random: nothing repeats."""
    random = numpy.random.default_rng(steps)

    def compute(x: Any, y: Any) -> Any:
        values = [x, y]
        binary = (np.add, np.subtract, np.multiply, np.minimum, np.maximum)
        for _ in range(steps):
            which, *picks = (int(each) for each in random.integers(0, (6, 20, 20)))
            a, b = (values[-1 - pick % len(values)] for pick in picks)
            values.append(np.tanh(a) if which == 5 else binary[which](a, b) * 0.5)
        return values[-1] + values[-2]

    return compute


def sums_of_rows(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """A sum of each row of a matrix, by a number of its own, and each needs the one before."""

    def add_up(x: Any) -> Any:
        total = x[0, 0]
        for i in range(steps):
            total = np.sum(x[i % 50] * (i + 0.5) + total) * 0.25 / (i + 1.0)
        return total

    return add_up


def arguments(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """The sum of many arrays, each an argument."""

    def add_up(*arrays: Any) -> Any:
        total = arrays[0]
        for array in arrays[1:]:
            total = total + array
        return total

    return add_up


def reductions(np: Any, write: Write, steps: int) -> Callable[..., Any]:
    """Chains with a reduction in each step."""

    def normalise(x: Any) -> Any:
        for _ in range(steps):
            x = np.sqrt(x * x + 1.0)
            x = x / np.sum(x, axis=1, keepdims=True)
        return x

    return normalise


ROWS = (
    Row("stencil", lambda n: max(1, n // 28), stencil, lambda steps: (draws(64, 64),)),
    Row("scalars", lambda n: max(1, n // 12), scalars, lambda steps: (draws(steps + 2),)),
    Row(
        "elements",
        lambda n: max(1, round((n / 30) ** 0.5)),
        elements,
        lambda steps: tuple((draws(2, steps) * 4).astype(int)),
    ),
    Row(
        "elimination",
        lambda n: max(1, n // 16),
        elimination,
        lambda steps: (draws(steps + 1, steps + 1) + numpy.eye(steps + 1) * steps,),
    ),
    Row(
        "lstm",
        lambda n: max(1, n // 40),
        lstm,
        lambda steps: (draws(8, 4, 8), draws(8, 64) - 0.5, draws(16, 64) - 0.5),
    ),
    Row("results", lambda n: max(1, n // 4), results, lambda steps: (draws(steps),)),
    Row("mixed", lambda n: max(1, n // 3), random_operations, lambda steps: (draws(256), draws(256))),
    Row("reductions", lambda n: max(1, n // 9), reductions, lambda steps: (draws(64, 64),)),
    Row("sums of rows", lambda n: max(1, n // 10), sums_of_rows, lambda steps: (draws(50, 200),)),
    Row("arguments", lambda n: max(2, n), arguments, lambda steps: tuple(draws(steps, 8))),
)


# --- in a child process --------------------------------------------------------------------------------------


def write_in_place(array: Any, index: Any, value: Any) -> Any:
    array[index] = value
    return array


def write_copy(array: Any, index: Any, value: Any) -> Any:
    return array.at[index].set(value)


def first_call(row: Row, size: int, contender: str) -> dict[str, Any]:
    """Seconds of the first and of the second call, whether results agree with NumPy's, and xarr's count of nodes."""
    steps = row.steps(size)
    arguments = row.data(steps)
    wanted = row.make(numpy, write_in_place, steps)(*[argument.copy() for argument in arguments])
    if contender == "jax":
        import jax
        import jax.numpy as module

        jax.config.update("jax_enable_x64", True)
        jit: Any = jax.jit
    else:
        import xarr as module

        jit = module.jit
    function = row.make(module, write_copy, steps)
    operands = [module.asarray(argument) for argument in arguments]
    numpy.asarray(jit(lambda x: module.sum(module.exp(x) + 2.0))(operands[0]))  # what is loaded once
    compiled = jit(function)
    started = measure.clock()
    got = _on_host(compiled(*operands))
    first = measure.clock() - started
    started = measure.clock()
    _on_host(compiled(*operands))
    second = measure.clock() - started
    problem = measure.difference(got, _on_host(wanted), tolerance=1e6)
    nodes = len(compiled.lower(*operands).stage("traced").nodes) if contender == "xarr" else 0
    return {"first": first, "second": second, "problem": problem, "nodes": nodes, "steps": steps}


def _on_host(value: Any) -> Any:
    return [numpy.asarray(each) for each in value] if isinstance(value, list) else numpy.asarray(value)


# --- the children, and their table ---------------------------------------------------------------------------


@dataclass
class Line:
    """The figures of one row at one size, by contender; `problems` say who has none, and why."""

    name: str
    size: int
    figures: dict[str, dict[str, Any]]
    problems: dict[str, str]


def measure_line(row: Row, size: int, contenders: Sequence[str], limit: float) -> Line:
    line = Line(row.name, size, {}, {})
    for contender in contenders:
        measure.progress(f"{row.name}, {size:,} nodes: first call of {contender}")
        command = [sys.executable, __file__, "--child", contender, "--rows", row.name, "--sizes", str(size)]
        command += ["--cpu"] if measure.clock is time.process_time else []
        environment = os.environ | {"XARR_KERNEL_CACHE": "off"}
        try:
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=limit, check=False
            )
        except subprocess.TimeoutExpired:
            line.problems[contender] = f"more than {limit:.0f} s"
            continue
        if done.returncode:
            line.problems[contender] = (done.stderr.strip().splitlines() or ["the process ended"])[-1][:150]
            continue
        figures = json.loads(done.stdout)
        line.figures[contender] = figures
        if figures["problem"]:
            line.problems[contender] = figures["problem"]
    return line


HEAD = ("", "nodes", "xarr s", "µs/node", "second ms", "jax s", "second ms", "jax ÷ xarr")


def cells(line: Line) -> tuple[str, ...]:
    ours, theirs = line.figures.get("xarr"), line.figures.get("jax")
    nodes = ours["nodes"] if ours else line.size
    return (
        line.name,
        f"{nodes:,}",
        *((f"{ours['first']:.2f}", f"{ours['first'] * 1e6 / nodes:.0f}") if ours else ("-", "-")),
        f"{ours['second'] * 1e3:.2f}" if ours else "-",
        f"{theirs['first']:.2f}" if theirs else "-",
        f"{theirs['second'] * 1e3:.2f}" if theirs else "-",
        f"{theirs['first'] / ours['first']:.2g}" if ours and theirs else "-",
    )


def table(lines: Sequence[Line]) -> list[str]:
    return measure.align([HEAD, *(cells(line) for line in lines)], words=(0,))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    names = [row.name for row in ROWS]
    parser.add_argument("--rows", default=",".join(names), help=f"some of {', '.join(names)}")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="numbers of nodes, about")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds that a process may take")
    parser.add_argument("--cpu", action="store_true", help="measure the processor's time, on a busy machine")
    parser.add_argument("--no-jax", action="store_true", help="leave JAX out")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, after each line")
    parser.add_argument("--child", choices=("xarr", "jax"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    wanted = options.rows.split(",")
    unknown = [name for name in wanted if name not in names]
    if unknown:
        parser.error(f"--rows: wanted some of {', '.join(names)}, got {', '.join(unknown)}")
    options.rows = [row for row in ROWS if row.name in wanted]
    options.sizes = [int(size) for size in options.sizes.split(",")]
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    if options.cpu:
        measure.clock = time.process_time
    if options.child:
        print(json.dumps(first_call(options.rows[0], options.sizes[0], options.child)))
        return
    contenders = ("xarr",) if options.no_jax else ("xarr", "jax")
    lines = []
    for row in options.rows:
        stopped: set[str] = set()
        for size in options.sizes:
            left = [each for each in contenders if each not in stopped]
            lines.append(measure_line(row, size, left, options.limit))
            stopped |= {name for name, text in lines[-1].problems.items() if text.startswith("more than")}
            if options.json:
                options.json.write_text(json.dumps([asdict(line) for line in lines], indent=1))
    measure.progress("")
    print(f"{measure.machine()}\n{measure.versions(PACKAGES)}\n")
    print("\n".join(table(lines)))
    for line in lines:
        for name, text in line.problems.items():
            print(f"{line.name} {line.size:,}: {name}: {text}")


if __name__ == "__main__":
    main()
