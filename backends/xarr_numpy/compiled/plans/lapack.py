"""Calls of LAPACK from machine code: factors Q and R, one after the other, in one function.

    void @geqrf(ptr routine, ptr a, ptr taus, ptr result, ptr work, i64 count, i64 m, i64 n, i64 k)

and `orgqr` likewise, of so few reflections, k, that LAPACK applies them one by one, with n elements of `work` behind a
matrix.  The routines are those in NumPy's library, with integers of 64 bits, which get what `numpy.linalg.qr` gives
them, so that the bits are the same: matrices in column-major order.  Elements are moved as integers of as many bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.factorisations import LETTERS
from xarr_numpy import blas
from xarr_numpy.compiled.plans.function_code import FunctionCode, Routine
from xarr_numpy.processor import PROCESSOR

_TRANSPOSE: Final = """
define internal void @transpose.{kind}(ptr %target, ptr %source, i64 %rows, i64 %columns) noinline nounwind {{
entry:
  br label %row
row:
  %r = phi i64 [ 0, %entry ], [ %r.next, %row.end ]
  %start = mul i64 %r, %columns
  br label %column
column:
  %c = phi i64 [ 0, %row ], [ %c.next, %column ]
  %from = add i64 %start, %c
  %from.at = getelementptr {bits}, ptr %source, i64 %from
  %value = load {bits}, ptr %from.at, align 8
  %down = mul i64 %c, %rows
  %to = add i64 %down, %r
  %to.at = getelementptr {bits}, ptr %target, i64 %to
  store {bits} %value, ptr %to.at, align 8
  %c.next = add i64 %c, 1
  %c.more = icmp slt i64 %c.next, %columns
  br i1 %c.more, label %column, label %row.end
row.end:
  %r.next = add i64 %r, 1
  %r.more = icmp slt i64 %r.next, %rows
  br i1 %r.more, label %row, label %done
done:
  ret void
}}
"""

_REFLECTIONS: Final = """
define internal void @{name}.{kind}(ptr %routine, ptr %a, ptr %taus, ptr %result, ptr %work, i64 %count, i64 %m,
    i64 %n, i64 %k) noinline nounwind {{
entry:
  %rows = alloca i64, align 8
  %columns = alloca i64, align 8
  %reflections = alloca i64, align 8
  %info = alloca i64, align 8
  store i64 %m, ptr %rows, align 8
  store i64 %n, ptr %columns, align 8
  store i64 %k, ptr %reflections, align 8
  %matrix = mul i64 %m, %n
  %rest = getelementptr {bits}, ptr %work, i64 %matrix
  br label %next
next:
  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]
  %first = mul i64 %i, %matrix
  %a.at = getelementptr {bits}, ptr %a, i64 %first
  %result.at = getelementptr {bits}, ptr %result, i64 %first
  %tau = mul i64 %i, %k
  %taus.at = getelementptr {bits}, ptr %taus, i64 %tau
  call void @transpose.{kind}(ptr %work, ptr %a.at, i64 %m, i64 %n)
  call void %routine(ptr %rows, ptr %columns, {reflections}ptr %work, ptr %rows, ptr %taus.at, ptr %rest,
    ptr %columns, ptr %info)
  call void @transpose.{kind}(ptr %result.at, ptr %work, i64 %n, i64 %m)
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %count
  br i1 %i.more, label %next, label %leave
leave:
  ret void
}}
"""


def _add_helpers(
    code: FunctionCode, kind: str, size: int, name: str, text: str, reflections: str = ""
) -> None:
    """Add a function on elements of `size` bytes, and the one that it calls."""
    words = {"kind": kind, "bits": f"i{8 * size}", "name": name, "reflections": reflections}
    code.helpers[f"transpose.{kind}"] = _TRANSPOSE.format_map(words)
    code.helpers[f"{name}.{kind}"] = text.format_map(words)


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
    _add_helpers(code, kind, size, name, _REFLECTIONS, "ptr %reflections, " if is_product else "")
    work = code.allocate(size * (m * n + n))
    taus, result = (operands[1], results[0]) if is_product else (results[1], results[0])
    routine = code.static(Routine(blas.name_of(op, dtype)))
    pointers = ", ".join([f"ptr {each}" for each in (routine, operands[0], taus, result, work)])
    code.cost += reflect_time(node) or 0
    sizes = ", ".join([f"i64 {code.number(each)}" for each in (prod(batch), m, n, k)])
    code.write(f"call void @{name}.{kind}({pointers}, {sizes})")


#: How long a node takes, and what writes it.
REFLECT: Final = (reflect_time, write_reflections)
