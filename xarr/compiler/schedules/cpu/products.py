"""Loops for many small matrix products, which a BLAS takes longer to get ready for than to do.

for each index of the batch:                                in parallel
    for each column of the right matrix:                    vector
        for each few rows of the left one:
            for each contracted index:                      a sum for each of the rows
"""

from __future__ import annotations

from math import prod

import numpy as np

from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.loop_ir.elements import Index
from xarr.compiler.loop_ir.loops import Affine, Kernel, Loop, Runs, in_threads
from xarr.compiler.loop_ir.scalars import Value
from xarr.compiler.schedules.cpu.window_loops import WindowLoops, put, several
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node


def build(fusion: ops.Fusion, target: Target) -> Kernel:
    """The loop program of a group around one dot_general."""
    (node,) = [node for node in fusion.computation.nodes if isinstance(node.op, ops.DotGeneral)]
    nest = _Products(fusion, target, node)
    return Kernel(nest.inputs, nest.outputs, (), (), in_threads(nest.phases()))


def takes(node: Node, target: Target) -> bool:
    """Whether these loops are to compute a dot_general: many products of small matrices.

    The columns of the right one lie together.
    """
    op = node.op
    assert isinstance(op, ops.DotGeneral)
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


class _Products(WindowLoops):
    def __init__(self, fusion: ops.Fusion, target: Target, node: Node) -> None:
        super().__init__(fusion, target)
        assert isinstance(node.op, ops.DotGeneral)
        self.node = node
        self.op = node.op
        self.shape = node.shape
        self.free = free_dimensions(node)
        #: The dimensions of the result along which there are rows, if any, and columns.
        first = len(self.op.lhs_batching_dimensions)
        self.rows = first + len(self.free[0]) - 1 if self.free[0] else None
        self.columns = len(self.shape) - 1

    def phases(self) -> list[Loop]:
        inner = {self.rows, self.columns}
        outer = [axis for axis, size in enumerate(self.shape) if size != 1 and axis not in inner]
        first, indices = self.flat([self.shape[axis] for axis in outer] or [1])
        for axis, at in zip(outer, indices, strict=False):
            self.index[axis] = at
        first.body.append(self._columns())
        return [first]

    def _columns(self) -> Loop:
        vector, self.index[self.columns] = self.loop("i", self.shape[self.columns], Runs.LANES)
        count = 1 if self.rows is None else self.shape[self.rows]
        together = several(count, self.target.max_register_sums)
        full = count // together * together
        for start, stop, width in ((0, full, together), (full, count, count - full)):
            if start < stop:
                loop, position = self.loop("i", (stop - start) // width)
                vector.body.append(loop)
                self._few_rows(loop, position * width + start, width)
        return vector

    def _few_rows(self, around: Loop, first: Affine, width: int) -> None:
        """Sum up and store the results of this many rows."""
        nothing = self.values.constant(0, self.node.dtype)
        here = tuple(self.index)
        indices = [here if self.rows is None else put(here, self.rows, first + k) for k in range(width)]
        totals = self._sums(
            around, indices, (Affine(),) * len(self.op.lhs_contracting_dimensions), [nothing] * width
        )
        for index, total in zip(indices, totals, strict=True):
            self.index = list(index)
            self.stores(around, self.node, total, self.shape)
        self.index = list(here)

    def _sums(
        self, around: Loop, indices: list[Index], summed: Index, totals: list[Value], depth: int = 0
    ) -> list[Value]:
        """The totals after products with all indices of the contracted dimensions from the one at `depth` on."""
        if depth == len(summed):
            return self._products(indices, summed, totals)
        size = self.node.operands[0].shape[self.op.lhs_contracting_dimensions[depth]]
        loop, position = self.loop("k", size)
        around.body.append(loop)
        arguments = [self.carry(loop, total) for total in totals]
        sums = self._sums(loop, indices, put(summed, depth, position), arguments, depth + 1)
        return list(self.hand_on(loop, sums))

    def _products(self, indices: list[Index], summed: Index, totals: list[Value]) -> list[Value]:
        elements = self.elements()
        left, right = self.node.operands
        weight = elements.at(right, self._operand_index(indices[0], summed, 1))
        return [
            elements.at(left, self._operand_index(index, summed, 0)).fma(weight, total)
            for index, total in zip(indices, totals, strict=True)
        ]

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
