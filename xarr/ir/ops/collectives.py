"""Collectives: operations in which the members of a group take part together, each with operands of its own.

A group's members have operands of the same types, and its results are a function of all of them.  Which members form
a group follows from `replica_groups`, `channel_id` and `use_global_device_ids`, by the strategies of StableHLO
(`xarr.communication.process_groups`); which ids there are is known when a program runs.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from xarr.communication.communicator import Grid
from xarr.communication.process_groups import ReplicaGroups, Rows, Strategy, group_of, process_groups
from xarr.errors import ShapeError
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op, operation
from xarr.ir.ops.binary import Add
from xarr.ir.ops.reduction import check_signature
from xarr.ir.stablehlo.literals import dense
from xarr.ir.stablehlo.printer import function_type
from xarr.ir.types import Ints, TensorType, Type, pack_types, replace_at

if TYPE_CHECKING:
    from xarr.ir.stablehlo.printer import Printer

_INT64 = np.dtype(np.int64)
_ID = TensorType((), np.dtype(np.uint32))


#: Attributes that say nothing where they are 0 or False.
_UNSET = frozenset(
    {
        *("channel_id", "use_global_device_ids", "shard_count", "source_target_pairs", "is_host_transfer"),
        *("infeed_config", "outfeed_config", "layout"),
    }
)


def _summary(computation: Graph) -> str:
    """The operation of a computation that is one, else all of them, and a number that differs for others."""
    names = ", ".join(node.op.lax_name for node in computation.nodes)
    if len(computation.nodes) == 1 and computation.nodes[0].operands == computation.parameters:
        return names
    return f"computation {zlib.crc32(str(computation.with_name('computation')).encode()):08x} of {names or 'nothing'}"


class Collective(Op):
    """Base of the collectives.

    * `channel_id`, `channel_type` - of the channel, 0 for none; a positive one crosses partitions.
    """

    channel_id: int
    channel_type: int
    #: Whether members may be in no group.
    is_partial: ClassVar[bool] = False
    has_several_results = True

    @property
    def is_pure(self) -> bool:
        return False

    @property
    def is_ordered(self) -> bool:
        return True

    @property
    def member_count(self) -> int:
        """The number of members of a group that the types of the results are for, 0 for any."""
        return 0

    @property
    def strategy(self) -> Strategy:
        """The way in which the ids of the groups are read."""
        return Strategy.CROSS_PARTITION if self.channel_id > 0 else Strategy.CROSS_REPLICA

    @property
    def groups(self) -> ReplicaGroups:
        """The ids of the members of each group."""
        return ReplicaGroups()

    def process_groups(self, grid: Grid) -> Rows:
        """The ranks of the members of each group on a grid.  Raises CommunicationError for ids that it has not."""
        return process_groups(self.groups, self.strategy, grid, self.is_partial)

    def members(self, grid: Grid, rank: int) -> tuple[int, ...]:
        """The ranks of the members that take part together with one; none if that is in no group."""
        return group_of(self.process_groups(grid), rank, self.member_count)

    def signature(self, operands: Sequence[Type]) -> str:
        """The line of what members of a group must agree on: `(f32[4], add, replica_groups=all)`."""
        parts = [type.short() for type in operands]
        for name, value in self.attributes().items():
            if isinstance(value, Graph):
                parts.append(_summary(value))
            elif name == "result_types":
                parts.append(f"{name}=[{', '.join([type.short() for type in value])}]")
            elif name != "channel_type" and (value or name not in _UNSET):
                parts.append(f"{name}={value}")
        return f"({', '.join(parts)})"

    def assembly(self, node: Node, printer: Printer) -> str:
        items = sorted([*self.items(), *channel(self.channel_id, self.channel_type)])
        return assemble(self, node, printer, items)

    def items(self) -> Iterable[str]:
        """The attributes of the text but for the channel."""
        raise NotImplementedError


def assemble(op: Op, node: Node, printer: Printer, items: Sequence[str]) -> str:
    """`"name"(%a) <{items}> ({ computation }) : types`."""
    attributes = ", ".join(items)
    if op.graphs:
        return printer.generic(node, attributes, map(printer.labelled_region, op.graphs), node.operands)
    types = function_type([operand.type for operand in node.operands], op.results(node))
    properties = f" <{{{attributes}}}>" if attributes else ""
    return f'"{op.name}"({printer.names(node.operands)}){properties} : {types}'


def channel(channel_id: int, channel_type: int) -> list[str]:
    """The attribute of a channel, none for none."""
    if not (channel_id or channel_type):
        return []
    return [f"channel_handle = #stablehlo.channel_handle<handle = {channel_id}, type = {channel_type}>"]


def id_table(name: str, rows: Rows) -> str:
    """An attribute that is a table of integers."""
    table = np.array(rows, _INT64) if rows else np.zeros((0, 0), _INT64)
    type = TensorType(table.shape, _INT64)
    return f"{name} = {dense(type, table.tobytes())} : {type}"


class Grouped(Collective):
    """Base of the collectives of groups.

    * `replica_groups` - the ids of the members of each group, one group of all if empty.
    """

    replica_groups: ReplicaGroups
    #: The labels of the constraints on ids: each once, none below 0.
    unique_label: ClassVar[str]
    range_label: ClassVar[str]

    @property
    def groups(self) -> ReplicaGroups:
        return self.replica_groups

    def check_groups(self) -> None:
        try:
            rows = self.replica_groups.ids
        except ShapeError as error:
            self.fail(self.range_label, str(error))
        repeated = self.replica_groups.find_repeated()
        if repeated is not None:
            self.fail(
                self.unique_label, f"wanted each id once, got {repeated} twice in {self.replica_groups}"
            )
        if any(each < 0 for row in rows for each in row):
            self.fail(self.range_label, f"wanted ids >= 0, or -1 behind them, got {self.replica_groups}")

    def group_size(self, label: str, count: int) -> int:
        """The number of members of each group, which is `count` if that is not 0; each group has as many."""
        rows = self.replica_groups.ids
        known = self.replica_groups.size if rows else None
        if rows and known is None:
            self.fail(label, f"wanted groups of one size, got {self.replica_groups}")
        is_exact = self.strategy is not Strategy.CROSS_REPLICA_AND_PARTITION
        if count and known and (count != known if is_exact else count % known):
            self.fail(label, f"wanted groups of {count} members, got {self.replica_groups}")
        size = count or known
        if not size:
            self.fail(
                label,
                "wanted replica_groups, or the number of members: in shard_count, or in split_count of all_to_all",
            )
        return size

    def items(self) -> Iterable[str]:
        yield groups_attribute(self.replica_groups)


def groups_attribute(groups: ReplicaGroups) -> str:
    """The attribute of groups, in the form in which they were given."""
    if groups.mesh is None:
        return id_table("replica_groups", groups.rows)
    mesh, axes = groups.mesh, []
    for axis in groups.axes:
        part = f", sub_axis_info = ({axis.part[0]}){axis.part[1]}" if axis.part else ""
        axes.append(f'#stablehlo.axis_ref<name = "{axis.name}"{part}>')
    sizes = ", ".join(f'<name = "{name}", size = {size}>' for name, size in mesh.axes)
    ids = ""
    if mesh.device_ids is not None:
        type = TensorType((len(mesh.device_ids),), _INT64)
        ids = f", device_ids={dense(type, np.array(mesh.device_ids, _INT64).tobytes())} : {type}"
    shown = f"#stablehlo.mesh<axes=[{sizes}]{ids}>"
    return f"replica_groups = #stablehlo.replica_group_mesh_axes<mesh = {shown}, axes = [{', '.join(axes)}]>"


class _Global(Grouped):
    """Base of the collectives whose ids may be those of members.

    * `use_global_device_ids` - whether the ids number members, row by row of the grid.
    """

    use_global_device_ids: bool
    global_label: ClassVar[str]

    @property
    def strategy(self) -> Strategy:
        if self.channel_id <= 0:
            return Strategy.CROSS_REPLICA
        return Strategy.FLATTENED_IDS if self.use_global_device_ids else Strategy.CROSS_REPLICA_AND_PARTITION

    def check_groups(self) -> None:
        super().check_groups()
        if self.use_global_device_ids and self.channel_id <= 0:
            self.fail(
                self.global_label,
                f"use_global_device_ids wants a channel_id > 0, got {self.channel_id}",
            )

    def items(self) -> Iterable[str]:
        yield from super().items()
        if self.use_global_device_ids:
            yield "use_global_device_ids"


class _Reducing(_Global):
    """Base of the collectives that combine operands."""

    computation: Graph
    type_label: ClassVar[str]

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    def element_type(self, operands: Sequence[TensorType]) -> np.dtype[np.generic]:
        """The element type of accumulators, which operands are converted to."""
        parameters = self.computation.parameter_types
        first = parameters[0] if parameters else None
        if not isinstance(first, TensorType) or first.shape:
            first = operands[0].with_shape(())
        check_signature(self, self.type_label, self.computation, (first, first), (first,))
        for operand in operands:
            if not _is_promotable(operand.dtype, first.dtype):
                self.fail_dtype(
                    self.type_label,
                    f"wanted operands whose elements the computation's {first.short()} can hold, got {operand.short()}",
                )
        dtype: np.dtype[np.generic] = first.dtype
        return dtype


def _is_promotable(narrow: np.dtype[np.generic], wide: np.dtype[np.generic]) -> bool:
    """Whether StableHLO lets accumulators of the element type `wide` take in elements of `narrow`."""
    if narrow == wide:
        return True
    kinds = ({"i"}, {"u"}, {"f", "V"}, {"c"})
    same = any({narrow.kind, wide.kind} <= kind for kind in kinds)
    return same and narrow.itemsize <= wide.itemsize


def _some(op: Op, label: str, operands: tuple[Type, ...]) -> tuple[TensorType, ...]:
    """The operands, arrays of which there must be some."""
    arrays = op.tensors(operands)
    if not arrays:
        op.fail(label, "wanted at least one array")
    return arrays


def _with_size(array: TensorType, dim: int, size: int) -> TensorType:
    return array.with_shape(replace_at(array.shape, dim, size))


@operation
class AllGather(_Global):
    """The operands of all members of a group, joined along a dimension in the order of the group.

    * C0: the operands are arrays, at least one.
    * C1: `all_gather_dim` is a dimension of each operand.
    * C2: no id stands in `replica_groups` twice.
    * C4: ids are not negative; -1 fills up short groups.
    * C5: `use_global_device_ids` wants a channel.
    * C6: all groups have the same number of members, `shard_count` if it is given.
    """

    all_gather_dim: int
    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int = 0
    use_global_device_ids: bool = False
    shard_count: int = 0
    channel_type: int = 0
    name = "stablehlo.all_gather"
    unique_label, range_label, global_label = "C2", "C4", "C5"

    @property
    def member_count(self) -> int:
        return self.shard_count

    def infer(self, *operands: Type) -> Type:
        arrays = _some(self, "C0", operands)
        self.check_groups()
        for array in arrays:
            if not 0 <= self.all_gather_dim < array.rank:
                self.fail(
                    "C1",
                    f"wanted a dimension in [0, {array.rank}) of {array.short()}, got {self.all_gather_dim}",
                )
        count, dim = self.group_size("C6", self.shard_count), self.all_gather_dim
        return pack_types(tuple([_with_size(array, dim, array.shape[dim] * count) for array in arrays]))

    def items(self) -> Iterable[str]:
        yield f"all_gather_dim = {self.all_gather_dim} : i64"
        yield from super().items()


@operation
class AllReduce(_Reducing):
    """The operands of all members of a group, combined element by element, from the left in the order of the group.

    Each operand is combined by the same computation of two scalars, in the element type of its arguments.

    * C0: the operands are arrays, at least one.
    * C1: no id stands in `replica_groups` twice.
    * C3: ids are not negative; -1 fills up short groups.
    * C4: `use_global_device_ids` wants a channel.
    * C5: the computation maps (E, E) to E, scalars of a type that holds the operands' elements.
    """

    computation: Graph
    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int = 0
    use_global_device_ids: bool = False
    channel_type: int = 0
    name = "stablehlo.all_reduce"
    unique_label, range_label, global_label, type_label = "C1", "C3", "C4", "C5"

    def infer(self, *operands: Type) -> Type:
        arrays = _some(self, "C0", operands)
        self.check_groups()
        dtype = self.element_type(arrays)
        return pack_types(tuple([array.with_dtype(dtype) for array in arrays]))


@operation
class AllToAll(Grouped):
    """Part k of the operand of each member goes to member k of its group, which joins what it gets.

    * C0: the operands are arrays, at least one.
    * C1: `split_dimension` is a dimension of each operand.
    * C2: its size is divisible by `split_count`.
    * C3: `concat_dimension` is a dimension of each operand.
    * C4: `split_count` is positive.
    * C5: no id stands in `replica_groups` twice.
    * C7: ids are not negative; -1 fills up short groups.
    * C8: each group has `split_count` members.
    """

    split_dimension: int
    concat_dimension: int
    split_count: int
    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int = 0
    channel_type: int = 0
    name = "stablehlo.all_to_all"
    unique_label, range_label = "C5", "C7"

    @property
    def member_count(self) -> int:
        return self.split_count

    def infer(self, *operands: Type) -> Type:
        arrays = _some(self, "C0", operands)
        self.check_groups()
        if self.split_count <= 0:
            self.fail("C4", f"wanted split_count > 0, got {self.split_count}")
        self.group_size("C8", self.split_count)
        return pack_types(tuple([self._result(array) for array in arrays]))

    def _result(self, array: TensorType) -> TensorType:
        for label, name, dim in (
            ("C1", "split_dimension", self.split_dimension),
            ("C3", "concat_dimension", self.concat_dimension),
        ):
            if not 0 <= dim < array.rank:
                self.fail(label, f"wanted {name} in [0, {array.rank}) of {array.short()}, got {dim}")
        size = array.shape[self.split_dimension]
        if size % self.split_count:
            self.fail(
                "C2",
                f"wanted a size divisible by split_count = {self.split_count} along dimension {self.split_dimension}, "
                f"got {array.short()}",
            )
        part = _with_size(array, self.split_dimension, size // self.split_count)
        joined = part.shape[self.concat_dimension] * self.split_count
        return _with_size(part, self.concat_dimension, joined)

    def items(self) -> Iterable[str]:
        yield from super().items()
        yield f"concat_dimension = {self.concat_dimension} : i64"
        yield f"split_count = {self.split_count} : i64"
        yield f"split_dimension = {self.split_dimension} : i64"


@operation
class CollectiveBroadcast(Grouped):
    """The operands of the first member of a group, at all of its members; zeros at what is in no group.

    * C0: the operands are arrays, at least one.
    * C1: no id stands in `replica_groups` twice.
    * C2: ids are not negative; -1 fills up short groups.
    """

    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int = 0
    channel_type: int = 0
    name = "stablehlo.collective_broadcast"
    unique_label, range_label = "C1", "C2"
    is_partial = True

    def infer(self, *operands: Type) -> Type:
        arrays = _some(self, "C0", operands)
        self.check_groups()
        return pack_types(arrays)


@operation
class CollectivePermute(Collective):
    """The operand of the member that sends to this one; zeros at a member that none sends to.

    * C0: there is one operand, an array.
    * C1: each pair is a source and a target.
    * C2: no source stands in two pairs.
    * C3: no target stands in two pairs.
    * C4: ids are not negative.
    """

    source_target_pairs: Rows
    channel_id: int = 0
    channel_type: int = 0
    name = "stablehlo.collective_permute"

    def infer(self, *operands: Type) -> Type:
        (array,) = self.tensors(operands, 1)
        check_pairs(self, self.source_target_pairs)
        return array

    def items(self) -> Iterable[str]:
        yield id_table("source_target_pairs", self.source_target_pairs)


def check_pairs(op: Op, pairs: Rows) -> None:
    """Refuse what are no pairs of a source and a target [C1], repeated ones [C2, C3] and negative ids [C4]."""
    if any(len(pair) != 2 for pair in pairs):
        op.fail("C1", f"wanted pairs (source, target), got {pairs}")
    for label, role, ids in (
        ("C2", "source", [pair[0] for pair in pairs]),
        ("C3", "target", [pair[1] for pair in pairs]),
    ):
        if len(set(ids)) != len(ids):
            op.fail(label, f"wanted each {role} once, got {pairs}")
    if any(each < 0 for pair in pairs for each in pair):
        op.fail("C4", f"wanted ids >= 0, got {pairs}")


@operation
class ReduceScatter(_Reducing):
    """A part of what `all_reduce` gives: part k along a dimension at member k of the group.

    * C0: there is one operand, an array.
    * C1: the size along `scatter_dimension` is divisible by the number of members.
    * C2: `scatter_dimension` is a dimension of the operand.
    * C3: no id stands in `replica_groups` twice.
    * C5: ids are not negative; -1 fills up short groups.
    * C6: `use_global_device_ids` wants a channel.
    * C7: the computation maps (E, E) to E, scalars of a type that holds the operand's elements.
    * C8: all groups have the same number of members, `shard_count` if it is given.
    """

    scatter_dimension: int
    computation: Graph
    replica_groups: ReplicaGroups = ReplicaGroups()
    channel_id: int = 0
    use_global_device_ids: bool = False
    shard_count: int = 0
    channel_type: int = 0
    name = "stablehlo.reduce_scatter"
    unique_label, range_label, global_label, type_label = "C3", "C5", "C6", "C7"

    @property
    def member_count(self) -> int:
        return self.shard_count

    def infer(self, *operands: Type) -> Type:
        (array,) = self.tensors(operands, 1)
        self.check_groups()
        dim = self.scatter_dimension
        if not 0 <= dim < array.rank:
            self.fail("C2", f"wanted a dimension in [0, {array.rank}) of {array.short()}, got {dim}")
        count = self.group_size("C8", self.shard_count)
        if array.shape[dim] % count:
            self.fail("C1", f"wanted a size divisible by {count} along dimension {dim}, got {array.short()}")
        return _with_size(array.with_dtype(self.element_type((array,))), dim, array.shape[dim] // count)

    def items(self) -> Iterable[str]:
        yield from super().items()
        yield f"scatter_dimension = {self.scatter_dimension} : i64"


@operation
class CrossReplicaSum(Grouped):
    """The sums of the operands of all members of a group, of replicas: `all_reduce` by addition.

    * C0: there is one operand, an array.
    * C1: no id stands in `replica_groups` twice.
    * C3: ids are not negative; -1 fills up short groups.
    """

    replica_groups: ReplicaGroups = ReplicaGroups()
    name = "stablehlo.cross-replica-sum"
    lax_name = "cross_replica_sum"
    unique_label, range_label = "C1", "C3"
    channel_id = channel_type = 0

    def infer(self, *operands: Type) -> Type:
        (array,) = self.tensors(operands, 1)
        self.check_groups()
        return array

    def decompose(self, *operands: Node) -> Node:
        a, b = (parameter(TensorType((), operands[0].dtype)) for _ in range(2))
        return Node(AllReduce(Graph((a, b), [Node(Add(), (a, b))]), self.replica_groups), operands)


class _Position(Op):
    """Base of what tells a member where it stands."""

    def infer(self, *operands: Type) -> Type:
        self.tensors(operands, 0)
        return _ID

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"{self.name} : {node.type}"


@operation
class ReplicaId(_Position):
    """The number of the replica that this member is a part of, an uint32.

    * C0: there are no operands.
    """

    name = "stablehlo.replica_id"


@operation
class PartitionId(_Position):
    """The number of the partition, of its replica, that this member is, an uint32.

    * C0: there are no operands.
    """

    name = "stablehlo.partition_id"


def ids(rows: Iterable[Iterable[int]]) -> tuple[Ints, ...]:
    """A table of ids as a field of an op."""
    return tuple([tuple(map(int, row)) for row in rows])
