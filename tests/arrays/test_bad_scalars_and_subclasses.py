"""Numbers that a given element type cannot hold, and arrays of NumPy's subclasses and odd dtypes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr import lax
from xarr.errors import DTypeError, InputError, ValueRangeError

MASKED = np.ma.masked_array([1.0, 2.0, 3.0], [False, True, False])
X = xarr.asarray([0.0, 1.0, 2.0])

TAKES_AN_ARRAY: dict[str, Callable[[Any], Any]] = {
    "asarray": xarr.asarray,
    "operator": lambda value: X + value,
    "reflected": lambda value: X.__rmul__(value),
    "function": xarr.sum,
    "lax": lambda value: lax.mul(X, value),
}


@pytest.mark.parametrize("take", TAKES_AN_ARRAY.values(), ids=TAKES_AN_ARRAY)
def test_a_mask_is_not_dropped(take: Callable[[Any], Any]) -> None:
    with pytest.raises(InputError, match=r"masked array .*x\.filled\(0\).*numpy\.asarray\(x\)"):
        take(MASKED)
    for fixed in (MASKED.filled(0), np.asarray(MASKED), np.ma.masked_array([1.0, 2.0, 3.0])):
        take(fixed)
    with pytest.raises(InputError, match="masked array"):
        take(np.ma.masked)


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
def test_matrices_keep_their_own_product() -> None:
    matrix = np.matrix([[1.0, 2.0, 3.0]])
    for compute in (
        lambda: X * matrix,
        lambda: matrix * X,
        lambda: xarr.sum(matrix),
        lambda: lax.exp(matrix),
    ):
        with pytest.raises(InputError, match=r"numpy\.matrix .*pass numpy\.asarray\(x\)"):
            compute()
    assert np.asarray(xarr.asarray(matrix)).tolist() == [[1, 2, 3]]
    assert np.asarray(lax.exp(np.asarray(matrix))).shape == (1, 3)


@pytest.mark.parametrize("dtype", ["float32", "int8", "bfloat16"])
def test_imaginary_parts_are_not_dropped(dtype: str) -> None:
    for compute in (
        lambda: xarr.asarray([1j], dtype),
        lambda: xarr.asarray([[0, 2 + 0j]], dtype),
        lambda: xarr.asarray(1j, dtype),
        lambda: xarr.linspace(0, 1j, 3, dtype=dtype),
    ):
        with pytest.raises(DTypeError, match=r"complex"):
            compute()
    assert np.asarray(xarr.asarray([1j, 0], "bool")).tolist() == [True, False]
    assert np.asarray(xarr.asarray([1j], "complex64")).tolist() == [1j]


@pytest.mark.parametrize(
    ("value", "dtype", "fix"), [(300, "uint8", "uint16"), (-1, "uint8", "int8"), (2**63, "int64", "uint64")]
)
def test_an_element_type_that_was_given(value: int, dtype: str, fix: str) -> None:
    model = xarr.zeros(2, dtype=dtype)
    calls: list[Callable[[str], Any]] = [
        lambda element: xarr.asarray(value, element),
        lambda element: xarr.asarray([value], element),
        lambda element: xarr.full((2,), value, dtype=element),
        lambda element: xarr.full_like(model, value, dtype=element),
        lambda element: lax.full((2,), value, element),
        lambda element: lax.full_like(model, value, element),
    ]
    for call in calls:
        with pytest.raises(
            ValueRangeError, match=rf'out of bounds for {dtype} .*; give dtype="{fix}"'
        ) as caught:
            call(dtype)
        assert "promote" not in str(caught.value)
        assert np.asarray(call(fix)).ravel()[0] == value
    with pytest.raises(ValueRangeError, match="to promote the result"):
        model + value
    with pytest.raises(ValueRangeError, match='give dtype="float64"'):
        xarr.asarray(2**70, dtype)


def test_arrays_of_python_numbers() -> None:
    for values, kind in (([1, 2], int), ([1, 2.5], float), ([True, 1j], complex)):
        array = np.array(values, object)
        with pytest.raises(InputError, match=rf"dtype object .*\.astype\({kind.__name__}\)"):
            xarr.asarray(array)
        assert np.asarray(xarr.asarray(array.astype(kind))).tolist() == values
    with pytest.raises(InputError, match="too large for any element type"):
        xarr.asarray([2**70])


def test_structures_and_bytes_name_a_fix_that_works() -> None:
    records = np.zeros(2, [("height", float), ("width", np.int8)])
    with pytest.raises(DTypeError, match=r"take one of its fields, e\.g\. x\['height'\]"):
        xarr.asarray(records)
    assert xarr.asarray(records["height"]).shape == (2,)
    with pytest.raises(DTypeError, match=r"x\.view\('uint8'\)"):
        xarr.asarray(np.zeros(2, "V2"))
    assert xarr.asarray(np.zeros(2, "V2").view("uint8")).shape == (4,)
    with pytest.raises(DTypeError, match=r"\.astype\('complex128'\)"):
        xarr.asarray(np.zeros(2, np.clongdouble))


@pytest.mark.parametrize("ndmin", [65, 2**63])
def test_ndmin_has_a_bound(ndmin: int) -> None:
    with pytest.raises(ValueRangeError, match="ndmin <= 64"):
        xarr.array(X, ndmin=ndmin)
    assert xarr.array(X, ndmin=-1).shape == (3,)
    assert xarr.array(X, ndmin=64).shape == (1,) * 63 + (3,)


def test_a_class_derived_from_array_says_what_to_do_instead() -> None:
    class Plain(xarr.Array):
        pass

    class WithText(xarr.Array):
        def __init__(self, values: Any, text: str) -> None:
            super().__init__(values)

    for make in (lambda: Plain(np.ones(3)), Plain, lambda: WithText(np.ones(3), "m")):
        with pytest.raises(
            InputError, match=r"(Plain|WithText): wanted Array itself.*as an attribute, x = xarr"
        ):
            make()
