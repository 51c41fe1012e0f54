"""Cholesky and triangular systems against jax.lax.linalg, XLA and the reference."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import run
from tests.support.answers import recorded
from tests.xla import run_stablehlo
from xarr import lax, stablehlo
from xarr.errors import DTypeError, ShapeError, ValueRangeError
from xarr.ir import ops
from xarr.ir.ops.linear_algebra import TRANSPOSES
from xarr_numpy import blas

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(3)
DTYPES = [np.float32, np.float64, np.complex64, np.complex128]
FLAGS = list(itertools.product([True, False], repeat=3))


def values(shape: tuple[int, ...], dtype: Any) -> Any:
    """Multiples of 1/16, whose products and their sums are exact: the same bits with each BLAS."""
    values = np.round(RNG.normal(size=shape) * 16) / 16
    if np.dtype(dtype).kind == "c":
        values = values + 1j * np.round(RNG.normal(size=shape) * 16) / 16
    return values.astype(dtype)


def definite(shape: tuple[int, ...], dtype: Any) -> Any:
    x = values(shape, dtype)
    return x @ x.swapaxes(-1, -2).conj() + 3 * np.eye(shape[-1], dtype=dtype)


def close(got: Any, wanted: Any, scale: float = 1) -> None:
    actual, exact = np.asarray(got), np.asarray(wanted)
    assert (actual.dtype, actual.shape) == (exact.dtype, exact.shape)
    tolerance = scale * {4: 1e-5, 8: 1e-12}[actual.real.dtype.itemsize]
    np.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance)


@recorded
def jax_cholesky(a: Any, symmetrizes: bool = True) -> Any:
    return jax.lax.linalg.cholesky(a, symmetrize_input=symmetrizes)


@recorded
def jax_triangular_solve(
    a: Any, b: Any, left: bool, lower: bool, transposed: bool, conjugate: bool, unit: bool
) -> Any:
    return jax.lax.linalg.triangular_solve(
        a, b, left_side=left, lower=lower, transpose_a=transposed, conjugate_a=conjugate, unit_diagonal=unit
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_cholesky_agrees(dtype: Any) -> None:
    for shape in ((1, 1), (2, 2), (5, 5), (3, 4, 4), (2, 1, 3, 3)):
        a = definite(shape, dtype)
        close(lax.linalg.cholesky(a), jax_cholesky(a)[0])
        skewed = a + np.triu(values(shape, dtype), 1)
        for symmetrize in (True, False):
            close(
                lax.linalg.cholesky(skewed, symmetrize_input=symmetrize),
                jax_cholesky(skewed, symmetrize)[0],
            )
        for lower in (True, False):
            close(run(ops.Cholesky(lower), a, backend="numpy"), run(ops.Cholesky(lower), a))


def test_cholesky_reads_one_triangle() -> None:
    a = definite((3, 3), np.float64)
    for lower, other in ((True, np.triu), (False, np.tril)):
        spoilt = np.where(other(np.ones_like(a), 1 if lower else -1) > 0, np.nan, a)
        for backend in ("numpy", "reference"):
            close(run(ops.Cholesky(lower), spoilt, backend=backend), run(ops.Cholesky(lower), a))


def test_matrices_that_are_not_positive_definite_give_nan() -> None:
    a = definite((3, 2, 2), np.float32)
    a[1] = [[1, 2], [2, 1]]
    (wanted,) = jax_cholesky(a)
    assert_same(np.isnan(np.asarray(lax.linalg.cholesky(a))), np.isnan(wanted))
    close(lax.linalg.cholesky(a)[0], wanted[0])
    for bad in (np.array([[-1.0]]), np.array([[0.0]]), np.array([[np.nan]]), np.array([[4.0, 9], [9, 3]])):
        for lower in (True, False):
            whole = np.full(bad.shape, np.nan)
            for backend in ("numpy", "reference"):
                assert_same(run(ops.Cholesky(lower), bad, backend=backend), whole)
            text = str(
                xarr.lower(lambda x, lower=lower: lax.linalg.cholesky_of_triangle(x, lower), bad).graph
            )
            if bad.any():  # its LAPACK takes 0 for the root of 0
                assert_same(run_stablehlo(text, bad)[0], whole)


def test_the_diagonal_counts_by_its_real_part() -> None:
    a = definite((3, 3), np.complex128)
    shifted = a + 1j * np.eye(3)
    for backend in ("numpy", "reference"):
        close(run(ops.Cholesky(True), shifted, backend=backend), run(ops.Cholesky(True), a))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("left", "lower", "unit"), FLAGS, ids=str)
def test_triangular_solve_agrees(left: bool, lower: bool, unit: bool, dtype: Any) -> None:
    for batch, size, others in (((), 4, 3), ((2, 1), 3, 1)):
        a = values((*batch, size, size), dtype) / 4 + 2 * np.eye(size, dtype=dtype)
        b = values((*batch, size, others) if left else (*batch, others, size), dtype)
        ones = np.ones_like(a, bool)
        triangle = np.tril(ones, -1 if unit else 0) if lower else np.triu(ones, 1 if unit else 0)
        spoilt = np.where(triangle, a, np.asarray(np.nan, dtype))
        for transposed, conjugate in itertools.product([False, True], repeat=2):
            kind = {(False, False): 0, (True, False): 1, (True, True): 2}.get((transposed, conjugate))
            flags = {
                "left_side": left,
                "lower": lower,
                "transpose_a": transposed,
                "conjugate_a": conjugate,
                "unit_diagonal": unit,
            }
            got = lax.linalg.triangular_solve(spoilt, b, **flags)
            close(got, jax_triangular_solve(a, b, left, lower, transposed, conjugate, unit)[0], 10)
            if kind is not None:
                op = ops.TriangularSolve(left, lower, unit, TRANSPOSES[kind])
                close(got, run(op, spoilt, b), 10)


@pytest.mark.parametrize("kind", TRANSPOSES)
def test_triangular_solve_agrees_with_xla(kind: str) -> None:
    a, b = definite((2, 3, 3), np.complex64), values((2, 3, 2), np.complex64)
    for lower in (True, False):
        op = ops.TriangularSolve(True, lower, False, kind)
        graph = xarr.lower(
            lambda x, y, lower=lower: lax.linalg.triangular_solve(
                x,
                y,
                left_side=True,
                lower=lower,
                transpose_a=kind != "NO_TRANSPOSE",
                conjugate_a=kind == "ADJOINT",
            ),
            a,
            b,
        ).graph
        close(run(op, a, b, backend="numpy"), run_stablehlo(str(graph), a, b)[0])
        assert_same(stablehlo.run(str(graph), a, b)[0], run(op, a, b, backend="numpy"))


@pytest.mark.parametrize(("left", "lower", "unit"), FLAGS, ids=str)
def test_triangular_solve_without_blas(
    left: bool, lower: bool, unit: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = definite((2, 4, 4), np.complex64), values((2, 4, 4), np.complex64)
    graphs = [ops.TriangularSolve(left, lower, unit, kind) for kind in TRANSPOSES]
    wanted = [run(op, a, b, backend="numpy") for op in graphs]
    monkeypatch.setattr(blas, "routine", lambda name: None)
    for op, x in zip(graphs, wanted, strict=True):
        close(run(op, a, b, backend="numpy"), x, 10)


def test_large_systems() -> None:
    a = np.tril(RNG.normal(size=(150, 150))) / 20 + np.eye(150)
    b = RNG.normal(size=(150, 7))
    for lower in (True, False):
        matrix = a if lower else a.T
        x = np.asarray(lax.linalg.triangular_solve(matrix, b, left_side=True, lower=lower))
        np.testing.assert_allclose(matrix @ x, b, rtol=1e-10, atol=1e-10)


def test_vectors() -> None:
    a, b = definite((2, 3, 3), np.float64), values((2, 3), np.float64)
    for left in (True, False):
        got = lax.linalg.triangular_solve(a, b, left_side=left, lower=True)
        close(got, jax_triangular_solve(a, b, left, True, False, False, False)[0])


def test_zeros_on_the_diagonal() -> None:
    a, b = np.array([[0.0, 0.0], [1.0, 2.0]]), np.array([[1.0], [1.0]])
    got = np.asarray(lax.linalg.triangular_solve(a, b, left_side=True, lower=True))
    assert_same(got, np.array([[np.inf], [-np.inf]]))


def test_narrow_floats_and_empty_matrices() -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16):
        a = definite((3, 3), np.float32).astype(dtype)
        for backend in ("numpy", "reference"):
            assert run(ops.Cholesky(True), a, backend=backend).dtype == dtype
        assert_same(run(ops.Cholesky(True), a, backend="numpy"), run(ops.Cholesky(True), a), ulp=1)
    for shape in ((0, 0), (0, 3, 3), (2, 0, 0)):
        for backend in ("numpy", "reference"):
            assert run(ops.Cholesky(True), np.zeros(shape), backend=backend).shape == shape
            for left in (True, False):
                op = ops.TriangularSolve(left, True, False)
                assert run(op, np.zeros(shape), np.zeros(shape), backend=backend).shape == shape


def test_explicit_text_gives_the_same() -> None:
    a = definite((2, 3, 3), np.complex128)

    def solve(x: Any) -> Any:
        factor = lax.linalg.cholesky(x)
        return lax.linalg.triangular_solve(
            factor, x, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )

    assert_same(xarr.make_explicit(solve, a)(a), solve(a))


def test_cholesky_c1_element_types() -> None:
    with pytest.raises(
        DTypeError, match=r"cholesky \[C1\]: wanted float or complex elements, got s64\[2,2\]"
    ):
        lax.linalg.cholesky(np.eye(2, dtype=int))


def test_cholesky_c2_rank() -> None:
    with pytest.raises(ShapeError, match=r"cholesky \[C2\]: wanted rank 2 or more, got f64\[2\]"):
        lax.linalg.cholesky(np.ones(2))


def test_cholesky_c3_square() -> None:
    with pytest.raises(ShapeError, match=r"cholesky \[C3\]: wanted square matrices .* got f64\[2,3\]"):
        lax.linalg.cholesky(np.ones((2, 3)))


def test_triangular_solve_c1_element_types() -> None:
    with pytest.raises(DTypeError, match=r"triangular_solve \[C1\]"):
        lax.linalg.triangular_solve(np.eye(2), np.eye(2, dtype=np.float32))
    with pytest.raises(DTypeError, match=r"triangular_solve \[C1\]"):
        lax.linalg.triangular_solve(np.eye(2, dtype=int), np.eye(2, dtype=int))


def test_triangular_solve_c2_ranks() -> None:
    with pytest.raises(ShapeError, match=r"triangular_solve \[C2\]"):
        lax.linalg.triangular_solve(np.eye(2), np.ones((1, 2, 2)))


def test_triangular_solve_c3_square() -> None:
    with pytest.raises(ShapeError, match=r"triangular_solve \[C3\]"):
        lax.linalg.triangular_solve(np.ones((2, 3)), np.ones((2, 3)))


def test_triangular_solve_c4_sizes() -> None:
    with pytest.raises(ShapeError, match=r"triangular_solve \[C4\]: wanted b .* 2 rows"):
        lax.linalg.triangular_solve(np.eye(2), np.ones((3, 2)), left_side=True)
    with pytest.raises(ShapeError, match=r"triangular_solve \[C4\]: wanted b .* 2 columns"):
        lax.linalg.triangular_solve(np.eye(2), np.ones((2, 3)))
    with pytest.raises(ValueRangeError, match="wanted transpose_a of NO_TRANSPOSE"):
        ops.TriangularSolve(True, True, True, "T")
