"""Reductions against NumPy.

Integers, bools and extremes agree bit for bit.  Floating-point sums meet their terms in another order, so
they agree within a small multiple of the rounding unit: 1e-13 for float64, 2e-5 for float32, 4e-3 for
float16, relative to values of this size.
"""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.functions import SHAPES, XP, against_numpy, expression, same, sample
from xarr.errors import AxisError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError

TOLERANCE = {"float16": 4e-3, "float32": 2e-5, "float64": 1e-13, "complex64": 2e-5}
SOME_DTYPES = ["bool", "int8", "uint64", "float16", "float32", "float64", "complex64"]
pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")

SUMS = [
    "xp.sum(x)",
    "xp.sum(x, axis=0)",
    "xp.sum(x, axis=-1, keepdims=True)",
    "xp.sum(x, axis=(0, -1))",
    "xp.sum(x, axis=())",
    "xp.sum(x, keepdims=True)",
    "xp.sum(x, initial=3)",
    "xp.sum(x, dtype='float64')",
    "xp.sum(x, where=x > 1)",
    "xp.prod(x, axis=0)",
    "xp.prod(x, initial=2, where=x < 2)",
    "xp.cumsum(x)",
    "xp.cumsum(x, axis=-1)",
    "xp.cumsum(x, axis=0, dtype='float64')",
    "xp.cumprod(x, axis=0)",
    "xp.cumulative_sum(x, axis=-1, include_initial=True)",
    "xp.cumulative_sum(x.reshape(-1))",
    "xp.cumulative_prod(x, axis=0, include_initial=True)",
    "xp.mean(x)",
    "xp.mean(x, axis=-1, keepdims=True)",
    "xp.mean(x, axis=0, where=x > 0)",
    "xp.var(x)",
    "xp.var(x, axis=0, ddof=1)",
    "xp.var(x, axis=(0, -1), keepdims=True)",
    "xp.var(x, correction=0.5)",
    "xp.var(x, where=x > 0)",
    "xp.std(x, axis=-1)",
    "xp.std(x, axis=0, mean=xp.mean(x, axis=0, keepdims=True))",
    "xp.average(x)",
    "xp.average(x, axis=0, returned=True)",
]
EXACT = [
    "xp.all(x)",
    "xp.all(x, axis=0)",
    "xp.any(x, axis=-1, keepdims=True)",
    "xp.any(x, where=x > 1)",
    "xp.all(x, axis=(0, -1), where=x < 1)",
    "xp.count_nonzero(x)",
    "xp.count_nonzero(x, axis=0, keepdims=True)",
    "xp.max(x)",
    "xp.amax(x, axis=0)",
    "xp.min(x, axis=-1, keepdims=True)",
    "xp.amin(x, axis=(0, -1))",
    "xp.max(x, initial=1)",
    "xp.min(x, axis=0, initial=0, where=x > 0)",
]


@pytest.mark.parametrize("text", SUMS)
@pytest.mark.parametrize("dtype", SOME_DTYPES)
def test_sums(text, dtype):
    for shape in SHAPES:
        if shape == () and "axis=" in text and "axis=()" not in text:
            continue  # NumPy gives scalars an axis; xarr has an error for that, below
        if np.dtype(dtype).kind == "c" and ("where" in text or "prod" in text):
            continue  # order of complex numbers; inf * 0 in their products depends on the order of factors
        if 0 in shape and "returned" in text:
            continue  # NumPy divides by the number of results
        values = sample(shape, dtype, special=dtype != "float16" and "prod" not in text)
        if dtype == "float16":
            values = np.clip(values, -4, 4)
        against_numpy(expression(text), values, rtol=TOLERANCE.get(dtype, 1e-13))


@pytest.mark.parametrize("text", [text for text in SUMS if "sum" in text or "prod" in text])
@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
)
def test_integer_sums_wrap_as_numpys(text, dtype):
    if "float64" not in text:
        for shape in [(0,), (5,), (3, 4)]:
            against_numpy(expression(text), sample(shape, dtype))


@pytest.mark.parametrize("text", EXACT)
@pytest.mark.parametrize("dtype", [dtype for dtype in SOME_DTYPES if dtype != "complex64"])
def test_truth_and_extremes(text, dtype):
    for shape in SHAPES:
        if shape == () and "axis=" in text:
            continue
        # Which of two zeros of different sign is the larger is left open; values compare equal.
        against_numpy(expression(text), sample(shape, dtype), rtol=0)


def test_running_sums_of_bools_as_bools_and_of_scalars():
    values = np.array([[False, True, False], [True, False, True]])
    for text in ("xp.cumsum(x, 1, dtype=bool)", "xp.cumprod(x, 0, dtype=bool)", "xp.cumsum(x)"):
        against_numpy(expression(text), values)
    for text in ("xp.cumulative_sum(x)", "xp.cumulative_prod(x, include_initial=True)", "xp.cumsum(x)"):
        against_numpy(expression(text), np.array(3.0))


def test_running_sums_as_methods():
    values = np.arange(1.0, 7.0).reshape(2, 3)
    array = xarr.asarray(values)
    same(array.cumsum(1), values.cumsum(1))
    same(array.cumprod(dtype="float32"), values.cumprod(dtype="float32"))


def test_what_running_sums_refuse():
    values = np.ones((2, 3))
    with pytest.raises(ShapeError, match=r"cumulative_sum: wanted an axis for an array of 2 dimensions"):
        XP.cumulative_sum(values)
    for function in (XP.cumsum, XP.cumprod):
        with pytest.raises(AxisError):
            function(values, 2)
        with pytest.raises(InputError, match="wanted an xarr Array for out="):
            function(values, 0, out=values)
    with pytest.raises(AxisError):
        XP.cumulative_prod(values, axis=-3)


@pytest.mark.parametrize("text", ["xp.ptp(x)", "xp.ptp(x, axis=0, keepdims=True)"])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_ptp(text, dtype):
    for shape in [(5,), (3, 4), (2, 0, 3)]:
        values = sample(shape, dtype, special=False)
        against_numpy(expression(text), values)


def test_truth_of_complex_numbers():
    for text in ("xp.all(x)", "xp.any(x, axis=0)", "xp.count_nonzero(x)"):
        against_numpy(expression(text), np.array([0, 1j, np.nan, 1]))


@settings(max_examples=30)
@given(st.data())
def test_any_axes(data):
    rank = data.draw(st.integers(0, 4))
    shape = tuple(data.draw(st.lists(st.integers(0, 3), min_size=rank, max_size=rank)))
    axes = (
        data.draw(st.none() | st.lists(st.integers(-rank, rank - 1), max_size=rank).map(tuple))
        if rank
        else None
    )
    keepdims = data.draw(st.booleans())
    values = sample(shape, "int16")
    for name in ("sum", "max", "all", "mean", "var"):
        call = lambda xp, x, name=name: getattr(xp, name)(x, axis=axes, keepdims=keepdims)  # noqa: E731
        against_numpy(call, values, rtol=1e-12)


def test_sum_of_narrow_floats_is_rounded_once():
    values = np.full(4096, 1.001, np.float16)
    result = XP.sum(values)
    assert result.dtype == np.float16
    assert np.asarray(result) == np.float16(values.astype(np.float64).sum())
    large = np.full(100, 60000, np.float16)
    assert np.asarray(XP.mean(large)) == 60000
    assert XP.mean(XP.asarray(large, "bfloat16")).dtype == XP.asarray(large, "bfloat16").dtype


def test_dtype_arguments():
    values = np.arange(6, dtype=np.int8)
    for text in (
        "xp.sum(x, dtype='int8')",
        "xp.sum(x, dtype=bool)",
        "xp.mean(x, dtype='float32')",
        "xp.mean(x, dtype='complex64')",
        "xp.var(x, dtype='float32')",
        "xp.prod(x, dtype=bool)",
    ):
        against_numpy(expression(text), values, rtol=1e-6)
    with xarr.config(default_dtype="float32"):
        assert XP.mean([1, 2]).dtype == np.float32


def test_no_elements_have_a_sum_but_no_extreme():
    empty = np.zeros((0, 3))
    same(XP.sum(empty, axis=0), np.zeros(3))
    same(XP.prod(empty), np.float64(1))
    assert np.isnan(np.asarray(XP.mean(empty)))
    same(XP.max(empty, axis=1), np.zeros(0))
    same(XP.max(empty, axis=0, initial=2), np.full(3, 2.0))
    with pytest.raises(ValueError, match="give initial="):
        XP.max(empty)


WEIGHTED = [
    ("xp.average(x, weights=y)", (2, 3), (2, 3)),
    ("xp.average(x, 0, y)", (4, 3), (4,)),
    ("xp.average(x, -1, y, returned=True)", (2, 3), (3,)),
    ("xp.average(x, (2, 0), y)", (2, 3, 4), (4, 2)),
    ("xp.average(x, (0, 1), y, keepdims=True)", (2, 3, 4), (2, 3)),
    ("xp.average(x, 1, y)", (2, 3), (2,)),
]


@pytest.mark.parametrize(("text", "shape", "other"), WEIGHTED, ids=str)
def test_weighted_average(text, shape, other):
    weights = np.abs(sample(other, "float64", special=False)) + 1
    for dtype in ("float64", "int8", "float32"):
        against_numpy(expression(text), sample(shape, dtype, special=False), weights, rtol=1e-12)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xp.sum(3.0, axis=0)", AxisError, "no dimensions"),
        ("xp.sum(x, axis=2)", AxisError, "out of range"),
        ("xp.sum(x, axis=(0, -2))", AxisError, "more than once"),
        ("xp.sum(x, axis=0.5)", InputError, "integer"),
        ("xp.sum(x, out=5)", InputError, "out="),
        ("xp.sum(x, initial=[1, 2])", ShapeError, "scalar"),
        ("xp.sum(xp.ones(2, 'int8'), initial=1j)", DTypeError, "does not fit"),
        ("xp.max(xp.ones(2, 'int8'), initial=np.nan)", ValueRangeError, "does not fit"),
        ("xp.max(xp.ones(2, 'int8'), initial=300.0)", ValueRangeError, "out of bounds"),
        ("xp.sum(x, where=np.ones(4, bool))", BroadcastError, "4"),
        pytest.param(
            "xp.sum(x, where=np.ones((5, 2, 3), bool))", ShapeError, "grow", marks=pytest.mark.implicit
        ),
        ("xp.max(x, where=x > 0)", ShapeError, "initial="),
        ("xp.ptp(x > 0)", DTypeError, "bools"),
        ("xp.var(x, ddof=1, correction=1)", InputError, "the same"),
        ("xp.var(x, dtype='int8')", DTypeError, "float or complex"),
        ("xp.var(x, mean=np.ones(4))", BroadcastError, "no place"),
        ("xp.average(x, weights=[1, 2])", ShapeError, "axis="),
        ("xp.average(x, 0, weights=[1, 2, 3])", ShapeError, r"\(2,\)"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        expression(text)(XP, XP.ones((2, 3)))


def test_nothing_broadcasts_behind_the_users_back():
    values = sample((3, 4), "float64", special=False)
    with xarr.config(broadcasting="explicit"):
        for text in SUMS:
            against_numpy(expression(text), values, rtol=1e-12)
        with pytest.raises(BroadcastError):
            XP.sum(values, where=np.ones(4, bool))


@pytest.mark.parametrize("axis", [(0, 1), (), (0,), True, 0.0, "a"], ids=repr)
def test_running_totals_want_one_axis(axis: Any) -> None:
    for function in (xarr.cumsum, xarr.cumprod, xarr.cumulative_sum):
        with pytest.raises(InputError, match="wanted an int for axis"):
            function(xarr.ones((2, 3)), axis=axis)
