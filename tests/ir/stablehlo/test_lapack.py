"""What JAX exports for CPUs with calls of LAPACK: factors and triangular systems run, the rest is refused."""

from __future__ import annotations

import pickle
import subprocess
import sys
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export
from jax._src.lax.linalg import geqp3, geqrf

import xarr
from tests.support import fuzz
from xarr import stablehlo
from xarr.errors import ParseError
from xarr.ir.stablehlo.lapack import LAPACK_CALLS

jax.config.update("jax_enable_x64", True)

DTYPES = ("float32", "float64", "complex64", "complex128")
HostArray = np.ndarray[Any, Any]


@pytest.mark.usefixtures("on_numpy")
def test_a_pickled_call_runs_in_another_process() -> None:
    types = [((2, 2), "float64"), ((1,), "float64"), ((), "int32")]
    call = partial(xarr.lax.custom_call, "xarr.gehrd", attributes={"low": 1, "high": 2}, result_types=types)
    pickled = pickle.dumps(xarr.lower(call, "f64[2,2]"))
    load = "import pickle, sys; lowered = pickle.load(sys.stdin.buffer)"
    program = f"{load}; print(lowered.compile()([[1., 2.], [3., 4.]])[2])"
    done = subprocess.run([sys.executable, "-c", program], input=pickled, capture_output=True, check=False)
    assert done.stdout.decode().strip() == "0", done.stderr.decode()


def export_text(function: Any, *arguments: Any) -> str:
    return str(export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module())


def against_jax(function: Any, *arguments: HostArray) -> None:
    text = export_text(function, *arguments)
    assert "_ffi" in text
    wanted = np.asarray(function(*arguments))
    for backend in ("numpy", "reference"):
        with xarr.use_backend(backend):
            (result,) = stablehlo.run(stablehlo.parse(text), *arguments)
            got = np.asarray(result)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=200 * np.finfo(wanted.dtype).eps, atol=1e-5)


def matrices(shape: tuple[int, ...], dtype: str) -> HostArray:
    draw = np.random.default_rng(3)
    values = draw.normal(size=shape)
    return (values + 1j * draw.normal(size=shape) if dtype[0] == "c" else values).astype(dtype)


def positive(shape: tuple[int, ...], dtype: str) -> HostArray:
    a = matrices(shape, dtype)
    return a @ np.swapaxes(a, -1, -2).conj() + 3 * np.eye(shape[-1], dtype=dtype)


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (2, 2, 3, 3), (1, 1), (0, 0), (2, 0, 0), (0, 3, 3)], ids=str)
def test_cholesky(shape: tuple[int, ...], dtype: str) -> None:
    against_jax(jnp.linalg.cholesky, positive(shape, dtype))


@pytest.mark.parametrize("upper", [False, True], ids=["lower", "upper"])
def test_cholesky_of_some_that_are_not_positive_definite(upper: bool) -> None:
    a = positive((3, 2, 2), "float64")
    a[1] = [[1, 2], [2, 1]]
    a[2, 0, 0] = np.nan
    against_jax(lambda x: jnp.linalg.cholesky(x, upper=upper), a)


@pytest.mark.parametrize(
    ("dtype", "trans", "lower", "unit"), fuzz.one_of_last(DTYPES, [0, 1, 2], [False, True], [False, True])
)
def test_solve_triangular(lower: bool, trans: int, unit: bool, dtype: str) -> None:
    a = matrices((3, 3), dtype) + 3 * np.eye(3, dtype=dtype)

    def solve(x: Any, y: Any) -> Any:
        return jax.scipy.linalg.solve_triangular(x, y, trans=trans, lower=lower, unit_diagonal=unit)

    against_jax(solve, a, matrices((3, 2), dtype))
    against_jax(solve, a, matrices((3,), dtype))


def test_systems_from_the_right_in_batches() -> None:
    a = matrices((2, 3, 3), "float64") + 3 * np.eye(3)
    against_jax(
        lambda x, y: jax.lax.linalg.triangular_solve(x, y, left_side=False, lower=True),
        a,
        matrices((2, 4, 3), "float64"),
    )


def test_cho_solve() -> None:
    against_jax(
        lambda a, b: jax.scipy.linalg.cho_solve(jax.scipy.linalg.cho_factor(a), b),
        positive((3, 3), "float64"),
        matrices((3, 2), "float64"),
    )


POTRF = """func.func @main(%a: tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>) {
  %0:2 = stablehlo.custom_call @lapack_dpotrf_ffi(%a) {mhlo.backend_config = {CONFIG}}
    : (tensor<2x2xf64>) -> (tensor<2x2xf64>, tensor<i32>)
  return %0#0, %0#1 : tensor<2x2xf64>, tensor<i32>
}"""


def test_potrf_writes_one_triangle_and_says_whether_it_could() -> None:
    def call(letter: str) -> Any:
        module = stablehlo.parse(POTRF.replace("CONFIG", f"uplo = {ord(letter)} : ui8"))
        return stablehlo.run(module, np.array([[4.0, 7.0], [2.0, 2.0]]))

    factor, info = call("L")
    np.testing.assert_array_equal(np.asarray(factor), [[2, 7], [1, 1]])
    assert int(info) == 0
    assert int(call("U")[1]) == 2  # 4 · 2 < 7 · 7


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("letter", ["L", "U"])
def test_info_of_potrf_is_the_number_of_the_failing_minor(letter: str, size: int) -> None:
    matrices = np.stack([np.eye(size) for _ in range(size + 1)])
    for index in range(size):
        matrices[index, index, index] = np.nan if index == 2 else -1.0
        matrices[index, size - 1, size - 1] = -2.0  # a later one does not count
    text = POTRF.replace("CONFIG", f"uplo = {ord(letter)} : ui8")
    text = text.replace("2x2", f"{size + 1}x{size}x{size}").replace("tensor<i32>", f"tensor<{size + 1}xi32>")
    _, info = stablehlo.run(stablehlo.parse(text), matrices)
    np.testing.assert_array_equal(np.asarray(info), [*range(1, size + 1), 0])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("", "the attribute uplo is missing"),
        ("uplo = 65 : ui8", r"expected uplo of 76 \(L\), 85 \(U\), got 65"),
        ('uplo = "L"', "expected an integer for uplo"),
    ],
)
def test_calls_with_bad_letters(config: str, message: str) -> None:
    with pytest.raises(ParseError, match=message):
        stablehlo.parse(POTRF.replace("CONFIG", config))


# --- routines on the host ---------------------------------------------------------------------------------------


def run_both(function: Any, *arguments: HostArray) -> tuple[list[HostArray], list[HostArray]]:
    """The results of JAX, and those of the text that JAX lowers the function to."""
    text = jax.jit(function).lower(*arguments).as_text()
    assert "@lapack_" in text
    results = stablehlo.run(stablehlo.parse(text), *arguments)
    wanted = jax.tree.leaves(jax.jit(function)(*arguments))
    for mine, theirs in zip(results, wanted, strict=True):
        assert (mine.dtype, mine.shape) == (theirs.dtype, theirs.shape)
    return list(map(np.asarray, results)), list(map(np.asarray, wanted))


def agree(function: Any, *arguments: HostArray) -> None:
    for mine, theirs in zip(*run_both(function, *arguments), strict=True):
        scale = 1 + np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(mine, theirs, rtol=0, atol=300 * np.finfo(arguments[0].dtype).eps * scale)


def adjoint(a: HostArray) -> HostArray:
    return np.swapaxes(a, -1, -2).conj()


def spoil(a: HostArray, kind: str) -> HostArray:
    """Matrices that are hard for the QR algorithm, of the shape of `a`."""
    n = a.shape[-1]
    known: dict[str, Any] = {
        "random": a,
        "zero": np.zeros_like(a),
        "one Jordan block": np.eye(n) * 2 + np.eye(n, k=1),
        "permutation": np.roll(np.eye(n), 1, 0),
        "triangular": np.triu(a),
        "lower triangular": np.tril(a),
        "symmetric": a + adjoint(a),
        "skew": a - adjoint(a),
        "small integers": np.round(a),
        "huge": a * (1e37 if a.dtype.itemsize <= 8 and a.dtype != np.float64 else 1e306),
        "tiny": a * (1e-37 if a.dtype.itemsize <= 8 and a.dtype != np.float64 else 1e-307),
        "graded": a * np.logspace(0, -12, n)[:, None],
    }
    return np.broadcast_to(known[kind], a.shape).astype(a.dtype)


KINDS = (
    *("random", "zero", "one Jordan block", "permutation", "triangular", "lower triangular", "symmetric"),
    *("skew", "small integers", "huge", "tiny", "graded"),
)


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 2, 3, 7, 20])
@pytest.mark.parametrize("dtype", DTYPES)
def test_schur(dtype: str, size: int) -> None:
    """T and Q are what they must be; their eigenvalues are JAX's, in whatever order."""
    for kind in KINDS:
        check_schur(spoil(matrices((2, size, size), dtype), kind), size, kind)


def check_schur(a: HostArray, size: int, kind: str) -> None:
    dtype = a.dtype
    (t, q), (t_jax, _) = run_both(jax.lax.linalg.schur, a)
    scale = np.abs(a).max(initial=0) or 1.0
    error = 30 * size * np.finfo(dtype).eps
    np.testing.assert_allclose(q @ (t / scale) @ adjoint(q), a / scale, rtol=0, atol=error)
    np.testing.assert_allclose(q @ adjoint(q), np.broadcast_to(np.eye(size), a.shape), rtol=0, atol=error)
    if kind in ("random", "permutation", "symmetric", "skew", "triangular"):
        for mine, theirs in zip(t / scale, t_jax / scale, strict=True):
            left = np.linalg.eigvals(mine)
            for value in np.linalg.eigvals(theirs):
                assert np.abs(left - value).min() < 100 * error
    for matrix in t:
        below = matrix.diagonal(-1)
        assert not np.tril(matrix, -2).any() and not (dtype.kind == "c" and below.any())
        for k in np.flatnonzero(below):  # a pair of eigenvalues that are not real, as LAPACK writes it
            assert matrix[k, k] == matrix[k + 1, k + 1] and np.sign(below[k]) * np.sign(matrix[k, k + 1]) <= 0
            assert k + 2 >= size or below[k + 1] == 0


def test_schur_of_what_is_not_finite_is_nan() -> None:
    a = np.stack([np.eye(3)] * 3)
    a[1, 0, 2], a[2, 1, 0] = np.nan, np.inf
    (t, q), _ = run_both(jax.lax.linalg.schur, a)
    assert np.isnan(t[1:]).all() and np.isnan(q[1:]).all()
    np.testing.assert_array_equal(t[0], np.eye(3))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 2), (5, 5), (2, 3, 4, 4), (0, 3, 3)])
def test_hessenberg_and_tridiagonal(shape: tuple[int, ...], dtype: str) -> None:
    a = matrices(shape, dtype)
    agree(jax.lax.linalg.hessenberg, a)
    for lower in (True, False):
        agree(lambda x, lower=lower: jax.lax.linalg.tridiagonal(x, lower=lower), a + adjoint(a))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(3, 3), (6, 4), (4, 6), (2, 5, 3), (0, 3, 3)])
def test_qr_with_pivots_and_products_with_q(shape: tuple[int, ...], dtype: str) -> None:
    a = matrices(shape, dtype)
    agree(lambda x: jax.lax.linalg.qr(x, pivoting=True, full_matrices=False), a)
    factors, taus = map(np.asarray, jax.jit(geqrf)(a))
    for left in (True, False):
        c = matrices((*shape[:-2], shape[-2], 2) if left else (*shape[:-2], 2, shape[-2]), dtype)
        for transpose in (True, False):

            def product(x: Any, y: Any, z: Any, left: bool = left, transpose: bool = transpose) -> Any:
                return jax.lax.linalg.ormqr(x, y, z, left=left, transpose=transpose)

            agree(product, factors, taus, c)


def test_columns_with_a_pivot_come_first() -> None:
    a = matrices((4, 4), "float64")

    def factors(x: Any) -> Any:
        return geqp3(x, jnp.array([0, 0, 0, 1], jnp.int32))

    (mine, pivots, _), (theirs, wanted, _) = run_both(factors, a)
    np.testing.assert_array_equal(pivots, wanted)
    np.testing.assert_allclose(mine, theirs, atol=1e-13)
    assert pivots[0] == 4


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("compute_uv", [True, False])
def test_svd_by_qr_steps(compute_uv: bool, dtype: str) -> None:
    def values(x: Any) -> Any:
        results = jax.lax.linalg.svd(
            x, full_matrices=False, compute_uv=compute_uv, algorithm=jax.lax.linalg.SvdAlgorithm.QR
        )
        return (results[0] * results[1][..., None, :] @ results[2], results[1]) if compute_uv else results

    agree(values, matrices((2, 5, 3), dtype))


@pytest.mark.sampled
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (2, 3), (9, 2), (3, 6, 1), (0, 4, 2)])
def test_tridiagonal_systems(shape: tuple[int, ...], dtype: str) -> None:
    """With row exchanges: the diagonal is small or zero."""
    draw = matrices((3, *shape[:-1]), dtype)
    for factor in (1, 0.01, 0):
        diagonals = [draw[0], draw[1] * factor, draw[2]]
        if factor == 0 and shape[-2] % 2:
            continue  # singular
        agree(jax.lax.linalg.tridiagonal_solve, *[x.astype(dtype) for x in diagonals], matrices(shape, dtype))


def test_a_singular_tridiagonal_system_is_nan() -> None:
    zero, b = np.zeros((2, 3)), np.ones((2, 3, 1))
    diagonal = np.array([[1.0, 2.0, 4.0], [1.0, 0.0, 1.0]])
    (mine,), (theirs,) = run_both(jax.lax.linalg.tridiagonal_solve, zero, diagonal, zero, b)
    np.testing.assert_array_equal(mine, theirs)
    assert mine[0].ravel().tolist() == [1, 0.5, 0.25] and np.isnan(mine[1]).all()


@pytest.mark.parametrize(
    ("target", "config", "operands", "message"),
    [
        ("dgees", "mode = 86 : ui8, sort = 83 : ui8", "a", r"expected sort of 78 \(N\), got 83"),
        ("dgees", "mode = 86 : ui8, sort = 78 : ui8", "b", r"expected square matrices .*, got f64\[3\]"),
        ("dgehrd", "low = 0 : i32, high = 3 : i32", "a", "1 <= low <= high <= 3, got 0 and 3"),
        ("dgehrd", "low = 1 : i32, high = 4 : i32", "a", "1 <= low <= high <= 3, got 1 and 4"),
        ("dgehrd", "low = 1 : i32", "a", "expected an integer for high"),
        ("dgeqp3", "", "ab", "expected tensor<3xi32> as operand 1, got tensor<3xf64>"),
        ("dgtsv", "", "abba", "expected tensor<3xf64> as operand 0, got tensor<3x3xf64>"),
        ("dgtsv", "", "bbbb", "expected right hand sides"),
        ("dormqr", "left = true", "aba", "expected true or false for transpose"),
        ("dormqr", "left = true, transpose = true", "abb", "factors that fit"),
        ("dsytrd", "uplo = 1 : ui8", "a", "expected uplo of 76"),
        ("dgees", "mode = 86 : ui8, sort = 78 : ui8", "a", "expected 1 results, got 6|is tensor|results"),
    ],
)
def test_calls_on_the_host_that_do_not_fit(target: str, config: str, operands: str, message: str) -> None:
    types = {"a": "tensor<3x3xf64>", "b": "tensor<3xf64>"}
    names = ", ".join(f"%{each}" for each in operands)
    call = f"@lapack_{target}_ffi({names}) {{mhlo.backend_config = {{{config}}}}}"
    text = f"""func.func @main(%a: tensor<3x3xf64>, %b: tensor<3xf64>) -> tensor<3x3xf64> {{
      %0 = stablehlo.custom_call {call} : ({", ".join(types[each] for each in operands)}) -> tensor<3x3xf64>
      return %0 : tensor<3x3xf64>
    }}"""
    with pytest.raises(ParseError, match=message):
        stablehlo.parse(text)


def test_a_call_on_the_host_is_written_and_read_again() -> None:
    a = matrices((4, 4), "float64")
    module = stablehlo.parse(jax.jit(jax.lax.linalg.hessenberg).lower(a).as_text())
    again = stablehlo.parse(str(module.main))
    assert again.main == module.main
    for mine, theirs in zip(stablehlo.run(again, a), stablehlo.run(module, a), strict=True):
        np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs))


def test_other_calls_of_lapack_are_refused_by_name() -> None:
    text = POTRF.replace("potrf", "gerqf").replace("CONFIG", "")
    with pytest.raises(ParseError, match="lapack_dgerqf_ffi"):
        stablehlo.parse(text)


def test_all_that_jax_has_for_cpus_is_known() -> None:
    from jaxlib.cpu import _lapack

    assert {name for name in _lapack.registrations() if name not in LAPACK_CALLS} == {
        "tridiagonal_solve_perturbed_ffi"
    }
