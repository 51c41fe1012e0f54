"""Small systems of equations, solved in registers: as NumPy solves them, singular ones refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xarr
from xarr.compiler.plan.program_plan import Launch
from xarr.compiler.schedules.serial.systems import takes
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Graph

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.usefixtures("on_numpy", "fused")

RNG = np.random.default_rng(5)


def systems(*shape: int, columns: int, dtype: str = "float64") -> tuple[Any, Any]:
    """Matrices that want other pivots than the diagonal, and right sides."""
    a = RNG.normal(size=shape) * (1 - 0.999 * np.eye(shape[-1]))
    return a.astype(dtype), RNG.normal(size=(*shape[:-1], columns)).astype(dtype)


def is_launched(a: Any, b: Any) -> bool:
    """Whether a group solves systems, not a library."""
    plan = xarr.jit(xarr.linalg.solve).lower(a, b).stage("plan")
    return any(isinstance(step, Launch) and step.op.called == "solve" for step in plan.steps)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(8, 1, 1), (9, 2, 2), (3, 7, 4, 4), (40, 6, 6)])
def test_solutions(shape: tuple[int, ...], dtype: str) -> None:
    a, b = systems(*shape, columns=2, dtype=dtype)
    assert is_launched(xarr.asarray(a), xarr.asarray(b))
    x = np.asarray(xarr.jit(xarr.linalg.solve)(a, b))
    assert x.dtype == a.dtype and x.shape == b.shape
    scale = np.abs(a).max() * np.abs(x).max()
    assert np.abs(a.astype("f8") @ x - b).max() < 40 * np.finfo(dtype).eps * scale


def test_in_a_loop_and_mapped() -> None:
    a, b = systems(16, 3, 3, columns=1)
    wanted = np.linalg.solve(a, np.linalg.solve(a, b))
    solve = xarr.jit(lambda a, b: xarr.lax.fori_loop(0, 2, lambda _, x: xarr.linalg.solve(a, x), b))
    assert np.allclose(np.asarray(solve(a, b)), wanted, rtol=1e-9)
    mapped = xarr.jit(xarr.vmap(lambda a, b: xarr.linalg.solve(a, b[:, 0])))
    assert np.allclose(np.asarray(mapped(a, b)), np.linalg.solve(a, b)[..., 0], rtol=1e-9)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (4, 4), (7, 3, 3)])
def test_few_small_systems_in_loops(shape: tuple[int, ...], dtype: str) -> None:
    a, b = systems(*shape, columns=shape[-1], dtype=dtype)

    @xarr.jit
    def repeat(a: Any, b: Any) -> Any:
        return xarr.lax.fori_loop(0, 3, lambda i, x: xarr.linalg.solve(a + x * 0.01, b), b)

    assert "launch solve" in str(repeat.lower(xarr.asarray(a), xarr.asarray(b)).stage("plan"))
    x = b
    for _ in range(3):
        wanted, x = x, np.linalg.solve(a + x * np.asarray(0.01, dtype), b)
    result = np.asarray(repeat(a, b))
    assert result.dtype == x.dtype
    residual = np.abs((a + wanted * np.asarray(0.01, dtype)).astype("f8") @ result - b).max()
    assert residual < 1000 * np.finfo(dtype).eps * np.abs(a).max() * np.abs(x).max() * (
        1 + np.abs(wanted).max()
    )
    with pytest.raises(np.linalg.LinAlgError):
        repeat(np.zeros_like(a), np.zeros_like(b)).evaluate()


@pytest.mark.parametrize("where", [0, 8, 19])
def test_singular_systems_are_refused(where: int) -> None:
    a, b = systems(20, 4, 4, columns=1)
    a[where, :, 1] = 0
    with pytest.raises(np.linalg.LinAlgError):
        xarr.jit(xarr.linalg.solve)(a, b).evaluate()


def test_nan_is_no_singular_matrix() -> None:
    a, b = systems(11, 3, 3, columns=1)
    a[4] = [[0, 1, 2], [np.nan, 1, 1], [0, 2, 2]]
    x = np.asarray(xarr.jit(xarr.linalg.solve)(a, b))
    assert np.isnan(x[4]).all()
    others = np.arange(11) != 4
    assert np.allclose(x[others], np.linalg.solve(a[others], b[others]))


def test_subnormal_pivots_do_not_overflow() -> None:
    a = np.full((8, 1, 1), 1e-310)
    assert np.array_equal(np.asarray(xarr.jit(xarr.linalg.solve)(a, a)), np.ones((8, 1, 1)))


def test_what_is_left_to_the_library() -> None:
    for a, b in (
        systems(7, 4, 4, columns=1),  # few
        systems(40, 9, 9, columns=1),  # large
        systems(40, 4, 4, columns=1, dtype="complex128"),
    ):
        assert not is_launched(xarr.asarray(a), xarr.asarray(b))
    empty = xarr.jit(xarr.linalg.solve).lower("f64[9,0,0]", "f64[9,0,2]").stage("decomposed")
    assert isinstance(empty, Graph)
    assert not any(takes(node, Target()) for node in empty.nodes if isinstance(node.op, ops.Solve))
