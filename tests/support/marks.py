"""Marks of tests that hang on how the suite is run, and the choice of a few cases of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from typing import Final

import pytest

#: Of tests of what is computed at once: with this setting all operations are recorded and compiled.
COMPUTED_AT_ONCE: Final = pytest.mark.skipif(
    os.environ.get("XARR_FUSION") == "compiled", reason="then nothing is computed at once"
)


def choose_cases(names: Iterable[str], most: int) -> set[str]:
    """Of each test, `file::test[case]`, so many cases at most: as good as drawn, and the same in every run."""
    cases: dict[str, list[str]] = {}
    for name in names:
        cases.setdefault(name.partition("[")[0], []).append(name)
    drawn = [sorted(each, key=lambda name: hashlib.sha256(name.encode()).digest()) for each in cases.values()]
    return {name for each in drawn for name in each[:most]}
