"""The command line: `xarr explain "(5,1) - (5,)"`, `xarr puzzles`, `xarr puzzle 7 "a[:, None] + b"`, `xarr quiz`,
`xarr doctor`, `xarr doctor script.py`, which lists the implicit broadcasts of a program, and `xarr run module.mlir
--input x.npy --output y.npy`, which runs a StableHLO module.  `python -m xarr` is the command where no script is on the
path.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import sys
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from xarr import __version__, stablehlo
from xarr.broadcast_trace import LEVELS, trace_broadcasts
from xarr.doctor import report
from xarr.errors import InputError, XarrError
from xarr.explainers.recorded_ops import Explained
from xarr.explainers.written_calls import EXAMPLES, explain_any
from xarr.puzzles import commands as puzzles
from xarr.runtime.materialisation import evaluate

_FORMATS: Final = ("text", "html", "svg", "json")


def _program() -> str:
    """The words that started this: `xarr`, or `python -m xarr`."""
    return "xarr" if Path(sys.argv[0]).stem == "xarr" else "python -m xarr"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=_program(), description=__doc__)
    parser.add_argument("--version", action="version", version=f"xarr {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="explain what shapes, an index, a call or a layout do")
    explain.add_argument("expression", help=f"for example {', '.join(EXAMPLES)}".replace("%", "%%"))
    explain.add_argument("--format", choices=_FORMATS, default="text")
    explain.add_argument("--output", type=Path, help="write to this file instead of the terminal")
    puzzles.add_commands(commands)
    _add_doctor(commands.add_parser("doctor", help="what is installed; or a script's implicit broadcasts"))
    run = commands.add_parser("run", help="run a function of a StableHLO module on arrays in .npy files")
    run.add_argument("module", type=Path, help="the text of the module")
    for option, what in (("--input", "argument"), ("--output", "result")):
        help = f"one .npy file for each {what}"
        run.add_argument(option, type=Path, nargs="+", default=[], action="extend", help=help)
    run.add_argument("--function", default="main")
    run.add_argument("--backend", help="where to compute; default: that of the configuration")
    run.add_argument(
        "--progress",
        action=argparse.BooleanOptionalAction,
        help="show on standard error how far a long program is; default: on a terminal",
    )
    return parser


def _add_doctor(doctor: argparse.ArgumentParser) -> None:
    doctor.description = (
        "Without a script: versions, backends, devices and why one is missing.  With one: run it, then list its "
        "implicit broadcasts.  The exit status is 1 if there are some of the level --fail-on, 2 if the script fails."
    )
    doctor.add_argument("script", type=Path, nargs="?", help="a Python program that uses xarr")
    doctor.add_argument("arguments", nargs=argparse.REMAINDER, help="what the script gets")
    doctor.add_argument("--json", type=Path, help="also write the list to this file, as JSON")
    doctor.add_argument(
        "--fail-on",
        choices=(*LEVELS, "never"),
        default="ambiguous",
        help="outer: results larger than each operand; ambiguous (the default): these, and where another alignment "
        "fits too; any: each implicit broadcast",
    )


def _render(explanation: Explained, style: str) -> str:
    if style == "json":
        return json.dumps(explanation.to_dict(), indent=2)
    views = {"text": explanation.text, "html": explanation.html, "svg": explanation.svg}
    return views[style]()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1 for shapes that do not fit and wrong answers, 2 for bad input."""
    try:
        try:
            return _command(_parser().parse_args(arguments))
        finally:
            sys.stdout.flush()
    except BrokenPipeError:
        # The reader (`| head`) has enough.  Python flushes once more on exit: into nothing.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _command(options: argparse.Namespace) -> int:
    try:
        return _COMMANDS[options.command](options)
    except BrokenPipeError:
        raise
    except OSError as error:
        reason = f"cannot open {error.filename}: {error.strerror}" if error.filename else str(error)
    except XarrError as error:
        reason = str(error)
    print(f"xarr {options.command}: {reason}", file=sys.stderr)
    return 2


def _doctor(options: argparse.Namespace) -> int:
    if options.script is None:
        print(report())
        return 0
    with trace_broadcasts() as trace:
        failed = _run_script(options.script, options.arguments)
    print(trace.text())
    if options.json is not None:
        options.json.write_text(trace.json() + "\n", encoding="utf-8")
    if failed:
        return 2
    return 1 if options.fail_on != "never" and trace.at_least(options.fail_on) else 0


def _run_script(script: Path, arguments: list[str]) -> bool:
    """Run a program as `python script arguments` does; whether it failed, after its error is printed."""
    with script.open("rb"):  # the error of a file that is none names it
        pass
    before = sys.argv, sys.path[:]
    sys.argv, sys.path[:] = [str(script), *arguments], [str(script.resolve().parent), *sys.path]
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as ended:
        if isinstance(ended.code, str):
            print(ended.code, file=sys.stderr)
        return ended.code not in (None, 0)
    except Exception:  # whatever a program raises ends it, and Python shows it
        traceback.print_exc()
        return True
    finally:
        sys.argv, sys.path[:] = before[0], before[1]
    return False


def _puzzles(options: argparse.Namespace) -> int:
    print(puzzles.list_puzzles())
    return 0


def _puzzle(options: argparse.Namespace) -> int:
    text, status = puzzles.run_puzzle(options)
    print(text)
    return status


def _quiz(options: argparse.Namespace) -> int:
    text, status = puzzles.run_quiz(options)
    print(text)
    return status


def _explain(options: argparse.Namespace) -> int:
    explanation = explain_any(options.expression)
    text = _render(explanation, options.format)
    if options.output is None:
        print(text)
    else:
        options.output.write_text(text, encoding="utf-8")
    return 0 if explanation.fits else 1


def _run(options: argparse.Namespace) -> int:
    """Run a module; results without an output file are printed."""
    module = stablehlo.load(options.module)
    inputs = [_array_in(path) for path in options.input]
    results = stablehlo.run(module, *inputs, function=options.function, backend=options.backend)
    if len(options.output) not in (0, len(results)):
        raise InputError(f"wanted {len(results)} files for --output, got {len(options.output)}")
    shown = sys.stderr.isatty() if options.progress is None else options.progress
    evaluate(*results, progress=options.function if shown else False)
    values = [np.asarray(result) for result in results]
    if not options.output:
        for value in values:
            print(value)
    for path, value in zip(options.output, values, strict=False):
        with path.open("wb") as file:
            np.save(file, value)
    return 0


def _array_in(path: Path) -> np.ndarray[Any, Any]:
    """The array of a .npy file; InputError for any other file."""
    try:
        contents = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        # NumPy's own words offer allow_pickle=, which would run whatever the file says.
        reason = "it holds Python objects" if "Object arrays" in str(error) else "it is none, or is damaged"
        raise InputError(
            f"wanted an array of numbers in the .npy file {path}, but {reason}; write one by numpy.save"
        ) from None
    if not isinstance(contents, np.ndarray):
        with contents:
            raise InputError(f"wanted one array in {path}, got an archive of {', '.join(contents)}")
    return contents


_COMMANDS: Final[dict[str, Callable[[argparse.Namespace], int]]] = {
    "doctor": _doctor,
    "explain": _explain,
    "puzzle": _puzzle,
    "puzzles": _puzzles,
    "quiz": _quiz,
    "run": _run,
}
#: What a shell reports for a program that the signal SIGPIPE ends.
_BROKEN_PIPE: Final = 141


if __name__ == "__main__":
    sys.exit(main())
