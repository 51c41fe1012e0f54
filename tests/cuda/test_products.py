"""Products and convolutions by tiles that a block shares, on the emulated device.

Integers have the bits of the CPU in each order of the threads, floats are within the bounds of their sums, and no two
threads race.
"""

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
from xarr.compiler.loop_ir.loops import LoopError, Runs
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def contract(lhs: tuple[int, ...], rhs: tuple[int, ...]) -> Any:
    return lambda x, y: lax.dot_general(x, y, (((lhs[-1],), (rhs[-1],)), (lhs[:-1], rhs[:-1])))


def convolve(x: Any, w: Any, **options: Any) -> Any:
    return lax.conv_general_dilated(x, w, **{"window_strides": (1, 1), "padding": "SAME", **options})


#: Functions, and the shapes of two arrays: lines and terms that fill tiles, and that stick out of them.
PRODUCTS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "whole tiles": (contract((0, 2), (0, 1)), (32, 64, 16), (32, 16, 64)),
    "tiles that stick out": (contract((0, 2), (0, 1)), (8, 70, 19), (8, 19, 65)),
    "terms first": (contract((1, 0), (2, 0)), (9, 32, 17), (9, 20, 32)),
    "terms last": (contract((0, 2), (0, 2)), (32, 17, 33), (32, 16, 33)),
    "several free axes": (lambda x, y: xarr.tensordot(x, y, axes=((1,), (0,))), (30, 9, 50), (9, 10, 10)),
    "computed factors": (lambda x, y: xarr.matmul(x * x + 1, y - 3), (32, 16, 9), (32, 9, 16)),
}
CONVOLUTIONS: dict[str, tuple[Any, tuple[int, ...], tuple[int, ...]]] = {
    "features first": (convolve, (2, 3, 36, 36), (16, 3, 3, 3)),
    "features last": (
        lambda x, w: convolve(x, w, dimension_numbers=("NHWC", "HWIO", "NHWC")),
        (2, 36, 36, 5),
        (3, 3, 5, 17),
    ),
    "strides, holes and negative padding": (
        lambda x, w: convolve(
            x, w, window_strides=(1, 2), padding=((-1, 2), (3, -2)), lhs_dilation=(1, 2), rhs_dilation=(2, 1)
        ),
        (3, 4, 30, 33),
        (16, 4, 2, 3),
    ),
    "one element": (lambda x, w: convolve(x, w, padding="VALID"), (2, 9, 32, 32), (16, 9, 1, 1)),
    "groups": (lambda x, w: convolve(x, w, feature_group_count=2), (2, 18, 8, 8), (32, 9, 3, 3)),
}
CASES = {**PRODUCTS, **CONVOLUTIONS}


def arrays_of(name: str, dtype: str) -> list[Any]:
    rng = np.random.default_rng(len(name))
    return [rng.integers(-9, 9, shape).astype(dtype) for shape in CASES[name][1:]]


@pytest.mark.parametrize("name", CASES)
def test_tiles_have_the_bits_of_the_cpu(name: str, cupy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    function, arrays = xarr.jit(CASES[name][0]), arrays_of(name, "int32")
    with xarr.use_backend("numpy"):
        wanted = np.asarray(function(*map(xarr.asarray, arrays)))
    for order in ORDERS:
        monkeypatch.setattr(device(cupy), "order", order)
        assert np.asarray(function(*map(xarr.asarray, arrays))).tobytes() == wanted.tobytes(), order


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float32", "bfloat16", "complex64"])
@pytest.mark.parametrize("name", ["tiles that stick out", "features last"])
def test_tiles_of_each_element_type(name: str, dtype: str, cupy: Any) -> None:
    if dtype == "bool" and name == "features last":
        dtype = "float64"
    arrays = [xarr.astype(xarr.asarray(each), dtype) for each in map(np.asarray, arrays_of(name, "float32"))]
    result = np.asarray(xarr.astype(xarr.jit(CASES[name][0])(*arrays), "complex128"))
    with xarr.use_backend("numpy"):
        exact = [xarr.asarray(np.asarray(each)) for each in arrays]
        wanted = np.asarray(xarr.astype(CASES[name][0](*exact), "complex128"))
    # Sums of small integers are exact, but the sign of zero depends on the order of terms.
    np.testing.assert_array_equal(result, wanted)


@pytest.mark.parametrize("name", ["tiles that stick out", "features first", "features last"])
def test_tiles_have_no_race(name: str, cupy: Any) -> None:
    device(cupy).races = True
    np.asarray(xarr.jit(CASES[name][0])(*map(xarr.asarray, arrays_of(name, "int32"))))


def test_padding_does_not_meet_infinity(cupy: Any) -> None:
    x, w = (each.astype(np.float32) for each in map(np.asarray, arrays_of("features first", "float32")))
    w[:, :, 0] = np.inf
    x[:] = 1
    result = np.asarray(xarr.jit(convolve)(xarr.asarray(x), xarr.asarray(w)))
    with xarr.use_backend("numpy"):
        wanted = np.asarray(convolve(xarr.asarray(x), xarr.asarray(w)))
    assert np.isfinite(wanted[:, :, 0]).all() and np.isinf(wanted[:, :, 1:]).all()
    assert_same(result, wanted)


@pytest.mark.parametrize("name", CASES)
def test_blocks_have_tiles(name: str) -> None:
    kernel = verify(program_of(graph_of(CASES[name][0], *arrays_of(name, "int32"))))
    has_tiles = any(Runs.LOCKSTEP in loop.runs for loop in kernel.phases[0].walk())
    assert has_tiles == (name != "groups")


def test_small_products_have_none() -> None:
    small, line = np.zeros((64, 64), np.int32), np.zeros((5000, 1), np.int32)
    for arrays in ((small, small), (line[:64].T, small), (line, line.T)):
        kernel = program_of(graph_of(contract((1,), (0,)), *arrays))
        assert not any(Runs.LOCKSTEP in loop.runs for phase in kernel.phases for loop in phase.walk())


def test_a_block_shares_nothing_that_differs_from_thread_to_thread() -> None:
    kernel = program_of(graph_of(CASES["whole tiles"][0], *arrays_of("whole tiles", "int32")))
    (lockstep,) = (loop for loop in kernel.phases[0].walk() if Runs.LOCKSTEP in loop.runs)
    (fill,) = (loop for loop in lockstep.walk() if loop.runs == Runs.BLOCK)
    (store, *_) = fill.stores()
    fill.body.append(type(store)(store.buffer, store.offset, lockstep.index.convert(store.buffer.dtype)))
    with pytest.raises(LoopError, match="L10: a block shares what differs from thread to thread"):
        verify(kernel)
