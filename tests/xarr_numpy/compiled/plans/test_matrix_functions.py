"""Factors, systems and determinants in machine code: to the bits of NumPy's functions, where they fail too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from xarr import lax
from xarr.lax import linalg
from xarr_numpy.compiled.cpython_abi import struct_offsets
from xarr_numpy.compiled.plans import matrix_functions

pytest.importorskip("llvmlite")

Array = np.ndarray[Any, Any]
N = 5

pytestmark = pytest.mark.skipif(not struct_offsets.works(), reason="NumPy's ufuncs are not read here")

#: Functions of matrices, and whether these are to be positive definite.
FUNCTIONS: dict[str, tuple[Callable[[Any], Any], bool]] = {
    "eigh": (lambda x: linalg.eigh(x), True),
    "eigh, upper": (lambda x: linalg.eigh(x, lower=False), True),
    "eigvalsh": (lambda x: (xarr.linalg.eigvalsh(x),), True),
    "svd": (lambda x: tuple(xarr.linalg.svd(x)), False),
    "svd, wide": (lambda x: tuple(xarr.linalg.svd(x[..., :3, :], full_matrices=True)), False),
    "svd, reduced": (lambda x: tuple(xarr.linalg.svd(x[..., :3], full_matrices=False)), False),
    "slogdet": (lambda x: tuple(xarr.linalg.slogdet(x)), False),
    "cholesky": (lambda x: (linalg.cholesky(x),), True),
    "cholesky, upper": (lambda x: (xarr.linalg.cholesky(x, upper=True),), True),
    "solve": (lambda x: (xarr.linalg.solve(x, x[..., :2] + 1),), False),
}


def matrices(dtype: Any, batch: tuple[int, ...], is_definite: bool) -> Array:
    rng = np.random.default_rng(len(batch))
    a = rng.normal(size=(*batch, N, N)).astype(dtype)
    if np.dtype(dtype).kind == "c":
        a = a + 1j * rng.normal(size=a.shape)
    a = a @ np.swapaxes(a.conj(), -1, -2) + np.eye(N) if is_definite else a
    return a.astype(dtype)


def both(function: Callable[..., Any], *arguments: Any) -> str:
    """Compare with NumPy's functions bit by bit, errors too; the plan in machine code."""
    results: list[Any] = []
    for fusion in ("off", "auto"):
        with xarr.config(fusion=fusion):
            try:
                results.append([np.asarray(each) for each in xarr.jit(function)(*arguments)])
            except np.linalg.LinAlgError as error:
                results.append(str(error).splitlines()[0])
    if isinstance(results[0], str):
        assert results[0] == results[1]
    else:
        for one, other in zip(*results, strict=True):
            assert_same(one, other)
            assert one.tobytes() == other.tobytes() or np.isnan(one).any()
    return str(xarr.jit(function).lower(*arguments).stage("plan"))


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("batch", [(), (3,), (2, 2)])
def test_the_bits_are_those_of_numpy(name: str, dtype: str, batch: tuple[int, ...]) -> None:
    function, is_definite = FUNCTIONS[name]
    a = matrices(dtype, batch, is_definite)
    # With something else, so that the program is more than one call.
    text = both(lambda x: tuple(each + each for each in function(x * 1)), a)
    assert "Python" not in text


@pytest.mark.parametrize("dtype", ["float64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("bad", [0.0, np.nan, np.inf])
@pytest.mark.filterwarnings("ignore")
def test_matrices_that_fail(name: str, dtype: str, bad: float) -> None:
    function, is_definite = FUNCTIONS[name]
    a = matrices(dtype, (3,), is_definite)
    a[1] = bad
    both(lambda x: tuple(each + each for each in function(x * 1)), a)


@pytest.mark.parametrize("dtype", ["float32", "complex64"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_single_precision_is_numpy_s(name: str, dtype: str) -> None:
    function, is_definite = FUNCTIONS[name]
    a = matrices(dtype, (3,), is_definite)
    assert "Python" not in both(lambda x: tuple(each + each for each in function(x * 1)), a)
    a[1] = 0
    both(lambda x: tuple(each + each for each in function(x * 1)), a)


def test_a_loop_calls_them_without_python() -> None:
    def iterate(a: Any) -> Any:
        def step(_: Any, a: Any) -> Any:
            w, v = xarr.linalg.eigh(a + xarr.matrix_transpose(a))
            return (v * xarr.sqrt(1 + w * w)) @ v.T / (1 + xarr.linalg.slogdet(a)[1] ** 2)

        return (lax.fori_loop(0, 4, step, a),)

    a = matrices("float64", (), False)
    text = str(xarr.jit(iterate).lower(a).stage("plan"))
    assert "Python" not in text
    wanted = a
    for _ in range(4):
        w, v = np.linalg.eigh(wanted + wanted.T)
        wanted = (v * np.sqrt(1 + w * w)) @ v.T / (1 + np.linalg.slogdet(wanted)[1] ** 2)
    np.testing.assert_allclose(np.asarray(xarr.jit(iterate)(a)[0]), wanted, rtol=1e-10, atol=1e-10)


def test_python_computes_them_where_the_loops_are_not_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_functions, "_loop_of", lambda name, is_complex: None)
    for name, (function, is_definite) in FUNCTIONS.items():
        a = matrices("float64", (), is_definite)
        assert "Python" in both(lambda x, function=function: tuple(function(x * 1)), a), name
