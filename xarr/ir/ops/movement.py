"""Operations that move elements and compute nothing: broadcast, reshape, transpose, slice, pad, concatenate."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import TYPE_CHECKING

from xarr.errors import pluralize
from xarr.ir.op import FREE, Op, operation
from xarr.ir.stablehlo.literals import ints
from xarr.ir.types import Ints, TensorType, Type, replace_at

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


class Movement(Op):
    """Base of the operations that move elements."""

    moves = True
    cost = FREE


@operation
class BroadcastInDim(Movement):
    """result[…] = operand[…] with operand dimension i laid along result dimension broadcast_dimensions[i].

    The only node of a graph that repeats elements.

    * C1: one broadcast dimension for each operand dimension.
    * C2: each lies in the result's rank.
    * C3: strictly increasing (XlaBuilder's rule; StableHLO would allow a permutation).
    * C4: each operand size is 1 or the size of the result dimension it maps to.
    """

    shape: Ints
    broadcast_dimensions: Ints
    name = "stablehlo.broadcast_in_dim"
    is_view = True
    only_changes_type = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        dims = self.broadcast_dimensions
        if len(dims) != operand.rank:
            self.fail(
                "C1",
                f"wanted {operand.rank} broadcast_dimensions, one for each dimension of {operand.short()}, got {dims}",
            )
        if any(not 0 <= dim < len(self.shape) for dim in dims):
            self.fail("C2", f"wanted dimensions in [0, {len(self.shape)}), got {dims}")
        if any(a >= b for a, b in pairwise(dims)):
            self._refuse_order(dims)
        for axis, (size, dim) in enumerate(zip(operand.shape, dims, strict=True)):
            if size not in (1, self.shape[dim]):
                self.fail(
                    "C4",
                    f"operand dimension {axis} of {operand.short()} has size {size}; result "
                    f"dimension {dim} of {self.shape} wants {self.shape[dim]} or 1",
                )
        return operand.with_shape(self.shape)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"dims = {ints(self.broadcast_dimensions)}")

    def _refuse_order(self, dims: Ints) -> None:
        order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
        distinct = len(set(dims)) == len(dims)
        fix = f"; transpose(operand, {order}) with {tuple(sorted(dims))} does that" if distinct else ""
        self.fail("C3", f"wanted strictly increasing broadcast_dimensions, got {dims}{fix}")


@operation
class Reshape(Movement):
    """The elements in row-major order under another shape.

    * C1: as many elements as before.
    """

    shape: Ints
    name = "stablehlo.reshape"
    is_view = True
    only_changes_type = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        if prod(self.shape) != operand.size:
            self.fail(
                "C1",
                f"{operand.short()} has {pluralize(operand.size, 'element')}, "
                f"shape {self.shape} wants {prod(self.shape):,}",
            )
        return operand.with_shape(self.shape)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)


@operation
class Transpose(Movement):
    """result dimension i is operand dimension permutation[i].

    * C1: `permutation` holds each dimension once.
    """

    permutation: Ints
    name = "stablehlo.transpose"
    is_view = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        if sorted(self.permutation) != list(range(operand.rank)):
            self.fail("C1", f"wanted a permutation of {tuple(range(operand.rank))}, got {self.permutation}")
        return operand.with_shape(tuple(operand.shape[axis] for axis in self.permutation))

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"dims = {ints(self.permutation)}")


@operation
class Reverse(Movement):
    """Index i of each of `dimensions` becomes size - 1 - i.

    * C1: no dimension twice.
    * C2: each lies in the operand's rank.
    """

    dimensions: Ints
    name = "stablehlo.reverse"
    lax_name = "rev"
    is_view = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        if len(set(self.dimensions)) != len(self.dimensions):
            self.fail("C1", f"wanted each dimension once, got {self.dimensions}")
        if any(not 0 <= dim < operand.rank for dim in self.dimensions):
            self.fail("C2", f"wanted dimensions in [0, {operand.rank}), got {self.dimensions}")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node, f"dims = {ints(self.dimensions)}")


@operation
class Slice(Movement):
    """operand[start:limit:stride] in every dimension.

    * C1: one start, limit and stride for each dimension.
    * C2: 0 <= start <= limit <= size.
    * C3: stride > 0.
    """

    start_indices: Ints
    limit_indices: Ints
    strides: Ints
    name = "stablehlo.slice"
    is_view = True
    only_changes_type = True

    @classmethod
    def cut(cls, shape: Ints, dimension: int, start: int, limit: int) -> Slice:
        """The elements from `start` to below `limit` of one dimension of an array."""
        starts, limits = [0] * len(shape), list(shape)
        starts[dimension], limits[dimension] = start, limit
        return cls(tuple(starts), tuple(limits), (1,) * len(shape))

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        rows = (self.start_indices, self.limit_indices, self.strides)
        if any(len(row) != operand.rank for row in rows):
            self.fail(
                "C1", f"wanted {operand.rank} starts, limits and strides for {operand.short()}, got {rows}"
            )
        for size, start, limit in zip(operand.shape, *rows[:2], strict=True):
            if not 0 <= start <= limit <= size:
                self.fail(
                    "C2", f"wanted 0 <= start <= limit <= {size}, got {start}:{limit} of {operand.short()}"
                )
        if any(stride < 1 for stride in self.strides):
            self.fail(
                "C3", f"wanted strides >= 1, got {self.strides}; rev and then slice for a negative step"
            )
        return operand.with_shape(
            tuple(-(-(limit - start) // stride) for start, limit, stride in zip(*rows, strict=True))
        )

    def assembly(self, node: Node, printer: Printer) -> str:
        rows = zip(self.start_indices, self.limit_indices, self.strides, strict=True)
        ranges = [f"{start}:{limit}" + (f":{step}" if step != 1 else "") for start, limit, step in rows]
        return f"{self.name} {printer.names(node.operands)} [{', '.join(ranges)}] : {printer.signature(node)}"


@operation
class Pad(Movement):
    """Put `low` and `high` copies of the padding value around, and `interior` ones between, the elements.

    Negative low and high cut elements off, after the interior padding.  Operands: array, scalar.

    * C1: the padding value is a scalar of the operand's element type.
    * C2: one low, high and interior for each dimension.
    * C3: interior >= 0.
    * C4: no resulting size is negative.
    """

    low: Ints
    high: Ints
    interior: Ints
    name = "stablehlo.pad"

    def infer(self, *operands: Type) -> Type:
        operand, value = self.tensors(operands, 2)
        if value is not TensorType((), operand.dtype):
            self.fail("C1", f"wanted a scalar padding value of {operand.dtype}, got {value.short()}")
        rows = (self.low, self.high, self.interior)
        if any(len(row) != operand.rank for row in rows):
            self.fail(
                "C2", f"wanted {operand.rank} of low, high and interior for {operand.short()}, got {rows}"
            )
        if any(interior < 0 for interior in self.interior):
            self.fail("C3", f"wanted interior >= 0, got {self.interior}; a strided slice removes elements")
        shape = tuple(
            low + size + max(size - 1, 0) * interior + high
            for size, low, high, interior in zip(operand.shape, *rows, strict=True)
        )
        if any(size < 0 for size in shape):
            self.fail("C4", f"low {self.low} and high {self.high} leave sizes {shape} of {operand.short()}")
        return operand.with_shape(shape)

    def assembly(self, node: Node, printer: Printer) -> str:
        low, high, interior = ints(self.low), ints(self.high), ints(self.interior)
        return printer.functional(node, f"low = {low}, high = {high}, interior = {interior}")


@operation
class Concatenate(Movement):
    """Operands one after the other along `dimension`.

    * C1: at least one operand.
    * C2: one element type.
    * C3: one rank, at least 1, of which `dimension` is a dimension.
    * C4: sizes agree in every other dimension.
    """

    dimension: int
    name = "stablehlo.concatenate"

    def infer(self, *operands: Type) -> Type:
        arrays = self.tensors(operands)
        if not arrays:
            self.fail("C1", "wanted at least one operand")
        shown = ", ".join(array.short() for array in arrays)
        first, dim = arrays[0], self.dimension
        if any(array.dtype != first.dtype for array in arrays):
            self.fail_dtype("C2", f"wanted one element type, got {shown}; convert_element_type the others")
        if any(array.rank != first.rank for array in arrays) or not 0 <= dim < first.rank:
            self.fail("C3", f"wanted arrays of one rank above dimension {dim}, got {shown}")
        for array in arrays:
            if any(a != b for k, (a, b) in enumerate(zip(array.shape, first.shape, strict=True)) if k != dim):
                self.fail("C4", f"wanted equal sizes but in dimension {dim}, got {shown}")
        total = sum(array.shape[dim] for array in arrays)
        return first.with_shape(replace_at(first.shape, dim, total))

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"dim = {self.dimension}")
