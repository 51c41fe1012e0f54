"""Where the loops of a group read and write, known before there are loops: which axes one index can go through."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import partial

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.partial_updates import shift_index
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.axis_runs import axis_runs
from xarr.compiler.loop_ir.elements import Elements, Index, Source, buffer_of, row_major
from xarr.compiler.loop_ir.loops import Affine, Buffer, index_value, load
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import Ints


def rank(shape: Ints) -> int:
    """The dimensions that have more than one index."""
    return sum(size != 1 for size in shape)


def own_index(fusion: ops.Fusion, node: Node, index: Sequence[Affine]) -> Index:
    """Where `node`, which runs along the domain or its kept dimensions, stands at an index of the domain."""
    every = [axis for axis, size in enumerate(fusion.domain) if size != 1]
    kept = [axis for axis in every if axis not in fusion.reduced]
    axes = iter(every if rank(node.shape) == len(every) else kept)
    return tuple(Affine() if size == 1 else index[next(axes)] for size in node.shape)


def parts_of(reduction: Node, graph: Graph) -> dict[Node, int]:
    """The nodes that stand for the results of a reduction, and which."""
    if len(reduction.operands) == 2:
        return {reduction: 0}
    return {
        each: each.op.index
        for each in graph.nodes
        if isinstance(each.op, ops.GetTupleElement) and each.operands[0] is reduction
    }


class _Followed(Elements):
    """Elements that are followed to where they are read, but not computed: `roots` are what they would be made of.

    `conditions` are those by which elements are chosen: that an index is in a half-open interval.
    """

    def __init__(self, values: Values, sources: dict[Node, Source], roots: list[Value]) -> None:
        super().__init__(values, sources)
        self.roots = roots
        self.conditions: dict[tuple[Affine, int, int], None] = {}

    def is_inside(self, at: Affine, low: int, high: int, predicate: Value | None) -> Value:
        self.conditions[at, low, high] = None
        return super().is_inside(at, low, high, predicate)

    def apply(self, node: Node, operands: list[Value]) -> Value:
        self.roots += operands
        return _standing_for(node, self.values)


def _standing_for(node: Node, values: Values) -> Value:
    """An element of which nothing is known."""
    return values.make("argument", (), register_dtype(node.dtype), node)


class Accesses:
    """The elements of a group at one index of its domain, an `index_value` for each axis."""

    def __init__(self, fusion: ops.Fusion) -> None:
        self.fusion = fusion
        self.values = Values()
        self.indices = [index_value(self.values, f"i{axis}") for axis in range(len(fusion.domain))]
        #: The offsets that are read and written, in the order in which the results are computed.
        self.offsets: list[Affine] = []
        self._roots: list[Value] = []
        self._conditions: Collection[tuple[Affine, int, int]] = ()
        self._find()

    def cuts(self) -> dict[int, list[int]]:
        """For each axis the indices, but for 0, from which on another operand of a pad or concatenation is read."""
        axis_of = {index: axis for axis, index in enumerate(self.indices)}
        cuts: dict[int, set[int]] = {}
        for at, low, high in self._conditions:
            if len(at.terms) == 1 and at.terms[0][0] in axis_of:
                ((index, factor),) = at.terms
                for end in (low, high):
                    steps = (at.constant - end) // abs(factor)
                    cuts.setdefault(axis_of[index], set()).add(-steps if factor > 0 else steps + 1)
        return {
            axis: sorted(cut for cut in each if 0 < cut < self.fusion.domain[axis])
            for axis, each in cuts.items()
        }

    def runs(self) -> list[list[int]]:
        """The axes in runs that one index can go through, since every access takes equal steps.

        Axes of size 1 are in none, and none has reduced and kept axes.
        """
        runs = axis_runs(self.fusion.domain, self.indices, self._roots, self.offsets)
        return [part for run in runs for part in self._split_run(run)]

    def _split_run(self, run: list[int]) -> Iterator[list[int]]:
        part = run[:1]
        for axis in run[1:]:
            if (axis in self.fusion.reduced) != (part[-1] in self.fusion.reduced):
                yield part
                part = []
            part.append(axis)
        yield part

    def steps(self) -> dict[int, int]:
        """For each axis by how many elements, at most, the next index reads or writes farther on."""
        axis_of = {index: axis for axis, index in enumerate(self.indices)}
        steps = dict.fromkeys(range(len(self.indices)), 0)
        for offset in self.offsets:
            for index, factor in offset.terms:
                if index in axis_of:
                    steps[axis_of[index]] = max(steps[axis_of[index]], abs(factor))
        return steps

    def transposed_run(self, runs: Sequence[Sequence[int]], min_side: int) -> int | None:
        """The number of the run along which neighbours lie that the last run reads in steps, if both are that long."""
        *outer, last = [(self.indices[run[-1]], self._extent(run)) for run in runs]
        for offset in self.offsets:
            factors = dict(offset.terms)
            if factors.get(last[0], 0) in (-1, 0, 1) or last[1] < min_side:
                continue
            for number, (index, extent) in enumerate(outer):
                if factors.get(index) == 1 and extent >= min_side:
                    return number
        return None

    def _extent(self, run: Sequence[int]) -> int:
        extent = 1
        for axis in run:
            extent *= self.fusion.domain[axis]
        return extent

    def _find(self) -> None:
        fusion, graph = self.fusion, self.fusion.computation
        sources: dict[Node, Source] = {}
        elements = _Followed(self.values, sources, self._roots)
        for k, node in enumerate(graph.parameters):
            sources[node] = partial(self._load, buffer_of(f"in{k}", node, "in"), node)
        reductions = [node for node in graph.nodes if isinstance(node.op, ops.Reduce)]
        inside = [node for node in reductions if rank(node.operands[0].shape) > rank(fusion.domain)]
        for node in reductions:
            for part in parts_of(node, graph):
                sources[part] = partial(
                    self._note_reduction, elements, node if node in inside else None, part
                )
        index = [Affine(((value, 1),)) for value in self.indices]
        for node in reductions:
            for array in combination(node).arrays if node not in inside else ():
                self._roots.append(elements.at(array, own_index(fusion, array, index)))
        for node in graph.results:
            is_update = isinstance(node.op, ops.DynamicUpdateSlice)
            source = node.operands[1] if is_update else node
            at = own_index(fusion, source, index)
            self.offsets.append(row_major(node.shape, shift_index(node, at) if is_update else at))
            self._roots.append(elements.at(source, at))
        self._conditions = elements.conditions

    def _load(self, buffer: Buffer, node: Node, index: Index, predicate: Value | None) -> Value:
        offset = row_major(node.shape, index)
        self.offsets.append(offset)
        return load(self.values, buffer, offset, predicate)

    def _note_reduction(
        self, elements: Elements, node: Node | None, part: Node, index: Index, predicate: Value | None
    ) -> Value:
        """A value that stands for a result; what the reduction `node` reads at each index of it is noted."""
        if node is not None:
            kept, own = iter(index), node.op.expect(ops.Reduce).dimensions
            inner = [
                Affine(((index_value(self.values, f"k{axis}"), 1),)) if axis in own else next(kept)
                for axis in range(len(node.operands[0].shape))
            ]
            arrays = combination(node).arrays
            self._roots += [elements.at(array, tuple(inner), predicate) for array in arrays]
        return _standing_for(part, self.values)
