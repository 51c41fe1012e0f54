"""Marks of tests that hang on how the suite is run, and the choice of a few cases of each."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from typing import Final

import pytest

#: Of tests of what is computed at once: with this setting all operations are recorded and compiled.
COMPUTED_AT_ONCE: Final = pytest.mark.skipif(
    os.environ.get("XARR_FUSION") == "compiled", reason="then nothing is computed at once"
)


def choose_cases(cases: Mapping[str, Iterable[Hashable]], least: int, times: int = 1) -> set[str]:
    """Of the cases of a test, so many that each value occurs `times`, if it occurs as often, and `least` at any rate.

    cases: by their names what each takes of the lists of the test.  Those of which no value occurs often enough yet are
    chosen first.  The order is as good as drawn, and the same in every run.
    """
    names = sorted(cases, key=lambda name: hashlib.sha256(name.encode()).digest())
    counts: Counter[Hashable] = Counter()
    chosen: set[str] = set()
    for is_wanted in (all, any):
        for name in names:
            values = {*cases[name]}
            if name not in chosen and is_wanted(counts[value] < times for value in values):
                chosen.add(name)
                counts.update(values)
    others = [name for name in names if name not in chosen]
    return chosen.union(others[: max(0, least - len(chosen))])
