"""Machine code as a built-in function of CPython, for calls that cost no more than those of NumPy.

An entry takes NumPy arrays, reads where their data lie from their C structs, and calls a phase.  To be used
only where `struct_offsets.works()`.

Source: CPython, Include/methodobject.h.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

import numpy as np

from xarr_numpy.compiled.codegen import llvm_jit
from xarr_numpy.compiled.codegen.shorthand import expand
from xarr_numpy.compiled.cpython_abi.struct_offsets import CLASS, DATA, FLAGS, USABLE, WRITEABLE

_METH_FASTCALL: Final = 0x80
#: Since 3.12 True and False are immortal; before, a function that returns one counts it.
_COUNTED: Final = sys.version_info < (3, 12)
#: Bytes of an arena that lie on the stack.
MAX_STACK_BYTES: Final = 2**14
#: Arrays whose addresses lie on the stack.
MAX_ARRAYS: Final = 2**11
#: The functions of `phase_entries`.
_ENTRIES: Final = ("entry", "entry.sealing")


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
    return llvm_jit.compile_module(DECLARATIONS + entry_text(), _ENTRIES)


def entry_text() -> str:
    """The functions of `phase_entries` in LLVM IR.

    Phase, extent, the numbers of arrays and results, and `numbers` are the elements of their first owner, an array.
    """
    name, sealing = _ENTRIES
    run, no = f"{name}.run", return_lines("_Py_FalseStruct")
    head = [
        "(ptr %self, ptr %arguments, i64 %count) nounwind {",
        f"  %done = call i1 @{run}(ptr %self, ptr %arguments, i64 %count)",
        "  unless %done goto no, yes:",
    ]
    yes = [*return_lines("_Py_TrueStruct"), "no:", *no, "}"]
    lines = [
        _run_text(run),
        f"define ptr @{name}{head[0]}",
        *head[1:],
        *yes,
        f"define ptr @{sealing}{head[0]}",
        *head[1:],
        *_owner_data("own", 0),
        *_element("results", "own", 3),
        "  %first.result = sub i64 %count, %results",
        *_sealing("%first.result", "%count"),
        *yes,
    ]
    return expand("\n".join(lines))


def _sealing(start: str, stop: str) -> list[str]:
    """Lines that make the arrays of these numbers among the arguments read-only."""
    body = [
        "  %sealed.array = load ptr, ptr %arguments[%sealed.k]",
        f"  %sealed.flags = load i32, ptr %sealed.array + {FLAGS}",
        f"  %sealed.fixed = and i32 %sealed.flags, {~WRITEABLE}",
        "  store i32 %sealed.fixed, ptr %sealed.flags.slot, align 4",
    ]
    return _loop_over("sealed.k", start, stop, body)


def _loop_over(k: str, start: str, stop: str, body: Sequence[str], failed: str = "") -> list[str]:
    """A loop over numbers `%k`, which ends early, at `no`, where the register `failed` of the body holds."""
    test = [f"  br i1 {failed}, label %no, label %{k}.last"] if failed else []
    return [f"  for %{k} from {start} below {stop}", *body, *test, f"  end %{k}"]


def _run_text(name: str) -> str:
    lines = [
        f"define internal i1 @{name}(ptr %self, ptr %arguments, i64 %count) nounwind {{",
        "entry:",
        *_owner_data("work", 0),
        *_element("wanted", "work", 2),
        "  %size = add i64 %count, 1",
        *collect_lines("%wanted", "alloca ptr, i64 %size, align 8"),
        "  %numbers = getelementptr i64, ptr %work.data, i64 4",
        "  %numbers.target = getelementptr ptr, ptr %buffers, i64 %count",
        "  store ptr %numbers, ptr %numbers.target, align 8",
        "  %phase = load ptr, ptr %work.data, align 8",
        *_element("extent", "work", 1),
        "  call void %phase(ptr %buffers, i64 0, i64 %extent)",
        "  ret i1 true",
        "no:",
        "  ret i1 false",
        "}",
    ]
    return "\n".join(lines)


def _element(name: str, owner: str, number: int) -> list[str]:
    """Lines that read an integer among the elements of an owner, of `_owner_data`."""
    return [f"  %{name} = load i64, ptr %{owner}.data[{number}]"]


def collect_lines(count: str, buffers: str) -> list[str]:
    """Lines that put the addresses of the data of `count` arrays into `%buffers`, made by the instruction `buffers`.

    They go over classes, then over what only arrays have, and end where the label `run` begins, or go to `no`.
    """
    classes = [
        "  %sorted.array = load ptr, ptr %arguments[%sorted.k]",
        f"  %sorted.class = load ptr, ptr %sorted.array + {CLASS}",
        "  %sorted.other = icmp ne ptr %sorted.class, %last.class",
    ]
    addresses = [
        "  %looked.array = load ptr, ptr %arguments[%looked.k]",
        f"  %looked.data = load ptr, ptr %looked.array + {DATA}",
        "  %looked.target = getelementptr ptr, ptr %buffers, i64 %looked.k",
        "  store ptr %looked.data, ptr %looked.target, align 8",
        f"  %looked.flags = load i32, ptr %looked.array + {FLAGS}",
        f"  %looked.needed = and i32 %looked.flags, {USABLE}",
        f"  %looked.unfit = icmp ne i32 %looked.needed, {USABLE}",
    ]
    return [
        f"  %fits = icmp eq i64 %count, {count}",
        "  unless %fits goto no, sort:",
        f"  %buffers = {buffers}",
        f"  %last.k = sub i64 {count}, 1",
        "  %last.array = load ptr, ptr %arguments[%last.k]",
        f"  %last.class = load ptr, ptr %last.array + {CLASS}",
        *_loop_over("sorted.k", "0", count, classes, "%sorted.other"),
        *_loop_over("looked.k", "0", count, addresses, "%looked.unfit"),
        "  then run:",
    ]


def plan_entry_text(name: str, operands: int, results: int, arena: int) -> str:
    """An entry in LLVM IR: the function `run` on the data of arrays, the last `results` of which it fills and seals.

    The function takes a table of their addresses, then those of an arena of so many bytes and of the elements of the
    entry's first owner, an array.  It gives 0; -1 where an error is set; else the second owner is called with what it
    gives and with the int64 that begins the arena, and raises.  The entry gives True; or False, and nothing
    is done, if an array does not lie in row-major order or is a NumPy scalar, or there is no memory.
    """
    count = operands + results
    on_stack = arena <= MAX_STACK_BYTES
    lines = [
        f"define ptr @{name}(ptr %self, ptr %arguments, i64 %count) nounwind {{",
        "entry:",
        *([f"  %arena = alloca [{arena} x i8], align 64"] if on_stack else []),
        *collect_lines(str(count), f"alloca [{count + 2} x ptr], align 8"),
        *_owner_data("statics", 0),
        f"  %statics.target = getelementptr ptr, ptr %buffers, i64 {count + 1}",
        "  store ptr %statics.data, ptr %statics.target, align 8",
        *([] if on_stack else _allocating(arena)),
        f"  %arena.target = getelementptr ptr, ptr %buffers, i64 {count}",
        "  store ptr %arena, ptr %arena.target, align 8",
        "  %status = call i64 @run(ptr %buffers, i64 0)",
        "  %value = load i64, ptr %arena, align 8",
        *([] if on_stack else ["  call void @free(ptr %arena)"]),
        "  switch i64 %status, label %failed [ i64 0, label %yes  i64 -1, label %raised ]",
        "yes:",
        *_sealing(str(operands), str(count)),
        *return_lines("_Py_TrueStruct"),
        "failed:",
        *_owner("raiser", 1),
        f"  %none = call ptr (ptr, ptr, ...) @PyObject_CallFunction("
        f"ptr %raiser, ptr @{name}.format, i64 %status, i64 %value)",
        "  then raised:",
        "  ret ptr null",
        "no:",
        *return_lines("_Py_FalseStruct"),
        "}",
    ]
    head = [
        DECLARATIONS.rstrip(),
        "declare ptr @PyObject_CallFunction(ptr, ptr, ...)",
        *([] if on_stack else ["declare ptr @malloc(i64)", "declare void @free(ptr)"]),
        f'@{name}.format = internal constant [3 x i8] c"LL\\00"',
    ]
    return expand("\n".join([*head, *lines])) + "\n"


def _owner(name: str, number: int) -> list[str]:
    """Lines that read an owner of the entry, an element of the tuple `self`."""
    return [f"  %{name} = load ptr, ptr %self + {tuple.__basicsize__ + 8 * number}"]


def _owner_data(name: str, number: int) -> list[str]:
    """Lines that read where the elements of an owner of the entry lie, an array."""
    return [*_owner(name, number), f"  %{name}.data = load ptr, ptr %{name} + {DATA}"]


def _allocating(nbytes: int) -> list[str]:
    return [
        f"  %arena = call ptr @malloc(i64 {nbytes})",
        "  %lacks = icmp eq ptr %arena, null",
        "  if %lacks goto no, there:",
    ]


def return_lines(name: str) -> list[str]:
    """The lines that return True or False."""
    if not _COUNTED:
        return [f"  ret ptr @{name}"]
    register = f"%{name}.count"
    return [
        f"  {register} = load i64, ptr @{name}, align 8",
        f"  {register}.next = add i64 {register}, 1",
        f"  store i64 {register}.next, ptr @{name}, align 8",
        f"  ret ptr @{name}",
    ]


DECLARATIONS: Final = "@_Py_TrueStruct = external global i8\n@_Py_FalseStruct = external global i8\n"
