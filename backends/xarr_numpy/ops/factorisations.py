"""Factors of matrices, systems of equations and determinants by LAPACK, as NumPy gives access to it.

NumPy refuses a whole batch for the sake of one matrix; then each is done alone, and those that fail become
NaN.  LU factors and products of reflections, which NumPy does not give, are made by the routines in its library, and
here where there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.ir import ops
from xarr_numpy import blas
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]
Arrays = tuple[Array, ...]

#: Reflections that are applied as one product of matrices.
_REFLECTIONS: Final = 32
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_linalg: Final[Any] = np.linalg


# --- LU ----------------------------------------------------------------------------------------------


def lu(a: Array) -> Arrays:
    """(factors, pivots, info)"""
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    count = min(rows, columns)
    pivots = np.empty((prod(batch), count), _INT64)
    function = blas.function(blas.name_of(ops.Lu(), a.dtype), 6)
    if function is None or not a.size:
        factors = np.array(a, order="C").reshape(prod(batch), rows, columns)
        _eliminate(factors, pivots if a.size else pivots[:, :0])
        zeros = np.diagonal(factors, axis1=1, axis2=2) == 0
        first = np.argmax(zeros, axis=1) if count else 0
        info = np.where(zeros.any(axis=1), first + 1, 0)
    else:
        held = np.array(a.swapaxes(-1, -2), order="C").reshape(prod(batch), columns, rows)
        sizes, info = np.array([rows, columns], _INT64), np.empty(prod(batch), _INT64)
        m, n = sizes.ctypes.data, sizes.ctypes.data + 8
        for matrix, own, status in zip(*map(blas.addresses, (held, pivots, info)), strict=True):
            function(m, n, matrix, m, own, status)
        factors = held.swapaxes(-1, -2)
    return (
        factors.reshape(a.shape),
        pivots.reshape(*batch, count).astype(_INT32),
        info.reshape(batch).astype(_INT32),
    )


def _eliminate(matrices: Array, pivots: Array) -> None:
    """Factor matrices in place, column after column.  Writes the row that was exchanged with each, counted from 1."""
    every = np.arange(len(matrices))
    for column in range(pivots.shape[1]):
        pivot = column + _largest(matrices[:, column:, column])
        pivots[:, column] = pivot + 1
        chosen = matrices[every, pivot]
        matrices[every, pivot] = matrices[:, column]
        matrices[:, column] = chosen
        corner, below = matrices[:, column, column, None], matrices[:, column + 1 :]
        below[..., column] /= np.where(corner == 0, 1, corner)
        below[..., column + 1 :] -= below[..., column, None] * matrices[:, column, None, column + 1 :]


def _largest(vectors: Array) -> Array:
    """Where the largest element of each vector is; NaN is never the largest."""
    sizes = np.abs(vectors.real) + np.abs(vectors.imag) if vectors.dtype.kind == "c" else np.abs(vectors)
    if np.isnan(sizes.max()):
        sizes = np.where(np.isnan(sizes), -1, sizes)
    indices: Array = np.argmax(sizes, axis=-1)
    return indices


# --- by LAPACK ---------------------------------------------------------------------------------------


def _attempt(routine: Callable[..., Any], *operands: Array) -> tuple[Arrays, bool]:
    """The results of a function of `np.linalg`, and whether it went well."""
    try:
        results = routine(*operands)
    except np.linalg.LinAlgError:
        return (), False
    return (results if isinstance(results, tuple) else (results,)), True


def by_lapack(routine: Callable[..., Any], declared: Any, *operands: Array) -> tuple[Arrays, Array]:
    """The results of a function of `np.linalg` of these types, and for each matrix whether it failed.

    declared: element type and shape of each result; those of a failure are NaN.
    """
    batch = operands[0].shape[:-2]
    values, good = _attempt(routine, *operands)
    if good:
        pairs = zip(values, declared, strict=True)
        return tuple(np.asarray(each, dtype) for each, (dtype, _) in pairs), np.zeros(batch, bool)
    results = tuple(np.full(shape, np.nan, dtype) for dtype, shape in declared)
    failed = np.zeros(batch, bool)
    for index in np.ndindex(batch):
        values, good = _attempt(routine, *[operand[index] for operand in operands])
        failed[index] = not good
        for result, each in zip(results, values, strict=False):
            result[index] = each
    return results, failed


def geqrf(a: Array) -> Arrays:
    """(factors, taus)"""
    if not a.size:
        return a, np.zeros((*a.shape[:-2], min(a.shape[-2:])), a.dtype)
    factors, taus = np.linalg.qr(a, mode="raw")
    return factors.swapaxes(-1, -2), taus


def householder_product(a: Array, taus: Array) -> Array:
    """The first columns of the product of reflections: by LAPACK if there are few, block after block from the last one.

    A block of reflections is I - V T Vᴴ with T upper triangular.

    Source: Schreiber and Van Loan, "A storage-efficient WY representation for products of Householder
    transformations", 1989.
    """
    rows, columns = a.shape[-2:]
    function = blas.function(blas.name_of(ops.HouseholderProduct(), a.dtype), 9)
    if function is not None and taus.size and not blas.is_blocked(a.shape):
        return _multiply_reflections(function, a, taus)
    product = np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape).copy()
    count = taus.shape[-1]
    for start in reversed(range(0, count, _REFLECTIONS)):
        end = min(start + _REFLECTIONS, count)
        vectors = np.tril(a[..., start:, start:end], -1)
        diagonal = np.arange(end - start)
        vectors[..., diagonal, diagonal] = 1
        adjoint = vectors.conj().swapaxes(-1, -2)
        triangle = _triangle(adjoint @ vectors, taus[..., start:end])
        part = product[..., start:, start:]
        part -= vectors @ (triangle @ (adjoint @ part))
    return product


def _multiply_reflections(function: Callable[..., None], a: Array, taus: Array) -> Array:
    """The product by LAPACK's `orgqr`."""
    rows, columns = a.shape[-2:]
    product = np.array(a.swapaxes(-1, -2), order="C")
    numbers = np.array([rows, columns, taus.shape[-1], 0], _INT64)
    m, n, k, info = [numbers.ctypes.data + 8 * index for index in range(4)]
    work, own = np.empty(columns, a.dtype), np.ascontiguousarray(taus)
    stacks = product.reshape(-1, columns, rows), own.reshape(-1, taus.shape[-1])
    for matrix, tau in zip(*map(blas.addresses, stacks), strict=True):
        function(m, n, k, matrix, m, tau, work.ctypes.data, n, info)
    return product.swapaxes(-1, -2)


def _triangle(inner: Array, taus: Array) -> Array:
    """T of a block of reflections, from the inner products of its vectors."""
    triangle = np.zeros_like(inner)
    for column in range(taus.shape[-1]):
        tau = taus[..., column, None]
        before = triangle[..., :column, :column] @ inner[..., :column, column, None]
        triangle[..., :column, column] = -tau * before[..., 0]
        triangle[..., column, column] = tau[..., 0]
    return triangle


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
    """A placeholder for a result that is not wanted: zeros of its type."""
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


def check(value: Any, good: Any, message: str, raises: str = ops.Check.raises) -> Any:
    """`value`; an error of class `raises` unless all is good."""
    if not np.all(good):
        bad = np.argwhere(~np.atleast_1d(good))
        raise ops.Check(message, raises).error(bad[0], np.shape(good))
    return value


# --- rows --------------------------------------------------------------------------------------------


def _call(name: str, *attributes: str, declared: bool = False) -> Any:
    """A row: the function on the operands and these attributes of the op."""

    def write(emitter: Emitter, step: Step) -> str:
        arguments = emitter.operands(step)
        arguments += [repr(getattr(step.op, attribute)) for attribute in attributes]
        if declared:
            types = emitter.types(step.outputs)
            arguments.append(emitter.constant(tuple([(type.dtype, type.shape) for type in types])))
        return f"{name}({', '.join(arguments)})"

    return write


SCOPE: Final[dict[str, Any]] = {
    f.__name__: f for f in (lu, geqrf, householder_product, svd, eigh, eig, solve, log_determinant, check)
}

ROWS: Final[Rows] = {
    ops.Eig: _call("eig", "compute_left", "compute_right", declared=True),
    ops.Eigh: _call("eigh", "lower", "compute_v", declared=True),
    ops.Geqrf: _call("geqrf"),
    ops.HouseholderProduct: _call("householder_product"),
    ops.LogDeterminant: _call("log_determinant"),
    ops.Lu: _call("lu"),
    ops.Solve: _call("solve", declared=True),
    ops.Svd: _call("svd", "full_matrices", "compute_uv", declared=True),
}
