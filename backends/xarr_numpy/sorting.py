"""Sort: NumPy's own sorts for the comparators that it has, a merge sort of whole arrays for any other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.dtypes import COMPLEX, EXTENDED_FLOAT, FLOAT
from xarr.ir import ops
from xarr.ir.computations import lexicographic
from xarr.ir.graph import Graph, Node
from xarr_numpy.kernels import total_order
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]


# --- kernels -----------------------------------------------------------------------------------------


def sort_keys(arrays: Arrays, axis: int, keys: int) -> Arrays:
    """Ascending by the first `keys` arrays, stable: -0 = +0, NaN last, complex numbers by their parts."""
    if len(arrays) == 1 and arrays[0].dtype not in COMPLEX:
        return (_sort_one(arrays[0], axis),)
    columns = [part for x in arrays[:keys] for part in _parts(x)]
    return _taken(arrays, np.lexsort(columns[::-1], axis=axis), axis)


def _parts(x: Array) -> tuple[Array, ...]:
    return (x.real, x.imag) if x.dtype in COMPLEX else (_ordered(x),)


def _ordered(x: Array) -> Array:
    """An array that NumPy sorts as x should be."""
    return x.astype(np.float32) if x.dtype in EXTENDED_FLOAT else x


def _sort_one(x: Array, axis: int) -> Array:
    if x.dtype in EXTENDED_FLOAT:
        return _taken((x,), np.argsort(_ordered(x), axis=axis, kind="stable"), axis)[0]
    found = np.sort(x, axis=axis)
    # NumPy's fastest sort is not stable, which shows only among equal elements with different bits.
    if x.dtype in FLOAT and ((found == 0) | np.isnan(found)).any():
        return np.sort(x, axis=axis, kind="stable")
    return found


def sort_by(arrays: Arrays, axis: int, key: int, descending: bool, total: bool) -> Arrays:
    """By array `key` alone, stable; with `total`, in the total order of floats."""
    column = total_order(arrays[key]) if total else _ordered(arrays[key])
    if not descending:
        return _taken(arrays, np.argsort(column, axis=axis, kind="stable"), axis)
    # The reverse of an ascending order of the reversed elements leaves equal ones as they stood.
    backwards = np.flip(np.argsort(np.flip(column, axis), axis=axis, kind="stable"), axis)
    return _taken(arrays, column.shape[axis] - 1 - backwards, axis)


def _taken(arrays: Arrays, order: Array, axis: int) -> Arrays:
    return tuple(np.take_along_axis(x, order, axis) for x in arrays)


def merge_sort(before: Callable[..., tuple[Any, ...]], arrays: Arrays, axis: int) -> Arrays:
    """Stable order by `before(a0, b0, a1, b1 …)`, a computation on lanes.

    Runs of width 1, 2, 4 … are merged; the place of every element in the merged run is its own place
    plus the number of elements of the other run that go before it, found for all at once by binary
    search.  `before` runs O(log² n) times on whole arrays.  A relation that is no order still gives a
    permutation.
    """
    rows = tuple(np.moveaxis(x, axis, -1) for x in arrays)
    count = rows[0].shape[-1]
    width = 1
    while width < count:
        places = _merged_places(before, rows, count, width)
        rows = _taken(rows, np.argsort(places, axis=-1, kind="stable"), -1)
        width *= 2
    return tuple(np.moveaxis(x, -1, axis) for x in rows)


def _merged_places(before: Callable[..., tuple[Any, ...]], rows: Arrays, count: int, width: int) -> Array:
    place = np.arange(count)
    base = place // (2 * width) * (2 * width)
    middle = np.minimum(base + width, count)
    in_left = place < middle
    first = np.where(in_left, middle, base)
    last = np.where(in_left, np.minimum(base + 2 * width, count), middle)
    low, high = (np.broadcast_to(bound, rows[0].shape) for bound in (first, last))
    for _ in range(width.bit_length()):
        probe = (low + high) // 2
        others = _taken(rows, np.minimum(probe, count - 1), -1)
        # Of equal elements the one of the left run goes first, so left asks "is it before me?" and
        # right asks "am I not before it?".
        pairs = [
            (np.where(in_left, other, own), np.where(in_left, own, other))
            for own, other in zip(rows, others, strict=True)
        ]
        ahead = np.equal(before(*[side for pair in pairs for side in pair])[0], in_left)
        searching = low < high
        low, high = np.where(searching & ahead, probe + 1, low), np.where(searching & ~ahead, probe, high)
    places: Array = place + low - first - np.where(in_left, 0, width)
    return places


# --- rows --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Order:
    """A comparator of one array: a LT b or a GT b."""

    key: int
    descending: bool
    total: bool


def order_of(comparator: Graph) -> Order | None:
    """The order by a single array that the comparator is, if it is one."""
    if len(comparator.nodes) != 1 or comparator.results != comparator.nodes:
        return None
    (node,) = comparator.nodes
    if not isinstance(node.op, ops.Compare) or node.op.direction not in ("LT", "GT"):
        return None
    places = [comparator.parameters.index(operand) for operand in node.operands]
    if min(places) % 2 or max(places) != min(places) + 1:
        return None
    reversed_operands = places[0] > places[1]
    return Order(min(places) // 2, (node.op.direction == "GT") != reversed_operands, node.op.total_order)


def _sort(emitter: Emitter, node: Node) -> str:
    op = node.op
    assert isinstance(op, ops.Sort)
    arrays = f"({''.join(f'{emitter.full(operand)}, ' for operand in node.operands)})"
    return _sort_call(emitter, node, op, arrays) + ("" if len(node.operands) > 1 else "[0]")


def _sort_call(emitter: Emitter, node: Node, op: ops.Sort, arrays: str) -> str:
    order = order_of(op.comparator)
    dtypes = [operand.dtype for operand in node.operands]
    if order is not None:
        return f"sort_by({arrays}, {op.dimension}, {order.key}, {order.descending}, {order.total})"
    for keys in range(1, len(dtypes) + 1):
        if op.comparator == lexicographic(dtypes, keys):
            return f"sort_keys({arrays}, {op.dimension}, {keys})"
    return f"merge_sort({emitter.function(op.comparator, lanes=True)}, {arrays}, {op.dimension})"


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (sort_keys, sort_by, merge_sort)}

ROWS: Final[Rows] = {ops.Sort: _sort}
