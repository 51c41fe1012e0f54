"""Recurrences along an axis: filters, smoothing, running sums that start anew, a Kalman filter."""

from __future__ import annotations

import numpy as np

from program_rows.row import Array, Program, normal, prange, uniform

#: Coefficients of a low pass of second order.
B0, B1, B2, A1, A2 = 0.0675, 0.1349, 0.0675, -1.1430, 0.4128

# --- A filter of second order along the first axis, and along the last ---------------------------------------


def first_numpy(xp: Array, x: Array) -> Array:
    y = xp.zeros_like(x)
    one, two = xp.zeros(x.shape[1]), xp.zeros(x.shape[1])
    for t in range(x.shape[0]):
        y[t] = B0 * x[t] + one
        one = B1 * x[t] - A1 * y[t] + two
        two = B2 * x[t] - A2 * y[t]
    return y


def last_numpy(xp: Array, x: Array) -> Array:
    y = xp.zeros_like(x)
    one, two = xp.zeros(x.shape[0]), xp.zeros(x.shape[0])
    for t in range(x.shape[1]):
        y[:, t] = B0 * x[:, t] + one
        one = B1 * x[:, t] - A1 * y[:, t] + two
        two = B2 * x[:, t] - A2 * y[:, t]
    return y


def first_jax(jnp: Array, lax: Array, x: Array) -> Array:
    def step(carry: Array, sample: Array) -> Array:
        one, two = carry
        y = B0 * sample + one
        return (B1 * sample - A1 * y + two, B2 * sample - A2 * y), y

    zeros = jnp.zeros(x.shape[1])
    return lax.scan(step, (zeros, zeros), x)[1]


def last_jax(jnp: Array, lax: Array, x: Array) -> Array:
    return first_jax(jnp, lax, x.T).T


def first_loops(x: Array) -> Array:
    steps, channels = x.shape
    y, one, two = np.empty_like(x), np.zeros(channels), np.zeros(channels)
    for t in range(steps):
        for c in range(channels):
            y[t, c] = B0 * x[t, c] + one[c]
            one[c] = B1 * x[t, c] - A1 * y[t, c] + two[c]
            two[c] = B2 * x[t, c] - A2 * y[t, c]
    return y


def last_loops(x: Array) -> Array:
    y = np.empty_like(x)
    for c in prange(x.shape[0]):
        one = two = 0.0
        for t in range(x.shape[1]):
            value = B0 * x[c, t] + one
            one = B1 * x[c, t] - A1 * value + two
            two = B2 * x[c, t] - A2 * value
            y[c, t] = value
    return y


# --- Exponential smoothing that skips missing samples --------------------------------------------------------


def smooth_data(n: int) -> tuple[np.ndarray]:
    return (np.where(uniform(n) < 0.1, np.nan, normal(n, seed=1)),)


def smooth_numpy(xp: Array, x: Array) -> Array:
    y = xp.zeros_like(x)
    state = 0.0
    for t in range(x.shape[0]):
        state = xp.where(xp.isnan(x[t]), state, 0.9 * state + 0.1 * x[t])
        y[t] = state
    return y


def smooth_jax(jnp: Array, lax: Array, x: Array) -> Array:
    def step(state: Array, sample: Array) -> Array:
        state = jnp.where(jnp.isnan(sample), state, 0.9 * state + 0.1 * sample)
        return state, state

    return lax.scan(step, jnp.zeros(()), x)[1]


def smooth_loops(x: Array) -> Array:
    y, state = np.empty_like(x), 0.0
    for t in range(x.size):
        if x[t] == x[t]:
            state = 0.9 * state + 0.1 * x[t]
        y[t] = state
    return y


# --- Running sums of each segment, by marks of where one starts ----------------------------------------------


def segments_numpy(xp: Array, x: Array, starts: Array) -> Array:
    totals = xp.cumsum(x)
    first = xp.maximum.accumulate(xp.where(starts, xp.arange(x.shape[0]), 0))
    return totals - totals[first] + x[first]


def segments_jax(jnp: Array, lax: Array, x: Array, starts: Array) -> Array:
    def combine(left: Array, right: Array) -> Array:
        (total, mark), (added, reset) = left, right
        return jnp.where(reset, added, total + added), mark | reset

    return lax.associative_scan(combine, (x, starts))[0]


def segments_loops(x: Array, starts: Array) -> Array:
    y, total = np.empty_like(x), 0.0
    for i in range(x.size):
        total = x[i] if starts[i] else total + x[i]
        y[i] = total
    return y


# --- A Kalman filter of a point that moves in the plane ------------------------------------------------------


def kalman_data(steps: int) -> tuple[np.ndarray, ...]:
    move = np.eye(4) + 0.1 * np.eye(4, k=2)
    return np.cumsum(normal(steps, 2), axis=0), move, np.eye(2, 4), 0.01 * np.eye(4), 0.5 * np.eye(2)


def kalman_numpy(xp: Array, seen: Array, move: Array, look: Array, drift: Array, noise: Array) -> Array:
    state, spread = xp.zeros(4), xp.eye(4)
    states = xp.zeros((seen.shape[0], 4))
    for t in range(seen.shape[0]):
        state = move @ state
        spread = move @ spread @ move.T + drift
        s = look @ spread @ look.T + noise
        adjugate = xp.stack([xp.stack([s[1, 1], -s[0, 1]]), xp.stack([-s[1, 0], s[0, 0]])])
        gain = spread @ look.T @ adjugate / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
        state = state + gain @ (seen[t] - look @ state)
        spread = spread - gain @ look @ spread
        states[t] = state
    return states


def kalman_jax(
    jnp: Array, lax: Array, seen: Array, move: Array, look: Array, drift: Array, noise: Array
) -> Array:
    def step(carry: Array, point: Array) -> Array:
        state, spread = carry
        state = move @ state
        spread = move @ spread @ move.T + drift
        s = look @ spread @ look.T + noise
        adjugate = jnp.stack([jnp.stack([s[1, 1], -s[0, 1]]), jnp.stack([-s[1, 0], s[0, 0]])])
        gain = spread @ look.T @ adjugate / (s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0])
        state = state + gain @ (point - look @ state)
        return (state, spread - gain @ look @ spread), state

    return lax.scan(step, (jnp.zeros(4), jnp.eye(4)), seen)[1]


def kalman_loops(seen: Array, move: Array, look: Array, drift: Array, noise: Array) -> Array:
    state, spread = np.zeros(4), np.eye(4)
    states = np.zeros((seen.shape[0], 4))
    for t in range(seen.shape[0]):
        state = move @ state
        spread = move @ spread @ move.T + drift
        across = spread @ look.T
        s = look @ across + noise
        determinant = s[0, 0] * s[1, 1] - s[0, 1] * s[1, 0]
        adjugate = np.empty((2, 2))
        adjugate[0, 0], adjugate[0, 1] = s[1, 1] / determinant, -s[0, 1] / determinant
        adjugate[1, 0], adjugate[1, 1] = -s[1, 0] / determinant, s[0, 0] / determinant
        gain = across @ adjugate
        state = state + gain @ (seen[t] - look @ state)
        spread = spread - gain @ (look @ spread)
        states[t] = state
    return states


ROWS = (
    Program(
        "second-order filter, first axis",
        lambda n: (normal(n, 64),),
        *(first_numpy, first_jax, first_loops),
        sizes=(20, 500, 10_000),
        tiny=5,
    ),
    Program(
        "second-order filter, last axis",
        lambda n: (normal(64, n),),
        *(last_numpy, last_jax, last_loops),
        sizes=(20, 500, 10_000),
        tiny=5,
    ),
    Program(
        "smoothing past missing samples",
        smooth_data,
        *(smooth_numpy, smooth_jax, smooth_loops),
        sizes=(100, 3000, 100_000),
        tiny=7,
    ),
    Program(
        "running sums of segments",
        lambda n: (normal(n), uniform(n, seed=1) < 0.02),
        *(segments_numpy, segments_jax, segments_loops),
        sizes=(100, 10_000, 1_000_000),
        tiny=9,
        tolerance=1e8,
    ),
    Program(
        "Kalman filter",
        kalman_data,
        *(kalman_numpy, kalman_jax, kalman_loops),
        sizes=(20, 300, 5000),
        tiny=4,
        tolerance=1e7,
    ),
)
