"""Scatters that loops can run, and where their windows lie."""

from __future__ import annotations

from typing import Any

from xarr.compiler.loop_ir import elements
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node


def computes(node: Node) -> bool:
    """Whether loops can run this scatter: of one array, by scalars that they can compute."""
    op = node.op
    if not isinstance(op, ops.Scatter) or len(node.operands) != 3:
        return False
    held = all(map(elements.is_held, (node, *node.operands)))
    return held and all(elements.computes(each) for each in op.update_computation.nodes)


def has_rows(node: Node, target: Target) -> bool:
    """Whether windows hold neighbouring elements, so that the innermost loop is a vector loop."""
    windows = windows_of(node)
    inner = [dim for dim, size in enumerate(windows.operand_shape) if size != 1][-1:]
    return any(windows.sizes[dim] >= target.min_vector_row for dim in inner)


def windows_of(node: Node) -> Any:
    """Where the windows of a scatter lie."""
    assert isinstance(node.op, ops.Scatter)
    operand, indices, updates = (each.tensor_type for each in node.operands)
    return node.op.windows(operand, indices, updates)
