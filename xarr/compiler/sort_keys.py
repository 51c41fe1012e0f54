"""What a comparator orders by, if that can be read from it: columns that are computed from each element alone.

lambda a, b: abs(a) < abs(b)                              abs(a), ascending
lambda a, b, c, d: a > b or (a == b and c < d)            a descending, then c ascending
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.constants import full
from xarr.ir.graph import Graph, Node
from xarr.ir.operands_first import reach

_INT64: Final = np.dtype(np.int64)
_FLOATS: Final = frozenset(map(np.dtype, (np.float16, np.float32, np.float64)))


@dataclass(frozen=True)
class Column:
    """The order of a column's values; `total` is the total order of floats."""

    descending: bool
    total: bool


@dataclass(frozen=True)
class Order:
    """(a0, a1 …) -> columns, of which the first that differs decides."""

    key: Graph
    columns: tuple[Column, ...]

    @property
    def array(self) -> int | None:
        """The array that is the only column as it stands, if it is so simple."""
        (first, *others), parameters = self.key.results, self.key.parameters
        return parameters.index(first) if not others and first in parameters else None


def order_of(comparator: Graph) -> Order | None:
    """The order by columns that a comparator (a0, b0, a1, b1 …) is, if it can be seen to be one."""
    ahead, behind = comparator.parameters[::2], comparator.parameters[1::2]
    columns, keys = [], []
    rest: Node | None = comparator.results[0]
    while rest is not None:
        head, rest = _head(rest)
        if head is None:
            return None
        assert isinstance(head.op, ops.Compare)
        x, y = head.operands
        turned = _uses(y, ahead) or _uses(x, behind)
        if turned:
            x, y = y, x
        if not _are_alike(x, ahead, y, behind):
            return None
        keys.append(x)
        columns.append(Column((head.op.direction == "GT") != turned, head.op.total_order))
    return Order(Graph(ahead, keys, "key"), tuple(columns))


def are_ranked(size: int, elements: int, target: Target) -> bool:
    """Whether sorting rows of such a size, of so many elements in all, by counting what comes before each pays."""
    return size <= target.max_ranked_row and elements * size <= target.max_rank_comparisons


def is_order(comparator: Graph) -> bool:
    """Whether a comparator is seen to be a strict weak order of all elements, NaN among them."""
    order = order_of(comparator)
    return order is not None and all(
        column.total or key.dtype.kind in "iub"
        for key, column in zip(order.key.results, order.columns, strict=True)
    )


def integer_keys(node: Node) -> list[Node] | None:
    """For each column of a sort an int64 for each element, ascending in the order of that column.

    None where they do not say all: of a comparator that is no order, and of floats with bits that are none of NumPy's.
    """
    comparator = node.op.expect(ops.Sort).comparator
    order = order_of(comparator)
    if order is None or not is_order(comparator):
        return None
    keys = []
    for value, column in zip(order.key.results, order.columns, strict=True):
        key = ops.Map((0,), Graph(order.key.parameters, [value])).decompose(*node.operands)
        if key is None or (key.dtype.kind not in "biu" and key.dtype not in _FLOATS):
            return None
        if key.dtype in _FLOATS:
            key = turn_negative_bits(_as_bits(key))
        elif key.dtype == np.uint64:
            key = _as_bits(key)
            key = Node(ops.Xor(), (key, full(np.iinfo(_INT64).min, key.shape, _INT64)))
        key = key if key.dtype == _INT64 else Node(ops.Convert(_INT64), (key,))
        keys.append(Node(ops.Not(), (key,)) if column.descending else key)
    return keys


def _as_bits(numbers: Node) -> Node:
    return Node(ops.BitcastConvert(np.dtype(f"i{numbers.dtype.itemsize}")), (numbers,))


def turn_negative_bits(bits: Node) -> Node:
    """Integers in the total order of the floats of which these are the bits; and these of those.

    Of negative ones all bits but the sign are turned.
    """
    dtype = bits.dtype
    most, last = full(np.iinfo(dtype).max, bits.shape, dtype), full(8 * dtype.itemsize - 1, bits.shape, dtype)
    turned = Node(ops.And(), (Node(ops.ShiftRightArithmetic(), (bits, last)), most))
    return Node(ops.Xor(), (bits, turned))


def _head(node: Node) -> tuple[Node | None, Node | None]:
    """The strict comparison that decides first, and what decides where its operands are equal."""
    if _is_compare(node, "LT", "GT"):
        return node, None
    if isinstance(node.op, ops.Or):
        for head, other in (node.operands, node.operands[::-1]):
            if isinstance(other.op, ops.And) and _is_compare(head, "LT", "GT"):
                for equal, rest in (other.operands, other.operands[::-1]):
                    if _is_tie(equal, head, "EQ"):
                        return head, rest
    if isinstance(node.op, ops.Select):
        condition, first, second = node.operands
        for direction, head, rest in (("EQ", second, first), ("NE", first, second)):
            if _is_compare(head, "LT", "GT") and _is_tie(condition, head, direction):
                return head, rest
    return None, None


def _is_compare(node: Node, *directions: str) -> bool:
    return isinstance(node.op, ops.Compare) and node.op.direction in directions


def _is_tie(node: Node, head: Node, direction: str) -> bool:
    """Whether a node compares the operands of `head`."""
    same = node.operands in (head.operands, head.operands[::-1])
    return node.op == ops.Compare(direction, head.op.expect(ops.Compare).total_order) and same


def _uses(node: Node, parameters: Sequence[Node]) -> bool:
    """Whether a value depends on one of the parameters."""
    reached = reach([node], lambda each: each.operands)
    return not set(parameters).isdisjoint(reached)


def _are_alike(x: Node, ahead: Sequence[Node], y: Node, behind: Sequence[Node]) -> bool:
    """Whether x is computed of `ahead` as y is of `behind`."""
    if _uses(x, behind) or _uses(y, ahead):
        return False
    return Graph(ahead, [x]) == Graph(behind, [y])
