"""Machine code as a built-in function of CPython, for calls that cost no more than those of NumPy.

An entry takes NumPy arrays, reads where their data lie from their C structs, and calls a phase.  To be used
only where `struct_offsets.works()`.

Source: CPython, Include/methodobject.h.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from string import Template
from typing import Any, Final

import numpy as np

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.typed_python import compile_functions
from xarr_numpy.compiled.cpython_abi.struct_offsets import CLASS, DATA, FLAGS, USABLE, WRITEABLE

_METH_FASTCALL: Final = 0x80
#: Since 3.12 True and False are immortal; before, a function that returns one counts it.
_COUNTED: Final = sys.version_info < (3, 12)
#: Bytes of an arena that lie on the stack.
MAX_STACK_BYTES: Final = 2**14
#: Arrays whose addresses lie on the stack.
MAX_ARRAYS: Final = 2**11
#: The functions of `phase_entries`.
_ENTRIES: Final = ("entry", "entry_sealing")


class MethodDef(ctypes.Structure):
    """The definition of a C function that Python calls."""

    _fields_ = (
        ("ml_name", ctypes.c_char_p),
        ("ml_meth", ctypes.c_void_p),
        ("ml_flags", ctypes.c_int),
        ("ml_doc", ctypes.c_char_p),
    )


_new: Final = ctypes.pythonapi.PyCFunction_NewEx
_new.restype = ctypes.py_object
_new.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]


def function(address: int, *owners: object) -> Callable[..., Any]:
    """The entry at `address` as a built-in function, which gets `owners` as `self`: what keeps its code loaded.

    A function looks at its definition for the last time before it lets go of its `self`.
    """
    definition = MethodDef(b"entry", address, _METH_FASTCALL, None)
    builtin: Callable[..., Any] = _new(ctypes.addressof(definition), (*owners, definition), None)
    return builtin


def phase_entries(
    address: int, extent: int, count: int, results: int, code: object, numbers: Sequence[int] = ()
) -> list[Callable[..., Any]]:
    """The phase at `address`, a part of `code`, over all its iterations as two built-in functions of `count` arrays.

    Called with the arrays they return True; False, and nothing done, if one of them does not lie in row-major order or
    is a NumPy scalar.  The last one, a result, shows what the class of arrays is.  The second function makes the last
    `results` arrays read-only when they are filled.  The slot behind those of the arrays holds where `numbers` lie, of
    which machine code that kernels share reads its own.  All phases share the machine code of these functions.
    """
    entries = _entries()
    work = np.array([address, extent, count, results, *numbers], np.int64)
    return [function(entries.addresses[name], work, code, entries) for name in _ENTRIES]


@cache
def _entries() -> llvm_jit.Code:
    return llvm_jit.compile_module(OBJECTS + compile_functions(COLLECTING + _ENTRY), _ENTRIES, serial=("",))


#: The objects that functions refer to, in LLVM IR.
OBJECTS: Final = "@_Py_TrueStruct = external global i8\n@_Py_FalseStruct = external global i8\n"

#: What entries begin and end with.
COLLECTING: Final = f"""
CLASS = {CLASS}
DATA = {DATA}
FLAGS: i32 = {FLAGS}
OWNERS = {tuple.__basicsize__}

# Put the addresses of the data of arrays into a table; whether they all are of the class of the last one, in row-major
# order and aligned.  It goes over classes, then over what only arrays have.
@inline
def collects(arguments: ptr, count: i64, table: ptr) -> i1:
    for k in range(count):
        if arguments.ptr[k].CLASS is not arguments.ptr[count - 1].CLASS:
            return False
    for k in range(count):
        table.ptr[k] = arguments.ptr[k].DATA
        if (arguments.ptr[k].FLAGS & {USABLE}) != {USABLE}:
            return False
    return True

# Make arrays of these numbers read-only.
@inline
def seal(arguments: ptr, start: i64, stop: i64):
    for k in range(start, stop):
        arguments.ptr[k].FLAGS &= {~WRITEABLE}

@inline
def answer(is_done: i1) -> ptr:
    result = _Py_TrueStruct if is_done else _Py_FalseStruct
    {"result.i64[0] += 1" if _COUNTED else "pass"}
    return result
"""

#: Phase, extent, the numbers of arrays and results, and numbers are the elements of the first owner, an array.
_ENTRY: Final = """
def run(self: ptr, arguments: ptr, count: i64) -> i1:
    work = self.OWNERS.DATA
    if count != work.i64[2]:
        return False
    buffers = stack(ptr, count + 1)
    if not collects(arguments, count, buffers):
        return False
    buffers.ptr[count] = work + 32
    call(void, work.ptr[0], buffers, 0, work.i64[1])
    return True

@exported
def entry(self: ptr, arguments: ptr, count: i64) -> ptr:
    return answer(run(self, arguments, count))

@exported
def entry_sealing(self: ptr, arguments: ptr, count: i64) -> ptr:
    is_done = run(self, arguments, count)
    if is_done:
        seal(arguments, count - self.OWNERS.DATA.i64[3], count)
    return answer(is_done)
"""

_PLAN_ENTRY: Final = Template("""
def PyObject_CallFunction(function: ptr, format: ptr, *others) -> ptr: ...
def malloc(nbytes: i64) -> ptr: ...
def free(memory: ptr): ...

@exported
def $name(self: ptr, arguments: ptr, count: i64) -> ptr:
    table = stack(ptr, $count + 2)
    if count != $count or not collects(arguments, $count, table):
        return answer(False)
    table.ptr[$count + 1] = self.OWNERS.DATA
    arena = $allocate
    if not arena:
        return answer(False)
    table.ptr[$count] = arena
    status = call(i64, run, table, 0)
    value = arena.i64[0]
    $free
    if status == 0:
        seal(arguments, $operands, $count)
        return answer(True)
    if status != -1:
        PyObject_CallFunction((self + OWNERS).ptr[1], format, status, value)
    return null
""")


@lru_cache
def plan_entry_text(name: str, operands: int, results: int, arena: int) -> str:
    """An entry in LLVM IR: the function `run` on the data of arrays, the last `results` of which it fills and seals.

    The function takes a table of their addresses, then those of an arena of so many bytes and of the elements of the
    entry's first owner, an array.  It gives 0; -1 where an error is set; else the second owner is called with what it
    gives and with the int64 that begins the arena, and raises.  The entry gives True; or False, and nothing
    is done, if an array does not lie in row-major order or is a NumPy scalar, or there is no memory.
    """
    on_stack = arena <= MAX_STACK_BYTES
    text = _PLAN_ENTRY.substitute(
        {"name": name, "operands": operands, "count": operands + results},
        allocate=f"ptr((i64(stack(i8, {arena} + 63)) + 63) & -64)" if on_stack else f"malloc({arena})",
        free="pass" if on_stack else "free(arena)",
    )
    return (
        f'{OBJECTS}@format = internal constant [3 x i8] c"LL\\00"\n{compile_functions(COLLECTING + text)}\n'
    )
