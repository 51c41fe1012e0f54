"""The command line: `python -m xarr explain "(5,1) - (5,)"`, `python -m xarr doctor` and `python -m xarr run`.

`python -m xarr run module.mlir --input x.npy --output y.npy` runs a StableHLO module.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from xarr import stablehlo
from xarr.doctor import report
from xarr.errors import XarrError
from xarr.explanation.broadcast import BroadcastExplanation, explain_expression


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m xarr", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    explain = commands.add_parser("explain", help="explain how shapes broadcast, or why they do not")
    explain.add_argument("expression", help='for example "(5,1) - (5,)" or "f32[3,4] + f32[3]"')
    explain.add_argument("--format", choices=("text", "html", "svg"), default="text")
    explain.add_argument("--output", type=Path, help="write to this file instead of the terminal")
    commands.add_parser("doctor", help="versions, backends, devices and why one is missing")
    run = commands.add_parser("run", help="run a function of a StableHLO module on arrays in .npy files")
    run.add_argument("module", type=Path, help="the text of the module")
    run.add_argument(
        "--input", type=Path, nargs="+", default=[], action="extend", help="one .npy file for each argument"
    )
    run.add_argument(
        "--output", type=Path, nargs="+", default=[], action="extend", help="one for each result"
    )
    run.add_argument("--function", default="main")
    run.add_argument("--backend", help="where to compute; default: that of the configuration")
    return parser


def _rendered(explanation: BroadcastExplanation, style: str) -> str:
    views = {"text": explanation.text, "html": explanation.html, "svg": explanation.svg}
    return views[style]()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns the exit status: 0, 1 for shapes that do not broadcast, 2 for bad input."""
    options = _parser().parse_args(arguments)
    if options.command == "doctor":
        print(report())
        return 0
    if options.command == "run":
        return _run(options)
    try:
        explanation = explain_expression(options.expression)
    except XarrError as error:
        print(f"xarr explain: {error}", file=sys.stderr)
        return 2
    text = _rendered(explanation, options.format)
    if options.output is None:
        print(text)
    else:
        try:
            options.output.write_text(text, encoding="utf-8")
        except OSError as error:
            print(f"xarr explain: cannot write {options.output}: {error.strerror}", file=sys.stderr)
            return 2
    return 0 if explanation.alignment and not explanation.problem else 1


def _run(options: argparse.Namespace) -> int:
    """Run a module; results without an output file are printed."""
    try:
        module = stablehlo.load(options.module)
        inputs = [np.load(path, allow_pickle=False) for path in options.input]
        results = stablehlo.run(module, *inputs, function=options.function, backend=options.backend)
        if len(options.output) not in (0, len(results)):
            print(
                f"xarr run: wanted {len(results)} files for --output, got {len(options.output)}",
                file=sys.stderr,
            )
            return 2
        values = [np.asarray(result) for result in results]
    except (XarrError, OSError, ValueError) as error:
        print(f"xarr run: {error}", file=sys.stderr)
        return 2
    if not options.output:
        for value in values:
            print(value)
    for path, value in zip(options.output, values, strict=False):
        with path.open("wb") as file:
            np.save(file, value)
    return 0


if __name__ == "__main__":
    sys.exit(main())
