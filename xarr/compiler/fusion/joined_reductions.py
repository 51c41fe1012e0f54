"""Reductions that join a group: its domain grows by what they reduce, or they are computed for each element of it."""

from __future__ import annotations

from math import prod

from xarr.compiler.fusion.groups import INNER, ONE, Along, Group, own_dimensions
from xarr.compiler.loop_ir.accumulators import combination
from xarr.compiler.target import Target
from xarr.ir import ops
from xarr.ir.graph import Node
from xarr.ir.types import Ints


def join_reduction(node: Node, index_maps: set[Along], group: Group, target: Target) -> bool:
    """Whether the group can hold a reduction.

    Its domain may grow by the dimensions that are reduced; or the reduction is computed anew for each element
    of the domain, if it is asked for once for each.
    """
    domain, reduced = node.operands[0].shape, tuple(sorted(node.op.expect(ops.Reduce).dimensions))
    kept = [axis for axis in range(len(domain)) if axis not in reduced]
    large = [axis for axis in kept if domain[axis] != 1]
    if len(index_maps) != 1:
        return False
    (along,) = index_maps
    if group.domain == domain and group.reduced in ((), reduced):
        if [axis for axis in along if axis != ONE] != large or None in along:
            return False
        group.reduced = reduced
        return True
    inside = group.reduced or group.inner or is_short_or_repeated(node, target)
    if inside and _put_inside(node, along, group, target):
        return True
    return _grow(along, group, domain, reduced, large)


def is_short_or_repeated(node: Node, target: Target) -> bool:
    """Whether a reduction is better computed element by element of its result, with results in lanes.

    Either it is short, along the last dimension, or its operand is made of smaller arrays that are repeated:
    these can be read in any order, since they are few.
    """
    shape, own = node.operands[0].shape, own_dimensions(node)
    large = [axis for axis, size in enumerate(shape) if size != 1]
    if not large or large[-1] not in own or prod(kept_shape(node)) < target.min_results_side_by_side:
        return False
    count = prod(shape[axis] for axis in own)
    if count == 1 or combination(node).in_order:
        return False
    if count <= target.max_short_reduction and not _follows_reduction(node, target):
        return True
    return _is_repeated(node.operands[0], target)


def _follows_reduction(node: Node, target: Target) -> bool:
    """Whether a reduction's operand is another's result, all but element-wise operations: they make one group."""
    stack, seen = list(node.operands[:1]), set(node.operands)
    while stack and len(seen) < target.max_group_members:
        each = stack.pop()
        if isinstance(each.op, ops.Reduce):
            return True
        if each.op.is_elementwise:
            new = [operand for operand in each.operands if operand not in seen]
            seen.update(new)
            stack.extend(new)
    return False


def kept_shape(node: Node) -> Ints:
    """The shape of a reduction's results."""
    own = own_dimensions(node)
    return tuple(size for axis, size in enumerate(node.operands[0].shape) if axis not in own)


def _is_repeated(root: Node, target: Target) -> bool:
    """Whether an array is computed from broadcasts alone."""
    size = root.tensor_type.size
    stack, seen = [root], {root}
    while stack:
        node = stack.pop()
        if isinstance(node.op, ops.BroadcastInDim | ops.Constant | ops.Iota):
            if node.operands and node.operands[0].tensor_type.size * 8 > size:
                return False
            continue
        is_in_place = isinstance(node.op, ops.Elementwise | ops.Convert | ops.Select)
        if not is_in_place or len(seen) > target.max_group_members:
            return False
        new = [operand for operand in node.operands if operand not in seen]
        seen.update(new)
        stack.extend(new)
    return True


def _put_inside(node: Node, along: Along, group: Group, target: Target) -> bool:
    """Let the group compute a reduction for each element of its domain."""
    axes = group.axes(range(len(group.domain)))
    runs = [axis for axis in along if axis not in (ONE, None)]
    sizes = [node.operands[0].shape[axis] for axis in own_dimensions(node)]
    if not axes or None in along or sorted(runs, key=str) != sorted(axes, key=str) or prod(sizes) == 1:
        return False
    if group.reduced and _has_several_stages(group):
        rows = prod(group.domain[axis] for axis in group.kept_axes())
        row = prod(group.domain) // rows
        if axes[-1] not in group.reduced or rows < target.min_busy_iterations or row > target.max_kept_row:
            return False
    first = INNER + sum(map(len, group.inner.values()))
    group.inner[node] = tuple(first + k for k in range(len(sizes)))
    return True


def _has_several_stages(group: Group) -> bool:
    """Whether the elements of the domain are gone through again after a reduction."""
    axes = set(group.axes(range(len(group.domain))))
    stage: dict[Node, int] = {}
    for node in group.members():
        outer = isinstance(node.op, ops.Reduce) and node not in group.inner
        stage[node] = max((stage.get(each, 0) for each in node.operands), default=0) + outer
        if stage[node] and not outer and any(axes.issubset(along) for along in group.along[node]):
            return True
    return False


def _grow(along: Along, group: Group, domain: Ints, reduced: Ints, large: list[int]) -> bool:
    """A group of what comes after a reduction takes the reduction in."""
    axes = group.axes(range(len(group.domain)))
    if group.reduced or group.inner or [axis for axis in along if axis != ONE] != axes:
        return False
    new = dict(zip(axes, large, strict=True))
    group.along = {
        member: {tuple(new.get(a, a) if a is not None else None for a in runs) for runs in each}
        for member, each in group.along.items()
    }
    group.domain, group.reduced = domain, reduced
    return True
