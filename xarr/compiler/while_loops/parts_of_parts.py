"""Slices at a computed start of a part of an array as slices of the array: `x[:, 1][i]` reads `x[i, 1]`.

A column does not lie side by side, and machine code would copy it for each step that reads an element of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from xarr.dtypes import info
from xarr.ir import ops
from xarr.ir.constants import constant
from xarr.ir.graph import Graph, Node, rewritten
from xarr.ir.types import Ints


def read_from_wholes(graph: Graph) -> Graph:
    """The graph with each slice at a computed start taken from what its operand is a part of, if that is as good."""
    return rewritten(graph, _read_from_whole)


class _Part(NamedTuple):
    """The operands of a slice: the array, a start for each dimension, and sizes."""

    array: Node
    starts: tuple[Node, ...]
    sizes: Ints


def _read_from_whole(node: Node, operands: tuple[Node, ...]) -> Node | None:
    if not isinstance(node.op, ops.DynamicSlice) or 0 in operands[0].shape or not node.shape:
        return None
    part = first = _Part(operands[0], operands[1:], node.op.slice_sizes)
    while (whole := _of_slice(part) or _of_reshape(part)) is not None:
        part = whole
    if part is first:
        return None
    new = node.rebuilt((part.array, *part.starts), ops.DynamicSlice(part.sizes))
    return new if new.shape == node.shape else Node(ops.Reshape(node.shape), (new,))


def _of_slice(part: _Part) -> _Part | None:
    """The part of what a slice takes from: the slice leaves out nothing of a dimension, or the part takes all of it."""
    array, starts, sizes = part
    if not isinstance(array.op, ops.Slice):
        return None
    (whole,) = array.operands
    op, moved = array.op, []
    for axis, (start, size) in enumerate(zip(starts, sizes, strict=True)):
        is_whole = array.shape[axis] == whole.shape[axis]
        first = op.start_indices[axis]
        if not is_whole and (size != array.shape[axis] or (size > 1 and op.strides[axis] != 1)):
            return None
        if not is_whole and first > int(info(start.dtype).max):
            return None
        moved.append(start if is_whole else constant(first, start.dtype))
    return _Part(whole, tuple(moved), sizes)


def _of_reshape(part: _Part) -> _Part | None:
    """The part of what a reshape has the elements of, with other dimensions of size 1."""
    array, starts, sizes = part
    if not isinstance(array.op, ops.Reshape) or not array.operands[0].shape:
        return None
    (whole,) = array.operands
    kept = [axis for axis, size in enumerate(array.shape) if size != 1]
    if [array.shape[axis] for axis in kept] != [size for size in whole.shape if size != 1]:
        return None
    rows = iter([(starts[axis], sizes[axis]) for axis in kept])
    first = constant(0, starts[0].dtype)
    pairs: Sequence[tuple[Node, int]] = [(first, 1) if size == 1 else next(rows) for size in whole.shape]
    return _Part(whole, tuple([start for start, _ in pairs]), tuple([size for _, size in pairs]))
