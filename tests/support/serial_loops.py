"""A plain schedule: every group as serial loops, for machines of which nothing is known.

Each reduction becomes three phases: begin with the neutral elements, combine one element after the other, finish with
the initial values.  Each result is a phase of its own, and what is between is computed where it is wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xarr.compiler.fusion.partial_updates import starts_of
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.loop_ir.elements import Elements, Index, Source, buffer_of, reader, row_major
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Store, index_value, load, nested
from xarr.compiler.loop_ir.scalars import Value, Values
from xarr.compiler.schedule import Kind, Schedule
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node

#: A C compiler takes longer for large functions, and for large local arrays, of which serial loops have none.
TARGET = Target().replace(max_group_members=40, max_serial_bytes=0, local_bytes=0)


class Nest:
    """The loop program of a group of element-wise operations, updates and reductions."""

    def __init__(self, fusion: ops.Fusion) -> None:
        self.graph = fusion.computation
        self.values = Values()
        self.phases: list[Loop] = []
        self.scratch: list[Buffer] = []
        self.inputs = [buffer_of(f"in{k}", node, "in") for k, node in enumerate(self.graph.parameters)]
        self.sources: dict[Node, Source] = {
            node: reader(self.values, buffer, node)
            for node, buffer in zip(self.graph.parameters, self.inputs, strict=True)
        }

    def kernel(self) -> Kernel:
        outputs = [buffer_of(f"out{k}", node, "out") for k, node in enumerate(self.graph.results)]
        for node in self.graph.nodes:
            if isinstance(node.op, ops.Reduce):
                self.reduce(node)
            elif isinstance(node.op, ops.DynamicUpdateSlice):
                self.sources[node] = self.updated(node)
        for node, buffer in zip(self.graph.results, outputs, strict=True):
            self.phase(node.shape, lambda index, node=node, buffer=buffer: [self.store(buffer, node, index)])
        return Kernel(tuple(self.inputs), tuple(outputs), tuple(self.scratch), (), self.phases)

    def at(self, node: Node, index: Index, predicate: Value | None = None) -> Value:
        return Elements(self.values, self.sources).at(node, index, predicate)

    def store(self, buffer: Buffer, node: Node, index: Index) -> Store:
        return Store(buffer, row_major(node.shape, index), self.at(node, index))

    def phase(
        self, shape: Sequence[int], body: Callable[[Index], Sequence[Store]], inner: Sequence[int] = ()
    ) -> None:
        """Loops over a shape, the axes `inner` inside of the others, and what `body` stores at an index."""
        loops = [Loop(index_value(self.values, f"i{axis}"), size) for axis, size in enumerate(shape)]
        stores = body(tuple(Affine(((loop.index, 1),)) for loop in loops))
        # Turns of the outermost loop may run at the same time.
        outer = [loops[axis] for axis in range(len(shape)) if axis not in inner]
        outer = outer or [Loop(index_value(self.values, "once"), 1)]
        nested([*outer, *[loops[axis] for axis in inner]])[-1].body.extend(stores)
        self.phases.append(outer[0])

    def updated(self, node: Node) -> Source:
        """An element of the update where it lies, else of the array around it."""
        array, update = node.operands[:2]
        starts = starts_of(node)
        assert starts is not None, "updates in groups begin at constants"

        def source(index: Index, predicate: Value | None) -> Value:
            elements = Elements(self.values, self.sources)
            own = tuple(at + -start for at, start in zip(index, starts, strict=True))
            inside = predicate
            for at, size, whole in zip(own, update.shape, array.shape, strict=True):
                inside = inside if size == whole else elements.inside(at, 0, size, inside)
            if inside is predicate or inside is None:
                return elements.at(update, own, predicate)
            return inside.select(elements.at(update, own, inside), elements.at(array, index, predicate))

        return source

    def reduce(self, node: Node) -> None:
        """Let the results of a reduction be read from scratch buffers."""
        found = combination(node)
        assert isinstance(node.op, ops.Reduce)
        whole = found.arrays[0].shape
        kept = [axis for axis in range(len(whole)) if axis not in node.op.dimensions]
        shape = tuple(whole[axis] for axis in kept)
        parts = {node: 0}
        if len(node.operands) > 2:
            users = [each for each in self.graph.nodes if each.operands == (node,)]
            parts = {each: each.op.index for each in users if isinstance(each.op, ops.GetTupleElement)}
        initial = [self.at(each, ()) for each in node.operands[len(found.arrays) :]]
        number = len(self.scratch)
        held = [Buffer(f"held{number + k}", t, prod(shape), "scratch") for k, t in enumerate(found.held)]
        self.scratch += held
        totals = {part: buffer_of(f"total{number + k}", part, "scratch") for part, k in parts.items()}
        self.scratch += totals.values()

        def stores(buffers: Sequence[Buffer], values: Sequence[Value], index: Index) -> list[Store]:
            place = row_major(shape, index)
            return [Store(buffer, place, value) for buffer, value in zip(buffers, values, strict=True)]

        def state(index: Index) -> list[Value]:
            return [load(self.values, buffer, row_major(shape, index)) for buffer in held]

        def combine(index: Index) -> list[Store]:
            own = tuple(index[axis] for axis in kept)
            return stores(held, found.next(state(own), [self.at(each, index) for each in found.arrays]), own)

        def finish(index: Index) -> list[Store]:
            results = found.finished(initial, state(index))
            return stores(list(totals.values()), [results[k] for k in parts.values()], index)

        self.phase(shape, lambda index: stores(held, found.starts(self.values, initial), index))
        self.phase(whole, combine, sorted(node.op.dimensions))
        self.phase(shape, finish)
        self.sources.update({part: reader(self.values, buffer, part) for part, buffer in totals.items()})


SCHEDULE = Schedule(TARGET, {Kind.NEST: lambda fusion, target: Nest(fusion).kernel()})
