"""Shapes: questions about them, other shapes for the same elements, broadcasting, other orders of the dimensions.

None of the functions looks at a value or changes one.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from xarr import lax
from xarr.base.broadcasting import Misfit, align_numpy
from xarr.base.typing import Array
from xarr.calls.arguments import (
    arranges_elements,
    is_column_major,
    is_listed,
)
from xarr.calls.operands import as_array
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import (
    AxisError,
    InputError,
    ShapeError,
    pluralize,
)
from xarr.explanation.errors import broadcast_error
from xarr.lax.core import ArrayLike, integer, integers
from xarr.lax.dynamic_sizes import refuse_dynamic
from xarr.numpy_api.creation.arrays import broadcast_array
from xarr.runtime.handles import Handle
from xarr.runtime.view_tracking import BROADCAST, RESHAPE, TRANSPOSE, mark
from xarr.shapes import check_sizes, normalize_axes, normalize_axis

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "expand_dims",
    "iterable",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "reshape",
    "rollaxis",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "transpose",
]

Shape = int | Sequence[int]
Axes = int | Sequence[int]


# --- questions ------------------------------------------------------------------------------------


@remembers_calls
def ndim(a: ArrayLike) -> int:
    """The number of dimensions.  Source: NumPy, `ndim`."""
    return len(as_array(a).shape)


@remembers_calls
def shape(a: ArrayLike) -> tuple[int, ...]:
    """The sizes of the dimensions.  Source: NumPy, `shape`."""
    array = as_array(a)
    refuse_dynamic("shape", array, "x.shape for the bounds")
    return array.shape


@remembers_calls
def size(a: ArrayLike, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or the size of a dimension, or the product of several.

    Raises AxisError.  Source: NumPy, `size`.
    """
    array = as_array(a)
    refuse_dynamic("size", array, "x.size for the bound")
    return prod(array.shape[dim] for dim in normalize_axes(axis, len(array.shape)))


@remembers_calls
def iterable(y: object) -> bool:
    """Whether `iter(y)` works; of an Array whether it has a dimension.  Source: NumPy, `iterable`."""
    if isinstance(y, Handle):
        return bool(as_array(y).shape)
    return bool(np.iterable(y))


def require_rank(name: str, a: ArrayLike, rank: int) -> Array:
    array = as_array(a)
    if len(array.shape) < rank:
        raise ShapeError(f"{name}: wanted an array of rank {rank} or more, got shape {array.shape}")
    return array


# --- shapes ---------------------------------------------------------------------------------------


@arranges_elements
def reshape(a: ArrayLike, /, shape: Shape, order: str = "C", *, copy: bool | None = None) -> Array:
    """The elements in row-major order (column-major for order "F") under another shape.

    One size may be -1: it is what the number of elements leaves.  Arrays are values, so `copy` changes
    nothing.  Raises ShapeError if the sizes do not fit, ArgumentError for an order.  Source: NumPy, `reshape`.
    """
    array = as_array(a)
    sizes = _open_size(array.shape, shape)
    if not is_column_major("reshape", order):
        result = lax.reshape(array, sizes)
    else:
        backwards = lax.reshape(lax.reshape(_reverse_axes(array), (array.size,)), sizes[::-1])
        result = lax.transpose(backwards, range(len(sizes))[::-1])
    return result if copy else mark(array, result, RESHAPE, (sizes, "F" if order == "F" else "C"))


def _reverse_axes(array: Array) -> Array:
    return lax.transpose(array, range(len(array.shape))[::-1])


def _open_size(old: tuple[int, ...], new: Shape) -> tuple[int, ...]:
    """`new` with its negative size, if it has one, replaced by the size that is left."""
    sizes = list(integers("reshape", "shape", new if is_listed(new) else (new,)))
    count = prod(old)
    open_sizes = [axis for axis, size in enumerate(sizes) if size < 0]
    if len(open_sizes) > 1:
        raise ShapeError(f"reshape: only one size may be -1, got {tuple(sizes)}")
    if open_sizes:
        (axis_left,) = open_sizes
        rest = prod(sizes[:axis_left] + sizes[axis_left + 1 :])
        if rest <= 0 or count % rest:
            raise ShapeError(
                f"reshape: the {pluralize(count, 'element')} of shape {old} cannot be divided among {tuple(sizes)}: "
                f"wanted sizes whose product divides {count}"
            )
        sizes[axis_left] = count // rest
    checked = check_sizes(sizes)
    if prod(checked) != count:
        raise ShapeError(
            f"reshape: shape {old} has {pluralize(count, 'element')}, shape {checked} wants {prod(checked):,}"
        )
    return checked


@arranges_elements
def ravel(a: ArrayLike, order: str = "C") -> Array:
    """All elements in one dimension, row-major or (order "F") column-major.  Source: NumPy, `ravel`."""
    return reshape(a, (-1,) if as_array(a).size else (0,), order)


@remembers_calls
def squeeze(a: ArrayLike, axis: Axes | None = None) -> Array:
    """Dimensions of size 1 removed: those of `axis`, or all.

    Raises ShapeError for an axis of another size, AxisError for none at all.  Source: NumPy, `squeeze`.
    """
    array = as_array(a)
    return _mark_reshape(
        array, lax.squeeze(array, None if axis is None else normalize_axes(axis, len(array.shape)))
    )


def _mark_reshape(array: Array, result: Array) -> Array:
    """Mark `result`, which is `array` under another shape, as a part of it."""
    return mark(array, result, RESHAPE, (result.shape, "C"))


@arranges_elements
def expand_dims(a: ArrayLike, axis: Axes) -> Array:
    """New dimensions of size 1 that have the numbers `axis` in the result.

    Raises AxisError for numbers out of the result's rank or named twice, InputError for None.
    Source: NumPy, `expand_dims`.
    """
    array = as_array(a)
    if axis is None:
        raise InputError("wanted an int or a sequence of ints for axis, got None")
    count = len(axis) if isinstance(axis, Sequence) else 1
    return _mark_reshape(array, lax.expand_dims(array, normalize_axes(axis, len(array.shape) + count)))


@remembers_calls
def atleast_1d(*arys: ArrayLike) -> Any:
    """Scalars become vectors of one element; a tuple of arrays for several.  Source: NumPy."""
    return _at_least(arys, lambda shape: shape if shape else (1,))


@remembers_calls
def atleast_2d(*arys: ArrayLike) -> Any:
    """A vector of n elements becomes (1, n); a tuple of arrays for several.  Source: NumPy."""
    return _at_least(arys, lambda shape: (1,) * (2 - len(shape)) + shape)


@remembers_calls
def atleast_3d(*arys: ArrayLike) -> Any:
    """(n,) becomes (1, n, 1) and (m, n) becomes (m, n, 1); a tuple for several arrays.  Source: NumPy."""
    return _at_least(arys, _in_three)


def _in_three(shape: tuple[int, ...]) -> tuple[int, ...]:
    if len(shape) >= 3:
        return shape
    return (*shape, 1) if len(shape) == 2 else (1, *(shape or (1,)), 1)


def _at_least(arys: tuple[ArrayLike, ...], rule: Any) -> Any:
    arrays = [as_array(ary) for ary in arys]
    results = tuple(_mark_reshape(array, lax.reshape(array, rule(array.shape))) for array in arrays)
    return results[0] if len(results) == 1 else results


# --- order of dimensions --------------------------------------------------------------------------


@remembers_calls
def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Dimension i of the result is dimension axes[i] of `a`; by default in reverse order.

    Raises ShapeError if `axes` is no permutation, AxisError if one is out of range.  Source: NumPy.
    """
    array = as_array(a)
    rank = len(array.shape)
    order = range(rank)[::-1] if axes is None else normalize_axes(axes, rank, name="axes")
    if len(order) != rank:
        raise ShapeError(
            f"transpose: wanted {pluralize(rank, 'axis')} for shape {array.shape}, got {tuple(order)}"
        )
    return mark(array, lax.transpose(array, order), TRANSPOSE, order)


def transpose_part(array: Array, order: Sequence[int]) -> Array:
    """The dimensions in an order that is a permutation, as a part of `array`."""
    return mark(array, lax.transpose(array, order), TRANSPOSE, tuple(order))


permute_dims = transpose


@remembers_calls
def matrix_transpose(x: ArrayLike, /) -> Array:
    """The last two dimensions exchanged.  Raises ShapeError below rank 2.  Source: Array API."""
    array = as_array(x)
    if len(array.shape) < 2:
        raise ShapeError(f"matrix_transpose: wanted an array of rank 2 or more, got shape {array.shape}")
    return swapaxes(array, -1, -2)


@remembers_calls
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Two dimensions exchanged.  Raises AxisError.  Source: NumPy, `swapaxes`."""
    array = as_array(a)
    order = list(range(len(array.shape)))
    one, two = (normalize_axis(axis, len(order)) for axis in (axis1, axis2))
    order[one], order[two] = two, one
    return transpose_part(array, order)


@remembers_calls
def moveaxis(a: ArrayLike, source: Axes, destination: Axes) -> Array:
    """Move the dimensions `source` to `destination`; the others keep their order.

    Raises AxisError for numbers out of range or named twice, ShapeError for different counts.
    Source: NumPy, `moveaxis`.
    """
    array = as_array(a)
    rank = len(array.shape)
    origins, targets = (
        normalize_axes(source, rank, name="source"),
        normalize_axes(destination, rank, name="destination"),
    )
    if len(origins) != len(targets):
        raise ShapeError(f"moveaxis: wanted as many destinations as sources, got {targets} for {origins}")
    order = [axis for axis in range(rank) if axis not in origins]
    for target, origin in sorted(zip(targets, origins, strict=True)):
        order.insert(target, origin)
    return transpose_part(array, order)


# --- broadcasting ---------------------------------------------------------------------------------


@remembers_calls
def broadcast_shapes(*shapes: int | tuple[int, ...]) -> tuple[int, ...]:
    """The shape that shapes broadcast to by NumPy's rule; an int n means (n,).

    Raises BroadcastError, with the fixes that would work.  Source: NumPy, `broadcast_shapes`.
    """
    sizes = tuple(check_sizes(shape) for shape in shapes)
    alignment = align_numpy(*sizes)
    if isinstance(alignment, Misfit):
        raise broadcast_error("broadcast_shapes", sizes)
    return alignment.result


@arranges_elements
def broadcast_to(array: ArrayLike, shape: Shape) -> Array:
    """`array` repeated to `shape` by NumPy's rule; allowed in every mode of `config.broadcasting`.

    Raises BroadcastError, with what would work, if it does not fit.  Source: NumPy.
    """
    source, sizes = as_array(array), check_sizes(shape)
    return mark(source, broadcast_array("broadcast_to", source, sizes), BROADCAST, sizes)


@remembers_calls
def broadcast_arrays(*arrays: ArrayLike) -> tuple[Array, ...]:
    """The arrays in their common shape; allowed in every mode of `config.broadcasting`.

    Raises BroadcastError if they have none.  Source: NumPy, `broadcast_arrays`.
    """
    sources = [as_array(array) for array in arrays]
    for array in sources:
        refuse_dynamic("broadcast_arrays", array, "lax.broadcast_in_dim")
    shapes = tuple(array.shape for array in sources)
    alignment = align_numpy(*shapes)
    if isinstance(alignment, Misfit):
        raise broadcast_error("broadcast_arrays", shapes)
    return tuple(
        mark(
            array,
            lax.broadcast_in_dim(array, alignment.result, dimensions),
            BROADCAST,
            alignment.result,
        )
        for array, dimensions in zip(sources, alignment.dimensions, strict=True)
    )


@remembers_calls
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Dimension `axis` moved to before dimension `start`.  Raises AxisError.  Source: NumPy, `rollaxis`."""
    array = as_array(a)
    rank = len(array.shape)
    origin = normalize_axis(axis, rank)
    position = integer("rollaxis", "start", start)
    position += rank if position < 0 else 0
    if not 0 <= position <= rank:
        raise AxisError(f"rollaxis: wanted {-rank} <= start <= {rank} for shape {array.shape}, got {start}")
    order = [dim for dim in range(rank) if dim != origin]
    order.insert(position - (origin < position), origin)
    return transpose_part(array, order)
