"""Collectives over groups of members, by ids as in XLA.  Those over named axes are in `named_axes.py`.

A member calls each of them with operands of the types that the others of its group have; outside of functions that
are recorded, as by jit, it runs where it is called.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from xarr import tree
from xarr.base.tracebacks import names_errors
from xarr.base.typing import Array
from xarr.communication.communicator import Grid, current_communicator, current_grid
from xarr.communication.process_groups import ReplicaGroups, Rows, Strategy
from xarr.errors import InputError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.collectives import Collective
from xarr.lax.core import ArrayLike, flag, integer, integers, items, operands
from xarr.lax.reduction import combiner_graph
from xarr.lax.tracing import argument_nodes, results_of
from xarr.runtime.handles import wrap
from xarr.runtime.trace_stack import is_tracing
from xarr.tree import LEAF

#: Ids of members of groups: None or nothing for one group of all.
Groups: TypeAlias = Sequence[Sequence[int]] | None


def id_rows(name: str, argument: str, rows: Any) -> Rows:
    """Rows of ids from nested sequences, or from an array of two dimensions."""
    return tuple([integers(name, argument, row) for row in items(name, argument, rows)])


def parse_groups(name: str, groups: Groups) -> ReplicaGroups:
    """Groups as an attribute of an operation."""
    return ReplicaGroups() if groups is None else ReplicaGroups.of(id_rows(name, "replica_groups", groups))


def channel_number(name: str, channel_id: int | None) -> int:
    """The number of a channel, 0 for none."""
    return 0 if channel_id is None else integer(name, "channel_id", channel_id)


def group_count(groups: ReplicaGroups, strategy: Strategy) -> int:
    """The number of members of a group where the groups do not say it: as many as the world in use has."""
    if groups.ids and strategy is not Strategy.CROSS_REPLICA_AND_PARTITION:
        return 0
    grid = current_grid()
    if not groups.ids:
        return strategy.count(grid) * (1 if strategy in _PLAIN else grid.num_partitions)
    return (groups.size or 0) * grid.num_partitions


_PLAIN = (Strategy.CROSS_REPLICA, Strategy.CROSS_PARTITION, Strategy.FLATTENED_IDS)


def apply_to_leaves(op: Collective, nodes: Sequence[Node]) -> list[Array]:
    """The results of a collective over all of these operands, in one exchange."""
    return results_of(op, nodes, len(nodes)) if nodes else []


def apply_by_dtype(make: Callable[[np.dtype[Any]], Collective], nodes: Sequence[Node]) -> list[Any]:
    """The results of collectives, one over the operands of each element type, in the order of the operands."""
    results: list[Any] = [None] * len(nodes)
    for dtype in dict.fromkeys(node.dtype for node in nodes):
        indices = [index for index, node in enumerate(nodes) if node.dtype == dtype]
        own = apply_to_leaves(make(dtype), [nodes[index] for index in indices])
        for index, result in zip(indices, own, strict=True):
            results[index] = result
    return results


def _scalar_computation(
    name: str, label: str, computation: Callable[..., Any], dtype: np.dtype[Any]
) -> Graph:
    return combiner_graph(name, label, computation, LEAF, [dtype])


@names_errors
def all_reduce(
    x: Any,
    computation: Callable[[Array, Array], Array],
    replica_groups: Groups = None,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Any:
    """`x` of all members of a group, combined element by element, from the left in the order of the group.

    x: a pytree of arrays, of the same types at all members; those of one element type go in one exchange.
    computation: maps two scalars to one, such as `lax.add`; it need not commute.
    replica_groups: the ids of each group's members; one group of all without.
    channel_id, use_global_device_ids: with a positive channel a group has all partitions of its replicas, or, if ids
        are global, they number members.

    Returns the structure of `x`.  Raises ShapeError [C1, C3, C4] for other groups, [C5] for another computation, and
    CommunicationError, when it runs, if members do not take part in the same.  Source: XLA's AllReduce.
    """
    leaves, structure = tree.flatten(x)
    nodes = argument_nodes("all_reduce", leaves)
    groups, channel = parse_groups("all_reduce", replica_groups), channel_number("all_reduce", channel_id)
    is_global = flag("all_reduce", "use_global_device_ids", use_global_device_ids)

    def make(dtype: np.dtype[Any]) -> Collective:
        graph = _scalar_computation("all_reduce", "C5", computation, dtype)
        return ops.AllReduce(graph, groups, channel, is_global)

    return tree.unflatten(structure, apply_by_dtype(make, nodes))


@names_errors
def cross_replica_sum(x: Any, replica_groups: Groups = None) -> Any:
    """The sums of `x`, a pytree of arrays, over all replicas of a group.

    Raises ShapeError [C1, C3] for other groups.  Source: XLA's CrossReplicaSum.
    """
    leaves, structure = tree.flatten(x)
    op = ops.CrossReplicaSum(parse_groups("cross_replica_sum", replica_groups))
    nodes = argument_nodes("cross_replica_sum", leaves)
    return tree.unflatten(structure, [results_of(op, (node,), 1)[0] for node in nodes])


@names_errors
def reduce_scatter(
    operand: ArrayLike,
    computation: Callable[[Array, Array], Array],
    scatter_dimension: int,
    shard_count: int | None = None,
    replica_groups: Groups = None,
    channel_id: int | None = None,
    use_global_device_ids: bool = False,
) -> Array:
    """A part of `all_reduce(operand, computation)`: part k along a dimension at member k of the group.

    shard_count: the number of members of a group, if the groups do not say it; else that of the world in use.

    Raises ShapeError [C1, C2] for another dimension, [C3, C5, C6, C8] for other groups, [C7] for another computation.
    Source: XLA's ReduceScatter.
    """
    name = "reduce_scatter"
    (node,) = operands(name, operand)
    groups, channel = parse_groups(name, replica_groups), channel_number(name, channel_id)
    is_global = flag(name, "use_global_device_ids", use_global_device_ids)
    graph = _scalar_computation(name, "C7", computation, node.dtype)
    dim = integer(name, "scatter_dimension", scatter_dimension)
    plain = ops.ReduceScatter(dim, graph, groups, channel, is_global)
    count = (
        group_count(groups, plain.strategy)
        if shard_count is None
        else integer(name, "shard_count", shard_count)
    )
    return results_of(ops.ReduceScatter(dim, graph, groups, channel, is_global, count), (node,), 1)[0]


@names_errors
def collective_permute(
    x: Any, source_target_pairs: Sequence[tuple[int, int]], channel_id: int | None = None
) -> Any:
    """`x` of the replica that sends to this one; zeros if none does.

    x: a pytree of arrays.  source_target_pairs: which replica sends to which; of partitions with a positive channel.

    Raises ShapeError [C1 to C4] for pairs in which a source or a target stands twice.  Source: XLA's
    CollectivePermute.
    """
    leaves, structure = tree.flatten(x)
    pairs = id_rows("collective_permute", "source_target_pairs", source_target_pairs)
    op = ops.CollectivePermute(pairs, channel_number("collective_permute", channel_id))
    nodes = argument_nodes("collective_permute", leaves)
    return tree.unflatten(structure, [results_of(op, (node,), 1)[0] for node in nodes])


@names_errors
def collective_broadcast(x: Any, replica_groups: Groups = None, channel_id: int | None = None) -> Any:
    """`x` of the first member of each group at all of its members; zeros at replicas that are in no group.

    x: a pytree of arrays, which go in one exchange.

    Raises ShapeError [C1, C2] for other groups.  Source: XLA's CollectiveBroadcast.
    """
    leaves, structure = tree.flatten(x)
    groups = parse_groups("collective_broadcast", replica_groups)
    op = ops.CollectiveBroadcast(groups, channel_number("collective_broadcast", channel_id))
    nodes = argument_nodes("collective_broadcast", leaves)
    return tree.unflatten(structure, apply_to_leaves(op, nodes))


def _position(op: ops.ReplicaId | ops.PartitionId, number: int) -> Array:
    """Where this member stands: known now, or when the function runs that is recorded."""
    if not is_tracing():
        return wrap(Node(ops.Constant.of(np.asarray(number, np.uint32))))
    node = Node(op)
    node.traced = True
    return wrap(node)


def _coordinates() -> tuple[int, int]:
    grid: Grid = current_grid()
    return grid.coordinates_of(current_communicator().rank)


@names_errors
def replica_id() -> Array:
    """The number of the replica that this member is a part of, an uint32 scalar.  Source: XLA's ReplicaId."""
    return _position(ops.ReplicaId(), _coordinates()[0])


@names_errors
def partition_id() -> Array:
    """The number of the partition that this member is of its replica, an uint32 scalar.

    Source: StableHLO, partition_id.
    """
    return _position(ops.PartitionId(), _coordinates()[1])


def check_no_axis(name: str, axis_name: Any, groups: Groups) -> None:
    """Refuse an axis beside groups, which say the same in two ways."""
    if axis_name is not None and groups is not None:
        raise InputError(f"{name}: wanted axis_name or replica_groups, got both")
