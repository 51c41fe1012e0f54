"""Factors of matrices by the algorithms of textbooks, in higher precision where there is one.

Source: Golub and Van Loan, Matrix Computations: Gaussian elimination (3.4), Householder's reflections (5.1),
Jacobi's methods for eigenvalues and singular values (8.5, 8.6), the QR iteration (7.5).
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from xarr.dtypes import COMPLEX
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr_reference.scalars import round_to
from xarr_reference.values import Array, Rule, Value, indices

#: Rounds of an iteration after which it counts as one that does not converge.
_ROUNDS: Final = 100


def _wide(a: Array) -> Array:
    """The numbers of an array with twice the precision, as far as there is such a type."""
    return a.astype(np.clongdouble if a.dtype in COMPLEX else np.longdouble)


def _store(target: Array, values: Array) -> None:
    for index in indices(target.shape):
        target[index] = round_to(values[index], target.dtype)


def _results(node: Node) -> list[Array]:
    """Storage for each result, of zeros."""
    return [np.zeros(type.shape, type.dtype) for type in node.op.results(node)]  # type: ignore[union-attr]


# --- elimination ----------------------------------------------------------------------------------


def lu(node: Node, a: Array) -> Value:
    """For each column k: exchange row k with the one whose element is largest, then row i -= l[i,k] row k.

    l[i,k] = u[i,k] / u[k,k] is kept where the zero would be.
    """
    factors, pivots, info = _results(node)
    for batch in indices(a.shape[:-2]):
        matrix = _wide(a[batch])
        for k in range(min(matrix.shape)):
            pivot = max(range(k, len(matrix)), key=lambda i: _size(matrix[i, k]))
            pivots[(*batch, k)] = pivot + 1
            matrix[[k, pivot]] = matrix[[pivot, k]]
            if matrix[k, k] == 0:
                info[batch] = info[batch] or k + 1
                continue
            for i in range(k + 1, len(matrix)):
                matrix[i, k] = matrix[i, k] / matrix[k, k]
                matrix[i, k + 1 :] -= matrix[i, k] * matrix[k, k + 1 :]
        _store(factors[batch], matrix)
    return factors, pivots, info


def _size(value: Any) -> Any:
    """The size by which LAPACK compares: cheaper than the absolute value.  NaN is never the largest."""
    size = abs(value.real) + abs(value.imag)
    return -1 if np.isnan(size) else size


# --- reflections ----------------------------------------------------------------------------------


def geqrf(node: Node, a: Array) -> Value:
    """For each column k the reflection H = 1 - tau v v* that makes H* column k real, and zero below k."""
    factors, taus = _results(node)
    for batch in indices(a.shape[:-2]):
        matrix = _wide(a[batch])
        for k in range(min(matrix.shape)):
            vector, tau, beta = _reflection(matrix[k:, k])
            rest = matrix[k:, k + 1 :]
            rest -= np.conj(tau) * np.outer(vector, vector.conj() @ rest)
            matrix[k, k], matrix[k + 1 :, k] = beta, vector[1:]
            taus[(*batch, k)] = round_to(tau, taus.dtype)
        _store(factors[batch], matrix)
    return factors, taus


def _reflection(column: Array) -> tuple[Array, Any, Any]:
    """(v, tau, beta) with (1 - tau v v*)* column = (beta, 0, 0 …) and v[0] = 1; tau = 0 if it is so already."""
    alpha, rest = column[0], column[1:]
    norm = np.sqrt(sum(abs(value) ** 2 for value in column))
    vector = np.zeros_like(column)
    vector[0] = 1
    if not any(rest) and np.imag(alpha) == 0:
        return vector, column.dtype.type(0), alpha
    beta = -norm if np.real(alpha) >= 0 else norm
    vector[1:] = rest / (alpha - beta)
    return vector, (beta - alpha) / beta, beta


def householder_product(node: Node, a: Array, taus: Array) -> Value:
    """(1 - tau_1 v_1 v_1*) (1 - tau_2 v_2 v_2*) … times the first columns of the identity matrix."""
    (result,) = _results(node)
    for batch in indices(a.shape[:-2]):
        factors = _wide(a[batch])
        product = np.eye(*factors.shape, dtype=factors.dtype)
        for k in reversed(range(taus.shape[-1])):
            vector = np.concatenate([np.zeros(k), [1], factors[k + 1 :, k]]).astype(factors.dtype)
            product -= factors.dtype.type(taus[(*batch, k)]) * np.outer(vector, vector.conj() @ product)
        _store(result[batch], product)
    return result


# --- rotations ------------------------------------------------------------------------------------


def eigh(node: Node, a: Array) -> Value:
    """Jacobi's method: rotate one pair of dimensions after the other until a is diagonal."""
    v, w, info = _results(node)
    for batch in indices(a.shape[:-2]):
        triangle = np.tril(a[batch]) if node.op.expect(ops.Eigh).lower else np.triu(a[batch]).conj().T
        values, vectors, done = _diagonalise(_wide(triangle))
        order = sorted(range(len(values)), key=lambda i, values=values: values[i])  # type: ignore[misc]
        _store(w[batch], values[order])
        _store(v[batch], vectors[:, order])
        info[batch] = 0 if done else 1
    return v, w, info


def _diagonalise(lower: Array) -> tuple[Array, Array, bool]:
    """Eigenvalues and eigenvectors of a Hermitian matrix of which the lower triangle is given."""
    size = len(lower)
    a = np.tril(lower, -1) + np.tril(lower, -1).conj().T + np.diag(np.diag(lower).real)
    vectors = np.eye(size, dtype=a.dtype)
    for _ in range(_ROUNDS):
        if not np.isfinite(a).all():
            break
        if np.abs(np.triu(a, 1)).sum() <= np.finfo(a.dtype).tiny:
            return np.diag(a).real.copy(), vectors, True
        for p in range(size):
            for q in range(p + 1, size):
                if abs(a[p, q]) <= np.finfo(a.dtype).eps * np.sqrt(abs(a[p, p] * a[q, q])) / 16:
                    a[p, q] = a[q, p] = 0
                    continue
                rotation = _rotation(a[p, p].real, a[q, q].real, a[p, q])
                a[:, [p, q]] = a[:, [p, q]] @ rotation
                a[[p, q]] = rotation.conj().T @ a[[p, q]]
                vectors[:, [p, q]] = vectors[:, [p, q]] @ rotation
                a[p, q] = a[q, p] = 0
    return np.full(size, np.nan, lower.real.dtype), np.full_like(vectors, np.nan), False


def _rotation(alpha: Any, beta: Any, gamma: Any) -> Array:
    """The unitary 2 by 2 matrix J for which J* [[alpha, gamma], [conj(gamma), beta]] J is diagonal."""
    phase = gamma / abs(gamma)
    zeta = (beta - alpha) / (2 * abs(gamma))
    tangent = (1 if zeta >= 0 else -1) / (abs(zeta) + np.hypot(1, zeta))
    cosine = 1 / np.hypot(1, tangent)
    sine = cosine * tangent
    return np.array([[cosine, sine], [-np.conj(phase) * sine, np.conj(phase) * cosine]])


def svd(node: Node, a: Array) -> Value:
    """Jacobi's one-sided method: rotate pairs of columns until all are orthogonal; their norms are s."""
    assert isinstance(node.op, ops.Svd)
    scratch, s, u, vh, info = _results(node)
    scratch[...] = a
    for batch in indices(a.shape[:-2]):
        tall = a.shape[-2] >= a.shape[-1]
        matrix = _wide(a[batch])
        left, values, right, done = _orthogonalise(matrix if tall else matrix.conj().T)
        if not tall:
            left, right = right, left
        _store(s[batch], values)
        _store(u[batch], _complete_basis(left, u.shape[-1]))
        _store(vh[batch], _complete_basis(right, vh.shape[-2]).conj().T)
        info[batch] = 0 if done else 1
    return scratch, s, u, vh, info


def _orthogonalise(matrix: Array) -> tuple[Array, Array, Array, bool]:
    """(u, s, v, whether it converged) with u s v* = matrix, s descending, for no more columns than rows."""
    work, size = matrix.copy(), matrix.shape[1]
    v = np.eye(size, dtype=work.dtype)
    eps = np.finfo(work.dtype).eps
    # Columns of rounding errors alone have no direction.
    least = (eps * max(np.abs(work).max(initial=0), np.finfo(work.dtype).tiny)) ** 2
    for _ in range(_ROUNDS):
        still = bool(np.isfinite(work).all())
        for p in range(size):
            for q in range(p + 1, size):
                alpha, beta = (np.vdot(work[:, i], work[:, i]).real for i in (p, q))
                gamma = np.vdot(work[:, p], work[:, q])
                if min(alpha, beta) > least and abs(gamma) > eps * np.sqrt(alpha) * np.sqrt(beta):
                    still = False
                    rotation = _rotation(alpha, beta, gamma)
                    work[:, [p, q]] = work[:, [p, q]] @ rotation
                    v[:, [p, q]] = v[:, [p, q]] @ rotation
        if still:
            values = np.sqrt(
                np.array([np.vdot(work[:, i], work[:, i]).real for i in range(size)], v.real.dtype)
            )
            order = sorted(range(size), key=lambda i: -values[i])
            nonzero = [i for i in order if values[i] ** 2 > least]
            return work[:, nonzero] / values[nonzero], values[order], v[:, order], True
    nothing = np.full(size, np.nan, v.real.dtype)
    return np.full_like(matrix, np.nan), nothing, np.full_like(v, np.nan), False


def _complete_basis(columns: Array, count: int) -> Array:
    """The first `count` columns, and more unit vectors orthogonal to all before where there are too few."""
    basis = list(columns.T[:count])
    axes = iter(np.eye(len(columns), dtype=columns.dtype))
    while len(basis) < count:
        vector = next(axes)
        for _ in range(2):  # Once loses orthogonality to rounding, twice does not.
            for other in basis:
                vector = vector - np.vdot(other, vector) * other
        norm = np.sqrt(np.vdot(vector, vector).real)
        if norm > 0.5 / np.sqrt(max(len(columns), 1)):
            basis.append(vector / norm)
    return np.array(basis, columns.dtype).reshape(count, len(columns)).T


# --- QR iteration ---------------------------------------------------------------------------------


def eig(node: Node, a: Array) -> Value:
    """The QR iteration gives T = Q* a Q, upper triangular: its diagonal is w, its eigenvectors follow by
    substitution; left eigenvectors are right ones of a*."""
    assert isinstance(node.op, ops.Eig)
    *values, left, right, info = _results(node)
    for batch in indices(a.shape[:-2]):
        matrix = a[batch].astype(np.clongdouble)
        triangle, q, done = _schur(matrix)
        w = np.diag(triangle)
        parts = (w,) if len(values) == 1 else (w.real, w.imag)
        for target, part in zip(values, parts, strict=True):
            _store(target[batch], part)
        _store(right[batch], _normal(q @ _eigenvectors(triangle)))
        # T* is lower triangular; read backwards it is upper triangular.
        turned = _eigenvectors(triangle.conj().T[::-1, ::-1])[::-1, ::-1]
        _store(left[batch], _normal(q @ turned))
        info[batch] = 0 if done else 1
    return *values, left, right, info


def _schur(matrix: Array) -> tuple[Array, Array, bool]:
    """(T, Q, whether it converged) with Q T Q* = matrix: R Q of Q R = T - shift, until T is triangular."""
    t, q = matrix.copy(), np.eye(len(matrix), dtype=matrix.dtype)
    eps = np.finfo(matrix.dtype).eps
    for end in range(len(t) - 1, 0, -1):
        for count in range(_ROUNDS):
            if not np.isfinite(t).all():
                return np.full_like(t, np.nan), q, False
            if np.abs(t[end, :end]).sum() <= eps * np.abs(t).sum():
                t[end, :end] = 0
                break
            shift = _nearer(t[end - 1 : end + 1, end - 1 : end + 1])
            if count % 10 == 9:
                # Where the usual shift goes in circles, another one leads out.
                shift = np.abs(t[end, :end]).sum()
            block = slice(0, end + 1)
            rotation, triangle = _unitary(t[block, block] - shift * np.eye(end + 1))
            t[block, block] = triangle @ rotation + shift * np.eye(end + 1)
            t[block, end + 1 :] = rotation.conj().T @ t[block, end + 1 :]
            q[:, block] = q[:, block] @ rotation
        else:
            return np.full_like(t, np.nan), q, False
    return t, q, True


def _nearer(block: Array) -> Any:
    """The eigenvalue of a 2 by 2 matrix that is nearer to its last element: Wilkinson's shift."""
    (a, b), (c, d) = block
    half = (a - d) / 2
    root = np.sqrt(half * half + b * c)
    return min((d + half + root, d + half - root), key=lambda value: abs(value - d))


def _unitary(matrix: Array) -> tuple[Array, Array]:
    """(Q, R) with Q R = matrix, by reflections."""
    size = len(matrix)
    q, r = np.eye(size, dtype=matrix.dtype), matrix.copy()
    for k in range(size):
        vector, tau, _ = _reflection(r[k:, k])
        r[k:] -= np.conj(tau) * np.outer(vector, vector.conj() @ r[k:])
        q[:, k:] -= tau * np.outer(q[:, k:] @ vector, vector.conj())
    return q, np.triu(r)


def _eigenvectors(triangle: Array) -> Array:
    """Column k solves (T - T[k,k]) x = 0 with x[k] = 1, from the bottom up."""
    size = len(triangle)
    vectors = np.eye(size, dtype=triangle.dtype)
    limits = np.finfo(triangle.dtype)
    least = max(limits.eps * np.abs(triangle).max(initial=0), limits.tiny)
    for k in range(size):
        for i in range(k - 1, -1, -1):
            gap = triangle[i, i] - triangle[k, k]
            total = triangle[i, i + 1 : k + 1] @ vectors[i + 1 : k + 1, k]
            # A multiple eigenvalue: a neighbour of the matrix has two.
            vectors[i, k] = -total / (gap if abs(gap) > least else least)
    return vectors


def _normal(vectors: Array) -> Array:
    """Columns of norm 1 whose largest element is real, as LAPACK has them."""
    for column in vectors.T:
        column /= np.sqrt(np.vdot(column, column).real)
        largest = column[np.argmax(np.abs(column))]
        if abs(largest) > 0:
            column *= np.conj(largest) / abs(largest)
    return vectors


# --- checks ---------------------------------------------------------------------------------------


def check(node: Node, value: Array, good: Array) -> Value:
    """The value; an error if not all is good."""
    for index in indices(good.shape):
        if not good[index]:
            raise node.op.expect(ops.Check).error(index, good.shape)
    return value


TABLE: Final[dict[type[Op], Rule]] = {
    ops.Check: check,
    ops.Eig: eig,
    ops.Eigh: eigh,
    ops.Geqrf: geqrf,
    ops.HouseholderProduct: householder_product,
    ops.Lu: lu,
    ops.Svd: svd,
}
