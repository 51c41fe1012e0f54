"""Operations over windows that slide over an array: reduction of each, and its reverse for a choice.

The labels of the constraints are those of the StableHLO specification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from xarr.ir.graph import Graph
from xarr.ir.op import Op, operation
from xarr.ir.ops.reduction import check_signature
from xarr.ir.stablehlo.literals import array_literal, dense
from xarr.ir.types import Ints, TensorType, Type, pack_types
from xarr.ir.windows import Pairs, Window, check_entries, check_extents, check_padding

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


def padding_literal(padding: Pairs) -> str:
    """`dense<[[1, 2], [0, 0]]> : tensor<2x2xi64>`."""
    type = TensorType((len(padding), 2), np.dtype(np.int64))
    return f"{dense(type, np.array(padding, np.int64).tobytes())} : {type}"


@operation
class ReduceWindow(Op):
    """Combine the elements of each window by `computation`, for N arrays at once.

    Operands: N arrays, then N scalar initial values.  `computation` takes N accumulators and N elements and
    gives N results.  The arrays are dilated (`base_dilations`) and padded; padding and holes take no part.
    Elements meet in row-major order, but how they are grouped is not defined, so the computation should
    be associative; the initial value comes first, and is the result of a window without elements.

    * C1: N >= 1 arrays and as many initial values.
    * C2: the arrays have one shape.
    * C3: each initial value is a scalar of its array's element type.
    * C4: one size of the window for each dimension.
    * C5: they are positive.
    * C6: one stride for each dimension.
    * C7: they are positive.
    * C8: one base dilation for each dimension.
    * C9: they are positive.
    * C10: one window dilation for each dimension.
    * C11: they are positive.
    * C12: one pair of padding, low and high, for each dimension; it may be negative.
    * C13: the computation maps (T0 … TN-1, T0 … TN-1), scalars of the arrays' types, to (T0 … TN-1).
    * C15: the extents of the padded arrays and of the windows fit in 64 bits.
    """

    window_dimensions: Ints
    window_strides: Ints
    base_dilations: Ints
    window_dilations: Ints
    padding: Pairs
    computation: Graph
    name = "stablehlo.reduce_window"
    has_several_results = True

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.computation,)

    @property
    def window(self) -> Window:
        """Where the windows lie."""
        return Window.of(
            self.window_dimensions,
            self.window_strides,
            self.padding,
            self.base_dilations,
            self.window_dilations,
        )

    def infer(self, *operands: Type) -> Type:
        tensors = self.tensors(operands)
        count = len(tensors) // 2
        arrays, initial = tensors[:count], tensors[count:]
        shown = ", ".join(tensor.short() for tensor in tensors)
        if not count or len(initial) != count:
            self.fail("C1", f"wanted N arrays and N initial values, got {shown}")
        if any(array.shape != arrays[0].shape for array in arrays):
            self.fail("C2", f"wanted arrays of one shape, got {', '.join(each.short() for each in arrays)}")
        scalars = tuple(TensorType((), array.dtype) for array in arrays)
        for scalar, value in zip(scalars, initial, strict=True):
            if value is not scalar:
                self.fail("C3", f"wanted an initial value {scalar.short()}, got {value.short()}")
        self._check_window(arrays[0])
        check_signature(self, "C13", self.computation, scalars * 2, scalars)
        shape = self.window.output_shape(arrays[0].shape)
        return pack_types(tuple(array.with_shape(shape) for array in arrays))

    def _check_window(self, operand: TensorType) -> None:
        where = operand.short()
        check_entries(self, ("C4", "C5"), "window_dimensions", self.window_dimensions, operand.rank, where)
        check_entries(self, ("C6", "C7"), "window_strides", self.window_strides, operand.rank, where)
        check_entries(self, ("C8", "C9"), "base_dilation", self.base_dilations, operand.rank, where)
        check_entries(self, ("C10", "C11"), "window_dilation", self.window_dilations, operand.rank, where)
        check_padding(self, "C12", self.padding, operand.rank, where)
        check_extents(self, "C15", self.window, operand.shape, where)

    def assembly(self, node: Node, printer: Printer) -> str:
        attributes = (
            f"base_dilations = {array_literal(self.base_dilations)}, "
            f"padding = {padding_literal(self.padding)}, "
            f"window_dilations = {array_literal(self.window_dilations)}, "
            f"window_dimensions = {array_literal(self.window_dimensions)}, "
            f"window_strides = {array_literal(self.window_strides)}"
        )
        return printer.generic(node, attributes, [printer.labelled_region(self.computation)], node.operands)


@operation
class SelectAndScatter(Op):
    """Combine each element of a source into one element of its window of the operand, which `select` chooses.

    Operands: array, source, scalar initial value.  The result has the operand's shape.  It begins with the
    initial value everywhere.  For each window, in row-major order, the elements of the operand in it are
    gone through in row-major order: the chosen one, at first the first, stays chosen as long as
    select(chosen, next) holds, otherwise the next one is chosen instead.  There the source's element is
    combined in: result = scatter(result, source).  Padding is never chosen, and a window of nothing but
    padding takes no part.

    * C1: operand and source have one element type.
    * C2: the source has one element for each window; what windows reach fits in 64 bits.
    * C3: the initial value is a scalar of that type.
    * C4: one size of the window for each dimension.
    * C5: they are positive.
    * C6: one stride for each dimension.
    * C7: they are positive.
    * C8: one pair of padding, low and high, for each dimension; it may be negative.
    * C9: select maps two scalars of that type to a bool.
    * C10: scatter maps two scalars of that type to one.
    """

    window_dimensions: Ints
    window_strides: Ints
    padding: Pairs
    select: Graph
    scatter: Graph
    name = "stablehlo.select_and_scatter"

    @property
    def graphs(self) -> tuple[Graph, ...]:
        return (self.select, self.scatter)

    @property
    def window(self) -> Window:
        """Where the windows lie."""
        return Window.of(self.window_dimensions, self.window_strides, self.padding)

    def infer(self, *operands: Type) -> Type:
        operand, source, initial = self.tensors(operands, 3)
        scalar = TensorType((), operand.dtype)
        if source.dtype != operand.dtype:
            self.fail_dtype(
                "C1",
                f"wanted a source of {operand.dtype} for {operand.short()}, got {source.short()}; "
                "convert_element_type it",
            )
        if initial is not scalar:
            self.fail("C3", f"wanted an initial value {scalar.short()}, got {initial.short()}")
        where = operand.short()
        check_entries(self, ("C4", "C5"), "window_dimensions", self.window_dimensions, operand.rank, where)
        check_entries(self, ("C6", "C7"), "window_strides", self.window_strides, operand.rank, where)
        check_padding(self, "C8", self.padding, operand.rank, where)
        check_extents(self, "C2", self.window, operand.shape, where)
        shape = self.window.output_shape(operand.shape)
        if source.shape != shape:
            self.fail(
                "C2",
                f"wanted a source {operand.with_shape(shape).short()}, one element for each window in {where}, "
                f"got {source.short()}",
            )
        check_signature(
            self, "C9", self.select, (scalar, scalar), (scalar.with_dtype(np.dtype(np.bool_)),), "select"
        )
        check_signature(self, "C10", self.scatter, (scalar, scalar), (scalar,), "scatter")
        return operand

    def assembly(self, node: Node, printer: Printer) -> str:
        attributes = (
            f"padding = {padding_literal(self.padding)}, "
            f"window_dimensions = {array_literal(self.window_dimensions)}, "
            f"window_strides = {array_literal(self.window_strides)}"
        )
        regions = [printer.labelled_region(self.select), printer.labelled_region(self.scatter)]
        return printer.generic(node, attributes, regions, node.operands)
