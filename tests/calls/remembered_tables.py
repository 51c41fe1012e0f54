"""The table of remembered calls, for tests."""

from __future__ import annotations

from xarr.calls import remembered_calls
from xarr.calls.repeated_calls import RepeatedCall


def table_in_force() -> remembered_calls.RememberedCalls:
    """The table under the settings in force, under which calls are remembered."""
    table = remembered_calls.remembered_calls()
    assert table is not None
    return table


def repeated_calls() -> list[RepeatedCall]:
    """The calls that are remembered, and recorded again when they come."""
    return [program for program in table_in_force().values() if isinstance(program, RepeatedCall)]
