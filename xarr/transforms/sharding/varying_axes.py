"""Along which axes of a mesh the values of a graph may differ from replica to replica.

Parameters differ along the axes that they are split over; the result of an operation along those of its operands.  A
reduction or a gathering over groups gives all members of a group the same, so its result does not differ along an axis
that lies within groups.  What numbers the replicas is computed for all of them: an index along one axis of a mesh,
`lax.axis_index`, is the same along the others.  What the analysis does not know may differ along every axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.communication.communicator import Grid
from xarr.communication.process_groups import AxisRef, Mesh, Rows, permutations
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.ops.collectives import Collective, Grouped

#: The names of axes; for each result of a node.
Axes: TypeAlias = frozenset[str]
Values: TypeAlias = tuple[Axes, ...]

_NONE: Final[Axes] = frozenset()
#: Operations whose results differ at replicas whatever their operands are.
_OWN: Final = (ops.Rng, ops.Infeed, ops.Recv)
#: Operations whose results differ at replicas, and are as good as constants to each of them.
_NUMBERED: Final = frozenset({ops.ReplicaId, ops.PartitionId})
_NUMBERS: Final[dict[type[Any], Callable[..., Any]]] = {
    ops.Add: np.add,
    ops.Subtract: np.subtract,
    ops.Multiply: np.multiply,
    ops.Divide: np.floor_divide,
    ops.Remainder: np.remainder,
}


def varying_axes(graph: Graph, mesh: Mesh, parameters: Sequence[Axes]) -> Values:
    """The axes along which each result of a graph may differ, by those of its parameters."""
    return _Analysis(mesh).results(graph, [(each,) for each in parameters])


class _Analysis:
    """The rules for one mesh, whose members are the replicas of a world."""

    def __init__(self, mesh: Mesh) -> None:
        self.mesh = mesh
        self.all = frozenset([name for name, _ in mesh.axes])
        #: For each axis the members that differ along it alone.
        self.lines = {name: mesh.rows([AxisRef(name)]) for name, _ in mesh.axes}
        self.count = prod([size for _, size in mesh.axes])

    def results(self, graph: Graph, parameters: Sequence[Values]) -> Values:
        """The axes of each result, of one that is a tuple together."""
        known: dict[Node, Values] = dict(zip(graph.parameters, parameters, strict=True))
        numbers: dict[Node, Any] = {}
        for node in graph.nodes:
            number = self._number(node, numbers)
            if number is not None:
                numbers[node] = number
                known[node] = (self._axes_of(number),)
            else:
                known[node] = self._values(node, [known[operand] for operand in node.operands])
        return tuple([_join(known[result]) for result in graph.results])

    def _number(self, node: Node, numbers: Mapping[Node, Any]) -> Any:
        """The value of a scalar at each replica, if it is made of their numbers and of constants; None if not."""
        op = node.op
        if isinstance(op, ops.ReplicaId):
            return np.arange(self.count, dtype=np.int64)
        if isinstance(op, ops.PartitionId):
            return np.zeros(self.count, np.int64)
        if isinstance(op, ops.Constant):
            is_number = not op.array.shape and op.array.dtype.kind in "iu"
            return np.full(self.count, int(op.array)) if is_number else None
        operands = [numbers[operand] for operand in node.operands if operand in numbers]
        if isinstance(op, ops.DynamicSlice) and len(operands) == 1 and len(node.operands) == 2:
            return _look_up(node.operands[0], node, operands[0])
        if not operands or len(operands) != len(node.operands):
            return None
        if isinstance(op, ops.Convert | ops.Reshape):
            return operands[0] if node.dtype.kind in "iu" else None
        combine = _NUMBERS.get(type(op))
        divides = combine in (np.floor_divide, np.remainder)
        return None if combine is None or (divides and not operands[1].all()) else combine(*operands)

    def _axes_of(self, number: Any) -> Axes:
        return frozenset(
            [
                name
                for name, lines in self.lines.items()
                if any(len({*number[list(line)]}) > 1 for line in lines)
            ]
        )

    def _values(self, node: Node, operands: Sequence[Values]) -> Values:
        op, joined = node.op, _join(chain(*operands))
        if isinstance(op, ops.GetTupleElement):
            values = operands[0]
            return (values[op.index],) if len(values) > 1 else values
        if isinstance(op, ops.Tuple):
            return tuple(map(_join, operands))
        if isinstance(op, Collective):
            return self._collective(op, operands, joined)
        if isinstance(op, _OWN):
            return (self.all,)
        if isinstance(op, ops.While):
            return self._loop(op, operands)
        if isinstance(op, ops.Call):
            return self.results(op.computation, operands)
        if isinstance(op, ops.If | ops.Case):
            branches = [self.results(branch, operands[1:]) for branch in op.graphs]
            return tuple([_join((*each, *operands[0])) for each in zip(*branches, strict=True)])
        if any(map(self._tells_replicas_apart, op.graphs)):
            return (self.all,)
        return (joined,)

    def _tells_replicas_apart(self, graph: Graph) -> bool:
        """Whether a computation has operations that the analysis follows outside of such computations only."""
        return any(not each.is_pure or not each.op_classes.isdisjoint(_NUMBERED) for each in graph.walk())

    def _loop(self, op: ops.While, operands: Sequence[Values]) -> Values:
        """Values that are carried: until a step changes nothing more."""
        carried = [_join(each) for each in operands]
        while True:
            held = [(each,) for each in carried]
            (condition,) = self.results(op.cond, held)
            after = self.results(op.body, held)
            grown = [old | new | condition for old, new in zip(carried, after, strict=True)]
            if grown == carried:
                return tuple(carried)
            carried = grown

    def _collective(self, op: Collective, operands: Sequence[Values], joined: Axes) -> Values:
        grid = Grid(self.count, 1)
        if isinstance(op, ops.CollectivePermute):
            pairs = permutations(op.source_target_pairs, op.strategy, grid)
            return (joined | self._crossing_axes(pairs) if len(pairs) == self.count else self.all,)
        if not isinstance(op, Grouped):
            return (self.all,)
        rows = op.process_groups(grid)
        within = self._constant_axes(rows)
        if isinstance(op, ops.AllReduce | ops.AllGather | ops.CollectiveBroadcast | ops.CrossReplicaSum):
            return tuple([_join(each) - within for each in operands])
        return tuple([_join(each) | self._crossing_axes(rows) for each in operands])

    def _constant_axes(self, rows: Rows) -> Axes:
        """The axes along which members of one group, and no others, differ."""
        group = {rank: number for number, row in enumerate(rows) for rank in row}
        return frozenset(
            [
                name
                for name, lines in self.lines.items()
                if all(len({group.get(rank, -1 - rank) for rank in line}) == 1 for line in lines)
            ]
        )

    def _crossing_axes(self, rows: Sequence[Sequence[int]]) -> Axes:
        """The axes along which some members of one row differ."""
        index = {
            name: {rank: number for line in lines for number, rank in enumerate(line)}
            for name, lines in self.lines.items()
        }
        return frozenset(
            [name for name, own in index.items() if any(len({own[rank] for rank in row}) > 1 for row in rows)]
        )


def _look_up(table: Node, node: Node, indices: Any) -> Any:
    """The one element of a table of integers that each replica reads; None for more, and for a table of its own."""
    is_table = isinstance(table.op, ops.Constant) and len(table.shape) == 1 and table.dtype.kind in "iu"
    if not is_table or node.shape != (1,):
        return None
    return table.op.expect(ops.Constant).array.astype(np.int64)[np.clip(indices, 0, table.shape[0] - 1)]


def _join(values: Any) -> Axes:
    return _NONE.union(*values)
