"""NumPy's classes under xarr's names: errors that `except` clauses of NumPy's catch, and `ndarray` called."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.support.functions import expression
from xarr.errors import AxisError, DTypeError

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


@pytest.mark.parametrize(
    ("dtype", "reason"),
    [
        ([("a", float)], r"no records: keep one array for each field, as in \{'a': xarr.zeros\(n\)\}$"),
        ("f4, i4, f4, i8", r"'f0': xarr.zeros\(n\), 'f1': xarr.zeros\(n\), 'f2': xarr.zeros\(n\), …\}"),
        (str, "no strings: keep them in a list"),
        ("S3", "no strings: keep them in a list"),
        ("datetime64[D]", r"no dates: count days, e\.g\. xarr\.asarray\("),
        ("timedelta64[s]", r"no durations: count seconds, e\.g\. xarr\.asarray\("),
        (object, "no Python objects"),
        (np.longdouble, "no extended precision: float64 is widest"),
        (np.clongdouble, "no extended precision: complex128 is widest"),
        ("V4", "wanted one of bool, int8"),
        ("flaot32", r"'flaot32' is not a dtype; did you mean float32\? wanted one of bool"),
    ],
    ids=str,
)
def test_an_element_type_of_numpys_alone_says_what_to_do(dtype: Any, reason: str) -> None:
    for call in (
        lambda: xarr.zeros(3, dtype=dtype),
        lambda: xarr.arange("2016-07", "2016-08", dtype=dtype),
        lambda: xarr.ones(2).astype(dtype),
    ):
        with pytest.raises(DTypeError, match=reason):
            call()


def test_what_is_advised_for_dates_durations_and_strings_works() -> None:
    dates = np.array(["2016-07-01", "2016-07-03"], "datetime64")
    assert (dates[0] + (xarr.asarray(dates.astype("datetime64[D]").astype(int))[1] - 16983).item()) == dates[
        1
    ]
    assert xarr.asarray((dates - dates[0]) / np.timedelta64(1, "s")).tolist() == [0, 172800]
    assert xarr.asarray(np.unique(["b", "a", "b"], return_inverse=True)[1]).tolist() == [1, 0, 1]
