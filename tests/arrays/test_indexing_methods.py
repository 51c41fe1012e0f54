"""Methods of Array that take, find and change elements: each is the function of NumPy's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr.errors import ArgumentError, IndexingError, ShapeError, ValueRangeError

HOST = np.array([[3.0, -1.0, 2.0], [0.0, 5.0, -0.0]])
COUNTS = np.array([3, 1, 2, 0], np.int64)
#: What the method gives, of an Array or of NumPy's.
CALLS: dict[str, Callable[[Any], Any]] = {
    "take": lambda x: x.take([1, 0, 1], 1),
    "take of all": lambda x: x.take([[5, 0]]),
    "take, clipped": lambda x: x.take([9, -9], 0, None, "clip"),
    "compress": lambda x: x.compress([True, False, True], 1),
    "compress of all": lambda x: x.compress([False, True]),
    "nonzero": lambda x: x.nonzero(),
    "searchsorted": lambda x: x[0].searchsorted([2.0, 9.0], "right", [1, 2, 0]),
    "argpartition": lambda x: x.argpartition(2, 1)[:, 2],
    "diagonal": lambda x: x.diagonal(1),
    "diagonal of other axes": lambda x: x.diagonal(-1, 1, 0),
    "trace": lambda x: x.trace(1, 0, 1, np.float32),
    "view": lambda x: x.view(np.int32),
    "flat": lambda x: x.flat[2:5],
}
#: What the method does to the array.
CHANGES: dict[str, Callable[[Any], object]] = {
    "fill": lambda x: x.fill(7),
    "put": lambda x: x.put([0, 4], [10, 20]),
    "put, repeated": lambda x: x.put([0, 4, 5], [10, 20]),
    "put, wrapped": lambda x: x.put([7, -8], [1, 2], "wrap"),
    "sort": lambda x: x.sort(),
    "sort of columns": lambda x: x.sort(0, stable=True),
    "partition": lambda x: x.partition(1, 1),
    "flat": lambda x: setattr(x, "flat", [1, 2]),
    "resize": lambda x: x.resize((4, 2), refcheck=False),
    "resize to less": lambda x: x.resize(2, refcheck=False),
    "resize to nothing": lambda x: x.resize(0, 5, refcheck=False),
}


@pytest.mark.parametrize("name", CALLS)
def test_results(name: str) -> None:
    got, wanted = CALLS[name](xarr.asarray(HOST)), CALLS[name](HOST)
    assert isinstance(got, tuple) is isinstance(wanted, tuple)
    pairs = zip(got, wanted, strict=True) if isinstance(wanted, tuple) else [(got, wanted)]
    for one, other in pairs:
        assert_same(one, np.asarray(other))


@pytest.mark.parametrize("name", CHANGES)
def test_changes(name: str) -> None:
    host = HOST.copy()
    x = xarr.asarray(host)
    other = x.copy()
    assert CHANGES[name](x) is None
    CHANGES[name](host)
    assert_same(x, host)
    assert_same(other, HOST)


def test_choices_of_a_sequence_or_of_arrays() -> None:
    index, choices = np.array([2, 0, 1]), [np.arange(3), np.arange(3) + 10, np.arange(3) + 20]
    wanted = np.array([20, 1, 12])
    x = xarr.asarray(index)
    assert_same(x.choose(choices), wanted)
    assert_same(x.choose(*choices), wanted)
    assert_same((x + 1).choose(*choices, mode="wrap"), (index + 1).choose(choices, mode="wrap"))
    with pytest.raises(IndexingError):
        (x + 1).choose(*choices).tolist()


@pytest.mark.parametrize("name", ["take", "compress", "trace"])
def test_results_in_an_array(name: str) -> None:
    arguments: dict[str, dict[str, Any]] = {
        "take": {"indices": [2, 0], "axis": 1},
        "compress": {"condition": [False, True], "axis": 0},
        "trace": {"offset": 1},
    }
    wanted = np.asarray(getattr(HOST, name)(**arguments[name]))
    out = xarr.zeros(wanted.shape)
    assert getattr(xarr.asarray(HOST), name)(**arguments[name], out=out) is out
    assert_same(out, wanted)


def test_bytes() -> None:
    x = xarr.asarray(HOST)
    assert x.tobytes() == bytes(x) == HOST.tobytes()
    assert x.tobytes("F") == HOST.tobytes("F")
    assert bytes(xarr.asarray(COUNTS)) == COUNTS.tobytes()
    assert bytes(xarr.asarray(3)) == bytes(3), "an integer without dimensions is a count"


def test_refusals() -> None:
    x = xarr.asarray(HOST)
    with pytest.raises(ShapeError, match="fill: wanted a scalar"):
        x.fill([1, 2])
    with pytest.raises(ArgumentError, match="resize: wanted an array that owns its data"):
        x[0].resize(2)
    with pytest.raises(ValueRangeError, match=r"xarr\.delete"):
        del x[0]
    assert_same(x, HOST)
    x.resize()
    x.resize(None)
    assert_same(x, HOST)
