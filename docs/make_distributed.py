"""Write the tables of `docs/distributed.md`: every fault on every engine, and costs: `python docs/make_distributed.py`.

Each fault happens in a run of its own, of three replicas.  The engines are threads, the MPI of this environment, and
those of other environments whose Python is named: `python docs/make_distributed.py /path/to/openmpi/bin/python`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
PAGE: Final = CHECKOUT / "docs" / "distributed.md"
PROGRAM: Final = CHECKOUT / "tests" / "support" / "fault_program.py"

sys.path[:0] = [str(CHECKOUT), str(CHECKOUT / "backends")]

from tests.support.fault_program import FAULTS  # noqa: E402
from tests.support.mpi import environment  # noqa: E402
from xarr.distributed.costs import ALGORITHMS, LINKS, own_seconds  # noqa: E402

START: Final = "<!-- Written by docs/make_distributed.py from here on. -->"
#: Those that only a launcher has, and those that no thread has.
OF_PROCESSES: Final = ("stopped process", "launcher killed")
#: Seconds until a run counts as a hang.
LIMIT: Final = 30.0
MIXED: Final = "two MPIs mixed"


@dataclass(frozen=True)
class Engine:
    """An engine: its name, and the command that runs a script as three replicas."""

    name: str
    command: tuple[str, ...]

    @property
    def is_threads(self) -> bool:
        return self.name == "threads"


@dataclass(frozen=True)
class Outcome:
    """The end of a run: the seconds since its fault began, the exit status, the output; seconds is None for a hang."""

    seconds: float | None
    status: int
    text: str

    @property
    def has_table(self) -> bool:
        return "replica 0: " in self.text

    def cell(self) -> str:
        """The cell of a table."""
        if self.seconds is None:
            return "**hangs**"
        table = ", table" if self.has_table else ""
        return f"{self.seconds:.1f} s, exit {self.status}{table}: {headline(self.text)}"


def headline(text: str) -> str:
    """The line of an output that says what went wrong."""
    errors = re.findall(r"^(?:xarr\.errors\.)?(\w+Error: .*|KeyboardInterrupt)$", text, re.M)
    told = re.findall(r"^.*(?:the launcher is gone|Killed|signal 9|[Aa]borting).*$", text, re.M)
    started = re.findall(r"^xarr\.distributed: (.*)$", text, re.M)
    line = [*errors, *started, *told, "no text"][0].strip().replace("|", "\\|")
    return line if len(line) <= 160 else f"{line[:157]}…"


def run(engine: Engine, fault: str) -> Outcome:
    """Let a fault happen, and wait for the end."""
    with tempfile.TemporaryDirectory() as folder:
        begin, output = Path(folder) / "begin", Path(folder) / "output"
        with output.open("wb") as file:
            process = subprocess.Popen(
                [*engine.command, str(PROGRAM), fault, str(begin)],
                env=environment(),
                stdout=file,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            began = _wait_for(begin, process)
            if fault in ("Ctrl-C", "launcher killed"):
                time.sleep(0.5)
                began = time.time()
                process.send_signal(signal.SIGINT if fault == "Ctrl-C" else signal.SIGKILL)
            status, ended = _wait_for_end(process, begin)
        text = output.read_text(encoding="utf-8", errors="replace")
    return Outcome(None if ended is None else max(0.0, ended - began), status, text)


def _wait_for(begin: Path, process: subprocess.Popen[bytes]) -> float:
    """The time at which the fault began."""
    limit = time.time() + LIMIT
    while process.poll() is None and time.time() < limit:
        if begin.exists() and (text := begin.read_text(encoding="utf-8")):
            return float(text)
        time.sleep(0.01)
    return float(begin.read_text(encoding="utf-8")) if begin.exists() else time.time()


def _wait_for_end(process: subprocess.Popen[bytes], begin: Path) -> tuple[int, float | None]:
    """The exit status, and when all processes had ended; None if that was not within `LIMIT`."""
    limit = time.time() + LIMIT
    try:
        status = process.wait(LIMIT)
        while _processes(begin) and time.time() < limit:
            time.sleep(0.02)
        return status, time.time() if time.time() < limit else None
    except subprocess.TimeoutExpired:
        return 0, None
    finally:
        for each in _processes(begin):
            os.kill(each, signal.SIGKILL)
        process.wait()


def _processes(begin: Path) -> list[int]:
    """The processes that run the program of this fault: a launcher gives each a group of its own."""
    ids = []
    for entry in Path("/proc").iterdir():
        try:
            is_one = entry.name.isdigit() and str(begin).encode() in (entry / "cmdline").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if is_one:
            ids.append(int(entry.name))
    return ids


def engines(pythons: Sequence[str]) -> Iterator[Engine]:
    """Threads, and the MPI of each environment whose Python is named."""
    yield Engine("threads", (sys.executable, "-m", "xarr.distributed", "-n", "3"))
    ask = "from mpi4py import MPI; print(MPI.get_vendor()[0], '.'.join(map(str, MPI.get_vendor()[1])))"
    for python in pythons:
        done = subprocess.run(
            [python, "-c", ask], env=environment(), capture_output=True, text=True, check=False
        )
        launcher = Path(python).parent / "mpiexec"
        if done.returncode == 0 and launcher.exists():
            command = (str(launcher), "-n", "3", python, "-m", "xarr.distributed")
            yield Engine(done.stdout.strip(), command)


def fault_table(all_engines: Sequence[Engine]) -> str:
    """A row for each fault, a column for each engine."""
    lines = [
        f"| fault | {' | '.join(engine.name for engine in all_engines)} |",
        f"| --- |{' --- |' * len(all_engines)}",
    ]
    for fault in FAULTS:
        cells = []
        for engine in all_engines:
            is_none = engine.is_threads and fault in OF_PROCESSES
            cells.append("–" if is_none else run(engine, fault).cell())
            print(f"{fault:28} {engine.name:12} {cells[-1]}", flush=True)
        lines.append(f"| {fault} | {' | '.join(cells)} |")
    lines.append(f"| {MIXED} | {' | '.join(_mixed_cells(all_engines))} |")
    return "\n".join(lines)


def _mixed_cells(all_engines: Sequence[Engine]) -> Iterator[str]:
    """The launcher of each MPI with the library of another."""
    for engine in all_engines:
        others = [each for each in all_engines if not each.is_threads and each is not engine]
        if engine.is_threads or not others:
            yield "–"
        else:
            mixed = Engine(engine.name, (*engine.command[:3], *others[0].command[3:]))
            yield f"library of {others[0].name}: {run(mixed, 'none').cell()}"


def cost_table() -> str:
    """The costs of an all-reduce by three algorithms, for each link."""
    sizes: Mapping[str, int] = {"4 KiB": 2**12, "1 MiB": 2**20, "256 MiB": 2**28}
    names = ", ".join([*ALGORITHMS, "xarr"])
    heads = " | ".join([f"{size}: {names}" for size in sizes])
    lines = [f"| link | replicas | {heads} |", f"| --- | --- |{' --- |' * len(sizes)}"]
    for link in LINKS:
        for n in (8, 64, 512, 4096):
            cells = [
                ", ".join(_time(seconds(n, size, link)) for seconds in (*ALGORITHMS.values(), own_seconds))
                for size in sizes.values()
            ]
            lines.append(f"| {link.name} | {n} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _time(seconds: float) -> str:
    unit, factor = ("s", 1.0) if seconds >= 1 else ("ms", 1e3) if seconds >= 1e-3 else ("µs", 1e6)
    return f"{seconds * factor:.3g} {unit}"


def page_text(faults: str) -> str:
    """The page from `START` on."""
    return f"""\
{START}

## Every fault, on every engine

Three replicas, of which replica 1 does what the row says. The seconds are those from the fault to the end of all
processes, on a machine of two cores that others used meanwhile; of an endless loop and a stopped process with
`config.collective_timeout = 1.5`. "table" says that the output has a row for each replica.

{faults}

## Costs before one runs

Seconds of an all-reduce by formulas (`xarr/distributed/costs.py`), of float arrays of three sizes at each replica. The
first link was measured, the others are assumed. "xarr" is what xarr does: it gathers operands of up to
4 KiB, and of up to 128 KiB from all others together; above it is direct, since a ring and a tree combine operands in
another order than that of the group.

{cost_table()}
"""


def main() -> None:
    """Write the page."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # A shell lets what runs in its background ignore it.
    all_engines = list(engines([sys.executable, *sys.argv[1:]]))
    head = PAGE.read_text(encoding="utf-8").partition(START)[0]
    PAGE.write_text(head + page_text(fault_table(all_engines)), encoding="utf-8")


if __name__ == "__main__":
    main()
