"""Pooling as neural networks name it: the largest, the smallest, the mean of each window of an image.

Arguments are those of `flax.linen`: `inputs` of shape (*batch, *window, features), where `window_shape` says how many
dimensions windows have and how large they are; windows do not span batch and features.  `strides` are 1 by
default; `padding` is "VALID", "SAME", "SAME_LOWER" or a pair (low, high) for each dimension of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import COMPLEX, FLOAT
from xarr.errors import DTypeError, ShapeError
from xarr.ir import ops
from xarr.ir.computations import combiner
from xarr.ir.constants import constant
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr.ir.windows import Pairs, Window
from xarr.lax.core import ArrayLike, broadcast_node, host_node, integers, operands
from xarr.lax.dynamic_sizes import refuse_dynamic, refuse_named_padding
from xarr.lax.reduction import initial_value
from xarr.lax.windows import Padding, padding_pairs
from xarr.runtime.handles import wrap


@names_errors
def max_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Array:
    """The largest element of each window, NaN if there is one; padding takes no part.

    inputs: array of shape (*batch, *window, features).  window_shape: sizes, >= 1.  strides: as many, 1 by default.
    padding: a name or as many pairs (low, high).

    A window of nothing but padding gives -inf, or the least value of the type.
    Raises ShapeError for fewer dimensions than a window and features have, and [C4]-[C12].
    Source: flax.linen.max_pool.
    """
    return _pool("max_pool", ops.Maximum(), inputs, window_shape, strides, padding)


@names_errors
def min_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
) -> Array:
    """The smallest element of each window, NaN if there is one.  Arguments and errors as max_pool.

    Source: flax.linen.min_pool.
    """
    return _pool("min_pool", ops.Minimum(), inputs, window_shape, strides, padding)


@names_errors
def avg_pool(
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: Sequence[int] | None = None,
    padding: Padding = "VALID",
    count_include_pad: bool = True,
) -> Array:
    """The mean of each window.  Arguments as max_pool.

    With `count_include_pad` padding counts as zeros; without, the sum is divided by the number of elements that
    are in the window, and a window of nothing but padding gives NaN.
    Raises DTypeError for integers and bools, whose means are not of their type; ShapeError as max_pool.
    Source: flax.linen.avg_pool.
    """
    (node,) = operands("avg_pool", inputs)
    if node.dtype not in FLOAT | COMPLEX:
        raise DTypeError(
            f"avg_pool: wanted floats or complex numbers, got {node.tensor_type.short()}; convert_element_type it"
        )
    pool = _windows("avg_pool", node, window_shape, strides, padding)
    total = pool.reduction(ops.Add(), node)
    counts = np.array(pool.window.size, node.dtype)
    if not count_include_pad:
        sliding = [dim for dim, each in enumerate(pool.window.dimensions) if not each.is_trivial]
        refuse_dynamic("avg_pool without padding", node, "count_include_pad=True", sliding)
        counts = pool.window.counts(node.shape).astype(node.dtype)
    kept = tuple(axis for axis, size in enumerate(counts.shape) if size == total.shape[axis])
    divisor = host_node(counts.reshape([counts.shape[axis] for axis in kept]), node.device)
    return wrap(Node(ops.Divide(), (total, broadcast_node(divisor, total.shape, kept))))


class _PoolWindows(NamedTuple):
    """The windows in all dimensions of the inputs."""

    sizes: Ints
    strides: Ints
    padding: Pairs

    @property
    def window(self) -> Window:
        return Window.of(self.sizes, self.strides, self.padding)

    def reduction(self, op: ops.Binary, node: Node) -> Node:
        ones = (1,) * len(self.sizes)
        start = constant(initial_value(op, node.dtype), node.dtype)
        graph = combiner(op, node.dtype)
        reduction = ops.ReduceWindow(self.sizes, self.strides, ones, ones, self.padding, graph)
        return Node(reduction, (node, start))


def _pool(
    name: str,
    op: ops.Binary,
    inputs: ArrayLike,
    window_shape: Sequence[int],
    strides: Sequence[int] | None,
    padding: Padding,
) -> Array:
    (node,) = operands(name, inputs)
    if node.dtype in COMPLEX:
        raise DTypeError(
            f"{name}: complex numbers have no order, got {node.tensor_type.short()}; take abs or real"
        )
    pool = _windows(name, node, window_shape, strides, padding)
    return wrap(pool.reduction(op, node))


def _windows(
    name: str, node: Node, window_shape: Sequence[int], strides: Sequence[int] | None, padding: Padding
) -> _PoolWindows:
    """Windows of one element along batch and features."""
    sizes = integers(name, "window_shape", window_shape)
    steps = (1,) * len(sizes) if strides is None else integers(name, "strides", strides)
    batch = len(node.shape) - len(sizes) - 1
    if batch < 0 or len(steps) != len(sizes):
        raise ShapeError(
            f"{name}: wanted inputs (*batch, *window, features) and one stride for each dimension of the window, "
            f"got {node.tensor_type.short()}, window_shape {sizes} and strides {steps}"
        )
    refuse_named_padding(name, node, steps, padding, range(batch, len(node.shape) - 1))
    pairs = padding_pairs(name, node.shape[batch:-1], sizes, steps, padding)
    if len(pairs) != len(sizes):
        raise ShapeError(f"{name}: wanted {len(sizes)} pairs (low, high) of padding, got {pairs}")
    before, none = (1,) * batch, ((0, 0),) * batch
    return _PoolWindows((*before, *sizes, 1), (*before, *steps, 1), (*none, *pairs, (0, 0)))
