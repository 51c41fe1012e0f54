"""SelectAndScatter on the emulated device: windows note what they select, and elements go through their windows."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device, run_reference
from xarr import lax
from xarr.compiler.loop_ir.loops import Kernel
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: Shapes of arrays, sizes, strides and padding of windows.
WINDOWS: dict[str, tuple[Any, ...]] = {
    "pooling": ((2, 9, 8, 3), (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0),) * 4),
    "images side by side": ((2, 2, 7, 8), (1, 1, 3, 2), (1, 1, 2, 2), ((0, 0), (0, 0), (1, 1), (0, 1))),
    "every step": ((11, 5), (4, 2), (1, 1), ((2, 3), (0, 1))),
    "gaps": ((13, 6), (2, 1), (5, 2), ((1, 4), (0, 0))),
    "cut off": ((12, 9), (3, 3), (2, 2), ((-3, -2), (-1, 4))),
    "far in padding": ((3, 4), (2, 2), (2, 1), ((5, 6), (0, 3))),
    "wide steps": ((40, 3), (9, 1), (7, 1), ((2, 1), (0, 0))),
    "long steps": ((90, 3), (3, 1), (40, 1), ((0, 9), (0, 0))),
    "wide and cut off": ((20, 21), (10, 9), (3, 1), ((-2, 5), (4, -3))),
    "scalars": ((), (), (), ()),
}
WIDE = ("wide and cut off", "long steps")


def call(name: str, select: Any = lax.ge, scatter: Any = lax.add) -> Any:
    _, sizes, strides, padding = WINDOWS[name]

    def function(x: Any, source: Any) -> Any:
        initial = xarr.asarray(2, dtype=x.dtype)
        return lax.select_and_scatter(x, select, sizes, strides, padding, source, initial, scatter)

    return function


def operands(name: str, dtype: str = "float32") -> list[Any]:
    """Numbers with many ties, and a source with an element for each window."""
    shape, sizes, strides, padding = WINDOWS[name]
    rows = zip(shape, sizes, strides, padding, strict=True)
    windows = [(size + sum(pad) - own) // step + 1 for size, own, step, pad in rows]
    rng = np.random.default_rng(1)
    x, source = rng.integers(-4, 5, shape), rng.normal(size=windows) * 9
    return [np.asarray(each).astype(xarr.dtype(dtype)) for each in (x, source)]


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", WINDOWS)
def test_sums_have_the_bits_of_the_reference_in_each_order(
    name: str, order: str, cupy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device(cupy), "order", order)
    arrays = operands(name)
    result = np.asarray(xarr.jit(call(name))(*map(xarr.asarray, arrays)))
    assert result.tobytes() == run_reference(call(name), arrays).tobytes()


@pytest.mark.parametrize("name", ["pooling", *WIDE])
def test_no_two_threads_meet(name: str, cupy: Any) -> None:
    device(cupy).races = True
    arrays = operands(name)
    for function in (call(name), xarr.jit(call(name))):
        assert_same(function(*map(xarr.asarray, arrays)), run_reference(call(name), arrays))


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["pooling", "wide and cut off"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int8", "uint64", "bool", "complex64"])
def test_each_element_type(dtype: str, name: str, cupy: Any) -> None:
    arrays = operands(name, dtype)
    if dtype == "bool":
        function = call(name, scatter=lax.bitwise_xor)
    else:
        function = call(
            name, lambda a, b: lax.ge(lax.real(a), lax.real(b)) if dtype.startswith("c") else lax.ge(a, b)
        )
    assert_same(function(*map(xarr.asarray, arrays)), run_reference(function, arrays))


@pytest.mark.parametrize("name", ["cut off", "wide and cut off"])
def test_any_computation_selects_and_combines_in_order(name: str, cupy: Any) -> None:
    function = call(name, lambda a, b: lax.lt(a * a, b + 3), lambda a, b: a * 0.5 - b)
    arrays = operands(name)
    result = np.asarray(function(*map(xarr.asarray, arrays)))
    assert result.tobytes() == run_reference(function, arrays).tobytes()


@pytest.mark.parametrize("name", ["every step", "wide and cut off"])
def test_nan_and_infinity_are_selected_as_they_compare(name: str, cupy: Any) -> None:
    arrays = operands(name)
    arrays[0].ravel()[::3], arrays[0].ravel()[1::5] = np.nan, -np.inf
    arrays[1].ravel()[::4], arrays[1].ravel()[1::7] = -0.0, np.nan
    for select in (lax.ge, lax.gt, lax.lt, lax.ne):
        function = call(name, select)
        assert_same(function(*map(xarr.asarray, arrays)), run_reference(function, arrays))


def program(name: str) -> Kernel:
    return verify(program_of(graph_of(call(name), *operands(name))))


def test_notes_are_as_small_as_numbers_in_windows() -> None:
    assert [str(each.dtype) for each in program("pooling").scratch] == ["uint8", "float32"]
    shape, window = (300, 2), (256, 1)

    def function(x: Any, source: Any) -> Any:
        return lax.select_and_scatter(x, lax.ge, window, (1, 1), "VALID", source, np.float32(0), lax.add)

    graph = graph_of(function, np.zeros(shape, np.float32), np.zeros((45, 2), np.float32))
    assert str(verify(program_of(graph)).scratch[0].dtype) == "uint16"


@pytest.mark.parametrize("name", WINDOWS)
def test_there_are_two_phases_and_the_copy_of_their_result(name: str) -> None:
    assert len(program(name).phases) <= 3


def test_elements_of_the_same_windows_share_the_notes_of_these() -> None:
    """Of windows of 3×3 with steps of 2 four elements need the notes of four: one load for each element."""
    assert str(program("pooling")).count("? scratch0[") == 4
