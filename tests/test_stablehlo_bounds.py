"""Dynamic sizes with bounds in StableHLO text: printing, reading, running."""

from __future__ import annotations

import numpy as np
import pytest

from xarr import stablehlo
from tests.dynamic_cases import CASES, Case
from tests.test_dynamic_sizes import module_of
from tests.xla import parse

F32 = np.dtype(np.float32)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_round_trip(case: Case) -> None:
    text = module_of(case)
    assert str(stablehlo.parse(text).main) == text


@pytest.mark.parametrize(
    "case", [c for c in CASES if "StableHLO" not in c.unlike_xla], ids=lambda case: case.name
)
def test_mlir_reads_what_is_printed(case: Case) -> None:
    parse(module_of(case))
