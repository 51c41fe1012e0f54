"""Neighbouring points of a thread on the emulated device, where these load the same elements."""

from __future__ import annotations

import shutil
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.compiler.schedules.serial.test_serial_loops import graph_of
from tests.cuda.emulator.module import ORDERS
from tests.cuda.test_cupy_backend import device, run_reference
from xarr import lax
from xarr.compiler.loop_ir.loops import grid_loops, loads_of
from xarr.compiler.loop_ir.verifier import verify
from xarr.compiler.schedules.gpu.builders import program_of
from xarr.compiler.schedules.gpu.target import TARGET
from xarr_cupy import backend

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

#: A device that few threads keep busy, so that arrays may be small.
SMALL = TARGET.replace(busy_threads=2**5)


@pytest.fixture
def few_threads(cupy: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The emulated backend, whose threads take neighbours of small arrays too."""
    small = {key: replace(each, target=SMALL) for key, each in backend._SCHEDULES.items()}
    monkeypatch.setattr(backend, "_SCHEDULES", small)
    return cupy


def convolve(x: Any, weights: Any, padding: Any = "SAME") -> Any:
    """By channels, which lie last."""
    return lax.conv_general_dilated(
        x,
        weights,
        (1, 1),
        padding,
        dimension_numbers=("NHWC", "HWIO", "NHWC"),
        feature_group_count=x.shape[-1],
    )


def pool(x: Any, initial: Any, computation: Any, stride: int, padding: Any = "VALID") -> Any:
    first = xarr.asarray(initial, dtype=x.dtype)
    return lax.reduce_window(x, first, computation, (1, 3, 3, 1), (1, stride, stride, 1), padding)


def second_differences(x: Any) -> Any:
    return x[2:] - 2 * x[1:-1] + x[:-2]


#: Functions, the shapes of their arrays, and the loads of a thread for its points.
CASES: dict[str, tuple[Any, list[tuple[int, ...]], tuple[int, int]]] = {
    "largest of windows": (lambda x: pool(x, -99, lax.max, 1), [(2, 9, 14, 33)], (18, 4)),
    "windows with steps": (lambda x: pool(x, -99, lax.max, 2), [(2, 9, 13, 33)], (9, 1)),
    "sums of windows": (lambda x: pool(x, 2, lax.add, 1, "SAME"), [(2, 5, 16, 33)], (18, 4)),
    "any computation": (
        lambda x: pool(x, 2, lambda a, b: a * 2 - b, 1, ((0, 0), (1, 2), (-1, 2), (0, 0))),
        [(2, 9, 17, 33)],
        (18, 4),
    ),
    "convolution by channels": (convolve, [(2, 5, 20, 35), (3, 3, 1, 35)], (18 + 9, 4)),
    "convolution with two results of a channel": (
        lambda x, w: convolve(x, w, "VALID"),
        [(2, 5, 17, 20), (3, 3, 1, 40)],
        (21 + 9, 5),
    ),
    "windows and what follows": (
        lambda x: xarr.maximum(pool(x, -99, lax.max, 1), 0) + 1,
        [(1, 5, 12, 40)],
        (21, 5),
    ),
    "slices along an axis": (second_differences, [(22, 40)], (6, 4)),
}


def arrays_of(name: str, dtype: str = "float32") -> list[Any]:
    rng = np.random.default_rng(7)
    return [rng.integers(-9, 9, shape).astype(xarr.dtype(dtype)) for shape in CASES[name][1]]


@cache
def result_of_reference(name: str, dtype: str = "float32") -> Any:
    return run_reference(CASES[name][0], arrays_of(name, dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_threads_with_neighbours_have_the_bits_of_the_reference(
    name: str, order: str, few_threads: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device(few_threads), "order", order)
    function, arrays, wanted = CASES[name][0], arrays_of(name), result_of_reference(name)
    assert np.asarray(xarr.jit(function)(*map(xarr.asarray, arrays))).tobytes() == wanted.tobytes()
    assert_same(function(*map(xarr.asarray, arrays)), wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("name", CASES)
def test_no_two_threads_meet(name: str, few_threads: Any) -> None:
    device(few_threads).races = True
    function, arrays, wanted = CASES[name][0], arrays_of(name), result_of_reference(name)
    assert_same(function(*map(xarr.asarray, arrays)), wanted)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ["largest of windows", "sums of windows", "convolution by channels"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float64", "int8", "int64"])
def test_each_element_type(dtype: str, name: str, few_threads: Any) -> None:
    function, arrays, wanted = CASES[name][0], arrays_of(name, dtype), result_of_reference(name, dtype)
    assert_same(function(*map(xarr.asarray, arrays)), wanted)


def test_weights_that_are_not_finite_do_not_count_in_padding(few_threads: Any) -> None:
    x, weights = arrays_of("convolution by channels")
    weights[0], weights[2, 2] = np.inf, np.nan
    wanted = run_reference(convolve, [x, weights])
    assert np.isfinite(wanted).any()
    assert_same(convolve(xarr.asarray(x), xarr.asarray(weights)), wanted)


@pytest.mark.parametrize("name", CASES)
def test_a_thread_loads_what_its_points_have_in_common_once(name: str) -> None:
    function, shapes, (loads, points) = CASES[name]
    graph = graph_of(function, *[np.zeros(shape, np.float32) for shape in shapes])
    phase = verify(program_of(graph, SMALL)).phases[0]
    assert len([each for each in loads_of(phase) if each.attribute.buffer.role == "in"]) == loads
    assert len(list(grid_loops(phase)[-1].stores())) == points
    # Few points have a thread each.
    (plain, *_) = program_of(graph).phases
    assert len(list(grid_loops(plain)[-1].stores())) == 1


def test_not_along_the_innermost_axis_nor_for_single_loads() -> None:
    for function, shape in ((lambda x: x[:, 1:] - x[:, :-1], (64, 65)), (lambda x: x * x[0], (64, 64))):
        (phase, *_) = program_of(graph_of(function, np.zeros(shape, np.float32)), SMALL).phases
        assert len(list(grid_loops(phase)[-1].stores())) == 1


def test_convolutions_of_narrow_floats_are_one_phase() -> None:
    shapes = CASES["convolution by channels"][1]
    graph = graph_of(convolve, *[np.zeros(shape, xarr.dtype("bfloat16")) for shape in shapes])
    kernel = program_of(graph)
    assert [each.dtype.itemsize for each in kernel.scratch] == [2]
