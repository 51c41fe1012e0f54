"""Networks forward, in float32: recurrent cells, attention, a small convolutional network."""

from __future__ import annotations

import numpy as np

from program_rows.row import Array, Program, normal, prange

WIDTH, BATCH = 64, 16


def weights(*shape: int, seed: int) -> np.ndarray:
    return normal(*shape, seed=seed, dtype="float32") / np.float32(np.sqrt(shape[0]))


def cell_data(gates: int, steps: int) -> tuple[np.ndarray, ...]:
    """Inputs, and the weights of inputs, of states and the offsets, for so many gates."""
    x = normal(steps, BATCH, WIDTH, dtype="float32")
    sizes = gates * WIDTH
    return (
        x,
        weights(WIDTH, sizes, seed=1),
        weights(WIDTH, sizes, seed=2),
        normal(sizes, seed=3, dtype="float32"),
    )


def sigmoid(xp: Array, x: Array) -> Array:
    return 1 / (1 + xp.exp(-x))


# --- A recurrent layer ---------------------------------------------------------------------------------------


def recurrent_numpy(xp: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    h, outputs = xp.zeros(x.shape[1:], dtype=x.dtype), []
    for t in range(x.shape[0]):
        h = xp.tanh(x[t] @ w + h @ u + b)
        outputs.append(h)
    return xp.stack(outputs)


def recurrent_jax(jnp: Array, lax: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    def step(h: Array, x: Array) -> Array:
        h = jnp.tanh(x @ w + h @ u + b)
        return h, h

    return lax.scan(step, jnp.zeros(x.shape[1:], dtype=x.dtype), x)[1]


def recurrent_loops(x: Array, w: Array, u: Array, b: Array) -> Array:
    outputs, h = np.empty_like(x), np.zeros_like(x[0])
    for t in range(x.shape[0]):
        h = np.tanh(np.dot(x[t], w) + np.dot(h, u) + b)
        outputs[t] = h
    return outputs


# --- LSTM ----------------------------------------------------------------------------------------------------


def lstm_numpy(xp: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    h = c = xp.zeros(x.shape[1:], dtype=x.dtype)
    for t in range(x.shape[0]):
        enters, forgets, leaves, new = xp.split(x[t] @ w + h @ u + b, 4, axis=1)
        c = sigmoid(xp, forgets) * c + sigmoid(xp, enters) * xp.tanh(new)
        h = sigmoid(xp, leaves) * xp.tanh(c)
    return h, c


def lstm_jax(jnp: Array, lax: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    def step(carry: Array, x: Array) -> Array:
        h, c = carry
        enters, forgets, leaves, new = jnp.split(x @ w + h @ u + b, 4, axis=1)
        c = sigmoid(jnp, forgets) * c + sigmoid(jnp, enters) * jnp.tanh(new)
        return (sigmoid(jnp, leaves) * jnp.tanh(c), c), None

    zeros = jnp.zeros(x.shape[1:], dtype=x.dtype)
    return lax.scan(step, (zeros, zeros), x)[0]


def lstm_loops(x: Array, w: Array, u: Array, b: Array) -> Array:
    steps, batch, width = x.shape
    one, h, c = np.float32(1), np.zeros_like(x[0]), np.zeros_like(x[0])
    for t in range(steps):
        gates = np.dot(x[t], w) + np.dot(h, u)
        for i in range(batch):
            for j in range(width):
                enters = one / (one + np.exp(-(gates[i, j] + b[j])))
                forgets = one / (one + np.exp(-(gates[i, width + j] + b[width + j])))
                leaves = one / (one + np.exp(-(gates[i, 2 * width + j] + b[2 * width + j])))
                new = np.tanh(gates[i, 3 * width + j] + b[3 * width + j])
                c[i, j] = forgets * c[i, j] + enters * new
                h[i, j] = leaves * np.tanh(c[i, j])
    return h, c


# --- GRU -----------------------------------------------------------------------------------------------------


def gru_numpy(xp: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    h = xp.zeros(x.shape[1:], dtype=x.dtype)
    for t in range(x.shape[0]):
        fresh, kept = x[t] @ w + b, h @ u
        reset = sigmoid(xp, fresh[:, :WIDTH] + kept[:, :WIDTH])
        update = sigmoid(xp, fresh[:, WIDTH : 2 * WIDTH] + kept[:, WIDTH : 2 * WIDTH])
        new = xp.tanh(fresh[:, 2 * WIDTH :] + reset * kept[:, 2 * WIDTH :])
        h = (1 - update) * new + update * h
    return h


def gru_jax(jnp: Array, lax: Array, x: Array, w: Array, u: Array, b: Array) -> Array:
    def step(h: Array, x: Array) -> Array:
        fresh, kept = x @ w + b, h @ u
        reset = sigmoid(jnp, fresh[:, :WIDTH] + kept[:, :WIDTH])
        update = sigmoid(jnp, fresh[:, WIDTH : 2 * WIDTH] + kept[:, WIDTH : 2 * WIDTH])
        new = jnp.tanh(fresh[:, 2 * WIDTH :] + reset * kept[:, 2 * WIDTH :])
        return (1 - update) * new + update * h, None

    return lax.scan(step, jnp.zeros(x.shape[1:], dtype=x.dtype), x)[0]


def gru_loops(x: Array, w: Array, u: Array, b: Array) -> Array:
    steps, batch, width = x.shape
    one, h = np.float32(1), np.zeros_like(x[0])
    for t in range(steps):
        fresh, kept = np.dot(x[t], w), np.dot(h, u)
        for i in range(batch):
            for j in range(width):
                reset = one / (one + np.exp(-(fresh[i, j] + b[j] + kept[i, j])))
                update = one / (one + np.exp(-(fresh[i, width + j] + b[width + j] + kept[i, width + j])))
                new = np.tanh(fresh[i, 2 * width + j] + b[2 * width + j] + reset * kept[i, 2 * width + j])
                h[i, j] = (one - update) * new + update * h[i, j]
    return h


# --- Causal attention with four heads ------------------------------------------------------------------------

HEADS = 4


def attention_data(n: int) -> tuple[np.ndarray, ...]:
    return normal(n, WIDTH, dtype="float32"), weights(WIDTH, 3 * WIDTH, seed=1), weights(WIDTH, WIDTH, seed=2)


def attention_numpy(xp: Array, x: Array, w: Array, out: Array) -> Array:
    n, width = x.shape
    heads = (x @ w).reshape(n, 3, HEADS, width // HEADS)
    q, k, v = heads[:, 0].transpose(1, 0, 2), heads[:, 1].transpose(1, 2, 0), heads[:, 2].transpose(1, 0, 2)
    scores = q @ k * float((width // HEADS) ** -0.5)
    scores = xp.where(xp.tril(xp.ones((n, n), dtype=bool)), scores, -1e30)
    powers = xp.exp(scores - scores.max(axis=-1, keepdims=True))
    mixed = powers / powers.sum(axis=-1, keepdims=True) @ v
    return mixed.transpose(1, 0, 2).reshape(n, width) @ out


def attention_jax(jnp: Array, lax: Array, x: Array, w: Array, out: Array) -> Array:
    return attention_numpy(jnp, x, w, out)


def attention_loops(x: Array, w: Array, out: Array) -> Array:
    n, width = x.shape
    size = width // HEADS
    heads = np.dot(x, w)
    mixed = np.zeros_like(x)
    scale = np.float32(1) / np.sqrt(np.float32(size))
    for i in prange(n):
        scores = np.empty(i + 1, np.float32)
        for head in range(HEADS):
            q, k, v = head * size, width + head * size, 2 * width + head * size
            greatest = np.float32(-np.inf)
            for j in range(i + 1):
                score = np.float32(0)
                for f in range(size):
                    score += heads[i, q + f] * heads[j, k + f]
                scores[j] = score * scale
                greatest = max(greatest, scores[j])
            total = np.float32(0)
            for j in range(i + 1):
                power = np.exp(scores[j] - greatest)
                total += power
                for f in range(size):
                    mixed[i, q + f] += power * heads[j, v + f]
            for f in range(size):
                mixed[i, q + f] /= total
    return np.dot(mixed, out)


# --- Two convolutions with pools, and a dense layer ----------------------------------------------------------

SIDE = 16


def convolutional_data(n: int) -> tuple[np.ndarray, ...]:
    images = normal(n, SIDE, SIDE, 3, dtype="float32")
    last = weights((SIDE // 4) ** 2 * 16, 10, seed=3)
    return images, weights(3, 3, 3, 8, seed=1) / 3, weights(3, 3, 8, 16, seed=2) / 5, last


def convolutional_numpy(xp: Array, x: Array, one: Array, two: Array, last: Array) -> Array:
    for kernel in (one, two):
        n, h, w, _ = x.shape
        padded = xp.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
        x = sum(padded[:, i : i + h, j : j + w] @ kernel[i, j] for i in range(3) for j in range(3))
        x = xp.maximum(x, 0).reshape(n, h // 2, 2, w // 2, 2, -1).max(axis=(2, 4))
    return x.reshape(x.shape[0], -1) @ last


def convolutional_jax(jnp: Array, lax: Array, x: Array, one: Array, two: Array, last: Array) -> Array:
    for kernel in (one, two):
        x = lax.conv_general_dilated(x, kernel, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
        x = jnp.maximum(x, 0)
        x = lax.reduce_window(x, -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(x.shape[0], -1) @ last


def convolutional_loops(x: Array, one: Array, two: Array, last: Array) -> Array:
    images = x.shape[0]
    middle = np.zeros((images, SIDE // 2, SIDE // 2, 8), np.float32)
    end = np.zeros((images, SIDE // 4, SIDE // 4, 16), np.float32)
    for image in prange(images):
        for layer in range(2):
            source, kernel, pooled = (
                (x[image], one, middle[image]) if layer == 0 else (middle[image], two, end[image])
            )
            h, w, channels = source.shape
            sums = np.empty(kernel.shape[3], np.float32)
            for i in range(h):
                for j in range(w):
                    sums[:] = np.float32(0)
                    for di in range(max(0, 1 - i), min(3, h + 1 - i)):
                        for dj in range(max(0, 1 - j), min(3, w + 1 - j)):
                            for c in range(channels):
                                value = source[i + di - 1, j + dj - 1, c]
                                for k in range(sums.size):
                                    sums[k] += value * kernel[di, dj, c, k]
                    for k in range(sums.size):
                        pooled[i // 2, j // 2, k] = max(pooled[i // 2, j // 2, k], sums[k])
    return np.dot(end.reshape(images, -1), last)


STEPS = (5, 50, 500)

ROWS = (
    Program(
        "recurrent layer",
        lambda n: cell_data(1, n),
        recurrent_numpy,
        recurrent_jax,
        recurrent_loops,
        STEPS,
        3,
    ),
    Program("LSTM", lambda n: cell_data(4, n), lstm_numpy, lstm_jax, lstm_loops, STEPS, 3),
    Program("GRU", lambda n: cell_data(3, n), gru_numpy, gru_jax, gru_loops, STEPS, 3),
    Program(
        "causal attention",
        attention_data,
        attention_numpy,
        attention_jax,
        attention_loops,
        (16, 128, 1024),
        4,
    ),
    Program(
        "small convolutional network",
        convolutional_data,
        *(convolutional_numpy, convolutional_jax, convolutional_loops),
        sizes=(1, 16, 256),
        tiny=1,
    ),
)
