"""Shardy's `manual_computation`: a computation of the parts that each member of a mesh has.

Here a member has whole arrays: it takes its own parts of them, computes, and joins what all members give.  Exports of
JAX's shard_map are such modules, of one replica with a partition for each member of the mesh.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from xarr.communication.process_groups import AxisRef, Mesh, ReplicaGroups
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Node
from xarr.ir.stablehlo.distributed.mesh_syntax import Sharding
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.types import TensorType

_INT32 = np.dtype(np.int32)


def manual_computation(site: Site) -> tuple[Node, ...]:
    """The results as whole arrays, the same at each member."""
    (graph,), captured = site.capturing(0)
    mine = _shardings(site, "in_shardings", len(site.operands))
    theirs = _shardings(site, "out_shardings", len(graph.results))
    parts = [_take_part(site, *pair) for pair in zip(site.operands, mine, strict=True)]
    node = Node(ops.Call(graph), (*parts, *captured))
    if node.op.is_ordered:
        site.keep_ordered(node)
    count = len(graph.results)
    results = [node] if count == 1 else [Node(ops.GetTupleElement(k), (node,)) for k in range(count)]
    return tuple([_join_parts(site, *pair) for pair in zip(results, theirs, strict=True)])


def _shardings(site: Site, name: str, count: int) -> Sequence[Sharding]:
    shardings: Sequence[Sharding] = site.operation.attributes.get(name, ())
    if len(shardings) != count:
        site.fail(f"expected {count} {name}, got {len(shardings)}")
    return shardings


def _manual_axes(site: Site, sharding: Sharding, dim: int) -> tuple[AxisRef, ...]:
    """The axes along which a dimension is cut here; others are left to the program."""
    manual: Sequence[AxisRef] = site.operation.attributes.get("manual_axes", ())
    names = {axis.name for axis in manual}
    return tuple([axis for axis in sharding.dimensions[dim] if axis.name in names])


def _take_part(site: Site, whole: Node, sharding: Sharding) -> Node:
    """This member's part of an array."""
    type, mesh = whole.tensor_type, site.mesh(sharding.mesh)
    sizes, starts = list(type.shape), []
    for dim, size in enumerate(type.shape):
        axes = _manual_axes(site, sharding, dim) if dim < len(sharding.dimensions) else ()
        sizes[dim] = _part_size(site, mesh, axes, size)
        starts.append(_start(mesh, axes, sizes[dim]))
    if tuple(sizes) == type.shape:
        return whole
    return Node(ops.DynamicSlice(tuple(sizes)), (whole, *starts))


def _part_size(site: Site, mesh: Mesh, axes: Sequence[AxisRef], size: int) -> int:
    count = len(mesh.rows(axes)[0])
    if size % count:
        site.fail(f"expected a size that {count} members divide, got {size}")
    return size // count


def _start(mesh: Mesh, axes: Sequence[AxisRef], size: int) -> Node:
    """Where this member's part begins: by a table of all members."""
    if not axes:
        return constant(0, _INT32)
    table = np.zeros(prod(length for _, length in mesh.axes), np.int32)
    for row in mesh.rows(axes):
        table[list(row)] = np.arange(len(row), dtype=np.int32) * size
    known = Node(ops.Constant.of(table))
    start = Node(ops.DynamicSlice((1,)), (known, Node(ops.Convert(_INT32), (_own_number(),))))
    return Node(ops.Reshape(()), (start,))


def _own_number() -> Node:
    """The number of this member, in a program of one replica."""
    node = Node(ops.PartitionId())
    node.traced = True
    return node


def _join_parts(site: Site, part: Node, sharding: Sharding) -> Node:
    """The whole array of which this member has a part."""
    if not isinstance(part.type, TensorType):
        site.fail(f"expected arrays as results, got {part.type}")
    mesh = site.mesh(sharding.mesh)
    for dim in range(len(sharding.dimensions)):
        axes = _manual_axes(site, sharding, dim)
        if axes:
            groups = ReplicaGroups.of(mesh.rows(axes))
            op = ops.AllGather(dim, groups, channel_id=1, use_global_device_ids=True)
            part = Node(op, (part,))
            site.keep_ordered(part)
    return part
