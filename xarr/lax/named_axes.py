"""Collectives over named axes, with `jax.lax`'s signatures.

Axes have names in functions under `shard_map` and `pmap`: the members of a world are a grid with named axes, and those
along an axis, which differ in nothing but their index there, form a group.  An axis is a name, or a tuple of names,
the last of which runs fastest.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import prod
from typing import Any, TypeAlias

import numpy as np

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.communication.process_groups import AxisRef, Mesh, ReplicaGroups, Rows
from xarr.dtypes import BOOL
from xarr.errors import ArgumentError, InputError, ShapeError
from xarr.ir import ops
from xarr.ir.computations import combiner
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.collectives import Collective
from xarr.lax.collectives import (
    Groups,
    apply_by_dtype,
    apply_to_leaves,
    channel_number,
    check_no_axis,
    group_count,
    id_rows,
    parse_groups,
    replica_id,
)
from xarr.lax.core import integer
from xarr.lax.dynamic_slicing import dynamic_index_in_dim
from xarr.lax.elementwise import convert_element_type, div, rem
from xarr.lax.mapped_axes import (
    exchange,
    index_along,
    join_first,
    own_part,
    permute,
    reduce_slices,
    refuse_groups,
    size_of,
    slice_index,
    split_names,
    stack_slices,
)
from xarr.lax.movement import expand_dims, reshape, squeeze
from xarr.lax.tracing import argument_nodes
from xarr.runtime.handles import wrap
from xarr.runtime.named_axes import current_batch_axes, current_mesh, current_names
from xarr.shapes import normalize_axis

AxisName: TypeAlias = Hashable
IndexGroups: TypeAlias = Sequence[Sequence[int]] | None


# --- axes -------------------------------------------------------------------------------------------------------


def _names(name: str, axis_name: AxisName) -> tuple[str, ...]:
    """The names of one axis or several, all of which the mesh in use has."""
    known = current_names()
    mapped = [name for name, _ in current_batch_axes()]
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    for each in names if known else names or (axis_name,):
        if each not in known:
            shown = ", ".join(map(repr, (*known, *mapped))) or "none here"
            raise ArgumentError(
                f"{name}: wanted an axis with a name ({shown}), got {each!r}; shard_map, pmap and vmap give "
                "axes their names"
            )
    if len(set(names)) != len(names):
        raise ArgumentError(f"{name}: wanted each axis once, got {names!r}")
    return tuple(map(str, names))


def _mesh() -> Mesh:
    mesh = current_mesh()
    assert mesh is not None, "checked by _names"
    return mesh


def _size(names: Sequence[str]) -> int:
    sizes = dict(_mesh().axes)
    return prod([sizes[name] for name in names])


def _rows(name: str, axis_name: AxisName, index_groups: IndexGroups = None) -> Rows:
    """The members of each group along an axis, or of each group of indices along it."""
    names = _names(name, axis_name)
    rows = _mesh().rows([AxisRef(each) for each in names])
    if index_groups is None:
        return rows
    groups, size = id_rows(name, "axis_index_groups", index_groups), _size(names)
    if sorted(index for group in groups for index in group) != list(range(size)):
        raise ShapeError(
            f"{name}: wanted each index from 0 to {size - 1} in one of axis_index_groups, got {groups}"
        )
    return tuple([tuple([row[index] for index in group]) for row in rows for group in groups])


def _groups_along(name: str, axis_name: AxisName, index_groups: IndexGroups = None) -> ReplicaGroups:
    return ReplicaGroups.of(_rows(name, axis_name, index_groups))


def _group_size(name: str, groups: ReplicaGroups) -> int:
    if groups.size is None:
        raise ShapeError(f"{name}: wanted axis_index_groups of one size, got {groups}")
    return groups.size


@names_errors
def axis_size(axis_name: AxisName) -> int:
    """The number of members along an axis.  Source: jax.lax.axis_size."""
    mapped, others = split_names(axis_name)
    count = prod(map(size_of, mapped))
    return count * _size(_names("axis_size", tuple(others))) if others or not mapped else count


@names_errors
def axis_index(axis_name: AxisName) -> Array:
    """The index of this member along an axis, an int32 scalar.  Source: jax.lax.axis_index."""
    if split_names(axis_name)[0]:
        names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
        return index_along(names, _one_index, axis_size)
    names = _names("axis_index", axis_name)
    mesh, own = _mesh(), replica_id()
    count = prod([size for _, size in mesh.axes])
    table = np.zeros(count, np.int32)
    for row in mesh.rows([AxisRef(each) for each in names]):
        table[list(row)] = np.arange(len(row))
    strides = {row[1] - row[0] for row in mesh.rows([AxisRef(each) for each in names]) if len(row) > 1}
    if len(strides) == 1 and (stride := strides.pop()) > 0:
        counted = np.arange(count) // stride % _size(names)
        if np.array_equal(counted, table):
            index = rem(div(own, np.uint32(stride)), np.uint32(_size(names)))
            return convert_element_type(index, np.int32)
    known = wrap(Node(ops.Constant.of(table)))
    return dynamic_index_in_dim(known, own, keepdims=False, allow_negative_indices=False)


def _one_index(name: AxisName) -> Array:
    return slice_index(name) if split_names(name)[0] else axis_index(name)


def _stack(function: str, x: Any, axis_name: AxisName) -> Array:
    """The values of all members along axes, of which some are those of vmap, stacked along a new first dimension."""
    names = axis_name if isinstance(axis_name, tuple | list) else (axis_name,)
    (node,) = argument_nodes(function, [x])
    shape, stacked = node.shape, wrap(node)
    for name in reversed(names):
        is_mapped = bool(split_names(name)[0])
        stacked = stack_slices(function, stacked, name) if is_mapped else all_gather(stacked, name)
    return reshape(stacked, (axis_size(tuple(names)), *shape))


# --- reductions -------------------------------------------------------------------------------------------------


def _reduce(name: str, op: Op, x: Any, axis_name: AxisName, index_groups: IndexGroups) -> Any:
    mapped, others = split_names(axis_name)
    if mapped:
        refuse_groups(name, index_groups)
        x = tree.map(lambda leaf: reduce_slices(name, leaf, mapped, op), x)
        if not others:
            return x
        axis_name = tuple(others)
    leaves, structure = tree.flatten(x)
    groups = _groups_along(name, axis_name, index_groups)
    nodes = argument_nodes(name, leaves)

    def make(dtype: np.dtype[Any]) -> Collective:
        return ops.AllReduce(combiner(op, dtype), groups)

    return tree.unflatten(structure, apply_by_dtype(make, nodes))


@names_errors
def psum(x: Any, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> Any:
    """The sums of `x` over the members along an axis, at all of them.

    x: a pytree of arrays, whose leaves of one element type go in one exchange; bools are counted, as int32.  Of Python
        numbers alone the result is a Python number: `psum(1, axis)` is the size of the axis.
    axis_index_groups: the indices along the axis that form a group each; all form one without.

    Raises ArgumentError for an axis without a name.  Source: jax.lax.psum.
    """
    leaves, structure = tree.flatten(x)
    if leaves and all(isinstance(leaf, bool | int | float | complex) for leaf in leaves):
        count = _member_count("psum", axis_name, axis_index_groups)
        return tree.unflatten(structure, [leaf * count for leaf in leaves])
    counted = [_countable(leaf) for leaf in leaves]
    return _reduce("psum", ops.Add(), tree.unflatten(structure, counted), axis_name, axis_index_groups)


def _member_count(name: str, axis_name: AxisName, index_groups: IndexGroups) -> int:
    if split_names(axis_name)[0]:
        refuse_groups(name, index_groups)
        return axis_size(axis_name)
    return _group_size(name, _groups_along(name, axis_name, index_groups))


def _countable(leaf: Any) -> Any:
    (node,) = argument_nodes("psum", [leaf])
    return convert_element_type(wrap(node), np.int32) if node.dtype in BOOL else wrap(node)


@names_errors
def pmean(x: Any, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> Any:
    """The means of `x`, a pytree of arrays, over the members along an axis; integers become floats.

    Raises ArgumentError for an axis without a name.  Source: jax.lax.pmean.
    """
    count = _member_count("pmean", axis_name, axis_index_groups)
    totals = psum(x, axis_name, axis_index_groups=axis_index_groups)
    return tree.map(lambda total: total / count, totals)


@names_errors
def pmax(x: Any, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> Any:
    """The maxima of `x`, a pytree of arrays, over the members along an axis; NaN if one is.

    Raises ArgumentError for an axis without a name.  Source: jax.lax.pmax.
    """
    return _reduce("pmax", ops.Maximum(), x, axis_name, axis_index_groups)


@names_errors
def pmin(x: Any, axis_name: AxisName, *, axis_index_groups: IndexGroups = None) -> Any:
    """The minima of `x`, a pytree of arrays, over the members along an axis; NaN if one is.

    Raises ArgumentError for an axis without a name.  Source: jax.lax.pmin.
    """
    return _reduce("pmin", ops.Minimum(), x, axis_name, axis_index_groups)


@names_errors
def psum_scatter(
    x: Any,
    axis_name: AxisName,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
) -> Any:
    """A part of `psum(x, axis_name)`: part k along a dimension at member k.

    x: a pytree of arrays.
    tiled: whether the dimension stays, divided by the number of members; else its size is that number, and it goes.

    Raises ArgumentError for an axis without a name, ShapeError for a size that is not divisible.
    Source: jax.lax.psum_scatter.
    """
    if split_names(axis_name)[0]:
        total = psum(x, axis_name, axis_index_groups=axis_index_groups)
        return tree.map(lambda leaf: _own_part(leaf, axis_name, scatter_dimension, tiled), total)
    groups = _groups_along("psum_scatter", axis_name, axis_index_groups)
    count = _group_size("psum_scatter", groups)

    def scatter(leaf: Any) -> Array:
        (node,) = argument_nodes("psum_scatter", [leaf])
        dim = _dimension("psum_scatter", "scatter_dimension", scatter_dimension, len(node.shape))
        if not tiled and node.shape[dim] != count:
            raise ShapeError(
                f"psum_scatter: wanted the size {count} along dimension {dim}, as many as there are members, got "
                f"{node.tensor_type.short()}; tiled=True keeps the dimension"
            )
        op = ops.ReduceScatter(dim, combiner(ops.Add(), node.dtype), groups)
        (result,) = apply_to_leaves(op, [node])
        return result if tiled else squeeze(result, (dim,))

    return tree.map(scatter, x)


def _own_part(x: Array, axis_name: AxisName, dimension: int, tiled: bool) -> Array:
    dim = _dimension("psum_scatter", "scatter_dimension", dimension, len(x.shape))
    return own_part(x, dim, axis_size(axis_name), axis_index(axis_name), tiled, "psum_scatter")


def _dimension(name: str, argument: str, dim: int, rank: int) -> int:
    return normalize_axis(integer(name, argument, dim), rank)


# --- data movement ----------------------------------------------------------------------------------------------


def _groups_for(
    name: str,
    axis_name: AxisName | None,
    index_groups: IndexGroups,
    replica_groups: Groups,
    channel_id: int | None,
) -> tuple[ReplicaGroups, int]:
    """The groups of an axis, or those given as XLA has them, and the channel."""
    check_no_axis(name, axis_name, replica_groups)
    if axis_name is None:
        if index_groups is not None:
            raise InputError(f"{name}: wanted axis_name beside axis_index_groups")
        return parse_groups(name, replica_groups), channel_number(name, channel_id)
    return _groups_along(name, axis_name, index_groups), channel_number(name, channel_id)


@names_errors
def all_gather(
    x: Any,
    axis_name: AxisName | None = None,
    *,
    axis_index_groups: IndexGroups = None,
    axis: int = 0,
    tiled: bool = False,
    replica_groups: Groups = None,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Any:
    """`x` of all members along an axis, stacked along a new dimension `axis`, or joined along it if `tiled`.

    x: a pytree of arrays, which go in one exchange.
    axis_index_groups: the indices along the axis that form a group each.
    replica_groups, channel_id, use_global_device_ids: XLA's way to say who takes part, instead of `axis_name`; one
        group of all without any.

    Raises ArgumentError for an axis without a name, ShapeError [C1, C2, C4 to C6] for another dimension or groups.
    Source: jax.lax.all_gather, XLA's AllGather.
    """
    name = "all_gather"
    if split_names(axis_name)[0]:
        refuse_groups(name, axis_index_groups)
        return tree.map(lambda leaf: _gather_mapped(leaf, axis_name, axis, tiled), x)
    groups, channel = _groups_for(name, axis_name, axis_index_groups, replica_groups, channel_id)
    leaves, structure = tree.flatten(x)
    nodes = argument_nodes(name, leaves)
    is_global = bool(use_global_device_ids)
    results: list[Any] = [None] * len(nodes)
    by_dim: dict[int, list[int]] = {}
    for index, node in enumerate(nodes):
        rank = len(node.shape) + (not tiled)
        by_dim.setdefault(_dimension(name, "axis", axis, rank), []).append(index)
    for dim, indices in by_dim.items():
        plain = ops.AllGather(dim, groups, channel, is_global)
        op = ops.AllGather(dim, groups, channel, is_global, group_count(groups, plain.strategy))
        own = [nodes[k] if tiled else expand_dims(wrap(nodes[k]), (dim,))._node for k in indices]
        for index, result in zip(indices, apply_to_leaves(op, own), strict=True):
            results[index] = result
    return tree.unflatten(structure, results)


def _gather_mapped(x: Any, axis_name: AxisName, axis: int, tiled: bool) -> Array:
    stacked = _stack("all_gather", x, axis_name)
    dim = _dimension("all_gather", "axis", axis, len(stacked.shape) - tiled)
    return join_first(stacked, dim, tiled)


@names_errors
def all_to_all(
    x: Any,
    axis_name: AxisName | None,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: IndexGroups = None,
    tiled: bool = False,
    replica_groups: Groups = None,
    channel_id: int | None = None,
) -> Any:
    """Part k of `x` along `split_axis` goes to member k along an axis, which joins what it gets along `concat_axis`.

    x: a pytree of arrays.
    tiled: whether parts keep the dimension that is split, and are joined along one that is there; else its size is the
        number of members, it goes, and a new one comes at `concat_axis`.
    axis_index_groups: the indices along the axis that form a group each.
    replica_groups, channel_id: XLA's way to say who takes part, with None for `axis_name`; one group of all without.

    Raises ArgumentError for an axis without a name, ShapeError [C1 to C5, C7, C8] for other dimensions, sizes or
    groups.
    Source: jax.lax.all_to_all, XLA's AllToAll.
    """
    name = "all_to_all"
    if split_names(axis_name)[0]:
        refuse_groups(name, axis_index_groups)
        return tree.map(lambda leaf: _exchange_mapped(leaf, axis_name, split_axis, concat_axis, tiled), x)
    groups, channel = _groups_for(name, axis_name, axis_index_groups, replica_groups, channel_id)
    strategy = ops.AllToAll(0, 0, 1, groups, channel).strategy
    count = group_count(groups, strategy) or _group_size(name, groups)

    def exchange(leaf: Any) -> Array:
        (node,) = argument_nodes(name, [leaf])
        rank = len(node.shape)
        split = _dimension(name, "split_axis", split_axis, rank)
        concat = _dimension(name, "concat_axis", concat_axis, rank)
        if tiled:
            return apply_to_leaves(ops.AllToAll(split, concat, count, groups, channel), [node])[0]
        if node.shape[split] != count:
            raise ShapeError(
                f"{name}: wanted the size {count} along split_axis = {split}, as many as there are members, got "
                f"{node.tensor_type.short()}; tiled=True splits other sizes"
            )
        return _swap_axis(node, split, concat, count, groups, channel)

    return tree.map(exchange, x)


def _exchange_mapped(x: Any, axis_name: AxisName, split_axis: int, concat_axis: int, tiled: bool) -> Array:
    stacked = _stack("all_to_all", x, axis_name)
    rank = len(stacked.shape) - 1
    split = _dimension("all_to_all", "split_axis", split_axis, rank)
    concat = _dimension("all_to_all", "concat_axis", concat_axis, rank)
    return exchange(stacked, split, concat, axis_index(axis_name), tiled)


def _swap_axis(node: Node, split: int, concat: int, count: int, groups: ReplicaGroups, channel: int) -> Array:
    """Exchange along the dimension `split`, which goes, for a new one `concat`, in the order of the members."""
    rank = len(node.shape)
    # Where the new one comes while the old one is still there.
    at = concat if concat <= split else concat + 1
    spread = expand_dims(wrap(node), (at,))
    old = split + (at <= split)
    (result,) = apply_to_leaves(ops.AllToAll(old, at, count, groups, channel), [spread._node])
    assert len(result._node.shape) == rank + 1
    return squeeze(result, (old,))


@names_errors
def ppermute(x: Any, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> Any:
    """`x`, a pytree of arrays, of the member along an axis that sends to this one; zeros if none does.

    perm: pairs of the index of a source and that of a target.

    Raises ArgumentError for an axis without a name, ShapeError [C1 to C4] for pairs in which a source or a target
    stands twice, ShapeError for an index that the axis has not.  Source: jax.lax.ppermute.
    """
    if split_names(axis_name)[0]:
        sent, own = id_rows("ppermute", "perm", perm), axis_index(axis_name)
        return tree.map(lambda leaf: permute(_stack("ppermute", leaf, axis_name), own, sent), x)
    rows = _rows("ppermute", axis_name)
    pairs, size = id_rows("ppermute", "perm", perm), len(rows[0]) if rows else 0
    if any(not 0 <= index < size for pair in pairs for index in pair):
        raise ShapeError(f"ppermute: wanted indices from 0 to {size - 1}, got {pairs}")
    every = tuple([tuple([row[index] for index in pair]) for row in rows for pair in pairs])
    op = ops.CollectivePermute(every)
    return tree.map(lambda leaf: apply_to_leaves(op, argument_nodes("ppermute", [leaf]))[0], x)


@names_errors
def pshuffle(x: Any, axis_name: AxisName, perm: Sequence[int]) -> Any:
    """`x`, a pytree of arrays, of member `perm[k]` along an axis at member k.

    Raises ShapeError for what is no permutation of the indices.  Source: jax.lax.pshuffle.
    """
    size = axis_size(axis_name)
    sources = [integer("pshuffle", "perm", index) for index in perm]
    if sorted(sources) != list(range(size)):
        raise ShapeError(f"pshuffle: wanted a permutation of the indices from 0 to {size - 1}, got {sources}")
    return ppermute(x, axis_name, list(zip(sources, range(size), strict=True)))


@names_errors
def pswapaxes(x: Any, axis_name: AxisName, axis: int, *, axis_index_groups: IndexGroups = None) -> Any:
    """Exchange the dimension `axis` of `x`, a pytree of arrays, for an axis of members of the same size.

    Source: jax.lax.pswapaxes.
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


@names_errors
def pbroadcast(x: Any, axis_name: AxisName, source: int) -> Any:
    """`x`, a pytree of arrays, of the member `source` along an axis, at all of them.

    Raises ShapeError for an index that the axis has not.  Source: jax.lax.pbroadcast.
    """
    index = integer("pbroadcast", "source", source)
    if split_names(axis_name)[0]:
        count = axis_size(axis_name)
        if not 0 <= index < count:
            raise ShapeError(f"pbroadcast: wanted an index along the axis, 0 to {count - 1}, got {index}")
        return tree.map(lambda leaf: _stack("pbroadcast", leaf, axis_name)[index], x)
    rows = _rows("pbroadcast", axis_name)
    if any(not 0 <= index < len(row) for row in rows):
        raise ShapeError(f"pbroadcast: wanted an index along the axis, 0 to {len(rows[0]) - 1}, got {index}")
    first = [(row[index], *row[:index], *row[index + 1 :]) for row in rows]
    leaves, structure = tree.flatten(x)
    op = ops.CollectiveBroadcast(ReplicaGroups.of(first))
    return tree.unflatten(structure, apply_to_leaves(op, argument_nodes("pbroadcast", leaves)))
