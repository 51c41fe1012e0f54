"""Equations by iteration: an adaptive ODE solver, Newton's method, L-BFGS, fixed points."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_DECIDES, Array, Program, normal, prange, uniform

# --- Dormand-Prince with adaptive steps: coupled oscillators -------------------------------------------------

#: Rows of the tableau, and the weights of the error.
STAGES = (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)
ERRORS = (71 / 57600, 0.0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40)
TABLEAU = np.array([[*row, *[0.0] * (6 - len(row))] for row in STAGES])
WEIGHTS = np.array(ERRORS)
END, ACCURACY = 2.0, 1e-7


def ode_data(n: int) -> tuple[np.ndarray]:
    return (np.stack([uniform(n) + 1, uniform(n, seed=1)]),)


def ode_numpy(xp: Array, y: Array) -> Array:
    def slope(y: Array) -> Array:
        x, v = y[0], y[1]
        return xp.stack([v, 2.0 * (1 - x * x) * v - x + 0.1 * (xp.roll(x, 1) - x)])

    t, h = 0.0, 0.05
    while t < END:
        h = min(h, END - t)
        slopes = [slope(y)]
        for row in STAGES:
            new = y + h * sum(a * k for a, k in zip(row, slopes, strict=True))
            slopes.append(slope(new))
        error = float(xp.abs(h * sum(e * k for e, k in zip(ERRORS, slopes, strict=True))).max())
        if error <= ACCURACY:
            t, y = t + h, new
        h = h * min(5.0, max(0.2, 0.9 * (ACCURACY / max(error, 1e-300)) ** 0.2))
    return y


def ode_jax(jnp: Array, lax: Array, y: Array) -> Array:
    def slope(y: Array) -> Array:
        x, v = y[0], y[1]
        return jnp.stack([v, 2.0 * (1 - x * x) * v - x + 0.1 * (jnp.roll(x, 1) - x)])

    def body(carry: Array) -> Array:
        t, h, y = carry
        h = jnp.minimum(h, END - t)
        slopes = [slope(y)]
        for row in STAGES:
            new = y + h * sum(a * k for a, k in zip(row, slopes, strict=True))
            slopes.append(slope(new))
        error = jnp.abs(h * sum(e * k for e, k in zip(ERRORS, slopes, strict=True))).max()
        t, y = lax.cond(error <= ACCURACY, lambda: (t + h, new), lambda: (t, y))
        return t, h * jnp.clip(0.9 * (ACCURACY / jnp.maximum(error, 1e-300)) ** 0.2, 0.2, 5.0), y

    return lax.while_loop(lambda carry: carry[0] < END, body, (jnp.zeros(()), jnp.full((), 0.05), y))[2]


def ode_loops(y: Array) -> Array:
    y = y.copy()
    n = y.shape[1]
    slopes, new = np.zeros((7, 2, n)), y.copy()
    t, h = 0.0, 0.05
    while t < END:
        h = min(h, END - t)
        for stage in range(7):
            for i in range(2):
                for j in range(n):
                    total = 0.0
                    for k in range(stage):
                        total += TABLEAU[stage - 1, k] * slopes[k, i, j]
                    new[i, j] = y[i, j] + h * total
            for j in range(n):
                x, v = new[0, j], new[1, j]
                slopes[stage, 0, j] = v
                slopes[stage, 1, j] = 2.0 * (1 - x * x) * v - x + 0.1 * (new[0, j - 1] - x)
        error = 0.0
        for i in range(2):
            for j in range(n):
                total = 0.0
                for k in range(7):
                    total += WEIGHTS[k] * slopes[k, i, j]
                error = max(error, abs(h * total))
        if error <= ACCURACY:
            t += h
            y, new = new, y
        h *= min(5.0, max(0.2, 0.9 * (ACCURACY / max(error, 1e-300)) ** 0.2))
    return y


# --- Newton's method for each element: Kepler's equation -----------------------------------------------------


def kepler_numpy(xp: Array, mean: Array, e: Array) -> Array:
    x, change = mean.copy(), xp.ones_like(mean)
    while xp.abs(change).max() > 1e-12:
        change = (x - e * xp.sin(x) - mean) / (1 - e * xp.cos(x))
        x = x - change
    return x


def kepler_jax(jnp: Array, lax: Array, mean: Array, e: Array) -> Array:
    def body(carry: Array) -> Array:
        x, _ = carry
        change = (x - e * jnp.sin(x) - mean) / (1 - e * jnp.cos(x))
        return x - change, jnp.abs(change).max()

    return lax.while_loop(lambda carry: carry[1] > 1e-12, body, (mean, jnp.ones(())))[0]


def kepler_loops(mean: Array, e: Array) -> Array:
    result = np.empty_like(mean)
    for i in prange(mean.size):
        x, change = mean[i], 1.0
        while abs(change) > 1e-12:
            change = (x - e[i] * np.sin(x) - mean[i]) / (1 - e[i] * np.cos(x))
            x -= change
        result[i] = x
    return result


# --- L-BFGS with backtracking: a chained Rosenbrock function -------------------------------------------------

KEPT, ITERATIONS = 5, 20


def minimum_data(n: int) -> tuple[np.ndarray]:
    return (1 + 0.1 * normal(n),)


def value_and_gradient(xp: Array, x: Array) -> tuple[Array, Array]:
    """Of sum(10 (x[i+1] - x[i]²)² + (1 - x[i])²)."""
    steep, flat = x[1:] - x[:-1] ** 2, 1 - x[:-1]
    zero = xp.zeros(1)
    gradient = xp.concatenate([-40 * x[:-1] * steep - 2 * flat, zero]) + xp.concatenate([zero, 20 * steep])
    return (10 * steep**2 + flat**2).sum(), gradient


def minimum_numpy(xp: Array, x: Array) -> Array:
    value, gradient = value_and_gradient(xp, x)
    history: list[tuple[Array, Array, Array]] = []
    for _ in range(ITERATIONS):
        direction, scales = -gradient, []
        for s, y, curvature in reversed(history):
            scale = (s @ direction) / curvature
            direction = direction - scale * y
            scales.append(scale)
        if history:
            s, y, curvature = history[-1]
            direction = direction * (curvature / (y @ y))
        for (s, y, curvature), scale in zip(history, reversed(scales), strict=True):
            direction = direction + s * (scale - (y @ direction) / curvature)
        step, slope = 1.0, gradient @ direction
        new_value, new_gradient = value_and_gradient(xp, x + step * direction)
        while new_value > value + 1e-4 * step * slope and step > 1e-10:
            step = step / 2
            new_value, new_gradient = value_and_gradient(xp, x + step * direction)
        s, y = step * direction, new_gradient - gradient
        history = [*history[-KEPT + 1 :], (s, y, s @ y)]
        x, value, gradient = x + s, new_value, new_gradient
    return x


def minimum_jax(jnp: Array, lax: Array, x: Array) -> Array:
    def iterate(count: Array, carry: Array) -> Array:
        x, value, gradient, steps, changes, curvatures = carry

        def subtract_change(k: Array, state: Array) -> Array:
            direction, scales = state
            i = KEPT - 1 - k
            scale = jnp.where(i >= KEPT - count, (steps[i] @ direction) / curvatures[i], 0.0)
            return direction - scale * changes[i], scales.at[i].set(scale)

        def add_step(i: Array, direction: Array) -> Array:
            back = jnp.where(i >= KEPT - count, (changes[i] @ direction) / curvatures[i], 0.0)
            return direction + steps[i] * (scales[i] - back)

        direction, scales = lax.fori_loop(0, KEPT, subtract_change, (-gradient, jnp.zeros(KEPT)))
        last = changes[KEPT - 1]
        direction = direction * jnp.where(
            count > 0, curvatures[KEPT - 1] / jnp.maximum(last @ last, 1e-300), 1.0
        )
        direction = lax.fori_loop(0, KEPT, add_step, direction)
        slope = gradient @ direction

        def is_high(search: Array) -> Array:
            step, (new, _) = search
            return (new > value + 1e-4 * step * slope) & (step > 1e-10)

        def halve(search: Array) -> Array:
            step = search[0] / 2
            return step, value_and_gradient(jnp, x + step * direction)

        start = jnp.ones(()), value_and_gradient(jnp, x + direction)
        step, (new_value, new_gradient) = lax.while_loop(is_high, halve, start)
        s, y = step * direction, new_gradient - gradient
        steps, changes = jnp.roll(steps, -1, 0).at[-1].set(s), jnp.roll(changes, -1, 0).at[-1].set(y)
        return x + s, new_value, new_gradient, steps, changes, jnp.roll(curvatures, -1).at[-1].set(s @ y)

    empty = jnp.zeros((KEPT, x.shape[0]))
    start = (x, *value_and_gradient(jnp, x), empty, empty, jnp.ones(KEPT))
    return lax.fori_loop(0, ITERATIONS, iterate, start)[0]


def minimum_loops(x: Array) -> Array:
    x = x.copy()
    n = x.size
    steps, changes = np.zeros((KEPT, n)), np.zeros((KEPT, n))
    curvatures, scales = np.ones(KEPT), np.zeros(KEPT)
    point, gradient, new_gradient = x.copy(), np.zeros(n), np.zeros(n)
    direction, value, step = np.zeros(n), 0.0, 1.0
    for count in range(-1, ITERATIONS):
        if count >= 0:
            direction[:] = -gradient
            used = min(count, KEPT)
            for k in range(used):
                i = (count - 1 - k) % KEPT
                scales[i] = np.sum(steps[i] * direction) / curvatures[i]
                for j in range(n):
                    direction[j] -= scales[i] * changes[i, j]
            if used:
                i = (count - 1) % KEPT
                direction *= curvatures[i] / np.sum(changes[i] * changes[i])
            for k in range(used - 1, -1, -1):
                i = (count - 1 - k) % KEPT
                back = np.sum(changes[i] * direction) / curvatures[i]
                for j in range(n):
                    direction[j] += steps[i, j] * (scales[i] - back)
        step, slope = 1.0, np.sum(gradient * direction)
        while True:
            for j in range(n):
                point[j] = x[j] + step * direction[j]
            new_value = 0.0
            new_gradient[:] = 0.0
            for j in range(n - 1):
                steep, flat = point[j + 1] - point[j] ** 2, 1 - point[j]
                new_value += 10 * steep**2 + flat**2
                new_gradient[j] += -40 * point[j] * steep - 2 * flat
                new_gradient[j + 1] += 20 * steep
            if count < 0 or new_value <= value + 1e-4 * step * slope or step <= 1e-10:
                break
            step /= 2
        if count >= 0:
            i = count % KEPT
            curvatures[i] = 0.0
            for j in range(n):
                steps[i, j], changes[i, j] = step * direction[j], new_gradient[j] - gradient[j]
                curvatures[i] += steps[i, j] * changes[i, j]
                x[j] = point[j]
        value = new_value
        gradient, new_gradient = new_gradient, gradient
    return x


# --- Sinkhorn: transport between two histograms --------------------------------------------------------------


def transport_data(n: int) -> tuple[np.ndarray, ...]:
    return uniform(n, n), np.full(n, 1 / n), np.full(n, 1 / n), 50


def transport_numpy(xp: Array, cost: Array, a: Array, b: Array, steps: int) -> Array:
    kernel = xp.exp(-5 * cost)
    u, v = xp.ones_like(a), xp.ones_like(b)
    for _ in range(steps):
        u = a / (kernel @ v)
        v = b / (kernel.T @ u)
    return u[:, None] * kernel * v


def transport_jax(jnp: Array, lax: Array, cost: Array, a: Array, b: Array, steps: int) -> Array:
    kernel = jnp.exp(-5 * cost)

    def step(_: Array, carry: Array) -> Array:
        u = a / (kernel @ carry[1])
        return u, b / (kernel.T @ u)

    u, v = lax.fori_loop(0, steps, step, (jnp.ones_like(a), jnp.ones_like(b)))
    return u[:, None] * kernel * v


def transport_loops(cost: Array, a: Array, b: Array, steps: int) -> Array:
    n, m = cost.shape
    kernel, u, v, sums = np.empty((n, m)), np.ones(n), np.ones(m), np.zeros(m)
    for i in prange(n):
        for j in range(m):
            kernel[i, j] = np.exp(-5 * cost[i, j])
    for _ in range(steps):
        for i in prange(n):
            total = 0.0
            for j in range(m):
                total += kernel[i, j] * v[j]
            u[i] = a[i] / total
        sums[:] = 0.0
        for i in range(n):
            for j in range(m):
                sums[j] += kernel[i, j] * u[i]
        for j in range(m):
            v[j] = b[j] / sums[j]
    for i in prange(n):
        for j in range(m):
            kernel[i, j] *= u[i] * v[j]
    return kernel


ROWS = (
    Program(
        "adaptive Dormand-Prince",
        ode_data,
        *(ode_numpy, ode_jax, ode_loops),
        sizes=(2, 64, 2048),
        tiny=2,
        tolerance=1e8,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "Newton's method, each element",
        lambda n: (6 * uniform(n), 0.8 * uniform(n, seed=1)),
        *(kepler_numpy, kepler_jax, kepler_loops),
        sizes=(100, 10_000, 300_000),
        tiny=5,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "L-BFGS",
        minimum_data,
        *(minimum_numpy, minimum_jax, minimum_loops),
        sizes=(10, 300, 10_000),
        tiny=4,
        tolerance=1e10,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "Sinkhorn's transport",
        transport_data,
        *(transport_numpy, transport_jax, transport_loops),
        sizes=(16, 128, 512),
        tiny=4,
    ),
)
