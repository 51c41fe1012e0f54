"""Clusters and batches: k-means, mixtures, batched small systems, eigenvalues by rotations."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_SHAPES, Array, Program, normal, prange, uniform

# --- k-means -------------------------------------------------------------------------------------------------

ROUNDS, CENTRES = 10, 8


def means_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    x = normal(n, 4)
    return x, x[:CENTRES].copy()


def means_numpy(xp: Array, x: Array, centres: Array) -> Array:
    for _ in range(ROUNDS):
        squares = ((x[:, None, :] - centres) ** 2).sum(axis=2)
        labels = squares.argmin(axis=1)
        sums = xp.zeros_like(centres)
        xp.add.at(sums, labels, x)
        counts = xp.bincount(labels, minlength=CENTRES)
        centres = sums / xp.maximum(counts, 1)[:, None]
    return centres


def means_jax(jnp: Array, lax: Array, x: Array, centres: Array) -> Array:
    def step(_: Array, centres: Array) -> Array:
        squares = ((x[:, None, :] - centres[None, :, :]) ** 2).sum(axis=2)
        labels = squares.argmin(axis=1)
        sums = jnp.zeros_like(centres).at[labels].add(x)
        counts = jnp.zeros(CENTRES).at[labels].add(1.0)
        return sums / jnp.maximum(counts, 1.0)[:, None]

    return lax.fori_loop(0, ROUNDS, step, centres)


def means_loops(x: Array, centres: Array) -> Array:
    centres = centres.copy()
    labels, sums, counts = np.zeros(x.shape[0], np.int64), np.zeros_like(centres), np.zeros(CENTRES)
    for _ in range(ROUNDS):
        for i in prange(x.shape[0]):
            best = np.inf
            for k in range(CENTRES):
                square = 0.0
                for f in range(x.shape[1]):
                    square += (x[i, f] - centres[k, f]) ** 2
                if square < best:
                    best, labels[i] = square, k
        sums[:] = 0.0
        counts[:] = 0.0
        for i in range(x.shape[0]):
            counts[labels[i]] += 1
            for f in range(x.shape[1]):
                sums[labels[i], f] += x[i, f]
        for k in range(CENTRES):
            for f in range(x.shape[1]):
                centres[k, f] = sums[k, f] / max(counts[k], 1.0)
    return centres


# --- A mixture of normal distributions, by expectation and maximisation --------------------------------------


def mixture_data(n: int) -> tuple[np.ndarray, ...]:
    return normal(n, 2) + 4 * np.eye(3, 2)[np.arange(n) % 3], normal(3, 2, seed=1)


def mixture_numpy(xp: Array, x: Array, means: Array) -> Array:
    spreads, shares = xp.ones_like(means), xp.full(means.shape[0], 1 / means.shape[0])
    for _ in range(ROUNDS):
        apart = (x[:, None, :] - means) ** 2 / spreads
        logs = xp.log(shares) - 0.5 * (apart + xp.log(spreads)).sum(axis=2)
        weights = xp.exp(logs - logs.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        totals = weights.sum(axis=0)
        means = weights.T @ x / totals[:, None]
        spreads = weights.T @ x**2 / totals[:, None] - means**2 + 1e-6
        shares = totals / x.shape[0]
    return means, spreads, shares


def mixture_jax(jnp: Array, lax: Array, x: Array, means: Array) -> Array:
    def step(_: Array, carry: Array) -> Array:
        means, spreads, shares = carry
        apart = (x[:, None, :] - means[None, :, :]) ** 2 / spreads
        logs = jnp.log(shares) - 0.5 * (apart + jnp.log(spreads)).sum(axis=2)
        weights = jnp.exp(logs - logs.max(axis=1, keepdims=True))
        weights = weights / weights.sum(axis=1, keepdims=True)
        totals = weights.sum(axis=0)
        means = weights.T @ x / totals[:, None]
        spreads = weights.T @ x**2 / totals[:, None] - means**2 + 1e-6
        return means, spreads, totals / x.shape[0]

    count = means.shape[0]
    return lax.fori_loop(0, ROUNDS, step, (means, jnp.ones_like(means), jnp.full(count, 1 / count)))


def mixture_loops(x: Array, means: Array) -> Array:
    count, width = means.shape
    means, spreads, shares = means.copy(), np.ones_like(means), np.full(count, 1 / count)
    weights = np.zeros((x.shape[0], count))
    for _ in range(ROUNDS):
        for i in prange(x.shape[0]):
            greatest = -np.inf
            for k in range(count):
                value = np.log(shares[k])
                for f in range(width):
                    value -= 0.5 * ((x[i, f] - means[k, f]) ** 2 / spreads[k, f] + np.log(spreads[k, f]))
                weights[i, k] = value
                greatest = max(greatest, value)
            total = 0.0
            for k in range(count):
                weights[i, k] = np.exp(weights[i, k] - greatest)
                total += weights[i, k]
            for k in range(count):
                weights[i, k] /= total
        for k in range(count):
            total = 0.0
            for i in range(x.shape[0]):
                total += weights[i, k]
            for f in range(width):
                first = second = 0.0
                for i in range(x.shape[0]):
                    first += weights[i, k] * x[i, f]
                    second += weights[i, k] * x[i, f] ** 2
                means[k, f] = first / total
                spreads[k, f] = second / total - means[k, f] ** 2 + 1e-6
            shares[k] = total / x.shape[0]
    return means, spreads, shares


# --- Many systems of four equations --------------------------------------------------------------------------


def systems_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    return normal(n, 4, 4) + 4 * np.eye(4), normal(n, 4, seed=1)


def systems_numpy(xp: Array, a: Array, b: Array) -> Array:
    return xp.linalg.solve(a, b[:, :, None])[:, :, 0]


def systems_jax(jnp: Array, lax: Array, a: Array, b: Array) -> Array:
    return jnp.linalg.solve(a, b[:, :, None])[:, :, 0]


def systems_loops(a: Array, b: Array) -> Array:
    a, x = a.copy(), b.copy()
    for s in prange(a.shape[0]):
        m = a[s]
        for k in range(4):
            pivot = k
            for i in range(k + 1, 4):
                if abs(m[i, k]) > abs(m[pivot, k]):
                    pivot = i
            for j in range(4):
                m[k, j], m[pivot, j] = m[pivot, j], m[k, j]
            x[s, k], x[s, pivot] = x[s, pivot], x[s, k]
            for i in range(k + 1, 4):
                factor = m[i, k] / m[k, k]
                for j in range(k + 1, 4):
                    m[i, j] -= factor * m[k, j]
                x[s, i] -= factor * x[s, k]
        for i in range(3, -1, -1):
            for j in range(i + 1, 4):
                x[s, i] -= m[i, j] * x[s, j]
            x[s, i] /= m[i, i]
    return x


# --- Gauss-Jordan inverses of many matrices, written out -----------------------------------------------------


def inverses_numpy(xp: Array, a: Array) -> Array:
    n = a.shape[1]
    whole = xp.concatenate([a, xp.broadcast_to(xp.eye(n), a.shape)], axis=2)
    for k in range(n):
        row = whole[:, k] / whole[:, k, k, None]
        whole = whole - whole[:, :, k, None] * row[:, None, :]
        whole[:, k] = row
    return whole[:, :, n:]


def inverses_jax(jnp: Array, lax: Array, a: Array) -> Array:
    n = a.shape[1]

    def step(k: Array, whole: Array) -> Array:
        row = whole[:, k] / whole[:, k, k][:, None]
        whole = whole - whole[:, :, k][:, :, None] * row[:, None, :]
        return whole.at[:, k].set(row)

    whole = jnp.concatenate([a, jnp.broadcast_to(jnp.eye(n), a.shape)], axis=2)
    return lax.fori_loop(0, n, step, whole)[:, :, n:]


def inverses_loops(a: Array) -> Array:
    a, n = a.copy(), a.shape[1]
    result = np.zeros_like(a)
    for s in prange(a.shape[0]):
        m, x = a[s], result[s]
        for k in range(n):
            x[k, k] = 1.0
        for k in range(n):
            pivot = m[k, k]
            for j in range(n):
                m[k, j] /= pivot
                x[k, j] /= pivot
            for i in range(n):
                if i != k:
                    factor = m[i, k]
                    for j in range(n):
                        m[i, j] -= factor * m[k, j]
                        x[i, j] -= factor * x[k, j]
    return result


# --- Power iteration with deflation: the three greatest eigenvalues ------------------------------------------


def eigenvalues_data(n: int) -> tuple[np.ndarray, np.ndarray]:
    q = np.linalg.qr(normal(n, n))[0]
    return (q * 0.7 ** np.arange(n)) @ q.T, uniform(3, n)


def eigenvalues_numpy(xp: Array, a: Array, starts: Array) -> Array:
    values = []
    for k in range(3):
        v = starts[k]
        for _ in range(60):
            v = a @ v
            v = v / xp.sqrt(v @ v)
        value = v @ a @ v
        a = a - value * xp.outer(v, v)
        values.append(value)
    return xp.stack(values)


def eigenvalues_jax(jnp: Array, lax: Array, a: Array, starts: Array) -> Array:
    def deflate(a: Array, start: Array) -> Array:
        def iterate(_: Array, v: Array) -> Array:
            v = a @ v
            return v / jnp.sqrt(v @ v)

        v = lax.fori_loop(0, 60, iterate, start)
        value = v @ a @ v
        return a - value * jnp.outer(v, v), value

    return lax.scan(deflate, a, starts)[1]


def eigenvalues_loops(a: Array, starts: Array) -> Array:
    a, n = a.copy(), a.shape[0]
    values, v, w = np.zeros(3), np.zeros(n), np.zeros(n)
    for k in range(3):
        v[:] = starts[k]
        for t in range(61):
            for i in prange(n):
                total = 0.0
                for j in range(n):
                    total += a[i, j] * v[j]
                w[i] = total
            if t < 60:
                length = np.sqrt(np.sum(w * w))
                v[:] = w / length
        values[k] = np.sum(v * w)
        for i in prange(n):
            for j in range(n):
                a[i, j] -= values[k] * v[i] * v[j]
    return values


ROWS = (
    Program(
        "k-means",
        means_data,
        *(means_numpy, means_jax, means_loops),
        sizes=(100, 3000, 100_000),
        tiny=12,
        untraceable=VALUE_SHAPES,
    ),
    Program(
        "mixture of normals",
        mixture_data,
        *(mixture_numpy, mixture_jax, mixture_loops),
        sizes=(100, 3000, 100_000),
        tiny=12,
        tolerance=1e7,
    ),
    Program(
        "many systems of four equations",
        systems_data,
        *(systems_numpy, systems_jax, systems_loops),
        sizes=(10, 1000, 100_000),
        tiny=3,
        tolerance=1e6,
    ),
    Program(
        "many inverses, written out",
        lambda n: (normal(n, 6, 6) + 8 * np.eye(6),),
        *(inverses_numpy, inverses_jax, inverses_loops),
        sizes=(10, 1000, 30_000),
        tiny=3,
        tolerance=1e6,
    ),
    Program(
        "power iteration with deflation",
        eigenvalues_data,
        *(eigenvalues_numpy, eigenvalues_jax, eigenvalues_loops),
        sizes=(16, 64, 512),
        tiny=5,
        tolerance=1e7,
    ),
)
