"""Groups of operations on their way to becoming one loop nest, and how each runs along the loops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final, TypeAlias

from xarr.compiler.loop_ir.elements import split_axes
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import INSTRUCTION
from xarr.ir.rewriting import find_users
from xarr.ir.types import Ints

#: For each dimension of a node the axis of the domain that it runs along; ONE for a size of 1, which runs
#: along nothing, and None where the index is computed (shifted, strided, split).
Along: TypeAlias = "tuple[int | None, ...]"
ONE: Final = -1
#: The dimensions of reductions inside an iteration of the loops are axes from here on.
INNER: Final = 1000


def cost(group: Group) -> int:
    """The number of instructions that a group takes for each element of its domain."""
    return sum(INSTRUCTION if isinstance(node.op, ops.Reduce) else node.op.cost for node in group.along)


def own_dimensions(node: Node) -> list[int]:
    """The dimensions that a reduction takes away."""
    return sorted(node.op.expect(ops.Reduce).dimensions)


def whole(shape: Ints) -> Along:
    """The index map of a group's root, which has the shape of the domain."""
    return tuple(ONE if size == 1 else axis for axis, size in enumerate(shape))


_ONE_PATH: Final = frozenset([0])


@dataclass(eq=False)
class Group:
    """Nodes on their way to becoming one loop nest; `along` says how each runs along the domain.

    `inner` has the reductions that are computed anew for each element of the domain, with an axis for each of
    their own dimensions.
    """

    domain: Ints
    reduced: Ints
    #: Where the domain lies in the array of which the group's root updates a part.
    placed: tuple[Ints, Ints] | None = None
    along: dict[Node, set[Along]] = field(default_factory=dict)
    #: The scatter that is the group's only result; the domain is that of its updates.
    scatter: Node | None = None
    #: The axis along which running totals go, and whether from its end.
    scan: tuple[int, bool] | None = None
    inner: dict[Node, Ints] = field(default_factory=dict)
    #: A number for each index at which a node is computed for a point of the domain, of nodes with more than one.
    paths: dict[Node, frozenset[int]] = field(default_factory=dict)

    def paths_to(self, node: Node, users: Iterable[Node]) -> frozenset[int]:
        """A number for each index at which these members ask for an element of `node`, for one point of the domain."""
        paths: set[int] = set()
        for user in users:
            own = self.paths.get(user, _ONE_PATH)
            if not user.op.moves:
                paths |= own
                continue
            for slot, operand in enumerate(user.operands):
                if operand is node:
                    paths.update([hash((path, user.serial, slot)) for path in own])
        return frozenset(paths)

    def input_count(self) -> int:
        """The number of values outside of the group that members need."""
        return len({operand for node in self.along for operand in node.operands}.difference(self.along))

    def shape(self) -> Ints:
        """The extents of all loops, those of inner reductions too."""
        return self.domain + tuple(
            node.operands[0].shape[axis] for node in self.inner for axis in own_dimensions(node)
        )

    def kept_axes(self) -> Ints:
        return tuple(axis for axis in range(len(self.domain)) if axis not in self.reduced)

    def axes(self, axes: Iterable[int]) -> list[int]:
        """Those of `axes` that have more than one index."""
        return [axis for axis in axes if self.domain[axis] != 1]

    def is_output(self, node: Node) -> bool:
        """Whether each element of `node` is computed in one iteration of the loops: then it can be stored."""
        if len(self.along[node]) != 1:
            return False
        (along,) = self.along[node]
        axes = [axis for axis in along if axis != ONE]
        return axes in (self.axes(range(len(self.domain))), self.axes(self.kept_axes()))

    def members(self) -> list[Node]:
        """In an order in which operands come first."""
        return sorted(self.along, key=lambda node: node.serial)


class JoinedPositions:
    """Positions 0 … count - 1, neighbours of which are joined: a union of intervals that only grows.

    Each position is joined to the next one at most once, so that all calls together take time that is near linear.
    """

    def __init__(self, count: int) -> None:
        #: For each position one that it is joined to, behind it; itself where it is not joined to the next one.
        self._later = list(range(count))

    def end(self, position: int) -> int:
        """The last position that is joined to this one."""
        later, last = self._later, position
        while later[last] != last:
            last = later[last]
        while later[position] != last:
            later[position], position = last, later[position]
        return last

    def join(self, low: int, high: int) -> None:
        """Join the positions from `low` to `high`."""
        position = self.end(low)
        while position < high:
            self._later[position] = position + 1
            position = self.end(position)


def operands_along(node: Node, along: Along, group: Group) -> list[Along]:
    """Index maps of the operands of `node`, which has the index map `along`."""
    op = node.op
    if isinstance(op, ops.Reduce):
        shape, kept = node.operands[0].shape, iter(along)
        own = iter(group.inner.get(node) or own_dimensions(node))
        runs = tuple(next(own) if axis in op.dimensions else next(kept) for axis in range(len(shape)))
        count = len(node.operands) // 2
        array = tuple(ONE if n == 1 else axis for n, axis in zip(shape, runs, strict=True))
        return [array] * count + [()] * count
    if isinstance(op, ops.GetTupleElement):
        return [along]
    if isinstance(op, ops.ReduceWindow):
        return [along, ()]
    if isinstance(op, ops.Scatter):
        scattered = (tuple(None for _ in node.shape), _indices_along(node, along), along)
        return [one_where_one(operand, each) for operand, each in zip(node.operands, scattered, strict=True)]
    return [one_where_one(operand, _operand_map(node, k, along)) for k, operand in enumerate(node.operands)]


def one_where_one(operand: Node, along: Along) -> Along:
    """An index map with ONE for each dimension of an operand that has size 1."""
    if 1 not in operand.shape:
        return along
    return tuple(ONE if size == 1 else axis for size, axis in zip(operand.shape, along, strict=True))


def _operand_map(node: Node, number: int, along: Along) -> Along:
    """The index map of operand `number` of a node that is no reduction, if that of the node is `along`."""
    op, operand = node.op, node.operands[number]
    if op.is_elementwise:  # most are, and this is asked for each user of each
        return along
    if isinstance(op, ops.BroadcastInDim):
        return tuple(along[dim] for dim in op.broadcast_dimensions)
    if isinstance(op, ops.Transpose):
        return tuple(along[op.permutation.index(axis)] for axis in range(len(along)))
    if isinstance(op, ops.Reshape):
        split = split_axes(operand.shape, node.shape)
        assert split is not None
        large = [[axis for axis in axes if node.shape[axis] != 1] for axes in split]
        return tuple(along[axes[0]] if len(axes) == 1 else None for axes in large)
    if isinstance(op, ops.Reverse):
        return tuple(None if axis in op.dimensions else runs for axis, runs in enumerate(along))
    if isinstance(op, ops.DynamicUpdateSlice) and number != 1:
        return (None,) * operand.tensor_type.rank
    if isinstance(op, ops.Gather):
        return _gather_index_map(node, number, along)
    if isinstance(op, ops.Pad) and number == 1:
        return ()
    if isinstance(op, ops.Slice | ops.Pad | ops.Concatenate):
        same = [a == b for a, b in zip(operand.shape, node.shape, strict=True)]
        return tuple(runs if equal else None for runs, equal in zip(along, same, strict=True))
    return along


def _gather_index_map(node: Node, number: int, along: Along) -> Along:
    """The index map of the operand or of the indices of a gather, if that of its result is `along`."""
    operand, indices = node.operands
    if number == 1:
        return _indices_along(node, along)
    windows = node.op.expect(ops.Gather).windows(operand.tensor_type, indices.tensor_type)
    batch = [along[dim] for dim in windows.batch_dims]
    runs: list[int | None] = [None] * len(operand.shape)
    for dim, position in windows.batching:
        runs[dim] = batch[position]
    for dim, own in zip(windows.kept_dims, windows.window_dims, strict=True):
        if windows.sizes[dim] == operand.shape[dim]:  # wherever the window is to start, it is all
            runs[dim] = along[own]
    return tuple(runs)


def _indices_along(node: Node, along: Along) -> Along:
    """The index map of the indices of a gather or scatter whose windows have the index map `along`."""
    op = node.op
    assert isinstance(op, ops.Gather | ops.Scatter)
    windows = op.windows(*[operand.tensor_type for operand in node.operands])
    batch = [along[dim] for dim in windows.batch_dims]
    at = windows.index_vector_dim
    return tuple(batch if at == len(node.operands[1].shape) else [*batch[:at], None, *batch[at:]])


def find_dependents(graph: Graph) -> dict[Node, list[Node]]:
    """The nodes that use each node; of an ordered one the next in the order too, so that no group may need both."""
    users = find_users(graph)
    for earlier, later in pairwise(graph.ordered):
        users.setdefault(earlier, []).append(later)
    return users
