"""The parts of arrays that the members of a mesh have: where they lie, and as nodes that each member computes.

Part k of a dimension that is cut along axes is that of the members with index k along them, the last of which runs
fastest.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final, TypeAlias

import numpy as np

from xarr.communication.process_groups import AxisRef, Mesh, ReplicaGroups
from xarr.errors import ShapeError
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Node
from xarr.ir.ops.parts import Split, count_parts
from xarr.ir.types import TensorType

Slices: TypeAlias = tuple[slice, ...]
_INT32: Final = np.dtype(np.int32)


def slices_of(mesh: Mesh, split: Split, rank: int, shape: Sequence[int]) -> Slices:
    """Where in an array of this shape the part of a member lies."""
    slices = [slice(0, size) for size in shape]
    for dim, axes in enumerate(split):
        size = shape[dim] // count_parts(mesh, axes)
        index = next(row.index(rank) for row in mesh.rows(axes) if rank in row)
        slices[dim] = slice(index * size, (index + 1) * size)
    return tuple(slices)


def own_number(is_partition: bool) -> Node:
    """The number of the member that runs, among replicas or among the partitions of one."""
    node = Node(ops.PartitionId() if is_partition else ops.ReplicaId())
    node.traced = True
    return node


def take_part(whole: Node, mesh: Mesh, split: Split, own: Node) -> Node:
    """The part of an array that the member with the number `own` has.  Raises ShapeError for sizes not divisible."""
    sizes, starts = list(whole.shape), []
    for dim, size in enumerate(whole.shape):
        axes = split[dim] if dim < len(split) else ()
        count = count_parts(mesh, axes)
        if size % count:
            raise ShapeError(f"wanted a size that {count} members divide, got {size}")
        sizes[dim] = size // count
        starts.append(_start(mesh, axes, sizes[dim], own))
    if tuple(sizes) == whole.shape:
        return whole
    return Node(ops.DynamicSlice(tuple(sizes)), (whole, *starts))


def _start(mesh: Mesh, axes: Sequence[AxisRef], size: int, own: Node) -> Node:
    """Where a member's part begins: by a table of all members."""
    if not axes:
        return constant(0, _INT32)
    table = np.zeros(prod(length for _, length in mesh.axes), np.int32)
    for row in mesh.rows(axes):
        table[list(row)] = np.arange(len(row), dtype=np.int32) * size
    known = Node(ops.Constant.of(table))
    start = Node(ops.DynamicSlice((1,)), (known, Node(ops.Convert(_INT32), (own,))))
    return Node(ops.Reshape(()), (start,))


def join_parts(part: Node, mesh: Mesh, split: Split, is_partition: bool) -> tuple[Node, list[Node]]:
    """The whole array of which this member has a part, and the collectives that join it."""
    assert isinstance(part.type, TensorType)
    collectives = []
    for dim, axes in enumerate(split):
        if axes:
            groups = ReplicaGroups.of(mesh.rows(axes))
            if is_partition:
                op = ops.AllGather(dim, groups, channel_id=1, use_global_device_ids=True)
            else:
                op = ops.AllGather(dim, groups)
            part = Node(op, (part,))
            collectives.append(part)
    return part, collectives
