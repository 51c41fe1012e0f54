"""Calls of LAPACK and BLAS from machine code, one after the other: factors Q and R, L and U, triangular systems.


    void @geqrf_d_loop(ptr routine, ptr a, ptr taus, ptr result, ptr work, i64 count, i64 m, i64 n, i64 k)

and `orgqr` likewise, of so few reflections, k, that LAPACK applies them one by one, with n elements of `work` behind a
matrix.  The routines are those in NumPy's library, with integers of 64 bits, which get what `numpy.linalg.qr` gives
them, or the functions of `ops` in Python, so that the bits are the same: matrices in column-major order.  Elements are
moved as integers of as many bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from string import Template
from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.factorisations import LETTERS
from xarr_numpy import blas
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.plans.function_code import FunctionCode, Routine
from xarr_numpy.ops.linear_algebra import letters_of_trsm
from xarr_numpy.processor import PROCESSOR

_TRANSPOSE: Final = """
def transpose_${kind}_loop(target: ptr, source: ptr, rows: i64, columns: i64):
    for r in range(rows):
        for c in range(columns):
            target.$bits[c * rows + r] = source.$bits[r * columns + c]
"""

_REFLECTIONS: Final = """
def ${name}_${kind}_loop(
    routine: ptr, a: ptr, taus: ptr, result: ptr, work: ptr, count: i64, m: i64, n: i64, k: i64
):
    rows = m
    columns = n
    reflections = k
    info = 0
    matrix = $size * m * n
    for i in range(count):
        call(void, transpose_${kind}_loop, work, a + matrix * i, m, n)
        call(
            void, routine, address(rows), address(columns), ${reflections}work, address(rows), taus + $size * k * i,
            work + matrix, address(columns), address(info)
        )
        call(void, transpose_${kind}_loop, result + matrix * i, work, n, m)
"""

_FACTORS: Final = """
def getrf_${kind}_loop(
    routine: ptr, a: ptr, result: ptr, pivots: ptr, infos: ptr, work: ptr, count: i64, m: i64, n: i64, k: i64
):
    rows = m
    columns = n
    info = 0
    matrix = $size * m * n
    factors = work + 8 * k
    for i in range(count):
        call(void, transpose_${kind}_loop, factors, a + matrix * i, m, n)
        call(void, routine, address(rows), address(columns), factors, address(rows), work, address(info))
        call(void, transpose_${kind}_loop, result + matrix * i, factors, n, m)
        for j in range(k):
            pivots.i32[i * k + j] = i32(work.i64[j])
        infos.i32[i] = i32(info)
"""

_TRIANGULAR: Final = """
def trsm_${name}_${kind}_loop(
    routine: ptr, a: ptr, x: ptr, work: ptr, count: i64, n: i64, rows: i64, columns: i64
):
    size = n
    width = columns
    height = rows
    letters = stack(i8, 4)
    ${letters}
    work.$real[0] = $real(1.0)
    work.$real[1] = $real(0.0)
    for i in range(count):
        call(
            void, routine, letters, letters + 1, letters + 2, letters + 3, address(width), address(height), work,
            a + $size * n * n * i, address(size), x + $size * rows * columns * i, address(width)
        )
"""


@lru_cache
def _compile(kind: str, size: int, name: str, text: str, reflections: str = "") -> str:
    """A function on elements of `size` bytes."""
    words = {"kind": kind, "size": size, "bits": f"i{8 * size}", "name": name, "reflections": reflections}
    letters = [f"letters.i8[{k}] = {ord(letter)}" for k, letter in enumerate(name)]
    words |= {"real": "float" if kind in "sc" else "double", "letters": "\n    ".join(letters)}
    return compile_functions(Template(text).substitute(words))


def reflect_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_reflections` computes, about; None if it computes it not."""
    op = node.op
    if not isinstance(op, ops.Geqrf | ops.HouseholderProduct) or not node.operands[0].tensor_type.size:
        return None
    dtype, (*batch, m, n) = node.operands[0].dtype, node.operands[0].shape
    # Single precision NumPy computes in double, and converts it.
    if isinstance(op, ops.Geqrf) and LETTERS[dtype] in "sc":
        return None
    if blas.is_blocked((m, n)) or blas.routine(blas.name_of(op, dtype)) is None:
        return None
    return prod(batch) * (PROCESSOR.lapack_call_time + 2 * m * n * min(m, n) * PROCESSOR.scalar_time)


def write_reflections(
    code: FunctionCode, node: Node, operands: Sequence[str], results: Sequence[str]
) -> None:
    """Call LAPACK for each matrix of a node."""
    op, dtype = node.op, node.operands[0].dtype
    assert isinstance(op, ops.Geqrf | ops.HouseholderProduct)
    *batch, m, n = node.operands[0].shape
    kind, size = LETTERS[dtype], dtype.itemsize
    is_product = isinstance(op, ops.HouseholderProduct)
    k = node.operands[1].shape[-1] if is_product else min(m, n)
    name = "orgqr" if is_product else "geqrf"
    reflections = "address(reflections), " if is_product else ""
    code.helpers[f"transpose_{kind}"] = _compile(kind, size, "transpose", _TRANSPOSE)
    code.helpers[f"{name}_{kind}"] = _compile(kind, size, name, _REFLECTIONS, reflections)
    work = code.allocate(size * (m * n + n))
    taus, result = (operands[1], results[0]) if is_product else (results[1], results[0])
    routine = code.static(Routine(blas.name_of(op, dtype)))
    code.cost += reflect_time(node) or 0
    code.call(f"{name}_{kind}_loop", (routine, operands[0], taus, result, work), (prod(batch), m, n, k))


def factor_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_factors` computes, about; None if it computes it not."""
    if not isinstance(node.op, ops.Lu) or not node.operands[0].tensor_type.size:
        return None
    if blas.routine(blas.name_of(node.op, node.operands[0].dtype)) is None:
        return None
    *batch, m, n = node.operands[0].shape
    return prod(batch) * (PROCESSOR.lapack_call_time + m * n * min(m, n) * PROCESSOR.scalar_time)


def write_factors(code: FunctionCode, node: Node, operands: Sequence[str], results: Sequence[str]) -> None:
    """Call LAPACK for the factors L and U of each matrix of a node."""
    assert isinstance(node.op, ops.Lu)
    dtype = node.operands[0].dtype
    *batch, m, n = node.operands[0].shape
    kind, size, k = LETTERS[dtype], dtype.itemsize, min(m, n)
    code.helpers[f"transpose_{kind}"] = _compile(kind, size, "transpose", _TRANSPOSE)
    code.helpers[f"getrf_{kind}"] = _compile(kind, size, "getrf", _FACTORS)
    words = [code.static(Routine(blas.name_of(node.op, dtype))), *operands, *results]
    words.append(code.allocate(size * m * n + 8 * k))
    code.cost += factor_time(node) or 0
    code.call(f"getrf_{kind}_loop", words, (prod(batch), m, n, k))


def solve_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_solution` computes, about; None if it computes it not."""
    if not isinstance(node.op, ops.TriangularSolve) or not node.tensor_type.size:
        return None
    if node.dtype not in LETTERS or blas.routine(f"{LETTERS[node.dtype]}trsm") is None:
        return None
    products = node.tensor_type.size * node.operands[0].shape[-1] / 2
    return prod(node.shape[:-2]) * PROCESSOR.lapack_call_time + products * PROCESSOR.scalar_time


def write_solution(code: FunctionCode, node: Node, operands: Sequence[str], results: Sequence[str]) -> None:
    """Call a BLAS for the triangular systems of a node."""
    op = node.op
    assert isinstance(op, ops.TriangularSolve)
    kind, size = LETTERS[node.dtype], node.dtype.itemsize
    letters = letters_of_trsm(op.left_side, op.lower, op.unit_diagonal, op.transpose_a)
    code.helpers[f"trsm_{letters}_{kind}"] = _compile(kind, size, letters, _TRIANGULAR)
    code.copy(results[0], operands[1], node.tensor_type.nbytes)
    words = [code.static(Routine(f"{kind}trsm")), operands[0], results[0], code.allocate(16)]
    code.cost += solve_time(node) or 0
    *batch, rows, columns = node.shape
    numbers = (prod(batch), node.operands[0].shape[-1], rows, columns)
    code.call(f"trsm_{letters}_{kind}_loop", words, numbers)


#: How long a node takes, and what writes it.
CALLS: Final = ((reflect_time, write_reflections), (factor_time, write_factors), (solve_time, write_solution))
