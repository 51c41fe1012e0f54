"""Operations that ask for and set the size of a dimension while the program runs.

A dimension is *dynamic* if its size is known only then; its type holds the upper bound, f32[<=10].
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from xarr.ir.op import Op, operation
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

#: The type of a size.
SIZE: Final = TensorType((), np.dtype(np.int32))


@operation
class GetDimensionSize(Op):
    """The size of `dimension`, the live one of a dynamic dimension, as an int32 scalar.

    * C1: `dimension` is one of the operand's.
    * C2: the size, or its bound, is an int32.
    """

    dimension: int
    name = "stablehlo.get_dimension_size"

    def infer(self, *operands: Type) -> Type:
        _check_dimension(self, operands, 1, self.dimension)
        return SIZE

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"dim = {self.dimension}")


@operation
class SetDimensionSize(Op):
    """The operand with the live size of `dimension` set to the second operand.

    The size is held to [0, bound].  With `to_bound` the size is known to be the bound and the dimension
    becomes static: what it then shows beyond the live part is what the buffer of the operand holds there.

    * C1: `dimension` is one of the array's.
    * C2: its size, or its bound, is an int32.
    * C3: the size is an int32 scalar.
    """

    dimension: int
    to_bound: bool = False
    name = "stablehlo.set_dimension_size"

    def infer(self, *operands: Type) -> Type:
        array = _check_dimension(self, operands, 2, self.dimension)
        if operands[1] is not SIZE:
            self.fail_dtype("C3", f"wanted an int32 scalar as size, got {operands[1].short()}")
        marked = {*array.dynamic_dimensions} - {self.dimension}
        return array.with_dynamic(marked if self.to_bound else marked | {self.dimension})

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node, f"dim = {self.dimension}")


def _check_dimension(op: Op, operands: tuple[Type, ...], count: int, dimension: int) -> TensorType:
    array = operands[0] if operands else None
    if len(operands) != count or not isinstance(array, TensorType):
        shown = ", ".join(operand.short() for operand in operands)
        op.fail("C0", f"wanted {count} operands, the first an array, got {shown}")
    if not 0 <= dimension < array.rank:
        op.fail("C1", f"wanted a dimension of {array.short()}, in [0, {array.rank}), got {dimension}")
    if array.shape[dimension] > np.iinfo(np.int32).max:
        op.fail("C2", f"sizes are int32, but dimension {dimension} of {array.short()} is larger")
    return array
