"""Folds of several arrays, element by element from the left, in machine code that writes all results.

    x0 + x1, + x2 and so on, to each of several arrays of other members

Calls let go of Python's lock, so that members that are threads fold at the same time.  Blocks are combined in the
cache, and copied from there to all results but the first.

The bits are those of NumPy's functions on whole arrays: `fold_of` has a table of the operations and element types for
which loops compute the same numbers, and `fold_like` tries what the processor decides, such as which of two NaN
stays, before it lets machine code fold.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable, Sequence
from functools import cache
from string import Template
from typing import Any, Final

import numpy as np

from xarr.compiler.functions import apply_elementwise, register_dtype
from xarr.compiler.loop_ir.loops import Affine, Buffer, Kernel, Loop, Runs, Store, index_value, load
from xarr.compiler.loop_ir.scalars import DType, Value, Values
from xarr.dtypes import BOOL, COMPLEX, FLOAT, INTEGER, real_part_of
from xarr.ir import ops
from xarr.ir.op import Op
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.emitter import Functions
from xarr_numpy.compiled.codegen.typed_python import compile_functions

Array = np.ndarray[Any, Any]
#: Writes the combination of the rows to an array.
Combine = Callable[[Sequence[Array], Array], None]

#: Bytes of a block, a power of two, which a cache holds while it is combined and copied.
BLOCK_BYTES: Final = 2**17
#: Bytes read and written by one call, after which Python looks for Ctrl-C.
UNINTERRUPTED_BYTES: Final = 2**28
#: Elements of which NumPy's loops take a multiple in registers, and those behind them one by one.  There they take the
#: other one of two NaN, so that NumPy itself folds these, with some before them: one alone it takes in a third way.
REGISTERS: Final = 64
#: Elements of the arrays of a loop whose extent nobody asks for.
_MANY: Final = 2**48

_LOGICAL: Final = (ops.And, ops.Or, ops.Xor)
_EXTREMES: Final = (ops.Maximum, ops.Minimum)
_ARITHMETIC: Final = (ops.Add, ops.Multiply)
_UNEQUAL: Final = ops.Compare("NE")
_FOLD: Final = Template("""
def memcpy(target: ptr, source: ptr, nbytes: i64) -> ptr: ...

# Of a table of the addresses of so many rows and then of results, the elements from `begin` to `end`.
@exported
def fold(table: ptr, rows: i64, results: i64, begin: i64, end: i64):
    buffers = stack(ptr, 3)
    others = table + 8 * rows
    target = others.ptr[0]
    buffers.ptr[2] = target
    for b in range((end - begin + $block - 1) / $block):
        first = begin + $block * b
        last = first + $block if first + $block < end else end
        for k in range(1, rows):
            buffers.ptr[0] = table.ptr[0] if k == 1 else target
            buffers.ptr[1] = table.ptr[k]
            call(void, $phase, buffers, first, last)
        for r in range(1, results):
            memcpy(others.ptr[r] + $itemsize * first, target + $itemsize * first, $itemsize * (last - first))
""")
_FUNCTION: Final = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *[ctypes.c_int64] * 4)

_making = threading.Lock()


def _forget() -> None:
    global _making
    _making = threading.Lock()


if hasattr(os, "register_at_fork"):  # another thread may hold it
    os.register_at_fork(after_in_child=_forget)


class MachineFold:
    """The machine code of a fold of elements of one type, `unit`, of which complex numbers have two.

    keeps: which one of two NaN stays, 0 or 1.
    """

    def __init__(self, op: ops.Binary, unit: DType, keeps: int) -> None:
        self._unit = unit
        self.text = fold_text(op, unit, keeps)
        self._code = llvm_jit.compile_module(self.text, ["fold"], serial=("fold",))
        self._function = _FUNCTION(self._code.addresses["fold"])

    def __call__(self, rows: Sequence[Array], outs: Sequence[Array]) -> bool:
        """Write the combination of two rows or more to each of the arrays `outs`, and tell whether that is done.

        Nothing is where one of them is not aligned, or its elements do not follow one another.
        """
        arrays = (*rows, *outs)
        if len(rows) < 2 or not all([each.flags.c_contiguous and each.flags.aligned for each in arrays]):
            return False
        table = (ctypes.c_void_p * len(arrays))(*[each.ctypes.data for each in arrays])
        address, size = ctypes.addressof(table), outs[0].nbytes // self._unit.itemsize
        step = max(1, UNINTERRUPTED_BYTES // (len(arrays) * self._unit.itemsize))
        for begin in range(0, size, step):
            self._function(address, len(rows), len(outs), begin, min(begin + step, size))
        return True


def fold_of(op: ops.Binary, dtype: DType, keeps: int = 0) -> MachineFold | None:
    """The fold by an operation of elements of a type; None where NumPy's functions are to fold."""
    if dtype in COMPLEX:
        return _machine_fold(op, real_part_of(dtype), keeps) if isinstance(op, ops.Add) else None
    if dtype in BOOL | INTEGER:
        is_known = isinstance(op, _LOGICAL + _EXTREMES + _ARITHMETIC)
    else:
        has_loops = dtype in FLOAT and (dtype != np.float16 or llvm_jit.has_float16())
        is_known = has_loops and isinstance(op, _EXTREMES + _ARITHMETIC)
    return _machine_fold(op, dtype, keeps) if is_known else None


def _machine_fold(op: ops.Binary, unit: DType, keeps: int) -> MachineFold:
    with _making:  # all members ask for it at the same time
        return _make(op, unit, keeps)


@cache
def _make(op: ops.Binary, unit: DType, keeps: int) -> MachineFold:
    return MachineFold(op, unit, keeps)


def fold_text(op: ops.Binary, unit: DType, keeps: int = 0) -> str:
    """The function `fold` in LLVM IR."""
    functions = Functions()
    (phase,) = functions.add(_pair(op, unit, keeps), is_inner=True)
    numbers = {"block": BLOCK_BYTES // unit.itemsize, "itemsize": unit.itemsize}
    functions.texts.append(compile_functions(_FOLD.substitute(numbers, phase=phase)))
    return functions.module()


def _pair(op: ops.Binary, unit: DType, keeps: int) -> Kernel:
    """The loop that combines two arrays."""
    values, register = Values(), register_dtype(unit)
    x, y = (Buffer(name, register, _MANY, "in") for name in ("x", "y"))
    out, index = Buffer("out", register, _MANY, "out"), index_value(values, "i")
    at = Affine(((index, 1),))
    combined = _combine(op, unit, keeps, load(values, x, at), load(values, y, at))
    loop = Loop(index, _MANY, Runs.THREADS | Runs.LANES, [Store(out, at, combined)])
    return Kernel((x, y), (out,), (), (), [loop])


def _combine(op: ops.Binary, dtype: DType, keeps: int, x: Value, y: Value) -> Value:
    """The combination of two elements, of two NaN the one that it `keeps`, whichever the processor does."""
    if dtype not in FLOAT:
        return _apply(op, dtype, x, y)
    pair = [x, y]
    kept, other = pair[keeps], pair[1 - keeps]
    is_nan = _apply(_UNEQUAL, dtype, kept, kept)
    if isinstance(op, _ARITHMETIC):
        pair[1 - keeps] = is_nan.select(kept, other)
        return _apply(op, dtype, *pair)
    return is_nan.select(kept, _apply(_UNEQUAL, dtype, other, other).select(other, _apply(op, dtype, x, y)))


def _apply(op: Op, dtype: DType, x: Value, y: Value) -> Value:
    result = apply_elementwise(op, (dtype, dtype), (x, y))
    assert result is not None, f"no loop computes {op.name}"
    return result


def fold_like(combine: Combine, op: ops.Binary, dtype: DType) -> Callable[..., bool] | None:
    """A fold in machine code with the bits of NumPy's functions; None if it has others here.

    It takes rows and the arrays to write, and gives False, with nothing done, for few elements and where `MachineFold`
    does.
    """
    folds = (fold_of(op, dtype, keeps) for keeps in (range(2) if dtype in FLOAT | COMPLEX else range(1)))
    fold = next((each for each in folds if each is not None and has_bits_of(combine, each, dtype)), None)
    if fold is None:
        return None

    def fold_all(rows: Sequence[Array], outs: Sequence[Array]) -> bool:
        whole = outs[0].size // REGISTERS * REGISTERS - REGISTERS
        if whole <= 0 or not fold([row[:whole] for row in rows], [out[:whole] for out in outs]):
            return False
        combine([row[whole:] for row in rows], outs[0][whole:])
        for out in outs[1:]:
            out[whole:] = outs[0][whole:]
        return True

    return fold_all


def has_bits_of(combine: Combine, fold: MachineFold, dtype: DType) -> bool:
    """Whether a fold gives the bits of NumPy's functions here, which depend on the processor, of awkward elements."""
    first = awkward(dtype)
    count = len(first)
    size = -(-(count**2) // REGISTERS) * REGISTERS
    rows = [
        np.resize(each, size) for each in (np.repeat(first, count), first, np.append(first[::-1], first[:1]))
    ]
    wanted, got = np.empty_like(rows[0]), np.empty_like(rows[0])
    with np.errstate(all="ignore"):
        combine(rows, wanted)
    return fold(rows, [got]) and wanted.tobytes() == got.tobytes()


def awkward(dtype: DType) -> Array:
    """Elements with the bits of zeros, ones, extremes, infinities and NaN, of their neighbours, and random ones.

    All that there are of a byte.
    """
    if dtype.itemsize == 1:
        return np.arange(256, dtype=np.uint8).view(dtype)
    known = [0, 1, 2, 3] if dtype in BOOL | INTEGER else [0, 1, 2, np.inf, np.nan]
    with np.errstate(all="ignore"):
        words = np.array(known).astype(dtype).view(np.uint8).reshape(len(known), -1)
    width = words.shape[1]
    numbers = [int.from_bytes(word.tobytes(), "little") for word in words]
    top, every = 1 << (8 * width - 1), (1 << 8 * width) - 1
    near = {(number + step) & every for number in numbers for step in (-1, 0, 1)}
    near |= {number ^ top for number in near}
    random = np.random.default_rng(0).bytes(8 * width)
    raw = b"".join([number.to_bytes(width, "little") for number in sorted(near)]) + random
    return np.frombuffer(raw, dtype)
