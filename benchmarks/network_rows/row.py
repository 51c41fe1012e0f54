"""A row of `benchmarks/networks.py`: a network of flax, forward or one step of its training by optax."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

Array = Any
#: A function of trees of arrays, and its arguments.
Call = tuple[Callable[..., Any], tuple[Any, ...]]
#: The name of the norm that ends a residual block, and its scale: training begins with small ones, since gradients of
#: many blocks of one size are too sensitive to the order of sums for answers to be compared.
LAST = "last"
SCALE_OF_LAST = 0.1


@dataclass(frozen=True)
class Network:
    """One computation of a network.

    * `make(is_tiny)` - the function and its arguments, in the size that is measured or in one for tests,
    * `tolerance` - by how many units in the last place of the greatest element of a result others may differ from
      JAX: sums of many terms are formed in another order in each layer.
    """

    name: str
    make: Callable[[bool], Call]
    tolerance: float = 2**13


@dataclass(frozen=True)
class FlatCall:
    """A call with its trees taken apart: `function` takes and gives lists of arrays."""

    function: Callable[..., list[Any]]
    arguments: tuple[np.ndarray, ...]


def flat_call(call: Call) -> FlatCall:
    function, trees = call
    leaves, structure = jax.tree.flatten(trees)

    def flat(*arrays: Any) -> list[Any]:
        results: list[Any] = jax.tree.leaves(function(*jax.tree.unflatten(structure, arrays)))
        return results

    return FlatCall(flat, tuple(np.asarray(leaf) for leaf in leaves))


def forward(model: Any, inputs: np.ndarray) -> Call:
    """The model applied to `inputs`."""
    return model.apply, (_initial(model, inputs), inputs)


def training_step(model: Any, optimiser: Any, inputs: np.ndarray, labels: np.ndarray) -> Call:
    """One step that lessens the cross entropy of `labels`: gradients, statistics of batch norms, new weights.

    The state of the optimiser is that of a training under way.
    """
    variables = dict(_initial(model, inputs))
    weights = variables.pop("params")
    state = _under_way(optimiser.init(weights))

    def loss(weights: Any, variables: Any, inputs: Array, labels: Array) -> Any:
        logits, changed = model.apply({"params": weights, **variables}, inputs, mutable=list(variables))
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed

    def step(weights: Any, state: Any, variables: Any, inputs: Array, labels: Array) -> Any:
        (value, changed), gradients = jax.value_and_grad(loss, has_aux=True)(
            weights, variables, inputs, labels
        )
        updates, state = optimiser.update(gradients, state, weights)
        return optax.apply_updates(weights, updates), state, changed, value

    return step, (weights, state, variables, inputs, labels)


def _initial(model: Any, inputs: np.ndarray) -> Any:
    """Random weights, about as large as flax's, which would be compiled for longer than the network."""
    shapes = jax.eval_shape(model.init, jax.random.key(0), inputs)
    draw = np.random.default_rng(3)

    def weights(path: Any, leaf: Any) -> np.ndarray:
        numbers = draw.normal(size=leaf.shape)
        if path[-1].key in ("scale", "var"):
            size = SCALE_OF_LAST if path[-2].key == LAST and path[-1].key == "scale" else 1.0
            return (size * (1 + 0.1 * np.abs(numbers))).astype(leaf.dtype)
        inputs = leaf.size // leaf.shape[-1]
        return (numbers * (0.1 if len(leaf.shape) == 1 else inputs**-0.5)).astype(leaf.dtype)

    return jax.tree_util.tree_map_with_path(weights, shapes)


def _under_way(state: Any) -> Any:
    """Moments as after some steps: where they are zero, Adam's first step is the sign of a gradient."""
    draw = np.random.default_rng(2)

    def moment(leaf: Any) -> Any:
        is_float = jnp.issubdtype(leaf.dtype, jnp.floating)
        return np.abs(draw.normal(size=leaf.shape)).astype(leaf.dtype) * 1e-2 if is_float else leaf

    return jax.tree.map(moment, state)


def normal(*shape: int) -> np.ndarray:
    """Normal numbers in float32, the same at each call."""
    return np.random.default_rng(0).normal(size=shape).astype(np.float32)


def integers(below: int, *shape: int) -> np.ndarray:
    """Integers in [0, below), the same at each call."""
    return np.random.default_rng(1).integers(below, size=shape).astype(np.int32)
