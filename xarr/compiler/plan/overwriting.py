"""Which results of an op may be written over which of its operands."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from xarr.ir import ops
from xarr.ir.constants import integer_of
from xarr.ir.graph import Graph, Node
from xarr.ir.types import TensorType

if TYPE_CHECKING:
    from xarr.compiler.plan.program_plan import Step


def overwrites(node: Node, free: set[int], min_bytes: int) -> Iterator[tuple[int, int]]:
    """Pairs of a result and the operand that it is written over, one of `free`, which nothing else needs.

    Each operand is in one pair at most, and takes at least `min_bytes`.
    """
    op = node.op
    if isinstance(op, ops.NativeWhile):
        for k, each in enumerate(node.operands):
            if k in free and each.tensor_type.nbytes >= min_bytes and not is_carried_through(op, k):
                yield k, k
    elif is_update(node):
        if 0 in free and node.tensor_type.nbytes >= min_bytes:
            yield 0, 0
    elif isinstance(op, ops.Fusion):
        left = set(free)
        for number, operands in enumerate(overwritable_operands(op, min_bytes)):
            fitting = left.intersection(operands)
            if fitting:
                left.remove(min(fitting))
                yield number, min(fitting)


def is_update(node: Node) -> bool:
    """Whether a node writes a part of a copy of its first operand; an update of a scalar is the update itself."""
    return isinstance(node.op, ops.DynamicUpdateSlice | ops.StridedUpdate) and bool(node.shape)


def updated_array(node: Node) -> Node | None:
    """The array of which an update, or a group with a scatter, writes a part of a copy; None for all else."""
    if is_update(node):
        return node.operands[0]
    if not isinstance(node.op, ops.Fusion):
        return None
    graph = node.op.computation
    for result in graph.results:
        if isinstance(result.op, ops.Scatter) and result.operands[0] in graph.parameters:
            return node.operands[graph.parameters.index(result.operands[0])]
    return None


def is_beside(step: Step, view: int) -> bool:
    """Whether a step that writes over its first input reads a view of that input where it does not write."""
    is_update = isinstance(step.node.op, ops.DynamicUpdateSlice) and step.inputs[1] == view
    return is_update and step.inputs.count(view) == 1 and _is_source_beside(step.node)


def writes_over_source(node: Node) -> bool:
    """Whether an update writes a part of an array to where another part lies, and these may have elements in common."""
    return bool(_list_source_views(node)) and not _is_source_beside(node)


def _is_source_beside(node: Node) -> bool:
    views = _list_source_views(node)
    part = views[-1].op if views else None
    if not isinstance(node.op, ops.DynamicUpdateSlice) or not isinstance(part, ops.Slice):
        return False
    return _are_apart(node, node.operands[2:], part)


def _list_source_views(node: Node) -> list[Node]:
    """The views from what an update writes back to the array of which it writes a part; none if it is no part of it."""
    if not is_update(node):
        return []
    array, source = node.operands[:2]
    views = []
    while source.op.is_view and source is not array:
        views.append(source)
        (source,) = source.operands
    return views if source is array else []


def _are_apart(node: Node, starts: Sequence[Node], part: ops.Slice) -> bool:
    """Whether an update from constants on and a part of the array have no element in common."""
    rows = zip(
        starts, node.shape, node.operands[1].shape, part.start_indices, part.limit_indices, strict=True
    )
    for start, whole, size, low, high in rows:
        number = integer_of(start)
        if number is not None:
            first = min(max(0, number), whole - size)
            if first >= high or first + size <= low:
                return True
    return False


def is_carried_through(loop: ops.While, number: int) -> bool:
    """Whether no iteration changes carried value `number`."""
    return loop.body.results[number] is loop.body.parameters[number]


def updated_values(body: Graph, min_bytes: int) -> tuple[int, ...]:
    """The carried values of which a loop's body only makes the next ones, in their memory.

    Nothing else uses the old value, or the new one before the next iteration, so that no copy is missed.
    """
    pairs = list(zip(body.parameters, body.results, strict=True))
    candidates = [k for k, pair in enumerate(pairs) if is_update(pair[1]) or type(pair[1].op) is ops.Fusion]
    if not candidates:
        return ()
    uses = Counter(operand for node in body.nodes for operand in node.operands)
    uses.update(body.results)
    alone = (k for k in candidates if uses[pairs[k][1]] == 1 and _is_needed_once(*pairs[k], uses))
    return tuple([k for k in alone if _is_over(*pairs[k], min_bytes)])


def _is_needed_once(old: Node, new: Node, uses: Counter[Node]) -> bool:
    """Whether nothing but a node uses a value; an update may use a part of it too, that nothing else uses."""
    if uses[old] == 1:
        return True
    views = _list_source_views(new)
    return uses[old] == 2 and bool(views) and all(uses[each] == 1 for each in views)


def _is_over(old: Node, new: Node, min_bytes: int) -> bool:
    if is_update(new):
        return new.operands[0] is old
    if old not in new.operands or not isinstance(new.type, TensorType):
        return False
    return any(overwrites(new, {new.operands.index(old)}, min_bytes))


def _keeps_index(node: Node) -> bool:
    """Whether a node has the bits of its operand as elements of the same width."""
    return isinstance(node.op, ops.BitcastConvert) and node.shape == node.operands[0].shape


@lru_cache(1024)
def overwritable_operands(fusion: ops.Fusion, min_bytes: int) -> tuple[frozenset[int], ...]:
    """For each result of a group the operands over which it may be written.

    These are of its size and read nowhere but at the element that is written, and before it is.
    """
    graph = fusion.computation
    reads: dict[Node, frozenset[int]] = {node: frozenset([k]) for k, node in enumerate(graph.parameters)}
    elsewhere: set[int] = set()
    for node in graph.nodes:
        reads[node] = frozenset().union(*(reads[operand] for operand in node.operands))
        if isinstance(node.op, ops.Scatter) and len(node.operands) == 3:
            # The operand is copied to the result before anything is combined into it.
            elsewhere.update(*(reads[operand] for operand in node.operands[1:]))
        elif not (node.op.is_elementwise or _keeps_index(node)):
            elsewhere |= reads[node]
    allowed = []
    for node in graph.results:
        domain = node.shape if isinstance(node.op, ops.Scatter) else fusion.domain
        fits = [
            k
            for k, each in enumerate(graph.parameters)
            if each.shape == node.shape == domain
            and each.dtype.itemsize == node.dtype.itemsize
            and node.tensor_type.nbytes >= min_bytes
        ]
        allowed.append(reads[node].intersection(fits) - elsewhere if not fusion.reduced else frozenset())
    return tuple(allowed)
