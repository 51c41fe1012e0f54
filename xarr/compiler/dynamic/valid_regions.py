"""Arrays of dynamic sizes as static values: a buffer of the bounds, and the live sizes.

The live elements stand at the front of the buffer in every dimension; what stands behind them means
nothing.  Here are the pieces that the rewriting of each op is made of, all of them static nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from functools import reduce
from typing import Any, Final

import numpy as np

from xarr.base.frozen_dataclasses import record
from xarr.dtypes import UNSIGNED, info
from xarr.ir.constants import constant, spread
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops import (
    Add,
    And,
    BroadcastInDim,
    Compare,
    Convert,
    Divide,
    DynamicSlice,
    Gather,
    Iota,
    Maximum,
    Minimum,
    Multiply,
    Pad,
    Remainder,
    Reshape,
    Select,
    Slice,
    Subtract,
)
from xarr.ir.types import Ints, TensorType, replace_at
from xarr.ir.windows import WindowDimension

DType = np.dtype[Any]
INT32: Final = np.dtype(np.int32)
INT64: Final = np.dtype(np.int64)


@record
class Live:
    """One array.

    * `buffer` - its elements; the shape is that of the bounds,
    * `sizes` - dynamic dimension -> its live size, an int32 scalar between 0 and the bound.
    """

    buffer: Node
    sizes: Mapping[int, Node] = field(default_factory=dict)

    @property
    def shape(self) -> Ints:
        return self.buffer.shape

    def size(self, dimension: int) -> Node:
        """The size of a dimension, dynamic or not."""
        return self.sizes[dimension] if dimension in self.sizes else number(self.shape[dimension])


# --- scalars ------------------------------------------------------------------------------------------


def number(value: int) -> Node:
    """A size that is known."""
    return constant(value, INT32)


def zero(dtype: DType) -> Node:
    return constant(0, dtype)


def binary(op: Op, a: Node, b: Node) -> Node:
    return Node(op, (a, b))


def plus(a: Node, b: Node) -> Node:
    return binary(Add(), a, b)


def minus(a: Node, b: Node) -> Node:
    return binary(Subtract(), a, b)


def times(a: Node, b: Node) -> Node:
    return binary(Multiply(), a, b)


def smaller(a: Node, b: Node) -> Node:
    return a if a is b else binary(Minimum(), a, b)


def larger(a: Node, b: Node) -> Node:
    return a if a is b else binary(Maximum(), a, b)


def quotient_up(size: Node, divisor: int) -> Node:
    """size / divisor, rounded up."""
    return size if divisor == 1 else binary(Divide(), plus(size, number(divisor - 1)), number(divisor))


def windows_in(size: Node, window: WindowDimension) -> Node:
    """The number of windows that fit in a dimension of live size `size`."""
    if window.is_trivial:
        return size

    def wide(value: int) -> Node:
        return constant(value, INT64)

    gaps = times(minus(convert(size, INT64), wide(1)), wide(window.base_dilation))
    extent = larger(plus(gaps, wide(1)), wide(0))
    around = window.padding_low + window.padding_high - window.dilated_size + window.stride
    reach = larger(plus(extent, wide(around)), wide(0))
    return convert(binary(Divide(), reach, wide(window.stride)), INT32)


def smallest(sizes: Iterable[Node]) -> Node:
    """The smallest of sizes that should be equal."""
    return reduce(smaller, dict.fromkeys(sizes))


def shared_sizes(arrays: Sequence[Live]) -> dict[int, Node]:
    """The live sizes of arrays of one shape; of sizes that differ the smaller."""
    dims = sorted({dim for array in arrays for dim in array.sizes})
    return {dim: smallest(array.sizes[dim] for array in arrays if dim in array.sizes) for dim in dims}


# --- arrays -------------------------------------------------------------------------------------------


def vector_along(vector: Node, shape: Ints, dimension: int) -> Node:
    """A vector along one dimension, the same along every other."""
    return Node(BroadcastInDim(shape, (dimension,)), (vector,))


def mask(shape: Ints, sizes: Mapping[int, Node]) -> Node:
    """True at the indices below `sizes`, of which there is at least one."""

    def is_below(dimension: int, size: Node) -> Node:
        positions = Node(Iota(TensorType((shape[dimension],), INT32), 0))
        return vector_along(binary(Compare("LT"), positions, spread(size, positions.shape)), shape, dimension)

    return reduce(lambda a, b: binary(And(), a, b), [is_below(dim, size) for dim, size in sizes.items()])


def fill_padding(array: Live, value: Node, dimensions: Iterable[int]) -> Node:
    """The buffer with the scalar `value` behind the live part of `dimensions`."""
    sizes = {dim: array.sizes[dim] for dim in dimensions if dim in array.sizes}
    return mask_beyond(array.buffer, value, sizes)


def mask_beyond(buffer: Node, value: Node, sizes: Mapping[int, Node]) -> Node:
    """`buffer` with the scalar `value` at the indices that are not below `sizes`."""
    if not sizes:
        return buffer
    return Node(Select(), (mask(buffer.shape, sizes), buffer, spread(value, buffer.shape)))


def stretch(buffer: Node, dimension: int, size: Node) -> Node:
    """`buffer` with its first slice along `dimension` repeated where the live size is 1."""
    shape = buffer.shape
    if shape[dimension] < 2:
        return buffer
    first = cut(buffer, dimension, 0, 1)
    repeated = Node(BroadcastInDim(shape, tuple(range(len(shape)))), (first,))
    is_one = spread(binary(Compare("EQ"), size, number(1)), shape)
    return Node(Select(), (is_one, repeated, buffer))


def cut(buffer: Node, dimension: int, start: int, limit: int) -> Node:
    """buffer[start:limit] along `dimension`."""
    return Node(Slice.cut(buffer.shape, dimension, start, limit), (buffer,))


def append_zeros(buffer: Node, extra: Mapping[int, int]) -> Node:
    """`buffer` with zeros appended along dimensions."""
    nothing = (0,) * len(buffer.shape)
    high = tuple(extra.get(dim, 0) for dim in range(len(nothing)))
    return Node(Pad(nothing, high, nothing), (buffer, zero(buffer.dtype))) if any(high) else buffer


def shift(buffer: Node, dimension: int, start: Node) -> Node:
    """buffer[start:] along `dimension`, followed by zeros; `start` lies in [0, size]."""
    longer = append_zeros(buffer, {dimension: buffer.shape[dimension]})
    starts = [number(0)] * len(buffer.shape)
    starts[dimension] = start
    return Node(DynamicSlice(buffer.shape), (longer, *starts))


def take(buffer: Node, dimension: int, indices: Node) -> Node:
    """The slices of `buffer` at the vector `indices` along `dimension`."""
    shape = buffer.shape
    op = Gather(
        offset_dims=tuple(dim for dim in range(len(shape)) if dim != dimension),
        collapsed_slice_dims=(dimension,),
        operand_batching_dims=(),
        start_indices_batching_dims=(),
        start_index_map=(dimension,),
        index_vector_dim=1,
        slice_sizes=replace_at(shape, dimension, 1),
    )
    return Node(op, (buffer, indices))


def compact(buffer: Node, dimension: int, parts: Sequence[tuple[int, Node]]) -> Node:
    """Bring the live elements of dimensions that were merged into one to its front.

    parts: bound and live size of each merged dimension, the most major first.
    """
    position: Node = Node(Iota(TensorType((buffer.shape[dimension],), INT32), 0))
    source, stride = spread(number(0), position.shape), 1
    for bound, size in reversed(parts):
        # Where the size is 0 nothing is live, and any index will do.
        divisor = spread(larger(size, number(1)), position.shape)
        index = binary(Remainder(), position, divisor)
        source = plus(source, times(index, spread(number(stride), position.shape)))
        position, stride = binary(Divide(), position, divisor), stride * bound
    return take(buffer, dimension, source)


# --- indices ------------------------------------------------------------------------------------------


def last_start(size: Node, window: Node) -> Node:
    """The greatest start of a window in a dimension of `size`, 0 if it does not fit."""
    return larger(minus(size, window), number(0))


def clamp_index(index: Node, limit: Node) -> Node:
    """`index`, of any integer type and shape, held to at most `limit`, int32 of the same shape."""
    dtype = index.dtype
    if info(dtype).max < np.iinfo(np.int32).max:
        limit = smaller(limit, spread(number(int(info(dtype).max)), limit.shape))
    return smaller(index, convert(limit, dtype))


def convert(node: Node, dtype: DType) -> Node:
    return node if node.dtype == dtype else Node(Convert(dtype), (node,))


def make_signed(indices: Node) -> Node:
    """The indices in a type that has -1."""
    return convert(indices, INT64) if indices.dtype in UNSIGNED else indices


def vector(scalars: Sequence[Node]) -> list[Node]:
    """Scalars as arrays of one element, to be concatenated."""
    return [Node(Reshape((1,)), (scalar,)) for scalar in scalars]
