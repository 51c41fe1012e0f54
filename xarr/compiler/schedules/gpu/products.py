"""Products and convolutions by tiles: a block computes some rows and columns of the result, a thread 4 of either.

Of both operands the block reads the elements that some terms need into shared memory, and each thread adds their
products to the sums in its registers; then come the next terms.  So an element is read once for each tile of the
result, and not for each element of it.  A convolution is a product too: its rows are windows, its columns output
features, and its terms the elements of a window, which are found where the tile is read.

The terms of an element are added one after the other, so the bits are the same in each run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt, prod

from xarr.compiler.functions import register_dtype
from xarr.compiler.fusion.window_work import free_dimensions, sum_dtype
from xarr.compiler.loop_ir.elements import Index, Source, strides
from xarr.compiler.loop_ir.loops import Access, Affine, Carry, Loop, Runs, Store, index_value, new_carry
from xarr.compiler.loop_ir.scalars import BOOL, DType, Value, in_order
from xarr.compiler.schedules.gpu.grid_loops import GridLoops, split_number
from xarr.compiler.schedules.serial import products
from xarr.compiler.schedules.serial.products import Factors, add_product
from xarr.compiler.schedules.serial.serial_loops import Scratch, SerialLoops, sources_of
from xarr.compiler.schedules.serial.windows import select_if
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def dot_general(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """One phase by tiles, or that of the serial schedule where tiles would stay empty or threads idle."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.DotGeneral)
    first = len(node.op.lhs_batching_dimensions)
    second = first + len(free_dimensions(node)[0])
    sides = (tuple(range(first, second)), tuple(range(second, len(node.shape))))
    tiled = _TiledSums(loops, node, sides, *products.terms_of_product(node))
    return tiled.add_phase() if tiled.pays() else products.dot_general(loops, node)


def convolution(loops: SerialLoops, node: Node) -> Sequence[Source]:
    """As for products; convolutions of groups of features are those of the serial schedule."""
    assert isinstance(loops, GridLoops) and isinstance(node.op, ops.Convolution)
    feature = node.op.out_spec[1]
    sides = (tuple(axis for axis in range(len(node.shape)) if axis != feature), (feature,))
    tiled = _TiledSums(loops, node, sides, *products.terms_of_convolution(loops, node))
    has_groups = max(node.op.feature_group_count, node.op.batch_group_count) > 1
    return tiled.add_phase() if tiled.pays() and not has_groups else products.convolution(loops, node)


@dataclass(frozen=True)
class _Side:
    """The rows of a tile, or its columns, with the operand on which they depend.

    * `operand` - the number of that,
    * `axes` - those of the result that the lines of this side go along,
    * `tile` - its elements in shared memory, term by term.
    """

    operand: int
    axes: Ints
    lines: int
    tile: Scratch


class _TiledSums:
    """Sums of products, of which an operand each has a side of the result's tiles; axes of neither are batches."""

    def __init__(
        self, loops: GridLoops, node: Node, axes: tuple[Ints, Ints], terms: Ints, factors: Factors
    ) -> None:
        self.loops, self.values, self.target, self.node = loops, loops.values, loops.target, node
        self.axes, self.terms, self.factors = axes, terms, factors
        self.dtype: DType = sum_dtype(node.operands[0].dtype, node.dtype)
        self.held = register_dtype(self.dtype)
        #: Threads along either side of a tile, results along it that a thread has, and all of them.
        self.threads = isqrt(self.target.block_threads)
        self.own = self.target.product_side if self.held.itemsize <= 8 and self.held.kind != "c" else 2
        self.side = self.threads * self.own
        self.count = prod(terms)
        self.batch = tuple(axis for axis in range(len(node.shape)) if axis not in (*axes[0], *axes[1]))

    def pays(self) -> bool:
        """Whether there are terms and lines that fill tiles, and tiles for all processors."""
        lines = [prod(self._sizes(axes)) for axes in self.axes]
        tiles = prod([*self._sizes(self.batch), *[-(-each // self.side) for each in lines]])
        return (
            self.count >= self.target.min_product_terms
            and min(lines) >= self.target.min_product_side
            and tiles >= self.target.min_product_tiles
        )

    def _sizes(self, axes: Ints) -> Ints:
        return tuple(self.node.shape[axis] for axis in axes)

    def add_phase(self) -> Sequence[Source]:
        """A phase with a block for each tile of the result."""
        results = self.loops.results_of(self.node)
        # Neighbouring threads have neighbouring columns, along the last axis of the result.
        last = len(self.node.shape) - 1
        order = (0, 1) if last in self.axes[1] else (1, 0)
        size = self.target.product_terms * (self.side + 1)
        rows, columns = (
            _Side(k, self.axes[k], prod(self._sizes(self.axes[k])), self.loops.new_shared(self.held, size))
            for k in order
        )
        tiles = [-(-each.lines // self.side) for each in (rows, columns)]

        def body(index: Index) -> Sequence[Loop | Store]:
            *batch, row, column = index
            return [self._tile(results[0], (rows, columns), tuple(batch), (row, column))]

        self.loops.blocks((*self._sizes(self.batch), *tiles), body)
        return sources_of(results)

    # --- indices -----------------------------------------------------------------------------------------

    def _index(self, batch: Index, parts: dict[int, Affine]) -> Index:
        """The index in the result: 0 along the axes that nothing says anything of."""
        known = {**dict(zip(self.batch, batch, strict=True)), **parts}
        return tuple(known.get(axis, Affine()) for axis in range(len(self.node.shape)))

    @cached_property
    def _nearest(self) -> tuple[tuple[bool, int], tuple[bool, int]]:
        """Along which axis neighbours of each operand lie side by side: whether it is one of terms, and its number."""
        names = [index_value(self.values, "axis") for _ in (*self.node.shape, *self.terms)]
        index = [Affine(((name, 1),)) for name in names]
        rank = len(self.node.shape)
        left, right, _ = self.factors(tuple(index[:rank]), tuple(index[rank:]))
        first, second = (
            self._nearest_of(self.loops.at(operand, at), names)
            for operand, at in zip(self.node.operands[:2], (left, right), strict=True)
        )
        return (first >= rank, first - rank), (second >= rank, second - rank)

    def _nearest_of(self, value: Value, names: Sequence[Value]) -> int:
        """The number of the index by which the offset of a load changes least: that of the last one if none does."""
        steps: dict[int, int] = {}
        for load in (each for each in in_order(value) if each.op == "load"):
            access: Access = load.attribute
            for operand, factor in zip(load.operands, access.factors, strict=False):
                if operand in names:
                    steps.setdefault(names.index(operand), abs(factor))
        return min(steps, key=lambda each: steps[each], default=len(names) - 1)

    @cached_property
    def _term_order(self) -> Ints:
        """The axes of terms, last the one along which neighbours of the left operand lie side by side."""
        of_terms, axis = self._nearest[0]
        rest = [each for each in range(len(self.terms)) if not of_terms or each != axis]
        return (*rest, axis) if of_terms else tuple(rest)

    def _term(self, number: Value) -> Index:
        """The index of the term of a number."""
        order = self._term_order
        if not order:
            return ()
        parts = dict(zip(order, split_number(number, tuple(self.terms[k] for k in order)), strict=True))
        return tuple(parts[axis] for axis in range(len(order)))

    # --- tiles -------------------------------------------------------------------------------------------

    def _tile(
        self, result: Scratch, sides: tuple[_Side, _Side], batch: Index, tiles: tuple[Affine, Affine]
    ) -> Loop:
        """A loop of all threads in lockstep: sums of all terms, some at a time, and their stores."""
        thread = Loop(
            index_value(self.values, "thread"), self.target.block_threads, Runs.LOCKSTEP, is_of_tile=True
        )
        depth = self.target.product_terms
        chunk = Loop(index_value(self.values, "chunk"), -(-self.count // depth))
        term = Loop(index_value(self.values, "term"), depth, is_of_tile=True)
        mask = self._mask(sides, batch)
        chunk.body += [self._fill(sides, mask, batch, tiles, chunk.index), term]
        own = [thread.index / self.threads, thread.index.rem(self.threads)]
        rows, columns = ([Affine(((each, 1),), self.threads * k) for k in range(self.own)] for each in own)

        def load(tile: Scratch, line: Affine) -> Value:
            return tile.load((Affine(((term.index, self.side + 1),)) + line,))

        zero = self.values.constant(0, self.held)
        sums = []
        for row in rows:
            for column in columns:
                outer, inner = (new_carry(self.values, self.held) for _ in range(2))
                x, y = (load(side.tile, line) for side, line in zip(sides, (row, column), strict=True))
                total = add_product(self.loops, self.dtype, x, y, inner[0])
                if mask is not None:
                    line = row if sides[0].operand == 0 else column
                    total = select_if(load(mask, line), total, inner[0])
                term.carries.append(Carry(outer[0], inner[0], total, inner[1]))
                chunk.carries.append(Carry(zero, outer[0], inner[1], outer[1]))
                sums.append(outer[1])
        thread.body.append(chunk)
        lines = [(row, column) for row in rows for column in columns]
        for (row, column), total in zip(lines, sums, strict=True):
            numbers = [tiles[0] * self.side + row, tiles[1] * self.side + column]
            thread.body += self._store(result, sides, batch, numbers, total)
        return thread

    def _mask(self, sides: tuple[_Side, _Side], batch: Index) -> Scratch | None:
        """Shared memory for which elements of the left operand exist, where the others times infinity would count."""
        index = self._index(batch, {})
        names = [Affine(((index_value(self.values, "axis"), 1),)) for _ in self.terms]
        *_, exists = self.factors(index, tuple(names))
        if exists is None or self.dtype.kind not in "fc":
            return None
        return self.loops.new_shared(BOOL, self.target.product_terms * (self.side + 1))

    def _fill(
        self,
        sides: tuple[_Side, _Side],
        mask: Scratch | None,
        batch: Index,
        tiles: tuple[Affine, Affine],
        chunk: Value,
    ) -> Loop:
        """A loop of the block that reads what both sides of a tile need for some terms."""
        depth = self.target.product_terms
        loop = Loop(index_value(self.values, "element"), self.side * depth, Runs.BLOCK, is_of_tile=True)
        for side, tile in zip(sides, tiles, strict=True):
            number = loop.index
            # Neighbouring threads read neighbours.
            along_terms = self._nearest[side.operand][0]
            line, term = (
                (number / depth, number.rem(depth))
                if along_terms
                else (number.rem(self.side), number / self.side)
            )
            at = (Affine(((term, self.side + 1), (line, 1))),)
            value, exists = self._element(
                side, batch, (tile * self.side + Affine(((line, 1),))), chunk * depth + term
            )
            loop.body.append(side.tile.store(at, value))
            if mask is not None and side.operand == 0:
                loop.body.append(
                    mask.store(at, self.values.constant(True, BOOL) if exists is None else exists)
                )
        return loop

    def _element(self, side: _Side, batch: Index, line: Affine, term: Value) -> tuple[Value, Value | None]:
        """An element of an operand, 0 where it does not exist, and whether it does."""
        number = line.value(self.values)
        parts = dict(zip(side.axes, split_number(number, self._sizes(side.axes)), strict=True))
        *at, exists = self.factors(self._index(batch, parts), self._term(term))
        conditions = [number.lt(side.lines)] if side.lines % self.side else []
        conditions += [term.lt(self.count)] if self.count % self.target.product_terms else []
        conditions += [exists] if exists is not None and side.operand == 0 else []
        predicate = None
        for condition in conditions:
            predicate = condition if predicate is None else predicate & condition
        operand = self.node.operands[side.operand]
        value = self.loops.convert(
            self.loops.at(operand, at[side.operand], predicate), operand.dtype, self.dtype
        )
        zero = self.values.constant(0, self.held)
        return (value if predicate is None else predicate.select(value, zero)), predicate

    def _store(
        self,
        result: Scratch,
        sides: tuple[_Side, _Side],
        batch: Index,
        numbers: Sequence[Affine],
        total: Value,
    ) -> Sequence[Loop | Store]:
        """Store a result, where a tile does not stick out of the array."""
        steps = strides(self.node.shape)
        offset = Affine()
        for axis, at in zip(self.batch, batch, strict=True):
            offset += at * steps[axis]
        condition = None
        for side, number in zip(sides, numbers, strict=True):
            value = number.value(self.values)
            if side.lines % self.side:
                inside = value.lt(side.lines)
                condition = inside if condition is None else condition & inside
            if side.axes == tuple(range(side.axes[0], side.axes[-1] + 1)):
                offset += number * steps[side.axes[-1]]
                continue
            for axis, at in zip(side.axes, split_number(value, self._sizes(side.axes)), strict=True):
                offset += at * steps[axis]
        store = Store(result.buffer, offset, self.loops.convert(total, self.dtype, self.node.dtype))
        return [store] if condition is None else self.loops.only_if(condition, [store])
