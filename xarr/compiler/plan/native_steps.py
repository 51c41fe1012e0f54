"""What a program of machine code alone needs to know of a plan: which views are addresses, what loops write in place.

In such a program no step makes a view of an input but the step `View`.
"""

from __future__ import annotations

from itertools import pairwise

from xarr.compiler.plan import program_plan
from xarr.compiler.plan.overwriting import overwrites
from xarr.compiler.plan.program_plan import Plan
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def view_offset(node: Node) -> int | None:
    """Bytes from the first element of its operand to that of a view; None if the elements of either do not lie alike.

    Those of both must lie in row-major order, side by side.
    """
    op, (operand,) = node.op, node.operands
    if isinstance(op, ops.Reshape) or node.tensor_type.size == operand.tensor_type.size == 1:
        return 0
    if isinstance(op, ops.BroadcastInDim):
        return 0 if node.tensor_type.size == operand.tensor_type.size else None
    if isinstance(op, ops.Transpose):
        moved = [axis for axis in op.permutation if operand.shape[axis] != 1]
        return 0 if all(x < y for x, y in pairwise(moved)) else None
    if isinstance(op, ops.Slice) and _lies_together(operand.shape, node.shape):
        offset, stride = 0, node.dtype.itemsize
        for size, start in zip(reversed(operand.shape), reversed(op.start_indices), strict=True):
            offset += start * stride
            stride *= size
        return offset
    return None


def _lies_together(whole: Ints, part: Ints) -> bool:
    """Whether a part of an array lies side by side: one index, then a range, then whole dimensions."""
    axes = [axis for axis, size in enumerate(part) if size != 1]
    return not axes or all(part[axis] == whole[axis] for axis in range(axes[0] + 1, len(part)))


def carries_in_place(loop: program_plan.LoopStep) -> frozenset[int]:
    """The carried values that need one array alone: each iteration writes the next one over it.

    Those that the body updates, if all that reads the old value does so before.
    """
    body = loop.body
    numbers = range(len(body.parameters))
    return frozenset([k for k in numbers if k in body.donated or _is_updated(body, k)])


def _is_updated(body: Plan, number: int) -> bool:
    """Whether a result is an argument of which a step writes a part anew, when nothing needs the old one any more."""
    argument, result = body.parameters[number], body.results[number]
    written, old = body.buffers[result], body.buffers[argument]
    if written.start < 0 or old.end != written.start or result in body.parameters or written.is_view:
        return False
    if [*body.results].count(result) > 1 or argument in body.results or written.base is not None:
        return False
    step = body.steps[written.start]
    if not step.makes_new or isinstance(step, program_plan.LaunchLoop) or step.inputs.count(argument) != 1:
        return False
    views = [each for each in body.buffers if each.is_view and body.root(each.number) == argument]
    if any(each.end >= written.start for each in views):
        return False
    operand = step.inputs.index(argument)
    return (step.outputs.index(result), operand) in overwrites(step.node, {operand}, 1)
