"""What StableHLO's text says of collectives, tokens and transfers, as nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xarr.communication.process_groups import AxisRef, Mesh, ReplicaGroups, Rows, Strategy
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.effects import DEVICE_TO_DEVICE
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.stablehlo.syntax_tree import Attribute, Literal
from xarr.ir.types import TokenType, Type


def _table(site: Site, name: str) -> Rows:
    """`dense<[[0, 1], [2, 3]]>` as rows; none if it is missing or empty."""
    if not site.has(name):
        return ()
    value = site.attribute(name)
    if not isinstance(value, Literal):
        site.fail(f"expected dense<…> for {name}, got {value!r}")
    table = site.elements(name, value).array()
    if table.ndim != 2:
        site.fail(f"expected rows of integers for {name}, got an array of rank {table.ndim}")
    return tuple(map(tuple, table.tolist())) if table.size else ()


def _groups(site: Site) -> ReplicaGroups:
    value = site.operation.attributes.get("replica_groups")
    if isinstance(value, dict):
        return _mesh_groups(site, value)
    return ReplicaGroups(_table(site, "replica_groups"))


def _mesh_groups(site: Site, value: dict[str, Attribute]) -> ReplicaGroups:
    """`#stablehlo.replica_group_mesh_axes<mesh = …, axes = […]>`."""
    mesh, axes = value.get("mesh"), value.get("axes", ())
    if isinstance(mesh, str):
        mesh = site.mesh(mesh)
    if not isinstance(mesh, Mesh) or not isinstance(axes, tuple):
        site.fail(f"expected a mesh and axes of it for replica_groups, got {value!r}")
    refs = []
    for axis in axes:
        name = axis.get("name") if isinstance(axis, dict) else None
        part = axis.get("sub_axis_info") if isinstance(axis, dict) else None
        if not isinstance(name, str) or not (part is None or isinstance(part, tuple)):
            site.fail(f"expected an axis of the mesh, got {axis!r}")
        refs.append(AxisRef(name, None if part is None else (int(str(part[0])), int(str(part[1])))))
    return ReplicaGroups((), mesh, tuple(refs))


def _channel(site: Site, default: int = 0) -> tuple[int, int]:
    """The number and the type of the channel."""
    if not site.has("channel_handle"):
        return site.integer("channel_id", 0), default
    record = site.record("channel_handle")
    return (
        site.as_integer("handle", record.get("handle", 0)),
        site.as_integer("type", record.get("type", default)),
    )


def _shard_count(site: Site, dim: int, groups: ReplicaGroups, strategy: Strategy, divides: bool) -> int:
    """The number of members of a group where the groups do not say it: by how much the result is larger, or smaller."""
    if groups.ids and strategy is not Strategy.CROSS_REPLICA_AND_PARTITION:
        return 0
    operand, result = site.operands[0].tensor_type.shape, site.type().shape
    if not (0 <= dim < len(operand) == len(result)):
        return 1
    small, large = (result[dim], operand[dim]) if divides else (operand[dim], result[dim])
    return large // small if small else 1


def _all_gather(site: Site) -> Node:
    site.at_least(1)
    groups, (number, kind) = _groups(site), _channel(site)
    dim, is_global = site.integer("all_gather_dim"), site.flag("use_global_device_ids")
    op = ops.AllGather(dim, groups, number, is_global, 0, kind)
    count = _shard_count(site, dim, groups, op.strategy, False)
    return Node(ops.AllGather(dim, groups, number, is_global, count, kind), site.operands)


def _all_reduce(site: Site) -> Node:
    number, kind = _channel(site)
    op = ops.AllReduce(site.computation(), _groups(site), number, site.flag("use_global_device_ids"), kind)
    return Node(op, site.at_least(1))


def _reduce_scatter(site: Site) -> Node:
    site.take(1)
    groups, (number, kind) = _groups(site), _channel(site)
    dim, is_global = site.integer("scatter_dimension"), site.flag("use_global_device_ids")
    op = ops.ReduceScatter(dim, site.computation(), groups, number, is_global, 0, kind)
    count = _shard_count(site, dim, groups, op.strategy, True)
    return Node(ops.ReduceScatter(dim, op.computation, groups, number, is_global, count, kind), site.operands)


def _all_to_all(site: Site) -> Node:
    op = ops.AllToAll(
        site.integer("split_dimension"),
        site.integer("concat_dimension"),
        site.integer("split_count"),
        _groups(site),
        *_channel(site),
    )
    return Node(op, site.at_least(1))


def _collective_broadcast(site: Site) -> Node:
    if site.flag("has_dynamic_root"):
        site.fail("a source that is known when the program runs alone is not supported")
    return Node(ops.CollectiveBroadcast(_groups(site), *_channel(site)), site.at_least(1))


def _collective_permute(site: Site) -> Node:
    return Node(ops.CollectivePermute(_table(site, "source_target_pairs"), *_channel(site)), site.take(1))


def _send(site: Site) -> Node:
    number, kind = _channel(site, DEVICE_TO_DEVICE)
    pairs, is_host = _table(site, "source_target_pairs"), site.flag("is_host_transfer")
    return Node(ops.Send(number, pairs, is_host, kind), site.at_least(1))


def _recv(site: Site) -> Node:
    number, kind = _channel(site, DEVICE_TO_DEVICE)
    pairs, is_host = _table(site, "source_target_pairs"), site.flag("is_host_transfer")
    return Node(ops.Recv(_payload(site), number, pairs, is_host, kind), site.take(1))


def _payload(site: Site) -> tuple[Type, ...]:
    """The types of the results before the token."""
    *_, last = site.operation.result_types or (None,)
    if last is not TokenType():
        site.fail(f"expected a token as the last result, got {last}")
    return tuple([site.type(index) for index in range(len(site.operation.result_types) - 1)])


def _read_infeed(site: Site) -> Node:
    layout = site.attribute("layout") if site.has("layout") else ()
    if not isinstance(layout, tuple):
        site.fail(f"expected a list of orders of dimensions for layout, got {layout!r}")
    orders = tuple([site.as_integers("layout", each) for each in layout])
    return Node(ops.Infeed(_payload(site), site.word("infeed_config", ""), orders), site.take(1))


def _read_outfeed(site: Site) -> Node:
    return Node(ops.Outfeed(site.word("outfeed_config", "")), site.at_least(1))


def _position(op: type[ops.ReplicaId | ops.PartitionId]) -> Callable[[Site], Node]:
    def build(site: Site) -> Node:
        node = Node(op(), site.take(0))
        # A computation inside gets it as an argument, as it does what depends on arguments.
        node.traced = True
        return node

    return build


BUILDERS: Final[dict[str, Callable[[Site], Node]]] = {
    "stablehlo.after_all": lambda site: Node(ops.AfterAll(), site.operands),
    "stablehlo.all_gather": _all_gather,
    "stablehlo.all_reduce": _all_reduce,
    "stablehlo.all_to_all": _all_to_all,
    "stablehlo.collective_broadcast": _collective_broadcast,
    "stablehlo.collective_permute": _collective_permute,
    "stablehlo.create_token": lambda site: Node(ops.AfterAll(), site.take(0)),
    "stablehlo.cross-replica-sum": lambda site: Node(ops.CrossReplicaSum(_groups(site)), site.take(1)),
    "stablehlo.infeed": _read_infeed,
    "stablehlo.outfeed": _read_outfeed,
    "stablehlo.partition_id": _position(ops.PartitionId),
    "stablehlo.recv": _recv,
    "stablehlo.reduce_scatter": _reduce_scatter,
    "stablehlo.replica_id": _position(ops.ReplicaId),
    "stablehlo.send": _send,
}
