"""Cholesky factors and triangular systems, of matrices in the last two dimensions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from xarr.dtypes import COMPLEX, FLOAT
from xarr.errors import ValueRangeError
from xarr.ir.op import Op, operation
from xarr.ir.types import TensorType, Type

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer

#: What `transpose_a` may be.
TRANSPOSES: Final = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")


def _flag(value: bool) -> str:
    return "true" if value else "false"


@operation
class Cholesky(Op):
    """The triangular L (or its adjoint, if not `lower`) with L L* = a; the other triangle is 0.

    Only the lower (upper) triangle of the operand is read, and of the diagonal the real part.  A matrix that
    is not positive definite gives NaN everywhere.

    * C1: float or complex elements.
    * C2: rank 2 or more.
    * C3: the last two dimensions are equal.
    """

    lower: bool
    name = "stablehlo.cholesky"

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        if a.dtype not in FLOAT | COMPLEX:
            self.fail_dtype("C1", f"wanted float or complex elements, got {a.short()}")
        if a.rank < 2:
            self.fail("C2", f"wanted rank 2 or more, got {a.short()}")
        if a.shape[-1] != a.shape[-2]:
            self.fail("C3", f"wanted square matrices in the last two dimensions, got {a.short()}")
        return a

    def assembly(self, node: Node, printer: Printer) -> str:
        return printer.regular(node, f"lower = {_flag(self.lower)}")


@operation
class TriangularSolve(Op):
    """The x with op(a) x = b, or x op(a) = b if not `left_side`, for a triangular matrix a.

    Only the lower (upper) triangle of a is read, and with `unit_diagonal` not its diagonal, which counts as 1.

    * C1: float or complex elements, of one type on both sides.
    * C2: equal ranks of 2 or more, and equal leading dimensions.
    * C3: the last two dimensions of a are equal.
    * C4: b has as many rows (columns, if not `left_side`) as a.
    """

    left_side: bool
    lower: bool
    unit_diagonal: bool
    transpose_a: str = "NO_TRANSPOSE"
    name = "stablehlo.triangular_solve"

    def __post_init__(self) -> None:
        if self.transpose_a not in TRANSPOSES:
            raise ValueRangeError(
                f"triangular_solve: wanted transpose_a of {', '.join(TRANSPOSES)}, got {self.transpose_a!r}"
            )

    def infer(self, *operands: Type) -> Type:
        a, b = self.tensors(operands, 2)
        if a.dtype is not b.dtype or a.dtype not in FLOAT | COMPLEX:
            self.fail_dtype("C1", f"wanted float or complex elements of one type, got {_both(a, b)}")
        if a.rank < 2 or a.rank != b.rank or a.shape[:-2] != b.shape[:-2]:
            self.fail("C2", f"wanted equal ranks >= 2 and equal leading dimensions, got {_both(a, b)}")
        if a.shape[-1] != a.shape[-2]:
            self.fail("C3", f"wanted square matrices a, got {a.short()}")
        if b.shape[-2 if self.left_side else -1] != a.shape[-1]:
            side = "rows" if self.left_side else "columns"
            self.fail("C4", f"wanted b with {a.shape[-1]} {side}, got {b.short()}")
        return b

    def assembly(self, node: Node, printer: Printer) -> str:
        attributes = (
            f"left_side = {_flag(self.left_side)}, lower = {_flag(self.lower)}, "
            f"transpose_a = #stablehlo<transpose {self.transpose_a}>, "
            f"unit_diagonal = {_flag(self.unit_diagonal)}"
        )
        names = printer.names(node.operands)
        return f'"{self.name}"({names}) <{{{attributes}}}> : {printer.signature(node)}'


def _both(a: TensorType, b: TensorType) -> str:
    return f"{a.short()} and {b.short()}"
