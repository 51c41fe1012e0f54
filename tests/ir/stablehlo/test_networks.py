"""Whole networks exported by JAX run from their StableHLO text and give what JAX gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax as jlax

from xarr import stablehlo

Array = np.ndarray[Any, Any]
Weights = dict[str, Array]


def draw(seed: int, **shapes: tuple[int, ...]) -> Weights:
    random = np.random.default_rng(seed)
    return {
        name: (random.normal(size=shape) / np.sqrt(np.prod(shape[:-1]))).astype(np.float32)
        for name, shape in shapes.items()
    }


# --- a small convolutional network -------------------------------------------------------------------

NUMBERS = ("NHWC", "HWIO", "NHWC")


def batch_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean, variance = x.mean((0, 1, 2)), x.var((0, 1, 2))
    return (x - mean) * jlax.rsqrt(variance + 1e-5) * scale + offset


def cnn(w: Any, images: Any) -> Any:
    """Convolutions, one of them depthwise, batch norm, max and average pooling, a dense layer, softmax."""
    x = jlax.conv_general_dilated(images, w["first"], (1, 1), "SAME", dimension_numbers=NUMBERS)
    x = jax.nn.relu(batch_norm(x, w["scale"] + 1, w["offset"]))
    x = jlax.reduce_window(x, -jnp.inf, jlax.max, (1, 3, 3, 1), (1, 2, 2, 1), "SAME")
    groups = {"dimension_numbers": NUMBERS, "feature_group_count": 8}
    x = jlax.conv_general_dilated(x, w["depthwise"], (1, 1), "SAME", **groups)
    x = jax.nn.gelu(jlax.conv_general_dilated(x, w["point"], (2, 2), "VALID", dimension_numbers=NUMBERS))
    x = jlax.reduce_window(x, 0.0, jlax.add, (1, 2, 2, 1), (1, 2, 2, 1), "VALID") / 4
    x = x.reshape(x.shape[0], -1) @ w["dense"]
    return jax.nn.softmax(x, -1)


CNN = draw(
    0,
    first=(3, 3, 3, 8),
    scale=(8,),
    offset=(8,),
    depthwise=(3, 3, 1, 8),
    point=(1, 1, 8, 16),
    dense=(64, 10),
)
IMAGES = np.random.default_rng(1).normal(size=(4, 16, 16, 3)).astype(np.float32)


def loss_gradient(w: Any, images: Any) -> Any:
    """Its gradients: transposed convolutions, select_and_scatter, the gradient of batch norm."""
    return jax.grad(lambda weights: -jnp.log(cnn(weights, images)[:, 3]).mean())(w)


# --- two layers of a transformer ---------------------------------------------------------------------

WIDTH, HEADS, WORDS = 32, 4, 50


def layer_norm(x: Any, scale: Any, offset: Any) -> Any:
    mean = x.mean(-1, keepdims=True)
    variance = jnp.square(x - mean).mean(-1, keepdims=True)
    return (x - mean) / jnp.sqrt(variance + 1e-6) * scale + offset


def attention(w: Any, prefix: str, x: Any) -> Any:
    batch, length, _ = x.shape

    def heads(name: str) -> Any:
        return (x @ w[f"{prefix}{name}"]).reshape(batch, length, HEADS, -1).transpose(0, 2, 1, 3)

    query, key, value = (heads(name) for name in "qkv")
    scores = jnp.einsum("bhid,bhjd->bhij", query, key) / np.float32(np.sqrt(WIDTH / HEADS))
    scores = jnp.where(jnp.tril(jnp.ones((length, length), bool)), scores, -jnp.inf)
    mixed = jnp.einsum("bhij,bhjd->bhid", jax.nn.softmax(scores, -1), value)
    return mixed.transpose(0, 2, 1, 3).reshape(batch, length, WIDTH) @ w[f"{prefix}o"]


def transformer(w: Any, tokens: Any) -> Any:
    """Embedding, causal attention, layer norm, gelu, and logits of the next word."""
    x = w["words"][tokens] + w["positions"][: tokens.shape[1]]
    for prefix in ("a", "b"):
        x = x + attention(w, prefix, layer_norm(x, w[f"{prefix}scale"] + 1, w[f"{prefix}offset"]))
        x = x + jax.nn.gelu(x @ w[f"{prefix}up"], approximate=False) @ w[f"{prefix}down"]
    return jax.nn.log_softmax(x @ w["words"].T, -1)


def layer(prefix: str) -> dict[str, tuple[int, ...]]:
    square = {f"{prefix}{name}": (WIDTH, WIDTH) for name in "qkvo"}
    ends = {f"{prefix}up": (WIDTH, 4 * WIDTH), f"{prefix}down": (4 * WIDTH, WIDTH)}
    return square | ends | {f"{prefix}scale": (WIDTH,), f"{prefix}offset": (WIDTH,)}


TRANSFORMER = draw(2, words=(WORDS, WIDTH), positions=(16, WIDTH), **layer("a"), **layer("b"))
TOKENS = np.random.default_rng(3).integers(0, WORDS, (3, 12)).astype(np.int32)


# --- running them ------------------------------------------------------------------------------------

PROGRAMS: dict[str, tuple[Callable[..., Any], Weights, Array]] = {
    "cnn": (cnn, CNN, IMAGES),
    "gradients of the cnn": (loss_gradient, CNN, IMAGES),
    "transformer": (transformer, TRANSFORMER, TOKENS),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_network_runs_without_jax(name: str) -> None:
    function, weights, inputs = PROGRAMS[name]
    text = jax.export.export(jax.jit(function))(weights, inputs).mlir_module()
    results = stablehlo.run(text, *jax.tree.leaves(weights), inputs)
    expected = jax.tree.leaves(jax.jit(function)(weights, inputs))
    assert len(results) == len(expected)
    for got, wanted in zip(results, map(np.asarray, expected), strict=True):
        host = np.asarray(got)
        assert (host.dtype, host.shape) == (wanted.dtype, wanted.shape)
        scale = float(np.abs(wanted).max())
        np.testing.assert_allclose(host, wanted, rtol=1e-5, atol=1e-5 * scale)


def test_the_networks_use_what_they_should() -> None:
    """So that the test above cannot pass for want of operations."""
    texts = {
        name: jax.export.export(jax.jit(function))(weights, inputs).mlir_module()
        for name, (function, weights, inputs) in PROGRAMS.items()
    }
    for op in ("convolution", "reduce_window", "dot_general", "rsqrt", "reduce"):
        assert f"stablehlo.{op}" in texts["cnn"], op
    assert "stablehlo.select_and_scatter" in texts["gradients of the cnn"]
    for op in ("stablehlo.gather", "stablehlo.exponential", "stablehlo.dot_general"):
        assert op in texts["transformer"], op
