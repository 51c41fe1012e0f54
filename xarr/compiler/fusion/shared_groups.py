"""One computation for groups that differ only in the parts of arrays and in the numbers that they read.

A Python loop that is unrolled makes a group of each iteration, `x[7] * 7.0` beside `x[8] * 8.0`.  Where many groups
are alike but for that, the parts become views outside of the groups, and the numbers arguments: one loop program, and
one piece of machine code, runs them all.  What is computed, and in which order, stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from xarr.compiler.fusion.accesses import rank
from xarr.compiler.plan.native_steps import view_offset
from xarr.dtypes import FLOAT
from xarr.ir import ops
from xarr.ir.graph import Graph, Node, parameter, rewritten
from xarr.ir.op import Op
from xarr.ir.ops.ciphers import PhiloxPair, ThreefryBits
from xarr.ir.types import TensorType

#: Ops that compute the same bits of a number whether loops hold it as a constant or read it.
_TAKE_NUMBERS: Final = frozenset(
    {
        *(ops.Add, ops.Subtract, ops.Multiply, ops.Maximum, ops.Minimum, ops.Compare, ops.Select),
        *(ops.And, ops.Or, ops.Xor, PhiloxPair, ThreefryBits),
        *(ops.BroadcastInDim, ops.Reshape),
    }
)
#: Those of which no bound of a loop is made, if the numbers are floats.
_TAKE_FLOATS: Final = frozenset(
    {ops.Add, ops.Subtract, ops.Multiply, ops.Maximum, ops.Minimum, ops.BroadcastInDim, ops.Reshape}
)
#: Ops beside which constants stay, and arrays are read as the group reads them: where loops begin, and in which order
#: they accumulate, may depend on both.
_ACCUMULATING: Final = (ops.Reduce, ops.ReduceWindow, ops.Scatter, ops.DynamicUpdateSlice)


def share_groups(graph: Graph, min_groups: int) -> Graph:
    """`graph` with one computation for each class of at least `min_groups` groups that are alike but for such parts."""
    groups = [node for node in graph.nodes if type(node.op) is ops.Fusion]
    if len(groups) < min_groups:
        return graph
    distinct = dict.fromkeys(node.op for node in groups)
    if len(distinct) < min_groups:
        return graph
    by_domain: dict[Any, list[ops.Fusion]] = {}
    for op in distinct:
        assert isinstance(op, ops.Fusion)
        by_domain.setdefault((op.domain, op.reduced), []).append(op)
    classes: dict[Any, list[_Outline]] = {}
    for outline in [_Outline.of(op) for each in by_domain.values() if len(each) >= min_groups for op in each]:
        classes.setdefault(outline.key, []).append(outline)
    shared: dict[Op, tuple[_Outline, ops.Fusion, tuple[int, ...]]] = {}
    for alike in classes.values():
        if len(alike) >= min_groups:
            varying = _varying_numbers(alike)
            fusion = _with_parameters(alike[0], varying)
            shared.update((outline.fusion, (outline, fusion, varying)) for outline in alike)
    if not shared:
        return graph

    def rule(node: Node, operands: tuple[Node, ...]) -> Node | None:
        if node.op not in shared:
            return None
        outline, fusion, varying = shared[node.op]
        return node.rebuilt(_arguments(outline, varying, node, operands), fusion)

    return rewritten(graph, rule)


@dataclass(eq=False)
class _Outline:
    """A group without what it may share with others: `key` is equal for groups that are alike.

    * `sources` - the parameters that are read whole, and the parts, nodes of the computation both, in the order of
      their first uses,
    * `numbers` - the constants that may become arguments, in that order.
    """

    fusion: ops.Fusion
    key: Any
    sources: list[Node]
    numbers: list[Node]

    @classmethod
    def of(cls, fusion: ops.Fusion) -> _Outline:
        graph = fusion.computation
        accumulates = any(isinstance(node.op, _ACCUMULATING) for node in graph.nodes)
        reduces = accumulates and _reduces_its_domain(fusion)
        fixed = _fixed_constants(graph, accumulates, reduces)
        parameters = set(graph.parameters)
        index: dict[Node, int] = {}
        sources: list[Node] = []
        numbers: list[Node] = []
        rows: list[Any] = []
        for node in graph.nodes:
            if _is_part(node, parameters, accumulates and not reduces):
                continue  # comes in as a source, where it is first used
            row: Any
            if node not in fixed and isinstance(node.op, ops.Constant):
                numbers.append(node)
                row = node.type
            else:
                for operand in node.operands:
                    if operand not in index:
                        index[operand] = len(index)
                        sources.append(operand)
                        rows.append((None, operand.type))
                row = (node.op, tuple([index[operand] for operand in node.operands]))
            rows.append(row)
            index[node] = len(index)
        for node in graph.results:
            if node not in index:  # a part, or a parameter, that is a result
                index[node] = len(index)
                sources.append(node)
                rows.append((None, node.type))
        results = tuple([index[node] for node in graph.results])
        return cls(fusion, (tuple(rows), results, fusion.domain, fusion.reduced), sources, numbers)


def _reduces_its_domain(fusion: ops.Fusion) -> bool:
    """Whether a group accumulates in reductions of its own dimensions alone.

    Their order is that of the dimensions: only of a reduction inside of another it depends on how large operands are.
    """
    return all(
        isinstance(node.op, ops.Reduce) and rank(node.operands[0].shape) <= rank(fusion.domain)
        for node in fusion.computation.nodes
        if isinstance(node.op, _ACCUMULATING)
    )


def _is_part(node: Node, parameters: set[Node], single: bool) -> bool:
    """Whether a node is a part of a parameter whose elements lie side by side, so that a view of it is an address.

    single: that it must be a single element.
    """
    if not isinstance(node.op, ops.Slice) or node.operands[0] not in parameters:
        return False
    size = node.tensor_type.size
    if size == 0 or (single and size != 1):
        return False
    return set(node.op.strides) <= {1} and view_offset(node) is not None


def _fixed_constants(graph: Graph, accumulates: bool, reduces: bool) -> set[Node]:
    """The constants that are no arguments: arrays, and numbers of which computations may depend."""
    constants = {node for node in graph.nodes if isinstance(node.op, ops.Constant)}
    if accumulates and not reduces:
        return constants
    takes = _TAKE_FLOATS if reduces else _TAKE_NUMBERS
    fixed = {node for node in constants if node.shape or (reduces and node.dtype not in FLOAT)}
    fixed.update(node for node in graph.results if node in constants)
    for node in graph.nodes:
        # What moves a number may hand it on to anything.
        if type(node.op) not in takes and not _divides_floats(node):
            for operand in node.operands:
                fixed.update(constants.intersection(_through_moves(operand)))
    return fixed


def _divides_floats(node: Node) -> bool:
    """Whether a node is a quotient of floats: the same by a constant and by a number that is read."""
    return type(node.op) is ops.Divide and node.dtype in FLOAT


def _through_moves(node: Node) -> Iterable[Node]:
    """A node, and what it only moves."""
    yield node
    while isinstance(node.op, ops.BroadcastInDim | ops.Reshape):
        (node,) = node.operands
        yield node


def _varying_numbers(alike: Sequence[_Outline]) -> tuple[int, ...]:
    """The indices of the numbers in which groups that are alike differ."""
    columns = zip(*([node.op for node in outline.numbers] for outline in alike), strict=True)
    return tuple([k for k, column in enumerate(columns) if len(set(column)) > 1])


def _with_parameters(outline: _Outline, varying: tuple[int, ...]) -> ops.Fusion:
    """The group of an outline with its sources, and the varying numbers as arrays of one element, as parameters."""
    new: dict[Node, Node] = {node: parameter(node.type) for node in outline.sources}
    parameters = list(new.values())
    for k in varying:
        number = outline.numbers[k]
        parameters.append(parameter(_row_of_one(number)))
        new[number] = number.rebuilt((parameters[-1],), ops.Reshape(()))
    graph = outline.fusion.computation
    for node in graph.nodes:
        if node not in new:
            new[node] = node.rebuilt(tuple([new[operand] for operand in node.operands]))
    return replace(
        outline.fusion,
        computation=graph.derive(new, parameters=parameters),
    )


def _row_of_one(number: Node) -> TensorType:
    return TensorType((1,), number.dtype)


def _arguments(
    outline: _Outline, varying: tuple[int, ...], node: Node, operands: tuple[Node, ...]
) -> tuple[Node, ...]:
    """The operands of a call of the shared computation, from those of the group."""
    outer = dict(zip(outline.fusion.computation.parameters, operands, strict=True))
    arguments = []
    for source in outline.sources:
        if source in outer:
            arguments.append(outer[source])
        else:
            arguments.append(source.rebuilt((outer[source.operands[0]],)))
    for k in varying:
        number = outline.numbers[k].op
        assert isinstance(number, ops.Constant)
        arguments.append(node.rebuilt((), ops.Constant(_row_of_one(outline.numbers[k]), number.raw)))
    return tuple(arguments)
