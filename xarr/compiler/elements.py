"""One element of a node: what to compute, and from which elements of which buffers.

`Elements.at(node, index)` follows a graph from a result's index to the places that it is made of.  Moving
operations compute nothing: they only change the index on its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, Final, TypeAlias

import numpy as np

from xarr.compiler.loops import Affine
from xarr.compiler.scalars import BOOL, DType, Value, Values
from xarr.dtypes import EXTENDED_FLOAT, FLOAT, SIGNED
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.types import TensorType

Index: TypeAlias = tuple[Affine, ...]
#: A node's element at an index, None if it must be computed; where the predicate (None: always true) is
#: false it need not exist.
Source = Callable[[Index, "Value | None"], "Value | None"]
Rule = Callable[..., Value]

FLOAT32: Final[DType] = np.dtype(np.float32)


def register_dtype(dtype: DType) -> DType:
    """What computes with elements of `dtype`: float32 for narrow floats, rounded after every operation."""
    return FLOAT32 if is_narrow(dtype) else dtype


def is_narrow(dtype: DType) -> bool:
    return dtype in EXTENDED_FLOAT or dtype == np.float16


def strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Elements from one index to the next, for each dimension, in row-major order."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def row_major(shape: tuple[int, ...], index: Index) -> Affine:
    """Where the element at `index` lies."""
    place = Affine()
    for size, stride, at in zip(shape, strides(shape), index, strict=True):
        if size != 1:
            place = place + at * stride
    return place


class Elements:
    """Computes elements of the nodes of a group, each once for each index.

    `sources` gives the elements of nodes that are not computed here: arguments, and what was computed in
    another loop.  `functions` are rules for operations by name, `(operands) -> value`, in float32 and wider;
    `rounded` brings a float32 to the precision of a narrow type.
    """

    def __init__(
        self,
        values: Values,
        sources: Mapping[Node, Source],
        functions: Mapping[str, Rule],
        rounded: Callable[[Value, DType], Value],
    ) -> None:
        self.values = values
        self.sources = sources
        self._functions = functions
        self._rounded = rounded
        self._known: dict[tuple[Node, Index, Value | None], Value] = {}

    def at(self, node: Node, index: Index, predicate: Value | None = None) -> Value:
        """The element of `node` at `index`."""
        # What has size 1 has one place only.
        index = tuple(Affine() if size == 1 else at for size, at in zip(node.shape, index, strict=True))
        key = (node, index, predicate)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(node, index, predicate)
        return found

    def _compute(self, node: Node, index: Index, predicate: Value | None) -> Value:
        source = self.sources.get(node)
        found = source(index, predicate) if source else None
        if found is not None:
            return found
        move = _MOVES.get(type(node.op))
        if move is not None:
            return move(self, node, index, predicate)
        operands = [self.at(operand, index, predicate) for operand in node.operands]
        rule = RULES.get(type(node.op))
        found = rule(node, *operands) if rule else self._functions[type(node.op).__name__](*operands)
        return self.rounded(found, node.dtype)

    def rounded(self, value: Value, dtype: DType) -> Value:
        """A result as an element of `dtype`."""
        return self._rounded(value, dtype) if is_narrow(dtype) else value

    def inside(self, at: Affine, low: int, high: int, predicate: Value | None) -> Value:
        """Whether low <= at < high, and the predicate too."""
        place = at.value(self.values)
        found = place.ge(low) & place.lt(high)
        return found if predicate is None else found & predicate


# --- what only moves -----------------------------------------------------------------------------------------


def _broadcast(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.BroadcastInDim)
    return elements.at(node.operands[0], tuple(index[dim] for dim in node.op.broadcast_dimensions), predicate)


def _transpose(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Transpose)
    place = {axis: index[k] for k, axis in enumerate(node.op.permutation)}
    return elements.at(node.operands[0], tuple(place[axis] for axis in range(len(index))), predicate)


def _slice(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Slice)
    rows = zip(index, node.op.start_indices, node.op.strides, strict=True)
    return elements.at(node.operands[0], tuple(at * step + start for at, start, step in rows), predicate)


def _reverse(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Reverse)
    turned = [
        at * -1 + (size - 1) if axis in node.op.dimensions else at
        for axis, (at, size) in enumerate(zip(index, node.shape, strict=True))
    ]
    return elements.at(node.operands[0], tuple(turned), predicate)


def _reshape(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    operand = node.operands[0]
    split = split_axes(operand.shape, node.shape)
    assert split is not None, "only a reshape that splits dimensions has an affine index"
    found = []
    for axes in split:
        place = Affine()
        for axis in axes:
            place = place * node.shape[axis] + index[axis]
        found.append(place)
    return elements.at(operand, tuple(found), predicate)


def split_axes(old: tuple[int, ...], new: tuple[int, ...]) -> list[list[int]] | None:
    """For each old dimension the new ones that it is split into; None if new ones merge several old ones."""
    if 0 in old:
        return None
    found: list[list[int]] = []
    axis = 0
    for size in old:
        axes, have = [], 1
        while have < size and axis < len(new):
            axes.append(axis)
            have *= new[axis]
            axis += 1
        if have != size:
            return None
        found.append(axes)
    return found if all(size == 1 for size in new[axis:]) else None


def _pad(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    op = node.op
    assert isinstance(op, ops.Pad)
    array, filler = node.operands
    inside = predicate
    for at, low, size, here in zip(index, op.low, array.shape, node.shape, strict=True):
        if low or size != here:
            inside = elements.inside(at, low, low + size, inside)
    moved = tuple(at + -low for at, low in zip(index, op.low, strict=True))
    element = elements.at(array, moved, inside)
    fill = elements.at(filler, (), None)
    return element if inside is predicate or inside is None else inside.select(element, fill)


def _concatenate(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Concatenate)
    dim, start = node.op.dimension, 0
    found: Value | None = None
    for operand in node.operands:
        size = operand.shape[dim]
        inside = elements.inside(index[dim], start, start + size, predicate)
        element = elements.at(operand, (*index[:dim], index[dim] + -start, *index[dim + 1 :]), inside)
        found = element if found is None else inside.select(element, found)
        start += size
    assert found is not None
    return found


def _iota(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Iota)
    place = index[node.op.dimension].value(elements.values)
    return elements.rounded(place.convert(register_dtype(node.dtype)), node.dtype)


def _constant(elements: Elements, node: Node, index: Index, predicate: Value | None) -> Value:
    assert isinstance(node.op, ops.Constant)
    number = node.op.array.reshape(-1)[:1].astype(register_dtype(node.dtype))
    return elements.values.constant(number[0], number.dtype)


_MOVES: Final[dict[type[Op], Callable[[Elements, Node, Index, Value | None], Value]]] = {
    ops.BroadcastInDim: _broadcast,
    ops.Concatenate: _concatenate,
    ops.Constant: _constant,
    ops.Iota: _iota,
    ops.Pad: _pad,
    ops.Reshape: _reshape,
    ops.Reverse: _reverse,
    ops.Slice: _slice,
    ops.Transpose: _transpose,
}


# --- what computes -------------------------------------------------------------------------------------------


def _add(node: Node, x: Value, y: Value) -> Value:
    return x | y if x.dtype == BOOL else x + y


def _multiply(node: Node, x: Value, y: Value) -> Value:
    return x & y if x.dtype == BOOL else x * y


def _divide(node: Node, x: Value, y: Value) -> Value:
    """Integers: x / 0 is -1, the least integer / -1 itself, as XLA has it."""
    if node.dtype in FLOAT:
        return x / y
    zero, signed = y.eq(0), node.dtype in SIGNED
    unsafe = zero | y.eq(-1) if signed else zero
    quotient = x / unsafe.select(1, y)
    if signed:
        quotient = y.eq(-1).select(-x, quotient)
    return zero.select(~x.constant(0), quotient)


def _remainder(node: Node, x: Value, y: Value) -> Value:
    """Integers: x % 0 is x, and what x / -1 leaves is 0."""
    if node.dtype in FLOAT:
        return x.rem(y)
    zero, signed = y.eq(0), node.dtype in SIGNED
    left = x.rem((zero | y.eq(-1) if signed else zero).select(1, y))
    if signed:
        left = y.eq(-1).select(0, left)
    return zero.select(x, left)


def _compare(node: Node, x: Value, y: Value) -> Value:
    assert isinstance(node.op, ops.Compare)
    if x.dtype == BOOL:
        x, y = x.convert(np.uint8), y.convert(np.uint8)
    found: Value = getattr(x, node.op.direction.lower())(y)
    return found


def _abs(node: Node, x: Value) -> Value:
    return x.abs() if node.dtype in FLOAT else x.lt(0).select(-x, x)


def _sign(node: Node, x: Value) -> Value:
    if node.dtype in FLOAT:
        return (x.eq(0) | x.isnan()).select(x, x.constant(1).copysign(x))
    if node.dtype not in SIGNED:
        return x.ne(0).convert(node.dtype)
    return x.lt(0).select(-1, x.gt(0).convert(node.dtype))


def _larger(x: Value, y: Value, sign: int) -> Value:
    """The larger or (sign -1) the smaller; NaN if either is, and 0 above -0."""
    if x.dtype.kind != "f":
        if x.dtype == BOOL:
            return x | y if sign > 0 else x & y
        return (x.gt(y) if sign > 0 else x.lt(y)).select(x, y)
    return x.maximum(y) if sign > 0 else x.minimum(y)


def _clamp(node: Node, low: Value, x: Value, high: Value) -> Value:
    return _larger(_larger(x, low, 1), high, -1)


def _convert(node: Node, x: Value) -> Value:
    old, new = node.operands[0].dtype, node.dtype
    assert not is_narrow(new) or old == BOOL or register_dtype(old) == FLOAT32, "that would round twice"
    return x.convert(register_dtype(new))


def _shift(node: Node, x: Value, count: Value, op: str) -> Value:
    """Counts beyond the width leave zeros, or copies of the sign for an arithmetic shift."""
    bits = 8 * x.dtype.itemsize
    unsigned = count.bitcast(f"uint{bits}")
    fits = unsigned.lt(bits)
    safe = fits.select(unsigned, bits - 1 if op == "arithmetic" else 0)
    if op == "left":
        return fits.select(x << safe.bitcast(x.dtype), 0)
    kind = "int" if op == "arithmetic" else "uint"
    shifted = x.bitcast(f"{kind}{bits}") >> safe.bitcast(f"{kind}{bits}")
    shifted = shifted.bitcast(x.dtype)
    return shifted if op == "arithmetic" else fits.select(shifted, 0)


#: Operations made of primitives; what is in no table is a function of the emitter's.
RULES: Final[dict[type[Op], Rule]] = {
    ops.Abs: _abs,
    ops.Add: _add,
    ops.And: lambda node, x, y: x & y,
    ops.BitcastConvert: lambda node, x: x.bitcast(node.dtype),
    ops.Ceil: lambda node, x: x.ceil(),
    ops.Clamp: _clamp,
    ops.Compare: _compare,
    ops.Convert: _convert,
    ops.CountLeadingZeros: lambda node, x: x.count_leading_zeros(),
    ops.Divide: _divide,
    ops.Floor: lambda node, x: x.floor(),
    ops.IsFinite: lambda node, x: x.abs().lt(np.inf),
    ops.Maximum: lambda node, x, y: _larger(x, y, 1),
    ops.Minimum: lambda node, x, y: _larger(x, y, -1),
    ops.Multiply: _multiply,
    ops.Negate: lambda node, x: -x,
    ops.Not: lambda node, x: ~x,
    ops.Or: lambda node, x, y: x | y,
    ops.Popcnt: lambda node, x: x.popcount(),
    ops.Remainder: _remainder,
    ops.RoundNearestEven: lambda node, x: x.rint(),
    ops.Select: lambda node, p, x, y: p.select(x, y),
    ops.ShiftLeft: lambda node, x, n: _shift(node, x, n, "left"),
    ops.ShiftRightArithmetic: lambda node, x, n: _shift(node, x, n, "arithmetic"),
    ops.ShiftRightLogical: lambda node, x, n: _shift(node, x, n, "logical"),
    ops.Sign: _sign,
    ops.Sqrt: lambda node, x: x.sqrt(),
    ops.Subtract: lambda node, x, y: x - y,
    ops.Xor: lambda node, x, y: x ^ y,
}

#: dtypes that the registers of every processor hold.
REGISTERS: Final = frozenset(map(np.dtype, ("bool", "float32", "float64", *"bhilBHIL")))


def computes(node: Node, functions: Mapping[str, Any], narrow: frozenset[DType] = frozenset()) -> bool:
    """Whether `Elements` can compute this node's elements; `narrow` are the narrow floats it can round to."""
    op = node.op
    if any(not _holds(each, narrow) for each in (node, *node.operands)):
        return False
    if isinstance(op, ops.Compare):
        return not op.total_order
    if isinstance(op, ops.BitcastConvert):
        old, new = node.operands[0].dtype, node.dtype
        return (
            old.itemsize == new.itemsize and BOOL not in (old, new) and not (is_narrow(old) or is_narrow(new))
        )
    if isinstance(op, ops.Convert) and is_narrow(node.dtype):
        return node.operands[0].dtype in (BOOL, FLOAT32, *narrow)
    if isinstance(op, ops.Reshape):
        return split_axes(node.operands[0].shape, node.shape) is not None
    if isinstance(op, ops.Pad):
        return not any(op.interior)
    if isinstance(op, ops.Constant):
        return node.tensor_type.size == 1
    if isinstance(op, ops.Iota):
        return not is_narrow(node.dtype)
    if isinstance(op, ops.Reduce):  # which ones, the fusing stage knows
        return True
    return type(op) in RULES or type(op) in _MOVES or type(op).__name__ in functions


def _holds(node: Node, narrow: frozenset[DType]) -> bool:
    kind = node.type
    return (
        isinstance(kind, TensorType)
        and not kind.dynamic
        and 0 not in kind.shape
        and (kind.dtype in REGISTERS or kind.dtype in narrow)
    )
