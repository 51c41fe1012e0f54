"""Batch normalisation, which jax.lax has not: XLA's three functions."""

from __future__ import annotations

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.lax.core import ArrayLike, integer, operands
from xarr.lax.tracing import results_of
from xarr.runtime.handles import wrap


@names_errors
def batch_norm_training(
    operand: ArrayLike, scale: ArrayLike, offset: ArrayLike, epsilon: float, feature_index: int
) -> tuple[Array, Array, Array]:
    """(normalised operand, mean, variance): each feature to mean 0 and variance 1, times scale plus offset.

    operand: floats; scale, offset: vectors with an element for each index of dimension `feature_index`.
    epsilon: added to the variance, as a float32.

    Mean and (biased) variance are taken over all other dimensions.  Raises ShapeError [C1], [C3],
    DTypeError [C2].  Source: XLA's BatchNormTraining.
    """
    nodes = operands("batch_norm_training", operand, scale, offset)
    op = ops.BatchNormTraining(*_settings("batch_norm_training", epsilon, feature_index))
    normal, mean, variance = results_of(op, nodes, 3)
    return normal, mean, variance


@names_errors
def batch_norm_inference(
    operand: ArrayLike,
    scale: ArrayLike,
    offset: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    epsilon: float,
    feature_index: int,
) -> Array:
    """(operand - mean) / sqrt(variance + epsilon) * scale + offset, feature by feature.

    As batch_norm_training otherwise.  Source: XLA's BatchNormInference.
    """
    nodes = operands("batch_norm_inference", operand, scale, offset, mean, variance)
    op = ops.BatchNormInference(*_settings("batch_norm_inference", epsilon, feature_index))
    return wrap(Node(op, nodes))


@names_errors
def batch_norm_grad(
    operand: ArrayLike,
    scale: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    grad_output: ArrayLike,
    epsilon: float,
    feature_index: int,
) -> tuple[Array, Array, Array]:
    """The gradients with respect to operand, scale and offset of batch_norm_training.

    mean, variance: its results; grad_output: the gradient of its first result, of the operand's shape.
    Raises ShapeError [C1], [C3], [C4], DTypeError [C2].  Source: XLA's BatchNormGrad.
    """
    nodes = operands("batch_norm_grad", operand, scale, mean, variance, grad_output)
    op = ops.BatchNormGrad(*_settings("batch_norm_grad", epsilon, feature_index))
    grad_operand, grad_scale, grad_offset = results_of(op, nodes, 3)
    return grad_operand, grad_scale, grad_offset


def _settings(name: str, epsilon: float, feature_index: int) -> tuple[float, int]:
    if isinstance(epsilon, bool) or not isinstance(epsilon, int | float | np.number):
        raise InputError(f"{name}: wanted a number for epsilon, got {epsilon!r}")
    return float(np.float32(epsilon)), integer(name, "feature_index", feature_index)
