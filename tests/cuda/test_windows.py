"""Wide windows, which the emulated device reduces axis by axis."""

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
