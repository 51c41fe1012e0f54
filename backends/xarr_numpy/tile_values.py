"""The values of a group of fused operations, as tiles see them.

Every array has the rank of the domain there, with size 1 along the dimensions in which it does not vary,
so that broadcasts cost nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from xarr.compiler.groups import ONE, Along, Group, operands_along
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr_numpy.tile_grid import Grid, grid

Array = np.ndarray[Any, Any]
DType = np.dtype[Any]
Ints = tuple[int, ...]
Axes = frozenset[int]


@dataclass(eq=False)
class Value:
    """A node where it runs along the domain in one way.

    axes: the dimensions of the domain along which its elements differ.
    once: whether all tiles share it, or it is known before they begin.
    stage: how many reductions follow one another until it can be computed.
    """

    node: Node
    along: Along
    operands: tuple[Value, ...]
    axes: Axes
    once: bool
    stage: int

    @property
    def dtype(self) -> DType:
        found: DType = self.node.dtype
        return found

    @property
    def is_reduction(self) -> bool:
        return isinstance(self.node.op, ops.Reduce)


def _axes(along: Along) -> Axes:
    return frozenset(axis for axis in along if axis is not None and axis != ONE)


class Values:
    """All values of a group, operands first."""

    def __init__(self, fusion: ops.Fusion) -> None:
        self.graph: Graph = fusion.computation
        self.grid: Grid = grid(fusion.domain, fusion.reduced)
        self.group = Group(fusion.domain, fusion.reduced)
        large = self.group.axes(range(len(fusion.domain)))
        #: The dimensions that tell tiles apart.
        self.tiled: Axes = self.grid.cut or frozenset(large)
        self.reduced: Axes = frozenset(fusion.reduced) & frozenset(large)
        self.inputs: list[Value] = []
        self._values: dict[tuple[Node, Along], Value] = {}
        self._make(self._asked())
        self.outputs = [self._values[node, self._own(node)] for node in self.graph.results]
        #: Without those that are another value seen from elsewhere.
        self.every = list(dict.fromkeys(self._values.values()))
        #: The dimensions that have more than one index.
        self.large: Axes = frozenset(large)
        self.users: dict[Value, list[Value]] = {}
        for value in self.every:
            for operand in value.operands:
                self.users.setdefault(operand, []).append(value)

    def _own(self, node: Node) -> Along:
        """How a result runs along the domain, or along its kept dimensions."""
        every, kept = (self.group.axes(each) for each in (range(len(self.group.domain)), self.group.kept()))
        sizes = [size for size in node.shape if size != 1]
        axes = iter(every if len(sizes) == len(every) else kept)
        return tuple(ONE if size == 1 else next(axes) for size in node.shape)

    def own_shape(self, number: int) -> Ints:
        """The shape of result `number` in the rank of the domain."""
        axes = self._own(self.graph.results[number])
        return tuple(size if axis in axes else 1 for axis, size in enumerate(self.group.domain))

    def _asked(self) -> dict[Node, dict[Along, None]]:
        found: dict[Node, dict[Along, None]] = {}
        for node in self.graph.results:
            found.setdefault(node, {})[self._own(node)] = None
        for node in reversed(self.graph.nodes):
            for along in found.get(node, ()):
                runs = operands_along(node, along, self.group)
                for operand, each in zip(node.operands, runs, strict=True):
                    found.setdefault(operand, {})[each] = None
        return found

    def _make(self, asked: dict[Node, dict[Along, None]]) -> None:
        for node in self.graph.parameters:
            for along in asked.get(node, ()):
                axes = _axes(along)
                value = Value(node, along, (), axes, not axes & self.tiled, 0)
                self._values[node, along] = value
                self.inputs.append(value)
        for node in self.graph.nodes:
            for along in asked.get(node, ()):
                runs = operands_along(node, along, self.group)
                operands = [self._values[pair] for pair in zip(node.operands, runs, strict=True)]
                renames = isinstance(node.op, ops.BroadcastInDim | ops.Reshape)
                self._values[node, along] = operands[0] if renames else self._value(node, along, operands)

    def _value(self, node: Node, along: Along, operands: list[Value]) -> Value:
        stage = max((operand.stage for operand in operands), default=0)
        axes = frozenset[int]().union(*[operand.axes for operand in operands])
        if isinstance(node.op, ops.Iota):
            axes = _axes((along[node.op.dimension],))
        if isinstance(node.op, ops.Reduce):
            stage, axes = stage + 1, operands[0].axes - self.reduced
        once = not axes & self.tiled and all(operand.once for operand in operands)
        # Between two steps what reductions gave is there as a whole.
        once = once or (self.grid.partial and stage > 0 and not axes & self.reduced)
        return Value(node, along, tuple(operands), axes, once, stage)


def as_domain(array: Array, along: Along, rank: int) -> Array:
    """A view of an array that runs `along` a domain, in the rank of the domain."""
    large = [axis for axis in along if axis is not None and axis != ONE]
    order = sorted(range(len(large)), key=large.__getitem__)
    squeezed = array[tuple(0 if axis == ONE else slice(None) for axis in along)]
    view: Array = np.transpose(squeezed, order)[
        tuple(slice(None) if k in large else None for k in range(rank))
    ]
    return view
