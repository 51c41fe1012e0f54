"""How many calls of Python it takes to record and to compute a small program for the first time, and again."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.support.checkout import CHECKOUT

#: In a process of its own: what other tests left, caches and garbage, would be counted too.
PROGRAM = """
import gc, sys
import numpy as np
import xarr

def calls_of_python(function):
    count = 0

    def note(frame, event, argument):
        nonlocal count
        count += event == "call"

    gc.disable()
    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count

warm, x, v = (xarr.asarray(np.ones(shape)) for shape in ((5, 7), (2, 3), (3,)))
np.asarray(warm - warm[0])
sums = []
print(calls_of_python(lambda: sums.append(x + v)))
print(calls_of_python(lambda: np.asarray(sums[0])))
sums.clear()
print(calls_of_python(lambda: sums.append(x + v)))
print(calls_of_python(lambda: np.asarray(sums[0])))
"""


@pytest.mark.implicit
@pytest.mark.usefixtures("on_numpy")
def test_calls_of_python_that_a_small_program_takes_at_first_and_again() -> None:
    """Every pass that looks at each node takes some twenty calls, and a plan with its text a hundred.

    At once, the sum of small arrays takes 13 calls the second time.

    Again, there are 9 calls to record the sum and 16 to compute it, without list comprehensions and some getters: what
    looks up one more setting for each evaluation, or hands on to one more function, is seen here.
    """
    record, first, record_again, again = _counts("lazy")
    assert record <= 64
    assert first <= 223
    assert record_again <= 9
    assert again <= 22
    *_, at_once, seen = _counts("eager")
    assert at_once <= 16
    assert seen <= 9


def _counts(small_arrays: str) -> list[int]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("XARR_")}
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=CHECKOUT,
        env={**env, "XARR_SMALL_ARRAYS": small_arrays},
        capture_output=True,
        text=True,
        check=True,
    )
    return [int(count) for count in ran.stdout.split()]
