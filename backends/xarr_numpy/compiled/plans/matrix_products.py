"""Products of matrices in machine code: calls of the loop inside of `numpy.matmul`, which calls a BLAS.

    void @multiply(ptr loop, ptr data, ptr left, ptr right, ptr target, i64 count, …)

It gets the matrices that `dot_general` of `xarr_numpy.ops.contraction` gives `numpy.matmul`, so that the bits are the
same.  Products that copy an operand first, and those that threads share, are left to that function.

Source: NumPy, numpy/_core/src/umath/matmul.c.src.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi.ufunc_loops import InnerLoop, inner_loop
from xarr_numpy.compiled.plans.function_code import FunctionCode, UfuncPointer
from xarr_numpy.ops.contraction import TYPES_OF_BLAS, Side, plan_of, reshaped_view, view_of
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]

_SIZES: Final = ("count", "rows", "terms", "columns")
_STEPS: Final = (
    *("left_next", "right_next", "target_next"),
    *("left_row", "left_term", "right_term", "right_column", "target_row", "target_column"),
)


@cache
def _text() -> str:
    tables = (
        ("operands", "ptr", ("left", "right", "target")),
        ("sizes", "i64", _SIZES),
        ("steps", "i64", _STEPS),
    )
    lines = []
    for table, kind, names in tables:
        lines.append(f"    {table} = stack({kind}, {len(names)})")
        lines += [f"    {table}.{kind}[{k}] = {name}" for k, name in enumerate(names)]
    parameters = ", ".join([f"{name}: {kind}" for _, kind, names in tables for name in names])
    body = "\n".join([*lines, "    call(void, loop, operands, sizes, steps, data)"])
    return compile_functions(f"def multiply(loop: ptr, data: ptr, {parameters}):\n{body}\n")


def product_time(node: Node, arrays: Sequence[Array]) -> float | None:
    """Nanoseconds of a product of arrays that lie so, about; None if `write_product` does not compute it."""
    numbers = _numbers(node, arrays)
    if numbers is None or loop_of(node.dtype) is None:
        return None
    count, rows, terms, columns, *_ = numbers
    number_bytes: int = node.dtype.itemsize * (2 if node.dtype.kind == "c" else 1)
    work = rows * terms * columns * number_bytes * PROCESSOR.lane_byte_time
    return count * (PROCESSOR.blas_call_time + work)


def write_product(code: FunctionCode, node: Node, arrays: Sequence[Array], pointers: Sequence[str]) -> None:
    """Call NumPy's loop for all matrices of a node; the pointers are those of the arrays and of the result."""
    loop, numbers = loop_of(node.dtype), _numbers(node, arrays)
    assert loop is not None
    assert numbers is not None
    code.helpers["multiply"] = _text()
    words = [code.static(UfuncPointer(address)) for address in loop]
    code.call("multiply", (*words, *pointers), numbers)


@cache
def loop_of(dtype: np.dtype[np.generic]) -> InnerLoop | None:
    """The loop of `numpy.matmul` for matrices of a type, if it is found."""
    return inner_loop(np.matmul, f"{dtype.char}{dtype.char}->{dtype.char}")


def _numbers(node: Node, arrays: Sequence[Array]) -> list[int] | None:
    """The numbers that `@multiply` takes after the addresses; None where it is not to be called."""
    op = node.op
    if not isinstance(op, ops.DotGeneral) or node.dtype.type not in TYPES_OF_BLAS:
        return None
    left, right = arrays
    if not left.dtype == right.dtype == node.dtype or 0 in (left.size, right.size):
        return None
    way = plan_of(op, left.shape, right.shape)
    if way.is_for_threads:
        return None
    first, second = (_steps(x, side, way.batches) for x, side in ((left, way.left), (right, way.right)))
    if first is None or second is None:
        return None
    rows, columns, size = way.left.free(True), way.right.free(False), node.dtype.itemsize
    terms = prod(left.shape[axis] for axis in op.lhs_contracting_dimensions)
    sizes = [prod(way.shape[: way.batches]), rows, terms, columns]
    own = [rows * columns * size, columns * size, size]
    return [*sizes, first[0], second[0], own[0], *first[1:], *second[1:], *own[1:]]


def _steps(x: Array, side: Side, batches: int) -> Ints | None:
    """Bytes from matrix to matrix, row to row and column to column; None if they are copied, or not evenly apart."""
    turned = x.transpose(side.axes)
    matrices = view_of(turned, (*turned.shape[:batches], *side.matrix))
    if matrices is None:
        return None
    matrices = matrices.swapaxes(-1, -2) if side.swapped else matrices
    in_a_row = reshaped_view(matrices, (-1, *matrices.shape[-2:]))
    return None if in_a_row is None else in_a_row.strides
