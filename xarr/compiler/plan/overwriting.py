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


def is_beside(step: Step, view: int) -> bool:
    """Whether a step that writes over its first input reads a view of that input where it does not write."""
    return (
        isinstance(step.node.op, ops.DynamicUpdateSlice)
        and step.inputs[1] == view
        and step.inputs.count(view) == 1
        and _source_beside(step.node) is not None
    )


def _source_beside(node: Node) -> list[Node] | None:
    """The views from the update of a node back to a part of the array that it updates, if the two have no element in
    common; None if they may have.
    """
    if not is_update(node) or isinstance(node.op, ops.StridedUpdate):
        return None
    array, source, *starts = node.operands
    views = []
    while source.op.is_view:
        views.append(source)
        if isinstance(source.op, ops.Slice) and source.operands[0] is array:
            return views if _are_apart(node, starts, source.op) else None
        (source,) = source.operands
    return None


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
    """Whether nothing but a node uses a value; an update may use another part of it too, that nothing else uses."""
    if uses[old] == 1:
        return True
    source = _source_beside(new)
    return uses[old] == 2 and source is not None and all(uses[each] == 1 for each in source)


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
