"""Functions of the Array API whose shapes depend on values: evaluated, sized by `size=` under jit, or refused;
and what their records beside NumPy leave out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp

import xarr
from tests.compare import assert_same
from xarr.errors import DTypeError, ShapeError, TracedValueError, ValueRangeError

NAN = np.nan


# --- sizes given --------------------------------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(
    x=hnp.arrays(np.int64, st.sampled_from([(6,), (2, 3), (0, 2)]), elements=st.integers(-3, 3)),
    size=st.sampled_from([1, 3, 8]),
    fill=st.sampled_from([None, -9]),
)
def test_unique_with_a_size_is_jaxs(x: Any, size: int, fill: int | None) -> None:
    results = xarr.unique_all(x, size=size, fill_value=fill)
    if not x.size:  # JAX gives other lengths than `size` here
        assert_same(results.values, np.full(size, 0 if fill is None else fill))
        assert_same(results.counts, np.zeros(size, np.int64))
        return
    with jax.enable_x64(True):
        wanted = jnp.unique_all(jnp.asarray(x), size=size, fill_value=fill)
    for one, other in zip(results, wanted, strict=True):
        assert_same(np.asarray(one), np.asarray(other).astype(np.int64))


@pytest.mark.parametrize("size", [0, 2, 4, 7])
def test_traced_values_are_those_of_the_plain_function(size: int) -> None:
    x = xarr.asarray([3.0, 1, 3, -2, 1, -2])

    def sets(x: Any) -> tuple[Any, ...]:
        return (
            *xarr.unique_all(x, size=size, fill_value=9),
            xarr.unique_values(x, size=size),
            *xarr.unique_counts(x, size=size),
            *xarr.unique_inverse(x, size=size),
            xarr.isin(x, xarr.unique_values(x, size=size)),
            xarr.searchsorted(xarr.sort(x), x),
        )

    for one, other in zip(xarr.jit(sets)(x), sets(x), strict=True):
        assert_same(one, np.asarray(other))


@settings(max_examples=25, deadline=None)
@given(
    repeats=hnp.arrays(np.int64, 4, elements=st.integers(0, 3)),
    total=st.sampled_from([0, 5, 13]),
    axis=st.sampled_from([0, -1]),
)
def test_repeat_to_a_total_length_is_jaxs(repeats: Any, total: int, axis: int) -> None:
    x = np.arange(16).reshape(4, 4)
    wanted = jnp.repeat(x, jnp.asarray(repeats), axis, total_repeat_length=total)
    counts = xarr.asarray(repeats)
    result = xarr.repeat(xarr.asarray(x), counts, axis, total_repeat_length=total)
    assert_same(result, np.asarray(wanted).astype(np.int64))
    call = xarr.jit(lambda x, r: xarr.repeat(x, r, axis, total_repeat_length=total))
    assert_same(call(xarr.asarray(x), counts), np.asarray(result))


# --- sizes wanted --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["unique_all", "unique_counts", "unique_inverse", "unique_values"])
def test_a_traced_array_without_a_size_is_refused_with_the_line(name: str) -> None:
    function = getattr(xarr, name)
    with pytest.raises(
        TracedValueError, match=rf"{name}: .*how many distinct elements .*give size="
    ) as caught:
        xarr.jit(lambda x: function(x)[0])(xarr.zeros(3))
    assert "test_array_api_dependent_shapes.py" in str(caught.value)


def test_traced_counts_without_a_total_are_refused_with_the_line() -> None:
    with pytest.raises(TracedValueError, match="give total_repeat_length=") as caught:
        xarr.jit(lambda n: xarr.repeat(xarr.arange(3), n))(xarr.arange(3))
    assert "test_array_api_dependent_shapes.py" in str(caught.value)


def test_constants_in_a_traced_function_need_no_size() -> None:
    result = xarr.jit(lambda x: x + xarr.repeat(xarr.arange(2), [1, 2]))(xarr.zeros(3))
    assert_same(result, np.array([0.0, 1, 1]))


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: xarr.unique_values([1, 2], size=-1), ShapeError, "size must be"),
        (
            lambda: xarr.unique_values([1, 2], size=3, fill_value=[1, 2]),
            ShapeError,
            "a scalar for fill_value",
        ),
        (lambda: xarr.repeat([1, 2], [1, 2, 3]), ShapeError, r"or a vector of 2, .*got shape \(3,\)"),
        (lambda: xarr.repeat([1, 2], [1, -1]), ShapeError, "0 or more for repeats, got -1"),
        (lambda: xarr.repeat([1, 2], [0.5, 1]), DTypeError, "wanted integers for repeats"),
        (lambda: xarr.repeat([], xarr.asarray([1]), total_repeat_length=2), ShapeError, "wanted an element"),
        (lambda: xarr.searchsorted([[1]], 1), ShapeError, "a sorted vector"),
        (lambda: xarr.searchsorted([1], 1, side="middle"), ValueRangeError, "side 'left' or 'right'"),
        (lambda: xarr.searchsorted([1, 2], 1, sorter=[0]), ShapeError, r"a sorter of shape \(2,\)"),
        (lambda: xarr.searchsorted([1], 1, sorter=[0.0]), DTypeError, "integers for sorter"),
        (lambda: xarr.isin([1], [1], kind="hash"), ValueRangeError, "'sort', 'table' or None"),
        (lambda: xarr.diff(1), ShapeError, "rank 1 or more"),
        (lambda: xarr.diff([1], -1), ValueRangeError, "n of 0 or more"),
        (lambda: xarr.diff([[1, 2]], prepend=[[1], [2]]), ShapeError, "differ from shape"),
    ],
    ids=range(14),
)
def test_refusals(call: Callable[[], Any], error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        call()


# --- values beyond the records ---------------------------------------------------------------------------


def test_zeros_are_one_element_and_each_nan_is_another() -> None:
    result = xarr.unique_all([0.0, NAN, -0.0, NAN])
    assert_same(result.values, np.array([0.0, NAN, NAN]))
    assert_same(result.indices, np.array([0, 1, 3]))
    assert_same(result.inverse_indices, np.array([0, 1, 0, 2]))
    assert_same(result.counts, np.array([2, 1, 1]))
    assert_same(xarr.isin([NAN, -0.0], [NAN, 0.0]), np.array([False, True]))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float8_e4m3", "complex64", "bool"])
def test_searches_know_every_order(dtype: str) -> None:
    numbers = np.array([1, NAN, -2, 0, 4, 1]).astype(xarr.zeros(0, dtype=dtype).dtype)
    if dtype == "complex64":
        numbers = np.array([1 + 1j, 1 - 1j, -2, 0, 4j, 1 + 1j], dtype)
    ordered = xarr.sort(numbers)
    for side in ("left", "right"):
        wide = [
            np.asarray(x).astype("complex128" if dtype == "complex64" else "float64")
            for x in (ordered, numbers)
        ]
        assert_same(xarr.searchsorted(ordered, numbers, side), np.searchsorted(*wide, side=side))


def test_limits_are_python_numbers_of_every_float_type() -> None:
    for dtype in ("float16", "bfloat16", "float8_e5m2", "complex64"):
        limits = xarr.finfo(dtype)
        assert all(type(value) is float for value in (limits.eps, limits.max, limits.min, limits.tiny))
        assert limits.dtype == (dtype if dtype != "complex64" else "float32")
        assert limits == xarr.finfo(xarr.zeros(1, dtype=dtype))
        assert (xarr.ones(1, dtype=limits.dtype) + limits.eps).dtype == limits.dtype
    assert "finfo(bits=16, eps=" in repr(xarr.finfo("float16"))
    assert "nmant" in dir(xarr.finfo("float64"))
    assert xarr.finfo("float64") != xarr.finfo("float32")


@pytest.mark.parametrize("k", [2**63, -(2**63), 2**80])
def test_diagonals_far_outside_of_a_matrix(k: int) -> None:
    assert_same(xarr.eye(2, 3, k=k), np.zeros((2, 3)))
    ones = np.ones((2, 3))
    assert_same(xarr.tril(ones, k=k), ones if k > 0 else ones * 0)
    assert_same(xarr.triu(ones, k=k), ones * 0 if k > 0 else ones)


def test_complex_numbers_at_the_edge() -> None:
    inf = np.inf
    values = [
        complex(-inf, inf),
        complex(-inf, NAN),
        complex(inf, NAN),
        complex(-0.0, 0),
        complex(-0.0, -0.0),
    ]
    results = np.asarray(xarr.expm1(values))
    assert [str(value) for value in results] == ["(-1+0j)", "(-1+0j)", "(inf+nanj)", "0j", "-0j"]
    assert str(np.asarray(xarr.sign([complex(-0.0, -0.0)]))[0]) == "0j"


@pytest.mark.parametrize("sizes", [(0, 2), (3, 0), (0,), (0, 0)], ids=str)
def test_an_empty_mask_may_have_no_elements_in_any_dimension(sizes: tuple[int, ...]) -> None:
    x, mask = np.arange(6).reshape(3, 2), np.zeros(sizes, bool)
    for form in (mask, xarr.asarray(mask)):
        array = xarr.asarray(x)
        assert_same(array[form], x[mask])
        changed = array.at[form].set(9)
        assert_same(xarr.jit(lambda a, m: a.at[m].set(9))(array, xarr.asarray(mask)), x)
        array[form] = 9
        changed[0] = 1
        assert_same(array, x)
