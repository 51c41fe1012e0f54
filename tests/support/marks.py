"""Marks of tests that hang on how the suite is run."""

from __future__ import annotations

import os
from typing import Final

import pytest

#: Of tests of what is computed at once: with this setting all operations are recorded and compiled.
COMPUTED_AT_ONCE: Final = pytest.mark.skipif(
    os.environ.get("XARR_FUSION") == "compiled", reason="then nothing is computed at once"
)
