"""NumPy's classes under xarr's names: errors that `except` clauses of NumPy's catch, and `ndarray` called."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.functions import expression
from xarr.errors import AxisError

CALLS = [
    "xp.sum(x, axis=5)",
    "xp.concatenate([x, x], axis=-4)",
    "xp.moveaxis(x, 0, 2)",
    "xp.sort(x, axis=2)",
    "xp.expand_dims(x, 7)",
    "x.cumsum(axis=3)",
]


@pytest.mark.parametrize("text", CALLS)
def test_an_axis_out_of_range_is_numpys_axis_error_with_its_attributes(text: str) -> None:
    call = expression(text)
    with pytest.raises(np.exceptions.AxisError) as wanted:
        call(np, np.ones((2, 3)))
    with pytest.raises(np.exceptions.AxisError) as found:
        call(xarr, xarr.ones((2, 3)))
    assert isinstance(found.value, AxisError | ValueError | IndexError)
    assert (found.value.axis, found.value.ndim) == (wanted.value.axis, wanted.value.ndim)
    assert str(found.value.axis) in str(found.value)


def test_an_axis_error_is_made_as_numpys() -> None:
    error = AxisError(3, 2, "f")
    assert (error.axis, error.ndim) == (3, 2)
    assert str(error) == "f: axis 3 is out of range for an array of rank 2"
    assert str(AxisError("wanted another axis")) == "wanted another axis"
    assert AxisError("wanted another axis").axis is None


@pytest.mark.parametrize("through", [copy.copy, lambda error: pickle.loads(pickle.dumps(error))])
def test_an_axis_error_is_copied_with_its_attributes(through: Any) -> None:
    with pytest.raises(AxisError) as caught:
        xarr.sum(xarr.ones(2), axis=5)
    other = through(caught.value)
    assert type(other) is AxisError
    assert (str(other), other.axis, other.ndim) == (str(caught.value), 5, 1)
