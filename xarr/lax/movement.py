"""Functions of the explicit level that move elements: broadcast, reshape, transpose, slice, pad, concatenate.

Names and argument order are `jax.lax`'s.  Dimension numbers may be negative where jax.lax allows it.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from itertools import accumulate
from math import prod

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.lax.core import ArrayLike, apply, integer, integers, items, operands
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.shapes import check_sizes, normalize_axes, normalize_axis


def _shape(name: str, operand: ArrayLike) -> tuple[int, ...]:
    (node,) = operands(name, operand)
    return node.shape


@names_errors
def broadcast(operand: ArrayLike, sizes: Sequence[int]) -> Array:
    """Copies of `operand` under new leading dimensions `sizes`.  Source: XLA's Broadcast."""
    new, shape = check_sizes(sizes), _shape("broadcast", operand)
    return broadcast_in_dim(operand, new + shape, range(len(new), len(new) + len(shape)))


@names_errors
def broadcast_in_dim(operand: ArrayLike, shape: Sequence[int], broadcast_dimensions: Sequence[int]) -> Array:
    """`operand` laid into `shape`: its dimension i along result dimension broadcast_dimensions[i].

    Sizes are equal or 1 in the operand.  `broadcast_dimensions` is strictly increasing, as XLA demands.
    Raises ShapeError [C1]-[C4].  Source: XLA's BroadcastInDim.
    """
    dims = integers("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    return apply(ops.BroadcastInDim(check_sizes(shape), dims), operand)


@names_errors
def reshape(operand: ArrayLike, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None) -> Array:
    """The elements in row-major order under the shape `new_sizes`.

    With `dimensions`, a permutation, elements are read with dimension dimensions[0] varying slowest and
    dimensions[-1] fastest.  Raises ShapeError [C1] if the number of elements differs.  Source: XLA's Reshape.
    """
    if dimensions is not None:
        operand = transpose(operand, dimensions)
    return apply(ops.Reshape(check_sizes(new_sizes)), operand)


@names_errors
def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Dimensions start … stop - 1 joined into one of the product of their sizes.

    Raises ShapeError unless start < stop.  Source: XLA's Collapse, with jax.lax's arguments.
    """
    shape = _shape("collapse", operand)
    first = integer("collapse", "start_dimension", start_dimension)
    last = None if stop_dimension is None else integer("collapse", "stop_dimension", stop_dimension)
    start, stop, _ = builtins.slice(first, last).indices(len(shape))
    if start >= stop:
        raise ShapeError(
            f"collapse: wanted start_dimension < stop_dimension within rank {len(shape)}, "
            f"got {start_dimension} and {stop_dimension}"
        )
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


@names_errors
def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Result dimension i is operand dimension permutation[i].  Raises ShapeError [C1] for no permutation.

    Source: XLA's Transpose.
    """
    return apply(ops.Transpose(integers("transpose", "permutation", permutation)), operand)


@names_errors
def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order along each of `dimensions`.  Raises ShapeError [C1], [C2].  Source: XLA's Rev."""
    return apply(ops.Reverse(integers("rev", "dimensions", dimensions)), operand)


@names_errors
def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """operand[start:limit:stride] in every dimension, with 0 <= start <= limit <= size and stride >= 1.

    Raises ShapeError [C1]-[C3].  Source: XLA's Slice.
    """
    start = integers("slice", "start_indices", start_indices)
    steps = (1,) * len(start) if strides is None else integers("slice", "strides", strides)
    return apply(ops.Slice(start, integers("slice", "limit_indices", limit_indices), steps), operand)


@names_errors
def slice_in_dim(
    operand: ArrayLike, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0
) -> Array:
    """operand[start:limit:stride] along `axis` alone; negative indices count from the end.

    Source: jax.lax.slice_in_dim.
    """
    shape = _shape("slice_in_dim", operand)
    axis = normalize_axis(axis, len(shape))
    size = shape[axis]
    start = 0 if start_index is None else integer("slice_in_dim", "start_index", start_index)
    limit = size if limit_index is None else integer("slice_in_dim", "limit_index", limit_index)
    if start < 0 or limit < 0:
        refuse_dynamic("slice_in_dim from the end", operand, "dynamic_slice_in_dim", (axis,))
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + size if start < 0 else start
    limits[axis] = limit + size if limit < 0 else limit
    strides[axis] = stride
    return slice(operand, starts, limits, strides)


@names_errors
def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """The slice at `index` along `axis`; the dimension stays with size 1 unless `keepdims` is false.

    Source: jax.lax.index_in_dim.
    """
    shape = _shape("index_in_dim", operand)
    axis = normalize_axis(axis, len(shape))
    at = integer("index_in_dim", "index", index)
    if at < 0:
        refuse_dynamic("index_in_dim from the end", operand, "dynamic_index_in_dim", (axis,))
    if not -shape[axis] <= at < shape[axis]:
        raise ShapeError(f"index_in_dim: wanted an index in [{-shape[axis]}, {shape[axis]}), got {at}")
    at %= shape[axis]
    result = slice_in_dim(operand, at, at + 1, axis=axis)
    return result if keepdims else squeeze(result, (axis,))


@names_errors
def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Size-1 dimensions inserted so that they have the numbers `dimensions` in the result.

    Source: jax.lax.expand_dims.
    """
    shape = list(_shape("expand_dims", array))
    dimensions = integers("expand_dims", "dimensions", dimensions)
    for axis in sorted(normalize_axes(dimensions, len(shape) + len(dimensions))):
        shape.insert(axis, 1)
    kept = [axis for axis in range(len(shape)) if axis not in normalize_axes(dimensions, len(shape))]
    return broadcast_in_dim(array, shape, kept)


@names_errors
def squeeze(array: ArrayLike, dimensions: Sequence[int] | None = None) -> Array:
    """`dimensions`, all of size 1, removed; by default every one of size 1.  ShapeError for another size.

    Source: jax.lax.squeeze.
    """
    shape = _shape("squeeze", array)
    ones = [axis for axis, size in enumerate(shape) if size == 1]
    dims = tuple(ones) if dimensions is None else normalize_axes(dimensions, len(shape))
    if any(shape[axis] != 1 for axis in dims):
        raise ShapeError(
            f"squeeze: wanted dimensions of size 1, got {dims} of shape {shape}; those are {ones}"
        )
    return reshape(array, [size for axis, size in enumerate(shape) if axis not in dims])


@names_errors
def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """(low, high, interior) padding in each dimension with `padding_value`, a scalar.

    Negative low and high cut elements off.  Raises ShapeError [C1]-[C4].  Source: XLA's Pad.
    """
    config = items("pad", "padding_config", padding_config)
    rows = [integers("pad", "padding_config", row) for row in config]
    if any(len(row) != 3 for row in rows):
        raise InputError(f"pad: wanted (low, high, interior) for each dimension, got {config}")
    low, high, interior = zip(*rows, strict=True) if rows else ((), (), ())
    return apply(ops.Pad(low, high, interior), operand, padding_value)


@names_errors
def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Arrays of one rank and element type, one after the other along `dimension`.

    Raises ShapeError [C1], [C3], [C4], DTypeError [C2].  Source: XLA's ConcatInDim.
    """
    arrays = items("concatenate", "operands", operands)
    return apply(ops.Concatenate(integer("concatenate", "dimension", dimension)), *arrays)


@names_errors
def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Consecutive parts of `sizes` along `axis`; ShapeError unless the sizes add up.

    Source: jax.lax.split.
    """
    shape, parts = _shape("split", operand), check_sizes(sizes)
    axis = normalize_axis(axis, len(shape))
    refuse_dynamic("split", operand, "slice_in_dim", (axis,))
    if sum(parts) != shape[axis]:
        raise ShapeError(f"split: sizes {parts} add up to {sum(parts)}, dimension {axis} has {shape[axis]}")
    ends = list(accumulate(parts))
    return [slice_in_dim(operand, end - size, end, axis=axis) for size, end in zip(parts, ends, strict=True)]
