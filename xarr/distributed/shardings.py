"""How an array is split over the replicas of a mesh."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any, TypeAlias

from xarr.base.frozen_dataclasses import record
from xarr.distributed.meshes import ReplicaMesh
from xarr.errors import ArgumentError, ShapeError

#: What a dimension is split over: no axis, one, or several of which the last runs fastest.
Part: TypeAlias = str | tuple[str, ...] | None


class PartitionSpec(tuple[Part, ...]):
    """For each dimension of an array the axis of a mesh that it is split over, a tuple of axes, or None.

    Dimensions beyond those named are not split.  `PartitionSpec("x", None, ("y", "z"))`.
    Source: jax.sharding.PartitionSpec.
    """

    __slots__ = ()

    def __new__(cls, *partitions: Any) -> PartitionSpec:
        parts: list[Part] = [tuple(part) if isinstance(part, list) else part for part in partitions]
        for part in parts:
            names = part if isinstance(part, tuple) else (part,)
            if not all(name is None or isinstance(name, str) for name in names):
                raise ArgumentError(
                    f"PartitionSpec: wanted names of axes, tuples of names, or None, got {part!r}"
                )
        return super().__new__(cls, parts)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return PartitionSpec, tuple(self)

    @property
    def axes(self) -> tuple[tuple[str, ...], ...]:
        """The axes of each dimension that is named."""
        return tuple([part if isinstance(part, tuple) else () if part is None else (part,) for part in self])


@record
class NamedSharding:
    """A split of arrays over the replicas of a mesh.  Source: jax.sharding.NamedSharding.

    Raises ArgumentError for an axis that the mesh has not, or that stands there twice.
    """

    mesh: ReplicaMesh
    spec: PartitionSpec

    def __post_init__(self) -> None:
        names = [name for axes in self.spec.axes for name in axes]
        for name in names:
            if name not in self.mesh.axis_names:
                known = ", ".join(map(repr, self.mesh.axis_names))
                raise ArgumentError(f"wanted axes of the mesh ({known}), got {name!r} in {self.spec}")
        if len(set(names)) != len(names):
            raise ArgumentError(f"wanted each axis once, got {self.spec}")

    @property
    def names(self) -> frozenset[str]:
        """The axes that something is split over."""
        return frozenset([name for axes in self.spec.axes for name in axes])

    def counts(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """The number of parts of each dimension; ShapeError for fewer dimensions than the specification names."""
        if len(self.spec) > len(shape):
            raise ShapeError(
                f"wanted an array of at least {len(self.spec)} dimensions for {self.spec}, got shape {shape}"
            )
        sizes = self.mesh.shape
        known = [prod([sizes[name] for name in axes]) for axes in self.spec.axes]
        return (*known, *(1,) * (len(shape) - len(known)))

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of a part of an array of `global_shape`; ShapeError where a size is not divisible."""
        counts = self.counts(global_shape)
        for dim, (size, count) in enumerate(zip(global_shape, counts, strict=True)):
            if size % count:
                raise ShapeError(
                    f"wanted a size of dimension {dim} that is divisible by {count}, the replicas along "
                    f"{self.spec[dim]!r} of {self.mesh!r}, got shape {global_shape}; pad it to "
                    f"{size + -size % count}, or leave this dimension out of {self.spec}"
                )
        return tuple([size // count for size, count in zip(global_shape, counts, strict=True)])

    def global_shape(self, shard_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the array whose parts have `shard_shape`."""
        return tuple(
            [size * count for size, count in zip(shard_shape, self.counts(shard_shape), strict=True)]
        )

    def index_of(self, rank: int, global_shape: tuple[int, ...]) -> tuple[slice, ...]:
        """Where in an array of `global_shape` the part of a replica lies."""
        return tuple(self._slices(rank, global_shape))

    def _slices(self, rank: int, global_shape: tuple[int, ...]) -> Iterator[slice]:
        coordinates, sizes = self.mesh.coordinates_of(rank), self.mesh.shape
        shape = self.shard_shape(global_shape)
        axes = (*self.spec.axes, *((),) * (len(shape) - len(self.spec)))
        for size, names in zip(shape, axes, strict=True):
            index = 0
            for name in names:
                index = index * sizes[name] + coordinates[name]
            yield slice(index * size, (index + 1) * size)
