"""Marks of tests that hang on how the suite is run, and the choice of a few cases of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

import pytest

#: Of tests of what is computed at once: with this setting all operations are recorded and compiled.
COMPUTED_AT_ONCE: Final = pytest.mark.skipif(
    os.environ.get("XARR_FUSION") == "compiled", reason="then nothing is computed at once"
)


def choose_cases(cases: Mapping[str, Iterable[Hashable]], most: int) -> set[str]:
    """Of each test, `file::test[case]`, the cases with a value that none before has, and others up to `most`.

    cases: what each takes of the lists of its test.  The order is as good as drawn, and the same in every run.
    """
    tests: dict[str, list[str]] = {}
    for name in sorted(cases, key=lambda name: hashlib.sha256(name.encode()).digest()):
        tests.setdefault(name.partition("[")[0], []).append(name)
    chosen: set[str] = set()
    for names in tests.values():
        seen: set[Hashable] = set()
        others = []
        before = len(chosen)
        for name in names:
            values = {*cases[name]}
            (others.append if values <= seen else chosen.add)(name)
            seen |= values
        chosen.update(others[: max(0, most - (len(chosen) - before))])
    return chosen
