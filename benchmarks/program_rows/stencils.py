"""Grids: heat, waves and Maxwell's equations with borders, implicit sweeps, red-black relaxation, a driven cavity."""

from __future__ import annotations

import numpy as np

from program_rows.row import Array, Program, normal, prange, uniform

# --- Heat with a source and a fixed border -------------------------------------------------------------------


def heat_numpy(xp: Array, u: Array, steps: int) -> Array:
    u = u.copy()
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] = u[1:-1, 1:-1] + 0.1 * (around - 4 * u[1:-1, 1:-1])
    return u


def heat_jax(jnp: Array, lax: Array, u: Array, steps: int) -> Array:
    def step(_: Array, u: Array) -> Array:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1]))

    return lax.fori_loop(0, steps, step, u)


def heat_loops(u: Array, steps: int) -> Array:
    u, new = u.copy(), u.copy()
    for _ in range(steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                around = u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1]
                new[i, j] = u[i, j] + 0.1 * (around - 4 * u[i, j])
        u, new = new, u
    return u


# --- Waves in a periodic box, whose border absorbs -----------------------------------------------------------


def wave_numpy(xp: Array, u: Array, steps: int) -> Array:
    before, now = u, u.copy()
    for _ in range(steps):
        around = xp.roll(now, 1, 0) + xp.roll(now, -1, 0) + xp.roll(now, 1, 1) + xp.roll(now, -1, 1)
        after = 2 * now - before + 0.25 * (around - 4 * now)
        after[0], after[-1] = now[1], now[-2]
        after[:, 0], after[:, -1] = now[:, 1], now[:, -2]
        before, now = now, after
    return now


def wave_jax(jnp: Array, lax: Array, u: Array, steps: int) -> Array:
    def step(_: Array, carry: Array) -> Array:
        before, now = carry
        around = jnp.roll(now, 1, 0) + jnp.roll(now, -1, 0) + jnp.roll(now, 1, 1) + jnp.roll(now, -1, 1)
        after = 2 * now - before + 0.25 * (around - 4 * now)
        after = after.at[0].set(now[1]).at[-1].set(now[-2])
        after = after.at[:, 0].set(now[:, 1]).at[:, -1].set(now[:, -2])
        return now, after

    return lax.fori_loop(0, steps, step, (u, u))[1]


def wave_loops(u: Array, steps: int) -> Array:
    n, m = u.shape
    before, now, after = u.copy(), u.copy(), u.copy()
    for _ in range(steps):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                around = now[i - 1, j] + now[i + 1, j] + now[i, j - 1] + now[i, j + 1]
                after[i, j] = 2 * now[i, j] - before[i, j] + 0.25 * (around - 4 * now[i, j])
        for j in range(m):
            after[0, j], after[n - 1, j] = now[1, j], now[n - 2, j]
        for i in range(n):
            after[i, 0], after[i, m - 1] = now[i, 1], now[i, m - 2]
        before, now, after = now, after, before
    return now


# --- Maxwell's equations: three fields -----------------------------------------------------------------------


def fields_data(n: int) -> tuple[np.ndarray | int, ...]:
    return normal(n, n), normal(n, n, seed=1), normal(n, n, seed=2), 40


def fields_numpy(xp: Array, ex: Array, ey: Array, hz: Array, steps: int) -> Array:
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    for t in range(steps):
        ey[0, :] = 0.1 * t
        ey[1:, :] -= 0.5 * (hz[1:, :] - hz[:-1, :])
        ex[:, 1:] -= 0.5 * (hz[:, 1:] - hz[:, :-1])
        hz[:-1, :-1] -= 0.7 * (ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1])
    return ex, ey, hz


def fields_jax(jnp: Array, lax: Array, ex: Array, ey: Array, hz: Array, steps: int) -> Array:
    def step(t: Array, carry: Array) -> Array:
        ex, ey, hz = carry
        ey = ey.at[0, :].set(0.1 * t)
        ey = ey.at[1:, :].add(-0.5 * (hz[1:, :] - hz[:-1, :]))
        ex = ex.at[:, 1:].add(-0.5 * (hz[:, 1:] - hz[:, :-1]))
        curl = ex[:-1, 1:] - ex[:-1, :-1] + ey[1:, :-1] - ey[:-1, :-1]
        return ex, ey, hz.at[:-1, :-1].add(-0.7 * curl)

    return lax.fori_loop(0, steps, step, (ex, ey, hz))


def fields_loops(ex: Array, ey: Array, hz: Array, steps: int) -> Array:
    ex, ey, hz = ex.copy(), ey.copy(), hz.copy()
    n, m = hz.shape
    for t in range(steps):
        for j in range(m):
            ey[0, j] = 0.1 * t
        for i in prange(n):
            for j in range(m):
                if i > 0:
                    ey[i, j] -= 0.5 * (hz[i, j] - hz[i - 1, j])
                if j > 0:
                    ex[i, j] -= 0.5 * (hz[i, j] - hz[i, j - 1])
        for i in prange(n - 1):
            for j in range(m - 1):
                hz[i, j] -= 0.7 * (ex[i, j + 1] - ex[i, j] + ey[i + 1, j] - ey[i, j])
    return ex, ey, hz


# --- Alternating implicit sweeps -----------------------------------------------------------------------------


def sweep_numpy(xp: Array, u: Array) -> Array:
    """Solve 3 x[i] - x[i-1] - x[i+1] = u[i] along the first axis."""
    n = u.shape[0]
    above, x = xp.zeros(n), u.copy()
    above[0], x[0] = -1 / 3, u[0] / 3
    for i in range(1, n):
        pivot = 3 + above[i - 1]
        above[i] = -1 / pivot
        x[i] = (x[i] + x[i - 1]) / pivot
    for i in range(n - 2, -1, -1):
        x[i] = x[i] - above[i] * x[i + 1]
    return x


def sweeps_numpy(xp: Array, u: Array, steps: int) -> Array:
    for _ in range(steps):
        u = sweep_numpy(xp, u)
        u = sweep_numpy(xp, u.T).T
    return u


def sweep_jax(jnp: Array, lax: Array, u: Array) -> Array:
    def eliminate(carry: Array, row: Array) -> Array:
        above, before = carry
        pivot = 3 + above
        carry = -1 / pivot, (row + before) / pivot
        return carry, carry

    def substitute(after: Array, row: Array) -> Array:
        above, value = row
        x = value - above * after
        return x, x

    zeros = jnp.zeros(u.shape[1])
    _, rows = lax.scan(eliminate, (jnp.zeros(()), zeros), u)
    return lax.scan(substitute, zeros, rows, reverse=True)[1]


def sweeps_jax(jnp: Array, lax: Array, u: Array, steps: int) -> Array:
    def step(_: Array, u: Array) -> Array:
        return sweep_jax(jnp, lax, sweep_jax(jnp, lax, u).T).T

    return lax.fori_loop(0, steps, step, u)


def sweeps_loops(u: Array, steps: int) -> Array:
    u = u.copy()
    n, m = u.shape
    above = np.zeros(max(n, m))
    above[0] = -1 / 3
    for i in range(1, above.size):
        above[i] = -1 / (3 + above[i - 1])
    for _ in range(steps):
        for j in range(m):
            u[0, j] /= 3
        for i in range(1, n):
            for j in range(m):
                u[i, j] = (u[i, j] + u[i - 1, j]) / (3 + above[i - 1])
        for i in range(n - 2, -1, -1):
            for j in range(m):
                u[i, j] -= above[i] * u[i + 1, j]
        for i in prange(n):
            u[i, 0] /= 3
            for j in range(1, m):
                u[i, j] = (u[i, j] + u[i, j - 1]) / (3 + above[j - 1])
            for j in range(m - 2, -1, -1):
                u[i, j] -= above[j] * u[i, j + 1]
    return u


# --- Red-black Gauss-Seidel ----------------------------------------------------------------------------------


def relax_data(n: int) -> tuple[np.ndarray | int, ...]:
    return np.zeros((n + 2, n + 2)), normal(n + 2, n + 2), 30


def relax_numpy(xp: Array, u: Array, f: Array, steps: int) -> Array:
    u = u.copy()
    for _ in range(steps):
        for first in (1, 2):  # the first column of a color in odd rows
            other = 3 - first
            for row, column in ((1, first), (2, other)):
                middle = (slice(row, -1, 2), slice(column, -1, 2))
                up, down = (slice(row - 1, -2, 2), middle[1]), (slice(row + 1, None, 2), middle[1])
                left, right = (middle[0], slice(column - 1, -2, 2)), (middle[0], slice(column + 1, None, 2))
                u[middle] = 0.25 * (u[up] + u[down] + u[left] + u[right] + f[middle])
    return u


def relax_jax(jnp: Array, lax: Array, u: Array, f: Array, steps: int) -> Array:
    rows, columns = jnp.arange(1, u.shape[0] - 1), jnp.arange(1, u.shape[1] - 1)
    is_red = (rows[:, None] + columns[None, :]) % 2 == 0

    def half(u: Array, chosen: Array) -> Array:
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        new = 0.25 * (around + f[1:-1, 1:-1])
        return u.at[1:-1, 1:-1].set(jnp.where(chosen, new, u[1:-1, 1:-1]))

    return lax.fori_loop(0, steps, lambda _, u: half(half(u, is_red), ~is_red), u)


def relax_loops(u: Array, f: Array, steps: int) -> Array:
    u = u.copy()
    for step in range(2 * steps):
        for i in prange(1, u.shape[0] - 1):
            for j in range(1 + (i + step + 1) % 2, u.shape[1] - 1, 2):
                u[i, j] = 0.25 * (u[i - 1, j] + u[i + 1, j] + u[i, j - 1] + u[i, j + 1] + f[i, j])
    return u


# --- Flow in a cavity with a moving lid ----------------------------------------------------------------------

STEPS, PRESSURE_STEPS, TIME, CELL, VISCOSITY = 10, 20, 1e-3, 0.05, 0.1


def cavity_numpy(xp: Array, u: Array, v: Array, p: Array) -> Array:
    u, v, p = u.copy(), v.copy(), p.copy()
    for _ in range(STEPS):
        ux, uy = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * CELL), (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * CELL)
        vx, vy = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * CELL), (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * CELL)
        source = CELL**2 * ((ux + vy) / TIME - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(PRESSURE_STEPS):
            around = p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]
            p[1:-1, 1:-1] = (around - source) / 4
            p[:, -1] = p[:, -2]
            p[0, :] = p[1, :]
            p[:, 0] = p[:, 1]
            p[-1, :] = 0
        px, py = (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * CELL), (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * CELL)
        spread = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]
        new = -u[1:-1, 1:-1] * ux - v[1:-1, 1:-1] * uy - px + VISCOSITY / CELL**2 * spread
        spread = v[1:-1, 2:] + v[1:-1, :-2] + v[2:, 1:-1] + v[:-2, 1:-1] - 4 * v[1:-1, 1:-1]
        other = -u[1:-1, 1:-1] * vx - v[1:-1, 1:-1] * vy - py + VISCOSITY / CELL**2 * spread
        u[1:-1, 1:-1] += TIME * new
        v[1:-1, 1:-1] += TIME * other
        u[-1, :] = 1
    return u, v, p


def cavity_jax(jnp: Array, lax: Array, u: Array, v: Array, p: Array) -> Array:
    def step(_: Array, carry: Array) -> Array:
        u, v, p = carry
        ux, uy = (u[1:-1, 2:] - u[1:-1, :-2]) / (2 * CELL), (u[2:, 1:-1] - u[:-2, 1:-1]) / (2 * CELL)
        vx, vy = (v[1:-1, 2:] - v[1:-1, :-2]) / (2 * CELL), (v[2:, 1:-1] - v[:-2, 1:-1]) / (2 * CELL)
        source = CELL**2 * ((ux + vy) / TIME - ux**2 - 2 * uy * vx - vy**2)

        def pressure(_: Array, p: Array) -> Array:
            around = p[1:-1, 2:] + p[1:-1, :-2] + p[2:, 1:-1] + p[:-2, 1:-1]
            p = p.at[1:-1, 1:-1].set((around - source) / 4)
            p = p.at[:, -1].set(p[:, -2])
            p = p.at[0, :].set(p[1, :])
            p = p.at[:, 0].set(p[:, 1])
            return p.at[-1, :].set(0)

        p = lax.fori_loop(0, PRESSURE_STEPS, pressure, p)
        px, py = (p[1:-1, 2:] - p[1:-1, :-2]) / (2 * CELL), (p[2:, 1:-1] - p[:-2, 1:-1]) / (2 * CELL)
        spread = u[1:-1, 2:] + u[1:-1, :-2] + u[2:, 1:-1] + u[:-2, 1:-1] - 4 * u[1:-1, 1:-1]
        new = -u[1:-1, 1:-1] * ux - v[1:-1, 1:-1] * uy - px + VISCOSITY / CELL**2 * spread
        spread = v[1:-1, 2:] + v[1:-1, :-2] + v[2:, 1:-1] + v[:-2, 1:-1] - 4 * v[1:-1, 1:-1]
        other = -u[1:-1, 1:-1] * vx - v[1:-1, 1:-1] * vy - py + VISCOSITY / CELL**2 * spread
        u = u.at[1:-1, 1:-1].add(TIME * new).at[-1, :].set(1)
        return u, v.at[1:-1, 1:-1].add(TIME * other), p

    return lax.fori_loop(0, STEPS, step, (u, v, p))


def cavity_loops(u: Array, v: Array, p: Array) -> Array:
    u, v, p = u.copy(), v.copy(), p.copy()
    n, m = u.shape
    new_u, new_v, new_p, source = u.copy(), v.copy(), p.copy(), np.zeros_like(u)
    for _ in range(STEPS):
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                ux, uy = (u[i, j + 1] - u[i, j - 1]) / (2 * CELL), (u[i + 1, j] - u[i - 1, j]) / (2 * CELL)
                vx, vy = (v[i, j + 1] - v[i, j - 1]) / (2 * CELL), (v[i + 1, j] - v[i - 1, j]) / (2 * CELL)
                source[i, j] = CELL**2 * ((ux + vy) / TIME - ux**2 - 2 * uy * vx - vy**2)
        for _ in range(PRESSURE_STEPS):
            for i in prange(1, n - 1):
                for j in range(1, m - 1):
                    around = p[i, j + 1] + p[i, j - 1] + p[i + 1, j] + p[i - 1, j]
                    new_p[i, j] = (around - source[i, j]) / 4
            for i in range(n):
                new_p[i, m - 1] = new_p[i, m - 2] if 0 < i < n - 1 else p[i, m - 2]
            for j in range(m):
                new_p[0, j] = new_p[1, j]
            for i in range(n):
                new_p[i, 0] = new_p[i, 1]
            for j in range(m):
                new_p[n - 1, j] = 0
            p, new_p = new_p, p
        for i in prange(1, n - 1):
            for j in range(1, m - 1):
                ux, uy = (u[i, j + 1] - u[i, j - 1]) / (2 * CELL), (u[i + 1, j] - u[i - 1, j]) / (2 * CELL)
                vx, vy = (v[i, j + 1] - v[i, j - 1]) / (2 * CELL), (v[i + 1, j] - v[i - 1, j]) / (2 * CELL)
                px, py = (p[i, j + 1] - p[i, j - 1]) / (2 * CELL), (p[i + 1, j] - p[i - 1, j]) / (2 * CELL)
                spread = u[i, j + 1] + u[i, j - 1] + u[i + 1, j] + u[i - 1, j] - 4 * u[i, j]
                change = -u[i, j] * ux - v[i, j] * uy - px + VISCOSITY / CELL**2 * spread
                new_u[i, j] = u[i, j] + TIME * change
                spread = v[i, j + 1] + v[i, j - 1] + v[i + 1, j] + v[i - 1, j] - 4 * v[i, j]
                change = -u[i, j] * vx - v[i, j] * vy - py + VISCOSITY / CELL**2 * spread
                new_v[i, j] = v[i, j] + TIME * change
        for j in range(m):
            new_u[n - 1, j] = 1
        u, new_u, v, new_v = new_u, u, new_v, v
    return u, v, p


# --- Flow around a cylinder, by the lattice Boltzmann method ----------------------------------------------------

#: Where the particles of each of nine kinds move, the share of each kind at rest, and the kind that comes back.
ALONG_X, ALONG_Y = (0, 1, 0, -1, 0, 1, -1, -1, 1), (0, 0, 1, 0, -1, 1, 1, -1, -1)
SHARES = (4 / 9, *[1 / 9] * 4, *[1 / 36] * 4)
BACK = (0, 3, 4, 1, 2, 7, 8, 5, 6)


def lattice_data(n: int) -> tuple[np.ndarray | int, ...]:
    y, x = np.mgrid[:n, : 2 * n]
    density = np.array(SHARES)[:, None, None] * (1 + 0.01 * uniform(9, n, 2 * n))
    return density, (x - n / 2) ** 2 + (y - n / 2) ** 2 < (n / 6) ** 2, 10


def lattice_step(xp: Array, f: Array, solid: Array) -> Array:
    f = xp.stack([xp.roll(f[k], (ALONG_Y[k], ALONG_X[k]), axis=(0, 1)) for k in range(9)])
    rho = f.sum(axis=0)
    u = (f[1] + f[5] + f[8] - f[3] - f[6] - f[7]) / rho + 1e-4
    v = (f[2] + f[5] + f[6] - f[4] - f[7] - f[8]) / rho
    square, new = 1.5 * (u**2 + v**2), []
    for k in range(9):
        along = 3 * (ALONG_X[k] * u + ALONG_Y[k] * v)
        new.append(f[k] + 0.8 * (SHARES[k] * rho * (1 + along + 0.5 * along**2 - square) - f[k]))
    return xp.where(solid, xp.stack([f[k] for k in BACK]), xp.stack(new))


def lattice_numpy(xp: Array, f: Array, solid: Array, steps: int) -> Array:
    for _ in range(steps):
        f = lattice_step(xp, f, solid)
    return f


def lattice_jax(jnp: Array, lax: Array, f: Array, solid: Array, steps: int) -> Array:
    return lax.fori_loop(0, steps, lambda _, f: lattice_step(jnp, f, solid), f)


def lattice_loops(f: Array, solid: Array, steps: int) -> Array:
    _, n, m = f.shape
    f, new = f.copy(), np.zeros_like(f)
    for _ in range(steps):
        for i in prange(n):
            came = np.zeros(9)
            for j in range(m):
                rho = u = v = 0.0
                for k in range(9):
                    came[k] = f[k, (i - ALONG_Y[k]) % n, (j - ALONG_X[k]) % m]
                    rho, u, v = rho + came[k], u + ALONG_X[k] * came[k], v + ALONG_Y[k] * came[k]
                u, v = u / rho + 1e-4, v / rho
                square = 1.5 * (u * u + v * v)
                for k in range(9):
                    along = 3 * (ALONG_X[k] * u + ALONG_Y[k] * v)
                    rest = SHARES[k] * rho * (1 + along + 0.5 * along * along - square)
                    new[k, i, j] = came[BACK[k]] if solid[i, j] else came[k] + 0.8 * (rest - came[k])
        f, new = new, f
    return f


GRIDS = (32, 128, 512)

ROWS = (
    Program("heat", lambda n: (normal(n, n), 50), heat_numpy, heat_jax, heat_loops, sizes=GRIDS, tiny=5),
    Program(
        "waves with an open border",
        lambda n: (normal(n, n), 40),
        *(wave_numpy, wave_jax, wave_loops),
        sizes=GRIDS,
        tiny=5,
    ),
    Program(
        "Maxwell's equations, three fields",
        fields_data,
        *(fields_numpy, fields_jax, fields_loops),
        sizes=GRIDS,
        tiny=5,
    ),
    Program(
        "alternating implicit sweeps",
        lambda n: (normal(n, n), 5),
        *(sweeps_numpy, sweeps_jax, sweeps_loops),
        sizes=(16, 64, 256),
        tiny=4,
    ),
    Program(
        "red-black Gauss-Seidel",
        relax_data,
        *(relax_numpy, relax_jax, relax_loops),
        sizes=(16, 64, 256),
        tiny=4,
    ),
    Program(
        "flow in a driven cavity",
        lambda n: (np.zeros((n, n)), np.zeros((n, n)), normal(n, n)),
        *(cavity_numpy, cavity_jax, cavity_loops),
        sizes=(16, 64, 256),
        tiny=5,
        tolerance=1e6,
    ),
    Program(
        "lattice Boltzmann",
        lattice_data,
        *(lattice_numpy, lattice_jax, lattice_loops),
        sizes=(16, 64, 256),
        tiny=6,
    ),
)
