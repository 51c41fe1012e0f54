"""Reductions inside loops of which a part alone is wanted: of a column of a factor the rows from the step's on.

    column = a[:, j] - factor @ factor[j]
    factor[:, j] = where(arange(n) >= j, column / sqrt(column[j]), 0)

What is used of an array is followed from the results of a step back to a reduction.  If all of it lies in front of or
behind a number of the step, the reduction is written as chosen by that condition of the position; then loops leave out
what is in no part (`loop_ir.split_loops`, `loop_ir.changed_parts`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from xarr.compiler.fusion.window_work import free_dimensions
from xarr.compiler.passes.inner_products import reads_once, split_product
from xarr.compiler.while_loops.filled_arrays import counted_number, find_counter
from xarr.ir import ops
from xarr.ir.constants import constant, full, integer_of
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.integer_ranges import MIRRORED, NEGATED
from xarr.ir.operands_first import compute_operands_first
from xarr.ir.types import Ints, TensorType

_INT64: Final = np.dtype(np.int64)
#: Numbers beyond which positions are not compared.
_FAR: Final = 2**31


class StepNumber(NamedTuple):
    """`factor * symbol + constant`: the symbol is a parameter of the body, the factor 1 or -1, of a counter."""

    symbol: Node | None
    constant: int
    factor: int = 1

    def plus(self, constant: int) -> StepNumber:
        return self._replace(constant=self.constant + constant)


@dataclass(frozen=True)
class Part:
    """Positions from `first` on, in front of `end`, as far as these are known."""

    first: StepNumber | None = None
    end: StepNumber | None = None


#: By dimension the positions that are used, all of them where there is none.
Parts: TypeAlias = Mapping[int, Part]
_WHOLE: Final[Parts] = {}


def leave_out_unwanted(loop: ops.While, initial: Sequence[Node], min_terms: int) -> Graph:
    """The body of a loop that begins with these values, with a condition of each reduction of which a part is wanted.

    Each result of it has so many terms at least, and each dimension that is cut so many positions.
    """
    body = loop.body
    if body.op_classes.isdisjoint((ops.Reduce, ops.DotGeneral)) or ops.Select not in body.op_classes:
        return body
    wanted = Positions(loop, initial).used_parts()
    cut = {
        node: parts
        for node, parts in wanted.items()
        if parts and _is_long(node, min_terms) and all(node.shape[axis] >= min_terms for axis in parts)
    }
    if not cut:
        return body

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if node not in cut:
            return None
        holds = [each for axis, part in cut[node].items() for each in _conditions(node, axis, part)]
        predicate = reduce(lambda x, y: Node(ops.And(), (x, y)), holds)
        is_product = isinstance(node.op, ops.DotGeneral)
        reduced = split_product(node, operands) if is_product else node.rebuilt(operands)
        return Node(ops.Select(), (predicate, reduced, full(0, node.shape, node.dtype)))

    return rewritten(body, rule)


def _is_long(node: Node, min_terms: int) -> bool:
    """Whether a node is a reduction of so many terms, or a product that goes once through the rows of a matrix.

    Columns are summed up together, which takes less time than half of them one by one.
    """
    if isinstance(node.op, ops.DotGeneral):
        ends = zip(_contracted_axes(node.op), node.operands, strict=True)
        has_rows = all(axes[-1] == operand.tensor_type.rank - 1 for axes, operand in ends if axes)
        return has_rows and reads_once(node, min_terms)
    if not isinstance(node.op, ops.Reduce) or not isinstance(node.type, TensorType):
        return False
    return not node.type.dynamic and node.operands[0].tensor_type.size >= min_terms * node.type.size > 0


def _contracted_axes(op: ops.DotGeneral) -> tuple[Ints, Ints]:
    return op.lhs_contracting_dimensions, op.rhs_contracting_dimensions


def _conditions(node: Node, axis: int, part: Part) -> Iterator[Node]:
    """Where positions along a dimension are in a part."""
    for direction, number in (("GE", part.first), ("LT", part.end)):
        if number is not None:
            # The constant goes to the position, which does not overflow.
            position = Node(ops.Iota(TensorType(node.shape, _INT64), axis))
            if number.constant:
                shift = full(-number.constant, node.shape, _INT64)
                position = Node(ops.Add(), (position, shift))
            symbol = constant(0, _INT64) if number.symbol is None else number.symbol
            if symbol.dtype != _INT64:
                symbol = Node(ops.Convert(_INT64), (symbol,))
            if number.factor == -1:
                symbol = Node(ops.Negate(), (symbol,))
            limit = Node(ops.BroadcastInDim(node.shape, ()), (symbol,))
            yield Node(ops.Compare(direction), (position, limit))


# --- parts ---------------------------------------------------------------------------------------------------


def _join(one: Parts, other: Parts) -> Parts:
    """Parts that hold two others."""
    joined = {}
    for axis in one.keys() & other.keys():
        x, y = one[axis], other[axis]
        part = Part(_either(x.first, y.first, min), _either(x.end, y.end, max))
        if part != Part():
            joined[axis] = part
    return joined


def _either(
    x: StepNumber | None, y: StepNumber | None, choose: Callable[[int, int], int]
) -> StepNumber | None:
    if x is None or y is None or x.symbol is not y.symbol or x.factor != y.factor:
        return None
    return x._replace(constant=choose(x.constant, y.constant))


def _both(one: Parts, other: Parts) -> Parts:
    """Parts that hold what is in both of two others."""
    both = dict(one)
    for axis, part in other.items():
        own = both.get(axis, Part())
        both[axis] = Part(own.first or part.first, own.end or part.end)
    return both


def _move_parts(parts: Parts, axes: Mapping[int, int]) -> Parts:
    """The parts of an operand, whose dimensions are those of the result that `axes` says."""
    return {own: parts[axis] for own, axis in axes.items() if axis in parts}


# --- what is used --------------------------------------------------------------------------------------------


class Positions:
    """Positions in the arrays of a body: where conditions hold, and which are used."""

    def __init__(self, loop: ops.While, initial: Sequence[Node]) -> None:
        self.body = loop.body
        rows = list(zip(loop.body.parameters, loop.body.results, initial, strict=True))
        #: What a parameter is in each step, if no step changes it.
        self.fixed = {old: first for old, new, first in rows if old is new}
        #: Numbers that count up, with the least and the greatest that a step sees.
        self.counters = _ranges_of_counters(loop, initial)
        # What is known of nodes, which may be parts of many others.
        self._parts: dict[tuple[Node, bool], Parts] = {}
        self._positions: dict[Node, tuple[int, int] | None] = {}
        self._numbers: dict[Node, StepNumber | None] = {}

    def used_parts(self) -> dict[Node, Parts]:
        """For each node that is used the parts of it that are."""
        wanted: dict[Node, Parts] = dict.fromkeys((*self.body.results, *self.body.ordered), _WHOLE)
        for node in reversed(self.body.nodes):
            if node not in wanted:
                continue
            rule = _RULES.get(type(node.op))
            if rule is not None:
                parts = rule(self, node, wanted[node])
            elif node.op.is_elementwise:
                parts = [wanted[node] if each.shape == node.shape else _WHOLE for each in node.operands]
            else:
                parts = [_WHOLE] * len(node.operands)
            for operand, part in zip(node.operands, parts, strict=True):
                wanted[operand] = _join(wanted[operand], part) if operand in wanted else part
        return wanted

    # --- conditions of positions -----------------------------------------------------------------------------

    def where(self, predicate: Node, truth: bool) -> Parts:
        """The positions where a predicate may have a truth."""
        key = self.fixed.get(predicate, predicate), truth
        return compute_operands_first(
            key, self._parts, lambda key: self._operand_keys(*key), lambda key: self._where(*key)
        )

    def _operand_keys(self, predicate: Node, truth: bool) -> list[tuple[Node, bool]]:
        """The operands of a predicate that `_where` asks about, more of them in a row than Python lets calls nest."""
        op = predicate.op
        if isinstance(op, ops.And | ops.Or | ops.Not | ops.BroadcastInDim):
            own = truth is not isinstance(op, ops.Not)
            return [(self.fixed.get(each, each), own) for each in predicate.operands]
        return []

    def _where(self, predicate: Node, truth: bool) -> Parts:
        op = predicate.op
        match op:
            case ops.Not():
                return self.where(predicate.operands[0], not truth)
            case ops.And() | ops.Or():
                one, other = (self.where(each, truth) for each in predicate.operands)
                return _both(one, other) if isinstance(op, ops.And) is truth else _join(one, other)
            case ops.Compare():
                return self._where_compared(predicate, op.direction if truth else NEGATED[op.direction])
            case ops.BroadcastInDim():
                return _of_broadcast(predicate, self.where(predicate.operands[0], truth))
        return _WHOLE

    def _where_compared(self, node: Node, direction: str) -> Parts:
        left, right = node.operands
        if left.dtype.kind not in "iu":
            return _WHOLE
        position, number = self.position(left), self.number(right)
        if position is None or number is None:
            position, number, direction = self.position(right), self.number(left), MIRRORED[direction]
        if position is None or number is None or abs(number.constant) > _FAR:
            return _WHOLE
        axis, start = position
        at, behind = number.plus(-start), number.plus(1 - start)
        match direction:
            case "GE" | "GT":
                return {axis: Part(first=at if direction == "GE" else behind)}
            case "LT" | "LE":
                return {axis: Part(end=at if direction == "LT" else behind)}
            case "EQ":
                return {axis: Part(at, behind)}
        return _WHOLE

    def position(self, node: Node) -> tuple[int, int] | None:
        """The dimension along which an array has its positions, and what is added to them."""
        node = self.fixed.get(node, node)
        if node not in self._positions:
            self._positions[node] = self._position(node)
        return self._positions[node]

    def _position(self, node: Node) -> tuple[int, int] | None:
        op = node.op
        if node.dtype.kind not in "iu":
            return None
        if isinstance(op, ops.Iota):
            return (op.dimension, 0) if _fits(0, node.shape[op.dimension] - 1, node.dtype) else None
        if isinstance(op, ops.BroadcastInDim | ops.Reshape | ops.Convert):
            below = self.position(node.operands[0])
            if below is None:
                return None
            axis, start = below
            if not isinstance(op, ops.Convert):
                axes = {own: new for own, new in axes_below(node).items() if own == axis}
                if axis not in axes:
                    return None
                axis = axes[axis]
            return (axis, start) if _fits(start, start + node.shape[axis] - 1, node.dtype) else None
        if isinstance(op, ops.Add):
            for array, number in (node.operands, node.operands[::-1]):
                below, added = self.position(array), self.number(number)
                if below is not None and added is not None and added.symbol is None:
                    axis, start = below[0], below[1] + added.constant
                    ends = start, start + node.shape[axis] - 1
                    return (axis, start) if _fits(*ends, node.dtype) else None
        return None

    def number(self, node: Node) -> StepNumber | None:
        """The number that each element of an array is."""
        while isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
            (node,) = node.operands
        if not isinstance(node.type, TensorType) or node.type.size != 1 or node.dtype.kind not in "iu":
            return None
        return self._scalar(node)

    def _scalar(self, node: Node) -> StepNumber | None:
        if node not in self._numbers:
            self._numbers[node] = self._find_number(node)
        return self._numbers[node]

    def _find_number(self, node: Node) -> StepNumber | None:
        node = self._from_start(node)
        known = integer_of(self.fixed.get(node, node))
        if known is not None:
            return StepNumber(None, known)
        if node in self.counters:
            return StepNumber(node, 0)
        if isinstance(node.op, ops.Convert | ops.Reshape) and node.operands[0].dtype.kind in "iu":
            return self._in_range(self._scalar(node.operands[0]), node)
        if isinstance(node.op, ops.Add | ops.Subtract):
            return self._in_range(_combine_numbers(node.op, *map(self._scalar, node.operands)), node)
        is_number = node in self.body.parameters and node.shape == () and node.dtype.itemsize <= 8
        return StepNumber(node, 0) if is_number and node.dtype != np.uint64 else None

    def _from_start(self, node: Node) -> Node:
        """A number that is never negative, where it would be counted from the end if it were; else the node."""
        rest = counted_number(node)
        known = None if rest is None else self._scalar(rest)
        ends = None if known is None else self.range_of(known)
        return rest if rest is not None and ends is not None and ends[0] >= 0 else node

    def _in_range(self, number: StepNumber | None, node: Node) -> StepNumber | None:
        """A number of a counter that fits into the type of a node."""
        ends = None if number is None else self.range_of(number)
        if ends is None or not _fits(*ends, node.dtype):
            return None
        return number

    def range_of(self, number: StepNumber) -> tuple[int, int] | None:
        """The least and the greatest number, if they are known."""
        if number.symbol is None:
            return number.constant, number.constant
        ends = sorted([number.factor * end for end in self.counters.get(number.symbol, ())])
        return (ends[0] + number.constant, ends[1] + number.constant) if ends else None


def _ranges_of_counters(loop: ops.While, initial: Sequence[Node]) -> dict[Node, tuple[int, int]]:
    counter = find_counter(loop, initial)
    return (
        {} if counter is None or counter.first < 0 else {counter.parameter: (counter.first, counter.end - 1)}
    )


def _combine_numbers(
    op: ops.Add | ops.Subtract, left: StepNumber | None, right: StepNumber | None
) -> StepNumber | None:
    """The sum or the difference of two numbers, of which one is a constant."""
    if left is None or right is None or None not in (left.symbol, right.symbol):
        return None
    sign = 1 if isinstance(op, ops.Add) else -1
    constant = left.constant + sign * right.constant
    if right.symbol is None:
        return left._replace(constant=constant)
    return StepNumber(right.symbol, constant, sign * right.factor)


def _fits(low: int, high: int, dtype: np.dtype[Any]) -> bool:
    info = np.iinfo(dtype)
    return int(info.min) <= low and high <= int(info.max)


# --- rules: by operand the parts that are used, where parts of a node are ----------------------------------------


def axes_below(node: Node) -> dict[int, int]:
    """For dimensions of the operand of a broadcast or reshape those of the result along which the same elements lie."""
    op, (operand,) = node.op, node.operands
    if isinstance(op, ops.BroadcastInDim):
        return {
            own: axis
            for own, axis in enumerate(op.broadcast_dimensions)
            if operand.shape[own] == node.shape[axis]
        }
    large = [[axis for axis, size in enumerate(each.shape) if size != 1] for each in (operand, node)]
    sizes = [[each.shape[axis] for axis in axes] for each, axes in zip((operand, node), large, strict=True)]
    return dict(zip(*large, strict=True)) if sizes[0] == sizes[1] else {}


def _of_broadcast(node: Node, parts: Parts) -> Parts:
    """The parts of the result of a broadcast or reshape that has elements of these parts."""
    return {axis: parts[own] for own, axis in axes_below(node).items() if own in parts}


def _same_elements(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    return [_move_parts(parts, axes_below(node))]


def _transpose(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    assert isinstance(node.op, ops.Transpose)
    return [_move_parts(parts, {own: axis for axis, own in enumerate(node.op.permutation)})]


def _select(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    predicate = node.operands[0]
    if not predicate.shape and node.shape:
        return [_WHOLE, parts, parts]
    values = [_both(parts, known.where(predicate, truth)) for truth in (True, False)]
    return [parts, *values]


def _dynamic_slice(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    operand, *starts = node.operands
    used: dict[int, Part] = {}
    for axis, (whole, size, start) in enumerate(zip(operand.shape, node.shape, starts, strict=True)):
        if whole == size:
            used |= {axis: parts[axis]} if axis in parts else {}
            continue
        first = known.number(start)
        ends = None if first is None else known.range_of(first)
        if first is not None and ends is not None and ends[0] >= 0 and ends[1] <= whole - size:
            used[axis] = Part(first, first.plus(size))
    return [used, *[_WHOLE for _ in starts]]


def _slice(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    (operand,) = node.operands
    same = [axis for axis in parts if operand.shape[axis] == node.shape[axis]]
    return [{axis: parts[axis] for axis in same}]


def _reduce(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    assert isinstance(node.op, ops.Reduce)
    count = len(node.operands) // 2
    kept = [axis for axis in range(len(node.operands[0].shape)) if axis not in node.op.dimensions]
    own = _move_parts(parts, {axis: k for k, axis in enumerate(kept)})
    return [own] * count + [_WHOLE] * count


def _product(known: Positions, node: Node, parts: Parts) -> list[Parts]:
    op = node.op.expect(ops.DotGeneral)
    first, used = len(op.lhs_batching_dimensions), []
    for free in free_dimensions(node):
        used.append(_move_parts(parts, {axis: first + k for k, axis in enumerate(free)}))
        first += len(free)
    return used


_RULES: Final[Mapping[type, Callable[[Positions, Node, Parts], list[Parts]]]] = {
    ops.BroadcastInDim: _same_elements,
    ops.DotGeneral: _product,
    ops.DynamicSlice: _dynamic_slice,
    ops.Reduce: _reduce,
    ops.Reshape: _same_elements,
    ops.Select: _select,
    ops.Slice: _slice,
    ops.Transpose: _transpose,
}
