"""Functions that take, find and change elements, beside NumPy and JAX; index builders; changes in place."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.support.draws.indices import count_up
from xarr.errors import (
    ArgumentError,
    BroadcastError,
    DTypeError,
    FlatIndexError,
    HugeSizeError,
    IndexingError,
    InputError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
)

pytestmark = pytest.mark.implicit


def assert_refused(error: type[Exception], text: str, call: Any) -> None:
    with pytest.raises(error, match=text):
        result = call()
        if isinstance(result, xarr.Array):
            np.asarray(result)


# --- taking --------------------------------------------------------------------------------------------------


def test_take_fills_as_jax() -> None:
    x = count_up((3, 2), "float32")
    result = xarr.take(xarr.asarray(x), [0, -1, 3, -4], axis=0, mode="fill")
    assert_same(result, np.asarray(jnp.take(x, np.array([0, -1, 3, -4]), axis=0, mode="fill")))
    assert xarr.take(xarr.asarray([1, 2]), [5], mode="fill", fill_value=7).tolist() == [7]


@pytest.mark.parametrize("lazy", [False, True])
def test_taking_out_of_bounds(lazy: bool) -> None:
    a = xarr.asarray(count_up((3,)))
    index = xarr.asarray([0, 3]) + 0 if lazy else [0, 3]
    assert_refused(IndexingError, "index 3 is out of bounds for axis 0 with size 3", lambda: a.take(index))
    assert_refused(IndexingError, "index 3", lambda: xarr.take_along_axis(a, xarr.asarray(index), 0))
    below = xarr.asarray([-1]) + 0 if lazy else [-1]
    assert_refused(
        IndexingError, "index -1 is out of bounds for axis 0 with size 2", lambda: xarr.choose(below, [a, a])
    )
    assert_refused(IndexingError, "index -1 is out of bounds", lambda: xarr.unravel_index(below, (3,))[0])


def test_methods_that_take() -> None:
    x, a = count_up((3, 4)), xarr.asarray(count_up((3, 4)))
    assert_same(a.take([1, -1], axis=1), x.take([1, -1], axis=1))
    assert_same(a.compress([True, False, True], axis=0), x.compress([True, False, True], axis=0))
    choices = [10, 20, 30, 40, 50]
    assert_same((a % 5).choose(choices), (x % 5).choose(choices))
    for result, wanted in zip((a % 2).nonzero(), (x % 2).nonzero(), strict=True):
        assert_same(result, wanted)
    for call in (
        lambda: a.take([0], out=x),
        lambda: a.compress([1], out=x),
        lambda: xarr.choose(0, [a], out=x),
    ):
        assert_refused(InputError, "wanted an xarr Array for out=, got ndarray", call)


def test_take_along_axis_broadcasts_the_other_dimensions() -> None:
    x, i = count_up((1, 4)), np.array([[0, 3], [-1, 1], [2, 2]])
    assert_same(xarr.take_along_axis(xarr.asarray(x), xarr.asarray(i), 1), np.take_along_axis(x, i, 1))
    x, i = count_up((3, 4)), np.array([[0, 3]])
    assert_same(xarr.take_along_axis(xarr.asarray(x), i, 1), np.take_along_axis(x, i, 1))
    assert_refused(ShapeError, "wanted indices with 2 dimensions", lambda: xarr.take_along_axis(x, [0], 1))
    assert_refused(IndexingError, "ints or bools|integers", lambda: xarr.take_along_axis(x, [[0.5]], 1))
    result = xarr.take_along_axis(xarr.asarray(x), [[0, 9]], 1, mode="fill", fill_value=-1)
    assert_same(result, np.array([[1, -1], [5, -1], [9, -1]]))
    assert xarr.take_along_axis(xarr.zeros((0, 2)), xarr.zeros((3, 2), dtype=int), 0, mode="fill").shape == (
        3,
        2,
    )


def test_taking_under_jit() -> None:
    x, i = count_up((3, 4)), np.array([[0, 3], [-1, 1], [2, 2]])
    assert_same(
        xarr.jit(xarr.take_along_axis)(xarr.asarray(x), xarr.asarray(i)), np.take_along_axis(x, i, -1)
    )
    assert_same(xarr.jit(lambda x, i: xarr.take(x, i))(xarr.asarray(x), xarr.asarray(i)), x.take(i))


# --- finding -------------------------------------------------------------------------------------------------


def test_where_with_a_condition_alone() -> None:
    x = np.array([[0.0, np.nan], [-0.0, 2.0]])
    for result, wanted in zip(xarr.where(xarr.asarray(x)), np.where(x), strict=True):
        assert_same(result, wanted)
    assert_refused(InputError, "got only one of x and y", lambda: xarr.where(True, 1))


@pytest.mark.parametrize("size", [0, 2, 3, 8])
@pytest.mark.parametrize("fill", [None, -1, (7, 9)])
def test_nonzero_of_a_given_size_as_jax(size: int, fill: Any) -> None:
    x = np.array([[0, 1, 0], [2, 0, 3]])
    wanted = jnp.nonzero(x, size=size, fill_value=fill)
    jitted = xarr.jit(lambda a: xarr.nonzero(a, size=size, fill_value=fill))
    for results in (xarr.nonzero(xarr.asarray(x), size=size, fill_value=fill), jitted(xarr.asarray(x))):
        for one, other in zip(results, wanted, strict=True):
            assert_same(one, np.asarray(other, np.int64))


def test_sizes_of_other_finders() -> None:
    x = np.array([[0, 1, 0], [2, 0, 3]])
    assert xarr.flatnonzero(x, size=4, fill_value=-1).tolist() == [1, 3, 5, -1]
    assert xarr.argwhere(x, size=2).tolist() == [[0, 1], [1, 0]]
    assert xarr.nonzero(xarr.zeros((0, 2)), size=2)[1].tolist() == [0, 0]
    assert_refused(
        ShapeError,
        "one for each of 2 dimensions, got 3",
        lambda: xarr.nonzero(x, size=1, fill_value=(1, 2, 3)),
    )
    assert_refused(ShapeError, "a scalar has no dimension", lambda: xarr.nonzero(3))


def test_finding_in_a_traced_function_wants_a_size() -> None:
    assert_refused(
        TracedValueError, r"nonzero\(x, size=n\)", lambda: xarr.jit(xarr.nonzero)(xarr.asarray([1]))
    )


# --- changing ------------------------------------------------------------------------------------------------

CHANGES: dict[str, Any] = {
    "put": lambda xp, x: xp.put(x, [0, -1, 5], [-1.5, -2.0]),
    "put in bounds": lambda xp, x: xp.put(x, [[0, 99], [-99, 3]], [1, 2, 3, 4, 5], mode="clip"),
    "put around": lambda xp, x: xp.put(x, [-1, 99], 7, mode="wrap"),
    "put nothing": lambda xp, x: xp.put(x, [], []),
    "put along": lambda xp, x: xp.put_along_axis(x, xp.asarray([[0], [1], [-1]]), -9, 1),
    "put along columns": lambda xp, x: xp.put_along_axis(
        x, xp.asarray([[0, 1, 2, 2]]), xp.asarray([[-1]]), 0
    ),
    "put along all": lambda xp, x: xp.put_along_axis(x, xp.asarray([0, 7]), xp.asarray([-1, -2]), None),
    "place": lambda xp, x: xp.place(x, x > 4, [-1, -2, -3]),
    "place many": lambda xp, x: xp.place(x, x > 10, [-1, -2, -3]),
    "putmask": lambda xp, x: xp.putmask(x, x > 4, [-1, -2, -3]),
    "putmask of one shape": lambda xp, x: xp.putmask(x, x > 4, -x),
    "fill_diagonal": lambda xp, x: xp.fill_diagonal(x, 0),
    "fill_diagonal by turns": lambda xp, x: xp.fill_diagonal(x, [1, -1]),
    "fill": lambda xp, x: x.fill(2),
    "sort": lambda xp, x: x.sort(axis=0),
    "method put": lambda xp, x: x.put([1, 2], 0),
    "flat": lambda xp, x: x.flat.__setitem__([1, 2], 0),
    "flat slice": lambda xp, x: x.flat.__setitem__(slice(1, None, 2), [1, 2]),
    "flat whole": lambda xp, x: setattr(x, "flat", [3, 4, 5]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_in_place(change: str) -> None:
    x = -count_up((3, 4)) % 13
    a = xarr.asarray(x)
    other, result = a.copy(), a * 2
    assert CHANGES[change](xarr, a) is None
    wanted = x.copy()
    assert CHANGES[change](np, wanted) is None
    assert_same(a, wanted)
    assert_same(other, x)
    assert_same(result, x * 2)


@pytest.mark.parametrize("shape", [(5, 2), (7, 3), (3, 3, 3), (2, 5), (0, 2)])
@pytest.mark.parametrize("wrap", [False, True])
def test_diagonals(shape: tuple[int, ...], wrap: bool) -> None:
    x = count_up(shape)
    a = xarr.asarray(x)
    xarr.fill_diagonal(a, [-1, -2], wrap)
    np.fill_diagonal(x, [-1, -2], wrap)
    assert_same(a, x)


def test_changes_that_return_a_new_array() -> None:
    a = xarr.asarray([3, 1, 2])
    assert xarr.put(a, 0, 9, inplace=False).tolist() == [9, 1, 2]
    assert xarr.put_along_axis(a, [1], 9, 0, inplace=False).tolist() == [3, 9, 2]
    assert xarr.place(a, a > 1, [7, 8], inplace=False).tolist() == [7, 1, 8]
    assert xarr.putmask([3, 1, 2], [True, False, True], [7, 8], inplace=False).tolist() == [7, 1, 7]
    assert xarr.fill_diagonal(np.ones((2, 2)), 0, inplace=False).tolist() == [[0, 1], [1, 0]]
    assert a.tolist() == [3, 1, 2]
    jitted = xarr.jit(lambda x, i: xarr.put_along_axis(x, i, -1, 0, inplace=False))
    assert jitted(a, xarr.asarray([2])).tolist() == [3, 1, -1]


def test_changes_that_are_refused() -> None:
    a = xarr.asarray(count_up((2, 3)))
    assert_refused(
        InputError, "wanted an xarr Array to change, got ndarray", lambda: xarr.put(np.ones(3), 0, 1)
    )
    assert_refused(IndexingError, "index 6 is out of bounds", lambda: xarr.put(a, 6, 1))
    assert_refused(ValueRangeError, "wanted a mode", lambda: xarr.put(a, 0, 1, mode="nearest"))
    assert_refused(ShapeError, "as many elements", lambda: xarr.place(a, [True], 1))
    assert_refused(ShapeError, "at least one value for the elements", lambda: xarr.place(a, a > 1, []))
    assert_refused(
        TracedValueError,
        "give one value at least",
        lambda: xarr.jit(lambda x: xarr.place(x, x > 1, []))(a),
    )
    assert_refused(ShapeError, "wanted a matrix", lambda: xarr.fill_diagonal(xarr.zeros(3), 1))
    assert_refused(BroadcastError, "broadcast", lambda: xarr.put_along_axis(a, np.zeros((4, 1), int), 0, 1))
    assert_refused(ShapeError, "fill: wanted a scalar", lambda: a.fill([1, 2, 3]))
    assert_refused(
        ShapeError, "one value at least for 6 elements", lambda: a.flat.__setitem__(slice(None), [])
    )
    assert_refused(TracedValueError, "changes its argument", lambda: xarr.jit(lambda x: x.sort() or x)(a))
    assert_same(a, count_up((2, 3)))


@pytest.mark.implicit
@pytest.mark.parametrize(
    ("shape", "index_shape", "axis"),
    [
        ((3, 4, 1), (1, 2, 5), 1),
        ((1, 3), (3, 1), 1),
        ((1, 3), (3, 2), -1),
        ((3, 1, 1), (2, 4, 5), 0),
        ((1, 2, 1), (3, 2, 2), 0),
        ((1, 3), (0, 2), 1),
    ],
)
def test_putting_along_an_axis_where_only_the_indices_are_broad(
    shape: tuple[int, ...], index_shape: tuple[int, ...], axis: int
) -> None:
    wanted = count_up(shape)
    indices = np.arange(np.prod(index_shape, dtype=int)).reshape(index_shape) % shape[axis]
    for values in (20, count_up(index_shape) * 10):
        result = xarr.asarray(count_up(shape))
        xarr.put_along_axis(result, xarr.asarray(indices), values, axis)
        np.put_along_axis(wanted, indices, values, axis)
        assert_same(result, wanted)
        jitted = xarr.jit(lambda x, i, values=values: xarr.put_along_axis(x, i, values, axis, inplace=False))
        assert_same(jitted(xarr.asarray(count_up(shape)), xarr.asarray(indices)), wanted)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "float32", "complex64"])
def test_no_values_change_nothing(dtype: str) -> None:
    x = xarr.asarray(np.ones((2, 2), dtype))
    xarr.place(x, [[False] * 2] * 2, [])
    xarr.putmask(x, x == 1, [])
    xarr.fill_diagonal(x, [])
    xarr.place(empty := xarr.zeros((0, 2), dtype), empty == 0, [])
    assert_same(x, np.ones((2, 2), dtype))


def test_reading_flat() -> None:
    x, a = count_up((2, 3)), xarr.asarray(count_up((2, 3)))
    assert len(a.flat) == 6
    assert [element.item() for element in a.flat] == [1, 2, 3, 4, 5, 6]
    assert_same(a.flat[[0, -1]], x.flat[[0, -1]])
    assert_same(a.flat[1::2], x.flat[1::2])
    assert_same(np.asarray(a.flat), np.asarray(x.flat))


# --- builders ------------------------------------------------------------------------------------------------


def test_grids() -> None:
    for key in (np.s_[0:3], np.s_[0:2, 1:4], np.s_[:3:0.5, 0:1:5j], np.s_[5:0:-2,], ()):
        wanted = np.mgrid[key]
        assert_same(xarr.mgrid[key], np.asarray(wanted))
        for one, other in zip(xarr.ogrid[key], np.ogrid[key], strict=True):
            assert_same(one if isinstance(one, xarr.Array) else np.asarray(one), np.asarray(other))
    for key in (np.s_[:], np.s_[0:], np.s_[3:], [slice(0, 4, 1), slice(3, 20, 4)], [slice(0, 1, 3j)]):
        assert_same(xarr.mgrid[key], np.asarray(np.mgrid[key]))
    for one, other in zip(
        xarr.ogrid[[slice(0, 4), slice(3, 9)]], np.ogrid[[slice(0, 4), slice(3, 9)]], strict=True
    ):
        assert_same(one, other)
    for key in (3, np.s_[0:2, 1:], np.s_[0:2, 1]):
        assert_refused(InputError, "wants slices with a stop", lambda key=key: xarr.mgrid[key])


@pytest.mark.parametrize(
    "key",
    [
        np.s_[1:4, 0, np.array([7, 8])],
        np.s_[0:1:5j, 2.5],
        (np.array([1, 2, 3]), np.array([4, 5, 6])),
        ("0,2", np.array([1, 2]), np.array([3, 4])),
        ("-1", np.ones((2, 1)), np.zeros((2, 2))),
        ("0,2,0", np.array([1, 2]), np.array([3])),
        ("1,2,0", np.array([1, 2]), np.array([3, 4])),
        ("0,3,1", np.array([1, 2]), np.array([3, 4])),
        5,
    ],
    ids=repr,
)
def test_concatenation(key: Any) -> None:
    assert_same(xarr.r_[key], np.r_[key])
    if not isinstance(key, tuple) or not isinstance(key[0], str | slice):
        assert_same(xarr.c_[key], np.c_[key])


def test_concatenation_refuses() -> None:
    assert_refused(InputError, "makes a matrix", lambda: xarr.r_["r", [1]])
    assert_refused(InputError, "wanted? 'axis'|want 'axis'", lambda: xarr.r_["x", [1]])
    assert_refused(InputError, "one array, number or slice", lambda: xarr.r_[()])
    assert_refused(InputError, "as the first item only", lambda: xarr.r_[[1], "0"])


def test_expressions() -> None:
    assert xarr.s_[1:, ..., None] == np.s_[1:, ..., None]
    assert xarr.s_[1:] == slice(1, None)
    assert xarr.index_exp[1:] == np.index_exp[1:]


def test_builders_index_as_numpys_do() -> None:
    x, a = count_up((4, 4)), xarr.asarray(count_up((4, 4)))
    assert_same(a[xarr.ix_([0, 2], [1, 3])], x[np.ix_([0, 2], [1, 3])])
    assert_same(a[xarr.tril_indices(4, -1)], x[np.tril_indices(4, -1)])
    assert_same(a[xarr.diag_indices(4)], x[np.diag_indices(4)])
    a[xarr.triu_indices_from(a)] = 0
    x[np.triu_indices_from(x)] = 0
    assert_same(a, x)


def test_builders_refuse() -> None:
    assert_refused(ShapeError, "ix_: wanted vectors", lambda: xarr.ix_([[1]]))
    assert_refused(ShapeError, "of one size", lambda: xarr.diag_indices_from(xarr.zeros((2, 3))))
    assert_refused(ShapeError, "wanted a matrix", lambda: xarr.tril_indices_from(xarr.zeros(3)))
    assert_refused(DTypeError, "wanted integers", lambda: xarr.unravel_index(1.5, (3,)))
    assert_refused(ShapeError, "each of 2 dimensions", lambda: xarr.ravel_multi_index(([1],), (2, 3)))
    assert_refused(ArgumentError, "order 'C'", lambda: xarr.unravel_index(0, (2,), order="K"))
    assert_refused(FlatIndexError, "index 6 is out of bounds", lambda: xarr.unravel_index(6, (2, 3)))
    assert_refused(
        FlatIndexError, "index -1 is out of bounds", lambda: xarr.ravel_multi_index(([-1], [0]), (2, 3))
    )
    assert_refused(FlatIndexError, "no index is in bounds", lambda: xarr.unravel_index([1], (2, 0)))
    assert_refused(HugeSizeError, "less than 2", lambda: xarr.unravel_index(1, (2**32 - 1, 2**31 + 1)))
    assert_refused(HugeSizeError, "less than 2", lambda: xarr.ravel_multi_index(([0], [0]), (2**62, 2)))
    assert_refused(ShapeError, "one index for the shape", lambda: xarr.unravel_index([0], ()))
    with pytest.raises(ValueError, match="out of bounds"):
        xarr.unravel_index(6, (2, 3))
