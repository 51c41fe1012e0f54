"""Batch normalisation against XLA, the reference, and gradients of JAX."""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import xarr
from tests.compare import assert_same
from tests.programs import run
from tests.xla import run_stablehlo
from xarr import lax, stablehlo
from xarr.errors import DTypeError, InputError, ShapeError
from xarr.ir import ops

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_enable_x64", True)

RNG = np.random.default_rng(5)
SHAPES: list[tuple[tuple[int, ...], int]] = [
    ((6,), 0),
    ((1, 1), 1),
    ((5, 3), 0),
    ((4, 2, 3), 1),
    ((2, 3, 2, 1, 4), 4),
]


def inputs(shape: tuple[int, ...], axis: int, dtype: Any = np.float64) -> list[np.ndarray[Any, Any]]:
    """Operand, scale, offset, mean, variance and a gradient."""
    features = (shape[axis],)
    draw = [RNG.normal(3, 2, shape), *(RNG.normal(size=features) for _ in range(3))]
    return [x.astype(dtype) for x in (*draw, RNG.uniform(0.5, 2, features), RNG.normal(size=shape))]


def results(operands: list[Any], axis: int, epsilon: float = 1e-3) -> list[Any]:
    """All seven results of the three functions."""
    x, scale, offset, mean, variance, grad = operands
    return [
        *lax.batch_norm_training(x, scale, offset, epsilon, axis),
        lax.batch_norm_inference(x, scale, offset, mean, variance, epsilon, axis),
        *lax.batch_norm_grad(x, scale, mean, variance, grad, epsilon, axis),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "axis"), SHAPES, ids=str)
def test_agrees_with_xla(shape: tuple[int, ...], axis: int, dtype: Any) -> None:
    operands = inputs(shape, axis, dtype)
    types = [xarr.Shape(x.dtype, x.shape) for x in operands]
    graph = xarr.lower(lambda *each: tuple(results(list(each), axis)), *types).graph
    theirs = run_stablehlo(str(graph), *operands)
    # XLA takes E[x²] - E[x]² for the variance, and a constant feature then has one that is not quite 0.
    tolerance = 2e-4 if dtype is np.float32 else 1e-12
    for got, wanted in zip(results(operands, axis), theirs, strict=True):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=tolerance, atol=tolerance)
        assert got.dtype == wanted.dtype


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=str)
def test_agrees_with_the_reference(dtype: Any) -> None:
    ulps = 1 if np.dtype(dtype).itemsize == 2 else 32
    for shape, axis in SHAPES:
        operands = inputs(shape, axis, dtype)
        mine = results(operands, axis)
        with xarr.use_backend("reference"):
            theirs = [np.asarray(each) for each in results(operands, axis)]
        eps = float(ml_dtypes.finfo(dtype).eps)
        for got, wanted in zip(mine, theirs, strict=True):
            assert got.dtype == wanted.dtype
            wide = [np.asarray(each).astype(np.float64) for each in (got, wanted)]
            np.testing.assert_allclose(*wide, rtol=ulps * eps, atol=4 * ulps * eps)


def test_gradients_are_those_of_the_training_step() -> None:
    shape, axis, epsilon = (4, 3, 5), 1, 0.01
    x, scale, offset, _, _, grad = inputs(shape, axis)

    def normalize(x: Any, scale: Any, offset: Any) -> Any:
        mean, variance = x.mean((0, 2), keepdims=True), x.var((0, 2), keepdims=True)
        scaled = (x - mean) / jnp.sqrt(variance + np.float32(epsilon)) * scale[:, None]
        return scaled + offset[:, None]

    value, pull = jax.vjp(normalize, x, scale, offset)
    output, mean, variance = lax.batch_norm_training(x, scale, offset, epsilon, axis)
    np.testing.assert_allclose(np.asarray(output), value, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(np.asarray(mean), x.mean((0, 2)), rtol=1e-13)
    np.testing.assert_allclose(np.asarray(variance), x.var((0, 2)), rtol=1e-13)
    for got, wanted in zip(
        lax.batch_norm_grad(x, scale, mean, variance, grad, epsilon, axis), pull(grad), strict=True
    ):
        np.testing.assert_allclose(np.asarray(got), wanted, rtol=1e-10, atol=1e-12)


def test_empty_operands_and_no_features() -> None:
    for shape, axis in (((0, 3), 1), ((3, 0), 1), ((0, 0), 0)):
        operands = inputs(shape, axis)
        output, mean, variance = lax.batch_norm_training(*operands[:3], 0.1, axis)
        assert output.shape == shape
        assert_same(mean, np.full(shape[axis], np.nan))
        assert_same(variance, np.full(shape[axis], np.nan))
        assert_same(
            lax.batch_norm_grad(*[operands[i] for i in (0, 1, 3, 4, 5)], 0.1, axis)[2], np.zeros(shape[axis])
        )


def test_nan_stays_in_its_feature() -> None:
    x = RNG.normal(size=(4, 3))
    x[1, 2] = np.nan
    output = np.asarray(lax.batch_norm_training(x, np.ones(3), np.zeros(3), 0.1, 1)[0])
    assert np.isnan(output[:, 2]).all()
    assert np.isfinite(output[:, :2]).all()


def _all_results(epsilon: float, *operands: Any) -> tuple[Any, ...]:
    return tuple(results(list(operands), 1, epsilon))


def test_text_is_read_back_with_any_epsilon() -> None:
    for epsilon in (1e-3, 1e-5, 0.1, 0.0, 3.0000001):
        operands = inputs((4, 3), 1, np.float32)
        types = [xarr.Shape(x.dtype, x.shape) for x in operands]
        graph = xarr.lower(partial(_all_results, epsilon), *types).graph
        for got, wanted in zip(
            stablehlo.run(str(graph), *operands), results(operands, 1, epsilon), strict=True
        ):
            assert_same(got, wanted)


def test_explicit_text_gives_the_same() -> None:
    operands = inputs((4, 3), 1)
    program = xarr.make_explicit(lambda *each: tuple(results(list(each), 1)), *operands)
    for got, wanted in zip(program(*operands), results(operands, 1), strict=True):
        assert_same(got, wanted)


def test_batch_norm_c1_feature_index() -> None:
    for axis in (-1, 2):
        with pytest.raises(ShapeError, match=rf"batch_norm_training \[C1\]: .* in \[0, 2\), got {axis}"):
            lax.batch_norm_training(np.ones((2, 3)), np.ones(3), np.ones(3), 0.1, axis)
    with pytest.raises(InputError, match="wanted an int for feature_index"):
        lax.batch_norm_training(np.ones((2, 3)), np.ones(3), np.ones(3), 0.1, 1.0)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="wanted a number for epsilon, got 'x'"):
        lax.batch_norm_training(np.ones((2, 3)), np.ones(3), np.ones(3), "x", 1)  # type: ignore[arg-type]


def test_batch_norm_c2_element_types() -> None:
    with pytest.raises(DTypeError, match=r"batch_norm_training \[C2\]: wanted floats .* s64\[3\], s64\[3\]"):
        lax.batch_norm_training(np.ones((2, 3), int), np.ones(3, int), np.ones(3, int), 0.1, 1)
    with pytest.raises(DTypeError, match=r"batch_norm_grad \[C2\]"):
        x, v = np.ones((2, 3)), np.ones(3)
        lax.batch_norm_grad(x, v.astype(np.float32), v, v, x, 0.1, 1)


def test_batch_norm_c3_vectors() -> None:
    for wrong in (np.ones(2), np.ones((1, 3)), np.float64(1)):
        with pytest.raises(ShapeError, match=r"batch_norm_inference \[C3\]: wanted f64\[3\] for f64\[2,3\]"):
            lax.batch_norm_inference(np.ones((2, 3)), np.ones(3), np.ones(3), wrong, np.ones(3), 0.1, 1)


def test_batch_norm_grad_c4_gradient() -> None:
    v = np.ones(3)
    with pytest.raises(
        ShapeError, match=r"batch_norm_grad \[C4\]: wanted a grad_output f64\[2,3\], got f64\[3\]"
    ):
        lax.batch_norm_grad(np.ones((2, 3)), v, v, v, v, 0.1, 1)


def test_it_is_composite() -> None:
    x, v = np.ones((2, 3)), np.ones(3)
    mine = run(ops.BatchNormInference(0.5, 1), x, v, v, v, v, backend="numpy")
    assert_same(mine, run(ops.BatchNormInference(0.5, 1), x, v, v, v, v))
    text = str(
        xarr.lower(lambda a, b: lax.batch_norm_inference(a, b, b, b, b, 0.5, 1), "f64[2,3]", "f64[3]").stage(
            "decomposed"
        )
    )
    assert "batch_norm" not in text
