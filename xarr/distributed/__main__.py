"""Run a script as several replicas: `mpiexec -n 4 python -m xarr.distributed script.py`, processes under MPI, or
`python -m xarr.distributed -n 4 script.py`, threads of one process.
"""

from __future__ import annotations

import argparse
import os
import runpy
import sys
from collections.abc import Sequence

from xarr.distributed.launch import run_script
from xarr.distributed.simulation import simulate
from xarr.errors import CommunicationError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m xarr.distributed", description=__doc__)
    parser.add_argument(
        "-n", type=int, metavar="N", help="run N replicas as threads of this process, without MPI"
    )
    parser.add_argument("script", help="a Python program, which all replicas run")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="for the script, in sys.argv")
    options = parser.parse_args(arguments)
    if not os.path.isfile(options.script):
        parser.error(f"there is no file {options.script}")
    try:
        _run(options)
    except CommunicationError as error:
        if options.n is None and str(error).startswith("distributed:"):
            print(f"xarr.{error}", file=sys.stderr)
            return 2
        raise
    return 0


def _run(options: argparse.Namespace) -> None:
    if options.n is None:
        run_script(options.script, options.arguments)
        return
    sys.argv = [options.script, *options.arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(options.script)))
    simulate(options.n, runpy.run_path, options.script, run_name="__main__")


if __name__ == "__main__":
    sys.exit(main())
