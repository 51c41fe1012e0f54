"""Operators on arrays by the C loops inside of NumPy's ufuncs, whose calls take much longer than a few elements.

A loop computes the elements that NumPy's operator would: both are given operands of one element type, which is none
of complex numbers, whose products hang on the strides.  The result lies in row-major order.

Source: NumPy, numpy/_core/include/numpy/__multiarray_api.h, whose numbers are part of the C API.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xarr_numpy.compiled.cpython_abi.ufunc_loops import inner_loop
from xarr_numpy.compiled.small_arrays.objects import KINDS

#: `PyArray_NewFromDescr` in the table of NumPy's C API.
_NEW_FROM_DESCR: Final = 94
#: Words for the loop of a ufunc and an element type: the function, its data, and the kind of its results.
_LOOP_WORDS: Final = 3
#: Codes of the element types that are combined.
_COMBINED: Final = "dl?"
#: Dimensions of a result at most.
_MOST_DIMENSIONS: Final = 8

_pointer: Final = ctypes.pythonapi.PyCapsule_GetPointer
_pointer.restype = ctypes.c_void_p
_pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]


def constants() -> dict[str, int]:
    """Give what names in capital letters stand for."""
    return {"LOOPWORDS": _LOOP_WORDS, "MOSTDIMENSIONS": _MOST_DIMENSIONS, "SIZEWORDS": _MOST_DIMENSIONS + 1}


def loop_table(ufuncs: Sequence[np.ufunc]) -> np.ndarray[Any, Any]:
    """The function that makes arrays, and for each ufunc and kind of elements its loop; zeros for none."""
    api = _pointer(np._core._multiarray_umath._ARRAY_API, None)  # type: ignore[attr-defined]
    table = np.zeros((1 + len(ufuncs) * (len(KINDS) + 1), _LOOP_WORDS), np.int64)
    table[0, 0] = ctypes.c_size_t.from_address(api + 8 * _NEW_FROM_DESCR).value
    for index, ufunc in enumerate(ufuncs):
        for name, kind in KINDS.items():
            table[1 + index * (len(KINDS) + 1) + kind] = _loop_of(ufunc, np.dtype(name))
    return table


def fold_table(ufunc: np.ufunc) -> np.ndarray[Any, Any]:
    """As `loop_table` of a ufunc that combines elements of one type; in front whether there is a start, and that."""
    table = loop_table([ufunc])
    table[1, :2] = ufunc.identity is not None, ufunc.identity or 0
    for name, kind in KINDS.items():
        dtype = np.dtype(name)
        is_combined = dtype.char in _COMBINED and ufunc.reduce(np.ones(1, dtype)).dtype == dtype
        if not is_combined or table[1 + kind, 2] != kind:
            table[1 + kind] = 0
    return table


def table_of(call: object) -> np.ndarray[Any, Any] | None:
    """The loops for a function of NumPy's that is a ufunc or combines elements by one; None for others."""
    if isinstance(call, np.ufunc):
        return loop_table([call]) if call.nout == 1 and call.nin <= 2 and call.signature is None else None
    ufunc = getattr(call, "__self__", None)
    if isinstance(ufunc, np.ufunc) and call == ufunc.reduce:
        return fold_table(ufunc)
    return None


def row_of(index: int) -> int:
    """Words in front of the loops of a ufunc."""
    return _LOOP_WORDS * (1 + index * (len(KINDS) + 1))


def _loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[int, int, int]:
    if dtype.kind == "c":
        return 0, 0, 0
    operands = ufunc.nin * dtype.char
    types = next((types for types in ufunc.types if types.startswith(f"{operands}->")), None)
    kind = None if types is None else KINDS.get(np.dtype(types[-1]).name)
    loop = None if types is None or kind is None else inner_loop(ufunc, types)
    return (0, 0, 0) if loop is None or kind is None else (loop.function, loop.data, kind)


LOOPS: Final = """
# A new array in row-major order; null for an error.
def new_array(kind: i64, rank: i64, sizes: ptr) -> ptr:
    dtype = (state + FLOAT64).ptr[kind - 1]
    hold(dtype)
    return call(ptr, state.LOOPS.DATA.ptr[0], state.NDARRAY, dtype, i32(rank), sizes, null, null, i32(0), null)

# Put a number where it may be read as an element of a kind; whether it is one.
def store_number(number: ptr, kind: i64, at: ptr) -> i1:
    if kind == 1:
        if number.CLASS is PyFloat_Type:
            at.double[0] = PyFloat_AsDouble(number)
            return True
        whole = integer(number) if number.CLASS is PyLong_Type else LEAST
        at.double[0] = double(whole)
        return is_exact(whole)
    if kind == 2:
        at.i64[0] = integer(number) if number.CLASS is PyLong_Type else LEAST
        return at.i64[0] != LEAST
    at.i8[0] = i8(number is _Py_TrueStruct)
    return kind == 3 and number.CLASS is PyBool_Type

# The size of an operand along an axis, counted from the last one.
@inline
def size_along(operand: ptr, axis: i64) -> i64:
    return operand.SIZES.i64[rank(operand) - 1 - axis] if is_ndarray(operand) and axis < rank(operand) else 1

@inline
def stride_along(operand: ptr, axis: i64) -> i64:
    return operand.STRIDES.i64[rank(operand) - 1 - axis] if size_along(operand, axis) != 1 else 0

# What the loops of a ufunc, which lie at an address, give for two operands of which one is an array, and the other too
# or a number; null, without an error, where NumPy is called.
def loop_over(left: ptr, right: ptr, table: ptr) -> ptr:
    array = left if is_ndarray(left) else right
    kind = kind_of(array)
    loop = table + 8 * LOOPWORDS * kind
    function = loop.ptr[0]
    if not function:
        return null
    pointers = stack(ptr, 3)
    number = stack(i64, 1)
    pointers.ptr[0] = left.DATA
    pointers.ptr[1] = right.DATA
    if is_ndarray(left) and is_ndarray(right):
        if left.DESCR is not right.DESCR or not (left.FLAGS & right.FLAGS & 256):
            return null
    else:
        other = right if array is left else left
        if not (array.FLAGS & 256) or not store_number(other, kind, number):
            return null
        pointers.ptr[i64(array is left)] = number
    dimensions = rank(left) if is_ndarray(left) else 0
    if is_ndarray(right) and rank(right) > dimensions:
        dimensions = rank(right)
    if dimensions > MOSTDIMENSIONS or dimensions == 0:
        return null
    # Sizes of the result; and from the innermost one on, loops that no loop around can be one with: their lengths and
    # their steps in both operands.
    sizes = stack(i64, MOSTDIMENSIONS)
    lengths = stack(i64, MOSTDIMENSIONS)
    steps = stack(i64, 2 * MOSTDIMENSIONS)
    loops = 0
    total = 1
    for axis in range(dimensions):
        first = size_along(left, axis)
        second = size_along(right, axis)
        if first != second and first != 1 and second != 1:
            return null
        length = second if first == 1 else first
        sizes.i64[dimensions - 1 - axis] = length
        total *= length
        if length == 1:
            continue
        one = stride_along(left, axis)
        other_one = stride_along(right, axis)
        last = loops - 1
        goes_on = loops > 0 and one == steps.i64[2 * last] * lengths.i64[last]
        if goes_on and other_one == steps.i64[2 * last + 1] * lengths.i64[last]:
            lengths.i64[last] *= length
        else:
            lengths.i64[loops] = length
            steps.i64[2 * loops] = one
            steps.i64[2 * loops + 1] = other_one
            loops += 1
    if total == 0:
        return null
    if loops == 0:
        lengths.i64[0] = 1
        steps.i64[0] = 0
        steps.i64[1] = 0
        loops = 1
    made = new_array(loop.i64[2], dimensions, sizes)
    if not made:
        PyErr_Clear()
        return null
    pointers.ptr[2] = made.DATA
    run_loops(function, loop.ptr[1], pointers, lengths, steps, loops, bytes_of(loop.i64[2]))
    return made

# Whether an array lies in row-major order, its elements where the processor reads them.
@inline
def is_in_order(array: ptr) -> i1:
    return (array.FLAGS & 257) == 257

# Whether an array lies so, and has elements.
def is_regular(array: ptr) -> i1:
    return is_in_order(array) and 0 < rank(array) <= MOSTDIMENSIONS and size(array) != 0

# As `loop_over`, of functions whose bits may hang on the strides: operands lie in row-major order, and are two of one
# shape, one and a number, or one alone, beside null.
def loop_over_regular(left: ptr, right: ptr, table: ptr) -> ptr:
    if is_ndarray(left) and not is_regular(left) or right and is_ndarray(right) and not is_regular(right):
        return null
    if right:
        if not is_ndarray(left) and not is_ndarray(right):
            return null
        is_pair = is_ndarray(left) and is_ndarray(right)
        return null if is_pair and not is_same_shape(left, right) else loop_over(left, right, table)
    if not is_ndarray(left):
        return null
    loop = table + 8 * LOOPWORDS * kind_of(left)
    if not loop.ptr[0]:
        return null
    made = new_array(loop.i64[2], rank(left), left.SIZES)
    if not made:
        PyErr_Clear()
        return null
    pointers = stack(ptr, 2)
    steps = stack(i64, 2)
    length = stack(i64, 1)
    pointers.ptr[0] = left.DATA
    pointers.ptr[1] = made.DATA
    length.i64[0] = size(left)
    steps.i64[0] = bytes_of(kind_of(left)) if length.i64[0] > 1 else 0
    steps.i64[1] = bytes_of(loop.i64[2]) if length.i64[0] > 1 else 0
    call(void, loop.ptr[0], pointers, length, steps, loop.ptr[1])
    return made

# Combine the elements of an array along an axis, or all for None, by the loops of a ufunc that begin with the number in
# front of them, or with the first element for none: in the order of NumPy's, along the last axis in pairs and else one
# after the other.  Null, without an error, where NumPy is called.
def fold(array: ptr, along: ptr, table: ptr) -> ptr:
    kind = kind_of(array) if is_ndarray(array) else 0
    loop = table + 8 * LOOPWORDS * kind
    if kind == 0 or not loop.ptr[0] or not is_regular(array):
        return null
    itemsize = bytes_of(kind)
    dimensions = rank(array)
    before = 1
    length = size(array)
    after = 1
    sizes = stack(i64, MOSTDIMENSIONS)
    kept = 0
    if along is not None:
        axis = integer(along) if along.CLASS is PyLong_Type else LEAST
        if axis < 0:
            axis += dimensions
        if unsigned(axis) >= dimensions:
            return null
        for k in range(dimensions):
            own = array.SIZES.i64[k]
            if k == axis:
                length = own
            else:
                sizes.i64[kept] = own
                kept += 1
            if k < axis:
                before *= own
            if k > axis:
                after *= own
    number = stack(i64, 1)
    made = new_array(kind, kept, sizes) if kept else null
    if kept and not made:
        PyErr_Clear()
        return null
    result = made.DATA if made else number
    pointers = stack(ptr, 3)
    steps = stack(i64, 3)
    count = stack(i64, 1)
    # Along the last axis one call for each row, else one for each element along the axis.
    is_last = after == 1
    has_start = table.i64[0] != 0
    source = array.DATA
    for row in range(before):
        if has_start:
            for k in range(after):
                fold_start(table.i64[1], kind, result + itemsize * k)
        else:
            llvm_memcpy_p0_p0_i64(result, source, itemsize * after, False)
        first = i64(not has_start)
        count.i64[0] = length - first if is_last else after
        calls = i64(length > first) if is_last else length - first
        for k in range(calls):
            pointers.ptr[0] = result
            pointers.ptr[1] = source + itemsize * after * (first + k)
            pointers.ptr[2] = result
            steps.i64[0] = 0 if is_last else itemsize
            steps.i64[1] = itemsize
            steps.i64[2] = steps.i64[0]
            call(void, loop.ptr[0], pointers, count, steps, loop.ptr[1])
        source = source + itemsize * after * length
        result = result + itemsize * after
    return made if made else number_at(number, kind)

@inline
def fold_start(start: i64, kind: i64, at: ptr):
    if kind == 1:
        at.double[0] = double(start)
    elif kind == 2:
        at.i64[0] = start
    else:
        at.i8[0] = i8(start != 0)

# Call a loop for all positions of the loops around it.
def run_loops(function: ptr, data: ptr, pointers: ptr, lengths: ptr, steps: ptr, loops: i64, itemsize: i64):
    own_steps = stack(i64, 3)
    position = stack(i64, MOSTDIMENSIONS)
    own_steps.i64[0] = steps.i64[0]
    own_steps.i64[1] = steps.i64[1]
    own_steps.i64[2] = itemsize
    # Loops write over the addresses of some NumPys.
    here = stack(ptr, 3)
    for k in range(loops):
        position.i64[k] = 0
    while True:
        for k in range(3):
            here.ptr[k] = pointers.ptr[k]
        call(void, function, here, lengths, own_steps, data)
        pointers.ptr[2] = pointers.ptr[2] + itemsize * lengths.i64[0]
        axis = 1
        while axis < loops:
            position.i64[axis] += 1
            pointers.ptr[0] = pointers.ptr[0] + steps.i64[2 * axis]
            pointers.ptr[1] = pointers.ptr[1] + steps.i64[2 * axis + 1]
            if position.i64[axis] < lengths.i64[axis]:
                break
            pointers.ptr[0] = pointers.ptr[0] + steps.i64[2 * axis] * -lengths.i64[axis]
            pointers.ptr[1] = pointers.ptr[1] + steps.i64[2 * axis + 1] * -lengths.i64[axis]
            position.i64[axis] = 0
            axis += 1
        if axis >= loops:
            return
"""
