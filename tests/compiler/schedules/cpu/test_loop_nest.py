"""Rows that fill no register: the rows in lanes, their elements and reductions of these written out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from xarr.compiler.loop_ir.loops import Kernel, Runs
from xarr.compiler.plan.program_plan import Launch

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.usefixtures("on_numpy", "fused"), pytest.mark.implicit]

RNG = np.random.default_rng(2)


def softmax(x: Any) -> Any:
    weights = xarr.exp(x - x.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def subtract_mean(x: Any) -> Any:
    rest = x - x.mean(axis=(-2, -1), keepdims=True)
    return rest, rest.sum(axis=(-2, -1)), (rest * rest.conj()).sum(axis=(-2, -1))


def find_extremes(x: Any) -> Any:
    best = x.argmax(axis=-1)
    return best, x - x.min(axis=-1, keepdims=True), (x == x.max(axis=-1, keepdims=True))


CASES: tuple[tuple[Callable[[Any], Any], tuple[int, ...]], ...] = (
    *((softmax, shape) for shape in ((64, 1), (100, 3), (5, 71, 7))),
    *((subtract_mean, shape) for shape in ((67, 2, 3), (2, 130, 1, 5))),
    (find_extremes, (129, 6)),
)


def kernels_of(function: Callable[[Any], Any], x: Any) -> list[Kernel]:
    steps = xarr.jit(function).lower(x).stage("plan").steps
    return [step.program for step in steps if isinstance(step, Launch) and step.program is not None]


@pytest.mark.parametrize(
    ("function", "shape", "dtype"),
    [
        *((function, shape, dtype) for function, shape in CASES for dtype in ("float32", "float64")),
        *((softmax, (65, 3), "float16"), (find_extremes, (70, 5), "int32")),
        (subtract_mean, (67, 2, 2), "complex128"),
    ],
)
def test_as_operation_by_operation(
    function: Callable[[Any], Any], shape: tuple[int, ...], dtype: str
) -> None:
    draws = RNG.normal(size=shape) * 3 + (1j * RNG.normal(size=shape) if dtype == "complex128" else 0)
    x = xarr.asarray(draws.astype(dtype))
    if dtype[:5] == "float" and function is find_extremes:
        x = x.at[3, 2].set(np.nan).at[5, :2].set(-0.0).evaluate()
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.tree.leaves(function(x))]
    scale = np.abs(draws).max()
    for donated in ((), (0,)):
        got = xarr.tree.leaves(xarr.jit(function, donate_argnums=donated)(x * 1))
        for one, other in zip(got, wanted, strict=True):
            tolerance = 32 * float(np.finfo(other.dtype).eps) if other.dtype.kind in "fc" else 0
            assert one.dtype == other.dtype
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance * scale, equal_nan=True)


def test_rows_are_in_lanes() -> None:
    for kernel in kernels_of(softmax, xarr.zeros((100, 3)) * 1.0):
        (loop,) = kernel.phases
        assert loop.extent == 100 and Runs.LANES in loop.runs and list(loop.walk()) == [loop]


def test_long_rows_and_few_rows_keep_their_loops() -> None:
    for shape in ((100, 8), (60, 3), (3,)):
        for kernel in kernels_of(softmax, xarr.zeros(shape) * 1.0):
            assert all(len(list(phase.walk())) > 1 for phase in kernel.phases)


def rotate(x: Any) -> Any:
    """Points of three coordinates rotated and moved."""
    angles = xarr.asarray(np.linspace(0.1, 0.9, 9).reshape(3, 3).astype(x.dtype))
    return x @ angles + angles[0]


def cross(x: Any) -> Any:
    y = xarr.roll(x, 1, axis=-1) * 2
    return xarr.cross(x, y), (x * y).sum(axis=-1, keepdims=True) - x


def multiply_matrices(x: Any) -> Any:
    return x @ x.swapaxes(-1, -2) + 1, xarr.cos(x @ x).sum(axis=-1)


SHORT: tuple[tuple[Callable[[Any], Any], tuple[int, ...]], ...] = (
    *((rotate, (count, 3)) for count in (64, 77, 100)),
    *((cross, shape) for shape in ((67, 3), (2, 80, 3))),
    *((multiply_matrices, shape) for shape in ((65, 2, 2), (70, 3, 3), (3, 20, 1, 1))),
)


@pytest.mark.sampled
@pytest.mark.parametrize(("function", "shape"), SHORT)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "complex128"])
def test_short_rows_as_operation_by_operation(
    function: Callable[[Any], Any], shape: tuple[int, ...], dtype: str
) -> None:
    if dtype == "int64" and function is multiply_matrices:
        return
    draws = RNG.normal(size=shape) * 3 + (1j * RNG.normal(size=shape) if dtype == "complex128" else 0)
    x = xarr.asarray(draws.astype(dtype))
    with xarr.config(fusion="off"):
        wanted = [np.asarray(each) for each in xarr.tree.leaves(function(x))]
    for donated in ((), (0,)):
        got = xarr.tree.leaves(xarr.jit(function, donate_argnums=donated)(x * 1))
        for one, other in zip(got, wanted, strict=True):
            tolerance = 64 * float(np.finfo(other.dtype).eps) if other.dtype.kind in "fc" else 0
            assert one.dtype == other.dtype
            assert np.allclose(one, other, rtol=tolerance, atol=tolerance * np.abs(other).max())


def test_short_rows_are_in_lanes_where_they_lie_near() -> None:
    for width, count in ((3, 1), (4, 1), (5, 2)):
        shift = np.arange(width) * 1.0
        (kernel,) = kernels_of(lambda x, shift=shift: x + shift, xarr.zeros((100, width)) * 1.0)
        assert [len(list(phase.walk())) for phase in kernel.phases] == [count]


def test_short_rows_apart_are_written_out_one_by_one() -> None:
    def sum_transposed(x: Any) -> Any:
        return x + x.swapaxes(1, 2)

    def sum_of_cosines(x: Any) -> Any:
        return xarr.cos(x) + x.swapaxes(1, 2)

    for function, is_written_out in ((sum_transposed, True), (sum_of_cosines, False)):
        (kernel,) = kernels_of(function, xarr.zeros((100, 3, 3)) * 1.0)
        loops = [loop for phase in kernel.phases for loop in phase.walk()]
        assert (len(loops) == 1) is is_written_out
        assert any(Runs.LANES in loop.runs for loop in loops) is not is_written_out


def test_many_small_products_are_groups() -> None:
    for shape, is_small in (((16, 3, 3), True), ((15, 3, 3), False), ((16, 8, 8), False)):
        steps = xarr.jit(lambda x: x @ x).lower(xarr.zeros(shape) * 1.0).stage("plan").steps
        text = " ".join([step.op.called for step in steps])
        assert ("dot_general" not in text) is is_small, text
