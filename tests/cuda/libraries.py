"""Libraries of CUDA on the host, for tests: NumPy computes, and what the libraries refuse is refused.

Sources: the documentation of cuBLAS 13, `cublasGemmStridedBatchedEx`; CuPy 14.2, `cupy.fft`, `cupy.linalg`.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, Final

import ml_dtypes
import numpy as np

from xarr_numpy.ops.factorisations import householder_product, lu
from xarr_numpy.ops.linear_algebra import triangular_solve

_TYPES: Final[dict[int, Any]] = {
    **{0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128},
    14: ml_dtypes.bfloat16,
}
#: (compute type, type of A and B, type of C) that cuBLAS has, and what it sums up in.
_SUPPORTED: Final = {
    **{(compute, 0, 0): np.float32 for compute in (68, 69)},
    **{(compute, 1, 1): np.float64 for compute in (70, 71)},
    # Those that are not pedantic may form the product of complex numbers of three of real ones.
    **{(69, 4, 4): np.complex64, (71, 5, 5): np.complex128},
    **{(68, type, result): np.float32 for type in (2, 14) for result in (type, 0)},
}


class LibraryError(RuntimeError):
    """A call that a library refuses, or that would read or write what it may not."""


def gemm_strided_batched_ex(handle: int, *arguments: int) -> None:
    """C = op(A) op(B) for each of a batch, of matrices that count down columns."""
    transa, transb, m, n, k, alpha, *rest = arguments
    a_address, a_type, lda, a_stride, b_address, b_type, ldb, b_stride, beta, *rest = rest
    c_address, c_type, ldc, c_stride, count, compute, _ = rest
    sums = _SUPPORTED.get((compute, a_type, c_type))
    if sums is None or a_type != b_type:
        raise LibraryError(
            f"CUBLAS_STATUS_NOT_SUPPORTED: types {a_type}, {b_type}, {c_type}, computed in {compute}"
        )
    if min(m, n, k, count) < 0 or max(m, n, k, count, lda, ldb, ldc) >= 2**31:
        raise LibraryError("CUBLAS_STATUS_INVALID_VALUE: a size")
    shapes = [(k, m) if transa else (m, k), (n, k) if transb else (k, n), (m, n)]
    for (rows, _), step, name in zip(shapes, (lda, ldb, ldc), ("lda", "ldb", "ldc"), strict=True):
        if step < max(1, rows):
            raise LibraryError(f"CUBLAS_STATUS_INVALID_VALUE: {name} = {step} of {rows} rows")
    scale = _scalar(alpha, sums)
    if _scalar(beta, sums) != 0:
        raise LibraryError("beta = 0 was expected: the result holds no numbers yet")
    if count > 1 and c_stride < ldc * (n - 1) + m:
        raise LibraryError("results of a batch overlap")
    a, b, c = (
        _matrices(address, _TYPES[type], (count, *shape), stride, step)
        for address, type, shape, stride, step in (
            (a_address, a_type, shapes[0], a_stride, lda),
            (b_address, b_type, shapes[1], b_stride, ldb),
            (c_address, c_type, shapes[2], c_stride, ldc),
        )
    )
    a, b = (a.swapaxes(1, 2) if transa else a), (b.swapaxes(1, 2) if transb else b)
    with np.errstate(all="ignore"):
        c[...] = (scale * np.matmul(a.astype(sums), b.astype(sums))).astype(c.dtype)


def _scalar(address: int, dtype: Any) -> Any:
    size = np.dtype(dtype).itemsize
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)[0]


def _matrices(address: int, dtype: Any, shape: tuple[int, int, int], stride: int, step: int) -> Any:
    """Matrices in memory, as an array that can be written."""
    size, (count, rows, columns) = np.dtype(dtype).itemsize, shape
    length = (stride * (count - 1) + step * (columns - 1) + rows) * size
    memory = np.frombuffer((ctypes.c_char * length).from_address(address), np.dtype(dtype))
    return np.lib.stride_tricks.as_strided(memory, shape, (stride * size, size, step * size), writeable=True)


# --- systems and factorisations --------------------------------------------------------------------------------


def _column_major(address: int, dtype: Any, shape: tuple[int, int], step: int, name: str) -> Any:
    """A matrix whose columns begin `step` elements apart."""
    if not address:
        raise LibraryError(f"CUBLAS_STATUS_INVALID_VALUE: no {name}")
    if step < max(1, shape[0]):
        raise LibraryError(f"CUBLAS_STATUS_INVALID_VALUE: ld{name} = {step} of {shape[0]} rows")
    return _matrices(address, dtype, (1, *shape), 0, step)[0]


def _vector(address: int, dtype: Any, count: int) -> Any:
    size = np.dtype(dtype).itemsize * count
    return np.frombuffer((ctypes.c_char * size).from_address(address), dtype)


def _trsm(dtype: Any) -> Any:
    def call(handle: int, *arguments: int) -> None:
        """Solve op(A) X = B, or X op(A) = B: X replaces B."""
        side, uplo, trans, diag, m, n, alpha, a_address, lda, b_address, ldb = arguments
        if not (handle == 1 and {side, uplo, diag} <= {0, 1} and trans in (0, 1, 2) and min(m, n) >= 0):
            raise LibraryError("CUBLAS_STATUS_INVALID_VALUE: an option")
        size = n if side else m
        a = _column_major(a_address, dtype, (size, size), lda, "a")
        b = _column_major(b_address, dtype, (m, n), ldb, "b")
        transpose = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")[trans]
        with np.errstate(all="ignore"):
            b[...] = triangular_solve(a, _scalar(alpha, dtype) * b, not side, not uplo, bool(diag), transpose)

    return call


def _trsm_batched(dtype: Any) -> Any:
    def call(handle: int, *arguments: int) -> None:
        *options, alpha, a_addresses, lda, b_addresses, ldb, count = arguments
        rows = zip(*(_vector(each, np.uint64, count) for each in (a_addresses, b_addresses)), strict=True)
        for a, b in rows:
            _trsm(dtype)(handle, *options, alpha, int(a), lda, int(b), ldb)

    return call


def _getrf(dtype: Any) -> Any:
    def call(handle: int, *arguments: int) -> None:
        m, n, a_address, lda, work, pivots, info = arguments
        if handle != 2 or not work:
            raise LibraryError("CUSOLVER_STATUS_INVALID_VALUE: handle or workspace")
        _factor(_column_major(a_address, dtype, (m, n), lda, "a"), pivots, info)

    return call


def _getrf_batched(dtype: Any) -> Any:
    def call(handle: int, n: int, addresses: int, lda: int, pivots: int, info: int, count: int) -> None:
        if handle != 1:
            raise LibraryError("CUBLAS_STATUS_NOT_INITIALIZED")
        for number, address in enumerate(_vector(addresses, np.uint64, count)):
            a = _column_major(int(address), dtype, (n, n), lda, "a")
            _factor(a, pivots + 4 * n * number, info + 4 * number)

    return call


def _factor(a: Any, pivots: int, info: int) -> None:
    with np.errstate(all="ignore"):
        a[...], _vector(pivots, np.int32, min(a.shape))[...], _vector(info, np.int32, 1)[0] = lu(a.copy())


def _orgqr(dtype: Any) -> Any:
    def call(handle: int, *arguments: int) -> None:
        m, n, k, a_address, lda, taus, work, size, info = arguments
        if handle != 2 or not work or size < n or not m >= n >= k >= 0:
            raise LibraryError("CUSOLVER_STATUS_INVALID_VALUE: handle, workspace or a size")
        a = _column_major(a_address, dtype, (m, n), lda, "a")
        a[...] = householder_product(a.copy(), _vector(taus, dtype, k))
        _vector(info, np.int32, 1)[0] = 0

    return call


_LETTERS: Final = {"s": np.float32, "d": np.float64, "c": np.complex64, "z": np.complex128}
#: Functions of CuPy's modules of cuBLAS and cuSOLVER, by their names there.
CUBLAS: Final = {
    f"{letter}{name}": make(dtype)
    for letter, dtype in _LETTERS.items()
    for name, make in (("trsm", _trsm), ("trsmBatched", _trsm_batched), ("getrfBatched", _getrf_batched))
}
CUSOLVER: Final = {
    **{f"{letter}getrf": _getrf(dtype) for letter, dtype in _LETTERS.items()},
    **{f"{letter}getrf_bufferSize": lambda handle, m, n, a, lda: m * n for letter in _LETTERS},
    **{f"{letter}{'un' if letter in 'cz' else 'or'}gqr": _orgqr(dtype) for letter, dtype in _LETTERS.items()},
    **{
        f"{letter}{'un' if letter in 'cz' else 'or'}gqr_bufferSize": lambda handle, m, n, k, a, lda, tau: n
        for letter in _LETTERS
    },
}
#: The numbers by which calls of cuBLAS and of cuSOLVER begin.
_HANDLES: Final = (1, 2)


def _refusing(function: Any) -> Any:
    """A function of NumPy that refuses elements that CuPy's libraries do not take, and NumPy would convert."""

    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype.char not in "fdFD":
            raise LibraryError(
                f"{function.__name__}: a dtype of float32 or wider was expected, got {x.dtype}"
            )
        return function(x, *arguments, **options)

    return call


_SORTED: Final = "?bBhHiIlLqQefdFD"


def _order_of_thrust(dtype: Any, data: int, keys: int, shape: tuple[int, ...]) -> tuple[Any, Any]:
    """A row in memory, of an element type that CuPy has, and the stable order into which Thrust sorts it."""
    if np.dtype(dtype).char not in _SORTED:
        raise LibraryError(f"sort: unsupported dtype {dtype}")
    if len(shape) != 1 or keys or not data:
        raise LibraryError("sort: one row was expected, which needs no numbers of rows")
    x = _vector(data, dtype, shape[0])
    if x.dtype.char not in "fd":
        return x, np.argsort(x, kind="stable")
    # CUB goes by bits, but for zeros: NaNs with a sign are the first.
    bits = np.where(x == 0, 0, x).astype(x.dtype).view(f"i{x.itemsize}")
    return x, np.argsort(np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits), kind="stable")


def _sort(dtype: Any, data: int, keys: int, shape: tuple[int, ...]) -> None:
    x, order = _order_of_thrust(dtype, data, keys, shape)
    x[...] = x[order]


def _argsort(dtype: Any, numbers: int, data: int, keys: int, shape: tuple[int, ...]) -> None:
    x, order = _order_of_thrust(dtype, data, keys, shape)
    _vector(numbers, np.uint64, shape[0])[...] = order
    x[...] = x[order]


#: CuPy's module of Thrust, which sorts where the elements lie.
THRUST: Final = SimpleNamespace(sort=_sort, argsort=_argsort)
_SHARED: Final = (
    *(
        "ascontiguousarray",
        "asarray",
        "conj",
        "copyto",
        "diagonal",
        "empty",
        "eye",
        "full_like",
        "isfinite",
        "ones",
        "sqrt",
    ),
    *("stack", "where", "zeros", "ndarray"),
)
_FFT: Final = ("fftn", "ifftn", "rfftn", "irfft")
#: The part of CuPy that libraries are called by.
ARRAYS: Final = SimpleNamespace(
    **{name: getattr(np, name) for name in _SHARED},
    fft=SimpleNamespace(**{name: _refusing(getattr(np.fft, name)) for name in _FFT}),
    linalg=SimpleNamespace(
        **{
            name: _refusing(getattr(np.linalg, name))
            for name in ("cholesky", "eig", "eigh", "inv", "qr", "svd")
        }
    ),
    cuda=SimpleNamespace(
        thrust=THRUST,
        cublas=SimpleNamespace(**CUBLAS),
        cusolver=SimpleNamespace(**CUSOLVER),
        get_cublas_handle=lambda: _HANDLES[0],
        device=SimpleNamespace(get_cusolver_handle=lambda: _HANDLES[1]),
    ),
)
