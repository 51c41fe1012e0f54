"""What the benchmarks share that measure in child processes: one with as many threads as its part of a table says."""

from __future__ import annotations

import json
import os
import queue
import signal
import statistics
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Protocol, TypeVar

import measure

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    Line = TypeVar("Line", bound=DataclassInstance)

#: Seconds before each block of calls.
PAUSE = 0.05
#: What bounds the threads of a library.
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


class Named(Protocol):
    """A row of a table: a program, a network."""

    @property
    def name(self) -> str: ...


Row = TypeVar("Row", bound=Named)


class OutOfTime(KeyboardInterrupt):
    """A call took longer than the limit; it ends as by Ctrl-C."""


class Limit:
    """A context in which OutOfTime is raised after so many seconds, and once a second from then on."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGALRM, _raise_out_of_time)
        signal.setitimer(signal.ITIMER_REAL, self.seconds, 1)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _raise_out_of_time(_: int, frame: FrameType | None) -> None:
    raise OutOfTime


def default_threads() -> list[int]:
    """One, and as many as there are processors."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [1, processors] if processors > 1 else [1]


def integers_listed(text: str) -> list[int]:
    return [int(part) for part in text.split(",") if part]


def rows_listed(rows: Sequence[Row], text: str) -> list[Row]:
    """The rows whose names contain one of the parts of `text`; all if it is empty.  SystemExit if there are none."""
    parts = [part.lower() for part in text.split(",") if part]
    chosen = [row for row in rows if not parts or any(part in row.name.lower() for part in parts)]
    if not chosen:
        raise SystemExit(f"--rows: wanted parts of names, such as {rows[0].name}, got {text!r}")
    return chosen


def collect(lines: Iterable[Line], path: Path | None) -> list[Line]:
    """The lines, of which those that are there are written to `path` after each."""
    collected: list[Line] = []
    for line in lines:
        collected.append(line)
        if path:
            path.write_text(json.dumps([asdict(each) for each in collected], indent=1, ensure_ascii=False))
    measure.progress("")
    return collected


def keep_to_processors(threads: int) -> None:
    """Let this process run on so many processors: libraries without a variable look at them."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def lines_of_child(arguments: Iterable[str], threads: int, patience: float) -> Iterator[str]:
    """The lines that this Python prints for `arguments`, as they come; it ends if none comes for `patience` seconds.

    Its libraries are told to use so many threads, and xarr to keep no kernels on disk.
    """
    environment = os.environ | dict.fromkeys(VARIABLES, str(threads)) | {"XARR_KERNEL_CACHE": "off"}
    if threads == 1:
        environment["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    child = subprocess.Popen([sys.executable, *arguments], env=environment, stdout=subprocess.PIPE, text=True)
    texts: queue.SimpleQueue[str] = queue.SimpleQueue()

    def read() -> None:
        for text in child.stdout or ():
            texts.put(text)
        texts.put("")

    threading.Thread(target=read, daemon=True).start()
    try:
        while text := texts.get(timeout=patience):
            yield text
    except queue.Empty:
        measure.progress(f"no line for {patience:.0f} s: ending the process")
    finally:
        child.kill()
        child.wait()


def mean(ratios: Iterable[float | None]) -> float | None:
    """The geometric mean of those that are known; None if none is."""
    known = [ratio for ratio in ratios if ratio is not None]
    return statistics.geometric_mean(known) if known else None


def in_milliseconds(seconds: float) -> str:
    """Milliseconds with three digits."""
    milliseconds = seconds * 1e3
    digits = 2 - len(str(int(milliseconds))) + 1 if milliseconds >= 1 else 4
    return f"{milliseconds:.{max(0, digits)}f}"
