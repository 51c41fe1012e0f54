"""Particles and chance: N bodies, a Metropolis chain, the Ising model, Lennard-Jones, random numbers as arguments."""

from __future__ import annotations

import numpy as np

from program_rows.row import Array, Program, integers, normal, prange, uniform

# --- N bodies under gravity ----------------------------------------------------------------------------------


def bodies_data(n: int) -> tuple[np.ndarray | int, ...]:
    return normal(n, 3), 0.1 * normal(n, 3, seed=1), uniform(n, seed=2) / n, 10


def bodies_numpy(xp: Array, x: Array, v: Array, mass: Array, steps: int) -> Array:
    for _ in range(steps):
        apart = x[None, :, :] - x[:, None, :]
        inverse = ((apart**2).sum(axis=2) + 0.01) ** -1.5
        v = v + 0.01 * (apart * (inverse * mass)[:, :, None]).sum(axis=1)
        x = x + 0.01 * v
    return x, v


def bodies_jax(jnp: Array, lax: Array, x: Array, v: Array, mass: Array, steps: int) -> Array:
    def step(_: Array, carry: Array) -> Array:
        x, v = carry
        apart = x[None, :, :] - x[:, None, :]
        inverse = ((apart**2).sum(axis=2) + 0.01) ** -1.5
        v = v + 0.01 * (apart * (inverse * mass)[:, :, None]).sum(axis=1)
        return x + 0.01 * v, v

    return lax.fori_loop(0, steps, step, (x, v))


def bodies_loops(x: Array, v: Array, mass: Array, steps: int) -> Array:
    x, v = x.copy(), v.copy()
    for _ in range(steps):
        for i in prange(x.shape[0]):
            a = b = c = 0.0
            for j in range(x.shape[0]):
                dx, dy, dz = x[j, 0] - x[i, 0], x[j, 1] - x[i, 1], x[j, 2] - x[i, 2]
                square = dx * dx + dy * dy + dz * dz + 0.01
                weight = mass[j] / (square * np.sqrt(square))
                a, b, c = a + dx * weight, b + dy * weight, c + dz * weight
            v[i, 0] += 0.01 * a
            v[i, 1] += 0.01 * b
            v[i, 2] += 0.01 * c
        for i in range(x.shape[0]):
            for k in range(3):
                x[i, k] += 0.01 * v[i, k]
    return x, v


# --- Metropolis: chains that accept or reject ----------------------------------------------------------------


def chains_data(steps: int) -> tuple[np.ndarray, ...]:
    return normal(steps, 32, 2), np.log(uniform(steps, 32, seed=1))


def chains_numpy(xp: Array, moves: Array, draws: Array) -> Array:
    def energy(x: Array) -> Array:
        return (1 - x[:, 0]) ** 2 / 2 + 2 * (x[:, 1] - x[:, 0] ** 2) ** 2

    x = xp.zeros((moves.shape[1], 2))
    now, total = energy(x), xp.zeros((moves.shape[1], 2))
    for t in range(moves.shape[0]):
        proposed = x + 0.5 * moves[t]
        new = energy(proposed)
        accepted = draws[t] < now - new
        x = xp.where(accepted[:, None], proposed, x)
        now = xp.where(accepted, new, now)
        total = total + x
    return x, total / moves.shape[0]


def chains_jax(jnp: Array, lax: Array, moves: Array, draws: Array) -> Array:
    def energy(x: Array) -> Array:
        return (1 - x[:, 0]) ** 2 / 2 + 2 * (x[:, 1] - x[:, 0] ** 2) ** 2

    def step(carry: Array, random: Array) -> Array:
        (x, now, total), (move, draw) = carry, random
        proposed = x + 0.5 * move
        new = energy(proposed)
        accepted = draw < now - new
        x = jnp.where(accepted[:, None], proposed, x)
        return (x, jnp.where(accepted, new, now), total + x), None

    x = jnp.zeros((moves.shape[1], 2))
    x, _, total = lax.scan(step, (x, energy(x), x), (moves, draws))[0]
    return x, total / moves.shape[0]


def chains_loops(moves: Array, draws: Array) -> Array:
    steps, count = draws.shape
    x, mean = np.zeros((count, 2)), np.zeros((count, 2))
    for c in prange(count):
        a = b = total_a = total_b = 0.0
        now = 0.5
        for t in range(steps):
            new_a, new_b = a + 0.5 * moves[t, c, 0], b + 0.5 * moves[t, c, 1]
            new = (1 - new_a) ** 2 / 2 + 2 * (new_b - new_a**2) ** 2
            if draws[t, c] < now - new:
                a, b, now = new_a, new_b, new
            total_a += a
            total_b += b
        x[c, 0], x[c, 1], mean[c, 0], mean[c, 1] = a, b, total_a / steps, total_b / steps
    return x, mean


# --- The Ising model, in two colors --------------------------------------------------------------------------


def ising_data(n: int) -> tuple[np.ndarray, ...]:
    return 2 * integers(2, n, n) - 1, uniform(10, 2, n, n, seed=1)


def ising_numpy(xp: Array, spins: Array, draws: Array) -> Array:
    n = spins.shape[0]
    color = (xp.arange(n)[:, None] + xp.arange(n)) % 2
    for t in range(draws.shape[0]):
        for c in range(2):
            around = (
                xp.roll(spins, 1, 0) + xp.roll(spins, -1, 0) + xp.roll(spins, 1, 1) + xp.roll(spins, -1, 1)
            )
            flips = (draws[t, c] < xp.exp(-0.8 * spins * around)) & (color == c)
            spins = xp.where(flips, -spins, spins)
    return spins


def ising_jax(jnp: Array, lax: Array, spins: Array, draws: Array) -> Array:
    n = spins.shape[0]
    color = (jnp.arange(n)[:, None] + jnp.arange(n)) % 2

    def half(spins: Array, draw: Array, c: int) -> Array:
        around = (
            jnp.roll(spins, 1, 0) + jnp.roll(spins, -1, 0) + jnp.roll(spins, 1, 1) + jnp.roll(spins, -1, 1)
        )
        flips = (draw < jnp.exp(-0.8 * spins * around)) & (color == c)
        return jnp.where(flips, -spins, spins)

    return lax.scan(lambda s, d: (half(half(s, d[0], 0), d[1], 1), None), spins, draws)[0]


def ising_loops(spins: Array, draws: Array) -> Array:
    spins = spins.copy()
    n = spins.shape[0]
    for t in range(draws.shape[0]):
        for c in range(2):
            for i in prange(n):
                for j in range((i + c) % 2, n, 2):
                    around = (
                        spins[(i - 1) % n, j]
                        + spins[(i + 1) % n, j]
                        + spins[i, (j - 1) % n]
                        + spins[i, (j + 1) % n]
                    )
                    if draws[t, c, i, j] < np.exp(-0.8 * spins[i, j] * around):
                        spins[i, j] = -spins[i, j]
    return spins


# --- Barrier options: paths that end where they cross --------------------------------------------------------


def barrier_numpy(xp: Array, noise: Array) -> Array:
    price, alive = xp.full(noise.shape[1], 100.0), xp.ones(noise.shape[1], dtype=bool)
    for t in range(noise.shape[0]):
        price = price * xp.exp(0.0001 + 0.01 * noise[t])
        alive = alive & (price < 110.0)
    return xp.where(alive, xp.maximum(price - 100.0, 0.0), 0.0).mean()


def barrier_jax(jnp: Array, lax: Array, noise: Array) -> Array:
    def step(carry: Array, noise: Array) -> Array:
        price, alive = carry
        price = price * jnp.exp(0.0001 + 0.01 * noise)
        return (price, alive & (price < 110.0)), None

    start = jnp.full(noise.shape[1], 100.0), jnp.ones(noise.shape[1], dtype=bool)
    price, alive = lax.scan(step, start, noise)[0]
    return jnp.where(alive, jnp.maximum(price - 100.0, 0.0), 0.0).mean()


def barrier_loops(noise: Array) -> Array:
    total = 0.0
    for k in prange(noise.shape[1]):
        price = 100.0
        for t in range(noise.shape[0]):
            price *= np.exp(0.0001 + 0.01 * noise[t, k])
            if price >= 110.0:
                price = 0.0
                break
        total += max(price - 100.0, 0.0)
    return total / noise.shape[1]


# --- Gillespie's algorithm: predators and prey, one random event after the other --------------------------------


def events_data(count: int) -> tuple[np.ndarray, ...]:
    changes = np.array([[1, 0], [-1, 1], [0, -1]])
    return np.array([60, 40]), changes, np.array([10.0, 0.1, 8.0]), uniform(count, 2)


def events_numpy(xp: Array, state: Array, changes: Array, rates: Array, draws: Array) -> Array:
    time, mean = 0.0, xp.zeros(2)
    for k in range(draws.shape[0]):
        sums = xp.cumsum(rates * xp.stack([state[0], state[0] * state[1], state[1]]))
        wait = -xp.log(1 - draws[k, 0]) / sums[2]
        time, mean = time + wait, mean + state * wait
        event = xp.minimum((sums < draws[k, 1] * sums[2]).sum(), 2)
        state = xp.maximum(state + changes[event], 1)
    return mean / time


def events_jax(jnp: Array, lax: Array, state: Array, changes: Array, rates: Array, draws: Array) -> Array:
    def step(carry: Array, draw: Array) -> Array:
        state, time, mean = carry
        sums = jnp.cumsum(rates * jnp.stack([state[0], state[0] * state[1], state[1]]))
        wait = -jnp.log(1 - draw[0]) / sums[2]
        event = jnp.minimum((sums < draw[1] * sums[2]).sum(), 2)
        return (jnp.maximum(state + changes[event], 1), time + wait, mean + state * wait), None

    _, time, mean = lax.scan(step, (state, jnp.asarray(0.0), jnp.zeros(2)), draws)[0]
    return mean / time


def events_loops(state: Array, changes: Array, rates: Array, draws: Array) -> Array:
    prey, predators = state[0], state[1]
    time, mean = 0.0, np.zeros(2)
    for k in range(draws.shape[0]):
        born = rates[0] * prey
        eaten = born + rates[1] * (prey * predators)
        total = eaten + rates[2] * predators
        wait = -np.log(1 - draws[k, 0]) / total
        time += wait
        mean[0] += prey * wait
        mean[1] += predators * wait
        at = draws[k, 1] * total
        event = 0 if at <= born else 1 if at <= eaten else 2
        prey = max(prey + changes[event, 0], 1)
        predators = max(predators + changes[event, 1], 1)
    return mean / time


ROWS = (
    Program("N bodies", bodies_data, bodies_numpy, bodies_jax, bodies_loops, sizes=(16, 128, 512), tiny=4),
    Program(
        "Metropolis chains",
        chains_data,
        chains_numpy,
        chains_jax,
        chains_loops,
        sizes=(20, 300, 5000),
        tiny=5,
    ),
    Program("Ising model", ising_data, ising_numpy, ising_jax, ising_loops, sizes=(16, 128, 512), tiny=4),
    Program(
        "barrier options",
        lambda n: (normal(100, n),),
        *(barrier_numpy, barrier_jax, barrier_loops),
        sizes=(30, 1000, 30_000),
        tiny=6,
    ),
    Program(
        "Gillespie's algorithm",
        events_data,
        *(events_numpy, events_jax, events_loops),
        sizes=(30, 1000, 30_000),
        tiny=5,
    ),
)
