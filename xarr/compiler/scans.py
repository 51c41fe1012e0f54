"""Running totals as loops.

A `ReduceWindow` whose windows all begin at one end of an axis, and end at each of its indices, gives running
totals.  With what computes its operand and what uses its result element by element it is one loop nest.

Along the last axis that has more than one index, a vector loop goes through it:

    for each index of the other axes:                        in parallel
        vector for each index of the axis:
            total = running total of the operand
            result[...] = ... total ...

Along another axis rows of totals, which stay in the cache, take in one row of the operand after the other:

    for each index of the other axes, the last of them in blocks:   in parallel
        for each index of the axis:
            vector for each element of the block:
                total[...] = total[...] combined with the operand
                result[...] = ... total[...] ...

Neither depends on the number of threads.  A float total along the last axis is at most n / L + log2(L) + 1
additions deep, with L lanes in a register, along others n: never deeper than when elements are added in turn.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final, TypeAlias

import numpy as np

from xarr.compiler import elements as one_element
from xarr.compiler.elements import Elements, Index, Lower, Source, register_dtype, row_major
from xarr.compiler.loops import Affine, Buffer, Kernel, Loop, Prefix, Role, Store, index_value, load
from xarr.compiler.merging import merged
from xarr.compiler.scalars import Value, Values
from xarr.compiler.scatters import combined, nested
from xarr.dtypes import EXTENDED_FLOAT
from xarr.ir import ops
from xarr.ir.graph import Node

Ints: TypeAlias = tuple[int, ...]

#: Elements of a row of totals, and blocks that there should be if they can have so many.
SHORTEST: Final = 64
LONGEST: Final = 1024
BLOCKS: Final = 16


def scanned(node: Node) -> tuple[int, bool] | None:
    """The axis along which a node gives running totals, and whether they begin at its end; else None."""
    op = node.op
    if not isinstance(op, ops.ReduceWindow) or len(node.operands) != 2:
        return None
    if any(each != 1 for each in (*op.window_strides, *op.base_dilations, *op.window_dilations)):
        return None
    axes = [axis for axis, size in enumerate(op.window_dimensions) if size != 1]
    if len(axes) != 1:
        return None
    (axis,) = axes
    size = node.operands[0].shape[axis]
    others = [pair for dim, pair in enumerate(op.padding) if dim != axis]
    if op.window_dimensions[axis] != size or any(pair != (0, 0) for pair in others):
        return None
    pairs = {(size - 1, 0): False, (0, size - 1): True}
    return (axis, pairs[op.padding[axis]]) if op.padding[axis] in pairs else None


def computes(node: Node, lower: Lower) -> bool:
    """Whether loops can run these totals; those of narrow floats, but for extremes, are formed in wider ones."""
    if scanned(node) is None or not all(map(one_element.is_held, (node, *node.operands))):
        return False
    op, dtype = node.op, node.dtype
    assert isinstance(op, ops.ReduceWindow)
    nodes = op.computation.nodes
    if dtype in EXTENDED_FLOAT or dtype == np.float16:
        exact = len(nodes) == 1 and isinstance(nodes[0].op, ops.Maximum | ops.Minimum)
        if not exact:
            return False
    return all(one_element.computes(each, lower) for each in nodes)


def build(fusion: ops.Fusion, lower: Lower) -> Kernel:
    """The loop program of a group with running totals."""
    return _Scans(fusion, lower).kernel()


class _Scans:
    def __init__(self, fusion: ops.Fusion, lower: Lower) -> None:
        self.graph, self.domain = fusion.computation, fusion.domain
        self.lower = lower
        self.values = Values()
        self.scans = [node for node in self.graph.nodes if scanned(node)]
        found = {scanned(node) for node in self.scans}
        assert len(found) == 1, "the totals of a group run along one axis"
        ((self.axis, self.reverse),) = (each for each in found if each)
        self.inputs = self._buffers("in", self.graph.parameters)
        self.outputs = self._buffers("out", self.graph.results)
        self.locals: list[Buffer] = []
        self.arguments: dict[Node, Source] = {
            node: partial(self._read, buffer, node)
            for buffer, node in zip(self.inputs, self.graph.parameters, strict=True)
        }

    def _buffers(self, role: Role, nodes: Sequence[Node]) -> tuple[Buffer, ...]:
        return tuple(
            Buffer(f"{role}{k}", register_dtype(node.dtype), node.tensor_type.size, role)
            for k, node in enumerate(nodes)
        )

    def _read(self, buffer: Buffer, node: Node, index: Index, predicate: Value | None) -> Value:
        return load(self.values, buffer, row_major(node.shape, index), predicate)

    def kernel(self) -> Kernel:
        runs = self._runs()
        place = runs.index([self.axis])
        phase = self._along_rows(runs) if place == len(runs) - 1 else self._by_rows(runs, place)
        return Kernel(self.inputs, self.outputs, (), tuple(self.locals), [phase])

    # --- where things are ---------------------------------------------------------------------------

    def _runs(self) -> list[list[int]]:
        """The axes of the domain in runs that one index can go through."""
        single = [index_value(self.values, f"i{axis}") for axis in range(len(self.domain))]
        index = [Affine(((value, 1),)) for value in single]
        roots: list[Value] = []
        sources = dict(self.arguments)
        elements = Elements(self.values, sources, self.lower)
        for node in self.scans:
            roots.append(elements.at(node.operands[0], self._own(node.operands[0], index)))
            sources[node] = partial(self._unknown, node)
        stores = self._stores(elements, index)
        roots += [store.value for store in stores]
        return merged(self.domain, single, roots, [store.place for store in stores], [self.axis])

    def _unknown(self, node: Node, index: Index, predicate: Value | None) -> Value:
        return self.values.make("argument", (), register_dtype(node.dtype), node)

    def _own(self, node: Node, index: Sequence[Affine]) -> Index:
        """Where a node that runs along the domain stands at an index of it."""
        axes = iter(axis for axis, size in enumerate(self.domain) if size != 1)
        return tuple(Affine() if size == 1 else index[next(axes)] for size in node.shape)

    def _stores(self, elements: Elements, index: Sequence[Affine]) -> list[Store]:
        found = []
        for buffer, node in zip(self.outputs, self.graph.results, strict=True):
            at = self._own(node, index)
            found.append(Store(buffer, row_major(node.shape, at), elements.at(node, at)))
        return found

    def _index(self, runs: Sequence[Sequence[int]], places: Sequence[Affine]) -> list[Affine]:
        """The index of each axis, given that of each run."""
        index = [Affine()] * len(self.domain)
        for run, place in zip(runs, places, strict=True):
            index[run[-1]] = place
        if self.reverse:
            index[self.axis] = index[self.axis] * -1 + (self.domain[self.axis] - 1)
        return index

    def _loop(self, run: Sequence[int]) -> Loop:
        extent = 1
        for axis in run:
            extent *= self.domain[axis]
        return Loop(index_value(self.values, "i" + "_".join(map(str, run))), extent)

    # --- the two ways --------------------------------------------------------------------------------

    def _along_rows(self, runs: list[list[int]]) -> Loop:
        """The axis is the innermost."""
        loops = [self._loop(run) for run in runs]
        inner = loops[-1]
        inner.vector = True
        index = self._index(runs, [Affine(((loop.index, 1),)) for loop in loops])
        sources = dict(self.arguments)
        elements = Elements(self.values, sources, self.lower)
        for node in self.scans:
            term = elements.at(node.operands[0], self._own(node.operands[0], index))
            prefix = self._prefix(node, elements.at(node.operands[1], ()), term)
            inner.prefixes.append(prefix)
            sources[node] = partial(self._given, self._own(node, index), prefix.running)
        inner.body += self._stores(elements, index)
        outer = loops[:-1] or [Loop(index_value(self.values, "once"), 1)]
        return nested([*outer, inner])[0]

    def _prefix(self, node: Node, initial: Value, term: Value) -> Prefix:
        assert isinstance(node.op, ops.ReduceWindow)
        left, right = (self.values.make("argument", (), term.dtype, name, unique=True) for name in ("a", "b"))
        total = combined(node.op.computation, self.lower, left, right)
        running = self.values.make("result", (), term.dtype, "running", unique=True)
        return Prefix(initial, term, left, right, total, running)

    def _given(self, own: Index, total: Value, index: Index, predicate: Value | None) -> Value:
        assert index == own, "a running total is used where it is computed"
        return total

    def _by_rows(self, runs: list[list[int]], place: int) -> Loop:
        """Other axes are inside of the axis: the last of them is gone through in blocks."""
        others = [run for run in runs if run != [self.axis]]
        loops = [self._loop(run) for run in others]
        row, along = loops.pop(), self._loop([self.axis])
        width = row.most_turns
        most = min(LONGEST, -(-width // (BLOCKS * SHORTEST)) * SHORTEST, width)
        block = Loop(index_value(self.values, "block"), -(-width // most))
        start = Affine(((block.index, most),))
        size: int | Value = width
        if width > most:
            left = start.value(self.values) * -1 + width
            size = left.lt(most).select(left, most)
        places = [Affine(((loop.index, 1),)) for loop in loops]
        inner, first = (Loop(index_value(self.values, "j"), size, vector=True) for _ in range(2))
        at = Affine(((inner.index, 1),))
        places.append(at + start if width > most else at)
        places.insert(place, Affine(((along.index, 1),)))
        index = self._index(runs, places)
        sources = dict(self.arguments)
        elements = Elements(self.values, sources, self.lower)
        for node in self.scans:
            held = Buffer(f"total{len(self.locals)}", register_dtype(node.dtype), most, "local")
            self.locals.append(held)
            first.body.append(Store(held, Affine(((first.index, 1),)), elements.at(node.operands[1], ())))
            assert isinstance(node.op, ops.ReduceWindow)
            term = elements.at(node.operands[0], self._own(node.operands[0], index))
            total = combined(node.op.computation, self.lower, load(self.values, held, at), term)
            inner.body.append(Store(held, at, total))
            sources[node] = partial(self._given, self._own(node, index), total)
        inner.body += self._stores(elements, index)
        outer = nested([*loops, block])
        outer[-1].body += [first, along]
        along.body.append(inner)
        return outer[0]
