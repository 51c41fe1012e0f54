"""Distributions that loop or are made of several draws, against jax.random: counts to the bit, floats closely."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
import pytest

import xarr
from tests.support.answers import recorded
from tests.support.jax_random import JaxKey
from tests.ulp_bounds import APART
from xarr import lax, random
from xarr.errors import BroadcastError, DTypeError, InputError, ShapeError

jax.config.update("jax_enable_x64", True)

APART_BY_NAME = {row.function: row.tested for row in APART}
HostArray = np.ndarray[Any, Any]
SHAPES = np.array([1e-3, 0.1, 0.5, 1.0, 3.5, 20.0])
CHANCES = np.array([0.2, 0.3, 0.0, 0.5])
COVARIANCE = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.3], [0.0, 0.3, 0.7]])


@dataclass(frozen=True)
class Drawn:
    """A call of xarr.random or jax.random."""

    name: str
    call: Callable[[Any, Any, str], Any]

    @property
    def apart(self) -> int:
        """How many ULP of the larger of the result and 1 it may err; 0 for counts."""
        return APART_BY_NAME.get(self.name, 0)


def parameter(values: HostArray, dtype: str, count: int = 40) -> HostArray:
    return np.broadcast_to(values, (count, *values.shape)).astype(dtype)


DRAWN = [
    Drawn("gamma", lambda r, k, d: r.gamma(k, SHAPES.astype(d), (40, 6), d)),
    Drawn("loggamma", lambda r, k, d: r.loggamma(k, SHAPES.astype(d), (40, 6), d)),
    Drawn("beta", lambda r, k, d: r.beta(k, SHAPES.astype(d), np.array(2, d), (40, 6), d)),
    Drawn("dirichlet", lambda r, k, d: r.dirichlet(k, SHAPES.astype(d), (40,), d)),
    Drawn("chisquare", lambda r, k, d: r.chisquare(k, SHAPES.astype(d), (40, 6), d)),
    Drawn("f", lambda r, k, d: r.f(k, parameter(SHAPES + 1, d), parameter(SHAPES + 2, d), dtype=d)),
    Drawn("t", lambda r, k, d: r.t(k, (SHAPES + 0.2).astype(d), (40, 6), d)),
    Drawn("generalized_normal", lambda r, k, d: r.generalized_normal(k, 3.0, (99,), d)),
    Drawn("ball", lambda r, k, d: r.ball(k, 3, 1.5, (50,), d)),
    Drawn(
        "multivariate_normal",
        lambda r, k, d: r.multivariate_normal(
            k, np.array([1, 2, 3], d), np.stack([COVARIANCE, np.eye(3)]).astype(d), (20, 2)
        ),
    ),
    Drawn("maxwell", lambda r, k, d: r.maxwell(k, (99,), d)),
    Drawn(
        "double_sided_maxwell",
        lambda r, k, d: r.double_sided_maxwell(k, np.array([1, 2], d), np.array(2, d), (9,), d),
    ),
    Drawn("binomial", lambda r, k, d: r.binomial(k, *trials(d), (60, 8), d)),
    Drawn(
        "multinomial",
        lambda r, k, d: r.multinomial(k, np.array(50, d), CHANCES.astype(d), shape=(30, 4), dtype=d),
    ),
]


def trials(dtype: str) -> tuple[HostArray, HostArray]:
    counts = [5, 100, 1000, 0, -1, np.inf, 30.7, np.nan]
    return np.array(counts, dtype), np.array([0.1, 0.3, 0.9, 0.5, 0.5, 0.5, 1.0, 0.2], dtype)


#: JAX compiles each for seconds, so but one goes through both types.
BOTH = [(drawn, ("float32", "float64")[index % 2]) for index, drawn in enumerate(DRAWN)] + [
    (DRAWN[0], "float64")
]


@recorded(sources=(sys.modules[__name__],))
def by_jax(name: str, dtype: str) -> Any:
    (call,) = (drawn.call for drawn in DRAWN if drawn.name == name)
    return call(jax.random, jax.random.key(5), dtype)


@pytest.mark.parametrize(("drawn", "dtype"), BOTH, ids=lambda value: getattr(value, "name", value))
def test_numbers_of_jax(drawn: Drawn, dtype: str) -> None:
    got = np.asarray(drawn.call(random, random.key(5), dtype))
    (wanted,) = by_jax(drawn.name, dtype)
    assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
    if not drawn.apart:
        np.testing.assert_array_equal(got, wanted)
        return
    spacing = float(np.finfo(dtype).eps) * np.maximum(np.abs(wanted), 1)
    errors = np.where(got == wanted, 0, np.abs(got - wanted) / spacing)
    assert float(np.max(errors)) <= drawn.apart


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_wald_is_that_of_jax_but_for_its_cancellation(dtype: str) -> None:
    mean = np.array([0.1, 1.0, 30.0], dtype)
    got = np.asarray(random.wald(random.key(5), mean, (50, 3), dtype))
    wanted = JaxKey(5).wald(mean, (50, 3), dtype)
    assert got.dtype == wanted.dtype
    # Small results are what is left of large terms.
    limit = 64 * float(np.finfo(dtype).eps) * float(mean.max()) ** 2
    np.testing.assert_allclose(got, wanted, rtol=limit, atol=limit)


@pytest.mark.parametrize("dtype", [None, "uint8"])
def test_poisson_numbers_of_jax(dtype: str | None) -> None:
    mean = np.array([0.0, 0.1, 2.0, 9.9, 10.0, 50.0, 200.0, -1.0, np.nan])
    got = np.asarray(random.poisson(random.key(8), mean, (100, 9), dtype))
    wanted = JaxKey(8).poisson(mean, (100, 9), dtype)
    assert got.dtype == wanted.dtype
    np.testing.assert_array_equal(got, wanted)


def test_infinite_means_end() -> None:
    drawn = np.asarray(random.poisson(random.key(1), np.full(99, np.inf), dtype="int32"))
    assert drawn.max() == np.iinfo("int32").max


def test_shapes_of_parameters_and_empty_results() -> None:
    key = random.key(0)
    assert random.gamma(key, np.ones((2, 1))).shape == (2, 1)
    assert random.beta(key, np.ones((2, 1)), np.ones(3)).shape == (2, 3)
    assert random.gamma(key, 1.0, (0, 3)).shape == (0, 3)
    assert np.asarray(random.poisson(key, 3.0, (0,))).shape == (0,)
    assert np.asarray(random.gamma(key, 2.0)).shape == ()
    assert random.multivariate_normal(key, np.zeros(2), np.eye(2)).dtype == np.float64
    assert random.double_sided_maxwell(key, np.zeros(2), 1.0).shape == (2, 2)


@pytest.mark.parametrize("backend", ["numpy", "reference"])
def test_the_same_on_every_backend(backend: str) -> None:
    with xarr.use_backend(backend):
        key = random.key(4)
        numbers = np.asarray(random.gamma(key, np.array([0.3, 2.0]), dtype="float32"))
        counts = np.asarray(random.poisson(key, np.array([3.0, 40.0])))
    wanted = JaxKey(4).gamma(np.array([0.3, 2.0]), dtype="float32")
    np.testing.assert_allclose(numbers, wanted, rtol=1e-6)
    np.testing.assert_array_equal(counts, JaxKey(4).poisson(np.array([3.0, 40.0])))


def test_distributions_in_loops_and_under_jit() -> None:
    def draw(key: Any) -> Any:
        key, own = random.split(key)
        return key, random.gamma(own, 0.5, (3,))

    def step(key: Any, _: Any) -> Any:
        return draw(key)

    together = np.asarray(lax.scan(step, random.key(2), length=3)[1])
    key, apart = random.key(2), []
    for _ in range(3):
        key, drawn = draw(key)
        apart.append(np.asarray(drawn))
    np.testing.assert_array_equal(together, apart)
    np.testing.assert_array_equal(xarr.jit(draw)(random.key(2))[1], apart[0])


@pytest.mark.parametrize("types", [("float64", "float16"), ("float16", "float64"), ("float32", "float64")])
def test_multinomial_computes_in_the_wider_type(types: tuple[str, str]) -> None:
    n, p = np.array(50, types[0]), np.array([0.2, 0.3, 0.4, 0.1], types[1])
    mine = random.multinomial(random.key(5), n, p, shape=(30, 4))
    np.testing.assert_array_equal(mine, JaxKey(5).multinomial(n, p, shape=(30, 4)))


def test_bits_are_of_32_bits_by_default() -> None:
    """As in JAX without jax_enable_x64; with it JAX's default is uint64."""
    got = random.bits(random.key(3), (4,))
    assert got.dtype == np.uint32
    np.testing.assert_array_equal(got, JaxKey(3).bits((4,), "uint32"))
    np.testing.assert_array_equal(
        random.bits(random.key(3), (4,), "uint64"), jax.random.bits(jax.random.key(3), (4,))
    )


KEY = random.key(0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: random.gamma(KEY, 1.0, dtype="int32"), DTypeError, "gamma: wanted a float type"),
        (lambda: random.gamma(KEY, 1j), DTypeError, "gamma: wanted real parameters"),
        (lambda: random.gamma(KEY, np.ones(3), (2,)), ShapeError, "does not fit the shape"),
        (lambda: random.beta(KEY, np.ones(3), np.ones(2)), BroadcastError, "beta"),
        (lambda: random.dirichlet(KEY, 1.0), ShapeError, "dirichlet: wanted an alpha of rank 1"),
        (lambda: random.ball(KEY, -1), InputError, "ball: wanted a number of coordinates d >= 0, got -1"),
        (lambda: random.poisson(KEY, 1.0, dtype="float32"), DTypeError, "poisson: wanted an integer type"),
        (lambda: random.binomial(KEY, 3, 0.5, dtype="int32"), DTypeError, "binomial: wanted a float type"),
        (lambda: random.multinomial(KEY, 3, 0.5), ShapeError, "multinomial: wanted a p of rank 1"),
        (lambda: random.multinomial(KEY, np.ones(3), np.ones(2)), ShapeError, "does not fit the shape"),
        (
            lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(3)),
            ShapeError,
            r"a mean of shape \(…, n\) and a covariance of shape \(…, n, n\), got \(2,\) and \(3, 3\)",
        ),
        (
            lambda: random.multivariate_normal(KEY, np.zeros(2), np.eye(2), method="svd"),
            InputError,
            "the method 'cholesky', the only one supported, got 'svd'",
        ),
        (
            lambda: random.multivariate_normal(KEY, np.zeros((2, 3)), np.ones((4, 3, 3))),
            BroadcastError,
            "multivariate_normal",
        ),
        (lambda: random.gamma(random.split(KEY), 1.0), InputError, "gamma: wanted a single key"),
    ],
    ids=range(14),
)
def test_bad_calls(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


#: Of jax.random: a primitive.
ABSENT = {"random_gamma_p"}


def test_every_name_of_jax_is_there() -> None:
    theirs = {name for name in dir(jax.random) if not name.startswith("_")}
    assert theirs - set(dir(random)) == ABSENT


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    ("n", "m", "shape"), [(3, None, ()), (2, 4, ()), (4, 2, (2,)), (1, 1, (2, 3)), (3, 2, (0,))], ids=str
)
def test_orthogonal(n: int, m: int | None, shape: tuple[int, ...], dtype: str) -> None:
    got = np.asarray(random.orthogonal(random.key(5), n, shape, dtype, m))
    wanted = JaxKey(5).orthogonal(n, shape, dtype, m)
    assert got.shape == wanted.shape and got.dtype == wanted.dtype
    error = 64 * np.finfo(dtype).eps
    assert np.all(np.abs(got - wanted) <= error)
    tall = got if n >= (m or n) else np.conj(np.swapaxes(got, -1, -2))
    gram = np.conj(np.swapaxes(tall, -1, -2)) @ tall
    assert np.all(np.abs(gram - np.eye(tall.shape[-1])) <= error)
