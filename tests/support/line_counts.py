"""The work of a call as a number that no other load of the machine changes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def count_lines(function: Callable[[], object]) -> int:
    """The lines of xarr that a call runs, each iteration of a loop counted."""
    count = 0

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        nonlocal count
        if "xarr" not in frame.f_code.co_filename:
            return None
        count += event in ("line", "call")  # a generator is called for each of its values
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(before)
    return count
