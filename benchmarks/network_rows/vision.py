"""Networks of images: residual networks, a U-Net and an MLP-Mixer, written as flax's examples are."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
import optax
from flax import linen as nn

from network_rows.row import LAST, Call, Network, forward, integers, normal, training_step


def layers(is_training: bool) -> tuple[Any, Any]:
    """Makers of the convolutions and batch norms of residual networks."""
    return (
        partial(nn.Conv, use_bias=False),
        partial(nn.BatchNorm, use_running_average=not is_training, momentum=0.9),
    )


class ResidualBlock(nn.Module):
    """Two 3 × 3 convolutions beside a path without any."""

    features: int
    strides: int
    is_training: bool

    @nn.compact
    def __call__(self, x: Any) -> Any:
        conv, norm = layers(self.is_training)
        y = nn.relu(norm()(conv(self.features, (3, 3), (self.strides, self.strides))(x)))
        y = norm(name=LAST)(conv(self.features, (3, 3))(y))
        if x.shape != y.shape:
            x = norm()(conv(self.features, (1, 1), (self.strides, self.strides))(x))
        return nn.relu(x + y)


class BottleneckBlock(nn.Module):
    """A 3 × 3 convolution of few features between two of 1 × 1."""

    features: int
    strides: int
    is_training: bool

    @nn.compact
    def __call__(self, x: Any) -> Any:
        conv, norm = layers(self.is_training)
        y = nn.relu(norm()(conv(self.features, (1, 1))(x)))
        y = nn.relu(norm()(conv(self.features, (3, 3), (self.strides, self.strides))(y)))
        y = norm(name=LAST)(conv(4 * self.features, (1, 1))(y))
        if x.shape != y.shape:
            x = norm()(conv(4 * self.features, (1, 1), (self.strides, self.strides))(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """A residual network; `stages` says how many blocks there are of each width."""

    block: Any
    stages: Sequence[int]
    features: int
    is_training: bool = False

    @nn.compact
    def __call__(self, x: Any) -> Any:
        conv, norm = layers(self.is_training)
        x = conv(self.features, (7, 7), (2, 2), padding=[(3, 3), (3, 3)])(x)
        x = nn.max_pool(nn.relu(norm()(x)), (3, 3), strides=(2, 2), padding="SAME")
        for stage, blocks in enumerate(self.stages):
            for number in range(blocks):
                strides = 2 if stage and not number else 1
                x = self.block(self.features << stage, strides, self.is_training)(x)
        return nn.Dense(1000)(x.mean(axis=(1, 2)))


def resnet50(is_tiny: bool) -> Call:
    if is_tiny:
        return forward(ResNet(BottleneckBlock, (1, 1), 4), normal(1, 16, 16, 3))
    return forward(ResNet(BottleneckBlock, (3, 4, 6, 3), 64), normal(1, 224, 224, 3))


def resnet50_training(is_tiny: bool) -> Call:
    if is_tiny:
        model, inputs = ResNet(BottleneckBlock, (1, 1), 4, is_training=True), normal(4, 16, 16, 3)
    else:
        model, inputs = ResNet(BottleneckBlock, (3, 4, 6, 3), 64, is_training=True), normal(4, 96, 96, 3)
    return training_step(model, optax.sgd(0.01, momentum=0.9), inputs, integers(1000, 4))


def small_resnet_training(is_tiny: bool) -> Call:
    size = 8 if is_tiny else 32
    model = ResNet(ResidualBlock, (1, 1, 1), 4 if is_tiny else 16, is_training=True)
    return training_step(model, optax.adamw(1e-3), normal(8, size, size, 3), integers(1000, 8))


class DoubleConv(nn.Module):
    """Two 3 × 3 convolutions, each followed by a group norm."""

    features: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        for _ in range(2):
            x = nn.relu(nn.GroupNorm(num_groups=4)(nn.Conv(self.features, (3, 3))(x)))
        return x


class UNet(nn.Module):
    """Convolutions at ever lower resolutions and back, joined with what was there before."""

    features: int
    depth: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        before = []
        for level in range(self.depth):
            x = DoubleConv(self.features << level)(x)
            before.append(x)
            x = nn.max_pool(x, (2, 2), strides=(2, 2))
        x = DoubleConv(self.features << self.depth)(x)
        for level in reversed(range(self.depth)):
            x = nn.ConvTranspose(self.features << level, (2, 2), strides=(2, 2))(x)
            x = DoubleConv(self.features << level)(jnp.concatenate([x, before[level]], axis=-1))
        return nn.Conv(2, (1, 1))(x)


def unet(is_tiny: bool) -> Call:
    if is_tiny:
        return forward(UNet(4, 2), normal(1, 16, 16, 3))
    return forward(UNet(32, 3), normal(1, 128, 128, 3))


class Mixer(nn.Module):
    """Patches of an image, mixed along patches and along features in turn by two dense layers each."""

    patch: int
    features: int
    blocks: int

    @nn.compact
    def __call__(self, x: Any) -> Any:
        x = nn.Conv(self.features, (self.patch, self.patch), (self.patch, self.patch))(x)
        x = x.reshape(len(x), -1, self.features)
        for _ in range(self.blocks):
            y = jnp.swapaxes(nn.LayerNorm()(x), 1, 2)
            y = nn.Dense(x.shape[1])(nn.gelu(nn.Dense(self.features // 2)(y)))
            x = x + jnp.swapaxes(y, 1, 2)
            y = nn.Dense(4 * self.features)(nn.LayerNorm()(x))
            x = x + nn.Dense(self.features)(nn.gelu(y))
        return nn.Dense(1000)(nn.LayerNorm()(x).mean(axis=1))


def mixer(is_tiny: bool) -> Call:
    if is_tiny:
        return forward(Mixer(4, 8, 1), normal(1, 16, 16, 3))
    return forward(Mixer(16, 512, 4), normal(1, 224, 224, 3))


NETWORKS = (
    Network("ResNet-50", resnet50),
    Network("ResNet-50, training step", resnet50_training),
    Network("small ResNet, training step", small_resnet_training),
    Network("U-Net", unet),
    Network("MLP-Mixer", mixer),
)
