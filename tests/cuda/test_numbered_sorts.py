"""Long rows that CUB sorts, beside NumPy, on a stand-in for Thrust that refuses what it does not take."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.libraries import THRUST, LibraryError
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.passes.sorted_updates import number_sorts
from xarr.ir import ops
from xarr_cupy import host, libraries

SPECIAL = np.array([0.0, -0.0, np.nan, -np.nan, np.inf, -np.inf, 1.0, -1e-40])


@pytest.fixture(autouse=True)
def short_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of 64 elements are long."""
    monkeypatch.setattr(libraries, "MIN_SORTED", 64)


def row(dtype: str, *shape: int) -> np.ndarray[Any, Any]:
    """A row of few different elements, all special ones among them."""
    rng = np.random.default_rng(0)
    if np.dtype(dtype).kind == "f":
        return rng.choice(SPECIAL, shape).astype(dtype)
    info = np.iinfo(dtype)
    ends = np.array([info.min, info.max, 0, 1], dtype)
    few = rng.integers(0, 5, shape, dtype)
    return np.where(rng.random(shape) < 0.5, rng.choice(ends, shape), few)


def launches_of(cupy: Any, function: Any, *arrays: Any) -> tuple[Any, int]:
    """The results of a jitted function of arrays that are on the device, and the kernels that it launches."""
    own = [xarr.asarray(each).block_until_ready() for each in arrays]
    compiled = xarr.jit(function)
    xarr.block_until_ready(compiled(*own))
    host.CALLS.clear()
    before = device(cupy).launches
    made = compiled(*own)
    results = [np.asarray(each) for each in (made if isinstance(made, tuple | list) else [made])]
    assert not host.CALLS
    return results, device(cupy).launches - before


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int32", "uint64"])
def test_rows_of_integers_are_a_copy_and_a_sort_in_place(dtype: str, cupy: Any) -> None:
    x = row(dtype, 1, 2**10)
    for function, is_kernel in ((lax.sort, False), (lambda x: lax.sort_with(x, lax.gt), True)):
        (result,), launches = launches_of(cupy, function, x)
        assert (launches > 0) == is_kernel
        assert_same(result, np.sort(x)[:, ::-1] if is_kernel else np.sort(x))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rows_of_floats_are_one_kernel_and_a_sort_in_place(dtype: str, cupy: Any) -> None:
    x = row(dtype, 2**10)
    copies = device(cupy).copies_inside
    (result,), launches = launches_of(cupy, lax.sort, x)
    assert launches == 1 and device(cupy).copies_inside == copies
    # NumPy's has NaN last and zeros in their order, as that of the library should be.
    assert_same(result, np.sort(x, kind="stable"))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "float32", "float64"])
def test_numbers_beside_keys_are_made_by_the_sort(dtype: str, cupy: Any) -> None:
    x = row(dtype, 2**10)

    def function(x: Any) -> Any:
        return lax.sort((x, lax.broadcasted_iota("int64", x.shape, 0)), num_keys=1)

    (keys, numbers), launches = launches_of(cupy, function, x)
    order = np.argsort(x, kind="stable")
    assert_same(keys, x[order])
    assert_same(numbers, order)
    # That makes all NaNs one.
    assert launches == (x.dtype.kind == "f")


def test_argsort_is_one_call(cupy: Any) -> None:
    x = row("int32", 2**10)
    (result,), launches = launches_of(cupy, xarr.argsort, x)
    assert launches == 0
    assert_same(result, np.argsort(x, kind="stable"))


def test_numbers_of_sorts_in_loops_and_branches(cupy: Any) -> None:
    x = row("int64", 100)

    def step(k: Any, x: Any) -> Any:
        numbers = xarr.argsort(x)
        return xarr.where(k % 2 == 0, x[numbers] - numbers, numbers)

    (result,), _ = launches_of(cupy, lambda x: lax.fori_loop(0, 3, step, x), x)
    with xarr.use_backend("reference"):
        assert_same(result, np.asarray(lax.fori_loop(0, 3, step, xarr.asarray(x))))


def test_a_sort_with_numbers_is_printed(cupy: Any) -> None:
    lowered = xarr.jit(xarr.argsort).lower(np.arange(100))
    assert "xarr.numbered_sort" in str(lowered.stage("fused"))
    assert "library sort(b0)" in str(lowered.stage("plan"))


@pytest.mark.parametrize(
    ("shape", "dtypes"),
    [
        *((shape, ("int32",)) for shape in ((63,), (2, 64))),
        *(((64,), (dtype,)) for dtype in ("float16", "bool", "complex64", "bfloat16")),
        ((64,), ("int32", "int32")),
        ((2, 64), ("int32", "iota")),
        ((64,), ("float16", "iota")),
        ((64,), ("int32", "iota", "int32")),
    ],
)
def test_other_sorts_are_kernels(shape: tuple[int, ...], dtypes: tuple[str, ...]) -> None:
    def function(*arrays: Any) -> Any:
        rest = iter(arrays)
        operands = [
            lax.broadcasted_iota("int64", shape, len(shape) - 1) if dtype == "iota" else next(rest)
            for dtype in dtypes
        ]
        return lax.sort(tuple(operands), num_keys=1)

    arrays = [xarr.zeros(shape, dtype=dtype) for dtype in dtypes if dtype != "iota"]
    graph = number_sorts(graph_of(function, *arrays), libraries.is_long_row)
    (node,) = [node for node in graph.nodes if isinstance(node.op, ops.Sort)]
    assert not libraries.computes(node)


@pytest.mark.parametrize(
    ("numbers", "keys"),
    [
        ("another axis", lambda x: (x, lax.broadcasted_iota("int64", x.shape, 1))),
        ("of a byte", lambda x: (x, lax.broadcasted_iota("int8", x.shape, 0))),
        ("of another type", lambda x: (x, lax.broadcasted_iota("int32", x.shape, 0))),
        ("floats", lambda x: (x, lax.broadcasted_iota("float64", x.shape, 0))),
        ("from 1 on", lambda x: (x, lax.broadcasted_iota("int64", x.shape, 0) + 1)),
        ("keys too", None),
    ],
)
def test_what_is_no_number_of_each_element_is_sorted_with_them(numbers: str, keys: Any, cupy: Any) -> None:
    x = row("int32", 100, 1)

    def function(x: Any) -> Any:
        if keys is None:
            return lax.sort((x, lax.broadcasted_iota("int64", x.shape, 0)), 0, num_keys=2)
        return lax.sort(keys(x), 0, num_keys=1)

    results, _ = launches_of(cupy, function, x)
    with xarr.use_backend("reference"):
        for got, wanted in zip(results, function(xarr.asarray(x)), strict=True):
            assert_same(got, np.asarray(wanted))


# --- the stand-in ----------------------------------------------------------------------------------------------


def test_the_sort_of_the_library_has_nan_with_a_sign_first() -> None:
    x = np.array([1.0, -0.0, np.nan, -np.nan, 0.0, -1.0], "f4")
    THRUST.sort(x.dtype, x.ctypes.data, 0, x.shape)
    assert_same(np.isnan(x), np.array([True, False, False, False, False, True]))
    assert_same(np.signbit(x[2:4]), np.array([True, False]))


def test_the_sort_refuses_what_thrust_lacks() -> None:
    x = np.zeros(4, xarr.bfloat16)
    with pytest.raises(LibraryError, match="sort: unsupported dtype bfloat16"):
        THRUST.sort(x.dtype, x.ctypes.data, 0, x.shape)
    with pytest.raises(LibraryError, match="one row was expected"):
        THRUST.argsort(np.dtype("i4"), x.ctypes.data, x.ctypes.data, 0, (2, 2))
