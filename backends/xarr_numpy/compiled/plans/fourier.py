"""Fourier transforms in machine code: calls of the loops inside of NumPy's ufuncs, one for each axis.

    void @transform_loop(ptr loop, ptr data, ptr source, ptr target, i64 factor, …)

They get what `numpy.fft` gives them, so that the bits are the same, which is tried before the first use; where they are
not found, or give something else, as for most transforms in single precision, which NumPy computes in double, Python is
called back.  Where there is no memory for a plan of theirs they set an error, which Python raises when the program has
ended.

Source: NumPy, numpy/fft/_pocketfft_umath.cpp.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache
from math import log2, prod
from typing import Any, Final

import numpy as np

from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi.ufunc_loops import PROTOTYPE, InnerLoop, inner_loop
from xarr_numpy.compiled.plans.function_code import FunctionCode, UfuncPointer
from xarr_numpy.processor import PROCESSOR

Array = np.ndarray[Any, Any]

#: The element types of a ufunc's operands and results in double and in single precision.
_TYPES: Final = {
    **dict.fromkeys(("fft", "ifft"), ("Dd->D", "Ff->F")),
    **dict.fromkeys(("rfft_n_even", "rfft_n_odd"), ("dd->D", "ff->F")),
    "irfft": ("Dd->d", "Ff->f"),
}
#: Operations of a transform for each element and each halving of their number.
_OPERATIONS: Final = 4
#: Numbers of points that are tried: of all small factors, primes, and one for which there is another algorithm.
_TRIED: Final = (1, 2, 3, 8, 15, 64, 77, 211)
_ROWS_TRIED: Final = 9

_TEXT: Final = """
def transform_loop(
    loop: ptr, data: ptr, source: ptr, target: ptr, factor: i64, blocks: i64, source_block: i64, target_block: i64,
    rows: i64, source_row: i64, target_row: i64, points: i64, results: i64, source_step: i64, target_step: i64
):
    number = factor
    operands = stack(ptr, 3)
    sizes = stack(i64, 3)
    steps = stack(i64, 5)
    for k in range(blocks):
        operands.ptr[0] = source + k * source_block
        operands.ptr[1] = address(number)
        operands.ptr[2] = target + k * target_block
        sizes.i64[0] = rows
        sizes.i64[1] = points
        sizes.i64[2] = results
        steps.i64[0] = source_row
        steps.i64[1] = 0
        steps.i64[2] = target_row
        steps.i64[3] = source_step
        steps.i64[4] = target_step
        call(void, loop, operands, sizes, steps, data)
"""


@cache
def _text() -> str:
    return compile_functions(_TEXT)


def transform_time(node: Node) -> float | None:
    """Nanoseconds of a node that `write_transform` computes, about; None if it computes it not."""
    op = node.op
    if not isinstance(op, ops.Fft) or not node.tensor_type.size:
        return None
    is_single = _is_single(node)
    if any(loop_of(name, is_single) is None for name in {name for name, *_ in _passes(node)}):
        return None
    size = max(node.tensor_type.size, node.operands[0].tensor_type.size)
    work = size * _OPERATIONS * log2(2 * prod(op.fft_length)) * PROCESSOR.scalar_time
    return len(op.fft_length) * PROCESSOR.lapack_call_time + work


def write_transform(code: FunctionCode, node: Node, operands: Sequence[str], results: Sequence[str]) -> None:
    """Call NumPy's loops for each axis of a node, in the order in which `numpy.fft` does."""
    code.helpers["transform"] = _text()
    is_single, source, (target,) = _is_single(node), operands[0], results
    passes = _passes(node)
    between = target
    if node.dtype.kind != "c" and len(passes) > 1:
        between = code.allocate(node.operands[0].tensor_type.nbytes)
    for number, (name, axis, shape, after) in enumerate(passes):
        output = target if number == len(passes) - 1 else between
        sizes = [
            _bits(name, after[axis], is_single),
            *_strides(axis, (shape, after), _itemsizes(name, is_single)),
        ]
        loop = loop_of(name, is_single)
        assert loop is not None, name
        words = [code.static(UfuncPointer(address)) for address in loop]
        code.call("transform_loop", (*words, source, output), sizes)
        source = output
    code.cost += transform_time(node) or 0


def _passes(node: Node) -> list[tuple[str, int, Ints, Ints]]:
    """The ufuncs of the axes of a node in their order, with the axis and the shapes before and after."""
    op = node.op
    assert isinstance(op, ops.Fft)
    shape, rank, count = node.operands[0].shape, node.tensor_type.rank, len(op.fft_length)
    last = rank - 1
    axes = [*range(rank - count, rank)]
    names = dict.fromkeys(axes, "ifft" if op.fft_type in ("IFFT", "IRFFT") else "fft")
    if op.fft_type == "RFFT":
        names[last] = "rfft_n_odd" if op.fft_length[-1] % 2 else "rfft_n_even"
    elif op.fft_type == "IRFFT":
        names[last] = "irfft"
    passes = []
    for axis in axes if op.fft_type == "IRFFT" else reversed(axes):
        after = node.shape if axis == last else shape
        passes.append((names[axis], axis, shape, after))
        shape = after
    return passes


def _strides(axis: int, shapes: tuple[Ints, Ints], itemsizes: tuple[int, int]) -> list[int]:
    """The numbers that `@transform_loop` takes after the factor."""
    (shape, after), inner = shapes, prod(shapes[0][axis + 1 :])
    if inner == 1:  # all rows at once
        blocks, rows = 1, prod(shape[:axis])
        row = [size[axis] * each for size, each in zip(shapes, itemsizes, strict=True)]
    else:
        blocks, rows, row = prod(shape[:axis]), inner, [*itemsizes]
    block = [size[axis] * inner * each for size, each in zip(shapes, itemsizes, strict=True)]
    return [blocks, *block, rows, *row, shape[axis], after[axis], *[inner * each for each in itemsizes]]


def _bits(name: str, points: int, is_single: bool) -> int:
    """The bits of the factor, 1 but for inverse transforms."""
    kind = np.float32 if is_single else np.float64
    factor = np.reciprocal(points, dtype=kind) if name in ("ifft", "irfft") else kind(1)
    return int(factor.view(np.int32 if is_single else np.int64))


def _is_single(node: Node) -> bool:
    return node.operands[0].dtype.char in "fF"


def _itemsizes(name: str, is_single: bool) -> tuple[int, int]:
    before, after = _TYPES[name][is_single].split("->")
    return np.dtype(before[0]).itemsize, np.dtype(after).itemsize


@cache
def loop_of(name: str, is_single: bool) -> InnerLoop | None:
    """The loop of one of NumPy's ufuncs, if it is found and gives the bits of `numpy.fft`."""
    ufunc = getattr(getattr(np.fft, "_pocketfft_umath", None), name, None)
    loop = inner_loop(ufunc, _TYPES[name][is_single]) if isinstance(ufunc, np.ufunc) else None
    if loop is None or not all(_agrees(name, is_single, loop, points) for points in _TRIED):
        return None
    return loop


def _agrees(name: str, is_single: bool, loop: InnerLoop, points: int) -> bool:
    """Whether a loop gives what the function does along rows and columns of so many points, or of one more."""
    points += name.startswith("rfft") and points % 2 != (name == "rfft_n_odd")
    before, after = (np.dtype(char) for char in (_TYPES[name][is_single][0], _TYPES[name][is_single][-1]))
    size = points // 2 + 1 if name == "irfft" else points
    numbers = np.cos(np.arange(2.0 * _ROWS_TRIED * size)).astype(before.char.lower())
    x: Array = numbers.view(before)[: _ROWS_TRIED * size]
    factor = np.array(_bits(name, points, is_single))
    for axis, rows in ((1, x.reshape(_ROWS_TRIED, size)), (0, x.reshape(size, _ROWS_TRIED))):
        wanted = getattr(np.fft, name.split("_")[0])(rows, points, axis=axis)
        got = np.zeros(wanted.shape, after)
        _call(
            loop,
            (rows, factor, got),
            _strides(axis, (rows.shape, got.shape), (before.itemsize, after.itemsize)),
        )
        if wanted.dtype != after or wanted.tobytes() != got.tobytes():
            return False
    return True


def _call(loop: InnerLoop, arrays: Sequence[Array], numbers: Sequence[int]) -> None:
    """Call a loop as `@transform_loop` does, for one block."""
    _, _, _, count, source, target, points, results, *inner = numbers
    words = [
        [array.ctypes.data for array in arrays],
        [count, points, results],
        [source, 0, target, *inner],
    ]
    tables = [(ctypes.c_int64 * len(each))(*each) for each in words]
    PROTOTYPE(loop.function)(*map(ctypes.addressof, tables), loop.data)


#: How long a node takes, and what writes it.
TRANSFORM: Final = (transform_time, write_transform)
