"""Arrays whose sizes are known only when the program runs, against NumPy on their live parts and XLA."""

from __future__ import annotations

import pytest

from tests.dynamic_cases import CASES, Case
from tests.support.dynamic import check_on, check_with_xla

pytestmark = pytest.mark.filterwarnings("error")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "numpy", poisoned=True)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "reference", poisoned=False)


@pytest.mark.parametrize("case", [case for case in CASES if not case.unlike_xla], ids=lambda case: case.name)
def test_as_xla(case: Case) -> None:
    check_with_xla(case)
