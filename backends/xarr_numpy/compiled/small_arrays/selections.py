"""Indices in machine code that select elements or rows: `x[i]`, `x[x > 0]`, `x[[1, 2]]`, `x[i, j]`.

They are one Array of ints or bools, a list of ints, or a tuple of Arrays of ints of one shape.
"""

from __future__ import annotations

from typing import Final

SELECTING: Final = """
# The value of an Array of int64 or bools with dimensions, which may select from an array on a device; null for no such.
def index_array(index: ptr, device: ptr) -> ptr:
    if not is_array(index):
        return null
    value = index.AT_VALUE
    if not is_there(value) or not is_ndarray(value) or rank(value) == 0:
        return null
    kind = kind_of(value)
    own = index.AT_DEVICE
    if kind != 2 and kind != 3:
        return null
    return value if own is device or not is_there(own) or common_device(own, device) else null

# What stands for an index that selects from an array on a device: an array, or a tuple of arrays of ints of one shape,
# as a new reference; null, without an error, for another index.
def selector(index: ptr, device: ptr) -> ptr:
    single = index_array(index, device)
    if single:
        hold(single)
        return single
    if index.CLASS is PyTuple_Type:
        return selector_of_several(index, device)
    if index.CLASS is not PyList_Type or PyList_Size(index) == 0:
        return null
    for k in range(PyList_Size(index)):
        if PyList_GetItem(index, k).CLASS is not PyLong_Type:
            return null
    # An array of its own, since the user may change the list.
    array = PyObject_CallFunctionObjArgs(state.MAKE_ARRAY, index, null)
    if not array:
        PyErr_Clear()
    elif kind_of(array) != 2:
        release(array)
        return null
    return array

def selector_of_several(index: ptr, device: ptr) -> ptr:
    count = PyTuple_Size(index)
    first = index_array(PyTuple_GetItem(index, 0), device) if count else null
    if not first:
        return null
    made = PyTuple_New(count)
    if not made:
        PyErr_Clear()
        return null
    for k in range(count):
        own = index_array(PyTuple_GetItem(index, k), device)
        if not own or kind_of(own) != 2 or not is_same_shape(own, first):
            release(made)
            return null
        hold(own)
        PyTuple_SetItem(made, k, own)
    return made

def is_mask(selector: ptr) -> i1:
    return is_ndarray(selector) and kind_of(selector) == 3

# The rank of what a selector selects from an array; -1 where that may be large.
def rank_of_selection(array: ptr, selector: ptr, itemsize: i64) -> i64:
    if is_mask(selector):
        return rank(array) - rank(selector) + 1
    chosen = 1
    first = selector
    if not is_ndarray(selector):
        chosen = PyTuple_Size(selector)
        first = PyTuple_GetItem(selector, 0)
    if rank(array) < chosen or size(array) <= 0:
        return -1
    elements = size(first)
    for k in range(chosen, rank(array)):
        elements *= array.SIZES.i64[k]
    return rank(array) - chosen + rank(first) if elements * itemsize <= MOSTPLAIN else -1

# What a selector selects from the value of an Array, as a new one; null for what is left to Python, and for an error.
def read_selected(buffer: ptr, selector: ptr, device: ptr, itemsize: i64) -> ptr:
    if rank_of_selection(buffer, selector, itemsize) <= 0:
        return null
    hold(device, buffer, selector)
    made = PyObject_GetItem(buffer, selector)
    release(selector, buffer)
    if made and is_ndarray(made) and made.FLAGS & 1 and not made.BASE:
        return wrap(made, device, 0)
    if made:
        release(made)
    else:
        PyErr_Clear()
    release(device)
    return null
"""
