"""Factors of matrices: Cholesky, QR, singular values, eigenvalues."""

from __future__ import annotations

from typing import Any, NamedTuple

from xarr import lax
from xarr.base.typing import Array
from xarr.calls.arguments import adjoint
from xarr.calls.remembered_calls import remembers_calls
from xarr.errors import ValueRangeError
from xarr.lax import linalg as lapack
from xarr.lax.core import ArrayLike, flag
from xarr.linalg._arguments import check_all, free_of_nan, in_order, matrices, spread, squares, swap_last_axes
from xarr.numpy_api.creation.matrices import tril, triu
from xarr.numpy_api.mathematics.elementwise import isfinite


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Real eigenvalues, ascending, and orthonormal eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """An orthonormal and an upper triangular factor."""

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """U, the singular values S, descending, and Vh with U S Vh = x."""

    U: Array
    S: Array
    Vh: Array


@remembers_calls
def cholesky(a: ArrayLike, /, *, upper: bool = False) -> Array:
    """The lower triangular L with L L* = a, or with `upper` L*, for Hermitian positive definite matrices.

    Only the lower (upper) triangle of a is read.
    Raises MatrixShapeError unless the matrices are square; LinAlgError for one that is not positive definite.
    Source: NumPy and Array API, `linalg.cholesky`.
    """
    array = squares("cholesky", a)
    is_upper = flag("linalg.cholesky", "upper", upper)
    factor = lapack.cholesky_of_triangle(array, lower=not is_upper)
    if not array.shape[-1]:
        return factor
    batch = factor.shape[:-2]
    corner = lax.slice(factor, [0] * factor.ndim, (*batch, 1, 1))
    first = lax.reshape(corner, batch)
    triangle = triu(factor) if is_upper else tril(factor)
    # A factor that failed is NaN everywhere.
    return check_all("Matrix is not positive definite", lax.eq(first, first), triangle)[0]


@remembers_calls
def qr(a: ArrayLike, mode: str = "reduced") -> Any:
    """(Q, R) with Q R = a, for k = min(m, n):

    "reduced": Q (…, m, k), R (…, k, n); "complete": Q (…, m, m), R (…, m, n); "r": R (…, k, n) alone;
    "raw": (h, tau), h the transpose of LAPACK's factors, in which reflections stand below R.

    Raises MatrixShapeError for rank 0 and 1, ValueRangeError for another mode.
    Source: NumPy and Array API, `linalg.qr`.
    """
    if mode not in ("reduced", "complete", "r", "raw"):
        raise ValueRangeError(f"linalg.qr: wanted mode 'reduced', 'complete', 'r' or 'raw', got {mode!r}")
    array = matrices("qr", a)
    if mode == "raw":
        factors, taus = lapack.geqrf(array)
        return swap_last_axes(factors), taus
    if mode == "r":
        factors, _ = lapack.geqrf(array)
        rows = min(factors.shape[-2:])
        return triu(lax.slice_in_dim(factors, 0, rows, axis=array.ndim - 2))
    return QRResult(*lapack.qr(array, full_matrices=mode == "complete"))


@remembers_calls
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """(U, S, Vh) with U S Vh = a, S descending; S alone without `compute_uv`.

    full_matrices: U (…, m, m) and Vh (…, n, n), else (…, m, k) and (…, k, n), k = min(m, n).
    hermitian: take a for Hermitian and use its eigenvalues, by the lower triangle.
    Raises MatrixShapeError for rank 0 and 1; LinAlgError if it does not converge.
    Source: NumPy and Array API, `linalg.svd`.
    """
    if flag("linalg.svd", "hermitian", hermitian):
        return _hermitian_svd(a) if compute_uv else _absolute_values(a)
    array = matrices("svd", a)
    if not compute_uv:
        return svdvals(array)
    u, s, vh = lapack.svd(array, full_matrices=flag("linalg.svd", "full_matrices", full_matrices))
    good = free_of_nan(s)
    return SVDResult(*check_all("SVD did not converge", good, u, s, vh))


def _absolute_values(a: ArrayLike) -> Array:
    """Singular values of Hermitian matrices: absolute eigenvalues, descending."""
    sizes = lax.abs(eigvalsh(a))
    return lax.rev(lax.sort(sizes, sizes.ndim - 1), (sizes.ndim - 1,))


def _hermitian_svd(a: ArrayLike) -> SVDResult:
    """From a = V w V*: U = V and Vh = sign(w) V*, in the order of |w|."""
    w, v = eigh(a)
    axis = w.ndim - 1
    positions = lax.broadcasted_iota("int32", w.shape, axis)
    negative, values, order = lax.sort((lax.neg(lax.abs(w)), w, positions), axis, num_keys=1)
    u = swap_last_axes(in_order(swap_last_axes(v), order))
    rows = adjoint(u)
    is_below = spread(lax.lt(values, lax.full_like(values, 0)), rows.shape)
    return SVDResult(u, lax.neg(negative), lax.select(is_below, lax.neg(rows), rows))


@remembers_calls
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values, descending.  Source: NumPy and Array API, `linalg.svdvals`."""
    s = lapack.svd(matrices("svdvals", x), compute_uv=False)
    return check_all("SVD did not converge", free_of_nan(s), s)[0]


@remembers_calls
def eigh(a: ArrayLike, UPLO: str = "L") -> EighResult:
    """(w, v) with a v = v w for Hermitian a, w ascending, the columns of v orthonormal.

    UPLO: the triangle that is read, "L" or "U".  Raises MatrixShapeError unless the matrices are square,
    ValueRangeError; LinAlgError if it does not converge.  Source: NumPy and Array API, `linalg.eigh`.
    """
    lower = _is_lower("eigh", UPLO)
    v, w = lapack.eigh(squares("eigh", a), lower=lower, symmetrize_input=False)
    good = free_of_nan(w)
    return EighResult(*check_all("Eigenvalues did not converge", good, w, v))


@remembers_calls
def eigvalsh(a: ArrayLike, UPLO: str = "L") -> Array:
    """The eigenvalues of Hermitian matrices, ascending.  Source: NumPy and Array API, `linalg.eigvalsh`."""
    lower = _is_lower("eigvalsh", UPLO)
    _, w, _ = lapack.syevd(squares("eigvalsh", a), lower, compute_v=False)
    return check_all("Eigenvalues did not converge", free_of_nan(w), w)[0]


def _is_lower(name: str, triangle: str) -> bool:
    if triangle not in ("L", "U", "l", "u"):
        raise ValueRangeError(f"linalg.{name}: wanted UPLO 'L' or 'U', got {triangle!r}")
    return triangle.upper() == "L"


@remembers_calls
def eig(a: ArrayLike) -> EigResult:
    """(w, v) with a v = v w; the columns of v have norm 1.

    Both are complex, also where NumPy, after looking at the values, gives reals.
    Raises MatrixShapeError unless the matrices are square; LinAlgError for NaN and infinities and if it does
    not converge.  Source: NumPy and Array API, `linalg.eig`.
    """
    array = _finite(squares("eig", a))
    w, v = lapack.eig(array, compute_left_eigenvectors=False)
    good = free_of_nan(w)
    return EigResult(*check_all("Eigenvalues did not converge", good, w, v))


@remembers_calls
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues, complex, also where NumPy gives reals.  Source: NumPy and Array API, `linalg.eigvals`."""
    array = _finite(squares("eigvals", a))
    (w,) = lapack.eig(array, compute_left_eigenvectors=False, compute_right_eigenvectors=False)
    return check_all("Eigenvalues did not converge", free_of_nan(w), w)[0]


def _finite(array: Array) -> Array:
    finite = lax.reduce_and(isfinite(array), (array.ndim - 2, array.ndim - 1))
    return check_all("Array must not contain infs or NaNs", finite, array)[0]
