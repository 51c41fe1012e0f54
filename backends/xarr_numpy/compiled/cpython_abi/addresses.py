"""Where the elements of arrays lie, for calls of machine code: read by machine code, or else asked of NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.cpython_abi import builtin, struct_offsets

Array = np.ndarray[Any, Any]


def collect(table: int, operands: Sequence[Any], others: Sequence[Array]) -> Sequence[Array]:
    """Write the addresses of elements in row-major order to the memory at `table`.

    Operands that lie otherwise, or are NumPy scalars, are copied; the copies are the result.  `others`, of which
    there is one at least, lie as they should.
    """
    fill = _fill()
    if fill is not None and fill(table, *operands, *others):
        return ()
    arrays = [np.ascontiguousarray(operand) for operand in operands]
    every = [*arrays, *others]
    words = (ctypes.c_size_t * len(every)).from_address(table)
    words[:] = [array.ctypes.data for array in every]
    return arrays


@cache
def _fill() -> Callable[..., bool] | None:
    """A built-in function that fills the table; it gives False where something has to be copied."""
    if not struct_offsets.works():
        return None
    code = llvm_jit.compile_module(_text(), ["fill"])
    return builtin.function(code.addresses["fill"], code)


def _text() -> str:
    returned = {
        name: "\n  ".join(builtin.return_lines(name)) for name in ("_Py_TrueStruct", "_Py_FalseStruct")
    }
    return f"""{builtin.DECLARATIONS}
declare ptr @PyLong_AsVoidPtr(ptr)
define ptr @fill(ptr %self, ptr %arguments, i64 %count) nounwind {{
entry:
  %number = load ptr, ptr %arguments, align 8
  %table = call ptr @PyLong_AsVoidPtr(ptr %number)
  %last = sub i64 %count, 1
  %sample.slot = getelementptr ptr, ptr %arguments, i64 %last
  %sample = load ptr, ptr %sample.slot, align 8
  %class.slot = getelementptr i8, ptr %sample, i64 {struct_offsets.CLASS}
  %class = load ptr, ptr %class.slot, align 8
  br label %next
next:
  %k = phi i64 [ 1, %entry ], [ %k.next, %put ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %look, label %yes
look:
  %array.slot = getelementptr ptr, ptr %arguments, i64 %k
  %array = load ptr, ptr %array.slot, align 8
  %own.slot = getelementptr i8, ptr %array, i64 {struct_offsets.CLASS}
  %own = load ptr, ptr %own.slot, align 8
  %alike = icmp eq ptr %own, %class
  br i1 %alike, label %flags.look, label %no
flags.look:
  %flags.slot = getelementptr i8, ptr %array, i64 {struct_offsets.FLAGS}
  %flags = load i32, ptr %flags.slot, align 4
  %needed = and i32 %flags, {struct_offsets.USABLE}
  %usable = icmp eq i32 %needed, {struct_offsets.USABLE}
  br i1 %usable, label %put, label %no
put:
  %data.slot = getelementptr i8, ptr %array, i64 {struct_offsets.DATA}
  %data = load ptr, ptr %data.slot, align 8
  %slot = getelementptr ptr, ptr %table, i64 %k
  %before = getelementptr i8, ptr %slot, i64 -8
  store ptr %data, ptr %before, align 8
  %k.next = add i64 %k, 1
  br label %next
yes:
  {returned["_Py_TrueStruct"]}
no:
  {returned["_Py_FalseStruct"]}
}}
"""
