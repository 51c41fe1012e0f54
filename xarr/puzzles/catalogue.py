"""All puzzles in order, and one by its number."""

from __future__ import annotations

import operator
from typing import Any, Final

from xarr.errors import InputError
from xarr.puzzles.first_chapters import ONE_LINERS, PREDICTIONS, REPAIRS
from xarr.puzzles.last_chapters import COSTS, GATHERS, OPS
from xarr.puzzles.records import Puzzle

PUZZLES: Final = (*PREDICTIONS, *REPAIRS, *ONE_LINERS, *OPS, *GATHERS, *COSTS)


def puzzle(number: Any) -> Puzzle:
    """The puzzle of a number; InputError for others."""
    try:
        at = operator.index(number)
    except TypeError:
        at = 0
    if not 1 <= at <= len(PUZZLES):
        raise InputError(f"wanted the number of a puzzle, 1 to {len(PUZZLES)}, got {number!r}")
    return PUZZLES[at - 1]
