"""Operations without operands: constants and iota."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np

from xarr.ir.op import FREE, Op, operation
from xarr.ir.stablehlo.literals import dense
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


def _refuse_dynamic(op: Op, type: TensorType) -> None:
    if type.dynamic:
        op.fail("D5", f"wanted static sizes, got {type.short()}; set_dimension_size the result")


@operation
class Constant(Op):
    """A literal.  Compared by its bytes, so that -0.0, 0.0 and each NaN are different constants.

    * C1: the bytes fill the shape exactly.
    * D5: no dimension is dynamic.
    """

    type: TensorType
    raw: bytes = field(repr=False)
    name = "stablehlo.constant"
    moves = True
    cost = FREE

    @classmethod
    def of(cls, array: np.ndarray[Any, Any]) -> Constant:
        """The constant that holds the values of `array`."""
        return cls(TensorType(array.shape, array.dtype), array.tobytes())

    @property
    def array(self) -> np.ndarray[Any, Any]:
        """The literal, read-only."""
        return np.frombuffer(self.raw, self.type.dtype).reshape(self.type.shape)

    def infer(self, *operands: Type) -> Type:
        _refuse_dynamic(self, self.type)
        if len(self.raw) != self.type.nbytes:
            self.fail("C1", f"wanted {self.type.nbytes} bytes for {self.type.short()}, got {len(self.raw)}")
        return self.type

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"{self.name} {dense(self.type, self.raw)} : {self.type}"

    def details(self) -> str:
        return "" if self.type.shape else str(self.array)

    def value_name(self) -> str:
        return "c" if self.type.dtype.kind in "biu" else "cst"


def integer_of(node: Node) -> int | None:
    """The integer that a node of one element is; None if it is no such constant."""
    op = node.op
    if not isinstance(op, Constant) or op.type.size != 1 or op.type.dtype.kind not in "iu":
        return None
    number: Any = op.raw  # or the number itself, in templates of loop programs
    return int(op.array.reshape(())) if isinstance(number, bytes) else number


@operation
class Iota(Op):
    """0, 1, 2 … along `dimension`, the same along every other one.

    * C1: `dimension` is one of the result's.
    * C2: the element type is a number.
    * D5: no dimension is dynamic.
    """

    type: TensorType
    dimension: int
    name = "stablehlo.iota"
    lax_name = "broadcasted_iota"
    moves = True
    cost = FREE

    def infer(self, *operands: Type) -> Type:
        _refuse_dynamic(self, self.type)
        if not 0 <= self.dimension < self.type.rank:
            self.fail("C1", f"wanted a dimension in [0, {self.type.rank}), got {self.dimension}")
        if self.type.dtype.kind == "b":
            self.fail_dtype("C2", f"wanted a number type, got {self.type.short()}")
        return self.type

    def assembly(self, node: Node, printer: Printer) -> str:
        return f"{self.name} dim = {self.dimension} : {self.type}"
