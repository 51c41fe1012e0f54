"""Cholesky factors, triangular systems and Fourier transforms, by their textbook formulas."""

from __future__ import annotations

import cmath
import math
from typing import Any, Final

import numpy as np

from xarr.dtypes import COMPLEX
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.op import Op
from xarr.ir.ops.fourier import half_length
from xarr.ir.types import Ints
from xarr_reference.scalars import DType, round_to, wide
from xarr_reference.values import Array, Rule, empty, indices

Number = Any


def _wide(dtype: DType) -> DType:
    """Twice the precision, as far as there is such a type."""
    return np.dtype(np.clongdouble if dtype in COMPLEX else np.longdouble)


def _round_elements(matrix: Array, dtype: DType) -> Array:
    """The elements of a matrix rounded to `dtype`."""
    result = np.empty(matrix.shape, dtype)
    for index in indices(matrix.shape):
        result[index] = round_to(matrix[index], dtype)
    return result


def cholesky(node: Node, a: Array) -> Array:
    """l[i,j] = (a[i,j] - sum over k < j of l[i,k] conj(l[j,k])) / l[j,j]

    l[j,j] = sqrt(re a[j,j] - sum over k < j of |l[j,k]|²)
    """
    result = empty(node.type)
    for batch in indices(a.shape[:-2]):
        result[batch] = _round_elements(_factor(a[batch], node.op.expect(ops.Cholesky).lower), a.dtype)
    return result


def _factor(a: Array, lower: bool) -> Array:
    size = a.shape[-1]
    factor = np.zeros(a.shape, _wide(a.dtype))
    for i in range(size):
        for j in range(i + 1):
            entry = wide(a[i, j]) if lower else np.conj(wide(a[j, i]))
            rest = sum((factor[i, k] * np.conj(factor[j, k]) for k in range(j)), start=factor.dtype.type(0))
            if i > j:
                factor[i, j] = (entry - rest) / factor[j, j]
            elif not np.real(entry - rest) > 0 or not np.isfinite(np.real(entry - rest)):
                return np.full(a.shape, np.nan, factor.dtype)
            else:
                factor[i, i] = np.sqrt(np.real(entry - rest))
    return factor if lower else factor.conj().T


def triangular_solve(node: Node, a: Array, b: Array) -> Array:
    """x[i] = (b[i] - sum over the rows j solved before of op(a)[i,j] x[j]) / op(a)[i,i]

    from the first row on if op(a) is lower, else from the last; for x op(a) = b the same with columns.
    """
    assert isinstance(node.op, ops.TriangularSolve)
    result = empty(node.type)
    for batch in indices(a.shape[:-2]):
        right = b[batch] if node.op.left_side else b[batch].T
        solved = _round_elements(_solve(node.op, a[batch], right), b.dtype)
        result[batch] = solved if node.op.left_side else solved.T
    return result


def _solve(op: ops.TriangularSolve, a: Array, b: Array) -> Array:
    size = a.shape[-1]
    flipped = (op.transpose_a != "NO_TRANSPOSE") == op.left_side

    def entry(i: int, j: int) -> Number:
        value = wide(a[j, i] if flipped else a[i, j])
        return np.conj(value) if op.transpose_a == "ADJOINT" else value

    x = np.zeros(b.shape, _wide(b.dtype))
    order = range(size) if op.lower != flipped else range(size - 1, -1, -1)
    for step, i in enumerate(order):
        for column in range(b.shape[1]):
            value = x.dtype.type(wide(b[i, column]))
            for j in order[:step]:
                value = value - entry(i, j) * x[j, column]
            x[i, column] = value if op.unit_diagonal else value / entry(i, i)
    return x


def fft(node: Node, operand: Array) -> Array:
    """result[k] = sum over n of operand[n] exp(-2 pi i (k n / length)), along one axis after the other

    With + in the exponent and divided by the length for the inverse.  RFFT keeps the first half of the last
    axis; IRFFT completes it first, by result[length - k] = conj(result[k]).
    """
    op = node.op.expect(ops.Fft)
    values = np.array([complex(value) for value in operand.reshape(-1)], complex).reshape(operand.shape)
    rank, count = operand.ndim, len(op.fft_length)
    sign = 1 if op.fft_type in ("IFFT", "IRFFT") else -1
    for axis, length in reversed(list(zip(range(rank - count, rank), op.fft_length, strict=True))):
        if axis == rank - 1 and op.fft_type == "IRFFT":
            continue
        values = _transform(values, axis, length, sign)
    if op.fft_type == "RFFT":
        values = values[..., : half_length(op.fft_length[-1])]
    if op.fft_type == "IRFFT":
        values = _transform(
            _complete_spectrum(values, op.fft_length[-1]), rank - 1, op.fft_length[-1], sign
        ).real
    result = empty(node.type)
    for index in indices(result.shape):
        result[index] = round_to(values[index], result.dtype)
    return result


def _transform(values: Array, axis: int, length: int, sign: int) -> Array:
    moved = np.moveaxis(values, axis, -1)
    result = np.zeros_like(moved)
    for index in indices(moved.shape):
        row, k = index[:-1], index[-1]
        terms = [moved[(*row, n)] * _root(sign * k * n, length) for n in range(length)]
        total = _sum(terms)
        result[index] = total / length if sign > 0 else total
    return np.moveaxis(result, -1, axis)


def _sum(terms: list[complex]) -> complex:
    """The sum, rounded once if it is finite."""
    if all(map(cmath.isfinite, terms)):
        return complex(math.fsum(term.real for term in terms), math.fsum(term.imag for term in terms))
    return sum(terms, start=0j)


def _root(numerator: int, length: int) -> complex:
    """exp(2 pi i numerator / length)"""
    return cmath.exp(2j * math.pi * (numerator % length) / length)


def _complete_spectrum(half: Array, length: int) -> Array:
    """The numbers of a real signal's transform from its first half."""
    shape: Ints = (*half.shape[:-1], length)
    result = np.zeros(shape, complex)
    for index in indices(shape):
        row, k = index[:-1], index[-1]
        value = half[index] if k < half.shape[-1] else half[(*row, length - k)].conjugate()
        alone = k == 0 or 2 * k == length
        result[index] = value.real if alone else value
    return result


TABLE: Final[dict[type[Op], Rule]] = {
    ops.Cholesky: cholesky,
    ops.Fft: fft,
    ops.TriangularSolve: triangular_solve,
}
