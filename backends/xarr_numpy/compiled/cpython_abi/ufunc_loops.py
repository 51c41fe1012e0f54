"""The C functions inside of NumPy's ufuncs, which machine code calls without Python.

Where a ufunc has them is part of NumPy's C API.  It is looked up only where `struct_offsets` finds arrays as expected,
and only if all else of the ufunc's struct says what Python says of it.

Source: NumPy, numpy/_core/include/numpy/ufuncobject.h: PyUFuncObject, PyUFuncGenericFunction.
"""

from __future__ import annotations

import ctypes
from typing import Final, NamedTuple

import numpy as np

from xarr_numpy.compiled.cpython_abi import struct_offsets

#: A loop: addresses of operands and results, sizes, bytes from element to element, and data of its own.  It lets go of
#: no lock, and asks for Python's only to set an error.
PROTOTYPE: Final = ctypes.PYFUNCTYPE(None, *[ctypes.c_void_p] * 4)


class _UFunc(ctypes.Structure):
    """The fields behind the head of the object."""

    _fields_ = (
        ("nin", ctypes.c_int),
        ("nout", ctypes.c_int),
        ("nargs", ctypes.c_int),
        ("identity", ctypes.c_int),
        ("functions", ctypes.POINTER(ctypes.c_void_p)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
        ("ntypes", ctypes.c_int),
        ("reserved", ctypes.c_int),
        ("name", ctypes.c_char_p),
        ("types", ctypes.c_void_p),
    )


class InnerLoop(NamedTuple):
    """The addresses of a loop and of its data."""

    function: int
    data: int


def inner_loop(ufunc: np.ufunc, types: str) -> InnerLoop | None:
    """The loop of a ufunc for element types such as "Dd->D", one of `ufunc.types`; None where that is not sure."""
    if types not in ufunc.types or not struct_offsets.works():
        return None
    struct = _UFunc.from_address(id(ufunc) + object.__basicsize__)
    counts = struct.nin, struct.nout, struct.nargs, struct.ntypes
    if counts != (ufunc.nin, ufunc.nout, ufunc.nargs, len(ufunc.types)):
        return None
    codes = [np.dtype(char).num for row in ufunc.types for char in row if char not in "->"]
    if struct.name != ufunc.__name__.encode() or [*ctypes.string_at(struct.types, len(codes))] != codes:
        return None
    index = ufunc.types.index(types)
    function, data = (table[index] if table else None for table in (struct.functions, struct.data))
    return InnerLoop(function, data or 0) if function else None
