"""Set routines with a given size, in traced functions, of narrow floats, and what they refuse."""

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from xarr.errors import AxisError, ShapeError, TracedValueError

VALUES = st.lists(st.sampled_from([0.0, 1.0, -2.0, 3.5, np.nan, np.inf]), min_size=0, max_size=6)
PAIRS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")


def pad(values, size, filler):
    """`values` cut or filled up to `size`; by default with the first one, 0 if there is none."""
    values = np.asarray(values)
    if filler is None:
        filler = values[0] if len(values) else 0
    return np.concatenate([values[:size], np.full(max(size - len(values), 0), filler, values.dtype)])


@settings(max_examples=12)
@given(VALUES, VALUES, st.integers(0, 9), st.sampled_from([None, 7.0]), st.sampled_from(PAIRS))
def test_two_vectors_in_a_traced_function(one, other, size, filler, name):
    x, y = np.array(one), np.array(other)
    wanted = pad(getattr(np, name)(x, y), size, filler)
    result = xarr.jit(lambda x, y: getattr(xarr, name)(x, y, size=size, fill_value=filler))(x, y)
    np.testing.assert_array_equal(np.asarray(result), wanted)


@settings(max_examples=12)
@given(VALUES, VALUES, st.sampled_from(PAIRS))
def test_two_vectors(one, other, name):
    x, y = np.array(one), np.array(other)
    np.testing.assert_array_equal(np.asarray(getattr(xarr, name)(x, y)), getattr(np, name)(x, y))


@settings(max_examples=12)
@given(VALUES, st.integers(1, 9), st.booleans())
def test_distinct_elements_in_a_traced_function(values, size, equal_nan):
    x = np.array(values)
    wanted, index, inverse, counts = np.unique(x, True, True, True, equal_nan=equal_nan)
    results = xarr.jit(lambda x: xarr.unique(x, True, True, True, equal_nan=equal_nan, size=size))(x)
    np.testing.assert_array_equal(np.asarray(results[0]), pad(wanted, size, None))
    np.testing.assert_array_equal(np.asarray(results[1]), pad(index, size, None))
    np.testing.assert_array_equal(np.asarray(results[2]), inverse)
    np.testing.assert_array_equal(np.asarray(results[3]), pad(counts, size, 0))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_distinct_slices_in_a_traced_function(axis, size):
    x = np.array([[1, 0, 1], [2, 5, 2], [1, 0, 1]])
    wanted, index, inverse, counts = np.unique(x, True, True, True, axis=axis)
    results = xarr.jit(lambda x: xarr.unique(x, True, True, True, axis=axis, size=size, fill_value=9))(x)
    rest = max(size - len(index), 0)
    filled = [np.take(wanted, range(min(size, len(index))), axis), np.full_like(np.repeat(x[:1], rest, 0), 9)]
    filled[1] = filled[1] if axis == 0 else filled[1].T
    np.testing.assert_array_equal(np.asarray(results[0]), np.concatenate(filled, axis))
    np.testing.assert_array_equal(np.asarray(results[1]), pad(index, size, None))
    np.testing.assert_array_equal(np.asarray(results[2]), inverse)
    np.testing.assert_array_equal(np.asarray(results[3]), pad(counts, size, 0))


@pytest.mark.parametrize("size", [0, 2, 4])
def test_indices_of_an_intersection_in_a_traced_function(size):
    x, y = np.array([3, 1, 3, 2, 5]), np.array([[2, 3], [3, 9]])
    results = xarr.jit(lambda x, y: xarr.intersect1d(x, y, return_indices=True, size=size))(x, y)
    wanted = np.intersect1d(x, y, return_indices=True)
    for one, other in zip(results, wanted, strict=True):
        np.testing.assert_array_equal(np.asarray(one), pad(other, size, None))


@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e5m2"])
def test_narrow_floats(dtype):
    x = np.array([[3, 1, 3], [2, np.nan, 1], [3, 1, 3]])
    narrow = xarr.asarray(x).astype(dtype)
    assert xarr.unique(narrow).dtype == np.dtype(dtype)
    np.testing.assert_array_equal(np.asarray(xarr.unique(narrow)).astype(float), np.unique(x))
    np.testing.assert_array_equal(np.asarray(xarr.unique(narrow, axis=0)).astype(float), np.unique(x, axis=0))
    result = xarr.setdiff1d(narrow, xarr.asarray([1.0]).astype(dtype))
    np.testing.assert_array_equal(np.asarray(result).astype(float), np.setdiff1d(x, [1]))


def test_the_difference_keeps_what_promotion_would_round():
    x = np.array([2**63 - 1, 2**53 + 1, 4])
    result = xarr.setdiff1d(x, np.array([4.0, 0.5]))
    assert np.asarray(result).tolist() == [2**53 + 1, 2**63 - 1]
    assert result.dtype == np.int64


@pytest.mark.parametrize("name", PAIRS)
def test_no_implicit_broadcast(name):
    with xarr.config(broadcasting="explicit"):
        result = getattr(xarr, name)([1, 2, 3, 3], [3, 4])
        assert np.asarray(result).tolist() == getattr(np, name)([1, 2, 3, 3], [3, 4]).tolist()
        assert xarr.unique([[1, 2], [1, 2]], axis=0, size=3).tolist() == [[1, 2]] * 3


@pytest.mark.parametrize("name", [*PAIRS, "unique"])
def test_a_traced_function_needs_a_size(name):
    arguments = 1 if name == "unique" else 2
    with pytest.raises(TracedValueError, match=r"(?s)size=.*test_sets.py:"):
        xarr.jit(lambda x: getattr(xarr, name)(*[x] * arguments))(np.ones(3))


def test_refusals():
    with pytest.raises(AxisError, match="out of range"):
        xarr.unique([1, 2], axis=1)
    with pytest.raises(ShapeError, match="size"):
        xarr.unique([1, 2], size=-1)


@pytest.mark.parametrize(
    "function",
    [
        xarr.unique,
        lambda x: xarr.unique(xarr.reshape(x, (3, 1)), axis=0),
        lambda x: xarr.unique(x, size=2),
        lambda x: xarr.unique_all(x).counts,
        lambda x: xarr.union1d(x, x),
        lambda x: xarr.setdiff1d(x, x),
        lambda x: xarr.searchsorted(x, x),
        lambda x: xarr.flatnonzero(x, size=2),
        lambda x: xarr.quantile(x, 0.3),
        lambda x: xarr.histogram(x, 2)[0],
        lambda x: xarr.histogram(x, 2)[1],
        lambda x: xarr.sort(xarr.abs(xarr.roots(x))),
    ],
    ids=range(12),
)
def test_arrays_of_another_backend_stay_there(function):
    x = xarr.asarray([1.0, 2.0, 4.0], device="reference")
    result = function(x)
    assert result.backend == "reference"
    np.testing.assert_allclose(np.asarray(result), np.asarray(function(x.to("numpy"))), rtol=1e-12)
