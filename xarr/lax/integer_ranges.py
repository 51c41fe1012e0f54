"""Ranges of integers before they are computed: between which two numbers they lie.

An index that lies in bounds for certain needs no check when it runs, so that a loop over `x[i]` stays one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from xarr.dtypes import INTEGER, info
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr.runtime.live_values import values_at_hand

#: The least and the greatest value.
Range = tuple[int, int]

#: The counters of loops that are being recorded, and of those that were as long as they live.
_counters: Final[WeakKeyDictionary[Node, Range]] = WeakKeyDictionary()
#: Longer chains are not looked through, nor larger arrays of known values.
_DEEPEST: Final = 12
_LARGEST: Final = 4096


def counts(index: Node, start: Node, stop: Node) -> None:
    """Remember that `index` counts from `start` to below `stop`, if that says anything."""
    first, last = range_of(start), range_of(stop)
    if first is not None and last is not None and first[0] < last[1]:
        _counters[index] = first[0], last[1] - 1


def range_of(node: Node, depth: int = 0) -> Range | None:
    """Between which numbers the elements of an integer array lie, None if that is not known or there are none."""
    if not isinstance(node.type, TensorType) or node.dtype not in INTEGER or not prod(node.shape):
        return None
    if node in _counters:
        return _counters[node]
    if node.value is not None:
        values = values_at_hand(node) if prod(node.shape) <= _LARGEST else None
        return None if values is None else _range_of(values)
    rule = _RULES.get(type(node.op))
    if rule is None or depth > _DEEPEST:
        return None
    range_ = rule(node.op, node, [range_of(operand, depth + 1) for operand in node.operands])
    limits = info(node.dtype)
    return range_ if range_ is not None and limits.min <= range_[0] and range_[1] <= limits.max else None


Rule = Callable[[Any, Node, list[Range | None]], Range | None]


def _range_of(values: np.ndarray[Any, Any]) -> Range:
    return int(values.min()), int(values.max())


def _constant(op: ops.Constant, node: Node, operands: list[Range | None]) -> Range | None:
    return _range_of(op.array) if op.type.size <= _LARGEST else None


def _same(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    return operands[0]


def _of_both(combine: Callable[[Range, Range], Range | None]) -> Rule:
    def rule(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
        *_, x, y = operands
        return None if x is None or y is None else combine(x, y)

    return rule


def _product(x: Range, y: Range) -> Range:
    corners = [a * b for a in x for b in y]
    return min(corners), max(corners)


def _remainder(x: Range, y: Range) -> Range | None:
    """XLA's, with the sign of the dividend."""
    if y[0] <= 0:
        return None
    return max(x[0], 1 - y[1]) if x[0] < 0 else 0, min(x[1], y[1] - 1) if x[1] > 0 else 0


def _clamp(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    low, _, high = operands
    if low is None or high is None:
        return None
    return min(low[0], high[0]), high[1]


_RULES: Final[dict[type[Op], Rule]] = {
    ops.Constant: _constant,
    ops.Iota: lambda op, node, operands: (0, node.shape[op.dimension] - 1),
    ops.Reshape: _same,
    ops.BroadcastInDim: _same,
    ops.Transpose: _same,
    ops.Reverse: _same,
    ops.Slice: _same,
    ops.Convert: _same,
    ops.Add: _of_both(lambda x, y: (x[0] + y[0], x[1] + y[1])),
    ops.Subtract: _of_both(lambda x, y: (x[0] - y[1], x[1] - y[0])),
    ops.Multiply: _of_both(_product),
    ops.Minimum: _of_both(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    ops.Maximum: _of_both(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    ops.Remainder: _of_both(_remainder),
    ops.Select: _of_both(lambda x, y: (min(x[0], y[0]), max(x[1], y[1]))),
    ops.Clamp: _clamp,
}
