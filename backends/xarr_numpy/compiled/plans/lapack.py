"""Calls of LAPACK from machine code: factors Q and R, one after the other, in one function.

    void @geqrf_d_loop(ptr routine, ptr a, ptr taus, ptr result, ptr work, i64 count, i64 m, i64 n, i64 k)

and `orgqr` likewise, of so few reflections, k, that LAPACK applies them one by one, with n elements of `work` behind a
matrix.  The routines are those in NumPy's library, with integers of 64 bits, which get what `numpy.linalg.qr` gives
them, so that the bits are the same: matrices in column-major order.  Elements are moved as integers of as many bits.
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


@lru_cache
def _compile(kind: str, size: int, name: str, text: str, reflections: str = "") -> str:
    """A function on elements of `size` bytes."""
    words = {"kind": kind, "size": size, "bits": f"i{8 * size}", "name": name, "reflections": reflections}
    return compile_functions(Template(text).substitute(words))


def reflect_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_reflections` computes, about; None if it computes it not."""
    if not isinstance(node.op, ops.Geqrf | ops.HouseholderProduct) or not node.operands[0].tensor_type.size:
        return None
    if blas.reflections(node.op, node.operands[0].dtype, node.operands[0].shape) is None:
        return None
    *batch, m, n = node.operands[0].shape
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
    pointers = ", ".join([f"ptr {each}" for each in (routine, operands[0], taus, result, work)])
    code.cost += reflect_time(node) or 0
    sizes = ", ".join([f"i64 {code.number(each)}" for each in (prod(batch), m, n, k)])
    code.write(f"call void @{name}_{kind}_loop({pointers}, {sizes})")


#: How long a node takes, and what writes it.
REFLECT: Final = (reflect_time, write_reflections)
