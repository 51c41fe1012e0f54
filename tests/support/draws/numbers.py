"""Random systems, factors, transforms and normalisations."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any, Final

import numpy as np

from tests.support.fuzz import Draw, Drawn, HostArray
from xarr.ir.types import Ints

DTYPES = ("float32", "float64", "complex64", "complex128")


def values(random: Random, shape: Ints, dtype: str) -> HostArray:
    draw = np.random.default_rng(random.randrange(2**32))
    real = draw.normal(size=shape)
    return (real + 1j * draw.normal(size=shape) if dtype[0] == "c" else real).astype(dtype)


def batch(random: Random) -> Ints:
    return tuple(random.choice([0, 1, 2, 3, 2]) for _ in range(random.choice([0, 0, 1, 2])))


def triangular_solve(random: Random) -> Drawn:
    size, others, dtype = random.randint(0, 6), random.randint(0, 3), random.choice(DTYPES)
    lead, left = batch(random), random.random() < 0.5
    a = values(random, (*lead, size, size), dtype) / 4 + 2 * np.eye(size, dtype=dtype)
    b = values(random, (*lead, size, others) if left else (*lead, others, size), dtype)
    names = ("lower", "transpose_a", "conjugate_a", "unit_diagonal")
    flags = {"left_side": left} | {name: random.random() < 0.5 for name in names}
    return Drawn(lambda module, x: module.linalg.triangular_solve(*x, **flags), (a, b), roundings=400.0)


def cholesky(random: Random) -> Drawn:
    size, dtype = random.randint(0, 6), random.choice(DTYPES)
    root = values(random, (*batch(random), size, size), dtype)
    a = root @ root.swapaxes(-1, -2).conj() + 0.5 * np.eye(size, dtype=dtype)
    if random.random() < 0.2 and size:
        a[..., -1, -1] = -1  # not positive definite
    flag = random.random() < 0.5
    return Drawn(lambda module, x: module.linalg.cholesky(*x, symmetrize_input=flag), (a,), roundings=200.0)


def fft(random: Random) -> Drawn:
    kind, wide = random.choice(["FFT", "IFFT", "RFFT", "IRFFT"]), random.random() < 0.5
    lengths = tuple(random.choice([1, 2, 3, 4, 5, 7, 8, 16]) for _ in range(random.randint(1, 3)))
    shape = (*batch(random), *lengths)
    if kind == "IRFFT":
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    names = ("float32", "float64") if kind == "RFFT" else ("complex64", "complex128")
    x = values(random, shape, names[wide])
    return Drawn(lambda module, a: module.fft(*a, kind, lengths), (x,), roundings=16.0)


def batch_norm(random: Random) -> Drawn:
    rank, dtype = random.randint(1, 4), random.choice(["float32", "float64"])
    shape = tuple(random.randint(1, 4) for _ in range(rank))
    feature = random.randrange(rank)
    epsilon = random.choice([1e-3, 1e-5, 0.5])
    x, grad = (values(random, shape, dtype) for _ in range(2))
    scale, offset, mean, variance = (values(random, (shape[feature],), dtype) for _ in range(4))
    variance = np.abs(variance) + np.asarray(0.1, dtype)

    def call(module: Any, a: tuple[Any, ...]) -> tuple[Any, ...]:
        x, scale, offset, mean, variance, grad = a
        return (
            *module.batch_norm_training(x, scale, offset, epsilon, feature),
            module.batch_norm_inference(x, scale, offset, mean, variance, epsilon, feature),
            *module.batch_norm_grad(x, scale, mean, variance, grad, epsilon, feature),
        )

    # XLA subtracts the square of the mean from that of the squares.
    roundings = 8e3 if dtype == "float32" else 4e5
    return Drawn(call, (x, scale, offset, mean, variance, grad), roundings=roundings)


#: The functions are those of jax.lax too.
WITH_JAX: Final[dict[str, Draw]] = {"TriangularSolve": triangular_solve, "Cholesky": cholesky, "Fft": fft}
#: XLA runs what xarr prints of these.
WITH_XLA: Final[dict[str, Draw]] = {"BatchNorm": batch_norm}


def changes(x: HostArray) -> dict[str, Callable[[], HostArray]]:
    """Arrays of another shape or element type, with which a call may still be right."""
    return {
        "deeper": lambda: x[None],
        "shallower": lambda: x[..., 0] if x.ndim and x.shape[-1] else x,
        "wider": lambda: np.concatenate([x, x], -1),
        "int": lambda: x.real.astype(np.int32),
        "complex": lambda: x.astype(np.complex128),
        "longer": lambda: np.concatenate([x, x], 0) if x.ndim else x,
    }
