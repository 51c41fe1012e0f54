"""lax.linalg's factors: against what defines them, against JAX, on each backend, and as text that XLA runs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from jax import export

import xarr
from tests.compare import assert_same
from tests.programs import run
from tests.xla import run_stablehlo
from xarr import lax, stablehlo
from xarr.errors import DTypeError, InputError, LinAlgError, ShapeError
from xarr.ir import ops
from xarr.lax import linalg
from xarr_numpy import blas

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

DTYPES = ("float32", "float64", "complex64", "complex128")
#: (backend, dtype): each type on one of them; test_linalg.py has all types on the numpy backend.
RUNS = [("numpy", "float32"), ("numpy", "complex128"), ("reference", "float64"), ("reference", "complex64")]
BACKENDS = ("numpy", "reference")
SHAPES = [
    (1, 1),
    (4, 4),
    (5, 3),
    (3, 5),
    (2, 3, 3),
    (2, 1, 2, 4),
    (0, 0),
    (0, 3),
    (3, 0),
    (0, 2, 2),
    (2, 0, 3),
]
#: Those that JAX, which compiles each, is asked for.
COMPARED = [(2, 3, 3)]
SQUARE = [shape for shape in SHAPES if shape[-1] == shape[-2]]


def values(shape: tuple[int, ...], dtype: str, seed: int = 0) -> Any:
    draw = np.random.default_rng([seed, *shape])
    values = draw.normal(size=shape)
    return (values + 1j * draw.normal(size=shape) if dtype.startswith("c") else values).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def close(got: Any, wanted: Any, scale: float = 1) -> None:
    actual, exact = np.asarray(got), np.asarray(wanted)
    assert actual.shape == exact.shape
    tolerance = scale * {4: 2e-5, 8: 1e-12}[actual.real.dtype.itemsize]
    np.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance)


def unitary(x: Any) -> None:
    """The columns are orthonormal."""
    matrix = np.asarray(x)
    close(
        adjoint(matrix) @ matrix,
        np.broadcast_to(np.eye(matrix.shape[-1]), (*matrix.shape[:-2], *[matrix.shape[-1]] * 2)),
    )


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("backend", "dtype"), RUNS)
def test_lu(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype)
    with xarr.use_backend(backend):
        factors, pivots, permutation = map(np.asarray, linalg.lu(xarr.asarray(x)))
    assert [a.dtype for a in (factors, pivots, permutation)] == [x.dtype, np.int32, np.int32]
    size = min(shape[-2:])
    lower = np.tril(factors[..., :size], -1) + np.eye(shape[-2], size, dtype=x.dtype)
    close(
        lower @ np.triu(factors[..., :size, :]),
        np.take_along_axis(x, permutation[..., None].astype(int), -2),
        10,
    )
    assert (np.abs(lower) <= np.sqrt(2) + 1e-6).all()
    if backend == "numpy" and shape in COMPARED:
        for one, wanted in zip(linalg.lu(x), jax.lax.linalg.lu(x), strict=True):
            close(one, wanted, 20) if one.dtype == x.dtype else assert_same(one, np.asarray(wanted))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_large_lu_by_halves(dtype: str) -> None:
    every = [values(shape, dtype) for shape in ((100, 90), (40, 70), (90, 17), (2, 33, 33), (3, 17, 40))]
    by_jax = jax.jit(lambda every: [jax.lax.linalg.lu(x) for x in every])(every)
    for x, wanted in zip(every, by_jax, strict=True):
        factors, pivots, permutation = linalg.lu(x)
        close(factors, wanted[0], 1000)
        assert_same(pivots, np.asarray(wanted[1]))
        assert_same(permutation, np.asarray(wanted[2]))


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_lu_without_lapack(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    cases = [(4, 4), (3, 5, 2), (2, 1, 2, 5), (0, 2, 2), (2, 0, 3)]
    wanted = [[np.asarray(each) for each in linalg.lu(values(shape, dtype))] for shape in cases]
    monkeypatch.setattr(blas, "routine", lambda name: None)
    with xarr.config(fusion="off"):
        for shape, (factors, *others) in zip(cases, wanted, strict=True):
            own, *rows = (np.asarray(each) for each in linalg.lu(values(shape, dtype)))
            close(own, factors, 20)
            for one, other in zip(rows, others, strict=True):
                assert_same(one, other)


def test_large_lu_of_singular_matrices_and_of_nan() -> None:
    x = values((3, 40, 40), "float64")
    x[0, :, 20] = x[0, :, 3]  # One pivot is 0, or nearly.
    x[1, :, 5] = 0
    factors, pivots, permutation = (np.asarray(each) for each in linalg.lu(x))
    lower, upper = np.tril(factors, -1) + np.eye(40), np.triu(factors)
    close(lower @ upper, np.take_along_axis(x, permutation[..., None], 1), 1000)
    assert (factors[1, 5:, 5] == 0).all()
    x[2, 7, 25] = np.nan
    assert_same(linalg.lu(x)[0][:2], factors[:2])
    with_nan, own_pivots, _ = (np.asarray(each) for each in linalg.lu(x[2]))
    row = np.flatnonzero(np.isnan(with_nan[:, 25]))[0]
    assert_same(own_pivots[:25], pivots[2, :25])
    assert np.isnan(with_nan[row, 25])
    assert np.isfinite(with_nan[:, :25]).all()


def test_pivots_to_permutation() -> None:
    pivots = np.array([[2, 2, 2], [1, 1, 3]], np.int32)
    wanted = jax.lax.linalg.lu_pivots_to_permutation(pivots, 5)
    assert_same(linalg.lu_pivots_to_permutation(pivots, 5), np.asarray(wanted))
    with pytest.raises(ShapeError, match=r"wanted pivots \(..., k\) with k <= 2, got shape \(2, 3\)"):
        linalg.lu_pivots_to_permutation(pivots, 2)
    with pytest.raises(DTypeError, match="wanted integers, got float64"):
        linalg.lu_pivots_to_permutation(np.ones(2), 2)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("backend", "dtype"), RUNS)
def test_qr(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype)
    with xarr.use_backend(backend):
        for full in (True, False):
            q, r = map(np.asarray, linalg.qr(xarr.asarray(x), full_matrices=full))
            assert q.shape[-1] == r.shape[-2] == (shape[-2] if full else min(shape[-2:]))
            close(q @ r, x, 10)
            unitary(q)
            assert_same(r, np.triu(r))
            if backend == "numpy" and shape in COMPARED:
                for one, wanted in zip((q, r), jax.lax.linalg.qr(x, full_matrices=full), strict=True):
                    close(one, wanted, 100)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_householder_product(dtype: str) -> None:
    a, taus = values((2, 5, 3), dtype), values((2, 3), dtype, 1)
    for count in (3, 2, 0):
        wanted = jax.lax.linalg.householder_product(a, taus[:, :count])
        for backend in BACKENDS:
            close(run(ops.HouseholderProduct(), a, taus[:, :count], backend=backend), wanted, 50)
    square = values((4, 4), dtype)
    wanted = jax.lax.linalg.householder_product(square, taus[0])
    for backend in BACKENDS:
        close(run(ops.HouseholderProduct(), square, taus[0], backend=backend), wanted, 50)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize(("backend", "dtype"), RUNS)
def test_svd(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    with xarr.use_backend(backend):
        for x in (values(shape, dtype), np.ones(shape, dtype), np.zeros(shape, dtype)):
            size = min(shape[-2:])
            for full in (True, False):
                u, s, vh = map(np.asarray, linalg.svd(xarr.asarray(x), full_matrices=full))
                close((u[..., :size] * s[..., None, :]) @ vh[..., :size, :], x, 10)
                unitary(u)
                unitary(adjoint(vh))
                assert u.shape[-1] == (shape[-2] if full else size)
                assert vh.shape[-2] == (shape[-1] if full else size)
            assert s.dtype == x.real.dtype
            assert (np.diff(s) <= 0).all() and (s >= 0).all()
            alone = linalg.svd(xarr.asarray(x), compute_uv=False)
            close(alone, s, 10)


@pytest.mark.parametrize("shape", SQUARE, ids=str)
@pytest.mark.parametrize(("backend", "dtype"), RUNS)
def test_eigh(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    a = values(shape, dtype)
    x = a + adjoint(a)
    with xarr.use_backend(backend):
        for lower in (True, False):
            triangle = np.tril(x) if lower else np.triu(x)
            for matrix, symmetrize in ((x, True), (triangle, False)):
                v, w = map(
                    np.asarray, linalg.eigh(xarr.asarray(matrix), lower=lower, symmetrize_input=symmetrize)
                )
                close(x @ v, v * w[..., None, :], 20)
                unitary(v)
                assert w.dtype == x.real.dtype
                assert (np.diff(w) >= 0).all()
                close(w, np.linalg.eigvalsh(x), 20)
            close(linalg.syevd(xarr.asarray(triangle), lower, False)[1], w, 20)


@pytest.mark.parametrize("shape", SQUARE, ids=str)
@pytest.mark.parametrize(("backend", "dtype"), RUNS)
def test_eig(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    x = values(shape, dtype)
    with xarr.use_backend(backend):
        w, left, right = map(np.asarray, linalg.eig(xarr.asarray(x)))
        assert w.dtype == left.dtype == right.dtype == np.result_type(x, np.complex64)
        close(x @ right, right * w[..., None, :], 50)
        close(adjoint(left) @ x, w[..., None] * adjoint(left), 50)
        for vectors in (left, right):
            close(np.linalg.norm(vectors, axis=-2), np.ones_like(w, w.real.dtype), 10)
        for flags in ((True, False), (False, True), (False, False)):
            some = linalg.eig(
                xarr.asarray(x), compute_left_eigenvectors=flags[0], compute_right_eigenvectors=flags[1]
            )
            assert len(some) == 1 + sum(flags)
            close(np.sort_complex(np.asarray(some[0])), np.sort_complex(w), 500)


@pytest.mark.parametrize("backend", BACKENDS)
def test_eigenvalues_that_are_hard_to_reach(backend: str) -> None:
    for x in (
        np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]]),
        np.array([[0.0, 1], [0, 0]]),
        np.array([[0.0, -1], [1, 0]]),
        np.array([[2.0, 1, 0], [0, 2, 1], [0, 0, 2]]),
        np.diag([1e150, 1e-150, 0]),
        np.zeros((3, 3)),
    ):
        with xarr.use_backend(backend):
            w, right = map(np.asarray, linalg.eig(xarr.asarray(x), compute_left_eigenvectors=False))
        np.testing.assert_allclose(x @ right, right * w, atol=1e-4 * max(1, np.abs(x).max()))


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_does_not_converge_is_nan(backend: str) -> None:
    x = np.stack([np.eye(2), [[1, np.nan], [2, 3]], [[1, np.inf], [2, 3]]])
    with xarr.use_backend(backend):
        array = xarr.asarray(x)
        s = np.asarray(linalg.svd(array, compute_uv=False))
        w = np.asarray(linalg.eig(array)[0])
        info = np.asarray(linalg.gesdd(array)[-1])
    assert_same(np.isnan(s).all(-1), np.array([False, True, True]))
    assert_same(np.isnan(w).all(-1), np.array([False, True, True]))
    assert_same(info != 0, np.array([False, True, True]))
    close(s[0], [1, 1])


@pytest.mark.parametrize("dtype", DTYPES)
def test_solve_and_slogdet_are_what_they_are_made_of(dtype: str) -> None:
    for shape in (*SQUARE, (40, 40)):
        a, b = values(shape, dtype), values((*shape[:-1], 2), dtype, 1)
        x, singular = run(ops.Solve(), a, b, backend="numpy")
        assert_same(x, np.linalg.solve(a, b))
        assert not singular.any()
        results = run(ops.LogDeterminant(), a, backend="numpy")
        for one, wanted in zip(results, np.linalg.slogdet(a), strict=True):
            assert_same(one, np.asarray(wanted))
        if shape != (40, 40):
            close(run(ops.Solve(), a, b)[0], x, 200)
            for one, other in zip(run(ops.LogDeterminant(), a), results, strict=True):
                close(one, other, 50)


@pytest.mark.parametrize("backend", BACKENDS)
def test_singular_systems(backend: str) -> None:
    a = np.array([[[1.0, 2], [2, 4]], [[0, 1], [1, 0]], [[0, 0], [0, 0]]])
    x, singular = run(ops.Solve(), a, np.ones((3, 2, 1)), backend=backend)
    assert_same(singular, np.array([True, False, True]))
    assert_same(x[..., 0], np.array([[np.nan, np.nan], [1, 1], [np.nan, np.nan]]))
    sign, logarithm = run(ops.LogDeterminant(), a, backend=backend)
    assert_same(sign, np.array([0.0, -1, 0]))
    assert_same(logarithm, np.array([-np.inf, 0, -np.inf]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_check_names_the_line_and_the_matrix(backend: str) -> None:
    with xarr.use_backend(backend):
        x = xarr.asarray(np.arange(3.0))
        assert_same(linalg.check(x, xarr.asarray([True, True]), "bad luck"), np.arange(3.0))
        failing = linalg.check(x, x < 2, "bad luck")
        with pytest.raises(LinAlgError, match=r"bad luck \(matrix \(2,\) of \(3,\)\)") as caught:
            failing.evaluate()
    assert isinstance(caught.value, np.linalg.LinAlgError)
    assert any("test_factorisations.py" in note for note in caught.value.__notes__)
    with pytest.raises(InputError, match="wanted a string for message"):
        linalg.check(x, True, 3)  # type: ignore[arg-type]


def test_symmetric_product() -> None:
    a, c = values((2, 3, 4), "float64"), values((2, 3, 3), "float64")
    got = linalg.symmetric_product(a, c, alpha=2.0, beta=0.5)
    close(got, 2 * a @ adjoint(a) + 0.5 * c)
    whole = np.asarray(linalg.symmetric_product(a, c, beta=1.0, symmetrize_output=True))
    close(whole, adjoint(whole))
    close(np.tril(whole), np.tril(a @ adjoint(a) + c))
    with pytest.raises(ShapeError, match="wanted a"):
        linalg.symmetric_product(a, c[:, :2])


# --- as text --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_xla_runs_the_text(dtype: str) -> None:
    x = values((2, 3, 3), dtype)

    def everything(a: Any) -> Any:
        hermitian = lax.add(
            a, lax.conj(lax.transpose(a, (0, 2, 1))) if dtype[0] == "c" else lax.transpose(a, (0, 2, 1))
        )
        u, s, vh = linalg.svd(a)
        v, w = linalg.eigh(hermitian)
        return (
            *linalg.lu(a),
            *linalg.qr(a),
            u,
            s,
            vh,
            v,
            w,
            *linalg.eig(a),
            *linalg.solve(a, a),
            *linalg.slogdet(a),
        )

    text = str(xarr.lower(everything, x).graph)
    for one, wanted in zip(everything(xarr.asarray(x)), run_stablehlo(text, x), strict=True):
        if one.dtype.kind in "fc" and one.shape == x.shape:
            # Up to signs and phases.
            close(np.abs(np.asarray(one)), np.abs(wanted), 1000)
        elif one.dtype.kind in "fc":
            close(one, wanted, 1000)
        else:
            assert_same(one, wanted)
    again = stablehlo.run(stablehlo.parse(text), x)
    for one, other in zip(everything(xarr.asarray(x)), again, strict=True):
        assert_same(one, np.asarray(other))


PROGRAMS = {
    "lu": jax.lax.linalg.lu,
    "qr": jax.numpy.linalg.qr,
    "complete qr": lambda x: jax.numpy.linalg.qr(x, mode="complete"),
    "svd": jax.numpy.linalg.svd,
    "reduced svd": lambda x: jax.numpy.linalg.svd(x, full_matrices=False),
    "svdvals": jax.numpy.linalg.svdvals,
    "eigh": jax.numpy.linalg.eigh,
    "eigvals": jax.numpy.linalg.eigvals,
    "eig": jax.numpy.linalg.eig,
    "inv": jax.numpy.linalg.inv,
    "det": jax.numpy.linalg.det,
    "slogdet": jax.numpy.linalg.slogdet,
    "pinv": jax.numpy.linalg.pinv,
    "solve": lambda x: jax.numpy.linalg.solve(x, x + 1),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_what_jax_exports_runs(name: str) -> None:
    dtype = "float32" if len(name) % 2 else "complex128"
    x = values((2, 3, 3), dtype)
    text = str(export.export(jax.jit(PROGRAMS[name]), platforms=["cpu"])(x).mlir_module())
    wanted = jax.tree.leaves(PROGRAMS[name](x))
    for one, other in zip(stablehlo.run(stablehlo.parse(text), x), wanted, strict=True):
        assert one.dtype == other.dtype
        close(np.abs(np.asarray(one)), np.abs(np.asarray(other)), 1000)


@pytest.mark.parametrize(
    "function", [linalg.lu, linalg.qr, linalg.svd, linalg.eigh, linalg.eig, linalg.slogdet]
)
def test_explicit_text_gives_the_same(function: Any) -> None:
    x = values((3, 3), "complex128")
    got, wanted = xarr.make_explicit(function, x)(x), function(x)
    for one, other in zip(got, wanted, strict=True):
        assert_same(one, np.asarray(other))


def test_jitted() -> None:
    x = values((3, 3), "float64")
    for one, other in zip(xarr.jit(linalg.lu)(x), linalg.lu(x), strict=True):
        assert_same(one, np.asarray(other))
    solved = xarr.jit(lambda a, b: linalg.check(linalg.solve(a, b)[0], ~linalg.solve(a, b)[1], "singular"))
    assert_same(solved(x, x), np.linalg.solve(x, x))
    with pytest.raises(LinAlgError, match="singular"):
        np.asarray(solved(np.zeros((3, 3)), x))


# --- refusals -------------------------------------------------------------------------------------

FACTORS = {
    "lu": linalg.lu,
    "geqrf": linalg.qr,
    "svd": linalg.svd,
    "eigh": linalg.eigh,
    "eig": linalg.eig,
    "slogdet": linalg.slogdet,
}


@pytest.mark.parametrize("name", FACTORS)
def test_factors_c1_element_types(name: str) -> None:
    for dtype in (int, np.float16, xarr.bfloat16):
        with pytest.raises(
            DTypeError, match=rf"{name} \[C1\]: wanted float32, float64, complex64 or complex128"
        ):
            FACTORS[name](np.ones((2, 2), dtype))


@pytest.mark.parametrize("name", FACTORS)
def test_factors_c2_rank(name: str) -> None:
    with pytest.raises(ShapeError, match=rf"{name} \[C2\]: wanted rank 2 or more, got f64\[3\]"):
        FACTORS[name](np.ones(3))


def refuses(error: type[Exception], message: str, function: Any, *shapes: Any) -> None:
    with pytest.raises(error, match=message):
        function(*map(np.ones, shapes))


def test_eigh_c3_square() -> None:
    refuses(ShapeError, r"eigh \[C3\]: wanted square matrices", linalg.eigh, (2, 3))


def test_eig_c3_square() -> None:
    refuses(ShapeError, r"eig \[C3\]: wanted square matrices", linalg.eig, (2, 3))


def test_log_determinant_c3_square() -> None:
    refuses(ShapeError, r"slogdet \[C3\]: wanted square matrices", linalg.slogdet, (2, 3))


def test_householder_product_c1_element_types() -> None:
    message = r"householder_product \[C1\]: wanted equal element types"
    with pytest.raises(DTypeError, match=message):
        linalg.householder_product(np.ones((2, 2)), np.ones(2, np.float32))


def test_householder_product_c3_columns_and_taus() -> None:
    refuses(ShapeError, r"\[C3\]: wanted at most 2 columns", linalg.householder_product, (2, 3), (2,))
    refuses(ShapeError, r"\[C3\]: wanted at most 3 columns", linalg.householder_product, (3, 2), (3,))


def test_householder_product_c4_leading_dimensions() -> None:
    refuses(ShapeError, r"\[C4\]: wanted taus", linalg.householder_product, (3, 2), (1, 2))


def test_solve_c1_element_types() -> None:
    with pytest.raises(DTypeError, match=r"solve \[C1\]: wanted floats or complex numbers"):
        linalg.solve(np.ones((2, 2)), np.ones((2, 1), np.float32))
    with pytest.raises(DTypeError, match=r"solve \[C1\]"):
        linalg.solve(np.ones((2, 2), int), np.ones((2, 1), int))


def test_solve_c2_ranks() -> None:
    refuses(ShapeError, r"solve \[C2\]: wanted equal ranks", linalg.solve, (2, 2), (1, 2, 1))


def test_solve_c3_square() -> None:
    refuses(ShapeError, r"solve \[C3\]: wanted square", linalg.solve, (2, 3), (2, 1))


def test_solve_c4_rows() -> None:
    refuses(ShapeError, r"solve \[C4\]: wanted b with 2 rows", linalg.solve, (2, 2), (3, 1))


def test_check_c1_bools() -> None:
    with pytest.raises(DTypeError, match=r"check \[C1\]: wanted bools, got f64\[3\]"):
        linalg.check(np.ones(3), np.ones(3), "")


def test_other_refusals() -> None:
    with pytest.raises(InputError, match="pivoting=True is not supported"):
        linalg.qr(np.eye(2), pivoting=True)
