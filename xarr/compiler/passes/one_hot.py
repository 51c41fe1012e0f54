"""Sums over the rows of each of some classes, written as a product with a one-hot matrix.

`one_hot(labels).T @ x` multiplies every row of x by a zero for each class that it does not belong to.  The same
sums come from adding each row to its class.  What the zeros do is kept: zero times an infinity or a NaN is NaN,
so where a column of x has a number that is not finite, every class but the one that it belongs to is NaN.

Rows are added to a table for each block of rows, and then the tables to each other: no sum has more than some
hundreds of terms in turn, and where blocks end does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.computations import combiner, monoids
from xarr.ir.constants import constant, full
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.op import Op
from xarr.ir.types import Ints, TensorType

_INT32: Final = np.dtype(np.int32)
_INT64: Final = np.dtype(np.int64)


class _OneHot(NamedTuple):
    """A matrix (n, classes) with a one in each row, at its label, or no one where there is no such class."""

    labels: Node
    rows: int
    classes: int
    is_transposed: bool


def one_hot_sums(graph: Graph, target: Target, worth: Callable[[Ints], bool]) -> Graph:
    """The graph with such products, and sums over the rows of one-hot matrices, as scatters.

    `worth` says whether a scatter of updates of this shape is compiled.
    """
    if not graph.op_classes.issuperset((ops.Compare, ops.Convert)):
        return graph
    sums: dict[_OneHot, _Sums] = {}
    return rewritten(graph, lambda node, operands: _scatter_rows(node, operands, sums, target, worth))


def _scatter_rows(
    node: Node,
    operands: tuple[Node, ...],
    sums: dict[_OneHot, _Sums],
    target: Target,
    worth: Callable[[Ints], bool],
) -> Node | None:
    op = node.op
    if isinstance(op, ops.Reduce) and _is_sum_of_rows(node):
        one_hot = _one_hot(operands[0], target)
        if one_hot is None or one_hot.is_transposed or not worth((one_hot.rows,)):
            return None
        return sums.setdefault(one_hot, _Sums(one_hot, target)).counts(node.dtype)
    if isinstance(op, ops.DotGeneral) and _is_product(node):
        for side in (0, 1):
            one_hot, rows = _one_hot(operands[side], target), operands[1 - side]
            contracted = (op.lhs_contracting_dimensions, op.rhs_contracting_dimensions)
            if one_hot is None or contracted[side] != (int(one_hot.is_transposed),):
                continue
            if contracted[1 - side] == (1,):
                rows = Node(ops.Transpose((1, 0)), (rows,))
            if worth(rows.shape):
                total = sums.setdefault(one_hot, _Sums(one_hot, target)).of(rows)
                return Node(ops.Transpose((1, 0)), (total,)) if side else total
    return None


def _is_sum_of_rows(node: Node) -> bool:
    op = node.op.expect(ops.Reduce)
    if len(node.operands) != 2 or op.dimensions != (0,) or len(node.operands[0].shape) != 2:
        return False
    first = node.operands[1]
    is_zero = isinstance(first.op, ops.Constant) and not np.frombuffer(first.op.raw, first.dtype)[0]
    return is_zero and monoids(op.computation) == (ops.Add,) and node.dtype in (np.float32, np.float64)


def _is_product(node: Node) -> bool:
    op = node.op.expect(ops.DotGeneral)
    if any(operand.dtype != node.dtype or len(operand.shape) != 2 for operand in node.operands):
        return False
    if op.lhs_batching_dimensions:
        return False
    return node.dtype in (np.float32, np.float64) and len(op.lhs_contracting_dimensions) == 1


def _one_hot(node: Node, target: Target) -> _OneHot | None:
    """The labels of a one-hot matrix, if a node is one."""
    is_transposed = isinstance(node.op, ops.Transpose)
    if is_transposed:
        (node,) = node.operands
    if not isinstance(node.op, ops.Convert):
        return None
    (test,) = node.operands
    if not isinstance(test.op, ops.Compare) or test.op.direction != "EQ" or len(test.shape) != 2:
        return None
    # The matrix may also be made as (classes, n).
    for axis in (0, 1):
        for labels, numbers in (test.operands, test.operands[::-1]):
            alike = _same_along(labels, 1 - axis)
            if alike is not None and _counts_along(numbers, 1 - axis):
                count, classes = test.shape[axis], test.shape[1 - axis]
                fits = target.min_classes <= classes <= target.max_classes
                if count < target.min_one_hot_rows or not fits:
                    return None
                # Else their numbers begin anew, and a label means several classes.
                if classes - 1 > np.iinfo(labels.dtype).max:
                    return None
                return _OneHot(alike, count, classes, is_transposed != bool(axis))
    return None


def _same_along(node: Node, axis: int) -> Node | None:
    """The vector that a matrix repeats along `axis`; None if that cannot be seen."""
    if not isinstance(node.op, ops.BroadcastInDim) or node.dtype.kind not in "iu":
        return None
    (operand,) = node.operands
    dims = node.op.broadcast_dimensions
    if axis in dims and operand.shape[dims.index(axis)] != 1:
        return None
    count = node.shape[1 - axis]
    if operand.tensor_type.size != count:
        return None
    if isinstance(operand.op, ops.Reshape) and operand.operands[0].shape == (count,):
        return operand.operands[0]
    return operand if operand.shape == (count,) else Node(ops.Reshape((count,)), (operand,))


def _counts_along(node: Node, axis: int) -> bool:
    """Whether a matrix is 0, 1, 2 … along `axis` and the same along the other one."""
    op = node.op
    if isinstance(op, ops.Iota):
        return op.dimension == axis
    if not isinstance(op, ops.BroadcastInDim):
        return False
    (operand,) = node.operands
    while isinstance(operand.op, ops.Reshape) and (max(operand.shape, default=0) == operand.tensor_type.size):
        (operand,) = operand.operands
    dims = [
        dim for dim, size in zip(op.broadcast_dimensions, node.operands[0].shape, strict=True) if size != 1
    ]
    return dims == [axis] and isinstance(operand.op, ops.Iota) and len(operand.shape) == 1


class _Sums:
    """The sums of rows of the classes that a one-hot matrix tells."""

    def __init__(self, matrix: _OneHot, target: Target) -> None:
        self.count, self.classes = matrix.rows, matrix.classes
        self.block = max(target.min_table_rows, 1 << (matrix.classes - 1).bit_length())
        self.blocks = -(-matrix.rows // self.block)
        shape = (self.count,)
        labels = _op(ops.Convert(_INT64), matrix.labels)
        inside = _op(
            ops.And(),
            _op(ops.Compare("GE"), labels, full(0, shape, _INT64)),
            _op(ops.Compare("LT"), labels, full(self.classes, shape, _INT64)),
        )
        none = full(-1, shape, _INT64)
        #: The class of each row, -1 for none.
        self.labels = _op(ops.Select(), inside, labels, none)
        row = Node(ops.Iota(TensorType(shape, _INT64), 0))
        block = _op(ops.ShiftRightLogical(), row, full(self.block.bit_length() - 1, shape, _INT64))
        start = _op(ops.Multiply(), block, full(self.classes, shape, _INT64))
        cell = _op(ops.Select(), inside, _op(ops.Add(), start, labels), none)
        self.targets = _op(ops.Reshape((self.count, 1)), cell)

    def counts(self, dtype: np.dtype[Any]) -> Node:
        """The number of rows of each class."""
        return self._add_rows(full(1, (self.count,), dtype))

    def of(self, rows: Node) -> Node:
        """The sums of the rows of each class, (classes, columns)."""
        total = self._add_rows(rows)
        finite = _op(ops.IsFinite(), rows)
        labels = _op(ops.BroadcastInDim(rows.shape, (0,)), _op(ops.Convert(_INT32), self.labels))
        limits = np.iinfo(_INT32)
        # The least and the greatest class that has a number in this column which is not finite.
        least, greatest = (
            _op(
                ops.BroadcastInDim(total.shape, (1,)),
                Node(
                    ops.Reduce((0,), combiner(op, _INT32)),
                    (
                        _op(ops.Select(), finite, full(first, rows.shape, _INT32), labels),
                        constant(first, _INT32),
                    ),
                ),
            )
            for op, first in ((ops.Minimum(), limits.max), (ops.Maximum(), limits.min))
        )
        own = Node(ops.Iota(TensorType(total.shape, _INT32), 0))
        alone = _op(ops.And(), _op(ops.Compare("EQ"), least, own), _op(ops.Compare("EQ"), greatest, own))
        keeps = _op(ops.Or(), _op(ops.Compare("GT"), least, greatest), alone)
        return _op(ops.Select(), keeps, total, full(np.nan, total.shape, total.dtype))

    def _add_rows(self, rows: Node) -> Node:
        """The rows of each class added up."""
        rest = rows.shape[1:]
        table = full(0, (self.blocks * self.classes, *rest), rows.dtype)
        add = combiner(ops.Add(), rows.dtype)
        dims = tuple(range(1, 1 + len(rest)))
        scatter = ops.Scatter(dims, (0,), (), (), (0,), 1, add)
        tables = _op(
            ops.Reshape((self.blocks, self.classes, *rest)), Node(scatter, (table, self.targets, rows))
        )
        return Node(ops.Reduce((0,), add), (tables, constant(0, rows.dtype)))


def _op(op: Op, *operands: Node) -> Node:
    return Node(op, operands)
