"""Products of matrices in machine code: calls of the loop inside of `numpy.matmul`, which calls a BLAS.

    void @multiply(ptr loop, ptr data, ptr left, ptr right, ptr target, i64 count, …)

It gets the matrices that `dot_general` of `xarr_numpy.ops.contraction` gives `numpy.matmul`, so that the bits are the
same.  Products that threads share are left to that function.

Source: NumPy, numpy/_core/src/umath/matmul.c.src.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr_numpy import blas
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi.ufunc_loops import InnerLoop, inner_loop
from xarr_numpy.compiled.plans.function_code import FunctionCode, UfuncPointer
from xarr_numpy.compiled.plans.plan_memory import row_major
from xarr_numpy.ops.contraction import TYPES_OF_BLAS, Side, plan_of, view_of
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]

_SIZES: Final = ("count", "rows", "terms", "columns")
_STEPS: Final = (
    *("left_next", "right_next", "target_next"),
    *("left_row", "left_term", "right_term", "right_column", "target_row", "target_column"),
)
#: Batches of matrices that lie evenly apart, and bytes from one to the next.
_BATCHES: Final = ("batches", "left_batch", "right_batch", "target_batch")


@cache
def _text() -> str:
    tables = (
        ("operands", "ptr", ("left", "right", "target")),
        ("sizes", "i64", _SIZES),
        ("steps", "i64", _STEPS),
    )
    lines = [f"    {table} = stack({kind}, {len(names)})" for table, kind, names in tables]
    for table, kind, names in tables[1:]:
        lines += [f"    {table}.{kind}[{k}] = {name}" for k, name in enumerate(names)]
    # The loop leaves other addresses there.
    lines.append("    for k in range(batches):")
    lines += [f"        operands.ptr[{k}] = {name} + k * {name}_batch" for k, name in enumerate(tables[0][2])]
    lines.append("        call(void, loop, operands, sizes, steps, data)")
    rows = (*tables, ("", "i64", _BATCHES))
    parameters = ", ".join([f"{name}: {kind}" for _, kind, names in rows for name in names])
    body = "\n".join(lines)
    return compile_functions(f"def multiply(loop: ptr, data: ptr, {parameters}):\n{body}\n")


def product_time(node: Node, arrays: Sequence[Array]) -> float | None:
    """Nanoseconds of a product of arrays that lie so, about; None if `write_product` does not compute it."""
    numbers = _numbers(node, arrays)
    if numbers is None or loop_of(node.dtype) is None:
        return None
    count, rows, terms, columns = numbers[: len(_SIZES)]
    count *= numbers[-len(_BATCHES)]
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


def copied_axes(node: Node, arrays: Sequence[Array]) -> list[Ints | None]:
    """The order of dimensions in which each operand of a product is copied first; None for those that are not."""
    way = plan_of(node.op.expect(ops.DotGeneral), *[each.shape for each in arrays])
    pairs = zip(arrays, (way.left, way.right), strict=True)
    return [None if _matrices(x, side, way.batches) is not None else side.axes for x, side in pairs]


def _numbers(node: Node, arrays: Sequence[Array]) -> list[int] | None:
    """The numbers that `@multiply` takes after the addresses; None where it is not to be called."""
    op = node.op
    if not isinstance(op, ops.DotGeneral) or node.dtype.type not in TYPES_OF_BLAS:
        return None
    left, right = arrays
    if not left.dtype == right.dtype == node.dtype or 0 in (left.size, right.size):
        return None
    way = plan_of(op, left.shape, right.shape)
    first, second = (_matrices(x, side, way.batches) for x, side in ((left, way.left), (right, way.right)))
    if (way.is_for_threads and blas.can_be_held()) or first is None or second is None:
        return None
    sizes = [way.left.free(True), first.shape[-1], way.right.free(False)]
    own = row_major(node.tensor_type.with_shape((*way.shape[: way.batches], sizes[0], sizes[2])))
    steps = [each.strides for each in (first, second, own)]
    # What lies evenly apart is one batch of matrices.
    rows = zip(way.shape, *[each[: way.batches] for each in steps], strict=False)
    batches = _merge_dimensions([row for row in rows if row[0] != 1])
    if len(batches) > 2:
        return None
    many, within = [*[(1, 0, 0, 0)] * 2, *batches][-2:]
    return [within[0], *sizes, *within[1:], *[step for each in steps for step in each[-2:]], *many]


def _merge_dimensions(rows: Sequence[Ints]) -> list[Ints]:
    """Dimensions, each a size and steps in bytes, with those in place of several that lie evenly apart."""
    merged: list[Ints] = []
    for size, *steps in rows:
        if merged and list(merged[-1][1:]) == [size * step for step in steps]:
            size *= merged.pop()[0]
        merged.append((size, *steps))
    return merged


def _matrices(x: Array, side: Side, batches: int) -> Array | None:
    """The matrices of an operand as they lie; None if they are copied."""
    turned = x.transpose(side.axes)
    matrices = view_of(turned, (*turned.shape[:batches], *side.matrix))
    return matrices.swapaxes(-1, -2) if matrices is not None and side.swapped else matrices
