"""Updates of a part of an array inside compiled loops: the results of one NumPy call for each operation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.support.jitting import assert_compiled_loops_agree
from xarr import lax
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.implicit

RNG = np.random.default_rng(5)
Array = np.ndarray[Any, Any]


def smooth(u: Any) -> Any:
    inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return u.at[1:-1, 1:-1].set(inner)


def groups(function: Callable[..., Any], *types: str) -> list[ops.Fusion]:
    with xarr.config(fusion="compiled"):
        fused = xarr.jit(function).lower(*types).stage("fused")
    assert isinstance(fused, Graph)
    return [node.op for node in fused.nodes if isinstance(node.op, ops.Fusion)]


def test_a_stencil_and_its_border_are_one_group() -> None:
    (first, second) = groups(lambda u: smooth(smooth(u)), "f32[300,200]")
    assert first.domain == second.domain == (298, 198)
    assert first.computation.result_types[0].short() == "f32[300,200]"


def test_an_update_of_a_small_part_stays_out() -> None:
    (group,) = groups(lambda u: u.at[2:4].set(u[:2] * 2), "f32[300]")
    assert group.domain == (2,)


def test_two_fields_are_updated_in_one_pass() -> None:
    def step(u: Any, v: Any) -> Any:
        inner = u[1:-1] + v[2:] - v[:-2]
        return u.at[1:-1].set(inner), v.at[1:-1].set(v[1:-1] * 0.5 + u[2:])

    (group,) = groups(step, "f64[1000]", "f64[1000]")
    assert len(group.computation.results) == 2
    assert_compiled_loops_agree(lambda u, v: sum(step(u, v)), RNG.normal(size=1000), RNG.normal(size=1000))


@pytest.mark.parametrize("shape", [(16, 17), (300, 201), (3, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_steps_of_a_stencil(shape: tuple[int, ...], dtype: str) -> None:
    u = RNG.normal(size=shape).astype(dtype)
    assert_compiled_loops_agree(lambda u: smooth(smooth(smooth(u))), u)
    assert_compiled_loops_agree(lambda u: lax.fori_loop(0, 5, lambda _, u: smooth(u), u), u)


def test_normalised_rows_are_written_into_the_middle() -> None:
    def function(u: Any) -> Any:
        rows = u[1:-1]
        return u.at[1:-1].set(rows / xarr.sum(rows, axis=1, keepdims=True))

    assert_compiled_loops_agree(function, np.arange(1.0, 41.0).reshape(8, 5))


def test_the_array_around_may_be_computed_too() -> None:
    assert_compiled_loops_agree(lambda u: (u * 2 + 1).at[1:].set(u[:-1] - 1), RNG.normal(size=(40, 7)))
    assert_compiled_loops_agree(lambda u: xarr.exp(u * 0).at[1:].set(u[:-1] - 1), RNG.normal(size=(40, 7)))


def pooling(u: Any) -> Any:
    return lax.reduce_window(u, -xarr.inf, lax.max, (1, 1, 3), (1, 1, 1), "SAME")


def convolution(u: Any) -> Any:
    return lax.conv_general_dilated(u, np.arange(3.0).reshape(1, 1, 3), (1,), "SAME")


@pytest.mark.parametrize("windows", [pooling, convolution])
def test_windows_before_an_update_of_their_own_shape(windows: Callable[[Any], Any]) -> None:
    """The update has loops of its own, which the windows' group does not take in."""
    u, x = (RNG.normal(size=(1, 1, size)) for size in (128, 200))
    assert_compiled_loops_agree(lambda u: lax.dynamic_update_slice(windows(u), u * 2, (0, 0, 0)), u)
    assert_compiled_loops_agree(lambda u, x: lax.dynamic_update_slice(x, windows(u) * 2, (0, 0, 3)) + 1, u, x)


@st.composite
def programs(draw: st.DrawFn) -> tuple[Callable[[Any], Any], Array]:
    """A chain of updates of windows of one array by shifted windows of it."""
    rank = draw(st.integers(1, 3))
    shape = tuple(draw(st.integers(1, 9)) for _ in range(rank))
    dtype = draw(st.sampled_from(["float32", "float64", "int8", "uint16", "bool", "float16", "bfloat16"]))
    sizes = tuple(draw(st.integers((n + 1) // 2, n)) for n in shape)
    steps = []
    for _ in range(draw(st.integers(1, 4))):
        starts = [
            tuple(draw(st.integers(0, n - size)) for n, size in zip(shape, sizes, strict=True))
            for _ in range(3)
        ]
        steps.append(starts)

    def function(x: Any) -> Any:
        for target, *sources in steps:
            left, right = (
                x[tuple(slice(at, at + size) for at, size in zip(source, sizes, strict=True))]
                for source in sources
            )
            update = left ^ right if dtype == "bool" else left * 3 - right
            x = lax.dynamic_update_slice(x, update, target)
        return x

    return function, xarr.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 23, dtype=dtype)


@given(programs())
@settings(max_examples=40, deadline=None)
def test_random_windows(program: tuple[Callable[[Any], Any], Array]) -> None:
    assert_compiled_loops_agree(*program)
