"""Collectives along axes that functions are mapped over by `vmap`, alone or beside axes of a mesh.

All of them are made of two operations, which `vmap` replaces: the index of a slice, and the stack of the values of all
slices.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from xarr.base.typing import Array
from xarr.errors import InputError, ShapeError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.lax.core import scalar_node
from xarr.lax.dynamic_slicing import dynamic_index_in_dim, dynamic_slice_in_dim
from xarr.lax.elementwise import add, eq, mul, select
from xarr.lax.movement import broadcast_in_dim, reshape, transpose
from xarr.lax.reduction import reduce_max, reduce_min, reduce_sum
from xarr.lax.tracing import argument_nodes
from xarr.runtime.handles import wrap
from xarr.runtime.named_axes import current_batch_axes

Names = Sequence[Hashable]


def size_of(name: Hashable) -> int:
    """The size of an axis that functions are mapped over."""
    return dict(current_batch_axes())[name]


def split_names(axis_name: Any) -> tuple[list[Hashable], list[Hashable]]:
    """The axes that functions are mapped over, and the others."""
    names = list(axis_name) if isinstance(axis_name, tuple | list) else [axis_name]
    known = [name for name, _ in current_batch_axes()]
    is_mapped = [isinstance(name, Hashable) and name in known for name in names]
    mapped = [name for name, own in zip(names, is_mapped, strict=True) if own]
    return mapped, [name for name, own in zip(names, is_mapped, strict=True) if not own]


def refuse_groups(name: str, groups: Any) -> None:
    """InputError for groups of indices along an axis that a function is mapped over."""
    if groups is not None:
        raise InputError(
            f"{name}: wanted no axis_index_groups along an axis of vmap; reshape it into two axes"
        )


def slice_index(name: Hashable) -> Array:
    """The index of a slice along one axis."""
    node = Node(ops.IndexAlongAxis(name, dict(current_batch_axes())[name]))
    node.traced = True
    return wrap(node)


def stack_slices(function: str, x: Any, name: Hashable) -> Array:
    """The values of all slices along one axis, stacked along a new first dimension."""
    (operand,) = argument_nodes(function, [x])
    node = Node(ops.StackAlongAxis(name, dict(current_batch_axes())[name]), (operand,))
    node.traced = True
    return wrap(node)


def reduce_slices(function: str, x: Any, names: Names, op: Op) -> Any:
    """The values of all slices along axes, combined by `op`: a sum or an extreme."""
    for name in names:
        x = _REDUCTIONS[type(op)](stack_slices(function, x, name), (0,))
    return x


_REDUCTIONS: Final[dict[type[Op], Callable[..., Array]]] = {
    ops.Add: reduce_sum,
    ops.Maximum: reduce_max,
    ops.Minimum: reduce_min,
}


def index_along(
    names: Names, index_of: Callable[[Hashable], Array], size_of: Callable[[Hashable], int]
) -> Array:
    """The index along several axes, of which the last runs fastest."""
    index = index_of(names[0])
    for name in names[1:]:
        index = add(mul(index, np.int32(size_of(name))), index_of(name))
    return index


def join_first(x: Array, axis: int, is_tiled: bool) -> Array:
    """An array whose first dimension goes to `axis`, or, tiled, into the dimension `axis` of the rest."""
    order = [*range(1, axis + 1), 0, *range(axis + 1, len(x.shape))]
    moved = transpose(x, order)
    if not is_tiled:
        return moved
    shape = moved.shape
    return reshape(moved, (*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :]))


def own_part(x: Array, dim: int, count: int, index: Array, is_tiled: bool, what: str) -> Array:
    """The part number `index` of `count` along a dimension, which stays if `is_tiled`."""
    size = x.shape[dim]
    if is_tiled:
        if size % count:
            raise ShapeError(f"{what}: wanted a size of dimension {dim} that {count} divides, got {x.shape}")
        part = size // count
        return dynamic_slice_in_dim(x, mul(index, np.int32(part)), part, dim)
    if size != count:
        raise ShapeError(
            f"{what}: wanted the size {count} along dimension {dim}, as many as there are members, got {x.shape}; "
            "tiled=True keeps the dimension"
        )
    return dynamic_index_in_dim(x, index, dim, keepdims=False)


def exchange(stacked: Array, split: int, concat: int, index: Array, is_tiled: bool) -> Array:
    """The result of `all_to_all` at the member `index`, of the operands of all."""
    count = stacked.shape[0]
    mine = own_part(stacked, split + 1, count, index, is_tiled, "all_to_all")
    return join_first(mine, concat, is_tiled)


def permute(stacked: Array, index: Array, pairs: Sequence[Sequence[int]]) -> Array:
    """The operand that is sent to the member `index`, by pairs of a source and a target; zeros if none is."""
    count = stacked.shape[0]
    if any(not 0 <= each < count for pair in pairs for each in pair):
        raise ShapeError(f"ppermute: wanted indices from 0 to {count - 1}, got {tuple(pairs)}")
    for column in zip(*pairs, strict=True):
        if len(set(column)) != len(column):
            raise ShapeError(f"ppermute: wanted each source and each target once, got {tuple(pairs)}")
    table = np.full(count, -1, np.int32)
    for sender, target in pairs:
        table[target] = sender
    source = dynamic_index_in_dim(wrap(Node(ops.Constant.of(table))), index, keepdims=False)
    is_missing = eq(source, np.int32(-1))
    value = dynamic_index_in_dim(stacked, source, 0, keepdims=False)
    zero = broadcast_in_dim(wrap(scalar_node(0, value.dtype)), value.shape, ())
    return select(broadcast_in_dim(is_missing, value.shape, ()), zero, value)
