"""Sparse products: rows by offsets (CSR), by coordinates (COO), and iterations of them."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_DECIDES, VALUE_SHAPES, Array, Program, integers, prange, uniform

#: Entries of a row.
ENTRIES = 8

# --- CSR times vector ----------------------------------------------------------------------------------------


def csr_data(n: int) -> tuple[np.ndarray, ...]:
    offsets = np.concatenate([[0], np.cumsum(integers(2 * ENTRIES - 1, n) + 1)])
    count = int(offsets[-1])
    return uniform(count), integers(n, count, seed=1), offsets, uniform(n, seed=2)


def csr_numpy(xp: Array, values: Array, columns: Array, offsets: Array, x: Array) -> Array:
    return xp.add.reduceat(values * x[columns], offsets[:-1])


def csr_jax(jnp: Array, lax: Array, values: Array, columns: Array, offsets: Array, x: Array) -> Array:
    rows = jnp.cumsum(jnp.zeros(values.shape[0], dtype="int64").at[offsets[1:-1]].add(1))
    return jnp.zeros(x.shape[0]).at[rows].add(values * x[columns])


def csr_loops(values: Array, columns: Array, offsets: Array, x: Array) -> Array:
    result = np.zeros(x.size)
    for i in prange(x.size):
        total = 0.0
        for k in range(offsets[i], offsets[i + 1]):
            total += values[k] * x[columns[k]]
        result[i] = total
    return result


# --- COO times vector ----------------------------------------------------------------------------------------


def coo_data(n: int) -> tuple[np.ndarray, ...]:
    count = ENTRIES * n
    return uniform(count), integers(n, count), integers(n, count, seed=1), uniform(n, seed=2)


def coo_numpy(xp: Array, values: Array, rows: Array, columns: Array, x: Array) -> Array:
    return xp.bincount(rows, weights=values * x[columns], minlength=x.shape[0])


def coo_jax(jnp: Array, lax: Array, values: Array, rows: Array, columns: Array, x: Array) -> Array:
    return jnp.zeros(x.shape[0]).at[rows].add(values * x[columns])


def coo_loops(values: Array, rows: Array, columns: Array, x: Array) -> Array:
    result = np.zeros(x.size)
    for k in range(values.size):
        result[rows[k]] += values[k] * x[columns[k]]
    return result


# --- PageRank ------------------------------------------------------------------------------------------------


def rank_data(n: int) -> tuple[np.ndarray | int, ...]:
    return integers(n, ENTRIES * n), integers(n, ENTRIES * n, seed=1), n


def rank_numpy(xp: Array, sources: Array, targets: Array, n: int) -> Array:
    degrees = xp.maximum(xp.bincount(sources, minlength=n), 1)
    ranks, change = xp.full(n, 1 / n), 1.0
    while change > 1e-10:
        shares = (ranks / degrees)[sources]
        new = 0.15 / n + 0.85 * xp.bincount(targets, weights=shares, minlength=n)
        new = new / new.sum()
        ranks, change = new, xp.abs(new - ranks).sum()
    return ranks


def rank_jax(jnp: Array, lax: Array, sources: Array, targets: Array, n: int) -> Array:
    degrees = jnp.maximum(jnp.zeros(n).at[sources].add(1.0), 1.0)

    def body(carry: Array) -> Array:
        ranks, _ = carry
        new = 0.15 / n + 0.85 * jnp.zeros(n).at[targets].add((ranks / degrees)[sources])
        new = new / new.sum()
        return new, jnp.abs(new - ranks).sum()

    return lax.while_loop(lambda carry: carry[1] > 1e-10, body, (jnp.full(n, 1 / n), jnp.ones(())))[0]


def rank_loops(sources: Array, targets: Array, n: int) -> Array:
    degrees = np.zeros(n)
    for k in range(sources.size):
        degrees[sources[k]] += 1
    ranks, new, change = np.full(n, 1 / n), np.zeros(n), 1.0
    while change > 1e-10:
        new[:] = 0.0
        for k in range(sources.size):
            new[targets[k]] += ranks[sources[k]] / max(degrees[sources[k]], 1.0)
        total = 0.0
        for i in range(n):
            new[i] = 0.15 / n + 0.85 * new[i]
            total += new[i]
        change = 0.0
        for i in range(n):
            new[i] /= total
            change += abs(new[i] - ranks[i])
        ranks, new = new, ranks
    return ranks


# --- Label propagation: the components of a graph ------------------------------------------------------------


def labels_numpy(xp: Array, sources: Array, targets: Array, n: int) -> Array:
    labels = xp.arange(n)
    while True:
        new = labels.copy()
        xp.minimum.at(new, sources, labels[targets])
        xp.minimum.at(new, targets, labels[sources])
        if (new == labels).all():
            return labels
        labels = new


def labels_jax(jnp: Array, lax: Array, sources: Array, targets: Array, n: int) -> Array:
    def body(carry: Array) -> Array:
        labels, _ = carry
        new = labels.at[sources].min(labels[targets]).at[targets].min(labels[sources])
        return new, (new != labels).any()

    return lax.while_loop(lambda carry: carry[1], body, (jnp.arange(n), jnp.asarray(True)))[0]


def labels_loops(sources: Array, targets: Array, n: int) -> Array:
    labels, changed = np.arange(n), True
    while changed:
        changed = False
        for k in range(sources.size):
            low = min(labels[sources[k]], labels[targets[k]])
            if labels[sources[k]] != low or labels[targets[k]] != low:
                labels[sources[k]] = labels[targets[k]] = low
                changed = True
    return labels


ROWS = (
    Program(
        "CSR times vector",
        csr_data,
        *(csr_numpy, csr_jax, csr_loops),
        sizes=(100, 10_000, 300_000),
        tiny=6,
    ),
    Program(
        "COO times vector",
        coo_data,
        *(coo_numpy, coo_jax, coo_loops),
        sizes=(100, 10_000, 300_000),
        tiny=6,
        untraceable=VALUE_SHAPES,
    ),
    Program(
        "PageRank",
        rank_data,
        *(rank_numpy, rank_jax, rank_loops),
        sizes=(100, 3000, 100_000),
        tiny=6,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "components of a graph",
        lambda n: (integers(n, n), integers(n, n, seed=1), n),
        *(labels_numpy, labels_jax, labels_loops),
        sizes=(100, 3000, 100_000),
        tiny=8,
        untraceable=VALUE_DECIDES,
    ),
)
