"""What JAX exports for CPUs with calls of LAPACK: factors and triangular systems run, the rest is refused."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import export

import xarr
from xarr import stablehlo
from xarr.errors import ParseError

jax.config.update("jax_enable_x64", True)

DTYPES = ("float32", "float64", "complex64", "complex128")
HostArray = np.ndarray[Any, Any]


def exported(function: Any, *arguments: Any) -> str:
    return str(export.export(jax.jit(function), platforms=["cpu"])(*arguments).mlir_module())


def against_jax(function: Any, *arguments: HostArray) -> None:
    text = exported(function, *arguments)
    assert "_ffi" in text
    wanted = np.asarray(function(*arguments))
    for backend in ("numpy", "reference"):
        with xarr.use_backend(backend):
            (found,) = stablehlo.run(stablehlo.parse(text), *arguments)
            got = np.asarray(found)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        np.testing.assert_allclose(got, wanted, rtol=200 * np.finfo(wanted.dtype).eps, atol=1e-5)


def matrices(shape: tuple[int, ...], dtype: str) -> HostArray:
    draw = np.random.default_rng(3)
    found = draw.normal(size=shape)
    return (found + 1j * draw.normal(size=shape) if dtype[0] == "c" else found).astype(dtype)


def positive(shape: tuple[int, ...], dtype: str) -> HostArray:
    a = matrices(shape, dtype)
    return a @ np.swapaxes(a, -1, -2).conj() + 3 * np.eye(shape[-1], dtype=dtype)


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


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("trans", [0, 1, 2])
@pytest.mark.parametrize("lower", [False, True], ids=["upper", "lower"])
def test_solve_triangular(lower: bool, trans: int, dtype: str) -> None:
    a = matrices((3, 3), dtype) + 3 * np.eye(3, dtype=dtype)
    for unit_diagonal in (False, True):

        def solve(x: Any, y: Any, unit: bool = unit_diagonal) -> Any:
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
    for place in range(size):
        matrices[place, place, place] = np.nan if place == 2 else -1.0
        matrices[place, size - 1, size - 1] = -2.0  # a later one does not count
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


def test_other_calls_of_lapack_are_refused_by_name() -> None:
    text = POTRF.replace("potrf", "gehrd").replace("CONFIG", "")
    with pytest.raises(ParseError, match="lapack_dgehrd_ffi"):
        stablehlo.parse(text)
