"""The calls of LAPACK in what JAX exports for CPUs that have an operation here: Cholesky, triangular systems.

Source: JAX's lapack_kernels; the attributes are letters of LAPACK's, by their number in ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from xarr.ir import ops
from xarr.ir.computations import combiner
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.ops.formula import Term, filled, maximum, where
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
    """The factor over a triangle of the operand, and `info`.

    That is 0 for a positive definite matrix, else the number of rows of the first leading minor that is not.
    """
    (a,) = site.take(1)
    lower = _letter(site, "uplo", "LU") == "L"
    factor = Term(Node(ops.Cholesky(lower), (a,)))
    row, column = _places(a)
    kept = where(row >= column if lower else row <= column, factor, Term(a))
    return kept.node, _info(a, _fails(factor), lower)


def _places(a: Node) -> tuple[Term, Term]:
    """Row and column of each element of matrices."""
    shape = a.tensor_type.shape
    row, column = (Term(Node(ops.Iota(TensorType(shape, _INT32), len(shape) - axis))) for axis in (2, 1))
    return row, column


def _fails(factor: Term) -> Term:
    """Where a factor is NaN, it is so everywhere."""
    shape = factor.node.tensor_type.shape
    batch = shape[:-2]
    if not shape[-1]:
        return filled(0, batch, np.dtype(np.bool_))
    ends = (*batch, 1, 1)
    corner = Node(ops.Slice((0,) * len(shape), ends, (1,) * len(shape)), (factor.node,))
    first = abs(Term(Node(ops.Reshape(batch), (corner,))))
    return ~first.equals(first)


def _info(a: Node, failed: Term, lower: bool) -> Node:
    """Which minor failed, sought only if one did."""
    batch = failed.node.tensor_type.shape
    truth = np.dtype(np.bool_)
    anywhere = Node(
        ops.Reduce(tuple(range(len(batch))), combiner(ops.Or(), truth)),
        (failed.node, filled(0, (), truth).node),
    )
    branches = []
    for seek in (_failing_minor, None):
        matrices, failures = parameter(a.type), parameter(failed.node.type)
        info = seek(matrices, Term(failures), lower) if seek else filled(0, batch, _INT32)
        branches.append(Graph((matrices, failures), [info.node], "seek" if seek else "none"))
    return Node(ops.If(*branches), (anywhere, a, failed.node))


def _failing_minor(a: Node, failed: Term, lower: bool) -> Term:
    """By halving: the leading minor of `fine` rows has a factor, that of `bad` rows has none."""
    batch, size = a.tensor_type.shape[:-2], a.tensor_type.shape[-1]
    row, column = _places(a)
    identity = row.equals(column).to(a.tensor_type.dtype)
    fine, bad = filled(0, batch, _INT32), filled(size, batch, _INT32)
    for _ in range((size - 1).bit_length()):
        rows = (fine + bad) / 2
        wide = Term(Node(ops.BroadcastInDim(a.tensor_type.shape, tuple(range(len(batch)))), (rows.node,)))
        minor = where(maximum(row, column) < wide, Term(a), identity)
        fails = _fails(Term(Node(ops.Cholesky(lower), (minor.node,))))
        fine, bad = where(fails, fine, rows), where(fails, rows, bad)
    return where(failed, bad, 0)


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
