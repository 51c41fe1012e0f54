"""Nodes for numbers that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from xarr.ir.graph import Node
from xarr.ir.ops import BroadcastInDim, Constant


def constant(value: Any, dtype: np.dtype[Any]) -> Node:
    """A scalar."""
    return Node(Constant.of(np.array(value, dtype)))


def full(value: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> Node:
    """One number in each element of an array."""
    return spread(constant(value, dtype), shape)


def spread(scalar: Node, shape: tuple[int, ...]) -> Node:
    """A scalar in each element of an array."""
    return Node(BroadcastInDim(shape, ()), (scalar,)) if shape else scalar


def integer_of(node: Node) -> int | None:
    """The integer that a node of one element is; None if it is no such constant."""
    op = node.op
    if not isinstance(op, Constant) or op.type.size != 1 or op.type.dtype.kind not in "iu":
        return None
    number: Any = op.raw  # or the number itself, in templates of loop programs
    return int(op.array.reshape(())) if isinstance(number, bytes) else number


def repeated_number(node: Node) -> np.ndarray[Any, Any] | None:
    """The number that a node has in each element, if that is written in the graph."""
    if isinstance(node.op, BroadcastInDim):
        (node,) = node.operands
    if not isinstance(node.op, Constant) or node.tensor_type.size != 1:
        return None
    return node.op.array.reshape(())
