"""Programs of several replicas: threads of one process, or processes under MPI."""

from xarr.distributed.costs import Link as Link
from xarr.distributed.launch import initialize as initialize
from xarr.distributed.meshes import ReplicaMesh, make_mesh as make_mesh
from xarr.distributed.sharded_array import (
    Shard as Shard,
    ShardedArray as ShardedArray,
    device_put as device_put,
)
from xarr.distributed.shardings import NamedSharding as NamedSharding, PartitionSpec as PartitionSpec
from xarr.distributed.simulation import simulate as simulate

Mesh = ReplicaMesh
