"""Ranges of the integers in a graph, in the graphs that its operations run too.

What a loop carries lies in a range that no step leaves.  It is computed by going through the body with what the loop
begins with, and again with what a step may give, where the condition holds; an end that keeps moving is taken for
that of the type.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.integer_ranges import Range, RangeOf, common, has_range, hull, limits_of, narrow, range_by_rule

#: The ranges of several values, such as those that a loop carries.
_Ranges: TypeAlias = tuple[Range | None, ...]

#: Steps until moving ends are widened, and until all that changes is taken for unknown; steps that narrow again.
_STEADY: Final = 2
_MOST_STEPS: Final = 12
_NARROWING: Final = 2
#: Of what lies deeper nothing is known.
_DEEPEST: Final = 24


class GraphRanges:
    """Goes through a graph, and calls `note(node, range_of)` for each node wherever it is computed.

    A node of a graph that several operations run is noted for each of them, but once for those whose operands have the
    same ranges, and nothing else is known of it than what holds each time.
    """

    def __init__(self, note: Callable[[Node, RangeOf], None]) -> None:
        self._note = note
        self._known: dict[tuple[int, _Ranges], tuple[Graph, _Ranges]] = {}
        self._noted: set[tuple[int, _Ranges]] = set()

    def go_through(self, graph: Graph) -> None:
        """Note all nodes of a graph, of whose parameters nothing is known."""
        self._results(graph, (None,) * len(graph.parameters), True, 0)

    def inside_loop(self, loop: ops.While, first: Sequence[Range | None]) -> Sequence[Range | None]:
        """The ranges of what a loop carries where a step begins, by those with which it begins."""
        carried = self._narrow_ranges(loop, tuple(first), 0)
        return self._where_it_holds(loop.cond, 0, carried, 0)

    def around_loop(self, loop: ops.While, first: Sequence[Range | None]) -> _Ranges:
        """The ranges of what a loop carries, before each step and behind the last one."""
        return self._loop(loop, tuple(first), False, 0)

    def _results(self, graph: Graph, parameters: _Ranges, notes: bool, depth: int) -> _Ranges:
        """The ranges of a graph's results by those of its parameters."""
        if depth > _DEEPEST:
            return self._give_up(graph, notes)
        key = id(graph), parameters
        if key in (self._noted if notes else self._known):
            return self._known[key][1]
        known = self._go_through(graph, parameters, notes, depth)
        results = tuple([known.get(node) for node in graph.results])
        self._known[key] = graph, results
        if notes:
            self._noted.add(key)
        return results

    def _give_up(self, graph: Graph, notes: bool) -> _Ranges:
        for each in graph.walk() if notes else ():
            for node in each.nodes:
                self._note(node, lambda each: None)
        return (None,) * len(graph.results)

    def _go_through(
        self, graph: Graph, parameters: _Ranges, notes: bool, depth: int
    ) -> Mapping[Node, Range | None]:
        """The ranges of a graph's nodes and parameters."""
        known = dict(zip(graph.parameters, parameters, strict=True))
        several: dict[Node, _Ranges] = {}
        for node in graph.nodes:
            source = node.operands[0] if isinstance(node.op, ops.GetTupleElement) else node
            parts = several.get(source) or self._parts(node, known.get, notes, depth)
            if parts is None:
                known[node] = range_by_rule(node, known.get) if has_range(node) else None
            elif source is node:
                several[node] = parts
                known[node] = parts[0] if len(parts) == 1 else None
            else:
                known[node] = parts[node.op.expect(ops.GetTupleElement).index]
            if notes:
                self._note(node, known.get)
        return known

    def _parts(self, node: Node, range_of: RangeOf, notes: bool, depth: int) -> _Ranges | None:
        """The ranges of the results of an operation that runs graphs, or only holds its operands together."""
        op, operands = node.op, tuple([range_of(each) for each in node.operands])
        if isinstance(op, ops.Tuple | ops.OptimizationBarrier):
            return operands
        if isinstance(op, ops.While):
            return self._loop(op, operands, notes, depth + 1)
        if isinstance(op, ops.Call):
            return self._results(op.computation, operands, notes, depth + 1)
        if not isinstance(op, ops.If | ops.Case):
            for graph in op.graphs if op.runs_graphs else ():
                self._give_up(graph, notes)
            return None
        first, *others = [self._results(each, operands[1:], notes, depth + 1) for each in op.graphs]
        for other in others:
            first = tuple(map(hull, first, other))
        return first

    # --- loops -----------------------------------------------------------------------------------------------

    def _loop(self, loop: ops.While, first: _Ranges, notes: bool, depth: int) -> _Ranges:
        """The ranges of what a loop carries, before a step and behind the last one."""
        carried = self._narrow_ranges(loop, first, depth)
        if notes:
            self._results(loop.cond, carried, True, depth)
        return tuple(map(hull, first, self._step(loop, carried, notes, depth)))

    def _narrow_ranges(self, loop: ops.While, first: _Ranges, depth: int) -> _Ranges:
        """Ranges that no step leaves, as narrow as a few steps make them."""
        carried = self._closed_ranges(loop, first, depth)
        for _ in range(_NARROWING):
            carried = tuple(map(hull, first, self._step(loop, carried, False, depth)))
        return carried

    def _closed_ranges(self, loop: ops.While, first: _Ranges, depth: int) -> _Ranges:
        """Ranges that no step leaves, around those in which it begins."""
        carried = first
        for number in range(_MOST_STEPS):
            wider = tuple(map(hull, carried, self._step(loop, carried, False, depth)))
            if wider == carried:
                return carried
            rows = zip(loop.body.parameters, carried, wider, strict=True)
            carried = tuple([_widen(*row) for row in rows]) if number >= _STEADY else wider
        pairs = zip(loop.body.parameters, loop.body.results, strict=True)
        fixed = [old is new for old, new in pairs]
        return tuple([range_ if is_fixed else None for is_fixed, range_ in zip(fixed, first, strict=True)])

    def _step(self, loop: ops.While, carried: _Ranges, notes: bool, depth: int) -> _Ranges:
        return self._results(loop.body, self._where_it_holds(loop.cond, 0, carried, depth), notes, depth)

    def _where_it_holds(self, graph: Graph, number: int, parameters: _Ranges, depth: int) -> _Ranges:
        """The ranges of a graph's parameters where its result of this number is true."""
        known = self._go_through(graph, parameters, False, depth)
        predicate = graph.results[number]
        source, index = predicate, 0
        if isinstance(predicate.op, ops.GetTupleElement):
            (source,), index = predicate.operands, predicate.op.index
        if not isinstance(source.op, ops.Call):
            rows = zip(graph.parameters, parameters, strict=True)
            return tuple(
                [
                    narrow(node, predicate, True, known.get) if has_range(node) else range_
                    for node, range_ in rows
                ]
            )
        inner = tuple([known.get(each) for each in source.operands])
        there = self._where_it_holds(source.op.computation, index, inner, depth + 1)
        own = dict(zip(source.operands, there, strict=True))
        return tuple(
            common(range_, own.get(node)) for node, range_ in zip(graph.parameters, parameters, strict=True)
        )


def _widen(node: Node, before: Range | None, after: Range | None) -> Range | None:
    """A range whose ends that have moved are those of the type; None if both are."""
    if before is None or after is None or before == after:
        return after
    (low, high), limits = after, limits_of(node)
    wide = (low if low == before[0] else limits[0], high if high == before[1] else limits[1])
    return None if wide == limits else wide
