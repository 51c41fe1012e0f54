"""Where the elements of arrays lie, for calls of machine code: read by machine code, or else asked of NumPy."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi import builtin, struct_offsets

Array = np.ndarray[Any, Any]

_FILL: Final = """
def PyLong_AsVoidPtr(number: ptr) -> ptr: ...

@exported
def fill(self: ptr, every: ptr, count: i64) -> ptr:
    return answer(collects(every + 8, count - 1, PyLong_AsVoidPtr(every.ptr[0])))
"""


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
    text = builtin.OBJECTS + compile_functions(builtin.COLLECTING + _FILL)
    code = llvm_jit.compile_module(text, ["fill"], serial=("",))
    return builtin.function(code.addresses["fill"], code)
