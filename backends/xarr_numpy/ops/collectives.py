"""Collectives and transfers, by the communicator in use when a program runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.base.configuration import current as config
from xarr.base.host.memory import pool
from xarr.communication import algorithms
from xarr.communication.communicator import (
    ArrayType,
    CollectiveCall,
    Communicator,
    current_communicator,
    current_grid,
)
from xarr.communication.process_groups import permutations
from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import BOOL, EXTENDED_FLOAT, INTEGER
from xarr.errors import BackendError
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.graph import Graph
from xarr.ir.ops.collectives import Collective
from xarr.ir.types import TensorType
from xarr_numpy.ops.reductions import COMBINERS
from xarr_numpy.ops.table_rows import Rows, Writer

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]

#: The value of a token.
TOKEN: Final = np.empty(0, np.bool_)
TOKEN.flags.writeable = False

#: The combiners that a communicator may have faster ways for, by the operation: in any order, to the same bits.
_NATIVE: Final = {
    ops.Add: "add",
    ops.Multiply: "multiply",
    ops.Maximum: "maximum",
    ops.Minimum: "minimum",
    ops.And: "and",
    ops.Or: "or",
    ops.Xor: "xor",
}
#: Those of floats, on demand.
_SUMS: Final = frozenset({ops.Add, ops.Multiply})
#: NumPy's functions that combine as the operation does, all bits of all elements.
_EXACT: Final = frozenset({np.add, np.multiply, np.bitwise_and, np.bitwise_or, np.bitwise_xor})


# --- who takes part ---------------------------------------------------------------------------------------------


def _members(op: Collective) -> tuple[int, ...]:
    """The ranks of this member's group; none if it is in no group."""
    return op.members(current_grid(), current_communicator().rank)


@contextmanager
def _taking_part(
    op: Collective, signature: str, source: str, members: tuple[int, ...]
) -> Iterator[Communicator]:
    world = current_communicator()
    with world.collective(CollectiveCall(op.lax_name, signature, members, source)):
        yield world


def _whole(operands: Sequence[Any]) -> list[Array]:
    """Operands in C order; unlike `ascontiguousarray`, those without dimensions keep none."""
    return [np.asarray(operand, order="C") for operand in operands]


def _pack(arrays: Sequence[Array]) -> Array:
    """The bytes of arrays, one behind the other, so that they go in one exchange."""
    flat = [array.reshape(-1).view(np.uint8) for array in arrays if array.size]
    return np.concatenate(flat) if flat else np.empty(0, np.uint8)


def _unpack(memory: Array, like: Sequence[Array]) -> list[Array]:
    arrays, start = [], 0
    for each in like:
        part = np.array(memory[start : start + each.nbytes])
        arrays.append(part.view(each.dtype).reshape(each.shape) if each.size else np.empty_like(each))
        start += each.nbytes
    return arrays


def _join(rows: Array | Sequence[Array], dim: int) -> Array:
    """Arrays of one shape, joined along a dimension; not copied where they are rows of one array in that order."""
    count, shape = len(rows), rows[0].shape
    joined = (*shape[:dim], count * shape[dim], *shape[dim + 1 :])
    if isinstance(rows, np.ndarray) and prod(shape[:dim]) == 1:
        return rows.reshape(joined)
    out = pool.empty(joined, rows[0].dtype)
    np.concatenate(list(rows), dim, out=out)
    return out


# --- kernels ----------------------------------------------------------------------------------------------------


def all_gather(op: ops.AllGather, signature: str, source: str, *operands: Any) -> tuple[Array, ...]:
    """The operands of all members, joined."""
    arrays, members = _whole(operands), _members(op)
    rows: list[Array | Sequence[Array]]
    with _taking_part(op, signature, source, members) as world:
        if len(arrays) == 1:
            rows = [algorithms.all_gather(world, members, arrays[0])]
        else:
            packed = algorithms.all_gather(world, members, _pack(arrays))
            rows = list(zip(*[_unpack(each, arrays) for each in packed], strict=True))
    return tuple([_join(row, op.all_gather_dim) for row in rows])


def all_reduce(
    op: ops.AllReduce, signature: str, source: str, combine: Function, *operands: Any
) -> tuple[Array, ...]:
    """The operands of all members, combined."""
    dtype, members = op.computation.results[0].dtype, _members(op)
    arrays = [each.astype(dtype, copy=False) for each in _whole(operands)]
    fold, native = _fold_by(op.computation, combine), _native_name(op.computation)
    if native is not None and dtype not in BOOL | INTEGER:
        signature += " by MPI"  # which all members must want
    with _taking_part(op, signature, source, members) as world:
        count = len(arrays)
        return tuple(algorithms.all_reduce(world, members, arrays, [fold] * count, [native] * count))


def reduce_scatter(
    op: ops.ReduceScatter, signature: str, source: str, combine: Function, operand: Any
) -> Array:
    """This member's part of the operands of all members, combined."""
    dtype, members = op.computation.results[0].dtype, _members(op)
    rows = _parts(np.asarray(operand).astype(dtype, copy=False), op.scatter_dimension, len(members))
    with _taking_part(op, signature, source, members) as world:
        return algorithms.reduce_scatter(world, members, rows, _fold_by(op.computation, combine))


def _parts(array: Array, dim: int, count: int) -> Array:
    """The parts of an array along a dimension, behind one another."""
    shape = array.shape
    split = array.reshape((*shape[:dim], count, shape[dim] // count, *shape[dim + 1 :]))
    return np.ascontiguousarray(np.moveaxis(split, dim, 0))


def _native_name(computation: Graph) -> str | None:
    """The name of a combiner that a communicator may compute itself.

    Integers and bools have the same bits in any order; floats on demand, but never extremes, which lose NaN under MPI.
    """
    dtype, combiners = computation.results[0].dtype, monoids(computation)
    if combiners is None:
        return None
    if dtype not in BOOL | INTEGER and not (config.native_sums and combiners[0] in _SUMS):
        return None
    return _NATIVE.get(combiners[0])


def _fold_by(computation: Graph, combine: Function) -> algorithms.Fold:
    """The function that combines rows from the left, by a ufunc if there is one, else by a program on lanes."""
    combiners = monoids(computation)
    dtype = computation.results[0].dtype
    ufuncs = [ufunc for ufunc in _EXACT if combiners and COMBINERS.get(ufunc) is combiners[0]]
    if ufuncs and dtype not in EXTENDED_FLOAT:
        return lambda rows, out: _fold_ufunc(ufuncs[0], rows, out)
    return lambda rows, out: _fold_lanes(combine, rows, out)


def _fold_ufunc(ufunc: np.ufunc, rows: Sequence[Array], out: Array) -> None:
    if len(rows) == 1:
        out[...] = rows[0]
        return
    ufunc(rows[0], rows[1], out=out)
    for row in rows[2:]:
        ufunc(out, row, out=out)


def _fold_lanes(combine: Function, rows: Sequence[Array], out: Array) -> None:
    total: Any = rows[0]
    for row in rows[1:]:
        (total,) = combine(total, row)
    out[...] = total


def all_to_all(op: ops.AllToAll, signature: str, source: str, *operands: Any) -> tuple[Array, ...]:
    """The parts of the operands of all members that are for this one, joined."""
    members = _members(op)
    arrays = [_parts(np.asarray(each), op.split_dimension, op.split_count) for each in operands]
    results: list[Array | Sequence[Array]]
    with _taking_part(op, signature, source, members) as world:
        if len(arrays) == 1:
            results = [algorithms.all_to_all(world, members, arrays[0])]
        else:
            packed = np.stack([_pack([each[j, ...] for each in arrays]) for j in range(len(members))])
            like = [each[0, ...] for each in arrays]
            received = algorithms.all_to_all(world, members, packed)
            results = list(zip(*[_unpack(row, like) for row in received], strict=True))
    return tuple([_join(rows, op.concat_dimension) for rows in results])


def collective_broadcast(
    op: ops.CollectiveBroadcast, signature: str, source: str, *operands: Any
) -> tuple[Array, ...]:
    """The operands of the group's first member; zeros at what is in no group."""
    arrays, members = _whole(operands), _members(op)
    if not members:
        return tuple(map(np.zeros_like, arrays))
    with _taking_part(op, signature, source, members) as world:
        if len(arrays) == 1:
            return (algorithms.broadcast(world, members, arrays[0]),)
        return tuple(_unpack(algorithms.broadcast(world, members, _pack(arrays)), arrays))


def collective_permute(op: ops.CollectivePermute, signature: str, source: str, operand: Any) -> Array:
    """The operand of the member that sends to this one; zeros if none does."""
    pairs = permutations(op.source_target_pairs, op.strategy, current_grid())
    with _taking_part(op, signature, source, _members(op)) as world:
        return algorithms.permute(world, _whole([operand])[0], [(each[0], each[1]) for each in pairs])


def replica_id() -> Any:
    """The number of this member's replica."""
    return np.uint32(current_grid().coordinates_of(current_communicator().rank)[0])


def partition_id() -> Any:
    """The number of this member's partition."""
    return np.uint32(current_grid().coordinates_of(current_communicator().rank)[1])


def send(op: ops.Send, signature: str, source: str, *operands: Any) -> Array:
    """Send arrays, which stand before a token; gives a token."""
    if op.is_host_transfer:
        return put_outfeed(op, signature, source, *operands)
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[0] == current_communicator().rank:
            with _taking_part(op, signature, source, pair) as world:
                for array in _whole(operands[:-1]):
                    world.send(array, pair[1], op.channel_id)
    return TOKEN


def recv(op: ops.Recv, signature: str, source: str, token: Any) -> tuple[Array, ...]:
    """Arrays that were sent to this member, and a token; zeros if none sends to it."""
    if op.is_host_transfer:
        return take_infeed(op, signature, source, token)
    results = [np.zeros(shape, dtype) for dtype, shape in _types_of(op)]
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[1] == current_communicator().rank:
            with _taking_part(op, signature, source, pair) as world:
                for result in results:
                    world.recv(result, pair[0], op.channel_id)
    return (*results, TOKEN)


def _types_of(op: ops.Recv | ops.Infeed) -> list[ArrayType]:
    return [(type.dtype, type.shape) for type in op.result_types if isinstance(type, TensorType)]


def take_infeed(op: ops.Recv | ops.Infeed, signature: str, source: str, token: Any) -> tuple[Array, ...]:
    """Arrays that the host fed, and a token."""
    with _taking_part(op, signature, source, (current_communicator().rank,)) as world:
        return (*world.take_infeed(_types_of(op)), TOKEN)


def put_outfeed(op: ops.Send | ops.Outfeed, signature: str, source: str, *operands: Any) -> Array:
    """Put arrays, which stand before a token, out to the host; gives a token."""
    with _taking_part(op, signature, source, (current_communicator().rank,)) as world:
        world.put_outfeed(_whole(operands[:-1]))
    return TOKEN


# --- rows -------------------------------------------------------------------------------------------------------


def _row(function: str, is_one: bool) -> Writer:
    """The row of a collective; `is_one`: the function gives the result, not a tuple of results."""

    def write(emitter: Emitter, step: Step) -> str:
        op, arguments = step.op, _arguments(emitter, step)
        if isinstance(op, ops.AllReduce | ops.ReduceScatter):
            arguments.append(emitter.function(op.computation, lanes=True))
        call = f"{function}({', '.join([*arguments, *emitter.operands(step)])})"
        return call if is_one or len(step.outputs) > 1 else f"{call}[0]"

    return write


def _arguments(emitter: Emitter, step: Step) -> list[str]:
    """The operation, and what others are told of this call of it."""
    op = step.op
    assert isinstance(op, Collective)
    _refuse_lanes(emitter, op)
    signature = op.signature([operand.type for operand in step.node.operands])
    address = step.node.source.address if step.node.source else ""
    return [emitter.constant(op), repr(signature), repr(address)]


def _transfer(function: str) -> Writer:
    def write(emitter: Emitter, step: Step) -> str:
        call = f"{function}({', '.join([*_arguments(emitter, step), *emitter.operands(step)])})"
        is_alone = isinstance(step.op, ops.Recv | ops.Infeed) and len(step.outputs) == 1
        return f"{call}[0]" if is_alone else call

    return write


def _refuse_lanes(emitter: Emitter, op: Any) -> None:
    if emitter.lanes:
        raise BackendError(
            f"backend 'numpy' runs scalar computations on whole arrays and cannot run {op.lax_name} inside one; call "
            "it outside of the combiner, comparator or map"
        )


SCOPE: Final[dict[str, Any]] = {
    "TOKEN": TOKEN,
    **{
        f.__name__: f
        for f in (
            *(all_gather, all_reduce, all_to_all, collective_broadcast, collective_permute, reduce_scatter),
            *(replica_id, partition_id, send, recv, take_infeed, put_outfeed),
        )
    },
}

ROWS: Final[Rows] = {
    ops.AfterAll: lambda emitter, step: "TOKEN",
    ops.AllGather: _row("all_gather", is_one=False),
    ops.AllReduce: _row("all_reduce", is_one=False),
    ops.AllToAll: _row("all_to_all", is_one=False),
    ops.CollectiveBroadcast: _row("collective_broadcast", is_one=False),
    ops.CollectivePermute: _row("collective_permute", is_one=True),
    ops.Infeed: _transfer("take_infeed"),
    ops.Outfeed: _transfer("put_outfeed"),
    ops.PartitionId: lambda emitter, step: "partition_id()",
    ops.Recv: _transfer("recv"),
    ops.ReduceScatter: _row("reduce_scatter", is_one=True),
    ops.ReplicaId: lambda emitter, step: "replica_id()",
    ops.Send: _transfer("send"),
}
