"""Arrays whose sizes are known only when the program runs, against NumPy on their live parts and XLA."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.dynamic_cases import BOUNDS, CASES, Case
from xarr import lax

pytestmark = pytest.mark.filterwarnings("error")


def late(value: int) -> Any:
    """An int32 scalar that is no constant."""
    return lax.reshape(xarr.asarray(np.array([value], np.int32)), ())


def check_on(case: Case, backend: str, poisoned: bool) -> None:
    arrays = case.arrays()
    with xarr.use_backend(backend):
        for sizes in case.sizes():
            given = case.poisoned(arrays, sizes) if poisoned else arrays
            operands = [xarr.asarray(array) for array in given]
            result = case.apply(operands, {letter: late(size) for letter, size in sizes.items()})
            try:
                assert_same(np.asarray(result), case.oracle(*case.live(arrays, sizes)))
            except AssertionError as error:
                raise AssertionError(f"{case.name} at {sizes}: {error}") from error


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "numpy", "set_again" not in case.name)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference_as_numpy_on_the_live_part(case: Case) -> None:
    check_on(case, "reference", False)
