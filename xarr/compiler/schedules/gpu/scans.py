"""Running totals: a thread for each row where that keeps all busy, else a block; long rows in parts, in three phases.

The three phases are the totals of all parts, the running totals of these, and those within each part, which begin with
what comes before it.  They read each element twice.  A scan that looks back at the parts before would read it once, but
what it finds there depends on which blocks are done: sums of floats would have other bits in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xarr.compiler.fusion.scan_windows import scan_axis
from xarr.compiler.loop_ir.elements import Index, Source, compute_scalars
from xarr.compiler.loop_ir.loops import Accumulator, Affine, Loop, Prefix, Runs, Store, index_value
from xarr.compiler.loop_ir.scalars import DType, Value
from xarr.compiler.schedules.gpu.grid_loops import GridLoops
from xarr.compiler.schedules.serial import reductions
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of, store_all
from xarr.dtypes import COMPLEX, accumulator_dtype
from xarr.ir import ops
from xarr.ir.computations import commutes, monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def running_totals(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """The phases of running totals; of other windows those of the serial schedule.

    Only by computations that need no order, as from the end of a row elements meet in the other one, and not of complex
    numbers, the signs of whose zeros tell it.  Narrow floats are added up in float32, as NumPy does it.
    """
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.ReduceWindow)
    scan, is_monoid = scan_axis(node), monoids(node.op.computation) is not None
    is_narrow = accumulator_dtype(node.dtype) != node.dtype
    if (
        scan is None
        or node.dtype in COMPLEX
        or not (is_monoid or (commutes(node.op.computation) and not is_narrow))
    ):
        return reductions.running_totals(loops, node)
    rows, target = _Rows(loops, node, *scan), loops.target
    count, size = prod(rows.others), rows.size
    parts = min(target.busy_blocks // max(count, 1), size // target.part_terms)
    inner = prod(node.shape[scan[0] + 1 :])
    if size < target.min_warp_terms or (inner >= target.min_warp_terms and count >= target.busy_threads):
        rows.by_threads()
    elif parts > 1 and is_monoid:
        rows.in_parts(parts)
    else:
        rows.by_blocks()
    return sources_of(rows.results)


class _Rows:
    """Rows along an axis, from whose first element, or last, totals run to the other end."""

    def __init__(self, loops: GridLoops, node: Node, axis: int, reverse: bool) -> None:
        assert isinstance(node.op, ops.ReduceWindow)
        self.loops, self.node, self.axis, self.reverse = loops, node, axis, reverse
        self.array, self.initial = node.operands
        self.size = node.shape[axis]
        self.others: Ints = (*node.shape[:axis], *node.shape[axis + 1 :])
        #: The type of totals, and the operation that combines them if it is one.
        self.held: DType = accumulator_dtype(node.dtype)
        self.monoid = monoids(node.op.computation)
        self.results = loops.results_of(node)

    def by_threads(self) -> None:
        """One phase: a thread goes through a row."""

        def body(own: Index) -> Sequence[Loop | Store]:
            totals: list[Value] = []

            def step(at: Value, held: Sequence[Value]) -> Sequence[Value]:
                totals.append(self._combine(held[0], self._element(own, Affine(((at, 1),)))))
                return totals

            loop, _ = self.loops.carry(self.size, [self._first()], step)
            loop.body += self._store(own, Affine(((loop.index, 1),)), totals[0])
            return [loop]

        self.loops.phase(self.others, body)

    def by_blocks(self) -> None:
        """One phase: a block for each row."""

        def body(own: Index) -> Sequence[Loop | Store]:
            def term(at: Affine) -> Value:
                return self._element(own, at)

            return [self._run(self.size, self._first(), term, lambda at, total: self._store(own, at, total))]

        self.loops.blocks(self.others, body)

    def in_parts(self, parts: int) -> None:
        """Three phases: the totals of parts of rows, the running totals of these, and those within parts."""
        assert self.monoid is not None
        shape, length = (*self.others, parts), -(-self.size // parts)
        values = self.loops.values
        totals, ends = (self.loops.new(self.held, shape) for _ in range(2))
        neutral = values.constant(self.monoid[0].identity(self.held), self.held)

        def position(part: Affine, at: Affine) -> Value:
            return (part * length + at).value(values)

        def term(own: Index, part: Affine, at: Affine) -> Value:
            here = position(part, at)
            exists = here.lt(self.size)
            inside = Affine(((exists.select(here, self.size - 1), 1),))
            return exists.select(self._element(own, inside), neutral)

        def add(index: Index) -> Sequence[Loop | Store]:
            *own, part = index
            loop = Loop(index_value(values, "term"), length, Runs.BLOCK)
            each = term(tuple(own), part, Affine(((loop.index, 1),)))
            (left, right), result = self._names(), values.make("result", (), self.held, "r", unique=True)
            combined = (self._combine(left, right),)
            loop.accumulators.append(Accumulator((neutral,), (each,), (left,), (right,), combined, (result,)))
            return [loop, totals.store(index, result)]

        def run_over_parts(own: Index) -> Sequence[Loop | Store]:
            def store(part: Affine, total: Value) -> Sequence[Store]:
                return [ends.store((*own, part), total)]

            return [self._run(parts, self._first(), lambda part: totals.load((*own, part)), store)]

        def run_within(index: Index) -> Sequence[Loop | Store]:
            *own, part = index
            number = part.value(values)
            before = ends.load((*own, part + -1), number.gt(0))
            first = number.gt(0).select(before, self._first())

            def store(at: Affine, total: Value) -> Sequence[Loop | Store]:
                here = position(part, at)
                return self.loops.only_if(
                    here.lt(self.size), self._store(tuple(own), Affine(((here, 1),)), total)
                )

            return [self._run(length, first, lambda at: term(tuple(own), part, at), store)]

        self.loops.blocks(shape, add)
        self.loops.blocks(self.others, run_over_parts)
        self.loops.blocks(shape, run_within)

    # --- parts of bodies ---------------------------------------------------------------------------------

    def _run(
        self,
        count: int,
        initial: Value,
        term: Callable[[Affine], Value],
        store: Callable[[Affine, Value], Sequence[Loop | Store]],
    ) -> Loop:
        """A loop of a block that goes through so many terms, and what is stored of the total up to each."""
        loop = Loop(index_value(self.loops.values, "term"), count, Runs.BLOCK)
        at = Affine(((loop.index, 1),))
        left, right = self._names()
        running = self.loops.values.make("result", (), self.held, "running", unique=True)
        loop.prefixes.append(Prefix(initial, term(at), left, right, self._combine(left, right), running))
        loop.body += store(at, running)
        return loop

    def _names(self) -> tuple[Value, Value]:
        """Names of two totals."""
        make = self.loops.values.make
        return make("argument", (), self.held, "a", unique=True), make(
            "argument", (), self.held, "b", unique=True
        )

    def _combine(self, left: Value, right: Value) -> Value:
        """The total of two neighbouring parts."""
        if self.monoid is not None:
            return self.loops.apply(self.monoid[0](), self.held, left, right)
        assert isinstance(self.node.op, ops.ReduceWindow)
        (total,) = compute_scalars(self.node.op.computation, (left, right), self.loops.values)
        return total

    def _first(self) -> Value:
        """The initial value as a total."""
        return self.loops.convert(self.loops.at(self.initial, ()), self.node.dtype, self.held)

    def _index(self, own: Index, at: Affine) -> Index:
        """The index of an element, of those of its row and in the order of totals."""
        if self.reverse:
            at = at * -1 + (self.size - 1)
        return (*own[: self.axis], at, *own[self.axis :])

    def _element(self, own: Index, at: Affine) -> Value:
        return self.loops.convert(self.loops.at(self.array, self._index(own, at)), self.node.dtype, self.held)

    def _store(self, own: Index, at: Affine, total: Value) -> Sequence[Store]:
        results: Sequence[Scratch] = self.results
        return store_all(
            results, self._index(own, at), [self.loops.convert(total, self.held, self.node.dtype)]
        )
