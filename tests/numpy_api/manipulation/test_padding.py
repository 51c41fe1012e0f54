"""`xarr.pad` in the modes that compute, with functions, in traced functions, and what it refuses."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.functions import DTYPES
from tests.support.numpy_records import Record, try_beside_numpy
from xarr.errors import DTypeError, InputError, ShapeError, TracedValueError, ValueRangeError

COMPUTED = [
    "xp.pad(x, 3, mode='linear_ramp')",
    "xp.pad(x, (2, 4), mode='linear_ramp', end_values=(5, 4))",
    "xp.pad(x, 2, mode='mean')",
    "xp.pad(x, (1, 3), mode='mean', stat_length=2)",
    "xp.pad(x, 2, mode='median')",
    "xp.pad(x, (1, 3), mode='median', stat_length=(2, 3))",
    "xp.pad(x, (3, 1), mode='maximum', stat_length=(2, 3))",
    "xp.pad(x, (2, 1), 'reflect', reflect_type='odd')",
    "xp.pad(x, (9, 14), 'reflect', reflect_type='odd')",
    "xp.pad(x, (9, 14), 'symmetric', reflect_type='odd')",
]
#: Sums of a few elements in another order; int64 means of large values are rounded to float64.
RTOL = {"float16": 2e-2, "float32": 1e-5, "float64": 1e-13, "complex64": 1e-4}


@pytest.mark.parametrize("text", COMPUTED)
def test_modes_that_compute(text):
    for dtype in DTYPES:
        record = Record((), special=False, rtol=RTOL, limits=None if dtype == "bool" else (-100, 100))
        if np.dtype(dtype).kind == "u":
            record = Record((), special=False, limits=(0, 100))
        for shape in ((), (0,), (1,), (5,), (3, 4), (2, 3, 1)):
            try_beside_numpy(text, record, shape, dtype)


@pytest.mark.parametrize("mode", ["maximum", "minimum", "mean", "median"])
def test_statistics_of_nan(mode):
    x = np.array([[1.0, np.nan, 2.0], [4.0, 5.0, 6.0]])
    np.testing.assert_array_equal(np.asarray(xarr.pad(x, 1, mode)), np.pad(x, 1, mode))


@settings(max_examples=100)
@given(
    st.integers(1, 7),
    st.integers(0, 40),
    st.integers(0, 40),
    st.sampled_from(["reflect", "symmetric"]),
    st.sampled_from(["odd", "even"]),
)
def test_mirrors_with_any_number_of_turns(size, before, after, mode, kind):
    x = np.arange(size) ** 2
    wanted = np.pad(x, (before, after), mode, reflect_type=kind)
    assert np.asarray(xarr.pad(x, (before, after), mode, reflect_type=kind)).tolist() == wanted.tolist()


def with_value(vector, width, axis, kwargs):
    value = kwargs.get("padder", 10)
    vector[: width[0]] = value
    vector[vector.shape[0] - width[1] :] = value + axis


def with_a_look(vector, width, axis, kwargs):
    vector[: width[0]] = 100 if vector[width[0]] > 2 else -100


@pytest.mark.parametrize("function", [with_value, with_a_look])
@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 0), ()])
def test_functions_write_into_the_padded_vectors(function, shape):
    x = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    widths = [(1, 2)] * len(shape) or 0
    np.testing.assert_array_equal(np.asarray(xarr.pad(x, widths, function)), np.pad(x, widths, function))


def test_a_function_gets_the_keywords():
    result = xarr.pad([[1, 2]], 1, with_value, padder=7)
    assert np.asarray(result).tolist() == np.pad([[1, 2]], 1, with_value, padder=7).tolist()


@pytest.mark.parametrize(
    ("mode", "keywords"),
    [
        ("constant", {"constant_values": 4}),
        ("median", {}),
        ("linear_ramp", {"end_values": 3}),
        ("reflect", {"reflect_type": "odd"}),
        ("wrap", {}),
        (with_value, {}),
    ],
    ids=lambda value: getattr(value, "__name__", None) or str(value),
)
def test_padding_in_a_traced_function(mode, keywords):
    x = np.arange(12.0).reshape(3, 4)
    result = xarr.jit(lambda y: xarr.pad(y, 2, mode, **keywords))(x)
    np.testing.assert_allclose(np.asarray(result), np.pad(x, 2, mode, **keywords), rtol=1e-14)


def test_traced_values_to_pad_with():
    result = xarr.jit(lambda x, v: xarr.pad(x, 1, constant_values=v))(np.ones(2), np.array([[3.0, 4.0]]))
    assert np.asarray(result).tolist() == [3, 1, 1, 4]
    result = xarr.jit(lambda x, v: xarr.pad(x, 1, constant_values=v))(np.ones(2), np.float64(5))
    assert np.asarray(result).tolist() == [5, 1, 1, 5]


def test_padding_needs_no_implicit_broadcast():
    with xarr.config(broadcasting="explicit"):
        for mode in ("linear_ramp", "mean", "median", "maximum", "reflect"):
            keywords = {"reflect_type": "odd"} if mode == "reflect" else {}
            x = np.arange(12.0).reshape(3, 4)
            result = xarr.pad(x, 2, mode, **keywords)
            np.testing.assert_allclose(np.asarray(result), np.pad(x, 2, mode, **keywords), rtol=1e-14)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xarr.pad(x, 1.5)", InputError, "wanted ints for pad_width"),
        ("xarr.pad(x, 1, mode=3)", InputError, "name of a mode or a function"),
        ("xarr.pad(x, 1, 'edge', constant_values=2)", InputError, "takes no keyword"),
        ("xarr.pad(x, 1, 'edge', constant_values=2)", ValueError, "takes no keyword"),
        ("xarr.pad(x, 1, 'mean', end_values=2)", ValueError, "takes stat_length"),
        ("xarr.pad(x, 1, 'mean', stat_length=-1)", ValueRangeError, "0 or more"),
        ("xarr.pad(x, 1, constant_values=1j)", DTypeError, "the complex number 1j does not fit"),
        ("xarr.pad(x, 1, 'maximum', stat_length=0)", ValueRangeError, "wanted a stat_length of 1 or more"),
        (
            "xarr.pad(x.astype(int), 1, 'mean', stat_length=0)",
            ValueRangeError,
            "wanted a stat_length of 1 or more",
        ),
        ("xarr.pad(x, 1, 'reflect', reflect_type='od')", ValueRangeError, "'even' or 'odd'"),
        ("xarr.pad(x[:, :0], 1, 'mean')", ShapeError, "axis 1 .* is empty"),
        ("xarr.jit(lambda y: xarr.pad(y, 1, with_a_look))(x)", TracedValueError, "with_a_look|asked"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        eval(text, {**globals(), "x": np.ones((2, 3))})
