"""Factors of matrices in the last two dimensions, as LAPACK's routines give them.

StableHLO has none of them: they are printed as calls of LAPACK, of the names and types by which XLA's CPU
knows them, so that it runs the text, and what JAX exports for CPUs is read as these operations.
Source: LAPACK's documentation of each routine; JAX's lapack_kernels.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

import numpy as np

from xarr.dtypes import COMPLEX, complex_of, real_part_of
from xarr.ir.op import Op, operation
from xarr.ir.types import Ints, TensorType, TupleType, Type, pack_types

if TYPE_CHECKING:
    from xarr.ir.graph import Node
    from xarr.ir.stablehlo.printer import Printer


#: The letter by which LAPACK knows an element type.
LETTERS: Final = {
    np.dtype(np.float32): "s",
    np.dtype(np.float64): "d",
    np.dtype(np.complex64): "c",
    np.dtype(np.complex128): "z",
}
_INT32: Final = np.dtype(np.int32)


def matrices(op: Op, a: TensorType) -> tuple[Ints, int, int]:
    """The leading dimensions, rows and columns of what LAPACK takes; refuses other types with C1, ranks with C2."""
    if a.dtype not in LETTERS:
        op.fail_dtype("C1", f"wanted float32, float64, complex64 or complex128, got {a.short()}")
    if a.rank < 2:
        op.fail("C2", f"wanted rank 2 or more, got {a.short()}")
    return a.shape[:-2], a.shape[-2], a.shape[-1]


def squares(op: Op, a: TensorType) -> tuple[Ints, int]:
    """The leading dimensions and the size of square matrices; refuses others with C3."""
    batch, rows, columns = matrices(op, a)
    if rows != columns:
        op.fail("C3", f"wanted square matrices in the last two dimensions, got {a.short()}")
    return batch, rows


class Factorisation(Op):
    """Base of the operations that LAPACK has a routine for.

    * C1: float32, float64, complex64 or complex128 elements.
    * C2: rank 2 or more.
    """

    #: LAPACK's names of the routine without the letter: for reals, for complex numbers.
    routines: ClassVar[tuple[str, str]]
    has_several_results = True

    def letters(self) -> dict[str, str]:
        """LAPACK's letters for the attributes."""
        return {}

    def assembly(self, node: Node, printer: Printer) -> str:
        dtype = node.operands[0].dtype
        target = f"lapack_{LETTERS[dtype]}{self.routines[dtype in COMPLEX]}_ffi"
        config = ", ".join(f"{name} = {ord(letter)} : ui8" for name, letter in self.letters().items())
        rank = node.operands[0].tensor_type.rank
        layouts = [_layout(operand.type, rank) for operand in node.operands]
        attributes = (
            f"mhlo.backend_config = {{{config}}}, operand_layouts = [{', '.join(layouts)}], "
            f"result_layouts = [{', '.join(_layout(each, rank) for each in self.results(node))}]"
        )
        call = f"stablehlo.custom_call @{target}({printer.names(node.operands)})"
        return f"{call} {{{attributes}}} : {printer.signature(node)}"


def _layout(type: Type, rank: int) -> str:
    """Matrices column by column, as LAPACK wants them; everything else row-major."""
    own = type.rank if isinstance(type, TensorType) else 0
    order = list(range(own))[::-1]
    if own == rank:
        order[:2] = order[1::-1]
    listed = f"{order[0]}" if own == 1 else str(order) if own else ""
    return f"dense<{listed}> : tensor<{own}xindex>"


@operation
class Lu(Factorisation):
    """(factors, pivots, info) with P L U = a by partial pivoting: rows are chosen by the largest |re| + |im|.

    factors: U on and above the diagonal, L below it, whose diagonal is 1.  pivots: row i was exchanged with
    row pivots[i], counted from 1, one after the other; int32.  info: 0, or the number, counted from 1, of
    the first 0 on U's diagonal; int32.

    * C1, C2: as for all factorisations.
    """

    name = "lapack.getrf"
    lax_name = "lu"
    routines = ("getrf", "getrf")

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, rows, columns = matrices(self, a)
        pivots = TensorType((*batch, min(rows, columns)), _INT32)
        return TupleType((a, pivots, TensorType(batch, _INT32)))


@operation
class Geqrf(Factorisation):
    """(factors, taus) with Q R = a: R on and above the diagonal, below it the vectors of reflections.

    Q = H_1 H_2 … with H_i = 1 - tau_i v v*, where v is 0 above index i, 1 there, and column i of the factors
    below.

    * C1, C2: as for all factorisations.
    """

    name = "lapack.geqrf"
    routines = ("geqrf", "geqrf")

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, rows, columns = matrices(self, a)
        return TupleType((a, TensorType((*batch, min(rows, columns)), a.dtype)))


@operation
class HouseholderProduct(Factorisation):
    """The first columns, as many as a has, of the product of reflections that `Geqrf` gives.

    Operands: the factors and the taus.

    * C1, C2: as for all factorisations, with equal element types on both sides.
    * C3: not more columns than rows, and not more taus than columns.
    * C4: equal leading dimensions.
    """

    name = "lapack.orgqr"
    lax_name = "householder_product"
    routines = ("orgqr", "ungqr")

    def infer(self, *operands: Type) -> Type:
        a, taus = self.tensors(operands, 2)
        batch, rows, columns = matrices(self, a)
        if taus.dtype is not a.dtype:
            self.fail_dtype("C1", f"wanted equal element types, got {a.short()} and {taus.short()}")
        if taus.rank != a.rank - 1 or taus.shape[:-1] != batch:
            self.fail("C4", f"wanted taus of shape {(*batch, columns)}, got {taus.short()}")
        if not rows >= columns >= taus.shape[-1]:
            self.fail(
                "C3",
                f"wanted at most {rows} columns and at most as many taus, got {a.short()} and {taus.short()}",
            )
        return a


@operation
class Svd(Factorisation):
    """(scratch, s, u, vh, info) with u s vh = a, s descending.

    scratch: what the routine leaves in the memory of a, which has no specified contents.  With full_matrices u and vh
    are square, else they have as many columns and rows as there are singular values.  Without compute_uv
    they hold nothing to rely on.  info: 0, or another number if it did not converge, where s, u and vh are
    NaN; int32.

    * C1, C2: as for all factorisations.
    """

    full_matrices: bool = True
    compute_uv: bool = True
    name = "lapack.gesdd"
    lax_name = "svd"
    routines = ("gesdd", "gesdd")

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, rows, columns = matrices(self, a)
        size = min(rows, columns)
        kept = (rows, columns) if self.full_matrices else (size, size)
        return TupleType(
            (
                a,
                TensorType((*batch, size), real_part_of(a.dtype)),
                TensorType((*batch, rows, kept[0]), a.dtype),
                TensorType((*batch, kept[1], columns), a.dtype),
                TensorType(batch, _INT32),
            )
        )

    def letters(self) -> dict[str, str]:
        return {"mode": "N" if not self.compute_uv else "A" if self.full_matrices else "S"}


@operation
class Eigh(Factorisation):
    """(v, w, info) with a v = v w for Hermitian a, of which one triangle is read; w ascending, v unitary.

    Without compute_v, v holds nothing to rely on.  info: 0, or another number if it did not converge, where v
    and w are NaN; int32.

    * C1, C2: as for all factorisations.
    * C3: square matrices.
    """

    lower: bool = True
    compute_v: bool = True
    name = "lapack.syevd"
    lax_name = "eigh"
    routines = ("syevd", "heevd")

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, size = squares(self, a)
        w = TensorType((*batch, size), real_part_of(a.dtype))
        return TupleType((a, w, TensorType(batch, _INT32)))

    def letters(self) -> dict[str, str]:
        return {"mode": "V" if self.compute_v else "N", "uplo": "L" if self.lower else "U"}


@operation
class Eig(Factorisation):
    """(w, vl, vr, info) with a vr = vr w and vl* a = w vl*; for real a (re w, im w, vl, vr, info).

    The columns of vl and vr, complex numbers, have norm 1; those not asked for hold nothing to rely on.
    info: 0, or another number if it did not converge, where the others are NaN; int32.

    * C1, C2: as for all factorisations.
    * C3: square matrices.
    """

    compute_left: bool = True
    compute_right: bool = True
    name = "lapack.geev"
    lax_name = "eig"
    routines = ("geev", "geev")

    def infer(self, *operands: Type) -> Type:
        (a,) = self.tensors(operands, 1)
        batch, size = squares(self, a)
        w = TensorType((*batch, size), a.dtype)
        v = a.with_dtype(complex_of(a.dtype))
        values = (w,) if a.dtype in COMPLEX else (w, w)
        return pack_types((*values, v, v, TensorType(batch, _INT32)))

    def letters(self) -> dict[str, str]:
        return {
            "compute_left": "V" if self.compute_left else "N",
            "compute_right": "V" if self.compute_right else "N",
        }
