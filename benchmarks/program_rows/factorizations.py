"""Linear algebra by loops: factorizations, triangular and tridiagonal systems, conjugate gradients."""

from __future__ import annotations

import numpy as np

from program_rows.row import (
    EACH_ELEMENT,
    VALUE_DECIDES,
    VALUE_INDEXES,
    Array,
    Program,
    normal,
    prange,
    uniform,
)


def positive_definite(n: int) -> np.ndarray:
    a = normal(n, n)
    return a @ a.T / n + np.eye(n)


# --- LU with row exchanges -----------------------------------------------------------------------------------


def lu_numpy(xp: Array, a: Array) -> Array:
    a = a.copy()
    n = a.shape[0]
    order = xp.arange(n)
    for k in range(n - 1):
        pivot = k + int(xp.argmax(xp.abs(a[k:, k])))
        if pivot != k:
            a[[k, pivot]] = a[[pivot, k]]
            order[[k, pivot]] = order[[pivot, k]]
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= xp.outer(a[k + 1 :, k], a[k, k + 1 :])
    return a, order


def lu_jax(jnp: Array, lax: Array, a: Array) -> Array:
    n = a.shape[0]
    rows = jnp.arange(n)

    def step(k: Array, carry: Array) -> Array:
        a, order = carry
        pivot = jnp.argmax(jnp.where(rows >= k, jnp.abs(a[:, k]), -1.0))
        swapped = jnp.where(rows == k, pivot, jnp.where(rows == pivot, k, rows))
        a, order = a[swapped], order[swapped]
        factors = jnp.where(rows > k, a[:, k] / a[k, k], 0.0)
        a = a - jnp.outer(factors, jnp.where(rows > k, a[k], 0.0))
        return a.at[:, k].set(jnp.where(rows > k, factors, a[:, k])), order

    return lax.fori_loop(0, n - 1, step, (a, rows))


def lu_loops(a: Array) -> Array:
    a = a.copy()
    n = a.shape[0]
    order = np.arange(n)
    for k in range(n - 1):
        pivot = k
        for i in range(k + 1, n):
            if abs(a[i, k]) > abs(a[pivot, k]):
                pivot = i
        if pivot != k:
            for j in range(n):
                a[k, j], a[pivot, j] = a[pivot, j], a[k, j]
            order[k], order[pivot] = order[pivot], order[k]
        for i in range(k + 1, n):
            factor = a[i, k] / a[k, k]
            a[i, k] = factor
            for j in range(k + 1, n):
                a[i, j] -= factor * a[k, j]
    return a, order


# --- Cholesky ------------------------------------------------------------------------------------------------


def cholesky_numpy(xp: Array, a: Array) -> Array:
    n = a.shape[0]
    factor = xp.zeros_like(a)
    for j in range(n):
        factor[j, j] = xp.sqrt(a[j, j] - factor[j, :j] @ factor[j, :j])
        factor[j + 1 :, j] = (a[j + 1 :, j] - factor[j + 1 :, :j] @ factor[j, :j]) / factor[j, j]
    return factor


def cholesky_jax(jnp: Array, lax: Array, a: Array) -> Array:
    rows = jnp.arange(a.shape[0])

    def step(j: Array, factor: Array) -> Array:
        # Columns from j on are still zero.
        column = a[:, j] - factor @ factor[j]
        return factor.at[:, j].set(jnp.where(rows >= j, column / jnp.sqrt(column[j]), 0.0))

    return lax.fori_loop(0, a.shape[0], step, jnp.zeros_like(a))


def cholesky_loops(a: Array) -> Array:
    n = a.shape[0]
    factor = np.zeros_like(a)
    for i in range(n):
        for j in range(i + 1):
            total = a[i, j]
            for k in range(j):
                total -= factor[i, k] * factor[j, k]
            if i == j:
                factor[i, i] = np.sqrt(total)
            else:
                factor[i, j] = total / factor[j, j]
    return factor


# --- QR by modified Gram-Schmidt -----------------------------------------------------------------------------


def qr_numpy(xp: Array, a: Array) -> Array:
    q = a.copy()
    n = a.shape[1]
    r = xp.zeros((n, n))
    for k in range(n):
        r[k, k] = xp.sqrt(q[:, k] @ q[:, k])
        q[:, k] /= r[k, k]
        r[k, k + 1 :] = q[:, k] @ q[:, k + 1 :]
        q[:, k + 1 :] -= xp.outer(q[:, k], r[k, k + 1 :])
    return q, r


def qr_jax(jnp: Array, lax: Array, a: Array) -> Array:
    n = a.shape[1]
    columns = jnp.arange(n)

    def step(k: Array, carry: Array) -> Array:
        q, r = carry
        length = jnp.sqrt(q[:, k] @ q[:, k])
        unit = q[:, k] / length
        rest = jnp.where(columns > k, unit @ q, 0.0)
        q = (q - jnp.outer(unit, rest)).at[:, k].set(unit)
        return q, r.at[k].set(jnp.where(columns == k, length, rest))

    return lax.fori_loop(0, n, step, (a, jnp.zeros((n, n))))


def qr_loops(a: Array) -> Array:
    q = a.copy()
    m, n = a.shape
    r = np.zeros((n, n))
    for k in range(n):
        length = 0.0
        for i in range(m):
            length += q[i, k] * q[i, k]
        length = np.sqrt(length)
        r[k, k] = length
        for i in range(m):
            q[i, k] /= length
            for j in range(k + 1, n):
                r[k, j] += q[i, k] * q[i, j]
        for i in range(m):
            for j in range(k + 1, n):
                q[i, j] -= q[i, k] * r[k, j]
    return q, r


# --- A lower triangular system -------------------------------------------------------------------------------


def triangular_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    return np.tril(normal(n, n) / n) + 2 * np.eye(n), normal(n, seed=1)


def triangular_numpy(xp: Array, a: Array, b: Array) -> Array:
    x = xp.zeros_like(b)
    for i in range(b.shape[0]):
        x[i] = (b[i] - a[i, :i] @ x[:i]) / a[i, i]
    return x


def triangular_jax(jnp: Array, lax: Array, a: Array, b: Array) -> Array:
    def step(i: Array, x: Array) -> Array:
        return x.at[i].set((b[i] - a[i] @ x) / a[i, i])

    return lax.fori_loop(0, b.shape[0], step, jnp.zeros_like(b))


def triangular_loops(a: Array, b: Array) -> Array:
    x = np.zeros_like(b)
    for i in range(b.size):
        total = b[i]
        for j in range(i):
            total -= a[i, j] * x[j]
        x[i] = total / a[i, i]
    return x


# --- A tridiagonal system (Thomas) ---------------------------------------------------------------------------


def tridiagonal_data(n: int) -> tuple[np.ndarray, ...]:
    return uniform(n), uniform(n, seed=1) + 3, uniform(n, seed=2), normal(n, seed=3)


def tridiagonal_numpy(xp: Array, lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    n = b.shape[0]
    above, x = xp.zeros_like(b), xp.zeros_like(b)
    above[0], x[0] = upper[0] / diagonal[0], b[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * above[i - 1]
        above[i] = upper[i] / pivot
        x[i] = (b[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= above[i] * x[i + 1]
    return x


def tridiagonal_jax(jnp: Array, lax: Array, lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    def eliminate(carry: Array, row: Array) -> Array:
        above, value = carry
        lower, diagonal, upper, b = row
        pivot = diagonal - lower * above
        carry = upper / pivot, (b - lower * value) / pivot
        return carry, carry

    def substitute(after: Array, row: Array) -> Array:
        above, value = row
        x = value - above * after
        return x, x

    zero = jnp.zeros((), b.dtype)
    _, rows = lax.scan(eliminate, (zero, zero), (lower, diagonal, upper, b))
    return lax.scan(substitute, zero, rows, reverse=True)[1]


def tridiagonal_loops(lower: Array, diagonal: Array, upper: Array, b: Array) -> Array:
    n = b.size
    above, x = np.zeros_like(b), np.zeros_like(b)
    above[0], x[0] = upper[0] / diagonal[0], b[0] / diagonal[0]
    for i in range(1, n):
        pivot = diagonal[i] - lower[i] * above[i - 1]
        above[i] = upper[i] / pivot
        x[i] = (b[i] - lower[i] * x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] -= above[i] * x[i + 1]
    return x


# --- Conjugate gradients until the residual is small ---------------------------------------------------------


def gradients_numpy(xp: Array, a: Array, b: Array) -> Array:
    x, residual = xp.zeros_like(b), b.copy()
    direction, square = residual.copy(), residual @ residual
    while square > 1e-16:
        product = a @ direction
        step = square / (direction @ product)
        x = x + step * direction
        residual = residual - step * product
        before, square = square, residual @ residual
        direction = residual + square / before * direction
    return x


def gradients_jax(jnp: Array, lax: Array, a: Array, b: Array) -> Array:
    def goes_on(carry: Array) -> Array:
        return carry[3] > 1e-16

    def body(carry: Array) -> Array:
        x, residual, direction, square = carry
        product = a @ direction
        step = square / (direction @ product)
        residual = residual - step * product
        new = residual @ residual
        return x + step * direction, residual, residual + new / square * direction, new

    return lax.while_loop(goes_on, body, (jnp.zeros_like(b), b, b, b @ b))[0]


def gradients_loops(a: Array, b: Array) -> Array:
    n = b.size
    x, residual, direction, product = np.zeros_like(b), b.copy(), b.copy(), np.zeros_like(b)
    square = 0.0
    for i in range(n):
        square += b[i] * b[i]
    while square > 1e-16:
        for i in prange(n):
            total = 0.0
            for j in range(n):
                total += a[i, j] * direction[j]
            product[i] = total
        curvature = 0.0
        for i in range(n):
            curvature += direction[i] * product[i]
        step, before, square = square / curvature, square, 0.0
        for i in range(n):
            x[i] += step * direction[i]
            residual[i] -= step * product[i]
            square += residual[i] * residual[i]
        for i in range(n):
            direction[i] = residual[i] + square / before * direction[i]
    return x


ROWS = (
    Program(
        "LU with row exchanges",
        lambda n: (normal(n, n),),
        *(lu_numpy, lu_jax, lu_loops),
        sizes=(16, 64, 256),
        tiny=5,
        tolerance=1e6,
        untraceable=VALUE_INDEXES,
    ),
    Program(
        "Cholesky",
        lambda n: (positive_definite(n),),
        *(cholesky_numpy, cholesky_jax, cholesky_loops),
        sizes=(16, 64, 256),
        tiny=5,
    ),
    Program(
        "QR by Gram-Schmidt",
        lambda n: (normal(2 * n, n),),
        *(qr_numpy, qr_jax, qr_loops),
        sizes=(16, 64, 256),
        tiny=4,
        tolerance=1e6,
    ),
    Program(
        "triangular system",
        triangular_data,
        *(triangular_numpy, triangular_jax, triangular_loops),
        sizes=(32, 256, 1024),
        tiny=5,
    ),
    Program(
        "tridiagonal system",
        tridiagonal_data,
        *(tridiagonal_numpy, tridiagonal_jax, tridiagonal_loops),
        sizes=(100, 3000, 100_000),
        tiny=6,
        untraceable=EACH_ELEMENT,
    ),
    Program(
        "conjugate gradients",
        lambda n: (positive_definite(n), normal(n, seed=1)),
        *(gradients_numpy, gradients_jax, gradients_loops),
        sizes=(16, 128, 1024),
        tiny=5,
        tolerance=1e9,
        untraceable=VALUE_DECIDES,
    ),
)
