"""Arrays that a loop fills part by part, as the stack of a scan: what they hold when it begins need not be there.

    stack[i] = f(i)          for i = 0, 1, 2 … up to its last row

Each step writes one index of a dimension over, the step's number or that counted from the end, and nothing else reads
the array.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType

_INT64: Final = np.dtype(np.int64)


def without_initial_values(loop: ops.While, operands: tuple[Node, ...]) -> tuple[Node, ...]:
    """The operands of a loop, with memory alone in place of arrays of which it writes each element before it ends."""
    counter = _counter(loop, operands)
    if counter is None or ops.DynamicUpdateSlice not in loop.body.op_classes:
        return operands
    parameter, steps = counter
    return tuple(
        [
            Node(ops.Empty(operand.tensor_type)) if _fills(loop, k, parameter, steps) else operand
            for k, operand in enumerate(operands)
        ]
    )


def _counter(loop: ops.While, operands: Sequence[Node]) -> tuple[Node, int] | None:
    """The parameter of a body that counts the steps of its loop from 0, and their number; None if that is not known."""
    (going,) = loop.cond.results
    if not isinstance(going.op, ops.Compare) or going.op.direction != "LT":
        return None
    counter, limit = going.operands
    if counter not in loop.cond.parameters:
        return None
    number = loop.cond.parameters.index(counter)
    old, new = loop.body.parameters[number], loop.body.results[number]
    if not counts_up(old, new) or _constant(operands[number]) != 0:
        return None
    steps = _constant(_first(loop, limit, operands))
    return None if steps is None else (old, steps)


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
    return _constant(step) == 1


def _constant(node: Node) -> int | None:
    """The number that a node is, None if it is no constant."""
    return int(node.op.array) if isinstance(node.op, ops.Constant) and node.shape == () else None


def _fills(loop: ops.While, number: int, counter: Node, steps: int) -> bool:
    """Whether so many steps write all of a carried array, and do nothing else with it."""
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
    return all(whole <= steps and _is_each(start, counter, whole) for whole, start in parts) and steps > 0


def _uses(graph: Graph, node: Node) -> int:
    """The number of times that operations and results of a graph use a node."""
    users = [each.operands.count(node) for each in graph.nodes]
    return sum(users) + graph.results.count(node) + graph.ordered.count(node)


def _is_each(start: Node, counter: Node, size: int) -> bool:
    """Whether a start is each index of a dimension while a counter goes through these: itself, or from the end on."""
    start = from_start(start, (counter,))
    if isinstance(start.op, ops.Subtract):
        last, start = start.operands
        return start is counter and _constant(last) == size - 1
    return start is counter


def from_start(node: Node, counters: Collection[Node]) -> Node:
    """A counter, which is never negative, where it would be counted from the end if it were; else the node."""
    if isinstance(node.op, ops.Select):
        is_negative, _, rest = node.operands
        if rest in counters and isinstance(is_negative.op, ops.Compare) and is_negative.op.direction == "LT":
            number, zero = is_negative.operands
            if number is rest and isinstance(zero.op, ops.Constant) and not int(zero.op.array):
                return rest
    return node
