"""Calls of functions under `jit` with arrays in parts, which stay where they are.

The graph is recorded for whole arrays, and made one of parts that every replica runs.  An argument in parts goes into
functions under `shard_map` that split it in the same way, or to a result.  What such a function gives in parts goes
there too, and is joined for all else, which computes with arrays that every replica has whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from xarr import tree
from xarr.communication.communicator import current_communicator
from xarr.communication.process_groups import Mesh
from xarr.compiler.manual_computations import expand_at_members
from xarr.distributed.meshes import mesh_of
from xarr.distributed.sharded_array import ShardedArray, ranks_here
from xarr.distributed.shardings import NamedSharding, PartitionSpec
from xarr.distributed.simulation import run_parts
from xarr.errors import ArgumentError
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, list_ordered, parameter
from xarr.ir.ops.parts import Split
from xarr.ir.parts import join_parts, own_number, take_part
from xarr.ir.types import TupleType
from xarr.transforms.sharding.members import split_of
from xarr.transforms.traced import Donation, Traced


class SplitValue(NamedTuple):
    """A value of the graph of parts: its node, along which axes it is split, and, of several, each.

    is_argument: whether it is an argument in parts, which is never joined unasked.
    """

    node: Node | None
    split: Split = ()
    elements: tuple[SplitValue, ...] | None = None
    is_argument: bool = False

    @property
    def is_whole(self) -> bool:
        if self.elements is not None:
            return all(each.is_whole for each in self.elements)
        return not any(self.split)


class _Program(NamedTuple):
    """A function for arguments in parts, and how each result of its graph is split."""

    traced: Traced
    splits: tuple[Split, ...]


#: The programs of each function for whole arrays, by the mesh and the splits of its arguments.
_programs: Final[WeakKeyDictionary[Traced, dict[Any, _Program]]] = WeakKeyDictionary()


def call_in_parts(name: str, traced: Traced, leaves: Sequence[Any]) -> Any:
    """The result of a function that was recorded for whole arrays, for leaves of which some are in parts.

    Results that are split are ShardedArrays, the others Arrays.  Raises ArgumentError for arrays over different meshes,
    and for an operation on an array that is split, outside of `shard_map` or in one that splits it otherwise.
    """
    arrays = [leaf for leaf in leaves if isinstance(leaf, ShardedArray)]
    mesh = arrays[0].sharding.mesh
    if any(each.sharding.mesh != mesh for each in arrays):
        raise ArgumentError(f"{name}: wanted arrays over one mesh, got {', '.join(map(repr, arrays))}")
    splits = tuple([_split_of(leaf) for leaf in leaves])
    programs = _programs.setdefault(traced, {})
    program = programs.get((mesh, splits))
    if program is None:
        program = programs[mesh, splits] = _make_program(name, traced, mesh.grid, splits)
    program.traced.compile()
    ranks = ranks_here(mesh)
    runs = [partial(program.traced.run, [_part(leaf, rank) for leaf in leaves]) for rank in ranks]
    rows = [runs[0]()] if current_communicator().size > 1 else run_parts(runs)
    results = [tree.flatten(row)[0] for row in rows]
    joined = []
    for index, number in enumerate(traced.result_numbers):
        split = program.splits[number]
        own = dict(zip(ranks, [row[index] for row in results], strict=True))
        joined.append(own[ranks[0]] if not any(split) else _gather(own, NamedSharding(mesh, _spec(split))))
    return tree.unflatten(traced.structure, joined)


def _split_of(leaf: Any) -> Split:
    return split_of(leaf.sharding) if isinstance(leaf, ShardedArray) else ()


def _part(leaf: Any, rank: int) -> Any:
    return leaf.part(rank) if isinstance(leaf, ShardedArray) else leaf


def _gather(parts: dict[int, Any], sharding: NamedSharding) -> ShardedArray:
    shape = next(iter(parts.values())).shape
    return ShardedArray(parts, sharding, sharding.global_shape(tuple(shape)))


def _spec(split: Split) -> PartitionSpec:
    names = [tuple([axis.name for axis in axes]) for axes in split]
    return PartitionSpec(*[None if not own else own[0] if len(own) == 1 else own for own in names])


def _make_program(name: str, traced: Traced, mesh: Mesh, splits: Sequence[Split]) -> _Program:
    graph = traced.graph
    before = [splits[leaf] for leaf in traced.arrays]
    before += [()] * (len(graph.parameters) - len(before))
    sharding = mesh_of(mesh)
    values = []
    for node, split in zip(graph.parameters, before, strict=True):
        shape = NamedSharding(sharding, _spec(split)).shard_shape(tuple(node.shape))
        values.append(
            SplitValue(parameter(node.tensor_type.with_shape(shape), node.device), split, None, any(split))
        )
    splitter = _Splitter(name, mesh)
    results = splitter.run(graph, values)
    inputs = [each.node for each in values if each.node is not None]
    outputs = [each.node for each in results if each.node is not None]
    own = Graph(inputs, outputs, graph.name, list_ordered(splitter.ordered, inputs))
    program = replace(
        traced, graph=expand_at_members(own), donation=Donation((), name), texts={}, _compiled=None
    )
    return _Program(program, tuple([each.split for each in results]))


class _Splitter:
    """The rules that make a graph of parts of one of whole arrays."""

    def __init__(self, name: str, mesh: Mesh) -> None:
        self.name, self.mesh = name, mesh
        self.ordered: list[Node] = []
        self.own = own_number(is_partition=False)
        #: What is whole at every replica, by the part of it.
        self.joined: dict[Node, Node] = {}

    def run(self, graph: Graph, values: Sequence[SplitValue]) -> list[SplitValue]:
        """The results of a graph for such values of its parameters."""
        known = dict(zip(graph.parameters, values, strict=True))
        for node in graph.nodes:
            known[node] = self._value(node, [known[operand] for operand in node.operands])
        return [known[result] for result in graph.results]

    def _value(self, node: Node, operands: Sequence[SplitValue]) -> SplitValue:
        op = node.op
        if isinstance(op, ops.ManualComputation):
            return self._computation(node, op, operands)
        if isinstance(op, ops.GetTupleElement) and operands[0].elements is not None:
            return operands[0].elements[op.index]
        if isinstance(op, ops.Tuple):
            return SplitValue(None, (), tuple(operands))
        if isinstance(op, ops.Call) and not all(each.is_whole for each in operands):
            return _together(self.run(op.computation, operands))
        if isinstance(op, ops.Call) and ops.ManualComputation in op.computation.op_classes:
            return _together(self.run(op.computation, operands))
        made = node.rebuilt(tuple([self._whole(each, node) for each in operands]))
        return SplitValue(self._keep(made))

    def _whole(self, value: SplitValue, node: Node) -> Node:
        """A value as every replica has it whole, for the node of the graph that needs it so."""
        if value.elements is not None:
            return Node(ops.Tuple(), tuple([self._whole(each, node) for each in value.elements]))
        assert value.node is not None
        if value.is_whole:
            return value.node
        if value.is_argument:
            raise ArgumentError(
                f"{self.name}: {node.op.called} wants a whole array, and an argument that is split by "
                f"{_spec(value.split)} over {mesh_of(self.mesh)!r} comes to it; put it into a function under "
                f"shard_map, or join the parts by np.asarray before the call\nIt is made at {node.source}"
            )
        if value.node not in self.joined:
            whole, collectives = join_parts(value.node, self.mesh, value.split, is_partition=False)
            self.ordered += collectives
            self.joined[value.node] = whole
        return self.joined[value.node]

    def _keep(self, node: Node) -> Node:
        if node.op.is_ordered:
            self.ordered.append(node)
        return node

    def _computation(
        self, node: Node, op: ops.ManualComputation, operands: Sequence[SplitValue]
    ) -> SplitValue:
        if op.mesh != self.mesh:
            raise ArgumentError(
                f"{self.name}: wanted functions under shard_map over {mesh_of(self.mesh)!r}, over which the arguments "
                f"are split, got one over {mesh_of(op.mesh)!r}\nIt is called at {node.source}"
            )
        parts = [self._part(node, value, split) for value, split in zip(operands, op.in_splits, strict=True)]
        call = self._keep(Node(ops.Call(op.computation), tuple(parts), location=node._location or ()))
        if not isinstance(call.type, TupleType):
            return SplitValue(call, op.out_splits[0])
        values = [
            SplitValue(Node(ops.GetTupleElement(number), (call,)), split)
            for number, split in enumerate(op.out_splits)
        ]
        return SplitValue(None, (), tuple(values))

    def _part(self, node: Node, value: SplitValue, split: Split) -> Node:
        own = value.node
        assert own is not None
        if _pad(value.split, len(own.shape)) == _pad(split, len(own.shape)):
            return own
        if not value.is_argument:
            return take_part(self._whole(value, node), self.mesh, split, self.own)
        raise ArgumentError(
            f"{self.name}: wanted an argument split by {_spec(split)}, got one split by {_spec(value.split)}; a split "
            "is never changed unasked: join the parts by np.asarray, and split them anew by device_put\n"
            f"It is used at {node.source}"
        )


def _together(values: Sequence[SplitValue]) -> SplitValue:
    return values[0] if len(values) == 1 else SplitValue(None, (), tuple(values))


def _pad(split: Split, rank: int) -> Split:
    """A split with an entry for each dimension."""
    return (*split, *((),) * (rank - len(split)))
