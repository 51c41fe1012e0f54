"""The calls of LAPACK in what JAX exports for CPUs that have an operation here: Cholesky, triangular systems.

Source: JAX's lapack_kernels; the attributes are letters of LAPACK's, by their number in ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.formula import Term, filled, where
from xarr.ir.stablehlo.site import Site
from xarr.ir.types import TensorType

_INT32: Final = np.dtype(np.int32)
_TRANSPOSES: Final = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}


def _letter(site: Site, name: str, known: str) -> str:
    """The letter that an attribute of the call stands for, which must be one of `known`."""
    holder = "mhlo.backend_config" if site.has("mhlo.backend_config") else "backend_config"
    config = site.record(holder)
    if name not in config:
        site.fail(f"the attribute {name} is missing in {holder}")
    number = site.as_integer(name, config[name])
    if number not in map(ord, known):
        site.fail(f"expected {name} of {', '.join(f'{ord(c)} ({c})' for c in known)}, got {number}")
    return chr(number)


def _potrf(site: Site) -> tuple[Node, ...]:
    """The factor over a triangle of the operand, and `info`: 0 for a positive definite matrix, else 1.

    LAPACK's info would be the number of the first leading minor that is not positive.
    """
    (a,) = site.take(1)
    lower = _letter(site, "uplo", "LU") == "L"
    factor = Term(Node(ops.Cholesky(lower), (a,)))
    shape = a.tensor_type.shape
    row, column = (Term(Node(ops.Iota(TensorType(shape, _INT32), len(shape) - axis))) for axis in (2, 1))
    kept = where(row >= column if lower else row <= column, factor, Term(a))
    return kept.node, _info(factor).node


def _info(factor: Term) -> Term:
    """Where a factor is NaN, it is so everywhere."""
    shape = factor.node.tensor_type.shape
    batch = shape[:-2]
    if not shape[-1]:
        return filled(0, batch, _INT32)
    ends = (*batch, 1, 1)
    corner = Node(ops.Slice((0,) * len(shape), ends, (1,) * len(shape)), (factor.node,))
    first = abs(Term(Node(ops.Reshape(batch), (corner,))))
    return (~first.equals(first)).to(_INT32)


def _trsm(site: Site) -> Node:
    op = ops.TriangularSolve(
        left_side=_letter(site, "side", "LR") == "L",
        lower=_letter(site, "uplo", "LU") == "L",
        unit_diagonal=_letter(site, "diag", "NU") == "U",
        transpose_a=_TRANSPOSES[_letter(site, "trans_x", "NTC")],
    )
    return Node(op, site.take(2))


#: By the names of the functions; the letter before each is the element type: f32, f64, c64, c128.
LAPACK_CALLS: Final[dict[str, Callable[[Site], Node | tuple[Node, ...]]]] = {
    f"lapack_{letter}{name}_ffi": build
    for letter in "sdcz"
    for name, build in (("potrf", _potrf), ("trsm", _trsm))
}
