"""Lines that a process of its own times, each for so many seconds at most, and what becomes of unfinished ones.

A kernel that never ends, a fault of the device, a compiler that takes minutes: each costs its own line alone.  The
process that has it is ended, and another one goes on behind it.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TextIO

import measure

from gpu_rows.peers import Peers
from gpu_rows.row import Row
from gpu_rows.timing import Rates, TimedLine, measure_rates, timed_lines

#: Seconds of a process until its first message: it imports the peers, and measures the device's own rates.
START_SECONDS: Final = 120.0
#: Processes that may end without a line before no other one is started.
MOST_FAILED_STARTS: Final = 2

#: The code with which a process ends whose parent is gone.
ORPHANED: Final = 3

Pairs = Sequence[tuple[Row, str]]


@dataclass
class Limits:
    """Seconds: of all lines, of one, of the rounds of one; and the contenders that are left out."""

    seconds: float
    of_line: float
    budget: float
    without: tuple[str, ...] = ()


@dataclass
class Messages:
    """The JSON messages of a process, which come by a thread that reads its output; None where it has ended."""

    process: subprocess.Popen[str]
    _texts: queue.SimpleQueue[str | None] = field(default_factory=queue.SimpleQueue)

    def __post_init__(self) -> None:
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        for text in self.process.stdout or ():
            if text.startswith("{"):  # libraries print too
                self._texts.put(text)
        self._texts.put(None)

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next message; None if the process ends before.  TimeoutError after so many seconds."""
        try:
            text = self._texts.get(timeout=max(seconds, 0))
        except queue.Empty:
            raise TimeoutError(f"no answer in {seconds:.0f} s") from None
        return None if text is None else json.loads(text)

    def end(self) -> None:
        """End the process with those that it has started."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._reader.join()
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                stream.close()


def lines_by_workers(
    pairs: Pairs, command: Sequence[str], limits: Limits, show: Callable[[dict[str, Any]], None]
) -> Iterator[TimedLine]:
    """The lines that processes of `command` time, one after the other, until `limits.seconds` have passed.

    show: is called once with the first message, which describes the device.
    """
    deadline, number, rates, failures = time.monotonic() + limits.seconds, 0, None, 0
    while number < len(pairs) and time.monotonic() < deadline and failures < MOST_FAILED_STARTS:
        order = {"first": number, "rates": rates, "budget": limits.budget, "without": limits.without}
        worker = Messages(start([*command, json.dumps(order)]))
        try:
            described = worker.next(min(START_SECONDS, deadline - time.monotonic()))
            if described is None:
                raise ConnectionError(f"the process ended with {worker.process.wait()}")
            if rates is None:
                show(described)
            rates, failures = described["rates"], 0
            while number < len(pairs):
                measure.progress(f"{deadline - time.monotonic():.0f} s left: {_title(pairs[number])}")
                line = _next_line(worker, pairs[number], min(limits.of_line, deadline - time.monotonic()))
                number += 1
                yield line
                if "process" in line.reasons:
                    break
        except (TimeoutError, ConnectionError) as error:
            failures += 1
            measure.progress(f"no process that measures: {error}")
        finally:
            worker.end()
    if number < len(pairs):
        measure.progress(f"{len(pairs) - number} lines do not fit in {limits.seconds:.0f} seconds")


def start(command: Sequence[str]) -> subprocess.Popen[str]:
    """A process that answers by messages."""
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, process_group=0
    )


def _title(pair: tuple[Row, str]) -> str:
    return f"({pair[0].letter}) {pair[0].name} {pair[1]}"


def _next_line(worker: Messages, pair: tuple[Row, str], seconds: float) -> TimedLine:
    """The line of a pair, with a reason `process` where the process is of no use any more."""
    row, dtype = pair
    reason = f"more than {seconds:.0f} s"
    try:
        message = worker.next(seconds)
        if message is not None:
            return TimedLine(**message)
        reason = f"the process ended with {worker.process.wait()}"
    except TimeoutError:
        pass
    return TimedLine(row.letter, row.name, dtype, {}, {"process": reason}, wanted_share=row.share)


# --- the process --------------------------------------------------------------------------------------------


def serve(
    order: str,
    pairs: Pairs,
    peers: Peers,
    describe: Callable[[Rates], str],
    output: TextIO,
    small: bool = False,
) -> None:
    """Time the lines that an order asks for, and print each as a message: what a process of `lines_by_workers` does."""
    asked = json.loads(order)
    peers.without = tuple(asked["without"])
    sizes = {"copied": 2**12, "side": 8} if small else {}
    rates = Rates(**asked["rates"]) if asked["rates"] else measure_rates(peers, **sizes)
    _send(output, {"rates": asdict(rates), "header": describe(rates)})
    rest = pairs[asked["first"] :]
    for line in timed_lines(rest, peers, rates, float("inf"), asked["budget"], small):
        fault = peers.fault()
        if fault:
            line.reasons["process"] = fault
        _send(output, asdict(line))
        if fault:
            return


def _send(output: TextIO, message: dict[str, Any]) -> None:
    print(json.dumps(message), file=output, flush=True)


def end_with_parent() -> None:
    """End this process with the one that started it, which holds the other end of its input, however that ends."""

    def wait() -> None:
        while sys.stdin.read(1):
            pass
        os._exit(ORPHANED)

    threading.Thread(target=wait, daemon=True).start()


def command_of(options: Sequence[str]) -> list[str]:
    """This program as a process that times lines, with the same choice of rows."""
    return [sys.executable, os.path.abspath(sys.argv[0]), *options, "--worker"]
