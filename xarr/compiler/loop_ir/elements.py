"""One element of a node: what to compute, and from which elements of which buffers.

`Elements.at(node, index)` follows a graph from a result's index to the elements that it is made of.  Moving
operations compute nothing: they only change the index on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import zip_longest
from math import prod
from typing import Final, TypeAlias

from xarr.compiler.functions import apply_elementwise, register_dtype
from xarr.compiler.loop_ir.computed_indices import gather_index
from xarr.compiler.loop_ir.loops import Affine, Buffer, Role, load
from xarr.compiler.loop_ir.scalars import INT64, DType, Value, Values
from xarr.dtypes import SUB_BYTE
from xarr.ir import ops
from xarr.ir.graph import Graph, Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType, Type, replace_at

Index: TypeAlias = tuple[Affine, ...]
#: A node's element at an index, None if it must be computed; where the predicate (None: always true) is
#: false it need not exist.
Source = Callable[[Index, "Value | None"], "Value | None"]


#: The index along a dimension of size 1.
_NOWHERE: Final = Affine()


def buffer_of(name: str, node: Node, role: Role) -> Buffer:
    """Memory for all elements of a node."""
    return Buffer(name, register_dtype(node.dtype), node.tensor_type.size, role)


def input_buffers(graph: Graph, ranges: Sequence[tuple[int, int] | None] = ()) -> tuple[Buffer, ...]:
    """Memory for the parameters of a graph, whose elements lie in these ranges."""
    rows = zip_longest(graph.parameters, ranges)
    return tuple(
        [
            Buffer(f"in{k}", register_dtype(node.dtype), node.tensor_type.size, "in", range_)
            for k, (node, range_) in enumerate(rows)
        ]
    )


@lru_cache(4096)
def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next, for each dimension, in row-major order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def row_major(shape: tuple[int, ...], index: Index) -> Affine:
    """Where the element at `index` lies."""
    offset = Affine()
    for size, stride, at in zip(shape, strides(shape), index, strict=True):
        if size != 1:
            offset = offset + at * stride
    return offset


def reader(values: Values, buffer: Buffer, node: Node) -> Source:
    """Loads elements of a node from the memory that holds them all."""
    return lambda index, predicate: load(values, buffer, row_major(node.shape, index), predicate)


def constant_source(value: Value) -> Source:
    """For a node that has one element wherever it is used."""
    return lambda index, predicate: value


class Elements:
    """Computes elements of the nodes of a group, each once for each index.

    `sources` gives the elements of nodes that are not computed here: arguments, and what was computed in
    another loop.  `extents` has the numbers of iterations of loops that are known, by the indices of these: a condition
    that they settle is not computed.
    """

    def __init__(
        self, values: Values, sources: Mapping[Node, Source], extents: Mapping[Value, int] | None = None
    ) -> None:
        self.values = values
        self.sources = sources
        self.extents: Mapping[Value, int] = {} if extents is None else extents
        self._known: dict[tuple[Node, Index, Value | None], Value] = {}

    def at(self, node: Node, index: Index, predicate: Value | None = None) -> Value:
        """The element of `node` at `index`."""
        # What has size 1 has one index only.
        if 1 in node.shape:
            index = tuple([_NOWHERE if size == 1 else at for size, at in zip(node.shape, index, strict=True)])
        key = (node, index, predicate)
        value = self._known.get(key)
        if value is None:
            value = self._known[key] = self._compute(node, index, predicate)
        return value

    def _compute(self, node: Node, index: Index, predicate: Value | None) -> Value:
        source = self.sources.get(node)
        known = source(index, predicate) if source else None
        if known is not None:
            return known
        move = ROWS.get(type(node.op))
        if move is not None:
            return move(self, node, index, predicate)
        return self.apply(node, [self.at(operand, index, predicate) for operand in node.operands])

    def apply(self, node: Node, operands: list[Value]) -> Value:
        """The element of an element-wise operation of these."""
        value = apply_elementwise(node.op, [operand.dtype for operand in node.operands], operands)
        assert value is not None, f"no loop computes {node.op.name}"
        return value

    def settle_condition(self, at: Affine, low: int, high: int) -> bool | None:
        """Whether low <= at < high in all iterations, or in none (False); None if in some or if it is not known."""
        first = last = at.constant
        for value, factor in at.terms:
            if value not in self.extents:
                return None
            reach = factor * (self.extents[value] - 1)
            first, last = first + min(0, reach), last + max(0, reach)
        return True if low <= first and last < high else False if last < low or high <= first else None

    def is_inside(self, at: Affine, low: int, high: int, predicate: Value | None) -> Value:
        """Whether low <= at < high, and the predicate too."""
        number = at.value(self.values)
        within = number.ge(low) & number.lt(high)
        return within if predicate is None else within & predicate


# --- what only moves -----------------------------------------------------------------------------------------


def _broadcast(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.BroadcastInDim)
    return elements.at(node.operands[0], tuple(index[dim] for dim in node.op.broadcast_dimensions), predicate)


def _transpose(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    axis_of = {axis: index[k] for k, axis in enumerate(node.op.expect(ops.Transpose).permutation)}
    return elements.at(node.operands[0], tuple(axis_of[axis] for axis in range(len(index))), predicate)


def _slice(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Slice)
    rows = zip(index, node.op.start_indices, node.op.strides, strict=True)
    return elements.at(node.operands[0], tuple(at * step + start for at, start, step in rows), predicate)


def _reverse(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    turned = [
        at * -1 + (size - 1) if axis in node.op.expect(ops.Reverse).dimensions else at
        for axis, (at, size) in enumerate(zip(index, node.shape, strict=True))
    ]
    return elements.at(node.operands[0], tuple(turned), predicate)


def _reshape(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    operand = node.operands[0]
    split = split_axes(operand.shape, node.shape)
    assert split is not None, "only a reshape that splits dimensions has an affine index"
    old_index = []
    for axes in split:
        merged = Affine()
        for axis in axes:
            merged = merged * node.shape[axis] + index[axis]
        old_index.append(merged)
    return elements.at(operand, tuple(old_index), predicate)


def split_axes(old: tuple[int, ...], new: tuple[int, ...]) -> list[list[int]] | None:
    """For each old dimension the new ones that it is split into; None if new ones merge several old ones."""
    if 0 in old:
        return None
    groups: list[list[int]] = []
    axis = 0
    for size in old:
        axes, have = [], 1
        while have < size and axis < len(new):
            axes.append(axis)
            have *= new[axis]
            axis += 1
        if have != size:
            return None
        groups.append(axes)
    return groups if all(size == 1 for size in new[axis:]) else None


def _pad(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    op = node.op.expect(ops.Pad)
    array, filler = node.operands
    inside = predicate
    for at, low, size, here in zip(index, op.low, array.shape, node.shape, strict=True):
        settled = elements.settle_condition(at, low, low + size)
        if settled is False:
            return elements.at(filler, (), None)
        if not settled and (low or size != here):
            inside = elements.is_inside(at, low, low + size, inside)
    moved = tuple(at + -low for at, low in zip(index, op.low, strict=True))
    element = elements.at(array, moved, inside)
    fill = elements.at(filler, (), None)
    return element if inside is predicate or inside is None else inside.select(element, fill)


def _concatenate(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    dim, start = node.op.expect(ops.Concatenate).dimension, 0
    joined: Value | None = None
    for operand in node.operands:
        size = operand.shape[dim]
        settled = elements.settle_condition(index[dim], start, start + size)
        moved = replace_at(index, dim, index[dim] + -start)
        if settled:  # A known index, such as that of a part of an index vector, is in one operand.
            return elements.at(operand, moved, predicate)
        if settled is None:
            inside = elements.is_inside(index[dim], start, start + size, predicate)
            element = elements.at(operand, moved, inside)
            joined = element if joined is None else inside.select(element, joined)
        start += size
    if joined is None:  # a known index outside, where the predicate is false: any element does
        first = replace_at(index, dim, Affine())
        joined = elements.at(node.operands[0], first, predicate)
    return joined


def _gather(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    operand, indices = node.operands
    windows = node.op.expect(ops.Gather).windows(operand.tensor_type, indices.tensor_type)

    def number(at: Index) -> Value:
        return elements.at(indices, at, predicate)

    return elements.at(operand, gather_index(windows, len(indices.shape), index, number), predicate)


def _iota(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    position = index[node.op.expect(ops.Iota).dimension]
    if node.dtype.kind in "iu":
        return position.value(elements.values, node.dtype)
    number = apply_elementwise(ops.Convert(node.dtype), (INT64,), (position.value(elements.values),))
    assert number is not None, "all types are converted to"
    return number


def _constant(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    return elements.values.constant_of_bytes(node.op.expect(ops.Constant).raw, register_dtype(node.dtype))


#: How each op that moves elements, by an index that is computed too, finds one of its result.
ROWS: Final[dict[type[Op], Callable[[Elements, Node, Index, Value | None], Value]]] = {
    ops.BroadcastInDim: _broadcast,
    ops.Concatenate: _concatenate,
    ops.Constant: _constant,
    ops.Gather: _gather,
    ops.Iota: _iota,
    ops.Pad: _pad,
    ops.Reshape: _reshape,
    ops.Reverse: _reverse,
    ops.Slice: _slice,
    ops.Transpose: _transpose,
}


def computes(node: Node) -> bool:
    """Whether `Elements` can compute this node's elements."""
    op = node.op
    if isinstance(op, ops.GetTupleElement):  # of which operation, the fusing stage knows
        return isinstance(node.operands[0].op, ops.Reduce) and is_held(node)
    if not all(map(is_held, node.operands)):
        return False
    if isinstance(op, ops.Reduce):  # by what computation, the accumulator knows
        return True
    if not is_held(node):
        return False
    if isinstance(op, ops.Reshape):
        return split_axes(node.operands[0].shape, node.shape) is not None
    if isinstance(op, ops.Pad):
        return not any(op.interior)
    if isinstance(op, ops.Gather):
        return 0 not in op.slice_sizes
    if isinstance(op, ops.Constant):
        return node.tensor_type.size == 1
    if isinstance(op, ops.Iota):
        return node.dtype not in SUB_BYTE
    if isinstance(op, ops.BitcastConvert) and node.shape != node.operands[0].shape:
        return False
    return type(op) in ROWS or _is_known(op, tuple(operand.dtype for operand in node.operands))


@lru_cache(4096)
def _is_known(op: Op, dtypes: tuple[DType, ...]) -> bool:
    values = Values()
    operands = [values.argument(str(k), register_dtype(dtype)) for k, dtype in enumerate(dtypes)]
    return bool(dtypes) and not op.graphs and apply_elementwise(op, dtypes, operands) is not None


@lru_cache(4096)
def holds(type: Type) -> bool:
    """Whether loops can hold the elements of arrays of a type."""
    return isinstance(type, TensorType) and not type.dynamic and 0 not in type.shape


def is_held(node: Node) -> bool:
    """Whether loops can hold the elements of an array."""
    return holds(node.type)


def compute_scalars(graph: Graph, operands: Sequence[Value], values: Values) -> tuple[Value, ...]:
    """The results of a computation of scalars."""
    sources = {node: constant_source(value) for node, value in zip(graph.parameters, operands, strict=True)}
    elements = Elements(values, sources)
    return tuple(elements.at(node, ()) for node in graph.results)
