"""Basic indexing, assignment and `.at`, against NumPy over random shapes and indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, strategies as st

import xarr
from tests.compare import assert_same
from tests.support.draws.indices import UPDATE_UFUNCS
from xarr.errors import BackendError, BroadcastError, DTypeError, IndexingError, ValueRangeError

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]

SHAPES = st.lists(st.integers(0, 4), max_size=4).map(tuple)
BOUNDS = st.none() | st.integers(-7, 7) | st.sampled_from([-(10**30), 10**30])
STEPS = st.none() | st.sampled_from([-(10**20), -3, -2, -1, 1, 2, 3, 10**20])


@st.composite
def indices(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    """A basic index for an array of `shape`: a tuple, or its only item."""
    before = draw(st.integers(0, len(shape)))
    after = draw(st.integers(0, len(shape) - before))
    items = [draw(_item(size)) for size in shape[:before]]
    if after or draw(st.booleans()):
        items.append(Ellipsis)
    items += [draw(_item(size)) for size in shape[len(shape) - after :]]
    for _ in range(draw(st.integers(0, 2))):
        items.insert(draw(st.integers(0, len(items))), None)
    return items[0] if len(items) == 1 and draw(st.booleans()) else tuple(items)


def _item(size: int) -> st.SearchStrategy[Any]:
    slices = st.builds(slice, BOUNDS, BOUNDS, STEPS)
    return slices | st.integers(-size, size - 1) if size else slices


@st.composite
def cases(draw: st.DrawFn) -> tuple[tuple[int, ...], Any]:
    shape = draw(SHAPES)
    return shape, draw(indices(shape))


def count_up(shape: tuple[int, ...], dtype: str = "int64") -> HostArray:
    return np.arange(1, np.prod(shape, dtype=int) + 1).reshape(shape).astype(dtype)


@given(cases())
@example(((3,), slice(None, None, -1)))
@example(((), ...))
@example(((), (None, ..., None)))
@example(((0, 3), (slice(None), 1)))
def test_reading(case: tuple[tuple[int, ...], Any]) -> None:
    shape, index = case
    x = count_up(shape)
    a = xarr.asarray(x)
    assert_same(a[index], x[index])
    assert_same(a.at[index].get(), x[index])
    assert_same(a, x)


@given(cases(), st.data())
def test_writing(case: tuple[tuple[int, ...], Any], data: st.DataObject) -> None:
    shape, index = case
    x = count_up(shape)
    a = xarr.asarray(x)
    region = x[index].shape
    kept = data.draw(st.integers(0, len(region)))
    sizes = tuple(data.draw(st.sampled_from([size, 1])) for size in region[kept:])
    extra = (1,) * data.draw(st.integers(0, 2)) if kept == 0 and region else ()
    value = -count_up(extra + sizes)
    untouched, total = a.copy(), a + 1
    updated = a.at[index].set(xarr.asarray(value))
    a[index] = value
    wanted = x.copy()
    wanted[index] = value
    assert_same(a, wanted)
    assert_same(updated, wanted)
    assert_same(untouched, x)
    assert_same(total, x + 1)


UPDATES: dict[str, Callable[[HostArray, Any], HostArray]] = {
    "set": lambda old, value: np.broadcast_to(value, old.shape),
    **UPDATE_UFUNCS,
}


@pytest.mark.parametrize("method", UPDATES)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
@pytest.mark.parametrize("index", [1, slice(None, None, -2), (..., 0), (0, None, slice(1, 9)), ()], ids=repr)
def test_at(method: str, dtype: str, index: Any) -> None:
    x = count_up((3, 4), dtype)
    a = xarr.asarray(x)
    for value in (2, np.asarray([3], dtype)):
        wanted = x.copy()
        wanted[index] = UPDATES[method](x[index], value).astype(dtype)
        assert_same(getattr(a.at[index], method)(value), wanted)
    assert_same(a, x)


def test_apply() -> None:
    x = count_up((3, 4), "float64")
    wanted = x.copy()
    wanted[1:, 0] = np.sqrt(x[1:, 0])
    assert_same(xarr.asarray(x).at[1:, 0].apply(xarr.sqrt), wanted)


def test_in_place_on_a_part() -> None:
    x, a = count_up((3, 4)), xarr.asarray(count_up((3, 4)))
    row = a[1]
    x[1] += 5
    a[1] += 5
    x[:, ::-2] *= 3
    a[:, ::-2] *= 3
    assert_same(a, x)
    assert_same(row, count_up((3, 4))[1])


# --- element types ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int64", "float16", "float64", "complex64"])
@pytest.mark.parametrize(
    "value", [True, 1, 2.75, np.int16([3, 4]), np.float32([1.5, 0.0]), np.array([True, False])]
)
def test_the_value_takes_the_arrays_type(dtype: str, value: Any) -> None:
    x = np.zeros((3, 2), dtype)
    a = xarr.asarray(x)
    x[1:] = value
    a[1:] = value
    assert_same(a, x)


def test_what_does_not_fit_the_arrays_type() -> None:
    a = xarr.asarray(np.array([1, 2], np.uint8))
    for value, error, text in (
        (1j, DTypeError, "complex value does not fit an array of uint8"),
        (np.array([1j]), DTypeError, "complex value"),
        (300, ValueRangeError, "300 is out of bounds for uint8"),
        (float("nan"), ValueRangeError, "nan does not fit an array of uint8"),
        (float("inf"), ValueRangeError, "inf does not fit"),
    ):
        with pytest.raises(error, match=text):
            a[0] = value
        with pytest.raises(error, match=text):
            a.at[0].set(value)
    assert_same(a, np.array([1, 2], np.uint8))


# --- errors ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("index", "text"),
    [
        (3, r"index 3 is out of bounds for axis 0 with size 3 \(shape \(3, 4\)\)"),
        (-4, "index -4 is out of bounds for axis 0"),
        ((0, 4), "index 4 is out of bounds for axis 1 with size 4"),
        ((0, 0, 0), r"too many indices: 3 for an array of shape \(3, 4\), which takes 2"),
        ((..., 0, ...), "one ellipsis, got 2"),
        (slice(None, None, 0), "step cannot be zero"),
        (slice(0.5, None), "wanted ints or None in a slice"),
        (
            1.0,
            r"wanted an int, a slice, \.\.\., None, or an array or list of ints or bools as index, got 1.0",
        ),
        ("a", "wanted an int, a slice"),
        (np.float64(1), "wanted an int"),
        (xarr.asarray(1.5), "wanted an int"),
    ],
    ids=repr,
)
def test_bad_indices(index: Any, text: str) -> None:
    a = xarr.asarray(count_up((3, 4)))
    for use in (lambda: a[index], lambda: a.at[index].get(), lambda: a.at[index].set(0)):
        with pytest.raises(IndexError, match=text) as caught:
            use()
        assert isinstance(caught.value, IndexingError)
    with pytest.raises(IndexingError, match=text):
        a[index] = 0


def test_scalars_have_no_dimension_to_index() -> None:
    with pytest.raises(IndexingError, match="too many indices"):
        xarr.asarray(1.0)[0]


def test_values_that_do_not_fit_the_region() -> None:
    a = xarr.asarray(count_up((3, 4)))
    for index, value in (
        (0, np.ones(3)),
        (slice(0, 2), np.ones((3, 4))),
        ((0, 0), np.ones(2)),
        (slice(0, 0), np.ones(2)),
    ):
        with pytest.raises(BroadcastError):
            a[index] = value
        with pytest.raises(ValueError, match=r"could not broadcast|setting an array element|shape mismatch"):
            count_up((3, 4))[index] = value
    assert_same(a, count_up((3, 4)))


def test_integers_of_other_kinds() -> None:
    x, a = count_up((3, 4)), xarr.asarray(count_up((3, 4)))
    for index in (np.int8(2), np.uint64(1), np.array(0), xarr.asarray(2)):
        assert_same(a[index], x[int(index)])
        assert_same(a[index, : np.int64(2)], x[int(index), :2])
    assert_same(a[xarr.asarray(1) :], x[1:])


def test_a_traced_bound_of_a_slice_is_refused_as_such() -> None:
    a = xarr.asarray(count_up((3,)))
    with pytest.raises(xarr.errors.TracedValueError):
        xarr.lower(lambda i: a[i:], xarr.asarray(1))


def test_a_value_of_another_backend_is_refused() -> None:
    a, b = xarr.asarray([1.0, 2.0]).to("numpy"), xarr.asarray([3.0]).to("reference")
    with pytest.raises(BackendError, match="two backends"):
        a[:1] = b


def test_equal_indices_of_different_type_are_not_mixed_up() -> None:
    """1 == True == 1.0, so a cache of indices could take one for another."""
    a = xarr.asarray(count_up((3,)))
    assert a[1].item() == 2
    assert a[True].shape == (1, 3)
    for index in (1.0,):
        with pytest.raises(IndexingError):
            a[index]
        with pytest.raises(IndexingError):
            a[slice(1.0, None)]


@given(cases())
def test_iteration(case: tuple[tuple[int, ...], Any]) -> None:
    shape, _ = case
    x = count_up(shape)
    if shape:
        rows = list(xarr.asarray(x))
        assert len(rows) == len(x)
        for row, wanted in zip(rows, x, strict=True):
            assert_same(row, np.asarray(wanted))
    else:
        with pytest.raises(TypeError):
            iter(xarr.asarray(x))


def test_a_block_is_written_without_touching_the_rest() -> None:
    def write(x: xarr.Array) -> xarr.Array:
        x[1:3, ::-1] = 7
        return x

    text = str(xarr.lower(write, xarr.zeros((4, 5))).stage("traced"))
    assert "stablehlo.dynamic_update_slice" in text
    assert "stablehlo.select" not in text
