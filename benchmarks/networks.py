"""Networks of flax that JAX exported, run by xarr from their StableHLO: xarr under jit beside JAX under jit.

    python benchmarks/networks.py                                 # all networks, one thread and all
    python benchmarks/networks.py --rows ResNet,GPT --quick
    python benchmarks/networks.py --json networks.json

Weights are random and arguments, as the images are.  JAX runs the function that was exported, and what it exported,
the faster of the two counts; xarr reads the text.  Results are compared with JAX's.  A first call of xarr begins with
the text, one of JAX with the function or what was exported of it.  Contenders are called in blocks, with a pause before
each; a child process has as many threads and processors as its part of the table says.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import measure
from children import (
    PAUSE,
    Limit,
    OutOfTime,
    collect,
    default_threads,
    in_milliseconds,
    integers_listed,
    keep_to_processors,
    lines_of_child,
    mean,
    rows_listed,
)

import xarr

if TYPE_CHECKING:
    from network_rows import Network
    from network_rows.row import FlatCall

PACKAGES = ("numpy", "llvmlite", "jax", "flax", "optax")
NEEDED = ("jax", "flax", "optax")
OURS = ("xarr",)
PEERS = ("jax", "jax exported")
#: Seconds that the contenders of a line are timed together, and that a first call may take.
BUDGET, QUICK_BUDGET = 12.0, 3.0
LIMIT = 600.0
#: Seconds for which each is called before it is timed: first machine code may be made quickly, and optimised later.
WARM_UP = 1.0


@dataclass
class Line:
    """The measurements of one network with so many threads: seconds of a call and of the first one, by contender."""

    name: str
    threads: int
    seconds: dict[str, float] = field(default_factory=dict)
    first: dict[str, float] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def ratio(self, times: str) -> float | None:
        """JAX's time over xarr's, of `seconds` or `first`; None where one has none."""
        table: dict[str, float] = getattr(self, times)
        ours, theirs = ([table[name] for name in names if name in table] for names in (OURS, PEERS))
        return min(theirs) / min(ours) if ours and theirs else None


# --- measuring, in a child process ---------------------------------------------------------------------------


def measured_line(network: Network, options: argparse.Namespace) -> Line:
    line = Line(network.name, options.worker)
    call = import_module("network_rows.row").flat_call(network.make(options.tiny))
    calls: measure.Contenders = {}
    wanted: Any = None
    for name, make in makers(call).items():
        measure.progress(f"{options.worker} threads, {network.name}: first call of {name}")
        started = measure.clock()
        try:
            with Limit(LIMIT):
                calls[name] = make()
                got = calls[name]()
            line.first[name] = measure.clock() - started
            wanted = got if wanted is None else wanted
            problem = measure.difference(got, wanted, network.tolerance)
        except OutOfTime:
            problem = f"more than {LIMIT:.0f} s"
        except (xarr.errors.XarrError, NotImplementedError, MemoryError) as error:
            problem = f"{type(error).__name__}: {str(error).partition(chr(10))[0][:150]}"
        if problem:
            line.reasons[name] = problem
            calls.pop(name, None)
    measure.progress(f"{options.worker} threads, {network.name}: timing {', '.join(calls)}")
    for each in calls.values():
        call_for(0.0 if options.tiny else WARM_UP, each)
    line.seconds = measure.time_blocks(calls, options.budget, PAUSE, options.of_samples)
    return line


def call_for(seconds: float, call: measure.Call) -> None:
    """Call it again and again for so long."""
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        call()


def makers(call: FlatCall) -> dict[str, Callable[[], measure.Call]]:
    """Contender -> what makes its call, JAX first; nothing is compiled before the first call."""
    jax: Any = import_module("jax")
    export: Any = import_module("jax.export")
    exported = export.export(jax.jit(call.function, keep_unused=True))(*call.arguments)
    text = exported.mlir_module()
    theirs = [jax.device_put(array) for array in call.arguments]
    ours = [xarr.asarray(array).evaluate() for array in call.arguments]

    def by_jax(function: Callable[..., Any]) -> measure.Call:
        compiled = jax.jit(function)
        return lambda: jax.block_until_ready(compiled(*theirs))

    def by_xarr() -> measure.Call:
        module = xarr.stablehlo.parse(text)
        compiled = xarr.jit(lambda *arrays: xarr.stablehlo.run(module, *arrays))
        return lambda: compiled(*ours)

    return {
        "jax": lambda: by_jax(call.function),
        "jax exported": lambda: by_jax(exported.call),
        "xarr": by_xarr,
    }


def work(network: Network, options: argparse.Namespace) -> None:
    """Measure in this process, and print the line as JSON."""
    warnings.simplefilter("ignore")
    if options.cpu:
        measure.clock = time.process_time
    keep_to_processors(options.worker)
    warm_up()
    print(json.dumps(asdict(measured_line(network, options))), flush=True)


def warm_up() -> None:
    """Let each library load what it loads once, so that the first calls of the first network are like others."""
    row: Any = import_module("network_rows.row")
    small = row.FlatCall(lambda x: [(x @ x).sum(axis=0)], (row.normal(8, 8),))
    for make in makers(small).values():
        make()()


# --- the child processes -------------------------------------------------------------------------------------


def lines_of_children(networks: Sequence[Network], options: argparse.Namespace) -> Iterator[Line]:
    """The lines with one thread, then with all, each as it is ready; of each network in a process of its own."""
    for threads in options.threads:
        for network in networks:
            arguments = [
                *(__file__, "--worker", str(threads), "--number", str(all_networks().index(network))),
                *("--budget", str(options.budget), *(["--tiny"] if options.tiny else [])),
                *(["--least"] if options.of_samples is min else []),
                *(["--cpu"] if options.cpu else []),
            ]
            texts = list(lines_of_child(arguments, threads, 120 + (len(PEERS) + 1) * LIMIT))
            yield (
                Line(**json.loads(texts[0]))
                if texts
                else Line(network.name, threads, reasons={"all": "the process ended"})
            )


# --- the table -----------------------------------------------------------------------------------------------


def header(options: argparse.Namespace) -> str:
    kind = "medians" if options.of_samples is statistics.median else "least times"
    clock = "the processor's time of all threads, " if options.cpu else ""
    return (
        f"{measure.machine()}\n{measure.versions(PACKAGES)}\n"
        f"{clock}{kind} in ms; first: of the first call, xarr's from the text of StableHLO;"
        " jax ÷ xarr: above 1 xarr is ahead\n"
    )


def table(lines: Sequence[Line]) -> list[str]:
    """A head and a row for each line, in columns that are as wide as what is in them."""
    head = ("", "threads", "xarr", *PEERS, "jax ÷ xarr", *(f"first {name}" for name in (*OURS, *PEERS)))
    return measure.align([(*head, "jax ÷ xarr"), *map(cells, lines)], words=(0,))


def cells(line: Line) -> tuple[str, ...]:
    result = [line.name, str(line.threads)]
    for times in ("seconds", "first"):
        table: dict[str, float] = getattr(line, times)
        result += [in_milliseconds(table[name]) if name in table else "-" for name in (*OURS, *PEERS)]
        ratio = line.ratio(times)
        result.append("-" if ratio is None else f"{ratio:.2f}")
    return tuple(result)


def summary(lines: Sequence[Line]) -> list[str]:
    """Geometric means by thread, and who has no time."""
    result = ["geometric means of JAX's time over xarr's:"]
    for threads in dict.fromkeys(line.threads for line in lines):
        group = [line for line in lines if line.threads == threads]
        means = [mean(line.ratio(times) for line in group) for times in ("seconds", "first")]
        texts = ["-" if each is None else f"{each:.2f}" for each in means]
        result.append(f"  {threads} threads: {texts[0]}, of first calls {texts[1]}")
    missing = [
        f"  {line.name}, {line.threads} threads: {name}: {reason}"
        for line in lines
        for name, reason in line.reasons.items()
    ]
    return [*result, "", "without a time:", *(missing or ["  none"])]


# --- the command ---------------------------------------------------------------------------------------------


def all_networks() -> Sequence[Network]:
    rows: Sequence[Network] = import_module("network_rows").ROWS
    return rows


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", default="", help="parts of the names of networks, such as ResNet,GPT")
    parser.add_argument(
        "--threads", type=integers_listed, default=default_threads(), help="counts of threads, such as 1,2"
    )
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--json", type=Path, help="also write the figures to this file, after each line")
    measure.add_least(parser)
    parser.add_argument(
        "--cpu", action="store_true", help="the processor's time, of all threads, instead of what passes"
    )
    # What the child processes get.
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--number", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--budget", type=float, help=argparse.SUPPRESS)
    parser.add_argument("--tiny", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    options.budget = options.budget or (QUICK_BUDGET if options.quick else BUDGET)
    return options


def main(arguments: list[str] | None = None) -> None:
    options = parse(arguments)
    absent = [name for name in NEEDED if find_spec(name) is None]
    if absent:
        raise SystemExit(f"networks.py needs {', '.join(absent)}: pip install -e '.[bench]'")
    if options.worker:
        work(all_networks()[options.number], options)
        return
    networks = rows_listed(all_networks(), options.rows)
    head = header(options)
    lines = collect(lines_of_children(networks, options), options.json)
    print("\n".join([head, *table(lines), "", *summary(lines)]))


if __name__ == "__main__":
    main()
