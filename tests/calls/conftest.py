"""How calls are remembered in tests, whatever the run is about."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import xarr
from tests.calls.remembered_tables import table_in_force
from xarr.calls import remembered_calls


@pytest.fixture
def eager() -> Iterator[None]:
    """Settings under which calls are remembered."""
    with xarr.config(fusion="auto", small_arrays="eager", broadcasting="numpy"):
        yield


@pytest.fixture
def at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is remembered when it comes for the first time."""
    monkeypatch.setattr(remembered_calls, "CALLS_BEFORE", 0)
    table_in_force().clear()
