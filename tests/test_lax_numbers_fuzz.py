"""Random systems, factors, transforms and normalisations, 500 of each, against jax.lax and XLA.

Fifty at a time make one program, so that XLA compiles ten times and not 500 times.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import jax
import numpy as np
import pytest

from tests.xla import run_stablehlo
from xarr import lax, lower
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir.types import Ints

jax.config.update("jax_enable_x64", True)

Array = np.ndarray[Any, Any]
Call = Callable[[Any, tuple[Any, ...]], Any]

DTYPES = ("float32", "float64", "complex64", "complex128")


def values(random: Random, shape: Ints, dtype: str) -> Array:
    draw = np.random.default_rng(random.randrange(2**32))
    found = draw.normal(size=shape)
    return (found + 1j * draw.normal(size=shape) if dtype[0] == "c" else found).astype(dtype)


def batch(random: Random) -> Ints:
    return tuple(random.choice([0, 1, 2, 3, 2]) for _ in range(random.choice([0, 0, 1, 2])))


def close(got: Any, wanted: Any, factor: float) -> None:
    """Equal but for `factor` roundings of the largest element."""
    for mine, theirs in zip(jax.tree.leaves(got), jax.tree.leaves(wanted), strict=True):
        found, exact = np.asarray(mine), np.asarray(theirs)
        assert (found.dtype, found.shape) == (exact.dtype, exact.shape)
        np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
        scale = max(1.0, float(np.nanmax(np.abs(exact), initial=0)))
        limit = factor * float(np.finfo(found.dtype).eps) * scale
        np.testing.assert_allclose(found, exact, rtol=0, atol=limit)


# --- what is drawn: a call of `lax` or `jax.lax`, its operands, and how far they may differ ------------


def draw_solve(random: Random) -> tuple[Call, tuple[Array, ...], float]:
    size, others, dtype = random.randint(0, 6), random.randint(0, 3), random.choice(DTYPES)
    lead, left = batch(random), random.random() < 0.5
    a = values(random, (*lead, size, size), dtype) / 4 + 2 * np.eye(size, dtype=dtype)
    b = values(random, (*lead, size, others) if left else (*lead, others, size), dtype)
    names = ("lower", "transpose_a", "conjugate_a", "unit_diagonal")
    flags = {"left_side": left} | {name: random.random() < 0.5 for name in names}
    return lambda module, x: module.linalg.triangular_solve(*x, **flags), (a, b), 400.0


def draw_factor(random: Random) -> tuple[Call, tuple[Array, ...], float]:
    size, dtype = random.randint(0, 6), random.choice(DTYPES)
    root = values(random, (*batch(random), size, size), dtype)
    a = root @ root.swapaxes(-1, -2).conj() + 0.5 * np.eye(size, dtype=dtype)
    if random.random() < 0.2 and size:
        a[..., -1, -1] = -1  # not positive definite
    flag = random.random() < 0.5
    return lambda module, x: module.linalg.cholesky(*x, symmetrize_input=flag), (a,), 200.0


def draw_transform(random: Random) -> tuple[Call, tuple[Array, ...], float]:
    kind, wide = random.choice(["FFT", "IFFT", "RFFT", "IRFFT"]), random.random() < 0.5
    lengths = tuple(random.choice([1, 2, 3, 4, 5, 7, 8, 16]) for _ in range(random.randint(1, 3)))
    shape = (*batch(random), *lengths)
    if kind == "IRFFT":
        shape = (*shape[:-1], lengths[-1] // 2 + 1)
    names = ("float32", "float64") if kind == "RFFT" else ("complex64", "complex128")
    return lambda module, x: module.fft(*x, kind, lengths), (values(random, shape, names[wide]),), 16.0


DRAWN = {"triangular_solve": draw_solve, "cholesky": draw_factor, "fft": draw_transform}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("name", DRAWN)
def test_random_operands_agree_with_jax(name: str, seed: int) -> None:
    random = Random(seed)
    rows = [DRAWN[name](random) for _ in range(50)]

    def every(operands: Any) -> list[Any]:
        return [call(jax.lax, each) for (call, _, _), each in zip(rows, operands, strict=True)]

    wanted = jax.jit(every)([operands for _, operands, _ in rows])
    for (call, operands, factor), theirs in zip(rows, wanted, strict=True):
        close(call(lax, operands), theirs, factor)


def draw_norm(random: Random) -> tuple[Callable[..., Any], tuple[Array, ...]]:
    rank, dtype = random.randint(1, 4), random.choice(["float32", "float64"])
    shape = tuple(random.randint(1, 4) for _ in range(rank))
    feature = random.randrange(rank)
    epsilon = random.choice([1e-3, 1e-5, 0.5])
    x, grad = (values(random, shape, dtype) for _ in range(2))
    scale, offset, mean, variance = (values(random, (shape[feature],), dtype) for _ in range(4))
    variance = np.abs(variance) + np.asarray(0.1, dtype)

    def function(x: Any, scale: Any, offset: Any, mean: Any, variance: Any, grad: Any) -> tuple[Any, ...]:
        return (
            *lax.batch_norm_training(x, scale, offset, epsilon, feature),
            lax.batch_norm_inference(x, scale, offset, mean, variance, epsilon, feature),
            *lax.batch_norm_grad(x, scale, mean, variance, grad, epsilon, feature),
        )

    return function, (x, scale, offset, mean, variance, grad)


@pytest.mark.parametrize("seed", range(10))
def test_random_normalisations_agree_with_xla(seed: int) -> None:
    random = Random(seed)
    rows = [draw_norm(random) for _ in range(50)]
    flat = [operand for _, operands in rows for operand in operands]

    def every(*operands: Any) -> tuple[Any, ...]:
        groups = [operands[at : at + 6] for at in range(0, len(operands), 6)]
        return tuple(
            result for (function, _), group in zip(rows, groups, strict=True) for result in function(*group)
        )

    wanted = run_stablehlo(str(lower(every, *flat).stage("traced")), *flat)
    for got, theirs in zip(every(*flat), wanted, strict=True):
        # XLA subtracts the square of the mean from that of the squares.
        scale = max(1.0, float(np.abs(theirs).max(initial=0)))
        limit = 1e-3 if theirs.dtype == np.float32 else 1e-10
        np.testing.assert_allclose(np.asarray(got), theirs, rtol=limit, atol=limit * scale)


# --- what must be refused ----------------------------------------------------------------------------


def spoilt(random: Random) -> tuple[Call, tuple[Array, ...]]:
    """A call with an operand of another shape or element type, which may still be right."""
    call, operands, _ = DRAWN[random.choice(list(DRAWN))](random)
    place = random.randrange(len(operands))
    x = operands[place]
    changes: list[Callable[[], Array]] = [
        lambda: x[None],
        lambda: x[..., 0] if x.ndim and x.shape[-1] else x,
        lambda: np.concatenate([x, x], -1),
        lambda: x.astype(np.int32) if x.dtype.kind == "f" else x.real.astype(np.int32),
        lambda: x.astype(np.complex128),
        lambda: np.concatenate([x, x], 0) if x.ndim else x,
    ]
    changed = random.choice(changes)()
    return call, (*operands[:place], changed, *operands[place + 1 :])


def refuses(apply: Callable[[], object], *errors: type[Exception]) -> bool:
    try:
        apply()
    except errors:
        return True
    return False


def test_what_jax_refuses_is_refused() -> None:
    random = Random(3)
    refused = 0
    for _ in range(500):
        call, operands = spoilt(random)

        def theirs(call: Call = call, operands: Any = operands) -> object:
            return jax.eval_shape(lambda *given: call(jax.lax, given), *operands)

        def mine(call: Call = call, operands: Any = operands) -> object:
            return call(lax, operands)

        # Of other errors than its own JAX has many: AssertionError, IndexError, ValueError …
        if refuses(theirs, Exception):
            refused += 1
            shown = [(x.dtype, x.shape) for x in operands]
            assert refuses(mine, ShapeError, DTypeError, InputError), shown
    assert refused > 150
