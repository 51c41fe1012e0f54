"""Graphs of numbers in position of graphs of short arrays: each element by itself, so that moves cost nothing.

A step of an ordinary differential equation, or of a random process, is a few operations on vectors of two or three
numbers.  As numbers they stay in registers.  Longer arrays are tables: parameters that are read element by element,
and written so.

Sums are formed by halves, and the initial value comes last: of three terms init + ((x + y) + z).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import product
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.dtypes import COMPLEX, FLOAT
from xarr.ir import ops
from xarr.ir.computations import monoids
from xarr.ir.constants import constant, integer_of
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import Ints, element_types

#: The elements of an array, scalars in an array of objects of its shape.
_Elements: TypeAlias = "np.ndarray[Any, np.dtype[np.object_]]"

_INT64: Final = np.dtype(np.int64)
_UINT64: Final = np.dtype(np.uint64)
#: Elements among which one is chosen by where it lies.
_MOST_OPTIONS: Final = 9


class NotSplit(Exception):
    """There is no way to compute a node element by element, or it is too much work."""


class SingleElements:
    """The elements of nodes over parameters of which some are given as their elements.

    No array but tables has more than `most` elements, and operations cost no more than `most_work` more than on arrays.
    """

    def __init__(self, most: int, most_work: int) -> None:
        self.most, self.left = most, most_work
        #: The elements of each result of a node.
        self._results: dict[Node, list[_Elements]] = {}
        #: What became of tables.
        self._tables: dict[Node, Node] = {}

    def give(self, node: Node, elements: Sequence[Node]) -> None:
        """Let a parameter be these scalars, in row-major order."""
        self._results[node] = [_array_of(elements, node.shape)]

    def give_table(self, node: Node, table: Node) -> None:
        """Let a parameter be a table."""
        self._tables[node] = table

    def compute(self, graph: Graph) -> None:
        """Compute the nodes of a graph.  Raises NotSplit."""
        for node in graph.nodes:
            if not isinstance(node.op, ops.DotGeneral):
                self._compute(node)
                continue
            (made,) = Graph(node.operands, [node.op.decompose(*node.operands)]).results
            self.compute(Graph(node.operands, [made]))
            self._results[node] = self._results[made]

    def elements(self, node: Node) -> list[Node]:
        """The elements of a node in row-major order."""
        elements: list[Node] = self.at(node).ravel().tolist()
        return elements

    def table(self, node: Node) -> Node:
        """The table that a table became."""
        if node not in self._tables:
            raise NotSplit
        return self._tables[node]

    def at(self, node: Node) -> _Elements:
        """The elements of a node, those of a small table too."""
        if node not in self._results:
            self._limit(node.tensor_type, 0)
            table = self.table(node)
            every = product(*map(range, node.shape))
            elements = [_read(table, [constant(k, _INT64) for k in index]) for index in every]
            self.give(node, elements)
        return self._results[node][0]

    def _compute(self, node: Node) -> None:
        operands = node.operands
        if isinstance(node.op, ops.GetTupleElement) and operands[0] in self._results:
            self._results[node] = [self._results[operands[0]][node.op.index]]
        elif isinstance(node.op, ops.DynamicUpdateSlice) and operands[0] in self._tables:
            self._tables[node] = self._write(node)
        else:
            for each in element_types(node.type):
                self._limit(each, node.op.cost)
            rule = _RULES.get(type(node.op), _apply if node.op.is_elementwise else None)
            if rule is None:
                raise NotSplit
            self._results[node] = rule(self, node)

    def _limit(self, type: Any, cost: int) -> None:
        """Refuse arrays of too many elements, and too much work."""
        if type.dynamic or not 0 < type.size <= self.most:
            raise NotSplit
        self.spend((type.size - 1) * cost)

    def spend(self, work: int) -> None:
        """Count work beyond that on whole arrays."""
        self.left -= work
        if self.left < 0:
            raise NotSplit

    def starts(self, node: Node, starts: Sequence[Node], sizes: Ints) -> list[Node]:
        """Where a window of an array begins, in bounds unless it has one element in a dimension."""
        scalars = [self.elements(each)[0] for each in starts]
        return [
            _clamp(start, whole - size) if size > 1 else start
            for start, whole, size in zip(scalars, node.shape, sizes, strict=True)
        ]

    def _write(self, node: Node) -> Node:
        """A table of which elements are written one after the other, unless lanes write that many sooner."""
        table, update, *starts = node.operands
        if table not in self._tables or 2 * update.tensor_type.size > self.most:
            raise NotSplit
        first, written = self.starts(table, starts, update.shape), self._tables[table]
        for index, element in zip(np.ndindex(*update.shape), self.elements(update), strict=True):
            element = _reshape(element, (1,) * len(update.shape))
            written = Node(ops.DynamicUpdateSlice(), (written, element, *_move_starts(first, index)))
        return written


def join(elements: Sequence[Node], shape: Ints) -> Node:
    """An array of its elements."""
    if len(elements) == 1:
        return _reshape(elements[0], shape)
    return _reshape(Node(ops.Concatenate(0), tuple([_reshape(each, (1,)) for each in elements])), shape)


def split(node: Node) -> list[Node]:
    """The elements of an array, each of which is sliced."""
    return [
        _reshape(Node(ops.Slice(at, tuple([k + 1 for k in at]), (1,) * len(at)), (node,)), ())
        for at in np.ndindex(*node.shape)
    ]


def _array_of(elements: Iterable[Node], shape: Ints) -> _Elements:
    every = list(elements)
    array = np.empty(len(every), object)
    for k, each in enumerate(every):
        array[k] = each
    return array.reshape(shape)


def _reshape(node: Node, shape: Ints) -> Node:
    return node if node.shape == shape else Node(ops.Reshape(shape), (node,))


def _as_int64(number: Node) -> Node:
    if number.dtype == _UINT64:  # which may be beyond
        raise NotSplit
    return number if number.dtype == _INT64 else Node(ops.Convert(_INT64), (number,))


def _clamp(number: Node, last: int) -> Node:
    """An integer brought into [0, last], as int64."""
    known = integer_of(number) if last else 0
    if known is not None:
        return constant(min(max(0, known), last), _INT64)
    low = Node(ops.Maximum(), (_as_int64(number), constant(0, _INT64)))
    return Node(ops.Minimum(), (low, constant(last, _INT64)))


def _move_starts(starts: Sequence[Node], index: Sequence[int]) -> list[Node]:
    """The starts, so many elements behind; of one type."""
    return [_plus(_as_int64(start), k) for start, k in zip(starts, index, strict=True)]


def _plus(number: Node, k: int) -> Node:
    known = integer_of(number)
    if known is not None:
        return constant(known + k, _INT64)
    return Node(ops.Add(), (number, constant(k, _INT64))) if k else number


def _read(table: Node, index: Sequence[Node]) -> Node:
    """An element of a table."""
    one = (1,) * len(index)
    return _reshape(Node(ops.DynamicSlice(one), (table, *index)), ())


# --- a rule for each kind of operation ---------------------------------------------------------------------------


def _apply(known: SingleElements, node: Node) -> list[_Elements]:
    """An element-wise operation."""
    if any(operand.shape != node.shape for operand in node.operands):
        raise NotSplit
    rows = zip(*map(known.elements, node.operands), strict=True)
    return [_array_of([Node(node.op, row) for row in rows], node.shape)]


def _constant(known: SingleElements, node: Node) -> list[_Elements]:
    assert isinstance(node.op, ops.Constant)
    return [_array_of([constant(each, node.dtype) for each in node.op.array.flat], node.shape)]


def _iota(known: SingleElements, node: Node) -> list[_Elements]:
    numbers = [index[node.op.expect(ops.Iota).dimension] for index in np.ndindex(*node.shape)]
    return [_array_of([constant(each, node.dtype) for each in numbers], node.shape)]


def _move(change: Callable[[Any, _Elements], _Elements]) -> Callable[[SingleElements, Node], list[_Elements]]:
    """The rule of an operation of one operand that moves elements."""
    return lambda known, node: [change(node.op, known.at(node.operands[0]))]


def _broadcast(op: ops.BroadcastInDim, x: _Elements) -> _Elements:
    sizes = [1] * len(op.shape)
    for dim, size in zip(op.broadcast_dimensions, x.shape, strict=True):
        sizes[dim] = size
    return np.broadcast_to(x.reshape(sizes), op.shape)


def _slice(op: ops.Slice, x: _Elements) -> _Elements:
    rows = zip(op.start_indices, op.limit_indices, op.strides, strict=True)
    return x[tuple([slice(*row) for row in rows])]


def _pad(known: SingleElements, node: Node) -> list[_Elements]:
    op, (array, filler) = node.op, node.operands
    assert isinstance(op, ops.Pad)
    result = _array_of(known.elements(filler) * node.tensor_type.size, node.shape)
    elements = known.at(array)
    for index in np.ndindex(*array.shape):
        rows = zip(index, op.low, op.interior, strict=True)
        at = tuple([low + k * (1 + interior) for k, low, interior in rows])
        if all(0 <= k < size for k, size in zip(at, node.shape, strict=True)):
            result[at] = elements[index]
    return [result]


def _concatenate(known: SingleElements, node: Node) -> list[_Elements]:
    assert isinstance(node.op, ops.Concatenate)
    return [np.concatenate([known.at(each) for each in node.operands], node.op.dimension)]


def _dynamic_slice(known: SingleElements, node: Node) -> list[_Elements]:
    """Elements of a table where they lie; of a short array each is chosen by where the window begins."""
    array, *starts = node.operands
    first = known.starts(array, starts, node.shape)
    if array in known._tables:
        table, every = known.table(array), np.ndindex(*node.shape)
        return [_array_of([_read(table, _move_starts(first, index)) for index in every], node.shape)]
    elements = known.at(array)
    result = np.empty(node.shape, object)
    for index in np.ndindex(*node.shape):
        result[index] = _choose(elements, list(_options(array.shape, node.shape, index, first)))
    return [result]


def _options(
    shape: Ints, sizes: Ints, index: Ints, starts: Sequence[Node]
) -> Iterator[tuple[Ints, Node | None]]:
    """Where an element of a window may lie, and when it does: None where there is no condition."""
    reaches = [whole - size for whole, size in zip(shape, sizes, strict=True)]
    numbers = [_clamp(start, reach) for start, reach in zip(starts, reaches, strict=True)]
    known = [integer_of(number) for number in numbers]
    rows = zip(known, reaches, strict=True)
    ranges = [range(reach + 1) if k is None else range(k, k + 1) for k, reach in rows]
    if prod(map(len, ranges)) > _MOST_OPTIONS:
        raise NotSplit
    for begin in product(*ranges):
        holds: Node | None = None
        for number, k in zip(numbers, begin, strict=True):
            if integer_of(number) is None:
                test = Node(ops.Compare("EQ"), (number, constant(k, _INT64)))
                holds = test if holds is None else Node(ops.And(), (holds, test))
        yield tuple([k + j for k, j in zip(begin, index, strict=True)]), holds


def _choose(elements: _Elements, options: list[tuple[Ints, Node | None]]) -> Node:
    (at, _), *others = options
    chosen: Node = elements[at]
    for at, holds in others:
        assert holds is not None
        chosen = Node(ops.Select(), (holds, elements[at], chosen))
    return chosen


def _update(known: SingleElements, node: Node) -> list[_Elements]:
    """A short array of which elements are replaced."""
    array, update, *starts = node.operands
    first = known.starts(array, starts, update.shape)
    result = known.at(array).copy()
    for index, new in zip(np.ndindex(*update.shape), known.elements(update), strict=True):
        for at, holds in _options(array.shape, update.shape, index, first):
            old: Any = result[at]
            result[at] = new if holds is None else Node(ops.Select(), (holds, new, old))
    return [result]


def _reduce(known: SingleElements, node: Node) -> list[_Elements]:
    op = node.op.expect(ops.Reduce)
    count = len(node.operands) // 2
    kept = [axis for axis in range(len(node.operands[0].shape)) if axis not in op.dimensions]
    arrays = [known.at(each).transpose(*kept, *sorted(op.dimensions)) for each in node.operands[:count]]
    initial = [known.elements(each)[0] for each in node.operands[count:]]
    shape, reduced = arrays[0].shape[: len(kept)], arrays[0].shape[len(kept) :]
    # Twice, since they wait for one another.
    known.spend(2 * prod(shape) * (prod(reduced) - 1) * len(op.computation.nodes))
    rows = {}
    for at in np.ndindex(*shape):
        rows[at] = [tuple([each[(*at, *inside)] for each in arrays]) for inside in np.ndindex(*reduced)]
    return _fold(op.computation, initial, rows, shape)


def _reduce_window(known: SingleElements, node: Node) -> list[_Elements]:
    op = node.op.expect(ops.ReduceWindow)
    count = len(node.operands) // 2
    arrays = [known.at(each) for each in node.operands[:count]]
    initial = [known.elements(each)[0] for each in node.operands[count:]]
    window, base = op.window, arrays[0].shape
    shape = window.output_shape(base)
    rows = {}
    for at in np.ndindex(*shape):
        where = [window.position(at, inside, base) for inside in window.elements()]
        rows[at] = [tuple([each[index] for each in arrays]) for index in where if index is not None]
    return _fold(op.computation, initial, rows, shape)


_Row: TypeAlias = tuple[Node, ...]


def _fold(
    computation: Graph, initial: list[Node], rows: dict[Ints, list[_Row]], shape: Ints
) -> list[_Elements]:
    """The fold of the rows at each index: one array for each result."""
    dtypes = {each.dtype for each in initial}
    if any(dtype in FLOAT and dtype.itemsize < 4 for dtype in dtypes):
        raise NotSplit  # they are accumulated in float32
    in_order = monoids(computation) is None or not dtypes.isdisjoint(COMPLEX)
    fold = _fold_in_order if in_order else _fold_by_halves
    totals = [fold(computation, tuple(initial), row) for row in rows.values()]
    return [_array_of(each, shape) for each in zip(*totals, strict=True)]


def _fold_in_order(computation: Graph, initial: _Row, rows: list[_Row]) -> _Row:
    for row in rows:
        initial = computation.inline(*initial, *row)
    return initial


def _fold_by_halves(computation: Graph, initial: _Row, rows: list[_Row]) -> _Row:
    while len(rows) > 1:
        pairs = [computation.inline(*x, *y) for x, y in zip(rows[::2], rows[1::2], strict=False)]
        rows = pairs + rows[2 * len(pairs) :]
    return computation.inline(*initial, *rows[0]) if rows else initial


_RULES: Final[dict[type[Op], Callable[[SingleElements, Node], list[_Elements]]]] = {
    ops.BroadcastInDim: _move(_broadcast),
    ops.Concatenate: _concatenate,
    ops.Constant: _constant,
    ops.DynamicSlice: _dynamic_slice,
    ops.DynamicUpdateSlice: _update,
    ops.Iota: _iota,
    ops.Pad: _pad,
    ops.Reduce: _reduce,
    ops.ReduceWindow: _reduce_window,
    ops.Reshape: _move(lambda op, x: x.reshape(op.shape)),
    ops.Reverse: _move(lambda op, x: np.flip(x, op.dimensions)),
    ops.Slice: _move(_slice),
    ops.Transpose: _move(lambda op, x: x.transpose(op.permutation)),
}
