"""Filters of images: edges, medians, a bilateral filter, thresholds that spread, equalisation, boxes."""

from __future__ import annotations

import numpy as np

from program_rows.row import VALUE_DECIDES, VALUE_SHAPES, Array, Program, integers, prange, uniform

# --- Sobel ---------------------------------------------------------------------------------------------------


def sobel_numpy(xp: Array, image: Array) -> Array:
    p = xp.pad(image, 1, mode="edge")
    across = p[:-2, 2:] + 2 * p[1:-1, 2:] + p[2:, 2:] - p[:-2, :-2] - 2 * p[1:-1, :-2] - p[2:, :-2]
    down = p[2:, :-2] + 2 * p[2:, 1:-1] + p[2:, 2:] - p[:-2, :-2] - 2 * p[:-2, 1:-1] - p[:-2, 2:]
    return xp.sqrt(across**2 + down**2)


def sobel_jax(jnp: Array, lax: Array, image: Array) -> Array:
    return sobel_numpy(jnp, image)


def sobel_loops(image: Array) -> Array:
    n, m = image.shape
    result = np.empty_like(image)
    for i in prange(n):
        up, low = max(i - 1, 0), min(i + 1, n - 1)
        for j in range(m):
            left, right = max(j - 1, 0), min(j + 1, m - 1)
            a, b, c = image[up, left], image[up, j], image[up, right]
            d, f = image[i, left], image[i, right]
            g, h, k = image[low, left], image[low, j], image[low, right]
            across, down = c + 2 * f + k - a - 2 * d - g, g + 2 * h + k - a - 2 * b - c
            result[i, j] = np.sqrt(across * across + down * down)
    return result


# --- The median of nine --------------------------------------------------------------------------------------


def median_numpy(xp: Array, image: Array) -> Array:
    n, m = image.shape
    p = xp.pad(image, 1, mode="edge")
    return xp.median(xp.stack([p[i : i + n, j : j + m] for i in range(3) for j in range(3)]), axis=0)


def median_jax(jnp: Array, lax: Array, image: Array) -> Array:
    n, m = image.shape
    p = jnp.pad(image, 1, mode="edge")
    return jnp.sort(jnp.stack([p[i : i + n, j : j + m] for i in range(3) for j in range(3)]), axis=0)[4]


def median_loops(image: Array) -> Array:
    n, m = image.shape
    result = np.empty_like(image)
    for i in prange(n):
        nine = np.empty(9)
        for j in range(m):
            count = 0
            for di in range(-1, 2):
                for dj in range(-1, 2):
                    value = image[min(max(i + di, 0), n - 1), min(max(j + dj, 0), m - 1)]
                    k = count
                    while k > 0 and nine[k - 1] > value:
                        nine[k] = nine[k - 1]
                        k -= 1
                    nine[k] = value
                    count += 1
            result[i, j] = nine[4]
    return result


# --- Bilateral -----------------------------------------------------------------------------------------------

REACH = 3


def bilateral_numpy(xp: Array, image: Array) -> Array:
    n, m = image.shape
    p = xp.pad(image, REACH, mode="edge")
    total, weights = xp.zeros_like(image), xp.zeros_like(image)
    for i in range(2 * REACH + 1):
        for j in range(2 * REACH + 1):
            near = p[i : i + n, j : j + m]
            square = (i - REACH) ** 2 + (j - REACH) ** 2
            weight = xp.exp(-square / 8.0 - (near - image) ** 2 / 0.08)
            total, weights = total + weight * near, weights + weight
    return total / weights


def bilateral_jax(jnp: Array, lax: Array, image: Array) -> Array:
    n, m = image.shape
    p = jnp.pad(image, REACH, mode="edge")
    width = 2 * REACH + 1

    def add(k: Array, carry: Array) -> Array:
        total, weights = carry
        i, j = k // width, k % width
        near = lax.dynamic_slice(p, (i, j), (n, m))
        square = (i - REACH) ** 2 + (j - REACH) ** 2
        weight = jnp.exp(-square / 8.0 - (near - image) ** 2 / 0.08)
        return total + weight * near, weights + weight

    zeros = jnp.zeros_like(image)
    total, weights = lax.fori_loop(0, width * width, add, (zeros, zeros))
    return total / weights


def bilateral_loops(image: Array) -> Array:
    n, m = image.shape
    result = np.empty_like(image)
    for i in prange(n):
        for j in range(m):
            total = weights = 0.0
            for di in range(-REACH, REACH + 1):
                for dj in range(-REACH, REACH + 1):
                    near = image[min(max(i + di, 0), n - 1), min(max(j + dj, 0), m - 1)]
                    weight = np.exp(-(di * di + dj * dj) / 8.0 - (near - image[i, j]) ** 2 / 0.08)
                    total += weight * near
                    weights += weight
            result[i, j] = total / weights
    return result


# --- Thresholds: weak pixels that touch strong ones ----------------------------------------------------------


def edges_numpy(xp: Array, image: Array) -> Array:
    strong, weak = image > 0.98, image > 0.5
    while True:
        p = xp.pad(strong, 1)
        near = p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]
        spread = strong | (near & weak)
        if (spread == strong).all():
            return strong
        strong = spread


def edges_jax(jnp: Array, lax: Array, image: Array) -> Array:
    weak = image > 0.5

    def body(carry: Array) -> Array:
        strong, _ = carry
        p = jnp.pad(strong, 1)
        near = p[:-2, 1:-1] | p[2:, 1:-1] | p[1:-1, :-2] | p[1:-1, 2:]
        spread = strong | (near & weak)
        return spread, (spread != strong).any()

    return lax.while_loop(lambda carry: carry[1], body, (image > 0.98, jnp.asarray(True)))[0]


def edges_loops(image: Array) -> Array:
    n, m = image.shape
    strong = image > 0.98
    stack, count = np.empty((n * m, 2), np.int64), 0
    for i in range(n):
        for j in range(m):
            if strong[i, j]:
                stack[count, 0], stack[count, 1] = i, j
                count += 1
    while count > 0:
        count -= 1
        i, j = stack[count, 0], stack[count, 1]
        for k in range(4):
            a, b = i + (k == 0) - (k == 1), j + (k == 2) - (k == 3)
            if 0 <= a < n and 0 <= b < m and not strong[a, b] and image[a, b] > 0.5:
                strong[a, b] = True
                stack[count, 0], stack[count, 1] = a, b
                count += 1
    return strong


# --- Equalisation of the histogram ---------------------------------------------------------------------------


def equalise_numpy(xp: Array, image: Array) -> Array:
    counts = xp.bincount(image.ravel(), minlength=256)
    levels = xp.cumsum(counts) * 255 // image.size
    return levels[image]


def equalise_jax(jnp: Array, lax: Array, image: Array) -> Array:
    counts = jnp.zeros(256, dtype="int64").at[image.ravel()].add(1)
    levels = jnp.cumsum(counts) * 255 // image.size
    return levels[image]


def equalise_loops(image: Array) -> Array:
    n, m = image.shape
    levels, result = np.zeros(256, np.int64), np.empty_like(image)
    for i in range(n):
        for j in range(m):
            levels[image[i, j]] += 1
    for k in range(1, 256):
        levels[k] += levels[k - 1]
    for i in prange(n):
        for j in range(m):
            result[i, j] = levels[image[i, j]] * 255 // image.size
    return result


# --- Distances to the nearest mark, in two sweeps ------------------------------------------------------------


def distances_numpy(xp: Array, image: Array) -> Array:
    distance = xp.where(image > 0.99, 0.0, 1e3)
    for i in range(1, image.shape[0]):
        distance[i] = xp.minimum(distance[i], distance[i - 1] + 1)
    for i in range(image.shape[0] - 2, -1, -1):
        distance[i] = xp.minimum(distance[i], distance[i + 1] + 1)
    for j in range(1, image.shape[1]):
        distance[:, j] = xp.minimum(distance[:, j], distance[:, j - 1] + 1)
    for j in range(image.shape[1] - 2, -1, -1):
        distance[:, j] = xp.minimum(distance[:, j], distance[:, j + 1] + 1)
    return distance


def distances_jax(jnp: Array, lax: Array, image: Array) -> Array:
    def step(before: Array, row: Array) -> Array:
        row = jnp.minimum(row, before + 1)
        return row, row

    def sweeps(distance: Array) -> Array:
        start = jnp.full(distance.shape[1], 1e3)
        distance = lax.scan(step, start, distance)[1]
        return lax.scan(step, start, distance, reverse=True)[1]

    return sweeps(sweeps(jnp.where(image > 0.99, 0.0, 1e3)).T).T


def distances_loops(image: Array) -> Array:
    n, m = image.shape
    distance = np.empty((n, m))
    for i in range(n):
        for j in range(m):
            distance[i, j] = 0.0 if image[i, j] > 0.99 else 1e3
            if i > 0:
                distance[i, j] = min(distance[i, j], distance[i - 1, j] + 1)
    for i in range(n - 2, -1, -1):
        for j in range(m):
            distance[i, j] = min(distance[i, j], distance[i + 1, j] + 1)
    for i in prange(n):
        for j in range(1, m):
            distance[i, j] = min(distance[i, j], distance[i, j - 1] + 1)
        for j in range(m - 2, -1, -1):
            distance[i, j] = min(distance[i, j], distance[i, j + 1] + 1)
    return distance


# --- Boxes that overlap a better one -------------------------------------------------------------------------


def suppress_numpy(xp: Array, boxes: Array, scores: Array) -> Array:
    order = xp.argsort(-scores)
    boxes = boxes[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = xp.ones(boxes.shape[0], dtype=bool)
    for i in range(boxes.shape[0]):
        if keep[i]:
            low = xp.maximum(boxes[i, :2], boxes[i + 1 :, :2])
            high = xp.minimum(boxes[i, 2:], boxes[i + 1 :, 2:])
            sides = xp.maximum(high - low, 0.0)
            common = sides[:, 0] * sides[:, 1]
            keep[i + 1 :] &= common <= 0.3 * (areas[i] + areas[i + 1 :] - common)
    return order, keep


def suppress_jax(jnp: Array, lax: Array, boxes: Array, scores: Array) -> Array:
    order = jnp.argsort(-scores)
    boxes = boxes[order]
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    count = boxes.shape[0]
    index = jnp.arange(count)

    def step(i: Array, keep: Array) -> Array:
        low = jnp.maximum(boxes[i, :2], boxes[:, :2])
        high = jnp.minimum(boxes[i, 2:], boxes[:, 2:])
        sides = jnp.maximum(high - low, 0.0)
        common = sides[:, 0] * sides[:, 1]
        overlaps = common > 0.3 * (areas[i] + areas - common)
        return keep & ~(overlaps & keep[i] & (index > i))

    return order, lax.fori_loop(0, count, step, jnp.ones(count, dtype=bool))


def suppress_loops(boxes: Array, scores: Array) -> Array:
    order = np.argsort(-scores)
    count = order.size
    areas = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    keep = np.ones(count, np.bool_)
    for i in range(count):
        if keep[i]:
            p = order[i]
            for j in range(i + 1, count):
                if keep[j]:
                    q = order[j]
                    wide = max(min(boxes[p, 2], boxes[q, 2]) - max(boxes[p, 0], boxes[q, 0]), 0.0)
                    high = max(min(boxes[p, 3], boxes[q, 3]) - max(boxes[p, 1], boxes[q, 1]), 0.0)
                    common = wide * high
                    if common > 0.3 * (areas[p] + areas[q] - common):
                        keep[j] = False
    return order, keep


def boxes_data(count: int) -> tuple[np.ndarray, ...]:
    corners = uniform(count, 2) * 10
    return np.concatenate([corners, corners + 1 + uniform(count, 2, seed=1) * 2], axis=1), uniform(
        count, seed=2
    )


PIXELS = (32, 128, 512)

ROWS = (
    Program("Sobel", lambda n: (uniform(n, n),), sobel_numpy, sobel_jax, sobel_loops, sizes=PIXELS, tiny=5),
    Program(
        "median of nine", lambda n: (uniform(n, n),), median_numpy, median_jax, median_loops, PIXELS, tiny=4
    ),
    Program(
        "bilateral filter",
        lambda n: (uniform(n, n),),
        bilateral_numpy,
        bilateral_jax,
        bilateral_loops,
        PIXELS,
        tiny=5,
    ),
    Program(
        "thresholds that spread",
        lambda n: (uniform(n, n),),
        *(edges_numpy, edges_jax, edges_loops),
        sizes=PIXELS,
        tiny=12,
        untraceable=VALUE_DECIDES,
    ),
    Program(
        "equalised histogram",
        lambda n: (integers(256, n, n) ** 2 // 256,),
        *(equalise_numpy, equalise_jax, equalise_loops),
        sizes=PIXELS,
        tiny=4,
        untraceable=VALUE_SHAPES,
    ),
    Program(
        "distances to marks",
        lambda n: (uniform(n, n),),
        *(distances_numpy, distances_jax, distances_loops),
        sizes=PIXELS,
        tiny=12,
    ),
    Program(
        "boxes that overlap",
        boxes_data,
        *(suppress_numpy, suppress_jax, suppress_loops),
        sizes=(30, 300, 2000),
        tiny=6,
        untraceable=VALUE_DECIDES,
    ),
)
