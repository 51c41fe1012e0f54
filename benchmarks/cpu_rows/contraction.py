"""Rows (e) matrix products and (f) convolutions."""

from __future__ import annotations

from typing import Any

import numpy as np
from measure import Contenders

from cpu_rows.contenders import Function, Row, contenders, random

IMAGES = (8, 56, 56, 64)


def matmul(dtype: np.dtype, _: int) -> Contenders:
    return _matmul(random(dtype, 1024, 1024), random(dtype, 1024, 1024, seed=1))


def batched_matmul(dtype: np.dtype, _: int) -> Contenders:
    return _matmul(random(dtype, 256, 64, 64), random(dtype, 256, 64, 64, seed=1))


def _matmul(a: np.ndarray, b: np.ndarray) -> Contenders:
    return contenders(lambda xp, lax: lambda a, b: xp.matmul(a, b), a, b, by_torch=True)


def odd_dot_general(dtype: np.dtype, _: int) -> Contenders:
    """Contracting and batch dimensions stand in no order that a matrix product wants."""
    left, right = random(dtype, 48, 32, 64, 16), random(dtype, 80, 16, 32, 48, seed=1)

    def program(xp: Any, lax: Any) -> Function:
        if lax is None:
            return lambda a, b: xp.einsum("kbmc,ncbk->bmn", a, b, optimize=True)
        return lambda a, b: lax.dot_general(a, b, (((0, 3), (3, 1)), ((1,), (2,))))

    return contenders(program, left, right)


def convolution(layout: tuple[str, str, str], groups: int = 1) -> Any:
    """A program for XLA's namespaces."""

    def program(xp: Any, lax: Any) -> Function:
        options = {"dimension_numbers": layout, "feature_group_count": groups}
        return lambda x, k: lax.conv_general_dilated(x, k, (1, 1), "SAME", **options)

    return program


def nhwc(dtype: np.dtype, _: int) -> Contenders:
    images, kernel = random(dtype, *IMAGES), random(dtype, 3, 3, 64, 64, seed=1)

    def by_columns() -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(_pad(images, (1, 2)), (3, 3), (1, 2))
        columns = windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, 9 * 64)
        result: np.ndarray = columns @ kernel.reshape(9 * 64, 64)
        return result.reshape(IMAGES)

    program = convolution(("NHWC", "HWIO", "NHWC"))
    return contenders(program, images, kernel, by_numpy=by_columns)


def nchw(dtype: np.dtype, _: int) -> Contenders:
    images, kernel = random(dtype, 8, 64, 56, 56), random(dtype, 64, 64, 3, 3, seed=1)

    def by_columns() -> np.ndarray:
        windows = np.lib.stride_tricks.sliding_window_view(_pad(images, (2, 3)), (3, 3), (2, 3))
        columns = windows.transpose(0, 1, 4, 5, 2, 3).reshape(8, 64 * 9, 56 * 56)
        result: np.ndarray = kernel.reshape(64, 64 * 9) @ columns
        return result.reshape(8, 64, 56, 56)

    program = convolution(("NCHW", "OIHW", "NCHW"))
    return contenders(program, images, kernel, by_numpy=by_columns)


def depthwise(dtype: np.dtype, _: int) -> Contenders:
    images, kernel = random(dtype, *IMAGES), random(dtype, 3, 3, 1, 64, seed=1)

    def by_products() -> np.ndarray:
        x, result = _pad(images, (1, 2)), np.zeros_like(images)
        for i in range(3):
            for j in range(3):
                result += x[:, i : i + 56, j : j + 56] * kernel[i, j, 0]
        return result

    program = convolution(("NHWC", "HWIO", "NHWC"), groups=64)
    return contenders(program, images, kernel, by_numpy=by_products, numba_kernel="depthwise")


def _pad(images: np.ndarray, axes: tuple[int, int]) -> np.ndarray:
    return np.pad(images, [(int(axis in axes), int(axis in axes)) for axis in range(4)])


ROWS = (
    Row("e", "matmul 1024²", matmul, tolerance=1e3),
    Row("e", "batched matmul (256,64,64)", batched_matmul, tolerance=1e3),
    Row("e", "dot_general, odd dimension orders", odd_dot_general, tolerance=1e3),
    Row("f", "conv 3×3 NHWC (8,56,56,64), 64 filters", nhwc, tolerance=1e3),
    Row("f", "conv 3×3 NCHW (8,64,56,56), 64 filters", nchw, tolerance=1e3),
    Row("f", "depthwise conv 3×3 (8,56,56,64)", depthwise, tolerance=1e3),
)
