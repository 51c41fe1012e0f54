"""Element-wise functions over `Value`, compiled to loops of a given width over contiguous arrays."""

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from xarr.compiler.loop_ir.scalars import BOOL, Value, Values
from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.instructions import Block, register_type

Array = np.ndarray[Any, Any]


def _memory_type(dtype: np.dtype[Any], width: int) -> str:
    return register_type(np.dtype(np.uint8) if dtype == BOOL else dtype, width)


def _load(block: Block, argument: int, dtype: np.dtype[Any]) -> str:
    kind = _memory_type(dtype, 1)
    pointer = block.line(f"getelementptr {kind}, ptr %p{argument}, i64 %i")
    loaded = block.line(f"load {_memory_type(dtype, block.width)}, ptr {pointer}, align {dtype.itemsize}")
    if dtype != BOOL:
        return loaded
    zero = "0" if block.width == 1 else "zeroinitializer"
    return block.line(f"icmp ne {_memory_type(dtype, block.width)} {loaded}, {zero}")


def _store(block: Block, argument: int, value: Value) -> None:
    register = block.operand(value, block.width)
    kind, memory = register_type(value.dtype, block.width), _memory_type(value.dtype, block.width)
    if value.dtype == BOOL:
        register = block.line(f"zext {kind} {register} to {memory}")
    pointer = block.line(f"getelementptr {_memory_type(value.dtype, 1)}, ptr %p{argument}, i64 %i")
    block.lines.append(f"store {memory} {register}, ptr {pointer}, align {value.dtype.itemsize}")


def module_text(function: Callable[..., Value], dtypes: list[np.dtype[Any]], width: int) -> tuple[str, Any]:
    """`kernel(count, operands…, result)`, where count is a multiple of the width; the result's dtype."""
    values = Values()
    arguments = [values.argument(f"x{index}", dtype) for index, dtype in enumerate(dtypes)]
    result = function(*arguments)
    block = Block(width)
    names = {x: _load(block, index, x.dtype) for index, x in enumerate(arguments)}
    block.emit([result], names)
    _store(block, len(arguments), result)
    pointers = ", ".join(f"ptr noalias %p{index}" for index in range(len(arguments) + 1))
    lines = [
        f'define void @kernel(i64 %count, {pointers}) "prefer-vector-width"="512" {{',
        "entry:",
        "  br label %loop",
        "loop:",
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]",
        *(f"  {line}" for line in block.lines),
        f"  %next = add i64 %i, {width}",
        "  %more = icmp ult i64 %next, %count",
        "  br i1 %more, label %loop, label %done",
        "done:",
        "  ret void",
        "}",
    ]
    return "\n".join([*sorted(block.declarations), *block.functions.values(), *lines]), result.dtype


class Kernel:
    """A function of scalars as a function of arrays of one length, computed by LLVM."""

    def __init__(
        self,
        function: Callable[..., Value],
        dtypes: list[Any],
        width: int,
        machine: llvm_jit.Machine | None = None,
        optimise: bool = False,
    ) -> None:
        self.dtypes = [np.dtype(dtype) for dtype in dtypes]
        self.width = width
        self.text, self.result = module_text(function, self.dtypes, width)
        self._code = llvm_jit.load(llvm_jit.assemble(self.text, optimise, machine), ["kernel"], machine)
        prototype = ctypes.CFUNCTYPE(None, ctypes.c_int64, *[ctypes.c_void_p] * (len(dtypes) + 1))
        self._call = prototype(self._code.addresses["kernel"])

    def __call__(self, *operands: Array) -> Array:
        count = len(operands[0])
        padded = [np.zeros(-(-count // self.width) * self.width, dtype) for dtype in self.dtypes]
        for target, operand in zip(padded, operands, strict=True):
            target[:count], target[count:] = operand, operand[-1:]
        result = np.empty(len(padded[0]), self.result)
        if count:
            self._call(len(result), *[array.ctypes.data for array in (*padded, result)])
        return result[:count]
