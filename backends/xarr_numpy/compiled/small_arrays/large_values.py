"""Arrays in machine code that are too large to be held without a node: parts are read and written in theirs.

The rules are those of `xarr.indexing.at_once`.
"""

from __future__ import annotations

from typing import Final

LARGE: Final = """
# The node of an Array that shows a large value on a device of this backend; null else.
def large_node(array: ptr) -> ptr:
    node = array.AT_SHOWN
    if not is_there(node) or node.CLASS is not state.LEAF and node.CLASS is not state.NODE:
        return null
    value = node.ATNODE_VALUE
    device = node.ATNODE_DEVICE
    if not is_there(value) or not is_there(device) or not is_ndarray(value):
        return null
    if device.ATDEVICE_BACKEND.CLASS is not state.BACKEND:
        return null
    return node if bytes_of(kind_of(value)) * size(value) > MOSTPLAIN else null

# Count a reader of the memory of a node, if there is one, and hold it, or undo that: while NumPy copies much other
# threads run, which may be given the memory to write to.
def count_reader(node: ptr, more: i64):
    if not node:
        return
    hold(node)
    number = PyLong_FromLongLong(integer(node.ATNODE_HANDLES) + more)
    release(exchange(node, ATNODE_HANDLES, number))
    if more <= 0:
        release(node, node)

# Whether a node's value is this buffer still, of which nothing else sees the memory, made here: it may be written to.
def is_own(node: ptr, buffer: ptr) -> i1:
    if node.ATNODE_VALUE is not buffer or node.ATNODE_EXPOSED is not _Py_FalseStruct:
        return False
    if node.ATNODE_OP.CLASS is not state.DATAOP or integer(node.ATNODE_HANDLES) != 1:
        return False
    seen = buffer.BASE if buffer.BASE else buffer
    # An array that may be written to, or was before it was shown, of memory of its own or of a block of the pool's.
    if not is_ndarray(seen) or seen is not buffer and not (seen.FLAGS & 1024):
        return False
    owner = seen.BASE
    return owner.CLASS is state.LEASE if owner else (seen.FLAGS & 4) != 0

# Let memory be written to, or no more.
def open_memory(buffer: ptr, opens: i1):
    buffer.FLAGS = buffer.FLAGS & -1025 | (1024 if opens else 0)
"""
