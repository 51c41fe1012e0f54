"""Integers of 64 bits that lie in 32 for certain, carried as such by loops that read or write them anywhere.

    labels = labels.at[sources].min(labels[targets])        labels, sources, targets: 0 … n - 1

What lies anywhere is read from a cache, of which it then takes half.  Only what moves, picks and compares numbers
computes with the narrow ones; all else gets wide ones again, where it is computed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

import numpy as np

from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.graph_ranges import GraphRanges
from xarr.ir.integer_ranges import Range, RangeOf, hull
from xarr.ir.ops.control import pack_results
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import TensorType

_NARROW: Final = np.dtype(np.int32)
_LIMITS: Final = np.iinfo(_NARROW)
#: Operations that move their first operand, and that choose among their operands.
_MOVES: Final = (ops.BroadcastInDim, ops.DynamicSlice, ops.Reshape, ops.Reverse, ops.Slice, ops.Transpose)
_CHOICES: Final = (ops.Concatenate, ops.Maximum, ops.Minimum)


def narrow_carried_integers(graph: Graph, target: Target) -> Graph:
    """`graph` with loops that carry integers of known ranges in as few bits, in the graphs of its operations too."""
    if not target.min_narrow_bytes or ops.While not in graph.op_classes:
        return graph
    ranges: dict[ops.While, tuple[Range | None, ...]] = {}
    fits: dict[Node, bool] = {}

    def note(node: Node, range_of: RangeOf) -> None:
        updates = _updates_of(node)
        if updates is not None:
            fits[updates] = fits.get(updates, True) and _is_narrow(range_of(updates))
        if type(node.op) is ops.While and _list_picked(node.op):
            ends = walker.around_loop(node.op, [range_of(each) for each in node.operands])
            before = ranges.get(node.op)
            ranges[node.op] = tuple(ends if before is None else map(hull, before, ends))

    walker = GraphRanges(note)
    walker.go_through(graph)

    def narrow(node: Node, operands: tuple[Node, ...]) -> Node | None:
        loop = node.op
        if not isinstance(loop, ops.While) or loop not in ranges or loop.is_ordered:
            return None
        rows = enumerate(zip(loop.body.parameters, ranges[loop], strict=True))
        large = {k for k, (each, range_) in rows if _fits(each, range_, target)} & _list_picked(loop)
        iterations = loop.iterations(node)
        if not large or (iterations is not None and iterations < target.min_narrow_iterations):
            return None
        return _carry_narrow(loop, node, operands, large, {each for each in fits if fits[each]})

    return rewritten_throughout(graph, narrow)


def _list_picked(loop: ops.While) -> set[int]:
    """The carried arrays that a step reads or writes at indices, and those of which indices are."""
    used = {
        operand
        for node in loop.body.nodes
        if isinstance(node.op, ops.Gather | ops.Scatter)
        for operand in node.operands[:2]
    }
    return {k for k, each in enumerate(loop.body.parameters) if each in used}


def _fits(node: Node, range_: Range | None, target: Target) -> bool:
    if not isinstance(node.type, TensorType) or node.dtype.kind not in "iu" or node.dtype.itemsize < 8:
        return False
    return node.type.nbytes >= target.min_narrow_bytes and _is_narrow(range_)


def _is_narrow(range_: Range | None) -> bool:
    return range_ is not None and int(_LIMITS.min) <= range_[0] <= range_[1] <= int(_LIMITS.max)


def _updates_of(node: Node) -> Node | None:
    """The integers that an operation writes to parts of an array."""
    is_scatter = isinstance(node.op, ops.Scatter) and len(node.operands) == 3
    if not is_scatter and not isinstance(node.op, ops.DynamicUpdateSlice):
        return None
    updates = node.operands[2 if is_scatter else 1]
    return updates if updates.dtype.kind in "iu" else None


def _carry_narrow(
    loop: ops.While, node: Node, operands: tuple[Node, ...], numbers: set[int], fitting: Collection[Node]
) -> Node:
    """The results of a loop that carries these values as narrow ones; fitting: updates that lie in 32 bits."""

    def write(graph: Graph) -> tuple[list[Node], _NarrowForm]:
        held = [
            parameter(each.tensor_type.with_dtype(_NARROW) if k in numbers else each.type)
            for k, each in enumerate(graph.parameters)
        ]
        return held, _NarrowForm(graph, held, fitting)

    after, going = write(loop.body), write(loop.cond)
    results = [
        after[1].narrow(each) if k in numbers else after[1].wide(each)
        for k, each in enumerate(loop.body.results)
    ]
    cond = loop.cond.derive({}, [going[1].wide(each) for each in loop.cond.results], going[0])
    body = loop.body.derive({}, results, after[0])
    carry = tuple([_as_narrow(each) if k in numbers else each for k, each in enumerate(operands)])
    new = Node(ops.While(cond, body, loop.progress), carry)
    parts = [new] if len(carry) == 1 else [Node(ops.GetTupleElement(k), (new,)) for k in range(len(carry))]
    rows = zip(loop.body.parameters, loop.body.results, operands, parts, strict=True)
    return pack_results(
        [
            first if old is following else Node(ops.Convert(first.dtype), (last,)) if k in numbers else last
            for k, (old, following, first, last) in enumerate(rows)
        ]
    )


def _as_narrow(node: Node) -> Node:
    return Node(ops.Convert(_NARROW), (node,))


class _NarrowForm:
    """The nodes of a graph over parameters of which some are narrow, and the narrow forms of those that have one."""

    def __init__(self, graph: Graph, parameters: Sequence[Node], fitting: Collection[Node]) -> None:
        self._fitting = fitting
        self._wide: dict[Node, Node] = {}
        self._narrow: dict[Node, Node] = {}
        for old, new in zip(graph.parameters, parameters, strict=True):
            (self._wide if old.type is new.type else self._narrow)[old] = new
        for node in graph.nodes:
            form = self._narrow_form(node)
            if form is None:
                self._wide[node] = self._rebuilt(node)
            else:
                self._narrow[node] = form

    def wide(self, node: Node) -> Node:
        """The node that gives what a node gave, of its own type."""
        if node not in self._wide:
            self._wide[node] = Node(ops.Convert(node.dtype), (self._narrow[node],))
        return self._wide[node]

    def narrow(self, node: Node) -> Node:
        return self._narrow.get(node) or _as_narrow(self.wide(node))

    def _rebuilt(self, node: Node) -> Node:
        """A node that computes with wide numbers, or compares, or finds with narrow ones."""
        first = node.operands[0] if node.operands else None
        is_compared = isinstance(node.op, ops.Compare) and all(map(self._may_be_narrow, node.operands))
        if is_compared and any(each in self._narrow for each in node.operands):
            return node.rebuilt(tuple(map(self.narrow, node.operands)))
        operands = [self.wide(each) for each in node.operands]
        if isinstance(node.op, ops.Gather | ops.Scatter) and len(node.operands) in (2, 3):
            operands[1] = self._index(node.operands[1], first)
        return node.rebuilt(tuple(operands))

    def _index(self, index: Node, array: Node | None) -> Node:
        """An index, narrow if all indices of the array are."""
        is_small = array is not None and max(array.shape, default=0) <= int(_LIMITS.max)
        return self._narrow[index] if is_small and index in self._narrow else self.wide(index)

    def _narrow_form(self, node: Node) -> Node | None:
        """The node on narrow numbers, if it gives one of those that it gets."""
        op, operands = node.op, node.operands
        if not operands or not isinstance(node.type, TensorType):
            return None
        if isinstance(op, ops.Gather) and operands[0] in self._narrow:
            return node.rebuilt((self._narrow[operands[0]], self._index(operands[1], operands[0])))
        if isinstance(op, _MOVES) and operands[0] in self._narrow:
            return node.rebuilt((self._narrow[operands[0]], *map(self.wide, operands[1:])))
        chosen = (
            operands
            if isinstance(op, _CHOICES)
            else operands[1:]
            if isinstance(op, ops.Select)
            else operands[:2]
            if isinstance(op, ops.DynamicUpdateSlice)
            else operands[::2]
            if isinstance(op, ops.Scatter) and len(operands) == 3 and _picks(op)
            else ()
        )
        # Updates that fit become narrow, or each step would make the whole array wide.
        updates = _updates_of(node) if chosen and chosen[0] in self._narrow else None
        known = [each for each in chosen if each is not updates or each not in self._fitting]
        if not any(each in self._narrow for each in chosen) or not all(map(self._may_be_narrow, known)):
            return None
        if isinstance(op, ops.Scatter):
            array, index, updates = operands
            own_index = self._index(index, array)
            narrow_op = replace(op, update_computation=_on_narrow(op.update_computation))
            return node.rebuilt((self.narrow(array), own_index, self.narrow(updates)), narrow_op)
        return node.rebuilt(
            tuple([self.narrow(each) if each in chosen else self.wide(each) for each in operands])
        )

    def _may_be_narrow(self, node: Node) -> bool:
        """Whether a node is narrow already, or a number that is written in the graph."""
        while isinstance(node.op, ops.BroadcastInDim) and node not in self._narrow:
            (node,) = node.operands
        number = integer_of(node)
        return node in self._narrow or (number is not None and int(_LIMITS.min) <= number <= int(_LIMITS.max))


def _picks(op: ops.Scatter) -> bool:
    """Whether updates replace elements, or the lesser or greater of both counts."""
    (result,), numbers = op.update_computation.results, op.update_computation.parameters
    return result in numbers or (monoids(op.update_computation) or (None,))[0] in (ops.Minimum, ops.Maximum)


def _on_narrow(computation: Graph) -> Graph:
    """A computation that picks, or compares, two narrow numbers."""
    scalars = {each: parameter(TensorType((), _NARROW)) for each in computation.parameters}
    (result,) = computation.results
    new = scalars.get(result) or result.rebuilt(tuple([scalars[each] for each in result.operands]))
    return Graph(list(scalars.values()), (new,))
