"""Wide windows, which the emulated device reduces axis by axis, or in tiles."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device
from xarr import lax
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Arguments of `reduce_window` behind the computation, for an array of 3 axes.
WINDOWS: dict[str, tuple[Any, ...]] = {
    "two axes": ((1, 7, 9), (1, 1, 1), "SAME"),
    "three axes": ((2, 5, 6), (1, 1, 1), "VALID"),
    "strides and padding": ((1, 8, 8), (1, 3, 2), ((0, 0), (9, 3), (-2, 12))),
    "holes": ((1, 6, 7), (2, 1, 1), ((0, 0), (3, 4), (5, 6)), (1, 2, 1), (1, 1, 3)),
}
COMPUTATIONS = {
    "sum": (lax.add, 5),
    "product": (lax.mul, 3),
    "maximum": (lax.max, 2),
    "minimum": (lax.min, 4),
}


def call(name: str, of: str) -> Any:
    computation, initial = COMPUTATIONS[of]
    return lambda x: lax.reduce_window(x, xarr.asarray(initial, dtype=x.dtype), computation, *WINDOWS[name])


def array(dtype: str) -> Any:
    return np.random.default_rng(3).integers(-9, 9, (3, 19, 21)).astype(dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("of", COMPUTATIONS)
@pytest.mark.parametrize("name", WINDOWS)
def test_wide_windows_have_the_bits_of_the_cpu(
    name: str, of: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = xarr.jit(call(name, of))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(array("int32"))))
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        assert np.asarray(function(xarr.asarray(array("int32")))).tobytes() == wanted.tobytes(), order


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "uint64"])
@pytest.mark.parametrize("of", ["sum", "maximum"])
def test_wide_windows_of_each_element_type(of: str, dtype: str, cupy: Any) -> None:
    # Sums that bfloat16 holds exactly.
    x = array("int32") % 2
    function = xarr.jit(lambda x: call("two axes", of)(xarr.astype(x, dtype)))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    assert_same(np.asarray(function(xarr.asarray(x))), wanted)


def test_wide_windows_keep_nan_and_infinity(cupy: Any) -> None:
    x = np.zeros((3, 19, 21), np.float32)
    x[0, 3, 4], x[1, 10, 0], x[2, 18, 20] = np.nan, np.inf, -np.inf
    for of in ("sum", "maximum", "minimum"):
        with xarr.use_backend("numpy"):
            wanted = np.asarray(call("two axes", of)(xarr.asarray(x)))
        assert_same(np.asarray(call("two axes", of)(xarr.asarray(x))), wanted)


def phases(function: Any, dtype: str = "float32") -> int:
    return len(verify(program_of(graph_of(function, array(dtype)))).phases)


def test_each_axis_is_a_phase() -> None:
    small = lax.reduce_window
    assert phases(call("two axes", "sum")) == phases(call("two axes", "sum"), "int32") == 2 + 1
    assert phases(call("three axes", "maximum")) == 3 + 1
    assert (
        phases(lambda x: small(x, xarr.zeros((), dtype=x.dtype), lax.add, (1, 3, 3), (1, 1, 1), "SAME")) <= 2
    )
    assert (
        phases(lambda x: small(x, xarr.zeros((), dtype=x.dtype), lax.add, (1, 1, 64), (1, 1, 1), "SAME")) <= 2
    )
    assert phases(call("two axes", "sum"), "complex64") <= 2


#: Shapes of arrays, and arguments of `reduce_window` behind the computation: tiles, and what surrounds them.
TILED: dict[str, tuple[Any, ...]] = {
    "inside": ((52, 300), (31, 31), (1, 1), "VALID"),
    "padding": ((2, 21, 260), (1, 5, 8), (1, 1, 1), ((0, 0), (3, 1), (2, 9))),
    "cut off": ((25, 320), (9, 17), (1, 1), ((-2, 3), (-5, -6))),
    "columns alone": ((300, 18), (1, 20), (1, 1), ((0, 0), (15, 12))),
    "many columns": ((3, 400), (1, 40), (1, 1), "SAME"),
    "one axis": ((4100,), (33,), (1,), "SAME"),
    "three axes": ((5, 20, 200), (3, 4, 9), (1, 1, 1), "SAME"),
    "one axis with steps": ((30, 12, 200), (8, 4, 9), (1, 2, 1), "SAME"),
    "channels last": ((2, 30, 20, 5), (1, 9, 7, 1), (1, 1, 1, 1), "SAME"),
    "wider than is unrolled": ((120, 4), (90, 1), (1, 1), ((0, 60), (0, 0))),
}


def case_of(name: str, of: str) -> tuple[Any, Any]:
    """A function and an array of integers for it."""
    shape, *arguments = TILED[name]
    computation, initial = COMPUTATIONS[of]

    def function(x: Any) -> Any:
        return lax.reduce_window(x, xarr.asarray(initial, dtype=x.dtype), computation, *arguments)

    return function, np.random.default_rng(5).integers(-9, 9, shape)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "of"), [*[(name, "sum") for name in TILED], ("inside", "maximum"), ("channels last", "minimum")]
)
def test_neighbouring_windows_have_the_bits_of_the_cpu(
    name: str, of: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    function, x = case_of(name, of)
    x = x.astype("int32" if of == "sum" else "float32")
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        assert np.asarray(xarr.jit(function)(xarr.asarray(x))).tobytes() == wanted.tobytes(), order
    assert np.asarray(function(xarr.asarray(x))).tobytes() == wanted.tobytes()


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["inside", "padding", "one axis", "channels last"])
def test_neighbouring_windows_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    function, x = case_of(name, "sum")
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    assert_same(np.asarray(function(xarr.asarray(x))), wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int8", "uint64", "bool"])
@pytest.mark.parametrize(
    ("name", "of"), [("padding", "sum"), ("channels last", "minimum"), ("padding", "product")]
)
def test_neighbouring_windows_of_each_element_type(name: str, of: str, dtype: str, cupy: Any) -> None:
    arguments = TILED[name][1:]
    bitwise = {"sum": lax.bitwise_or, "product": lax.bitwise_and, "minimum": lax.bitwise_xor}
    computation = bitwise[of] if dtype == "bool" else COMPUTATIONS[of][0]

    def function(x: Any) -> Any:
        return lax.reduce_window(x, xarr.asarray(1, dtype=x.dtype), computation, *arguments)

    _, x = case_of(name, of)
    x = (np.where(x > 7, 2, 1) if of == "product" else x % 2).astype(xarr.dtype(dtype))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    assert_same(np.asarray(function(xarr.asarray(x))), wanted)


@pytest.mark.parametrize("name", ["inside", "padding"])
def test_tiles_keep_nan_infinity_and_the_signs_of_zeros(name: str, cupy: Any) -> None:
    for of in ("sum", "maximum", "minimum"):
        function, x = case_of(name, of)
        x = np.where(x > 0, -0.0, 0.0).astype(np.float32)
        x.ravel()[::997], x.ravel()[5::1499], x.ravel()[7::1777] = np.nan, np.inf, -np.inf
        with xarr.use_backend("numpy"):
            wanted = np.asarray(function(xarr.asarray(x)))
        assert_same(np.asarray(function(xarr.asarray(x))), wanted)


def test_sums_in_tiles_stay_within_bounds(cupy: Any) -> None:
    function, x = case_of("inside", "sum")
    x = (x * 0.1 + 1e4).astype(np.float32)
    result = np.asarray(function(xarr.asarray(x)), np.float64)
    exact = np.lib.stride_tricks.sliding_window_view(x.astype(np.float64), (31, 31)).sum((2, 3)) + 5
    assert np.abs(result / exact - 1).max() < 62 * 2**-24


def test_two_axes_are_one_phase_in_tiles() -> None:
    function, x = case_of("inside", "maximum")
    for dtype in ("bfloat16", "float32"):
        kernel = verify(program_of(graph_of(function, x.astype(xarr.dtype(dtype)))))
        assert len(kernel.phases) == 1 + 1
        assert [each.dtype.itemsize for each in kernel.scratch] == [xarr.dtype(dtype).itemsize]


def test_extrema_of_narrow_floats_are_handed_on_as_such() -> None:
    function, x = case_of("channels last", "maximum")
    kernel = verify(program_of(graph_of(function, x.astype(xarr.dtype("bfloat16")))))
    assert [each.dtype.itemsize for each in kernel.scratch] == [2, 2]


def test_windows_of_several_arrays(cupy: Any) -> None:
    def function(x: Any) -> Any:
        initial = xarr.zeros((), dtype=x.dtype)
        sums = lax.reduce_window(
            (x, x * 2),
            (initial, initial),
            lambda a, b: (a[0] + b[0], a[1] - b[1]),
            (1, 2, 3),
            (1, 1, 1),
            "VALID",
        )
        return sums[0] + sums[1]

    x = array("int32")
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(xarr.asarray(x)))
    assert_same(np.asarray(function(xarr.asarray(x))), wanted)
