"""Complex numbers and histograms: a Fourier transform written out, sets of Mandelbrot, Julia and Newton, histograms."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_SHAPES, Array, Program, normal, prange, uniform

# --- A Fourier transform by halves ---------------------------------------------------------------------------


def signal(n: int) -> tuple[np.ndarray]:
    return (normal(n) + 1j * normal(n, seed=1),)


def fourier_numpy(xp: Array, x: Array) -> Array:
    n = x.shape[0]
    parts = x.reshape(1, n)
    while parts.shape[0] < n:
        count, half = parts.shape[0], parts.shape[1] // 2
        even, odd = parts[:, :half], parts[:, half:]
        turned = odd * xp.exp(-1j * np.pi * xp.arange(count) / count)[:, None]
        parts = xp.concatenate([even + turned, even - turned])
    return parts.reshape(n)


def fourier_jax(jnp: Array, lax: Array, x: Array) -> Array:
    return fourier_numpy(jnp, x)


def fourier_loops(x: Array) -> Array:
    n = x.size
    y, k = x.copy(), 0
    for i in range(1, n):
        bit = n >> 1
        while k & bit:
            k ^= bit
            bit >>= 1
        k |= bit
        if i < k:
            y[i], y[k] = y[k], y[i]
    width = 2
    while width <= n:
        for j in range(width // 2):
            factor = np.exp(-2j * np.pi * j / width)
            for start in range(j, n, width):
                odd = factor * y[start + width // 2]
                even = y[start]
                y[start], y[start + width // 2] = even + odd, even - odd
        width *= 2
    return y


# --- Mandelbrot ----------------------------------------------------------------------------------------------

STEPS = 50


def plane(n: int) -> tuple[np.ndarray]:
    across = np.linspace(-1.7, 0.7, n)
    return (across + 1j * np.linspace(-1.2, 1.2, n)[:, None],)


def mandelbrot_numpy(xp: Array, c: Array) -> Array:
    z, counts = xp.zeros_like(c), xp.zeros(c.shape, dtype="int64")
    for _ in range(STEPS):
        inside = xp.abs(z) <= 2
        z = xp.where(inside, z * z + c, z)
        counts = counts + inside
    return counts


def mandelbrot_jax(jnp: Array, lax: Array, c: Array) -> Array:
    def step(_: Array, carry: Array) -> Array:
        z, counts = carry
        inside = jnp.abs(z) <= 2
        return jnp.where(inside, z * z + c, z), counts + inside

    return lax.fori_loop(0, STEPS, step, (jnp.zeros_like(c), jnp.zeros(c.shape, dtype="int64")))[1]


def mandelbrot_loops(c: Array) -> Array:
    counts = np.zeros(c.shape, np.int64)
    for i in prange(c.shape[0]):
        for j in range(c.shape[1]):
            a = b = 0.0
            count = 0
            while count < STEPS and a * a + b * b <= 4:
                a, b = a * a - b * b + c[i, j].real, 2 * a * b + c[i, j].imag
                count += 1
            counts[i, j] = count
    return counts


# --- Julia: until every point has left or the steps are over -------------------------------------------------


def julia_numpy(xp: Array, z: Array) -> Array:
    z, counts = z.copy(), xp.zeros(z.shape, dtype="int64")
    for _ in range(STEPS):
        active = z.real**2 + z.imag**2 < 4
        z[active] = z[active] ** 2 - 0.8 + 0.156j
        counts[active] += 1
    return counts


def julia_jax(jnp: Array, lax: Array, z: Array) -> Array:
    def is_active(z: Array) -> Array:
        return z.real**2 + z.imag**2 < 4

    def body(carry: Array) -> Array:
        t, z, counts = carry
        active = is_active(z)
        return t + 1, jnp.where(active, z**2 - 0.8 + 0.156j, z), counts + active

    def goes_on(carry: Array) -> Array:
        return (carry[0] < STEPS) & is_active(carry[1]).any()

    return lax.while_loop(goes_on, body, (jnp.asarray(0), z, jnp.zeros(z.shape, dtype="int64")))[2]


def julia_loops(z: Array) -> Array:
    counts = np.zeros(z.shape, np.int64)
    for i in prange(z.shape[0]):
        for j in range(z.shape[1]):
            a, b, count = z[i, j].real, z[i, j].imag, 0
            while count < STEPS and a * a + b * b < 4:
                a, b = a * a - b * b - 0.8, 2 * a * b + 0.156
                count += 1
            counts[i, j] = count
    return counts


# --- Newton's fractal: the roots of z³ = 1 -------------------------------------------------------------------


def roots_numpy(xp: Array, z: Array) -> Array:
    for _ in range(25):
        z = z - (z**3 - 1) / (3 * z**2)
    roots = xp.exp(2j * np.pi * xp.arange(3) / 3)
    return xp.argmin(xp.abs(z[..., None] - roots), axis=-1)


def roots_jax(jnp: Array, lax: Array, z: Array) -> Array:
    z = lax.fori_loop(0, 25, lambda _, z: z - (z**3 - 1) / (3 * z**2), z)
    roots = jnp.exp(2j * np.pi * jnp.arange(3) / 3)
    return jnp.argmin(jnp.abs(z[..., None] - roots), axis=-1)


def roots_loops(z: Array) -> Array:
    labels = np.zeros(z.shape, np.int64)
    for i in prange(z.shape[0]):
        for j in range(z.shape[1]):
            x = z[i, j]
            for _ in range(25):
                x = x - (x * x * x - 1) / (3 * x * x)
            best = np.inf
            for k in range(3):
                distance = abs(x - np.exp(2j * np.pi * k / 3))
                if distance < best:
                    best, labels[i, j] = distance, k
    return labels


# --- A histogram of points in the plane ----------------------------------------------------------------------

CELLS = 32


def histogram_numpy(xp: Array, x: Array, y: Array, weights: Array) -> Array:
    i, j = xp.floor(x * CELLS).astype("int64"), xp.floor(y * CELLS).astype("int64")
    return xp.bincount(i * CELLS + j, weights=weights, minlength=CELLS * CELLS).reshape(CELLS, CELLS)


def histogram_jax(jnp: Array, lax: Array, x: Array, y: Array, weights: Array) -> Array:
    i, j = jnp.floor(x * CELLS).astype("int64"), jnp.floor(y * CELLS).astype("int64")
    return jnp.zeros((CELLS, CELLS)).at[i, j].add(weights)


def histogram_loops(x: Array, y: Array, weights: Array) -> Array:
    counts = np.zeros((CELLS, CELLS))
    for k in range(x.size):
        counts[int(x[k] * CELLS), int(y[k] * CELLS)] += weights[k]
    return counts


POINTS = (32, 128, 512)

ROWS = (
    Program(
        "Fourier transform by halves",
        signal,
        fourier_numpy,
        fourier_jax,
        fourier_loops,
        (64, 4096, 262_144),
        8,
    ),
    Program(
        "Mandelbrot, complex",
        plane,
        mandelbrot_numpy,
        mandelbrot_jax,
        mandelbrot_loops,
        POINTS,
        4,
        unequal=1e-3,
    ),
    Program(
        "Julia, complex",
        lambda n: (plane(n)[0] + 0.5,),
        *(julia_numpy, julia_jax, julia_loops),
        sizes=POINTS,
        tiny=4,
        unequal=1e-3,
        untraceable=VALUE_SHAPES,
    ),
    Program(
        "Newton's fractal",
        lambda n: (plane(n)[0] + 0.503 + 0.01j,),
        *(roots_numpy, roots_jax, roots_loops),
        sizes=POINTS,
        tiny=4,
        unequal=1e-3,
    ),
    Program(
        "weighted histogram of points",
        lambda n: (uniform(n), uniform(n, seed=1), uniform(n, seed=2)),
        *(histogram_numpy, histogram_jax, histogram_loops),
        sizes=(100, 10_000, 1_000_000),
        tiny=6,
        untraceable=VALUE_SHAPES,
    ),
)
