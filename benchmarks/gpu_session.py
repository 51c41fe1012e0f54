"""All that a short loan of a GPU can tell: what is installed, tests of the backend, speed, tests of the library.

    python benchmarks/gpu_session.py FOLDER --seconds 570 --commit "$(git rev-parse --short HEAD)"

Each part is a process with a limit of its own, whose output lies in FOLDER as it comes, beside `gpu.json` and
`compiled.json` with the lines that have been measured and `session.json` with what became of each part.  What is cut
off leaves all up to there.  Lines come first that docs/gpu_benchmark.md has no time of, or that miss what is wanted.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

CHECKOUT: Final = Path(__file__).resolve().parents[1]
#: Files of tests of the library that run on the device, if there is time.
LIBRARY: Final = (
    "reduction",
    "indexing",
    "movement",
    "sorting",
    "windows",
    "loops",
    "control",
    "contraction",
)
#: JAX, which tests compare with, leaves the device's memory alone.
ORACLE: Final = (("JAX_PLATFORMS", "cpu"),)
#: Seconds that a process of tests has to end after the last test begins, and after which a test hangs.
GRACE: Final = 20.0
HANGS: Final = 60
#: Rows that torch.compile takes part in: a program takes it some ten seconds.
COMPILED: Final = "a,b"
#: Lines of a part's output that are printed when it ends.
SHOWN: Final = 12


@dataclass(frozen=True)
class Part:
    """A process: its arguments after Python's name, the part of the session's time that it may take, its variables."""

    name: str
    arguments: tuple[str, ...]
    share: float
    variables: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """The end of a part: `ended with` a code, 0 if all was well, or `cut off`."""

    name: str
    state: str
    seconds: float
    last: list[str]


def parts(folder: Path, commit: str, processes: int, seconds: float) -> list[Part]:
    """The parts of a session in their order."""
    tests = (
        *("-m", "pytest", "-q", "-ra", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly"),
        # What faults the device faults it for its own process; what hangs ends that, and the others go on.
        *("--cuda=gpu", "-p", "xdist", "-n", str(processes), "-o", f"faulthandler_timeout={HANGS}"),
    )
    own, speed, compiled, library = 0.24, 0.5, 0.1, 0.13

    def benchmark(name: str, share: float, *options: str) -> tuple[str, ...]:
        return (
            *(str(CHECKOUT / "benchmarks" / "gpu.py"), "--quick", "--commit", commit, *options),
            *(
                "--seconds",
                f"{max(1.0, share * seconds - GRACE):.0f}",
                "--json",
                str(folder / f"{name}.json"),
            ),
        )

    page = str(CHECKOUT / "docs" / "gpu_benchmark.md")
    by_compiler = ("--rows", COMPILED, "--dtypes", "float32", "--without", "cupy best,lazy,replay,jax")

    def report_options(name: str, share: float) -> tuple[str, str]:
        return f"--junitxml={folder / name}.xml", f"--seconds={max(1.0, share * seconds - GRACE):.0f}"

    return [
        Part("doctor", ("-m", "xarr", "doctor"), 0.03),
        Part(
            "tests",
            (
                *(*tests, *report_options("tests", own), "-m", "gpu", "-k", "not the_tests_of_the_library"),
                *("--thorough", "tests/cuda"),
            ),
            own,
            ORACLE,
        ),
        Part("speed", benchmark("gpu", speed, "--unknown-first", page), speed),
        Part("torch.compile", benchmark("compiled", compiled, *by_compiler), compiled),
        Part(
            "tests of the library",
            (
                *(*tests, *report_options("library", library)),
                *[f"tests/lax/test_{name}.py" for name in LIBRARY],
            ),
            library,
            (*ORACLE, ("XARR_BACKEND", "cupy")),
        ),
    ]


def run(part: Part, folder: Path, seconds: float) -> Outcome:
    """Run a part for so many seconds at most, and end it with all that it has started."""
    log = folder / f"{part.name.replace(' ', '_')}.log"
    started = time.monotonic()
    path = os.pathsep.join(
        [str(CHECKOUT), str(CHECKOUT / "backends"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    # No plugin of pytest's but those that are named: what else is installed is nobody's choice.
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XARR_")},
        **{"PYTHONPATH": path, "PYTHONUNBUFFERED": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        **{"PYTEST_PLUGINS": "_hypothesis_pytestplugin"},
        **dict(part.variables),
    }
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(
            [sys.executable, *part.arguments],
            **{"cwd": CHECKOUT, "env": environment, "stdout": output, "stderr": subprocess.STDOUT},
            process_group=0,
        )
        try:
            state = f"ended with {process.wait(timeout=seconds)}"
        except subprocess.TimeoutExpired:
            state = f"cut off after {seconds:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:]
    return Outcome(part.name, state, time.monotonic() - started, [line[:300] for line in last])


def run_session(chosen: Sequence[Part], folder: Path, seconds: float) -> list[Outcome]:
    """Run parts one after the other, each within its share and what its predecessors have left of theirs."""
    outcomes: list[Outcome] = []
    started, planned = time.monotonic(), 0.0
    for part in chosen:
        planned += part.share * seconds
        outcome = run(part, folder, max(1.0, planned - (time.monotonic() - started)))
        outcomes.append(outcome)
        print(
            f"--- {outcome.name}: {outcome.state}, {outcome.seconds:.0f} s",
            *outcome.last,
            sep="\n",
            flush=True,
        )
        new = folder / "session.json.new"
        new.write_text(json.dumps([asdict(each) for each in outcomes], indent=1), encoding="utf-8")
        new.replace(folder / "session.json")
    return outcomes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where all output is written")
    parser.add_argument("--seconds", type=float, default=570, help="what all parts may take together")
    parser.add_argument(
        "--commit", default="unknown", help="the commit of this checkout, where git cannot tell"
    )
    parser.add_argument("--processes", type=int, default=14, help="processes of tests that share the device")
    options = parser.parse_args(arguments)
    options.folder.mkdir(parents=True, exist_ok=True)
    for needed in ("g++", "nvidia-smi"):
        if shutil.which(needed) is None:
            print(f"{needed} is not on the path: tests that need it are skipped", flush=True)
    chosen = parts(options.folder.resolve(), options.commit, options.processes, options.seconds)
    outcomes = run_session(chosen, options.folder, options.seconds)
    return int(any(outcome.state != "ended with 0" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
