"""A graph, interpreted, with a look at what its groups declare of the integers that they read."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr_reference import interpreter
from xarr_reference.values import pack


def broken_ranges(graph: Graph, *arguments: Any) -> list[str]:
    """The operands of groups that lie out of the ranges which these declare, in a fused graph run on arguments.

    An array that may hold anything has the greatest numbers of its type.
    """
    broken: list[str] = []
    plain = interpreter.evaluate

    def evaluate(node: Node, operands: list[Any], counter: Any = None) -> Any:
        op = node.op
        if isinstance(op, ops.Empty):
            held = node.dtype.kind not in "iu"
            return np.full(node.shape, 1 if held else np.iinfo(node.dtype).max, node.dtype)
        if not isinstance(op, ops.Fusion | ops.NativeWhile):
            return plain(node, operands, counter)
        for number, range_ in enumerate(op.ranges):
            values = operands[number]
            if range_ and values.size and not range_[0] <= values.min() <= values.max() <= range_[1]:
                broken.append(
                    f"operand {number} of {op.called}: {values.min()} … {values.max()}, not {range_}"
                )
        if isinstance(op, ops.NativeWhile):
            return plain(node.rebuilt(node.operands, ops.While(op.cond, op.body)), operands)
        return pack(interpreter.run(op.computation, *operands))

    with patch.object(interpreter, "evaluate", evaluate):
        interpreter.run(graph, *arguments)
    return broken


def declared_ranges(graph: Graph) -> list[tuple[int, int]]:
    """The ranges that the groups and native loops of a graph declare, those in loops too."""
    every = [node.op for each in graph.walk() for node in each.nodes]
    declared = [op.ranges for op in every if isinstance(op, ops.Fusion | ops.NativeWhile)]
    return [range_ for ranges in declared for range_ in ranges if range_ is not None]
