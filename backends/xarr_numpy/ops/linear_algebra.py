"""Cholesky factors by LAPACK, triangular systems by a BLAS, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from xarr.compiler.plan.program_plan import Step
from xarr.dtypes import EXTENDED_FLOAT
from xarr.ir import ops
from xarr.ir.ops.factorisations import LETTERS
from xarr.ir.types import Ints
from xarr_numpy import blas
from xarr_numpy.functions.conversion import convert
from xarr_numpy.ops.table_rows import Rows

if TYPE_CHECKING:
    from xarr_numpy.program import Emitter

Array = np.ndarray[Any, Any]

_F32: Final = np.dtype(np.float32)


def _computing_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type to compute in: float32 for narrower floats."""
    return _F32 if dtype in EXTENDED_FLOAT or dtype == np.float16 else dtype


def cholesky(a: Array, lower: bool) -> Array:
    """The factor of each matrix, NaN where it is not positive definite."""
    wide = a.astype(_computing_type(a.dtype), copy=False)
    try:
        factor = np.linalg.cholesky(wide, upper=not lower)
    except np.linalg.LinAlgError:
        # NumPy refuses all matrices for the sake of one.
        flat = wide.reshape(-1, *wide.shape[-2:])
        factor = np.array([_factor(matrix, lower) for matrix in flat], wide.dtype).reshape(wide.shape)
    # Some builds of LAPACK let a zero on the diagonal pass.
    singular = np.asarray(~(np.diagonal(factor, axis1=-2, axis2=-1).real > 0).all(-1))
    if singular.any():
        factor = np.where(singular[..., None, None], wide.dtype.type(np.nan), factor)
    return convert(factor, a.dtype)


def _factor(matrix: Array, lower: bool) -> Array:
    try:
        return np.linalg.cholesky(matrix, upper=not lower)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


def triangular_solve(
    a: Array, b: Array, left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str
) -> Array:
    """The solution of op(a) x = b, or of x op(a) = b."""
    dtype = _computing_type(a.dtype)
    matrix, right = (each.astype(dtype, copy=False) for each in (a, b))
    function = blas.function(f"{LETTERS[dtype]}trsm", 11)
    if function is not None and b.size:
        x = np.array(right, order="C")
        letters = letters_of_trsm(left_side, lower, unit_diagonal, transpose_a)
        _solve_by_blas(function, letters, np.ascontiguousarray(matrix), x)
        return convert(x, b.dtype)
    is_lower = lower
    matrix = (np.tril if lower else np.triu)(matrix)
    # x op(a) = b is op(a)ᵀ xᵀ = bᵀ, so two transpositions are none.
    if (transpose_a != "NO_TRANSPOSE") == left_side:
        matrix, is_lower = matrix.swapaxes(-1, -2), not lower
    if transpose_a == "ADJOINT":
        matrix = matrix.conj()
    right = right if left_side else right.swapaxes(-1, -2)
    if not is_lower:
        matrix, right = matrix[..., ::-1, ::-1], right[..., ::-1, :]
    x = _forward(matrix, np.array(right), unit_diagonal)
    x = x if is_lower else x[..., ::-1, :]
    return convert(x if left_side else x.swapaxes(-1, -2), b.dtype)


def letters_of_trsm(left_side: bool, lower: bool, unit_diagonal: bool, transpose_a: str) -> str:
    """The letters of a BLAS for systems whose matrices it sees transposed, in column-major order, as their products."""
    side, triangle, diagonal = "R" if left_side else "L", "U" if lower else "L", "U" if unit_diagonal else "N"
    return f"{side}{triangle}{transpose_a[0].replace('A', 'C')}{diagonal}"


def _solve_by_blas(function: Callable[..., None], letters: str, a: Array, x: Array) -> None:
    """Solve systems in place by a BLAS's `trsm`."""
    *batch, rows, columns = x.shape
    numbers, one = np.array([columns, rows, a.shape[-1]], np.int64), np.ones((), x.dtype)
    m, n, size = [numbers.ctypes.data + 8 * index for index in range(3)]
    held = np.frombuffer(letters.encode(), np.uint8)
    words = [held.ctypes.data + index for index in range(len(letters))]
    stacks = [each.reshape(prod(batch), *each.shape[-2:]) for each in (a, x)]
    for matrix, right in zip(*map(blas.addresses, stacks), strict=True):
        function(*words, m, n, one.ctypes.data, matrix, size, right, m)


def _forward(matrix: Array, x: Array, unit_diagonal: bool) -> Array:
    """Forward substitution in place: x holds the right sides and becomes the solution."""
    for row in range(matrix.shape[-1]):
        x[..., row, :] -= np.matmul(matrix[..., row, None, :row], x[..., :row, :])[..., 0, :]
        if not unit_diagonal:
            x[..., row, :] /= matrix[..., row, row, None]
    return x


def fft(x: Array, kind: str, lengths: Ints, shape: Ints, dtype: np.dtype[Any]) -> Array:
    """NumPy's transform over the last axes; zeros where there is nothing to transform."""
    if 0 in shape or 0 in x.shape:
        return np.zeros(shape, dtype)
    axes = tuple(range(-len(lengths), 0))
    if kind == "IRFFT":
        return np.fft.irfftn(x, lengths, axes).astype(dtype, copy=False)
    transform = {"FFT": np.fft.fftn, "IFFT": np.fft.ifftn, "RFFT": np.fft.rfftn}[kind]
    return transform(x, axes=axes).astype(dtype, copy=False)


# --- rows --------------------------------------------------------------------------------------------


def _cholesky(emitter: Emitter, step: Step) -> str:
    return f"cholesky({emitter.value(step.inputs[0])}, {step.op.expect(ops.Cholesky).lower})"


def _triangular_solve(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.TriangularSolve)
    a, b = emitter.operands(step)
    flags = f"{op.left_side}, {op.lower}, {op.unit_diagonal}, {op.transpose_a!r}"
    return f"triangular_solve({a}, {b}, {flags})"


def _fft(emitter: Emitter, step: Step) -> str:
    op = step.op.expect(ops.Fft)
    operand, type = emitter.value(step.inputs[0]), emitter.result_type(step)
    return f"fft({operand}, {op.fft_type!r}, {op.fft_length}, {type.shape}, {emitter.constant(type.dtype)})"


SCOPE: Final[dict[str, Any]] = {f.__name__: f for f in (cholesky, triangular_solve, fft)}

ROWS: Final[Rows] = {
    ops.Cholesky: _cholesky,
    ops.Fft: _fft,
    ops.TriangularSolve: _triangular_solve,
}
