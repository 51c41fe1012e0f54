"""Readers for the calls of LAPACK in modules, JAX's for CPUs and those that xarr prints: factors, triangular systems.

A routine becomes an operation of the graph, or a call of `xarr.base.host.lapack` where there is none.

Source: JAX's lapack_kernels; the attributes are letters of LAPACK's, by their number in ASCII.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from xarr.base.host import lapack as host_lapack
from xarr.dtypes import COMPLEX, real_part_of
from xarr.ir import ops
from xarr.ir.computations import combiner
from xarr.ir.graph import Graph, Node, parameter
from xarr.ir.op import Op
from xarr.ir.ops.control import unpack_results
from xarr.ir.ops.formula import Term, fill, maximum, where
from xarr.ir.stablehlo.composites import Builder, op_builder
from xarr.ir.stablehlo.parsed_operation import Site
from xarr.ir.types import TensorType, Type

_INT32: Final = np.dtype(np.int32)
_DTYPES: Final = frozenset(map(np.dtype, (np.float32, np.float64, np.complex64, np.complex128)))
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
    row, column = _row_and_column(a)
    kept = where(row >= column if lower else row <= column, factor, Term(a))
    return kept.node, _info(a, _fails(factor), lower)


def _row_and_column(a: Node) -> tuple[Term, Term]:
    """Row and column of each element of matrices."""
    shape = a.tensor_type.shape
    row, column = (Term(Node(ops.Iota(TensorType(shape, _INT32), len(shape) - axis))) for axis in (2, 1))
    return row, column


def _fails(factor: Term) -> Term:
    """Where a factor is NaN, it is so everywhere."""
    shape = factor.node.tensor_type.shape
    batch = shape[:-2]
    if not shape[-1]:
        return fill(0, batch, np.dtype(np.bool_))
    ends = (*batch, 1, 1)
    corner = Node(ops.Slice((0,) * len(shape), ends, (1,) * len(shape)), (factor.node,))
    first = abs(Term(Node(ops.Reshape(batch), (corner,))))
    return ~first.eq(first)


def _info(a: Node, failed: Term, lower: bool) -> Node:
    """Which minor failed, sought only if one did."""
    batch = failed.node.tensor_type.shape
    truth = np.dtype(np.bool_)
    anywhere = Node(
        ops.Reduce(tuple(range(len(batch))), combiner(ops.Or(), truth)),
        (failed.node, fill(0, (), truth).node),
    )
    branches = []
    for seek in (_failing_minor, None):
        matrices, failures = parameter(a.type), parameter(failed.node.type)
        info = seek(matrices, Term(failures), lower) if seek else fill(0, batch, _INT32)
        branches.append(Graph((matrices, failures), [info.node], "seek" if seek else "none"))
    return Node(ops.If(*branches), (anywhere, a, failed.node))


def _failing_minor(a: Node, failed: Term, lower: bool) -> Term:
    """By halving: the leading minor of `fine` rows has a factor, that of `bad` rows has none."""
    batch, size = a.tensor_type.shape[:-2], a.tensor_type.shape[-1]
    row, column = _row_and_column(a)
    identity = row.eq(column).convert(a.tensor_type.dtype)
    fine, bad = fill(0, batch, _INT32), fill(size, batch, _INT32)
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


# --- routines that no operation stands for ------------------------------------------------------------------


def _on_host(
    site: Site, function: Callable[..., Any], results: Sequence[Type], **attributes: bool | int
) -> tuple[Node, ...]:
    """A call of a function of `host_lapack` over all operands."""
    op = ops.CustomCall(f"xarr.{function.__name__}", tuple(results), tuple(sorted(attributes.items())))
    return unpack_results(Node(op, site.operands))


def _matrices(site: Site, arity: int, square: bool = False) -> TensorType:
    """The type of the first of `arity` operands, a stack of matrices."""
    type = site.take(arity)[0].tensor_type
    if type.rank < 2 or type.dtype not in _DTYPES or (square and type.shape[-1] != type.shape[-2]):
        what = "square matrices" if square else "matrices"
        site.fail(f"expected {what} of f32, f64, c64 or c128, got {type.short()}")
    return type


def _vectors(a: TensorType, size: int, dtype: np.dtype[Any] | None = None) -> TensorType:
    """The type of a vector for each of a stack of matrices."""
    return TensorType((*a.shape[:-2], size), dtype or a.dtype)


def _infos(a: TensorType) -> TensorType:
    return TensorType(a.shape[:-2], _INT32)


def _expect(site: Site, index: int, type: TensorType) -> None:
    actual = site.operands[index].type
    if actual is not type:
        site.fail(f"expected {type} as operand {index}, got {actual}")


def _gees(site: Site) -> tuple[Node, ...]:
    a = _matrices(site, 1, square=True)
    _letter(site, "mode", "VN")
    _letter(site, "sort", "N")
    values = [_vectors(a, a.shape[-1])] * (1 if a.dtype in COMPLEX else 2)
    return _on_host(site, host_lapack.gees, [a, a, *values, _infos(a), _infos(a)])


def _gehrd(site: Site) -> tuple[Node, ...]:
    a = _matrices(site, 1, square=True)
    config = site.record("mhlo.backend_config")
    low, high = (site.as_integer(name, config.get(name)) for name in ("low", "high"))
    if not 1 <= low <= max(high, 1) <= max(a.shape[-1], 1):
        site.fail(f"expected 1 <= low <= high <= {a.shape[-1]}, got {low} and {high}")
    taus = _vectors(a, max(a.shape[-1] - 1, 0))
    return _on_host(site, host_lapack.gehrd, [a, taus, _infos(a)], low=low, high=high)


def _geqp3(site: Site) -> tuple[Node, ...]:
    a = _matrices(site, 2)
    pivots = _vectors(a, a.shape[-1], _INT32)
    _expect(site, 1, pivots)
    return _on_host(site, host_lapack.geqp3, [a, pivots, _vectors(a, min(a.shape[-2:]))])


def _gtsv(site: Site) -> tuple[Node, ...]:
    *_, right = site.take(4)
    b = right.tensor_type
    if b.rank < 2 or b.dtype not in _DTYPES:
        site.fail(f"expected right hand sides of f32, f64, c64 or c128 as matrices, got {b.short()}")
    diagonal = _vectors(b, b.shape[-2])
    for index in range(3):
        _expect(site, index, diagonal)
    return _on_host(site, host_lapack.gtsv, [diagonal, diagonal, diagonal, b, _infos(b)])


def _ormqr(site: Site) -> tuple[Node, ...]:
    a, c = _matrices(site, 3), site.operands[2].tensor_type
    taus = site.operands[1].tensor_type
    left, transpose = (_is_true(site, name) for name in ("left", "transpose"))
    size = c.shape[-2 if left else -1] if c.rank >= 2 else None
    fits = a.shape[:-2] == c.shape[:-2] and size == a.shape[-2] and c.dtype == a.dtype
    if not fits or taus.shape[-1:] > (min(a.shape[-2:]),) or taus is not _vectors(a, taus.shape[-1]):
        site.fail(
            f"expected matrices, taus and factors that fit, got {a.short()}, {taus.short()}, {c.short()}"
        )
    return _on_host(site, host_lapack.ormqr, [c], left=left, transpose=transpose)


def _sytrd(site: Site) -> tuple[Node, ...]:
    a = _matrices(site, 1, square=True)
    size, real = a.shape[-1], real_part_of(a.dtype)
    lower = _letter(site, "uplo", "LU") == "L"
    beside = max(size - 1, 0)
    results = [a, _vectors(a, size, real), _vectors(a, beside, real), _vectors(a, beside), _infos(a)]
    return _on_host(site, host_lapack.sytrd, results, lower=lower)


def _is_true(site: Site, name: str) -> bool:
    value = site.record("mhlo.backend_config").get(name)
    if not isinstance(value, bool):
        site.fail(f"expected true or false for {name} in mhlo.backend_config, got {value!r}")
    return value


_ROUTINES: Final[tuple[tuple[str, str, Builder], ...]] = (
    ("sdcz", "potrf", _potrf),
    ("sdcz", "trsm", _trsm),
    ("sdcz", "getrf", op_builder(lambda site: ops.Lu())),
    ("sdcz", "geqrf", op_builder(lambda site: ops.Geqrf())),
    ("sd", "orgqr", op_builder(lambda site: ops.HouseholderProduct(), 2)),
    ("cz", "ungqr", op_builder(lambda site: ops.HouseholderProduct(), 2)),
    ("sdcz", "gesdd", op_builder(_svd)),
    ("sdcz", "gesvd", op_builder(_svd)),
    ("sd", "syevd", op_builder(_eigh)),
    ("cz", "heevd", op_builder(_eigh)),
    ("sdcz", "geev", op_builder(_eig)),
    ("sdcz", "gees", _gees),
    ("sdcz", "gehrd", _gehrd),
    ("sdcz", "geqp3", _geqp3),
    ("sdcz", "gtsv", _gtsv),
    ("sd", "ormqr", _ormqr),
    ("cz", "unmqr", _ormqr),
    ("sd", "sytrd", _sytrd),
    ("cz", "hetrd", _sytrd),
)

#: By the names of the functions; the letter before each is the element type: f32, f64, c64, c128.
LAPACK_CALLS: Final[dict[str, Builder]] = {
    f"lapack_{letter}{name}_ffi": build for letters, name, build in _ROUTINES for letter in letters
}
