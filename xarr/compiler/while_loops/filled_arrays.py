"""Arrays that a loop fills part by part, as the stack of a scan: what they hold when it begins need not be there.

    stack[i] = f(i)          for i = 0, 1, 2 … up to its last row

Each step writes one index of a dimension over, the step's number or that counted from the end, and nothing else reads
the array.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

import numpy as np

from xarr.ir import ops
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType

_INT64: Final = np.dtype(np.int64)


def without_initial_values(loop: ops.While, operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """The operands of a loop, with memory alone in place of arrays of which it writes each element before it ends."""
    counter = find_counter(loop, operands)
    if counter is None or counter.first != 0 or ops.DynamicUpdateSlice not in loop.body.op_classes:
        return operands
    return tuple(
        [
            Node(ops.Empty(operand.tensor_type)) if _fills(loop, k, counter) else operand
            for k, operand in enumerate(operands)
        ]
    )


class Counter(NamedTuple):
    """The parameter of a body that counts the steps of its loop, the number that it begins with, and where it ends."""

    parameter: Node
    first: int
    end: int


def find_counter(loop: ops.While, operands: Sequence[Node]) -> Counter | None:
    """The counter of a loop that begins with these operands; None if it has none of which both numbers are known."""
    counted = find_limit(loop)
    if counted is None:
        return None
    number, limit = counted
    first, end = integer_of(operands[number]), integer_of(_first(loop, limit, operands))
    return None if first is None or end is None else Counter(loop.body.parameters[number], first, end)


def find_limit(loop: ops.While) -> tuple[int, Node] | None:
    """The number of the parameter that a loop counts up while it is less than a node of its condition, and that."""
    (going,) = loop.cond.results
    if not isinstance(going.op, ops.Compare) or going.op.direction != "LT":
        return None
    counter, limit = going.operands
    if counter not in loop.cond.parameters:
        return None
    number = loop.cond.parameters.index(counter)
    return (number, limit) if counts_up(loop.body.parameters[number], loop.body.results[number]) else None


def _first(loop: ops.While, node: Node, operands: Sequence[Node]) -> Node:
    """The value of a node of the condition before each step: of a parameter that no step changes, its operand."""
    if node not in loop.cond.parameters:
        return node
    number = loop.cond.parameters.index(node)
    is_fixed = loop.body.results[number] is loop.body.parameters[number]
    return operands[number] if is_fixed else node


def counts_up(old: Node, new: Node) -> bool:
    """Whether a carried number becomes the next one; of 64 bits, so that it never comes to the end of its type."""
    if not isinstance(new.op, ops.Add) or not isinstance(old.type, TensorType):
        return False
    if old.dtype != _INT64 or old.shape != () or old not in new.operands:
        return False
    (step,) = [each for each in new.operands if each is not old] or [old]
    return integer_of(step) == 1


def _fills(loop: ops.While, number: int, counter: Counter) -> bool:
    """Whether the steps write all of a carried array, and do nothing else with it."""
    body = loop.body
    old, new = body.parameters[number], body.results[number]
    if not isinstance(new.op, ops.DynamicUpdateSlice) or new.operands[0] is not old or not old.shape:
        return False
    if _uses(loop.cond, loop.cond.parameters[number]) or _uses(body, old) != 1 or _uses(body, new) != 1:
        return False
    _, update, *starts = new.operands
    sizes = list(zip(update.shape, old.shape, starts, strict=True))
    parts = [(whole, start) for part, whole, start in sizes if part != whole]
    if any(part not in (1, whole) for part, whole, _ in sizes) or len(parts) > 1:
        return False
    steps = counter.end
    return steps > 0 and all(
        whole <= steps and _is_each(start, counter.parameter, whole) for whole, start in parts
    )


def _uses(graph: Graph, node: Node) -> int:
    """The number of times that operations and results of a graph use a node."""
    users = [each.operands.count(node) for each in graph.nodes]
    return sum(users) + graph.results.count(node) + graph.ordered.count(node)


def _is_each(start: Node, counter: Node, size: int) -> bool:
    """Whether a start is each index of a dimension while a counter goes through these: itself, or from the end on."""
    start = from_start(start, (counter,))
    if isinstance(start.op, ops.Subtract):
        last, start = start.operands
        return start is counter and integer_of(last) == size - 1
    return start is counter


def from_start(node: Node, counters: Collection[Node]) -> Node:
    """A counter, which is never negative, where it would be counted from the end if it were; else the node."""
    rest = counted_number(node)
    return rest if rest is not None and rest in counters else node


def counted_number(node: Node) -> Node | None:
    """The number of which a node is the index, counted from the end where it is negative; None for other nodes."""
    if not isinstance(node.op, ops.Select) or not isinstance(node.operands[0].op, ops.Compare):
        return None
    is_negative, _, rest = node.operands
    number, zero = is_negative.operands
    is_index = is_negative.op == ops.Compare("LT") and number is rest and integer_of(zero) == 0
    return rest if is_index else None
