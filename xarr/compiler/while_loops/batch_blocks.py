"""Loops over many independent systems, one block of them after the other, so that a block stays in a cache.

    for k in range(6):                                   for each block of rows:
        a = a - a[:, :, k, None] * f(a[:, k])      →         part = a[block]
                                                             for k in range(6):
                                                                 part = part - part[:, :, k, None] * f(part[:, k])
                                                             result[block] = part

Rows are independent if each operation of a step computes those of its result from the same rows of its operands, along
a dimension that is followed from an array which the loop carries, and if the end of the loop depends on none of them.
Then each element is computed by the same operations as before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import Final, TypeAlias

import numpy as np

from xarr.compiler.target import Target
from xarr.compiler.while_loops.wanted_parts import axes_below
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.operands_first import compute_operands_first
from xarr.ir.ops.control import pack_results
from xarr.ir.types import TensorType, replace_at

#: A node, and the dimension along which a block of its rows is wanted; None for all of a node without rows.
_Key: TypeAlias = tuple[Node, int | None]
#: What an operation on a block of so many rows along a dimension is, and those dimensions of its operands.
_Rule: TypeAlias = Callable[[Node, int, int], tuple[Op, Sequence[int | None]]]

_INT64: Final = np.dtype(np.int64)


def in_blocks(
    node: Node, operands: tuple[Node, ...], target: Target, lowered: Callable[[Node], Node]
) -> Node | None:
    """The results of a While over `operands`, by the `lowered` loop over blocks; None if rows depend on one another,
    or if it does not pay.
    """
    loop = node.op.expect(ops.While)
    if loop.progress is not None or loop.body.ordered or not target.runs_blocks():
        return None
    rows = zip(loop.body.parameters, loop.body.results, strict=True)
    changing = [old for old, new in rows if new is not old and isinstance(old.type, TensorType)]
    largest = max(changing, key=lambda each: each.tensor_type.nbytes, default=None)
    if largest is None or largest.tensor_type.nbytes < target.min_blocked_bytes:
        return None
    for axis in range(len(largest.shape)):
        try:
            return _in_order(*_cut(loop, operands, target, largest, axis), operands, lowered)
        except _RowsMeet:
            continue
    return None


class _RowsMeet(Exception):
    """Rows along a dimension depend on one another, or blocks of them do not pay."""


class _RowBlock:
    """A loop for a block of rows, along one dimension of the arrays that have some.

    * `axes` - for each carried value that dimension; None for what all rows share,
    * `parameters`, `results` - of the body, by the same numbers,
    * `nbytes` - of all arrays of a step.
    """

    def __init__(self, loop: ops.While, first: int, axis: int, rows: int) -> None:
        """first, axis: of a carried array the dimension of its rows, from which those of all others follow."""
        self.loop, self.rows = loop, rows
        self.size = loop.body.parameters[first].shape[axis]
        self.axes: dict[int, int | None] = {}
        self.parameters: dict[int, Node] = {}
        self.results: dict[int, Node] = {}
        self._numbers = {each: number for number, each in enumerate(loop.body.parameters)}
        self._known: dict[_Key, Node] = {}
        self._parameter(first, axis)
        for number in self._numbers_of_condition():
            self._parameter(number, None)
        self._follow()
        for number, each in enumerate(loop.body.parameters):
            if number not in self.axes:  # none of these depends on it
                is_fixed = loop.body.results[number] is each
                self._parameter(number, None if is_fixed else self._likely_axis(each))
                self._follow()
        made = [(axis, each.tensor_type) for (_, axis), each in self._known.items() if not each.op.moves]
        rows_alone = sum(type.size for axis, type in made if axis is not None)
        if sum(type.size for axis, type in made if axis is None) > rows_alone:  # anew for each block
            raise _RowsMeet
        self.nbytes = sum(type.nbytes for axis, type in made if axis is not None)

    def _follow(self) -> None:
        """Write the results of all values whose rows are known, which may tell those of others."""
        while missing := [number for number in self.axes if number not in self.results]:
            for number in missing:
                key = self.loop.body.results[number], self.axes[number]
                self.results[number] = compute_operands_first(key, self._known, self._operands, self._compute)

    def _likely_axis(self, node: Node) -> int | None:
        """The dimension of rows, if they can lie along one alone."""
        axes = [axis for axis, size in enumerate(node.tensor_type.shape) if size == self.size]
        return axes[0] if len(axes) == 1 else None

    def _numbers_of_condition(self) -> Iterator[int]:
        cond = self.loop.cond
        used = {operand for node in cond.nodes for operand in node.operands} | set(cond.results)
        return (number for number, each in enumerate(cond.parameters) if each in used)

    def _parameter(self, number: int, axis: int | None) -> Node:
        """A parameter, whose rows lie along the same dimension wherever it is used."""
        if self.axes.setdefault(number, axis) != axis:
            raise _RowsMeet
        if number not in self.parameters:
            type = self.loop.body.parameters[number].type
            if axis is not None:
                assert isinstance(type, TensorType)
                type = type.with_shape(replace_at(type.shape, axis, self.rows))
            self.parameters[number] = parameter(type)
        return self.parameters[number]

    def _operands(self, key: _Key) -> list[_Key]:
        node, axis = key
        if node in self._numbers:
            return []
        return list(zip(node.operands, self._operation(node, axis)[1], strict=True))

    def _compute(self, key: _Key) -> Node:
        node, axis = key
        if node in self._numbers:
            return self._parameter(self._numbers[node], axis)
        op, axes = self._operation(node, axis)
        return node.rebuilt(tuple([self._known[each] for each in zip(node.operands, axes, strict=True)]), op)

    def _operation(self, node: Node, axis: int | None) -> tuple[Op, Sequence[int | None]]:
        """An operation on rows, and their dimension of each of its operands."""
        op, rule = node.op, _RULES.get(type(node.op))
        if not isinstance(node.type, TensorType) or node.type.dynamic:
            raise _RowsMeet
        if axis is None:
            if not (op.is_elementwise or isinstance(op, ops.Constant) or rule):
                raise _RowsMeet
            return op, [None] * len(node.operands)
        if node.shape[axis] != self.size:
            raise _RowsMeet
        if op.is_elementwise:
            return op, [axis if each.shape == node.shape else None for each in node.operands]
        if rule is None:
            raise _RowsMeet
        return rule(node, axis, self.rows)

    # --- its loop ----------------------------------------------------------------------------------------------

    def run(self, values: Sequence[Node], start: Node, lowered: Callable[[Node], Node]) -> list[Node]:
        """Carried values after all iterations for the rows from `start` on."""
        parameters = [each for _, each in sorted(self.parameters.items())]
        results = [each for _, each in sorted(self.results.items())]
        cond, body = self.loop.cond, Graph(parameters, results)
        inner = ops.While(cond.derive({}, cond.inline(*parameters), parameters), body)
        parts = tuple([self._part(k, value, start) for k, value in enumerate(values)])
        after = lowered(Node(inner, parts))
        rows = zip(values, [Node(ops.GetTupleElement(k), (after,)) for k in range(len(values))], strict=True)
        return [
            old if results[k] is parameters[k] else self._whole(k, old, part, start)
            for k, (old, part) in enumerate(rows)
        ]

    def _part(self, number: int, whole: Node, start: Node) -> Node:
        axis = self.axes[number]
        if axis is None:
            return whole
        op = ops.DynamicSlice(replace_at(whole.shape, axis, self.rows))
        return Node(op, (whole, *_starts(whole, axis, start)))

    def _whole(self, number: int, whole: Node, part: Node, start: Node) -> Node:
        axis = self.axes[number]
        if axis is None:
            return part
        return Node(ops.DynamicUpdateSlice(), (whole, part, *_starts(whole, axis, start)))


def _cut(
    loop: ops.While, operands: tuple[Node, ...], target: Target, largest: Node, axis: int
) -> tuple[int, list[_RowBlock]]:
    """The number of blocks of rows of a loop, the first, and the last if it has fewer rows."""
    first, size = loop.body.parameters.index(largest), largest.shape[axis]
    few = _RowBlock(loop, first, axis, target.min_blocked_rows)
    _check_gain(few, operands, target)
    most = target.max_block_bytes // max(1, few.nbytes)
    if not 0 < 2 * most * few.rows <= size:
        raise _RowsMeet
    counts = range(most * few.rows, most * few.rows // 2, -few.rows)
    rows = next((rows for rows in counts if size % rows == 0), counts[0])
    blocks = [_RowBlock(loop, first, axis, each) for each in (rows, size % rows) if each]
    return size // rows, blocks


def _check_gain(block: _RowBlock, operands: tuple[Node, ...], target: Target) -> None:
    """Refuse loops whose steps touch little, or that end before reading and writing blocks is repaid."""
    body, touched, carried = block.loop.body, 0, 0
    for number, axis in block.axes.items():
        if axis is not None:
            touched += _touched_bytes(body, body.parameters[number])
            carried += body.parameters[number].tensor_type.nbytes
    iterations = block.loop.iterations(Node(block.loop, operands))
    steps = 4 if iterations is None else iterations
    if touched < target.min_blocked_bytes or steps * touched < 4 * carried:
        raise _RowsMeet


def _in_order(
    count: int, blocks: list[_RowBlock], operands: tuple[Node, ...], lowered: Callable[[Node], Node]
) -> Node:
    """The results of a loop over blocks, which carries what the loop inside does, and of the last block."""
    block, *rest = blocks
    # What all rows share begins anew with each block, and ends alike.
    shared = [k for k in range(len(operands)) if block.axes[k] is None]
    carried = (constant(0, _INT64), *operands, *[operands[k] for k in shared])
    held = [parameter(each.type) for each in carried]
    start = Node(ops.Multiply(), (held[0], constant(block.rows, _INT64)))
    following = Node(ops.Add(), (held[0], constant(1, _INT64)))
    goes_on = Node(ops.Compare("LT"), (held[0], constant(count, _INT64)))
    first = held[1 : 1 + len(operands)]
    new = block.run(first, start, lambda inner: inner)
    rows = [old if k in shared else each for k, (old, each) in enumerate(zip(first, new, strict=True))]
    body = Graph(held, (following, *rows, *[new[k] for k in shared]))
    outer = lowered(Node(ops.While(Graph(held, (goes_on,)), body), carried))
    results = [Node(ops.GetTupleElement(1 + k), (outer,)) for k in range(len(carried) - 1)]
    whole, ends = results[: len(operands)], results[len(operands) :]
    for last in rest:
        values = [operands[k] if k in shared else each for k, each in enumerate(whole)]
        whole = last.run(values, constant(count * block.rows, _INT64), lowered)
    for k, end in zip(shared, ends, strict=True):
        whole[k] = end
    return pack_results(whole)


def _starts(whole: Node, axis: int, start: Node) -> list[Node]:
    return [start if k == axis else constant(0, _INT64) for k in range(len(whole.shape))]


def _touched_bytes(body: Graph, parameter: Node) -> int:
    """The bytes of a carried array that a step reads or writes."""
    parts = 0
    for node in body.nodes:
        if parameter not in node.operands:
            continue
        if isinstance(node.op, ops.DynamicSlice):
            parts += node.tensor_type.nbytes
        elif isinstance(node.op, ops.DynamicUpdateSlice) and node.operands.count(parameter) == 1:
            parts += node.operands[1].tensor_type.nbytes
        else:
            return parameter.tensor_type.nbytes
    return min(parts, parameter.tensor_type.nbytes)


# --- rules -----------------------------------------------------------------------------------------------------


def _iota(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    op = node.op.expect(ops.Iota)
    if op.dimension == axis:
        raise _RowsMeet
    return replace(op, type=op.type.with_shape(replace_at(node.shape, axis, rows))), ()


def _broadcast(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    assert isinstance(node.op, ops.BroadcastInDim)
    own = {to: own for own, to in axes_below(node).items()}
    return replace(node.op, shape=replace_at(node.shape, axis, rows)), [own.get(axis)]


def _reshape(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    (operand,), before = node.operands, prod(node.shape[:axis])
    for own, size in enumerate(operand.shape):
        if size == node.shape[axis] and prod(operand.shape[:own]) == before:
            return ops.Reshape(replace_at(node.shape, axis, rows)), [own]
    raise _RowsMeet


def _transpose(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    assert isinstance(node.op, ops.Transpose)
    return node.op, [node.op.permutation[axis]]


def _reverse(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    assert isinstance(node.op, ops.Reverse)
    if axis in node.op.dimensions:
        raise _RowsMeet
    return node.op, [axis]


def _slice(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    op = node.op.expect(ops.Slice)
    if node.operands[0].shape[axis] != node.shape[axis]:
        raise _RowsMeet
    return replace(op, limit_indices=replace_at(op.limit_indices, axis, rows)), [axis]


def _dynamic_slice(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    operand, *starts = node.operands
    if operand.shape[axis] != node.shape[axis]:
        raise _RowsMeet
    return ops.DynamicSlice(replace_at(node.shape, axis, rows)), [axis, *[None for _ in starts]]


def _update(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    operand, update, *starts = node.operands
    if operand.shape[axis] != update.shape[axis]:
        raise _RowsMeet
    return node.op, [axis, axis, *[None for _ in starts]]


def _concatenate(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    assert isinstance(node.op, ops.Concatenate)
    if node.op.dimension == axis:
        raise _RowsMeet
    return node.op, [axis] * len(node.operands)


def _pad(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    op = node.op.expect(ops.Pad)
    if op.low[axis] or op.high[axis] or op.interior[axis]:
        raise _RowsMeet
    return op, [axis, None]


def _reduce(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    op, count = node.op.expect(ops.Reduce), len(node.operands) // 2
    if count != 1:
        raise _RowsMeet
    kept = [own for own in range(len(node.operands[0].shape)) if own not in op.dimensions]
    return op, [kept[axis], None]


def _product(node: Node, axis: int, rows: int) -> tuple[Op, Sequence[int | None]]:
    op = node.op.expect(ops.DotGeneral)
    if axis >= len(op.lhs_batching_dimensions):
        raise _RowsMeet
    return op, [op.lhs_batching_dimensions[axis], op.rhs_batching_dimensions[axis]]


_RULES: Final[Mapping[type, _Rule]] = {
    ops.BroadcastInDim: _broadcast,
    ops.Concatenate: _concatenate,
    ops.DotGeneral: _product,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _update,
    ops.Iota: _iota,
    ops.Pad: _pad,
    ops.Reduce: _reduce,
    ops.Reshape: _reshape,
    ops.Reverse: _reverse,
    ops.Slice: _slice,
    ops.Transpose: _transpose,
}
