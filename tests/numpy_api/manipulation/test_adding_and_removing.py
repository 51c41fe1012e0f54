"""What adds, takes out and repeats elements: traced, under explicit broadcasting, refused."""

import numpy as np
import pytest

import xarr
from xarr.errors import (
    AxisError,
    BroadcastError,
    IndexingError,
    InputError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
)

X = np.arange(12.0).reshape(3, 4)


def same(result, wanted):
    np.testing.assert_array_equal(np.asarray(result), wanted)
    assert result.dtype == wanted.dtype


@pytest.mark.parametrize(
    "text",
    [
        "xp.append(x, x, 1)",
        "xp.insert(x, 1, 7)",
        "xp.insert(x, [0, 2, 2, -1], [[1.0] * 4] * 4, axis=0)",
        "xp.delete(x, [0, -1], axis=1)",
        "xp.delete(x, 2)",
        "xp.resize(x, (5, 5))",
        "xp.rollaxis(x, 1)",
        "xp.block([[x, x], [x, x]])",
        "xp.repeat(x, [1, 0, 3], 0)",
    ],
)
def test_in_a_traced_function_and_with_explicit_broadcasting(text):
    with xarr.config(broadcasting="explicit"):
        same(xarr.jit(lambda x: eval(text, {"xp": xarr, "x": x}))(X), eval(text, {"xp": np, "x": X}))


@pytest.mark.parametrize("indices", [[0, 2, 2, -1], [1], [3, 0, 0]])
def test_traced_indices_to_insert_at(indices):
    values = np.arange(4.0 * len(indices)).reshape(len(indices), 4)
    result = xarr.jit(lambda x, i, v: xarr.insert(x, i, v, 0))(X, np.array(indices), values)
    same(result, np.insert(X, indices, values, 0))


@pytest.mark.implicit
def test_a_traced_index_for_any_number_of_slices():
    result = xarr.jit(lambda x, i, v: xarr.insert(x, i, v, 1))(X, np.array(2), np.ones((2, 3)))
    same(result, np.insert(X, 2, np.ones((2, 3)), 1))
    same(xarr.jit(lambda x, i: xarr.insert(x, i, 9.0, 1))(X, np.array(-1)), np.insert(X, -1, 9.0, 1))


def test_traced_indices_to_delete():
    same(xarr.jit(lambda x, i: xarr.delete(x, i, 1))(X, np.array(-2)), np.delete(X, -2, 1))
    result = xarr.jit(lambda x, i: xarr.delete(x, i, assume_unique_indices=True))(X, np.array([3, 0, -1]))
    same(result, np.delete(X, [3, 0, -1]))


@pytest.mark.parametrize(
    ("counts", "total"), [([1, 0, 3], 4), ([1, 0, 3], 2), ([1, 0, 3], 6), ([0, 0, 0], 2)]
)
def test_traced_counts(counts, total):
    wanted = np.repeat(X, counts, 0)[:total]
    wanted = np.pad(wanted, ((0, total - len(wanted)), (0, 0)), "edge") if len(wanted) else X[[-1] * total]
    result = xarr.jit(lambda x, n: xarr.repeat(x, n, 0, total_repeat_length=total))(X, np.array(counts))
    same(result, wanted)
    if any(counts):
        same(xarr.repeat(X, counts, 0, total_repeat_length=total), wanted)


def test_counts_as_an_array():
    same(xarr.repeat(X, xarr.asarray([1, 0, 3]), 0), np.repeat(X, [1, 0, 3], 0))


def test_trimming_looks_at_the_bounds_only():
    x = xarr.asarray(np.pad(X + 1, 1))
    same(xarr.trim_zeros(x), X + 1)
    assert xarr.trim_zeros([0, 1, 0, 2, 0]) == [1, 0, 2]
    assert xarr.trim_zeros((0, 0)) == ()


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xarr.insert(x, 20, 1)", IndexingError, "out of bounds"),
        ("xarr.insert(x, [0, 20], 1)", IndexingError, "out of bounds"),
        ("xarr.insert(x, [[0]], 1)", ShapeError, "vector of ints"),
        ("xarr.insert(x, np.ones((1, 1), bool), 1)", ShapeError, "vector of bools"),
        ("xarr.insert(x, 0.5, 1)", IndexingError, "float64"),
        ("xarr.insert(x, [0, 1], [1, 2, 3])", BroadcastError, "insert"),
        ("xarr.insert(x, [0, 1], np.ones((2, 3, 4)), 0)", BroadcastError, "insert"),
        ("xarr.delete(x, 20)", IndexingError, "out of bounds"),
        ("xarr.delete(x, [True])", ShapeError, "mask of 12"),
        ("xarr.delete(x, 0.5)", IndexingError, "float64"),
        ("xarr.append(x, x[0], 0)", ShapeError, "append|concatenate"),
        ("xarr.rollaxis(x, 0, 5)", AxisError, "start"),
        ("xarr.resize(x, -1)", ShapeError, "new_shape"),
        ("xarr.trim_zeros(x, 'x')", ValueRangeError, "'fb'"),
        ("xarr.block([[x], x])", ShapeError, "one depth"),
        ("xarr.block([x, []])", ShapeError, r"arrays\[1\] is an empty list"),
        ("xarr.block([x, (x, x)])", InputError, r"arrays\[1\] is a tuple"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        eval(text, {**globals(), "x": X})


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: xarr.delete(x, x.astype(int)), "assume_unique_indices=True"),
        (lambda x: xarr.insert(x, x > 0, 1), "give an int"),
        (lambda x: xarr.trim_zeros(x), "trim outside"),
        (lambda x: xarr.repeat(x, x.astype(int)), "total_repeat_length="),
    ],
    ids=["delete", "insert", "trim_zeros", "repeat"],
)
def test_traced_functions_say_what_helps(call, words):
    with pytest.raises(TracedValueError, match=rf"(?s){words}.*test_adding_and_removing.py:"):
        xarr.jit(call)(np.ones(3))
