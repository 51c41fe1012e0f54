"""The programs as loops, as one writes them for numba: what is here may use `fastmath`, `exactly` does not."""

from __future__ import annotations

import math
from typing import Any

import numba
import numpy as np
from numba import prange

Array = Any

threaded = numba.njit(parallel=True, fastmath=True)
plain = numba.njit(fastmath=True)


def exactly(kernel: Any) -> Any:
    """Compile the same loops without `fastmath`: each operation is rounded, sums are added in the order of the loop."""
    return numba.njit(kernel.py_func, parallel="parallel" in kernel.targetoptions)


@threaded
def triad(x: Array, y: Array, out: Array) -> None:
    for i in prange(x.size):
        out[i] = x[i] + 3 * y[i]


@threaded
def chain(x: Array) -> Array:
    one, two = x.dtype.type(1), x.dtype.type(2)
    y = np.empty_like(x)
    for i in prange(x.size):
        y[i] = math.exp(-x[i] * x[i]) if math.tanh(two * x[i] + one) > 0 else x[i] / two
    return y


@threaded
def black_scholes(s: Array, k: Array, t: Array) -> Array:
    rate, sigma = s.dtype.type(0.02), s.dtype.type(0.3)
    half, root = s.dtype.type(0.5), s.dtype.type(math.sqrt(0.5))
    one = s.dtype.type(1)
    price = np.empty_like(s)
    for i in prange(s.size):
        spread = sigma * math.sqrt(t[i])
        d1 = (math.log(s[i] / k[i]) + (rate + half * sigma * sigma) * t[i]) / spread
        above = half * (one + math.erf(d1 * root))
        below = half * (one + math.erf((d1 - spread) * root))
        price[i] = s[i] * above - k[i] * math.exp(-rate * t[i]) * below
    return price


@threaded
def softmax(x: Array) -> Array:
    y = np.empty_like(x)
    for i in prange(x.shape[0]):
        row, out = x[i], y[i]
        greatest = row[0]
        for j in range(row.size):
            greatest = max(greatest, row[j])
        total = x.dtype.type(0)
        for j in range(row.size):
            out[j] = math.exp(row[j] - greatest)
            total += out[j]
        for j in range(row.size):
            out[j] /= total
    return y


@threaded
def layer_norm(x: Array, gain: Array, offset: Array) -> Array:
    y = np.empty_like(x)
    count = x.dtype.type(x.shape[1])
    for i in prange(x.shape[0]):
        row, out = x[i], y[i]
        mean = x.dtype.type(0)
        for j in range(row.size):
            mean += row[j]
        mean /= count
        square = x.dtype.type(0)
        for j in range(row.size):
            square += (row[j] - mean) * (row[j] - mean)
        scale = x.dtype.type(1) / math.sqrt(square / count + x.dtype.type(1e-5))
        for j in range(row.size):
            out[j] = (row[j] - mean) * scale * gain[j] + offset[j]
    return y


@threaded
def nearest(a: Array, b: Array) -> Array:
    columns = np.ascontiguousarray(b.T)
    least = np.empty(a.shape[0], a.dtype)
    for i in prange(a.shape[0]):
        squares = np.zeros(b.shape[0], a.dtype)
        for f in range(a.shape[1]):
            coordinate, column = a[i, f], columns[f]
            for j in range(column.size):
                squares[j] += (coordinate - column[j]) * (coordinate - column[j])
        smallest = squares[0]
        for j in range(squares.size):
            smallest = min(smallest, squares[j])
        least[i] = math.sqrt(smallest)
    return least


@threaded
def outer_minimum(a: Array, b: Array) -> Array:
    least = np.empty_like(a)
    for i in prange(a.size):
        smallest = a[i] + b[0]
        for j in range(b.size):
            smallest = min(smallest, a[i] + b[j])
        least[i] = smallest
    return least


@threaded
def depthwise(x: Array, kernel: Array) -> Array:
    n, h, w, channels = x.shape
    y = np.zeros_like(x)
    for row in prange(n * h):
        image, i = row // h, row % h
        for j in range(w):
            out = y[image, i, j]
            for di in range(max(0, 1 - i), min(3, h + 1 - i)):
                for dj in range(max(0, 1 - j), min(3, w + 1 - j)):
                    near, weights = x[image, i + di - 1, j + dj - 1], kernel[di, dj, 0]
                    for c in range(channels):
                        out[c] += near[c] * weights[c]
    return y


@threaded
def max_pool(x: Array) -> Array:
    h, w = (x.shape[1] - 3) // 2 + 1, (x.shape[2] - 3) // 2 + 1
    y = np.empty((x.shape[0], h, w, x.shape[3]), x.dtype)
    for row in prange(x.shape[0] * h):
        image, i = row // h, row % h
        for j in range(w):
            out = y[image, i, j]
            out[:] = x[image, 2 * i, 2 * j]
            for offset in range(1, 9):
                near = x[image, 2 * i + offset // 3, 2 * j + offset % 3]
                for c in range(out.size):
                    out[c] = max(out[c], near[c])
    return y


@threaded
def unpool(x: Array, gradient: Array) -> Array:
    result = np.zeros_like(x)
    for image in prange(x.shape[0]):
        for i in range(gradient.shape[1]):
            for j in range(gradient.shape[2]):
                for c in range(x.shape[3]):
                    best, at = x[image, 2 * i, 2 * j, c], 0
                    for offset in range(1, 9):
                        value = x[image, 2 * i + offset // 3, 2 * j + offset % 3, c]
                        if value > best:
                            best, at = value, offset
                    result[image, 2 * i + at // 3, 2 * j + at % 3, c] += gradient[image, i, j, c]
    return result


@threaded
def gather(rows: Array, indices: Array) -> Array:
    result = np.empty((indices.size, rows.shape[1]), rows.dtype)
    for i in prange(indices.size):
        for c in range(rows.shape[1]):
            result[i, c] = rows[indices[i], c]
    return result


@plain
def scatter_add(rows: Array, indices: Array, updates: Array) -> Array:
    result = rows.copy()
    for i in range(indices.size):
        for c in range(rows.shape[1]):
            result[indices[i], c] += updates[i, c]
    return result


@plain
def segment_sum(updates: Array, indices: Array, count: int) -> Array:
    result = np.zeros((count, updates.shape[1]), updates.dtype)
    for i in range(indices.size):
        for c in range(updates.shape[1]):
            result[indices[i], c] += updates[i, c]
    return result


@threaded
def jacobi(u: Array, steps: int) -> Array:
    quarter = u.dtype.type(0.25)
    new, old = u.copy(), u.copy()
    for _ in range(steps):
        new, old = old, new
        for i in prange(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                new[i, j] = quarter * (old[i - 1, j] + old[i + 1, j] + old[i, j - 1] + old[i, j + 1])
    return new


@threaded
def mandelbrot(real: Array, imaginary: Array, steps: int) -> Array:
    counts = np.zeros(real.shape, np.int32)
    for i in prange(real.shape[0]):
        for j in range(real.shape[1]):
            a = b = real.dtype.type(0)
            count = 0
            while count < steps and a * a + b * b <= 4:
                a, b = a * a - b * b + real[i, j], a * b + a * b + imaginary[i, j]
                count += 1
            counts[i, j] = count
    return counts


@plain
def decay(rate: Array, steps: int) -> Array:
    total = rate.dtype.type(0)
    for _ in range(steps):
        total = total * rate[()] + rate.dtype.type(1)
    return np.asarray(total)


@plain
def smooth(x: Array, rate: Array) -> Array:
    result = np.empty_like(x)
    total = x.dtype.type(0)
    for i in range(x.size):
        total = total * rate[()] + x[i]
        result[i] = total
    return result


@plain
def add(x: Array, y: Array) -> Array:
    return x + y


@plain
def seven_operations(x: Array, y: Array) -> Array:
    half = x.dtype.type(0.5)
    return np.maximum(np.sqrt(np.abs((x * y + x) * half - y)), x)


@plain
def twenty_operations(x: Array) -> Array:
    for scale in (x.dtype.type(0.5), x.dtype.type(2), x.dtype.type(1.5)):
        x = np.sqrt(np.abs(np.tanh(x * scale) + x / scale))
    return np.exp(x) * x


@plain
def cumsum(x: Array) -> Array:
    y = np.empty_like(x)
    total = x.dtype.type(0)
    for i in range(x.size):
        total += x[i]
        y[i] = total
    return y


@plain
def argmax(x: Array) -> np.intp:
    return np.argmax(x)


@threaded
def kmeans_step(x: Array, centres: Array) -> Array:
    labels = np.empty(x.shape[0], np.int64)
    for i in prange(x.shape[0]):
        least, label = x.dtype.type(np.inf), 0
        for k in range(centres.shape[0]):
            square = x.dtype.type(0)
            for f in range(x.shape[1]):
                square += (x[i, f] - centres[k, f]) * (x[i, f] - centres[k, f])
            if square < least:
                least, label = square, k
        labels[i] = label
    sums, counts = np.zeros_like(centres), np.zeros(centres.shape[0], x.dtype)
    for i in range(x.shape[0]):
        counts[labels[i]] += 1
        for f in range(x.shape[1]):
            sums[labels[i], f] += x[i, f]
    for k in range(centres.shape[0]):
        for f in range(x.shape[1]):
            sums[k, f] /= max(counts[k], x.dtype.type(1))
    return sums
