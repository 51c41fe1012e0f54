"""Slices whose start is known only when the program runs.  Names and argument order are `jax.lax`'s."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.dtypes import SIGNED, info
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints, replace_at
from xarr.lax.core import ArrayLike, integer, integers, items, operands
from xarr.lax.dynamic_sizes import get_dimension_size
from xarr.lax.elementwise import add, convert_element_type, lt, select
from xarr.lax.movement import expand_dims, index_in_dim, squeeze
from xarr.runtime.handles import Handle, wrap
from xarr.runtime.small_ops import apply_op
from xarr.shapes import normalize_axis


@names_errors
def dynamic_slice(
    operand: ArrayLike,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """The window of `slice_sizes` that starts at `start_indices`, moved so far that it lies in the operand.

    start_indices: one integer for each dimension, as a sequence of scalars or a 1-d array.
    allow_negative_indices: whether negative ones count from the end (for all dimensions, or for each); if not
        they are out of bounds, that is, 0.

    Returns an array of shape `slice_sizes`.  Raises ShapeError [C2]-[C4], DTypeError [I2].
    Source: XLA's DynamicSlice, with jax.lax's arguments.
    """
    (node,) = operands("dynamic_slice", operand)
    starts = _start_nodes("dynamic_slice", node, start_indices, allow_negative_indices)
    op = ops.DynamicSlice(integers("dynamic_slice", "slice_sizes", slice_sizes))
    return apply_op(op, (node, *starts))


@names_errors
def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: Any,
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """`operand` with the window at `start_indices` replaced by `update`, moved so far that it lies in it.

    update: array of the operand's element type and rank, in no dimension larger.
    start_indices, allow_negative_indices: as in dynamic_slice.

    Raises ShapeError [C3]-[C6], DTypeError [I2], [C2].
    Source: XLA's DynamicUpdateSlice, with jax.lax's arguments.
    """
    node, new = operands("dynamic_update_slice", operand, update)
    starts = _start_nodes("dynamic_update_slice", node, start_indices, allow_negative_indices)
    op = ops.DynamicUpdateSlice()
    return apply_op(op, (node, new, *starts))


def _start_nodes(
    name: str, operand: Node, start_indices: Any, allow_negative: bool | Sequence[bool]
) -> tuple[Node, ...]:
    values, shape = _scalars_of(name, start_indices), operand.shape
    flags = (
        [allow_negative] * len(values)
        if isinstance(allow_negative, bool)
        else items(name, "allow_negative_indices", allow_negative)
    )
    if len(flags) != len(values):
        raise ShapeError(f"{name}: wanted {len(values)} of allow_negative_indices, got {len(flags)}")
    if not values or len(values) != len(shape):
        # The op's own rule says what is wrong.
        return operands(name, *values) if values else ()
    dynamic = operand.tensor_type.dynamic_dimensions
    known = [
        value + size if flag and type(value) is int and value < 0 and dim not in dynamic else value
        for dim, (value, size, flag) in enumerate(zip(values, shape, flags, strict=True))
    ]
    nodes = operands(name, *known)
    rows = enumerate(zip(nodes, known, flags, strict=True))
    may_be_negative = [
        flag and node.dtype in SIGNED and (type(value) is not int or (value < 0 and dim in dynamic))
        for dim, (node, value, flag) in rows
    ]
    if not any(may_be_negative):
        return nodes
    starts = [wrap(node) for node in nodes]
    dtypes = {node.dtype for node in nodes}
    if len(dtypes) == 1 and max(shape) > info(dtypes.pop()).max:
        # A sum with the size of the dimension would wrap.
        starts = [convert_element_type(start, np.int64) for start in starts]
    return tuple(
        (_from_end(start, operand, dim) if may_be_negative[dim] else start)._node
        for dim, start in enumerate(starts)
    )


def _from_end(start: Array, operand: Node, dimension: int) -> Array:
    """`start`, or where it is negative, its sum with the size of the dimension."""
    size: ArrayLike = operand.shape[dimension]
    if dimension in operand.tensor_type.dynamic_dimensions:
        size = convert_element_type(get_dimension_size(wrap(operand), dimension), start.dtype)
    return select(lt(start, 0), add(start, size), start)


def _scalars_of(name: str, start_indices: Any) -> list[Any]:
    """The start indices one by one."""
    if isinstance(start_indices, Handle | np.ndarray):
        (node,) = operands(name, start_indices)
        if len(node.shape) != 1:
            raise ShapeError(
                f"{name}: wanted one start index for each dimension, got an array {node.tensor_type.short()}"
            )
        if isinstance(start_indices, np.ndarray):
            return list(start_indices)
        return [squeeze(index_in_dim(start_indices, at)) for at in range(node.shape[0])]
    if not isinstance(start_indices, Sequence):
        raise InputError(
            f"{name}: wanted a sequence of ints or scalar arrays for start_indices, got {start_indices!r}"
        )
    return list(start_indices)


def _in_dim(
    name: str, operand: ArrayLike, start: ArrayLike, axis: int
) -> tuple[Ints, int, list[Any], list[bool]]:
    """The operand's shape, the axis, and starts and flags: `start` and True there, else 0 and False."""
    (node,) = operands(name, operand)
    dim = normalize_axis(integer(name, "axis", axis), len(node.shape))
    starts: list[Any] = [0] * len(node.shape)
    flags = [False] * len(node.shape)
    starts[dim], flags[dim] = start, True
    return node.shape, dim, starts, flags


@names_errors
def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """operand[start_index : start_index + slice_size] along `axis`, moved so far that it fits.

    Source: jax.lax.dynamic_slice_in_dim.
    """
    shape, dim, starts, flags = _in_dim("dynamic_slice_in_dim", operand, start_index, axis)
    size = integer("dynamic_slice_in_dim", "slice_size", slice_size)
    flags[dim] = allow_negative_indices
    return dynamic_slice(operand, starts, replace_at(shape, dim, size), allow_negative_indices=flags)


@names_errors
def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The slice at `index` along `axis`; the dimension stays with size 1 unless `keepdims` is false.

    Source: jax.lax.dynamic_index_in_dim.
    """
    result = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return result if keepdims else squeeze(result, (axis,))


@names_errors
def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` in place of what starts at `start_index` along `axis`, at 0 along others.

    Source: jax.lax.dynamic_update_slice_in_dim.
    """
    _, dim, starts, flags = _in_dim("dynamic_update_slice_in_dim", operand, start_index, axis)
    flags[dim] = allow_negative_indices
    return dynamic_update_slice(operand, update, starts, allow_negative_indices=flags)


@names_errors
def dynamic_update_index_in_dim(
    operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int, *, allow_negative_indices: bool = True
) -> Array:
    """`operand` with the slice at `index` along `axis` replaced by `update`, which may lack it.

    Source: jax.lax.dynamic_update_index_in_dim.
    """
    name = "dynamic_update_index_in_dim"
    shape, dim, _, _ = _in_dim(name, operand, index, axis)
    _, new = operands(name, operand, update)
    slice_: ArrayLike = wrap(new)
    if len(new.shape) == len(shape) - 1:
        slice_ = expand_dims(slice_, (dim,))
    return dynamic_update_slice_in_dim(
        operand, slice_, index, dim, allow_negative_indices=allow_negative_indices
    )
