"""Factors of matrices, systems of equations and determinants by LAPACK, as NumPy gives access to it.

NumPy refuses a whole batch for the sake of one matrix; then each is done alone, and those that fail become
NaN.  LU factors and products of reflections, which NumPy does not give, are made here, most of it by products of
matrices.
"""

from __future__ import annotations

import ctypes
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

#: Up to so many columns are eliminated one by one, more of them by halves.
_BLOCK: Final = 16
#: Reflections that are applied as one product of matrices.
_REFLECTIONS: Final = 32
_INT32: Final = np.dtype(np.int32)
_linalg: Final[Any] = np.linalg


# --- LU ----------------------------------------------------------------------------------------------


def lu(a: Array) -> Arrays:
    """(factors, pivots, info)"""
    batch, (rows, columns) = a.shape[:-2], a.shape[-2:]
    count = min(rows, columns)
    factors = np.array(a, order="C").reshape(prod(batch), rows, columns)
    pivots = np.empty((len(factors), count), _INT32)
    if factors.size:
        order = _factorise(factors[:, :, :count], pivots)
        if columns > count:
            behind = factors[:, :, count:]
            _reorder(behind, order)
            _solve_unit_lower(factors[:, :, :count], behind)
    zeros = np.diagonal(factors, axis1=1, axis2=2) == 0
    first = np.argmax(zeros, axis=1) if count else 0
    info = np.where(zeros.any(axis=1), first + 1, 0).astype(_INT32)
    return factors.reshape(a.shape), (pivots + 1).reshape(*batch, count), info.reshape(batch)


def _factorise(matrices: Array, pivots: Array) -> Array:
    """Factor matrices with no more columns than rows in place, by halves, so that most of it is products.

    Writes the row that was swapped with each, from 0, and returns which row each has become.

    Source: Toledo, "Locality of reference in LU decomposition with partial pivoting", 1997.
    """
    columns = matrices.shape[2]
    if columns <= _BLOCK:
        return _eliminate(matrices, pivots)
    half = columns // 2
    left, right = matrices[:, :, :half], matrices[:, :, half:]
    order = _factorise(left, pivots[:, :half])
    _reorder(right, order)
    _solve_unit_lower(left[:, :half], right[:, :half])
    right[:, half:] -= left[:, half:] @ right[:, :half]
    later = _factorise(right[:, half:], pivots[:, half:])
    _reorder(left[:, half:], later)
    pivots[:, half:] += half
    order[:, half:] = np.take_along_axis(order[:, half:], later, axis=1)
    return order


def _eliminate(matrices: Array, pivots: Array) -> Array:
    """Factor matrices as `_factorise` does, column after column."""
    batch, rows, columns = matrices.shape
    every = np.arange(batch)
    order = np.broadcast_to(np.arange(rows), (batch, rows)).copy()
    panel = matrices.swapaxes(1, 2).copy()  # What is searched and scaled lies together.
    if batch == 1:
        _eliminate_one(panel[0], pivots[0], order[0])
    for column in range(columns if batch > 1 else 0):
        pivot = column + _largest(panel[:, column, column:])
        pivots[:, column] = pivot
        for held in (panel, order[:, None]):
            chosen = held[every, :, pivot]
            held[every, :, pivot] = held[:, :, column]
            held[:, :, column] = chosen
        corner = panel[:, column, column, None]
        multipliers = panel[:, column, column + 1 :]
        multipliers /= np.where(corner == 0, 1, corner)
        panel[:, column + 1 :, column + 1 :] -= panel[:, column + 1 :, column, None] * multipliers[:, None]
    matrices[...] = panel.swapaxes(1, 2)
    return order


def _eliminate_one(panel: Array, pivots: Array, order: Array) -> None:
    """Factor one matrix as `_eliminate` does, whose columns are the rows of `panel`, in fewer steps."""
    for index, column in enumerate(panel):
        pivot = index + int(_largest(column[index:]))
        pivots[index] = pivot
        if pivot != index:
            pair, other = [index, pivot], [pivot, index]
            panel[:, pair] = panel[:, other]
            order[pair] = order[other]
        multipliers = column[index + 1 :]
        if column[index] != 0:
            multipliers /= column[index]
        panel[index + 1 :, index + 1 :] -= panel[index + 1 :, index, None] * multipliers


def _largest(vectors: Array) -> Array:
    """Where the largest element of each vector is; NaN is never the largest."""
    sizes = np.abs(vectors.real) + np.abs(vectors.imag) if vectors.dtype.kind == "c" else np.abs(vectors)
    if np.isnan(sizes.max()):
        sizes = np.where(np.isnan(sizes), -1, sizes)
    indices: Array = np.argmax(sizes, axis=-1)
    return indices


def _reorder(matrices: Array, order: Array) -> None:
    """Let each matrix have its rows in another order."""
    moved = np.flatnonzero((order != np.arange(order.shape[1])).any(axis=0))
    matrices[:, moved] = matrices[np.arange(len(matrices))[:, None], order[:, moved]]


def _solve_unit_lower(lower: Array, right: Array) -> None:
    """Solve L x = b in place, for L the strictly lower triangles and ones."""
    size = lower.shape[1]
    if size > _BLOCK:
        half = size // 2
        _solve_unit_lower(lower[:, :half, :half], right[:, :half])
        right[:, half:] -= lower[:, half:, :half] @ right[:, :half]
        _solve_unit_lower(lower[:, half:, half:], right[:, half:])
        return
    # Not by products, for which BLAS would call on its threads each time.
    for row in range(size - 1):
        right[:, row + 1 :] -= lower[:, row + 1 :, row, None] * right[:, row, None]


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
    address = blas.reflections(ops.HouseholderProduct(), a.dtype, a.shape) if a.size else None
    if address is not None:
        return _multiply_reflections(address, a, taus)
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


#: m, n, k, the matrix in column-major order, its leading dimension, taus, memory for work and its size, and a status.
_ORGQR: Final = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 9)


def _multiply_reflections(address: int, a: Array, taus: Array) -> Array:
    """The product by LAPACK's `orgqr`."""
    *batch, rows, columns = a.shape
    product = np.array(a.swapaxes(-1, -2), order="C")
    numbers = np.array([rows, columns, taus.shape[-1], 0], np.int64)
    m, n, k, info = [numbers.ctypes.data + 8 * index for index in range(4)]
    work, own = np.empty(columns, a.dtype), np.ascontiguousarray(taus)
    function, nbytes = _ORGQR(address), rows * columns * a.itemsize
    for index in range(prod(batch)):
        tau = own.ctypes.data + index * taus.shape[-1] * a.itemsize
        function(m, n, k, product.ctypes.data + index * nbytes, m, tau, work.ctypes.data, n, info)
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
