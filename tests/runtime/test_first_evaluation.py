"""How many calls of Python it takes to record and to compute a small program for the first time, and again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr


def calls_of_python(function: Callable[[], Any]) -> int:
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(note)
    try:
        function()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.implicit
@pytest.mark.usefixtures("on_numpy")
def test_first_evaluation_of_a_small_program_asks_for_no_pass_in_vain() -> None:
    """Every pass that looks at each node takes some twenty calls, and a plan with its text a hundred."""
    warm, x, v = (xarr.asarray(np.ones(shape)) for shape in ((5, 7), (2, 3), (3,)))
    with xarr.config(verify_graphs=False, fusion="auto"):
        np.asarray(warm - warm[0])
        sums = []
        assert calls_of_python(lambda: sums.append(x + v)) <= 60
        assert calls_of_python(lambda: np.asarray(sums[0])) <= 215
        again = x + v
        assert calls_of_python(lambda: np.asarray(again)) <= 30
