"""Small arrays of NumPy's in other orders than C's, as arguments of calls that are remembered."""

from __future__ import annotations

import numpy as np
import pytest

import xarr
from tests.calls.remembered_tables import table_in_force

pytestmark = pytest.mark.usefixtures("on_numpy", "eager")


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
@pytest.mark.parametrize("name", ["std", "var"])
def test_each_call_gives_the_same_bits(name: str, dtype: str) -> None:
    """NumPy adds in the order in which elements lie."""
    table_in_force().clear()
    function = getattr(xarr, name)
    array = np.asfortranarray(np.random.default_rng(0).standard_normal((20, 20)).astype(dtype))
    results = [np.asarray(function(array, axis=0)) for _ in range(12)]
    assert [np.array_equal(each, results[0]) for each in results] == [True] * 12
