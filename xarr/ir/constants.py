"""Nodes for numbers that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.ir.graph import Node
from xarr.ir.ops import BroadcastInDim, Constant
from xarr.ir.ops.creation import integer_of as integer_of


def constant(value: Any, dtype: np.dtype[Any]) -> Node:
    """A scalar."""
    return Node(Constant.of(np.array(value, dtype)))


def full(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
    """One number in each element of an array."""
    return spread(constant(value, dtype), shape)


def spread(scalar: Node, shape: tuple[int, ...]) -> Node:
    """A scalar in each element of an array."""
    return Node(BroadcastInDim(shape, ()), (scalar,)) if shape else scalar


def unbroadcast(node: Node) -> Node:
    """The array that a broadcast repeats; the node itself for other nodes."""
    return node.operands[0] if isinstance(node.op, BroadcastInDim) else node


def repeats_one(node: Node) -> bool:
    """Whether a node is a broadcast of one number."""
    return isinstance(node.op, BroadcastInDim) and node.operands[0].tensor_type.size == 1


def repeated_number(node: Node) -> np.ndarray[Any, Any] | None:
    """The number that a node has in each element, if that is written in the graph."""
    node = unbroadcast(node)
    if not isinstance(node.op, Constant) or node.tensor_type.size != 1:
        return None
    return node.op.array.reshape(())
