"""Shapes of NumPy's arrays in machine code: elements, whether two are alike, what arrays broadcast to, parts."""

from __future__ import annotations

from typing import Final

SHAPES: Final = """
def size(array: ptr) -> i64:
    product = 1
    for k in range(rank(array)):
        product *= array.SIZES.i64[k]
    return product

# The elements of the shape that two arrays broadcast to, if they do.
def broadcast_size(left: ptr, right: ptr) -> i64:
    is_longer = rank(left) > rank(right)
    long = left if is_longer else right
    short = right if is_longer else left
    ahead = rank(long) - rank(short)
    product = 1
    for k in range(rank(long)):
        own = long.SIZES.i64[k]
        if k >= ahead and own == 1:
            own = short.SIZES.i64[k - ahead]
        product *= own
    return product

def is_same_shape(left: ptr, right: ptr) -> i1:
    if rank(left) != rank(right):
        return False
    for k in range(rank(left)):
        if left.SIZES.i64[k] != right.SIZES.i64[k]:
            return False
    return True

# The dimensions that an item adds to a part, -1 for an int; 2 for one that is left to Python.
def dimensions_of(item: ptr) -> i64:
    if item.CLASS is PyLong_Type:
        return -1
    if item is None:
        return 1
    ends = item + SLICE
    if item is _Py_EllipsisObject:
        return 0
    if item.CLASS is PySlice_Type and is_end(ends.ptr[0]) and is_end(ends.ptr[1]) and is_end(ends.ptr[2]):
        return 0
    return 2

def is_end(end: ptr) -> i1:
    return end is None or end.CLASS is PyLong_Type

# The rank of the part of an array at an index; -1 for an index that is left to Python.
def rank_of_part(array: ptr, index: ptr) -> i64:
    sum = rank(array)
    if index.CLASS is not PyTuple_Type:
        added = dimensions_of(index)
        return -1 if added == 2 else sum + added
    for k in range(PyTuple_Size(index)):
        added = dimensions_of(PyTuple_GetItem(index, k))
        if added == 2:
            return -1
        sum += added
    return sum
"""
