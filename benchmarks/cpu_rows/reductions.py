"""Rows (c) softmax and layer norm, (d) minima of rows that are never stored, (k) running sums, argmax, sort,
and (l) whole functions in NumPy's style."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from measure import Contenders

from cpu_rows.contenders import Function, Row, contenders, random

ROWS_AND_COLUMNS = (4096, 1024)
POINTS = 4096
#: NumPy subtracts so many points at once from all others.
BLOCK = 64


def softmax_program(xp: Any, lax: Any) -> Function:
    # amax: torch's `max` along an axis gives indices too.
    def function(x: Any) -> Any:
        powers = xp.exp(x - xp.amax(x, axis=-1, keepdims=True))
        return powers / xp.sum(powers, axis=-1, keepdims=True)

    return function


def softmax(dtype: np.dtype, _: int) -> Contenders:
    return contenders(
        softmax_program, random(dtype, *ROWS_AND_COLUMNS), numba_kernel="softmax", by_torch=True
    )


def layer_norm_program(xp: Any, lax: Any) -> Function:
    def function(x: Any, gain: Any, offset: Any) -> Any:
        centred = x - xp.mean(x, axis=-1, keepdims=True)
        variance = xp.mean(centred**2, axis=-1, keepdims=True)
        return centred / xp.sqrt(variance + 1e-5) * gain + offset

    return function


def layer_norm(dtype: np.dtype, _: int) -> Contenders:
    gain, offset = random(dtype, 1024, seed=1), random(dtype, 1024, seed=2)
    x = random(dtype, *ROWS_AND_COLUMNS)
    return contenders(layer_norm_program, x, gain, offset, numba_kernel="layer_norm", by_torch=True)


def nearest_program(xp: Any, lax: Any) -> Function:
    def function(a: Any, b: Any) -> Any:
        squares = xp.sum((a[:, None, :] - b[None, :, :]) ** 2, axis=-1)
        return xp.min(xp.sqrt(squares), axis=1)

    return function


def nearest(dtype: np.dtype, features: int) -> Contenders:
    a, b = random(dtype, POINTS, features), random(dtype, POINTS, features, seed=1)
    function = nearest_program(np, None)

    def in_blocks() -> np.ndarray:
        # The whole difference of 64 features would be 8 GB.
        return np.concatenate([function(a[i : i + BLOCK], b) for i in range(0, POINTS, BLOCK)])

    return contenders(nearest_program, a, b, by_numpy=in_blocks, numba_kernel="nearest")


def nearest_by_matmul_program(xp: Any, lax: Any) -> Function:
    def function(a: Any, b: Any) -> Any:
        lengths = xp.sum(a * a, axis=1)[:, None] + xp.sum(b * b, axis=1)[None, :]
        squares = lengths - 2 * xp.matmul(a, b.T)
        return xp.sqrt(xp.maximum(xp.min(squares, axis=1), 0))

    return function


def nearest_by_matmul(dtype: np.dtype, features: int) -> Contenders:
    a, b = random(dtype, POINTS, features), random(dtype, POINTS, features, seed=1)
    return contenders(nearest_by_matmul_program, a, b)


def outer_minimum(dtype: np.dtype, _: int) -> Contenders:
    def program(xp: Any, lax: Any) -> Function:
        return lambda a, b: xp.min(a[:, None] + b[None, :], axis=1)

    a, b = random(dtype, POINTS), random(dtype, POINTS, seed=1)
    return contenders(program, a, b, numba_kernel="outer_minimum")


def cumsum(dtype: np.dtype, size: int) -> Contenders:
    return contenders(lambda xp, lax: lambda x: xp.cumsum(x), random(dtype, size), numba_kernel="cumsum")


def argmax(dtype: np.dtype, size: int) -> Contenders:
    return contenders(lambda xp, lax: lambda x: xp.argmax(x), random(dtype, size), numba_kernel="argmax")


def sort(dtype: np.dtype, size: int) -> Contenders:
    return contenders(lambda xp, lax: lambda x: xp.sort(x), random(dtype, size))


def perceptron(dtype: np.dtype, _: int) -> Contenders:
    """784-512-256-10 on a batch of 1024."""
    widths = (784, 512, 256, 10)
    weights = [random(dtype, m, n, seed=m) / np.sqrt(dtype.type(m)) for m, n in pairwise(widths)]
    offsets = [random(dtype, n, seed=n) for n in widths[1:]]

    def program(xp: Any, lax: Any) -> Function:
        softmax = softmax_program(xp, lax)

        def function(x: Any, w1: Any, w2: Any, w3: Any, b1: Any, b2: Any, b3: Any) -> Any:
            x = xp.maximum(x @ w1 + b1, 0)
            x = xp.maximum(x @ w2 + b2, 0)
            return softmax(x @ w3 + b3)

        return function

    return contenders(program, random(dtype, 1024, 784), *weights, *offsets)


def kmeans_program(xp: Any, lax: Any) -> Function:
    def function(x: Any, centres: Any) -> Any:
        differences = x[:, None, :] - centres[None, :, :]
        squares = (differences**2).sum(axis=-1)
        labels = xp.argmin(squares, axis=1)
        member = labels[:, None] == xp.arange(centres.shape[0])
        member = xp.astype(member, x.dtype)
        counts = xp.maximum(member.sum(axis=0), 1)
        return member.T @ x / counts[:, None]

    return function


def kmeans(dtype: np.dtype, _: int) -> Contenders:
    """One step: 20,000 points of 16 numbers, 64 centres."""
    x = random(dtype, 20_000, 16)
    return contenders(kmeans_program, x, x[:64].copy(), numba_kernel="kmeans_step")


PAIRS = ROWS_AND_COLUMNS[0] * ROWS_AND_COLUMNS[1]
LONG = (10**6, 10**7)

ROWS = (
    Row("c", "softmax (4096,1024)", softmax, traffic=lambda _: 2 * PAIRS),
    Row("c", "layer norm (4096,1024)", layer_norm, traffic=lambda _: 2 * PAIRS),
    Row("d", "pairwise minima 4096², features:", nearest, (3, 64)),
    Row("d", "the same by matmul, features:", nearest_by_matmul, (3, 64), tolerance=1e4),
    Row("d", "outer-sum minima 4096²", outer_minimum),
    Row("k", "cumsum", cumsum, LONG, one_dimensional=True, tolerance=1e5),
    Row("k", "argmax", argmax, LONG, one_dimensional=True),
    Row("k", "sort", sort, LONG, one_dimensional=True),
    Row("l", "MLP forward, 1024 × 784-512-256-10", perceptron, tolerance=1e3),
    Row("l", "k-means step, 20000 × 16, 64 centres", kmeans, tolerance=1e4),
)
