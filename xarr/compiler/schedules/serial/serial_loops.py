"""The loop program of a graph in which every operation that needs loops of its own gets them, one after the other.

Most operations need none: an element of theirs is computed from elements of their operands wherever it is wanted
(`xarr.compiler.loop_ir.elements`).  The others, such as reductions, have a rule, which adds phases that fill scratch
buffers with their results, which later rules read.  The last phases store the results of the graph.

Nothing here depends on a machine, and nothing is done for speed: no lanes, no tiles, no carried values.  In each phase
the iterations of the outermost loops are independent; loops in which one needs what another left are inside.  So a
schedule for many threads can begin here and hand the outer ones out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import TypeAlias

from xarr.compiler.functions import apply_elementwise, register_dtype
from xarr.compiler.loop_ir.elements import Elements, Index, Source, input_buffers, reader, row_major
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Store, index_value, load, nest_loops
from xarr.compiler.loop_ir.scalars import INT64, DType, Value, Values
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, element_types
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType, Type


@dataclass(frozen=True)
class Scratch:
    """An array in memory of its own, which one phase fills and later ones read."""

    values: Values
    buffer: Buffer
    shape: Ints

    def load(self, index: Index, predicate: Value | None = None) -> Value:
        """The element at `index`; 0 where the predicate is false."""
        return load(self.values, self.buffer, row_major(self.shape, index), predicate)

    def store(self, index: Index, value: Value) -> Store:
        """Write the element at `index`."""
        return Store(self.buffer, row_major(self.shape, index), value)


class SerialLoops:
    """The loop program of a graph, by rules for the operations that are not computed element by element."""

    def __init__(
        self, graph: Graph, rules: Mapping[type[Op], Rule], ranges: Sequence[tuple[int, int] | None] = ()
    ) -> None:
        self.graph = graph
        self.rules = rules
        self.values = Values()
        self.phases: list[Loop] = []
        self.scratch: list[Buffer] = []
        self.inputs = list(input_buffers(graph, ranges))
        self.sources: dict[Node, Source] = {
            node: reader(self.values, buffer, node)
            for node, buffer in zip(graph.parameters, self.inputs, strict=True)
        }
        self.elements = Elements(self.values, self.sources)
        #: The operation whose phases are added.
        self.label = ""
        #: The elements of each result of nodes with a rule.
        self.results: dict[Node, Sequence[Source]] = {}

    def kernel(self) -> Kernel:
        """The program."""
        self.add(self.graph)
        parts = [(node, *part) for node in self.graph.results for part in self._parts(node)]
        outputs = []
        for number, (node, type, source) in enumerate(parts):
            self.label = node.op.called
            outputs.append(Buffer(f"out{number}", register_dtype(type.dtype), type.size, "out"))
            self.add_output(node, Scratch(self.values, outputs[-1], type.shape), source)
        return Kernel(tuple(self.inputs), tuple(outputs), tuple(self.scratch), (), self.phases)

    def add_output(self, node: Node, out: Scratch, source: Source) -> None:
        """Add a phase that stores a result of the graph, or a part of one, in the array `out`."""
        self.phase(out.shape, partial(_copy, out, source))

    def _parts(self, node: Node) -> list[tuple[TensorType, Source]]:
        """The results of a node one by one: their types and elements."""
        if isinstance(node.type, TensorType):
            return [(node.type, partial(self.at, node))]
        return list(zip(tensor_types(node.type), self.results[node], strict=True))

    def add(self, graph: Graph) -> None:
        """Add the phases of a graph's nodes, those that are there already apart."""
        for node in graph.nodes:
            rule = self.rules.get(type(node.op))
            if node in self.results or node in self.sources:
                continue
            if isinstance(node.op, ops.GetTupleElement):
                self.sources[node] = self.results[node.operands[0]][node.op.index]
            elif rule is not None:
                self.label = node.op.called
                self.results[node] = rule(self, node)
                if len(self.results[node]) == 1:
                    (self.sources[node],) = self.results[node]

    # --- what rules use ----------------------------------------------------------------------------------

    def at(self, node: Node, index: Index, predicate: Value | None = None) -> Value:
        """The element of a node; where the predicate is false it need not exist."""
        return self.elements.at(node, index, predicate)

    def apply(self, op: Op, dtype: DType, *operands: Value) -> Value:
        """An element-wise operation on elements of a type, as registers hold them."""
        value = apply_elementwise(op, [dtype] * len(operands), operands)
        assert value is not None, f"no loop computes {op.name} of {dtype}"
        return value

    def convert(self, value: Value, old: DType, new: DType) -> Value:
        """An element of one type as one of another."""
        return value if old == new else self.apply(ops.Convert(new), old, value)

    def new(self, dtype: DType, shape: Ints) -> Scratch:
        """An array for what phases hand to later ones."""
        buffer = Buffer(f"scratch{len(self.scratch)}", register_dtype(dtype), prod(shape), "scratch")
        self.scratch.append(buffer)
        return Scratch(self.values, buffer, shape)

    def results_of(self, node: Node) -> list[Scratch]:
        """Arrays for the results of a node."""
        return [self.new(each.dtype, each.shape) for each in tensor_types(node.type)]

    def phase(self, shape: Ints, body: Body, ordered: Sequence[int] = ()) -> None:
        """Loops over all indices of a shape, and in them `body` of the index.

        The loops over the axes `ordered` are inside of the others, in this order.  Nothing runs if there is no index.
        """
        if 0 in shape:
            return
        loops = [Loop(index_value(self.values, f"i{axis}"), size) for axis, size in enumerate(shape)]
        parts = body(tuple(Affine(((loop.index, 1),)) for loop in loops))
        outer = [loops[axis] for axis in range(len(shape)) if axis not in ordered]
        outer = outer or [Loop(index_value(self.values, "once"), 1)]
        nest_loops([*outer, *[loops[axis] for axis in ordered]])[-1].body.extend(parts)
        outer[0].label = self.label
        self.phases.append(outer[0])

    def fold(
        self,
        shape: Ints,
        terms: Ints,
        held: Sequence[DType],
        starts: Callable[[Index], Sequence[Value]],
        step: Step,
        finish: Finish | None = None,
        results: Sequence[DType] = (),
    ) -> list[Scratch]:
        """Arrays of a shape: `starts` of an index, and then by `step` one term after the other, in row-major order.

        Meanwhile elements of the types `held` are kept; `finish` makes those of the types `results` of them.
        Three phases: begin, combine, finish.
        """
        rank = len(shape)
        kept = [self.new(dtype, shape) for dtype in held]
        made = [self.new(dtype, shape) for dtype in results]

        def begin(index: Index) -> list[Store]:
            return store_all(kept, index, starts(index))

        def combine(index: Index) -> list[Store]:
            own, term = index[:rank], index[rank:]
            return store_all(kept, own, step(own, term, [each.load(own) for each in kept]))

        self.phase(shape, begin)
        self.phase((*shape, *terms), combine, range(rank, rank + len(terms)))
        if finish is None:
            return kept
        last = finish
        self.phase(
            shape, lambda index: store_all(made, index, last(index, [each.load(index) for each in kept]))
        )
        return made

    def only_if(self, condition: Value, parts: Sequence[Loop | Store]) -> list[Loop | Store]:
        """The parts of a body where a condition holds: in a loop that runs once, or not at all."""
        extent = condition.select(self.values.constant(1, INT64), 0)
        return [Loop(index_value(self.values, "once"), extent, body=list(parts))]


#: What stands in the innermost loop, given its index.
Body: TypeAlias = Callable[[Index], Sequence[Loop | Store]]
#: Adds the phases that a node needs; where the elements of each of its results are afterwards, nothing if they are
#: computed element by element.
Rule: TypeAlias = Callable[[SerialLoops, Node], Sequence[Source]]
#: Of an index, that of a term and what is held: what is held afterwards.
Step: TypeAlias = Callable[[Index, Index, Sequence[Value]], Sequence[Value]]
#: Of an index and what is held after the last term: the results.
Finish: TypeAlias = Callable[[Index, Sequence[Value]], Sequence[Value]]


def _copy(array: Scratch, source: Source, index: Index) -> list[Store]:
    element = source(index, None)
    assert element is not None, "what a rule gives has elements"
    return [array.store(index, element)]


def tensor_types(type: Type) -> list[TensorType]:
    """The types of a node's results, none of which is a tuple: those that loops hold."""
    return [each for each in element_types(type) if isinstance(each, TensorType)]


def store_all(arrays: Sequence[Scratch], index: Index, values: Sequence[Value]) -> list[Store]:
    """Write an element of each array."""
    return [array.store(index, value) for array, value in zip(arrays, values, strict=True)]


def sources_of(arrays: Sequence[Scratch]) -> list[Source]:
    """The elements of arrays, for what comes later."""
    return [array.load for array in arrays]
