"""Factors of matrices, systems of equations and determinants by LAPACK, as NumPy gives access to it.

NumPy refuses a whole batch for the sake of one matrix; then each is done alone, and those that fail become
NaN.  LU factors, which NumPy does not give, are made here, block after block.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.errors import LinAlgError
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import TupleType
from xarr_numpy.rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

#: Columns that are eliminated one by one before the rest is updated by a product of matrices.
_BLOCK: Final = 32
_INT32: Final = np.dtype(np.int32)
_linalg: Final[Any] = np.linalg
#: LAPACK's product of reflections, which NumPy keeps to itself: as many columns as reflections, or all.
_product_of_all: Final[Any] = getattr(getattr(np.linalg, "_umath_linalg", None), "qr_reduced", None)
_full_product: Final[Any] = getattr(getattr(np.linalg, "_umath_linalg", None), "qr_complete", None)


# --- LU ----------------------------------------------------------------------------------------------


def lu(a: Array) -> Arrays:
    """(factors, pivots, info)"""
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    count = min(rows, columns)
    factors = np.array(a, order="C").reshape(prod(batch), rows, columns)
    pivots = np.empty((len(factors), count), _INT32)
    if count <= _BLOCK:
        _eliminate(factors, pivots, 0, count, columns)
    else:
        for matrix, own in zip(factors, pivots, strict=True):
            for start in range(0, count, _BLOCK):
                end = min(start + _BLOCK, count)
                _eliminate(matrix[None], own[None], start, end, end)
                _update(matrix, start, end)
    zeros = np.diagonal(factors, axis1=1, axis2=2) == 0
    first = np.argmax(zeros, axis=1) if count else 0
    info = np.where(zeros.any(axis=1), first + 1, 0).astype(_INT32)
    return factors.reshape(a.shape), pivots.reshape(*batch, count), info.reshape(batch)


def _eliminate(matrices: Array, pivots: Array, start: int, end: int, last: int) -> None:
    """Columns start to end of the rows from start on, one after the other; columns up to `last` follow at once.

    Whole rows change places.
    """
    every = np.arange(len(matrices))
    for column in range(start, end):
        below = matrices[:, column:, column]
        sizes = np.abs(below.real) + np.abs(below.imag) if matrices.dtype.kind == "c" else np.abs(below)
        # NaN is never the largest.
        pivot = column + np.argmax(np.where(np.isnan(sizes), -1, sizes), axis=1)
        pivots[:, column] = pivot + 1
        rows = matrices[every, pivot]
        matrices[every, pivot] = matrices[:, column]
        matrices[:, column] = rows
        corner = matrices[:, column, column, None]
        multipliers = matrices[:, column + 1 :, column] / np.where(corner == 0, 1, corner)
        matrices[:, column + 1 :, column] = multipliers
        rest = matrices[:, column, None, column + 1 : last]
        matrices[:, column + 1 :, column + 1 : last] -= multipliers[..., None] * rest


def _update(matrix: Array, start: int, end: int) -> None:
    """The columns behind a block: first its own rows, then all below by one product."""
    for row in range(start + 1, end):
        matrix[row, end:] -= matrix[row, start:row] @ matrix[start:row, end:]
    matrix[end:, end:] -= matrix[end:, start:end] @ matrix[start:end, end:]


# --- by LAPACK ---------------------------------------------------------------------------------------


def _attempted(routine: Callable[..., Any], *operands: Array) -> tuple[Arrays, bool]:
    """The results of a function of `np.linalg`, and whether it went well."""
    try:
        found = routine(*operands)
    except np.linalg.LinAlgError:
        return (), False
    return (found if isinstance(found, tuple) else (found,)), True


def by_lapack(routine: Callable[..., Any], declared: Any, *operands: Array) -> tuple[Arrays, Array]:
    """The results of a function of `np.linalg` of these types, and for each matrix whether it failed.

    declared: element type and shape of each result; those of a failure are NaN.
    """
    batch = operands[0].shape[:-2]
    found, good = _attempted(routine, *operands)
    if good:
        pairs = zip(found, declared, strict=True)
        return tuple(np.asarray(each, dtype) for each, (dtype, _) in pairs), np.zeros(batch, bool)
    results = tuple(np.full(shape, np.nan, dtype) for dtype, shape in declared)
    failed = np.zeros(batch, bool)
    for index in np.ndindex(batch):
        found, good = _attempted(routine, *[operand[index] for operand in operands])
        failed[index] = not good
        for result, each in zip(results, found, strict=False):
            result[index] = each
    return results, failed


def geqrf(a: Array) -> Arrays:
    """(factors, taus)"""
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    factors, taus = np.linalg.qr(a, mode="raw")
    return factors.swapaxes(-1, -2), taus


def householder_product(a: Array, taus: Array) -> Array:
    """The first columns of the product of reflections."""
    rows, columns = a.shape[-2:]
    if _product_of_all is not None and a.size and taus.shape[-1] == columns:
        return np.asarray(_product_of_all(a, taus), a.dtype)
    if _full_product is not None and a.size and rows == columns and taus.size:
        return np.asarray(_full_product(a[..., : taus.shape[-1]], taus), a.dtype)
    return _applied(a, taus)


def _applied(a: Array, taus: Array) -> Array:
    """The reflections on the first columns of the identity matrix, from the last one on."""
    rows, columns = a.shape[-2:]
    product = np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape).copy()
    for place in reversed(range(taus.shape[-1])):
        vector = a[..., place:, place, None].copy()
        vector[..., 0, :] = 1
        part = product[..., place:, place:]
        part -= taus[..., place, None, None] * vector * (vector.conj().swapaxes(-1, -2) @ part)
    return product


def svd(a: Array, full_matrices: bool, compute_uv: bool, declared: Any) -> Arrays:
    """(scratch, s, u, vh, info)"""
    _, s, u, vh, _ = declared
    if compute_uv:
        routine = lambda x: tuple(np.linalg.svd(x, full_matrices))  # noqa: E731
        (left, values, right), failed = by_lapack(routine, (u, s, vh), a)
    else:
        (values,), failed = by_lapack(np.linalg.svdvals, (s,), a)
        left, right = _nothing(u), _nothing(vh)
    info = (failed | np.isnan(values).any(-1)).astype(_INT32)
    return a, values, left, right, np.asarray(info)


def _nothing(declared: Any) -> Array:
    """A result that nobody asked for."""
    dtype, shape = declared
    return np.broadcast_to(np.zeros((), dtype), shape)


def eigh(a: Array, lower: bool, compute_v: bool, declared: Any) -> Arrays:
    """(v, w, info)"""
    vectors, values, _ = declared
    triangle = "L" if lower else "U"
    if compute_v:
        (w, v), failed = by_lapack(lambda x: tuple(_linalg.eigh(x, triangle)), (values, vectors), a)
        return v, w, failed.astype(_INT32)
    (w,), failed = by_lapack(lambda x: _linalg.eigvalsh(x, triangle), (values,), a)
    return a, w, failed.astype(_INT32)


def eig(a: Array, compute_left: bool, compute_right: bool, declared: Any) -> Arrays:
    """(w, vl, vr, info), or (re w, im w, vl, vr, info) of reals"""
    left, right, _ = declared[-3:]
    values = (right[0], a.shape[:-1])
    if compute_left or compute_right:
        (w, vr), failed = by_lapack(lambda x: tuple(np.linalg.eig(x)), (values, right), a)
    else:
        (w,), failed = by_lapack(np.linalg.eigvals, (values,), a)
        vr = _nothing(right)
    vl = _left(vr, left) if compute_left else _nothing(left)
    parts = (w,) if a.dtype.kind == "c" else (w.real.copy(), w.imag.copy())
    return *parts, vl, vr, failed.astype(_INT32)


def _left(right: Array, declared: Any) -> Array:
    """Left eigenvectors, which are the rows of the inverse of the right ones."""
    (inverse,), _ = by_lapack(np.linalg.inv, (declared,), right)
    vectors = inverse.conj().swapaxes(-1, -2)
    return np.asarray(vectors / np.linalg.norm(vectors, axis=-2, keepdims=True), right.dtype)


def solve(a: Array, b: Array, declared: Any) -> Arrays:
    """(x, singular)"""
    (x,), failed = by_lapack(np.linalg.solve, declared[:1], a, b)
    return x, failed


def log_determinant(a: Array) -> Arrays:
    """(sign, log |det a|)"""
    sign, logarithm = np.linalg.slogdet(a)
    return np.asarray(sign), np.asarray(logarithm)


def check(value: Any, good: Any, message: str) -> Any:
    """`value`; LinAlgError unless all is good."""
    if not np.all(good):
        bad = np.argwhere(~np.atleast_1d(good))
        where = f" (matrix {tuple(map(int, bad[0]))} of {np.shape(good)})" if np.ndim(good) else ""
        raise LinAlgError(f"{message}{where}")
    return value


# --- rows --------------------------------------------------------------------------------------------


def _declared(emitter: Emitter, node: Node) -> str:
    """A name for element type and shape of each result."""
    assert isinstance(node.type, TupleType)
    return emitter.constant(tuple((each.dtype, each.shape) for each in node.op.results(node)))  # type: ignore[union-attr]


def _call(name: str, *attributes: str, declared: bool = False) -> Any:
    """A row: the function on the operands and these attributes of the op."""

    def write(emitter: Emitter, node: Node) -> str:
        arguments = [emitter.full(operand) for operand in node.operands]
        arguments += [repr(getattr(node.op, attribute)) for attribute in attributes]
        if declared:
            arguments.append(_declared(emitter, node))
        return f"{name}({', '.join(arguments)})"

    return write


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f for f in (lu, geqrf, householder_product, svd, eigh, eig, solve, log_determinant, check)
}

ROWS: Final[Rows] = {
    ops.Check: _call("check", "message"),
    ops.Eig: _call("eig", "compute_left", "compute_right", declared=True),
    ops.Eigh: _call("eigh", "lower", "compute_v", declared=True),
    ops.Geqrf: _call("geqrf"),
    ops.HouseholderProduct: _call("householder_product"),
    ops.LogDeterminant: _call("log_determinant"),
    ops.Lu: _call("lu"),
    ops.Solve: _call("solve", declared=True),
    ops.Svd: _call("svd", "full_matrices", "compute_uv", declared=True),
}
