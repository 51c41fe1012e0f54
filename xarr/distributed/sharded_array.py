"""Arrays whose parts lie at replicas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NoReturn

import numpy as np

from xarr.arrays.array import Array
from xarr.base.frozen_dataclasses import record
from xarr.base.host_arrays import NoOperand
from xarr.calls.operands import as_array
from xarr.communication import algorithms
from xarr.communication.communicator import CollectiveCall, current_communicator
from xarr.distributed.meshes import ReplicaMesh
from xarr.distributed.shardings import NamedSharding
from xarr.errors import ArgumentError, InputError
from xarr.ir.source import here
from xarr.runtime.materialisation import evaluate

HostArray = np.ndarray[Any, Any]


@record(eq=False)
class Shard:
    """A part of an array: the replica that has it, where it lies in the whole, and its value."""

    device: int
    index: tuple[slice, ...]
    data: Array


class ShardedArray(NoOperand):
    """An array whose parts lie at the replicas of a mesh, those of this process here.

    It goes into the next call of a function under `shard_map` as it is; `np.asarray` joins the parts, which under MPI
    and `simulate` is a collective that all replicas call.  It has no arithmetic: how parts are split is never guessed.
    """

    is_in_parts: ClassVar[bool] = True
    operand_advice: ClassVar[str] = (
        "a ShardedArray is in parts at several replicas, and how results would be split is never guessed: compute with "
        "it in a function under shard_map, or join its parts by np.asarray"
    )

    def __init__(self, parts: Mapping[int, Array], sharding: NamedSharding, shape: tuple[int, ...]) -> None:
        self._parts = dict(parts)
        self.sharding = sharding
        self.shape = shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return next(iter(self._parts.values())).dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))

    @property
    def addressable_shards(self) -> list[Shard]:
        """The parts that lie in this process, by replica."""
        return [
            Shard(rank, self.sharding.index_of(rank, self.shape), part)
            for rank, part in sorted(self._parts.items())
        ]

    def part(self, rank: int) -> Array:
        """The part of a replica of this process."""
        return self._parts[rank]

    def addressable_data(self, index: int) -> Array:
        """The part number `index` of those that lie in this process."""
        return self.addressable_shards[index].data

    def block_until_ready(self) -> ShardedArray:
        """Wait until the parts in this process are computed; raises what computing them raises."""
        evaluate(*self._parts.values())
        return self

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> HostArray:
        if copy is False:
            raise ValueError(
                "the parts of a ShardedArray are joined in new memory, so copy=False is not possible"
            )
        return self._join().astype(dtype or self.dtype, copy=False)

    def _join(self) -> HostArray:
        """The whole array; where parts lie in other processes, by a collective."""
        mesh = self.sharding.mesh
        if not self.sharding.names:
            return np.array(next(iter(self._parts.values())))
        if len(self._parts) == mesh.size:
            parts = {rank: np.asarray(part) for rank, part in self._parts.items()}
        else:
            world = current_communicator()
            own = np.asarray(self._parts[world.rank], order="C")
            signature = f"({self.dtype}[{','.join(map(str, self.shape))}], {self.sharding.spec})"
            source = here()
            line = source.address if source is not None else ""
            members = tuple(range(world.size))
            with world.collective(CollectiveCall("np.asarray", signature, members, line)):
                parts = dict(enumerate(algorithms.all_gather(world, members, own)))
        whole = np.empty(self.shape, self.dtype)
        for rank, part in parts.items():
            whole[self.sharding.index_of(rank, self.shape)] = part
        return whole

    def __repr__(self) -> str:
        sizes = ",".join(map(str, self.shape))
        return f"<ShardedArray {self.dtype}[{sizes}], {self.sharding.spec} over {self.sharding.mesh!r}>"

    def _refuse(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise InputError(self.operand_advice)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __rtruediv__ = _refuse
    __matmul__ = __rmatmul__ = __pow__ = __rpow__ = __neg__ = __abs__ = __getitem__ = __setitem__ = _refuse
    __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = __lt__ = __le__ = __gt__ = __ge__ = _refuse
    __bool__ = __float__ = __int__ = __len__ = __iter__ = _refuse
    __array_ufunc__ = __array_function__ = _refuse


def ranks_here(mesh: ReplicaMesh) -> tuple[int, ...]:
    """The replicas of a mesh that are in this process: all, or in a world the one that runs.

    Raises ArgumentError if the mesh has not as many as the world.
    """
    world = current_communicator()
    if world.size == 1:
        return tuple(range(mesh.size))
    if world.size != mesh.size:
        raise ArgumentError(
            f"wanted a mesh of all {world.size} replicas of {world.name}, got {mesh!r}, which has {mesh.size}"
        )
    return (world.rank,)


def device_put(x: Any, sharding: NamedSharding) -> ShardedArray:
    """An array in parts, each at its replica.

    x: an array, in a world of several replicas the same at all of them.
    Raises InputError for another sharding than a NamedSharding, ShapeError for a size that is not divisible.
    Source: jax.device_put.
    """
    if not isinstance(sharding, NamedSharding):
        raise InputError(f"device_put: wanted a NamedSharding, got {sharding!r}")
    array = as_array(x)
    shape = tuple(array.shape)
    sharding.shard_shape(shape)
    parts = {rank: array[sharding.index_of(rank, shape)] for rank in ranks_here(sharding.mesh)}
    return ShardedArray(parts, sharding, shape)
