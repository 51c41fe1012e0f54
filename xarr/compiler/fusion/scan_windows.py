"""Scans: windows that all begin at one end of an axis, and end at each of its indices."""

from __future__ import annotations

import numpy as np

from xarr.compiler.loop_ir import elements
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.target import Target
from xarr.dtypes import COMPLEX, EXTENDED_FLOAT
from xarr.ir import ops
from xarr.ir.computations import commutes, monoids
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def scan_axis(node: Node) -> tuple[int, bool] | None:
    """The axis along which a node gives running totals, and whether they begin at its end; else None."""
    op = node.op
    if not isinstance(op, ops.ReduceWindow) or len(node.operands) != 2:
        return None
    if any(each != 1 for each in (*op.window_strides, *op.base_dilations, *op.window_dilations)):
        return None
    axes = [axis for axis, size in enumerate(op.window_dimensions) if size != 1]
    if len(axes) != 1:
        return None
    (axis,) = axes
    size = node.operands[0].shape[axis]
    others = [pair for dim, pair in enumerate(op.padding) if dim != axis]
    if op.window_dimensions[axis] != size or any(pair != (0, 0) for pair in others):
        return None
    pairs = {(size - 1, 0): False, (0, size - 1): True}
    return (axis, pairs[op.padding[axis]]) if op.padding[axis] in pairs else None


def computes(node: Node) -> bool:
    """Whether loops can run these totals; those of narrow floats, but for extremes, are formed in wider ones."""
    scan = scan_axis(node)
    if scan is None or not all(map(elements.is_held, (node, *node.operands))):
        return False
    op, dtype = node.op.expect(ops.ReduceWindow), node.dtype
    # From the end of an axis a total meets the element before it, and the initial value comes last.
    if scan[1] and not commutes(op.computation):
        return False
    if dtype in COMPLEX and not _is_computed_in_order(node, scan):
        return False
    nodes = op.computation.nodes
    if dtype in EXTENDED_FLOAT or dtype == np.float16:
        exact = len(nodes) == 1 and isinstance(nodes[0].op, ops.Maximum | ops.Minimum)
        if not exact:
            return False
    return all(elements.computes(each) for each in nodes)


def _is_computed_in_order(node: Node, scan: tuple[int, bool]) -> bool:
    """Whether totals of complex numbers meet one element after the other, or are sums, which do not tell.

    The order of other computations shows where parts are infinite.  Along rows totals are formed in lanes.
    """
    op, (axis, reverse) = node.op, scan
    assert isinstance(op, ops.ReduceWindow)
    is_along_rows = all(size == 1 for size in node.shape[axis + 1 :])
    return monoids(op.computation) == (ops.Add,) or not (reverse or is_along_rows)


def reduces_rows(node: Node, domain: Ints, scan: tuple[int, bool], target: Target) -> bool:
    """Whether a reduction can come before running totals along rows of the domain: one of each row."""
    large = [axis for axis, size in enumerate(domain) if size != 1]
    axis, _ = scan
    if not isinstance(node.op, ops.Reduce) or len(node.operands) != 2 or node.operands[0].shape != domain:
        return False
    own = [each for each in node.op.dimensions if domain[each] != 1]
    is_one = own == [axis] == large[-1:] and combination(node).monoids is not None
    return is_one and node.operands[0].tensor_type.size // domain[axis] >= target.min_busy_iterations
