"""How collectives and transfers are written in an explicit program."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.collectives import Collective, Grouped
from xarr.ir.types import TensorType, Type


def _pytree(operands: list[str]) -> str:
    return operands[0] if len(operands) == 1 else f"({', '.join(operands)})"


def _who(op: Collective) -> str:
    """The arguments that say who takes part, each with a comma before it."""
    groups = op.replica_groups.ids if isinstance(op, Grouped) else ()
    listed = [("replica_groups", groups or None), ("channel_id", op.channel_id or None)]
    if getattr(op, "use_global_device_ids", False):
        listed.append(("use_global_device_ids", True))
    return "".join(f", {name}={value!r}" for name, value in listed if value is not None)


def _types(types: tuple[Type, ...]) -> str:
    return repr([(type.shape, str(type.dtype)) for type in types if isinstance(type, TensorType)])


def _all_gather(op: ops.AllGather, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.all_gather({_pytree(operands)}, axis={op.all_gather_dim}, tiled=True{_who(op)})"


def _all_reduce(op: ops.AllReduce, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.all_reduce({_pytree(operands)}, {inner[0]}{_who(op)})"


def _all_to_all(op: ops.AllToAll, node: Node, operands: list[str], inner: list[str]) -> str:
    dims = f"{op.split_dimension}, {op.concat_dimension}"
    return f"lax.all_to_all({_pytree(operands)}, None, {dims}, tiled=True{_who(op)})"


def _collective_broadcast(
    op: ops.CollectiveBroadcast, node: Node, operands: list[str], inner: list[str]
) -> str:
    return f"lax.collective_broadcast({_pytree(operands)}{_who(op)})"


def _collective_permute(op: ops.CollectivePermute, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.collective_permute({operands[0]}, {op.source_target_pairs}{_who(op)})"


def _reduce_scatter(op: ops.ReduceScatter, node: Node, operands: list[str], inner: list[str]) -> str:
    count = f", shard_count={op.shard_count}" if op.shard_count else ""
    return f"lax.reduce_scatter({operands[0]}, {inner[0]}, {op.scatter_dimension}{count}{_who(op)})"


def _cross_replica_sum(op: ops.CrossReplicaSum, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.cross_replica_sum({operands[0]}{_who(op)})"


def _send(op: ops.Send, node: Node, operands: list[str], inner: list[str]) -> str:
    *arrays, token = operands
    arguments = f"[{', '.join(arrays)}], {token}, {op.channel_id}, {op.source_target_pairs}"
    return f"lax.send({arguments}, is_host_transfer={op.is_host_transfer})"


def _unpack_received(call: str, op: ops.Recv | ops.Infeed) -> str:
    """The results of a call that gives arrays and a token, one behind the other."""
    return f"(lambda arrays, token: (*arrays, token))(*{call})" if op.result_types else f"{call}[1]"


def _recv(op: ops.Recv, node: Node, operands: list[str], inner: list[str]) -> str:
    arguments = f"{_types(op.result_types)}, {operands[0]}, {op.channel_id}, {op.source_target_pairs}"
    return _unpack_received(f"lax.recv({arguments}, is_host_transfer={op.is_host_transfer})", op)


def _write_infeed(op: ops.Infeed, node: Node, operands: list[str], inner: list[str]) -> str:
    return _unpack_received(f"lax.infeed({operands[0]}, {_types(op.result_types)})", op)


def _write_outfeed(op: ops.Outfeed, node: Node, operands: list[str], inner: list[str]) -> str:
    *arrays, token = operands
    return f"lax.outfeed({token}, [{', '.join(arrays)}])"


def _plain(op: Op, node: Node, operands: list[str], inner: list[str]) -> str:
    return f"lax.{op.lax_name}({', '.join(operands)})"


SPELLINGS: Final[dict[type[Op], Callable[[Any, Node, list[str], list[str]], str]]] = {
    ops.AfterAll: _plain,
    ops.AllGather: _all_gather,
    ops.AllReduce: _all_reduce,
    ops.AllToAll: _all_to_all,
    ops.CollectiveBroadcast: _collective_broadcast,
    ops.CollectivePermute: _collective_permute,
    ops.CrossReplicaSum: _cross_replica_sum,
    ops.Infeed: _write_infeed,
    ops.Outfeed: _write_outfeed,
    ops.PartitionId: _plain,
    ops.Recv: _recv,
    ops.ReduceScatter: _reduce_scatter,
    ops.ReplicaId: _plain,
    ops.Send: _send,
}
