"""The command line: `python -m xarr explain "(5,1) - (5,)"` and `python -m xarr doctor`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

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


if __name__ == "__main__":
    sys.exit(main())
