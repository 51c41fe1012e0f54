"""Assignment and `.at` by arrays of integers and bools, against NumPy and JAX over random shapes and indices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import assume, given, strategies as st

import xarr
from tests.compare import assert_same
from tests.support import fuzz
from tests.support.draws.indices import UPDATE_UFUNCS, Index, count_up, indices, values_for
from xarr.errors import (
    ArgumentError,
    BroadcastError,
    DTypeError,
    IndexingError,
    InputError,
    ShapeError,
    TracedValueError,
    ValueRangeError,
)

pytestmark = pytest.mark.implicit

HostArray = np.ndarray[Any, Any]
fuzzed, seldom = fuzz.examples(60), fuzz.examples(15)
#: JAX compiles for each case.
rarely = fuzz.examples(8)


def select(x: HostArray, index: Any) -> HostArray:
    """x[index]; draws for which NumPy raises are not used."""
    try:
        return np.asarray(x[index])
    except IndexError:
        assume(False)
        raise


def index_of(host: Any) -> Index:
    return Index((3, 4), host, host)


DRAWN = st.data()


@fuzzed
@given(indices(), DRAWN)
def test_writing(index: Index, data: st.DataObject) -> None:
    x = count_up(index.shape)
    shape = select(x, index.host).shape
    value = data.draw(values_for(shape))
    a = xarr.asarray(x)
    untouched, total = a.copy(), a + 1
    wanted = x.copy()
    try:
        wanted[index.host] = value
    except TypeError:
        # With a mask alone no superfluous dimensions are taken; xarr takes them for an array of rank 0.
        if x.ndim:
            with pytest.raises(ArgumentError, match="wanted a number or a vector"):
                a[index.own] = value
            return
        wanted[index.host] = value.reshape(-1)
    updated = a.at[index.own].set(xarr.asarray(value))
    a[index.own] = value
    assert_same(a, wanted)
    assert_same(updated, wanted)
    assert_same(untouched, x)
    assert_same(total, x + 1)


@fuzzed
@given(indices(), DRAWN)
def test_in_place_arithmetic_reads_and_writes_once(index: Index, data: st.DataObject) -> None:
    x = count_up(index.shape)
    value = data.draw(values_for(select(x, index.host).shape))
    while value.ndim > select(x, index.host).ndim:
        value = value[0]
    a = xarr.asarray(x)
    a[index.own] += value
    wanted = x.copy()
    wanted[index.host] += value
    assert_same(a, wanted)


@fuzzed
@given(indices(), st.sampled_from(sorted(UPDATE_UFUNCS)), DRAWN)
def test_at_updates_as_ufunc_at(index: Index, method: str, data: st.DataObject) -> None:
    x = 1 + count_up(index.shape, "float64") / 8
    shape = select(x, index.host).shape
    value = 1 - data.draw(values_for(shape, "float64")) / 16
    while value.ndim > len(shape):
        value = value[0]
    wanted = x.copy()
    assume(index.shape)
    with np.errstate(all="ignore"):
        # Spread by hand: NumPy repeats the value in the first row of indices alone.
        UPDATE_UFUNCS[method].at(wanted, index.host, np.broadcast_to(value, shape))
    result = getattr(xarr.asarray(x).at[index.own], method)(value)
    # A power of a power amplifies the error of the first.
    assert_same(result, wanted, ulp=2000 if method == "power" else 0)


@seldom
@given(indices())
def test_apply_as_ufunc_at(index: Index) -> None:
    x = count_up(index.shape, "float64")
    assume(index.shape and select(x, index.host).shape is not None)
    wanted = x.copy()
    np.negative.at(wanted, index.host)
    assert_same(xarr.asarray(x).at[index.own].apply(xarr.negative), wanted)


MODES = ["clip", "fill", "drop", "wrap"]
#: How far integers lie out of bounds at most, and filler is laid around an array.
FAR = 9


@dataclass
class Padded:
    """An array with room around each dimension that integers index, and an index that stays in it."""

    whole: HostArray
    inside: tuple[slice, ...]
    index: tuple[Any, ...]


def pad(x: HostArray, index: Any, mode: str, filler: int = -99) -> Padded:
    """The array and index with which NumPy does without a mode."""
    items = index if isinstance(index, tuple) else (index,)
    assume(x.ndim > 0)
    consuming = [item is not None and item is not Ellipsis for item in items]
    dots = next((position for position, item in enumerate(items) if item is Ellipsis), len(items))
    axes = [
        sum(consuming[:position]) + (position > dots) * (x.ndim - sum(consuming))
        for position in range(len(items))
    ]
    margins = [0] * x.ndim
    results: list[Any] = []
    for item, axis, uses in zip(items, axes, consuming, strict=True):
        if not uses or isinstance(item, slice):
            results.append(item)
            continue
        size = x.shape[axis]
        indices = np.asarray(item, np.int64)
        if mode == "wrap" and size:
            indices = indices % size
        indices = np.where(indices < 0, indices + size, indices)
        if mode == "clip" and size:
            indices = np.clip(indices, 0, size - 1)
        margins[axis] = FAR
        results.append(indices + FAR if isinstance(item, np.ndarray) else int(indices) + FAR)
        assume(mode in ("fill", "drop") or size > 0 or not indices.size)
    whole = np.pad(x, [(margin, margin) for margin in margins], constant_values=filler)
    inside = tuple(slice(margin, margin + size) for margin, size in zip(margins, x.shape, strict=True))
    return Padded(whole, inside, tuple(results))


@fuzzed
@given(indices(beyond=FAR - 5, masks=False), st.sampled_from(MODES), st.sampled_from(["set", "add"]), DRAWN)
def test_modes_over_random_indices(index: Index, mode: str, method: str, data: st.DataObject) -> None:
    x = count_up(index.shape)
    wider = pad(x, index.host, mode)
    at = xarr.asarray(x).at[index.own]
    wanted = select(wider.whole, wider.index)
    assert_same(at.get(mode=mode, fill_value=-99), wanted)
    value = data.draw(values_for(wanted.shape))
    while value.ndim > wanted.ndim:
        value = value[0]
    result = getattr(at, method)(value, mode=mode)
    if method == "set":
        wider.whole[wider.index] = value
    else:
        np.add.at(wider.whole, wider.index, value)
    assert_same(result, wider.whole[wider.inside])


# --- JAX -----------------------------------------------------------------------------------------------------


@rarely
@given(
    indices(beyond=3, masks=False, lists=False),
    st.sampled_from(["clip", "fill", "drop"]),
    st.sampled_from(["get", "set", "add", "multiply", "min", "max", "apply"]),
    DRAWN,
)
def test_modes_as_jax(index: Index, mode: str, method: str, data: st.DataObject) -> None:
    assume(0 not in index.shape)  # where JAX clips into nothing
    x = count_up(index.shape, "int32")
    with jax.enable_x64(True):
        host = _for_jax(index.host)
        own = xarr.asarray(x).at[index.own]
        theirs = jnp.asarray(x).at[host]
        shape = jnp.asarray(x).at[host].get(mode="clip").shape
        if method == "get":
            wanted, result = theirs.get(mode=mode), own.get(mode=mode)
        elif method == "apply":
            wanted, result = theirs.apply(jnp.negative, mode=mode), own.apply(xarr.negative, mode=mode)
        else:
            value = data.draw(values_for(shape, "int32")) % 7
            while value.ndim > len(shape):
                value = value[0]
            wanted = getattr(theirs, method)(value, mode=mode)
            result = getattr(own, method)(value, mode=mode)
    assert_same(result, np.asarray(wanted))


def _for_jax(index: Any) -> Any:
    """The index in the types that JAX takes as NumPy does: it adds sizes to small ones, and passes steps on."""
    if isinstance(index, tuple):
        return tuple(map(_for_jax, index))
    if isinstance(index, slice):
        return slice(*[part if part is None else max(-9, min(part, 9)) for part in _parts(index)])
    return index.astype(np.int64) if isinstance(index, np.ndarray) else index


def _parts(index: slice) -> tuple[Any, Any, Any]:
    return index.start, index.stop, index.step


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool"])
def test_what_fills_by_default(dtype: str) -> None:
    x = np.ones(2, dtype)
    result = xarr.asarray(x).at[np.array([0, 2, -3])].get(mode="fill")
    assert_same(result, np.asarray(jnp.asarray(x).at[np.array([0, 2, -3])].get(mode="fill")))
    filled = xarr.asarray(x).at[np.array([0, 2])].get(mode="fill", fill_value=0)
    assert_same(filled, np.array([1, 0], dtype))


# --- modes in detail -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize(
    ("mode", "read", "written"),
    [
        ("clip", [1, 3, 1, 3], [-3, 2, -4]),
        ("fill", [-1, 3, 1, -1], [-3, 2, -2]),
        ("drop", [-1, 3, 1, -1], [-3, 2, -2]),
        ("wrap", [3, 3, 1, 2], [-3, -4, -2]),
    ],
)
def test_modes(mode: str, read: list[int], written: list[int], lazy: bool) -> None:
    a = xarr.asarray([1, 2, 3])
    index = xarr.asarray([-4, -1, 0, 4]) + 0 if lazy else [-4, -1, 0, 4]
    assert a.at[index].get(mode=mode, fill_value=-1).tolist() == read
    assert a.at[index].set([-1, -2, -3, -4], mode=mode).tolist() == written
    for error in ("error", "raise", None):
        with pytest.raises(IndexingError):
            np.asarray(a.at[index].set(0, mode=error))


def test_a_single_index_out_of_bounds() -> None:
    a = xarr.asarray([1, 2, 3])
    assert a.at[5].get(mode="clip").item() == 3
    assert a.at[5].get(mode="fill", fill_value=7).item() == 7
    assert a.at[5].set(9, mode="drop").tolist() == [1, 2, 3]
    assert a.at[5].set(9, mode="clip").tolist() == [1, 2, 9]
    assert a.at[-(10**30)].get(mode="clip").item() == 1
    assert a.at[-1].get(mode="promise_in_bounds").item() == 3
    write = xarr.jit(lambda x, i: (x.at[i].set(9, mode="drop"), x.at[i].add(9, mode="clip")))
    dropped, clipped = write(a, xarr.asarray(5))
    assert dropped.tolist() == [1, 2, 3]
    assert clipped.tolist() == [1, 2, 12]


def test_into_a_dimension_without_elements() -> None:
    empty = xarr.zeros((0, 2))
    assert empty.at[[0]].get(mode="fill", fill_value=5.0).tolist() == [[5.0, 5.0]]
    assert empty.at[[0]].set(1.0, mode="drop").shape == (0, 2)
    for mode in ("error", "clip", "wrap", "promise_in_bounds"):
        with pytest.raises(IndexingError, match="axis 0 with size 0"):
            empty.at[[0]].get(mode=mode)


def test_small_types_of_indices_do_not_overflow() -> None:
    x = count_up((200,))
    for dtype in ("int8", "uint8"):
        index = (xarr.asarray(np.array([-1, 100, 5]).astype(dtype))) + 0
        wanted = x[np.array([-1, 100, 5]).astype(dtype)] if dtype == "int8" else x[[199, 100, 5]]
        if dtype == "uint8":
            index = index.at[0].set(199)
        assert_same(xarr.asarray(x)[index], wanted)
        assert_same(xarr.asarray(x).at[index].get(mode="wrap"), wanted)


def test_indices_beyond_int64_are_what_they_are() -> None:
    x, index = count_up((5,)), np.array([1, 2**64 - 1, 2**63], np.uint64)
    ways: tuple[Any, ...] = (lambda function: function, xarr.jit)
    for way in ways:
        wrapped = way(lambda x, i: x.at[i].get(mode="wrap"))
        assert_same(wrapped(xarr.asarray(x), xarr.asarray(index)), x[[1, 0, 3]])
        checked = way(lambda x, i: x[i])
        with pytest.raises(IndexingError, match=f"index {2**64 - 1} is out of bounds for axis 0 with size 5"):
            np.asarray(checked(xarr.asarray(x), xarr.asarray(index)))


@pytest.mark.parametrize("mode", ["nearest", 3, "ERROR"])
def test_unknown_modes(mode: Any) -> None:
    with pytest.raises(ValueRangeError, match="wanted a mode of 'error', 'clip', 'fill', 'wrap'"):
        xarr.asarray([1]).at[[0]].get(mode=mode)


# --- duplicates ------------------------------------------------------------------------------------------------


def test_the_last_of_duplicates_stays() -> None:
    a = xarr.asarray([0, 0, 0])
    a[[1, 1, 2]] = [5, 6, 7]
    assert a.tolist() == [0, 6, 7]
    a[[1, 1]] += 1
    assert a.tolist() == [0, 7, 7]
    assert a.at[[1, 1]].add(1).tolist() == [0, 9, 7]
    assert a.at[[1, 1, -2]].apply(lambda v: v * 2).tolist() == [0, 56, 7]


def test_duplicates_are_combined_in_order() -> None:
    a = xarr.asarray(np.array([1.0], np.float32))
    steps = np.array([2**24, 1, -(2**24)], np.float32)
    assert a.at[[0, 0, 0]].add(steps).tolist() == [((np.float32(1) + steps[0]) + steps[1]) + steps[2]]
    assert a.at[[0, 0]].divide([3.0, 7.0]).tolist() == [(np.float32(1) / np.float32(3)) / np.float32(7)]


def test_whole_numbers_stay_whole() -> None:
    a = xarr.asarray([7, 9])
    assert_same(a.at[[0, 1]].divide(2), np.array([3, 4]))
    assert_same(a.at[[0]].power(2), np.array([49, 9]))


# --- masks -----------------------------------------------------------------------------------------------------


def test_a_scalar_through_a_traced_mask_is_a_select() -> None:
    def function(x: Any) -> Any:
        x = x.copy()
        x[x < 0] = 0
        return x.at[:, x[0] > 1].multiply(10)

    x = np.array([[1.0, 2.0], [-3.0, 4.0]])
    assert_same(xarr.jit(function)(xarr.asarray(x)), np.array([[1.0, 20.0], [0.0, 40.0]]))
    shown = str(xarr.lower(function, xarr.asarray(x)).stage("traced"))
    assert "stablehlo.select" in shown
    assert "scatter" not in shown


def test_a_value_for_each_element_of_a_traced_mask_is_refused() -> None:
    def function(x: Any) -> Any:
        x = x.copy()
        x[x > 0] = [1.0, 2.0]
        return x

    with pytest.raises(TracedValueError, match=r"how many elements a boolean mask selects"):
        xarr.jit(function)(xarr.asarray([1.0, 2.0]))


@pytest.mark.usefixtures("recorded")
def test_writing_through_a_lazy_mask_computes_nothing() -> None:
    a = xarr.asarray([1.0, -2.0, 3.0])
    mask = a + 1 < 0
    b = a.copy()
    b[mask] = 0.0
    assert not mask.is_evaluated
    assert not b.is_evaluated
    assert b.tolist() == [1.0, 0.0, 3.0]


def test_a_mask_without_dimensions() -> None:
    for flag in (True, False, np.bool_(True), xarr.asarray(2) > 1):
        a, x = xarr.asarray([1, 2]), np.array([1, 2])
        a[flag], x[bool(flag)] = 5, 5
        assert_same(a, x)
    chosen = xarr.jit(lambda x, flag: x.at[flag].set(5))
    assert chosen(xarr.asarray([1, 2]), xarr.asarray([3, 4])[0] > 3).tolist() == [1, 2]


def test_values_of_a_mask_that_do_not_fit_it() -> None:
    a = xarr.asarray([1, 2, 3])
    with pytest.raises(BroadcastError):
        a[[True, True, False]] = [1, 2, 3]
    with pytest.raises(BroadcastError):
        a[[0, 1]] = [1, 2, 3]
    assert a.tolist() == [1, 2, 3]


def test_what_is_masked_out_may_be_anything() -> None:
    a = xarr.asarray([0.0, 4.0])
    assert a.at[a > 0].divide(a[1]).tolist() == [0.0, 1.0]
    assert a.at[a > 0].apply(lambda v: 1 / v).tolist() == [0.0, 0.25]


# --- how it is carried out ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize(
    "index",
    [
        [0, 2],
        (slice(None, None, -2), [0, 1, 1]),
        ([0, 1], slice(1, 3)),
        (1, [0, 3]),
        (np.array([True, False, True]), slice(None, None, 2)),
    ],
    ids=repr,
)
def test_writing_on_each_backend(index: Any, backend: str) -> None:
    x = count_up((3, 4), "float32")
    added, multiplied = x.copy(), x.copy()
    np.add.at(added, index, 2)
    np.multiply.at(multiplied, index, 2)
    with xarr.use_backend(backend):
        a = xarr.asarray(x)
        assert_same(a.at[index].add(2), added)
        assert_same(a.at[index].multiply(2), multiplied)
        a[index] = 0
    x[index] = 0
    assert_same(a, x)


@pytest.mark.usefixtures("recorded")
def test_a_bad_index_without_a_value_is_found_when_writing() -> None:
    a, indices = xarr.asarray([1, 2, 3]), xarr.asarray([0, 1]) + 2
    a[indices] = 0
    with pytest.raises(IndexingError, match="index 3 is out of bounds for axis 0 with size 3") as caught:
        np.asarray(a)
    assert any("a[indices] = 0" in note for note in caught.value.__notes__)


def test_jitted_updates() -> None:
    @xarr.jit
    def counts(x: Any, i: Any) -> Any:
        return x.at[i].add(1)

    assert counts(xarr.zeros(4), xarr.asarray([1, 3, 1, -1])).tolist() == [0.0, 2.0, 0.0, 2.0]
    with pytest.raises(IndexingError, match="index 4 is out of bounds"):
        np.asarray(counts(xarr.zeros(4), xarr.asarray([1, 4])))


def test_an_index_in_a_loop() -> None:
    x = count_up((5,))

    def step(i: Any, total: Any) -> Any:
        return total + xarr.asarray(x)[i]

    assert xarr.lax.fori_loop(0, 5, step, xarr.asarray(0)).item() == x.sum()


COMPLEX_WRITES: dict[str, Callable[[Any], Any]] = {
    "set": lambda x: x.at[[0]].set(1j),
    "setitem": lambda x: x.__setitem__([0], 1j),
}


@pytest.mark.parametrize("update", COMPLEX_WRITES)
def test_a_complex_value_does_not_fit_reals(update: str) -> None:
    with pytest.raises(TypeError, match="complex value does not fit"):
        COMPLEX_WRITES[update](xarr.zeros(3))


def test_function_of_apply_must_keep_the_shape() -> None:
    with pytest.raises((BroadcastError, InputError, ValueError)):
        xarr.zeros(3).at[[0, 1]].apply(lambda v: xarr.zeros(2))


def test_the_shape_is_set_by_value() -> None:
    x = xarr.arange(6)
    y, z = x, x.copy()
    x.shape = (2, -1)
    assert x is y
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert z.shape == (6,)
    x.shape = 6
    assert x.shape == (6,)
    with pytest.raises(ShapeError):
        x.shape = (4, 2)


@pytest.mark.parametrize("dtype", ["float32", "complex64", "complex128"])
def test_the_real_and_the_imaginary_part_are_set_by_value(dtype: str) -> None:
    x, wanted = xarr.ones((2, 3), dtype=dtype), np.ones((2, 3), dtype=dtype)
    other = x.copy()
    x.real = wanted.real = [1, 2, 3]
    assert_same(x, wanted)
    if wanted.dtype.kind == "c":
        x.imag = wanted.imag = 2.5
        x.imag += 1
        wanted.imag += 1
        assert_same(x, wanted)
    else:
        with pytest.raises(DTypeError, match=r"no imaginary part to set; write x = x \+ 1j"):
            x.imag = 2
    assert_same(other, np.ones((2, 3), dtype=dtype))


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float64"])
@pytest.mark.parametrize("name", ["minimum", "maximum"])
def test_extremes_at_repeated_indices_are_numpys(name: str, dtype: str) -> None:
    rng = np.random.default_rng(3)
    wanted = rng.integers(0, 9, 6).astype(dtype)
    index, values = rng.integers(0, 6, 20), rng.integers(0, 9, 20).astype(dtype)
    updated = xarr.asarray(wanted)
    getattr(np, name).at(wanted, index, values)
    getattr(xarr, name).at(updated, index, values)
    assert updated.tolist() == wanted.tolist() and updated.dtype == wanted.dtype
