"""Ranges of integers before they are computed: between which two numbers they lie.

An index that lies in bounds for certain needs no check when it runs, so that a loop over `x[i]` stays one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np

from xarr.dtypes import BOOL, INTEGER, info
from xarr.ir import ops
from xarr.ir.computations import arg_direction, monoids
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType
from xarr.runtime.live_values import values_at_hand
from xarr.runtime.pending import StandIn

#: The least and the greatest value.
Range = tuple[int, int]

#: The counters of loops that are being recorded, and of those that were as long as they live.
_counters: Final[WeakKeyDictionary[Node, Range]] = WeakKeyDictionary()
#: Longer chains are not looked through, nor operations of more operands, nor larger arrays of known values.
_DEEPEST: Final = 12
_MOST_OPERANDS: Final = 8
_LARGEST: Final = 4096


def counts(index: Node, start: Node, stop: Node) -> None:
    """Remember that `index` counts from `start` to below `stop`, if that says anything."""
    first, last = range_of(start), range_of(stop)
    if first is not None and last is not None and first[0] < last[1]:
        _counters[index] = first[0], last[1] - 1


def range_of(node: Node, depth: int = 0) -> Range | None:
    """Between which numbers the elements of an integer array lie, None if that is not known or there are none."""
    if not isinstance(node.type, TensorType) or node.dtype not in INTEGER | BOOL or not prod(node.shape):
        return None
    if node.dtype in BOOL:
        return 0, 1
    if node in _counters:
        return _counters[node]
    if node.value is not None or type(node) is StandIn:
        values = values_at_hand(node) if prod(node.shape) <= _LARGEST else None
        return None if values is None else _range_of(values)
    if isinstance(node.op, ops.GetTupleElement):
        return _range_of_part(node.operands[0], node.op.index, depth)
    rule = _RULES.get(type(node.op))
    if rule is None or depth > _DEEPEST or len(node.operands) > _MOST_OPERANDS:
        return None
    range_ = rule(node.op, node, [range_of(operand, depth + 1) for operand in node.operands])
    limits = info(node.dtype)
    return range_ if range_ is not None and limits.min <= range_[0] and range_[1] <= limits.max else None


def _range_of_part(several: Node, index: int, depth: int) -> Range | None:
    """The range of a result of an operation that has several."""
    if isinstance(several.op, ops.Sort):
        return range_of(several.operands[index], depth + 1)
    if isinstance(several.op, ops.Reduce) and index == 1 and arg_direction(several) is not None:
        return 0, several.operands[1].shape[several.op.dimensions[0]] - 1
    return None


Rule = Callable[[Any, Node, list[Range | None]], Range | None]


def _range_of(values: np.ndarray[Any, Any]) -> Range:
    return int(values.min()), int(values.max())


def _constant(op: ops.Constant, node: Node, operands: list[Range | None]) -> Range | None:
    return _range_of(op.array) if op.type.size <= _LARGEST else None


def _same(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    return operands[0]


def _negative_range(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    (x,) = operands
    return None if x is None else (-x[1], -x[0])


def _magnitude(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    (x,) = operands
    return None if x is None else (max(0, x[0], -x[1]), max(-x[0], x[1]))


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


def _quotient(x: Range, y: Range) -> Range | None:
    """Rounded towards zero."""
    if y[0] <= 0:
        return None
    ends = [abs(a) // b * (1 if a >= 0 else -1) for a in x for b in y]
    return min(ends), max(ends)


def _bits_of_both(x: Range, y: Range) -> Range | None:
    """No bit is set that is not set in a number that is not negative."""
    bounds = [each[1] for each in (x, y) if each[0] >= 0]
    return (0, min(bounds)) if bounds else None


def _bits_kept(op: ops.And, node: Node, operands: list[Range | None]) -> Range | None:
    limits = info(node.dtype) if node.dtype in INTEGER else None
    x, y = ((int(limits.min), int(limits.max)) if each is None and limits else each for each in operands)
    return None if x is None or y is None else _bits_of_both(x, y)


def _of_any(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    """Each element is one of an operand."""
    known = [each for each in operands if each is not None]
    if len(known) < len(operands):
        return None
    return min(low for low, _ in known), max(high for _, high in known)


def _range_of_update(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    return _of_any(op, node, operands[:2])


def _range_of_reduction(
    op: ops.Reduce | ops.ReduceWindow, node: Node, operands: list[Range | None]
) -> Range | None:
    """Extremes and sums of integers; a window that is all padding has the initial value."""
    if len(operands) != 2:
        return None
    (array, first), shape = operands, node.operands[0].shape
    (combined,) = monoids(op.computation) or (None,)
    if array is None or first is None:
        return None
    if combined is ops.Add:
        terms = prod(
            [shape[axis] for axis in op.dimensions] if isinstance(op, ops.Reduce) else op.window_dimensions
        )
        return first[0] + min(0, terms * array[0]), first[1] + max(0, terms * array[1])
    if combined not in (ops.Minimum, ops.Maximum):
        return None
    if isinstance(op, ops.ReduceWindow) and not _meets_all_windows(op, node):
        return _of_any(op, node, operands)
    pick = min if combined is ops.Minimum else max
    return pick(array[0], first[0]), pick(array[1], first[1])


def _meets_all_windows(op: ops.ReduceWindow, node: Node) -> bool:
    """Whether each window has an element of the array, holes apart."""
    holes = {*op.base_dilations, *op.window_dilations}
    rows = zip(
        *(node.operands[0].shape, node.shape, op.window_dimensions, op.window_strides, op.padding),
        strict=True,
    )
    return holes <= {1} and all(
        low < window and (count - 1) * stride - low < size for size, count, window, stride, (low, _) in rows
    )


def _of_any_two(combine: Callable[[Range, Range], Range]) -> Rule:
    """Of what is known of one operand too: of the other that it is a number of its type."""

    def rule(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
        if node.dtype not in INTEGER or operands == [None, None]:
            return None
        limits = info(node.dtype)
        x, y = ((int(limits.min), int(limits.max)) if each is None else each for each in operands)
        return combine(x, y)

    return rule


def _range_of_choice(op: Op, node: Node, operands: list[Range | None]) -> Range | None:
    """One or the other; a remainder that gets the sign of its divisor lies between 0 and that."""
    _, x, y = operands
    remainder = _floored_remainder(node)
    if remainder is not None:
        divisor = range_of(remainder.operands[1])
        if divisor is not None and divisor[0] > 0:
            return 0, divisor[1] - 1
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def _floored_remainder(node: Node) -> Node | None:
    """The remainder, to which a choice adds its divisor where one of the two is negative; None for other choices."""
    wrong, added, rest = node.operands
    if not (
        isinstance(rest.op, ops.Remainder) and isinstance(added.op, ops.Add) and isinstance(wrong.op, ops.And)
    ):
        return None
    divisor = rest.operands[1]
    some, differ = wrong.operands
    signs = [_negative_of(each) for each in differ.operands] if _compares(differ, "NE") else []
    is_some = _compares(some, "NE") and some.operands[0] is rest and _is_zero(some.operands[1])
    is_floored = added.operands == (rest, divisor) and is_some and signs == [rest, divisor]
    return rest if is_floored else None


def _compares(node: Node, direction: str) -> bool:
    return isinstance(node.op, ops.Compare) and node.op.direction == direction


def _negative_of(node: Node) -> Node | None:
    """The number of which a node says whether it is negative."""
    return node.operands[0] if _compares(node, "LT") and _is_zero(node.operands[1]) else None


def _is_zero(node: Node) -> bool:
    return range_of(node) == (0, 0)


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
    ops.Negate: _negative_range,
    ops.Abs: _magnitude,
    ops.Subtract: _of_both(lambda x, y: (x[0] - y[1], x[1] - y[0])),
    ops.Multiply: _of_both(_product),
    ops.Minimum: _of_any_two(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    ops.Maximum: _of_any_two(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    ops.Remainder: _of_both(_remainder),
    ops.Select: _range_of_choice,
    ops.Clamp: _clamp,
    ops.Concatenate: _of_any,
    ops.Pad: _of_any,
    ops.DynamicUpdateSlice: _range_of_update,
    ops.DynamicSlice: _same,
    ops.Gather: _same,
    ops.Sort: _same,
    ops.Divide: _of_both(_quotient),
    ops.And: _bits_kept,
    ops.Reduce: _range_of_reduction,
    ops.ReduceWindow: _range_of_reduction,
}
