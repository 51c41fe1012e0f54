"""What the benchmarks share: timing in turn, results that are checked, and what the machine is.

Import it before NumPy: it removes variables that slow NumPy's matrix products down.
"""

from __future__ import annotations

import argparse
import gc
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

for variable in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"):
    os.environ.pop(variable, None)

import numpy as np

#: One call of a contender, which gives a result that is computed.
Call = Callable[[], object]
Contenders = dict[str, Call]
#: Row -> contender -> seconds, or another unit.
Medians = dict[str, dict[str, float]]

#: The least that one sample takes; shorter calls are repeated within it.
SAMPLE_SECONDS = 1e-3
FEWEST_ROUNDS, MOST_ROUNDS = 3, 31
#: Blocks of calls of each contender.
BLOCKS = 3


#: What is timed: seconds that pass, unless a benchmark says otherwise.
clock: Callable[[], float] = time.perf_counter


class WrongResult(Exception):
    """A contender computes something else than NumPy does."""


def progress(text: str) -> None:
    """Show `text` as the last line of stderr, in place of the one before; in a file as a line like others."""
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    elif text:
        print(text, file=sys.stderr, flush=True)


def time_table(table: Mapping[str, Contenders], rounds: int, calls: int = 1, unit: float = 1) -> Medians:
    """Median time per call of each case, in units of `unit` seconds; one round runs each case once, in turn."""
    samples: dict[tuple[str, str], list[float]] = {}
    gc.disable()
    for round_ in range(rounds + 1):
        for row, contenders in table.items():
            for name, call in contenders.items():
                seconds = sample(call, calls)
                if round_:  # the first round warms up
                    samples.setdefault((row, name), []).append(seconds)
        progress(f"round {round_}/{rounds}")
    progress("")
    gc.enable()
    rows: Medians = {}
    for (row, name), values in samples.items():
        rows.setdefault(row, {})[name] = statistics.median(values) / unit
    return rows


def time_case(
    contenders: Contenders,
    budget: float,
    of_samples: Callable[[list[float]], float] = statistics.median,
    sample_seconds: float = SAMPLE_SECONDS,
    warming: int = 0,
) -> dict[str, float]:
    """Seconds per call of each contender, the median of rounds that take about `budget` seconds together.

    sample_seconds: the least that a sample takes, of calls in a row.  warming: calls before such a sample that are not
    timed; the first call of each contender is none either then.
    """
    gc.disable()
    once = {name: sample(call, 1) for name, call in contenders.items()}
    repeats = {name: max(1, round(sample_seconds / seconds)) for name, seconds in once.items()}
    round_seconds = sum(once[name] * repeats[name] for name in contenders)
    rounds = min(MOST_ROUNDS, max(FEWEST_ROUNDS, round(budget / round_seconds)))
    # A single call that took long enough is the first sample; others only told how often to repeat.
    first = [] if warming else [name for name in contenders if repeats[name] == 1]
    samples = {name: [once[name]] if name in first else [] for name in contenders}
    # To and fro: threads of some contenders go on spinning for a while, at the cost of who comes next.
    ways = (list(contenders.items())[::-1], list(contenders.items()))
    for round_ in range(rounds if warming else rounds - 1):
        for name, call in ways[round_ % 2]:
            samples[name].append(sample(call, repeats[name], warming))
    gc.enable()
    gc.collect()
    return {name: of_samples(values) for name, values in samples.items()}


def time_blocks(
    contenders: Contenders,
    budget: float,
    pause: float,
    of_samples: Callable[[list[float]], float] = statistics.median,
) -> dict[str, float]:
    """Seconds per call of each contender, which are called in blocks, with `pause` seconds before each block.

    After the pause the threads of the contender before sleep; the first call of a block wakes its own, and
    counts only where no other fits into the part of `budget` seconds that is the block's.
    """
    gc.disable()
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    share = budget / BLOCKS / max(1, len(contenders))
    ways = (list(contenders.items()), list(contenders.items())[::-1])
    for block in range(BLOCKS):
        for name, call in ways[block % 2]:
            time.sleep(pause)
            once = sample(call, 1)
            repeats = max(1, round(SAMPLE_SECONDS / once))
            rounds = min(MOST_ROUNDS, round(share / (once * repeats)))
            samples[name] += [sample(call, repeats) for _ in range(rounds)] if rounds else [once]
            if once > share * BLOCKS and block == 0:  # It would take the time of all others.
                contenders = {key: value for key, value in contenders.items() if key != name}
        ways = (list(contenders.items()), list(contenders.items())[::-1])
    gc.enable()
    gc.collect()
    return {name: of_samples(values) for name, values in samples.items()}


def sample(call: Call, calls: int, warming: int = 0) -> float:
    """Seconds per call, of so many in a row; where they are several, behind some that warm up."""
    for _ in range(warming if calls > 1 else 0):
        call()
    started = clock()
    for _ in range(calls):
        call()
    return (clock() - started) / calls


def check(
    contenders: Contenders, dtype: np.dtype, tolerance: float, unequal: float = 0, base: str = "numpy"
) -> None:
    """Call each contender once and compare what it gives with what `base` gives.

    Floating-point results, and the parts of complex ones, must have the dtype `dtype` and lie within `tolerance`
    units in the last place of the greatest magnitude of the result; of others, the part `unequal` may differ.
    Raises WrongResult.
    """
    wanted = contenders[base]()
    for name in [name for name in contenders if name != base]:
        problem = difference(contenders[name](), wanted, tolerance, unequal, dtype)
        if problem:
            raise WrongResult(f"{name} differs from {base}: {problem}")


def difference(
    got: object, wanted: object, tolerance: float, unequal: float = 0, dtype: np.dtype | None = None
) -> str:
    """The way in which a result, or one of several, differs from what is wanted; empty if it does not.

    `tolerance` and `unequal` are those of `check`; without `dtype`, results have the dtype of what is wanted.
    """
    left, right = _arrays(got), _arrays(wanted)
    if len(left) != len(right):
        return f"{len(left)} results, wanted {len(right)}"
    pairs = zip(left, right, strict=True)
    return next(filter(None, (_difference(a, b, dtype or b.dtype, tolerance, unequal) for a, b in pairs)), "")


def _arrays(result: object) -> list[np.ndarray]:
    parts: Iterable[object] = result if isinstance(result, tuple | list) else [result]
    return [np.asarray(part) for part in parts]


def _difference(
    got: np.ndarray, wanted: np.ndarray, dtype: np.dtype, tolerance: float, unequal: float
) -> str:
    """The way in which `got` is wrong; empty if it is not."""
    if got.shape != wanted.shape:
        return f"shape {got.shape}, wanted {wanted.shape}"
    if wanted.dtype.kind == got.dtype.kind == "c":
        dtype = wanted.real.dtype if dtype.kind == "c" else dtype
        parts = (np.stack([each.real, each.imag]) for each in (got, wanted))
        return _difference(*parts, dtype, tolerance, unequal)
    if wanted.dtype.kind != "f":
        part = float(np.mean(got != wanted)) if wanted.size else 0.0
        return f"{part:.2%} of the elements, at most {unequal:.2%} may" if part > unequal else ""
    if got.dtype != dtype:
        return f"dtype {got.dtype}, wanted {dtype}"
    scale = np.max(np.abs(wanted), initial=0.0, where=np.isfinite(wanted))
    allowed = float(tolerance * np.finfo(dtype).eps * scale)
    if np.allclose(got, wanted, rtol=0, atol=allowed, equal_nan=True):
        return ""
    with np.errstate(invalid="ignore"):
        return f"by up to {np.nanmax(np.abs(got - wanted)):.3g}, wanted at most {allowed:.3g}"


def add_least(parser: argparse.ArgumentParser) -> None:
    """Add the option `--least`; `of_samples` is the function of the samples of a call that stands for it."""
    parser.add_argument(
        "--least",
        action="store_const",
        dest="of_samples",
        const=min,
        default=statistics.median,
        help="the least sample instead of the median: for a machine that is busy with other work",
    )


def align(rows: Sequence[Sequence[str]], words: Collection[int]) -> list[str]:
    """Lines of columns that are as wide as what is in them: those of `words` to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            f"{cell:{'<' if k in words else '>'}{width}}"
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def machine() -> str:
    """The processor, how many of it, and the system."""
    model = platform.processor()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        lines = cpuinfo.read_text(encoding="utf-8").splitlines()
        model = next(
            (line.partition(":")[2].strip() for line in lines if line.startswith("model name")), model
        )
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{model or platform.machine()}, {os.cpu_count()} cores, {platform.system()}{load}"


def versions(names: Iterable[str]) -> str:
    """Python's version and those of packages; `not installed` where one is not."""
    return ", ".join([f"Python {platform.python_version()}", *(f"{name} {_version(name)}" for name in names)])


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
