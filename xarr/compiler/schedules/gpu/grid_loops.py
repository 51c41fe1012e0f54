"""Serial loops whose independent iterations run in a grid of threads, and whose folds keep their results in registers.

The rules of operations are those of the serial schedule: only who runs the iterations is decided here.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice, product

from xarr.compiler.functions import register_dtype
from xarr.compiler.loop_ir.elements import Index, Source, constant_source, strides
from xarr.compiler.loop_ir.loops import (
    Affine,
    Buffer,
    Carry,
    Kernel,
    Loop,
    Runs,
    Store,
    index_value,
    new_carry,
)
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.gpu.rows import hold_rows, merge_phases
from xarr.compiler.schedules.gpu.target import GpuTarget
from xarr.compiler.schedules.gpu.tiles import read_in_tiles
from xarr.compiler.schedules.gpu.vectors import share_loads, widen
from xarr.compiler.schedules.serial.serial_loops import (
    Body,
    Finish,
    Rule,
    Scratch,
    SerialLoops,
    Step,
    store_all,
)
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.rewriting import find_users
from xarr.ir.types import Ints

#: The words of a loop whose iterations are one each for all threads of all blocks.
POINTS = Runs.GRID | Runs.BLOCK


class GridLoops(SerialLoops):
    """The loop program of a graph for a grid of threads of a machine.

    overwritable: for each result the numbers of the operands whose memory it may have; None for those of its size.
    """

    def __init__(
        self,
        graph: Graph,
        rules: Mapping[type[Op], Rule],
        target: GpuTarget,
        overwritable: Sequence[Collection[int]] | None = None,
    ) -> None:
        super().__init__(graph, rules)
        self.target, self.overwritable = target, overwritable
        self.shared: list[Buffer] = []
        self.users = find_users(graph)
        #: What adds the phases of a node, and of those before it whose rules have left that to its own.
        self.deferred: dict[Node, Callable[[], Sequence[Source]]] = {}
        #: For results of the graph what adds their phases, of the array in which they are stored.
        self.deferred_outputs: dict[Node, Callable[[Scratch], None]] = {}

    def kernel(self) -> Kernel:
        """The program: phases over the same rows are one, arrays are read in tiles, or in vectors, where that pays."""
        kernel = super().kernel()
        least = self.target.min_tiled_side
        merged = merge_phases(kernel, self.values, self.overwritable)
        phases = [read_in_tiles(each, self.values, least, self.new_shared) or each for each in merged]
        phases = [share_loads(each, self.values, self.target) for each in phases]
        phases = [widen(each, self.values, self.target) for each in phases]
        phases = [hold_rows(each, self.values, self.target) for each in phases]
        return replace(kernel, phases=phases, locals=tuple(self.shared))

    def add_output(self, node: Node, out: Scratch, source: Source) -> None:
        """As for serial loops, unless a rule has left it to store the results of a node."""
        if node in self.deferred_outputs:
            self.deferred_outputs[node](out)
        else:
            super().add_output(node, out, source)

    @contextmanager
    def elements_known(self, known: Mapping[Node, Value]) -> Iterator[None]:
        """Let each of these nodes have one element, whatever the index; afterwards its own again."""
        before = {node: self.sources[node] for node in known if node in self.sources}
        self.sources.update({node: constant_source(value) for node, value in known.items()})
        try:
            yield
        finally:
            for node in known:
                del self.sources[node]
            self.sources.update(before)

    def new_shared(self, dtype: DType, size: int) -> Scratch:
        """An array that the threads of a block share while it has a point."""
        buffer = Buffer(f"shared{len(self.shared)}", register_dtype(dtype), size, "shared")
        self.shared.append(buffer)
        return Scratch(self.values, buffer, (size,))

    def share(self, count: int | Value, body: Body) -> Loop:
        """A loop of so many iterations that the threads of a block share, and in it `body` of the index."""
        loop = Loop(index_value(self.values, "element"), count, Runs.BLOCK)
        loop.body += body((Affine(((loop.index, 1),)),))
        return loop

    def phase(self, shape: Ints, body: Body, ordered: Sequence[int] = ()) -> None:
        """As those of the serial schedule; a thread runs all of the ordered axes for a point of the others."""
        self._add_phase(shape, body, POINTS, ordered)

    def blocks(self, shape: Ints, body: Body) -> None:
        """Loops over all indices of a shape, each of which a block of threads runs, and in them `body` of the index."""
        self._add_phase(shape, body, Runs.GRID)

    def _add_phase(self, shape: Ints, body: Body, words: Runs, ordered: Sequence[int] = ()) -> None:
        """A phase of the serial schedule, with these words at the loops over axes that are not ordered."""
        before = len(self.phases)
        super().phase(shape, body, ordered)
        for phase in self.phases[before:]:
            for loop in islice(phase.walk(), max(1, len(shape) - len(ordered))):
                loop.runs |= words

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
        """One phase: a thread for each element, which carries what it holds from term to term."""
        arrays = [self.new(dtype, shape) for dtype in (held if finish is None else results)]

        def body(own: Index) -> Sequence[Loop | Store]:
            parts, last = self._carry_terms(terms, starts(own), lambda term, held: step(own, term, held))
            return [*parts, *store_all(arrays, own, last if finish is None else finish(own, last))]

        self.phase(shape, body)
        return arrays

    def fold_unrolled(
        self,
        shape: Ints,
        terms: Ints,
        starts: Callable[[Index], Sequence[Value]],
        step: Step,
        finish: Finish,
        results: Sequence[DType],
    ) -> list[Scratch]:
        """As `fold`, but each term has its own line, and no loop goes through them.

        So equal elements of neighbouring results are equal values, and `vectors` can join points.
        """
        arrays = [self.new(dtype, shape) for dtype in results]

        def body(own: Index) -> Sequence[Loop | Store]:
            held = starts(own)
            for term in product(*map(range, terms)):
                held = step(own, tuple(Affine(constant=number) for number in term), held)
            return store_all(arrays, own, finish(own, held))

        self.phase(shape, body)
        return arrays

    def carry(
        self,
        extent: int | Value,
        initial: Sequence[Value],
        step: Callable[[Value, Sequence[Value]], Sequence[Value]],
    ) -> tuple[Loop, Sequence[Value]]:
        """A loop that hands on what `step` makes of its index and of what it holds, and what it leaves."""
        loop = Loop(index_value(self.values, "t"), extent)
        names = [new_carry(self.values, each.dtype) for each in initial]
        following = step(loop.index, [argument for argument, _ in names])
        rows = zip(initial, names, following, strict=True)
        loop.carries += [Carry(start, own, new, result) for start, (own, result), new in rows]
        return loop, [result for _, result in names]

    def _carry_terms(
        self, terms: Ints, initial: Sequence[Value], step: Callable[[Index, Sequence[Value]], Sequence[Value]]
    ) -> tuple[list[Loop], Sequence[Value]]:
        """Loops over all terms, one in the other, and what they carry to their end."""
        if 0 in terms:
            return [], initial
        loops = [Loop(index_value(self.values, f"t{axis}"), size) for axis, size in enumerate(terms)]
        names, before = [], initial
        for _ in loops:
            names.append([new_carry(self.values, each.dtype) for each in before])
            before = [argument for argument, _ in names[-1]]
        following = step(tuple(Affine(((loop.index, 1),)) for loop in loops), before)
        for depth in reversed(range(len(loops))):
            first = initial if depth == 0 else [argument for argument, _ in names[depth - 1]]
            rows = zip(first, names[depth], following, strict=True)
            loops[depth].carries += [Carry(start, *own[:1], new, own[1]) for start, own, new in rows]
            if depth:
                loops[depth - 1].body.append(loops[depth])
            following = [result for _, result in names[depth]]
        return loops[:1], following


def split_number(number: Value, shape: Ints) -> Index:
    """The index of an element, of its number in row-major order."""
    if len(shape) == 1:
        return (Affine(((number, 1),)),)
    rows = zip(shape, strides(shape), strict=True)
    return tuple([Affine((((number / stride).rem(size), 1),)) for size, stride in rows])


def split_neighbours(number: Value, shape: Sequence[int], together: int, behind: int) -> Index:
    """The index of the element so many behind the first one of those of a number, of so many together."""
    *outer, last = split_number(number, (*shape[:-1], shape[-1] // together))
    return (*outer, last * together + behind)
