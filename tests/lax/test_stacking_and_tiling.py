"""What jax.lax has beside XLA's operations: top_k, scans, exp2, arrays put together; and what is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.lax_values import dtype_of, values
from xarr import lax, stablehlo
from xarr.errors import AxisError, BroadcastError, DTypeError, InputError, ShapeError, ValueRangeError

jax.config.update("jax_enable_x64", True)

# --- top_k -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["numpy", "reference"])
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "uint64", "bool"])
def test_top_k(dtype: str, backend: str) -> None:
    x = np.random.default_rng(1).permutation(values(dtype_of(dtype)))[:60]
    x = np.tile(x, 60)[:60].reshape(3, 20)
    with xarr.use_backend(backend):
        for k in (0, 1, 7, 20):
            got = lax.top_k(x, k)
            for mine, theirs in zip(got, jax.lax.top_k(x, k), strict=True):
                assert_same(mine, np.asarray(theirs))
        for mine, theirs in zip(lax.top_k(x, 2, axis=0), jax.lax.top_k(x, 2, axis=0), strict=True):
            assert_same(mine, np.asarray(theirs))


# --- scans -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 4, 7, 8, 33])
def test_associative_scan(size: int, reverse: bool) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (2, size, 3))
    got = lax.associative_scan(lax.add, x, reverse=reverse, axis=1)
    assert_same(got, np.asarray(jax.lax.associative_scan(jnp.add, x, reverse=reverse, axis=1)))


def test_associative_scan_of_trees_and_of_no_commutative_function() -> None:
    draw = np.random.default_rng(2)
    pairs = {"a": draw.integers(-3, 4, (9,)), "b": draw.integers(-3, 4, (9,))}

    def follow(module: Any) -> Callable[..., Any]:
        def combine(x: Any, y: Any) -> Any:
            return {"a": module.mul(x["a"], y["a"]), "b": module.add(module.mul(y["a"], x["b"]), y["b"])}

        return combine

    got = lax.associative_scan(follow(lax), pairs)
    wanted = jax.lax.associative_scan(follow(jax.lax), pairs)
    for name in pairs:
        assert_same(got[name], np.asarray(wanted[name]))


def test_map() -> None:
    x = {"a": np.arange(6.0).reshape(3, 2), "b": np.arange(3)}
    got = lax.map(lambda each: (lax.mul(each["a"], 2.0), each["b"]), x)
    assert_same(got[0], x["a"] * 2)
    assert_same(got[1], x["b"])


# --- the others --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64"])
def test_exp2(dtype: str) -> None:
    x = np.linspace(-20, 20, 401).astype(dtype)
    assert_same(lax.exp2(x), np.asarray(jax.lax.exp2(x)), ulp=24 if dtype[0] == "f" else 32)


def test_arrays_put_together() -> None:
    x, y = np.arange(6).reshape(2, 3), np.arange(6, 12).reshape(2, 3)
    for axis in (0, 1, 2, -1):
        assert_same(lax.stack([x, y], axis), np.asarray(jax.lax.stack([x, y], axis)))
    for mine, theirs in zip(lax.unstack(x, 1), jax.lax.unstack(x, 1), strict=True):
        assert_same(mine, np.asarray(theirs))
    for reps in ((2, 3), (1, 1), (0, 2)):
        assert_same(lax.tile(x, reps), np.asarray(jax.lax.tile(x, reps)))
    assert_same(lax.tile(np.float32(3), ()), np.float32(3))
    assert lax.broadcast_to_rank(x, 4).shape == (1, 1, 2, 3)
    assert lax.broadcast_shapes((2, 1), (3,), ()) == jax.lax.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    assert (lax.empty((2, 0), "int8").shape, lax.empty((2,), "int8").dtype) == ((2, 0), np.int8)


@pytest.mark.parametrize("dtype", ["complex64", "float32"])
def test_squares_and_bessel_functions_in_lowered_programs(dtype: str) -> None:
    x = np.linspace(-3, 3, 7).astype(dtype)
    function: Callable[[Any], Any] = jax.lax.square if dtype[0] == "c" else jax.lax.bessel_i1e
    text = jax.jit(function).lower(x).as_text()
    assert "chlo." in text
    (got,) = stablehlo.run(stablehlo.parse(text), x)
    np.testing.assert_allclose(np.asarray(got), np.asarray(function(x)), rtol=1e-6)


X = np.arange(6.0).reshape(2, 3)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: lax.top_k(X, 4),
            ValueRangeError,
            r"top_k: wanted k in \[0, 3\], the size along axis 1, got 4",
        ),
        (lambda: lax.top_k(X, -1), ValueRangeError, "top_k: wanted k"),
        (lambda: lax.top_k(X, 1, axis=2), AxisError, "axis"),
        (lambda: lax.top_k(X * 1j, 1), DTypeError, "top_k: wanted real numbers"),
        (lambda: lax.top_k(X, 1.5), InputError, "top_k"),
        (lambda: lax.associative_scan(3, X), InputError, "wanted a function"),
        (lambda: lax.associative_scan(lax.add, ()), InputError, "wanted arrays to scan"),
        (
            lambda: lax.associative_scan(lax.add, (X, X[:1])),
            ShapeError,
            r"one size along axis 0, got \[1, 2\]",
        ),
        (
            lambda: lax.associative_scan(lambda a, b: (a, b), X),
            ShapeError,
            "the structure of its arguments",
        ),
        (lambda: lax.associative_scan(lax.eq, X), ShapeError, r"f64\[1,3\], got pred\[1,3\]"),
        (lambda: lax.map(3, X), InputError, "map: wanted a function"),
        (lambda: lax.exp2(np.arange(3)), DTypeError, "exp2: wanted floats"),
        (lambda: lax.stack([]), InputError, "stack: wanted at least one array"),
        (lambda: lax.tile(X, (2,)), ShapeError, "tile: wanted 2 numbers"),
        (lambda: lax.broadcast_to_rank(X, 1), ShapeError, "wanted a rank of 2 or more, got 1"),
        (lambda: lax.broadcast_shapes((2,), (3,)), BroadcastError, "broadcast_shapes"),
    ],
    ids=range(16),
)
def test_bad_calls(call: Callable[[], object], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
