"""Networks of sequences: a GPT and an LSTM."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import optax
from flax import linen as nn

from network_rows.row import Call, Network, forward, integers, normal, training_step


class Block(nn.Module):
    """Attention to what came before, then two dense layers, each added to what it reads."""

    heads: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        y = nn.LayerNorm()(x)
        x = x + nn.MultiHeadDotProductAttention(self.heads)(y, mask=nn.make_causal_mask(x[..., 0]))
        y = nn.gelu(nn.Dense(4 * x.shape[-1])(nn.LayerNorm()(x)))
        return x + nn.Dense(x.shape[-1])(y)


class GPT(nn.Module):
    """A decoder of `blocks` blocks."""

    words: int
    features: int
    heads: int
    blocks: int

    @nn.compact
    def __call__(self, tokens: Any) -> Any:
        embedding = nn.Embed(self.words, self.features)
        positions = self.param("positions", nn.initializers.normal(0.02), (tokens.shape[1], self.features))
        x = embedding(tokens) + positions
        for _ in range(self.blocks):
            x = Block(self.heads)(x)
        return embedding.attend(nn.LayerNorm()(x))


def _gpt(is_tiny: bool) -> tuple[GPT, Any]:
    if is_tiny:
        return GPT(words=16, features=8, heads=2, blocks=1), integers(16, 2, 6)
    return GPT(words=1024, features=256, heads=8, blocks=4), integers(1024, 2, 128)


def gpt(is_tiny: bool) -> Call:
    return forward(*_gpt(is_tiny))


def gpt_training(is_tiny: bool) -> Call:
    model, tokens = _gpt(is_tiny)
    return training_step(model, optax.adamw(1e-3), tokens, (tokens + 1) % model.words)


class LSTM(nn.Module):
    """Two layers of cells, and a dense layer on their last outputs."""

    features: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.RNN(nn.OptimizedLSTMCell(self.features))(x)
        return nn.Dense(10)(jnp.tanh(x[:, -1]))


def _lstm(is_tiny: bool) -> tuple[LSTM, Any]:
    return (LSTM(4), normal(2, 5, 3)) if is_tiny else (LSTM(128), normal(8, 64, 64))


def lstm(is_tiny: bool) -> Call:
    return forward(*_lstm(is_tiny))


def lstm_training(is_tiny: bool) -> Call:
    model, inputs = _lstm(is_tiny)
    return training_step(model, optax.adamw(1e-3), inputs, integers(10, len(inputs)))


NETWORKS = (
    Network("GPT", gpt),
    Network("GPT, training step", gpt_training),
    Network("LSTM", lstm),
    Network("LSTM, training step", lstm_training),
)
