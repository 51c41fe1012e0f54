"""Rows (g) pooling and its gradient, (h) rows in and out, (i) loops: a stencil and a fractal."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Contenders

from cpu_rows.contenders import Function, Row, by_numba, contenders, is_installed, jax, random
from xarr.dtypes import complex_of

IMAGES = (8, 112, 112, 64)
WINDOWS = ((1, 3, 3, 1), (1, 2, 2, 1))
TABLE, LOOKUPS, WIDTH = 10**5, 10**6, 16
GRID, PICTURE, LIMIT = 4096, 1024, 100


def _slices(x: np.ndarray) -> list[np.ndarray]:
    return [x[:, i : i + 109 : 2, j : j + 109 : 2] for i in range(3) for j in range(3)]


def max_pool(dtype: np.dtype, _: int) -> Contenders:
    images = random(dtype, *IMAGES)

    def by_slices() -> np.ndarray:
        first, *others = _slices(images)
        result = first.copy()
        for each in others:
            np.maximum(result, each, out=result)
        return result

    def program(xp: Any, lax: Any) -> Function:
        return lambda x: lax.reduce_window(x, dtype.type(-np.inf), lax.max, *WINDOWS, "VALID")

    return contenders(program, images, by_numpy=by_slices, numba_kernel="max_pool")


def max_pool_gradient(dtype: np.dtype, _: int) -> Contenders:
    images, gradient = random(dtype, *IMAGES), random(dtype, 8, 55, 55, 64, seed=1)

    def by_indices() -> np.ndarray:
        choice = np.argmax(np.stack(_slices(images)), axis=0)
        n, h, w, c = np.ogrid[tuple(slice(size) for size in gradient.shape)]
        indices = np.ravel_multi_index((n, 2 * h + choice // 3, 2 * w + choice % 3, c), IMAGES)
        result = np.zeros(images.size, dtype)
        np.add.at(result, indices.reshape(-1), gradient.reshape(-1))
        return result.reshape(IMAGES)

    def program(xp: Any, lax: Any) -> Function:
        if not hasattr(lax, "select_and_scatter"):
            return _jax_gradient()
        zero = dtype.type(0)
        return lambda x, g: lax.select_and_scatter(x, lax.ge, *WINDOWS, ((0, 0),) * 4, g, zero, lax.add)

    return contenders(program, images, gradient, by_numpy=by_indices, numba_kernel="unpool")


def _jax_gradient() -> Function:
    """JAX emits select_and_scatter where a max pooling is differentiated."""
    module = jax()

    def pool(x: Any) -> Any:
        return module.lax.reduce_window(x, -np.inf, module.lax.max, *WINDOWS, "VALID")

    return lambda x, g: module.vjp(pool, x)[1](g)[0]


def _lookups(dtype: np.dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    indices = np.random.default_rng(0).integers(0, TABLE, LOOKUPS).astype(np.int32)
    return random(dtype, TABLE, WIDTH), indices, random(dtype, LOOKUPS, WIDTH, seed=1)


def gather(dtype: np.dtype, _: int) -> Contenders:
    rows, indices = _lookups(dtype)[:2]

    def program(xp: Any, lax: Any) -> Function:
        if lax is None:
            return lambda x, i: xp.take(x, i, axis=0)
        names = lax.GatherDimensionNumbers((1,), (0,), (0,))
        return lambda x, i: lax.gather(x, i[:, None], names, (1, WIDTH), mode="promise_in_bounds")

    return contenders(program, rows, indices, numba_kernel="gather")


def _add_flat(rows: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
    """In one dimension, where `np.add.at` is several times as fast."""
    result = rows.copy()
    flat = (indices.astype(np.intp)[:, None] * WIDTH + np.arange(WIDTH)).reshape(-1)
    np.add.at(result.reshape(-1), flat, updates.reshape(-1))
    return result


def scatter_add(dtype: np.dtype, _: int) -> Contenders:
    rows, indices, updates = _lookups(dtype)

    def program(xp: Any, lax: Any) -> Function:
        if lax is None:
            return _add_flat
        names = lax.ScatterDimensionNumbers((1,), (0,), (0,))
        return lambda x, i, u: lax.scatter_add(x, i[:, None], u, names, mode="promise_in_bounds")

    return contenders(program, rows, indices, updates, numba_kernel="scatter_add")


def segment_sum(dtype: np.dtype, _: int) -> Contenders:
    """Sorted segments, some of which are empty."""
    indices, updates = _lookups(dtype)[1:]
    indices.sort()

    def by_reduceat() -> np.ndarray:
        calls, starts = np.unique(indices, return_index=True)
        result = np.zeros((TABLE, WIDTH), dtype)
        result[calls] = np.add.reduceat(updates, starts, axis=0)
        return result

    def program(xp: Any, lax: Any) -> Function:
        if not hasattr(lax, "segment_sum"):
            lax = jax().ops if is_installed("jax") else None
        return lambda u, i: lax.segment_sum(u, i, TABLE, indices_are_sorted=True)

    calls = contenders(program, updates, indices, by_numpy=by_reduceat)
    return calls | by_numba("segment_sum", updates, indices, TABLE)


def jacobi(dtype: np.dtype, steps: int) -> Contenders:
    u = random(dtype, GRID, GRID)

    def inner(u: Any) -> Any:
        return 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])

    def by_slices() -> np.ndarray:
        new, old = u.copy(), u.copy()
        part = np.empty((GRID - 2, GRID - 2), dtype)
        for _ in range(steps):
            new, old = old, new
            np.add(old[:-2, 1:-1], old[2:, 1:-1], out=part)
            part += old[1:-1, :-2]
            part += old[1:-1, 2:]
            np.multiply(part, dtype.type(0.25), out=new[1:-1, 1:-1])
        return new

    def program(xp: Any, lax: Any) -> Function:
        def step(_: Any, u: Any) -> Any:
            return u.at[1:-1, 1:-1].set(inner(u))

        return lambda u: lax.fori_loop(0, steps, step, u)

    calls = contenders(program, u, by_numpy=by_slices)
    return calls | by_numba("jacobi", u, steps)


def mandelbrot(dtype: np.dtype, _: int) -> Contenders:
    """Count the steps of 100 that each point stays within 2."""
    real, imaginary = np.meshgrid(
        np.linspace(-2, 0.5, PICTURE, dtype=dtype), np.linspace(-1.25, 1.25, PICTURE, dtype=dtype)
    )

    def step(xp: Any, real: Any, imaginary: Any, state: Any) -> Any:
        i, a, b, counts = state
        inside = a * a + b * b <= 4
        counts = xp.where(inside, counts + 1, counts)
        a, b = (
            xp.where(inside, a * a - b * b + real, a),
            xp.where(inside, a * b + a * b + imaginary, b),
        )
        return i + 1, a, b, counts

    def by_hand() -> np.ndarray:
        state = (0, np.zeros_like(real), np.zeros_like(real), np.zeros(real.shape, np.int32))
        for _ in range(LIMIT):
            state = step(np, real, imaginary, state)
        return state[3]

    def program(xp: Any, lax: Any) -> Function:
        def function(real: Any, imaginary: Any) -> Any:
            zero = xp.zeros_like(real)
            state = (xp.asarray(0, dtype="int32"), zero, zero, xp.zeros(real.shape, dtype="int32"))
            return lax.while_loop(
                lambda state: state[0] < LIMIT, lambda state: step(xp, real, imaginary, state), state
            )[3]

        return function

    calls = contenders(program, real, imaginary, by_numpy=by_hand)
    return calls | by_numba("mandelbrot", real, imaginary, LIMIT)


def complex_mandelbrot(dtype: np.dtype, _: int) -> Contenders:
    """The Mandelbrot set with complex numbers."""
    real, imaginary = (
        np.linspace(-2, 0.5, PICTURE, dtype=dtype),
        np.linspace(-1.25, 1.25, PICTURE, dtype=dtype),
    )
    points = real[None] + (imaginary[:, None] * 1j).astype(complex_of(dtype))

    def step(xp: Any, points: Any, z: Any, counts: Any) -> Any:
        inside = xp.real(z) ** 2 + xp.imag(z) ** 2 <= 4
        return xp.where(inside, z * z + points, z), xp.where(inside, counts + 1, counts)

    def by_hand() -> np.ndarray:
        z, counts = np.zeros_like(points), np.zeros(points.shape, np.int32)
        for _ in range(LIMIT):
            z, counts = step(np, points, z, counts)
        return counts

    def program(xp: Any, lax: Any) -> Function:
        def function(points: Any) -> Any:
            state = (xp.zeros_like(points), xp.zeros(points.shape, dtype="int32"))
            return lax.fori_loop(0, LIMIT, lambda i, state: step(xp, points, *state), state)[1]

        return function

    return contenders(program, points, by_numpy=by_hand)


def decay(dtype: np.dtype, steps: int) -> Contenders:
    """A loop of so many steps over one number."""
    rate = np.asarray(0.999, dtype)

    def by_hand() -> np.ndarray:
        total, each, one = dtype.type(0), dtype.type(0.999), dtype.type(1)
        for _ in range(steps):
            total = total * each + one
        return np.asarray(total)

    def program(xp: Any, lax: Any) -> Function:
        return lambda rate: lax.fori_loop(0, steps, lambda i, s: s * rate + 1, xp.zeros_like(rate))

    calls = contenders(program, rate, by_numpy=by_hand)
    return calls | by_numba("decay", rate, steps)


def smoothing(dtype: np.dtype, size: int) -> Contenders:
    """A scan whose carry is one number, with a result for each step."""
    x, rate = random(dtype, size), np.asarray(0.999, dtype)

    def by_hand() -> np.ndarray:
        result, total, each = np.empty_like(x), dtype.type(0), dtype.type(0.999)
        for i, value in enumerate(x):
            result[i] = total = total * each + value
        return result

    def program(xp: Any, lax: Any) -> Function:
        def step(total: Any, value: Any, rate: Any) -> Any:
            total = total * rate + value
            return total, total

        return lambda x, r: lax.scan(lambda c, v: step(c, v, r), xp.zeros_like(r), x)[1]

    return contenders(program, x, rate, by_numpy=by_hand, numba_kernel="smooth")


ROWS = (
    Row("g", "max pool 3×3/2 of (8,112,112,64)", max_pool),
    Row("g", "max pool 3×3/2, gradient", max_pool_gradient),
    Row("h", "gather 10^6 rows of 16", gather),
    Row("h", "scatter-add 10^6 into 10^5 rows of 16", scatter_add, tolerance=1e3),
    Row("h", "segment sum of 10^6 rows of 16", segment_sum, tolerance=1e3),
    Row("i", "Jacobi 4096², steps:", jacobi, (50,), quick_sizes=(10,), traffic=lambda n: 2 * n * GRID**2),
    Row("i", "Mandelbrot 1024², 100 steps", mandelbrot, unequal=0.01),
    Row("m", "Mandelbrot of complex numbers", complex_mandelbrot, unequal=0.01),
    Row("i", "loop over one number, steps:", decay, (10**6,), quick_sizes=(1000,), tolerance=1e3),
    Row("i", "scan with one number, steps:", smoothing, (10**6,), quick_sizes=(1000,), tolerance=1e3),
)
