"""Programs of every family of kernels, and what libraries compute, on the emulator or on a GPU.

On a GPU arrays are so large that many blocks share each kernel's work: what an emulator cannot show is the order in
which memory becomes visible, and whether graphs, streams and libraries of the device do what the host asks of them.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.cuda.emulator.driver import EmulatedDriver
from xarr import lax

pytest.importorskip("llvmlite")
pytestmark = [
    pytest.mark.implicit,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++"),
]

HostArray = np.ndarray[Any, Any]
Program = Callable[..., Any]


def is_real(backend: Any) -> bool:
    """Whether a backend computes on a GPU."""
    return not isinstance(backend._engine.driver, EmulatedDriver)


def normal(*shape: int, seed: int = 0) -> HostArray:
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def integers(below: int, *shape: int, seed: int = 0) -> HostArray:
    return np.random.default_rng(seed).integers(0, below, shape).astype(np.int32)


def softmax(x: Any) -> Any:
    e = xarr.exp(x - xarr.max(x, axis=1, keepdims=True))
    return e / xarr.sum(e, axis=1, keepdims=True)


def pool(x: Any) -> Any:
    return xarr.maximum(lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID"), 0)


def pool_gradient(x: Any) -> Any:
    g = lax.reduce_window(x, -np.inf, lax.max, (1, 3, 3, 1), (1, 2, 2, 1), "VALID") * 0.5 + 1
    return lax.select_and_scatter(
        x, lax.ge, (1, 3, 3, 1), (1, 2, 2, 1), ((0, 0),) * 4, g, np.float32(0), lax.add
    )


def escape(x: Any) -> Any:
    def step(_: Any, state: Any) -> Any:
        a, b, count = state
        inside = a * a + b * b <= 4
        return (
            xarr.where(inside, a * a - b * b + x, a),
            xarr.where(inside, 2 * a * b + 0.3, b),
            count + inside,
        )

    return lax.fori_loop(0, 50, step, (x * 0, x * 0, xarr.zeros(x.shape, dtype="int32")))


def relax(u: Any) -> Any:
    def inner(_: Any, u: Any) -> Any:
        return u.at[1:-1, 1:-1].set((u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]) * 0.25)

    return lax.fori_loop(0, 20, inner, u)


def halve_until_small(x: Any) -> Any:
    return lax.while_loop(
        lambda s: xarr.sum(s[0] * s[0]) > 1, lambda s: (s[0] * 0.9, s[1] + 1), (x, np.int32(0))
    )


def sort_pairs(x: Any, i: Any) -> Any:
    return tuple(lax.sort((i % 7, i, x), num_keys=2))


#: Name -> a program whose bits are the CPU's, and its arguments by a number of rows.
EXACT: dict[str, tuple[Program, Callable[[int], list[HostArray]]]] = {
    "chain": (
        lambda x: xarr.sqrt(xarr.maximum(xarr.sin(x) * 2 + 1, 0) * x * x + 1),
        lambda n: [normal(n, 257)],
    ),
    "transpose": (lambda x: (x * 2).T + 1, lambda n: [normal(n, 131)]),
    "gather of rows": (
        lambda x, i: xarr.take(x, i, axis=0) * 2,
        lambda n: [normal(n, 64), integers(n, 3 * n)],
    ),
    "maxima of rows": (lambda x: xarr.max(x, axis=1), lambda n: [normal(n, 3000)]),
    "sums of integers": (lambda x: (xarr.sum(x, axis=0), xarr.sum(x)), lambda n: [integers(100, n, 300)]),
    "argmin": (lambda x: (xarr.argmin(x, axis=1), xarr.argmax(x)), lambda n: [normal(n, 300)]),
    "running totals": (
        lambda x: (xarr.cumsum(x), xarr.cumsum(x.reshape(-1, 8), axis=0)),
        lambda n: [integers(9, 16 * n)],
    ),
    "histogram": (
        lambda x: xarr.zeros(400, dtype="int32").at[x].add(1, mode="drop"),
        lambda n: [integers(400, 50 * n)],
    ),
    "deterministic sums by a scatter": (
        lambda x, i: xarr.zeros((500, 4), dtype="float32").at[i].add(x, mode="drop"),
        lambda n: [normal(5 * n, 4), integers(500, 5 * n)],
    ),
    "scatter of many": (
        lambda x, i: xarr.zeros(x.shape[0], dtype="float32").at[i].set(x, mode="drop"),
        lambda n: [normal(40 * n), integers(40 * n, 40 * n)],
    ),
    "maxima by a scatter": (
        lambda x, i: xarr.full(999, -np.inf, dtype="float64").at[i].max(x, mode="drop"),
        lambda n: [normal(30 * n).astype(np.float64), integers(999, 30 * n)],
    ),
    "maxima by a scatter of 8 bits": (
        lambda x, i: xarr.zeros(77, dtype="int8").at[i].max(x, mode="drop"),
        lambda n: [integers(100, 30 * n).astype(np.int8), integers(77, 30 * n)],
    ),
    "sort": (lambda x: xarr.sort(x), lambda n: [normal(40 * n)]),
    "sort of rows": (lambda x: xarr.sort(x, axis=1), lambda n: [normal(n, 500)]),
    "argsort": (lambda x: xarr.argsort(x, stable=True), lambda n: [integers(50, 60 * n)]),
    "sort by two keys": (sort_pairs, lambda n: [normal(30 * n), integers(1000, 30 * n)]),
    "pooling": (pool, lambda n: [normal(2, n // 4, 30, 16)]),
    "gradient of a pooling": (pool_gradient, lambda n: [normal(2, n // 4, 30, 16)]),
    "windows of 31 by 31": (
        lambda x: lax.reduce_window(x, -np.inf, lax.max, (31, 31), (1, 1), "VALID"),
        lambda n: [normal(n, 260)],
    ),
    "product of integers": (lambda x: x @ x.T, lambda n: [integers(100, n, 70)]),
    "points that escape": (escape, lambda n: [normal(9 * n)]),
    "stencil": (relax, lambda n: [normal(n, 200)]),
    "random bits": (
        lambda i: xarr.random.bits(xarr.random.key(3), (i.shape[0], 100)),
        lambda n: [integers(9, n)],
    ),
}
#: Those whose sums have another order than on the CPU, and whose results are as near as these allow, relatively.
NEAR: dict[str, tuple[Program, Callable[[int], list[HostArray]]]] = {
    "softmax": (softmax, lambda n: [normal(n, 900)]),
    "sums": (
        lambda x: (xarr.sum(x * x, axis=0), xarr.sum(x * x, axis=1), xarr.sum(x * x)),
        lambda n: [normal(n, 700)],
    ),
    "mean and variance": (lambda x: (xarr.mean(x, 1), xarr.var(x, 1)), lambda n: [normal(n, 700)]),
    "distances": (
        lambda x, y: xarr.min(xarr.sum((x[:, None] - y[None]) ** 2, 2), 1),
        lambda n: [normal(n, 64), normal(n + 9, 64, seed=1)],
    ),
    "product": (lambda x: xarr.maximum(x @ x.T, 0), lambda n: [normal(n, 150)]),
    "convolution": (
        lambda x, k: lax.conv_general_dilated(
            x, k, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        ),
        lambda n: [normal(2, n // 4, 20, 16), normal(3, 3, 16, 32)],
    ),
    "transform": (lambda x: xarr.abs(xarr.fft.rfft(x)), lambda n: [normal(n, 128)]),
    "running totals of floats": (lambda x: xarr.cumsum(xarr.abs(x)), lambda n: [normal(9 * n)]),
    "sums of many by a scatter": (
        lambda x, i: xarr.zeros((2, 4), dtype="float32").at[i].add(x, mode="drop"),
        lambda n: [normal(9 * n, 4), integers(2, 9 * n)],
    ),
    "exact sums by a scatter": (
        lambda x, i: xarr.zeros(2**14, dtype="float32").at[i].add(x, mode="drop"),
        lambda n: [normal(2**17 + n), integers(2**14, 2**17 + n)],
    ),
    "sums of many rows by a scatter": (
        lambda x, i: xarr.zeros((9, 16), dtype="float32").at[i].add(x, mode="drop"),
        lambda n: [normal(50 * n, 16), integers(9, 50 * n)],
    ),
    "loop of unknown length": (halve_until_small, lambda n: [normal(9 * n)]),
}


def results(function: Program, arrays: list[HostArray], backend: str) -> list[HostArray]:
    """The results of a jitted function on a backend, on the host."""
    fusion = "compiled" if backend == "numpy" else "auto"
    with xarr.use_backend(backend), xarr.config(fusion=fusion):
        result = xarr.jit(function)(*map(xarr.asarray, arrays))
        return [np.asarray(each) for each in (result if isinstance(result, tuple | list) else [result])]


def rows(backend: Any) -> int:
    """The number by which arguments are made: enough to fill a GPU, or few for an emulator."""
    return 4000 if is_real(backend) else 64


@pytest.mark.parametrize("name", [*EXACT, *NEAR])
def test_programs_of_the_size_of_a_gpu_are_compiled(name: str, cupy: Any) -> None:
    """The verifier looks at programs that a GPU runs, whose schedules are others than those of few rows."""
    function, make = {**EXACT, **NEAR}[name]
    assert xarr.lower(function, *make(4000)).stage("program")


@pytest.mark.parametrize("name", EXACT)
def test_programs_have_the_bits_of_the_cpu(name: str, cupy: Any) -> None:
    function, make = EXACT[name]
    arrays = make(rows(cupy))
    for got, wanted in zip(
        results(function, arrays, "cupy"), results(function, arrays, "numpy"), strict=True
    ):
        assert_same(got, wanted)


@pytest.mark.parametrize("name", NEAR)
def test_programs_with_sums_are_near(name: str, cupy: Any) -> None:
    function, make = NEAR[name]
    arrays = make(rows(cupy))
    for got, wanted in zip(
        results(function, arrays, "cupy"), results(function, arrays, "numpy"), strict=True
    ):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        scale = float(np.max(np.abs(wanted)))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-5 * scale)


@pytest.mark.parametrize("name", ["deterministic sums by a scatter"])
def test_sums_by_atomic_additions_are_near(name: str, cupy: Any) -> None:
    function, make = EXACT[name]
    arrays = make(rows(cupy))
    with xarr.config(deterministic=False):
        (got,) = results(function, arrays, "cupy")
    (wanted,) = results(function, arrays, "numpy")
    np.testing.assert_allclose(got, wanted, rtol=0, atol=1e-4 * float(np.max(np.abs(wanted))))


@pytest.mark.parametrize(
    "name", [*NEAR, "deterministic sums by a scatter", "histogram", "sort", "running totals"]
)
def test_twenty_runs_have_the_same_bits(name: str, cupy: Any) -> None:
    function, make = {**EXACT, **NEAR}[name]
    compiled = xarr.jit(function)
    arrays = [xarr.asarray(each) for each in make(rows(cupy))]
    first: list[HostArray] = []
    for _ in range(20 if is_real(cupy) else 3):
        result = compiled(*arrays)
        got = [np.asarray(each) for each in (result if isinstance(result, tuple | list) else [result])]
        first = first or got
        for each, other in zip(got, first, strict=True):
            assert_same(each, other)


def test_replays_with_other_arguments_are_right(cupy: Any) -> None:
    """Rows of launches come with the same addresses again, and are replayed as CUDA graphs."""

    def program(x: Any, scale: Any) -> Any:
        for axis in (0, 1) * 4:
            x = x - xarr.max(x, axis=axis, keepdims=True) * scale
        return x

    compiled = xarr.jit(program)
    arrays = [normal(rows(cupy), 50, seed=seed) for seed in range(3)]
    wanted = [[results(program, [each, np.float32(k)], "numpy")[0] for each in arrays] for k in (0.5, 2)]
    on_device = [xarr.asarray(each) for each in arrays]
    for _ in range(5):
        for number, k in enumerate((0.5, 2)):
            for each, expected in zip(on_device, wanted[number], strict=True):
                assert_same(compiled(each, np.float32(k)), expected)


# --- libraries ----------------------------------------------------------------------------------------------


def matrices(dtype: str, size: int, batch: int) -> HostArray:
    rng = np.random.default_rng(size)
    x = rng.normal(size=(batch, size, size))
    return (x + 1j * rng.normal(size=x.shape) if dtype.startswith("complex") else x).astype(dtype)


def adjoint(x: HostArray) -> HostArray:
    return np.conj(np.swapaxes(x, -1, -2))


def assert_zero(difference: HostArray, scale: float = 1) -> None:
    eps = float(np.finfo(difference.dtype).eps)
    assert np.max(np.abs(difference), initial=0) <= 200 * difference.shape[-1] * eps * scale


@pytest.mark.sampled
@pytest.mark.parametrize("size", [1, 5, 40])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_factorisations_give_the_matrix_again(dtype: str, size: int, cupy: Any) -> None:
    x = matrices(dtype, size, 3)
    positive = x @ adjoint(x) + size * np.eye(size, dtype=dtype)
    linalg, own = xarr.linalg, xarr.asarray(x)
    lower = np.asarray(linalg.cholesky(xarr.asarray(positive)))
    assert_zero(lower @ adjoint(lower) - positive, 9 * size)
    w, v = map(np.asarray, linalg.eigh(xarr.asarray(positive)))
    assert_zero(positive @ v - v * w[..., None, :], 9 * size)
    u, s, vh = map(np.asarray, linalg.svd(own))
    assert_zero(u * s[..., None, :] @ vh - x, 9)
    q, r = map(np.asarray, linalg.qr(own))
    assert_zero(q @ r - x, 9)
    assert_zero(adjoint(q) @ q - np.eye(size, dtype=dtype))
    b = matrices(dtype, size, 3)[..., :1] + 1
    assert_zero(positive @ np.asarray(linalg.solve(xarr.asarray(positive), xarr.asarray(b))) - b, 9 * size)
    assert_zero(np.asarray(linalg.inv(xarr.asarray(positive))) @ positive - np.eye(size, dtype=dtype), 9)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_transforms_are_numpys(dtype: str, cupy: Any) -> None:
    x = matrices(dtype, 24, 5)
    for name in ("fft", "ifft", "fft2"):
        got = np.asarray(getattr(xarr.fft, name)(xarr.asarray(x)))
        wanted = getattr(np.fft, name)(x.astype(np.complex128))
        np.testing.assert_allclose(
            got, wanted, rtol=0, atol=1e3 * np.finfo(got.dtype).eps * np.abs(wanted).max()
        )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_products_of_small_integers_are_exact(dtype: str, cupy: Any) -> None:
    x = integers(7, 3, 33, 50).astype(np.float32) - 3
    with xarr.use_backend("numpy"):
        wanted = np.asarray(xarr.astype(xarr.asarray(x @ np.swapaxes(x, 1, 2)), dtype))
    own = xarr.astype(xarr.asarray(x), dtype)
    assert_same(own @ xarr.matrix_transpose(own), wanted)


def test_products_keep_the_digits_that_tf32_would_round_off(cupy: Any) -> None:
    x = np.full((64, 64), 1 + 2**-20, np.float32)
    got = np.asarray(xarr.asarray(x) @ xarr.asarray(np.eye(64, dtype=np.float32)))
    assert_same(got, x)
