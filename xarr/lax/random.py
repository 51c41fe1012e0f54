"""Random bits from a state, and XLA's random numbers without one.  `xarr.random` has the convenient ones."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import canonical
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.random import STATES
from xarr.ir.types import TensorType
from xarr.lax.core import ArrayLike, integers, operands, text
from xarr.lax.tracing import results_of
from xarr.runtime.handles import wrap


class RandomAlgorithm(Enum):
    """The algorithms of rng_bit_generator, numbered as XLA does."""

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


_NAMES = {
    RandomAlgorithm.RNG_DEFAULT: "DEFAULT",
    RandomAlgorithm.RNG_THREE_FRY: "THREE_FRY",
    RandomAlgorithm.RNG_PHILOX: "PHILOX",
}


@names_errors
def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm | str = RandomAlgorithm.RNG_DEFAULT,
) -> tuple[Array, Array]:
    """(new key, random bits): the same bits for the same key, on every backend, and those of XLA's CPU.

    key: the state, uint64 of shape (2,), or (3,) for Philox; or uint32 of twice the length, as jax.lax takes.
    shape, dtype: of the bits; any integer or float type.
    algorithm: "THREE_FRY", "PHILOX" or "DEFAULT" (Philox).

    Returns the key for the next call, of the type that was given, and an array of `shape`.  Raises ShapeError
    [C1] for another state, [C2] for an unknown algorithm, DTypeError [C3].  Source: XLA's RngBitGenerator.
    """
    (node,) = operands("rng_bit_generator", key)
    name = _algorithm(algorithm)
    halves = node.dtype == np.uint32 and len(node.shape) == 1
    if halves:
        node = _as_uint64(name, node)
    result = TensorType(_sizes("rng_bit_generator", shape), canonical(dtype))
    state, bits = results_of(ops.RngBitGenerator(name, result), (node,), 2)
    if halves:
        pairs = Node(ops.BitcastConvert(np.dtype(np.uint32)), (state._node,))
        state = wrap(Node(ops.Reshape((2 * node.shape[0],)), (pairs,)))
    return state, bits


def _algorithm(algorithm: RandomAlgorithm | str) -> str:
    if isinstance(algorithm, RandomAlgorithm):
        return _NAMES[algorithm]
    name = text("rng_bit_generator", "algorithm", algorithm).upper().removeprefix("RNG_")
    if name not in STATES:
        wanted = ", ".join(STATES)
        raise InputError(f"rng_bit_generator: wanted one of the algorithms {wanted}, got {algorithm!r}")
    return name


def _as_uint64(algorithm: str, node: Node) -> Node:
    """The state that jax.lax passes as uint32: words in pairs, the lower one first."""
    length = node.shape[0]
    if length % 2 or length // 2 not in STATES[algorithm]:
        wanted = " or ".join(f"u32[{2 * size}] (u64[{size}])" for size in STATES[algorithm])
        raise ShapeError(
            f"rng_bit_generator [C1]: wanted a state {wanted} for {algorithm}, got {node.tensor_type.short()}"
        )
    pairs = Node(ops.Reshape((length // 2, 2)), (node,))
    return Node(ops.BitcastConvert(np.dtype(np.uint64)), (pairs,))


@names_errors
def rng_uniform(a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    """Numbers between `a` (included) and `b` (excluded), other ones each time they are computed.

    a, b: scalars of one bool, integer or float type.  The generator is the backend's, one for the process;
    `xarr.lax.seed_rng` starts it anew.  Prefer `xarr.random.uniform`, which can be repeated.

    Returns an array of `shape`.  Raises ShapeError or DTypeError [C1], DTypeError [C3].
    Source: XLA's RngUniform.
    """
    return _rng("rng_uniform", "UNIFORM", a, b, shape)


@names_errors
def rng_normal(mu: ArrayLike, sigma: ArrayLike, shape: Sequence[int]) -> Array:
    """Normally distributed numbers of mean `mu` and standard deviation `sigma`, other ones each time.

    mu, sigma: scalars of one float type.  As rng_uniform otherwise.  Source: XLA's RngNormal.
    """
    return _rng("rng_normal", "NORMAL", mu, sigma, shape)


def _rng(name: str, distribution: str, a: ArrayLike, b: ArrayLike, shape: Sequence[int]) -> Array:
    nodes = operands(name, a, b)
    sizes = _sizes(name, shape)
    shape_node = Node(ops.Constant.of(np.array(sizes, np.int64)))
    return wrap(Node(ops.Rng(distribution, sizes), (*nodes, shape_node)))


def _sizes(name: str, shape: Any) -> tuple[int, ...]:
    sizes = integers(name, "shape", shape)
    if any(size < 0 for size in sizes):
        raise InputError(f"{name}: wanted sizes >= 0, got {sizes}")
    return sizes
