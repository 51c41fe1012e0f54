"""NumPy's classes under xarr's names: errors that `except` clauses of NumPy's catch, and `ndarray` called."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.functions import expression
from xarr.errors import ArgumentError, AxisError, DTypeError, PartUpdateWarning, ShapeError
from xarr.runtime.materialisation import to_host

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
    with pytest.raises(np.exceptions.AxisError) as error:
        call(xarr, xarr.ones((2, 3)))
    assert isinstance(error.value, AxisError | ValueError | IndexError)
    assert (error.value.axis, error.value.ndim) == (wanted.value.axis, wanted.value.ndim)
    assert str(error.value.axis) in str(error.value)


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


@pytest.mark.parametrize("through", [copy.deepcopy, lambda error: pickle.loads(pickle.dumps(error))])
@pytest.mark.parametrize("run", [lambda f: f, xarr.jit], ids=["eager", "jit"])
def test_an_error_of_a_value_goes_to_another_process(run: Any, through: Any) -> None:
    """With the line that it names, but without the graph: a worker of joblib or multiprocessing sends it."""
    with pytest.raises(xarr.linalg.LinAlgError) as caught:
        to_host(run(xarr.linalg.cholesky)(-xarr.eye(2)))
    other = through(caught.value)
    assert (type(other), str(other)) == (type(caught.value), str(caught.value))
    assert other.__notes__ == caught.value.__notes__


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
    days = (xarr.asarray(dates.astype("datetime64[D]").astype(int))[1] - 16983).item()
    assert dates[0] + np.timedelta64(days, "D") == dates[1]
    assert xarr.asarray((dates - dates[0]) / np.timedelta64(1, "s")).tolist() == [0, 172800]
    assert xarr.asarray(np.unique(["b", "a", "b"], return_inverse=True)[1]).tolist() == [1, 0, 1]


@pytest.mark.parametrize("dtype", ["bool", "uint8", ">i4", "float32", "complex64"])
def test_ndarray_called_makes_zeros_or_reads_a_buffer(dtype: str) -> None:
    for call in (
        "xp.ndarray((2, 3), d)",
        "xp.ndarray(shape=(4,), dtype=d)",
        "xp.ndarray(3)",
        "xp.ndarray((0, 2), d)",
    ):
        wanted = eval(call, {"xp": np, "d": dtype})
        result = eval(call, {"xp": xarr, "d": dtype})
        assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype.newbyteorder("="))
        assert not np.asarray(result).any()
    memory = bytes(np.arange(60, dtype="uint8") % 2)
    for arguments in (
        {},
        {"offset": 8},
        {"order": "F"},
        {"strides": (np.dtype(dtype).itemsize, np.dtype(dtype).itemsize)},
    ):
        wanted = np.ndarray((2, 3), dtype, memory, **arguments)
        assert_same(
            xarr.ndarray((2, 3), dtype, memory, **arguments), wanted.astype(wanted.dtype.newbyteorder("="))
        )


def test_ndarray_called_refuses_what_leaves_the_buffer() -> None:
    with pytest.raises(ArgumentError, match=r"ndarray: .*buffer"):
        xarr.ndarray((20,), "f8", bytes(10))
    with pytest.raises(ArgumentError, match="wanted no strides without a buffer"):
        xarr.ndarray((2,), "f8", strides=(16,))
    with pytest.raises(ArgumentError, match="wanted order"):
        xarr.ndarray((2, 2), "f8", order="F")
    assert isinstance(xarr.ndarray(2), xarr.ndarray)
    assert xarr.ndarray((2,), "u1", buffer=xarr.ones(1, "u2")).tolist() == [1, 0]


KINDS = [
    "bool",
    "int8",
    "uint16",
    "int32",
    "float16",
    "float32",
    "uint64",
    "float64",
    "complex64",
    "complex128",
]


@pytest.mark.parametrize("old", KINDS)
@pytest.mark.parametrize("new", KINDS)
@pytest.mark.parametrize("shape", [(), (4,), (3, 8), (2, 1), (0, 2), (2, 0), (1, 2, 6)], ids=str)
def test_a_view_has_the_same_bits(old: str, new: str, shape: tuple[int, ...]) -> None:
    size = int(np.prod(shape)) * np.dtype(old).itemsize
    raw = np.random.default_rng(0).integers(0, 2 if "bool" in (old, new) else 256, size, "uint8")
    x = raw.view(old).reshape(shape) if size else np.zeros(shape, old)
    for form in (lambda v: v.view(new), xarr.jit(lambda v: v.view(new))):
        try:
            wanted = x.view(new)
        except ValueError:
            with pytest.raises(ShapeError, match="view: "):
                form(xarr.asarray(x))
        else:
            result = np.asarray(form(xarr.asarray(x)))
            assert (result.shape, result.dtype) == (wanted.shape, wanted.dtype)
            assert result.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    ("old", "new"), [("int4", "int8"), ("int8", "int4"), ("int4", "uint2"), ("bool", "int2")]
)
def test_a_view_of_less_than_a_byte_has_as_many_bits(old: str, new: str) -> None:
    x = xarr.ones((2, 4), old)
    with pytest.raises(
        DTypeError, match=rf"view: wanted a dtype of as many bits as {old}, which has \d, got {new}"
    ):
        x.view(new)
    assert xarr.asarray([1, -1], "int4").view("uint4").tolist() == [1, 15]


def test_a_view_shares_nothing() -> None:
    x = xarr.asarray([1.0, 2.0])
    bits = x.view("int64")
    with pytest.warns(PartUpdateWarning, match=r'x\.view\("int64"\) is a part of x|bits, that is'):
        bits[0] = 0
    assert x.tolist() == [1.0, 2.0]
    assert x.view(xarr.float32).view(float).tolist() == [1.0, 2.0]
    assert_same(x.view(), np.asarray(x))
    assert_same(x.view(type=xarr.ndarray), np.asarray(x))
    assert_same(x.view(xarr.bfloat16)[3:4].view("uint16"), np.array([0x3FF0], "uint16"))
    with pytest.raises(ArgumentError, match="no other class than xarr's Array, got matrix"):
        x.view(np.matrix)
    with pytest.raises(DTypeError, match="no records"):
        x.view([("a", "f4"), ("b", "f4")])
