"""Elements and parts of small arrays in machine code: `x[3]`, `x[i, j]`, `x[1:, 0]`, read and written.

Indices are ints of Python's, Arrays of one int, slices between ints, None and `...`; others are left to Python.  The
rules are those of `xarr.indexing.small_parts`.
"""

from __future__ import annotations

from string import Template
from typing import Final

import numpy as np

from xarr_numpy.compiled.small_arrays.large_values import LARGE
from xarr_numpy.compiled.small_arrays.objects import KINDS
from xarr_numpy.compiled.small_arrays.selections import SELECTING

_INDICES: Final = """
# The int of an index item, of Arrays that hold an int too; least for all else.
def index_of(item: ptr) -> i64:
    own = item.AT_VALUE if is_array(item) else item
    if not own:
        return LEAST
    if own.CLASS is PyLong_Type:
        return integer(own)
    if own is item or scalar_kind(own) < FIRSTINT:
        return LEAST
    made = PyNumber_Index(own)
    if not made:
        PyErr_Clear()
        return LEAST
    number = integer(made)
    release(made)
    return number

# The bytes from one dimension's start to the index in it; least for one that is none, or out of bounds.
def step_to(array: ptr, axis: i64, item: ptr) -> i64:
    index = index_of(item)
    length = array.SIZES.i64[axis]
    if index < 0:
        index += length
    return index * array.STRIDES.i64[axis] if unsigned(index) < length else LEAST

# Where one element lies; null for an index that means anything else.
def element(array: ptr, index: ptr) -> ptr:
    if not (array.FLAGS & 256):
        return null
    if index.CLASS is not PyTuple_Type:
        step = step_to(array, 0, index) if rank(array) == 1 else LEAST
        return null if step == LEAST else array.DATA + step
    if PyTuple_Size(index) != rank(array):
        return null
    here = array.DATA
    for k in range(rank(array)):
        step = step_to(array, k, PyTuple_GetItem(index, k))
        if step == LEAST:
            return null
        here += step
    return here

# The bytes of an element of a kind; -1 for one that is unknown.
def bytes_of(kind: i64) -> i64:
$SIZES
    return -1
"""

#: Parts whose elements lie side by side: rows, and ranges of rows.
_ROWS: Final = """
# An end of a slice of so many elements as a number of these; least for an int that is too large.
def end_of(end: ptr, length: i64, otherwise: i64) -> i64:
    if end is None:
        return otherwise
    number = integer(end)
    if number == LEAST:
        return number
    if number < 0:
        number += length
    return 0 if number < 0 else number if number < length else length

# Where the part of an array in row-major order begins that ints, and a slice without a step behind them, mean as an
# index of its first dimensions; its sizes, and behind these how many there are.  Null, without an error, for others.
def rows_at(array: ptr, index: ptr, itemsize: i64, sizes: ptr) -> ptr:
    is_tuple = index.CLASS is PyTuple_Type
    count = PyTuple_Size(index) if is_tuple else 1
    dimensions = rank(array)
    if not is_in_order(array) or count == 0 or count > dimensions or dimensions > MOSTDIMENSIONS:
        return null
    stride = itemsize
    for axis in range(count, dimensions):
        stride *= array.SIZES.i64[axis]
    offset = 0
    kept = 0
    for k in range(count):
        axis = count - 1 - k
        item = PyTuple_GetItem(index, axis) if is_tuple else index
        length = array.SIZES.i64[axis]
        if item.CLASS is PyLong_Type:
            start = integer(item)
            if start < 0:
                start += length
            if unsigned(start) >= length:
                return null
        else:
            ends = item + SLICE
            if k > 0 or item.CLASS is not PySlice_Type or not is_end(ends.ptr[0]) or not is_end(ends.ptr[1]):
                return null
            if ends.ptr[2] is not None:
                return null
            start = end_of(ends.ptr[0], length, 0)
            stop = end_of(ends.ptr[1], length, length)
            if start == LEAST or stop == LEAST:
                return null
            sizes.i64[0] = stop - start if stop > start else 0
            kept = 1
        offset += start * stride
        stride *= length
    for axis in range(count, dimensions):
        sizes.i64[kept] = array.SIZES.i64[axis]
        kept += 1
    sizes.i64[MOSTDIMENSIONS] = kept
    return array.DATA + offset if kept else null

@inline
def elements_of(sizes: ptr) -> i64:
    product = 1
    for k in range(sizes.i64[MOSTDIMENSIONS]):
        product *= sizes.i64[k]
    return product

# A copy of such a part, if it is small; null, without an error, for others.
def copied_rows(array: ptr, index: ptr, kind: i64, itemsize: i64) -> ptr:
    sizes = stack(i64, SIZEWORDS)
    at = rows_at(array, index, itemsize, sizes)
    nbytes = itemsize * elements_of(sizes) if at else 0
    if not at or nbytes > COPIED:
        return null
    made = new_array(kind, sizes.i64[MOSTDIMENSIONS], sizes)
    if made:
        llvm_memcpy_p0_p0_i64(made.DATA, at, nbytes, False)
    else:
        PyErr_Clear()
    return made

# Write a number, or an array of these sizes in row-major order, to such a part; whether that is done.
def write_rows(array: ptr, index: ptr, value: ptr, kind: i64, itemsize: i64) -> i1:
    sizes = stack(i64, SIZEWORDS)
    at = rows_at(array, index, itemsize, sizes)
    if not at:
        return False
    count = elements_of(sizes)
    if is_ndarray(value):
        if not is_in_order(value) or rank(value) != sizes.i64[MOSTDIMENSIONS]:
            return False
        for axis in range(rank(value)):
            if value.SIZES.i64[axis] != sizes.i64[axis]:
                return False
        llvm_memmove_p0_p0_i64(at, value.DATA, itemsize * count, False)
    elif count > 0:
        store(value, kind, at)
        for k in range(1, count):
            if itemsize == 8:
                at.i64[k] = at.i64[0]
            else:
                at.i8[k] = at.i8[0]
    return True
"""

#: What reads and writes begin with: the node of a large array, the buffer, the device and what holds them.
_FINDING: Final = """\
    node = null if value_of(self) else large_node(self)
    if not node and not value_of(self):
        goto(slow)
    holder = node if node else self
    buffer = node.ATNODE_VALUE if node else self.AT_VALUE
    device = node.ATNODE_DEVICE if node else self.AT_DEVICE
    if not is_ndarray(buffer):
        goto(slow)
    kind = kind_of(buffer)
"""

_READING: Final = f"""
# An element as a Python number, a new reference; null, without an error, for types that are left to Python.
def number_at(at: ptr, kind: i64) -> ptr:
    if kind == 1:
        return PyFloat_FromDouble(at.double[0])
    if kind == 2:
        return PyLong_FromLongLong(at.i64[0])
    return truth(at.i8[0] != 0) if kind == 3 else null

@exported
def method___getitem__(self: ptr, index: ptr) -> ptr:
    if not is_usual(self):
        goto(slow)
{_FINDING}
    at = element(buffer, index)
    if at:
        number = number_at(at, kind)
        if number:
            hold(device)
            return wrap(number, device, 1)
        # By NumPy's own scalar, at an index that it knows.
        if kind == 0:
            goto(slow)
        own_index = index.AT_VALUE if is_array(index) else index
        # Arrays in the index are asked for their ints in Python, which may give what is read here away.
        hold(device, buffer, own_index)
        view = PyObject_GetItem(buffer, own_index)
        release(own_index)
        if not view:
            goto(clear)
        if scalar_kind(view) < FIRSTSCALAR:
            goto(leave)
        release(buffer)
        return wrap(view, device, 1)
    itemsize = bytes_of(kind)
    if itemsize <= 0:
        goto(slow)
    chosen = selector(index, device)
    if chosen:
        if node and is_mask(chosen):
            release(chosen)
            goto(slow)
        count_reader(node, 1)
        selected = read_selected(buffer, chosen, device, itemsize)
        count_reader(node, -1)
        release(chosen)
        if not selected and not PyErr_Occurred():
            goto(slow)
        return selected
    if rank_of_part(buffer, index) <= 0:
        goto(slow)
    hold(device, buffer)
    view = copied_rows(buffer, index, kind, itemsize)
    is_copied = view is not null
    if not is_copied:
        view = PyObject_GetItem(buffer, index)
        if not view:
            goto(clear)
        if not is_ndarray(view):
            goto(leave)
        nbytes = size(view) * itemsize
        # What would keep a much larger array alive is a copy.
        if node and nbytes > MOSTPLAIN:
            goto(leave)
        if node or nbytes <= COPIED and view.FLAGS & 1:
            count_reader(node, 1)
            copied = copy_of(view)
            count_reader(node, -1)
            release(view)
            view = copied
            if not view:
                goto(clear)
            is_copied = True
    if not is_copied and is_there(self.AT_SHOWN):
        # The node's memory is seen by a view from now on, unless another thread has just given it away.
        status = PyObject_SetAttrString(self.AT_SHOWN, exposed, _Py_TrueStruct)
        if self.AT_VALUE is not buffer or status != 0:
            goto(leave)
    release(buffer)
    reference = PyWeakref_NewRef(self, null)
    outer = outer_part(self) if reference else null
    part = PyTuple_Pack(4, reference, state.INDEX_STEP, index, outer) if outer else null
    drop(outer)
    drop(reference)
    if not part:
        release(view, device)
        return null
    array = wrap(view, device, 0)
    if array:
        array.AT_PART = part
    else:
        release(part)
    return array
    label(leave)
    release(view)
    goto(let_go)
    label(clear)
    PyErr_Clear()
    label(let_go)
    release(buffer, device)
    label(slow)
    return PyObject_CallFunctionObjArgs(state.READ, self, index, null)
"""

_WRITING: Final = f"""
# Whether a value is one of this kind of element, or a number that it takes as the op would.
def is_taken(value: ptr, kind: i64) -> i1:
    if value.CLASS is PyFloat_Type:
        return kind == 1
    if value.CLASS is PyLong_Type:
        return (kind == 1 or kind == 2) and is_exact(integer(value))
    return kind == 3 and value.CLASS is PyBool_Type

def store(value: ptr, kind: i64, at: ptr):
    if kind == 1:
        at.double[0] = PyFloat_AsDouble(value) if value.CLASS is PyFloat_Type else double(integer(value))
    elif kind == 2:
        at.i64[0] = integer(value)
    else:
        at.i8[0] = i8(value is _Py_TrueStruct)

@exported
def method___setitem__(self: ptr, arguments: ptr, count: i64) -> ptr:
    if count != 2 or not is_usual(self):
        goto(slow)
    index = arguments.ptr[0]
    value = arguments.ptr[1]
{_FINDING}
    if is_array(value):
        if value.AT_DEVICE is not device or not value.AT_VALUE:
            goto(slow)
        value = value.AT_VALUE
    at = element(buffer, index)
    itemsize = bytes_of(kind)
    if at:
        if not is_taken(value, kind):
            goto(slow)
        hold(index)
    else:
        if itemsize <= 0:
            goto(slow)
        chosen = selector(index, device)
        if chosen:
            index = chosen
            part_rank = rank_of_selection(buffer, chosen, itemsize)
        else:
            hold(index)
            part_rank = rank_of_part(buffer, index)
        if is_ndarray(value):
            fits = value.DESCR is buffer.DESCR and rank(value) <= part_rank
        else:
            fits = is_taken(value, kind)
        if part_rank <= 0 or not fits:
            release(index)
            goto(slow)
    # The index is held from here on.
    hold(value)
    # Held, the buffer's address is that of no other one that Python, as it looks for the line, gives the Array.
    hold(buffer)
    line = locate(i64(at is not null))
    if not line:
        release(index, value, buffer)
        return null
    # From here to the write no Python runs: the Array alone refers to memory that it may write to.
    shown = self.AT_SHOWN
    has_part = is_there(self.AT_PART)
    release(buffer)
    if has_part:
        goto(leave)
    if node:
        if shown is not node or not is_own(node, buffer):
            goto(leave)
    elif is_there(shown) or self.AT_VALUE is not buffer:
        goto(leave)
    elif buffer.i32[0] != 1 or buffer.BASE or not (buffer.FLAGS & 1024):
        goto(leave)
    hold(holder)
    if at:
        store(value, kind, at)
    elif not write_rows(buffer, index, value, kind, itemsize):
        # NumPy lets other threads run while it writes many elements, which may give the Array another node.
        hold(buffer)
        open_memory(buffer, True)
        status = PyObject_SetItem(buffer, index, value)
        open_memory(buffer, node is null)
        release(buffer)
        if status != 0:
            PyErr_Clear()
            release(holder)
            goto(leave)
    drop(exchange(holder, ATNODE__LOCATION if node else AT_LOCATION, line))
    release(holder, index, value)
    hold(None)
    return None
    label(leave)
    release(index, line, value)
    label(slow)
    return call_python(state.WRITE, self, arguments, count, count, null)
"""


def subscript_text() -> str:
    """The methods `__getitem__` and `__setitem__`."""
    sizes = [
        f"    if kind == {number}:\n        return {np.dtype(kind).itemsize}"
        for kind, number in KINDS.items()
    ]
    indices = Template(_INDICES).substitute(SIZES="\n".join(sizes))
    return indices + LARGE + SELECTING + _ROWS + _READING + _WRITING
