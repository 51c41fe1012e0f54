"""What a function under `vmap` does along the axis that it is mapped over, until it is mapped.

No program has these: `vmap` replaces them.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from xarr.ir.op import Op, operation
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

_INT32 = np.dtype(np.int32)


@operation
class StackAlongAxis(Op):
    """The values of an operand in all slices along a mapped axis, stacked along a new first dimension.

    * C0: the operand is an array.
    """

    axis_name: Hashable
    size: int
    name = "xarr.stack_along_axis"
    lax_name = "all_gather"
    is_internal = True

    def infer(self, *operands: Type) -> Type:
        (operand,) = self.tensors(operands, 1)
        return operand.with_shape((self.size, *operand.shape))

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)


@operation
class IndexAlongAxis(Op):
    """The index of a slice along a mapped axis."""

    axis_name: Hashable
    size: int
    name = "xarr.index_along_axis"
    lax_name = "axis_index"
    is_internal = True

    def infer(self, *operands: Type) -> Type:
        return TensorType((), _INT32)

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.functional(node)
