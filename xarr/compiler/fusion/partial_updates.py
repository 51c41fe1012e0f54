"""Updates of a part of an array that begin at a known index, and of elements a few apart."""

from __future__ import annotations

from math import prod

import numpy as np

from xarr.compiler.loop_ir.elements import Index
from xarr.ir import ops
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node
from xarr.ir.rewriting import rewritten_throughout
from xarr.ir.types import Ints, TensorType


def is_large_update(node: Node) -> bool:
    """Whether a node writes an array, from a known index on, over at least half of another.

    Neighbours in the update must be neighbours in the result, since a vector loop runs over them.
    """
    if not isinstance(node.op, ops.DynamicUpdateSlice) or starts_of(node) is None:
        return False
    array, update = node.operands[:2]
    long = [axis for axis, size in enumerate(update.shape) if size != 1]
    is_in_order = not long or prod(array.shape[long[-1] + 1 :]) == 1
    return is_in_order and 0 < array.tensor_type.size <= 2 * update.tensor_type.size


def starts_of(node: Node) -> Ints | None:
    """The index where an update begins, clamped so that it fits; None if that is computed."""
    array, update, *starts = node.operands
    result = []
    for start, whole, size in zip(starts, array.shape, update.shape, strict=True):
        number = integer_of(start)
        if number is None:
            return None
        result.append(min(max(number, 0), whole - size))
    return tuple(result)


def stored_part(node: Node) -> Node:
    """The elements that a group computes of a result: of an update the part that it writes."""
    return node.operands[1] if isinstance(node.op, ops.DynamicUpdateSlice) else node


def placement(node: Node) -> tuple[Ints, Ints]:
    """The shape of the result and where the update begins in it."""
    starts = starts_of(node)
    assert starts is not None, "the starts of an update in a group are constants"
    return node.shape, starts


def shift_index(node: Node, index: Index) -> Index:
    """The index in the result of the update's element at `index`."""
    return tuple(at + start for at, start in zip(index, placement(node)[1], strict=True))


def update_strided_parts(graph: Graph) -> Graph:
    """The graph, and those that loops run, with updates where `x[1::2] = v` is a choice by a mask with holes."""
    if not any(ops.Pad in each.op_classes and ops.Select in each.op_classes for each in graph.walk()):
        return graph
    return rewritten_throughout(graph, _strided_update)


def _strided_update(node: Node, operands: tuple[Node, ...]) -> Node | None:
    """The update that a choice amounts to; None for any other node."""
    if not isinstance(node.op, ops.Select) or not _is_strided_write(node):
        return None
    _, padded, array = operands
    pad, update = padded.op.expect(ops.Pad), padded.operands[0]
    strides = tuple([holes + 1 for holes in pad.interior])
    return Node(ops.StridedUpdate(pad.low, strides), (array, update))


def _is_strided_write(node: Node) -> bool:
    mask, laid, _ = node.operands
    pad = laid.op
    if not isinstance(pad, ops.Pad) or not isinstance(node.type, TensorType) or node.type.dynamic:
        return False
    sizes = laid.operands[0].shape
    if not any(pad.interior) or 0 in sizes or min((*pad.low, *pad.high)) < 0 or mask.op != pad:
        return False
    here, elsewhere = mask.operands
    return here.shape == sizes and _is(here, True) and _is(elsewhere, False)


def _is(node: Node, truth: bool) -> bool:
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        (node,) = node.operands
    return isinstance(node.op, ops.Constant) and bool(np.all(node.op.array == truth))
