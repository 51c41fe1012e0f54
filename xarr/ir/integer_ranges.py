"""Ranges of integers before they are computed: between which two numbers they lie.

An index that lies in bounds for certain needs no check when it runs, so that a loop over `x[i]` stays one loop.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.dtypes import BOOL, INTEGER, info
from xarr.ir import ops
from xarr.ir.computations import arg_direction, monoids
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.custom_calls import CHECKED_INDICES
from xarr.ir.types import TensorType

#: The least and the greatest value.
Range: TypeAlias = tuple[int, int]
#: The range of the elements of an array, None if it is not known or there are none.
RangeOf: TypeAlias = Callable[[Node], Range | None]
#: (op, node, the ranges of its operands, those of other nodes) -> the range of its result, if no number wraps around.
Rule: TypeAlias = Callable[[Any, Node, list[Range | None], RangeOf], Range | None]

#: Operations of more operands are not looked through, nor larger arrays of known values.
_MOST_OPERANDS: Final = 8
MOST_VALUES: Final = 4096
#: Numbers are not shifted by more.
_MOST_BITS: Final = 64


def has_range(node: Node) -> bool:
    """Whether a node is an array of integers or bools that has elements."""
    return isinstance(node.type, TensorType) and node.dtype in INTEGER | BOOL and bool(prod(node.shape))


def range_by_rule(node: Node, range_of: RangeOf) -> Range | None:
    """The range of the elements of what `has_range`, by those of its operands."""
    if node.dtype in BOOL:
        return 0, 1
    if isinstance(node.op, ops.GetTupleElement):
        return _range_of_part(node.operands[0], node.op.index, range_of)
    rule = _RULES.get(type(node.op))
    if rule is None or len(node.operands) > _MOST_OPERANDS:
        return None
    range_ = rule(node.op, node, [range_of(operand) for operand in node.operands], range_of)
    return range_ if range_ is not None and _contains(limits_of(node), range_) else None


def limits_of(node: Node) -> Range:
    """The least and the greatest number of an integer type."""
    limits = info(node.dtype)
    return int(limits.min), int(limits.max)


def _contains(outer: Range, inner: Range) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]


def hull(x: Range | None, y: Range | None) -> Range | None:
    """The least range around two."""
    return None if x is None or y is None else (min(x[0], y[0]), max(x[1], y[1]))


def _range_of_part(several: Node, index: int, range_of: RangeOf) -> Range | None:
    """The range of a result of an operation that has several."""
    if isinstance(several.op, ops.Sort):
        return range_of(several.operands[index])
    if isinstance(several.op, ops.Reduce) and index == 1 and arg_direction(several) is not None:
        return 0, several.operands[1].shape[several.op.dimensions[0]] - 1
    return None


def range_of_values(values: np.ndarray[Any, Any]) -> Range:
    """The range of known numbers, of which there are some."""
    return int(values.min()), int(values.max())


def _constant(op: ops.Constant, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    return range_of_values(op.array) if op.type.size <= MOST_VALUES else None


def _same(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    return operands[0]


def _range_before_conversion(
    op: Op, node: Node, operands: list[Range | None], known: RangeOf
) -> Range | None:
    """That of the number that is converted, which is one of its type if no more is known."""
    (number,) = node.operands
    return operands[0] or (limits_of(number) if number.dtype in INTEGER else None)


def _negative_range(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    (x,) = operands
    return None if x is None else (-x[1], -x[0])


def _magnitude(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    (x,) = operands
    return None if x is None else (max(0, x[0], -x[1]), max(-x[0], x[1]))


def _of_both(combine: Callable[[Range, Range], Range | None]) -> Rule:
    def rule(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
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


def _bits_of_any(x: Range, y: Range) -> Range | None:
    """No bit above the highest of two numbers that are not negative."""
    if (0, 0) in (x, y):
        return y if x == (0, 0) else x
    return None if min(x[0], y[0]) < 0 else (0, (1 << max(x[1], y[1]).bit_length()) - 1)


def _shifted_right(x: Range, y: Range) -> Range | None:
    return (x[0] >> y[1], x[1] >> y[0]) if x[0] >= 0 and y[0] >= 0 else None


def _range_of_signed_shift(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    """As that without signs, where the first bit, which it repeats in unsigned numbers too, is not set."""
    x, y = operands
    is_positive = x is not None and 2 * x[1] < limits_of(node)[1] - min(0, limits_of(node)[0])
    return _shifted_right(x, y) if x is not None and y is not None and is_positive else None


def _shifted_left(x: Range, y: Range) -> Range | None:
    return (x[0] << y[0], x[1] << y[1]) if x[0] >= 0 and 0 <= y[0] <= y[1] < _MOST_BITS else None


def _of_any(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    """Each element is one of an operand."""
    return reduce(hull, operands)


def _range_of_update(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    return hull(*operands[:2])


def _range_of_gather(
    op: ops.Gather, node: Node, operands: list[Range | None], known: RangeOf
) -> Range | None:
    """That of the array; of a window that holds nothing, zeros are read."""
    return hull(operands[0], (0, 0)) if 0 in op.slice_sizes else operands[0]


def _range_of_scatter(
    op: ops.Scatter, node: Node, operands: list[Range | None], known: RangeOf
) -> Range | None:
    """The range of both, where an update replaces an element, or the lesser or greater of them counts."""
    (result, *others), numbers = op.update_computation.results, op.update_computation.parameters
    combined = monoids(op.update_computation) or (None,)
    picks = result in numbers or combined[0] in (ops.Minimum, ops.Maximum)
    return hull(operands[0], operands[2]) if picks and not others else None


def _range_of_reduction(
    op: ops.Reduce | ops.ReduceWindow, node: Node, operands: list[Range | None], known: RangeOf
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
        return hull(array, first)
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


def _of_any_two(combine: Callable[[Range, Range], Range | None]) -> Rule:
    """Of what is known of one operand too: of the other that it is a number of its type."""

    def rule(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
        if operands == [None, None]:
            return None
        x, y = (limits_of(node) if each is None else each for each in operands)
        return combine(x, y)

    return rule


def _range_of_choice(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    """One or the other; a remainder that gets the sign of its divisor lies between 0 and that."""
    predicate, *choices = node.operands
    remainder = floored_remainder(node, known)
    if remainder is not None:
        divisor = known(remainder.operands[1])
        if divisor is not None and divisor[0] > 0:
            return 0, divisor[1] - 1
    on_true, on_false = (narrow(each, predicate, k == 0, known) for k, each in enumerate(choices))
    return hull(on_true, on_false)


#: What holds where a comparison does not, and where its operands are exchanged.
NEGATED: Final = {"LT": "GE", "GE": "LT", "GT": "LE", "LE": "GT", "EQ": "NE", "NE": "EQ"}
MIRRORED: Final = {"LT": "GT", "GT": "LT", "LE": "GE", "GE": "LE", "EQ": "EQ", "NE": "NE"}


def narrow(node: Node, predicate: Node, truth: bool, known: RangeOf) -> Range | None:
    """The range of a node where a predicate has this truth, if that compares it, or what it is a sum of."""
    range_, conditions = known(node), [predicate]
    for each in conditions:
        if truth and isinstance(each.op, ops.And):
            conditions += [operand for operand in each.operands if operand not in conditions]
        elif isinstance(each.op, ops.Compare) and each.operands[0].dtype in INTEGER:
            range_ = common(range_, _narrow_by_comparison(node, each, truth, known))
    return range_


def _narrow_by_comparison(node: Node, compared: Node, truth: bool, known: RangeOf) -> Range | None:
    if node in compared.operands:
        return _range_by_comparison(node, compared, truth, known)
    if not isinstance(node.op, ops.Add | ops.Subtract) or set(node.operands).isdisjoint(compared.operands):
        return None
    # As an index from the end, select(k < 0, k + n, k).
    own = {each: narrow(each, compared, truth, known) for each in node.operands}
    return range_by_rule(node, lambda each: own[each])


def common(x: Range | None, y: Range | None) -> Range | None:
    """The range that two have in common; one of them where that is nothing, which is never computed."""
    if x is None or y is None:
        return x or y
    both = max(x[0], y[0]), min(x[1], y[1])
    return both if both[0] <= both[1] else x


def _range_by_comparison(node: Node, predicate: Node, truth: bool, known: RangeOf) -> Range | None:
    """The range that a comparison leaves to one of its operands."""
    op, (x, y) = predicate.op, predicate.operands
    assert isinstance(op, ops.Compare)
    direction = op.direction if truth else NEGATED[op.direction]
    other = known(y if node is x else x)
    direction = direction if node is x else MIRRORED[direction]
    low, high = limits_of(node)
    if other is None:
        other = low, high
    match direction:
        case "LT" | "LE":
            return low, other[1] - (direction == "LT")
        case "GT" | "GE":
            return other[0] + (direction == "GT"), high
        case "EQ":
            return other
    return None


def floored_remainder(node: Node, known: RangeOf) -> Node | None:
    """The remainder, to which a choice adds its divisor where one of the two is negative; None for other choices."""
    wrong, added, rest = node.operands
    is_floored = says_signs_differ(wrong, known) is rest and isinstance(added.op, ops.Add)
    return rest if is_floored and added.operands == (rest, rest.operands[1]) else None


def says_signs_differ(node: Node, known: RangeOf) -> Node | None:
    """The remainder of which a node says that it is not 0, and that it or its divisor is negative; None for others."""
    if not isinstance(node.op, ops.And):
        return None
    some, differ = node.operands
    rest = some.operands[0] if _compares(some, "NE") and known(some.operands[1]) == (0, 0) else None
    if rest is None or not isinstance(rest.op, ops.Remainder) or not _compares(differ, "NE"):
        return None
    return (
        rest if [_negative_of(each, known) for each in differ.operands] == [rest, rest.operands[1]] else None
    )


def _compares(node: Node, direction: str) -> bool:
    return isinstance(node.op, ops.Compare) and node.op.direction == direction


def _negative_of(node: Node, known: RangeOf) -> Node | None:
    """The number of which a node says whether it is negative."""
    return node.operands[0] if _compares(node, "LT") and known(node.operands[1]) == (0, 0) else None


def _clamp(op: Op, node: Node, operands: list[Range | None], known: RangeOf) -> Range | None:
    low, number, high = (limits_of(node) if each is None else each for each in operands)
    least, greatest = (min(max(number[k], low[k]), high[k]) for k in range(2))
    return least, greatest


def _range_of_call(
    op: ops.CustomCall, node: Node, operands: list[Range | None], known: RangeOf
) -> Range | None:
    """The bounds of what is checked, which is never seen where it lies outside."""
    if op.call_target_name != CHECKED_INDICES:
        return None
    size = int(dict(op.attribute_items).get("size", 0))
    if size < 1:
        return None
    if operands[0] is not None and operands[0][0] >= 0:
        return common(operands[0], (0, size - 1))
    return 0, size - 1


_RULES: Final[dict[type[Op], Rule]] = {
    ops.Constant: _constant,
    ops.Iota: lambda op, node, operands, known: (0, node.shape[op.dimension] - 1),
    ops.Reshape: _same,
    ops.BroadcastInDim: _same,
    ops.Transpose: _same,
    ops.Reverse: _same,
    ops.Slice: _same,
    ops.Convert: _range_before_conversion,
    ops.Add: _of_both(lambda x, y: (x[0] + y[0], x[1] + y[1])),
    ops.Negate: _negative_range,
    ops.Abs: _magnitude,
    ops.Subtract: _of_both(lambda x, y: (x[0] - y[1], x[1] - y[0])),
    ops.Multiply: _of_both(_product),
    ops.Minimum: _of_any_two(lambda x, y: (min(x[0], y[0]), min(x[1], y[1]))),
    ops.Maximum: _of_any_two(lambda x, y: (max(x[0], y[0]), max(x[1], y[1]))),
    ops.Remainder: _of_any_two(_remainder),
    ops.Select: _range_of_choice,
    ops.Clamp: _clamp,
    ops.Concatenate: _of_any,
    ops.Pad: _of_any,
    ops.DynamicUpdateSlice: _range_of_update,
    ops.DynamicSlice: _same,
    ops.Gather: _range_of_gather,
    ops.Scatter: _range_of_scatter,
    ops.Sort: _same,
    ops.Divide: _of_any_two(_quotient),
    ops.And: _of_any_two(_bits_of_both),
    ops.Or: _of_both(_bits_of_any),
    ops.Xor: _of_both(_bits_of_any),
    ops.ShiftRightLogical: _of_both(_shifted_right),
    ops.ShiftRightArithmetic: _range_of_signed_shift,
    ops.ShiftLeft: _of_both(_shifted_left),
    ops.CustomCall: _range_of_call,
    ops.Reduce: _range_of_reduction,
    ops.ReduceWindow: _range_of_reduction,
}
