"""Factors of matrices, systems of equations and determinants in machine code: calls of the loops inside of the ufuncs
of `numpy.linalg`, for one matrix after the other.

    void @apply_loop(ptr loop, ptr data, ptr arrays, ptr sizes, ptr steps, i64 operands, i64 count, ptr failed)

They get what `numpy.linalg` gives them, in double precision, so that the bits are the same: single precision is
converted before and after.  A loop says that it failed by the flag of an invalid operation, and NumPy raises an error
then; here the results of that matrix are NaN.

Source: NumPy, numpy/linalg/umath_linalg.cpp.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, Final, NamedTuple

import numpy as np

from xarr.compiler.loop_ir.elements import strides
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.ops.control import unpack_results
from xarr.ir.types import Ints
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi.ufunc_loops import InnerLoop, inner_loop
from xarr_numpy.compiled.plans.function_code import FunctionCode, UfuncPointer
from xarr_numpy.processor import PROCESSOR

#: The bits of a float that is no number, as NumPy has it; of a complex number the imaginary part is 0.
_NAN: Final = 0x7FF8 << 48
#: What NumPy computes in, for each type.
_DOUBLE: Final = {np.dtype(own): np.dtype(wide) for own, wide in ("fd", "dd", "FD", "DD")}
#: Processors whose flag of an invalid operation is the first one.
_MACHINES: Final = frozenset({"x86_64", "AMD64", "i686", "aarch64", "arm64"})

_APPLY: Final = """
def feclearexcept(flags: i32) -> i32: ...
def fetestexcept(flags: i32) -> i32: ...

def apply_loop(
    loop: ptr, data: ptr, arrays: ptr, sizes: ptr, steps: ptr, operands: i64, count: i64, failed: ptr
):
    here = stack(ptr, 8)
    for i in range(count):
        for k in range(operands):
            here.ptr[k] = arrays.ptr[k] + i * steps.i64[k]
        feclearexcept(1)
        call(void, loop, here, sizes, steps, data)
        failed.i8[i] = i8(fetestexcept(1) != 0)

def look_loop(failed: ptr, values: ptr, count: i64, size: i64, matrix: i64, step: i64, positive: i1):
    for i in range(count):
        for k in range(size):
            value = values.double[i * matrix + k * step]
            is_good = value > 0.0 if positive else value == value
            if not is_good:
                failed.i8[i] = 1

def widen_loop(failed: ptr, status: ptr, count: i64):
    for i in range(count):
        status.i32[i] = i32(failed.i8[i])
"""

_CONVERT: Final = """
def to_double_loop(to: ptr, values: ptr, count: i64):
    for i in range(count):
        to.double[i] = double(values.float[i])

def to_single_loop(to: ptr, values: ptr, count: i64):
    for i in range(count):
        to.float[i] = float(values.double[i])
"""

_FILL: Final = """
def fill_{bits}_loop(failed: ptr, to: ptr, count: i64, size: i64):
    for i in range(count):
        for k in range(size if failed.i8[i] else 0):
            to.{bits}[i * size + k] = {nan}
"""

_compile: Final = cache(compile_functions)


class _UfuncCall(NamedTuple):
    """The call of a ufunc for a node.

    * `name`, `sizes` - of the ufunc, and of the dimensions of its matrices,
    * `results` - the numbers of the node's results in the order of the ufunc,
    * `status` - the number of the result that says which matrices failed, if there is one,
    * `work` - products for one matrix, about.
    """

    name: str
    sizes: Ints
    results: Ints
    status: int | None
    work: float


def _calls(node: Node) -> _UfuncCall | None:
    """The call for a node; None if there is none."""
    op, shape = node.op, node.operands[0].shape if node.operands else ()
    match op:
        case ops.Solve():
            n, columns = node.operands[1].shape[-2:]
            return _UfuncCall("solve", (n, columns), (0,), 1, n * n * (n / 3 + columns))
        case ops.Eigh():
            triangle, n = "lo" if op.lower else "up", shape[-1]
            if op.compute_v:
                return _UfuncCall(f"eigh_{triangle}", (n,), (1, 0), 2, 25 * n**3)
            return _UfuncCall(f"eigvalsh_{triangle}", (n,), (1,), 2, 8 * n**3)
        case ops.Svd() if op.compute_uv:
            m, n = shape[-2:]
            name, least = "svd_f" if op.full_matrices else "svd_s", min(m, n)
            return _UfuncCall(name, (m, n, least), (2, 1, 3), 4, 40 * m * n * least)
        case ops.LogDeterminant():
            return _UfuncCall("slogdet", shape[-1:], (0, 1), None, shape[-1] ** 3 / 3)
        case ops.Cholesky():
            return _UfuncCall(
                f"cholesky_{'lo' if op.lower else 'up'}", shape[-1:], (0,), None, shape[-1] ** 3 / 6
            )
        case _:
            return None


@cache
def _loop_of(name: str, is_complex: bool) -> InnerLoop | None:
    """The loop of a ufunc of `numpy.linalg` in double precision, if it is found."""
    linalg: Any = np.linalg
    ufunc = getattr(linalg._umath_linalg, name, None) if hasattr(linalg, "_umath_linalg") else None
    if not isinstance(ufunc, np.ufunc) or not _has_flags():
        return None
    kinds = [types for types in ufunc.types if types[0] == ("D" if is_complex else "d")]
    return inner_loop(ufunc, kinds[0]) if len(kinds) == 1 else None


@cache
def _has_flags() -> bool:
    """Whether machine code can ask for the flag of an invalid operation."""
    is_known = os.name == "posix" and platform.machine() in _MACHINES
    return is_known and all(hasattr(ctypes.CDLL(None), each) for each in ("feclearexcept", "fetestexcept"))


def function_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_function` computes, about; None if it computes it not."""
    call = _calls(node)
    if (
        call is None
        or node.operands[0].dtype not in _DOUBLE
        or not all([each.tensor_type.size for each in node.operands])
    ):
        return None
    if _loop_of(call.name, node.operands[0].dtype.kind == "c") is None:
        return None
    return _count(node) * (PROCESSOR.lapack_call_time + call.work * PROCESSOR.scalar_time)


def _count(node: Node) -> int:
    return prod(node.operands[0].shape[:-2])


def write_function(code: FunctionCode, node: Node, operands: Sequence[str], results: Sequence[str]) -> None:
    """Call NumPy's loop for each matrix of a node."""
    call, count = _calls(node), _count(node)
    assert call is not None
    loop = _loop_of(call.name, node.operands[0].dtype.kind == "c")
    assert loop is not None
    rank = len(node.operands[0].shape) - 2
    nodes = unpack_results(node)
    made = [nodes[k] for k in call.results]
    arrays = [*node.operands, *made]
    inner = [each.shape[rank:] for each in arrays]
    itemsizes = [_DOUBLE[each.dtype].itemsize for each in arrays]
    steps = [prod(shape) * size for shape, size in zip(inner, itemsizes, strict=True)]
    for shape, size in zip(inner, itemsizes, strict=True):
        steps += [step * size for step in strides(shape)]
    code.helpers["apply"] = _compile(_APPLY)
    is_flag = call.status is not None and nodes[call.status].dtype == np.bool_
    failed = results[call.status] if is_flag and call.status is not None else code.allocate(count)
    outer = [*operands, *[results[k] for k in call.results]]
    addresses = [_wide_memory(code, each, address) for each, address in zip(arrays, outer, strict=True)]
    for each, wide, own in zip(node.operands, addresses, outer, strict=False):
        _convert(code, each, "double", wide, own)
    words = [*[code.static(UfuncPointer(address)) for address in loop], code.table(addresses)]
    words += [code.integers([1, *call.sizes]), code.integers(steps)]
    arguments = ", ".join(f"ptr {each}" for each in words)
    code.write(f"call void @apply_loop({arguments}, i64 {len(arrays)}, i64 {count}, ptr {failed})")
    if isinstance(node.op, ops.Cholesky | ops.Svd):
        _look(code, node, made, failed, addresses)
    if call.status is not None or isinstance(node.op, ops.Cholesky):
        for each, address, shape in zip(
            made, addresses[len(operands) :], inner[len(operands) :], strict=True
        ):
            bits = f"i{8 * _DOUBLE[each.dtype].itemsize}"
            code.helpers[f"fill_{bits}"] = _compile(_FILL.format(bits=bits, nan=_NAN))
            code.write(
                f"call void @fill_{bits}_loop(ptr {failed}, ptr {address}, i64 {count}, i64 {prod(shape)})"
            )
    if call.status is not None and not is_flag:
        code.write(f"call void @widen_loop(ptr {failed}, ptr {results[call.status]}, i64 {count})")
    for each, wide, own in list(zip(arrays, addresses, outer, strict=True))[len(operands) :]:
        _convert(code, each, "single", own, wide)
    for k, address in enumerate(results):
        if k not in (*call.results, call.status):  # what holds nothing to rely on
            code.copy(address, operands[0], nodes[k].tensor_type.nbytes)
    code.cost += function_time(node) or 0


def _wide_memory(code: FunctionCode, node: Node, address: str) -> str:
    """The address of an array in double precision: its own, or one of memory for it."""
    dtype = _DOUBLE[node.dtype]
    return address if dtype == node.dtype else code.allocate(node.tensor_type.size * dtype.itemsize)


def _convert(code: FunctionCode, node: Node, precision: str, to: str, source: str) -> None:
    """Convert an array, unless it is there already."""
    if to != source:
        code.helpers["convert"] = _compile(_CONVERT)
        count = node.tensor_type.size * (2 if node.dtype.kind == "c" else 1)
        code.write(f"call void @to_{precision}_loop(ptr {to}, ptr {source}, i64 {count})")


def _look(
    code: FunctionCode, node: Node, made: Sequence[Node], failed: str, addresses: Sequence[str]
) -> None:
    """Call matrices failed too of which a factor's diagonal is not positive, or a singular value is no number."""
    if isinstance(node.op, ops.Svd):
        size = made[1].shape[-1]
        values, numbers = addresses[2], (_count(node), size, size, 1)
    else:
        n, parts = node.shape[-1], 2 if node.dtype.kind == "c" else 1
        values, numbers = addresses[1], (_count(node), n, n * n * parts, (n + 1) * parts)
    sizes = ", ".join(f"i64 {each}" for each in numbers)
    is_factor = "true" if isinstance(node.op, ops.Cholesky) else "false"
    code.write(f"call void @look_loop(ptr {failed}, ptr {values}, {sizes}, i1 {is_factor})")


#: How long a node takes, and what writes it.
FUNCTION: Final = (function_time, write_function)
