"""The programs of given seeds, of which those that fail are shown, made smaller.

`python -m tests.support.source_programs 0 100` runs the first hundred, as the tests do; with `--way` all in one way.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
import warnings

import numpy as np

import xarr
from tests.support.source_programs.running import ORACLES, WAYS, check, draw
from tests.support.source_programs.shrinking import minimise
from tests.support.source_programs.text import Program


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("first", type=int)
    parser.add_argument("end", type=int)
    parser.add_argument("--way", choices=WAYS)
    parser.add_argument("--oracle", choices=ORACLES)
    parser.add_argument("--seconds", type=float, default=60, help="to make a program smaller")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    xarr.config.verify_graphs = True
    failed, begin = 0, time.process_time()
    for seed in range(options.first, options.end):
        program, way, oracle = draw(seed)
        way, oracle = options.way or way, options.oracle or oracle
        if options.show:
            print(program, flush=True)
        failed += run(program, seed, way, oracle, options.seconds)
        if seed % 100 == 99:
            print(f"... {seed + 1}, {(time.process_time() - begin):.0f} s, {failed} failed", flush=True)
    print(
        f"{options.end - options.first} programs, {failed} failed, {time.process_time() - begin:.1f} s of processor"
    )


def run(program: Program, seed: int, way: str, oracle: str, seconds: float) -> bool:
    """Show a program that fails, made smaller; whether it does."""
    error = find_error(program, seed, way, oracle)
    if error is None:
        return False
    kind, text = type(error), str(error)
    print(f"=== seed {seed}, {way}, by {oracle}: {kind.__name__}: {text[:600]}", flush=True)
    if kind is not AssertionError:
        traceback.print_exception(error, limit=-3, file=sys.stdout)

    def fails(each: Program) -> bool:
        other = find_error(each, seed, way, oracle)
        return type(other) is kind and (kind is AssertionError or str(other)[:30] == text[:30])

    print(minimise(program, fails, seconds), flush=True)
    return True


def find_error(program: Program, seed: int, way: str, oracle: str) -> Exception | None:
    try:
        check(program, seed, way, oracle)
    except Exception as error:
        return error
    return None


if __name__ == "__main__":
    main()
