"""Questions about how this Python was built."""

from __future__ import annotations

import sys
import sysconfig
from typing import Any

import pytest

from xarr.base.python_build import is_free_threaded


@pytest.mark.parametrize(("variable", "wanted"), [(None, False), (0, False), (1, True)])
def test_the_variable_of_the_build_decides(
    variable: Any, wanted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sysconfig, "get_config_var", {"Py_GIL_DISABLED": variable}.get)
    assert is_free_threaded.__wrapped__() is wanted


def test_this_python() -> None:
    """A build with a global lock always holds it."""
    holds_lock = getattr(sys, "_is_gil_enabled", lambda: True)()
    assert is_free_threaded() is ("t" in sys.abiflags)
    assert holds_lock or is_free_threaded()
