"""Rows that a loop exchanges, `a[where(r == k, p, where(r == p, k, r))]`, or writes if something holds,
`where(c, a.at[i].set(b), a)`, as updates of these rows.

A gather, or a choice, makes the whole array anew in each step; updates of rows change the one that the loop carries.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final, NamedTuple

import numpy as np

from xarr.ir import ops
from xarr.ir.constants import constant, full
from xarr.ir.graph import Graph, Node, rewritten

#: Rows that are moved, at most.
_MOST_ROWS: Final = 4
_UPDATES: Final = frozenset((ops.DynamicUpdateSlice, ops.Scatter))


class _Move(NamedTuple):
    """A row that another one is copied to, by the scalars of their numbers."""

    target: Node
    source: Node


def exchange_rows(graph: Graph) -> Graph:
    """The graph in which gathers that leave all rows but a few where they are update these; the same if none does."""
    return rewritten(graph, _update_rows) if ops.Gather in graph.op_classes else graph


def _update_rows(node: Node, operands: tuple[Node, ...]) -> Node | None:
    if not isinstance(node.op, ops.Gather) or not _takes_rows(node):
        return None
    array, index = operands
    moves = _moves(index)
    if not moves:
        return None
    rows = [_row(array, move.source) for move in moves]
    result = array
    # The first condition that holds decides: its row is written last.
    for move, row in zip(reversed(moves), reversed(rows), strict=True):
        kept = _row(result, move.target)
        result = _with_row(result, _choose(move.target, row, kept), move.target)
    return result


def update_under_conditions(graph: Graph) -> Graph:
    """The graph in which parts of arrays are chosen, and written, where arrays with other parts were."""
    if ops.Select not in graph.op_classes or graph.op_classes.isdisjoint(_UPDATES):
        return graph
    uses = Counter(operand for node in graph.nodes for operand in node.operands)
    uses.update(graph.results)

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if not isinstance(node.op, ops.Select):
            return None
        condition = node.operands[0] if not node.operands[0].shape else _repeated_scalar(node.operands[0])
        for side in (1, 2):
            base = node.operands[3 - side]
            updates = _updates_alone(node.operands[side], base, uses)
            if condition is None or not updates:
                continue
            scalar = operands[0] if not operands[0].shape else operands[0].operands[0]
            result = operands[3 - side]
            for update in [*_last(operands[side], len(updates))][::-1]:
                result = _update_if(scalar, side == 1, update, result)
            return result
        return None

    return rewritten(graph, rule)


def _update_if(condition: Node, wanted: bool, update: Node, array: Node) -> Node:
    """An update of an array where a condition is as wanted; else it writes what is there, or to no element."""
    _, part, *starts = update.operands
    if isinstance(update.op, ops.Scatter):
        indices, updates = part, starts
        chosen = _choose_if(condition, wanted, indices, full(-1, indices.shape, indices.dtype))
        return Node(update.op, (array, chosen, *updates))
    kept = Node(ops.DynamicSlice(part.shape), (array, *starts))
    return Node(ops.DynamicUpdateSlice(), (array, _choose_if(condition, wanted, part, kept), *starts))


def _choose_if(condition: Node, wanted: bool, one: Node, other: Node) -> Node:
    """One array where a scalar is as wanted, else the other one."""
    wide = Node(ops.BroadcastInDim(one.shape, ()), (condition,))
    return Node(ops.Select(), (wide, one, other) if wanted else (wide, other, one))


def _is_left_out(node: Node) -> bool:
    """Whether a scatter of one array writes nowhere with indices of -1."""
    op = node.op
    is_one = isinstance(op, ops.Scatter) and len(node.operands) == 3 and op.scatter_dims_to_operand_dims
    return bool(is_one) and node.operands[1].dtype.kind == "i"


def _updates_alone(node: Node, base: Node, uses: Counter[Node]) -> list[Node]:
    """The updates from a node back to the array that they update, if nothing else uses them."""
    updates = []
    while node is not base:
        is_one = isinstance(node.op, ops.DynamicUpdateSlice) or _is_left_out(node)
        if not is_one or not node.shape or uses[node] > 1:
            return []
        updates.append(node)
        node = node.operands[0]
    return updates


def _last(node: Node, count: int) -> Iterator[Node]:
    """A node that updates an array, the update before it, and so on."""
    for _ in range(count):
        yield node
        node = node.operands[0]


def _takes_rows(node: Node) -> bool:
    """Whether a gather takes as many whole rows as its operand has."""
    op = node.op.expect(ops.Gather)
    array, index = node.operands
    whole = array.shape[1:]
    if not array.shape or array.shape != node.shape or 0 in array.shape or index.shape[:1] != array.shape[:1]:
        return False
    takes = op.collapsed_slice_dims == op.start_index_map == (0,) and op.slice_sizes == (1, *whole)
    return takes and op.offset_dims == tuple(range(1, len(array.shape))) and not op.operand_batching_dims


def _moves(index: Node) -> list[_Move]:
    """The rows that are other ones, of which the first that applies counts; empty where it may be all."""
    moves: list[_Move] = []
    while isinstance(index.op, ops.Reshape):
        (index,) = index.operands
    while isinstance(index.op, ops.Select) and len(moves) < _MOST_ROWS:
        condition, chosen, rest = index.operands
        target, source = _row_of(condition), _repeated_scalar(chosen)
        if target is None or source is None or len(index.shape) != 1:
            return []
        moves.append(_Move(target, source))
        index = rest
    return moves if _is_positions(index) and len(index.shape) == 1 else []


def _is_positions(node: Node) -> bool:
    """Whether a node counts positions, with integers that do not begin anew."""
    if not isinstance(node.op, ops.Iota) or node.dtype.kind not in "iu":
        return False
    return node.shape[node.op.dimension] - 1 <= np.iinfo(node.dtype).max


def _row_of(condition: Node) -> Node | None:
    """The number that positions are compared with."""
    if not isinstance(condition.op, ops.Compare) or condition.op.direction != "EQ":
        return None
    for position, number in (condition.operands, condition.operands[::-1]):
        if _is_positions(position):
            return _repeated_scalar(number)
    return None


def _repeated_scalar(node: Node) -> Node | None:
    """The scalar that an array repeats."""
    is_repeated = isinstance(node.op, ops.BroadcastInDim) and node.operands[0].shape == ()
    return node.operands[0] if is_repeated else None


def _starts(array: Node, number: Node) -> tuple[Node, ...]:
    zero = constant(0, number.dtype)
    return (number, *(zero for _ in array.shape[1:]))


def _row(array: Node, number: Node) -> Node:
    return Node(ops.DynamicSlice((1, *array.shape[1:])), (array, *_starts(array, number)))


def _with_row(array: Node, row: Node, number: Node) -> Node:
    return Node(ops.DynamicUpdateSlice(), (array, row, *_starts(array, number)))


def _choose(number: Node, row: Node, kept: Node) -> Node:
    """The row that is written to a number, or what is there if the array has no row of that number."""
    last = kept.operands[0].shape[0] - 1
    is_row = Node(
        ops.And(),
        (
            Node(ops.Compare("GE"), (number, constant(0, number.dtype))),
            Node(ops.Compare("LE"), (number, constant(last, number.dtype))),
        ),
    )
    return Node(ops.Select(), (Node(ops.BroadcastInDim(row.shape, ()), (is_row,)), row, kept))
