"""Collectives and transfers: each result as a function of the operands of all members of a group.

The members exchange all that they have, and every one computes its own result from that.  `own` is the position of
this member in its group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import reduce as fold
from typing import Final

import numpy as np

from xarr.communication.communicator import (
    ArrayType,
    CollectiveCall,
    Communicator,
    current_communicator,
    current_grid,
)
from xarr.communication.process_groups import permutations
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.collectives import Collective
from xarr.ir.types import TensorType
from xarr_reference.values import Array, Computation, Rule, Value, cell, empty, indices, pack

#: What each member of a group has, in the order of the group.
Operands = Sequence[tuple[Array, ...]]

TOKEN: Final = np.empty(0, np.bool_)


# --- what the members have -------------------------------------------------------------------------------------


def _members(op: Collective) -> tuple[int, ...]:
    """The members that take part together with this one; none if it is in no group."""
    return op.members(current_grid(), current_communicator().rank)


@contextmanager
def _taking_part(node: Node, members: tuple[int, ...]) -> Iterator[Communicator]:
    assert isinstance(node.op, Collective)
    world = current_communicator()
    signature = node.op.signature([operand.type for operand in node.operands])
    line = node.source.address if node.source else ""
    with world.collective(CollectiveCall(node.op.lax_name, signature, members, line)):
        yield world


def _gather(node: Node, members: tuple[int, ...], operands: tuple[Array, ...]) -> Operands:
    """The operands of all members."""
    sent = np.frombuffer(b"".join(operand.tobytes() for operand in operands), np.uint8)
    received = {rank: np.empty_like(sent) for rank in members}
    with _taking_part(node, members) as world:
        world.exchange(dict.fromkeys(members, sent), received)
    return [_split(received[rank], operands) for rank in members]


def _split(memory: Array, like: tuple[Array, ...]) -> tuple[Array, ...]:
    """Arrays of the types of others, whose bytes lie one behind the other."""
    arrays, start = [], 0
    for each in like:
        array = np.frombuffer(memory[start : start + each.nbytes].tobytes(), each.dtype)
        arrays.append(array.reshape(each.shape))
        start += each.nbytes
    return tuple(arrays)


def _together(node: Node, operands: tuple[Array, ...]) -> tuple[list[tuple[Array, ...]], int]:
    """For each operand those of all members, and the position of this one."""
    members = _members(node.op.expect(Collective))
    rows = _gather(node, members, operands)
    return list(zip(*rows, strict=True)), members.index(current_communicator().rank)


# --- collectives -----------------------------------------------------------------------------------------------


def all_gather(node: Node, *operands: Array) -> Value:
    """result = operand of member 0, then that of member 1 …, along the dimension"""
    rows, _ = _together(node, operands)
    return pack(tuple([np.concatenate(each, node.op.expect(ops.AllGather).all_gather_dim) for each in rows]))


def all_reduce(node: Node, computation: Computation, *operands: Array) -> Value:
    """result[i] = f(… f(f(member 0[i], member 1[i]), member 2[i]) …)"""
    rows, _ = _together(node, operands)
    return pack(tuple([_reduce(node.op.expect(ops.AllReduce), computation, each) for each in rows]))


def _reduce(
    op: ops.AllReduce | ops.ReduceScatter, computation: Computation, arrays: tuple[Array, ...]
) -> Array:
    type = op.computation.results[0].tensor_type.with_shape(arrays[0].shape)
    result = empty(type)
    for index in indices(result.shape):
        elements = [cell(array.astype(type.dtype), index) for array in arrays]
        result[index] = fold(lambda a, b: computation(a, b)[0], elements)[()]
    return result


def reduce_scatter(node: Node, computation: Computation, operand: Array) -> Array:
    """result = part `own` of all_reduce(operand), along the dimension"""
    assert isinstance(node.op, ops.ReduceScatter)
    (rows,), own = _together(node, (operand,))
    return np.split(_reduce(node.op, computation, rows), len(rows), node.op.scatter_dimension)[own]


def all_to_all(node: Node, *operands: Array) -> Value:
    """result = part `own` of member 0, then that of member 1 …"""
    op = node.op.expect(ops.AllToAll)
    rows, own = _together(node, operands)
    parts = [[np.split(each, op.split_count, op.split_dimension)[own] for each in row] for row in rows]
    return pack(tuple([np.concatenate(each, op.concat_dimension) for each in parts]))


def collective_broadcast(node: Node, *operands: Array) -> Value:
    """result = operand of member 0; zeros if this is no member of a group"""
    members = _members(node.op.expect(ops.CollectiveBroadcast))
    if not members:
        return pack(tuple(map(np.zeros_like, operands)))
    return pack(_gather(node, members, operands)[0])


def collective_permute(node: Node, operand: Array) -> Array:
    """result = operand of the member whose target this is; zeros if there is none"""
    op, own = node.op.expect(ops.CollectivePermute), current_communicator().rank
    members = _members(op)
    rows = _gather(node, members, (operand,))
    pairs = permutations(op.source_target_pairs, op.strategy, current_grid())
    sources = [source for source, target in pairs if target == own]
    return rows[members.index(sources[0])][0] if sources else np.zeros_like(operand)


def replica_id(node: Node) -> Array:
    """result = the number of this member's replica"""
    return np.asarray(current_grid().coordinates_of(current_communicator().rank)[0], np.uint32)


def partition_id(node: Node) -> Array:
    """result = the number of this member's partition"""
    return np.asarray(current_grid().coordinates_of(current_communicator().rank)[1], np.uint32)


# --- tokens and transfers --------------------------------------------------------------------------------------


def after_all(node: Node, *tokens: Array) -> Array:
    """result = a token"""
    return TOKEN


def send(node: Node, *operands: Array) -> Array:
    """result = a token; the operands go to this member's target, or to the host"""
    op = node.op.expect(ops.Send)
    if op.is_host_transfer:
        return put_outfeed(node, *operands)
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[0] == current_communicator().rank:
            with _taking_part(node, pair) as world:
                for array in operands[:-1]:
                    world.send(array, pair[1], op.channel_id)
    return TOKEN


def recv(node: Node, token: Array) -> Value:
    """result = what this member's source, or the host, sent; zeros if there is none"""
    op = node.op.expect(ops.Recv)
    if op.is_host_transfer:
        return take_infeed(node, token)
    results = [np.zeros(shape, dtype) for dtype, shape in _types_of(op)]
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[1] == current_communicator().rank:
            with _taking_part(node, pair) as world:
                for result in results:
                    world.recv(result, pair[0], op.channel_id)
    return pack((*results, TOKEN))


def _types_of(op: ops.Recv | ops.Infeed) -> list[ArrayType]:
    return [(type.dtype, type.shape) for type in op.result_types if isinstance(type, TensorType)]


def take_infeed(node: Node, token: Array) -> Value:
    """result = what the host fed first"""
    op = node.op
    assert isinstance(op, ops.Recv | ops.Infeed)
    with _taking_part(node, (current_communicator().rank,)) as world:
        return pack((*world.take_infeed(_types_of(op)), TOKEN))


def put_outfeed(node: Node, *operands: Array) -> Array:
    """result = a token; the operands go to the host"""
    with _taking_part(node, (current_communicator().rank,)) as world:
        world.put_outfeed(operands[:-1])
    return TOKEN


TABLE: Final[dict[type[Op], Rule]] = {
    ops.AfterAll: after_all,
    ops.AllGather: all_gather,
    ops.AllReduce: all_reduce,
    ops.AllToAll: all_to_all,
    ops.CollectiveBroadcast: collective_broadcast,
    ops.CollectivePermute: collective_permute,
    ops.Infeed: take_infeed,
    ops.Outfeed: put_outfeed,
    ops.PartitionId: partition_id,
    ops.Recv: recv,
    ops.ReduceScatter: reduce_scatter,
    ops.ReplicaId: replica_id,
    ops.Send: send,
}
