"""xarr.linalg: what defines each result, NumPy's own where LAPACK is called alike, and every refusal."""

from __future__ import annotations

import inspect
from itertools import pairwise
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import xarr
from tests.compare import assert_same
from xarr import lax, linalg
from xarr.errors import (
    AxisError,
    BroadcastError,
    DTypeError,
    InputError,
    LinAlgError,
    MatrixShapeError,
    ShapeError,
    ValueRangeError,
    XarrError,
)

DTYPES = ("float32", "float64", "complex64", "complex128")
SHAPES = [(1, 1), (4, 3), (3, 4), (2, 3, 3), (0, 0), (0, 3), (2, 3, 0), (0, 2, 2)]


def values(shape: tuple[int, ...], dtype: str = "float64", seed: int = 0) -> Any:
    draw = np.random.default_rng([seed, *shape])
    values = draw.normal(size=shape)
    return (values + 1j * draw.normal(size=shape) if dtype.startswith("c") else values).astype(dtype)


def adjoint(x: Any) -> Any:
    return np.conj(np.swapaxes(x, -1, -2))


def close(got: Any, wanted: Any, scale: float = 1) -> None:
    actual, exact = np.asarray(got), np.asarray(wanted)
    assert (actual.dtype, actual.shape) == (exact.dtype, exact.shape)
    tolerance = scale * {4: 2e-5, 8: 1e-12}[actual.real.dtype.itemsize]
    np.testing.assert_allclose(actual, exact, rtol=tolerance, atol=tolerance)


@pytest.fixture(params=["numpy", "reference"])
def backend(request: pytest.FixtureRequest) -> Any:
    with xarr.use_backend(request.param):
        yield request.param


# --- what defines the results ---------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_factors_multiply_to_the_matrix(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    x = xarr.asarray(values(shape, dtype))
    size = min(shape[-2:])
    for mode in ("reduced", "complete"):
        q, r = linalg.qr(x, mode)
        close(q @ r, x, 20)
        assert q.shape[-1] == (size if mode == "reduced" else shape[-2])
        assert_same(r, np.triu(r))
    close(linalg.qr(x, "r"), linalg.qr(x).R, 20)
    for full in (True, False):
        u, s, vh = linalg.svd(x, full)
        close(np.asarray(u)[..., :size] * np.asarray(s)[..., None, :] @ np.asarray(vh)[..., :size, :], x, 20)
    close(linalg.svdvals(x), s, 20)
    inverse = linalg.pinv(x, rtol=None)
    close(x @ inverse @ x, x, 100)
    close(adjoint(x @ inverse), x @ inverse, 100)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("shape", [s for s in SHAPES if s[-1] == s[-2]], ids=str)
def test_square_matrices(backend: str, shape: tuple[int, ...], dtype: str) -> None:
    a = values(shape, dtype)
    x = xarr.asarray(a)
    close(linalg.inv(x) @ x, np.broadcast_to(np.eye(shape[-1], dtype=a.dtype), shape), 1000)
    w, v = linalg.eig(x)
    close(x @ v, np.asarray(v) * np.asarray(w)[..., None, :], 100)
    close(np.prod(np.asarray(w), axis=-1), np.asarray(linalg.det(x)).astype(w.dtype), 500)
    hermitian = xarr.asarray(a + adjoint(a))
    w, v = linalg.eigh(hermitian)
    close(hermitian @ v, np.asarray(v) * np.asarray(w)[..., None, :].astype(a.dtype), 100)
    close(linalg.eigvalsh(hermitian), w, 100)
    u, s, vh = linalg.svd(hermitian, hermitian=True)
    close(np.asarray(u) * np.asarray(s)[..., None, :] @ np.asarray(vh), hermitian, 100)
    assert (np.diff(np.asarray(s)) <= 0).all()
    positive = xarr.asarray(a @ adjoint(a) + np.eye(shape[-1], dtype=a.dtype))
    lower, upper = linalg.cholesky(positive), linalg.cholesky(positive, upper=True)
    close(lower @ adjoint(lower), positive, 100)
    close(adjoint(upper) @ upper, positive, 100)
    assert_same(lower, np.tril(lower))
    assert_same(upper, np.triu(upper))
    b = values((*shape[:-1], 2), dtype, 1)
    close(x @ linalg.solve(x, b), b, 1000)


@pytest.mark.parametrize("dtype", DTYPES)
def test_numpy_s_numbers_come_from_the_same_routines(dtype: str) -> None:
    x, b = values((2, 4, 4), dtype), values((2, 4, 3), dtype, 1)
    assert_same(linalg.solve(x, b), np.linalg.solve(x, b))
    assert_same(linalg.inv(x), np.linalg.inv(x))
    for one, other in zip(linalg.slogdet(x), np.linalg.slogdet(x), strict=True):
        assert_same(one, other)
    for one, other in zip(linalg.svd(x), np.linalg.svd(x), strict=True):
        assert_same(one, other)
    for one, other in zip(linalg.eigh(x), np.linalg.eigh(x), strict=True):
        assert_same(one, other)
    assert_same(linalg.eigvalsh(x), np.linalg.eigvalsh(x))
    assert_same(linalg.svdvals(x), np.linalg.svdvals(x))
    for one, other in zip(linalg.eig(x), np.linalg.eig(x), strict=True):
        assert_same(one, other.astype(one.dtype))


@pytest.mark.parametrize("shape", [(2, 4, 4), (70, 70), (90, 40), (3, 40, 90)], ids=str)
def test_factors_beside_numpy_s(shape: tuple[int, ...]) -> None:
    x = values(shape, "complex128")
    for mode in ("reduced", "complete"):
        for one, other in zip(linalg.qr(x, mode), np.linalg.qr(x, mode), strict=True):
            close(one, other, 1000)


def test_other_memory_and_other_types() -> None:
    x = values((4, 6))[::-1, ::2].T[:3, :3]
    assert_same(linalg.inv(x), np.linalg.inv(x))
    for dtype in (bool, np.int8, np.uint64):
        integers = np.array([[1, 0], [1, 1]], dtype)
        assert_same(linalg.inv(integers), np.linalg.inv(integers))
        assert_same(linalg.matrix_rank(integers), np.asarray(np.linalg.matrix_rank(integers)))
        close(linalg.pinv(integers), np.linalg.pinv(integers))


@given(st.integers(0, 5), st.integers(0, 5), st.integers(0, 4), st.integers(0, 99))
@settings(max_examples=40)
def test_least_squares_of_any_rank(rows: int, columns: int, rank: int, seed: int) -> None:
    a = values((rows, rank), seed=seed) @ values((rank, columns), seed=seed)
    b = values((rows, 2), seed=seed + 1)
    results = linalg.lstsq(a, b, rcond=1e-9)
    wanted = np.linalg.lstsq(a, b, rcond=1e-9)
    for one, other in zip(
        (results[0], results[1], results[3]), (wanted[0], wanted[1], wanted[3]), strict=True
    ):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-5, atol=1e-6)
        assert np.asarray(one).shape == other.shape
    assert int(results[2]) == wanted[2] == linalg.matrix_rank(a, rtol=1e-9)


@given(st.lists(st.integers(1, 6), min_size=4, max_size=7), st.booleans(), st.booleans())
@settings(max_examples=40)
def test_chains_in_the_cheapest_order(sizes: list[int], first: bool, last: bool) -> None:
    chain = [values(pair, seed=seed) for seed, pair in enumerate(pairwise(sizes))]
    chain[0] = chain[0][0] if first else chain[0]
    chain[-1] = chain[-1][:, 0] if last else chain[-1]
    np.testing.assert_allclose(
        np.asarray(linalg.multi_dot(chain)), np.linalg.multi_dot(chain), rtol=1e-9, atol=1e-9
    )


def test_the_cheapest_order_is_taken() -> None:
    text = str(
        xarr.lower(
            lambda a, b, c: linalg.multi_dot([a, b, c]), "f64[10,100]", "f64[100,5]", "f64[5,50]"
        ).graph
    )
    assert "tensor<10x5xf64>" in text
    assert "tensor<100x50xf64>" not in text


@pytest.mark.implicit
def test_leading_dimensions_broadcast() -> None:
    a, b = values((3, 1, 2, 2)), values((4, 2, 5))
    assert_same(linalg.solve(a, b), np.linalg.solve(a, b))
    assert_same(linalg.solve(a, values((2,))), np.linalg.solve(a, values((2,))))


# --- singular and worse ---------------------------------------------------------------------------


def test_a_singular_matrix_names_the_line(backend: str) -> None:
    x = xarr.asarray([[1.0, 2], [2, 4]])
    calls = (
        lambda: linalg.inv(x),
        lambda: linalg.solve(x, x),
        lambda: linalg.matrix_power(x, -1),
        lambda: linalg.tensorinv(x, 1),
        lambda: linalg.tensorsolve(x, x[0]),
    )
    for call in calls:
        with pytest.raises(LinAlgError, match="Singular matrix") as caught:
            call()
        assert isinstance(caught.value, np.linalg.LinAlgError | ValueError)
        assert any("test_linalg.py" in note for note in caught.value.__notes__)
    with pytest.raises(LinAlgError, match=r"Singular matrix \(matrix \(1,\) of \(2,\)\)"):
        linalg.inv(xarr.stack([xarr.eye(2), x]))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x: linalg.cholesky(-x), "Matrix is not positive definite"),
        (lambda x: linalg.svd(x * np.nan).U, "SVD did not converge"),
        (lambda x: linalg.svdvals(x * np.nan), "SVD did not converge"),
        (lambda x: linalg.pinv(x * np.nan), "SVD did not converge"),
        (lambda x: linalg.eig(x * np.nan).eigenvalues, "Array must not contain infs or NaNs"),
        (lambda x: linalg.eigvals(x / 0), "Array must not contain infs or NaNs"),
        (lambda x: linalg.eigvalsh(x * np.nan), "Eigenvalues did not converge"),
        (lambda x: linalg.eigh(x * np.nan).eigenvectors, "Eigenvalues did not converge"),
        (lambda x: linalg.lstsq(x * np.nan, x)[0], "SVD did not converge"),
        (lambda x: linalg.matrix_rank(x * np.nan), "SVD did not converge"),
        (lambda x: linalg.norm(x * np.nan, 2), "SVD did not converge"),
    ],
    ids=map(str, range(11)),
)
def test_what_fails_for_its_values(backend: str, call: Any, message: str) -> None:
    with pytest.raises(LinAlgError, match=message):
        call(xarr.eye(2) + 1.5)
    jitted = xarr.jit(call)
    with pytest.raises(LinAlgError, match=message):
        jitted(xarr.eye(2) + 1.5).evaluate()


def test_the_matrix_that_is_not_finite_is_named(backend: str) -> None:
    for function in (linalg.eig, linalg.eigvals):
        with pytest.raises(LinAlgError, match=r"infs or NaNs\n"):
            function(xarr.full((2, 2), xarr.inf))
        with pytest.raises(LinAlgError, match=r"infs or NaNs \(matrix \(1,\) of \(2,\)\)"):
            function(xarr.stack([xarr.eye(2), xarr.full((2, 2), xarr.nan)]))


def _is_positive_definite(matrix: Any) -> bool:
    try:
        linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True


def test_an_except_around_the_call_catches() -> None:
    assert not _is_positive_definite(xarr.asarray([[0.0, 1], [1, 0]]))
    assert _is_positive_definite(xarr.eye(2))
    assert linalg.inv(xarr.eye(2)).is_evaluated
    assert not linalg.det(xarr.zeros((2, 2))).is_evaluated, "what never raises stays lazy"


def test_nothing_is_computed_while_a_function_is_recorded() -> None:
    singular, counter = xarr.zeros((2, 2)), xarr.asarray(0)
    guarded = xarr.jit(lambda n: lax.cond(n > 0, lambda: linalg.inv(singular), lambda: singular))
    assert_same(guarded(counter), np.zeros((2, 2)))
    with pytest.raises(LinAlgError, match="Singular matrix"):
        np.asarray(guarded(counter + 1))
    steps = lax.fori_loop(0, 0, lambda i, x: linalg.inv(x), singular)
    assert_same(steps, np.zeros((2, 2)))


def test_determinants_of_singular_matrices(backend: str) -> None:
    x = xarr.asarray([[1.0, 2], [2, 4]])
    assert_same(linalg.det(x), np.asarray(0.0))
    sign, logarithm = linalg.slogdet(x)
    assert_same(sign, np.asarray(0.0))
    assert_same(logarithm, np.asarray(-np.inf))
    assert_same(linalg.cond(x, 1), np.asarray(np.inf))
    assert float(linalg.cond(x * np.nan, 1)) != float(linalg.cond(x * np.nan, 1))


# --- laziness -------------------------------------------------------------------------------------

TRACED = {
    "cholesky": lambda x: linalg.cholesky(x @ x.mT),
    "cond": lambda x: (linalg.cond(x), linalg.cond(x, "fro")),
    "det": linalg.det,
    "eig": linalg.eig,
    "eigh": linalg.eigh,
    "eigvals": linalg.eigvals,
    "eigvalsh": linalg.eigvalsh,
    "inv": linalg.inv,
    "lstsq": lambda x: linalg.lstsq(x, x),
    "matrix_norm": lambda x: linalg.matrix_norm(x, ord="nuc"),
    "matrix_power": lambda x: (linalg.matrix_power(x, 5), linalg.matrix_power(x, -2)),
    "matrix_rank": linalg.matrix_rank,
    "multi_dot": lambda x: linalg.multi_dot([x, x, x]),
    "norm": lambda x: (linalg.norm(x), linalg.norm(x, 2), linalg.norm(x, 3, axis=0)),
    "pinv": linalg.pinv,
    "qr": linalg.qr,
    "slogdet": linalg.slogdet,
    "solve": lambda x: linalg.solve(x, x[0]),
    "svd": lambda x: (*linalg.svd(x), *linalg.svd(x, hermitian=True)),
    "tensorinv": lambda x: linalg.tensorinv(x, 1),
    "tensorsolve": lambda x: linalg.tensorsolve(x, x[0]),
    "vector_norm": lambda x: linalg.vector_norm(x, ord=1),
    "cross": lambda x: linalg.cross(x, x[::-1]),
    "diagonal": lambda x: (linalg.diagonal(x), linalg.trace(x)),
}


@pytest.mark.parametrize("name", TRACED)
def test_traced_and_without_implicit_broadcasting(name: str) -> None:
    x = values((3, 3))
    wanted = TRACED[name](xarr.asarray(x))
    with xarr.config(broadcasting="explicit"):
        results = xarr.jit(TRACED[name])(x)
    wanted, results = (each if isinstance(each, tuple) else (each,) for each in (wanted, results))
    for one, other in zip(results, wanted, strict=True):
        close(one, other)


def test_residuals_of_a_traced_call() -> None:
    a, b = values((4, 2)), values((4, 3), seed=1)
    results = xarr.jit(linalg.lstsq)(a, b)
    close(results[1], np.linalg.lstsq(a, b, rcond=None)[1])
    assert xarr.jit(linalg.lstsq)(b.T, a[:3])[1].shape == (0,)


def test_results_have_names() -> None:
    x = np.eye(2)
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.eigh(x)._fields == linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")


def test_every_name_of_numpy_is_there() -> None:
    assert set(np.linalg.__all__) <= set(linalg.__all__)
    for name in linalg.__all__:
        assert inspect.getdoc(getattr(linalg, name))
    assert issubclass(linalg.LinAlgError, np.linalg.LinAlgError)


# --- refusals -------------------------------------------------------------------------------------

OF_SQUARES = ("cholesky", "det", "eig", "eigh", "eigvals", "eigvalsh", "inv", "slogdet")
OF_MATRICES = ("pinv", "qr", "svd", "svdvals", "cond")


@pytest.mark.parametrize("name", [*OF_SQUARES, *OF_MATRICES])
def test_refused_shapes_and_types(name: str) -> None:
    function = getattr(linalg, name)
    for shape in ((), (3,), *([(2, 3)] if name in OF_SQUARES else [])):
        with pytest.raises(MatrixShapeError, match=rf"linalg\.{name}: wanted .*matrices") as caught:
            function(np.ones(shape))
        assert isinstance(caught.value, LinAlgError)
        assert isinstance(caught.value, np.linalg.LinAlgError)
    for dtype in (np.float16, ml_dtypes.bfloat16):
        with pytest.raises(
            DTypeError, match=rf"linalg\.{name}: wanted integers, or floats .* got {np.dtype(dtype)}"
        ):
            function(np.ones((2, 2), dtype))


def test_refused_systems() -> None:
    a = np.eye(2)
    for b in (np.ones(3), np.ones((3, 2)), np.ones(())):
        with pytest.raises(MatrixShapeError, match=r"linalg\.solve: wanted b of shape \(2,\) or"):
            linalg.solve(a, b)
    with pytest.raises(MatrixShapeError, match=r"linalg\.solve: wanted square"):
        linalg.solve(np.ones((2, 3)), a)
    with pytest.raises(BroadcastError):
        linalg.solve(np.ones((3, 2, 2)), np.ones((2, 2, 1)))
    with pytest.raises(MatrixShapeError, match=r"linalg\.lstsq: wanted a \(m, n\)"):
        linalg.lstsq(np.ones((2, 2, 2)), a)
    with pytest.raises(MatrixShapeError, match="wanted ind of 1 or more"):
        linalg.tensorinv(a, 0)
    with pytest.raises(MatrixShapeError, match="as many elements in the first 1"):
        linalg.tensorinv(np.ones((2, 3)), 1)
    with pytest.raises(MatrixShapeError, match=r"linalg\.tensorsolve: wanted a with 2 elements"):
        linalg.tensorsolve(np.ones((2, 3)), np.ones(2))
    with pytest.raises(AxisError):
        linalg.tensorsolve(a, np.ones(2), axes=(5,))


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda x: linalg.qr(x, "some"), ValueRangeError, "wanted mode 'reduced', 'complete', 'r' or 'raw'"),
        (lambda x: linalg.eigh(x, "M"), ValueRangeError, "wanted UPLO 'L' or 'U'"),
        (lambda x: linalg.norm(x, 3), ValueRangeError, "as ord of matrices, got 3"),
        (lambda x: linalg.norm(x, "nuc", axis=0), ValueRangeError, "wanted a number as ord of vectors"),
        (lambda x: linalg.norm(x, x), ValueRangeError, "as ord of matrices"),
        (lambda x: linalg.norm(x, [1]), ValueRangeError, "as ord of matrices"),
        (lambda x: linalg.vector_norm(x, ord="fro"), ValueRangeError, "wanted a number as ord of vectors"),
        (lambda x: linalg.matrix_norm(x, ord=0), ValueRangeError, "as ord of matrices, got 0"),
        (lambda x: linalg.matrix_norm(x[0]), MatrixShapeError, "wanted rank 2 or more"),
        (lambda x: linalg.norm(x[None], 2), MatrixShapeError, "wanted one or two axes, got 3"),
        (lambda x: linalg.norm(x, axis=(0, 0)), AxisError, "more than once"),
        (lambda x: linalg.norm(x, axis=2), AxisError, "axis"),
        (lambda x: linalg.cond(x[:0]), MatrixShapeError, "wanted matrices with elements"),
        (lambda x: linalg.cond(x[:1], 1), MatrixShapeError, "wanted square"),
        (lambda x: linalg.pinv(x, 0.1, rtol=0.1), InputError, "wanted rcond or rtol, got both"),
        (lambda x: linalg.matrix_rank(x, 0.1, rtol=0.1), InputError, "wanted tol or rtol, got both"),
        (lambda x: linalg.matrix_power(x, 1.5), InputError, "wanted an int for n"),
        (lambda x: linalg.matrix_power(x[0], 2), MatrixShapeError, "wanted square"),
        (lambda x: linalg.multi_dot([x]), MatrixShapeError, "wanted two or more arrays"),
        (lambda x: linalg.multi_dot([x, x[0], x]), MatrixShapeError, "vectors as first and last"),
        (lambda x: linalg.multi_dot([x, x[:1], x]), MatrixShapeError, "sizes that fit"),
        (lambda x: linalg.multi_dot([x, x], out=5), InputError, "out="),
        (lambda x: linalg.cross(x, x), ShapeError, "wanted 3 elements along axis -1"),
        (lambda x: linalg.outer(x, x), ShapeError, "wanted two vectors"),
        (lambda x: linalg.cholesky(x, upper=x), InputError, "wanted True or False for upper"),
    ],
    ids=map(str, range(25)),
)  # fmt: skip
def test_refused_arguments(call: Any, error: type[XarrError], message: str) -> None:
    with pytest.raises(error, match=message):
        call(xarr.eye(2))
