"""Functions of users: what is recorded, what is called for each element, in traced functions, what is refused."""

import math

import numpy as np
import pytest

import xarr
from xarr.errors import (
    AxisError,
    BroadcastError,
    DTypeError,
    InputError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
)

X = np.arange(12.0).reshape(3, 4)


def values(value):
    return np.asarray(value).tolist()


@pytest.mark.usefixtures("recorded")
def test_a_recorded_function_is_called_once_and_runs_on_whole_arrays():
    shapes = []

    def note_shapes(a, b):
        shapes.append((a.shape, b.shape))
        return xarr.where(a > b, a - b, a + b)

    x = xarr.asarray(X)
    result = xarr.vectorize(note_shapes)(x, xarr.flip(x))
    assert shapes == [((), ())]
    assert not result.is_evaluated
    np.testing.assert_array_equal(np.asarray(result), np.where(X[::-1, ::-1] < X, X - X[::-1, ::-1], 11.0))


def test_what_looks_at_values_is_called_for_each_element():
    calls = []

    def looks(a):
        calls.append(float(a))
        return math.sqrt(a) if a > 4 else -1.0

    assert values(xarr.vectorize(looks, otypes=[float])([4.0, 9.0, 16.0])) == [-1, 3, 4]
    assert calls[-3:] == [4, 9, 16]
    with pytest.raises(TracedValueError, match="asked for"):
        xarr.jit(lambda x: xarr.vectorize(looks)(x))(X)


def test_an_error_of_the_function_is_shown():
    with pytest.raises(ZeroDivisionError):
        xarr.vectorize(lambda a: 1 // int(a))([1, 0])
    with pytest.raises(ZeroDivisionError):
        xarr.apply_along_axis(lambda v: 1 // int(v[0]), 0, [0, 1])


def test_a_function_may_use_arrays_from_outside():
    scalar, vector = xarr.asarray(3.0), xarr.arange(3.0)
    assert values(xarr.vectorize(lambda a: a * scalar)([1.0, 2.0])) == [3, 6]
    assert values(xarr.vectorize(lambda a: xarr.sum(a * vector))([1.0, 2.0])) == [3, 6]
    assert values(xarr.vectorize(lambda p, a: xarr.sum(p) * a, excluded={0})(vector, [1.0, 2.0])) == [3, 6]


def test_a_function_that_takes_its_results_from_elsewhere_is_called_for_each():
    numbers = iter(range(100))
    results = values(xarr.vectorize(lambda a: next(numbers))([1, 1, 1]))
    assert results == [results[0], results[0] + 1, results[0] + 2]


@pytest.mark.implicit
def test_in_a_traced_function():
    results = xarr.jit(lambda x, y: xarr.vectorize(lambda a, b: (a * b, a - b))(x, y))(X, X[0])
    np.testing.assert_array_equal(np.asarray(results[0]), X * X[0])
    np.testing.assert_array_equal(np.asarray(results[1]), X - X[0])
    results = xarr.jit(lambda x, y: xarr.vectorize(xarr.dot, signature="(n),(n)->()")(x, y))(X, X[0])
    np.testing.assert_array_equal(np.asarray(results), X @ X[0])
    results = xarr.jit(lambda x: xarr.apply_along_axis(lambda v: v[:2] * v.sum(), 1, x))(X)
    np.testing.assert_array_equal(np.asarray(results), X[:, :2] * X.sum(1, keepdims=True))
    results = xarr.jit(lambda x: xarr.apply_over_axes(xarr.sum, x, (0, 1)))(X)
    assert values(results) == [[X.sum()]]


def test_with_explicit_broadcasting():
    with xarr.config(broadcasting="explicit"):
        np.testing.assert_array_equal(np.asarray(xarr.vectorize(lambda a, b: a + b)(X, X)), 2 * X)
        np.testing.assert_array_equal(np.asarray(xarr.vectorize(lambda a, b: a + b)(X, 1.0)), X + 1)
        result = xarr.vectorize(lambda v, w: v * w, signature="(n),(n)->(n)")(X, X)
        np.testing.assert_array_equal(np.asarray(result), X * X)
        result = xarr.piecewise(X, [X < 3, X > 5], [lambda v: v * v, -1.0])
        np.testing.assert_array_equal(np.asarray(result), np.where(X < 3, X * X, np.where(X > 5, -1, 0)))
        assert values(xarr.select([X < 3], [X], -X)) == np.where(X < 3, X, -X).tolist()
        with pytest.raises(BroadcastError):
            xarr.vectorize(lambda a, b: a + b)(X, X[0])
        with pytest.raises(BroadcastError):
            xarr.select([X < 3], [X[0]])


def test_as_a_decorator():
    @xarr.vectorize
    def plain(a):
        """Negation."""
        return -a

    @xarr.vectorize(otypes="f", doc="Other words.")
    def negate(a):
        return -a

    assert (plain.__name__, plain.__doc__, negate.__doc__) == ("plain", "Negation.", "Other words.")
    assert values(plain([1, 2])) == [-1, -2]
    assert negate([1, 2]).dtype == np.float32


def test_no_elements():
    assert xarr.vectorize(lambda a: a + 1)(np.zeros((0, 2))).shape == (0, 2)
    assert xarr.vectorize(math.sqrt, otypes=[float])(np.zeros((0, 2))).shape == (0, 2)


def test_copying_changes_one_handle():
    x = xarr.asarray(X)
    y = x.copy()
    xarr.copyto(x, -1.0, where=x > 5)
    np.testing.assert_array_equal(np.asarray(x), np.where(X > 5, -1, X))
    np.testing.assert_array_equal(np.asarray(y), X)
    with pytest.raises(TracedValueError, match="outside of a traced function"):
        xarr.jit(lambda z: xarr.copyto(y, z))(X)


def test_piecewise_and_select_in_a_traced_function():
    result = xarr.jit(lambda x: xarr.piecewise(x, [x < 3, x > 5], [lambda v: v * v, -1.0, 7.0]))(X)
    np.testing.assert_array_equal(
        np.asarray(result), np.piecewise(X, [X < 3, X > 5], [lambda v: v * v, -1, 7])
    )
    result = xarr.jit(lambda x: xarr.select([x < 3, x > 5], [x, -x]))(X)
    np.testing.assert_array_equal(np.asarray(result), np.select([X < 3, X > 5], [X, -X]))


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("xarr.vectorize(3)", InputError, "wanted a function"),
        ("xarr.vectorize(signature='()->()')(3, 4)", InputError, "the function to decorate"),
        ("xarr.vectorize(abs, signature='(n->()')", InputError, "wanted a signature such as"),
        ("xarr.vectorize(abs, signature='n->n')", ValueError, "wanted a signature"),
        ("xarr.vectorize(abs, otypes='Q!')", DTypeError, "dtype"),
        ("xarr.vectorize(lambda a: (a, a), otypes='f')(x)", InputError, "returned 2 results, otypes says 1"),
        ("xarr.vectorize(lambda a, b: a)(x, x[:, :2])", BroadcastError, "vectorize"),
        ("xarr.vectorize(lambda v: v[0], signature='(n)->(n)')(x)", ShapeError, r"sizes \{'n': 4\}"),
        ("xarr.vectorize(lambda v: v, signature='(n)->(n),(n)')(x)", ShapeError, "says 2 results"),
        ("xarr.vectorize(abs, signature='(n),(n)->()')(x, x[:, :2])", ShapeError, "has size 4, and size 2"),
        ("xarr.vectorize(abs, signature='(n),(n)->()')(x)", InputError, "wants 2 arguments, got 1"),
        ("xarr.vectorize(abs, signature='(n)->()')(3)", ShapeError, "rank 1 or more"),
        ("xarr.vectorize(math.sqrt)(x[:0])", ShapeError, "no element"),
        ("xarr.apply_along_axis(sum, 2, x)", AxisError, "out of range"),
        ("xarr.apply_along_axis(sum, 0, x[:, :0])", ShapeError, "no vector"),
        ("xarr.apply_over_axes(lambda v, a: v[0, 0], x, (0, 1))", ShapeError, "rank 2 or 1"),
        ("xarr.select([], [])", ShapeError, "at least one condition"),
        ("xarr.select([x > 1, x > 2], [x])", ShapeError, "as many choices"),
        ("xarr.select([x], [x])", DTypeError, "x != 0"),
        ("xarr.piecewise(x, [x > 1], [1, 2, 3])", ShapeError, "one more for the rest"),
        ("xarr.piecewise(x, [x[:2] > 1], [1])", ShapeError, "conditions of the shape"),
        ("xarr.piecewise(x, [x > 1], [lambda v: v[0]])", ShapeError, "a scalar or the shape"),
        ("xarr.piecewise(xarr.zeros(2, 'int8'), [[True, False]], [300])", ValueRangeError, "out of bounds"),
        ("xarr.copyto(x, 1)", InputError, "numpy.copyto"),
        ("xarr.copyto(xarr.ones(3), 1j)", DTypeError, "complex"),
        ("xarr.copyto(xarr.ones(3, int), 1.5)", DTypeError, "casting='same_kind'"),
        ("xarr.copyto(xarr.ones(3), xarr.ones((2, 3)))", BroadcastError, "of dst"),
    ],
)
def test_refusals(text, error, words):
    with pytest.raises(error, match=words):
        eval(text, {**globals(), "x": X})
