"""Collectives and transfers, by the communicator in use when a program runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from math import prod
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

import numpy as np

from xarr.base.configuration import current as config
from xarr.base.host.memory import pool
from xarr.communication import algorithms
from xarr.communication.communicator import (
    ArrayType,
    CollectiveCall,
    Grid,
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
from xarr.ir.types import TensorType, replace_at
from xarr_numpy import engine
from xarr_numpy.ops.reductions import COMBINERS
from xarr_numpy.ops.table_rows import Rows, Writer

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Function = Callable[..., tuple[Any, ...]]
FoldRows = Callable[[Sequence[Array], Array], None]
AnyCollective = TypeVar("AnyCollective", bound=Collective)

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
#: Bytes of a result from which on it is folded in machine code.
LEAST_AT_ONCE: Final = 2**17


# --- who takes part ---------------------------------------------------------------------------------------------


class Participation(Generic[AnyCollective]):
    """A collective of a program, and what each member of a world does in it, worked out when it first does."""

    def __init__(self, op: AnyCollective) -> None:
        self.op = op
        #: By rank and signature, the grid and the call.
        self._calls: dict[tuple[int, str], tuple[Grid, CollectiveCall]] = {}
        #: By the program of the combiner, which is the same each time, how rows are combined.
        self._folds: dict[Function, algorithms.Fold] = {}

    def call(self, signature: str, source: str) -> CollectiveCall:
        """The call of this member, with the ranks of its group; none if it is in no group."""
        grid, rank = current_grid(), current_communicator().rank
        known = self._calls.get((rank, signature))
        if known is None or known[0] is not grid:
            call = CollectiveCall(self.op.lax_name, signature, self.op.members(grid, rank), source)
            known = self._calls[rank, signature] = grid, call
        return known[1]

    def fold(self, computation: Graph, combine: Function) -> algorithms.Fold:
        """The way in which rows are combined."""
        if combine not in self._folds:
            self._folds[combine] = fold_by(computation, combine)
        return self._folds[combine]

    @cached_property
    def native(self) -> str | None:
        """The name of a combiner that a communicator may compute itself, of floats on demand."""
        return _native_name(self.op.graphs[0])


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
    joined = replace_at(shape, dim, count * shape[dim])
    if isinstance(rows, np.ndarray) and prod(shape[:dim]) == 1:
        return rows.reshape(joined)
    out = pool.empty(joined, rows[0].dtype)
    np.concatenate(list(rows), dim, out=out)
    return out


# --- kernels ----------------------------------------------------------------------------------------------------


def all_gather(
    part: Participation[ops.AllGather], signature: str, source: str, *operands: Any
) -> tuple[Array, ...]:
    """The operands of all members, joined."""
    arrays, call, world = _whole(operands), part.call(signature, source), current_communicator()
    members = call.members
    rows: list[Array | Sequence[Array]]
    with world.collective(call):
        if len(arrays) == 1:
            rows = [algorithms.all_gather(world, members, arrays[0])]
        else:
            packed = algorithms.all_gather(world, members, _pack(arrays))
            rows = list(zip(*[_unpack(each, arrays) for each in packed], strict=True))
    return tuple([_join(row, part.op.all_gather_dim) for row in rows])


def all_reduce(
    part: Participation[ops.AllReduce], signature: str, source: str, combine: Function, *operands: Any
) -> tuple[Array, ...]:
    """The operands of all members, combined."""
    dtype, world = part.op.computation.results[0].dtype, current_communicator()
    arrays = [each.astype(dtype, copy=False) for each in _whole(operands)]
    fold, native = part.fold(part.op.computation, combine), part.native
    if native is not None and dtype not in BOOL | INTEGER:
        native = native if config.native_sums else None
        signature += " by MPI" if native else ""  # which all members must want
    call, count = part.call(signature, source), len(arrays)
    with world.collective(call):
        return tuple(algorithms.all_reduce(world, call.members, arrays, [fold] * count, [native] * count))


def reduce_scatter(
    part: Participation[ops.ReduceScatter], signature: str, source: str, combine: Function, operand: Any
) -> Array:
    """This member's part of the operands of all members, combined."""
    dtype, call = part.op.computation.results[0].dtype, part.call(signature, source)
    operand = np.asarray(operand).astype(dtype, copy=False)
    rows = _parts(operand, part.op.scatter_dimension, len(call.members))
    fold, world = part.fold(part.op.computation, combine), current_communicator()
    with world.collective(call):
        return algorithms.reduce_scatter(world, call.members, rows, fold)


def _parts(array: Array, dim: int, count: int) -> Array:
    """The parts of an array along a dimension, behind one another."""
    shape = array.shape
    split = array.reshape(replace_at(shape, dim, count, shape[dim] // count))
    return np.ascontiguousarray(np.moveaxis(split, dim, 0))


def _native_name(computation: Graph) -> str | None:
    """The name of a combiner that a communicator may compute itself: of floats on demand, and never extremes.

    Integers and bools have the same bits in any order; extremes of floats lose NaN under MPI.
    """
    dtype, combiners = computation.results[0].dtype, monoids(computation)
    if combiners is None or (dtype not in BOOL | INTEGER and combiners[0] not in _SUMS):
        return None
    return _NATIVE.get(combiners[0])


def fold_by(computation: Graph, combine: Function) -> algorithms.Fold:
    """The function that combines rows from the left, by a ufunc if there is one, else by a program on lanes."""
    combiners = monoids(computation)
    dtype = computation.results[0].dtype
    ufuncs = [ufunc for ufunc in _EXACT if combiners and COMBINERS.get(ufunc) is combiners[0]]
    is_ufunc = ufuncs and dtype not in EXTENDED_FLOAT
    fold = partial(_fold_ufunc, ufuncs[0]) if is_ufunc else partial(_fold_lanes, combine)
    if combiners is None:
        return algorithms.Fold(fold)
    return algorithms.Fold(fold, _FoldAtOnce(combiners[0], dtype, fold))


class _FoldAtOnce:
    """A fold in machine code of what is large, if the compiler is there and has the bits of `combine`."""

    def __init__(self, op: type[ops.Binary], dtype: np.dtype[Any], combine: FoldRows) -> None:
        self._op, self._dtype, self._combine = op, dtype, combine

    @cached_property
    def _fold(self) -> Callable[[Sequence[Array], Sequence[Array]], bool] | None:
        return engine.fold_of(self._op(), self._dtype, self._combine)

    def __call__(self, rows: Sequence[Array], outs: Sequence[Array]) -> bool:
        if outs[0].nbytes < LEAST_AT_ONCE or engine.active_engine() != "compiled":
            return False
        return self._fold is not None and self._fold(rows, outs)


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


def all_to_all(
    part: Participation[ops.AllToAll], signature: str, source: str, *operands: Any
) -> tuple[Array, ...]:
    """The parts of the operands of all members that are for this one, joined."""
    op, call, world = part.op, part.call(signature, source), current_communicator()
    members = call.members
    arrays = [_parts(np.asarray(each), op.split_dimension, op.split_count) for each in operands]
    results: list[Array | Sequence[Array]]
    with world.collective(call):
        if len(arrays) == 1:
            results = [algorithms.all_to_all(world, members, arrays[0])]
        else:
            packed = np.stack([_pack([each[j, ...] for each in arrays]) for j in range(len(members))])
            like = [each[0, ...] for each in arrays]
            received = algorithms.all_to_all(world, members, packed)
            results = list(zip(*[_unpack(row, like) for row in received], strict=True))
    return tuple([_join(rows, op.concat_dimension) for rows in results])


def collective_broadcast(
    part: Participation[ops.CollectiveBroadcast], signature: str, source: str, *operands: Any
) -> tuple[Array, ...]:
    """The operands of the group's first member; zeros at what is in no group."""
    arrays, call, world = _whole(operands), part.call(signature, source), current_communicator()
    members = call.members
    if not members:
        return tuple(map(np.zeros_like, arrays))
    with world.collective(call):
        if len(arrays) == 1:
            return (algorithms.broadcast(world, members, arrays[0]),)
        return tuple(_unpack(algorithms.broadcast(world, members, _pack(arrays)), arrays))


def collective_permute(
    part: Participation[ops.CollectivePermute], signature: str, source: str, operand: Any
) -> Array:
    """The operand of the member that sends to this one; zeros if none does."""
    op, world = part.op, current_communicator()
    pairs = permutations(op.source_target_pairs, op.strategy, current_grid())
    with world.collective(part.call(signature, source)):
        return algorithms.permute(world, _whole([operand])[0], [(each[0], each[1]) for each in pairs])


def replica_id() -> Any:
    """The number of this member's replica."""
    return np.uint32(current_grid().coordinates_of(current_communicator().rank)[0])


def partition_id() -> Any:
    """The number of this member's partition."""
    return np.uint32(current_grid().coordinates_of(current_communicator().rank)[1])


def send(part: Participation[ops.Send], signature: str, source: str, *operands: Any) -> Array:
    """Send arrays, which stand before a token; gives a token."""
    op, world = part.op, current_communicator()
    if op.is_host_transfer:
        return put_outfeed(part, signature, source, *operands)
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[0] == world.rank:
            with world.collective(CollectiveCall(op.lax_name, signature, pair, source)):
                for array in _whole(operands[:-1]):
                    world.send(array, pair[1], op.channel_id)
    return TOKEN


def recv(part: Participation[ops.Recv], signature: str, source: str, token: Any) -> tuple[Array, ...]:
    """Arrays that were sent to this member, and a token; zeros if none sends to it."""
    op, world = part.op, current_communicator()
    if op.is_host_transfer:
        return take_infeed(part, signature, source, token)
    results = [np.zeros(shape, dtype) for dtype, shape in _types_of(op)]
    for pair in permutations(op.source_target_pairs, op.strategy, current_grid()):
        if pair[1] == world.rank:
            with world.collective(CollectiveCall(op.lax_name, signature, pair, source)):
                for result in results:
                    world.recv(result, pair[0], op.channel_id)
    return (*results, TOKEN)


def _types_of(op: ops.Recv | ops.Infeed) -> list[ArrayType]:
    return [(type.dtype, type.shape) for type in op.result_types if isinstance(type, TensorType)]


def take_infeed(
    part: Participation[ops.Recv] | Participation[ops.Infeed], signature: str, source: str, token: Any
) -> tuple[Array, ...]:
    """Arrays that the host fed, and a token."""
    op, world = part.op, current_communicator()
    with world.collective(CollectiveCall(op.lax_name, signature, (world.rank,), source)):
        return (*world.take_infeed(_types_of(op)), TOKEN)


def put_outfeed(
    part: Participation[ops.Send] | Participation[ops.Outfeed], signature: str, source: str, *operands: Any
) -> Array:
    """Put arrays, which stand before a token, out to the host; gives a token."""
    world = current_communicator()
    with world.collective(CollectiveCall(part.op.lax_name, signature, (world.rank,), source)):
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
    op = step.op.expect(Collective)
    _refuse_lanes(emitter, op)
    signature = op.signature([operand.type for operand in step.node.operands])
    address = step.node.source.address if step.node.source else ""
    return [emitter.constant(Participation(op)), repr(signature), repr(address)]


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
