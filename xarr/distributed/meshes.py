"""Replicas in a grid whose axes have names."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from types import MappingProxyType
from typing import Any

import numpy as np

from xarr.communication.communicator import current_communicator
from xarr.communication.process_groups import Mesh
from xarr.errors import ArgumentError, ShapeError, ValueRangeError


class ReplicaMesh:
    """Replicas in a grid with named axes: `Mesh(devices, axis_names)`.

    devices: the numbers of replicas, an array with a dimension for each name; each number below their count, once.

    In a program of one process the replicas are threads that a call of `shard_map` starts; where there is a world, of
    `simulate` or MPI, they are its members, and a mesh has all of them.  Source: jax.sharding.Mesh.
    """

    def __init__(self, devices: Any, axis_names: str | Sequence[str]) -> None:
        names: tuple[Any, ...] = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        table = np.asarray(devices)
        if table.dtype.kind not in "iu" or table.ndim != len(names) or not table.size:
            raise ShapeError(
                f"Mesh: wanted numbers of replicas in an array with a dimension for each of {names}, got "
                f"{table.dtype}[{','.join(map(str, table.shape))}]"
            )
        if sorted(table.reshape(-1).tolist()) != list(range(table.size)):
            raise ValueRangeError(
                f"Mesh: wanted each number from 0 to {table.size - 1} once, got {table.tolist()}"
            )
        if len(set(names)) != len(names) or not all(isinstance(name, str) and name for name in names):
            raise ArgumentError(f"Mesh: wanted a name for each axis, none twice, got {names!r}")
        self.devices = table.astype(np.int64)
        self.devices.flags.writeable = False
        self.axis_names: tuple[str, ...] = names

    @property
    def shape(self) -> MappingProxyType[str, int]:
        """The size of each axis, by name."""
        return MappingProxyType(dict(zip(self.axis_names, self.devices.shape, strict=True)))

    @property
    def size(self) -> int:
        """The number of replicas."""
        return int(self.devices.size)

    @property
    def grid(self) -> Mesh:
        """The mesh as attributes of operations have it."""
        ids = tuple(self.devices.reshape(-1).tolist())
        return Mesh(tuple(self.shape.items()), None if ids == tuple(range(len(ids))) else ids)

    def coordinates_of(self, rank: int) -> dict[str, int]:
        """The index of a replica along each axis."""
        (position,) = np.argwhere(self.devices == rank)
        return dict(zip(self.axis_names, map(int, position), strict=True))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ReplicaMesh):
            return NotImplemented
        return self.axis_names == other.axis_names and np.array_equal(self.devices, other.devices)

    def __hash__(self) -> int:
        return hash((self.axis_names, self.devices.tobytes()))

    def __repr__(self) -> str:
        sizes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"Mesh({sizes})"


def mesh_of(grid: Mesh) -> ReplicaMesh:
    """The mesh that attributes of operations have as `grid`."""
    sizes = [size for _, size in grid.axes]
    ids = range(prod(sizes)) if grid.device_ids is None else grid.device_ids
    return ReplicaMesh(np.array(ids).reshape(sizes), [name for name, _ in grid.axes])


def make_mesh(
    axis_shapes: Any, axis_names: str | Sequence[str], *, devices: Sequence[int] | None = None
) -> ReplicaMesh:
    """A mesh of axes of these sizes, whose replicas are numbered row by row, or are `devices` in this order.

    Raises ValueRangeError for sizes below 1, for another number of replicas than the world or `devices` has, and for
    `devices` that are not all of them.  Source: jax.make_mesh.
    """
    sizes = (axis_shapes,) if isinstance(axis_shapes, int) else tuple(axis_shapes)
    if not all(isinstance(size, int) and size > 0 for size in sizes):
        raise ValueRangeError(f"make_mesh: wanted positive sizes, got {axis_shapes!r}")
    count, world = prod(sizes), current_communicator()
    if world.size not in (1, count):
        raise ValueRangeError(
            f"make_mesh: wanted sizes of which the product is the number of replicas of {world.name}, {world.size}, "
            f"got {sizes}, which is {count}"
        )
    numbers = np.arange(count) if devices is None else np.asarray(devices)
    if numbers.shape != (count,) or not np.array_equal(np.sort(numbers), np.arange(count)):
        raise ValueRangeError(
            f"make_mesh: wanted each number of a replica from 0 to {count - 1} once in devices, got {devices!r}"
        )
    return ReplicaMesh(numbers.reshape(sizes), axis_names)
