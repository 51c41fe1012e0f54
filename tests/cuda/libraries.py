"""Libraries of CUDA on the host, for tests: NumPy computes, and what the libraries refuse is refused.

Sources: the documentation of cuBLAS 13, `cublasGemmStridedBatchedEx`; CuPy 14.2, `cupy.fft`, `cupy.linalg`.
"""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any, Final

import ml_dtypes
import numpy as np

_TYPES: Final[dict[int, Any]] = {
    **{0: np.float32, 1: np.float64, 2: np.float16, 4: np.complex64, 5: np.complex128},
    14: ml_dtypes.bfloat16,
}
#: (compute type, type of A and B, type of C) that cuBLAS has, and what it sums up in.
_SUPPORTED: Final = {
    **{(69, 0, 0): np.float32, (69, 4, 4): np.complex64, (71, 1, 1): np.float64, (71, 5, 5): np.complex128},
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


def _refusing(function: Any) -> Any:
    """A function of NumPy that refuses elements that CuPy's libraries do not take, and NumPy would convert."""

    def call(x: Any, *arguments: Any, **options: Any) -> Any:
        if not isinstance(x, np.ndarray) or x.dtype.char not in "fdFD":
            raise LibraryError(
                f"{function.__name__}: a dtype of float32 or wider was expected, got {x.dtype}"
            )
        return function(x, *arguments, **options)

    return call


_SHARED: Final = (
    *("ascontiguousarray", "conj", "diagonal", "eye", "full_like", "ones", "stack", "where", "zeros"),
    "ndarray",
)
_FFT: Final = ("fftn", "ifftn", "rfftn", "irfft")
#: The part of CuPy that libraries are called by.
ARRAYS: Final = SimpleNamespace(
    **{name: getattr(np, name) for name in _SHARED},
    fft=SimpleNamespace(**{name: _refusing(getattr(np.fft, name)) for name in _FFT}),
    linalg=SimpleNamespace(
        **{name: _refusing(getattr(np.linalg, name)) for name in ("cholesky", "eigh", "qr", "svd")}
    ),
)
