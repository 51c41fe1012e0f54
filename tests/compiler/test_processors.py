"""How many threads the loops of a call share."""

from __future__ import annotations

import os

import pytest

from xarr.compiler import processors
from xarr.errors import ConfigError
from xarr_numpy import workers


@pytest.fixture(autouse=True)
def without_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    """No variable decides, and nothing is asked but what a test adds."""
    monkeypatch.delenv("XARR_THREADS", raising=False)
    monkeypatch.setattr(processors, "_asked", [])


def test_all_processors_by_default() -> None:
    assert processors.count() == processors.available() >= 1
    if hasattr(os, "sched_getaffinity"):
        assert processors.available() == len(os.sched_getaffinity(0))


def test_a_variable_says_another_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XARR_THREADS", "7")
    processors.ask_first(lambda: 1)
    assert processors.count() == workers.count() == 7


@pytest.mark.parametrize("text", ["", "auto"])
def test_a_variable_without_a_number_says_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XARR_THREADS", text)
    assert processors.count() == processors.available()


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5"])
def test_other_variables_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XARR_THREADS", text)
    with pytest.raises(ConfigError, match=f'XARR_THREADS: wanted a positive integer or "auto", got {text!r}'):
        processors.count()


def test_the_last_that_knows_decides() -> None:
    processors.ask_first(lambda: 3)
    assert processors.count() == 3
    processors.ask_first(lambda: None)
    assert processors.count() == 3
    processors.ask_first(lambda: 1)
    assert processors.count() == 1
