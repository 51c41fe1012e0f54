"""The calls of LAPACK in what JAX exports for CPUs, and in what xarr prints: factors and triangular systems.

Source: JAX's lapack_kernels; the attributes are letters of LAPACK's, by their number in ASCII.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from xarr.ir import ops
from xarr.ir.computations import combiner
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops.formula import Term, filled, maximum, where
from xarr.ir.stablehlo.site import Site
from xarr.ir.types import TensorType

_INT32: Final = np.dtype(np.int32)
Builder = Callable[[Site], Node | tuple[Node, ...]]
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


def _factors(op: Callable[[Site], Op], arity: int = 1) -> Builder:
    """A call that is an operation as it stands."""

    def build(site: Site) -> tuple[Node, ...]:
        node = Node(op(site), site.take(arity))
        count = len(node.op.results(node))
        if count == 1:
            return (node,)
        return tuple([Node(ops.GetTupleElement(index), (node,)) for index in range(count)])

    return build


def _svd(site: Site) -> Op:
    mode = _letter(site, "mode", "ASN")
    return ops.Svd(full_matrices=_is_full(site) if mode == "N" else mode == "A", compute_uv=mode != "N")


def _is_full(site: Site) -> bool:
    """Whether the results that hold nothing are as large as whole matrices."""
    if len(site.operation.result_types) != 5:
        site.fail(f"expected 5 results, got {len(site.operation.result_types)}")
    u, vh = site.type(2).shape, site.type(3).shape
    return u[-2:-1] == u[-1:] and vh[-2:-1] == vh[-1:]


def _eigh(site: Site) -> Op:
    return ops.Eigh(lower=_letter(site, "uplo", "LU") == "L", compute_v=_letter(site, "mode", "VN") == "V")


def _eig(site: Site) -> Op:
    left, right = (_letter(site, name, "VN") == "V" for name in ("compute_left", "compute_right"))
    return ops.Eig(left, right)


_ROUTINES: Final[tuple[tuple[str, str, Builder], ...]] = (
    ("sdcz", "potrf", _potrf),
    ("sdcz", "trsm", _trsm),
    ("sdcz", "getrf", _factors(lambda site: ops.Lu())),
    ("sdcz", "geqrf", _factors(lambda site: ops.Geqrf())),
    ("sd", "orgqr", _factors(lambda site: ops.HouseholderProduct(), 2)),
    ("cz", "ungqr", _factors(lambda site: ops.HouseholderProduct(), 2)),
    ("sdcz", "gesdd", _factors(_svd)),
    ("sd", "syevd", _factors(_eigh)),
    ("cz", "heevd", _factors(_eigh)),
    ("sdcz", "geev", _factors(_eig)),
)

#: By the names of the functions; the letter before each is the element type: f32, f64, c64, c128.
LAPACK_CALLS: Final[dict[str, Builder]] = {
    f"lapack_{letter}{name}_ffi": build for letters, name, build in _ROUTINES for letter in letters
}

_COMPOSITES: Final[dict[str, tuple[int, Callable[[Site], Op]]]] = {
    "xarr.solve": (2, lambda site: ops.Solve()),
    "xarr.slogdet": (1, lambda site: ops.LogDeterminant()),
    "xarr.check": (2, lambda site: ops.Check(_message(site))),
}


def _message(site: Site) -> str:
    found = site.record("composite_attributes").get("message")
    if not isinstance(found, str):
        site.fail(f"expected a text as message, got {found!r}")
    return found


def composite(site: Site) -> Node | tuple[Node, ...]:
    """An operation of xarr that is defined in terms of others, or else what the composite stands for."""
    if site.has("name") and site.word("name") in _COMPOSITES:
        arity, op = _COMPOSITES[site.word("name")]
        return _factors(op, arity)(site)
    return site.function("decomposition")
