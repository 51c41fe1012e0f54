"""All that a short loan of a GPU can tell, the most important first: speed, numbers to choose, tests.

    python benchmarks/gpu_session.py FOLDER --seconds 570 --commit "$(git rev-parse --short HEAD)"
    python benchmarks/gpu_session.py FOLDER --on-host          # a rehearsal: small sizes, CuPy on memory of the host

Each part is a process with a limit of its own, whose output lies in FOLDER as it comes, beside `gpu.json`,
`choices.json` and `compiled.json` with what has been measured and `session.json` with what became of each part.  What
is cut off leaves all up to there, and so does a session that is ended.  Lines come first that docs/gpu_benchmark.md has
no time of, or that miss what is wanted.
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
#: Seconds that a process of tests has to end after the last test begins, one that measures after its last line, and
#: after which a test hangs.
GRACE, MEASURING_GRACE, HANGS = 20.0, 8.0, 60
#: Rows that torch.compile takes part in: a program takes it some ten seconds.
COMPILED: Final = "a,b"
#: Lines of a part's output that are printed when it ends.
SHOWN: Final = 12


#: The state of a part that ran when the session was asked to end.
ENDED: Final = "ended with the session"
#: How variables begin that no part gets: settings of xarr, and that scripts do not see the modules beside them.
FOREIGN: Final = ("XARR_", "PYTHONSAFEPATH")
#: A folder whose `sitecustomize` lets processes have CuPy on memory of the host.
ON_HOST: Final = CHECKOUT / "tests" / "cuda" / "host_wheel" / "startup"


class SessionEndedError(Exception):
    """The process was asked to end: it is to end what it has started, and to keep what is there."""


def _end(*_: object) -> None:
    raise SessionEndedError


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


def parts(folder: Path, commit: str, processes: int, seconds: float, is_small: bool = False) -> list[Part]:
    """The parts of a session in their order."""
    tests = (
        *("-m", "pytest", "-q", "-ra", "--tb=short", "-p", "no:cacheprovider", "-p", "no:randomly"),
        # What faults the device faults it for its own process; what hangs ends that, and the others go on.
        *("--cuda=gpu", "-p", "xdist", "-n", str(processes), "--dist=load"),  # The most telling come first.
        *("-o", f"faulthandler_timeout={HANGS}"),
    )
    size = ("--small",) if is_small else ()

    def seconds_of(share: float, grace: float) -> str:
        return f"{max(1.0, share * seconds - grace):.0f}"

    def measuring(name: str, script: str, share: float, *options: str) -> Part:
        own = (str(CHECKOUT / "benchmarks" / script), "--seconds", seconds_of(share, MEASURING_GRACE))
        return Part(name, (*own, "--json", str(folder / f"{name}.json"), *size, *options), share)

    def testing(name: str, share: float, *options: str, **variables: str) -> Part:
        own = (*tests, f"--junitxml={folder / name}.xml", f"--seconds={seconds_of(share, GRACE)}")
        return Part(name, (*own, *options), share, (*ORACLE, *variables.items()))

    rows = ("--quick", "--commit", commit)
    page = ("--unknown-first", str(CHECKOUT / "docs" / "gpu_benchmark.md"))
    by_compiler = ("--rows", COMPILED, "--dtypes", "float32", "--without", "cupy best,lazy,replay,jax")
    of_backend = ("-m", "gpu", "-k", "not the_tests_of_the_library", "--thorough", "tests/cuda")
    return [
        Part("doctor", ("-m", "xarr", "doctor"), 0.03),
        measuring("gpu", "gpu.py", 0.42, *rows, *page),
        measuring("choices", "gpu_choices.py", 0.15),
        testing("tests", 0.22, *of_backend),
        testing("library", 0.1, *[f"tests/lax/test_{name}.py" for name in LIBRARY], XARR_BACKEND="cupy"),
        measuring("compiled", "gpu.py", 0.08, *rows, *by_compiler),
    ]


def run(part: Part, folder: Path, seconds: float) -> Outcome:
    """Run a part for so many seconds at most, and end it with all that it has started.

    Where the session is asked to end meanwhile, its state is `ENDED`.
    """
    log = folder / f"{part.name.replace(' ', '_')}.log"
    started = time.monotonic()
    path = os.pathsep.join(
        [str(CHECKOUT), str(CHECKOUT / "backends"), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    # No plugin of pytest's but those that are named: what else is installed is nobody's choice.
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)},
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
        except SessionEndedError:
            state = ENDED
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-SHOWN:]
    return Outcome(part.name, state, time.monotonic() - started, [line[:300] for line in last])


def run_session(chosen: Sequence[Part], folder: Path, seconds: float) -> list[Outcome]:
    """Run parts one after the other, each within its share and what its predecessors have left of theirs."""
    outcomes: list[Outcome] = []

    def keep(*running: Outcome) -> None:
        new = folder / "session.json.new"
        new.write_text(json.dumps([asdict(each) for each in (*outcomes, *running)], indent=1), "utf-8")
        new.replace(folder / "session.json")

    started, planned = time.monotonic(), 0.0
    for part in chosen:
        planned += part.share * seconds
        keep(Outcome(part.name, "not ended", 0, []))
        outcome = run(part, folder, max(1.0, planned - (time.monotonic() - started)))
        outcomes.append(outcome)
        keep()
        print(
            f"--- {outcome.name}: {outcome.state}, {outcome.seconds:.0f} s",
            *outcome.last,
            sep="\n",
            flush=True,
        )
        if outcome.state == ENDED:
            break
    return outcomes


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path, help="where all output is written")
    parser.add_argument("--seconds", type=float, default=570, help="what all parts may take together")
    parser.add_argument(
        "--commit", default="unknown", help="the commit of this checkout, where git cannot tell"
    )
    parser.add_argument("--processes", type=int, default=14, help="processes of tests that share the device")
    parser.add_argument(
        "--on-host", action="store_true", help="a rehearsal: small sizes, CuPy's wheel on memory of the host"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, _end)
    if options.on_host:
        above = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ON_HOST), above]))
    options.folder.mkdir(parents=True, exist_ok=True)
    for needed in ("g++", "nvidia-smi"):
        if shutil.which(needed) is None:
            print(f"{needed} is not on the path: tests that need it are skipped", flush=True)
    folder, numbers = options.folder.resolve(), (options.processes, options.seconds)
    chosen = parts(folder, options.commit, *numbers, options.on_host)
    outcomes = run_session(chosen, options.folder, options.seconds)
    return int(any(outcome.state != "ended with 0" for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
