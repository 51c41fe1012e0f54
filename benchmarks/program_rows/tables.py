"""Dynamic programming: tables that are filled in order."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_INDEXES, Array, Program, integers, normal, prange, uniform

# --- Edit distance -------------------------------------------------------------------------------------------


def edit_numpy(xp: Array, a: Array, b: Array) -> Array:
    columns = xp.arange(b.shape[0] + 1)
    row = columns
    for i in range(a.shape[0]):
        best = xp.minimum(row[1:] + 1, row[:-1] + (b != a[i]))
        best = xp.concatenate([xp.full(1, i + 1), best])
        row = xp.minimum.accumulate(best - columns) + columns
    return row[-1]


def edit_jax(jnp: Array, lax: Array, a: Array, b: Array) -> Array:
    columns = jnp.arange(b.shape[0] + 1)

    def next_row(row: Array, letter: Array) -> Array:
        best = jnp.minimum(row[1:] + 1, row[:-1] + (b != letter))
        best = jnp.concatenate([row[:1] + 1, best])
        return lax.cummin(best - columns) + columns, None

    return lax.scan(next_row, columns, a)[0][-1]


def edit_loops(a: Array, b: Array) -> Array:
    m = b.size
    row = np.arange(m + 1)
    for i in range(a.size):
        diagonal, row[0] = row[0], i + 1
        for j in range(m):
            best = diagonal + (1 if a[i] != b[j] else 0)
            diagonal = row[j + 1]
            row[j + 1] = min(best, diagonal + 1, row[j] + 1)
    return row[m]


# --- Smith-Waterman: the best local alignment ----------------------------------------------------------------


def align_numpy(xp: Array, a: Array, b: Array, scores: Array) -> Array:
    n, m = a.shape[0], b.shape[0]
    table = xp.zeros((n + 1, m + 1))
    for diagonal in range(2, n + m + 1):
        i = xp.arange(max(1, diagonal - m), min(n, diagonal - 1) + 1)
        j = diagonal - i
        match = table[i - 1, j - 1] + scores[a[i - 1], b[j - 1]]
        gap = xp.maximum(table[i - 1, j], table[i, j - 1]) - 2.0
        table[i, j] = xp.maximum(xp.maximum(match, gap), 0.0)
    return table.max()


def align_jax(jnp: Array, lax: Array, a: Array, b: Array, scores: Array) -> Array:
    def next_row(carry: Array, letter: Array) -> Array:
        above, best = carry

        def next_cell(left: Array, cell: Array) -> Array:
            diagonal, up, score = cell
            value = jnp.maximum(jnp.maximum(diagonal + score, jnp.maximum(up, left) - 2.0), 0.0)
            return value, value

        cells = jnp.concatenate([jnp.zeros(1), above[:-1]]), above, scores[letter][b]
        _, row = lax.scan(next_cell, jnp.zeros(()), cells)
        return (row, jnp.maximum(best, row.max())), None

    return lax.scan(next_row, (jnp.zeros(b.shape[0]), jnp.zeros(())), a)[0][1]


def align_loops(a: Array, b: Array, scores: Array) -> Array:
    row, best = np.zeros(b.size + 1), 0.0
    for i in range(a.size):
        diagonal = row[0]
        for j in range(b.size):
            up = row[j + 1]
            value = max(diagonal + scores[a[i], b[j]], max(up, row[j]) - 2.0, 0.0)
            best = max(best, value)
            diagonal, row[j + 1] = up, value
    return best


def align_data(n: int) -> tuple[np.ndarray, ...]:
    return integers(20, n), integers(20, n, seed=1), np.round(normal(20, 20, seed=2) * 3)


# --- Gotoh: the best global alignment, where opening a gap costs more than extending it ------------------------


def affine_numpy(xp: Array, a: Array, b: Array) -> Array:
    n, m = a.shape[0], b.shape[0]
    best, across, down = (xp.full((n + 1, m + 1), -1e9) for _ in range(3))
    best[0, 0] = 0.0
    best[0, 1:] = -(10.0 + 0.5 * xp.arange(m))
    best[1:, 0] = -(10.0 + 0.5 * xp.arange(n))
    for diagonal in range(2, n + m + 1):
        i = xp.arange(max(1, diagonal - m), min(n, diagonal - 1) + 1)
        j = diagonal - i
        across[i, j] = xp.maximum(across[i, j - 1] - 0.5, best[i, j - 1] - 10.0)
        down[i, j] = xp.maximum(down[i - 1, j] - 0.5, best[i - 1, j] - 10.0)
        match = best[i - 1, j - 1] + xp.where(a[i - 1] == b[j - 1], 5.0, -4.0)
        best[i, j] = xp.maximum(match, xp.maximum(across[i, j], down[i, j]))
    return best[n, m]


def affine_jax(jnp: Array, lax: Array, a: Array, b: Array) -> Array:
    n, m = a.shape[0], b.shape[0]
    top = jnp.concatenate([jnp.zeros(1), -(10.0 + 0.5 * jnp.arange(m))])

    def next_row(carry: Array, row: Array) -> Array:
        above, down = carry
        letter, edge = row
        down = jnp.maximum(down - 0.5, above[1:] - 10.0)
        upper = jnp.maximum(above[:-1] + jnp.where(b == letter, 5.0, -4.0), down)

        def next_cell(carry: Array, upper: Array) -> Array:
            left, across = carry
            across = jnp.maximum(across - 0.5, left - 10.0)
            here = jnp.maximum(upper, across)
            return (here, across), here

        _, cells = lax.scan(next_cell, (edge, jnp.asarray(-1e9)), upper)
        return (jnp.concatenate([edge[None], cells]), down), None

    edges = -(10.0 + 0.5 * jnp.arange(n))
    (last, _), _ = lax.scan(next_row, (top, jnp.full(m, -1e9)), (a, edges))
    return last[-1]


def affine_loops(a: Array, b: Array) -> Array:
    m = b.size
    best, down = np.empty(m + 1), np.full(m + 1, -1e9)
    best[0] = 0.0
    for j in range(m):
        best[j + 1] = -(10.0 + 0.5 * j)
    for i in range(a.size):
        diagonal, across = best[0], -1e9
        best[0] = -(10.0 + 0.5 * i)
        for j in range(1, m + 1):
            across = max(across - 0.5, best[j - 1] - 10.0)
            down[j] = max(down[j] - 0.5, best[j] - 10.0)
            match = diagonal + (5.0 if a[i] == b[j - 1] else -4.0)
            diagonal, best[j] = best[j], max(match, max(across, down[j]))
    return best[m]


# --- 0-1 knapsack --------------------------------------------------------------------------------------------


def knapsack_numpy(xp: Array, weights: Array, values: Array, capacity: int) -> Array:
    best = xp.zeros(capacity + 1)
    for weight, value in zip(weights.tolist(), values.tolist(), strict=True):
        best[weight:] = xp.maximum(best[weight:], best[: capacity + 1 - weight] + value)
    return best[-1]


def knapsack_jax(jnp: Array, lax: Array, weights: Array, values: Array, capacity: int) -> Array:
    total = jnp.arange(capacity + 1)

    def pack(best: Array, item: Array) -> Array:
        weight, value = item
        packed = best[jnp.maximum(total - weight, 0)] + value
        return jnp.where(total >= weight, jnp.maximum(best, packed), best), None

    return lax.scan(pack, jnp.zeros(capacity + 1), (weights, values))[0][-1]


def knapsack_loops(weights: Array, values: Array, capacity: int) -> Array:
    best = np.zeros(capacity + 1)
    for k in range(weights.size):
        for total in range(capacity, weights[k] - 1, -1):
            best[total] = max(best[total], best[total - weights[k]] + values[k])
    return best[capacity]


# --- Viterbi: the likeliest states of a hidden Markov model --------------------------------------------------


def viterbi_data(steps: int) -> tuple[np.ndarray, ...]:
    states = 24
    moves = np.log(uniform(states, states) + 0.01)
    return moves, np.log(uniform(states, 30, seed=1) + 0.01), integers(30, steps, seed=2)


def viterbi_numpy(xp: Array, moves: Array, emissions: Array, seen: Array) -> Array:
    steps = seen.shape[0]
    score = emissions[:, seen[0]]
    origins = xp.zeros((steps, moves.shape[0]), dtype="int64")
    for t in range(1, steps):
        reached = score[:, None] + moves
        origins[t] = xp.argmax(reached, axis=0)
        score = reached.max(axis=0) + emissions[:, seen[t]]
    path = xp.zeros(steps, dtype="int64")
    path[steps - 1] = xp.argmax(score)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = origins[t, path[t]]
    return path


def viterbi_jax(jnp: Array, lax: Array, moves: Array, emissions: Array, seen: Array) -> Array:
    def forward(score: Array, letter: Array) -> Array:
        reached = score[:, None] + moves
        return reached.max(axis=0) + emissions[:, letter], jnp.argmax(reached, axis=0)

    def back(state: Array, origins: Array) -> Array:
        return origins[state], state

    score, origins = lax.scan(forward, emissions[:, seen[0]], seen[1:])
    first, path = lax.scan(back, jnp.argmax(score), origins, reverse=True)
    return jnp.concatenate([first[None], path])


def viterbi_loops(moves: Array, emissions: Array, seen: Array) -> Array:
    steps, states = seen.size, moves.shape[0]
    score, new = emissions[:, seen[0]].copy(), np.zeros(states)
    origins = np.zeros((steps, states), np.int64)
    for t in range(1, steps):
        for j in range(states):
            best, origin = score[0] + moves[0, j], 0
            for i in range(1, states):
                value = score[i] + moves[i, j]
                if value > best:
                    best, origin = value, i
            new[j], origins[t, j] = best + emissions[j, seen[t]], origin
        score, new = new, score
    path = np.zeros(steps, np.int64)
    path[steps - 1] = np.argmax(score)
    for t in range(steps - 1, 0, -1):
        path[t - 1] = origins[t, path[t]]
    return path


# --- Beam search: the likeliest chains of letters, of which each step keeps a few -------------------------------

LETTERS, KEPT = 30, 5


def beam_data(steps: int) -> tuple[np.ndarray, ...]:
    return np.log(uniform(LETTERS, LETTERS) + 0.01), np.log(uniform(steps, LETTERS, seed=1) + 0.01)


def beam_numpy(xp: Array, moves: Array, seen: Array) -> Array:
    last = xp.argsort(-seen[0])[:KEPT]
    scores = seen[0][last]
    for k in range(1, seen.shape[0]):
        reached = (scores[:, None] + moves[last] + seen[k]).ravel()
        best = xp.argsort(-reached)[:KEPT]
        scores, last = reached[best], best % LETTERS
    return scores


def beam_jax(jnp: Array, lax: Array, moves: Array, seen: Array) -> Array:
    def step(carry: Array, row: Array) -> Array:
        scores, last = carry
        scores, best = lax.top_k((scores[:, None] + moves[last] + row).ravel(), KEPT)
        return (scores, best % LETTERS), None

    return lax.scan(step, tuple(lax.top_k(seen[0], KEPT)), seen[1:])[0][0]


def beam_loops(moves: Array, seen: Array) -> Array:
    scores, last = np.zeros(1), np.zeros(1, np.int64)
    for k in range(seen.shape[0]):
        best, at = np.full(KEPT, -np.inf), np.zeros(KEPT, np.int64)
        for i in range(scores.size):
            for j in range(LETTERS):
                reached = seen[k, j] + (scores[i] + moves[last[i], j] if k else 0.0)
                slot = KEPT
                while slot > 0 and reached > best[slot - 1]:
                    slot -= 1
                for other in range(KEPT - 1, slot, -1):
                    best[other], at[other] = best[other - 1], at[other - 1]
                if slot < KEPT:
                    best[slot], at[slot] = reached, j
        scores, last = best, at
    return scores


# --- Floyd-Warshall: all shortest paths ----------------------------------------------------------------------


def paths_numpy(xp: Array, lengths: Array) -> Array:
    lengths = lengths.copy()
    for k in range(lengths.shape[0]):
        lengths = xp.minimum(lengths, lengths[:, k, None] + lengths[k])
    return lengths


def paths_jax(jnp: Array, lax: Array, lengths: Array) -> Array:
    def step(k: Array, lengths: Array) -> Array:
        return jnp.minimum(lengths, lengths[:, k][:, None] + lengths[k][None, :])

    return lax.fori_loop(0, lengths.shape[0], step, lengths)


def paths_loops(lengths: Array) -> Array:
    lengths = lengths.copy()
    n = lengths.shape[0]
    for k in range(n):
        for i in prange(n):
            for j in range(n):
                lengths[i, j] = min(lengths[i, j], lengths[i, k] + lengths[k, j])
    return lengths


ROWS = (
    Program(
        "edit distance",
        lambda n: (integers(4, n), integers(4, n, seed=1)),
        *(edit_numpy, edit_jax, edit_loops),
        sizes=(32, 256, 2000),
        tiny=7,
    ),
    Program(
        "Smith-Waterman",
        align_data,
        *(align_numpy, align_jax, align_loops),
        sizes=(16, 128, 1000),
        tiny=6,
    ),
    Program(
        "alignment with affine gaps",
        lambda n: (integers(4, n), integers(4, n, seed=1)),
        *(affine_numpy, affine_jax, affine_loops),
        sizes=(24, 200, 1000),
        tiny=6,
    ),
    Program(
        "knapsack",
        lambda n: (integers(30, n) + 1, uniform(n, seed=1), 10 * n),
        *(knapsack_numpy, knapsack_jax, knapsack_loops),
        sizes=(20, 100, 500),
        tiny=4,
        untraceable=VALUE_INDEXES,
    ),
    Program(
        "Viterbi",
        viterbi_data,
        *(viterbi_numpy, viterbi_jax, viterbi_loops),
        sizes=(20, 200, 5000),
        tiny=4,
    ),
    Program(
        "beam search",
        beam_data,
        *(beam_numpy, beam_jax, beam_loops),
        sizes=(6, 60, 3000),
        tiny=3,
    ),
    Program(
        "Floyd-Warshall",
        lambda n: (uniform(n, n) * 10,),
        *(paths_numpy, paths_jax, paths_loops),
        sizes=(16, 64, 256),
        tiny=5,
    ),
)
