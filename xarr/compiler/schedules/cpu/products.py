"""Loops for small matrix products, which a BLAS takes longer to get ready for than to do.

Tiles of the result are summed up in registers.  Where columns of the right matrix lie side by side, they are lanes:

for each index of the batch:                                in parallel
    for each few registers of columns of the right matrix:
        for each lane of a register:                        vector
            for each few rows of the left one:
                for each contracted index:                  a sum for each row and register

Where the terms of each sum lie side by side in both matrices, these are the lanes:

for each index of the batch:                                in parallel
    for each few rows of the left matrix:
        for each few columns of the right one:
            for each contracted index:                      vector, a sum for each row and column
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isqrt, prod

import numpy as np

from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Accumulator, Affine, Kernel, Loop, Runs, in_threads
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.cpu.window_loops import WindowLoops, several, tile_sums
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import replace_at


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one dot_general."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.DotGeneral)]
    nest = (_Terms if sums_in_lanes(node) else _Columns)(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a dot_general: many products of small matrices.

    The columns of the right one lie together.
    """
    op = node.op.expect(ops.DotGeneral)
    left, right = (operand.tensor_type for operand in node.operands)
    # Of complex numbers a BLAS computes products of small matrices as fast.
    if not left.dtype == right.dtype == node.dtype or node.dtype not in (np.float32, np.float64):
        return False
    matrices = prod(left.shape[axis] for axis in op.lhs_batching_dimensions)
    others, free = free_dimensions(node)
    columns = right.shape[-1] if free and free[-1] == right.rank - 1 else 0
    rows = left.shape[others[-1]] if others else 1
    small = right.size // matrices * right.dtype.itemsize <= target.max_matrix_bytes
    many = matrices >= target.min_matrices and rows >= target.min_matrix_rows
    return many and small and columns >= target.min_vector_features


def sums_in_lanes(node: Node) -> bool:
    """Whether the terms of each sum of a product lie side by side in both matrices, and columns do not."""
    op = node.op.expect(ops.DotGeneral)
    left, right = (operand.tensor_type for operand in node.operands)
    if len(op.lhs_contracting_dimensions) != 1 or right.rank - 1 not in op.rhs_contracting_dimensions:
        return False
    return left.rank - 1 in op.lhs_contracting_dimensions


class _Products(WindowLoops):
    """The loops that both ways have in common."""

    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        super().__init__(fusion, target)
        self.node = node
        self.op = node.op.expect(ops.DotGeneral)
        self.shape = node.shape
        self.free = free_dimensions(node)
        #: The dimensions of the result along which there are rows and columns, if any.
        first = len(self.op.lhs_batching_dimensions)
        self.rows = first + len(self.free[0]) - 1 if self.free[0] else None
        self.columns = len(self.shape) - 1 if self.free[1] else None
        self.most = tile_sums(self.graph, target)

    def phases(self) -> list[Loop]:
        inner = {self.rows, self.columns}
        outer = [axis for axis, size in enumerate(self.shape) if size != 1 and axis not in inner]
        first, indices = self.flat([self.shape[axis] for axis in outer] or [1])
        for axis, at in zip(outer, indices, strict=False):
            self.index[axis] = at
        self.add_tiles(first)
        return [first]

    def add_tiles(self, around: Loop) -> None:
        """Put the loops over one product into that around it."""
        raise NotImplementedError

    def size(self, axis: int | None) -> int:
        """Rows or columns."""
        return 1 if axis is None else self.shape[axis]

    def results(self, rows: Sequence[Affine], columns: Sequence[Affine]) -> list[Index]:
        """The indices of a tile of the result, row by row."""
        here = tuple(self.index)
        left = [here if self.rows is None else replace_at(here, self.rows, row) for row in rows]
        return [
            each if self.columns is None else replace_at(each, self.columns, column)
            for each in left
            for column in columns
        ]

    def store_all(self, around: Loop, indices: Sequence[Index], totals: Sequence[Value]) -> None:
        """Store the results of a tile."""
        here = list(self.index)
        for index, total in zip(indices, totals, strict=True):
            self.index = list(index)
            self.stores(around, self.node, total, self.shape)
        self.index = here

    def factors(self, index: Index, summed: Index) -> tuple[Value, Value]:
        """The elements of both matrices whose product belongs to a result."""
        elements = self.elements()
        left, right = (
            elements.at(operand, self._operand_index(index, summed, side))
            for side, operand in enumerate(self.node.operands)
        )
        return left, right

    def _operand_index(self, index: Index, summed: Index, side: int) -> Index:
        """The index in an operand, given that in the result and those of the contracted dimensions."""
        op, free = self.op, self.free[side]
        batch = (op.lhs_batching_dimensions, op.rhs_batching_dimensions)[side]
        contracted = (op.lhs_contracting_dimensions, op.rhs_contracting_dimensions)[side]
        start = len(batch) + (len(self.free[0]) if side else 0)
        indices = dict(zip(contracted, summed, strict=True))
        indices |= dict(zip(batch, index, strict=False))
        indices |= dict(zip(free, index[start:], strict=False))
        return tuple(indices[axis] for axis in range(len(indices)))


class _Columns(_Products):
    """Columns in lanes, each sum term by term."""

    def add_tiles(self, around: Loop) -> None:
        right, itemsize = self.node.operands[1].tensor_type, self.node.dtype.itemsize
        rows, columns = self.size(self.rows), self.size(self.columns)
        height = several(rows, min(self.target.max_tile_rows, self.most))
        most = min(self.most // height, self.target.max_tile_rows)
        if right.nbytes > self.target.max_matrix_bytes:
            for vector, positions in self.registers(around, columns, itemsize, most):
                for loop, top, count in self.tiles(vector, rows, height):
                    self._tile(loop, top, count, positions)
            return
        # The right matrix is near: rows of the result are written one after the other.
        for loop, top, count in self.tiles(around, rows, height):
            for vector, positions in self.registers(loop, columns, itemsize, most):
                self._tile(vector, top, count, positions)

    def _tile(self, around: Loop, first: Affine, height: int, columns: Sequence[Affine]) -> None:
        """Sum up and store the results of a few rows and registers."""
        indices = self.results([first + k for k in range(height)], columns)
        nothing = self.values.constant(0, self.node.dtype)
        summed = (Affine(),) * len(self.op.lhs_contracting_dimensions)
        self.store_all(around, indices, self._sums(around, indices, summed, [nothing] * len(indices)))

    def _sums(
        self, around: Loop, indices: list[Index], summed: Index, totals: list[Value], depth: int = 0
    ) -> list[Value]:
        """The totals after products with all indices of the contracted dimensions from the one at `depth` on."""
        if depth == len(summed):
            pairs = [self.factors(index, summed) for index in indices]
            return [left.fma(right, total) for (left, right), total in zip(pairs, totals, strict=True)]
        size = self.node.operands[0].shape[self.op.lhs_contracting_dimensions[depth]]
        loop, position = self.loop("k", size)
        around.body.append(loop)
        arguments = [self.carry(loop, total) for total in totals]
        sums = self._sums(loop, indices, replace_at(summed, depth, position), arguments, depth + 1)
        return list(self.hand_on(loop, sums))


class _Terms(_Products):
    """Terms in lanes: as many sums as a register has lanes, and the sum of these."""

    def add_tiles(self, around: Loop) -> None:
        # The order of a sum depends on the size of a tile: it is that of every machine.
        side = isqrt(self.target.max_register_sums)
        rows, columns = self.size(self.rows), self.size(self.columns)
        for loop, top, height in self.tiles(around, rows, several(rows, side)):
            for inner, left, width in self.tiles(loop, columns, several(columns, side)):
                indices = self.results([top + k for k in range(height)], [left + k for k in range(width)])
                vector, position = self.loop("k", self.node.operands[0].shape[-1], Runs.LANES)
                inner.body.append(vector)
                sums = [self._sum(*self.factors(index, (position,))) for index in indices]
                vector.accumulators += sums
                self.store_all(inner, indices, [result for each in sums for result in each.results])

    def _sum(self, left: Value, right: Value) -> Accumulator:
        """The sum of a product's terms."""
        dtype = self.node.dtype
        total, other, x, y = (self.values.make("argument", (), dtype, "x", unique=True) for _ in range(4))
        return Accumulator(
            (self.values.constant(0, dtype),),
            (left, right),
            (total,),
            (other,),
            (total + other,),
            (self.values.make("result", (), dtype, "r", unique=True),),
            (x, y),
            (x.fma(y, total),),
        )
