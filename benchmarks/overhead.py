"""What small operations cost: µs to record an op, to add two 4×4 arrays, and to import the library.

    python benchmarks/overhead.py            # beside NumPy, and JAX where it is installed
    python benchmarks/overhead.py --json overhead.json

All contenders are measured in one run, in turn, and reported as medians with their ratio to NumPy:
machines drift, ratios within a run do not.  Imports are timed in fresh interpreters, also in turn.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import measure
import numpy as np

import xarr

Case = measure.Call
Rows = measure.Medians

ROUNDS = 31
CALLS = 2000


def cases() -> dict[str, dict[str, Case]]:
    """The calls to time: row -> contender -> one call."""
    shape = (4, 4)
    host, row = np.ones(shape, np.float32), np.ones(4, np.float32)
    lazy, lazy_row = xarr.asarray(host).evaluate(), xarr.asarray(row).evaluate()
    # Small ones would be computed at once.
    large, large_row = xarr.asarray(np.ones((512, 512))).evaluate(), xarr.asarray(np.ones(512)).evaluate()
    table: dict[str, dict[str, Case]] = {
        "record x + y": {"xarr": lambda: large + large},
        "record x + 1.5": {"xarr": lambda: large + 1.5},
        "record x + v (broadcast)": {"xarr": lambda: large + large_row},
        "add 4×4, evaluated": {"numpy": lambda: host + host, "xarr": lambda: (lazy + lazy).evaluate()},
        "add 4×4 and 4, evaluated": {
            "numpy": lambda: host + row,
            "xarr": lambda: (lazy + lazy_row).evaluate(),
        },
        "sin(x) * y + 1, evaluated": {
            "numpy": lambda: np.sin(host) * host + 1,
            "xarr": lambda: (xarr.sin(lazy) * lazy + 1).evaluate(),
        },
        "x[0], evaluated": {"numpy": lambda: host[0], "xarr": lambda: lazy[0].evaluate()},
    }
    _add_indexing(table, host, lazy)
    few = np.linspace(0.1, 1, 10, dtype=np.float32)
    lazy_few = xarr.asarray(few).evaluate()
    add, chain = xarr.jit(lambda x, y: x + y), xarr.jit(lambda x: twenty_operations(xarr, x))
    table["add 4×4 under jit"] = {"numpy": lambda: host + host, "xarr": lambda: add(lazy, lazy)}
    table["add 4×4, 1.5 under jit"] = {"numpy": lambda: host + 1.5, "xarr": lambda: add(lazy, 1.5)}
    table["20 operations, 10 elements, under jit"] = {
        "numpy": lambda: twenty_operations(np, few),
        "xarr": lambda: chain(lazy_few),
    }
    if find_spec("jax"):
        _add_jax(table, host, row)
        _add_jax_jit(table, host, few)
    return table


def _add_indexing(table: dict[str, dict[str, Case]], host: np.ndarray, lazy: xarr.Array) -> None:
    """Reads and updates by masks and integers.  NumPy's updates copy first, as xarr's do."""
    mask, rows = host > 0, np.array([0, 2])
    lazy_mask, lazy_rows = xarr.asarray(mask).evaluate(), xarr.asarray(rows).evaluate()

    def change(index: Any) -> np.ndarray:
        copy = host.copy()
        copy[index] = 2.0
        return copy

    table["x[mask], evaluated"] = {"numpy": lambda: host[mask], "xarr": lambda: lazy[lazy_mask].evaluate()}
    table["x[integers], evaluated"] = {
        "numpy": lambda: host[rows],
        "xarr": lambda: lazy[lazy_rows].evaluate(),
    }
    table["x.at[0].set(v), evaluated"] = {
        "numpy": lambda: change(0),
        "xarr": lambda: lazy.at[0].set(2.0).evaluate(),
    }
    table["x.at[integers].set(v), evaluated"] = {
        "numpy": lambda: change(rows),
        "xarr": lambda: lazy.at[lazy_rows].set(2.0).evaluate(),
    }
    table["x + x[0], evaluated"] = {
        "numpy": lambda: host + host[0],
        "xarr": lambda: (lazy + lazy[0]).evaluate(),
    }


def twenty_operations(xp: Any, x: Any) -> Any:
    """A function of twenty element-wise operations, for any namespace."""
    for scale in (0.5, 2.0, 1.5):
        x = xp.sqrt(abs(xp.tanh(x * scale) + x / scale))
    return xp.exp(x) * x


def _add_jax(table: dict[str, dict[str, Case]], host: np.ndarray, row: np.ndarray) -> None:
    import jax
    import jax.numpy as jnp

    x, v = jnp.asarray(host), jnp.asarray(row)
    jitted = jax.jit(lambda x: jnp.sin(x) * x + 1)
    table["add 4×4, evaluated"]["jax"] = lambda: (x + x).block_until_ready()
    table["add 4×4 and 4, evaluated"]["jax"] = lambda: (x + v).block_until_ready()
    table["sin(x) * y + 1, evaluated"]["jax"] = lambda: (jnp.sin(x) * x + 1).block_until_ready()
    table["sin(x) * y + 1, evaluated"]["jax, jit"] = lambda: jitted(x).block_until_ready()
    table["x[0], evaluated"]["jax"] = lambda: x[0].block_until_ready()
    mask, rows = jnp.asarray(host > 0), jnp.asarray([0, 2])
    table["x[mask], evaluated"]["jax"] = lambda: x[mask].block_until_ready()
    table["x[integers], evaluated"]["jax"] = lambda: x[rows].block_until_ready()
    table["x.at[0].set(v), evaluated"]["jax"] = lambda: x.at[0].set(2.0).block_until_ready()
    table["x.at[integers].set(v), evaluated"]["jax"] = lambda: x.at[rows].set(2.0).block_until_ready()
    table["x + x[0], evaluated"]["jax"] = lambda: (x + x[0]).block_until_ready()


def _add_jax_jit(table: dict[str, dict[str, Case]], host: np.ndarray, few: np.ndarray) -> None:
    import jax
    import jax.numpy as jnp

    x, v = jnp.asarray(host), jnp.asarray(few)
    add, chain = jax.jit(lambda x, y: x + y), jax.jit(lambda x: twenty_operations(jnp, x))
    table["add 4×4 under jit"]["jax, jit"] = lambda: add(x, x).block_until_ready()
    table["add 4×4, 1.5 under jit"]["jax, jit"] = lambda: add(x, 1.5).block_until_ready()
    table["20 operations, 10 elements, under jit"]["jax, jit"] = lambda: chain(v).block_until_ready()


def time_imports(rounds: int) -> dict[str, float]:
    """Median milliseconds that `import NAME` takes in a fresh interpreter; xarr's includes NumPy's."""
    names = ["numpy", "xarr", *(["jax"] if find_spec("jax") else [])]
    # An installed package comes with its bytecode; a checkout gets it in the first round, which is not counted.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    samples: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(rounds + 1):
        for name in names:
            code = f"import time; t = time.perf_counter(); import {name}; print(time.perf_counter() - t)"
            output = subprocess.run(
                [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
            )
            samples[name].append(float(output.stdout) * 1e3)
    return {name: statistics.median(values[1:]) for name, values in samples.items()}


def format_rows(rows: Rows) -> str:
    """The table: µs, and the ratio to NumPy where NumPy takes part."""
    lines = [f"{'':38}{'contender':12}{'µs':>8}{'× numpy':>10}"]
    for row, contenders in rows.items():
        for index, (name, micros) in enumerate(contenders.items()):
            ratio = f"{micros / contenders['numpy']:10.1f}" if "numpy" in contenders else ""
            lines.append(f"{row if not index else '':38}{name:12}{micros:8.2f}{ratio}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--calls", type=int, default=CALLS)
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    rows = measure.time_table(cases(), options.rounds, options.calls, unit=1e-6)
    imports = time_imports(max(5, options.rounds // 3))
    print(f"Python {platform.python_version()}, NumPy {np.__version__}, {os.cpu_count()} cores\n")
    print(format_rows(rows))
    print("\nimport, ms: " + ", ".join(f"{name} {value:.0f}" for name, value in imports.items()))
    print(f"xarr takes {imports['xarr'] - imports['numpy']:.0f} ms beyond NumPy (wanted: at most 80)")
    if options.json:
        options.json.write_text(json.dumps({"µs": rows, "import ms": imports}, indent=2, ensure_ascii=False))


if __name__ == "__main__":
    main()
