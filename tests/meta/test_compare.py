"""The comparator accepts what is the same and rejects each kind of difference, saying where it lies."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.compare import assert_same, ulp_distances
from xarr import lax
from xarr.backend import get
from xarr.dtypes import TABLE
from xarr.ir.graph import data
from xarr.ir.types import TensorType
from xarr.runtime.handles import wrap

#: All but the powers of two, which have no neighbours on both sides of zero.
FLOATS = [
    row.dtype.type
    for row in TABLE
    if row.kind == "float" and row.bits >= 8 and row.dtype != ml_dtypes.float8_e8m0fnu
]
SIGNED_ZERO = [dtype for dtype in FLOATS if "fnuz" not in dtype.__name__]


def assert_refused(actual: Any, expected: Any, message: str, **options: Any) -> None:
    with pytest.raises(AssertionError, match=re.escape(message)):
        assert_same(actual, expected, **options)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (2, 0, 3), (2, 3, 2)])
@pytest.mark.parametrize("dtype", [*FLOATS, np.bool_, np.int8, np.uint64, np.complex64, np.complex128])
def test_an_array_is_the_same_as_itself(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.ones(shape, dtype)
    assert_same(array, array.copy())
    assert_same(array, array.copy(), ulp=1)


def test_memory_order_does_not_matter() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert_same(array.T, np.ascontiguousarray(array.T))
    assert_same(array[:, ::-1], array[:, ::-1].copy())


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_nan_is_the_same(dtype: Any) -> None:
    payload = np.array([np.nan], np.float32).view(np.uint32) | np.uint32(1)
    assert_same(payload.view(np.float32).astype(dtype), np.array([-np.nan], dtype))
    assert_refused(np.array([np.nan], dtype), np.array([1.0], dtype), "a NaN against a number")
    assert_refused(np.array([1.0], dtype), np.array([np.nan], dtype), "a NaN against a number", ulp=1000)


def test_another_dtype_is_refused_even_if_values_agree() -> None:
    assert_refused(np.float32(1), np.float64(1), "dtype: got float32, wanted float64")


@pytest.mark.parametrize("shape", [(), (1, 1), (2,)])
def test_another_shape_is_refused_even_if_it_broadcasts(shape: tuple[int, ...]) -> None:
    assert_refused(np.ones(shape), np.ones((1,)), f"shape: got {shape}, wanted (1,)")


@pytest.mark.parametrize("dtype", SIGNED_ZERO)
def test_the_sign_of_zero_counts_exactly_and_not_in_ulp(dtype: Any) -> None:
    plus, minus = np.array([0.0], dtype), np.array([-0.0], dtype)
    assert_refused(minus, plus, "equal, but the bits differ")
    assert_same(minus, plus, ulp=1)


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours_are_one_ulp_apart(dtype: Any) -> None:
    one = np.array([[1.0, -1.0]], dtype)
    bits = one.view(f"u{one.itemsize}") + np.array([[0, 2]], f"u{one.itemsize}")
    assert_refused(bits.view(dtype), one, "at index (0, 1)")
    assert_refused(bits.view(dtype), one, "2 ULP apart", ulp=1)
    assert_same(bits.view(dtype), one, ulp=2)


def test_ulp_are_counted_across_zero_and_to_infinity() -> None:
    least, most = np.float64(5e-324), np.finfo(np.float64).max
    got = np.array([least, most, -most, np.inf])
    wanted = np.array([-least, np.inf, most, -np.inf])
    span = 2 * int(np.float64(np.inf).view(np.uint64))
    assert [int(d) for d in ulp_distances(got, wanted)] == [2, 1, span - 2, span]


def test_powers_of_two_are_counted_without_a_sign() -> None:
    ones = np.array([1.0], ml_dtypes.float8_e8m0fnu)
    assert_same(ones + ones, ones, ulp=1)
    assert_refused(ones + ones + ones + ones, ones, "2 ULP apart", ulp=1)


@pytest.mark.parametrize("dtype", [np.int8, np.uint64, np.int64])
def test_integers_are_exact_whatever_the_ulp(dtype: Any) -> None:
    limits = np.iinfo(dtype)
    got, wanted = np.array([5, limits.max], dtype), np.array([5, limits.min], dtype)
    assert_refused(got, wanted, "at index (1,)", ulp=4)
    assert_refused(np.array(limits.max, dtype), np.array(limits.max - 1, dtype), "1 apart", ulp=4)


def test_bools_are_exact_whatever_the_ulp() -> None:
    assert_refused(np.array([True]), np.array([False]), "got True, wanted False: 1 apart", ulp=4)


@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
def test_complex_parts_are_compared_one_by_one(dtype: Any) -> None:
    part = np.dtype(dtype).type(0).real.dtype
    next_to_one = np.nextafter(part.type(1), part.type(2))
    assert_refused(np.array(complex(1, next_to_one), dtype), np.array(1 + 1j, dtype), "1 ULP apart", ulp=0.5)
    assert_refused(
        np.array(complex(-0.0, 1), dtype), np.array(complex(0.0, 1), dtype), "equal, but the bits differ"
    )
    assert_refused(np.array(complex(0, np.nan), dtype), np.array(0j, dtype), "a NaN against a number", ulp=9)
    assert_same(np.array(complex(1, np.nan), dtype), np.array(complex(1, np.nan), dtype))


def test_normwise_measures_by_the_larger_part() -> None:
    wanted = np.array([1e-9 + 1j], np.complex64)
    got = wanted + np.complex64(0.75 * np.spacing(np.float32(1)))
    assert_refused(got, wanted, "ULP apart", ulp=1)
    assert_same(got, wanted, ulp=1, normwise=True)
    assert_refused(got, wanted, "1 of 1 elements of complex64[1]", ulp=0.5, normwise=True)
    assert_refused(np.array([complex(np.inf, 1)], np.complex64), wanted, "ULP apart", ulp=4, normwise=True)


def test_the_message_shows_the_worst_element() -> None:
    wanted = np.ones((2, 3), np.float32)
    got = wanted.copy()
    got[0, 1] = np.nextafter(np.float32(1), np.float32(2))
    got[1, 2] = 1.5
    assert_refused(
        got,
        wanted,
        "2 of 6 elements of float32[2, 3] differ by more than 0 ULP; the worst at index (1, 2): "
        "got 1.5 (0x3fc00000), wanted 1.0 (0x3f800000): 4.1943e+06 ULP apart",
    )


def test_an_array_must_compute_the_type_it_inferred() -> None:
    assert_same(lax.add(np.float32([1, 2]), np.float32([1, 2])), np.float32([2, 4]))
    value, backend = np.ones((2,), np.float32), get("numpy")
    wider, longer = TensorType((2,), np.dtype(np.float64)), TensorType((3,), value.dtype)
    assert_refused(
        wrap(data(wider, value, backend.device())), value, "dtype: inferred float64, computed float32"
    )
    assert_refused(wrap(data(longer, value, backend.device())), value, "shape: inferred (3,), computed (2,)")


@pytest.mark.parametrize("value", [[1.0], 1.0, (1, 2)])
def test_values_without_a_dtype_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="wanted something with a dtype"):
        assert_same(np.ones(1), value)
